"""Counts the states that a controller did not answer, from the stamps of those it did."""

from __future__ import annotations

from collections import deque

_REMEMBERED = 100  # gaps
_SHARE = 10  # the period is the gap that one in so many is shorter than


class MissedStates:
    """Tells how many states lay between two answered ones.

    A host does not say its period, so it is estimated: the tenth percentile of the last gaps. Not
    the shortest, because stamps of a real robot are measured and now and then two lie close; nor
    the median, because a controller that answers every second state would then miss none.

    Attributes:
        count: Missed states since the start.
    """

    def __init__(self) -> None:
        self.count = 0
        self._gaps: deque[int] = deque(maxlen=_REMEMBERED)

    def note(self, gap: int) -> None:
        """Take over the time between two answered states, [ns]."""
        self._gaps.append(gap)
        period = sorted(self._gaps)[len(self._gaps) // _SHARE]
        self.count += max(0, round(gap / period) - 1)
