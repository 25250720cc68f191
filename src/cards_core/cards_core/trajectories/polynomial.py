"""Piecewise polynomials: the one form that all splines and point-to-point motions take.

In piece i, which lasts from ``b_i`` to ``b_{i+1} = b_i + T_i``, with the normalised time
``s = (t - b_i) / T_i`` in [0, 1]::

    y   = sum_j c_ij s^j,   yd = 1/T_i dy/ds,   ydd = 1/T_i^2 d2y/ds2,   j = 0..5

Normalised time keeps the coefficients well conditioned however late the piece begins.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cards_core.trajectories.base import (
    MAX_DURATION,
    Reference,
    Sample,
    TrajectoryError,
    check_duration,
    check_times,
    check_vector,
)
from cards_core.typing import Array

ORDER = 6
"""Number of coefficients of a piece."""

DURATION_RATIO = 1.875
"""Maximum speed of a minimum-jerk motion, divided by its average speed (15/8)."""


class PiecewisePolynomial(Reference):
    """Polynomials up to degree five, one after the other.

    A call costs one binary search and one product of 6 powers with a (6, 3 size) matrix; the
    arrays it returns are fresh.

    Args:
        breaks: Times b_i, shape (k + 1,), strictly increasing from 0, [s].
        coefficients: c_ij, shape (k, d + 1, size) with d <= 5, lowest power first.
        side: Which piece speaks at an inner break: the one that begins there (``right``) or the
            one that ends there (``left``).

    Attributes:
        find: Function of the inner breaks and t that gives the index of the piece in charge.

    Raises:
        TrajectoryError: Shapes do not fit, times do not increase, or a number is not finite.
    """

    def __init__(
        self,
        breaks: npt.ArrayLike,
        coefficients: npt.ArrayLike,
        *,
        side: Literal["left", "right"] = "right",
    ) -> None:
        if side not in ("left", "right"):
            raise TrajectoryError(f"no side {side!r}, expected left or right")
        b = check_vector(breaks, "breaks")
        c = np.asarray(coefficients, dtype=float)
        if c.ndim != 3 or c.shape[0] != b.size - 1 or not 1 <= c.shape[1] <= ORDER:
            raise TrajectoryError(
                f"coefficients have shape {c.shape}, expected ({b.size - 1}, 1..{ORDER}, size)"
            )
        if b[0] != 0.0 or np.any(np.diff(b) <= 0.0):
            raise TrajectoryError(f"times are {b}, expected strictly increasing from 0")
        if b[-1] > MAX_DURATION:
            raise TrajectoryError(f"last time is {b[-1]:g} s, expected at most {MAX_DURATION:g} s")
        super().__init__(c.shape[2], float(b[-1]), b.tolist())
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            rate = 1.0 / np.diff(b)
            self._matrices = _with_derivatives(c, rate)
            if not np.isfinite(self._matrices).all():
                raise TrajectoryError("numbers too large or times too close: not finite")
        # lists, because indexing them is several times faster than indexing arrays
        self._starts: list[float] = b.tolist()
        self._rates: list[float] = rate.tolist()
        self._rows: list[Array] = list(self._matrices)
        self._inner = self._starts[1:-1]
        self.find: Callable[[list[float], float], int] = (
            bisect_right if side == "right" else bisect_left
        )
        self._side: Literal["left", "right"] = side
        self._first = c[0, 0].copy()
        self._last = c[-1].sum(axis=0)
        self._scalars: list[tuple[float, ...]] = []
        if self.size == 1:
            padded = np.zeros((c.shape[0], ORDER))
            padded[:, : c.shape[1]] = c[:, :, 0]
            self._scalars = [tuple(row) for row in padded.tolist()]

    def __call__(self, t: float) -> Sample:
        """Return y, yd, ydd as fresh arrays of shape (size,)."""
        n = self.size
        if t < 0.0:
            return self._first.copy(), np.zeros(n), np.zeros(n)
        if t > self.duration:
            return self._last.copy(), np.zeros(n), np.zeros(n)
        i = self.find(self._inner, t)
        s = (t - self._starts[i]) * self._rates[i]
        s2 = s * s
        s3 = s2 * s
        out = np.array((1.0, s, s2, s3, s2 * s2, s3 * s2)).dot(self._rows[i])
        return out[:n], out[n : 2 * n], out[2 * n :]

    def sample(self, times: Sequence[float] | Array) -> Sample:
        """Return y, yd, ydd at ``times`` [s], shape (k,), as arrays of shape (k, size)."""
        instants = check_times(times)
        inside = np.clip(instants, 0.0, self.duration)
        i = np.searchsorted(self._inner, inside, side=self._side)
        s = (inside - np.array(self._starts)[i]) * np.array(self._rates)[i]
        powers = s[:, None] ** np.arange(ORDER)
        out = np.einsum("kj,kjn->kn", powers, self._matrices[i])
        out[instants != inside, self.size :] = 0.0
        return out[:, : self.size], out[:, self.size : 2 * self.size], out[:, 2 * self.size :]

    def select(self, indices: Sequence[int]) -> PiecewisePolynomial:
        """Return the polynomials of some of the coordinates, in the order of ``indices``."""
        c = self._matrices[:, :, : self.size]
        return PiecewisePolynomial(self._starts, c[:, :, list(indices)], side=self._side)

    def scalar(self, t: float) -> tuple[float, float, float]:
        """Return y, yd, ydd of a one-coordinate polynomial as floats, without arrays."""
        if t < 0.0:
            return self._scalars[0][0], 0.0, 0.0
        if t > self.duration:
            return float(self._last[0]), 0.0, 0.0
        i = self.find(self._inner, t)
        rate = self._rates[i]
        s = (t - self._starts[i]) * rate
        c0, c1, c2, c3, c4, c5 = self._scalars[i]
        y = c0 + s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5))))
        yd = c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))
        ydd = 2.0 * c2 + s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5))
        return y, yd * rate, ydd * rate * rate


class PointToPoint(PiecewisePolynomial):
    """Quintic from rest to rest, the minimum-jerk motion [Flash1985]_.

    ``y = start + (end - start) (10 s^3 - 15 s^4 + 6 s^5)``, ``s = t / duration``; the largest
    speed is ``15/8 |end - start| / duration``, at the middle.

    Args:
        start, end: Shape (n,).
        duration: [s], > 0.

    Raises:
        TrajectoryError: Sizes differ, a number is not finite, or the duration is not positive.
    """

    def __init__(
        self,
        start: Sequence[float] | Array,
        end: Sequence[float] | Array,
        duration: float,
    ) -> None:
        first = check_vector(start, "start")
        last = check_vector(end, "end", first.size)
        length = check_duration(duration)
        zero = np.zeros(first.size)
        with np.errstate(over="ignore", invalid="ignore"):
            c = quintic((first, zero, zero), (last, zero, zero), length)
        super().__init__([0.0, length], [c])


State: TypeAlias = tuple[Array, Array, Array]
"""Value, velocity and acceleration at a knot, shape (n,) each."""


def quintic(start: State, end: State, duration: float) -> Array:
    """Return the quintic with given value, velocity and acceleration at both ends.

    Args:
        start: At s = 0; velocity and acceleration with respect to time in [s].
        end: At s = 1.
        duration: T, [s].

    Returns:
        Coefficients over normalised time, lowest power first, shape (6, n).
    """
    # a product, because Python's power raises where NumPy's product becomes infinite
    square = duration * duration
    p0, v0, a0 = start[0], start[1] * duration, start[2] * square
    p1, v1, a1 = end[0], end[1] * duration, end[2] * square
    d = p1 - p0
    return np.array(
        [
            p0,
            v0,
            0.5 * a0,
            10.0 * d - 6.0 * v0 - 4.0 * v1 - 1.5 * a0 + 0.5 * a1,
            -15.0 * d + 8.0 * v0 + 7.0 * v1 + 1.5 * a0 - a1,
            6.0 * d - 3.0 * (v0 + v1) - 0.5 * (a0 - a1),
        ]
    )


def cubic(p0: Array, v0: Array, p1: Array, v1: Array, duration: float) -> Array:
    """Return the cubic with given value and velocity at both ends, as `quintic`, shape (4, n)."""
    d = p1 - p0
    v0, v1 = v0 * duration, v1 * duration
    return np.array([p0, v0, 3.0 * d - 2.0 * v0 - v1, v0 + v1 - 2.0 * d])


def linear(p0: Array, p1: Array) -> Array:
    """Return the straight line between two points, as `quintic`, shape (2, n)."""
    return np.array([p0, p1 - p0])


def _with_derivatives(c: Array, rate: Array) -> Array:
    """Put the coefficients of y, yd and ydd side by side: (k, d, n) -> (k, 6, 3 n)."""
    k, d, n = c.shape
    out = np.zeros((k, ORDER, 3 * n))
    r = rate[:, None, None]
    power = np.arange(d)[None, :, None]
    first = (c * power)[:, 1:]
    second = (first * power[:, : first.shape[1]])[:, 1:]
    out[:, :d, :n] = c
    out[:, : first.shape[1], n : 2 * n] = first * r
    out[:, : second.shape[1], 2 * n :] = second * r**2
    return out
