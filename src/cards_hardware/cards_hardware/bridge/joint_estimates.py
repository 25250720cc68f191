"""Joints of a robot without joint sensors, estimated from its muscle lengths.

From one state to the next an estimate takes some 60 us. To find the pose in the first place, from
anywhere, takes up to a second: that is done in a thread of its own, and meanwhile the pose is not
known. From where it was found the search goes on with the lengths of now, which takes a
millisecond.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cards_core.dynamics.interface import Dynamics
from cards_core.typing import Array

if TYPE_CHECKING:
    from cards_core.estimation import Estimate


class JointEstimates:
    """Estimates joints; `step` never searches for long.

    Args:
        dynamics: Of the robot; nobody else may use it while the pose is not known.
        estimator: Another `JointEstimator`; None for the usual one.
        found: Called by the searching thread when its search is over.
    """

    def __init__(
        self, dynamics: Dynamics, estimator: Any = None, found: Callable[[], None] | None = None
    ) -> None:
        # beside SciPy's optimizers: only for robots that need it
        from cards_core.estimation import JointEstimator, JointTracker

        estimator = estimator or JointEstimator(dynamics, acceleration_noise=50.0, rate_noise=2e-3)
        self._tracker = JointTracker(estimator, dynamics.tree)
        self._found = found
        self._search: threading.Thread | None = None
        self._near = False  # a search has just found the pose: the next one begins there

    @property
    def problem(self) -> str:
        """Why joints are not known; empty if they are."""
        return self._tracker.problem

    def step(self, time: float, lengths: Array, rates: Array) -> Estimate | None:
        """Return the estimate after the next lengths, None while the pose is searched or unknown.

        Args:
            time: Of the measurement, [s].
            lengths: Of all muscles, shape (m,), [m]; NaN where there is none.
            rates: Their derivatives, shape (m,), [m/s].
        """
        if self._search is not None:
            if self._search.is_alive():
                return None
            self._search = None
            self._near = self._tracker.estimate is not None
        near, self._near = self._near, False
        if near or not self._tracker.must_search(time):
            return self._tracker.step(time, lengths, rates)
        if not self._tracker.may_search(time):
            return None
        arguments = (time, lengths.copy(), rates.copy())
        self._search = threading.Thread(
            target=self._run, args=arguments, name="search pose", daemon=True
        )
        self._search.start()
        return None

    def _run(self, time: float, lengths: Array, rates: Array) -> None:
        self._tracker.step(time, lengths, rates)
        if self._found is not None:
            self._found()
