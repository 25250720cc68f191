"""Small dense quadratic programs with soft rows, solved thousands of times a second.

    minimise    1/2 x' H x + g' x + 1/2 sum_i w_i s_i^2
    subject to  lb <= x <= ub
                lower_i <= A_i x + s_i <= upper_i      for each row i

An equality is a row with ``lower == upper``. A row with a finite weight ``w_i`` gives way, at the
price of its slack, where the bounds leave no room, so the program always has a solution and the
solution is a continuous function of the data; a row with infinite weight is hard (``s_i = 0``).

The slack enters as the variable ``s'_i = sqrt(w_i) s_i``: its Hessian entry is one and the row
reads ``A_i x + s'_i / sqrt(w_i)``, which keeps the Hessian well conditioned for weights such as
1e10 (as a penalty ``A' W A`` in H they would cost ten digits).

A `QpSolver` owns its arrays. Write into them and call `QpSolver.solve`; nothing is copied or
allocated by us on the way, the last active set or iterate is the next starting point.
"""

from __future__ import annotations

import importlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from cards_core.errors import CardsError, ShapeError
from cards_core.typing import Array

QP_INFINITY = 1e30
"""Bounds of this size mean "no bound"; the in-place arrays take it instead of ``inf``."""

REGULARISATION = 1e-8
"""Added to the diagonal of H, relative to its largest entry, when a solver is tried again."""

HARD_WEIGHT = 1e12
"""Weight that a hard row has in the clamped fallback, relative to the largest entry of H."""


class SolverUnavailableError(CardsError):
    """The Python package of a QP solver is not installed."""


