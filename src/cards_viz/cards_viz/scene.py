"""What there is to draw of a robot, as plain arrays; browser and RViz draw the same.

`Scene` holds what never changes (shapes of the links, sizes), `Scene.frame` computes what moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cards_core.description.model import WORLD, Capsule, Geometry, Robot, Sphere
from cards_core.dynamics import make_dynamics
from cards_core.dynamics.interface import Backend
from cards_core.kinematics.tree import Tree
from cards_core.muscles.engine import MuscleEngine
from cards_core.spatial import Pose
from cards_core.typing import Array, Vector3
from cards_viz.meshes import Faces, triangles

BONE = (0.70, 0.73, 0.78, 1.0)
"""Colour of links that come without visuals."""

ARROW_LENGTH = 0.16
"""Length of the force arrow at the upper end of the tension scale, relative to the size."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A rigid piece of a link.

    Attributes:
        name: Unique name, ``<link>/<visual>``.
        link: Index of the link in ``robot.links``.
        geometry: The shape.
        pose: Shape to link.
        rgba: Colour in 0..1.
        vertices, faces: Triangles in the shape's frame, shapes (V, 3) [m] and (F, 3).
    """

    name: str
    link: int
    geometry: Geometry
    pose: Pose
    rgba: tuple[float, float, float, float]
    vertices: Array
    faces: Faces


@dataclass(frozen=True, eq=False)
class SceneFrame:
    """Everything that moves, at one instant, in world coordinates.

    With n links, m muscles, S segments of muscles, P path points and A arrows:

    Attributes:
        link_poses: Link to world, shape (n, 4, 4).
        paths: Path of every muscle, shapes (k, 3), [m].
        segments: Straight pieces of all muscles, shape (S, 2, 3), [m].
        points: Points of all paths, shape (P, 3), [m].
        arrows: Tail and head of the forces that muscles exert on links, shape (A, 2, 3), [m].
        end_effector: Origin of the operational frame, shape (3,), [m]; None without one.
    """

    link_poses: Array
    paths: list[Array]
    segments: Array
    points: Array
    arrows: Array
    end_effector: Vector3 | None


class Scene:
    """Geometry of a robot.

    Args:
        robot: The description.
        with_shapes: False leaves the shapes of the links out (RViz draws them itself).
        backend: Backend of the kinematics: the native code that simulator and controllers have
            made costs a fiftieth of the plain one, 30 times a second.

    Attributes:
        robot: The description.
        tree: Its coordinates.
        shapes: Shapes of the links; links without visuals get a skeleton of capsules.
        outline: Points of robot and muscles at home that show their extent, shape (k, 3), [m].
        lower, upper: Corners of the box around these points, shape (3,), [m].
        size: Diagonal of that box, [m].
        radius: Radius that muscles are drawn with, [m].
        segment_muscle: Index of the muscle of every segment, shape (S,).
        point_muscle: Index of the muscle of every path point, shape (P,).
        arrow_muscle: Index of the muscle of every arrow, shape (A,).
    """

    def __init__(
        self, robot: Robot, *, with_shapes: bool = True, backend: Backend = "compiled"
    ) -> None:
        self.robot = robot
        self._dynamics = make_dynamics(robot, backend)
        self._muscles = MuscleEngine(robot, "numeric")
        self.tree: Tree = self._dynamics.tree
        name = robot.operational_frame
        self._end_effector = None if name is None else robot.frame(name)
        self._link_index = {link.name: i for i, link in enumerate(robot.links)}
        poses = self.link_poses(self.tree.home)
        paths = self._muscles.path_points(poses)
        self._index_paths(paths)
        reach = [poses[:, :3, 3], *paths]
        self.size = float(np.linalg.norm(np.ptp(np.concatenate(reach), axis=0))) or 1.0
        self.shapes = self._shapes() if with_shapes else ()
        for shape in self.shapes:
            vertices = shape.pose.apply(shape.vertices)
            pose = poses[shape.link]
            reach.append(vertices @ pose[:3, :3].T + pose[:3, 3])
        self.outline = np.concatenate(reach)
        self.lower, self.upper = self.outline.min(axis=0), self.outline.max(axis=0)
        self.size = float(np.linalg.norm(self.upper - self.lower)) or 1.0
        self.radius = 0.0032 * self.size

    def link_poses(self, q: Array) -> Array:
        """Return link-to-world matrices, shape (n, 4, 4), at q, shape (nq,)."""
        # a copy: the backends overwrite their result with the next one
        return np.array(self._dynamics.link_poses(np.asarray(q, dtype=float)))

    def end_effector(self, link_poses: Array) -> Vector3 | None:
        """Return the origin of the operational frame in the world, shape (3,), [m]."""
        frame = self._end_effector
        if frame is None:
            return None
        if frame.link == WORLD:
            return frame.pose.translation.copy()
        pose = link_poses[self._link_index[frame.link]]
        return np.asarray(pose[:3, :3] @ frame.pose.translation + pose[:3, 3])

    def frame(self, q: Array, tensions: Array, tension_scale: float) -> SceneFrame:
        """Compute everything that moves.

        Args:
            q: Joint coordinates, shape (nq,).
            tensions: shape (m,), [N].
            tension_scale: Tension whose arrow has the full length, [N].
        """
        poses = self.link_poses(q)
        paths = self._muscles.path_points(poses)
        points = np.concatenate([np.zeros((0, 3)), *paths])
        segments = np.stack([points[self._start], points[self._start + 1]], axis=1)
        return SceneFrame(
            poses,
            paths,
            segments,
            points,
            self._arrows(points, segments, np.asarray(tensions, dtype=float), tension_scale),
            self.end_effector(poses),
        )

    def _arrows(self, points: Array, segments: Array, tensions: Array, scale: float) -> Array:
        """Force on each path point: tension times the directions to its neighbours."""
        delta = segments[:, 1] - segments[:, 0]
        length = np.linalg.norm(delta, axis=1, keepdims=True)
        u = np.divide(delta, length, out=np.zeros_like(delta), where=length > 0)
        direction = np.zeros_like(points)
        direction[self._start] += u
        direction[self._start + 1] -= u
        f = np.nan_to_num(tensions, posinf=0.0, neginf=0.0)[self.arrow_muscle, None]
        metres = ARROW_LENGTH * self.size / max(scale, 1e-12)
        tail = points[self._arrow_point]
        return np.stack([tail, tail + metres * f * direction[self._arrow_point]], axis=1)

    def _index_paths(self, paths: list[Array]) -> None:
        """Prepare the indices that turn paths into segments, points and arrows."""
        sizes = [len(path) for path in paths]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        empty = np.zeros(0, dtype=np.intp)
        starts = [np.arange(a, b - 1) for a, b in pairwise(first)]
        self._start = np.concatenate([empty, *starts]).astype(np.intp)
        self.segment_muscle = np.repeat(np.arange(len(sizes)), [max(s - 1, 0) for s in sizes])
        self.point_muscle = np.repeat(np.arange(len(sizes)), sizes)
        fixed = np.zeros(first[-1], dtype=bool)
        for muscle, begin, end in zip(self.robot.muscles, first, first[1:], strict=False):
            # the ground needs no arrow: it does not move
            fixed[begin] = muscle.path[0].link == WORLD
            fixed[end - 1] = muscle.path[-1].link == WORLD
        self._arrow_point: npt.NDArray[np.intp] = np.flatnonzero(~fixed)
        self.arrow_muscle = self.point_muscle[self._arrow_point]

    def _shapes(self) -> tuple[Shape, ...]:
        robot = self.robot
        found: list[Shape] = []
        drawn = any(link.visuals for link in robot.links)
        for index, link in enumerate(robot.links):
            parts = [(v.name, v.geometry, v.pose, v.rgba) for v in link.visuals]
            if not drawn:
                parts = [
                    (f"bone_{k}", geometry, pose, BONE)
                    for k, (geometry, pose) in enumerate(self._skeleton(link.name))
                ]
            for number, (name, geometry, pose, rgba) in enumerate(parts):
                mesh = triangles(geometry, robot.source)
                if mesh is not None:
                    label = f"{link.name}/{name or number}"
                    found.append(Shape(label, index, geometry, pose, rgba, *mesh))
        return tuple(found)

    def _skeleton(self, link: str) -> list[tuple[Geometry, Pose]]:
        """Capsules from a link's joint to its children's joints, centre of mass and frames."""
        robot = self.robot
        parent = next(joint for joint in robot.joints if joint.child == link)
        start = parent.joint_to_child.inverse().translation
        ends = [j.parent_to_joint.translation for j in robot.joints if j.parent == link]
        ends += [frame.pose.translation for frame in robot.frames if frame.link == link]
        if not ends:
            ends.append(robot.link(link).inertia.com)
        radius = 0.014 * self.size
        parts: list[tuple[Geometry, Pose]] = [(Sphere(1.35 * radius), Pose(translation=start))]
        for end in ends:
            length = float(np.linalg.norm(end - start))
            if length > 0.5 * radius:
                rotation = rotation_z_to((end - start) / length)
                parts.append((Capsule(radius, length), Pose(rotation, 0.5 * (start + end))))
        return parts


def rotation_z_to(direction: Vector3) -> Array:
    """Return a rotation matrix that takes the z axis to the unit vector ``direction``."""
    x, y, z = direction
    if z < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    k = 1.0 / (1.0 + z)
    return np.array(
        [[1.0 - k * x * x, -k * x * y, x], [-k * x * y, 1.0 - k * y * y, y], [-x, -y, z]]
    )


@dataclass(frozen=True, eq=False)
class Camera:
    """A pinhole camera. `position` and `look_at` in the world [m], vertical `fov` [rad]."""

    position: Vector3
    look_at: Vector3
    fov: float


def viewing_direction(lower: Vector3, upper: Vector3) -> Vector3:
    """Return the direction from a box to the eye: from the front (-y), flat things face on.

    Planar robots (extent of one axis below a sixth of the largest) are seen almost along that
    axis, as they are drawn on paper.
    """
    extent = upper - lower
    thin = int(np.argmin(extent))
    if extent[thin] < extent.max() / 6.0:
        return np.array([(0.85, -0.35, 0.25), (0.12, -1.0, 0.14), (0.0, -0.35, 1.0)][thin])
    return np.array([0.62, -1.0, 0.36])


def frame_points(
    points: Array,
    *,
    aspect: float = 1.2,
    fov: float = 0.7,
    direction: Vector3 | None = None,
    fill: float = 0.76,
) -> Camera:
    """Place a camera so that points fill the picture.

    All points must fall within ``fill`` of the half height and half width: with a camera at
    distance D from the centre along the unit vector e, a point with components s along e, u up
    and r to the right (from the centre) needs ``D >= |u| / (fill tan(fov / 2)) + s`` and the same
    for r with the horizontal angle. The centre is the middle of the extents along u, r and s.

    Args:
        points: Shape (k, 3), [m].
        aspect: Width of the picture by its height.
        fov: Vertical field of view, [rad].
        direction: From the points to the camera; default `viewing_direction`.
        fill: Part of the picture that the points may take.
    """
    lower, upper = points.min(axis=0), points.max(axis=0)
    back = viewing_direction(lower, upper) if direction is None else np.asarray(direction)
    back = back / np.linalg.norm(back)
    right = np.cross((0.0, 0.0, 1.0), back)
    right /= np.linalg.norm(right)
    axes = np.array([right, np.cross(back, right), back])
    seen = points @ axes.T
    middle = 0.5 * (seen.min(axis=0) + seen.max(axis=0))
    seen = seen - middle
    tangent = np.tan(0.5 * fov) * fill
    sideways = np.abs(seen[:, 0]) / (tangent * aspect)
    upwards = np.abs(seen[:, 1]) / tangent
    distance = float(np.max(np.maximum(sideways, upwards) + seen[:, 2]))
    center = middle @ axes
    return Camera(center + max(distance, 1e-3) * back, center, fov)
