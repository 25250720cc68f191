"""When the simulator steps: mode, pace, pause, and the robots that it waits for."""

from __future__ import annotations

from cards_core.loop.answer_watch import AnswerWatch
from cards_core.loop.host import ANSWERED_MODES, CLOCKED_MODES, WATCHED_MODES
from cards_core.loop.pacing import Pacer
from cards_sim.errors import SimulationStoppedError

MAX_LAG = 0.01
"""Longest delay that is caught up in real time, [s]: steps that are caught up come faster than the
controller can answer, so after a longer delay time is late rather than the commands stale."""


class TimeControl:
    """Decides when a step may be done. It knows no clock: callers say what time it is, [s].

    Time stands still until all robots were commanded: in lockstep and paced before every step,
    else before the first one, unless ``waits`` is false. In as_fast_as_possible it waits a while
    for those who answer states.

    Args:
        dt: Time step, [s].
        mode: See `cards_core.loop.host.MODES`.
        speed: Simulated time per real time in modes realtime and paced.
        waits: Time starts with the first command.
        robots: Number of robots.

    Attributes:
        mode: As given.
        answered: Whether every step waits for commands.
        clocked: Whether time is not faster than the clock.
        watches: Who answers states, one for each robot; empty in modes without.
        pacer: Deadlines in modes that follow the clock.
        paused: Whether the simulation is paused.
        steps: Done since the last reset.
        failure: Why the world stopped, if it did.
    """

    def __init__(self, dt: float, *, mode: str, speed: float, waits: bool, robots: int) -> None:
        self.mode = mode
        self.answered = mode in ANSWERED_MODES
        self.clocked = mode in CLOCKED_MODES
        self.pacer = Pacer(dt, speed=speed, max_lag=max(MAX_LAG, 2 * dt))
        self.paused = False
        self._waits = waits or self.answered
        self._everyone = frozenset(range(robots))
        self.watches = [AnswerWatch() for _ in range(robots) if mode in WATCHED_MODES]
        self.begin(0.0)

    def begin(self, now: float) -> None:
        """Begin at time zero; a pause lasts."""
        self.steps = 0
        self.failure: SimulationStoppedError | None = None
        self._single = False  # a step that may be done in spite of the pause
        self._missing = set(self._everyone) if self._waits else set()
        for watch in self.watches:
            watch.begin()
        self.pacer.start(now)

    @property
    def released(self) -> bool:
        """Whether no robot's command is missing."""
        return not self._missing

    def waits_for(self, robot: int) -> bool:
        """Tell whether time stands still until this robot is commanded."""
        return robot in self._missing and not self.paused and self.failure is None

    @property
    def running(self) -> bool:
        """Whether time advances."""
        return not self._missing and not self.paused and self.failure is None

    def commanded(self, robot: int, now: float) -> None:
        """Note that a robot was commanded."""
        if not self._missing:
            return
        self._missing.discard(robot)
        if not self._missing and self.clocked and not (self.answered and self.steps):
            self.pacer.resume(now)  # the wait for the first command is not time lost

    def published(self, stamp: int, now: float) -> None:
        """Note that the state of this time [ns] was published for the first time."""
        for watch in self.watches:
            watch.published(stamp, now)

    def answered_by(self, robot: int, stamp: int) -> None:
        """Note a command for a robot, that answers the state of this time [ns]; 0: none."""
        if self.watches:
            self.watches[robot].commanded(stamp)

    def _unwatched(self, now: float) -> float:
        """Return how long to wait at most for those who answer states, [s]."""
        return max((watch.remaining(now) for watch in self.watches), default=0.0)

    def may_step(self, now: float) -> bool:
        """Tell whether a step may be done now."""
        if self.failure is not None:
            return False
        if self._single:
            # a step by hand needs no command, except where time itself is made of commands
            return not self._missing or not self.answered
        if self.paused or self._missing:
            return False
        if self.clocked:
            return self.pacer.remaining(now) <= 0.0
        return self._unwatched(now) <= 0.0

    def patience(self, now: float, longest: float) -> float:
        """Return how long to wait for a message, [s], at most ``longest``."""
        if self.clocked and self.running:
            return min(longest, self.pacer.remaining(now))
        return longest

    def stepping(self) -> None:
        """Note that a step begins."""
        self._single = False

    def done(self, now: float) -> None:
        """Note that a step is done."""
        self.steps += 1
        if self.answered:
            self._missing = set(self._everyone)
        if self.clocked:
            self.pacer.done(now)

    def pause(self, paused: bool, now: float) -> None:
        """Stop time, or let it go on."""
        self.paused = paused
        self._single = False
        if not paused:
            self.pacer.resume(now)

    def allow_one(self) -> None:
        """Allow one step while time is paused."""
        self._single = True
