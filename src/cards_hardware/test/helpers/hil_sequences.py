"""Random sequences on the flashed binary in QEMU: hosts that are killed, frozen and ended.

``python hil_sequences.py [--count N] [--seed N]``, by hand: a sequence takes some 15 s. The board
is behind a relay that keeps what passed, its drives are the plant of the rig, which here keeps
every DRIVE_COMMAND. Hosts are processes with the bridge's `Hardware`. Judged are currents against
what hosts sent and when they lived, in the board's own time. Only what no lateness of a busy
machine explains is a violation: all times have `SLACK`.
"""

from __future__ import annotations

import argparse
import bisect
import contextlib
import json
import multiprocessing
import os
import pickle
import random
import signal
import struct
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_hardware.boards.board import Board
from cards_hardware.boards.layout import read_layout
from cards_hardware.bridge.hardware import Hardware
from cards_hardware.errors import HardwareError
from cards_hardware.hil import plant, rig
from cards_hardware.hil.relay import Relay
from cards_hardware.hil.rig import Rig
from cards_hardware.protocol.codec import encode, unpack
from cards_hardware.protocol.enums import AckCode, EventCode, ParameterId, Request, State

ROBOT = "planar_2r"
MUSCLES = 4
HOLD, RAMP = 1.0, 0.5
"""UNATTENDED_HOLD and UNATTENDED_RAMP, [s]."""

COMMAND_GONE = 1.0
"""WATCHDOG_DISARM, [s]."""

SLACK = 0.4
"""For processes, relay and emulator that had to wait for the machine, [s]."""

RECORD = struct.Struct("<qIBffI")
DRIVE_LOG = "CARDS_DRIVE_LOG"
PROCESSES = multiprocessing.get_context("forkserver")
"""Hosts are there at once: they are forked from a process that has imported everything."""

COMMANDS = ("CMD_TENSION", "CMD_IMPEDANCE", "CMD_PRESSURE", "CMD_CURRENT")
LATCHED = (State.FAULT, State.ESTOP)
_WRAP = 2**32


# The plant, with a log of what goes to the drives -----------------------------------------------


class LoggedPlant(plant.Plant):
    """Keeps every command: time here [ns], the board's [us], enable, least and greatest [A]."""

    def __init__(self, settings):
        super().__init__(settings)
        self._file = open(os.environ[DRIVE_LOG], "ab", buffering=0)  # noqa: SIM115

    def _serve(self, bus, command, *, answer):
        low, high = float(command.currents.min()), float(command.currents.max())
        self._file.write(
            RECORD.pack(
                time.monotonic_ns(), command.device_us, command.enabled, low, high, command.tick
            )
        )
        super()._serve(bus, command, answer=answer)


def run_plant(path):
    """Run the plant's process."""
    plant.Plant = LoggedPlant
    return plant.main([path])


# A host -----------------------------------------------------------------------------------------


def run_host(port, words, log):
    """Do what the words say; write what came of it."""
    out = open(log, "w", buffering=1, encoding="utf-8")  # noqa: SIM115
    robot = load(ROBOT)
    hardware = Hardware(robot, read_layout(ROBOT, robot, port=port), reconnect=False)
    commanding = threading.Event()
    tension = [60.0]

    def command():
        while True:
            commanding.wait()
            with contextlib.suppress(CardsError):
                hardware.command("force", np.full(MUSCLES, tension[0]))
            time.sleep(0.004)

    threading.Thread(target=command, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: (hardware.close(), os._exit(0)))

    def up():
        if not hardware.status().connected:
            hardware.close()
            hardware.open()
        if hardware.boards[0].state in LATCHED or hardware.estop_pending:
            hardware.clear()
        hardware.arm()
        commanding.set()

    def value(save):
        board = hardware.boards[0]
        at = board.get_parameter(ParameterId.LENGTH_OFFSET, 0)
        board.set_parameter(ParameterId.LENGTH_OFFSET, 0, at + random.choice((-1, 1)))
        if save:
            board.save_parameters()

    actions = {
        "up": up,
        "open": hardware.open,
        "close": hardware.close,
        "arm": hardware.arm,
        "disarm": hardware.disarm,
        "relax": hardware.relax,
        "estop": hardware.estop,
        "clear": hardware.clear,
        "silent": commanding.clear,
        "set": lambda: value(False),
        "save": lambda: value(True),
    }
    print("ready", file=out)
    while True:
        try:
            word = words.recv()
        except EOFError:
            return
        try:
            actions[word]()
            said = "done"
        except CardsError as error:
            said = str(error)[:80]
        print(f"{time.monotonic():.3f} {word}: {said}", file=out)


