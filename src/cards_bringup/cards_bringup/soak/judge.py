"""Invariants of a robot that is commanded, judged from what was seen on its topics or its line.

Pure functions of arrays. Times of the robot (stamps of its states, ticks of its board) decide,
never those of the observer's machine, so that a busy machine neither hides a violation nor makes
one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cards_core.typing import Array

REST = 1e-6
"""Within this a tension is the minimum, [N]."""


MOST_MISSED = 500
"""Commands that a new publisher may have sent before an observer hears it: two seconds of them."""

LATE = 0.5
"""A command whose state is so long past when it comes is refused, [s]: five `command_timeout`."""

SKIPPED = 2
"""A busy controller answers every second state at least."""


@dataclass(frozen=True)
class Violation:
    """What must not be.

    Attributes:
        invariant: Which.
        wall: When it was seen, [s] of the machine's monotonic clock.
        text: What was seen, and what would be right.
    """

    invariant: str
    wall: float
    text: str


@dataclass
class Seen:
    """What an observer saw on topics, in the order of its arrival.

    Attributes:
        state_wall: Arrival of states, shape (n,), [s].
        state_stamp: Their stamps, the robot's time, shape (n,), [s].
        tensions: Shape (n, m), [N].
        command_wall: Arrival of commands, shape (k,), [s].
        command_stamp: Stamps of the states that they answer, shape (k,), [s].
        command_valid: Whether the host may obey, shape (k,).
        command_missed: How many commands their publisher sent before and the observer did not
            see, shape (k,): hosts and observers find a new publisher at different times.
    """

    state_wall: Array
    state_stamp: Array
    tensions: Array
    command_wall: Array
    command_stamp: Array
    command_valid: npt.NDArray[np.bool_]
    command_missed: npt.NDArray[np.int_]

    def lives(self) -> list[slice]:
        """Return the states of each life of the host: time goes backwards when it starts again."""
        starts = np.flatnonzero(np.diff(self.state_stamp) < 0.0) + 1
        edges = [0, *starts.tolist(), len(self.state_stamp)]
        return [slice(a, b) for a, b in pairwise(edges) if b > a]


@dataclass
class Release:
    """Muscles that went to their minimum because commands stayed away.

    Attributes:
        wall: When the last command before was seen, [s].
        delay: From the stamp of the last command to the first state at rest, robot's time, [s].
    """

    wall: float
    delay: float


@dataclass
class Judgement:
    """Violations, and how often muscles were let go.

    Attributes:
        violations: Found.
        releases: Of which it is known how long after the last command they were.
        at_rest: When all muscles were at their minimum, shape (k,), [s].
    """

    violations: list[Violation] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    at_rest: Array = field(default_factory=lambda: np.empty(0))


def within_limits(seen: Seen, low: Array, high: Array, tolerance: float = 1e-6) -> list[Violation]:
    """Check that every tension of every state is a number within the limits of its muscle.

    Args:
        seen: The states.
        low: Least tensions, shape (m,), [N].
        high: Largest tensions, shape (m,), [N].
        tolerance: [N].
    """
    good = np.isfinite(seen.tensions)
    good &= (seen.tensions >= low - tolerance) & (seen.tensions <= high + tolerance)
    # at time 0 nothing has pulled as yet
    bad = np.flatnonzero(~good.all(axis=1) & (seen.state_stamp > 0.0))
    return [
        Violation(
            "tensions within limits",
            float(seen.state_wall[row]),
            f"{seen.tensions[row].tolist()} N at t = {seen.state_stamp[row]:.4f} s "
            f"(expected: {low.tolist()} to {high.tolist()})",
        )
        for row in bad[:10]
    ]


def count_missed(due: set[int], number: int) -> int:
    """Return how many messages of a publisher came before one of it and were not seen.

    A publisher may have found the host before it found the observer; later it leaves out what a
    reader had no time for. ROS does not tell publishers apart: a message that none of them owes is
    taken to be of a new one if its number is below `MOST_MISSED`, else of the one that it leaves
    the least out of.

    Args:
        due: Numbers that the next messages of known publishers have; changed.
        number: Of the message, counted by its publisher from 1 on.

    Returns:
        `MOST_MISSED` at most: finding each other takes some seconds at most.
    """
    expected = number
    if number not in due:
        known = [n for n in due if n < number] if number > MOST_MISSED else []
        expected = max(known, default=1)
    due.discard(expected)
    due.add(number + 1)
    return min(number - expected, MOST_MISSED)


def freshness(seen: Seen, life: slice, period: float, slack: float = 1.0) -> Array:
    """Return how old the newest command can have been at each state of a life, [s].

    The newest valid command that answers a state before this one, of those that were seen before
    this state was plus ``slack``, because the observer may get them in another order. Commands
    that were missed answered states before the first one that was seen, see `SKIPPED`. Infinite
    where there was none.

    Args:
        seen: What was seen.
        life: Of which states.
        period: Of the states, [s].
        slack: [s] of the observer's clock.
    """
    wall, stamp = seen.state_wall[life], seen.state_stamp[life]
    begin = wall[0] - slack
    of_life = seen.command_valid & (seen.command_wall >= begin)
    of_life &= seen.command_wall <= wall[-1] + slack
    # what a controller that was stopped sends when it goes on is too old to be obeyed
    then = np.searchsorted(wall, seen.command_wall, side="right") - 1
    of_life &= stamp[np.maximum(then, 0)] - seen.command_stamp <= LATE
    stamps = np.concatenate(
        [
            first - period * np.arange(SKIPPED * missed + 1)
            for first, missed in zip(
                seen.command_stamp[of_life], seen.command_missed[of_life], strict=True
            )
        ]
        or [np.empty(0)]
    )
    # a stamp of a state that this life has not reached belongs to another life
    stamps = np.sort(stamps[stamps <= stamp[-1]])
    if not stamps.size:
        return np.full(len(stamp), np.inf)
    row = np.searchsorted(stamps, stamp, side="right") - 1
    age: Array = np.where(row >= 0, stamp - stamps[np.maximum(row, 0)], np.inf)
    return age


def judge_topics(
    seen: Seen, low: Array, high: Array, *, timeout: float, period: float
) -> Judgement:
    """Judge a host that is commanded over topics.

    A host accepts a command that answers a state of at most ``timeout`` ago and obeys it for
    ``timeout``: 2 ``timeout`` and two periods after the stamp of the last command every muscle is
    at its minimum.

    Args:
        seen: What was seen.
        low: Least tensions, shape (m,), [N].
        high: Largest tensions, shape (m,), [N].
        timeout: Parameter ``command_timeout`` of the host, [s].
        period: Of the states, [s].
    """
    out = Judgement(within_limits(seen, low, high))
    rest = np.all(np.abs(seen.tensions - low) <= REST, axis=1)
    out.at_rest = seen.state_wall[rest]
    for life in seen.lives():
        wall, stamp, still = seen.state_wall[life], seen.state_stamp[life], rest[life]
        age = freshness(seen, life, period)
        stale = (age > 2.0 * timeout + 2.0 * period) & ~still & (stamp > 0.0)
        for row in np.flatnonzero(stale)[:10]:
            out.violations.append(
                Violation(
                    "no stale command",
                    float(wall[row]),
                    f"tensions {seen.tensions[life][row].tolist()} N at t = {stamp[row]:.4f} s, "
                    f"{age[row]:.4f} s after the state of the last command (expected: "
                    f"{low.tolist()} after {2 * timeout + 2 * period:g} s at most)",
                )
            )
        for row in np.flatnonzero(still[1:] & ~still[:-1]) + 1:
            if np.isfinite(age[row]) and age[row] > timeout - 2.0 * period:
                out.releases.append(Release(float(wall[row]), float(age[row])))
    return out


@dataclass(frozen=True)
class BoardSample:
    """A state that a board sent.

    Attributes:
        wall: Arrival, [s].
        t: Time of the board, [us].
        state: Its name: ACTIVE, HOLD, RELAX, ...
        command: Stamp of the command in force, [us]; 0: none.
        tension: Shape (m,), [N].
    """

    wall: float
    t: int
    state: str
    command: int
    tension: Array


def command_within_limits(wall: float, tensions: Array, high: Array) -> list[Violation]:
    """Check a command on its way to a board.

    Args:
        wall: When, [s].
        tensions: Shape (m,), [N].
        high: Largest tensions, shape (m,), [N].
    """
    if np.isfinite(tensions).all() and (tensions >= 0.0).all() and (tensions <= high + 0.01).all():
        return []
    return [
        Violation(
            "tensions within limits",
            wall,
            f"command to the board: {tensions.tolist()} N (expected: 0 to {high.tolist()})",
        )
    ]


OVER_TENSION, LOAD_NOISE = 1.2, 3.0
"""Of the board: the largest tension over that of the muscle; and noise of the load cells, [N]."""

DEBOUNCE = 10_000
"""For how long a tension may be beyond it, [us]: the board's ticks, and as many to let go."""

