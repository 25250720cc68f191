"""Curves of Millard 2012: chains of quintic Bezier curves, as OpenSim has them.

A corner between two lines is a curve of six control points, two of them at each end and two on
each line at a share c of the way to where the lines meet (c is 0.1 + 0.8 times OpenSim's
"curviness"). x(u) and y(u) are polynomials of degree 5; y at x needs the u with x(u) = x, which
Newton's method finds from a polynomial fit of u in three steps, to 1e-12. Beyond the ends curves
are straight.

Source: [Millard2013]_.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from cards_core.muscles.actuators.activation import ThelenActivation
from cards_core.muscles.actuators.arithmetic import Arithmetic, Real, clip, increasing_root
from cards_core.typing import Array

Corner: TypeAlias = tuple[float, float, float]
"""x, y and slope of a line at one end of a corner."""

NEWTON_STEPS = 3
"""From the fitted u."""

INVERSE_STEPS = 5
"""Iterations for the tendon's length at a force."""

_GUESS_DEGREE = 7

_TO_POWERS = np.array(
    [
        [1, 0, 0, 0, 0, 0],
        [-5, 5, 0, 0, 0, 0],
        [10, -20, 10, 0, 0, 0],
        [-10, 30, -30, 10, 0, 0],
        [5, -20, 30, -20, 5, 0],
        [-1, 5, -10, 10, -5, 1],
    ],
    dtype=float,
)
"""Control points to coefficients of 1, u, ..., u^5."""


def corner(start: Corner, end: Corner, curviness: float) -> tuple[Array, Array]:
    """Return the control points x and y, shape (6,) each, of a corner between two lines.

    Args:
        start: Where the curve begins.
        end: Where it ends.
        curviness: OpenSim's, 0 to 1.
    """
    share = 0.1 + 0.8 * curviness
    (x0, y0, slope0), (x1, y1, slope1) = start, end
    if abs(slope0 - slope1) > math.sqrt(np.finfo(float).eps):
        xc = (y1 - y0 - x1 * slope1 + x0 * slope0) / (slope0 - slope1)
    else:
        xc = 0.5 * (x0 + x1)
    yc = (xc - x1) * slope1 + y1
    a, b = x0 + share * (xc - x0), x1 + share * (xc - x1)
    c, d = y0 + share * (yc - y0), y1 + share * (yc - y1)
    return np.array([x0, a, a, b, b, x1]), np.array([y0, c, c, d, d, y1])


class BezierCurve:
    """A function y(x) of Bezier curves side by side, straight beyond its ends.

    Args:
        corners: Control points of each, from left to right.
        slopes: Below the first and above the last.
    """

    def __init__(
        self, corners: Sequence[tuple[Array, Array]], slopes: tuple[float, float]
    ) -> None:
        self._starts = [float(x[0]) for x, _ in corners]
        self._start, self._end = self._starts[0], float(corners[-1][0][-1])
        self._slopes = slopes
        self._x = [_TO_POWERS @ x for x, _ in corners]
        self._y = [_TO_POWERS @ y for _, y in corners]
        self._spans = [float(x[-1] - x[0]) for x, _ in corners]
        self._guess = [_guess(x, span) for x, span in zip(self._x, self._spans, strict=True)]

    def at(self, m: Arithmetic, x: Real) -> tuple[Real, Real, Real]:
        """Return value, slope and curvature.

        Args:
            m: Functions of real arguments.
            x: Shape (n,).
        """
        inside = clip(m, x, self._start, self._end)
        right = self._right_of(m, inside)
        start = _pick(self._starts, right)
        span = _pick(self._spans, right)
        cx = [_pick([c[k] for c in self._x], right) for k in range(1, 6)]
        cy = [_pick([c[k] for c in self._y], right) for k in range(6)]
        guess = [_pick([c[k] for c in self._guess], right) for k in range(_GUESS_DEGREE + 1)]
        way = inside - start
        u = clip(m, _horner(guess, way / span), 0.0, 1.0)
        for _ in range(NEWTON_STEPS):
            value, slope = u * _horner(cx, u), _horner([(k + 1) * c for k, c in enumerate(cx)], u)
            u = clip(m, u - (value - way) / slope, 0.0, 1.0)
        dx = _horner([(k + 1) * c for k, c in enumerate(cx)], u)
        ddx = _horner([(k + 1) * k * cx[k] for k in range(1, 5)], u)
        dy = _horner([k * cy[k] for k in range(1, 6)], u)
        ddy = _horner([k * (k - 1) * cy[k] for k in range(2, 6)], u)
        value, slope = _horner(cy, u), dy / dx
        bend = (ddy - slope * ddx) / (dx * dx)
        value = value + self._slopes[0] * m.minimum(x - self._start, 0.0)
        value = value + self._slopes[1] * m.maximum(x - self._end, 0.0)
        slope = m.where(
            x < self._start, self._slopes[0], m.where(x > self._end, self._slopes[1], slope)
        )
        bend = m.where(x < self._start, 0.0, m.where(x > self._end, 0.0, bend))
        return value, slope, bend

    def _right_of(self, m: Arithmetic, x: Real) -> list[Real]:
        """Return 1 for each inner boundary that x is at or right of, else 0."""
        return [m.where(x < start, 0.0, 1.0) for start in self._starts[1:]]


