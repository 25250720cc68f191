"""Coordinates whose muscle lengths are nearest to given ones: Levenberg-Marquardt with limits.

    minimise 1/2 |r(q)|^2,   r = l(q) - l,   dr/dq = L,   lower <= q <= upper

on the tangent space [More1978]_: ``(L'L + mu D) p = -L' r``, ``q <- clip(q (+) p)``. A coordinate
at a limit that the gradient presses against it is held there. The first trial of every step has
mu = 0 (Gauss-Newton); mu grows while the cost would not fall. Lengths far from all that can be
reached leave a large residual, which makes Gauss-Newton crawl: after some steps the matrix is that
of Newton's method, ``L'L + sum_i r_i dL_i/dq``.

A minimum is believed when it is proven: for every coordinate that is not held

    |L_j' r| <= |L_j| (1e-8 |r| + 1e-12 max l)

i.e. the residual is orthogonal to every direction in which it could be lessened; where it is
large, the second derivatives must not be negative either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from cards_core.analysis.tangent import TangentSpace
from cards_core.dynamics.interface import Dynamics, DynamicsState
from cards_core.typing import Array

ORTHOGONALITY = 1e-8
"""Largest cosine between the residual and a column of L at a minimum. The cost, by which steps are
accepted, changes by its square: less cannot be told from rounding."""

SMALL_RESIDUAL = 1e-12
"""Residual relative to the longest length that needs no lessening: picometres. Lengths are rounded
to 1e-15."""

MAX_EVALUATIONS = 100
"""Evaluations of the model per solve; from a near start it takes two or three."""

SADDLE = 1e-3
"""Residual, relative to the longest length, from which on a stationary point may be a saddle; a
smaller one cannot outweigh L'L except where L is singular."""

GAUSS_NEWTON = 8
"""Evaluations after which the second derivatives join in: the residual is then so large that
Gauss-Newton crawls."""

WELL_CONDITIONED = 1e-8
"""Reciprocal condition number of L'L above which its factorisation is good enough."""

RANK_TOLERANCE = 1e-9
"""Singular value of L with columns of unit length, below which a direction changes no length."""


@dataclass(eq=False, slots=True)
class Solution:
    """What was found.

    Attributes:
        q: Coordinates, shape (nq,).
        residual: max |l(q) - l|, [m].
        jacobian: L at q, shape (m, nv).
        converged: Whether q is a proven minimum.
        path_failed: Whether the path of a muscle at q is a guess.
        iterations: Evaluations of the model.
    """

    q: Array
    residual: float
    jacobian: Array
    converged: bool
    path_failed: bool
    iterations: int


