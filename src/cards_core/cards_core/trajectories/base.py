"""What a reference is: a point that moves in time, its first two derivatives, its tolerance.

Controllers call ``y, yd, ydd = reference(t)`` once per cycle. A reference is a pure function of
time (`LiveReference` excepted), so that a run can be repeated, and it never runs off its ends: it
holds the first point before ``t = 0`` and the last one after ``t = duration``, both at rest.

The tolerance is how far from its path a robot may be and still have followed it. A file states it
(key ``tolerance``), or it follows from the size of the path: `TOLERANCE_SHARE` of it, at least
`LEAST_LENGTH_TOLERANCE` or `LEAST_ANGLE_TOLERANCE`. The size of the lengths among the coordinates
is the diagonal of their bounding box, that of the angles likewise; of a rotation that a quaternion
describes it is the maximum angle to where it begins.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from cards_core.checks import finite_number, real_array, shown
from cards_core.errors import CardsError, ShapeError
from cards_core.typing import Array

Sample: TypeAlias = tuple[Array, Array, Array]
"""Value, first and second time derivative: y, yd, ydd."""

Space: TypeAlias = Literal["joint", "operational"]
"""What the entries of y are: joint coordinates, or the position of the operational frame."""


MAX_DURATION = 1e9
"""Longest accepted time of a reference, [s]: thirty years, so more is a slip."""


class TrajectoryError(CardsError):
    """A reference that cannot be built or evaluated as asked."""


@dataclass(frozen=True)
class Tolerance:
    """Norm of the error up to which a robot has followed a reference.

    Attributes:
        length: Of all lengths together, [m]; NaN: not stated.
        angle: Of all angles together, [rad]; NaN: not stated.
    """

    length: float = math.nan
    angle: float = math.nan


class Reference(ABC):
    """A point y(t) of `size` coordinates on ``0 <= t <= duration``.

    Args:
        size: Number of coordinates.
        duration: [s]; infinite for live references.
        breaks: Times at which a derivative up to the second may jump, [s]; start and end if None.

    Attributes:
        size: Number of coordinates.
        duration: [s]; infinite for live references.
        breaks: Times at which a derivative up to the second may jump, first and last time
            included, [s]. Between two breaks y is smooth.
        name: Name in the file it was read from, else empty.
        space: ``joint`` (y in [rad] or [m]) or ``operational`` (y in [m], world axes).
        coordinate_names: Names of the coordinates if known, else empty.
        tolerance: As stated in the file; `tolerance_of` returns what holds.

    A reference of your own derives from this class, or is any callable with ``size`` and
    ``duration``: `as_reference`. With rotations y has a quaternion (w, x, y, z) for each, and yd
    and ydd one entry per velocity, with angular velocities (joint space: in the axes of the ball
    joint's child; operational space: in world axes). Without rotations all three have `size`
    entries.
    """

    def __init__(self, size: int, duration: float, breaks: Sequence[float] | None = None) -> None:
        self.size = size
        self.duration = duration
        self.breaks = (0.0, duration) if breaks is None else tuple(breaks)
        self.name = ""
        self.space: Space = "joint"
        self.coordinate_names: tuple[str, ...] = ()
        self.tolerance = Tolerance()

    @abstractmethod
    def __call__(self, t: float) -> Sample:
        """Return y, yd, ydd at time ``t`` [s] as three fresh arrays of shape (size,).

        Before 0 and after `duration` the nearest end point with zero derivatives. Arguments are
        not checked: this is called at the control rate. At a break the value is that of the
        piece that begins there (at ``t = duration`` of the piece that ends there).
        """

    def sample(self, times: Sequence[float] | Array) -> Sample:
        """Return y, yd, ydd at ``times``, shape (k,) in [s], as three arrays, (k, size) or (k, v).

        v is the size of velocities: less than `size` where rotations are among the coordinates.

        Raises:
            TrajectoryError: `times` is not a one-dimensional array of finite numbers.
        """
        instants = check_times(times)
        sizes = [part.size for part in self(0.0)]
        y, yd, ydd = (np.empty((instants.size, size)) for size in sizes)
        for k, t in enumerate(instants.tolist()):
            y[k], yd[k], ydd[k] = self(t)
        return y, yd, ydd

    @property
    def start(self) -> Array:
        """First point, shape (size,)."""
        return self(0.0)[0]

    @property
    def end(self) -> Array:
        """Last point, shape (size,)."""
        return self(self.duration)[0]

    def labelled_as(self, other: Reference) -> Self:
        """Take over name, space, coordinate names and tolerance of another; return self."""
        self.name, self.space, self.tolerance = other.name, other.space, other.tolerance
        self.coordinate_names = other.coordinate_names
        return self

    def __repr__(self) -> str:
        """Name the kind, the size and the duration."""
        label = f" '{self.name}'" if self.name else ""
        return f"<{type(self).__name__}{label}: {self.size} coordinates, {self.duration:g} s>"


class Hold(Reference):
    """Stay at a point: ``y(t) = position``.

    Args:
        position: Shape (n,).
        duration: [s], >= 0; matters inside a `Sequence` only.

    Raises:
        TrajectoryError: A number is not finite, or the duration is negative.
    """

    def __init__(self, position: Sequence[float] | Array, duration: float = 0.0) -> None:
        self._position = check_vector(position, "position")
        length = check_number(duration, "duration")
        if not 0.0 <= length <= MAX_DURATION:
            raise TrajectoryError(
                f"duration is {length:g} s, expected 0 or more, at most {MAX_DURATION:g} s"
            )
        super().__init__(self._position.size, length, (0.0, length))

    def __call__(self, t: float) -> Sample:
        """Return the point and zeros (fresh arrays)."""
        return self._position.copy(), np.zeros(self.size), np.zeros(self.size)


class _Adapted(Reference):
    """A callable that is no `Reference` as one; see `as_reference`."""

    def __init__(self, function: Callable[[float], Any], size: int, duration: float) -> None:
        super().__init__(size, duration)
        self._function = function

    def __call__(self, t: float) -> Sample:
        """Return what the callable does, as arrays."""
        found = self._function(t)
        try:
            y, yd, ydd = (real_array(part, "it") for part in found)
        except (TypeError, ValueError, ShapeError):
            raise TrajectoryError(
                f"the reference returned {shown(found)} at t = {t:g} s (expected: y, yd, ydd, "
                "three arrays)"
            ) from None
        if y.shape != (self.size,) or yd.shape != ydd.shape or yd.ndim != 1:
            raise TrajectoryError(
                f"the reference returned y, yd, ydd of shapes {y.shape}, {yd.shape}, {ydd.shape} "
                f"at t = {t:g} s (expected: {self.size} coordinates and their derivatives)"
            )
        return y, yd, ydd


def as_reference(value: object) -> Reference:
    """Return a reference itself, or a callable with ``size`` and ``duration`` as one.

    Raises:
        TrajectoryError: It is neither, or its size or duration makes no sense.
    """
    if isinstance(value, Reference):
        return value
    size, duration = getattr(value, "size", None), getattr(value, "duration", None)
    if not callable(value) or size is None or duration is None:
        raise TrajectoryError(
            f"the reference is {shown(value)} (expected: a name of the trajectory file, or a "
            "cards_core.trajectories.Reference: a callable y, yd, ydd = reference(t) with size "
            "and duration)"
        )
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise TrajectoryError(f"the reference has size {shown(size)} (expected: a whole number)")
    finite_number(
        duration, "duration of the reference [s]", at_least=0.0, infinite=True,
        error=TrajectoryError,
    )  # fmt: skip
    return _Adapted(value, size, float(duration))


# Checks of arguments, shared by all kinds ------------------------------------------------------


def check_number(value: float, what: str) -> float:
    """Return ``value`` as a finite float.

    Raises:
        TrajectoryError: It is not a number, or not finite; the message starts with ``what``.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TrajectoryError(f"{what} is {value!r}, expected a number") from None
    if not math.isfinite(number):
        raise TrajectoryError(f"{what} is {number}, expected a finite number")
    return number


def check_duration(value: float) -> float:
    """Return a positive duration [s], within reason at both ends.

    Raises:
        TrajectoryError: It is not.
    """
    duration = check_number(value, "duration")
    # derivatives are divided by duration**2
    if not 1e-9 <= duration <= MAX_DURATION:
        raise TrajectoryError(f"duration is {duration:g} s, expected 1e-9 .. {MAX_DURATION:g} s")
    return duration


def check_vector(values: npt.ArrayLike, what: str, size: int | None = None) -> Array:
    """Return ``values`` as a new, finite float array of shape (size,), or of any length >= 1.

    Args:
        values: The values.
        what: What they are, for messages.
        size: Number of entries; None: any number >= 1.

    Raises:
        TrajectoryError: Wrong shape, or a value that is not a finite number.
    """
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise TrajectoryError(f"{what} is {values!r}, expected a list of numbers") from None
    wanted = f"({size},)" if size is not None else "(n,) with n >= 1"
    if array.ndim != 1 or array.size == 0 or (size is not None and array.size != size):
        raise TrajectoryError(f"{what} has shape {array.shape}, expected {wanted}")
    if not np.isfinite(array).all():
        raise TrajectoryError(f"{what} is {array}, expected finite numbers")
    return array


def check_times(times: npt.ArrayLike) -> Array:
    """Return instants as a finite float array of shape (k,), k >= 0. Raises `TrajectoryError`."""
    array = np.asarray(times, dtype=float)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise TrajectoryError(
            f"times has shape {array.shape} or is not finite, expected finite numbers, shape (k,)"
        )
    return array


# Tolerance -------------------------------------------------------------------------------------


TOLERANCE_SHARE = 0.05
"""Tolerance as a part of the path's size: a deviation that a plot of the path shows."""

LEAST_LENGTH_TOLERANCE = 0.005
"""Minimum tolerance that follows from a size, [m]: a path of no size is a place to hold."""

LEAST_ANGLE_TOLERANCE = 0.02
"""Likewise for angles, [rad]: about a degree."""

TOLERANCE_SAMPLES = 400
"""Points at which a path is measured, beside those where its pieces meet."""


UNKNOWN_TOLERANCE = Tolerance()
"""Of a reference that comes piece by piece, over a topic: nobody said how exact it is meant."""

HOLDING_TOLERANCE = Tolerance(LEAST_LENGTH_TOLERANCE, LEAST_ANGLE_TOLERANCE)
"""Of a place that is held."""


def tolerance_of(reference: Reference, units: Sequence[str]) -> Tolerance:
    """Return the tolerance of a reference: what its file says, else what its size gives.

    Args:
        reference: Of finite duration; one without end has `UNKNOWN_TOLERANCE`.
        units: Of its coordinates: ``m``, ``rad``, or empty for components of quaternions.
    """
    stated = reference.tolerance
    if not math.isfinite(reference.duration):
        return stated
    if math.isfinite(stated.length) and math.isfinite(stated.angle):
        return stated
    times = np.union1d(np.linspace(0.0, reference.duration, TOLERANCE_SAMPLES), reference.breaks)
    path = reference.sample(times)[0]
    kinds = np.array(units)
    length = max(LEAST_LENGTH_TOLERANCE, TOLERANCE_SHARE * _diagonal(path[:, kinds == "m"]))
    turn = math.hypot(_diagonal(path[:, kinds == "rad"]), _turn(path[:, kinds == ""]))
    angle = max(LEAST_ANGLE_TOLERANCE, TOLERANCE_SHARE * turn)
    return Tolerance(
        stated.length if math.isfinite(stated.length) else length,
        stated.angle if math.isfinite(stated.angle) else angle,
    )


def _diagonal(points: Array) -> float:
    """Return the diagonal of the bounding box of points, shape (k, n)."""
    return float(np.linalg.norm(np.ptp(points, axis=0))) if points.shape[1] else 0.0


def _turn(components: Array) -> float:
    """Return the norm of the maximum angles of unit quaternions, shape (k, 4 n), [rad]."""
    total = 0.0
    for i in range(0, components.shape[1] - 3, 4):
        along = np.abs(components[:, i : i + 4] @ components[0, i : i + 4])
        total = math.hypot(total, 2.0 * math.acos(min(1.0, float(along.min()))))
    return total
