"""When to step: absolute deadlines on a grid, without clock or sleep in it.

The node asks how long to wait and sleeps itself; a test asks with invented times.
"""

from __future__ import annotations

import math

from cards_core.errors import CardsError


class Pacer:
    """Deadlines of a periodic loop: step k is due at ``start + k period / speed``.

    Use::

        pacer.start(clock())
        while running:
            sleep(max(0.0, pacer.remaining(clock())))
            step()
            pacer.done(clock())

    Deadlines are computed from the number of steps, not from the previous deadline, and a late
    step does not move the later ones: the loop catches up and does not drift. Only a delay of
    more than ``max_lag`` (a suspended machine, a debugger) is given up; then a whole number of
    deadlines is dropped, so that the grid stays where it is.

    Args:
        period: Simulated time per step, [s].
        speed: Simulated time per real time; 1 is real time.
        max_lag: Longest delay that is caught up, [s] of real time.

    Attributes:
        steps: Steps done since `start`.
        overruns: Steps since `start` that ended after the next one was due.
        dropped: Deadlines given up since `start`.

    Raises:
        CardsError: A period, speed or lag that is not a finite number > 0.
    """

    def __init__(self, period: float, *, speed: float = 1.0, max_lag: float = 0.5) -> None:
        self._period = _positive(period, "period")
        self._max_lag = _positive(max_lag, "max_lag")
        self._speed = _positive(speed, "speed")
        self.start(0.0)

    @property
    def interval(self) -> float:
        """Real time between deadlines, [s]."""
        return self._period / self._speed

    @property
    def behind(self) -> float:
        """Real time that has been given up since `start`, [s]."""
        return self.dropped * self.interval

    @property
    def deadline(self) -> float:
        """When the next step is due, in the time of the caller's clock, [s]."""
        return self._anchor + self._count * self.interval

    def start(self, now: float) -> None:
        """Make the first step due now, and count from zero."""
        self._anchor = now
        self._count = 0
        self.steps = 0
        self.overruns = 0
        self.dropped = 0

    def resume(self, now: float) -> None:
        """Make the next step due now, after a pause; the counters go on."""
        self._anchor = now
        self._count = 0

    def set_speed(self, speed: float) -> None:
        """Change the speed from the next deadline on. Raises `CardsError`."""
        value = _positive(speed, "speed")
        self._anchor, self._count = self.deadline, 0
        self._speed = value

    def remaining(self, now: float) -> float:
        """Return the time until the next step is due, [s]; negative if it is late."""
        return self.deadline - now

    def done(self, now: float) -> bool:
        """Count one step; return whether it ended before the next one was due."""
        self.steps += 1
        self._count += 1
        lag = now - self.deadline
        if lag <= 0.0:
            return True
        self.overruns += 1
        if lag > self._max_lag:
            behind = math.floor(lag / self.interval)
            self._count += behind
            self.dropped += behind
        return False


def _positive(value: float, name: str) -> float:
    if not (value > 0.0 and math.isfinite(value)):
        raise CardsError(f"{name} is {value}, expected a finite number > 0")
    return float(value)
