"""Distributions that are linear or quadratic programs, solved exactly by one engine.

All have the form  min 1/2 x' H x + g' x  with linear constraints and H positive *semi*definite.
DAQP wants H definite, so the proximal point method wraps it [Rockafellar1976]_:

    x_k+1 = argmin  1/2 x' H x + g' x + rho/2 |x - x_k|^2,    x_0 = 0

A point that is mapped to itself is a minimum of the program itself: that is the stopping test, and
so the answer does not depend on rho. For linear programs the iteration ends after finitely many
steps; if it ends with the first one, x is the minimum of least norm [Mangasarian1979]_. rho is
chosen so that this is the usual case, which also makes degenerate programs (min |f|_1 often is)
have one answer.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cards_core.analysis.tension_distribution.base import TensionDistribution, null_space
from cards_core.optimize.qp import QP_INFINITY, QpMethod, QpStatus
from cards_core.optimize.qp_backends import make_qp_solver
from cards_core.typing import Array

FIXED_POINT = 1e-9
"""Move of a proximal step, relative to the size of the tensions, that counts as none."""

MAX_STEPS = 30
"""Proximal steps; two are usual: one that finds the minimum, one that confirms it."""

REACH = 1e3
"""How far a proximal step may go, in units of the tensions' size."""

GROWTH, LONGEST = 4.0, 1e5
"""Growth of the step of linear programs from one to the next, and its end."""


class LeastNorm(TensionDistribution):
    """min 1/2 |f - f_ref|^2: unique, a continuous function of the pose. The default.

    Args:
        tension_min: See `TensionDistribution`.
        tension_max: See `TensionDistribution`.
        size: See `TensionDistribution`.
        reference: f_ref, shape (m,), [N]; zero without it.
    """

    name: ClassVar[str] = "least_norm"

    def __init__(
        self,
        tension_min: Array,
        tension_max: Array,
        size: int,
        reference: Array | None = None,
    ) -> None:
        super().__init__(tension_min, tension_max, size)
        self._qp = make_qp_solver("daqp", len(self.tension_min), np.full(size, np.inf))
        self._qp.lower_bounds[:] = self.tension_min
        self._qp.upper_bounds[:] = np.minimum(self.tension_max, QP_INFINITY)
        if reference is not None:
            self._qp.gradient[:] = -np.asarray(reference, dtype=float)

    def _distribute(self, matrix: Array, needed: Array) -> tuple[Array | None, int]:
        qp = self._qp
        qp.matrix[:] = matrix
        qp.row_lower[:] = needed
        qp.row_upper[:] = needed
        result = qp.solve()
        if result.method is QpMethod.SOLVER and result.status is QpStatus.OPTIMAL:
            return result.x.copy(), result.iterations
        qp.reset()
        return None, result.iterations

    def _independent(self, matrix: Array, needed: Array) -> tuple[Array | None, int]:
        range_ = null_space(matrix)[2]
        rank = range_.shape[1]
        if rank == self.size:
            return None, 0
        qp = make_qp_solver("daqp", len(self.tension_min), np.full(rank, np.inf))
        qp.lower_bounds[:] = self.tension_min
        qp.upper_bounds[:] = np.minimum(self.tension_max, QP_INFINITY)
        qp.gradient[:] = self._qp.gradient
        qp.matrix[:] = range_.T @ matrix
        qp.row_lower[:] = qp.row_upper[:] = range_.T @ needed
        result = qp.solve()
        good = result.status is QpStatus.OPTIMAL
        return (result.x.copy() if good else None), result.iterations


class _Program(TensionDistribution):
    """A program in x = (f, extra variables); subclasses say which.

    Constraints: rows ``A f = w`` first, then `extra_rows` rows that the subclass fills.
    """

    extra_variables: ClassVar[int] = 0

    def __init__(self, tension_min: Array, tension_max: Array, size: int) -> None:
        super().__init__(tension_min, tension_max, size)
        self._m = len(self.tension_min)
        finite = self.tension_max[np.isfinite(self.tension_max)]
        self._scale = max(1.0, float(np.abs([*self.tension_min, *finite]).max(initial=0.0)))
        self._solvers: dict[int, ProximalProgram] = {}

    def _program(self, rank: int) -> ProximalProgram:
        """Return the solver for a rank of A, made when it is needed first."""
        if rank not in self._solvers:
            rows, low, high = self._extra_rows()
            program = ProximalProgram(
                self._m + self.extra_variables, rank + len(rows), self._scale
            )
            qp = program.qp
            qp.lower_bounds[: self._m] = self.tension_min
            qp.upper_bounds[: self._m] = np.minimum(self.tension_max, QP_INFINITY)
            qp.lower_bounds[self._m :] = 0.0
            qp.matrix[rank:] = rows
            qp.row_lower[rank:], qp.row_upper[rank:] = low, high
            self._set_cost(program)
            self._solvers[rank] = program
        return self._solvers[rank]

    def _extra_rows(self) -> tuple[Array, Array, Array]:
        """Return rows over x beyond A f = w, with their limits."""
        return np.zeros((0, self._m + self.extra_variables)), np.zeros(0), np.zeros(0)

    def _set_cost(self, program: ProximalProgram) -> None:
        """Write the cost of a new program, as far as it does not depend on the pose."""

    def _distribute(self, matrix: Array, needed: Array) -> tuple[Array | None, int]:
        return self._run(matrix, needed)

    def _independent(self, matrix: Array, needed: Array) -> tuple[Array | None, int]:
        basis = null_space(matrix)[2]
        if basis.shape[1] == self.size:
            return None, 0
        return self._run(basis.T @ matrix, basis.T @ needed)

    def _run(self, matrix: Array, needed: Array) -> tuple[Array | None, int]:
        rank = len(matrix)
        program = self._program(rank)
        qp = program.qp
        qp.matrix[:rank, : self._m] = matrix
        qp.row_lower[:rank] = qp.row_upper[:rank] = needed
        x, steps = program.solve()
        return None if x is None else x[: self._m].copy(), steps


