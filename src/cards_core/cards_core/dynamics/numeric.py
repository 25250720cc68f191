"""Numeric backend: M, C, G, l and L by plain NumPy, straight from the definitions.

With J_v, J_w the Jacobians of each body's centre of mass and rotation, a_0, al_0 its bias
accelerations and I its inertia in world axes [Siciliano2009]_:

    M = sum m J_v' J_v + J_w' I J_w
    C = sum J_v' m a_0 + J_w' (I al_0 + w x I w)
    G = -sum J_v' m g
    L_i = sum over segments A->B of u' (J_B - J_A),  u = (B - A) / |B - A|
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from cards_core.description.model import Robot
from cards_core.errors import UnknownNameError
from cards_core.kinematics.forward import Motion, forward_kinematics
from cards_core.kinematics.tree import Tree
from cards_core.typing import Array, Vector3


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
        self._paths = [
            [self._anchor(point.link, point.position) for point in muscle.path]
            for muscle in robot.muscles
        ]

    def _anchor(self, link: str, position: Vector3) -> tuple[int, Vector3]:
        node, pose = self.tree.link_node[link]
        return node, pose.apply(position)

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
        lengths = np.zeros(len(self._paths))
        jacobian = np.zeros((len(self._paths), nv))
        for row, path in enumerate(self._paths):
            for start, end in itertools.pairwise(path):
                direction, length = _segment(motion, start, end)
                lengths[row] += length
                relative = motion.point_jacobian(*end) - motion.point_jacobian(*start)
                jacobian[row] += direction @ relative
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

        Per segment ``u' (a_B - a_A) + (|v|^2 - (u' v)^2) / |B - A|`` with v the relative velocity
        and a the bias accelerations of its ends.
        """
        motion = forward_kinematics(self.tree, q, qd)
        bias = np.zeros(len(self._paths))
        for row, path in enumerate(self._paths):
            for start, end in itertools.pairwise(path):
                u, length = _segment(motion, start, end)
                v = (motion.point_jacobian(*end) - motion.point_jacobian(*start)) @ qd
                a = motion.point_bias(*end) - motion.point_bias(*start)
                bias[row] += u @ a
                if length > 0.0:
                    bias[row] += (v @ v - (u @ v) ** 2) / length
        return bias

    def link_poses(self, q: Array) -> Array:
        """Return link-to-world matrices, shape (n_links, 4, 4)."""
        motion = forward_kinematics(self.tree, q, np.zeros(self.tree.nv))
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