class Host:
    """A host's process."""

    def __init__(self, port, name, folder):
        self.name = name
        self.log = folder / f"host_{name}_{time.monotonic_ns()}.log"
        theirs, self._words = PROCESSES.Pipe(duplex=False)
        self.process = PROCESSES.Process(target=run_host, args=(str(port), theirs, str(self.log)))
        self.process.start()
        theirs.close()
        self.ended: float | None = None

    @property
    def ready(self):
        return self.log.exists() and self.log.read_bytes().startswith(b"ready")

    def say(self, word):
        with contextlib.suppress(OSError):
            self._words.send(word)

    def send(self, number):
        os.kill(self.process.pid, number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.ended = time.monotonic()

    def close(self):
        self.process.kill()
        self.process.join()
        self._words.close()


# The judge --------------------------------------------------------------------------------------


@dataclass
class Verdict:
    """What was seen in a sequence."""

    violations: list[str] = field(default_factory=list)
    ticks: int = 0
    enabled: int = 0
    armed: int = 0
    stopped: int = 0
    released: int = 0
    off: int = 0
    refused: int = 0


def unwrapped(t_us, near):
    """Return a time of the board in [s], the one nearest to another."""
    base = round(near * 1e6)
    return 1e-6 * (base + ((t_us - base + _WRAP // 2) % _WRAP - _WRAP // 2))


def judge(frames, drives, silences, ends):
    """Hold what went to the drives against what passed on the line.

    Args:
        frames: What the relay kept.
        drives: Records of the plant.
        silences: From when to when the plant was stopped, this machine's clock.
        ends: When hosts were killed.
    """
    verdict = Verdict()
    if not drives:
        verdict.violations.append("no command to the drives at all")
        return verdict
    # the board's clock against this machine's: the quickest frame
    shift = min(mono * 1e-9 - device * 1e-6 for mono, device, *_ in drives)
    ticks = [unwrapped(d[1], d[0] * 1e-9 - shift) for d in drives]

    happened = []  # (time of the board, order, what, value)
    pending = {}
    for item in frames:
        frame, here = item.frame, item.time - shift
        if item.direction == "to_board":
            if frame.name in ("STATE_REQUEST", "PARAM_SET", "PARAM_SAVE"):
                pending[frame.type, frame.seq] = frame.name, unpack(frame)
            if frame.name == "HEARTBEAT" or frame.name in COMMANDS:
                # read by the tick that follows, however late that is
                at = bisect.bisect_left(ticks, here)
                happened.append((max(here, ticks[min(at + 1, len(ticks) - 1)]), 0, "life", here))
            continue
        at = unwrapped(frame.t_us, here)
        if frame.name == "IDENT":
            happened.append((at, 1, "session", unpack(frame)["nonce"]))
        elif frame.name == "ACK":
            values = unpack(frame)
            name, asked = pending.get((values["type"], values["seq"]), ("", {}))
            if values["code"] == AckCode.OK and name:
                what = asked.get("request", asked.get("id"))
                happened.append((at, 1, name, what))
            verdict.refused += values["code"] == AckCode.STATE
        elif frame.name == "STATE_FAST":
            happened.append((at, 2, "state", unpack(frame)["state"]))
        elif frame.name == "EVENT":
            code = unpack(frame)["code"]
            verdict.released += code == EventCode.RELEASED
            verdict.off += code == EventCode.POWER_OFF
    happened.sort(key=lambda item: item[:2])

    session = armer = entered = None
    authorised = unsaved = latched = False
    life = 0.0
    place = 0
    held = 0.0
    # what happened in a tick lies behind its beginning, and its command to the drives knows of it
    for t, after, drive in zip(ticks, [*ticks[1:], float("inf")], drives, strict=True):
        mono, _device, enable, low, high, _tick = drive
        while place < len(happened) and happened[place][0] < after:
            at, _, what, value = happened[place]
            place += 1
            if what == "session":
                if value != session:
                    unsaved = False
                session = value
            elif what == "life":
                if session == armer:
                    life = max(life, at)
            elif what == "STATE_REQUEST" and value == Request.ARM:
                verdict.armed += 1
                if unsaved:
                    verdict.violations.append(f"{at:.3f} s: armed with a value that is not saved")
                if latched:
                    verdict.violations.append(f"{at:.3f} s: armed without having been cleared")
                authorised, armer, life, entered = True, session, max(life, at), None
            elif what == "STATE_REQUEST" and value == Request.DISARM:
                authorised = False
            elif what == "STATE_REQUEST" and value == Request.CLEAR:
                authorised, latched = False, False
            elif what == "PARAM_SET" and value == ParameterId.LENGTH_OFFSET:
                unsaved = True  # what else hosts set is of their session
            elif what == "PARAM_SAVE":
                unsaved = False
            elif what == "state":
                if value in LATCHED:
                    if not latched:
                        latched, entered, held = True, at, 0.0
                        verdict.stopped += authorised
                else:
                    latched = False
        verdict.ticks += 1
        if not enable:
            if low or high:
                verdict.violations.append(f"{t:.3f} s: {high:.2f} A to drives that are off")
            if t > life + 0.05:
                authorised = False
            continue
        verdict.enabled += 1
        if not authorised:
            # the answer to the arming may lie a little behind the tick
            late = [h for h in happened[place : place + 40] if h[2:] == ("STATE_REQUEST", 2)]
            if not late or late[0][0] > t + SLACK:
                verdict.violations.append(f"{t:.3f} s: drives are on though nobody armed them")
                break
            continue
        since = life
        allowed = COMMAND_GONE
        if latched and entered is not None:
            since, allowed = max(life, entered), HOLD + RAMP
            if t < since + HOLD - SLACK and t > entered + 1.0:
                held = max(held, high)
            if held and t > since + HOLD + 0.9 * RAMP + SLACK and high > 0.6 * held + 0.1:
                verdict.violations.append(f"{t:.3f} s: {high:.2f} A at the end of the ramp")
                break
        if t > since + allowed + SLACK:
            verdict.violations.append(
                f"{t:.3f} s: drives are on {t - since:.3f} s after the last of the host that armed"
                f" ({'latched' if latched else 'not latched'})"
            )
            break
        for begin, end in silences:
            if begin - shift + SLACK < t < end - shift and mono * 1e-9 > begin:
                verdict.violations.append(f"{t:.3f} s: drives are on though they do not answer")
    # heartbeats end with their process
    for end in ends:
        dead = [h for h in happened if h[2] == "life" and end - shift + SLACK < h[3]]
        first = min(
            (h[0] for h in happened if h[2] == "session" and h[0] > end - shift),
            default=float("inf"),
        )
        if any(h[3] < first - 1e-3 for h in dead):
            verdict.violations.append(f"{end - shift:.3f} s: heartbeats of a dead host")
    return verdict


# Sequences --------------------------------------------------------------------------------------


class Bench:
    """Rig, relay, hosts."""

    def __init__(self, test_rig, relay, folder, kept=None):
        self.kept = kept  # folder for what was seen
        self.rig, self.relay, self.folder = test_rig, relay, folder
        self.drive_log = Path(os.environ[DRIVE_LOG])
        self.read = 0
        self.hosts = [self.host("A"), self.host("B")]
        self.spare = [self.host("C")]
        self.old: list[Host] = []
        self.ends: list[float] = []
        self.silences: list[tuple[float, float]] = []
        self.actions: list[str] = []

    def host(self, name):
        return Host(self.relay.link, name, self.folder)

    def note(self, text):
        self.actions.append(f"{time.monotonic():.3f} {text}")

    def end(self, index, number):
        host = self.hosts[index]
        host.send(number)
        self.note(f"{host.name}: {number.name}")
        if host.ended is not None:
            if number == signal.SIGKILL:
                self.ends.append(host.ended)
            self.old.append(host)
            self.hosts[index] = self.spare.pop() if self.spare else self.host("D")
            self.spare.append(self.host("S"))

    def say(self, index, word):
        self.note(f"{self.hosts[index].name}: {word}")
        self.hosts[index].say(word)

    def drives(self):
        with self.drive_log.open("rb") as file:
            file.seek(self.read)
            data = file.read()
        whole = len(data) // RECORD.size * RECORD.size
        self.read += whole
        return list(RECORD.iter_unpack(data[:whole]))

    def wait_ready(self):
        end = time.monotonic() + 60.0
        while not all(host.ready for host in self.hosts) and time.monotonic() < end:
            time.sleep(0.1)

    def close(self):
        for host in [*self.hosts, *self.spare, *self.old]:
            host.close()


def act(bench, chance, acting):
    """One random action."""
    what = chance.choice(
        (
            "kill",
            "kill",
            "term",
            "freeze",
            "estop",
            "stranger",
            "stop",
            "clear",
            "disarm",
            "relax",
            "silent",
            "plant",
            "set",
            "set",
            "save",
            "close",
            "inject",
        )
    )
    plant_pid = bench.rig.process_ids["plant"]
    if what == "kill":
        bench.end(acting, signal.SIGKILL)
    elif what == "term":
        bench.end(acting, signal.SIGTERM)
    elif what == "freeze":
        bench.end(acting, signal.SIGSTOP)
        time.sleep(chance.choice((0.15, 0.6, 1.4, 3.2)))
        bench.end(acting, signal.SIGCONT)
    elif what == "stranger":
        bench.say(1 - acting, chance.choice(("up", "estop", "open")))
    elif what == "stop":  # stopped, and nobody there any more
        bench.say(acting, "estop")
        time.sleep(0.1)
        bench.end(acting, signal.SIGKILL)
    elif what == "inject":
        bench.note("ESTOP from somewhere")
        bench.relay.inject(encode("ESTOP", {"reason": 1}, node=127, seq=0, t_us=0))
    elif what == "plant":
        os.kill(plant_pid, signal.SIGSTOP)
        begin = time.monotonic()
        bench.note("plant: SIGSTOP")
        time.sleep(chance.choice((0.05, 0.5, 1.5)))
        bench.silences.append((begin, time.monotonic()))
        os.kill(plant_pid, signal.SIGCONT)
        bench.note("plant: SIGCONT")
    elif what == "set":  # a calibration that is killed in the middle
        bench.say(acting, "disarm")
        bench.say(acting, "set")
        time.sleep(0.3)
        if chance.random() < 0.6:
            bench.end(acting, signal.SIGKILL)
        else:
            bench.say(acting, "arm")
    elif what == "save":
        bench.say(acting, "disarm")
        bench.say(acting, "save")
    else:
        bench.say(acting, what)


def sequence(bench, seed):
    """Run one; return its verdict."""
    chance = random.Random(seed)
    bench.ends, bench.silences, bench.actions = [], [], []
    bench.relay.forget()
    bench.drives()
    bench.wait_ready()
    for _ in range(2):
        acting = chance.randrange(2)
        bench.say(1 - acting, "close")
        bench.say(acting, "up")
        time.sleep(1.0 + chance.random())
        for _ in range(chance.randrange(1, 4)):
            act(bench, chance, acting)
            time.sleep(chance.choice((0.02, 0.1, 0.4)))
        bench.wait_ready()
        # longer than everything that holds
        time.sleep(chance.choice((0.3, COMMAND_GONE + HOLD + RAMP + SLACK + 0.3)))
    bench.end(0, signal.SIGKILL)
    bench.end(1, signal.SIGKILL)
    time.sleep(COMMAND_GONE + HOLD + RAMP + SLACK + 0.3)
    seen = bench.relay.drain(), bench.drives(), bench.silences, bench.ends
    if bench.kept is not None:
        (bench.kept / f"{seed}.pickle").write_bytes(pickle.dumps(seen))
    return judge(*seen)


def set_up(port):
    """Short times, kept in flash as those of every session."""
    board = Board.direct(port)
    board.open()
    try:
        for parameter, value in (
            (ParameterId.UNATTENDED_HOLD, round(HOLD * 1e3)),
            (ParameterId.UNATTENDED_RAMP, round(RAMP * 1e3)),
        ):
            board.set_parameter(parameter, 0, value)
        board.save_parameters()
    finally:
        board.close()


def main():
    """Run sequences; 1 if one showed a violation."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for what was seen, to judge it again")
    parser.add_argument("--firmware", default="stm32f405")
    parser.add_argument("--plant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plant:
        return run_plant(arguments.plant)

    PROCESSES.set_forkserver_preload(["__main__", "hil_sequences"])
    spawn = rig.spawn

    def spawn_logged(command, *rest, **options):
        if "cards_hardware.hil.plant" in command:
            command = [sys.executable, __file__, "--plant", command[-1]]
        return spawn(command, *rest, **options)

    rig.spawn = spawn_logged
    total = Verdict()
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ[DRIVE_LOG] = str(folder / "drives.bin")
        with (
            Rig(ROBOT, folder / "boards", firmware=arguments.firmware, stand_time=1e6) as test_rig,
        ):
            for _ in range(5):
                try:
                    set_up(test_rig.ports[0])
                    break
                except HardwareError:
                    time.sleep(1.0)
            with Relay(test_rig.ports[0], folder / "port") as relay:
                bench = Bench(test_rig, relay, folder, arguments.keep)
                try:
                    for number in range(arguments.count):
                        verdict = sequence(bench, arguments.seed + number)
                        summary = {k: v for k, v in vars(verdict).items() if k != "violations"}
                        print(
                            f"{number + 1} seed {arguments.seed + number}: "
                            f"{json.dumps(summary)} {verdict.violations or 'ok'}",
                            flush=True,
                        )
                        if verdict.violations:
                            bad += 1
                            print("  " + "\n  ".join(bench.actions), flush=True)
                        for key, value in summary.items():
                            setattr(total, key, getattr(total, key) + value)
                finally:
                    bench.close()
    print(
        f"{arguments.count} sequences, {bad} with violations; "
        f"{ {k: v for k, v in vars(total).items() if k != 'violations'} }"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
