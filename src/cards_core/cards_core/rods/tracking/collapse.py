"""How near a state is to collapse, and in which direction it would go.

The plate's stiffness at fixed joints, K (6 x 6), is positive definite where a small push on the
plate is answered by a small motion. Its smallest eigenvalue falls to zero at a fold, as the square
root of the way that is left::

    lambda^2 = a (f_fold - f)   =>   f_fold = f + lambda^2 / slope,   slope = -d(lambda^2)/df

so two accepted steps tell where the fold is, long before the smallest eigenvalue is small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.rods.robots.robot import RodRobot
from cards_core.typing import Array

WARN_FRACTION = 0.05
"""Smallest eigenvalue relative to the start below which NEAR_LIMIT is reported."""

STOP_FRACTION = 0.01
"""Smallest eigenvalue relative to the start below which motion stops."""


@dataclass
class FoldPrediction:
    """Follows the smallest eigenvalue along a command and predicts where it vanishes.

    Attributes:
        fraction: Where the last accepted state is on the way, 0..1.
        eigenvalue: Its smallest eigenvalue.
        slope: Fall of the squared eigenvalue per fraction; <= 0 while it rises.
    """

    fraction: float
    eigenvalue: float
    slope: float = 0.0

    def accept(self, fraction: float, eigenvalue: float) -> None:
        """Note an accepted state."""
        way = fraction - self.fraction
        if way > 0.0:
            squares = self.eigenvalue * abs(self.eigenvalue) - eigenvalue * abs(eigenvalue)
            self.slope = squares / way
        self.fraction, self.eigenvalue = fraction, eigenvalue

    @property
    def way_left(self) -> float:
        """Fraction of the command between the last state and the fold; inf if none is ahead."""
        if self.slope <= 0.0:
            return float("inf")
        return self.eigenvalue * abs(self.eigenvalue) / self.slope


def plate_lever(robot: RodRobot) -> float:
    """Return the mean distance of the plate's joints from its origin, at least 0.02 m."""
    levers = [float(np.linalg.norm(limb.tip.joint_pose[:3, 3])) for limb in robot.limbs]
    return max(0.02, float(np.mean(levers)))


def describe_direction(eigenvector: Array, lever: float) -> str:
    """Say in words how the plate would move along an eigenvector.

    Args:
        eigenvector: Shape (6,), [translation m, rotation rad] in world axes; its sign has no
            meaning.
        lever: What a rotation counts, [m], see `plate_lever`.
    """
    weights = [float(x) for x in eigenvector[:3]] + [lever * float(x) for x in eigenvector[3:]]
    largest = max(weights, key=abs)
    if not abs(largest) > 0.0:
        return "in no direction"
    parts = []
    for index in sorted(range(6), key=lambda i: -abs(weights[i])):
        if abs(weights[index]) < 0.35 * abs(largest):
            break
        sign = "+" if weights[index] * largest > 0.0 else "-"
        verb = "slides along" if index < 3 else "turns about"
        parts.append(f"{verb} {sign}{'xyz'[index % 3]}")
    return " and ".join(parts)


def describe_margin(eigenvalue: float, reference: float) -> str:
    """Write an eigenvalue with its share of the start value."""
    if not reference > 0.0:
        return f"{eigenvalue:.3g}"
    return f"{eigenvalue:.3g}, {100.0 * eigenvalue / reference:.2g} % of its value at the start"
