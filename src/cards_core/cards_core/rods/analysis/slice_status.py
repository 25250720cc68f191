"""Status of the points of a workspace slice, and the criteria for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from cards_core.checks import finite_array, finite_number
from cards_core.rods.tracking.singularity import STOP_FRACTION, WARN_FRACTION
from cards_core.typing import Array


class SliceStatus(IntEnum):
    """Status of one plate pose; where several hold, the first of `SEVERITY`."""

    OK = 0
    """A stable equilibrium that the robot gets to from home without leaving good points."""
    NEAR_LIMIT = 1
    """The same, but the plate's smallest stiffness is a small part of that at home."""
    YIELD = 2
    """The same, but a rod is strained beyond what its material declares to bear."""
    CUT_OFF = 3
    """A good equilibrium, but the ways to it within the slice lead through points that are not."""
    JOINT_LIMIT = 4
    """An equilibrium that needs a joint outside its limits."""
    UNSTABLE = 5
    """An equilibrium that does not hold: the plate's smallest stiffness is <= 0, or a rod
    collapses even if the plate is held."""
    UNREACHABLE = 6
    """No equilibrium was found, and a rod is certainly too short for the pose."""
    NOT_FOUND = 7
    """No equilibrium was found from any neighbour. That is no proof that there is none."""


SEVERITY = (
    SliceStatus.UNSTABLE,
    SliceStatus.JOINT_LIMIT,
    SliceStatus.CUT_OFF,
    SliceStatus.NEAR_LIMIT,
    SliceStatus.YIELD,
    SliceStatus.OK,
)
"""Statuses of points with an equilibrium, most serious first."""

GOOD = (SliceStatus.OK, SliceStatus.NEAR_LIMIT, SliceStatus.YIELD)
"""Statuses of the reachable, stable workspace."""

UNKNOWN = 255
"""Of a point that was not looked at yet; never in a result."""


def is_good(status: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return which points belong to the reachable, stable workspace."""
    return np.isin(status, [int(s) for s in GOOD])


@dataclass(frozen=True)
class SliceOptions:
    """Criteria for good points.

    Attributes:
        near: Smallest stiffness, relative to home, below which a point is NEAR_LIMIT.
        stop: The same below which a tracker stops: no way leads on from there.
        wrench: External wrench on the plate about its origin, shape (6,), [N, N m].
        frame: ``world`` (dead load) or ``plate`` (it turns with the plate).
    """

    near: float = WARN_FRACTION
    stop: float = STOP_FRACTION
    wrench: Array = field(default_factory=lambda: np.zeros(6))
    frame: str = "world"

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            CardsError: A share that is not between 0 and 1, a wrench that is none.
        """
        for name in ("near", "stop"):
            finite_number(getattr(self, name), f"{name} (share of home)", at_least=0.0, below=1.0)
        finite_array(self.wrench, "wrench", (6,))
