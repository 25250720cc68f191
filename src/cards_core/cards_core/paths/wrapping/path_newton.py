"""Newton's method for a path over several surfaces that all touch.

Unknown per surface: the start x1 of its arc, the direction t1 there and the arc length s. With x2,
t2, n2, b2 the end of the geodesic, P the point before and Q the point after (a neighbour's x2 and
x1, or a fixed point), the straight pieces must be tangent to the geodesic:

    n1 . (x1 - P) = 0,   b1 . (x1 - P) = 0,   n2 . (Q - x2) = 0,   b2 . (Q - x2) = 0

each divided by the length of its straight piece, and none may turn back (a cusp):
t1 . (x1 - P) >= 0, t2 . (Q - x2) >= 0. A Newton step moves the start along t1 and b1,
turns the direction and changes s; what that does to x2 and its frame is known in closed form from
the curvature there and the Jacobi fields of the geodesic [Scholz2016]_.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cards_core.paths.wrapping.geodesic import Geodesic, trace
from cards_core.paths.wrapping.surfaces import Surface
from cards_core.typing import Array, Matrix3, Vector3

TOLERANCE = 1e-11
"""Largest residual [rad] of a solved path."""

ACCEPTABLE = 1e-8
"""Residual [rad] that will do where rounding allows no less: a length error of its square."""

MAX_ITERATIONS = 25
"""Newton steps before giving up."""

STEP_LIMITS = np.array([0.5, 0.5, 0.7, 0.5])
"""Longest Newton step along t1 and b1, relative to the size, in direction [rad], and in s."""


@dataclass(eq=False)
class Placed:
    """A surface and where it is: ``rotation``, ``translation`` map to the common frame."""

    surface: Surface
    rotation: Matrix3
    translation: Vector3

    def inward(self, x: Vector3) -> Vector3:
        """Return a point of the common frame in surface coordinates."""
        return np.asarray(self.rotation.T @ (x - self.translation))

    def outward(self, x: Vector3) -> Vector3:
        """Return a point of the surface in the common frame."""
        return np.asarray(self.rotation @ x + self.translation)


@dataclass(frozen=True, eq=False)
class Start:
    """Unknowns of one surface, in its coordinates: x1 [m], t1, s [m]."""

    point: Vector3
    tangent: Vector3
    length: float


def start_towards(surface: Surface, point: Vector3, length: float, p: Vector3) -> Start:
    """Return the start of an arc at ``point`` whose direction continues the line from ``p``.

    Args:
        surface: The surface.
        point: On the surface, in its frame, shape (3,), [m].
        length: Of the arc, [m].
        p: Point that the path comes from, same frame.
    """
    n = surface.normal(point)
    direction = point - p
    tangent = direction - float(direction @ n) * n
    norm = float(np.linalg.norm(tangent))
    if norm < 1e-9 * surface.size:
        tangent = np.cross(n, np.eye(3)[int(np.argmin(np.abs(n)))])
        norm = float(np.linalg.norm(tangent))
    return Start(point, tangent / norm, length)


def moved(surface: Surface, start: Start, step: Array) -> Start:
    """Apply a Newton step to the unknowns of a surface, and project them back onto it.

    Args:
        surface: The surface.
        start: The unknowns.
        step: Shape (4,): along t1 and along b1 = n x t1 [m], turn about the normal [rad], change
            of s [m].
    """
    t = start.tangent
    b = np.cross(surface.normal(start.point), t)
    point = surface.project(start.point + step[0] * t + step[1] * b)
    n = surface.normal(point)
    tangent = t + step[2] * b
    tangent = tangent - float(tangent @ n) * n
    return Start(point, tangent / np.linalg.norm(tangent), start.length + float(step[3]))


def _system(
    p: Vector3, q: Vector3, placed: Sequence[Placed], geodesics: Sequence[Geodesic]
) -> tuple[Array, Array]:
    """Residuals, shape (4k,), and their derivative with respect to the steps of `moved`."""
    count = len(placed)
    residual = np.zeros(4 * count)
    jacobian = np.zeros((4 * count, 4 * count))
    starts = [s.outward(g.start) for s, g in zip(placed, geodesics, strict=True)]
    ends = [s.outward(g.end) for s, g in zip(placed, geodesics, strict=True)]
    frames = []
    for s, g in zip(placed, geodesics, strict=True):
        pair = []
        for x, t in ((g.start, g.start_tangent), (g.end, g.end_tangent)):
            n, k_t, tau, k_b = s.surface.curvature(x, t)
            turn = s.rotation
            pair.append((turn @ t, turn @ n, turn @ np.cross(n, t), k_t, tau, k_b))
        frames.append(pair)
    for i in range(count):
        row = 4 * i
        t, n, b, k_t, tau, k_b = frames[i][0]
        d = starts[i] - (ends[i - 1] if i else p)
        scale = 1.0 / max(float(np.linalg.norm(d)), 1e-12)
        residual[row] = scale * float(n @ d)
        residual[row + 1] = scale * float(b @ d)
        d_t, d_n, d_b = float(t @ d), float(n @ d), float(b @ d)
        jacobian[row, row : row + 2] = k_t * d_t + tau * d_b, tau * d_t + k_b * d_b
        jacobian[row + 1, row : row + 3] = -tau * d_n, 1.0 - k_b * d_n, -d_t
        if i:
            before = _end_motion(frames[i - 1][1], geodesics[i - 1])
            jacobian[row, row - 4 : row] = -(n @ before)
            jacobian[row + 1, row - 4 : row] = -(b @ before)
        jacobian[row : row + 2] *= scale
        t, n, b, k_t, tau, k_b = frames[i][1]
        e = (starts[i + 1] if i + 1 < count else q) - ends[i]
        scale = 1.0 / max(float(np.linalg.norm(e)), 1e-12)
        residual[row + 2] = scale * float(n @ e)
        residual[row + 3] = scale * float(b @ e)
        e_t, e_n, e_b = float(t @ e), float(n @ e), float(b @ e)
        along = np.array([1.0, 0.0, 0.0, 1.0])
        a, a_rate, r, r_rate = geodesics[i].jacobi
        across = np.array([0.0, a, r, 0.0])
        turn_rate = np.array([0.0, a_rate, r_rate, 0.0])
        own = slice(row, row + 4)
        jacobian[row + 2, own] = along * (k_t * e_t + tau * e_b) + across * (tau * e_t + k_b * e_b)
        jacobian[row + 3, own] = -along * tau * e_n - turn_rate * e_t - across * (1.0 + k_b * e_n)
        if i + 1 < count:
            after_t, _, after_b = frames[i + 1][0][:3]
            jacobian[row + 2, row + 4 : row + 6] = float(n @ after_t), float(n @ after_b)
            jacobian[row + 3, row + 4 : row + 6] = float(b @ after_t), float(b @ after_b)
        jacobian[row + 2 : row + 4] *= scale
    return residual, jacobian


def _end_motion(
    frame: tuple[Vector3, Vector3, Vector3, float, float, float], geodesic: Geodesic
) -> Array:
    """Derivative of x2 with respect to the four steps, shape (3, 4)."""
    t, _, b = frame[:3]
    a, _, r, _ = geodesic.jacobi
    return np.column_stack([t, a * b, r * b, t])


def solve_path(
    p: Vector3, q: Vector3, placed: Sequence[Placed], starts: Sequence[Start]
) -> tuple[list[Geodesic], bool]:
    """Solve the tangency of all pieces, from a first guess.

    Args:
        p: Fixed point before, shape (3,), [m].
        q: Fixed point after, shape (3,), [m].
        placed: Surfaces in the order of the path, all touched.
        starts: First guess.

    Returns:
        The geodesics in surface coordinates and whether they solve the equations without a cusp.
        A negative length says that the path would leave the surface.
    """

    def follow(at: Sequence[Start]) -> list[Geodesic]:
        return [
            trace(s.surface, x.point, x.tangent, x.length) for s, x in zip(placed, at, strict=True)
        ]

    limits = np.concatenate(
        [STEP_LIMITS * [*[s.surface.size] * 2, 1.0, s.surface.size] for s in placed]
    )
    current = list(starts)
    geodesics = follow(current)
    residual, jacobian = _system(p, q, placed, geodesics)
    error = float(np.abs(residual).max())
    for _ in range(MAX_ITERATIONS):
        if not error > TOLERANCE:
            break
        newton = np.linalg.lstsq(jacobian, -residual, rcond=1e-13)[0]
        step = np.asarray(newton / max(1.0, float(np.max(np.abs(newton) / limits))), dtype=float)
        factor, accepted = 1.0, False
        while factor > 1e-3 and not accepted:
            tried = [
                moved(s.surface, x, factor * step[4 * i : 4 * i + 4])
                for i, (s, x) in enumerate(zip(placed, current, strict=True))
            ]
            tried_geodesics = follow(tried)
            tried_residual, tried_jacobian = _system(p, q, placed, tried_geodesics)
            tried_error = float(np.abs(tried_residual).max())
            accepted = tried_error < (1.0 - 0.1 * factor) * error
            if not accepted:
                factor *= 0.5
        if not accepted:
            break
        current, geodesics, error = tried, tried_geodesics, tried_error
        residual, jacobian = tried_residual, tried_jacobian
    return geodesics, error < ACCEPTABLE and not _turns_back(p, q, placed, geodesics)


def _turns_back(
    p: Vector3, q: Vector3, placed: Sequence[Placed], geodesics: Sequence[Geodesic]
) -> bool:
    """Return whether a straight piece runs against the arc at one of its ends."""
    before = p
    for i, (s, g) in enumerate(zip(placed, geodesics, strict=True)):
        last = i + 1 == len(placed)
        after = q if last else placed[i + 1].outward(geodesics[i + 1].start)
        into = float((s.rotation @ g.start_tangent) @ (s.outward(g.start) - before))
        before = s.outward(g.end)
        if into < 0.0 or float((s.rotation @ g.end_tangent) @ (after - before)) < 0.0:
            return True
    return False
