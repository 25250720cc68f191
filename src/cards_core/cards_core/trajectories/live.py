"""References that come from outside while the controller runs.

`LiveReference` is the last target as it came, `PoseMotion` a smooth way to it,
`from_joint_trajectory` a whole motion sent in one message.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cards_core.checks import check_choice
from cards_core.spatial import quaternion_log, quaternion_product, rotation_exp
from cards_core.trajectories.base import (
    Reference,
    Sample,
    TrajectoryError,
    check_number,
    check_vector,
)
from cards_core.trajectories.polynomial import (
    DURATION_RATIO,
    PiecewisePolynomial,
    cubic,
    linear,
    quintic,
)
from cards_core.trajectories.splines import MIN_SEGMENT
from cards_core.typing import Array


class LiveReference(Reference):
    """The last target that was accepted, e.g. from a topic.

    y stays at the target. Its derivatives are feedforward for a moving target, and lapse (to
    zero) `derivative_timeout` after the target's time: a sender that dies must not leave the
    controller chasing a velocity.

    One thread may set while another reads.

    Args:
        size: Number of coordinates.
        initial: Target before the first `set`, shape (size,); without it, reading before the
            first `set` is an error.
        derivative_timeout: [s], >= 0.

    Attributes:
        accepted: How many targets were accepted.

    Raises:
        TrajectoryError: A number is not acceptable.
    """

    def __init__(
        self,
        size: int,
        initial: Sequence[float] | Array | None = None,
        *,
        derivative_timeout: float = 0.1,
    ) -> None:
        if size < 1:
            raise TrajectoryError(f"size is {size}, expected at least 1")
        super().__init__(size, math.inf, (0.0,))
        self._timeout = check_number(derivative_timeout, "derivative timeout")
        if self._timeout < 0.0:
            raise TrajectoryError(f"derivative timeout is {self._timeout:g} s, expected >= 0")
        self.accepted = 0
        # one tuple, replaced as a whole: a reader never sees half a target
        self._target: tuple[Array, Array, Array, float] | None = None
        if initial is not None:
            y = check_vector(initial, "initial", size)
            self._target = (y, np.zeros(size), np.zeros(size), -math.inf)

    @property
    def time(self) -> float | None:
        """Time of the last accepted target [s], None before the first."""
        return self._target[3] if self._target is not None and self.accepted else None

    def set(
        self,
        y: Sequence[float] | Array,
        yd: Sequence[float] | Array | None = None,
        ydd: Sequence[float] | Array | None = None,
        *,
        time: float,
    ) -> None:
        """Take a new target, valid from now on; arguments are copied.

        Args:
            y: Shape (size,).
            yd: Shape (size,), per [s]; zero if not given.
            ydd: Shape (size,), per [s^2]; zero if not given.
            time: Time of the target on the clock that the reference is called with, [s].

        Raises:
            TrajectoryError: Wrong shape, a number that is not finite, or a time before that of
                the last accepted target. The last target then stays in force.
        """
        at = check_number(time, "time")
        position = check_vector(y, "y", self.size)
        velocity = np.zeros(self.size) if yd is None else check_vector(yd, "yd", self.size)
        acceleration = np.zeros(self.size) if ydd is None else check_vector(ydd, "ydd", self.size)
        if self._target is not None and at < self._target[3]:
            raise TrajectoryError(
                f"target of {at:g} s is older than the last one of {self._target[3]:g} s"
            )
        self._target = (position, velocity, acceleration, at)
        self.accepted += 1

    def __call__(self, t: float) -> Sample:
        """Return y, yd, ydd as fresh arrays. Raises `TrajectoryError` while there is no target."""
        target = self._target
        if target is None:
            raise TrajectoryError("no target yet: none was set and no initial one given")
        y, yd, ydd, at = target
        if t - at > self._timeout:
            return y.copy(), np.zeros(self.size), np.zeros(self.size)
        return y.copy(), yd.copy(), ydd.copy()

    @property
    def end(self) -> Array:
        """The target itself: a live reference has no end of its own."""
        return self(math.inf)[0]


@dataclass(frozen=True)
class TrajectoryPoint:
    """A point of a joint trajectory, the fields of trajectory_msgs/JointTrajectoryPoint.

    Attributes:
        time_from_start: [s].
        positions: One value per joint, [rad] or [m].
        velocities: As many, or empty.
        accelerations: As many, or empty; needs velocities.
    """

    time_from_start: float
    positions: Sequence[float]
    velocities: Sequence[float] = ()
    accelerations: Sequence[float] = ()


def from_joint_trajectory(
    names: Sequence[str],
    points: Iterable[TrajectoryPoint],
    *,
    joint_names: Sequence[str] | None = None,
    start: Sequence[float] | Array | None = None,
    start_velocity: Sequence[float] | Array | None = None,
) -> PiecewisePolynomial:
    """Build a spline from a joint trajectory message's content.

    A segment is a quintic if both its points carry velocities and accelerations, a cubic if both
    carry velocities, else a straight line; a start point counts as carrying both.

    Args:
        names: Joint names in the order of the numbers in `points`.
        points: At least one; times strictly increasing, the first >= 0.
        joint_names: Order of the coordinates of the result, the same set of names; default
            `names`.
        start: Actual coordinates in the order of `joint_names`, shape (n,): where the motion
            begins if the first point's time is later than 0.
        start_velocity: At `start`, zero if not given.

    Raises:
        UnknownNameError: A name that is not one of `joint_names`.
        TrajectoryError: Names missing or duplicate, wrong numbers of values, not finite, times
            that do not increase, or no `start` where one is needed.
    """
    order = list(joint_names if joint_names is not None else names)
    for name in names:
        check_choice(name, "joint", order)
    if sorted(names) != sorted(order) or len(set(order)) != len(order) or not order:
        raise TrajectoryError(
            f"joints are {', '.join(names) or 'none'}, expected each of {', '.join(order)} once"
        )
    columns = [list(names).index(name) for name in order]
    n = len(order)
    knots: list[tuple[float, list[Array]]] = []
    for i, point in enumerate(points):
        where = f"point {i + 1}"
        t = check_number(point.time_from_start, f"time of {where}")
        values = [check_vector(point.positions, f"positions of {where}", n)[columns]]
        for what in ("velocities", "accelerations"):
            given: npt.ArrayLike = getattr(point, what)
            if np.size(given) == 0:
                break
            values.append(check_vector(given, f"{what} of {where}", n)[columns])
        if np.size(point.accelerations) and not np.size(point.velocities):
            raise TrajectoryError(f"{where} has accelerations but no velocities")
        if t < 0.0 or (knots and t - knots[-1][0] < MIN_SEGMENT):
            before = f"{knots[-1][0]:g} s before it" if knots else "the start at 0 s"
            raise TrajectoryError(f"{where} is at {t:g} s, {before}, expected increasing times")
        knots.append((t, values))
    if not knots:
        raise TrajectoryError("a trajectory without points, expected at least one")
    if knots[0][0] >= MIN_SEGMENT:
        if start is None:
            raise TrajectoryError(
                f"the first point is at {knots[0][0]:g} s, expected a start or a point at 0 s"
            )
        velocity = np.zeros(n) if start_velocity is None else start_velocity
        first = [check_vector(start, "start", n), check_vector(velocity, "start velocity", n)]
        knots.insert(0, (0.0, [*first, np.zeros(n)]))
    else:
        knots[0] = (0.0, knots[0][1])
    if len(knots) == 1:
        # a single point at time 0 is a target to hold
        knots.append((MIN_SEGMENT, [knots[0][1][0]]))
    return _join(knots, tuple(order))


def target_duration(start: Array, target: Array, units: Sequence[str]) -> float:
    """Return how long a smooth motion to a target takes, [s]: `TARGET_SPEEDS`, from rest to rest.

    Args:
        start: Coordinates, shape (n,).
        target: Coordinates, shape (n,).
        units: Of each of them, ``rad`` or ``m``.

    Raises:
        UnknownNameError: Another unit.
    """
    for unit in units:
        check_choice(unit, "unit of a target", TARGET_SPEEDS)
    speeds = np.array([TARGET_SPEEDS[unit] for unit in units])
    distance = float(np.max(np.abs(np.asarray(target) - start) / speeds, initial=0.0))
    return max(DURATION_RATIO * distance, TARGET_DURATION)


def joint_target(
    names: Sequence[str], present: Sample, target: Array, units: Sequence[str]
) -> PiecewisePolynomial:
    """Return a quintic from where joints are to be now to a target, where they stay.

    Args:
        names: Of the coordinates, length n.
        present: y, yd, ydd now, shape (n,) each.
        target: Shape (n,), [rad] or [m].
        units: Of each of them.

    Raises:
        TrajectoryError: Numbers that are not finite, or of robots with ball joints.
        UnknownNameError: Another unit than ``rad`` or ``m``.
    """
    start, velocity, _ = present
    if velocity.size != start.size:
        raise TrajectoryError("targets of robots with ball or free joints (expected: none)")
    length = target_duration(start, target, units)
    rest = np.zeros(len(names))
    return from_joint_trajectory(
        names,
        [TrajectoryPoint(length, target.tolist(), rest.tolist(), rest.tolist())],
        start=start,
        start_velocity=velocity,
    )


def _join(knots: list[tuple[float, list[Array]]], names: tuple[str, ...]) -> PiecewisePolynomial:
    coefficients: list[Array] = []
    for (t0, a), (t1, b) in pairwise(knots):
        known = min(len(a), len(b))
        if known == 3:
            c = quintic((a[0], a[1], a[2]), (b[0], b[1], b[2]), t1 - t0)
        elif known == 2:
            c = cubic(a[0], a[1], b[0], b[1], t1 - t0)
        else:
            c = linear(a[0], b[0])
        coefficients.append(np.pad(c, ((0, 6 - c.shape[0]), (0, 0))))
    out = PiecewisePolynomial([t for t, _ in knots], np.array(coefficients))
    out.coordinate_names = names
    return out


TARGET_SPEEDS = {"rad": 0.8, "m": 0.25}
"""Maximum speed of a motion to a target that names none, [rad/s] and [m/s]."""

TARGET_DURATION = 0.3
"""Shortest such motion, [s]."""

MIN_DURATION = 0.1
"""Shortest motion, [s]: a stream of close targets is smoothed over this time."""


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
        length = max(DURATION_RATIO * distance / speed, MIN_DURATION)
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
