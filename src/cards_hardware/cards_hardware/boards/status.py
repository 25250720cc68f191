"""Status of a board, collected from its connection."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cards_hardware.boards.connection import Connection
from cards_hardware.boards.events import flag_words
from cards_hardware.boards.layout import BoardLayout
from cards_hardware.boards.line_thread import LineCounts
from cards_hardware.percentiles import Percentiles
from cards_hardware.protocol.enums import AckCode, Fault, MuscleFlag, State


@dataclass(frozen=True)
class BoardStatus:
    """Status of a board; numbers that are not known yet are NaN, 0 or empty.

    Attributes:
        name, node, port: As in the layout.
        connected: Whether there is a session: port open, identified, answering.
        armed: Whether commands go to it.
        problem: Why it cannot be used now; empty if it can.
        state: `State`, None while unknown.
        fault: Bits of `Fault`.
        faults: The same in words.
        muscle_flags: Bits of `MuscleFlag` per muscle of the board.
        muscle_faults: Muscle name to its flags in words; only those that have any.
        temperatures, core_temperatures: Temperatures of motor housings and windings, [C].
        tension_limits: In force now, [N].
        vbus: Supply voltage, [V].
        rx_ok, rx_crc, rx_gap, tx_dropped, drive_errors, tick_late: Counters of the board.
        tick_max: Longest tick lately, [s].
        refused: Frames that the board refused, by cause, only those that happened.
        frames, lost_frames, crc_errors: Received here, missing in their numbers, damaged.
        foreign_frames: From another node than expected.
        line: Counters of the line, with histograms of heartbeats and round trips.
        reconnects, resets: Recovered sessions and resets of the board since `open`.
        state_age: Age of the newest sample, [s].
        state_rate: Rate of samples, [Hz].
        latency_p50, latency_p99: From making a command to its arrival in the control loop of the
            board, [s].
        command_latency, sample_delay: The same and the way back in full, [s].
        clock_error: Bound of what the mapping of its clock may be off, [s].
        clock_drift: Drift of its clock, [s/s].
        rtt: Shortest round trip lately, [s].
        firmware, uid, boot_count: As in IDENT.
        simulated: Whether it is an emulated board.
    """

    name: str
    node: int
    port: str
    connected: bool = False
    armed: bool = False
    problem: str = ""
    state: State | None = None
    fault: Fault = field(default_factory=lambda: Fault(0))
    faults: tuple[str, ...] = ()
    muscle_flags: tuple[MuscleFlag, ...] = ()
    muscle_faults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    temperatures: tuple[float, ...] = ()
    core_temperatures: tuple[float, ...] = ()
    tension_limits: tuple[float, ...] = ()
    vbus: float = math.nan
    rx_ok: int = 0
    rx_crc: int = 0
    rx_gap: int = 0
    tx_dropped: int = 0
    drive_errors: int = 0
    tick_late: int = 0
    tick_max: float = math.nan
    refused: Mapping[str, int] = field(default_factory=dict)
    frames: int = 0
    lost_frames: int = 0
    crc_errors: int = 0
    foreign_frames: int = 0
    line: LineCounts = field(default_factory=LineCounts)
    reconnects: int = 0
    resets: int = 0
    state_age: float = math.inf
    state_rate: float = 0.0
    latency_p50: float = math.nan
    latency_p99: float = math.nan
    command_latency: Percentiles = field(default_factory=Percentiles)
    sample_delay: Percentiles = field(default_factory=Percentiles)
    clock_error: float = math.nan
    clock_drift: float = math.nan
    rtt: float = math.nan
    firmware: str = ""
    uid: str = ""
    boot_count: int = 0
    simulated: bool = False


_STATES = frozenset(int(item) for item in State)
_COUNTERS = ("rx_ok", "rx_crc", "rx_gap", "tx_dropped", "drive_errors", "tick_late")


def status_of(
    layout: BoardLayout, connection: Connection, *, armed: bool, problem: str
) -> BoardStatus:
    """Return the status of a board.

    Args:
        layout: Layout of the board.
        connection: To the board.
        armed: Whether commands go to it.
        problem: Why it cannot be used now; empty if it can.
    """
    receiver, handshake, link = connection.receiver, connection.handshake, connection.link
    telemetry, ident = receiver.telemetry, handshake.ident
    counts = link.counts()
    state = receiver.state if connection.connected else None
    latency = telemetry.command_latency.summary()
    fields: dict[str, Any] = {}
    if slow := telemetry.slow:
        fields = _slow_fields(layout, slow)
    if ident is not None:
        fields["firmware"], fields["uid"] = ident.firmware, ident.uid
        fields["boot_count"] = ident.boot_count
    clock = telemetry.clock
    if clock.ready:
        fields["clock_error"] = clock.error
        fields["clock_drift"], fields["rtt"] = clock.drift, clock.rtt
    fault = Fault(receiver.fault)
    return BoardStatus(
        name=layout.name,
        node=connection.transport.node,
        port=link.port,
        connected=connection.connected,
        armed=armed,
        problem=problem,
        state=State(state) if state in _STATES else None,
        fault=fault,
        faults=flag_words(fault),
        frames=telemetry.frames,
        lost_frames=telemetry.lost,
        crc_errors=counts.damaged,
        foreign_frames=handshake.foreign,
        line=counts,
        reconnects=connection.reconnects,
        resets=connection.resets,
        state_age=telemetry.age(),
        state_rate=telemetry.rate if connection.connected else 0.0,
        latency_p50=latency.p50,
        latency_p99=latency.p99,
        command_latency=latency,
        sample_delay=telemetry.sample_delay.summary(),
        simulated=receiver.simulated,
        **fields,
    )


def muscle_faults(layout: BoardLayout, slow: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the flags of muscles in words, of those that have any.

    Args:
        layout: Layout of the board.
        slow: Its newest STATE_SLOW, empty before the first.
    """
    return _slow_fields(layout, slow)["muscle_faults"] if slow else {}


def _slow_fields(layout: BoardLayout, slow: Mapping[str, Any]) -> dict[str, Any]:
    flags = tuple(MuscleFlag(int(item)) for item in slow["mflags"])
    names = layout.muscles or tuple(f"muscle {i}" for i in range(len(flags)))
    refused = {
        AckCode(code).name.lower(): int(count)
        for code, count in enumerate(slow["refused"], start=1)
        if count
    }
    return {
        "muscle_flags": flags,
        "muscle_faults": {
            name: flag_words(item) for name, item in zip(names, flags, strict=False) if item
        },
        "temperatures": tuple(slow["housing"].tolist()),
        "core_temperatures": tuple(slow["core"].tolist()),
        "tension_limits": tuple(slow["tension_limit"].tolist()),
        "vbus": slow["vbus"],
        "tick_max": slow["tick_max_us"] * 1e-6,
        "refused": refused,
        **{name: int(slow[name]) for name in _COUNTERS},
    }
