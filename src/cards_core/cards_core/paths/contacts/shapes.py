"""Shapes that cables touch, as the rods, edges and heights that the native code looks at.

A straight piece of a cable cannot touch a flat face from outside unless its ends are behind it,
nor a hollow: what holds a cable on a box, a convex mesh or the ground are convex edges alone. Each
is a rod of radius zero with its solid on one side. A plane has none and needs none.

A rod ends in half spheres. Those of a cylinder lie within it: with a sharp rim or none the cable
would jump where it slides over the end, and a jump to a longer way is energy from nothing. A
cylinder that is too short for them is a prism of many sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from cards_core.errors import UnknownNameError
from cards_core.robot.elements import Box, Capsule, Cylinder, HeightField, Plane, Sphere
from cards_core.spatial import Pose
from cards_core.typing import Array, Matrix3, Vector3

FLAT = 1e-9
"""Faces whose normals differ by less have no edge between them, [rad]."""

DISC_SIDES = 32
"""Of the prism as which cables touch a cylinder shorter than its diameter: 0.5 % of r off."""


@dataclass(frozen=True, eq=False)
class Hull:
    """Convex hull of points, as which a mesh is touched.

    Attributes:
        vertices: shape (V, 3), [m].

    Raises:
        ValueError: The points lie in a plane.
    """

    vertices: Array
    edges: Array = field(init=False)
    """As of `edge_frame`, shape (E, 15)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", _hull_edges(self.vertices))


ContactGeometry: TypeAlias = Capsule | Cylinder | Sphere | Box | Plane | HeightField | Hull
"""Shapes that cables touch."""


@dataclass(frozen=True, eq=False)
class ContactShape:
    """A shape that cables touch.

    Attributes:
        link: Index of its link; that of the world is the number of links.
        geometry: In its own frame.
        pose: Maps the shape to the link.
    """

    link: int
    geometry: ContactGeometry
    pose: Pose = field(default_factory=Pose)


def holds(shape: ContactShape, point: Vector3) -> bool:
    """Return whether a point, in link coordinates, [m], is in a shape or on it."""
    x = shape.pose.inverse().apply(point)
    slack = 1e-9
    match shape.geometry:
        case Capsule(radius, length):
            beyond = max(0.0, abs(float(x[2])) - 0.5 * length)
            return float(np.hypot(np.hypot(x[0], x[1]), beyond)) <= radius + slack
        case Cylinder(radius, length):
            return float(np.hypot(x[0], x[1])) <= radius + slack and (
                abs(float(x[2])) <= 0.5 * length + slack
            )
        case Sphere(radius):
            return float(np.linalg.norm(x)) <= radius + slack
        case Box(size):
            return bool(np.all(np.abs(x) <= 0.5 * np.asarray(size) + slack))
        case Hull():
            from scipy.spatial import ConvexHull

            planes: Any = ConvexHull(shape.geometry.vertices)
            return bool(np.all(planes.equations @ [*x, 1.0] <= slack))
        case Plane() | HeightField():
            return False  # the way of a cable that is fixed to the ground is above it
    raise UnknownNameError.of_type("contact shape", shape.geometry, get_args(ContactGeometry))


ROD, HULL, FIELD = range(3)


@dataclass(frozen=True)
class ShapeTables:
    """Arrays for ``native/contact_cables.c``; see the structures there.

    Attributes:
        shapes: shape (n, 24).
        kinds: shape (n, 5).
        edges: shape (E, 15).
        heights: One after the other, shape (H,).
        ridges: Whether the edges from each of these points along x, along y and across the cell
            are convex, shape (H, 3).
    """

    shapes: Array
    kinds: npt.NDArray[np.int64]
    edges: Array
    heights: Array
    ridges: npt.NDArray[np.uint8]


def shape_tables(shapes: Sequence[ContactShape]) -> ShapeTables:
    """Return the arrays for shapes. Raises `UnknownNameError` for what cables do not touch."""
    numbers: list[list[float]] = []
    kinds: list[list[int]] = []
    edges: list[Array] = [np.zeros((0, 15))]
    heights: list[Array] = [np.zeros(0)]
    ridges = [np.zeros((0, 3), dtype=np.uint8)]
    edge_count = height_count = 0
    for shape in shapes:
        rod, size, top = [0.0, 0.0], [0.0, 0.0], 0.0
        kind = [HULL, shape.link, edge_count, 0, 0]
        match shape.geometry:
            case Capsule(radius, length):
                rod, kind[0] = [radius, 0.5 * length], ROD
                bound = radius + 0.5 * length
            case Cylinder(radius, length) if length >= 2.0 * radius:
                rod, kind[0] = [radius, 0.5 * length - radius], ROD
                bound = float(np.hypot(radius, 0.5 * length))
            case Cylinder():
                found = _disc(shape.geometry).edges
                bound = float(np.hypot(shape.geometry.radius, 0.5 * shape.geometry.length))
                kind[3] = len(found)
                edges.append(found)
            case Sphere(radius):
                rod, kind[0] = [radius, 0.0], ROD
                bound = radius
            case Plane():
                bound = 0.0  # no edges
            case Box(full):
                found = _box_edges(tuple(float(side) for side in full))
                bound = 0.5 * float(np.linalg.norm(full))
                kind[3] = len(found)
                edges.append(found)
            case Hull():
                vertices, found = shape.geometry.vertices, shape.geometry.edges
                bound = float(np.linalg.norm(vertices, axis=1).max())
                kind[3] = len(found)
                edges.append(found)
            case HeightField(grid, extent):
                rows, columns = grid.shape
                size, top = list(extent), float(grid.max())
                bound = float(np.hypot(0.5 * np.hypot(*extent), np.abs(grid).max()))
                kind = [FIELD, shape.link, height_count, columns, rows]
                heights.append(np.ascontiguousarray(grid, dtype=float).ravel())
                ridges.append(_ridges(grid, extent))
                height_count += grid.size
            case _:
                known = get_args(ContactGeometry)
                raise UnknownNameError.of_type("contact shape", shape.geometry, known)
        edge_count += kind[3] if kind[0] == HULL else 0
        pose = [*shape.pose.rotation.ravel(), *shape.pose.translation]
        low, high = _extents(edges[-1]) if kind[3] and kind[0] == HULL else np.zeros((2, 3))
        numbers.append([*pose, bound, *rod, *size, top, *low, *high])
        kinds.append(kind)
    return ShapeTables(
        np.array(numbers, dtype=float).reshape(-1, 24),
        np.array(kinds, dtype=np.int64).reshape(-1, 5),
        np.concatenate(edges),
        np.concatenate(heights),
        np.concatenate(ridges),
    )


