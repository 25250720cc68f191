"""Wrench closure and the tension factor: can internal tensions be raised at will?"""

from __future__ import annotations

from dataclasses import dataclass

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.base import STATUS, Column, Results
from cards_core.analysis.conditions.kernels import RANK_TOLERANCE, tension_factors
from cards_core.analysis.conditions.options import Options, option
from cards_core.analysis.conditions.states import PointCondition
from cards_core.dynamics import Dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.typing import Array


@dataclass(frozen=True, kw_only=True)
class WrenchClosureOptions(Options):
    """Options of `WrenchClosure`."""

    threshold: float = option(
        "", "tension factor, of L with rows of norm 1, that counts as zero", 1e-10, minimum=0.0
    )
    rank_tolerance: float = option(
        "", "singular value ratio of L at which it is rank-deficient", RANK_TOLERANCE, above=0.0
    )


@dataclass(frozen=True, kw_only=True)
class TensionFactorOptions(Options):
    """Options of `TensionFactor`."""

    least: float = option(
        "", "tension factor from which a point counts as feasible", 1e-10, minimum=0.0
    )
    rank_tolerance: float = option(
        "", "singular value ratio of L at which it is rank-deficient", RANK_TOLERANCE, above=0.0
    )


class WrenchClosure(PointCondition):
    """Whether every wrench can be made by tensions f >= 0 without upper limit.

    ``rank L = nv`` and there is f > 0 with ``L'f = 0`` [Roberts1998]. Coordinates of joints that
    have motors of their own are left out.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `WrenchClosureOptions`.
    """

    name = "wrench_closure"
    columns = (STATUS,)

    def __init__(self, dynamics: Dynamics, options: WrenchClosureOptions) -> None:
        super().__init__(dynamics, Actuation(dynamics, motors=False))
        self.options = options

    def _answer(self, q: Array, state: BatchState) -> Results:
        status, _, _ = tension_factors(
            self._actuation.jacobian(state),
            normalise=True,
            threshold=self.options.threshold,
            rank_tolerance=self.options.rank_tolerance,
        )
        return {"status": status}


class TensionFactor(PointCondition):
    """The tension factor ``max of min f / max f`` over all f with L'f = 0, in 0..1 [Pham2009].

    1: all tensions can be equal. 0: no wrench closure.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `TensionFactorOptions`.
    """

    name = "tension_factor"
    columns = (STATUS, Column("tension_factor", "float64", "", "largest min f / max f"))

    def __init__(self, dynamics: Dynamics, options: TensionFactorOptions) -> None:
        super().__init__(dynamics, Actuation(dynamics, motors=False))
        self.options = options

    def _answer(self, q: Array, state: BatchState) -> Results:
        status, least, _ = tension_factors(
            self._actuation.jacobian(state),
            threshold=self.options.least,
            rank_tolerance=self.options.rank_tolerance,
        )
        return {"status": status, "tension_factor": least}
