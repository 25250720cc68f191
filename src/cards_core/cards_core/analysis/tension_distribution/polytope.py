"""Distributions from the polytope of all tensions that work: its barycentre and other centres.

With N an orthonormal null space basis of A and f_0 = A^+ w, every solution of A f = w is

    f = f_0 + N x,   x in R^r,   f_min <= f_0 + N x <= f_max

and these 2m half-spaces bound a polytope. Its barycentre moves continuously with the pose, far
from all limits [Mikelsons2008]_, [Lamaury2013]_.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np
from scipy.linalg import lapack

from cards_core.analysis.tension_distribution.base import (
    RELATIVE_TOLERANCE,
    TENSION_TOLERANCE,
    TensionDistribution,
    null_space,
)
from cards_core.analysis.tension_distribution.programs import ProximalProgram
from cards_core.errors import CardsError
from cards_core.optimize.qp import QP_INFINITY
from cards_core.typing import Array

MAX_NEWTON = 60
"""Newton steps for the analytic centre; some ten are usual."""


class RedundancyError(CardsError):
    """A method that is only defined for less redundancy than the robot has."""


class _PolytopeMethod(TensionDistribution):
    """A method that works on x; muscles with equal limits are moved to the right-hand side."""

    needs_upper_limits: ClassVar[bool] = True

    def _distribute(self, matrix: Array, needed: Array) -> tuple[Array | None, int]:
        free = ~self._fixed
        low, high = self.tension_min, self.tension_max
        rest = needed
        if self._any_fixed:
            rest = needed - matrix[:, self._fixed] @ low[self._fixed]
            matrix, low, high = matrix[:, free], low[free], high[free]
        basis, inverse, _ = null_space(matrix)
        start = inverse @ rest
        missing = np.abs(matrix @ start - rest).max(initial=0.0)
        lever = float(np.abs(matrix).sum(axis=1).max(initial=0.0))
        if missing > TENSION_TOLERANCE * lever + RELATIVE_TOLERANCE * np.abs(needed).max():
            return None, 0
        if basis.shape[1] == 0:
            inside = (start >= low - TENSION_TOLERANCE) & (start <= high + TENSION_TOLERANCE)
            x, iterations = (np.zeros(0) if inside.all() else None), 0
        else:
            x, iterations = self._centre(basis, low - start, high - start)
        if x is None:
            return None, iterations
        tensions = self.tension_min.copy()
        tensions[free] = start + basis @ x
        return tensions, iterations

    @abstractmethod
    def _centre(self, basis: Array, low: Array, high: Array) -> tuple[Array | None, int]:
        """Return x with ``low <= N x <= high``, or None where there is none, and iterations."""


class Barycentre(_PolytopeMethod):
    """Centroid of the polytope: exact for redundancy r = 1 (interval) and r = 2 (polygon).

    Not for robots with more redundancy: centroids of polytopes with many facets are expensive.
    `AnalyticCentre` and `ChebyshevCentre` are for any redundancy. At a singular pose, where r is
    larger than elsewhere, the status is NOT_CONVERGED.

    Raises:
        RedundancyError: More than two muscles more than joint forces, not counting those whose
            limits are equal.
    """

    name: ClassVar[str] = "barycentre"

    def __init__(self, tension_min: Array, tension_max: Array, size: int) -> None:
        super().__init__(tension_min, tension_max, size)
        redundancy = int((~self._fixed).sum()) - size
        if redundancy > 2:
            raise RedundancyError(
                f"'barycentre' is exact for redundancy 1 and 2; here it is {redundancy}: "
                f"{size + redundancy} muscles for {size} joint forces (expected: "
                "'analytic_centre' or 'chebyshev_centre')"
            )

    def _centre(self, basis: Array, low: Array, high: Array) -> tuple[Array | None, int]:
        if basis.shape[1] == 1:
            ends = interval(basis[:, 0], low, high)
            return (None if ends is None else np.array([0.5 * (ends[0] + ends[1])])), 1
        if basis.shape[1] == 2:
            vertices = polygon(basis, low, high)
            return (None if vertices is None else centroid(vertices)), 1
        return None, 0


class ChebyshevCentre(_PolytopeMethod):
    """Centre of the largest ball inside the polytope: max s, |n_i| s from every facet.

        low_i + |n_i| s <= n_i' x <= high_i - |n_i| s

    with n_i the rows of N. A linear program, as `OptimallySafe` is, which measures the distance
    from the limits in N of tension instead, with one unit for all muscles. Where several balls
    fit, x of least norm, i.e. f nearest to A^+ w.
    """

    name: ClassVar[str] = "chebyshev_centre"

    def _centre(self, basis: Array, low: Array, high: Array) -> tuple[Array | None, int]:
        x, _, steps = chebyshev(basis, low, high)
        return x, steps


class AnalyticCentre(_PolytopeMethod):
    """argmax sum log(f_i - f_min_i) + log(f_max_i - f_i): a smooth function of the pose.

    Newton's method with line search from the Chebyshev centre; the answer is proven by the
    Newton decrement. Where the polytope has no inside, the Chebyshev centre.
    """

    name: ClassVar[str] = "analytic_centre"

    def _centre(self, basis: Array, low: Array, high: Array) -> tuple[Array | None, int]:
        x, radius, steps = chebyshev(basis, low, high)
        if x is None or radius <= TENSION_TOLERANCE:
            return x, steps
        for iteration in range(steps, steps + MAX_NEWTON):
            tensions = basis @ x
            above, below = 1.0 / (tensions - low), 1.0 / (high - tensions)
            gradient = basis.T @ (below - above)
            hessian = basis.T @ ((above * above + below * below)[:, None] * basis)
            _, step, info = lapack.dposv(hessian, -gradient)
            if info != 0:
                return x, iteration
            decrement = -float(gradient @ step)
            if decrement <= 1e-20:
                return x, iteration
            # damped Newton of self-concordant functions: always inside, always descends
            root = math.sqrt(decrement)
            x = x + (step if root < 0.25 else step / (1.0 + root))
        return x, iteration


def chebyshev(basis: Array, low: Array, high: Array) -> tuple[Array | None, float, int]:
    """Return centre and radius of the largest ball with ``low <= N x <= high``, and steps.

    The centre is None where the polytope is empty.

    Args:
        basis: N, shape (m, r).
        low: Shape (m,), [N].
        high: Shape (m,), [N].
    """
    m, r = basis.shape
    scale = max(1.0, float(np.abs(low).max()), float(np.abs(high).max()))
    program = ProximalProgram(r + 1, 2 * m, scale)
    norms = np.linalg.norm(basis, axis=1)
    # a row without authority must hold by itself
    moves = norms > 1e-12
    if np.any((low > TENSION_TOLERANCE) & ~moves) or np.any((high < -TENSION_TOLERANCE) & ~moves):
        return None, 0.0, 0
    norms = np.where(moves, norms, 0.0)
    qp = program.qp
    qp.matrix[:m, :r] = qp.matrix[m:, :r] = np.where(moves[:, None], basis, 0.0)
    qp.matrix[:m, r] = -norms
    qp.matrix[m:, r] = norms
    qp.row_lower[:m] = np.where(moves, low, -QP_INFINITY)
    qp.row_upper[m:] = np.where(moves, high, QP_INFINITY)
    qp.lower_bounds[r] = 0.0
    qp.upper_bounds[r] = 2.0 * scale
    program.set_cost(np.append(np.zeros(r), -1.0))
    x, steps = program.solve()
    if x is None:
        return None, 0.0, steps
    return x[:r], float(x[r]), steps


def interval(direction: Array, low: Array, high: Array) -> tuple[float, float] | None:
    """Return the ends of ``low <= direction x <= high``, x scalar; None if it is empty.

    Args:
        direction: Shape (m,).
        low: Shape (m,), [N].
        high: Shape (m,), [N].
    """
    start, end = -math.inf, math.inf
    for n, a, b in zip(direction.tolist(), low.tolist(), high.tolist(), strict=True):
        if abs(n) < 1e-12:
            if a > TENSION_TOLERANCE or b < -TENSION_TOLERANCE:
                return None
            continue
        first, last = (a / n, b / n) if n > 0.0 else (b / n, a / n)
        start, end = max(start, first), min(end, last)
    if start > end + TENSION_TOLERANCE:
        return None
    return start, end


def polygon(basis: Array, low: Array, high: Array) -> Array | None:
    """Return the vertices of ``low <= N x <= high``, x in the plane, in order; None if empty.

    The parallelogram of the two most different muscles is cut with the limits of all others
    (Sutherland and Hodgman's algorithm).

    Args:
        basis: N, shape (m, 2), rank 2.
        low: Finite, shape (m,).
        high: Finite, shape (m,).

    Returns:
        shape (k, 2); a degenerate polygon has vertices that coincide.
    """
    first = int(np.argmax(np.einsum("ij,ij->i", basis, basis)))
    n1, n2 = basis[first].tolist()
    second = int(np.argmax(np.abs(n1 * basis[:, 1] - n2 * basis[:, 0])))
    pair = np.array([basis[first], basis[second]])
    a, b, c, d = low[first], high[first], low[second], high[second]
    corners = np.linalg.solve(pair, np.array([[a, b, b, a], [c, c, d, d]])).T
    points: list[list[float]] = corners.tolist()
    rows = zip(basis.tolist(), low.tolist(), high.tolist(), strict=True)
    for i, (normal, below, above) in enumerate(rows):
        if i in (first, second):
            continue
        n1, n2 = normal
        points = _cut(points, n1, n2, above)
        points = _cut(points, -n1, -n2, -below)
        if not points:
            return None
    return np.array(points)


def _cut(points: list[list[float]], n1: float, n2: float, limit: float) -> list[list[float]]:
    """Keep the part of a convex polygon with ``n . x <= limit`` (and a rounding)."""
    heights = [n1 * x + n2 * y - limit for x, y in points]
    if not points:
        return points
    if max(heights) <= 0.0:
        return points
    if min(heights) > 0.0:
        # a polygon that touches the line by its nearest vertex stays as that vertex
        nearest = min(range(len(points)), key=heights.__getitem__)
        return [points[nearest]] if heights[nearest] <= 1e-9 * (1.0 + abs(limit)) else []
    kept: list[list[float]] = []
    before, height_before = points[-1], heights[-1]
    for point, height in zip(points, heights, strict=True):
        if (height > 0.0) != (height_before > 0.0):
            share = height_before / (height_before - height)
            kept.append([p + share * (q - p) for p, q in zip(before, point, strict=True)])
        if height <= 0.0:
            kept.append(point)
        before, height_before = point, height
    return kept


def centroid(vertices: Array) -> Array:
    """Return the centroid of a convex polygon, shape (k, 2); of its longest edge if it is flat."""
    origin = vertices.mean(axis=0)
    a = vertices - origin
    b = np.roll(a, -1, axis=0)
    areas = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    total = float(areas.sum())
    size = float(np.abs(a).max(initial=0.0))
    if abs(total) <= 1e-9 * size * size:
        gaps = np.linalg.norm(vertices[:, None] - vertices[None], axis=2)
        i, j = np.unravel_index(int(gaps.argmax()), gaps.shape)
        out: Array = 0.5 * (vertices[i] + vertices[j])
        return out
    out = origin + (areas @ (a + b)) / (3.0 * total)
    return out
