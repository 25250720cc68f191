"""How far a robot is from force closure, and from joint torques that its muscles must give.

*Closure margin*, the radius of the largest ball about the origin within the convex hull of the
rows of L S (S scales coordinates), with a sign:

    rho = min over |c| = 1 of max_i (L S)_i c

rho > 0 is force closure, rank included: every joint torque tau can be made by tensions f >= 0
whose sum is |tau| / rho at most. Outside, -rho is the distance of the hull from the origin. It is
the quality measure of [Ferrari1992]_ for grasps, whose contacts push as muscles pull.

*Shortfall* of a joint torque w, the distance of w from what the muscles can make,

    d = min over f_min <= f <= f_max of |-L' f - w|

Both have the derivative of an optimal value: the minimising c, and the convex combination of rows
that is nearest to the origin, or the tensions f, count as constant (envelope theorem).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import nnls
from scipy.spatial import ConvexHull, QhullError

from cards_core.optimize.qp import bounded_least_squares
from cards_core.typing import Array

FLAT = 1e-9
"""Size of a margin, relative to the longest row, that is rounding."""

ROUNDING = 1e-10
"""Size of a shortfall, relative to the largest torque of one muscle or what is wanted, that is
none."""


def closure_margin(rows: Array) -> tuple[float, Array, Array]:
    """Return the closure margin of one pose.

    Args:
        rows: L S, shape (m, n), [m].

    Returns:
        rho, [m]; the direction c, shape (n,); weights of the rows, shape (m,), >= 0, with sum 1.
        ``d rho = weights . (dL S) c``.
    """
    m, n = rows.shape
    scale = float(np.linalg.norm(rows, axis=1).max(initial=0.0))
    if n == 0 or scale == 0.0:
        return (np.inf if n == 0 else 0.0), np.zeros(n), np.full(m, 1.0 / max(m, 1))
    if n == 1:
        return _of_one_coordinate(rows[:, 0])
    if m > n:
        found = _inside(rows / scale)
        if found is not None:
            return scale * found[0], found[1], found[2]
    return _outside(rows, scale)


def most_facets(rows: int, coordinates: int) -> int:
    """Return the most facets that the hull of so many points can have [McMullen1970]_.

    Args:
        rows: Number of points, m.
        coordinates: Dimension, n.
    """
    if rows <= coordinates:
        return 0
    half = coordinates // 2
    if coordinates % 2:
        return 2 * math.comb(rows - half - 1, half)
    return rows * math.comb(rows - half, half) // (rows - half)


def _of_one_coordinate(values: Array) -> tuple[float, Array, Array]:
    sides = [(float((c * values).max()), c) for c in (1.0, -1.0)]
    rho, c = min(sides)
    weights = np.zeros(len(values))
    weights[int(np.argmax(c * values))] = 1.0
    return rho, np.array([c]), weights


def _inside(rows: Array) -> tuple[float, Array, Array] | None:
    """Return the margin where the origin is within the hull or in its border, else None."""
    try:
        hull = ConvexHull(rows)
    except (QhullError, ValueError):
        return None
    offsets = -hull.equations[:, -1]
    facet = int(np.argmin(offsets))
    if offsets[facet] < -FLAT:
        return None
    normal = hull.equations[facet, :-1]
    corners = hull.simplices[facet]
    # a facet of many corners is cut into simplices: the foot of the origin may be in another one
    same = np.flatnonzero(rows @ normal > offsets[facet] - FLAT)
    corners = same if len(same) > len(corners) else corners
    weights = np.zeros(len(rows))
    weights[corners] = _nearest_combination(rows[corners])
    return max(float(offsets[facet]), 0.0), normal, weights


def _outside(rows: Array, scale: float) -> tuple[float, Array, Array]:
    weights = _nearest_combination(rows / scale)
    foot = rows.T @ weights
    distance = float(np.linalg.norm(foot))
    if distance > FLAT * scale:
        return -distance, -foot / distance, weights
    # the rows span too little: the margin is 0, and grows where the direction in which there is
    # nothing gets rows on both sides
    _, _, directions = np.linalg.svd(rows)
    c = directions[-1]
    if (rows @ c).max() > (-rows @ c).max():
        c = -c
    return 0.0, c, weights


def _nearest_combination(rows: Array) -> Array:
    """Return weights >= 0 with sum 1 of the point of the hull that is nearest to the origin.

    Of all t > 0, ``|t R' w|^2 + (t - 1)^2`` is least at a value that grows with ``|R' w|``, so
    non-negative least squares of [R' u; sum u] against [0; 1] gives ``u = t w``.
    """
    matrix = np.vstack([rows.T, np.ones(len(rows))])
    target = np.zeros(len(matrix))
    target[-1] = 1.0
    found, _ = nnls(matrix, target)
    total = float(found.sum())
    return np.asarray(found / total) if total > 0.0 else np.full(len(rows), 1.0 / len(rows))


def torque_shortfall(
    rows: Array, lower: Array, upper: Array, wanted: Array
) -> tuple[float, Array, Array]:
    """Return how far a joint torque is from what muscles can make, at one pose.

    Args:
        rows: L, shape (m, n).
        lower: Minimum tensions, shape (m,), [N].
        upper: Maximum tensions, may be infinite, shape (m,), [N].
        wanted: w, shape (n,), [Nm] or [N].

    Returns:
        d, [Nm] or [N]; the unit vector e from w to what is nearest, shape (n,), zero where d is 0;
        the tensions f, shape (m,), [N]. ``d d = -e . (dL' f)``.
    """
    wide = upper > lower
    tensions = lower.copy()
    target = wanted + rows.T @ tensions
    if wide.any():
        more = bounded_least_squares(
            -rows[wide].T, target, np.zeros(int(wide.sum())), (upper - lower)[wide], 1e-14
        )
        tensions[wide] += more
    miss = -rows.T @ tensions - wanted
    d = float(np.linalg.norm(miss))
    largest = float(np.abs(wanted).max(initial=0.0) + np.abs(rows.T * tensions).max(initial=0.0))
    if d <= ROUNDING * largest:
        return 0.0, np.zeros_like(miss), tensions
    return d, miss / d, tensions


def single_shortfall(
    column: Array, lower: Array, upper: Array, wanted: float
) -> tuple[float, float, Array]:
    """Return the same as `torque_shortfall` where the other joints may have any torque.

    Args:
        column: Column of L of the one joint, shape (m,).
        lower: Minimum tensions, shape (m,), [N].
        upper: Maximum tensions, may be infinite, shape (m,), [N].
        wanted: Torque about the joint, [Nm] or [N].

    Returns:
        d, its sign as e, and the tensions f that come nearest, shape (m,).
    """
    low, high = torque_interval(column, lower, upper)
    if low <= wanted <= high:
        return 0.0, 0.0, lower
    up = wanted > high
    pulling = -column if up else column  # tensions that turn it the way that is wanted
    tensions = np.where(pulling > 0.0, upper, lower)
    return (wanted - high, -1.0, tensions) if up else (low - wanted, 1.0, tensions)


def torque_interval(column: Array, lower: Array, upper: Array) -> tuple[float, float]:
    """Return the least and largest torque about one joint, whatever the others get.

    Args:
        column: Column of L, shape (m,).
        lower: Minimum tensions, shape (m,), [N].
        upper: Maximum tensions, may be infinite, shape (m,), [N].
    """
    acts = column != 0.0  # an infinite tension without a moment arm gives nothing
    ends = np.stack([-column[acts] * lower[acts], -column[acts] * upper[acts]])
    return float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())
