"""Counts of durations in bins of equal width: what runs for hours keeps its statistics so."""

from __future__ import annotations

import math

import numpy as np


class Histogram:
    """Counts durations.

    Args:
        width: Of a bin, [us].
        bins: Their number; what is longer is counted in the last one.

    Attributes:
        counts: Per bin, shape (bins,).
        maximum: Longest duration, [us].
    """

    def __init__(self, width: int = 20, bins: int = 10000) -> None:
        self._width = width
        self.counts = np.zeros(bins, dtype=np.int64)
        self.maximum = 0

    def add(self, duration: int) -> None:
        """Count a duration, [us], >= 0."""
        self.counts[min(duration // self._width, len(self.counts) - 1)] += 1
        self.maximum = max(self.maximum, duration)

    def percentile(self, percent: float) -> float:
        """Return the duration that so many percent do not exceed, [us]; NaN without any."""
        total = int(self.counts.sum())
        if not total:
            return math.nan
        bin_ = int(np.searchsorted(np.cumsum(self.counts), math.ceil(total * percent / 100.0)))
        return float(min((bin_ + 1) * self._width, self.maximum))

    def summary(self, *, scale: float = 1e-3) -> dict[str, float | int | None]:
        """Return count, p50, p99 and maximum, times ``scale``: milliseconds by default."""
        total = int(self.counts.sum())
        out: dict[str, float | int | None] = {"count": total}
        for name, percent in (("p50", 50.0), ("p99", 99.0)):
            out[name] = round(scale * self.percentile(percent), 6) if total else None
        out["max"] = round(scale * self.maximum, 6) if total else None
        return out

    def coarse(self, edges: tuple[int, ...]) -> dict[str, int]:
        """Return the counts between edges [us], by ``low..high``; the last one is open."""
        starts = np.arange(len(self.counts)) * self._width
        out = {}
        for low, high in zip(edges, (*edges[1:], None), strict=True):
            inside = (starts >= low) & (starts < high if high is not None else True)
            out[f"{low}..{'' if high is None else high}"] = int(self.counts[inside].sum())
        return out
