"""The geometry to draw of a robot with muscles, as plain arrays for browser, RViz and Gazebo.

`Scene` holds what never changes (shapes of the links, sizes), `Scene.frame` computes what moves,
`Trail` records the path of a point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cards_core.dynamics import make_dynamics
from cards_core.muscles.engine import MuscleEngine
from cards_core.paths.drawing import ARC_POINTS
from cards_core.paths.layout import PathLayout, link_layout
from cards_core.robot.elements import (
    WORLD,
    Box,
    Capsule,
    Geometry,
    Sphere,
    Visual,
    WrapGeometry,
)
from cards_core.robot.model import Robot, Tree
from cards_core.spatial import Pose, rotation_z_to
from cards_core.typing import Array, Backend, Vector3
from cards_viz.meshes import Faces, drawn_surface, surface_triangles, triangles

BONE = (0.70, 0.73, 0.78, 1.0)
"""Colour of links that come without visuals."""

SURFACE = (0.24, 0.56, 0.78, 0.32)
"""Colour of wrap surfaces: they are not there to be seen, but muscles bend around them."""

ARROW_LENGTH = 0.16
"""Length of the force arrow at the upper end of the tension scale, relative to the size."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A rigid piece of a link, or a surface fixed to it.

    Attributes:
        name: Unique name, ``<link>/<visual>``.
        link: Index of the link in ``robot.links``; None for the world.
        geometry: The shape.
        pose: Shape to link.
        rgba: Colour in 0..1.
        vertices, faces: Triangles in the shape's frame, shapes (V, 3) [m] and (F, 3).
    """

    name: str
    link: int | None
    geometry: Geometry | WrapGeometry
    pose: Pose
    rgba: tuple[float, float, float, float]
    vertices: Array
    faces: Faces

    def link_pose(self, link_poses: Array) -> Array:
        """Return the pose of its link, shape (4, 4), from the poses of all links."""
        return np.eye(4) if self.link is None else np.asarray(link_poses[self.link])


@dataclass(frozen=True, eq=False)
class SceneFrame:
    """Everything that moves, at one instant, in world coordinates.

    With n links, m muscles, S segments of muscles, P via points and A arrows:

    Attributes:
        link_poses: Link to world, shape (n, 4, 4).
        paths: Path of every muscle with its arcs sampled, shapes (k, 3), [m].
        segments: Pieces of all these paths, shape (S, 2, 3), [m].
        points: Via points, shape (P, 3), [m].
        arrows: Tail and head of the forces that muscles exert on links, at via points and at the
            ends of arcs, shape (A, 2, 3), [m]. Friction along the path is left out.
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
        every_link: Give links without visuals a skeleton even where no muscle pulls at them.
        backend: Backend of the kinematics and of geodesics: the native code that simulator and
            controllers have made costs a fiftieth of the plain one, 30 times a second.

    Attributes:
        robot: The description.
        tree: Its coordinates.
        shapes: Shapes of the links; links without visuals that can be drawn get a skeleton of
            capsules.
        surfaces: Wrap surfaces, ``<link>/wrap_surfaces/<surface>``; those of the world too.
        lengths: Of the muscles at home, shape (m,), [m].
        outline: Points of robot and muscles at home that show their extent, shape (k, 3), [m].
        lower, upper: Corners of the box around these points, shape (3,), [m].
        size: Diagonal of that box, [m].
        radius: Radius that muscles are drawn with, [m].
        segment_muscle: Index of the muscle of every segment, shape (S,).
        point_muscle: Index of the muscle of every via point, shape (P,).
        arrow_muscle: Index of the muscle of every arrow, shape (A,).
    """

    def __init__(
        self,
        robot: Robot,
        *,
        with_shapes: bool = True,
        every_link: bool = False,
        backend: Backend = "compiled",
    ) -> None:
        self.robot = robot
        self._every_link = every_link
        self._dynamics = make_dynamics(robot, backend)
        # closed forms are found fast enough in NumPy; geodesics take milliseconds each there
        geodesics = len(link_layout(robot).geodesics) > 0
        self._muscles = MuscleEngine(robot, backend if geodesics else "numeric")
        self._lines = MuscleLines(self._muscles.layout)
        self.tree: Tree = self._dynamics.tree
        name = robot.operational_frame
        self._end_effector = None if name is None else robot.frame(name)
        self._link_index = {link.name: i for i, link in enumerate(robot.links)}
        poses = self.link_poses(self.tree.home)
        paths = self._muscles.path_points(poses)
        pieces = (np.linalg.norm(np.diff(path, axis=0), axis=1).sum() for path in paths)
        self.lengths = np.array(list(pieces), dtype=float)
        reach = [poses[:, :3, 3], *paths]
        self.size = float(np.linalg.norm(np.ptp(np.concatenate(reach), axis=0))) or 1.0
        self.shapes = self._shapes() if with_shapes else ()
        points = np.concatenate([np.zeros((0, 3)), *paths])
        self.surfaces = self._surfaces(points, poses, with_shapes)
        for shape in (*self.shapes, *self.surfaces):
            vertices = shape.pose.apply(shape.vertices)
            pose = shape.link_pose(poses)
            reach.append(vertices @ pose[:3, :3].T + pose[:3, 3])
        self.outline = np.concatenate(reach)
        self.lower, self.upper = self.outline.min(axis=0), self.outline.max(axis=0)
        self.size = float(np.linalg.norm(self.upper - self.lower)) or 1.0
        self.radius = 0.0032 * self.size
        self.segment_muscle = self._lines.segment_muscle
        self.point_muscle = self._lines.via_muscle
        self.arrow_muscle = self._lines.pulled_muscle

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
        start = self._lines.start
        return SceneFrame(
            poses,
            paths,
            np.stack([points[start], points[start + 1]], axis=1),
            points[self._lines.via],
            self._arrows(points, np.asarray(tensions, dtype=float), tension_scale),
            self.end_effector(poses),
        )

    def _arrows(self, points: Array, tensions: Array, scale: float) -> Array:
        """Tail and head of the forces on the links; tensions are those at the muscles' origins."""
        f = np.nan_to_num(tensions, posinf=0.0, neginf=0.0)[self.arrow_muscle, None]
        metres = ARROW_LENGTH * self.size / max(scale, 1e-12)
        tail = points[self._lines.pulled]
        return np.stack([tail, tail + metres * f * self._lines.directions(points)], axis=1)

    def _surfaces(self, points: Array, poses: Array, with_shapes: bool) -> tuple[Shape, ...]:
        """Wrap surfaces; ``points`` are the drawn points of all muscles at ``poses``.

        A visual of the name of a surface of its link is that surface for those who draw visuals
        only: it gives the surface its colour, and is not drawn twice.
        """
        colors = {
            (link.name, visual.name): visual.rgba
            for link in self.robot.links
            for visual in link.visuals
        }
        met: dict[str, list[Array]] = {}
        contacts = self._muscles.layout.contacts
        for contact, ends in zip(contacts, self._lines.arcs, strict=True):
            if contact.surface is not None:
                met.setdefault(contact.surface.name, []).append(points[ends])
        found = []
        for surface in self.robot.wrap_surfaces:
            if not with_shapes and (surface.link, surface.name) in colors:
                continue
            link = self._link_index.get(surface.link)
            pose = np.eye(4) if link is None else poses[link]
            there = np.concatenate([np.zeros((0, 3)), *met.get(surface.name, [])])
            local = (there - pose[:3, 3]) @ pose[:3, :3]
            geometry, placement = drawn_surface(surface, local)
            mesh = surface_triangles(geometry, self.robot.source)
            if mesh is not None:
                name = f"{surface.link}/wrap_surfaces/{surface.name}"
                rgba = colors.get((surface.link, surface.name), SURFACE)
                found.append(Shape(name, link, geometry, placement, rgba, *mesh))
        return tuple(found)

    def _shapes(self) -> tuple[Shape, ...]:
        robot = self.robot
        surfaces = {(surface.link, surface.name) for surface in robot.wrap_surfaces}
        pulled = {point.link for muscle in robot.muscles for point in muscle.via_points}
        visuals: list[list[Shape]] = []
        for index, link in enumerate(robot.links):
            parts = [
                Visual(v.name or str(number), v.geometry, v.pose, v.rgba)
                for number, v in enumerate(link.visuals)
                if (link.name, v.name) not in surfaces
            ]
            visuals.append(self._made(index, parts))
        nothing = not any(visuals)
        found: list[Shape] = []
        for index, (link, shapes) in enumerate(zip(robot.links, visuals, strict=True)):
            # files of meshes that cannot be read leave a link to be seen, too
            unseen = any((link.name, v.name) not in surfaces for v in link.visuals)
            bare = not link.visuals and (nothing or self._every_link or link.name in pulled)
            if not shapes and (unseen or bare):
                bones = enumerate(self._skeleton(link.name))
                parts = [
                    Visual(f"bone_{k}", geometry, pose, BONE) for k, (geometry, pose) in bones
                ]
                shapes = self._made(index, parts)  # noqa: PLW2901
            found += shapes
        return tuple(found)

    def _made(self, index: int, parts: Sequence[Visual]) -> list[Shape]:
        """Return the shapes of a link that can be drawn."""
        link, found = self.robot.links[index], []
        for part in parts:
            mesh = triangles(part.geometry, self.robot.source)
            if mesh is not None:
                name = f"{link.name}/{part.name}"
                found.append(Shape(name, index, part.geometry, part.pose, part.rgba, *mesh))
        return found

    def _skeleton(self, link: str) -> list[tuple[Geometry, Pose]]:
        """Capsules from a link's joint to its children's joints, centre of mass and frames.

        A platform, which at least three muscles pull at different points, is the plate between
        these: the box around them.
        """
        robot = self.robot
        points = np.array(
            [p.position for m in robot.muscles for p in m.via_points if p.link == link]
        ).reshape(-1, 3)
        extent = np.sort(np.ptp(points, axis=0)) if len(points) else np.zeros(3)
        if len(points) >= 3 and extent[1] > 0.3 * extent[2]:
            sides = np.maximum(np.ptp(points, axis=0), 0.05 * extent[2])
            middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
            return [(Box(sides), Pose(translation=middle))]
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


