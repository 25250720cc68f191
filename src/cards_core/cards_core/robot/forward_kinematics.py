"""Forward kinematics of a tree in world coordinates: poses, Jacobians and bias accelerations.

Plain recursion over the nodes, one NumPy expression per textbook formula. This is the reference
the compiled backend is tested against, so it favours reading over speed.

Source: [Siciliano2009]_ chapters 3 and 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np

from cards_core.robot.model import WORLD_NODE, Tree
from cards_core.spatial import axis_rotation, hat, quaternion_matrix
from cards_core.typing import Array, Vector3


@dataclass(frozen=True, eq=False)
class Motion:
    """Motion of every node frame, in world axes; index -1 is the world at rest.

    With k nodes and nv velocities (arrays have one extra last entry for the world):

    Attributes:
        rotation: Node to world, shape (k + 1, 3, 3).
        position: Node origin, shape (k + 1, 3), [m].
        linear_jacobian: d(velocity of the origin)/d(qd), shape (k + 1, 3, nv).
        angular_jacobian: d(angular velocity)/d(qd), shape (k + 1, 3, nv).
        angular_velocity: shape (k + 1, 3), [rad/s].
        linear_bias: Acceleration of the origin at qdd = 0, shape (k + 1, 3), [m/s^2].
        angular_bias: Angular acceleration at qdd = 0, shape (k + 1, 3), [rad/s^2].
    """

    rotation: Array
    position: Array
    linear_jacobian: Array
    angular_jacobian: Array
    angular_velocity: Array
    linear_bias: Array
    angular_bias: Array

    def point(self, node: int, local: Vector3) -> Vector3:
        """Return the world position of a point given in node coordinates, [m]."""
        out: Vector3 = self.position[node] + self.rotation[node] @ local
        return out

    def point_jacobian(self, node: int, local: Vector3) -> Array:
        """Return the Jacobian of a point's world velocity, shape (3, nv)."""
        arm = self.rotation[node] @ local
        out: Array = self.linear_jacobian[node] - hat(arm) @ self.angular_jacobian[node]
        return out

    def point_bias(self, node: int, local: Vector3) -> Vector3:
        """Return the world acceleration of a point at qdd = 0, shape (3,), [m/s^2]."""
        arm = self.rotation[node] @ local
        omega = self.angular_velocity[node]
        out: Vector3 = (
            self.linear_bias[node]
            + np.cross(self.angular_bias[node], arm)
            + np.cross(omega, np.cross(omega, arm))
        )
        return out


