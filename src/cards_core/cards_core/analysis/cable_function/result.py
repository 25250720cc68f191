"""What an analysis of the muscles' functions found: arrays, verdicts, JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.analysis.status import ANSWERS, PointStatus
from cards_core.json_values import json_value
from cards_core.typing import Array

Counts = npt.NDArray[np.intp]

LOST = (
    PointStatus.INFEASIBLE,
    PointStatus.NO_MUSCLES,
    PointStatus.TOO_FEW_MUSCLES,
    PointStatus.RANK_DEFICIENT,
)
"""Outcomes that say that a condition does not hold; all others but FEASIBLE leave it open."""


@dataclass(frozen=True, eq=False)
class MomentArms:
    """Moment arms r = -L: positive where a muscle turns a joint in its positive sense.

    With m muscles and nv velocities:

    Attributes:
        poses: Number of poses that count.
        positive, negative: Number of poses with r above the tolerance, and below minus it, shape
            (m, nv).
        least, most: Range of r over the poses, shape (m, nv), [m] for rotations, [1] for slides.
        mean_size: Mean of |r|, shape (m, nv).
    """

    poses: int
    positive: Counts
    negative: Counts
    least: Array
    most: Array
    mean_size: Array

    def role(self, muscle: int, velocity: int) -> str:
        """Return what a muscle is for a coordinate.

        ``agonist``: turns it in the positive sense only; ``antagonist``: in the negative sense
        only; ``both``: depends on the pose; ``none``: never.
        """
        up, down = self.positive[muscle, velocity] > 0, self.negative[muscle, velocity] > 0
        if up and down:
            return "both"
        return "agonist" if up else "antagonist" if down else "none"


@dataclass(frozen=True, eq=False)
class Necessity:
    """What is left of a workspace when muscles are cut.

    With n poses and k groups of muscles:

    Attributes:
        statuses: Of every pose, with all muscles and without each group, shape (n, 1 + k).
    """

    statuses: npt.NDArray[np.uint8]

    @property
    def answered(self) -> int:
        """Number of poses at which the condition, with all muscles, holds or does not."""
        return int(np.isin(self.statuses[:, 0], (*ANSWERS, *LOST)).sum())

    @property
    def feasible(self) -> int:
        """Number of poses at which the condition holds with all muscles."""
        return int((self.statuses[:, 0] == PointStatus.FEASIBLE).sum())

    @property
    def lost(self) -> Counts:
        """Number of poses at which it holds with all muscles only, shape (k,)."""
        whole = self.statuses[:, :1] == PointStatus.FEASIBLE
        return np.asarray((whole & np.isin(self.statuses[:, 1:], LOST)).sum(axis=0))

    @property
    def gained(self) -> Counts:
        """Number of poses at which it holds without the group only, shape (k,).

        A muscle that has to pull with a minimum tension can be in the way.
        """
        whole = np.isin(self.statuses[:, :1], LOST)
        return np.asarray((whole & (self.statuses[:, 1:] == PointStatus.FEASIBLE)).sum(axis=0))

    @property
    def open(self) -> Counts:
        """Number of poses of the workspace where it is not known without the group, shape (k,)."""
        whole = self.statuses[:, :1] == PointStatus.FEASIBLE
        known = np.isin(self.statuses[:, 1:], (PointStatus.FEASIBLE, *LOST))
        return np.asarray((whole & ~known).sum(axis=0))

    def verdict(self, group: int) -> str:
        """Return ``essential`` (all lost), ``needed`` (some), ``not needed`` or ``unknown``."""
        if self.feasible == 0 or self.open[group]:
            return "unknown"
        lost = self.lost[group]
        return "not needed" if lost == 0 else "essential" if lost == self.feasible else "needed"


@dataclass(frozen=True, eq=False)
class TensionUse:
    """Range of each tension over all distributions that hold a pose.

    With n poses and m muscles that take a tension:

    Attributes:
        muscles: Their names.
        statuses: Of every pose, shape (n,).
        lower, upper: Limits, shape (m,), [N].
        least, most: Range at every pose, shape (n, m), [N]; NaN where the pose cannot be held.
        tolerance: Tension above the lower limit that counts as none, [N].
    """

    muscles: tuple[str, ...]
    statuses: npt.NDArray[np.uint8]
    lower: Array
    upper: Array
    least: Array
    most: Array
    tolerance: float

    @property
    def poses(self) -> int:
        """Number of poses that can be held."""
        return int((self.statuses == PointStatus.FEASIBLE).sum())

    @property
    def needed(self) -> Counts:
        """Number of poses whose every distribution uses the muscle, shape (m,)."""
        return np.asarray((self.least > self.lower + self.tolerance).sum(axis=0))

    @property
    def idle(self) -> Counts:
        """Number of poses in which no distribution can use the muscle, shape (m,)."""
        return np.asarray((self.most <= self.lower + self.tolerance).sum(axis=0))

    @property
    def exchangeable(self) -> Counts:
        """Number of poses in which the muscle may work, but others can instead, shape (m,)."""
        return np.asarray(self.poses - self.needed - self.idle)

    def verdict(self, muscle: int) -> str:
        """Return ``always needed``, ``sometimes needed``, ``exchangeable`` or ``never needed``."""
        if self.poses == 0:
            return "unknown"
        if self.needed[muscle]:
            return "always needed" if self.needed[muscle] == self.poses else "sometimes needed"
        return "never needed" if self.idle[muscle] == self.poses else "exchangeable"


@dataclass(frozen=True, eq=False)
class CableFunction:
    """Functions of a robot's muscles over a set of poses.

    Attributes:
        robot: Its name.
        muscles: Names, in the robot's order.
        coordinates: Names of the velocities.
        units: Of the moment arms about them, ``m`` or empty.
        poses: Number of poses.
        groups: Name to the muscles that are removed together: every muscle alone, then those that
            were asked for.
        arms: Moment arms.
        necessity: By the condition's name.
        tensions: Ranges of the tensions that hold the robot against gravity.
    """

    robot: str
    muscles: tuple[str, ...]
    coordinates: tuple[str, ...]
    units: tuple[str, ...]
    poses: int
    groups: Mapping[str, tuple[str, ...]]
    arms: MomentArms
    necessity: Mapping[str, Necessity]
    tensions: TensionUse

    def to_json(self) -> dict[str, Any]:
        """Return everything but single poses as plain data; what is not finite is None."""
        return {
            "robot": self.robot,
            "poses": self.poses,
            "muscles": list(self.muscles),
            "coordinates": list(self.coordinates),
            "units": list(self.units),
            "groups": {name: list(names) for name, names in self.groups.items()},
            "moment_arms": {
                "poses": self.arms.poses,
                "roles": {
                    muscle: [self.arms.role(i, j) for j in range(len(self.coordinates))]
                    for i, muscle in enumerate(self.muscles)
                },
                "positive": _fractions(self.arms.positive, self.arms.poses),
                "negative": _fractions(self.arms.negative, self.arms.poses),
                "least": json_value(self.arms.least),
                "most": json_value(self.arms.most),
                "mean_size": json_value(self.arms.mean_size),
            },
            "necessity": {name: self._necessity(found) for name, found in self.necessity.items()},
            "tensions": self._tensions(),
        }

    def _necessity(self, found: Necessity) -> dict[str, Any]:
        return {
            "answered": found.answered,
            "feasible": found.feasible,
            "without": {
                group: {
                    "verdict": found.verdict(k),
                    "lost": int(found.lost[k]),
                    "gained": int(found.gained[k]),
                    "open": int(found.open[k]),
                }
                for k, group in enumerate(self.groups)
            },
        }

    def _tensions(self) -> dict[str, Any]:
        use = self.tensions
        return {
            "held": use.poses,
            "muscles": {
                muscle: {
                    "verdict": use.verdict(i),
                    "needed": int(use.needed[i]),
                    "exchangeable": int(use.exchangeable[i]),
                    "idle": int(use.idle[i]),
                    "limits": json_value(np.array([use.lower[i], use.upper[i]])),
                    "least": json_value(_summary(use.least[:, i])),
                    "most": json_value(_summary(use.most[:, i])),
                }
                for i, muscle in enumerate(use.muscles)
            },
        }


def _summary(values: Array) -> Array:
    """Minimum, mean and maximum value that there are."""
    there = values[~np.isnan(values)]
    if not len(there):
        return np.full(3, np.nan)
    return np.array([there.min(), there.mean(), there.max()])


def _fractions(counts: Counts, poses: int) -> Any:
    return json_value(counts / poses if poses else np.full(counts.shape, np.nan))
