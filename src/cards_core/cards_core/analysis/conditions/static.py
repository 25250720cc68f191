"""Can the pose be held? Exactly, at any number of muscles and any rank of L."""

from __future__ import annotations

from dataclasses import dataclass

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.base import STATUS, Column, Results
from cards_core.analysis.conditions.kernels import RequiredWrenches, distances
from cards_core.analysis.conditions.options import Options, option
from cards_core.analysis.conditions.states import PointCondition
from cards_core.dynamics import Dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.typing import Array


@dataclass(frozen=True, kw_only=True)
class StaticOptions(Options):
    """Options of `Static`."""

    characteristic_length: float | None = option(
        "m", "divides moments, so that the residual is a force", None, above=0.0
    )
    tolerance: float = option(
        "", "largest residual that counts as none, relative to the largest term", 1e-9, above=0.0
    )


class Static(PointCondition):
    """Whether there are tensions within the limits with ``-L'f = G`` (and ligaments in G).

    The residual is ``min |S (-L'f - G)|``, the distance of G from what the muscles can make, by
    bounded least squares [Stark1995]; S divides moments by the characteristic length.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `StaticOptions`.
    """

    name = "static"

    def __init__(self, dynamics: Dynamics, options: StaticOptions) -> None:
        super().__init__(dynamics, Actuation(dynamics))
        self.options = options
        unit = "N or Nm" if options.characteristic_length is None else "N"
        self.columns = (STATUS, Column("residual", "float64", unit, "smallest |-L'f - G|"))
        self._scale = self._actuation.scale(options.characteristic_length)

    def _answer(self, q: Array, state: BatchState) -> Results:
        actuation = self._actuation
        status, residual = distances(
            actuation.jacobian(state),
            actuation.lower,
            actuation.upper,
            RequiredWrenches(actuation.load(state)),
            self._scale,
            tolerance=self.options.tolerance,
        )
        return {"status": status, "residual": residual}