def _pick(values: Sequence[float], right: Sequence[Real]) -> Real:
    """Return, of one value per corner, that of the corner that x is in: a sum of steps."""
    out: Real = float(values[0])
    for before, after, passed in zip(values[:-1], values[1:], right, strict=True):
        out = out + (float(after) - float(before)) * passed
    return out


def _horner(coefficients: Sequence[Real], u: Real) -> Real:
    out = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        out = out * u + c
    return out


def _guess(x: Array, span: float) -> Array:
    """Fit u as a polynomial of (x(u) - x0)/span; shape (degree + 1,)."""
    u = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, 201))
    way = np.polynomial.polynomial.polyval(u, np.concatenate([[0.0], x[1:]])) / span
    return np.polynomial.polynomial.polyfit(way, u, _GUESS_DEGREE)


class Millard2012(ThelenActivation):
    """Curves of Millard et al. in OpenSim's form; other numbers are OpenSim's defaults.

    Args:
        active: Of the active force-length curve: lengths where it starts, bends and ends,
            smallest value, slope behind the bend.
        passive: Of the passive curve: strains where it starts and at F0, slopes of its foot and
            at F0, curviness. A slope at F0 of None is two over the difference of the strains.
        lengthening_force: Largest value of the force-velocity curve.
    """

    strain = 0.049
    activation_time = 0.010
    deactivation_time = 0.040
    iterations = 6
    active_numbers = (0.4441, 0.73, 1.8123, 0.1, 0.8616)
    passive_numbers = (0.0, 0.7, 0.2, None, 0.75)

    _stiffest, _toe_force = 1.375, 2.0 / 3.0  # of the tendon, for a strain of 1

    def __init__(
        self,
        active: tuple[float, ...] = active_numbers,
        passive: tuple[float, float, float, float | None, float] = passive_numbers,
        lengthening_force: float = 1.4,
    ) -> None:
        self._active = _active(*active)
        self._passive = _passive(*passive)
        self._velocity = _velocity(lengthening_force)
        self._tendon = _tendon(self._stiffest, self._toe_force)

    def tendon_stiffness(self, strain: float) -> float:
        """Return the slope of the linear part."""
        return self._stiffest / strain

    def tendon(
        self, m: Arithmetic, length: Real, strain: Real, stiffness: Real
    ) -> tuple[Real, Real]:
        """Force and slope at a length; see `DeGroote2016.tendon`."""
        del stiffness
        force, slope, _ = self._tendon.at(m, (length - 1.0) / strain)
        return m.maximum(force, 0.0), slope / strain

    def tendon_length(self, m: Arithmetic, force: Real, strain: Real, stiffness: Real) -> Real:
        """Length at a force >= 0; see `DeGroote2016.tendon_length`."""
        del stiffness
        curved = m.minimum(force, self._toe_force)
        end = 0.0 * force + self._tendon_end

        def residual(stretch: Real) -> tuple[Real, Real, Real]:
            value, slope, bend = self._tendon.at(m, stretch)
            return value - curved, m.maximum(slope, 1e-9), bend

        start = end * m.sqrt(curved / self._toe_force)
        stretch = increasing_root(m, residual, start, (0.0 * force, end), INVERSE_STEPS)
        return 1.0 + strain * (stretch + m.maximum(force - self._toe_force, 0.0) / self._stiffest)

    @property
    def _tendon_end(self) -> float:
        return 1.0 - (1.0 - self._toe_force) / self._stiffest

    def active(self, m: Arithmetic, length: Real) -> tuple[Real, Real]:
        """Active force-length curve."""
        return self._active.at(m, length)[:2]

    def passive(self, m: Arithmetic, length: Real) -> tuple[Real, Real]:
        """Passive force-length curve; zero up to the optimal length."""
        return self._passive.at(m, length)[:2]

    def velocity(self, m: Arithmetic, velocity: Real, activation: Real) -> tuple[Real, Real, Real]:
        """Force-velocity curve and two derivatives; arguments as of `DeGroote2016.velocity`."""
        del activation
        return self._velocity.at(m, velocity)


