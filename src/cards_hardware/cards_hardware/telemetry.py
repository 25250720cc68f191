"""What a board sends by itself: decodes it, counts what is missing, times it.

Called by the reader thread only; other threads read the newest objects, which never change.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from cards_hardware.board_data import BoardSample
from cards_hardware.clock_sync import ClockSync, wrap_difference
from cards_hardware.fast_state import FastState
from cards_hardware.percentiles import RingStatistics
from cards_hardware.protocol.frames import Frame

_NO_AGE = 2**32 - 1
_MODULO = 1 << 32
_TINY = 1e-6  # [s] that the time of samples advances at least
_RATE_SPAN = 0.5  # [s] over which the rate of samples is counted


class Telemetry:
    """The newest of everything from one board.

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
        """Take in a STATE_FAST; returns the sample made of it."""
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
