"""Forward kinematics of a robot that is pulled: joint coordinates from muscle lengths.

There are more muscles than coordinates and no closed form, so q is tracked from step to step
[Lau2016]_:

``least_squares``  min 1/2 |l(q) - l|^2 within the joint limits, from the last q. No drift; the
                   default.
``differential``   q <- q (+) L^+ (l - l_last): the pseudo-inverse integrates the increments of
                   the measured lengths. One linear solve, and its errors add up.
``hybrid``         differential, with least squares in every k-th step.

(+) is a move in the tangent space, so quaternions stay of unit length. The velocity belongs to
the present pose: qd = L(q)^+ l'.

**Least squares** are solved by Levenberg and Marquardt's method with limits,

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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from cards_core.analysis.inverse_kinematics import rows_of
from cards_core.analysis.status import PointStatus
from cards_core.analysis.tangent import TangentSpace
from cards_core.checks import check_choice, finite_number
from cards_core.dynamics.interface import Dynamics, DynamicsState
from cards_core.errors import ShapeError
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


Method = Literal["least_squares", "differential", "hybrid"]
"""Ways from lengths to q."""

METHODS: tuple[Method, ...] = get_args(Method)

MOST_STARTS = 1_000_000
"""Random starting points; each costs some milliseconds."""

TOLERANCE = 1e-6
"""Residual up to which lengths count as reached, [m]: a micrometre."""


@dataclass(frozen=True, eq=False, slots=True)
class ForwardKinematicsResult:
    """One step.

    Attributes:
        status: FEASIBLE: q has these lengths to within the tolerance. UNREACHABLE: q is a proven
            local minimum of the residual within the limits, and that is too large.
            RANK_DEFICIENT: q has these lengths, and so have others right beside it (fewer muscles
            than degrees of freedom, or a singular pose). NOT_CONVERGED: not even a minimum, or
            the drift of ``differential`` is beyond the tolerance. PATH_NOT_FOUND: a muscle's way
            around its surfaces is a guess. NOT_FINITE: the lengths contain NaN; q is the last
            one. NO_MUSCLES.
        q: Coordinates, shape (nq,), within the limits; the best that was found, whatever the
            status.
        residual: max |l(q) - l|, [m].
        iterations: Evaluations of the model.
        qd: Velocities for the rates that were given, shape (nv,); None without rates. Of least
            norm where L has not full rank, NaN where the rates are.
    """

    status: PointStatus
    q: Array
    residual: float
    iterations: int
    qd: Array | None = None


@dataclass(frozen=True, eq=False)
class ForwardKinematicsTrack:
    """A whole sequence: status (n,), q (n, nq), residual (n,), iterations (n,), qd (n, nv)."""

    status: npt.NDArray[np.uint8]
    q: Array
    residual: Array
    iterations: npt.NDArray[np.intp]
    qd: Array | None


class ForwardKinematics:
    """Tracks q from muscle lengths; one object per robot and thread.

    Args:
        dynamics: Of the robot; the object may be used by others between the steps.
        method: Of `METHODS`.
        tolerance: Residual up to which lengths count as reached, [m]. With measured lengths take
            their noise.
        correction_period: ``hybrid``: every how many steps least squares corrects.
        starts: Random starting points that the first step tries besides ``initial``.
        initial: Starting point of the first step, shape (nq,); home without it.
        muscles: Names of the muscles whose lengths are given, in this order; all without it.
        seed: Of the random starting points.

    Attributes:
        q: The last result, shape (nq,): where the next step starts.

    Raises:
        UnknownNameError: No such method or muscle.
        ShapeError: ``initial`` is no point of the robot.
        CardsError: A number out of range.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        method: Method = "least_squares",
        *,
        tolerance: float = TOLERANCE,
        correction_period: int = 10,
        starts: int = 0,
        initial: Array | None = None,
        muscles: Sequence[str] | None = None,
        seed: int = 0,
    ) -> None:
        check_choice(method, "method of forward kinematics", METHODS)
        finite_number(tolerance, "tolerance of forward kinematics [m]", above=0.0)
        finite_number(correction_period, "correction_period [steps]", at_least=1.0)
        finite_number(starts, "starts of forward kinematics", at_least=0.0, at_most=MOST_STARTS)
        names = [muscle.name for muscle in dynamics.robot.muscles]
        rows = None
        if muscles is not None:
            for name in muscles:
                dynamics.robot.muscle(name)
            rows = np.array([names.index(name) for name in muscles], dtype=np.intp)
        self._dynamics = dynamics
        self._tree = dynamics.tree
        self._method = method
        self._tolerance = tolerance
        self._period = correction_period
        self._solver = LengthSolver(dynamics, rows)
        self._names = tuple(names if muscles is None else muscles)
        tree = self._tree
        start = tree.check_q(tree.home if initial is None else initial)
        self._initial = self._solver.space.clip(start)
        rng = np.random.default_rng(seed)
        self._starts = [tree.random(rng) for _ in range(starts)]
        self.q = self._initial
        self._last: Solution | None = None
        self._lengths: Array = np.zeros(0)
        self._count = 0

    def reset(self, q: Array | None = None) -> None:
        """Restart, from q, shape (nq,), or from the initial point."""
        if q is not None:
            self._initial = self._solver.space.clip(self._tree.check_q(q))
        self.q = self._initial
        self._last = None
        self._count = 0

    def step(self, lengths: Array, rates: Array | None = None) -> ForwardKinematicsResult:
        """Return q for the next lengths.

        Args:
            lengths: Of the muscles, shape (m,), [m].
            rates: Their derivatives, shape (m,), [m/s]: adds qd.

        Raises:
            ShapeError: Not one number per muscle.
        """
        lengths = self._checked(lengths, "lengths")
        if not lengths.size:
            qd = None if rates is None else np.zeros(self._tree.nv)
            return ForwardKinematicsResult(PointStatus.NO_MUSCLES, self.q, 0.0, 0, qd)
        if not np.isfinite(lengths).all():
            qd = None if rates is None else np.full(self._tree.nv, np.nan)
            return ForwardKinematicsResult(PointStatus.NOT_FINITE, self.q, np.nan, 0, qd)
        found = self._advance(lengths)
        self._last, self._lengths, self.q = found, lengths, found.q
        qd = None
        if rates is not None:
            qd = self._solver.velocity(found, self._checked(rates, "rates"))
        status = self._status(found)
        return ForwardKinematicsResult(status, found.q, found.residual, found.iterations, qd)

    def track(self, lengths: Array, rates: Array | None = None) -> ForwardKinematicsTrack:
        """Return q for a sequence of lengths, shape (n, m), one `step` each."""
        rows = rows_of(lengths, len(self._names), "lengths", self._names)
        speeds = None if rates is None else rows_of(rates, len(self._names), "rates", self._names)
        if speeds is not None and len(speeds) != len(rows):
            raise ShapeError(f"rates has {len(speeds)} rows, expected {len(rows)}")
        results = [
            self.step(row, None if speeds is None else speeds[i]) for i, row in enumerate(rows)
        ]
        n = len(results)
        return ForwardKinematicsTrack(
            np.array([r.status for r in results], dtype=np.uint8),
            np.array([r.q for r in results]).reshape(n, self._tree.nq),
            np.array([r.residual for r in results]),
            np.array([r.iterations for r in results], dtype=np.intp),
            None if speeds is None else np.array([r.qd for r in results]).reshape(n, -1),
        )

    def _advance(self, lengths: Array) -> Solution:
        last = self._last
        if last is None:
            return self._first(lengths)
        self._count += 1
        if self._method == "least_squares" or (
            self._method == "hybrid" and self._count % self._period == 0
        ):
            return self._solver.solve(last.q, lengths)
        return self._solver.increment(last, lengths - self._lengths, lengths)

    def _first(self, lengths: Array) -> Solution:
        best = self._solver.solve(self._initial, lengths)
        evaluations = best.iterations
        for start in self._starts:
            other = self._solver.solve(start, lengths)
            evaluations += other.iterations
            # rounding must not decide between two poses that both fit
            if other.residual < best.residual and best.residual > self._tolerance:
                best = other
        best.iterations = evaluations
        return best

    def _status(self, found: Solution) -> PointStatus:
        if found.path_failed:
            return PointStatus.PATH_NOT_FOUND
        if not found.converged and not found.residual <= self._tolerance:
            return PointStatus.NOT_CONVERGED
        if found.residual > self._tolerance:
            return PointStatus.UNREACHABLE
        if self._solver.rank_deficient(found):
            return PointStatus.RANK_DEFICIENT
        return PointStatus.FEASIBLE

    def _checked(self, values: Array, name: str) -> Array:
        array = np.array(values, dtype=float)
        if array.shape != (len(self._names),):
            raise ShapeError(
                f"{name} has shape {array.shape}, expected ({len(self._names)},): one value for "
                f"each of {', '.join(self._names) or 'no muscles'}"
            )
        return array
