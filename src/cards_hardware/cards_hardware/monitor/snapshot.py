"""The state of a real robot at one moment, for display.

A source returns a `Snapshot` whenever it is asked; the view only draws it. `BoardMonitor` talks to
the boards itself when no bridge is running; `TopicMonitor` listens to a running bridge. Neither
arms anything; both can stop the robot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from cards_core.json_values import json_value
from cards_hardware.protocol.enums import MuscleFlag

NAN = math.nan

SERIOUS = (
    MuscleFlag.TENSION_LIMITED
    | MuscleFlag.SLEW_LIMITED
    | MuscleFlag.RATE_LIMITED
    | MuscleFlag.LENGTH_LOW
    | MuscleFlag.LENGTH_HIGH
    | MuscleFlag.CURRENT_LIMITED
    | MuscleFlag.LIMITS_MISSING
).__invert__()
"""Flags that are more than a limit at work."""

EVENTS = 50
"""Number of events that are kept."""


@dataclass(frozen=True)
class MuscleRow:
    """A muscle. What is not known is NaN.

    Attributes:
        name: Its name.
        length, rate, tension, current: Measured, [m], [m/s], [N], [A].
        housing, core: Temperatures of its motor and of the winding (estimated), [C].
        tension_limit: In force now, [N].
        length_min, length_max, soft, hard: Its limits, [m], [C].
        flags: In words.
        serious: Whether one of them is more than a limit at work.
    """

    name: str
    length: float = NAN
    rate: float = NAN
    tension: float = NAN
    current: float = NAN
    housing: float = NAN
    core: float = NAN
    tension_limit: float = NAN
    length_min: float = NAN
    length_max: float = NAN
    soft: float = 60.0
    hard: float = 80.0
    flags: tuple[str, ...] = ()
    serious: bool = False


@dataclass(frozen=True)
class JointRow:
    """A joint coordinate, [rad] or [m], its velocity, and its limits in the model."""

    name: str
    position: float = NAN
    velocity: float = NAN
    lower: float = -math.inf
    upper: float = math.inf


@dataclass(frozen=True)
class BoardRow:
    """A board.

    Attributes:
        name, port, state: ``state`` in capitals; ``unknown`` without a session.
        connected: Whether it answers.
        problem: Why it cannot be used; empty if it can.
        faults: In words.
        vbus: Supply, [V].
        state_rate: Rate of states, [Hz].
        state_age: Age of the newest state, [s].
        latency_p99: From a command to its effect on the board, [s].
        heartbeat_gap: Longest time between two heartbeats to the board, [s].
        reply: Longest round trip to the board, [s].
        heartbeat_jitter, replies: Histograms: by how much the times between heartbeats differ
            from what they should be, and of round trips; in words.
        counters: What went wrong how often, only what did.
        who: Firmware and serial number.
        simulated: Whether it is emulated.
    """

    name: str
    port: str = ""
    state: str = "unknown"
    connected: bool = False
    problem: str = ""
    faults: tuple[str, ...] = ()
    vbus: float = NAN
    state_rate: float = NAN
    state_age: float = NAN
    latency_p99: float = NAN
    heartbeat_gap: float = NAN
    reply: float = NAN
    heartbeat_jitter: str = ""
    replies: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)
    who: str = ""
    simulated: bool = False


@dataclass(frozen=True)
class Snapshot:
    """The robot at one moment.

    Attributes:
        title: Robot or port.
        source: Where it comes from, in words.
        boards, muscles, joints: Rows.
        events: Newest last: age [s], severity, text.
        problem: Why there is nothing to see; empty otherwise.
    """

    title: str
    source: str
    boards: tuple[BoardRow, ...] = ()
    muscles: tuple[MuscleRow, ...] = ()
    joints: tuple[JointRow, ...] = ()
    events: tuple[tuple[float, int, str], ...] = ()
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values; what is not a number as None."""
        out: dict[str, Any] = json_value(asdict(self))
        return out


class MonitorSource(Protocol):
    """A source of snapshots."""

    def snapshot(self) -> Snapshot:
        """Return how it is now."""
        ...

    def estop(self) -> str:
        """Stop the robot; return what was done, in words."""
        ...

    def close(self) -> None:
        """Release ports and nodes."""
        ...
