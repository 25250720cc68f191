"""Paths of all muscles as flat tables: points, the contacts among them, and the straight pieces.

A via point is one path point; a wrap or a pulley is a *contact*, two path points (tangent points)
with an arc between them. A muscle is thus always a polyline of the same length: straight pieces,
and arcs that lie on one rigid body and therefore neither pull nor push anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from cards_core.errors import DescriptionError, UnknownNameError
from cards_core.paths.wrapping.mesh import mesh_path
from cards_core.robot.elements import (
    Collision,
    Cylinder,
    Mesh,
    Muscle,
    PathElement,
    Pulley,
    Sphere,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.robot.model import WORLD_NODE, Robot, Tree
from cards_core.spatial import Pose
from cards_core.typing import Array

Indices = npt.NDArray[np.intp]

Place = Callable[[str], tuple[int, Pose]]
"""Says which frame carries a link, and the pose of the link in that frame."""


FRICTION_MARGIN = 2.0
"""How much smoother than the limit of stability friction is: room for several muscles that pull at
the same body."""


@dataclass(frozen=True, eq=False)
class ContactSpec:
    """A wrap or a pulley of a muscle.

    Attributes:
        muscle: Index of the muscle.
        point: Index of its start among the path points; its end is the next one.
        before, after: Indices of the neighbouring path points (``before`` is -1 for a pulley).
        frame: Index of the frame that carries it.
        offset: Pose of the link in that frame.
        element: Wrap or pulley.
        surface: Of a wrap.
        closed: Whether a closed form exists; other contacts are geodesics.
    """

    muscle: int
    point: int
    before: int
    after: int
    frame: int
    offset: Pose
    element: Wrap | Pulley
    surface: WrapSurface | None
    closed: bool

    @property
    def placement(self) -> Pose:
        """Pose of the surface (of the link for a pulley) in the frame."""
        return self.offset if self.surface is None else self.offset @ self.surface.pose

    @property
    def side(self) -> Array | None:
        """Side point of a wrap in coordinates of the surface, shape (3,), [m]."""
        if self.surface is None or not isinstance(self.element, Wrap):
            return None
        return (
            None
            if self.element.side is None
            else self.surface.pose.inverse().apply(self.element.side)
        )


@dataclass(frozen=True, eq=False)
class PathLayout:
    """Flat tables of the paths of m muscles with P points, S straight pieces and C contacts.

    Attributes:
        frames: Number of moving frames; the frame with this index is the world.
        point_frame: Frame of every point, shape (P,).
        point_position: In frame coordinates, shape (P, 3), [m]; zero for tangent points.
        point_friction: Capstan coefficient of via points, shape (P,).
        bounds: Muscle i owns the points ``bounds[i]:bounds[i + 1]``, shape (m + 1,).
        start: First point of every straight piece, shape (S,); the second is the next point.
        piece_muscle: shape (S,).
        contacts: In the order of muscles and path elements.
        friction_speed: Of every muscle, shape (m,), [m/s].
    """

    frames: int
    point_frame: Indices
    point_position: Array
    point_friction: Array
    bounds: Indices
    start: Indices
    piece_muscle: Indices
    contacts: tuple[ContactSpec, ...]
    friction_speed: Array

    @property
    def geodesics(self) -> Indices:
        """Indices of the contacts without a closed form."""
        return np.array([i for i, c in enumerate(self.contacts) if not c.closed], dtype=np.intp)

    @property
    def friction(self) -> bool:
        """Whether any muscle rubs."""
        return bool(np.any(self.point_friction)) or any(
            isinstance(c.element, Wrap) and c.element.friction > 0.0 for c in self.contacts
        )

    def content(self) -> bytes:
        """Bytes that are equal for two layouts exactly if their equations are."""
        parts: list[bytes] = [str(self.frames).encode()]
        for array in (self.point_frame, self.bounds, self.start):
            parts.append(np.asarray(array, dtype="<i8").tobytes())
        for values in (self.point_position, self.point_friction):
            parts.append((np.asarray(values, dtype="<f8") + 0.0).tobytes())
        if self.friction:
            parts.append(np.asarray(self.friction_speed, dtype="<f8").tobytes())
        for contact in self.contacts:
            parts.append(_contact_content(contact))
        return b"\n".join(parts)


def layout_of(robot: Robot, place: Place, frames: int) -> PathLayout:
    """Flatten the paths of a robot.

    Args:
        robot: The description.
        place: Frame of a link; of the world it is ``frames``.
        frames: Number of moving frames.

    Raises:
        DescriptionError: A path that starts or ends with a wrap, or has a pulley elsewhere than
            at its origin or right before a wrap.
        UnknownNameError: A surface that does not exist, or no such type of path element.
    """
    point_frame: list[int] = []
    positions: list[Array] = []
    frictions: list[float] = []
    bounds = [0]
    contacts: list[ContactSpec] = []
    arcs: set[int] = set()
    for index, muscle in enumerate(robot.muscles):
        _check_path(robot, muscle)
        for number, item in enumerate(muscle.path):
            point = len(point_frame)
            if isinstance(item, ViaPoint):
                frame, offset = place(item.link)
                point_frame.append(frame)
                positions.append(offset.apply(item.position))
                frictions.append(item.friction)
                continue
            surface = None
            if isinstance(item, Wrap):
                surface = robot.wrap_surface(item.surface)
                link = surface.link
            elif isinstance(item, Pulley):
                link = item.link
            else:
                raise UnknownNameError.of_type("path element", item, get_args(PathElement))
            frame, offset = place(link)
            before = -1 if isinstance(item, Pulley) else point - 1
            closed = surface is None or is_closed_form(muscle, number, surface)
            contacts.append(
                ContactSpec(index, point, before, point + 2, frame, offset, item, surface, closed)
            )
            arcs.add(point)
            point_frame += [frame, frame]
            positions += [np.zeros(3), np.zeros(3)]
            frictions += [0.0, 0.0]
        bounds.append(len(point_frame))
    pieces = [
        (k, i)
        for i in range(len(robot.muscles))
        for k in range(bounds[i], bounds[i + 1] - 1)
        if k not in arcs
    ]
    return PathLayout(
        frames=frames,
        point_frame=np.array(point_frame, dtype=np.intp),
        point_position=np.array(positions, dtype=float).reshape(-1, 3),
        point_friction=np.array(frictions, dtype=float),
        bounds=np.array(bounds, dtype=np.intp),
        start=np.array([k for k, _ in pieces], dtype=np.intp),
        piece_muscle=np.array([i for _, i in pieces], dtype=np.intp),
        contacts=tuple(contacts),
        friction_speed=np.array([m.friction_speed for m in robot.muscles], dtype=float),
    )


def link_layout(robot: Robot) -> PathLayout:
    """Flatten the paths with the links as frames, in the order of ``robot.links``."""
    index = {link.name: i for i, link in enumerate(robot.links)}
    count = len(robot.links)
    return layout_of(robot, lambda link: (index.get(link, count), Pose()), count)


def is_closed_form(muscle: Muscle, index: int, surface: WrapSurface) -> bool:
    """Return True for a wrap over a sphere or a cylinder alone between two via points.

    Args:
        muscle: The muscle.
        index: Place of the wrap in the muscle's path.
        surface: Surface of the wrap.
    """
    path = muscle.path
    neighbours = path[index - 1], path[index + 1]
    return isinstance(surface.geometry, Sphere | Cylinder) and all(
        isinstance(item, ViaPoint) for item in neighbours
    )


def _check_path(robot: Robot, muscle: Muscle) -> None:
    def wrong(problem: str, expected: str, item: PathElement) -> DescriptionError:
        line = item.line if item.line is not None else muscle.line
        return DescriptionError(
            problem,
            source=robot.source,
            line=line,
            element=f"path of muscle '{muscle.name}'",
            expected=expected,
        )

    path = muscle.path
    if not path:
        return
    for item in (path[0], path[-1]):
        if isinstance(item, Wrap):
            raise wrong("it starts or ends on a wrap surface", "a via point at both ends", item)
        if isinstance(item, ViaPoint) and item.friction > 0.0:
            raise wrong(
                f"friction {item.friction:g} where it starts or ends: nothing slides there",
                "friction at points and wraps between origin and insertion",
                item,
            )
    for before, item in zip((None, *path), path, strict=False):
        if isinstance(item, Pulley) and before is not None:
            raise wrong("a pulley that is not its first element", "a pulley at the origin", item)
        if isinstance(before, Pulley) and isinstance(item, Wrap):
            raise wrong("a wrap surface right after a pulley", "a via point between the two", item)
    if isinstance(path[-1], Pulley):
        raise wrong("it ends with a pulley", "a via point at the insertion", path[-1])


def _contact_content(contact: ContactSpec) -> bytes:
    numbers: list[Any] = [contact.muscle, contact.point, contact.frame, contact.closed]
    numbers += [*contact.placement.matrix.ravel()]
    element = contact.element
    kind = type(element).__name__
    if isinstance(element, Pulley):
        numbers += [*element.position, *element.axis, element.radius]
    else:
        numbers += [element.inside, element.friction]
        side = contact.side
        numbers += [] if side is None else [*side]
        assert contact.surface is not None
        geometry = contact.surface.geometry
        kind = type(geometry).__name__
        if contact.closed:
            numbers += [*vars(geometry).values()]
        numbers += [*contact.offset.matrix.ravel()]
    return kind.encode() + (np.asarray(numbers, dtype="<f8") + 0.0).tobytes()


def tree_layout(tree: Tree) -> PathLayout:
    """Flatten the muscle paths of a tree's robot; frames are its nodes.

    Raises:
        DescriptionError: See `layout_of`.
    """
    count = len(tree.nodes)

    def place(link: str) -> tuple[int, Pose]:
        node, pose = tree.link_node[link]
        return (count if node == WORLD_NODE else node), pose

    return layout_of(tree.robot, place, count)


def fingerprint(tree: Tree) -> bytes:
    """Return bytes that are equal for two robots exactly if their equations are.

    Geometry for drawing, limits, home and tension limits do not count; names of links, muscles
    and frames do, because they name rows of the results. Collision shapes count where cables with
    ``contact`` touch them.
    """
    robot = tree.robot
    parts: list[bytes] = [_numbers(robot.gravity)]
    for node in tree.nodes:
        parts.append(f"node {node.name} {node.kind} {node.parent}".encode())
        parts += [_numbers(node.placement.matrix), _numbers(node.axis)]
        inertia = node.inertia
        parts += [_numbers(np.array([inertia.mass])), _numbers(inertia.com)]
        parts.append(_numbers(inertia.tensor))
    for link in robot.links:
        index, pose = tree.link_node[link.name]
        parts += [f"link {link.name} {index}".encode(), _numbers(pose.matrix)]
    for muscle in robot.muscles:
        parts.append(f"muscle {muscle.name}{' contact' * muscle.contact}".encode())
        if muscle.friction:
            parts.append(_numbers(np.array([muscle.friction, muscle.friction_speed])))
    if any(muscle.contact for muscle in robot.muscles):
        for link in robot.links:
            for shape in link.collisions:
                parts += [f"touched {link.name}".encode(), _shape_content(shape, robot.source)]
    parts.append(tree_layout(tree).content())
    for surface in robot.wrap_surfaces:
        parts.append(f"surface {type(surface.geometry).__name__}".encode())
        for value in vars(surface.geometry).values():
            text = isinstance(value, str)
            parts.append(value.encode() if text else _numbers(np.atleast_1d(value)))
    for frame in robot.frames:
        parts += [f"frame {frame.name} {frame.link}".encode(), _numbers(frame.pose.matrix)]
    return b"\n".join(parts)


def _shape_content(shape: Collision, source: str | None) -> bytes:
    parts = [type(shape.geometry).__name__.encode(), _numbers(shape.pose.matrix)]
    for value in vars(shape.geometry).values():
        parts.append(value.encode() if isinstance(value, str) else _numbers(np.atleast_1d(value)))
    if isinstance(shape.geometry, Mesh):
        path = mesh_path(shape.geometry.uri, source)
        parts.append(b"" if path is None else hashlib.sha256(path.read_bytes()).digest())
    return b" ".join(parts)


def robot_hash(tree: Tree) -> str:
    """Return a short hash of `fingerprint`, for logs and for two machines to compare models."""
    return hashlib.sha256(fingerprint(tree)).hexdigest()[:16]


def _numbers(values: Array) -> bytes:
    # + 0.0 turns -0.0 into 0.0, which prints and hashes differently but computes the same
    return (np.asarray(values, dtype="<f8") + 0.0).tobytes()
