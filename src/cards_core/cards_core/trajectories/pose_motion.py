"""A smooth motion from a moving pose to a pose at rest: what a live target is turned into."""

from __future__ import annotations

import numpy as np

from cards_core.spatial import quaternion_log, quaternion_product, rotation_exp
from cards_core.trajectories import PiecewisePolynomial, Reference, TrajectoryError
from cards_core.trajectories.base import Sample, check_vector
from cards_core.trajectories.polynomial import quintic
from cards_core.typing import Array

MIN_DURATION = 0.1
"""Shortest motion, [s]: a stream of close targets is smoothed over this time."""

_PEAK = 1.875  # greatest speed of a quintic from rest to rest over its average speed


class PoseMotion(Reference):
    """Quintic in position and in rotation about a fixed axis.

    Position: ``y(0), yd(0), ydd(0)`` as given, at rest at the target. Rotation: from the given
    orientation to the target about one axis, from rest to rest (its initial velocity is dropped).
    The duration is the shortest with which a motion from rest keeps below the speed.

    Args:
        start: y, yd, ydd at time zero: p position axes, then a quaternion (w, x, y, z) if there is
            a target rotation; the derivatives then end with world angular velocity, acceleration.
        position: Target, shape (p,), [m].
        rotation: Target quaternion (w, x, y, z), shape (4,); None without orientation.
        speed: [m/s] and [rad/s].

    Raises:
        TrajectoryError: A number that is not finite, a quaternion that is not of unit length.
    """

    def __init__(
        self, start: Sample, position: Array, rotation: Array | None, *, speed: float
    ) -> None:
        target = check_vector(position, "position of the target") if position.size else position
        p = target.size
        y, yd, ydd = start
        distance = float(np.linalg.norm(target - y[:p]))
        turn = np.zeros(3)
        self._first = None if rotation is None else y[p:].copy()
        if rotation is not None:
            last = check_vector(rotation, "orientation of the target", 4)
            norm = float(np.linalg.norm(last))
            if abs(norm - 1.0) > 1e-3:
                raise TrajectoryError(
                    f"orientation of the target is {last}, expected a quaternion of unit length"
                )
            conjugate = y[p:] * np.array([1.0, -1.0, -1.0, -1.0])
            # rotation vector in world axes: the turn is applied from the left
            turn = quaternion_log(quaternion_product(last / norm, conjugate))
            distance = max(distance, float(np.linalg.norm(turn)))
        self._turn = turn
        length = max(_PEAK * distance / speed, MIN_DURATION)
        super().__init__(p + (0 if rotation is None else 4), length, (0.0, length))
        self.space = "operational"
        zero = np.zeros(p)
        ends = quintic((y[:p], yd[:p], ydd[:p]), (target, zero, zero), length)
        share = quintic(
            (np.zeros(1), np.zeros(1), np.zeros(1)), (np.ones(1), np.zeros(1), np.zeros(1)), length
        )
        self._motion = PiecewisePolynomial([0.0, length], np.array([np.hstack([ends, share])]))

    def __call__(self, t: float) -> Sample:
        """Return y, yd, ydd at time ``t`` [s]."""
        y, yd, ydd = self._motion(t)
        if self._first is None:
            return y[:-1], yd[:-1], ydd[:-1]
        quaternion = quaternion_product(rotation_exp(y[-1] * self._turn), self._first)
        return (
            np.concatenate([y[:-1], quaternion]),
            np.concatenate([yd[:-1], yd[-1] * self._turn]),
            np.concatenate([ydd[:-1], ydd[-1] * self._turn]),
        )
