"""Can the muscles carry all required wrenches within their limits, and by what margin?

Two exact methods. *Facets*: hyperplane shifting over the facets of the set W of wrenches that the
muscles can make; its cost grows with the number of combinations of nv - 1 muscles. *Vertices*: W
is convex, so it contains R iff it contains the corners of R; one bounded least-squares problem per
corner, at any number of muscles and any rank of L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.base import STATUS, Column, Results
from cards_core.analysis.conditions.kernels import (
    RANK_TOLERANCE,
    capacity,
    distances,
    mark_indefinite,
)
from cards_core.analysis.conditions.options import ConditionError, option
from cards_core.analysis.conditions.required import RequiredOptions, RequiredSet
from cards_core.analysis.conditions.states import PointCondition
from cards_core.dynamics import Dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.errors import UnknownNameError
from cards_core.typing import Array


@dataclass(frozen=True, kw_only=True)
class WrenchFeasibleOptions(RequiredOptions):
    """Options of `WrenchFeasible`."""

    rank_tolerance: float = option(
        "", "singular value ratio of L at which it is rank-deficient", RANK_TOLERANCE, above=0.0
    )


@dataclass(frozen=True, kw_only=True)
class CapacityMarginOptions(WrenchFeasibleOptions):
    """Options of `CapacityMargin`."""

    least: float = option("N or Nm", "margin from which a point is feasible", 0.0)


@dataclass(frozen=True, kw_only=True)
class DynamicFeasibleOptions(WrenchFeasibleOptions):
    """Options of `DynamicFeasible`."""

    accelerations: tuple[float, ...] = option(
        "rad/s^2 or m/s^2",
        "greatest |acceleration|, one per velocity or one for all",
        (1.0,),
        minimum=0.0,
    )


class _Contained(PointCondition):
    """Base: is R within W?

    Raises:
        ConditionError: Neither method can be afforded, or the one that was asked for cannot.
    """

    def __init__(
        self, dynamics: Dynamics, options: WrenchFeasibleOptions, least: float = 0.0
    ) -> None:
        actuation = Actuation(dynamics)
        super().__init__(dynamics, actuation)
        self.options = options
        self._least = least
        self._required = RequiredSet(dynamics, actuation, options)
        self._scale = actuation.scale(options.characteristic_length)
        unit = "N or Nm" if options.characteristic_length is None else "N"
        self.method = self._choose_method()
        if self.method == "facets":
            number = Column("margin", "float64", unit, "distance of R from the facets of W")
        else:
            number = Column("distance", "float64", unit, "of the farthest corner of R from W")
        self.columns = (STATUS, number)

    @property
    def facets(self) -> int:
        """Combinations of nv - 1 muscles that facets of W can belong to."""
        actuation = self._actuation
        wide = int(np.count_nonzero(actuation.upper > actuation.lower))
        return math.comb(wide, max(len(actuation.coordinates) - 1, 0))

    @property
    def corners(self) -> int:
        """Corners of R that the method *vertices* looks at."""
        return int(max(self._required.vertices, 1) * 2 ** min(self._required.generators, 60))

    def _choose_method(self) -> str:
        options = self.options
        few_facets = self.facets <= options.max_facets
        few_corners = self.corners <= options.max_vertices
        wanted = options.method
        if wanted == "auto":
            wanted = "facets" if few_facets else "vertices"
        if (wanted == "facets" and few_facets) or (wanted == "vertices" and few_corners):
            return wanted
        actuation = self._actuation
        raise ConditionError(
            f"{self.name}: {len(actuation.lower)} muscles at {len(actuation.coordinates)} "
            f"coordinates have {self.facets:,} combinations (option 'max_facets' allows "
            f"{options.max_facets:,}) and the required wrenches {self.corners:,} corners (option "
            f"'max_vertices' allows {options.max_vertices:,}): make the required set simpler, "
            "e.g. a wrench at one frame or a list of 'vertices', use 'static', or raise a limit"
        )

    def _velocities(self, count: int) -> Array | None:
        velocity = self._required.velocity
        return np.tile(velocity, (count, 1)) if velocity.any() else None

    def _answer(self, q: Array, state: BatchState) -> Results:
        options, actuation = self.options, self._actuation
        arguments = (
            actuation.jacobian(state),
            actuation.lower,
            actuation.upper,
            self._required.at(q, state),
            self._scale,
        )
        if self.method == "facets":
            status, numbers = capacity(
                *arguments,
                least=self._least,
                tolerance=options.tolerance,
                rank_tolerance=options.rank_tolerance,
            )
        elif self.method == "vertices":
            status, numbers = distances(*arguments, tolerance=options.tolerance)
        else:
            raise UnknownNameError("method", self.method, ("facets", "vertices"))
        if self._required.needs_inertia:
            mark_indefinite(state.mass_matrix, status)
        return {"status": status, self.columns[1].name: numbers}


class WrenchFeasible(_Contained):
    """Whether gravity and all required wrenches can be carried; see the module.

    With the method *facets* the second column is the margin [Ruiz2015], negative outside; with
    *vertices* it is the distance of the farthest corner, 0 inside.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `WrenchFeasibleOptions`.

    Raises:
        ConditionError: The options do not fit the robot, or both methods cost too much.
        UnknownNameError: There is no frame of this name.
    """

    name = "wrench_feasible"


class DynamicFeasible(_Contained):
    """Whether every acceleration of a set is possible, from rest or at one velocity.

    As `WrenchFeasible`; accelerations are up to 1 in every coordinate unless told otherwise.

    Points whose M is not positive definite are UNPHYSICAL_INERTIA.
    """

    name = "dynamic"


class CapacityMargin(_Contained):
    """The capacity margin [Ruiz2015]: ``min over facets of h_W(c) - h_R(c)``, |c| = 1.

    Without a characteristic length it mixes units: it is the smallest of distances in N and Nm.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `CapacityMarginOptions`.

    Raises:
        ConditionError: The options do not fit the robot, or there are too many facets.
        UnknownNameError: There is no frame of this name.
    """

    name = "capacity_margin"

    def __init__(self, dynamics: Dynamics, options: CapacityMarginOptions) -> None:
        if options.method == "vertices":
            raise ConditionError("capacity_margin: a margin needs the method 'facets'")
        values = {item.name: getattr(options, item.name) for item in fields(options)}
        super().__init__(
            dynamics, CapacityMarginOptions(**(values | {"method": "facets"})), options.least
        )
