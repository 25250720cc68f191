"""Accelerations that a robot can reach from rest in every direction.

From rest the muscles make the accelerations

    A = { M^-1 (-L'f - G - L_p'f_p),   f_min <= f <= f_max }

a zonotope. The distance of its boundary from zero, negative outside, is what CASPR calls the
static equilibrium acceleration capability measure (SEACM): in every direction at least this
acceleration is possible, and the pose can be held if and only if it is not negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.analysis.conditions.actuation import ACCELERATIONS
from cards_core.analysis.conditions.base import (
    STATUS,
    Column,
    ConditionError,
    Options,
    PointCondition,
    Results,
    option,
    rank_option,
)
from cards_core.analysis.conditions.kernels import (
    RequiredWrenches,
    capacity,
    mark_indefinite,
)
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import Dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.typing import Array


@dataclass(frozen=True, kw_only=True)
class AccelerationMarginOptions(Options):
    """Options of `AccelerationMargin`."""

    min: float = option(0.0, "Acceleration from which a point is feasible.", "rad/s^2 or m/s^2")
    characteristic_length: float | None = option(
        None, "Multiplies rotations, so that all are accelerations of points.", "m", above=0.0,
        kind=float,
    )  # fmt: skip
    max_facets: int = option(
        1_000_000, "Most combinations of nv - 1 muscles.", lower=1, default_text="1,000,000"
    )
    tolerance: float = option(
        1e-9, "Rounding that is granted, relative to the largest acceleration.", above=0.0
    )
    rank_tolerance: float = rank_option("L M^-1")


class AccelerationMargin(PointCondition[AccelerationMarginOptions]):
    """Radius of the largest ball of accelerations that are possible from rest; see the module.

    Coordinates whose joints have motors without effort limit are held by these and left out.
    Where coordinates of both kinds are there it mixes units without a characteristic length: it is
    the smallest of distances in m/s^2 and rad/s^2. Points whose M is not positive definite are
    UNPHYSICAL_INERTIA.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `AccelerationMarginOptions`.

    Raises:
        ConditionError: There are too many facets.
    """

    name = "acceleration_margin"

    def __init__(self, dynamics: Dynamics, options: AccelerationMarginOptions) -> None:
        super().__init__(dynamics, options)
        actuation = self._actuation
        length = options.characteristic_length
        unit = actuation.unit(length, ACCELERATIONS)
        self.columns = (
            STATUS,
            Column("acceleration_margin", "float64", unit, "possible in every direction"),
        )
        self._scale = 1.0 / actuation.scale(length)
        if actuation.facets > options.max_facets:
            raise ConditionError(
                f"{self.name}: {len(actuation.lower)} muscles at {len(actuation.coordinates)} "
                f"coordinates have {actuation.facets:,} combinations (option 'max_facets' allows "
                f"{options.max_facets:,})"
            )

    def _answer(self, q: Array, state: BatchState) -> Results:
        options, actuation = self.options, self._actuation
        kept = actuation.coordinates
        mass = state.mass_matrix[:, kept][:, :, kept]
        physical = np.full(len(q), PointStatus.FEASIBLE, dtype=np.uint8)
        mark_indefinite(mass, physical)
        mass = np.where((physical == PointStatus.FEASIBLE)[:, None, None], mass, np.eye(len(kept)))
        # rows of L M^-1 are what a unit tension does, with the other sign
        turned = actuation.jacobian(state).transpose(0, 2, 1)
        effects: Array = np.linalg.solve(mass, turned).astype(float)
        load: Array = np.linalg.solve(mass, actuation.load(state)[:, :, None])[:, :, 0].astype(
            float
        )
        status, margin = capacity(
            effects.transpose(0, 2, 1),
            actuation.lower,
            actuation.upper,
            RequiredWrenches(load),
            self._scale,
            least=options.min,
            tolerance=options.tolerance,
            rank_tolerance=options.rank_tolerance,
        )
        bad = physical != PointStatus.FEASIBLE
        status[bad] = physical[bad]
        return {"status": status, "acceleration_margin": margin}
