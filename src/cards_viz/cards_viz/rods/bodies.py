"""The rigid bodies of a rod robot: which of them moves with what, their shapes and meshes.

The SDF has frame, slides, cranks, joint bodies and plate. None of them needs a dynamics engine:
each is fixed to the world, to the moving part of one limb's base, to the plate, or to the rod's
side of one joint of the plate. With the frames of `cards_core.rods.robots.robot`::

    base of limb i    T_i = Base.joint_pose @ motion(q_i)
    plate             T   = T_x
    tip body i        T   = T_x @ Tip.joint_pose @ (motion that the joint leaves free)

That last motion follows from the rod: its end and its tangent there against those of the joint's
frame. What turns about the tangent itself cannot be seen in a centre line and is left out.

A robot of six limbs has the same bodies six times. On the page, equal bodies are one batch: drawn
one by one, each costs a computer without graphics processor as much as a rod.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import viser

from cards_core.robot.elements import WORLD, Cylinder, Geometry, Joint
from cards_core.rods.robots.robot import BaseKind, RodRobot, TipKind, base_motion
from cards_core.spatial import Pose, matrix_quaternion, quaternion_matrix
from cards_core.typing import Array, Vector3
from cards_viz.colors import linear_light
from cards_viz.meshes import Faces, triangles
from cards_viz.rods.tubes import quaternions_z_to

SMALL = 0.15
"""What is smaller than this part of the robot is drawn with fewer triangles."""

PLATE_COLOR = (0.62, 0.65, 0.70, 0.75)
BASE_COLOR = (0.36, 0.39, 0.44, 1.0)


Rgba = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class BodyShape:
    """Everything of one colour that moves together.

    Attributes:
        names: Of the visuals, ``<link>/<visual>``.
        group: Index of the group that it moves with.
        vertices, faces: Triangles in the group's frame, shapes (V, 3) [m] and (F, 3).
        rgba: Colour in 0..1.
    """

    names: tuple[str, ...]
    group: int
    vertices: Array
    faces: Faces
    rgba: Rgba


@dataclass(frozen=True, eq=False)
class _Piece:
    """One visual: its shape, its pose in its group."""

    name: str
    group: int
    geometry: Geometry
    pose: Array
    rgba: Rgba


class RodBodies:
    """Shapes of a robot's bodies and where they are.

    Args:
        robot: The robot. Without visuals in its description it gets a disc and stands.

    Attributes:
        names: Of the groups: ``world``, ``base/<limb>`` each, ``plate``, ``tip/<limb>`` each.
        shapes: What is drawn.
    """

    def __init__(self, robot: RodRobot) -> None:
        self._robot = robot
        limbs = [limb.name for limb in robot.limbs]
        self.names = (
            WORLD,
            *(f"base/{name}" for name in limbs),
            "plate",
            *(f"tip/{name}" for name in limbs),
        )
        self.plate = 1 + len(limbs)
        homes = self._group_homes()[:, :3, 3]
        self._extent = float(np.linalg.norm(np.ptp(homes, axis=0)))
        self.shapes = self._merged(self._visuals() or self._substitutes())

    # Poses ------------------------------------------------------------------------------------

    def poses(self, q: Array, pose: Array, points: Array) -> Array:
        """Return the poses of all groups, shape (2 n + 2, 4, 4).

        Args:
            q: Joint coordinates, shape (n,).
            pose: Plate to world, shape (4, 4).
            points: Along each rod, shape (n, k, 3), [m], k >= 3.
        """
        found = [np.eye(4)]
        for limb, value in zip(self._robot.limbs, q, strict=True):
            base = limb.base
            found.append(base.joint_pose @ base_motion(base.kind, float(value)))
        found.append(np.asarray(pose, dtype=float))
        for limb, line in zip(self._robot.limbs, points, strict=True):
            joint = pose @ limb.tip.joint_pose
            tangent = 3.0 * line[-1] - 4.0 * line[-2] + line[-3]
            found.append(
                joint @ _free_motion(limb.tip.kind, joint, limb.tip.attach, line[-1], tangent)
            )
        return np.stack(found)

    # Shapes -----------------------------------------------------------------------------------

    def _merged(self, pieces: Sequence[_Piece]) -> tuple[BodyShape, ...]:
        """Join what moves together and has one colour: one thing to draw instead of many."""
        description = self._robot.description
        source = None if description is None else description.source
        parts: dict[tuple[int, Rgba], list[tuple[str, Array, Faces]]] = {}
        for piece in pieces:
            mesh = triangles(piece.geometry, source)
            if mesh is None:
                continue
            if np.ptp(mesh[0], axis=0).max() < SMALL * self._extent:
                mesh = triangles(piece.geometry, source, coarse=True) or mesh
            vertices = mesh[0] @ piece.pose[:3, :3].T + piece.pose[:3, 3]
            parts.setdefault((piece.group, piece.rgba), []).append((piece.name, vertices, mesh[1]))
        found = []
        for (group, rgba), members in parts.items():
            counts = np.cumsum([0, *(len(vertices) for _, vertices, _ in members)])
            faces = [part[2] + start for part, start in zip(members, counts, strict=False)]
            names = tuple(part[0] for part in members)
            vertices = np.concatenate([part[1] for part in members])
            found.append(BodyShape(names, group, vertices, np.concatenate(faces), rgba))
        return tuple(found)

    def _visuals(self) -> list[_Piece]:
        description = self._robot.description
        if description is None:
            return []
        joints = {joint.child: joint for joint in description.joints}
        homes = self._group_homes()
        found = []
        for link in description.links:
            group = self._group(link.name, joints)
            relative = np.linalg.inv(homes[group]) @ self._link_home(link.name, joints)
            for number, visual in enumerate(link.visuals):
                name = f"{link.name}/{visual.name or number}"
                at = relative @ visual.pose.matrix
                found.append(_Piece(name, group, visual.geometry, at, visual.rgba))
        return found

    def _group_homes(self) -> Array:
        """Poses of the groups for which the file places its links: all joints at zero."""
        robot = self._robot
        plate = robot.plate.pose
        bases = [limb.base.joint_pose for limb in robot.limbs]
        tips = [plate @ limb.tip.joint_pose for limb in robot.limbs]
        return np.stack([np.eye(4), *bases, plate, *tips])

    def _group(self, link: str, joints: dict[str, Joint]) -> int:
        """Walk from a link towards the world until something of the robot moves it."""
        limbs = self._robot.limbs
        while link != WORLD:
            if link == self._robot.plate.link:
                return self.plate
            for i, limb in enumerate(limbs):
                if link == limb.tip.link:
                    return self.plate + 1 + i
            joint = joints.get(link)
            if joint is None:
                break
            for i, limb in enumerate(limbs):
                if joint.name == limb.base.joint and limb.base.kind is not BaseKind.FIXED:
                    return 1 + i
            link = joint.parent
        return 0

    def _link_home(self, link: str, joints: dict[str, Joint]) -> Array:
        pose = np.eye(4)
        while link != WORLD:
            if link == self._robot.plate.link:
                return np.asarray(self._robot.plate.pose @ pose)
            joint = joints.get(link)
            if joint is None:
                break
            pose = joint.parent_to_joint.matrix @ joint.joint_to_child.matrix @ pose
            link = joint.parent
        return pose

    def _substitutes(self) -> list[_Piece]:
        """A disc through the joints of the plate and a small stand under every rod."""
        limbs = self._robot.limbs
        at = np.array([limb.tip.joint_pose[:3, 3] for limb in limbs])
        starts = np.array([limb.base.joint_pose[:3, 3] for limb in limbs])
        reach = float(np.max(np.linalg.norm(at[:, :2], axis=1)))
        size = max(reach, 0.25 * float(np.max(np.linalg.norm(starts, axis=1))), 1e-3)
        disc = Cylinder(reach + 0.08 * size, 0.05 * size)
        pieces = [_Piece("plate/disc", self.plate, disc, np.eye(4), PLATE_COLOR)]
        stand = Cylinder(0.06 * size, 0.08 * size)
        down = Pose(translation=np.array([0.0, 0.0, -0.04 * size])).matrix
        for i, limb in enumerate(limbs):
            at_start = limb.base.attach @ down
            pieces.append(_Piece(f"{limb.name}/stand", 1 + i, stand, at_start, BASE_COLOR))
        return pieces


def _free_motion(
    kind: TipKind, joint: Array, attach: Array, end: Vector3, tangent: Vector3
) -> Array:
    """Return the motion of a plate joint, shape (4, 4), that its rod shows.

    Args:
        kind: Of the joint.
        joint: Joint frame in the world, shape (4, 4).
        attach: Rod tip in the joint frame at rest, shape (4, 4).
        end: Of the rod, [m].
        tangent: Of the rod at its end, of any length.
    """
    motion = np.eye(4)
    free = kind.free
    wanted = joint[:3, :3].T @ (tangent / max(float(np.linalg.norm(tangent)), 1e-12))
    rest = attach[:3, 2]
    if free[3] or free[4]:
        motion[:3, :3] = _shortest(rest, wanted)
    elif free[5]:
        cross = float(rest[0] * wanted[1] - rest[1] * wanted[0])
        dot = float(rest[:2] @ wanted[:2])
        if np.hypot(cross, dot) > 1e-3:  # else the rod lies along the axis: any angle looks alike
            motion[:3, :3] = base_motion(BaseKind.REVOLUTE, float(np.arctan2(cross, dot)))[:3, :3]
    if free[:3].any():
        local = joint[:3, :3].T @ (end - joint[:3, 3])
        motion[:3, 3] = np.where(free[:3], local - motion[:3, :3] @ attach[:3, 3], 0.0)
    return motion


def _shortest(a: Vector3, b: Vector3) -> Array:
    """Return the shortest rotation that takes one unit vector to another."""
    half = np.array([1.0 + a @ b, *np.cross(a, b)])
    if np.linalg.norm(half) < 1e-7:  # a half turn: over the z axis
        to_a, to_b = quaternions_z_to(np.array([a, b]))
        return np.asarray(quaternion_matrix(to_b) @ quaternion_matrix(to_a).T)
    return quaternion_matrix(half)


SAME = 1e-9
"""Vertices that differ by less are the same, [m]."""


class BodyMeshes:
    """Meshes of bodies, and their places.

    Args:
        api: Scene of the page.
        bodies: The bodies.
        unit: Units of the page by metre.
    """

    def __init__(self, api: viser.SceneApi, bodies: RodBodies, unit: float) -> None:
        self._unit = unit
        self._frames: list[tuple[viser.FrameHandle, int]] = []
        self._batches: list[tuple[viser.BatchedMeshHandle, list[int]]] = []
        for number, alike in enumerate(_alike(bodies.shapes)):
            shape, groups = alike[0], [shape.group for shape in alike]
            vertices = unit * shape.vertices
            opacity = None if shape.rgba[3] >= 1.0 else shape.rgba[3]
            color = tuple(round(255 * c) for c in shape.rgba[:3])
            if len(alike) == 1:
                name = f"/robot/{bodies.names[shape.group]}/{number}"
                frame = api.add_frame(name, show_axes=False)
                api.add_mesh_simple(
                    f"{name}/mesh",
                    vertices,
                    shape.faces,
                    color=color,
                    opacity=opacity,
                    cast_shadow=opacity is None,
                )
                self._frames.append((frame, shape.group))
                continue
            batch = api.add_batched_meshes_simple(
                f"/robot/alike/{number}",
                vertices,
                shape.faces,
                batched_wxyzs=np.tile((1.0, 0.0, 0.0, 0.0), (len(groups), 1)),
                batched_positions=np.zeros((len(groups), 3)),
                batched_colors=linear_light(np.array(color, dtype=np.uint8)),
                opacity=opacity,
                cast_shadow=opacity is None,
                lod="off",
            )
            self._batches.append((batch, groups))
        self._poses = np.tile(np.eye(4), (len(bodies.names), 1, 1))

    def draw(self, poses: Array) -> None:
        """Move all bodies; poses of `RodBodies.poses`."""
        moved = (poses != self._poses).any(axis=(1, 2))  # most bases stay where they are
        positions = self._unit * poses[:, :3, 3]
        for frame, group in self._frames:
            if moved[group]:
                frame.wxyz = matrix_quaternion(poses[group, :3, :3])
                frame.position = positions[group]
        for batch, groups in self._batches:
            if moved[groups].any():
                turns = [matrix_quaternion(poses[group, :3, :3]) for group in groups]
                batch.batched_wxyzs = np.array(turns, dtype=np.float32)
                batch.batched_positions = positions[groups].astype(np.float32)
        self._poses = poses


def _alike(shapes: Sequence[BodyShape]) -> list[list[BodyShape]]:
    """Group shapes that differ in nothing but what they move with."""
    found: dict[tuple[object, ...], list[BodyShape]] = {}
    for shape in shapes:
        corners = np.round(shape.vertices / SAME).astype(np.int64)
        key = (shape.rgba, shape.faces.tobytes(), corners.tobytes())
        found.setdefault(key, []).append(shape)
    return list(found.values())
