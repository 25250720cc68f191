"""A joint trajectory that is carried out: how far it is, whether it was kept to, when it is done.

The rules are those of ROS's action ``FollowJointTrajectory``: a trajectory fails when a joint is
farther from its path than its path tolerance, and it succeeds as soon as its time is over and all
joints are within their goal tolerances, for which there is the goal time tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from cards_core.checks import check_choice
from cards_core.errors import CardsError
from cards_core.trajectories.base import Reference
from cards_core.typing import Array


class ResultCode(IntEnum):
    """Error codes of ``control_msgs/action/FollowJointTrajectory``."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


@dataclass(frozen=True, eq=False)
class Progress:
    """State of an execution.

    Attributes:
        desired, actual: Joint coordinates, shape (n,), [rad] or [m].
        code: How it ended; None while it goes on.
        text: Why, if it failed.
    """

    desired: Array
    actual: Array
    code: ResultCode | None = None
    text: str = ""

    @property
    def error(self) -> Array:
        """``desired - actual``, shape (n,)."""
        return np.asarray(self.desired - self.actual)


@dataclass(frozen=True, eq=False)
class TrajectoryExecution:
    """A trajectory under way.

    Attributes:
        reference: Of the joints, from time 0 on.
        names: Of the joints, in the order of the reference.
        path_tolerance, goal_tolerance: Shape (n,), [rad] or [m]; inf: none.
        goal_time: Time beyond the end in which the goal must be reached, [s]; inf: no limit.
    """

    reference: Reference
    names: Sequence[str]
    path_tolerance: Array
    goal_tolerance: Array
    goal_time: float = math.inf

    def look(self, t: float, q: Array) -> Progress:
        """Compare a state with the trajectory.

        Args:
            t: Time since the beginning, [s].
            q: Joint coordinates, shape (n,).
        """
        end = self.reference.duration
        desired = np.array(self.reference(min(t, end))[0])
        error = np.abs(desired - q)
        if t < end:
            if (beyond := error > self.path_tolerance).any():
                text = self._beyond("left its path", beyond, error, self.path_tolerance, t)
                return Progress(desired, q, ResultCode.PATH_TOLERANCE_VIOLATED, text)
            return Progress(desired, q)
        missed = error > self.goal_tolerance
        if not missed.any():
            return Progress(desired, q, ResultCode.SUCCESSFUL)
        if t <= end + self.goal_time:
            return Progress(desired, q)
        text = self._beyond("missed its goal", missed, error, self.goal_tolerance, t)
        return Progress(desired, q, ResultCode.GOAL_TOLERANCE_VIOLATED, text)

    def _beyond(
        self, what: str, which: npt.NDArray[np.bool_], error: Array, tolerance: Array, t: float
    ) -> str:
        i = int(np.argmax(np.where(which, error, -np.inf)))
        return (
            f"{self.names[i]} {what} by {error[i]:.4g} at t = {t:.3f} s "
            f"(tolerance {tolerance[i]:.4g})"
        )


def tolerances(
    names: Sequence[str], default: float, given: Mapping[str, float], what: str
) -> Array:
    """Return the tolerance of each joint, shape (n,), [rad] or [m]; inf: none.

    Args:
        names: Of the joints.
        default: Of joints that are not given; 0: none.
        given: By name: positive, 0 as by default, -1 none.
        what: Which tolerance, for messages.

    Raises:
        UnknownNameError: A name that is no joint.
        CardsError: A value that is neither positive nor 0 nor -1.
    """
    usual = default if default > 0.0 else math.inf
    out = np.full(len(names), usual)
    for name, value in given.items():
        check_choice(name, f"joint of {what}", names)
        if not (value > 0.0 or value in (0.0, -1.0)):
            raise CardsError(f"{what} of {name} is {value} (expected: more than 0, 0 or -1)")
        out[list(names).index(name)] = value if value > 0.0 else usual if value == 0.0 else np.inf
    return out