Indices = npt.NDArray[np.intp]

APART = 1e-9
"""Distance of the two tangent points of a contact above which the muscle touches there, [m]."""


class MuscleLines:
    """Indices into the drawn points of all muscles, one path after the other.

    Drawn paths are those of `MuscleEngine.path_points`: one point for a via point, `ARC_POINTS`
    for the arc of a contact. With P drawn points:

    Args:
        layout: The paths; its frames are the links.

    Attributes:
        start: First point of every drawn segment, shape (S,); the second is the next point.
        segment_muscle: Muscle of every segment, shape (S,).
        via: The via points, shape (V,).
        via_muscle: Their muscles, shape (V,).
        pulled: Via points and tangent points on links, where muscles pull, shape (A,).
        pulled_muscle: Their muscles, shape (A,).
        arcs: First and last point of every contact, shape (C, 2).
    """

    def __init__(self, layout: PathLayout) -> None:
        contacts = {contact.point for contact in layout.contacts}
        place: list[int] = []  # of every path point among the drawn points
        muscle: list[int] = []  # of every drawn point
        firsts = [0]
        for index, (a, b) in enumerate(pairwise(layout.bounds.tolist())):
            for k in range(a, b):
                place.append(len(muscle))
                # the samples of an arc follow its first tangent point
                muscle += [index] * (ARC_POINTS - 1 if k in contacts else 1)
            firsts.append(len(muscle))
        places = np.array(place, dtype=np.intp)
        owner = np.array(muscle, dtype=np.intp)
        is_via = np.ones(len(places), dtype=bool)
        for k in contacts:
            is_via[[k, k + 1]] = False
        segments = [np.arange(a, b - 1) for a, b in pairwise(firsts)]
        self.start: Indices = np.concatenate([np.zeros(0), *segments]).astype(np.intp)
        self.segment_muscle: Indices = owner[self.start]
        self.via: Indices = places[is_via]
        self.via_muscle: Indices = owner[self.via]
        # the ground needs no arrow: it does not move
        self.pulled: Indices = places[layout.point_frame != layout.frames]
        self.pulled_muscle: Indices = owner[self.pulled]
        self.arcs: Indices = np.array(
            [(places[c.point], places[c.point + 1]) for c in layout.contacts], dtype=np.intp
        ).reshape(-1, 2)
        self._straight = places[layout.start], places[layout.start + 1]

    def directions(self, points: Array) -> Array:
        """Return the force at every pulled point for a tension of 1 N, shape (A, 3).

        It is the sum of the directions of the straight pieces that end there: an arc pulls at
        its ends. The ends of an arc of no length are one point; there the first has the sum,
        which is zero where a muscle passes a surface without touching it.

        Args:
            points: All drawn points, shape (P, 3), [m].
        """
        first, second = self._straight
        delta = points[second] - points[first]
        length = np.linalg.norm(delta, axis=1, keepdims=True)
        u = np.divide(delta, length, out=np.zeros_like(delta), where=length > 0)
        pull = np.zeros_like(points)
        pull[first] += u
        pull[second] -= u
        begin, end = self.arcs.T
        bare = np.linalg.norm(points[end] - points[begin], axis=1) < APART
        pull[begin[bare]] += pull[end[bare]]
        pull[end[bare]] = 0.0
        pull[np.linalg.norm(pull, axis=1) < 1e-9] = 0.0
        return np.asarray(pull[self.pulled])


