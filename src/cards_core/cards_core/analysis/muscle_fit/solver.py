"""Least squares within convex bounds, by damped Gauss-Newton steps.

    minimise 1/2 |r(y)|^2,   y within boxes and balls

Each step solves ``min 1/2 |r + J d|^2 + 1/2 lambda |d|^2`` within the boxes and the tangent planes
of the balls, exactly by a QP, and is drawn back onto the balls. It is taken if the cost falls, and
lambda follows how well the model predicted that (Levenberg-Marquardt, [Nocedal2006]_ chapter 10).
Directions that change nothing get no step: what a fit does not need to move stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cards_core.analysis.muscle_fit.variables import FitVariables
from cards_core.optimize.qp import QpMethod, QpSolver, QpStatus
from cards_core.optimize.qp_backends import make_qp_solver
from cards_core.typing import Array

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-9, 1e8
"""lambda, relative to the largest diagonal entry of J'J."""

NO_PROGRESS = 1e-7
"""Relative fall of the cost that counts as none."""

PATIENCE = 4
"""Steps without progress, one after the other, after which it ends."""

ENOUGH = 1e-14
"""Cost at which it ends."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """Where the iteration is.

    Attributes:
        y: shape (size,).
        cost: ``1/2 |r|^2``.
        iteration: Number of Jacobians so far.
        damping: lambda of the next step, relative to the largest diagonal entry of J'J.
        idle: Steps without progress, one after the other.
    """

    y: Array
    cost: float
    iteration: int
    damping: float = FIRST_DAMPING
    idle: int = 0


def minimise(
    variables: FitVariables,
    residuals: Callable[[Array], Array],
    linearise: Callable[[Array], tuple[Array, Array]],
    start: Iterate,
    *,
    iterations: int,
    told: Callable[[Iterate], None],
) -> None:
    """Go to a local minimum from a start, or on from an iterate.

    Args:
        variables: The bounds.
        residuals: r(y), shape (k,).
        linearise: r(y) and J, shapes (k,) and (k, size).
        start: Where to begin; its cost does not count.
        iterations: Most Jacobians, those before the start among them.
        told: Called with the start and after every step that was taken.
    """
    y = variables.nearest(start.y)
    r, jacobian = linearise(y)
    cost = 0.5 * float(r @ r)
    damping, idle = start.damping, start.idle
    now = Iterate(y, cost, max(start.iteration, 1), damping, idle)
    told(now)
    # the solver wants at least one row: without balls it is one that says nothing
    tangent_count = max(1, len(variables.tangents(y)[1]))
    qp = make_qp_solver("daqp", variables.size, np.full(tangent_count, np.inf))
    qp.matrix[0, 0], qp.row_upper[0] = 1.0, 4.0
    while now.iteration < iterations and cost > ENOUGH and idle < PATIENCE:
        normal, gradient = jacobian.T @ jacobian, jacobian.T @ r
        scale = float(np.diag(normal).max(initial=0.0))
        if scale <= 0.0:
            break
        taken = False
        while damping <= MOST_DAMPING:
            d = _step(qp, variables, y, (normal, gradient), damping * scale)
            trial = variables.nearest(y + d)
            d = trial - y
            predicted = -float(gradient @ d) - 0.5 * float(d @ normal @ d)
            if not np.any(np.abs(d) > 1e-13):
                break
            new = residuals(trial)
            new_cost = 0.5 * float(new @ new)
            if np.isfinite(new_cost) and new_cost < cost:
                taken = True
                break
            damping *= 8.0
        if not taken:
            break
        gain = cost - new_cost
        idle = idle + 1 if gain < NO_PROGRESS * cost else 0
        good = gain > 0.5 * predicted
        damping = max(damping / 10.0, LEAST_DAMPING) if good else damping
        y = trial
        r, jacobian = linearise(y)
        cost = 0.5 * float(r @ r)
        now = Iterate(y, cost, now.iteration + 1, damping, idle)
        told(now)


def _step(
    qp: QpSolver, variables: FitVariables, y: Array, model: tuple[Array, Array], damping: float
) -> Array:
    """Return the step d of one damped, bounded least-squares problem, shape (size,)."""
    normal, gradient = model
    scale = float(np.diag(normal).max()) + damping
    qp.hessian[:] = (normal + damping * np.eye(len(y))) / scale
    qp.gradient[:] = gradient / scale
    qp.lower_bounds[:], qp.upper_bounds[:] = -1.0 - y, 1.0 - y
    rows, gaps = variables.tangents(y)
    qp.matrix[: len(gaps)], qp.row_upper[: len(gaps)] = rows, gaps
    result = qp.solve(new_hessian=True)
    if result.status is not QpStatus.OPTIMAL or result.method is not QpMethod.SOLVER:
        qp.reset()
    return result.x.copy()
