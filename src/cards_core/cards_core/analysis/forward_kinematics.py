"""Forward kinematics of a robot that is pulled: joint coordinates from muscle lengths.

There are more muscles than coordinates and no closed form, so q is tracked from step to step
[Lau2016]_:

``least_squares``  min 1/2 |l(q) - l|^2 within the joint limits, from the last q
                   (`cards_core.analysis.forward_kinematics_solver`). No drift; the default.
``differential``   q <- q (+) L^+ (l - l_last): the pseudo-inverse integrates the increments of
                   the measured lengths. One linear solve, and its errors add up.
``hybrid``         differential, with least squares in every k-th step.

(+) is a move in the tangent space, so quaternions stay of unit length. The velocity belongs to
the present pose: qd = L(q)^+ l'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from cards_core.analysis.forward_kinematics_solver import LengthSolver, Solution
from cards_core.analysis.inverse_kinematics import rows_of
from cards_core.analysis.status import PointStatus
from cards_core.checks import finite_number
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import ShapeError, UnknownNameError
from cards_core.typing import Array

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
        if method not in METHODS:
            raise UnknownNameError("method of forward kinematics", method, METHODS)
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
        """Start anew, from q, shape (nq,), or from the initial point."""
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