class LengthSolver:
    """Finds coordinates of given lengths.

    Args:
        dynamics: Of the robot.
        rows: Indices of the muscles whose lengths count, shape (k,); None for all.

    Attributes:
        space: Tangent space of the coordinates.
    """

    def __init__(self, dynamics: Dynamics, rows: npt.NDArray[np.intp] | None = None) -> None:
        self.space = TangentSpace(dynamics.tree)
        self._dynamics = dynamics
        self._rows = rows
        self._still = np.zeros(dynamics.tree.nv)
        self._eye = np.eye(dynamics.tree.nv)

    def solve(self, q: Array, lengths: Array) -> Solution:
        """Return the nearest minimum from q.

        Args:
            q: Where to start, shape (nq,), within the limits.
            lengths: shape (k,), [m], finite.
        """
        scale_of_lengths = float(np.abs(lengths).max()) + 1e-3
        floor = SMALL_RESIDUAL * scale_of_lengths
        found, jacobian, failed = self._evaluate(q)
        residual = found - lengths
        cost = float(residual @ residual)
        evaluations, limit_of_evaluations = 1, MAX_EVALUATIONS
        mu, growth = 0.0, 4.0
        converged = False
        while True:
            normal, gradient = jacobian.T @ jacobian, jacobian.T @ residual
            diagonal = normal.diagonal().copy()
            if evaluations > GAUSS_NEWTON:
                normal += self._curvature(q, residual)
            held = self._held(q, gradient)
            if held is not None:
                gradient[held] = 0.0
                normal[held] = 0.0
                normal[:, held] = 0.0
                normal[held, held] = 1.0
            # |g_j| <= |L_j| (c |r| + floor) for all j, squared
            limit = ORTHOGONALITY * cost**0.5 + floor
            if not (gradient * gradient > diagonal * (limit * limit)).any():
                beside = None
                if evaluations < limit_of_evaluations and cost > (SADDLE * scale_of_lengths) ** 2:
                    beside = self._beside_saddle(q, lengths, held)
                if beside is None:
                    converged = True
                    break
                q = beside
                found, jacobian, failed = self._evaluate(q)
                residual = found - lengths
                cost = float(residual @ residual)
                limit_of_evaluations -= 10  # so that this cannot go on for ever
                continue
            scale = float(diagonal.max()) or 1.0
            accepted = False
            while evaluations < limit_of_evaluations:
                step = self._damped(normal, gradient, mu * scale)
                if step is not None:
                    trial = self.space.integrate(q, step)
                    if self.space.limited:
                        trial = self.space.clip(trial)
                    found, jacobian, trial_failed = self._evaluate(trial)
                    evaluations += 1
                    other = found - lengths
                    new_cost = float(other @ other)
                    if new_cost <= cost * (1.0 + 1e-13):
                        accepted = True
                        break
                    if mu > 1e12:
                        break
                mu = max(mu * growth, 1e-6)
                growth = min(2.0 * growth, 1e3)
            if not accepted:
                # the model's state belongs to a refused trial
                found, jacobian, failed = self._evaluate(q)
                break
            q, residual, cost, failed = trial, other, new_cost, trial_failed
            mu, growth = (0.0 if mu <= 1e-6 else mu / 10.0), 4.0
        return Solution(
            q, float(np.abs(residual).max()), jacobian.copy(), converged, failed, evaluations
        )

    def increment(self, last: Solution, change: Array, lengths: Array) -> Solution:
        """Return q moved by ``L^+ change`` from the last solution, with its residual.

        Args:
            last: Where to move from.
            change: Of the lengths, shape (k,), [m].
            lengths: To compare with, shape (k,), [m].
        """
        q = self.space.integrate(last.q, self._least_squares(last.jacobian, change))
        if self.space.limited:
            q = self.space.clip(q)
        found, jacobian, failed = self._evaluate(q)
        residual = float(np.abs(found - lengths).max())
        return Solution(q, residual, jacobian.copy(), False, failed, 1)

    def velocity(self, at: Solution, rates: Array) -> Array:
        """Return L^+ l' at a solution, shape (nv,); NaN where the rates are not finite."""
        if not np.isfinite(rates).all():
            return np.full(len(self._still), np.nan)
        return self._least_squares(at.jacobian, rates)

    def rank_deficient(self, at: Solution) -> bool:
        """Return True if some direction of motion changes no length at a solution."""
        jacobian = at.jacobian
        m, nv = jacobian.shape
        if m < nv:
            return True
        if self._condition(jacobian.T @ jacobian)[1] > WELL_CONDITIONED:
            return False
        norms = np.linalg.norm(jacobian, axis=0)
        if not norms.all():
            return bool(nv)
        return bool(np.linalg.svd(jacobian / norms, compute_uv=False)[-1] < RANK_TOLERANCE)

    def _evaluate(self, q: Array) -> tuple[Array, Array, bool]:
        before = self._dynamics.path_failures
        state: DynamicsState = self._dynamics.update(q, self._still)
        failed = before != self._dynamics.path_failures
        if self._rows is None:
            return state.muscle_lengths, state.muscle_jacobian, failed
        return state.muscle_lengths[self._rows], state.muscle_jacobian[self._rows], failed

    def _curvature(self, q: Array, residual: Array) -> Array:
        """Return sum_i r_i dL_i/dq, its symmetric part."""
        gradient = self._dynamics.jacobian_gradient(q)
        if self._rows is not None:
            gradient = gradient[self._rows]
        out = np.einsum("i,ijk->jk", residual, gradient)
        return np.asarray(0.5 * (out + out.T))

    def _beside_saddle(
        self, q: Array, lengths: Array, held: npt.NDArray[np.bool_] | None
    ) -> Array | None:
        """Return a better point beside a stationary one that is no minimum, None at a minimum."""
        found, jacobian, _ = self._evaluate(q)
        residual = found - lengths
        cost = float(residual @ residual)
        matrix = jacobian.T @ jacobian + self._curvature(q, residual)
        if held is not None:
            matrix[held] = 0.0
            matrix[:, held] = 0.0
        values, vectors = np.linalg.eigh(matrix)
        if not values[0] < -1e-6 * np.abs(values).max():
            return None
        for size in (0.1, -0.1, 0.01, -0.01, 0.001, -0.001):
            trial = self.space.clip(self.space.integrate(q, size * vectors[:, 0]))
            other = self._evaluate(trial)[0] - lengths
            if float(other @ other) < cost:
                return trial
        return None

    def _held(self, q: Array, gradient: Array) -> npt.NDArray[np.bool_] | None:
        """Coordinates that the gradient presses against their limits; None if there are none."""
        space = self.space
        if not space.limited:
            return None
        position = space.position(q)
        at_lower, at_upper = position <= space.lower, position >= space.upper
        if not (at_lower.any() or at_upper.any()):
            return None
        held: npt.NDArray[np.bool_] = (at_lower & (gradient > 0.0)) | (at_upper & (gradient < 0.0))
        return held if held.any() else None

    def _damped(self, normal: Array, gradient: Array, damping: float) -> Array | None:
        matrix = normal + damping * self._eye if damping else normal
        _, step, info = lapack.dposv(matrix, -gradient)
        return step if info == 0 else None

    def _least_squares(self, matrix: Array, right: Array) -> Array:
        normal = matrix.T @ matrix
        factor, rcond = self._condition(normal)
        if rcond > WELL_CONDITIONED:
            out: Array = lapack.dpotrs(factor, matrix.T @ right)[0]
            return out
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=RANK_TOLERANCE)[0])

    @staticmethod
    def _condition(normal: Array) -> tuple[Array, float]:
        """Return the Cholesky factor of L'L and its reciprocal condition number (0: none)."""
        if not normal.size:
            return normal, 1.0
        factor, info = lapack.dpotrf(normal)
        if info != 0:
            return factor, 0.0
        return factor, float(lapack.dpocon(factor, float(np.abs(normal).sum(axis=0).max()))[0])