def edge_frame(start: Vector3, end: Vector3, normals: Array) -> Array:
    """Return an edge, shape (15,): rotation by rows, middle, half length, tilt of its faces.

    The z axis lies along the edge, x halves the angle of the outward normals of its faces, which
    are cos x +- sin y; the tilt is cos and sin.

    Args:
        start: One of its ends, shape (3,), [m].
        end: The other one.
        normals: Of its faces, shape (2, 3).
    """
    along = end - start
    length = float(np.linalg.norm(along))
    z = along / length
    x = normals.sum(axis=0)
    x = x - (x @ z) * z
    x /= np.linalg.norm(x)
    turn: Matrix3 = np.stack([x, np.cross(z, x), z], axis=-1)
    tilt = x @ normals[0], np.linalg.norm(np.cross(x, normals[0]))
    return np.array([*turn.ravel(), *(0.5 * (start + end)), 0.5 * length, *tilt])


def _extents(edges: Array) -> Array:
    """Return the least and largest coordinates of edges as of `edge_frame`, shape (2, 3)."""
    half = edges[:, 12:13] * edges[:, 2:9:3]
    ends = np.concatenate([edges[:, 9:12] - half, edges[:, 9:12] + half])
    return np.array([ends.min(axis=0), ends.max(axis=0)])


def _disc(disc: Cylinder) -> Hull:
    """Return a prism around whose edges a cable bends as around the rims of a disc."""
    angles = 2.0 * np.pi * np.arange(DISC_SIDES) / DISC_SIDES
    rim = disc.radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    ends = [np.column_stack([rim, np.full(DISC_SIDES, s * 0.5 * disc.length)]) for s in (-1, 1)]
    return Hull(np.concatenate(ends))


@lru_cache(maxsize=128)
def _box_edges(size: tuple[float, ...]) -> Array:
    """Return the edges of a box; fields of blocks have hundreds of one size."""
    half = 0.5 * np.asarray(size)
    found = []
    for axis in range(3):
        others = [i for i in range(3) if i != axis]
        for signs in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            start, normals = np.zeros(3), np.zeros((2, 3))
            normals[[0, 1], others] = signs
            start[others] = half[others] * signs
            end = start.copy()
            start[axis], end[axis] = -half[axis], half[axis]
            found.append(edge_frame(start, end, normals))
    return np.array(found)


def _ridges(grid: Array, extent: tuple[float, float]) -> npt.NDArray[np.uint8]:
    """Return which edges of `field_triangles` are convex, shape (rows * columns, 3).

    Where the two faces meet, the plane of one is above the far corner of the other. Edges at the
    border have one face and do not count.
    """
    rows, columns = grid.shape
    out = np.zeros((rows, columns, 3), dtype=np.uint8)
    h = np.asarray(grid, dtype=float)
    low, right, ahead, both = h[:-1, :-1], h[:-1, 1:], h[1:, :-1], h[1:, 1:]
    flat = FLAT * min(extent[0] / (columns - 1), extent[1] / (rows - 1))
    # a plane through low, right, both rises by right - low along x and by both - right along y
    out[:-1, :-1, 2] = right + ahead - low - both < -flat
    # along x between the triangle above, (low, right, both), and the one below it
    out[1:-1, :-1, 0] = (both - right)[1:] - (ahead - low)[:-1] < -flat
    # along y between the triangle to the right, (low, both, ahead), and the one to the left
    out[:-1, 1:-1, 1] = (both - ahead)[:, 1:] - (right - low)[:, :-1] < -flat
    return out.reshape(-1, 3)


def _hull_edges(vertices: Array) -> Array:
    # scipy.spatial takes long to import
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull: Any = ConvexHull(vertices)
    except (QhullError, ValueError):
        raise ValueError("its vertices lie in a plane") from None
    normals = hull.equations[:, :3]
    found = []
    for face, (corners, neighbours) in enumerate(zip(hull.simplices, hull.neighbors, strict=True)):
        # the neighbour across from a corner shares the other two
        for k, other in enumerate(neighbours):
            if other < face or np.linalg.norm(normals[face] - normals[other]) < FLAT:
                continue
            start, end = np.delete(corners, k)
            faces = normals[[face, other]]
            found.append(edge_frame(hull.points[start], hull.points[end], faces))
    return np.array(found)
