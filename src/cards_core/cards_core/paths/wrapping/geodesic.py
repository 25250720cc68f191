"""Geodesics and how their ends move when their starts do.

A geodesic from ``x`` along the unit tangent ``t`` solves ``x' = t``, ``t' = -k_t n``. Neighbouring
geodesics differ by a displacement ``w b`` with the Jacobi equation ``w'' = -K w``,
``K = k_t k_b - tau^2``: the solutions ``a`` (start moved along b, direction carried along) and
``r`` (direction turned) tell how the end moves, without a second integration [Scholz2016]_.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cards_core.paths.wrapping.surfaces import Surface, TorusSurface
from cards_core.typing import Array, Vector3

MAX_STEPS = 96
"""Most integration steps of one geodesic."""

PIECES, HALVINGS, EDGE = 8, 60, 1e-13
"""Of a step on the hull of a torus: most pieces, most steps to the edge of a disc, and how near
it that has to come, see `_edge`."""


def _cooper_verner() -> tuple[Array, Array]:
    """Matrix and weights of an explicit Runge-Kutta method of order 8 [CooperVerner1972]_."""
    q = math.sqrt(21.0)
    rows: list[list[float]] = [
        [],
        [1 / 2],
        [1 / 4, 1 / 4],
        [1 / 7, (-7 - 3 * q) / 98, (21 + 5 * q) / 49],
        [(11 + q) / 84, 0, (18 + 4 * q) / 63, (21 - q) / 252],
        [(5 + q) / 48, 0, (9 + q) / 36, (-231 + 14 * q) / 360, (63 - 7 * q) / 80],
        [
            (10 - q) / 42,
            0,
            (-432 + 92 * q) / 315,
            (633 - 145 * q) / 90,
            (-504 + 115 * q) / 70,
            (63 - 13 * q) / 35,
        ],
        [1 / 14, 0, 0, 0, (14 - 3 * q) / 126, (13 - 3 * q) / 63, 1 / 9],
        [
            1 / 32,
            0,
            0,
            0,
            (91 - 21 * q) / 576,
            11 / 72,
            (-385 - 75 * q) / 1152,
            (63 + 13 * q) / 128,
        ],
        [
            1 / 14,
            0,
            0,
            0,
            1 / 9,
            (-733 - 147 * q) / 2205,
            (515 + 111 * q) / 504,
            (-51 - 11 * q) / 56,
            (132 + 28 * q) / 245,
        ],
        [
            0,
            0,
            0,
            0,
            (-42 + 7 * q) / 18,
            (-18 + 28 * q) / 45,
            (-273 - 53 * q) / 72,
            (301 + 53 * q) / 72,
            (28 - 28 * q) / 45,
            (49 - 7 * q) / 18,
        ],
    ]
    matrix = np.zeros((11, 11))
    for i, row in enumerate(rows):
        matrix[i, : len(row)] = row
    weights = np.zeros(11)
    weights[[0, 7, 8, 9, 10]] = 1 / 20, 49 / 180, 16 / 45, 49 / 180, 1 / 20
    return matrix, weights


MATRIX, WEIGHTS = _cooper_verner()


@dataclass(eq=False)
class Geodesic:
    """Result of `trace`.

    Attributes:
        start, end: Points, shape (3,), [m].
        start_tangent, end_tangent: Unit vectors, shape (3,).
        length: Arc length, [m].
        angle: Integral of ``|k_t|``: by how much the direction turns, [rad].
        jacobi: a, a', r, r' at the end.
    """

    start: Vector3
    start_tangent: Vector3
    end: Vector3
    end_tangent: Vector3
    length: float
    angle: float
    jacobi: Array


def _rate(surface: Surface, state: Array) -> Array:
    """Derivative of (x, t, a, a', r, r', angle) with respect to arc length."""
    t = state[3:6]
    n, k_t, tau, k_b = surface.curvature(state[:3], t)
    gauss = k_t * k_b - tau * tau
    out = np.empty(11)
    out[:3] = t
    out[3:6] = -k_t * n
    out[6], out[7] = state[7], -gauss * state[6]
    out[8], out[9] = state[9], -gauss * state[8]
    out[10] = abs(k_t)
    return out


def trace(surface: Surface, start: Vector3, tangent: Vector3, length: float) -> Geodesic:
    """Follow a geodesic.

    Args:
        surface: What it runs on.
        start: On the surface, shape (3,), [m].
        tangent: Unit tangent there, shape (3,).
        length: Arc length, may be negative, [m].
    """
    state = initial_state(start, tangent)
    count = min(max(math.ceil(abs(length) / surface.step), 1), MAX_STEPS)
    h = length / count
    for _ in range(count):
        state = step(surface, state, h)
    end_tangent = state[3:6] / np.linalg.norm(state[3:6])
    return Geodesic(
        start, tangent, state[:3], end_tangent, length, abs(float(state[10])), state[6:10]
    )


def initial_state(start: Vector3, tangent: Vector3) -> Array:
    """Return (x, t, a, a', r, r', angle) at the start of a geodesic, shape (11,)."""
    return np.concatenate([start, tangent, [1.0, 0.0, 0.0, 1.0, 0.0]])


def step(surface: Surface, state: Array, h: float) -> Array:
    """Return the state, see `initial_state`, further along a geodesic, shape (11,).

    Args:
        surface: What it runs on.
        state: Shape (11,).
        h: Arc length, [m]; one step of the integration.
    """
    if isinstance(surface, TorusSurface) and surface.closed:
        return _closed_step(surface, state, h)
    return _step(surface, state, h)


def _step(surface: Surface, state: Array, h: float) -> Array:
    stages = np.zeros((11, 11))
    for i in range(11):
        stages[i] = _rate(surface, state + h * (MATRIX[i, :i] @ stages[:i]))
    return np.asarray(state + h * (WEIGHTS @ stages))


def _closed_step(surface: TorusSurface, state: Array, h: float) -> Array:
    """Step on the hull of a torus, in pieces: the curvature jumps at the edges of its discs."""
    sense = math.copysign(1.0, h)
    for _ in range(PIECES):
        level, rate = _edge(surface, state)
        if level < -EDGE or (level < EDGE and sense * rate < 0.0):
            towards = -0.5 * sense * rate * surface.radius**2
            ahead = towards + math.sqrt(max(towards**2 - level * surface.radius**2, 0.0))
            piece = sense * min(ahead, abs(h))
            state = state.copy()
            state[:3] += piece * state[3:6]
            state[[6, 8]] += piece * state[[7, 9]]
        else:
            piece, after = _to_disc(surface, state, h)
            rate_after = _edge(surface, after)[1]
            if piece == h and sense * rate < 0.0 < sense * rate_after:
                # it came back; where it was nearest it may have been on the disc
                nearest = h * rate / (rate - rate_after)
                found = _to_disc(surface, state, nearest)
                if found[0] != nearest:
                    piece, after = found
            state = after
        h -= piece
        if h == 0.0:
            break
    return state


def _edge(surface: TorusSurface, state: Array) -> tuple[float, float]:
    """Return ``rho^2 / R^2 - 1`` with the distance rho from the axis, and its slope [1/m]."""
    square = surface.radius**2
    level = (state[0] ** 2 + state[1] ** 2) / square - 1.0
    return float(level), 2.0 * float(state[0] * state[3] + state[1] * state[4]) / square


def _to_disc(surface: TorusSurface, start: Array, h: float) -> tuple[float, Array]:
    """Step along the tube by h, or only to where that gets onto a disc; return how far."""
    tube = TorusSurface(surface.radius, surface.tube_radius)
    piece, state = h, _step(tube, start, h)
    level, rate = _edge(surface, state)
    if level >= 0.0:
        return h, state
    outside, inside = 0.0, h
    for _ in range(HALVINGS):
        if abs(level) < EDGE:
            break
        outside, inside = (outside, piece) if level < 0.0 else (piece, inside)
        newton = piece - level / rate if rate else outside
        between = min(outside, inside) < newton < max(outside, inside)
        piece = newton if between else 0.5 * (outside + inside)
        state = _step(tube, start, piece)
        level, rate = _edge(surface, state)
    return piece, state


def sample(surface: Surface, geodesic: Geodesic, count: int) -> Array:
    """Return ``count`` >= 2 points along a geodesic, evenly spaced, shape (count, 3), [m].

    Args:
        surface: The surface.
        geodesic: The geodesic.
        count: Number of points.
    """
    points = np.empty((count, 3))
    points[0] = geodesic.start
    x, t = geodesic.start, geodesic.start_tangent
    for k in range(1, count):
        piece = trace(surface, x, t, geodesic.length / (count - 1))
        x, t = piece.end, piece.end_tangent
        points[k] = x
    return points
