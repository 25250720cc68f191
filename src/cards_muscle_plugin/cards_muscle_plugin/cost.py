"""What the plugin costs Gazebo per step."""

from __future__ import annotations

import time

import numpy as np

_WINDOW = 4096  # steps that are remembered


class StepCost:
    """Adds up the time spent in the calls of one step, and remembers the last few thousand.

    Use::

        cost.begin()
        ...work...
        cost.pause()    # for each call of a step
        cost.done()     # once per step

    Attributes:
        steps: Steps since construction.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._seconds = np.zeros(_WINDOW)
        self._sum = 0.0
        self._begun = 0.0

    def begin(self) -> None:
        """Start the watch."""
        self._begun = time.perf_counter()

    def pause(self) -> None:
        """Stop the watch until `begin`."""
        self._sum += time.perf_counter() - self._begun

    def done(self) -> None:
        """Close a step."""
        self._seconds[self.steps % _WINDOW] = self._sum
        self._sum = 0.0
        self.steps += 1

    def drop(self) -> None:
        """Forget the present step, e.g. because it waited for somebody."""
        self._sum = 0.0

    def microseconds(self, percentile: float = 50.0) -> float:
        """Return a percentile of the steps that are remembered, [us]; 0 before the first."""
        known = self._seconds[: min(self.steps, _WINDOW)]
        return 1e6 * float(np.percentile(known, percentile)) if known.size else 0.0
