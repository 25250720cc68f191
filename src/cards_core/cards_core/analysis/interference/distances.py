"""Shapes of links as convex bodies, and distances of straight pieces from them and each other.

Pieces have closed forms; bodies GJK [Gilbert1988] where there is none. The distances are C.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TypeAlias, get_args

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from cards_core.analysis.native_library import native_library, pointer
from cards_core.checks import check_choice
from cards_core.errors import CardsError, DescriptionError, ShapeError, UnknownNameError
from cards_core.paths.wrapping.mesh import mesh_path, mesh_vertices
from cards_core.robot.elements import (
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Link,
    Mesh,
    Plane,
    Sphere,
    Visual,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose
from cards_core.typing import Array, Vector3

BALL, CAPSULE, BOX, CYLINDER, ELLIPSOID, HULL, HALF_SPACE = range(7)
"""Kinds of bodies, as in ``native/interference_distances.c``."""

Shape: TypeAlias = Visual | Collision


@dataclass(frozen=True, eq=False)
class Body:
    """A convex body that is fixed to a link.

    Attributes:
        link: Index of the link in ``robot.links``.
        name: ``link/shape``.
        kind: One of `BALL` ... `HALF_SPACE`.
        pose: Body to link.
        size: Numbers of the kind, shape (3,): radius (ball); radius, half length (capsule,
            cylinder) [m]; half edges (box) [m]; semi-axes (ellipsoid) [m]; outward unit normal
            (half-space).
        radius: Of a ball about the body's origin that contains it, [m].
        vertices: Of a hull in body coordinates, shape (V, 3), [m].
    """

    link: int
    name: str
    kind: int
    pose: Pose
    size: Vector3
    radius: float
    vertices: Array


def bodies_of(robot: Robot, shapes: str, meshes: str) -> tuple[Body, ...]:
    """Return the convex bodies of all links.

    Args:
        robot: The description.
        shapes: ``collisions``, ``visuals``, or ``either``: visuals of links without collisions.
        meshes: ``hull``: the convex hull counts; ``skip``: meshes are left out.

    Raises:
        DescriptionError: A mesh that cannot be read.
        UnknownNameError: No such choice of shapes or meshes.
    """
    check_choice(meshes, "choice for meshes", ("hull", "skip"))
    out = []
    for index, link in enumerate(robot.links):
        for shape in _chosen(link, shapes):
            if meshes == "skip" and isinstance(shape.geometry, Mesh):
                continue
            out.append(_body(robot, index, shape))
    return tuple(out)


def _chosen(link: Link, shapes: str) -> tuple[Shape, ...]:
    match shapes:
        case "collisions":
            return link.collisions
        case "visuals":
            return link.visuals
        case "either":
            return link.collisions or link.visuals
        case _:
            raise UnknownNameError("choice of shapes", shapes, ("collisions", "visuals", "either"))


def _body(robot: Robot, index: int, shape: Shape) -> Body:
    name = f"{robot.links[index].name}/{shape.name}"
    pose, vertices = shape.pose, np.zeros((0, 3))
    size = np.zeros(3)
    match shape.geometry:
        case Sphere(radius):
            kind, size[0], bound = BALL, radius, radius
        case Capsule(radius, length):
            kind, size[:2], bound = CAPSULE, (radius, 0.5 * length), radius + 0.5 * length
        case Cylinder(radius, length):
            kind, size[:2] = CYLINDER, (radius, 0.5 * length)
            bound = float(np.hypot(radius, 0.5 * length))
        case Box() as box:
            kind, size[:] = BOX, 0.5 * np.asarray(box.size)
            bound = float(np.linalg.norm(size))
        case Ellipsoid() as ellipsoid:
            kind, size[:] = ELLIPSOID, ellipsoid.radii
            bound = float(size.max())
        case Plane() as plane:
            kind, size[:] = HALF_SPACE, plane.normal
            size /= np.linalg.norm(size)
            bound = np.inf
        case Mesh() as mesh:
            kind, vertices = HULL, _hull(robot, mesh, name)
            centre = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
            vertices = vertices - centre
            pose = pose @ Pose(np.eye(3), centre)
            bound = float(np.linalg.norm(vertices, axis=1).max())
        case HeightField():
            raise CardsError(
                f"{name}: distances to height fields are not computed (expected: other shapes)"
            )
        case _:
            raise UnknownNameError.of_type("geometry", shape.geometry, get_args(Geometry))
    return Body(index, name, kind, pose, size, float(bound), vertices)


def _hull(robot: Robot, mesh: Mesh, name: str) -> Array:
    """Corners of the convex hull of a mesh, shape (V, 3), [m]."""
    path = mesh_path(mesh.uri, robot.source)
    try:
        if path is None:
            raise ValueError(f"there is no file '{mesh.uri}'")
        vertices = mesh_vertices(path.read_bytes(), path.name) * mesh.scale
        return np.ascontiguousarray(vertices[ConvexHull(vertices).vertices])
    except QhullError:
        problem = "its vertices span no volume"
    except (OSError, ValueError) as error:
        problem = str(error)
    raise DescriptionError(
        f"mesh '{mesh.uri}': {problem}",
        source=robot.source,
        element=f"shape '{name}'",
        expected="an STL or OBJ file; the option meshes='skip' leaves meshes out",
    )


def library() -> ctypes.CDLL:
    """Return the compiled distances. Raises `CompilationError` where there is no C compiler."""
    return native_library("interference", "interference_distances", "interference")


def piece_distances(first: Array, second: Array) -> Array:
    """Return the distances of pairs of straight pieces, shape (n,), [m].

    Args:
        first: Ends of the pieces, shape (n, 2, 3), [m].
        second: Ends of their partners, shape (n, 2, 3), [m].
    """
    a, b = (np.ascontiguousarray(x, dtype=float).reshape(-1, 2, 3) for x in (first, second))
    if len(a) != len(b):
        raise ShapeError(f"{len(a)} pieces and {len(b)} partners (expected: as many)")
    out = np.empty(len(a))
    library().cards_piece_distances(
        ctypes.c_long(len(a)), *(pointer(array) for array in (a, b, out))
    )
    return out


def body_distances(pieces: Array, body: Body) -> Array:
    """Return the distances of straight pieces from a body, shape (n,), [m].

    Negative by the depth in balls, capsules and half-spaces, 0 where another body is touched.

    Args:
        pieces: Ends in coordinates of the body's link, shape (n, 2, 3), [m].
        body: The body.
    """
    count = np.asarray(pieces).size // 6
    local = body.pose.inverse().apply(np.asarray(pieces, dtype=float).reshape(-1, 3))
    local = np.ascontiguousarray(local)
    size, vertices = np.ascontiguousarray(body.size), np.ascontiguousarray(body.vertices)
    out = np.empty(count)
    library().cards_body_distances(
        ctypes.c_long(count),
        pointer(local),
        ctypes.c_int(body.kind),
        pointer(size),
        ctypes.c_double(body.radius),
        pointer(vertices),
        ctypes.c_int(len(vertices)),
        pointer(out),
    )
    return out