LONGEST_AGE = {"ACTIVE": 24_000, "HOLD": 100_000, "RELAX": 1_000_000}
"""Age of the command in force at which a state of the board has ended, [us]."""

TICK = 1_000
"""Longest time between two ticks in which the board may not have looked, [us]."""


def judge_board(samples: list[BoardSample], high: Array) -> Judgement:
    """Judge a board by its own clock.

    A command in force that does not change is HOLD after 24 ms, RELAX after 100 ms, DISARMED after
    1 s, each in the tick in which it is due or the first one after it. A muscle under steps of its
    command may overshoot, up to `OVER_TENSION` of its largest tension; beyond that the board lets
    it go within some ticks.

    Args:
        samples: What it sent, in order.
        high: Largest tensions, shape (m,), [N].
    """
    out = Judgement()
    since, last = 0, None
    beyond: int | None = None  # since when a tension is too large
    entered: dict[str, int] = {}
    for one in samples:
        # before the first measurement after a reset there is no number
        good = bool(np.isfinite(one.tension).all()) or one.state not in ("ACTIVE", "HOLD")
        if good and not (one.tension > OVER_TENSION * high + LOAD_NOISE).any():
            beyond = None
        elif beyond is None or (last is not None and one.t < last.t):
            beyond = one.t
        if not good or (beyond is not None and one.t - beyond > DEBOUNCE):
            out.violations.append(
                Violation(
                    "tensions within limits",
                    one.wall,
                    f"board: {one.tension.tolist()} N (expected: at most {OVER_TENSION:g} of "
                    f"{high.tolist()} for more than {DEBOUNCE / 1e3:g} ms)",
                )
            )
        new_life = last is not None and one.t < last.t
        # a board that relaxes has none in force any more: the last one counts on
        if last is None or new_life or (one.command and one.command != last.command):
            since, entered = one.t, {}
        step = TICK if last is None or new_life else max(TICK, one.t - last.t)
        age = one.t - since
        due = LONGEST_AGE.get(one.state)
        if due is not None and one.command and age > due + 2 * step:
            out.violations.append(
                Violation(
                    "watchdog of the board",
                    one.wall,
                    f"{one.state} {age / 1e3:.1f} ms after the last command "
                    f"(expected: left after {due / 1e3:g} ms)",
                )
            )
            since = one.t  # say it once
        if one.state == "RELAX" and last is not None and last.state in ("ACTIVE", "HOLD"):
            out.releases.append(Release(one.wall, age / 1e6))
        entered.setdefault(one.state, one.t)
        last = one
    return out