class ProximalProgram:
    """min 1/2 x' H x + g' x with H positive semidefinite, see the module.

    Args:
        n: Number of variables.
        rows: Number of rows, all hard.
        scale: Size of the variables.

    Attributes:
        qp: Holds the constraints. Its Hessian and gradient are ours.
    """

    def __init__(self, n: int, rows: int, scale: float) -> None:
        self.qp = make_qp_solver("daqp", n, np.full(rows, np.inf))
        self._gradient = np.zeros(n)
        self._scale = scale
        self._linear = True
        self._new = False

    def set_cost(self, gradient: Array, hessian: Array | None = None) -> None:
        """Set g and H. The program that is solved is that one times a number."""
        # one proximal step of a linear program moves by |g| / rho
        largest = float(np.abs(gradient).max(initial=0.0))
        self._gradient[:] = gradient * (REACH * self._scale / largest) if largest else 0.0
        self.qp.hessian[:] = np.eye(len(gradient))
        self._linear = hessian is None
        if hessian is not None:
            steepest = float(np.abs(hessian).max(initial=0.0))
            if steepest:
                factor = 1e6 / steepest
                self.qp.hessian[:] += factor * hessian
                self._gradient[:] = factor * gradient
        self._new = True

    def solve(self) -> tuple[Array | None, int]:
        """Return x, or None if there is none, and the number of proximal steps."""
        qp = self.qp
        centre: Array = np.zeros(qp.n)
        pace = 1.0
        for step in range(1, MAX_STEPS + 1):
            np.subtract(pace * self._gradient, centre, out=qp.gradient)
            result = qp.solve(new_hessian=self._new)
            self._new = False
            if result.method is not QpMethod.SOLVER or result.status is not QpStatus.OPTIMAL:
                qp.reset()
                return None, step
            size = max(self._scale, float(np.abs(result.x).max(initial=0.0)))
            move = float(np.abs(result.x - centre).max(initial=0.0))
            centre = result.x.copy()
            if move <= FIXED_POINT * size:
                return centre, step
            if self._linear and step > 1:  # the tensions are larger than their limits let expect
                pace = min(GROWTH * pace, LONGEST)
        return None, MAX_STEPS


class LeastSum(_Program):
    """min sum f_i (1-norm, for f >= 0); among several the one of least 2-norm."""

    name: ClassVar[str] = "least_sum"

    def _set_cost(self, program: ProximalProgram) -> None:
        program.set_cost(np.ones(self._m))


class LeastMaximum(_Program):
    """min max f_i (infinity-norm, for f >= 0); among several the one of least 2-norm.

    Variables (f, t): min t with f_i <= t.
    """

    name: ClassVar[str] = "least_maximum"
    extra_variables: ClassVar[int] = 1

    def _extra_rows(self) -> tuple[Array, Array, Array]:
        rows = np.hstack([np.eye(self._m), -np.ones((self._m, 1))])
        return rows, np.full(self._m, -QP_INFINITY), np.zeros(self._m)

    def _set_cost(self, program: ProximalProgram) -> None:
        program.qp.lower_bounds[self._m] = -QP_INFINITY
        program.set_cost(np.append(np.zeros(self._m), 1.0))


class OptimallySafe(_Program):
    """Largest distance of all tensions from their limits [Borgstrom2009]_.

    Variables (f, s): max s with ``f_min + s <= f <= f_max - s``, s >= 0; muscles whose limits are
    equal take no part. Among several f the one of least 2-norm.
    """

    name: ClassVar[str] = "optimally_safe"
    needs_upper_limits: ClassVar[bool] = True
    extra_variables: ClassVar[int] = 1

    def _extra_rows(self) -> tuple[Array, Array, Array]:
        share = np.where(self._fixed, 0.0, 1.0)[:, None]
        above = np.hstack([np.eye(self._m), -share])
        below = np.hstack([np.eye(self._m), share])
        none = np.full(self._m, QP_INFINITY)
        low = np.concatenate([self.tension_min, -none])
        return np.vstack([above, below]), low, np.concatenate([none, self.tension_max])

    def _set_cost(self, program: ProximalProgram) -> None:
        # without a muscle that takes part s would be unbounded
        widest = float((self.tension_max - self.tension_min).max(initial=0.0))
        program.qp.upper_bounds[self._m] = 0.5 * widest
        program.set_cost(np.append(np.zeros(self._m), -1.0))


class LeastInteraction(_Program):
    """min sum_k weight_k W_k^2 over the components W = W_0 + W_f f that the joints carry.

    Joint forces and moments as in `cards_core.analysis.interaction`, W of shape (6p,) for p
    joints. Where the interaction leaves a choice the tensions of least norm are taken, within
    1e-6 of the largest weight.
    """

    name: ClassVar[str] = "least_interaction"

    def set_interaction(self, matrix: Array, offset: Array, weights: Array) -> None:
        """Give the interaction of the next point.

        Args:
            matrix: W_f, shape (6p, m).
            offset: W_0, shape (6p,).
            weights: shape (6p,), >= 0.
        """
        weighted = matrix * weights[:, None]
        self._cost = weighted.T @ offset, matrix.T @ weighted
        for program in self._solvers.values():
            program.set_cost(*self._cost)

    def _set_cost(self, program: ProximalProgram) -> None:
        program.set_cost(*self._cost)
