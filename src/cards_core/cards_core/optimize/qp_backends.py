"""The solvers behind `cards_core.optimize.qp`: DAQP and OSQP, driven with persistent workspaces.

DAQP goes through its ``Model`` class: new data and a solve cost 6 to 10 us for 11 tensions and 4
soft rows. Native programs call the C functions of the same library (`DaqpSolver.in_c`), whose
structures differ between releases.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from cards_core.errors import UnknownNameError
from cards_core.optimize.daqp_library import DaqpProgram, daqp_program
from cards_core.optimize.qp import (
    QpSolver,
    QpStatus,
    SolverUnavailableError,
)
from cards_core.typing import Array

DAQP_TOLERANCE = 1e-7
"""Largest violation of a normalised constraint that DAQP leaves; active ones hold to 1e-10."""

DAQP_PIVOT = 1e-14
"""Pivot below which DAQP calls the active constraints dependent. A soft row whose variables are
all at their bounds has the pivot ``1 / (w |A_i H^(-1/2)|^2)``; with DAQP's default of 3.7e-11 such
programs were called infeasible from ``w |A_i H^(-1/2)|^2 = 1e10`` on."""

OSQP_TOLERANCE = 1e-8
"""Absolute tolerance of OSQP's residuals; the relative one is a tenth of it."""

OSQP_ITERATIONS = 5000
"""Iteration limit of OSQP, a few milliseconds; programs far beyond the feasible may need more."""


def _package(name: str) -> Any:
    """Return the Python package of a solver, which is optional.

    Raises:
        SolverUnavailableError: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SolverUnavailableError(
            f"QP solver '{name}' needs the Python package {name} (pip install {name})"
        ) from error


class DaqpSolver(QpSolver):
    """Dual active-set method of DAQP [Arnstrom2022]_: exact, warm-started by the active set.

    Bounds are simple bounds; rows with equal limits are recognised as equalities by the solver at
    every update, so a row may change between the two from solve to solve.

    DAQP factors the Gram matrix of the active constraints, whose condition number is the square of
    theirs: of robots with many joints, equations may then hold to 1e-5 only, or be called
    infeasible near the border. `QpSolver.careful` eliminates the equalities by QR first, which
    avoids that; a program of a dozen variables takes 2 us more, one of a hundred less.

    Raises:
        SolverUnavailableError: Package ``daqp`` is not installed.
    """

    can_be_careful = True

    def __init__(self, n: int, weights: Sequence[float] | Array = ()) -> None:
        super().__init__(n, weights)
        daqp = _package("daqp")
        self._new_model = daqp.Model
        self._iteration_limit = 100 + 20 * (self._lower.size + self.slacks)
        self._models: list[Any] = [None, None]  # not careful, careful

    def in_c(self) -> tuple[DaqpProgram, Array, Sequence[Any]]:
        """Return this program for C; see `daqp_program`. It has a warm start of its own.

        Raises:
            LibraryUnknownError: See `daqp_functions`.
        """
        return daqp_program(
            self._hessian,
            self._gradient,
            self._matrix,
            (self._lower, self._upper),
            (DAQP_TOLERANCE, DAQP_PIVOT, self._iteration_limit),
        )

    def reset(self) -> None:
        """Forget the active sets; the next solve sets the workspace up again."""
        self._models = [None, None]

    def _solve(self, new_hessian: bool) -> tuple[QpStatus, Array, int]:
        if self.n == 0:
            return _solve_without_variables(self)
        if new_hessian:
            self._models[not self.careful] = None
        model = self._models[self.careful]
        if model is None:
            model = self._new_model()
            model.settings = {
                "primal_tol": DAQP_TOLERANCE,
                "sing_tol": DAQP_PIVOT,
                "iter_limit": self._iteration_limit,
                "eq_reduction": int(self.careful),
            }
            flag, _ = model.setup(
                self._hessian,
                self._gradient,
                self._matrix,
                self._upper,
                self._lower,
                np.zeros(self._lower.size, dtype=np.intc),
            )
            if flag >= 0:
                self._models[self.careful] = model
        elif new_hessian:
            flag = model.update(
                H=self._hessian,
                f=self._gradient,
                A=self._matrix,
                bupper=self._upper,
                blower=self._lower,
            )
        else:
            flag = model.update(
                f=self._gradient, A=self._matrix, bupper=self._upper, blower=self._lower
            )
        if flag < 0:  # a refused update leaves the old problem in place: do not solve that one
            self._models[self.careful] = None
            return _DAQP_STATUS.get(flag, QpStatus.NUMERICAL), self.result.x, 0
        x, _, flag, info = model.solve()
        if flag < 1 and flag != _INFEASIBLE:
            self._models[self.careful] = None
        return _DAQP_STATUS.get(flag, QpStatus.NUMERICAL), x[: self.n], info["iterations"]


_INFEASIBLE = -1
"""DAQP's exit flag after which its workspace is still good for the next program."""

_DAQP_STATUS = {
    2: QpStatus.OPTIMAL,
    1: QpStatus.OPTIMAL,
    _INFEASIBLE: QpStatus.INFEASIBLE,
    -4: QpStatus.MAX_ITERATIONS,
    -6: QpStatus.INFEASIBLE,
}
"""DAQP's exit flags; all others are numerical failures."""


