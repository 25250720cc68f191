"""Percentiles of the newest samples of a quantity, without allocation while samples come in."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Percentiles:
    """What is known of a quantity; NaN where nothing was seen yet.

    Attributes:
        count: Number of samples ever seen.
        p50, p99: Median and 99 % quantile of the newest samples, in the unit of the samples.
        maximum: Largest of all samples ever seen.
    """

    count: int = 0
    p50: float = math.nan
    p99: float = math.nan
    maximum: float = math.nan


class RingStatistics:
    """Keeps the newest samples in a ring.

    One thread adds; any thread may ask.

    Args:
        size: How many samples count for the percentiles.
    """

    def __init__(self, size: int = 1000) -> None:
        self._ring = np.zeros(size)
        self._scratch = np.zeros(size)
        self._lock = threading.Lock()
        self._count = 0
        self._maximum = -math.inf

    def add(self, value: float) -> None:
        """Take in a sample."""
        self._ring[self._count % self._ring.size] = value
        self._count += 1
        self._maximum = max(self._maximum, value)

    def clear(self) -> None:
        """Forget all samples."""
        self._count = 0
        self._maximum = -math.inf

    def summary(self) -> Percentiles:
        """Return the percentiles: the smallest sample that so many percent do not exceed."""
        count = self._count
        size = min(count, self._ring.size)
        if size == 0:
            return Percentiles()
        with self._lock:
            part = self._scratch[:size]
            part[:] = self._ring[:size]
            part.sort()
            return Percentiles(
                count,
                float(part[math.ceil(0.50 * size) - 1]),
                float(part[math.ceil(0.99 * size) - 1]),
                self._maximum,
            )