class QpStatus(Enum):
    """Outcome of a solve, before any fallback."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    """Hard rows and bounds contradict each other; cannot happen when all rows are soft."""
    MAX_ITERATIONS = "max_iterations"
    NUMERICAL = "numerical"
    """The solver gave up: cycling, a Hessian that is not positive definite, ..."""
    INVALID_DATA = "invalid_data"
    """NaN or infinity in the data; nothing was solved."""


class QpMethod(Enum):
    """Where the returned x comes from."""

    SOLVER = "solver"
    REGULARISED = "regularised"
    """The first try failed; a cold start with ``H + eps E`` succeeded."""
    CLAMPED = "clamped"
    """Both failed: bounded least squares of another implementation (`clamped_least_squares`)."""
    NEAREST_TO_ZERO = "nearest_to_zero"
    """The data are not finite: every x_i is the value within its bounds nearest to zero."""


@dataclass(eq=False, slots=True)
class QpResult:
    """Result of `QpSolver.solve`; overwritten by the next solve, copy to keep.

    With n variables and p rows:

    Attributes:
        x: Minimiser, shape (n,), finite and within the bounds, whatever the status.
        residual: ``A x`` minus its projection on [lower, upper], shape (p,): minus the slack s;
            zero for every row that holds.
        status: Outcome of the solver (of the second try, if there was one).
        method: Where x comes from.
        iterations: Of the solver.
        solve_time: Wall time of the whole solve including fallbacks, [s].
    """

    x: Array
    residual: Array
    status: QpStatus = QpStatus.OPTIMAL
    method: QpMethod = QpMethod.SOLVER
    iterations: int = 0
    solve_time: float = 0.0


class QpSolver(ABC):
    """One quadratic program of fixed size; see the module for its form.

    Args:
        n: Number of variables.
        weights: Slack weight of every row, shape (p,), > 0, ``inf`` for hard rows.

    Attributes:
        hessian: H, shape (n, n), symmetric positive definite; starts as the identity.
        gradient: g, shape (n,).
        lower_bounds, upper_bounds: lb and ub, shape (n,).
        matrix: A, shape (p, n).
        row_lower, row_upper: Row limits, shape (p,). Bounds and limits that do not exist are
            ``-QP_INFINITY`` and ``QP_INFINITY`` (initially all).
        careful: True to take the solver's better conditioned, slower way, if it has one; may
            change from solve to solve.
        can_be_careful: Whether it has one.
        data: All of these but H, one after the other, with the columns of the slacks.
        result: The last result.

    Raises:
        ShapeError: ``n`` or ``weights`` make no sense.
    """

    can_be_careful = False

    def __init__(self, n: int, weights: Sequence[float] | Array = ()) -> None:
        self.careful = False
        # half a second to import: now, not in the middle of a control loop that needs the fallback
        importlib.import_module("scipy.optimize")
        w = np.asarray(weights, dtype=float)
        if n < 0 or w.ndim != 1 or not np.all(w > 0):
            raise ShapeError(
                f"a QP needs n >= 0 variables and one weight > 0 per row; got n = {n} and "
                f"weights {w}"
            )
        self.n = n
        self.rows = p = len(w)
        self.weights = w
        soft = np.isfinite(w)
        self.slacks = int(np.sum(soft))
        # Variables [x, s'], constraints [bounds of x, rows]; the user's arrays are views of these.
        # All but H lie in one buffer, so that one dot product tells whether they are finite.
        size = n + self.slacks
        self._hessian = np.eye(size)
        self.data = self._buffer = np.zeros(p * size + size + 2 * (n + p))
        matrix, self._gradient, self._lower, self._upper = np.split(
            self._buffer, np.cumsum([p * size, size, n + p])
        )
        self._matrix = matrix.reshape(p, size)
        self._matrix[np.flatnonzero(soft), n + np.arange(self.slacks)] = 1.0 / np.sqrt(w[soft])
        self._lower[:] = -QP_INFINITY
        self._upper[:] = QP_INFINITY

        self.hessian = self._hessian[:n, :n]
        self.gradient = self._gradient[:n]
        self.matrix = self._matrix[:, :n]
        self.lower_bounds, self.row_lower = self._lower[:n], self._lower[n:]
        self.upper_bounds, self.row_upper = self._upper[:n], self._upper[n:]
        self.result = QpResult(np.zeros(n), np.zeros(p))
        self._projection = np.zeros(p)

    def attempt(self) -> QpResult:
        """Solve a program whose rows are all equations, to know whether it has a solution.

        A failure is an answer here: x is of no use then, and nothing else is tried. The equations
        are those of `row_lower`, which `row_upper` must equal; the residual is ``A x`` minus it,
        the Hessian that of the first solve, the solve time is not measured.
        """
        out = self.result
        if not self._finite(False):
            return self.solve()
        out.method = QpMethod.SOLVER
        out.status, x, out.iterations = self._solve(False)
        np.maximum(x, self.lower_bounds, out=out.x)
        np.minimum(out.x, self.upper_bounds, out=out.x)
        np.dot(self.matrix, out.x, out=out.residual)
        np.subtract(out.residual, self.row_lower, out=out.residual)
        return out

    def solve(self, *, new_hessian: bool = False, recover: bool = True) -> QpResult:
        """Solve with the present contents of the arrays.

        If the solver fails it is started again, cold, with ``H + eps E``; if that fails too, x is
        `clamped_least_squares`. Data that are not finite give the x nearest to zero.

        Args:
            new_hessian: True if `hessian` was written since the last solve (the first solve
                always reads it).
            recover: False if a failure is an answer: x is of no use then, and nothing else is
                tried.
        """
        start = time.perf_counter()
        out = self.result
        out.method = QpMethod.SOLVER
        if not self._finite(new_hessian):
            out.status = QpStatus.INVALID_DATA
            out.method = QpMethod.NEAREST_TO_ZERO
            out.iterations = 0
            # fmax/fmin ignore NaN, so that a broken bound does not make a NaN command
            np.fmin(np.fmax(0.0, self.lower_bounds), self.upper_bounds, out=out.x)
            out.residual[:] = math.nan
            out.solve_time = time.perf_counter() - start
            return out
        out.status, x, out.iterations = self._solve(new_hessian)
        if recover and out.status is not QpStatus.OPTIMAL:
            x = self._recover(out)
        # solvers satisfy bounds to a tolerance; whoever receives x may not be that generous
        np.maximum(x, self.lower_bounds, out=out.x)
        np.minimum(out.x, self.upper_bounds, out=out.x)
        np.dot(self.matrix, out.x, out=out.residual)
        np.maximum(out.residual, self.row_lower, out=self._projection)
        np.minimum(self._projection, self.row_upper, out=self._projection)
        np.subtract(out.residual, self._projection, out=out.residual)
        out.solve_time = time.perf_counter() - start
        return out

    @abstractmethod
    def reset(self) -> None:
        """Forget the warm start: the next solve starts cold."""

    @abstractmethod
    def _solve(self, new_hessian: bool) -> tuple[QpStatus, Array, int]:
        """Solve the augmented program; return status, x (at least n entries), iterations."""

    def _finite(self, new_hessian: bool) -> bool:
        # a dot product meets every entry and costs a third of isfinite().all()
        finite = math.isfinite(self._buffer.dot(self._buffer))
        return finite and not (
            new_hessian and not math.isfinite(np.vdot(self._hessian, self._hessian))
        )

    def _recover(self, out: QpResult) -> Array:
        """Second try, then the clamped least squares; sets status, method and iterations."""
        diagonal = np.arange(self.n)
        kept = self.hessian[diagonal, diagonal].copy()
        scale = float(np.max(np.abs(kept), initial=0.0)) or 1.0
        self.hessian[diagonal, diagonal] += REGULARISATION * scale
        self.reset()
        out.status, x, iterations = self._solve(True)
        out.iterations += iterations
        self.hessian[diagonal, diagonal] = kept
        self.reset()
        if out.status is QpStatus.OPTIMAL:
            out.method = QpMethod.REGULARISED
            return x
        out.method = QpMethod.CLAMPED
        return clamped_least_squares(self)


def clamped_least_squares(qp: QpSolver) -> Array:
    """Solve a program that its solver failed on by another method, as bounded least squares.

        minimise  |H^(1/2) x + H^(-1/2) g|^2 + sum_i w_i (A_i x - z_i)^2
        subject to  lb <= x <= ub,  lower <= z <= upper

    with SciPy's bounded-variable least squares [Stark1995]_, hard rows with `HARD_WEIGHT`. It
    takes milliseconds. If even that fails, the unbounded solution is clamped to the bounds.

    Args:
        qp: The program; its data must be finite.

    Returns:
        x, shape (n,), finite and within the bounds.
    """
    eigenvalues, vectors = np.linalg.eigh(0.5 * (qp.hessian + qp.hessian.T))
    scale = float(np.max(np.abs(eigenvalues), initial=0.0)) or 1.0
    root = np.sqrt(np.maximum(eigenvalues, REGULARISATION * scale))
    weights = np.sqrt(np.where(np.isfinite(qp.weights), qp.weights, HARD_WEIGHT * scale))
    # unknowns [x, z]; those that their bounds fix move to the right-hand side
    lower = np.concatenate([qp.lower_bounds, qp.row_lower])
    upper = np.maximum(np.concatenate([qp.upper_bounds, qp.row_upper]), lower)
    unknowns = np.clip(np.zeros(qp.n + qp.rows), lower, upper)
    free = lower < upper
    factor = np.zeros((qp.n + qp.rows, qp.n + qp.rows))
    factor[: qp.n, : qp.n] = root[:, None] * vectors.T
    factor[qp.n :, : qp.n] = weights[:, None] * qp.matrix
    factor[qp.n :, qp.n :] = np.diag(-weights)
    target = np.concatenate([-(vectors.T @ qp.gradient) / root, np.zeros(qp.rows)])
    target -= factor[:, ~free] @ unknowns[~free]
    if free.any():
        try:
            unknowns[free] = bounded_least_squares(
                factor[:, free], target, lower[free], upper[free]
            )
        except (np.linalg.LinAlgError, ValueError):
            unknowns[free] = np.linalg.pinv(factor[:, free]) @ target
    return np.clip(unknowns, lower, upper)[: qp.n]


def bounded_least_squares(
    matrix: Array, target: Array, low: Array, high: Array, tolerance: float = 1e-10
) -> Array:
    """Return the x that minimises ``|A x - b|`` subject to ``low <= x <= high`` [Stark1995]_.

    Args:
        matrix: A, shape (k, n).
        target: b, shape (k,).
        low: shape (n,), below `high`.
        high: shape (n,).
        tolerance: Relative change of the cost at which the iteration ends.

    Raises:
        ValueError, numpy.linalg.LinAlgError: The numbers are too large.
    """
    # scipy.optimize takes 0.2 s to import and is only needed where a solver found nothing
    from scipy.optimize import lsq_linear

    x: Array = lsq_linear(matrix, target, (low, high), method="bvls", tol=tolerance).x
    return x