class OsqpSolver(QpSolver):
    """Operator splitting (ADMM) of OSQP [Stellato2020]_, warm-started.

    The step-size update is tied to iteration counts, not to the clock, so that equal data give
    equal results.

    Raises:
        SolverUnavailableError: Package ``osqp`` is not installed.
    """

    def __init__(self, n: int, weights: Sequence[float] | Array = ()) -> None:
        super().__init__(n, weights)
        osqp = _package("osqp")
        # scipy.sparse takes long to import, and OSQP is not the usual solver
        from scipy.sparse import csc_matrix

        self._new_solver = osqp.OSQP
        self._csc = csc_matrix
        self._refusal = osqp.OSQPException
        self._solver: Any = None
        p, size = self.rows, n + self.slacks
        # Constraint matrix [[E 0], [A D]] with every entry of A stored, zero or not: column j < n
        # holds the one of its bound, then A[:, j]; a slack column holds one entry of D = E. (The
        # scaled slacks of `QpSolver` take OSQP's own equilibration ten times as many iterations.)
        rows = [row for j in range(n) for row in (j, *range(n, n + p))]
        soft = np.flatnonzero(np.isfinite(self.weights))
        self._rows = np.array([*rows, *(n + soft)], dtype=np.int32)
        counts = [1 + p] * n + [1] * self.slacks
        self._columns = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        self._values = np.ones(self._rows.size)
        self._dense = self._values[: n * (1 + p)].reshape(n, 1 + p)[:, 1:]
        # upper triangle of H by columns, then the weights of the slacks
        columns, triangle = np.tril_indices(n)
        self._triangle = (triangle, columns)
        self._hessian_rows = np.concatenate([triangle, np.arange(n, size)]).astype(np.int32)
        counts = [*range(1, n + 1), *([1] * self.slacks)]
        self._hessian_columns = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        self._hessian_values = np.concatenate([np.zeros(triangle.size), self.weights[soft]])

    def reset(self) -> None:
        """Forget the iterates; the next solve sets the workspace up again."""
        self._solver = None

    def _solve(self, new_hessian: bool) -> tuple[QpStatus, Array, int]:
        if self.n == 0:
            return _solve_without_variables(self)
        if np.any(self._lower > self._upper):  # OSQP would refuse the update and keep the old one
            return QpStatus.INFEASIBLE, self.result.x, 0
        self._dense[:] = self.matrix.T
        if self._solver is None or new_hessian:
            self._hessian_values[: self._triangle[0].size] = self.hessian[self._triangle]
        if self._solver is None:
            self._solver = self._set_up()
            if self._solver is None:
                return QpStatus.NUMERICAL, self.result.x, 0
        else:
            self._solver.update(q=self._gradient, l=self._lower, u=self._upper)
            if new_hessian:
                self._solver.update(Px=self._hessian_values, Ax=self._values)
            else:
                self._solver.update(Ax=self._values)
        result = self._solver.solve(raise_error=False)
        status = _OSQP_STATUS.get(int(result.info.status_val), QpStatus.NUMERICAL)
        if status is not QpStatus.OPTIMAL:
            self._solver = None
        return status, result.x[: self.n], int(result.info.iter)

    def _set_up(self) -> Any:
        """Return a new workspace with the present data, None if OSQP refuses them."""
        size = self.n + self.slacks
        solver = self._new_solver()
        hessian = (self._hessian_values, self._hessian_rows, self._hessian_columns)
        matrix = (self._values, self._rows, self._columns)
        try:
            solver.setup(
                self._csc(hessian, shape=(size, size), copy=True),
                self._gradient,
                self._csc(matrix, shape=(self._lower.size, size), copy=True),
                self._lower,
                self._upper,
                verbose=False,
                eps_abs=OSQP_TOLERANCE,
                eps_rel=0.1 * OSQP_TOLERANCE,
                # slacks of infeasible programs are large: the usual 1e-4 would call them divergent
                eps_prim_inf=1e-6 if self.slacks < self.rows else 1e-12,
                eps_dual_inf=1e-12,
                max_iter=OSQP_ITERATIONS,
                adaptive_rho_interval=25,
                warm_starting=True,
            )
        except self._refusal:
            return None
        return solver


_OSQP_STATUS = {
    1: QpStatus.OPTIMAL,
    2: QpStatus.MAX_ITERATIONS,  # solved inaccurately
    3: QpStatus.INFEASIBLE,
    4: QpStatus.INFEASIBLE,
    7: QpStatus.MAX_ITERATIONS,
}
"""OSQP's status values; all others are numerical failures."""


def _solve_without_variables(qp: QpSolver) -> tuple[QpStatus, Array, int]:
    """A robot without muscles: nothing to choose, hard rows hold or they do not."""
    hard = ~np.isfinite(qp.weights)
    violated = (qp.row_lower > 0.0) | (qp.row_upper < 0.0)
    status = QpStatus.INFEASIBLE if np.any(hard & violated) else QpStatus.OPTIMAL
    return status, qp.result.x, 0


QP_SOLVERS = ("daqp", "osqp")
"""Names that `make_qp_solver` knows; the first is the default of the controllers."""


def make_qp_solver(name: str, n: int, weights: Sequence[float] | Array = ()) -> QpSolver:
    """Return a QP solver by name.

    Args:
        name: ``daqp`` (dual active set, exact, fastest) or ``osqp`` (ADMM).
        n: Number of variables.
        weights: Slack weight of every row, shape (p,), ``inf`` for hard rows.

    Raises:
        UnknownNameError: There is no such solver.
        SolverUnavailableError: Its package is not installed.
    """
    match name:
        case "daqp":
            return DaqpSolver(n, weights)
        case "osqp":
            return OsqpSolver(n, weights)
        case _:
            raise UnknownNameError("QP solver", name, QP_SOLVERS)
