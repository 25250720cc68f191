"""How far a simulator that paces itself has fallen behind real time."""

from __future__ import annotations

from cards_core.parameters.declaration import Parameter
from cards_core.stamps import seconds


def pace() -> Parameter:
    """Return the parameter for the pace of the world, which only the world's own file sets."""
    return Parameter(
        "speed",
        1.0,
        "Simulated time per real time that the world was given; below it, time was lost.",
        lower=1e-3,
        upper=1e3,
    )


class Delay:
    """Adds up the real time that steps took beyond their due; what is caught up counts no more.

    Args:
        speed: Simulated time per real time that is wanted; 0: none in particular.
    """

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self._behind = 0.0
        self.interrupt()

    def interrupt(self) -> None:
        """Let the time until the next step not count: the world was paused."""
        self._last: float | None = None

    def note(self, now: float, dt: int) -> float:
        """Take over that a step is done; return the real time lost so far, [s].

        Args:
            now: On a clock of real time, [s].
            dt: Length of the step, [ns].
        """
        if self._speed > 0.0 and self._last is not None:
            self._behind = max(0.0, self._behind + now - self._last - seconds(dt) / self._speed)
        self._last = now
        return self._behind
