"""Time in a simulator that runs by itself: who stopped it, what is lost, what a step costs.

Time belongs to the simulator and is only ever paused and let go. Three parties do that: a robot
that waits for a command (we *hold* the world, and the command lets it go on), somebody who called
``sim/pause`` (who has to call it again), and somebody at the simulator's own controls.
"""

from __future__ import annotations

import time

import numpy as np

from cards_core.parameters.declaration import Parameter
from cards_core.stamps import seconds
from cards_muscle_plugin.ports import WorldPort


class TimeGate:
    """Pauses the world until there is a command to go on with.

    Args:
        world: Control of time.
        lockstep: Every state needs an answer.
        waits: The first step needs a command; always so in lockstep.

    Attributes:
        released: There was a command, or none is needed.
        held: We paused the world, and let it go on.
        to_start: The world did a step before it was paused; the joints are to be put back.
        stay: Somebody wants time to stand still beyond that.
    """

    def __init__(self, world: WorldPort, *, lockstep: bool, waits: bool) -> None:
        self._world = world
        self._lockstep = lockstep
        self._waits = waits or lockstep
        self._answered = -1
        self.held = self.to_start = self.stay = False
        self.reset()

    def reset(self) -> None:
        """Start again with the world, which is paused if it was before."""
        self.released = not self._waits
        self._answered = -1
        self.to_start = False

    def accept(self, stamp: int) -> None:
        """Note that the state with this stamp [ns] was answered by a command."""
        self.released = True
        self._answered = stamp

    def ready(self, stamp: int) -> bool:
        """Tell whether there is a command to go on with from the state with this stamp [ns]."""
        return self.released and (not self._lockstep or self._answered == stamp)

    def hold(self, *, to_start: bool = False) -> bool:
        """Pause the world until a command comes; False if that is not possible."""
        if not self._world.pause(True):
            return False
        self.held, self.to_start = True, to_start
        return True

    def let_go(self, stamp: int) -> bool:
        """Let the world go on if we hold it and can; tell whether we did."""
        if not (self.held and self.ready(stamp) and not self.stay):
            return False
        self.held = False
        return self._world.pause(False)

    def pause(self, paused: bool) -> bool:
        """Do what somebody wants; False if the world cannot be reached."""
        # a world that we hold is let go by the next command
        done = self.held or self._world.pause(paused)
        if done:
            self.stay = paused
        return done

    def rewind(self, *, paused: bool) -> bool:
        """Put the world back to time zero, there to wait; False if it cannot be reached.

        Args:
            paused: Somebody wants it to stand still there.
        """
        done = self._world.rewind(paused or self._waits)
        if done:
            # a world that waits for a command is paused from the first moment on
            self.held, self.stay = self._waits, paused
        return done

    @property
    def waits(self) -> bool:
        """Whether time starts with a command."""
        return self._waits


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
        """Start again."""
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
