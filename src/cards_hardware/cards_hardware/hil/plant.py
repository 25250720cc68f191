"""Process: the robot behind emulated muscle boards, ``python -m cards_hardware.hil.plant FILE``.

It is started by programs, not by hand; the JSON file holds its `PlantSettings`.

Every board has a drive bus, a unix socket here. For each DRIVE_COMMAND the plant answers with the
sensors as they are when it comes, then the world advances: by the ticks that have passed on the
first board since its last command, so the plant lives in the board's time and a slow machine does
not change the physics. Only when that board is silent for long does time go on by itself; the
drivers have then stopped, as real ones would.

Left behind are ``simulator.npz``, the log that every simulator writes, and ``hil.npz`` with one
row for the same ticks:

============ ============================================================================
time         as in ``simulator.npz``, [s]
monotonic    this machine's monotonic clock at the end of the step, [s]
wall         its wall clock, [s]: the ROS time of hardware
device       the board's clock, without wraps, [s]
source       `t_us` of the host's command in force, [us]; 0 for none
enabled      whether the drivers were enabled
latency      from the host's stamp of a command to its first arrival at the drives, [s]; NaN
             for ticks without a new command
============ ============================================================================
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from cards_core.errors import CardsError
from cards_core.foreign_files import read_json
from cards_core.formats import load
from cards_core.formats.sdf.world import load_world
from cards_core.loop.host import open_host_log
from cards_core.loop.run_log import SIMULATOR_LOG, RunLog
from cards_core.muscles.command import GateCondition
from cards_hardware.hil.drive_bus import DriveBusServer, DriveCommand
from cards_hardware.hil.muscle_units import ELASTIC_SPRING, UnitDesign
from cards_hardware.hil.world import DT, STAND_TIME, World, channels_of
from cards_hardware.real_time import make_real_time
from cards_sim.build import check_without_robots

HIL_LOG = "hil.npz"

STATUS_PERIOD = 0.25
"""How often the status file is written, [s]."""

MAX_TICKS = 200
"""Most ticks that one frame makes; a larger jump is a board that restarted."""

_COUNTER = 2**32


@dataclass(frozen=True)
class BoardWiring:
    """A board and what is behind it.

    Attributes:
        name: Name of the board.
        socket: Path of the unix socket at which the plant waits for it.
        muscles: Names, in the order of its channels.
        joints: Names of the joint coordinates that it measures.
    """

    name: str
    socket: str
    muscles: tuple[str, ...]
    joints: tuple[str, ...]


@dataclass(frozen=True)
class PlantSettings:
    """What to simulate, and where to leave it.

    Attributes:
        robot: Name of a folder in models/, or path of an SDF.
        boards: The first one's ticks are the time.
        status: Path of a small JSON file that says how far the plant is.
        log_dir: Folder for ``simulator.npz`` and ``hil.npz``; empty: no logs.
        duration: Logged time after the first command, [s]; 0: to the end.
        log_always: Log from the start on, not from the first command of a controller on.
        log_every: Only every so many ticks are logged.
        seed: Chance of manufacture and noise.
        strength: Strength of the muscle units, see `UnitDesign.scaled`.
        elastic: Whether their wires are elastic (`ELASTIC_SPRING`) rather than rigid, where the
            description says nothing of springs; its own count anyway (`units_of`).
        stand_time: How long after the first command the robot stays on its stand, [s].
        world: World of objects that the robot is put into: name of a file in worlds/, or path;
            empty: none.
        patience: Without a word from the first board for longer than this, time goes on without
            it, [s]. Shorter silence is the emulator's, whose machine has other things to do.
    """

    robot: str
    boards: tuple[BoardWiring, ...]
    status: str
    log_dir: str = ""
    duration: float = 0.0
    log_always: bool = False
    log_every: int = 1
    seed: int = 0
    strength: float = 1.0
    elastic: bool = False
    stand_time: float = STAND_TIME
    world: str = ""
    patience: float = 0.1

    @property
    def design(self) -> UnitDesign:
        """What the muscle units are made of."""
        spring = ELASTIC_SPRING if self.elastic else None
        return UnitDesign(spring=spring).scaled(self.strength)

    def save(self, path: Path) -> None:
        """Write the file."""
        path.write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file.

        Raises:
            CardsError: It cannot be read, or lacks something.
        """
        try:
            data: dict[str, Any] = read_json(path)
            boards = tuple(
                BoardWiring(
                    item["name"], item["socket"], tuple(item["muscles"]), tuple(item["joints"])
                )
                for item in data.pop("boards")
            )
            return cls(boards=boards, **data)
        except (CardsError, KeyError, TypeError) as error:
            known = ", ".join(field.name for field in fields(cls))
            raise CardsError(
                f"{path}: no settings of a plant ({error}) (expected: {known})"
            ) from error


