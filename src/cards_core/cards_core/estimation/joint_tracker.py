"""A joint estimator that runs beside a robot: it starts by itself, and again after a gap.

    first lengths       the pose is sought near a guess (`JointEstimator.start`)
    every further ones  `JointEstimator.step`
    a gap               the pose is sought near where the robot was
    time goes back      the robot was reset: the pose is sought near the guess

As long as the pose is not known there is no estimate, and `JointTracker.problem` says why: no pose
has these lengths, lengths do not tell some coordinates (rank of L below nv), lengths and past do
not agree, too few of them have been read for some time, or a coordinate has become too uncertain
while the robot moved.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from cards_core.errors import CardsError
from cards_core.estimation.joint_estimator import Estimate, JointEstimator
from cards_core.robot.model import Tree
from cards_core.typing import Array

RETRY_PERIOD = 0.5
"""Between two searches for the pose, [s]: one takes a while."""

NOT_STARTED = "joint angles are not known yet"


class JointTracker:
    """Runs a `JointEstimator`; see the module.

    Args:
        estimator: It, or what works as it does.
        tree: Of the robot.
        gap: Without lengths for longer, the pose is searched again, [s].
        patience: So many implausible steps in a row still have the predicted pose as estimate.
        std_max: Standard deviation from which on a coordinate counts as unknown, [rad] or [m].
        silence: So long the predicted pose counts while fewer lengths and joint sensors are read
            than there are coordinates, [s].

    Attributes:
        estimate: The last one; None if the pose is not known.
        problem: Why it is not; empty if it is.
    """

    def __init__(
        self,
        estimator: JointEstimator,
        tree: Tree,
        *,
        gap: float = 0.1,
        patience: int = 0,
        std_max: float = math.inf,
        silence: float = math.inf,
    ) -> None:
        self._estimator = estimator
        self._tree = tree
        self._gap, self._patience, self._std_max = gap, patience, std_max
        self._silence = silence
        self._last = self._tried = self._heard = -math.inf
        self._running = False
        self._implausible = 0
        self.estimate: Estimate | None = None
        self.problem = NOT_STARTED

    def must_search(self, time: float) -> bool:
        """Tell whether `step` has to search the pose at a time, [s], which may take a second."""
        return not self._running or time < self._last or time - self._last > self._gap

    def may_search(self, time: float) -> bool:
        """Tell whether it searches, or has failed too short a time ago."""
        return time < self._last or time - self._tried >= RETRY_PERIOD

    def step(
        self,
        time: float,
        lengths: Array,
        rates: Array | None = None,
        *,
        joints: Array | None = None,
        valid: npt.NDArray[np.bool_] | None = None,
        guess: Array | None = None,
    ) -> Estimate | None:
        """Return the estimate after the next lengths, None if there is none.

        Args:
            time: Of the measurement, [s].
            lengths: Of all muscles, shape (m,), [m]; NaN where there is none.
            rates: Their derivatives, shape (m,), [m/s].
            joints: Readings of joint sensors, shape (nq,); NaN where there is none.
            valid: Muscles that may be used, shape (m,).
            guess: Where the first search begins, shape (nq,); home, and random poses, without it.
        """
        if joints is not None and not np.isfinite(joints).any():
            joints = None
        last, self._last = self._last, time
        if time < last:
            self._running, self._tried = False, -math.inf
            self._estimator.started = False
        if not self._running or time - last > self._gap:
            if not self._started(time, lengths, joints, valid, guess):
                self.estimate = None
                return None
            last = time
        found = self._estimator.step(lengths, time - last, valid=valid, rates=rates, joints=joints)
        self._implausible = 0 if found.plausible else self._implausible + 1
        if np.count_nonzero(found.used) + np.count_nonzero(found.joint_used) >= self._tree.nv:
            self._heard = time
        self.problem = self._doubt(found)
        self.estimate = None if self.problem else found
        return self.estimate

    def _started(
        self,
        time: float,
        lengths: Array,
        joints: Array | None,
        valid: npt.NDArray[np.bool_] | None,
        guess: Array | None,
    ) -> bool:
        """Seek the pose, but not too often; return True if it was found."""
        self._running = False
        if time - self._tried < RETRY_PERIOD:
            return False
        self._tried = time
        # where it was before a gap is the best guess
        near = self._estimator.q if self._estimator.started else guess
        try:
            self._estimator.start(lengths, valid=valid, near=near, joints=joints)
        except CardsError as error:
            self.problem = f"joint angles cannot be estimated: {error}"
            return False
        self._running, self._tried, self._implausible = True, -math.inf, 0
        self._heard = time
        return True

    def _doubt(self, found: Estimate) -> str:
        """Return why an estimate is unreliable; empty if it is reliable."""
        if self._implausible > self._patience:
            return "muscle lengths agree neither with the past nor with each other"
        if self._last - self._heard > self._silence:
            return (
                f"fewer muscle lengths and joint sensors than {self._tree.nv} coordinates have "
                f"been read for {self._silence:g} s"
            )
        if math.isfinite(self._std_max):
            bad = np.flatnonzero(found.std > self._std_max)
            if bad.size:
                names = ", ".join(self._tree.velocity_names[i] for i in bad)
                return f"muscle lengths do not tell {names} here"
        return ""
