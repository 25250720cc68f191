"""What a board sends by itself: decoded, counted and timed.

STATE_FAST comes 500 times a second, so it has a decoder of its own with few operations: the same
numbers as `protocol.codec.unpack` gives, from the same table, but all muscles in one array, so
that they can be put into the robot's order at once.
"""

from __future__ import annotations

import functools
import math
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cards_core.typing import Array
from cards_hardware.boards.clock_sync import ClockSync, wrap_difference
from cards_hardware.errors import ProtocolError
from cards_hardware.percentiles import RingStatistics
from cards_hardware.protocol.frames import Frame
from cards_hardware.protocol.schema import MAX_JOINTS, MAX_MUSCLES, Group
from cards_hardware.protocol.table import MESSAGES

_MESSAGE = MESSAGES["STATE_FAST"]
_HEAD = struct.Struct("<" + "".join(field.type.code for field in _MESSAGE.scalars))
_NAMES = tuple(field.name for field in _MESSAGE.scalars)
_MUSCLES, _JOINTS = _MESSAGE.groups

MUSCLE_ROWS = tuple(field.name for field in _MUSCLES.fields)
"""What the rows of `FastState.muscles` are."""

JOINT_ROWS = tuple(field.name for field in _JOINTS.fields)
"""What the rows of `FastState.joints` are."""


class FastState(NamedTuple):
    """Values of the message, SI units.

    Attributes:
        head: Its plain numbers, by name.
        muscles: Shape (4, m), rows as `MUSCLE_ROWS`; NaN where invalid.
        joints: Shape (2, n), rows as `JOINT_ROWS`.
    """

    head: dict[str, int]
    muscles: Array
    joints: Array


class _Reader:
    """For given numbers of muscles and joints."""

    def __init__(self, muscles: int, joints: int) -> None:
        self._muscles, self._joints = muscles, joints
        code = "<"
        invalid: list[float] = []
        divisor: list[float] = []
        for group, count in ((_MUSCLES, muscles), (_JOINTS, joints)):
            code += _code(group) * count
            for field in group.fields * count:
                assert field.quantity is not None
                invalid.append(field.type.invalid)
                divisor.append(round(1.0 / field.quantity.scale))
        self._struct = struct.Struct(code)
        self.size = _HEAD.size + self._struct.size
        self._invalid = np.array(invalid, dtype=float)
        self._divisor = np.array(divisor, dtype=float)

    def read(self, payload: bytes) -> tuple[Array, Array]:
        numbers: Array = np.array(self._struct.unpack_from(payload, _HEAD.size), dtype=float)
        bad = numbers == self._invalid
        numbers /= self._divisor
        if bad.any():
            numbers[bad] = np.nan
        split = self._muscles * len(_MUSCLES.fields)
        return (
            numbers[:split].reshape(self._muscles, len(_MUSCLES.fields)).T,
            numbers[split:].reshape(self._joints, len(_JOINTS.fields)).T,
        )


def _code(group: Group) -> str:
    return "".join(field.type.code for field in group.fields)


@functools.cache
def _reader(muscles: int, joints: int) -> _Reader:
    return _Reader(muscles, joints)


def read_fast_state(payload: bytes) -> FastState:
    """Return the values of a STATE_FAST.

    Raises:
        ProtocolError: The payload is too short, or has more muscles or joints than there can be.
    """
    if len(payload) < _HEAD.size:
        raise ProtocolError("STATE_FAST", f"payload of {len(payload)} bytes, {_HEAD.size} needed")
    head = dict(zip(_NAMES, _HEAD.unpack_from(payload), strict=True))
    muscles, joints = head["muscles"], head["joints"]
    if muscles > MAX_MUSCLES or joints > MAX_JOINTS:
        raise ProtocolError("STATE_FAST", f"{muscles} muscles and {joints} joints, too many")
    reader = _reader(muscles, joints)
    if len(payload) < reader.size:
        raise ProtocolError("STATE_FAST", f"payload of {len(payload)} bytes, {reader.size} needed")
    return FastState(head, *reader.read(payload))


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
        """Muscle lengths, [m]."""
        return self.muscles[0]

    @property
    def rates(self) -> Array:
        """Rates of the muscle lengths, [m/s]."""
        return self.muscles[1]

    @property
    def tensions(self) -> Array:
        """Measured tensions, [N]."""
        return self.muscles[2]

    @property
    def currents(self) -> Array:
        """Motor currents, [A]."""
        return self.muscles[3]

    @property
    def positions(self) -> Array:
        """Joint positions, [rad] or [m]."""
        return self.joints[0]

    @property
    def velocities(self) -> Array:
        """Joint velocities, [rad/s] or [m/s]."""
        return self.joints[1]


