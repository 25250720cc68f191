"""What is known of a board: who it is, what it measured last, how it is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cards_core.typing import Array
from cards_hardware.percentiles import Percentiles
from cards_hardware.protocol.enums import Caps, Fault, MuscleFlag, Severity, State


@dataclass(frozen=True)
class Ident:
    """Who a board is, from IDENT.

    Attributes:
        firmware: Version, e.g. ``1.0.2``.
        hardware: Revision.
        uid: Serial number of the processor, hexadecimal.
        muscles, joints: How many channels it has.
        caps: What it can do.
        config_crc: Checksum of its limits and parameters.
        reset_cause: Why it started last, `ResetCause`.
        boot_count: Starts so far.
        limits_loaded: Whether it has limits.
        token: For the next arm or clear request.
    """

    firmware: str
    hardware: int
    uid: str
    muscles: int
    joints: int
    caps: Caps
    config_crc: int
    reset_cause: int
    boot_count: int
    limits_loaded: bool
    token: int

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Ident:
        """Read the message."""
        number = int(values["firmware"])
        return cls(
            firmware=f"{number >> 16}.{number >> 8 & 255}.{number & 255}",
            hardware=int(values["hardware"]),
            uid=bytes(values["uid"]).hex(),
            muscles=int(values["muscles"]),
            joints=int(values["joints"]),
            caps=Caps(int(values["caps"])),
            config_crc=int(values["cfg_crc"]),
            reset_cause=int(values["reset_cause"]),
            boot_count=int(values["boot_count"]),
            limits_loaded=bool(values["limits_loaded"]),
            token=int(values["arm_token"]),
        )


@dataclass(slots=True, eq=False)
class BoardSample:
    """One STATE_FAST; vectors in the order of the board's channels, NaN where invalid.

    Attributes:
        time: When it was measured, host monotonic time [s].
        arrival: When it arrived, [s].
        t_us: When it was measured, the board's clock [us].
        number: Counts samples since the session began, lost ones too.
        state: `State` of the board.
        flags: Bits of `FastFlag`.
        command_t_us: Host time stamp of the command in force, [us]; 0 for none.
        muscles: Lengths, rates, tensions, currents, shape (4, m), [m], [m/s], [N], [A].
        joints: Positions and velocities, shape (2, n), [rad], [rad/s] ([m], [m/s] of prismatic
            ones).
    """

    time: float
    arrival: float
    t_us: int
    number: int
    state: int
    flags: int
    command_t_us: int
    muscles: Array
    joints: Array

    @property
    def lengths(self) -> Array:
        """Of muscles, [m]."""
        return self.muscles[0]

    @property
    def rates(self) -> Array:
        """Of the lengths, [m/s]."""
        return self.muscles[1]

    @property
    def tensions(self) -> Array:
        """Measured, [N]."""
        return self.muscles[2]

    @property
    def currents(self) -> Array:
        """Of the motors, [A]."""
        return self.muscles[3]

    @property
    def positions(self) -> Array:
        """Of joints, [rad] or [m]."""
        return self.joints[0]

    @property
    def velocities(self) -> Array:
        """Of joints, [rad/s] or [m/s]."""
        return self.joints[1]


@dataclass(frozen=True)
class BoardEvent:
    """Something that happened on a board or on the way to it.

    Attributes:
        time: Of arrival, host monotonic [s].
        board: Name.
        severity: `Severity`.
        text: What happened, in words.
        code: `EventCode` of an event of the board's; None for what was noticed here.
        muscle: Name of the muscle concerned, if any.
        value: See `EventCode`.
    """

    time: float
    board: str
    severity: int
    text: str
    code: int | None = None
    muscle: str | None = None
    value: int = 0

    @property
    def is_problem(self) -> bool:
        """Whether somebody should look."""
        return self.severity >= Severity.WARN


@dataclass(frozen=True)
class BoardStatus:
    """How a board is; numbers that are not known yet are NaN, 0 or empty.

    Attributes:
        name, node, port: Of the layout.
        connected: Whether there is a session: port open, identified, answering.
        armed: Whether commands go to it.
        problem: Why it cannot be used now; empty if it can.
        state: `State`, None while unknown.
        fault: Bits of `Fault`.
        faults: The same in words.
        muscle_flags: Bits of `MuscleFlag` per muscle of the board.
        muscle_faults: Muscle name to its flags in words; only those that have any.
        temperatures, core_temperatures: Of motor housings and windings, [C].
        tension_limits: In force now, [N].
        vbus: Supply voltage, [V].
        rx_ok, rx_crc, rx_gap, tx_dropped, drive_errors, tick_late: Counters of the board.
        tick_max: Longest tick lately, [s].
        refused: Frames that the board refused, by cause, only those that happened.
        frames, lost_frames, crc_errors: Received here, missing in their numbers, damaged.
        foreign_frames: From another node than expected.
        replaced_commands: That a newer one overtook before they were sent.
        reconnects, resets: Of the line, of the board, since `open`.
        state_age: Of the newest sample, [s].
        state_rate: Of samples, [Hz].
        latency_p50, latency_p99: From making a command to its arrival in the control loop of the
            board, [s].
        command_latency, sample_delay: The same and the way back in full, [s].
        clock_error: Bound of what the mapping of its clock may be off, [s].
        clock_drift: Of its clock, [s/s].
        rtt: Shortest round trip lately, [s].
        firmware, uid, boot_count: Of IDENT.
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
    replaced_commands: int = 0
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


def flag_words(flags: Fault | MuscleFlag) -> tuple[str, ...]:
    """Return the set bits in words; a bit that this version does not know as a number."""
    kind = type(flags)
    words = [item.text.split(";")[0] for item in kind if item in flags]
    unknown = int(flags) & ~sum(int(item) for item in kind)
    if unknown:
        words.append(f"unknown bits {unknown:#x}")
    return tuple(words)


def state_word(state: int | None) -> str:
    """Return the name of a state, also of one that this version does not know."""
    if state is None:
        return "unknown"
    return State(state).name if state in _STATES else f"number {state}"


_STATES = frozenset(int(item) for item in State)


def mask_of(selected: Iterable[int]) -> int:
    """Return the bits of channels."""
    mask = 0
    for index in selected:
        mask |= 1 << int(index)
    return mask


def finite_channels(values: Array) -> tuple[int, Array]:
    """Return the mask of the values that are numbers, and these."""
    chosen = np.flatnonzero(~np.isnan(values))
    return mask_of(chosen.tolist()), values[chosen]
