"""What all tension distributions share: the question, the checks, the reasons for no answer.

    given A (nv x m) and w:   find f with  A f = w  and  f_min <= f <= f_max,   A = -L'

Redundant muscles leave a polytope of answers; the methods differ in which of them they take.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cards_core.analysis.status import PointStatus
from cards_core.errors import CardsError, ShapeError
from cards_core.optimize.qp import bounded_least_squares
from cards_core.typing import Array

TENSION_TOLERANCE = 1e-6
"""Tension error that an answer may have, [N]: A f = w holds as well as errors of this size allow,
and no tension is farther beyond its limits."""

RELATIVE_TOLERANCE = 1e-9
"""The same relative to the needed joint force: rounding of large forces."""

RANK_TOLERANCE = 1e-9
"""Singular value, relative to the largest, below which a joint force cannot be made."""


class TensionLimitError(CardsError):
    """Tension limits that contradict each other, or that a method cannot work with."""


@dataclass(frozen=True, eq=False, slots=True)
class TensionResult:
    """Answer of a tension distribution.

    Attributes:
        status: FEASIBLE: `tensions` make the force and keep the limits, to `TENSION_TOLERANCE`.
            INFEASIBLE: proven that none can; `tensions` are those within the limits that come
            nearest in the sense of least squares. RANK_DEFICIENT: the force is none that the
            muscles could make here even without limits; `tensions` likewise. NOT_CONVERGED: this
            method has no answer, which proves nothing; `tensions` are what it found, and may be
            beyond the limits. NO_MUSCLES, NOT_FINITE: `tensions` are NaN or empty.
        tensions: f, shape (m,), [N].
        residual: A f - w, shape (nv,), [Nm] or [N].
        iterations: Of the method.
    """

    status: PointStatus
    tensions: Array
    residual: Array
    iterations: int = 0


class TensionDistribution(ABC):
    """A method for fixed limits.

    Args:
        tension_min: f_min, shape (m,), [N].
        tension_max: f_max, shape (m,), [N]; may be infinite unless the method says otherwise.
        size: Number of joint forces nv.

    Attributes:
        name: Of the method.

    Raises:
        ShapeError: The limits do not have the same shape (m,).
        TensionLimitError: f_min > f_max, NaN, or limits that the method cannot work with.
    """

    name: ClassVar[str]
    needs_upper_limits: ClassVar[bool] = False

    def __init__(self, tension_min: Array, tension_max: Array, size: int) -> None:
        low, high = np.array(tension_min, dtype=float), np.array(tension_max, dtype=float)
        if low.ndim != 1 or low.shape != high.shape:
            raise ShapeError(
                f"tension limits have shapes {low.shape} and {high.shape}, expected twice (m,)"
            )
        wrong = ~((low <= high) & np.isfinite(low) & (high > -np.inf))
        if wrong.any():
            i = int(np.argmax(wrong))
            raise TensionLimitError(
                f"tension limits of muscle {i} are {low[i]} .. {high[i]} N, expected a finite "
                "lower one that is not above the upper one"
            )
        if self.needs_upper_limits and not np.isfinite(high).all():
            i = int(np.argmin(np.isfinite(high)))
            raise TensionLimitError(
                f"muscle {i} has no largest tension; '{self.name}' lies in the middle between the "
                "limits and needs one (expected: a finite <tension max>)"
            )
        self.tension_min, self.tension_max = low, high
        self.size = size
        self._fixed = low == high
        self._any_fixed = bool(self._fixed.any())

    def solve(self, matrix: Array, needed: Array) -> TensionResult:
        """Return tensions for one point.

        Args:
            matrix: A = -L', shape (nv, m), [m/rad] or [1].
            needed: w, shape (nv,), [Nm] or [N].
        """
        m = len(self.tension_min)
        # a dot product meets every entry and costs a third of isfinite().all()
        if not np.isfinite(np.vdot(matrix, matrix) + needed @ needed):
            return TensionResult(
                PointStatus.NOT_FINITE, np.full(m, np.nan), np.full(self.size, np.nan)
            )
        if m == 0:
            return TensionResult(PointStatus.NO_MUSCLES, np.zeros(0), -needed)
        found, iterations = self._distribute(matrix, needed)
        residual = needed
        for attempt in range(2):
            if found is not None:
                residual = matrix @ found - needed
                if self._holds(found, residual, matrix, needed):
                    return TensionResult(PointStatus.FEASIBLE, found, residual, iterations)
            if attempt == 0:
                better, more = self._independent(matrix, needed)
                found, iterations = (found if better is None else better), iterations + more
        reason = explain(matrix, needed, self.tension_min, self.tension_max, iterations)
        if reason.status is not PointStatus.NOT_CONVERGED or found is None:
            return reason
        return TensionResult(PointStatus.NOT_CONVERGED, found, residual, iterations)

    def _holds(self, tensions: Array, residual: Array, matrix: Array, needed: Array) -> bool:
        """Check an answer, wherever it comes from."""
        beyond = max(
            float((self.tension_min - tensions).max()), float((tensions - self.tension_max).max())
        )
        if not beyond <= TENSION_TOLERANCE:
            return False
        lever = float(np.abs(matrix).sum(axis=1).max(initial=0.0))
        allowed = TENSION_TOLERANCE * lever + RELATIVE_TOLERANCE * float(np.abs(needed).max())
        return bool(np.abs(residual).max() <= allowed)

    @abstractmethod
    def _distribute(self, matrix: Array, needed: Array) -> tuple[Array | None, int]:
        """Return tensions, or None where there are none within the limits, and iterations."""

    def _independent(self, matrix: Array, needed: Array) -> tuple[Array | None, int]:
        """Try again with independent rows, if those of A depend on each other.

        For methods that give up on dependent rows; None where that is not so.
        """
        del matrix, needed
        return None, 0


def explain(
    matrix: Array, needed: Array, low: Array, high: Array, iterations: int = 0
) -> TensionResult:
    """Say why there are no tensions: bounded least squares [Stark1995]_, and the rank of A.

    Also has the last word on a method that found nothing: if the least squares leave no residual,
    there are tensions, and the status is NOT_CONVERGED. So it is where the direction of the
    residual does not separate w from all A f: near a singular pose the least squares may end
    before their minimum, which proves nothing.

    Args:
        matrix: A, shape (nv, m).
        needed: b, shape (nv,), [N] or [Nm].
        low: Minimum tensions, shape (m,), [N].
        high: Maximum tensions, shape (m,), [N].
        iterations: Number of iterations so far, for the result.
    """
    free = low < high
    tensions = low.copy()
    rest = needed - matrix[:, ~free] @ low[~free]
    if free.any():
        tensions[free] = bounded_least_squares(
            matrix[:, free], rest, low[free], high[free], tolerance=1e-14
        )
    tensions = np.clip(tensions, low, high)
    residual = matrix @ tensions - needed
    lever = float(np.abs(matrix).sum(axis=1).max(initial=0.0))
    allowed = 0.01 * TENSION_TOLERANCE * lever + RELATIVE_TOLERANCE * float(np.abs(needed).max())
    if np.abs(residual).max(initial=0.0) <= allowed:
        status = PointStatus.NOT_CONVERGED
    elif not in_range(matrix, needed):
        status = PointStatus.RANK_DEFICIENT
    elif separates(-residual, matrix, needed, low, high):
        status = PointStatus.INFEASIBLE
    else:
        status = PointStatus.NOT_CONVERGED
    return TensionResult(status, tensions, residual, iterations)


def separates(direction: Array, matrix: Array, needed: Array, low: Array, high: Array) -> bool:
    """Return True if w lies beyond all A f within the limits, seen along a direction d.

    ``d'w - max d'A f >= |d|^2/2``; for d = w - A f of the nearest A f the left side is |d|^2.

    Args:
        direction: d, shape (nv,), not zero.
        matrix: A, shape (nv, m).
        needed: w, shape (nv,).
        low: Minimum tensions, shape (m,), [N].
        high: Maximum tensions, shape (m,), [N]; may be infinite.
    """
    slopes = matrix.T @ direction
    # a slope that is rounding does not make an endless tension an endless force
    size = float(np.linalg.norm(direction))
    endless = np.isinf(high) & (slopes <= RANK_TOLERANCE * size * np.linalg.norm(matrix, axis=0))
    reach = slopes * np.where((slopes > 0.0) & ~endless, high, low)
    return bool(direction @ needed - reach.sum() >= 0.5 * size * size)


def in_range(matrix: Array, needed: Array) -> bool:
    """Return True if A f = w has a solution without limits, to `RELATIVE_TOLERANCE`."""
    u, s, _ = np.linalg.svd(matrix, full_matrices=False)
    kept = u[:, s > RANK_TOLERANCE * s.max(initial=0.0)]
    outside = needed - kept @ (kept.T @ needed)
    return bool(np.abs(outside).max(initial=0.0) <= 1e-7 * np.abs(needed).max(initial=0.0))


def null_space(matrix: Array) -> tuple[Array, Array, Array]:
    """Return a null space basis N of A, its pseudo-inverse, and a basis of its range.

    Returns:
        N, shape (m, r), orthonormal, r = m - rank(A); A^+, shape (m, nv); U, shape (nv, rank).
    """
    u, s, vt = np.linalg.svd(matrix, full_matrices=True)
    rank = int(np.sum(s > RANK_TOLERANCE * s.max(initial=0.0)))
    inverse = (vt[:rank].T / s[:rank]) @ u[:, :rank].T
    return vt[rank:].T, inverse, u[:, :rank]
