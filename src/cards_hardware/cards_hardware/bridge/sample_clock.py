"""Conversion of a sample's time on the monotonic clock to the stamp of its message."""

from __future__ import annotations

import time
from collections.abc import Callable

from cards_core.stamps import NANOSECONDS, seconds

LEAST_ADVANCE = 100_000
"""Smallest difference of two stamps, [ns]; a sample that is not newer by that much has none."""


class SampleClock:
    """Stamps samples in ROS time, which is the system's time where nothing is simulated.

    The difference of the two clocks is read by `adjust` and then kept: a system clock that is set
    while the robot moves must not move the robot.

    Args:
        ros: Returns ROS time, [ns].
        monotonic: Returns the monotonic time, [ns].
    """

    def __init__(
        self,
        ros: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._ros = ros
        self._monotonic = monotonic
        self._last = -LEAST_ADVANCE
        self.offset = 0
        self.adjust()

    def _difference(self) -> int:
        before = self._monotonic()
        ros = self._ros()
        return ros - (before + self._monotonic()) // 2

    def adjust(self) -> None:
        """Read the difference of the clocks anew; not while the robot moves."""
        self.offset = self._difference()
        self._last = -LEAST_ADVANCE

    @property
    def error(self) -> float:
        """By how much ROS time was set forward since `adjust`, [s]."""
        return seconds(self._difference() - self.offset)

    def stamp(self, sampled: float) -> int | None:
        """Return the stamp of a sample, [ns], or None if it is not newer than the one before.

        Args:
            sampled: Its time on the monotonic clock, [s].
        """
        stamp = round(sampled * NANOSECONDS) + self.offset
        if stamp - self._last < LEAST_ADVANCE:
            return None
        self._last = stamp
        return stamp

    def age(self, sampled: float) -> float:
        """Return how old a sample is now, [s]."""
        return self._monotonic() / NANOSECONDS - sampled
