"""How far from its path a robot may be and still have followed it.

A file states it (key ``tolerance``), or it follows from the size of the path: `SHARE` of it, at
least `LEAST_LENGTH` or `LEAST_ANGLE`. The size of the lengths among the coordinates is the
diagonal of their bounding box, that of the angles likewise; of a rotation that a quaternion
describes it is the greatest angle to where it begins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cards_core.trajectories.base import Reference, Tolerance
from cards_core.typing import Array

SHARE = 0.05
"""Tolerance as a part of the path's size: a deviation that a plot of the path shows."""

LEAST_LENGTH = 0.005
"""Least tolerance that follows from a size, [m]: a path of no size is a place to hold."""

LEAST_ANGLE = 0.02
"""Likewise for angles, [rad]: about a degree."""

SAMPLES = 400
"""Points at which a path is measured, beside those where its pieces meet."""


UNKNOWN = Tolerance()
"""Of a reference that comes piece by piece, over a topic: nobody said how exact it is meant."""

HOLDING = Tolerance(LEAST_LENGTH, LEAST_ANGLE)
"""Of a place that is held."""


def tolerance_of(reference: Reference, units: Sequence[str]) -> Tolerance:
    """Return the tolerance of a reference: what its file says, else what its size gives.

    Args:
        reference: Of finite duration; one without end has `UNKNOWN`.
        units: Of its coordinates: ``m``, ``rad``, or empty for components of quaternions.
    """
    stated = reference.tolerance
    if not math.isfinite(reference.duration):
        return stated
    if math.isfinite(stated.length) and math.isfinite(stated.angle):
        return stated
    times = np.union1d(np.linspace(0.0, reference.duration, SAMPLES), reference.breaks)
    path = reference.sample(times)[0]
    kinds = np.array(units)
    length = max(LEAST_LENGTH, SHARE * _diagonal(path[:, kinds == "m"]))
    turn = math.hypot(_diagonal(path[:, kinds == "rad"]), _turn(path[:, kinds == ""]))
    angle = max(LEAST_ANGLE, SHARE * turn)
    return Tolerance(
        stated.length if math.isfinite(stated.length) else length,
        stated.angle if math.isfinite(stated.angle) else angle,
    )


def _diagonal(points: Array) -> float:
    """Return the diagonal of the bounding box of points, shape (k, n)."""
    return float(np.linalg.norm(np.ptp(points, axis=0))) if points.shape[1] else 0.0


def _turn(components: Array) -> float:
    """Return the norm of the greatest angles of unit quaternions, shape (k, 4 n), [rad]."""
    total = 0.0
    for i in range(0, components.shape[1] - 3, 4):
        along = np.abs(components[:, i : i + 4] @ components[0, i : i + 4])
        total = math.hypot(total, 2.0 * math.acos(min(1.0, float(along.min()))))
    return total
