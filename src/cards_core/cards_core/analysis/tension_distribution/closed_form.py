"""Closed-form tension distributions: the middle of the limits, projected.

    f = f_m + A^+ (w - A f_m),   f_m = (f_min + f_max)/2

is the solution of A f = w nearest to the middle [Pott2009]_. It ignores the limits, so it may
break them although there are tensions that do not. Muscles whose limits are equal stay there.

The improved form [Pott2014]_ then fixes the muscle that is farthest beyond its limits at that
limit, takes it out of A, its pull out of w, and starts again with one muscle less, until all
limits hold or no redundancy is left. It finds an answer nearly wherever there is one, is
continuous along a trajectory, and takes at most r + 1 linear solves.

The puncture method [Muller2015]_ wants less tension: on the straight line from the least-norm
solution A^+ w, which breaks lower limits, to the improved closed form, all points of which solve
A f = w, it takes the first one within the limits.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.linalg import lapack

from cards_core.analysis.tension_distribution.base import (
    TENSION_TOLERANCE,
    TensionDistribution,
    null_space,
)
from cards_core.typing import Array


class ClosedForm(TensionDistribution):
    """Nearest to the middle of the limits, which it ignores [Pott2009]_.

    Where the result breaks a limit the status is NOT_CONVERGED, with that result.
    """

    name: ClassVar[str] = "closed_form"
    needs_upper_limits: ClassVar[bool] = True

    def __init__(self, tension_min: Array, tension_max: Array, size: int) -> None:
        super().__init__(tension_min, tension_max, size)
        self.middle = 0.5 * (self.tension_min + self.tension_max)

    def _distribute(self, matrix: Array, needed: Array) -> tuple[Array | None, int]:
        missing = needed - matrix @ self.middle
        if not self._any_fixed:
            return self.middle + least_norm(matrix, missing), 1
        tensions = self.middle.copy()
        tensions[~self._fixed] += least_norm(matrix[:, ~self._fixed], missing)
        return tensions, 1


class ImprovedClosedForm(ClosedForm):
    """As `ClosedForm`, with muscles beyond their limits fixed one by one [Pott2014]_.

    Where the redundancy is used up the status is NOT_CONVERGED: there may be an answer that this
    order of fixing muscles misses.
    """

    name: ClassVar[str] = "improved_closed_form"

    def _distribute(self, matrix: Array, needed: Array) -> tuple[Array | None, int]:
        low, high = self.tension_min, self.tension_max
        tensions = self.middle.copy()
        free = ~self._fixed
        for iteration in range(1, len(tensions) + 2):
            loose = matrix[:, free]
            rest = needed - matrix @ tensions
            if iteration > 1 or self._any_fixed:
                # the free ones start from their middle again
                rest += loose @ (tensions[free] - self.middle[free])
            tensions[free] = self.middle[free] + least_norm(loose, rest)
            beyond = np.maximum(low - tensions, tensions - high)
            worst = int(beyond.argmax())
            if beyond[worst] <= 0.01 * TENSION_TOLERANCE or not free[worst]:
                return tensions, iteration
            if int(free.sum()) <= self.size:  # no redundancy left
                return tensions, iteration
            free = free.copy()
            free[worst] = False
            tensions[worst] = low[worst] if tensions[worst] < low[worst] else high[worst]
        return tensions, iteration


class Puncture(ImprovedClosedForm):
    """First point within the limits from the least-norm solution to `ImprovedClosedForm`.

    Little tension by few linear solves [Muller2015]_. Where the improved closed form breaks a
    limit the status is NOT_CONVERGED, with that result.
    """

    name: ClassVar[str] = "puncture"

    def _distribute(self, matrix: Array, needed: Array) -> tuple[Array | None, int]:
        inside, iterations = super()._distribute(matrix, needed)
        if inside is None:
            return None, iterations
        low, high = self.tension_min, self.tension_max
        beyond = np.maximum(low - inside, inside - high).max(initial=0.0)
        if beyond > 0.01 * TENSION_TOLERANCE:
            return inside, iterations
        free = ~self._fixed
        start = self.middle.copy()
        start[free] = least_norm(matrix[:, free], needed - matrix[:, ~free] @ start[~free])
        # of start + s (inside - start): the least s that keeps both limits of every muscle
        way = inside - start
        limit = np.where(start < low, low, high)
        outside = (start < low) | (start > high)
        shares = (limit - start)[outside] / np.where(way == 0.0, 1.0, way)[outside]
        share = min(1.0, max(0.0, float(shares.max(initial=0.0))))
        return start + share * way, iterations + 1


def least_norm(matrix: Array, right: Array) -> Array:
    """Return A^+ b: the least-norm solution, or least squares where there is none.

    By the normal equations of the second kind, ``A' (A A')^-1 b``, where they are well
    conditioned, else by singular values.
    """
    gram = matrix @ matrix.T
    if len(gram) <= matrix.shape[1]:
        factor, info = lapack.dpotrf(gram)
        if info == 0:
            pivots = factor.diagonal()
            if pivots.min(initial=1.0) > 1e-4 * pivots.max(initial=0.0):
                solution = lapack.dpotrs(factor, right)[0]
                # one refinement: the normal equations square the condition number
                solution += lapack.dpotrs(factor, right - gram @ solution)[0]
                out: Array = matrix.T @ solution
                return out
    return np.asarray(null_space(matrix)[1] @ right)
