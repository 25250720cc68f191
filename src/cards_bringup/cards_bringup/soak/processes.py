"""The processes of a system under test: started, killed, stopped, watched and accounted for."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cards_bringup.soak.judge import Violation, memory_growth
from cards_hardware.hil.processes import spawn

MARK = "CARDS_SOAK"
"""Variable in the environment of all processes of a campaign, by which they are found."""

STOP_TIME = 60.0
"""How long a node may take to end after Ctrl-C, [s]: it writes its logs; the machine is busy."""

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Life:
    """A process from its start to its end.

    Attributes:
        name: What it is.
        process: The process.
        log: Its output.
        begin: When it was started, monotonic [s].
        end: When it ended, [s]; None: it runs.
        expected: Exit codes that it may end with; empty: it must not end.
        memory: Time [s] and resident memory [MB].
        settled: From when on it did what it is for, [s]; None: not yet.
    """

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    begin: float
    end: float | None = None
    expected: tuple[int, ...] = ()
    memory: list[tuple[float, float]] = field(default_factory=list)
    settled: float | None = None

    @property
    def tail(self) -> str:
        """End of its output in one line."""
        with contextlib.suppress(OSError):
            lines = self.log.read_text(errors="replace").splitlines()
            return " | ".join(lines[-6:])[-1500:]
        return ""


class Processes:
    """All processes of an episode.

    Args:
        folder: Of their output.
        environment: Added to this process's.
        mark: Value of `MARK`, different for each episode.

    Attributes:
        lives: Every process that was started.
        shared_memory: Files in /dev/shm that one of them had mapped.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], mark: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._mark = mark
        self._environment = {**os.environ, **environment, MARK: mark}
        self.lives: list[Life] = []
        self.shared_memory: dict[str, bool] = {}

    def start(self, name: str, command: Sequence[str], cwd: Path | None = None) -> Life:
        """Start a process, with its output in a file.

        Args:
            name: What it is called.
            command: Program and arguments.
            cwd: Its folder; None: this process's.
        """
        count = sum(life.name == name for life in self.lives)
        log = self._folder / f"{name}_{count + 1}.log"
        with log.open("wb") as out:
            process = spawn(
                command,
                cwd,
                stdin=None,
                stdout=out,
                stderr=subprocess.STDOUT,
                environment=self._environment,
            )
        life = Life(name, process, log, time.monotonic())
        self.lives.append(life)
        return life

    def life(self, name: str) -> Life | None:
        """Return the running process of a name, or None."""
        for life in reversed(self.lives):
            if life.name == name and life.end is None:
                return life
        return None

    def settle(self) -> None:
        """Say that all processes that run do what they are for."""
        for life in self.lives:
            if life.end is None and life.settled is None:
                life.settled = time.monotonic()

    def kill(self, life: Life) -> None:
        """Kill a process, as a power cut or the kernel's memory killer would."""
        life.expected = (-signal.SIGKILL,)
        self._send(life, signal.SIGKILL)
        life.process.wait()
        life.end = time.monotonic()

    def freeze(self, life: Life, seconds: float) -> None:
        """Stop a process for a time, [s], as a debugger or a machine that swaps does."""
        self._send(life, signal.SIGSTOP)
        time.sleep(seconds)
        self._send(life, signal.SIGCONT)

    def end(self, life: Life, expected: Sequence[int] = (0,)) -> int:
        """End a process by Ctrl-C and wait; return its exit code."""
        life.expected = tuple(expected)
        for number, patience in ((signal.SIGINT, STOP_TIME), (signal.SIGTERM, STOP_TIME)):
            self._send(life, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                life.process.wait(patience)
                break
        else:
            self._send(life, signal.SIGKILL)
            life.process.wait()
        life.end = time.monotonic()
        return int(life.process.returncode)

    @staticmethod
    def _send(life: Life, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            life.process.send_signal(number)

    def watch(self) -> list[Violation]:
        """Look at all processes: memory, shared memory, and whether one ended by itself."""
        found = []
        for life in self.lives:
            if life.end is not None:
                continue
            if life.process.poll() is not None:
                life.end = time.monotonic()
                if life.process.returncode not in life.expected:
                    found.append(_wrong_end(life))
                continue
            self._measure(life)
        return found

    def _measure(self, life: Life) -> None:
        pid = life.process.pid
        with contextlib.suppress(OSError, ValueError, IndexError):
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            life.memory.append((time.monotonic(), pages * PAGE / 1e6))
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                place = line.partition("/dev/shm/")[2]
                if place and not place.endswith("(deleted)"):
                    self.shared_memory.setdefault(place, False)

    def after_the_end(self, growth: float) -> list[Violation]:
        """Judge what ended processes leave: exit codes, memory, orphans.

        Args:
            growth: Largest growth of a process's memory, [MB].
        """
        found = []
        for life in self.lives:
            if life.process.returncode not in life.expected and life.end is not None:
                found.append(_wrong_end(life))
            gained = 0.0 if life.settled is None else memory_growth(life.memory, life.settled)
            if gained > growth:
                found.append(
                    Violation(
                        "memory flat",
                        life.end or time.monotonic(),
                        f"{life.name} gained {gained:.1f} MB in "
                        f"{(life.end or time.monotonic()) - life.begin:.0f} s "
                        f"(expected: {growth:g} at most)",
                    )
                )
        for pid, words in self.alive():
            found.append(
                Violation("no orphans", time.monotonic(), f"process {pid} is left: {words}")
            )
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return found

    def alive(self) -> list[tuple[int, str]]:
        """Return processes that carry the mark of this episode, with their command lines."""
        wanted = f"{MARK}={self._mark}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found.append((int(entry.name), words[:200]))
        return found

    def left_shared_memory(self) -> list[str]:
        """Return files in /dev/shm that our processes had and nobody has mapped any more."""
        ours = {name for name in self.shared_memory if Path("/dev/shm", name).exists()}
        for entry in Path("/proc").iterdir():
            if not ours:
                break
            if entry.name.isdecimal():
                with contextlib.suppress(OSError):
                    maps = (entry / "maps").read_text()
                    ours = {name for name in ours if f"/dev/shm/{name}" not in maps}
        return sorted(ours)

    def stop(self) -> None:
        """End what still runs, at once."""
        for life in self.lives:
            if life.process.poll() is None:
                life.process.kill()
                life.process.wait()
                life.end = time.monotonic()


def _wrong_end(life: Life) -> Violation:
    code = life.process.returncode
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
    right = ", ".join(map(str, life.expected)) or "it runs until it is ended"
    if life.end is not None:
        life.expected = (*life.expected, code)  # said once
    return Violation(
        "exit codes",
        life.end or time.monotonic(),
        f"{life.name} ended with {how} (expected: {right}); its output ends: {life.tail}",
    )


def free_port() -> int:
    """Return a TCP port of this machine that nobody has."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def listening(port: int) -> bool:
    """Tell whether somebody answers at a port of this machine."""
    with socket.socket() as one:
        one.settimeout(1.0)
        return one.connect_ex(("127.0.0.1", port)) == 0


def python(module: str, *arguments: str) -> list[str]:
    """Return the command line of a module in this Python."""
    return [sys.executable, "-P", "-m", module, *arguments]
