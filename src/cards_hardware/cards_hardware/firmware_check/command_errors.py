"""Commands to a board over a noisy line: only what was sent may take effect.

``python -m cards_hardware.firmware_check.command_errors --frames 1000000 --json`` arms a board in
this process and sends a tension command per millisecond, with the damage of a noisy line, and
further: commands from before, as a buffer somewhere on the way may give them out late, and
commands for another board. After every tick the command in force is compared with what was sent:
every tension and slew of it. It must also be newer than the one before.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from cards_hardware.errors import HardwareError
from cards_hardware.firmware_check.frame_errors import (
    MUSCLES,
    NODE,
    PERIOD_US,
    Line,
    commands,
    damage,
)
from cards_hardware.firmware_check.native_firmware import NativeDevice
from cards_hardware.protocol.codec import encode
from cards_hardware.protocol.enums import AckCode, State
from cards_hardware.protocol.frames import Frame, encode_frame

_CHUNK = 2000
_START_US = 2**32 - 60_000_000  # both clocks wrap after a minute
_OLD = 1e-3  # probability of an old command behind a frame
_OTHER = 1e-3  # of a command for another board
_HEARTBEAT = 20  # frames between heartbeats


@dataclass
class CommandReport:
    """How a board responded to the commands.

    Attributes:
        frames: Commands sent.
        applied: Changes of the command in force, seen once per tick.
        corrupted: Ticks at whose end a command was in force that was never sent so.
        replayed: Changes to a command that is not newer.
        old_sent: Commands from before that were sent again.
        other_sent: Commands for another board.
        hold_ticks: Ticks in HOLD: no good command for 24 ms.
        stopped: Whether the board ended elsewhere than in ACTIVE or HOLD.
        refused: Frames refused, by `AckCode`.
        seconds: Duration of the run, [s].
    """

    frames: int
    line: Line
    applied: int = 0
    corrupted: int = 0
    replayed: int = 0
    old_sent: int = 0
    other_sent: int = 0
    hold_ticks: int = 0
    stopped: bool = False
    refused: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether the board did nothing that it must not do."""
        return not (self.corrupted or self.replayed or self.stopped)


class _Sender:
    """Makes what goes over the line, and remembers what is true."""

    def __init__(self, rng: np.random.Generator, start_us: int, report: CommandReport) -> None:
        self._rng = rng
        self._start_us = start_us
        self._report = report
        self._past: list[Frame] = []
        self.known: dict[int, tuple[bytes, bytes]] = {}

    def wires(self, first: int, count: int) -> list[bytes]:
        """Return what is sent in each of `count` milliseconds."""
        frames = commands(self._rng, first, count, self._start_us)
        # a board says 1 for time stamp 0, which means that there is no command
        self.known = {frame.t_us or 1: _columns(frame) for frame in self._past + frames}
        wires = [encode_frame(frame) for frame in frames]
        for i in np.flatnonzero(self._rng.random(count) < _OLD).tolist():
            past = (self._past + frames[:i])[-2000:]
            if past:
                wires[i] += encode_frame(past[int(self._rng.integers(len(past)))])
                self._report.old_sent += 1
        for i in np.flatnonzero(self._rng.random(count) < _OTHER).tolist():
            # its time stamp is that of no command of ours
            other = replace(frames[i], node=NODE + 1, t_us=(frames[i].t_us + 2) % 2**32)
            wires[i] += encode_frame(other)
            self._report.other_sent += 1
        for i in range(0, count, _HEARTBEAT):
            wires[i] += encode(
                "HEARTBEAT",
                {"state": State.ACTIVE, "fault": 0, "t_peer": 0},
                node=NODE,
                seq=(1 + (first + i) // _HEARTBEAT) % 256,
                t_us=frames[i].t_us,
            )
        self._past = frames
        return wires


def _columns(frame: Frame) -> tuple[bytes, bytes]:
    rows = np.frombuffer(frame.payload[4:], dtype="<u2").reshape(MUSCLES, 2)
    return rows[:, 0].tobytes(), rows[:, 1].tobytes()


def run(frames: int, line: Line, folder: Path, seed: int = 1) -> CommandReport:
    """Send commands to a board over a bad line.

    Args:
        frames: How many.
        line: How bad it is.
        folder: Where the board is built.
        seed: Seed of the random numbers.

    Raises:
        HardwareError: The board cannot be built, or does not arm.
    """
    rng = np.random.default_rng(seed)
    report = CommandReport(frames, line)
    started = time.perf_counter()
    device = NativeDevice(folder, _START_US)
    device.arm(device.prepare(MUSCLES))
    if device.state != State.ARMED:
        raise HardwareError(f"the board is {device.state.name} after arming")
    view = device.view
    start_us = view.time_us + PERIOD_US  # a command is stamped with the tick that it arrives in
    sender = _Sender(rng, start_us, report)
    size = 2 * MUSCLES
    newest = 0
    for first in range(0, frames, _CHUNK):
        count = min(_CHUNK, frames - first)
        data, slot, _ = damage(rng, sender.wires(first, count), line)
        stream = data.tobytes()
        ends = np.searchsorted(slot, np.arange(count), side="right").tolist()
        begin = 0
        for end in ends:
            device.tick(stream[begin:end], PERIOD_US)
            begin = end
            in_force = view.cmd_t_us
            if in_force != newest:
                report.applied += 1
                report.replayed += newest != 0 and not 0 < (in_force - newest) % 2**32 < 2**31
                newest = in_force
            seen = bytes(view.tension)[:size], bytes(view.slew)[:size]
            report.corrupted += in_force != 0 and sender.known.get(in_force) != seen
            report.hold_ticks += view.state == State.HOLD
            report.stopped |= in_force != 0 and view.state not in (State.ACTIVE, State.HOLD)
    report.stopped |= view.state not in (State.ACTIVE, State.HOLD)
    report.refused = {
        AckCode(code).name: count for code, count in enumerate(view.refused, 1) if count
    }
    report.seconds = time.perf_counter() - started
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; return 0 if the board did what it must."""
    parser = argparse.ArgumentParser(prog="python -m cards_hardware.firmware_check.command_errors")
    parser.add_argument("--frames", type=int, default=100_000, help="how many (100000)")
    parser.add_argument(
        "--rate", type=float, default=1e-4, help="of changed, lost, inserted bytes"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers (1)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    line = Line(changed=options.rate, lost=options.rate, inserted=options.rate)
    try:
        with tempfile.TemporaryDirectory() as folder:
            report = run(options.frames, line, Path(folder), options.seed)
    except HardwareError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps({**asdict(report), "passed": report.passed}, indent=2))
    else:
        items = {key: value for key, value in asdict(report).items() if key != "line"}
        print(", ".join(f"{key} {value}" for key, value in items.items()))
        print("passed" if report.passed else "FAILED")
    return 0 if report.passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