def missing_rows(times: Array, dt: float, seen_until: float, block: int) -> str:
    """Return what is missing in the log of a host, empty if nothing is.

    Rows are written in blocks; a block that was written must be there, whatever happened to the
    process afterwards. The row of a state is added when it has been published.

    Args:
        times: Column ``time`` of the log, shape (n,), [s].
        dt: Time step, [s].
        seen_until: Stamp of the last state that an observer saw, [s].
        block: Rows that are written at once; 1: the log was closed.
    """
    if len(times) > 1 and np.abs(np.diff(times) - dt).max() > 1e-6 * dt + 1e-9:
        gap = int(np.abs(np.diff(times) - dt).argmax())
        return f"rows {gap} and {gap + 1} are {np.diff(times)[gap]:g} s apart (expected: {dt:g})"
    published = round(seen_until / dt)
    wanted = max(0, published - 1) // block * block
    if len(times) < wanted:
        return f"{len(times)} rows (expected: {wanted} at least, {published} states were seen)"
    return ""


def memory_growth(
    samples: list[tuple[float, float]], settled: float, warm_up: float = 10.0
) -> float:
    """Return how much memory a process gained, [MB]: median of its last quarter against its first.

    Args:
        samples: Time [s] and memory [MB], in order.
        settled: From when on it did what it is for, [s]; starting takes memory.
        warm_up: For so long after that samples do not count, [s].
    """
    rest = np.array([m for t, m in samples if t - settled > warm_up])
    if rest.size < 8:
        return 0.0
    part = rest.size // 4
    return float(np.median(rest[-part:]) - np.median(rest[:part]))