def _active(low: float, bend: float, high: float, floor: float, slope: float) -> BezierCurve:
    """Active force-length curve: zero force at ``low`` and ``high``, steep up to ``bend``."""
    delta = 0.05
    shoulder = 1.0 - delta
    y1 = 1.0 - slope * (shoulder - bend)
    steep = 1.25 * y1 / (bend - low)
    x01, y01 = low + 0.5 * (bend - low), 0.5 * y1
    x1s, y1s = bend + 0.5 * (shoulder - bend), y1 + 0.5 * (1.0 - y1)
    x23 = (1.0 + delta) + 0.5 * (high - 1.0 - delta)
    fall = -1.0 / (high - 1.0 - 2.0 * delta)
    points = [
        (low, floor, 0.0), (x01, y01, steep), (x1s, y1s, slope), (1.0, 1.0, 0.0),
        (x23, 0.5, fall), (high, floor, 0.0),
    ]  # fmt: skip
    corners = [corner(a, b, 1.0) for a, b in itertools.pairwise(points)]
    return BezierCurve(corners, (0.0, 0.0))


def _passive(
    start: float, strain: float, gentle: float, steep: float | None, curviness: float
) -> BezierCurve:
    """Passive force-length curve that leaves 0 at a strain and has force 1 at another."""
    slope = 2.0 / (strain - start) if steep is None else steep
    delta = min(0.1 / slope, 0.1 * (strain - start))
    x_low = 1.0 + start + delta
    y_low = gentle * 0.5 * delta
    corners = [
        corner((1.0 + start, 0.0, 0.0), (x_low, y_low, gentle), curviness),
        corner((x_low, y_low, gentle), (1.0 + strain, 1.0, slope), curviness),
    ]
    return BezierCurve(corners, (0.0, slope))


def _velocity(largest: float) -> BezierCurve:
    """Force-velocity curve between velocities -1 and 1."""
    near_slow, near_fast, still = 0.25, 0.15, 5.0
    slow = (-0.9, 0.5 * near_slow * 0.1, near_slow)
    fast = (0.9, largest - 0.5 * near_fast * 0.1, near_fast)
    corners = [
        corner((-1.0, 0.0, 0.0), slow, 0.6),
        corner(slow, (0.0, 1.0, still), 0.6),
        corner((0.0, 1.0, still), fast, 0.9),
        corner(fast, (1.0, largest, 0.0), 0.9),
    ]
    return BezierCurve(corners, (0.0, 0.0))


def _tendon(stiffest: float, toe: float) -> BezierCurve:
    """Tendon curve of strain over the nominal strain."""
    x_toe = 1.0 + (toe - 1.0) / stiffest
    x_foot = x_toe / 10.0
    middle = 1.0 + (0.5 * toe - 1.0) / stiffest
    slope = 0.5 * toe / (middle - x_foot)
    x_control = x_foot + 0.5 * (middle - x_foot)
    control = (x_control, slope * (x_control - x_foot), slope)
    corners = [
        corner((0.0, 0.0, 0.0), control, 0.5),
        corner(control, (x_toe, toe, stiffest), 0.5),
    ]
    return BezierCurve(corners, (0.0, stiffest))