class Histogram:
    """Histogram of durations in bins of equal width: constant memory, however long it runs.

    Args:
        width: Width of a bin, [us].
        bins: Their number; what is longer is counted in the last one.

    Attributes:
        counts: Per bin, shape (bins,).
        maximum: Longest duration, [us].
    """

    def __init__(self, width: int = 20, bins: int = 10000) -> None:
        self._width = width
        self.counts = np.zeros(bins, dtype=np.int64)
        self.maximum = 0

    def add(self, duration: int) -> None:
        """Count a duration, [us], >= 0."""
        self.counts[min(duration // self._width, len(self.counts) - 1)] += 1
        self.maximum = max(self.maximum, duration)

    def percentile(self, percent: float) -> float:
        """Return the duration that so many percent do not exceed, [us]; NaN without any."""
        total = int(self.counts.sum())
        if not total:
            return math.nan
        bin_ = int(np.searchsorted(np.cumsum(self.counts), math.ceil(total * percent / 100.0)))
        return float(min((bin_ + 1) * self._width, self.maximum))

    def summary(self, *, scale: float = 1e-3) -> dict[str, float | int | None]:
        """Return count, p50, p99 and maximum, times ``scale``: milliseconds by default."""
        total = int(self.counts.sum())
        out: dict[str, float | int | None] = {"count": total}
        for name, percent in (("p50", 50.0), ("p99", 99.0)):
            out[name] = round(scale * self.percentile(percent), 6) if total else None
        out["max"] = round(scale * self.maximum, 6) if total else None
        return out

    def coarse(self, edges: tuple[int, ...]) -> dict[str, int]:
        """Return the counts between edges [us], by ``low..high``; the last one is open."""
        starts = np.arange(len(self.counts)) * self._width
        out = {}
        for low, high in zip(edges, (*edges[1:], None), strict=True):
            inside = (starts >= low) & (starts < high if high is not None else True)
            out[f"{low}..{'' if high is None else high}"] = int(self.counts[inside].sum())
        return out


class Plant:
    """The world, its buses and its logs.

    Args:
        settings: See `PlantSettings`.

    Raises:
        CardsError: The robot or a name is not usable.
        OSError: A log cannot be written.
    """

    def __init__(self, settings: PlantSettings) -> None:
        self._settings = settings
        robot = load(settings.robot)
        around = load_world(settings.world) if settings.world else None
        if around is not None:
            check_without_robots(around)
        tree = robot.tree
        self.world = World(
            robot,
            seed=settings.seed,
            design=settings.design,
            stand_time=settings.stand_time,
            around=around,
        )
        self._buses = []
        for board in settings.boards:
            wired = channels_of(
                robot, tree.position_names, board.name, board.muscles, board.joints
            )
            self._buses.append(
                DriveBusServer(board.socket, self.world, wired.muscles, wired.joints)
            )
        self._logs: tuple[RunLog, RunLog] | None = None
        if settings.log_dir:
            folder = Path(settings.log_dir)
            host = open_host_log(folder / SIMULATOR_LOG, robot, tree, self.world.state_names)
            columns = ("time", "monotonic", "wall", "device", "source", "enabled", "latency")
            self._logs = host, RunLog(folder / HIL_LOG, dict.fromkeys(columns))
        self.latency, self.arrivals, self.device_ticks = Histogram(), Histogram(), Histogram()
        self.work = Histogram(5, 4000)
        self.ticks_skipped = 0
        self.commands = 0
        self._tick: int | None = None
        self._alone = 0  # ticks made without the board since its last frame
        self._device = 0.0
        self._last_us: int | None = None
        self._source, self._fresh, self._enabled = 0, float("nan"), False
        self._heard = self._begin = time.monotonic()
        self._told = 0.0

    def run(self, stopped: Sequence[bool]) -> None:
        """Serve the boards until ``stopped`` is not empty."""
        poll = select.poll()
        by_number: dict[int, tuple[DriveBusServer, bool]] = {}
        for bus in self._buses:
            by_number[bus.listener.fileno()] = bus, True
            poll.register(bus.listener, select.POLLIN)
        while not stopped:
            for number, _event in poll.poll(20):
                bus, new = by_number[number]
                if new:
                    if bus.peer is not None:
                        del by_number[bus.peer.fileno()]
                        poll.unregister(bus.peer)
                    bus.accept()
                    assert bus.peer is not None
                    by_number[bus.peer.fileno()] = bus, False
                    poll.register(bus.peer, select.POLLIN)
                    continue
                commands = bus.read()
                for left, command in enumerate(commands, 1 - len(commands)):
                    self._serve(bus, command, answer=left == 0)
                if bus.peer is None:
                    del by_number[number]
                    poll.unregister(number)
            now = time.monotonic()
            self._go_on_alone(now)
            if now - self._told > STATUS_PERIOD:
                self._told = now
                self._write_status()

    # Time -------------------------------------------------------------------------------------

    def _serve(self, bus: DriveBusServer, command: DriveCommand, *, answer: bool) -> None:
        """Do what a command says; of several that waited only the newest one is answered."""
        begin = time.monotonic_ns()
        now_us = begin // 1000
        world, first = self.world, bus is self._buses[0]
        due = 0
        if first:
            due = self._ticks_of(command.tick)
            for _ in range(due - 1):
                # ticks that the board overran: its drives had no reason to stop, the machine had
                world.drives.hold()
                self._advance()
        if answer:
            # the other boards' clocks go on while the first one sleeps: what they measure rates
            # with is the world's time
            bus.answer(command.tick if first else world.ticks % 2**16, now_us)
        if first:
            self._note(command, now_us)
        world.command(bus.rows, command.currents, command.enabled, command.source_us)
        if first:
            if due:
                self._advance()
            self._heard = 1e-9 * begin
        self.work.add((time.monotonic_ns() - begin) // 1000)

    def _note(self, command: DriveCommand, now_us: int) -> None:
        if self._last_us is not None:
            step = (command.device_us - self._last_us) % _COUNTER
            if step < _COUNTER // 2:
                self._device += 1e-6 * step
                self.device_ticks.add(step)
            self.arrivals.add(max(0, now_us - round(1e6 * self._heard)))
        else:
            self._device = 1e-6 * command.device_us
        self._last_us = command.device_us
        if command.source_us and command.source_us != self._source:
            latency = (now_us - command.source_us) % _COUNTER
            self.latency.add(latency)
            self._fresh = 1e-6 * latency
            self.commands += 1
        self._source, self._enabled = command.source_us, command.enabled

    def _ticks_of(self, tick: int) -> int:
        """Return how many ticks the world has to make for a frame."""
        passed = 1 if self._tick is None else (tick - self._tick) % 2**16
        self._tick = tick
        if passed > MAX_TICKS + self._alone:
            passed = 1
        self.ticks_skipped += max(0, passed - 1)
        due = max(0, passed - self._alone)
        self._alone = 0
        return due

    def _go_on_alone(self, now: float) -> None:
        if self._tick is None or now - self._heard <= self._settings.patience:
            return
        due = int((now - self._heard) / DT)
        while self._alone < due:
            self._alone += 1
            self._enabled = False
            self._advance()

    def _advance(self) -> None:
        world, settings = self.world, self._settings
        world.advance()
        fresh, self._fresh = self._fresh, float("nan")
        if self._logs is None or world.ticks % settings.log_every:
            return
        begin = 0.0 if settings.log_always else world.commanded
        if begin is None or (settings.duration and self._logged(begin) > settings.duration):
            return
        host, hil = self._logs
        now = time.monotonic()
        t = self._logged(begin)
        muscles = (world.lengths, world.rates, world.tensions, world.inner_states)
        # boards drive no joint motors, so a robot on boards has none; and what lets the muscles go
        # are the boards, and the bridge's log has their states
        host.append(
            t,
            world.q,
            world.qd,
            *muscles,
            np.zeros(0),
            float(GateCondition.OBEYING),
            0.0,
            0.0,
            0.0,
        )
        hil.append(
            t, now, time.time(), self._device, float(self._source), float(self._enabled), fresh
        )

    def _logged(self, begin: float) -> float:
        # whole ticks: rounding errors of a difference of times would show in the log
        return (self.world.ticks - round(begin / DT)) * DT

    # What is left behind ----------------------------------------------------------------------

    def status(self) -> dict[str, object]:
        """Return how far the plant is, and what it has counted."""
        world = self.world
        begin = world.commanded
        return {
            "robot": world.robot.name,
            "time_s": world.time,
            "commanded_s": None if begin is None else self._logged(begin),
            "held": world.held,
            "wall_s": time.monotonic() - self._begin,
            "cpu_s": time.process_time(),
            "commands": self.commands,
            "ticks": world.ticks,
            "ticks_skipped": self.ticks_skipped,
            "drive_frames": sum(bus.frames.commands for bus in self._buses),
            "drive_frames_damaged": sum(bus.frames.damaged for bus in self._buses),
            "connections": sum(bus.connections for bus in self._buses),
            "command_to_drive_ms": self.latency.summary(),
            "tick_interval_ms": self.arrivals.summary(),
            "device_tick_ms": self.device_ticks.summary(),
            "work_ms": self.work.summary(),
            "device_tick_us": self.device_ticks.coarse(
                (0, 800, 900, 960, 1040, 1100, 1200, 1500, 2000, 5000)
            ),
        }

    def _write_status(self) -> None:
        path = Path(self._settings.status)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            temporary.write_text(json.dumps(self.status()), encoding="utf-8")
            os.replace(temporary, path)

    def close(self) -> None:
        """Write logs and status, and free the sockets."""
        for bus in self._buses:
            bus.close()
        self._write_status()
        for log in self._logs or ():
            log.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the process; the only argument is the settings file."""
    (path,) = sys.argv[1:] if arguments is None else arguments
    stopped: list[bool] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stopped.append(True))
    make_real_time(os.getpid())
    try:
        plant = Plant(PlantSettings.load(Path(path)))
    except (CardsError, OSError) as error:
        print(f"plant: {error}", file=sys.stderr)
        return 2
    print("ready", flush=True)
    gc.collect()
    gc.freeze()
    try:
        plant.run(stopped)
    except CardsError as error:
        print(f"plant: {error}", file=sys.stderr)
        return 1
    finally:
        plant.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
