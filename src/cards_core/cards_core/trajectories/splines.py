"""Splines through knots, component by component; `rotation` has the ones for Euler angles.

All go exactly through their knots at the stated times. CASPR [Lau2016]_ does so only if its time
step divides every segment: it fits each segment between its first and its last *sample*. To
compare with it, give ``caspr_time_step``; see `caspr_times`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, assert_never, get_args

import numpy as np
import numpy.typing as npt

from cards_core.trajectories.base import TrajectoryError, check_number, check_vector
from cards_core.trajectories.polynomial import (
    ORDER,
    PiecewisePolynomial,
    cubic,
    linear,
    quintic,
)
from cards_core.typing import Array

SplineKind: TypeAlias = Literal[
    "linear", "cubic", "cubic_average_velocity", "quintic", "parabolic_blend"
]

MIN_SEGMENT = 1e-6
"""Shortest accepted time between two knots, [s]."""

_Pieces: TypeAlias = list[tuple[float, Array]]
"""End time [s] and coefficients of consecutive polynomials."""


def linear_spline(
    times: npt.ArrayLike, points: npt.ArrayLike, *, caspr_time_step: float | None = None
) -> PiecewisePolynomial:
    """Join knots by straight lines; the velocity jumps at every knot.

    Args:
        times: Knots, shape (k,), strictly increasing from 0, [s].
        points: Shape (k, n).
        caspr_time_step: Reproduce CASPR's sampling with this step, [s].

    Raises:
        TrajectoryError: Shapes do not fit, times do not increase, a number is not finite, or the
            CASPR time step is longer than a segment.
    """
    t, p = check_knots(times, points)

    def pieces(i: int, _begin: float, end: float) -> _Pieces:
        return [(end, linear(p[i], p[i + 1]))]

    return _assemble(t, p, pieces, caspr_time_step)


def cubic_spline(
    times: npt.ArrayLike,
    points: npt.ArrayLike,
    velocities: npt.ArrayLike,
    *,
    caspr_time_step: float | None = None,
) -> PiecewisePolynomial:
    """Join knots by cubics with the given velocities, shape (k, n); the acceleration jumps.

    Other arguments and errors as `linear_spline`.
    """
    t, p = check_knots(times, points)
    v = _like(velocities, p, "velocities")

    def pieces(i: int, begin: float, end: float) -> _Pieces:
        return [(end, cubic(p[i], v[i], p[i + 1], v[i + 1], end - begin))]

    return _assemble(t, p, pieces, caspr_time_step)


def cubic_average_spline(
    times: npt.ArrayLike,
    points: npt.ArrayLike,
    start_velocity: npt.ArrayLike | None = None,
    end_velocity: npt.ArrayLike | None = None,
    *,
    caspr_time_step: float | None = None,
) -> PiecewisePolynomial:
    """Join knots by cubics; the velocity at an inner knot is the mean of the two secants.

    ``v_i = ((p_i - p_{i-1}) / T_{i-1} + (p_{i+1} - p_i) / T_i) / 2``. Velocities at both ends,
    shape (n,), are zero unless given. Other arguments and errors as `linear_spline`.
    """
    t, p = check_knots(times, points)
    n = p.shape[1]
    secants = np.diff(p, axis=0) / np.diff(t)[:, None]
    v = np.zeros_like(p)
    v[1:-1] = 0.5 * (secants[:-1] + secants[1:])
    if start_velocity is not None:
        v[0] = check_vector(start_velocity, "start velocity", n)
    if end_velocity is not None:
        v[-1] = check_vector(end_velocity, "end velocity", n)
    return cubic_spline(t, p, v, caspr_time_step=caspr_time_step)


def quintic_spline(
    times: npt.ArrayLike,
    points: npt.ArrayLike,
    velocities: npt.ArrayLike | None = None,
    accelerations: npt.ArrayLike | None = None,
    *,
    caspr_time_step: float | None = None,
) -> PiecewisePolynomial:
    """Join knots by quintics; value, velocity and acceleration are continuous.

    Velocities and accelerations, shape (k, n), are zero (rest at every knot) unless given. Other
    arguments and errors as `linear_spline`.
    """
    t, p = check_knots(times, points)
    zeros = np.zeros_like(p)
    v = zeros if velocities is None else _like(velocities, p, "velocities")
    a = zeros if accelerations is None else _like(accelerations, p, "accelerations")

    def pieces(i: int, begin: float, end: float) -> _Pieces:
        j = i + 1
        return [(end, quintic((p[i], v[i], a[i]), (p[j], v[j], a[j]), end - begin))]

    return _assemble(t, p, pieces, caspr_time_step)


def parabolic_blend(
    times: npt.ArrayLike,
    points: npt.ArrayLike,
    blend_times: float | npt.ArrayLike,
    *,
    caspr_time_step: float | None = None,
) -> PiecewisePolynomial:
    """Go from rest to rest in every segment with a trapezoidal velocity.

    In a segment of duration T: constant acceleration ``a = (p1 - p0) / (tb (T - tb))`` for the
    blend time tb, constant velocity ``a tb``, constant deceleration for tb.

    Args:
        times: Knots, shape (k,), strictly increasing from 0, [s].
        points: Shape (k, n).
        blend_times: tb of every segment, shape (k - 1,), or one number for all, [s]; ``tb > 0``
            and ``2 tb < T``.
        caspr_time_step: Reproduce CASPR's sampling with this step, [s].

    Raises:
        TrajectoryError: As `linear_spline`, and if a blend time does not fit its segment.
    """
    t, p = check_knots(times, points)
    if np.ndim(blend_times) == 0:
        tb = np.full(t.size - 1, check_number(blend_times, "blend time"))  # type: ignore[arg-type]
    else:
        tb = check_vector(blend_times, "blend times", t.size - 1)

    def pieces(i: int, begin: float, end: float) -> _Pieces:
        blend, total = float(tb[i]), end - begin
        if blend < MIN_SEGMENT or total - 2.0 * blend < MIN_SEGMENT:
            raise TrajectoryError(
                f"segment {i + 1} lasts {total:g} s with a blend time of {blend:g} s, expected "
                f"0 < 2 blend_time < {total:g} s"
            )
        a = (p[i + 1] - p[i]) / (blend * (total - blend))
        ramp = 0.5 * a * blend**2
        low, high = p[i] + ramp, p[i + 1] - ramp
        return [
            (begin + blend, np.array([p[i], 0.0 * a, ramp])),
            (end - blend, linear(low, high)),
            (end, np.array([high, 2.0 * ramp, -ramp])),
        ]

    return _assemble(t, p, pieces, caspr_time_step)


def caspr_times(times: npt.ArrayLike, time_step: float) -> Array:
    """Return the instants at which CASPR evaluates a trajectory, shape (s,), [s].

    Every segment is sampled at ``t_i, t_i + dt, ...`` up to its end; the first sample of later
    segments is dropped. CASPR's last sample of a segment carries the knot although its time may
    be earlier than the knot's.

    Raises:
        TrajectoryError: As `linear_spline`.
    """
    t = check_knot_times(times)
    ends = _sampled_ends(t, time_step)
    samples = [np.zeros(1)]
    for begin, end in zip(t[:-1], ends, strict=True):
        steps = round((end - begin) / time_step)
        samples.append(begin + time_step * np.arange(1, steps + 1))
    return np.concatenate(samples)


# Knots -----------------------------------------------------------------------------------------


def check_knot_times(times: npt.ArrayLike) -> Array:
    """Return knot times, shape (k,), k >= 2, strictly increasing from 0. Raises an error else."""
    t = check_vector(times, "times")
    if t.size < 2:
        raise TrajectoryError("there is 1 knot, expected at least 2")
    if t[0] != 0.0:
        raise TrajectoryError(f"the first knot is at {t[0]:g} s, expected 0")
    short = np.flatnonzero(np.diff(t) < MIN_SEGMENT)
    if short.size:
        i = int(short[0])
        raise TrajectoryError(
            f"knot {i + 2} is at {t[i + 1]:g} s, knot {i + 1} at {t[i]:g} s, expected strictly "
            f"increasing times at least {MIN_SEGMENT:g} s apart"
        )
    return t


def check_knots(times: npt.ArrayLike, points: npt.ArrayLike) -> tuple[Array, Array]:
    """Return times, shape (k,), and points, shape (k, n), both checked. Raises an error else."""
    t = check_knot_times(times)
    return t, _matrix(points, "points", t.size, None)


def _like(values: npt.ArrayLike, points: Array, what: str) -> Array:
    return _matrix(values, what, points.shape[0], points.shape[1])


def _matrix(values: npt.ArrayLike, what: str, rows: int, columns: int | None) -> Array:
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise TrajectoryError(f"{what}: expected rows of numbers, all equally long") from None
    wanted = f"({rows}, {'n' if columns is None else columns})"
    if array.ndim != 2 or array.shape[0] != rows or array.shape[1] != (columns or array.shape[1]):
        raise TrajectoryError(f"{what} have shape {array.shape}, expected {wanted}")
    if array.shape[1] == 0:
        raise TrajectoryError(f"{what} are empty, expected shape {wanted} with n >= 1")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array).all(axis=1)))
        raise TrajectoryError(f"{what} of knot {row + 1} are {array[row]}, expected finite")
    return array


def _sampled_ends(t: Array, time_step: float) -> list[float]:
    """Last sample of every segment, [s]."""
    dt = check_number(time_step, "time step")
    if dt < MIN_SEGMENT:
        raise TrajectoryError(f"time step is {dt:g} s, expected at least {MIN_SEGMENT:g} s")
    ends: list[float] = []
    for i in range(t.size - 1):
        # the sum of two rounding errors must not cost a sample, as in MATLAB's colon operator
        steps = math.floor((t[i + 1] - t[i]) / dt + 1e-9)
        if steps < 1:
            raise TrajectoryError(
                f"time step is {dt:g} s, expected at most {t[i + 1] - t[i]:g} s, the duration "
                f"of segment {i + 1}"
            )
        end = float(t[i]) + steps * dt
        ends.append(float(t[i + 1]) if t[i + 1] - end < 1e-9 else end)
    return ends


def _assemble(
    t: Array,
    p: Array,
    pieces: Callable[[int, float, float], _Pieces],
    caspr_time_step: float | None,
) -> PiecewisePolynomial:
    """Put the pieces of all segments together; where CASPR has no sample, wait for the knot."""
    ends = t[1:].tolist() if caspr_time_step is None else _sampled_ends(t, caspr_time_step)
    breaks: list[float] = [0.0]
    coefficients: list[Array] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for i, end in enumerate(ends):
            made = pieces(i, float(t[i]), end)
            if end < t[i + 1] and i + 1 < len(ends):
                made.append((float(t[i + 1]), p[i + 1 : i + 2]))
            for until, c in made:
                breaks.append(until)
                coefficients.append(np.pad(c, ((0, ORDER - c.shape[0]), (0, 0))))
    # at a knot CASPR's sample belongs to the segment that ends there
    side: Literal["left", "right"] = "right" if caspr_time_step is None else "left"
    return PiecewisePolynomial(breaks, np.array(coefficients), side=side)


def spline(
    kind: SplineKind,
    times: Sequence[float] | Array,
    points: npt.ArrayLike,
    *,
    velocities: npt.ArrayLike | None = None,
    accelerations: npt.ArrayLike | None = None,
    blend_times: float | npt.ArrayLike | None = None,
    caspr_time_step: float | None = None,
) -> PiecewisePolynomial:
    """Build a spline of a named kind; what a kind does not use must be None.

    Args:
        kind: ``linear``, ``cubic``, ``cubic_average_velocity`` (of `velocities` only the first
            and the last row count), ``quintic`` or ``parabolic_blend``.
        times: Knots, shape (k,), [s].
        points: Shape (k, n).
        velocities: Shape (k, n); zero if not given.
        accelerations: Shape (k, n), quintic only; zero if not given.
        blend_times: parabolic_blend only, see there.
        caspr_time_step: See `linear_spline`.

    Raises:
        TrajectoryError: As the functions of the kinds, or an argument that the kind has no use
            for, or lacks.
    """
    if kind not in get_args(SplineKind):
        raise TrajectoryError(f"no spline kind {kind!r}, expected one of {get_args(SplineKind)}")
    used = {"cubic": "v", "cubic_average_velocity": "v", "quintic": "va", "parabolic_blend": "b"}
    given = {"velocities": velocities, "accelerations": accelerations, "blend_times": blend_times}
    for name, value in given.items():
        if value is not None and name[0] not in used.get(kind, ""):
            raise TrajectoryError(f"a {kind} spline has no {name}")
    step = caspr_time_step
    if kind == "linear":
        return linear_spline(times, points, caspr_time_step=step)
    if kind == "quintic":
        return quintic_spline(times, points, velocities, accelerations, caspr_time_step=step)
    if kind == "parabolic_blend":
        if blend_times is None:
            raise TrajectoryError("a parabolic blend needs blend_times")
        return parabolic_blend(times, points, blend_times, caspr_time_step=step)
    t, p = check_knots(times, points)
    v = np.zeros_like(p) if velocities is None else _like(velocities, p, "velocities")
    if kind == "cubic":
        return cubic_spline(t, p, v, caspr_time_step=step)
    if kind == "cubic_average_velocity":
        return cubic_average_spline(t, p, v[0], v[-1], caspr_time_step=step)
    assert_never(kind)
