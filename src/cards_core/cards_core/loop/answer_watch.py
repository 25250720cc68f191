"""Keeps a host that does not follow the clock from outrunning its controller.

In ``as_fast_as_possible`` time goes as fast as it can be simulated. A controller that is slower
than that would see every tenth state, with a robot that has meanwhile gone on by itself. So time
waits at each published state until it is answered, as long as somebody answers states. Without an
answer it goes on after a while and counts; who answers only now and then is waited for less and
less.
"""

from __future__ import annotations

import math

PATIENCE = 0.5
"""Longest wait for an answer, [s] of real time: two repetitions of a lost state and more."""

LEAST_PATIENCE = 1e-3
"""Shortest wait, after many that were in vain, [s]."""

_NONE = -1


class AnswerWatch:
    """Decides whether time may leave a published state. It knows no clock: callers say the time.

    Attributes:
        unanswered: Published states that time left without an answer, although somebody had
            answered before.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin at time zero: nobody has answered anything."""
        self.unanswered = 0
        self._expected = False  # somebody answers states
        self._due = _NONE  # stamp of the last state, if it was published and not answered
        self._until = math.inf
        self._patience = PATIENCE

    def published(self, stamp: int, now: float) -> None:
        """Note that a state was published for the first time.

        Args:
            stamp: Its time, [ns].
            now: On a clock of real time, [s].
        """
        self._due = stamp
        self._until = now + self._patience

    def commanded(self, stamp: int) -> None:
        """Note an accepted command.

        Args:
            stamp: That of the state that it answers, [ns]; 0: the first one, or typed by hand.
        """
        if stamp == 0 and self._due > 0:
            return
        self._expected = True
        if stamp == self._due:
            self._due = _NONE
            self._patience = PATIENCE

    def remaining(self, now: float) -> float:
        """Return how long to wait for an answer at most, [s]; 0: time may go on.

        Args:
            now: On a clock of real time, [s].
        """
        if not self._expected or self._due == _NONE:
            return 0.0
        if now < self._until:
            return self._until - now
        self.unanswered += 1
        self._expected, self._due = False, _NONE
        self._patience = max(0.5 * self._patience, LEAST_PATIENCE)
        return 0.0
