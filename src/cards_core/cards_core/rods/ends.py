"""End conditions of one rod: which directions are held, which are free and loaded.

An end has a joint frame with orientation R_J and position p_J. With the section at ``p, R`` and
the load ``f, mu`` that acts on the end from outside::

    e_p = R_J'(p - p_J)    e_R = log(R_J'R)    f_J = R_J'f    mu_J = R_J'mu

a held direction asks for ``e = 0``, a free one for a given load. The logarithm makes e_R the true
rotation error, so that held directions stay held whatever the free ones do. One held and two free
rotations are a universal joint: a cross with one arm along x of the joint frame and the other
along y of the section (z held; the other two cases by cyclic change), with ``x_J . y = 0`` in
place of e_R and the moments about these two arms free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.errors import RodError
from cards_core.spatial import hat, rotation_log
from cards_core.typing import Array, Matrix3

Mask = npt.NDArray[np.bool_]
"""Shape (6,): tx, ty, tz, rx, ry, rz in the joint frame, True where free."""


@dataclass(frozen=True, eq=False)
class End:
    """One end of a rod; `clamped`, `free` and `jointed` make the common ones.

    Args:
        pose: Joint frame in the world, shape (4, 4).
        mask: Free directions in the joint frame, shape (6,).
        wrench: Force and moment that act on the end from outside, shape (6,), [N, N m], in axes
            of the joint frame; entries of held directions do not count.
        follower: The wrench turns with the section: it is in section axes. Needs all directions
            free.

    Raises:
        RodError: Wrong shapes, values that are not finite, or a follower load on a held end.
    """

    pose: Array
    mask: Mask
    wrench: Array
    follower: bool = False

    def __post_init__(self) -> None:
        state_of(self.pose, self.wrench)
        turn = np.asarray(self.pose, dtype=float)[:3, :3]
        if np.abs(turn.T @ turn - np.eye(3)).max() > 1e-6 or np.linalg.det(turn) < 0.0:
            raise RodError("pose has no rotation matrix in it; expected a rigid motion, 4x4")
        mask = np.asarray(self.mask, dtype=bool)
        if mask.shape != (6,):
            raise RodError(f"mask of shape {mask.shape}; expected 6 entries, True where free")
        if self.follower and not mask.all():
            raise RodError("a follower load needs an end that is free in all directions")
        object.__setattr__(self, "pose", np.array(self.pose, dtype=float))
        object.__setattr__(self, "mask", mask)
        object.__setattr__(self, "wrench", np.array(self.wrench, dtype=float))

    @property
    def holds_position(self) -> bool:
        """Is the position given?"""
        return not bool(self.mask[:3].any())

    @property
    def conservative(self) -> bool:
        """Whether the load has a potential: not a moment that is fixed in space and free to turn.

        Its work depends on the order of rotations about different axes; about one axis it has.
        """
        turns = self.mask[3:]
        return not self.follower and (turns.sum() < 2 or not self.wrench[3:][turns].any())

    def rows(self, state: Array, sign: float) -> tuple[Array, Array]:
        """Return residual and Jacobian of the six conditions.

        Args:
            state: (p, R by rows, n, m) of the section, shape (18,).
            sign: 1 at the tip, where the load from outside is (n, m); -1 at the start, where it
                is -(n, m).

        Returns:
            Residual, shape (6,), [m, rad, N, N m], and its derivative by (dp, dphi, dn, dm),
            shape (6, 12), with ``R <- exp(dphi) R``.
        """
        p, R = state[:3], state[3:12].reshape(3, 3)
        to_joint = self.pose[:3, :3].T
        error = rotation_log(to_joint @ R)
        residual = np.concatenate([to_joint @ (p - self.pose[:3, 3]), error])
        jacobian = np.zeros((6, 12))
        jacobian[:3, :3] = to_joint
        jacobian[3:, 3:6] = left_jacobian_inverse(error) @ to_joint
        free = self.mask
        axes = R.T if self.follower else to_joint
        loads = np.concatenate([axes @ state[12:15], axes @ state[15:18]])
        residual[free] = (sign * loads - self.wrench)[free]
        derivative = np.zeros((6, 12))
        derivative[:3, 6:9] = derivative[3:, 9:12] = sign * axes
        if self.follower:
            derivative[:3, 3:6] = sign * axes @ hat(state[12:15])
            derivative[3:, 3:6] = sign * axes @ hat(state[15:18])
        if free[3:].sum() == 2:
            self._cross(state, sign, residual, jacobian, derivative)
        jacobian[free] = derivative[free]
        return residual, jacobian

    def _cross(
        self, state: Array, sign: float, residual: Array, jacobian: Array, derivative: Array
    ) -> None:
        """Write the rotation rows of a universal joint: its cross in place of the axes."""
        held = int(np.argmin(self.mask[3:]))
        first, second = (held + 1) % 3, (held + 2) % 3
        moment = state[15:18]
        one = self.pose[:3, first]
        two = state[3:12].reshape(3, 3)[:, second]
        residual[3 + held] = -one @ two
        jacobian[3 + held, 3:6] = np.cross(one, two)
        residual[3 + first] = sign * one @ moment - self.wrench[3 + first]
        residual[3 + second] = sign * two @ moment - self.wrench[3 + second]
        derivative[3 + second, 9:12] = sign * two
        derivative[3 + second, 3:6] = sign * np.cross(two, moment)


def clamped(pose: Array) -> End:
    """Return an end whose pose, shape (4, 4), is given."""
    return End(pose, np.zeros(6, dtype=bool), np.zeros(6))


def free(wrench: Sequence[float] | Array = (0.0,) * 6, *, follower: bool = False) -> End:
    """Return an end under a given load, shape (6,), [N, N m].

    Args:
        wrench: Load in world axes, about the end.
        follower: It is in axes of the end section instead and turns with it.
    """
    return End(np.eye(4), np.ones(6, dtype=bool), np.asarray(wrench, dtype=float), follower)


def jointed(
    pose: Array,
    mask: Sequence[bool] | Mask | str,
    wrench: Sequence[float] | Array = (0.0,) * 6,
) -> End:
    """Return an end held by a joint.

    Args:
        pose: Joint frame in the world, shape (4, 4).
        mask: Free directions (tx, ty, tz, rx, ry, rz) in the joint frame, or a string of six 0
            and 1: ``000111`` is a ball joint, ``000001`` a hinge about z, ``001000`` a slider.
        wrench: Load along the free directions, in joint axes, shape (6,), [N, N m].

    Raises:
        RodError: The mask, pose or wrench is not of this form.
    """
    if isinstance(mask, str):
        if len(mask) != 6 or set(mask) - {"0", "1"}:
            raise RodError(f"mask '{mask}'; expected six characters 0 (held) or 1 (free)")
        mask = [mark == "1" for mark in mask]
    return End(pose, np.asarray(mask, dtype=bool), np.asarray(wrench, dtype=float))


def state_of(pose: Array, wrench: Sequence[float] | Array) -> Array:
    """Return the state (p, R by rows, n, m), shape (18,), of a section.

    Raises:
        RodError: Not a 4x4 pose and 6 numbers, or not finite.
    """
    matrix, loads = np.asarray(pose, dtype=float), np.asarray(wrench, dtype=float)
    if matrix.shape != (4, 4) or not np.isfinite(matrix).all():
        raise RodError(f"pose of shape {matrix.shape}; expected finite homogeneous 4x4 matrix")
    if loads.shape != (6,) or not np.isfinite(loads).all():
        raise RodError(f"wrench of shape {loads.shape}; expected 6 finite numbers (n, m)")
    if np.abs(matrix[:3, :3] @ matrix[:3, :3].T - np.eye(3)).max() > 1e-6:
        raise RodError("the 3x3 part of a pose is no rotation: its rows are not orthonormal")
    return np.concatenate([matrix[:3, 3], matrix[:3, :3].ravel(), loads])


def unheld(ends: Sequence[End]) -> Array:
    """Return the directions along which none of the ends holds the rod.

    Returns:
        Unit vectors normal to each other, world axes, shape (k, 3), k = 0 to 3.
    """
    held = np.vstack([end.pose[:3, :3].T[~end.mask[:3]] for end in ends])
    if not len(held):
        return np.eye(3)
    _, sizes, axes = np.linalg.svd(held)
    return np.asarray(axes[int((sizes > 1e-9).sum()) :])


def left_jacobian_inverse(v: Array) -> Matrix3:
    """Return J with ``log(exp(d) exp(v)) = v + J d`` for small d ([Sola2018], equation 146)."""
    angle = float(np.linalg.norm(v))
    if angle < 1e-4:
        factor = 1.0 / 12.0 + angle * angle / 720.0
    else:
        half = 0.5 * angle
        factor = (1.0 - half / math.tan(half)) / (angle * angle)
    k = hat(v)
    return np.asarray(np.eye(3) - 0.5 * k + factor * (k @ k))
