"""Joint coordinates of a robot without joint sensors, from its muscle lengths.

The estimator is the core's; here it is started when lengths come, and again after a gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cards_core.dynamics.interface import Dynamics
from cards_core.errors import CardsError
from cards_core.typing import Array

_GAP = 0.1
"""Without lengths for longer, where the robot is has to be found anew, [s]."""

_PATIENCE = 0.5
"""Between two attempts to find out, [s]: one takes a while."""


class JointEstimates:
    """An estimator that starts itself.

    Args:
        dynamics: Of the robot.
        estimator: A `JointEstimator`, or what works as it does; made if None.

    Attributes:
        problem: Why there is no estimate; empty if there is one.
    """

    def __init__(self, dynamics: Dynamics, estimator: Any = None) -> None:
        if estimator is None:
            from cards_core.estimation import JointEstimator

            estimator = JointEstimator(dynamics, acceleration_noise=50.0, rate_noise=2e-3)
        self._estimator = estimator
        self._tree = dynamics.tree
        self._last: float | None = None
        self._tried = -np.inf
        self.problem = "joint angles are not known yet"

    def step(self, time: float, lengths: Array, rates: Array) -> tuple[Array, Array]:
        """Return q and qd, NaN if they cannot be told.

        Args:
            time: Of the measurement, [s].
            lengths: Of all muscles, [m]; NaN where there is none.
            rates: Of the lengths, [m/s].
        """
        unknown = np.full(self._tree.nq, np.nan), np.full(self._tree.nv, np.nan)
        last, self._last = self._last, time
        if last is None or time - last > _GAP or time < last or self.problem:
            if time - self._tried < _PATIENCE:
                return unknown
            self._tried = time
            # where it was before a gap is the best guess; at first there is none
            near = self._estimator.q if self._estimator.started else None
            try:
                self._estimator.start(lengths, near=near)
            except CardsError as error:
                self.problem = f"joint angles cannot be estimated: {error}"
                return unknown
            self.problem = ""
            self._tried = -np.inf
            last = time
        estimate = self._estimator.step(lengths, time - last, rates=rates)
        if not estimate.plausible:
            return unknown
        return np.array(estimate.q), np.array(estimate.qd)