_NO_AGE = 2**32 - 1
_MODULO = 1 << 32
_TINY = 1e-6  # [s] that the time of samples advances at least
_RATE_SPAN = 0.5  # [s] over which the rate of samples is counted


class Telemetry:
    """The newest values from one board, and statistics.

    Attributes:
        clock: The board's in terms of ours.
        sample: Newest STATE_FAST, None before the first.
        slow: Newest STATE_SLOW, decoded; empty before the first.
        frames: Good frames received.
        lost: Frames that are missing in the sequence numbers.
        command_latency, sample_delay: [s]
        rate: Samples per second.
    """

    def __init__(self) -> None:
        self.clock = ClockSync()
        self.command_latency = RingStatistics()
        self.sample_delay = RingStatistics()
        self.frames = 0
        self.lost = 0
        self.reset()

    def reset(self) -> None:
        """Forget what belongs to a session; counters and statistics go on."""
        self.clock.reset()
        self.sample: BoardSample | None = None
        self.slow: Mapping[str, Any] = {}
        self.rate = 0.0
        self._last_seq: dict[int, int] = {}
        self._number = 0
        self._seen_command = 0
        self._rate_start = -math.inf
        self._rate_count = 0

    def count(self, frame: Frame) -> int:
        """Count a frame and those missing before it; returns how many these are."""
        self.frames += 1
        last = self._last_seq.get(frame.type)
        self._last_seq[frame.type] = frame.seq
        if last is None:
            return 0
        missing = (frame.seq - last - 1) & 255
        if missing == 255:
            return 0  # the same frame twice
        self.lost += missing
        return missing

    def fast(self, frame: Frame, state: FastState, missing: int, arrival: float) -> BoardSample:
        """Take in a STATE_FAST; returns the sample made of it.

        Args:
            frame: The frame.
            state: What it says.
            missing: Frames that are missing before it, as `count` returns them.
            arrival: When it arrived, monotonic time of the host, [s].
        """
        head = state.head
        self._number += 1 + missing
        stamp = arrival
        if self.clock.ready:
            arrival_us = round(arrival * 1e6)
            measured = self.clock.to_host(frame.t_us, arrival_us)
            stamp = min(measured, arrival)
            self.sample_delay.add(arrival - measured)
            command = head["cmd_t_us"]
            age = head["cmd_age_us"]
            if command and age != _NO_AGE and command != self._seen_command:
                # ours was made at `command`, it arrived `age` before this frame was made
                made = (arrival_us - wrap_difference(arrival_us % _MODULO, command)) * 1e-6
                if self._seen_command:
                    self.command_latency.add(measured - age * 1e-6 - made)
                self._seen_command = command
        if self.sample is not None:
            stamp = max(stamp, self.sample.time + _TINY)
        self.sample = sample = BoardSample(
            time=stamp,
            arrival=arrival,
            t_us=frame.t_us,
            number=self._number,
            state=head["state"],
            flags=head["flags"],
            command_t_us=head["cmd_t_us"],
            muscles=state.muscles,
            joints=state.joints,
        )
        self._rate_count += 1
        if arrival - self._rate_start >= _RATE_SPAN:
            self.rate = self._rate_count / (arrival - self._rate_start)
            self._rate_start, self._rate_count = arrival, 0
        return sample

    def age(self) -> float:
        """Return the time since the newest sample was measured, [s]."""
        sample = self.sample
        return math.inf if sample is None else max(0.0, time.monotonic() - sample.time)