def forward_kinematics(tree: Tree, q: Array, qd: Array) -> Motion:
    """Propagate poses, Jacobians and bias accelerations from the world to the leaves.

    For a joint with world axis a between parent frame p and child frame c, r = p_c - p_p:

    revolute   w_c = w_p + a qd,  al_c = al_p + w_p x a qd
    prismatic  v_c = v_p + w_p x r + a qd,  a_c = ... + 2 w_p x a qd
    ball       as revolute with a qd replaced by R_c omega

    Args:
        tree: Kinematic tree.
        q: Coordinates, shape (nq,).
        qd: Velocities, shape (nv,).
    """
    k = len(tree.nodes)
    motion = Motion(
        rotation=np.zeros((k + 1, 3, 3)),
        position=np.zeros((k + 1, 3)),
        linear_jacobian=np.zeros((k + 1, 3, tree.nv)),
        angular_jacobian=np.zeros((k + 1, 3, tree.nv)),
        angular_velocity=np.zeros((k + 1, 3)),
        linear_bias=np.zeros((k + 1, 3)),
        angular_bias=np.zeros((k + 1, 3)),
    )
    motion.rotation[WORLD_NODE] = np.eye(3)
    for i, node in enumerate(tree.nodes):
        p = node.parent
        joint_rotation = motion.rotation[p] @ node.placement.rotation
        axis = joint_rotation @ node.axis
        rotation = joint_rotation
        slide = np.zeros(3)
        slide_velocity = np.zeros(3)
        spin = np.zeros(3)
        columns = slice(node.v, node.v + node.nv)
        if node.kind == "revolute":
            rotation = joint_rotation @ axis_rotation(node.axis, q[node.q])
            spin = axis * qd[node.v]
        elif node.kind == "prismatic":
            slide = axis * q[node.q]
            slide_velocity = axis * qd[node.v]
        elif node.kind == "ball":
            rotation = joint_rotation @ quaternion_matrix(q[node.q : node.q + 4])
            spin = rotation @ qd[columns]
        else:
            assert_never(node.kind)
        arm = motion.rotation[p] @ node.placement.translation + slide
        omega_p = motion.angular_velocity[p]

        motion.rotation[i] = rotation
        motion.position[i] = motion.position[p] + arm
        motion.linear_jacobian[i] = (
            motion.linear_jacobian[p] - hat(arm) @ motion.angular_jacobian[p]
        )
        motion.angular_jacobian[i] = motion.angular_jacobian[p]
        if node.kind == "prismatic":
            motion.linear_jacobian[i, :, node.v] = axis
        elif node.kind == "revolute":
            motion.angular_jacobian[i, :, node.v] = axis
        elif node.kind == "ball":
            motion.angular_jacobian[i, :, columns] = rotation
        else:
            assert_never(node.kind)
        motion.angular_velocity[i] = omega_p + spin
        motion.angular_bias[i] = motion.angular_bias[p] + np.cross(omega_p, spin)
        motion.linear_bias[i] = (
            motion.linear_bias[p]
            + np.cross(motion.angular_bias[p], arm)
            + np.cross(omega_p, np.cross(omega_p, arm))
            + 2.0 * np.cross(omega_p, slide_velocity)
        )
    return motion


def node_poses(tree: Tree, q: Array) -> tuple[Array, Array]:
    """Return rotation and position of every node frame, as in `Motion`, without the rest.

    Args:
        tree: Kinematic tree with k nodes.
        q: Coordinates, shape (nq,).

    Returns:
        Node to world, shape (k + 1, 3, 3), and node origins, shape (k + 1, 3), [m]; index -1 is
        the world. Equal to those of `forward_kinematics` to the last bit.
    """
    k = len(tree.nodes)
    rotation, position = np.zeros((k + 1, 3, 3)), np.zeros((k + 1, 3))
    rotation[WORLD_NODE] = np.eye(3)
    for i, node in enumerate(tree.nodes):
        p = node.parent
        joint_rotation = rotation[p] @ node.placement.rotation
        slide: Vector3 | float = 0.0
        if node.kind == "revolute":
            rotation[i] = joint_rotation @ axis_rotation(node.axis, q[node.q])
        elif node.kind == "prismatic":
            rotation[i] = joint_rotation
            slide = joint_rotation @ node.axis * q[node.q]
        elif node.kind == "ball":
            rotation[i] = joint_rotation @ quaternion_matrix(q[node.q : node.q + 4])
        else:
            assert_never(node.kind)
        position[i] = position[p] + (rotation[p] @ node.placement.translation + slide)
    return rotation, position


def point_gradient(tree: Tree, motion: Motion, node: int, local: Vector3) -> Array:
    """Return the derivative of a point's Jacobian, shape (3, nv, nv).

    Entry [:, j, k] is the derivative of column j along tangent direction k: of two joints the one
    nearer to the world turns what the other one moves, ``w_first x J_second``; within one ball,
    whose axes turn with it, ``w_k x J_j``.

    Args:
        tree: The kinematic tree.
        motion: Poses and Jacobians at a state.
        node: Index of the node.
        local: The point in coordinates of the node, shape (3,), [m].
    """
    jacobian = motion.point_jacobian(node, local)
    axes = motion.angular_jacobian[node] if node != WORLD_NODE else np.zeros((3, tree.nv))
    order = [i for i, item in enumerate(tree.nodes) for _ in range(item.nv)]
    gradient = np.zeros((3, tree.nv, tree.nv))
    for j in range(tree.nv):
        for k in range(tree.nv):
            first, second = (k, j) if order[k] <= order[j] else (j, k)
            gradient[:, j, k] = hat(axes[:, first]) @ jacobian[:, second]
    return gradient
