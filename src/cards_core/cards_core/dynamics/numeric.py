"""Numeric backend: M, C, G, l and L by plain NumPy, straight from the definitions.

With J_v, J_w the Jacobians of each body's centre of mass and rotation, a_0, al_0 its bias
accelerations and I its inertia in world axes [Siciliano2009]_:

    M = sum m J_v' J_v + J_w' I J_w
    C = sum J_v' m a_0 + J_w' (I al_0 + w x I w)
    G = -sum J_v' m g
    L_i = sum over straight pieces A->B of u' (J_B - J_A),  u = (B - A) / |B - A|

where A and B are via points or tangent points of wrap surfaces, taken as fixed to their links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cards_core.description.model import Robot
from cards_core.dynamics.differences import bias_by_differences
from cards_core.errors import UnknownNameError
from cards_core.kinematics.forward import Motion, forward_kinematics
from cards_core.kinematics.paths import tree_layout
from cards_core.kinematics.tree import Tree
from cards_core.muscles.paths import Paths
from cards_core.typing import Array, Vector3

_Anchor = tuple[int, Vector3]


@dataclass(eq=False)
class NumericState:
    """See `cards_core.dynamics.interface.DynamicsState`."""

    mass_matrix: Array
    coriolis: Array
    gravity: Array
    muscle_lengths: Array
    muscle_jacobian: Array


@dataclass(eq=False)
class NumericOperationalState:
    """See `cards_core.dynamics.interface.OperationalState`."""

    position: Array
    rotation: Array
    jacobian: Array
    bias: Array


class NumericDynamics:
    """Reference backend; see `cards_core.dynamics.interface.Dynamics`.

    Args:
        robot: The description.

    Raises:
        DescriptionError: The joints do not form a tree.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.tree = Tree(robot)
        self._layout = tree_layout(self.tree)
        self._geodesics = None
        if len(self._layout.geodesics):
            from cards_core.muscles.wrapping.geodesic_paths import GeodesicPaths

            self._geodesics = GeodesicPaths(robot, "numeric")
        self._paths = Paths(self._layout, self._geodesics)

    def update(self, q: Array, qd: Array) -> NumericState:
        """Compute M, C, G, l, L; see `Dynamics.update`."""
        motion = forward_kinematics(self.tree, q, qd)
        nv = self.tree.nv
        mass_matrix = np.zeros((nv, nv))
        coriolis = np.zeros(nv)
        gravity = np.zeros(nv)
        for i, node in enumerate(self.tree.nodes):
            body = node.inertia
            jv = motion.point_jacobian(i, body.com)
            jw = motion.angular_jacobian[i]
            tensor = motion.rotation[i] @ body.tensor @ motion.rotation[i].T
            omega = motion.angular_velocity[i]
            force = body.mass * motion.point_bias(i, body.com)
            moment = tensor @ motion.angular_bias[i] + np.cross(omega, tensor @ omega)
            mass_matrix += body.mass * jv.T @ jv + jw.T @ tensor @ jw
            coriolis += jv.T @ force + jw.T @ moment
            gravity -= body.mass * jv.T @ self.robot.gravity
        lengths = np.zeros(len(self.robot.muscles))
        jacobian = np.zeros((len(lengths), nv))
        for row, start, end in self._pieces(motion):
            direction, length = _segment(motion, start, end)
            lengths[row] += length
            relative = motion.point_jacobian(*end) - motion.point_jacobian(*start)
            jacobian[row] += direction @ relative
        for contact, arc in zip(self._layout.contacts, self._paths.arcs, strict=True):
            lengths[contact.muscle] += arc
        return NumericState(mass_matrix, coriolis, gravity, lengths, jacobian)

    def operational(
        self, q: Array, qd: Array, frame: str | None = None
    ) -> NumericOperationalState:
        """Compute pose, Jacobian and bias of a frame; see `Dynamics.operational`."""
        name = frame or self.robot.operational_frame
        if name is None:
            raise UnknownNameError("operational frame", "", (f.name for f in self.robot.frames))
        node, pose = self.tree.locate(name)
        motion = forward_kinematics(self.tree, q, qd)
        return NumericOperationalState(
            position=motion.point(node, pose.translation),
            rotation=motion.rotation[node] @ pose.rotation,
            jacobian=np.vstack(
                [motion.point_jacobian(node, pose.translation), motion.angular_jacobian[node]]
            ),
            bias=np.concatenate(
                [motion.point_bias(node, pose.translation), motion.angular_bias[node]]
            ),
        )

    def muscle_bias(self, q: Array, qd: Array) -> Array:
        """Return dL/dt qd, shape (m,).

        Per straight piece ``u' (a_B - a_A) + (|v|^2 - (u' v)^2) / |B - A|`` with v the relative
        velocity and a the bias accelerations of its ends; by differences where a muscle wraps.
        """
        motion = forward_kinematics(self.tree, q, qd)
        bias = np.zeros(len(self.robot.muscles))
        for row, start, end in self._pieces(motion):
            u, length = _segment(motion, start, end)
            v = (motion.point_jacobian(*end) - motion.point_jacobian(*start)) @ qd
            a = motion.point_bias(*end) - motion.point_bias(*start)
            bias[row] += u @ a
            if length > 0.0:
                bias[row] += (v @ v - (u @ v) ** 2) / length
        if self._layout.contacts:
            wrapped = [contact.muscle for contact in self._layout.contacts]
            still = np.zeros(self.tree.nv)
            differences = bias_by_differences(
                self.tree, lambda x: self.update(x, still).muscle_jacobian, q, qd
            )
            bias[wrapped] = differences[wrapped]
        return bias

    def _pieces(self, motion: Motion) -> Iterator[tuple[int, _Anchor, _Anchor]]:
        """Yield muscle and ends (node and position in node coordinates) of straight pieces."""
        layout, paths = self._layout, self._paths
        rows = None
        if self._geodesics is not None:
            rows = self._geodesics.solve(self._poses(motion))
        paths.solve(motion.rotation, motion.position, rows)
        for row, k in zip(layout.piece_muscle, layout.start, strict=True):
            yield (
                int(row),
                (int(layout.point_frame[k]), paths.local[k]),
                (int(layout.point_frame[k + 1]), paths.local[k + 1]),
            )

    def link_poses(self, q: Array) -> Array:
        """Return link-to-world matrices, shape (n_links, 4, 4)."""
        return self._poses(forward_kinematics(self.tree, q, np.zeros(self.tree.nv)))

    def _poses(self, motion: Motion) -> Array:
        poses = np.zeros((len(self.robot.links), 4, 4))
        for row, link in enumerate(self.robot.links):
            node, offset = self.tree.link_node[link.name]
            poses[row, :3, :3] = motion.rotation[node] @ offset.rotation
            poses[row, :3, 3] = motion.point(node, offset.translation)
            poses[row, 3, 3] = 1.0
        return poses


def _segment(
    motion: Motion, start: tuple[int, Vector3], end: tuple[int, Vector3]
) -> tuple[Vector3, float]:
    """Return unit direction and length of a straight segment; a point has no direction (zero)."""
    delta = motion.point(*end) - motion.point(*start)
    length = float(np.linalg.norm(delta))
    return (delta / length if length > 0.0 else np.zeros(3)), length
