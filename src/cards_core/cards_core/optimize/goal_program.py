"""A quadratic program with goals that are met exactly, or else as nearly as possible.

    minimise    1/2 x' H x + g' x                                     H diagonal
    subject to  lb <= x <= ub
                A_h x = b_h         hard rows: always
                A_g x + s = b_g     goals: s = 0 wherever the rest allows it

The priorities are strict, not weighed against each other [Kanoun2011]_ [Escande2014]_:

1. hard rows, and bounds of the variables that are not *yielding*;
2. bounds of the yielding variables: where they cannot be kept, the least sum of squares by
   which they are exceeded;
3. goals: the least ``sum w_i s_i^2``;
4. the cost.

Where goals cannot be met, and only there, they may have a price: the order of 3 and 4 is then a
weight ``p / |s|``, so that the goals' multipliers are p or a little more. Rows that lose rank, as
at a stretched arm, have multipliers without bound, and a strict order lets x jump from one end of
its bounds to the other as the pose passes them. The |s| of the strict order is continuous, and so
is x then; where it is zero, x is that of the strict order.

Rows that are nearly dependent are damped as well [Nakamura1986]_, whether or not the goals can be
met: the weight is ``1 / d`` at most, with

    c = 1 / trace((W G H^-1 G' W)^-1),   d = r (1 - c / r)^2 if c < r, else 0

where G are the rows of the goals, W the roots of w (of one at most), and c is close to the
smallest squared singular value of ``W G H^-1/2``. Where c reaches r, the order is strict. Weights
that a solver has no digits for are not used: in between, x lies on the line from that of the
largest weight to that of the strict order.

Why not one program with weights: a goal of weight w misses by ``s = multiplier / w`` even where it
could be met, and the multiplier depends on the robot's units, levers and masses. No weight serves
all robots; one that is large enough for the worst leaves a solver no digits. Why not a cascade of
programs, one for each priority: where the goals can be met, one program with the goals as
constraints has the answer of the whole cascade. It is smaller than the weighted one, as it needs
no slacks, and the others are solved only after it has failed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cards_core.optimize.qp import (
    QP_INFINITY,
    QpMethod,
    QpResult,
    QpSolver,
    QpStatus,
)
from cards_core.optimize.qp_backends import make_qp_solver
from cards_core.typing import Array

STIFFNESS = 1e8
"""Slack weight times the squared norm of a row (both in the metric of H) in the programs that
decide how nearly a goal or a yielding bound can be met. There the weight acts on what is missing
anyway, so that its reciprocal is no more than a relative error of the smallest residual. Dual
active-set solvers lose twice the digits of its square root."""

SOFTENING = (1.0, 0.1, 0.01, 0.001)
"""Factors on these rows, tried in turn if the solver runs out of digits, as on commands that are
orders of magnitude beyond a robot with dozens of joints."""

FULL_SHARE = 0.3
"""|s| over |b| of the goals from which on they cost their price; below it, the price grows with
its reciprocal: x leaves that of the strict order without a kink."""

RELAXATION = 1e-5
"""By how much, relative to its value, a yielding bound that cannot be kept is opened beyond the
least amount, so that the programs that follow have an interior."""

DEPENDENT = 1e-12
"""Squared ratio of singular values below which rows are dependent but for rounding."""

ROUNDING = 1e-4
"""Norm of the residuals, relative to the tolerance and to the norm of b, that counts as rounding:
it is what nearly all steps leave, and is told in a tenth of the time of the test by rows."""

RECHECK_LIMIT = 1e-3
"""Least s, relative to the terms of its row, below which the solver is asked twice, the second
time the careful way, whether the goals are out of reach. It errs within 1e-4 of the border."""


@dataclass(eq=False, slots=True)
class GoalResult:
    """Result of `GoalProgram.solve`; overwritten by the next one.

    Attributes:
        x: Minimiser, shape (n,), finite; yielding bounds may be exceeded, the others hold.
        missing: ``A_g x - b_g``, shape (goals,).
        attained: Whether the goals are met within the tolerance.
        limited: Not attained, but would be without the bounds of the yielding variables.
        method: Where x comes from; all but ``SOLVER`` are substitutes.
        iterations: Of all programs that were solved.
        solve_time: Wall time of all of them, [s].
    """

    x: Array
    missing: Array
    attained: bool = False
    limited: bool = False
    method: QpMethod = QpMethod.SOLVER
    iterations: int = 0
    solve_time: float = 0.0


def conditioning(goals: Array, hessian: Array, weights: Array) -> float:
    """Return ``1 / trace((W G H^-1 G' W)^-1)`` of goals, zero if rows of them are dependent.

    Args:
        goals: G, shape (k, n).
        hessian: Diagonal of H, shape (n,), > 0.
        weights: Squares of the diagonal of W, shape (k,), > 0.
    """
    rows = np.sqrt(weights)[:, None] * goals / np.sqrt(hessian)
    values = np.linalg.eigvalsh(rows @ rows.T)
    if not values.size or not values[0] > DEPENDENT * values[-1]:
        return 0.0
    return 1.0 / float(np.sum(1.0 / values))


class GoalProgram:
    """One program of fixed size; see the module for its form. Rows are [hard, goals].

    Args:
        solver: ``daqp`` or ``osqp``.
        hessian: Diagonal of H, shape (n,), > 0; fixed.
        hard: Number of hard rows.
        weights: w, shape (goals,), > 0; only their ratios count.
        yielding: Indices of the variables whose bounds yield.
        tolerance: |s_i| below which a goal counts as met, relative to the size of the terms of
            its row (`_sizes`), so that units do not matter.
        price: p, > 0: what goals out of reach may cost, the norm of their multipliers over the
            roots of weights of one at most; infinity keeps the strict order.
        regular: r, >= 0: `conditioning` of the goals below which they are damped.

    Attributes:
        gradient, lower_bounds, upper_bounds, matrix: As in `QpSolver`; written by the user.
        right: b, shape (hard + goals,).
        hessian, hard, weights, tolerance, price, regular: As given.
        shares: The weights over the largest.
        yielding: As given, an array of indices.
        exact: The program whose rows are all equations; it has these arrays.
        rounding: ``|s|^2 / |b|^2``, of the hard rows and of the goals, up to which they are met.
        result: The last result.
    """

    def __init__(
        self,
        solver: str,
        hessian: Array,
        hard: int,
        weights: Array,
        *,
        yielding: Sequence[int] = (),
        tolerance: float = 1e-8,
        price: float = math.inf,
        regular: float = 0.0,
    ) -> None:
        n, goals = hessian.size, weights.size
        self.price, self.regular = price, regular
        self.hard = self._hard = hard
        self.tolerance = self._tolerance = tolerance
        self.hessian, self.weights = hessian, weights
        self.yielding = self._yielding = np.array(yielding, dtype=np.intp)
        never = np.full(hard, np.inf)
        self.shares = weights / np.max(weights, initial=0.0) if goals else weights
        stiff = STIFFNESS * self.shares
        self.exact = self._exact = make_qp_solver(solver, n, np.full(hard + goals, np.inf))
        self._near = make_qp_solver(solver, n, np.concatenate([never, stiff]))
        programs = [self._exact, self._near]
        self._open: QpSolver | None = None
        if self._yielding.size:
            weight = np.full(self._yielding.size, STIFFNESS)
            self._open = make_qp_solver(solver, n, np.concatenate([never, weight]))
            programs.append(self._open)
        for program in programs[1:]:
            program.careful = True
        for program in programs:
            np.fill_diagonal(program.hessian, hessian)
        self._inverse = 1.0 / hessian
        self._far = False
        exact = self._exact
        self.gradient, self.matrix = exact.gradient, exact.matrix
        self.lower_bounds, self.upper_bounds = exact.lower_bounds, exact.upper_bounds
        self.right, self._right_up = exact.row_lower, exact.row_upper
        self.right[:] = 0.0
        self.rounding = self._rounding = (ROUNDING * tolerance) ** 2
        self._right_hard, self._right_goals = self.right[:hard], self.right[hard:]
        residual = exact.result.residual
        self._residual_hard, self._residual_goals = residual[:hard], residual[hard:]
        self.result = GoalResult(exact.result.x, self._residual_goals)
        self._softening = SOFTENING if exact.can_be_careful else SOFTENING[1:]

    def reset(self) -> None:
        """Forget the warm starts."""
        for program in (self._exact, self._near, self._open):
            if program is not None:
                program.reset()

    def solve(self) -> GoalResult:
        """Solve with the present contents of the arrays.

        Data that are not finite give the method ``NEAREST_TO_ZERO``.
        """
        start = time.perf_counter()
        out = self.result
        out.iterations = 0
        out.limited = False
        if not self._try():
            self._relax_goals()
        elif out.method is QpMethod.SOLVER and (damping := self._damping()) > 0.0:
            self._soften(damping)
        out.solve_time = time.perf_counter() - start
        return out

    def _try(self, *, careful: bool = False) -> bool:
        """Solve with the goals as constraints; return whether that is settled."""
        out, exact = self.result, self._exact
        np.copyto(self._right_up, self.right)
        exact.careful = careful
        found = exact.attempt()
        out.iterations += found.iterations
        out.method = found.method
        if found.method is QpMethod.NEAREST_TO_ZERO:
            return True
        if found.status is QpStatus.OPTIMAL:
            if self._keeps_hard_rows() and self._attains_goals():
                out.attained = True
                return True
            if exact.can_be_careful and not careful:
                return self._try(careful=True)
        out.attained = False
        return False

    def _damping(self) -> float:
        """Return the reciprocal of the largest weight of goals; zero keeps the strict order."""
        if self.regular <= 0.0:
            return 0.0
        found = conditioning(self.matrix[self._hard :], self.hessian, self.shares)
        return self.regular * max(1.0 - found / self.regular, 0.0) ** 2

    def _relax_goals(self) -> None:
        """Find the x of the first priority that cannot be met in full."""
        y = self._yielding
        bounds = self.lower_bounds[y], self.upper_bounds[y]
        out = self.result
        if self._approach(self._softening[:1]):
            if not (out.attained or self._far) and self._exact.can_be_careful:
                self._try_beside(careful=True)
        else:
            wide = self._open
            if wide is None or not self._yield_bounds(wide):
                self._approach(self._softening, recover=True)
            elif not (self._try() or self._try(careful=True)):
                # bounds that could just be opened may leave no more than the point they have
                recover = wide.result.status is not QpStatus.OPTIMAL
                if not self._approach(self._softening, recover=recover):
                    self._accept(wide.result, always=True)
        attained = out.attained
        if out.method is QpMethod.SOLVER:
            damping = self._damping()
            if damping > 0.0 or (self.price < math.inf and not attained):
                self._soften(damping)
        if y.size and not attained:
            self.lower_bounds[y], self.upper_bounds[y] = -QP_INFINITY, QP_INFINITY
            out.limited = self._try_beside(keep=True)
            out.attained = False
        self.lower_bounds[y], self.upper_bounds[y] = bounds

    def _try_beside(self, *, careful: bool = False, keep: bool = False) -> bool:
        """Try as `_try` does; keep the present x if that fails, or in any case."""
        out = self.result
        x, missing, method = out.x.copy(), out.missing.copy(), out.method
        settled = self._try(careful=careful)
        if keep or not settled:
            out.x[:], out.missing[:], out.method = x, missing, method
        return settled

    def _approach(self, factors: Sequence[float], *, recover: bool = False) -> bool:
        """Solve for the least weighted s; return whether the solver succeeded.

        Args:
            factors: On the rows of the goals, in turn until the solver succeeds.
            recover: True to use a substitute if it never does.
        """
        norm = self._norm()
        self._copy(self._near)
        # the substitute does not run out of digits: it takes the first factor
        for step, factor in enumerate((*factors, factors[0]) if recover else factors):
            last = step == len(factors)
            if self._accept(self._solve_near(factor / norm, recover=last), always=last):
                return True
        return False

    def _norm(self) -> float:
        """Return what the goals are divided by to be of size one in the metric of H."""
        square = float(np.max(self.matrix[self._hard :] ** 2 @ self._inverse, initial=0.0))
        return math.sqrt(square) if square > 0.0 else 1.0

    def _solve_near(self, factor: float, *, recover: bool) -> QpResult:
        """Solve with the goals times a factor, whose square is that of their weights."""
        near, hard = self._near, self._hard
        np.multiply(self.matrix[hard:], factor, out=near.matrix[hard:])
        np.multiply(self._right_goals, factor, out=near.row_lower[hard:])
        near.row_upper[:] = near.row_lower
        found = near.solve(recover=recover)
        self.result.iterations += found.iterations
        return found

    def _soften(self, damping: float) -> None:
        """Damp the goals, and let those that are missed cost their price."""
        out, right = self.result, self._right_goals
        x, missing, attained = out.x.copy(), out.missing.copy(), out.attained
        weight = 1.0 / damping if damping > 0.0 else math.inf
        if not attained:
            size = max(math.sqrt(missing.dot(self.shares * missing)), 1e-300)
            full = FULL_SHARE * math.sqrt(right.dot(self.shares * right))
            weight = min(weight, self.price / size * max(1.0, full / size))
        self._copy(self._near)
        most = STIFFNESS / self._norm() ** 2
        factor = math.sqrt(min(weight, most) / STIFFNESS)
        if not self._accept(self._solve_near(factor, recover=False)):
            out.x[:], out.missing[:] = x, missing
        elif attained and weight > most:
            self._take(x + most / weight * (out.x - x))
            out.attained = self._attains_goals()
        out.attained = out.attained and attained

    def _accept(self, found: QpResult, *, always: bool = False) -> bool:
        """Make another program's x the result, if it is a solution; return whether it is one."""
        out = self.result
        self._take(found.x)
        good = found.status is QpStatus.OPTIMAL and self._keeps_hard_rows()
        if good or always:
            out.method = found.method
            out.attained = self._attains_goals()
        return good or always

    def _take(self, x: Array) -> None:
        """Make x the result."""
        exact = self._exact
        self.result.x[:] = x
        np.dot(exact.matrix, x, out=exact.result.residual)
        exact.result.residual -= self.right

    def _yield_bounds(self, program: QpSolver) -> bool:
        """Open the yielding bounds as far as the hard rows need it, by the least sum of squares.

        Returns:
            Whether they had to be opened.
        """
        hard, y = self._hard, self._yielding
        low, up = self.lower_bounds[y], self.upper_bounds[y]
        self._copy(program)
        program.lower_bounds[y], program.upper_bounds[y] = -QP_INFINITY, QP_INFINITY
        # stiffer rows lose digits of what is asked here to rounding, a percent on some machines
        factors = (*SOFTENING[1:], SOFTENING[1])
        for step, factor in enumerate(factors):
            program.matrix[hard + np.arange(y.size), y] = factor
            program.row_lower[hard:], program.row_upper[hard:] = factor * low, factor * up
            found = program.solve(recover=step == len(factors) - 1)
            self.result.iterations += found.iterations
            if found.status is QpStatus.OPTIMAL:
                break
        x = found.x[y]
        spare = RELAXATION * (1.0 + np.abs(x))
        if np.all((x >= low - spare) & (x <= up + spare)):
            return False
        self.lower_bounds[y] = np.minimum(low, x - spare)
        self.upper_bounds[y] = np.maximum(up, x + spare)
        return True

    def _copy(self, program: QpSolver) -> None:
        """Copy all but the rows after the hard ones."""
        exact, hard = self._exact, self._hard
        program.gradient[:] = exact.gradient
        program.lower_bounds[:] = exact.lower_bounds
        program.upper_bounds[:] = exact.upper_bounds
        program.matrix[:hard] = exact.matrix[:hard]
        program.row_lower[:hard] = program.row_upper[:hard] = self.right[:hard]

    def _keeps_hard_rows(self) -> bool:
        """Return whether the hard rows of the exact program's result hold."""
        if not self._hard:
            return True
        missing, right = self._residual_hard, self._right_hard
        if missing.dot(missing) <= self._rounding * right.dot(right):
            return True
        size = self._sizes(self._exact.result.x)[: self._hard]
        return bool((np.abs(missing) <= self._tolerance * size).all())

    def _attains_goals(self) -> bool:
        """Return whether the goals are met by the exact program's result."""
        missing, right = self._residual_goals, self._right_goals
        self._far = False
        if missing.dot(missing) <= self._rounding * right.dot(right):
            return True
        missing, size = np.abs(missing), self._sizes(self._exact.result.x)[self._hard :]
        self._far = bool((missing > RECHECK_LIMIT * size).any())
        return bool((missing <= self._tolerance * size).all())

    def _sizes(self, x: Array) -> Array:
        """Return the size of the terms of every row, shape (hard + goals,), in its own unit.

            hard rows:  S_i = sum_j |A_ij| |x_j| + |b_i|
            goals:      sum_j |A_ij| (|x_j| + v_j) + |b_i|,   v_j = min_i S_i / |A_ij| (hard i)

        v_j is the change of x_j that counts in the hard rows: where large forces cancel, an
        acceleration near zero is not known to more digits than these forces.
        """
        hard, matrix = self._hard, np.abs(self.matrix)
        size: Array = matrix @ np.abs(x) + np.abs(self.right)
        if hard:
            share = (matrix[:hard] / np.maximum(size[:hard], 1e-300)[:, None]).max(axis=0)
            change = np.divide(1.0, share, out=np.zeros_like(share), where=share > 0.0)
            size[hard:] += matrix[hard:] @ change
        return size
