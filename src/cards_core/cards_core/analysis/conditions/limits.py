"""Joint limits as a condition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.base import STATUS, Column, Results
from cards_core.analysis.conditions.options import Options, option
from cards_core.analysis.conditions.states import PointCondition
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import Dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.typing import Array


@dataclass(frozen=True, kw_only=True)
class JointLimitsOptions(Options):
    """Options of `JointLimits`."""

    least: float = option(
        "rad or m", "distance from the nearest limit from which a point is feasible", 0.0
    )


class JointLimits(PointCondition):
    """Whether ``lower <= q <= upper``, and the distance from the nearest limit.

    Quaternions have no limits. The margin is infinite where no coordinate has any.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `JointLimitsOptions`.
    """

    name = "joint_limits"
    columns = (
        STATUS,
        Column("limit_margin", "float64", "rad or m", "distance from the nearest limit"),
    )
    least_rows = 0

    def __init__(self, dynamics: Dynamics, options: JointLimitsOptions) -> None:
        super().__init__(dynamics, Actuation(dynamics))
        self.options = options

    def _answer(self, q: Array, state: BatchState) -> Results:
        tree = self._dynamics.tree
        margin = np.minimum(q - tree.lower, tree.upper - q).min(axis=1, initial=np.inf)
        good = margin >= self.options.least
        status = np.where(good, PointStatus.FEASIBLE, PointStatus.INFEASIBLE).astype(np.uint8)
        return {"status": status, "limit_margin": margin}
