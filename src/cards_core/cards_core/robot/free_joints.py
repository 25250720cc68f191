"""Coordinates of many free bodies at once, from the motion of their links.

What `joint_position` and `joint_velocity` do for one free joint whose parent is the world, for
all of them in one pass: with a few dozen bodies the cost of NumPy's calls is paid once, not once
for each body. With B the joint frame in the world, C = (R, p) the pose of the link, F = (R_F, f)
the inverse of joint_to_child, and (v, w) the twist of the link in world axes,

    x     = R_B^T (p + R f - p_B)           position
    R_q   = R_B^T R R_F                     rotation, as the unit quaternion with w >= 0
    dx    = R_B^T (v + w x R f)             velocity of the joint frame's origin
    omega = (R R_F)^T w                     angular velocity in axes of the joint frame

Source: [Siciliano2009]_ chapters 2 and 3; the quaternion by the largest component (Shepperd).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cards_core.errors import CardsError
from cards_core.robot.elements import WORLD, Joint
from cards_core.typing import Array


class FreeJoints:
    """Free joints whose parent is the world.

    Args:
        joints: The joints, n of them.

    Raises:
        CardsError: One of them is of another kind or has another parent.
    """

    def __init__(self, joints: Sequence[Joint]) -> None:
        for joint in joints:
            if not self.fits(joint):
                raise CardsError(
                    f"joint '{joint.name}' is {joint.kind} on '{joint.parent}' "
                    f"(expected: free, on '{WORLD}')"
                )
        bases = [joint.parent_to_joint for joint in joints]
        frames = [joint.joint_to_child.inverse() for joint in joints]
        self._to_base = np.array([pose.rotation.T for pose in bases]).reshape(-1, 3, 3)
        self._origin = np.array([pose.translation for pose in bases]).reshape(-1, 3)
        self._turn = np.array([pose.rotation for pose in frames]).reshape(-1, 3, 3)
        self._offset = np.array([pose.translation for pose in frames]).reshape(-1, 3, 1)

    @staticmethod
    def fits(joint: Joint) -> bool:
        """Whether a joint may be among them."""
        return joint.kind == "free" and joint.parent == WORLD

    def coordinates(self, poses: Array, twists: Array) -> tuple[Array, Array]:
        """Return q, shape (n, 7): position [m] and quaternion; and qd, shape (n, 6).

        Args:
            poses: Link-to-world matrices of the children, shape (n, 4, 4).
            twists: Velocities of their origins and angular velocities in world axes, shape
                (n, 6), [m/s] and [rad/s].
        """
        rotations, spins = poses[:, :3, :3], twists[:, 3:]
        arms = (rotations @ self._offset)[:, :, 0]
        turned = rotations @ self._turn
        # the three vectors that go to the axes of the joint, as columns
        vectors = np.empty((len(poses), 3, 2))
        vectors[:, :, 0] = poses[:, :3, 3] + arms - self._origin
        vectors[:, :, 1] = twists[:, :3]
        x, y, z = spins[:, 0], spins[:, 1], spins[:, 2]
        vectors[:, 0, 1] += y * arms[:, 2] - z * arms[:, 1]
        vectors[:, 1, 1] += z * arms[:, 0] - x * arms[:, 2]
        vectors[:, 2, 1] += x * arms[:, 1] - y * arms[:, 0]
        vectors = self._to_base @ vectors
        q, qd = np.empty((len(poses), 7)), np.empty((len(poses), 6))
        q[:, :3] = vectors[:, :, 0]
        q[:, 3:] = _quaternions(self._to_base @ turned)
        qd[:, :3] = vectors[:, :, 1]
        qd[:, 3:] = (spins[:, None, :] @ turned)[:, 0]
        return q, qd


# The products 4 q_i q_j as sums of the flat matrix and of 1: with r = (1, R_00, R_01 ... R_22),
# row 4 i + j of this matrix times r. Row i over the root of its own diagonal is the quaternion.
_PRODUCTS = np.zeros((16, 10))
for _row, _terms in {
    0: ((0, 1), (1, 1), (5, 1), (9, 1)),
    1: ((8, 1), (6, -1)),
    2: ((3, 1), (7, -1)),
    3: ((4, 1), (2, -1)),
    5: ((0, 1), (1, 1), (5, -1), (9, -1)),
    6: ((4, 1), (2, 1)),
    7: ((3, 1), (7, 1)),
    10: ((0, 1), (1, -1), (5, 1), (9, -1)),
    11: ((8, 1), (6, 1)),
    15: ((0, 1), (1, -1), (5, -1), (9, 1)),
}.items():
    for _column, _sign in _terms:
        _PRODUCTS[_row, _column] = _PRODUCTS[4 * (_row % 4) + _row // 4, _column] = _sign


def _quaternions(rotations: Array) -> Array:
    """Return unit quaternions (w, x, y, z), w >= 0, shape (n, 4), of matrices (n, 3, 3)."""
    n = len(rotations)
    products = rotations.reshape(n, 9) @ _PRODUCTS[:, 1:].T + _PRODUCTS[:, 0]
    # the row of the largest component: nothing is lost there by cancellation
    diagonal = products[:, ::5]
    index, most = np.arange(n), diagonal.argmax(axis=1)
    rows = products.reshape(n, 4, 4)[index, most]
    scale = 0.5 / np.sqrt(rows[index, most])
    return np.asarray(rows * np.where(rows[:, 0] < 0, -scale, scale)[:, None])
