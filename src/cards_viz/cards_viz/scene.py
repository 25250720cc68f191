"""What there is to draw of a robot, as plain arrays; browser and RViz draw the same.

`Scene` holds what never changes (shapes of the links, sizes), `Scene.frame` computes what moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.dynamics import make_dynamics
from cards_core.dynamics.interface import Backend
from cards_core.muscles.engine import MuscleEngine
from cards_core.paths.layout import link_layout
from cards_core.robot.elements import WORLD, Capsule, Geometry, Sphere, WrapGeometry
from cards_core.robot.model import Robot, Tree
from cards_core.spatial import Pose
from cards_core.typing import Array, Vector3
from cards_viz.meshes import Faces, drawn_surface, surface_triangles, triangles
from cards_viz.muscle_lines import MuscleLines

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
        """Return the pose of its link, shape (4, 4), among those of all links."""
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
        backend: Backend of the kinematics and of geodesics: the native code that simulator and
            controllers have made costs a fiftieth of the plain one, 30 times a second.

    Attributes:
        robot: The description.
        tree: Its coordinates.
        shapes: Shapes of the links; links without visuals get a skeleton of capsules.
        surfaces: Wrap surfaces, ``<link>/wrap_surfaces/<surface>``; those of the world too.
        outline: Points of robot and muscles at home that show their extent, shape (k, 3), [m].
        lower, upper: Corners of the box around these points, shape (3,), [m].
        size: Diagonal of that box, [m].
        radius: Radius that muscles are drawn with, [m].
        segment_muscle: Index of the muscle of every segment, shape (S,).
        point_muscle: Index of the muscle of every via point, shape (P,).
        arrow_muscle: Index of the muscle of every arrow, shape (A,).
    """

    def __init__(
        self, robot: Robot, *, with_shapes: bool = True, backend: Backend = "compiled"
    ) -> None:
        self.robot = robot
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
        found: list[Shape] = []
        drawn = any(link.visuals for link in robot.links)
        surfaces = {(surface.link, surface.name) for surface in robot.wrap_surfaces}
        for index, link in enumerate(robot.links):
            parts = [(v.name, v.geometry, v.pose, v.rgba) for v in link.visuals]
            if not drawn:
                parts = [
                    (f"bone_{k}", geometry, pose, BONE)
                    for k, (geometry, pose) in enumerate(self._skeleton(link.name))
                ]
            for number, (name, geometry, pose, rgba) in enumerate(parts):
                if (link.name, name) in surfaces:
                    continue
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
