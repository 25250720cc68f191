"""Histograms of times, with bins of 1, 2 and 5 times the powers of ten."""

from __future__ import annotations

from dataclasses import dataclass

ENDS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
"""Upper ends of the bins, [us]; the last bin has none. The same as in ``line_thread.c``."""


@dataclass(frozen=True)
class Histogram:
    """How often times were how long.

    Attributes:
        counts: One per bin, shape (14,).
    """

    counts: tuple[int, ...] = (0,) * (len(ENDS) + 1)

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram(tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)))

    @property
    def total(self) -> int:
        """Number of all times."""
        return sum(self.counts)

    def quantile(self, share: float) -> float:
        """Return the end of the bin in which a share of all times is reached, [s].

        Args:
            share: From 0 to 1.

        Returns:
            NaN without times, infinity for the last bin.
        """
        if not self.total:
            return float("nan")
        below = 0
        for count, end in zip(self.counts, ENDS, strict=False):
            below += count
            if below >= share * self.total:
                return end * 1e-6
        return float("inf")

    def __str__(self) -> str:
        """Bins that hold something: ``<=50us 980, <=100us 18, >100ms 2``."""
        names = [f"<={_time(end)}" for end in ENDS] + [f">{_time(ENDS[-1])}"]
        found = [
            f"{name} {count}" for name, count in zip(names, self.counts, strict=True) if count
        ]
        return ", ".join(found) or "none"


def _time(microseconds: int) -> str:
    return f"{microseconds}us" if microseconds < 1000 else f"{microseconds // 1000}ms"
