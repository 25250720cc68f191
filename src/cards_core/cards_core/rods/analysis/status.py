"""What a point of a workspace slice is."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt


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