def without_repeats(path: Array) -> Array:
    """Return a path without repeated points, which would leave artefacts in drawn lines.

    Args:
        path: Shape (k, 3), [m].
    """
    if len(path) < 2:
        return path
    moves = np.linalg.norm(np.diff(path, axis=0), axis=1) > APART
    return path[np.concatenate([[True], moves])]


MAX_PATH_SEGMENTS = 4000

SPACING = 0.003
"""Distance between the points of an end-effector path, relative to the size of the robot."""

DASH = 0.018
"""Length of the dashes of a desired path, likewise."""


class Trail:
    """The path of a point; it grows where the point has not been before.

    Args:
        spacing: A point closer than this to the path adds nothing to it, [m].
    """

    def __init__(self, spacing: float) -> None:
        self.spacing = spacing
        self.changed = False
        self._last: Array | None = None
        self._segments = np.zeros((MAX_PATH_SEGMENTS, 2, 3))
        self._middles = np.zeros((MAX_PATH_SEGMENTS, 3))
        self._longest = 0.0  # half the length of the longest piece
        self._count = 0

    def clear(self) -> None:
        """Forget the path."""
        self.changed = True
        self._last = None
        self._count = 0
        self._longest = 0.0

    def add(self, point: Array | None) -> None:
        """Move to a point of the world, shape (3,), [m]."""
        if point is None or not np.all(np.isfinite(point)):
            return
        if self._last is None:
            self._last = np.array(point)
            return
        if np.linalg.norm(point - self._last) < self.spacing:
            return
        if self._distance(point) > self.spacing:
            if self._count == MAX_PATH_SEGMENTS:
                # the oldest quarter goes at once, so that this stays rare
                quarter = MAX_PATH_SEGMENTS // 4
                self._count -= quarter
                for array in (self._segments, self._middles):
                    array[: self._count] = array[quarter:].copy()
            self._segments[self._count] = self._last, point
            self._middles[self._count] = 0.5 * (self._last + point)
            self._longest = max(self._longest, 0.5 * float(np.linalg.norm(point - self._last)))
            self._count += 1
            self.changed = True
        self._last = np.array(point)

    def _distance(self, point: Array) -> float:
        """Distance of a point from the path except its newest piece; inf if it is far, [m]."""
        count = max(self._count - 1, 0)
        # most pieces are far away: their middles tell
        away = np.abs(self._middles[:count] - point).max(axis=1)
        segments = self._segments[:count][away < self._longest + self.spacing]
        if not len(segments):
            return np.inf
        start, along = segments[:, 0], segments[:, 1] - segments[:, 0]
        square = np.einsum("ij,ij->i", along, along)
        t = np.einsum("ij,ij->i", point - start, along) / np.maximum(square, 1e-30)
        foot = start + np.clip(t, 0.0, 1.0)[:, None] * along
        return float(np.min(np.linalg.norm(foot - point, axis=1)))

    def segments(self, dash: float = 0.0) -> Array:
        """Return the path as segments, shape (k, 2, 3); one of length zero if it is empty.

        Args:
            dash: Length of dashes and gaps, [m]; 0 for an unbroken line.
        """
        segments = self._segments[: self._count]
        if not self._count:
            return np.zeros((1, 2, 3))
        if dash > 0.0:
            length = np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1)
            segments = segments[((np.cumsum(length) - length) // dash) % 2 == 0]
        return segments
