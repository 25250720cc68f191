"""Start, supervise and stop the processes of nodes, without leaving any behind.

Every process has its own session, so Ctrl-C reaches this process only, which decides the order of
the shutdown; and a parent death signal, so it ends even if this process is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cards_core.errors import CardsError
from cards_core.files import inside
from cards_hardware.hil.processes import spawn

STOP_SIGNALS = ((signal.SIGINT, 5.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 2.0))
"""Signals in the order they are tried, and how long [s] each is given."""

LOG_TAIL = 15
"""Lines of a failed process's output that go into the error."""


class ProcessFailedError(CardsError):
    """A process ended with an error; the message carries the end of its output."""

    def __init__(self, name: str, code: int, log: Path) -> None:
        self.name = name
        self.code = code
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        end = "\n  ".join(lines[-LOG_TAIL:]) or "(no output)"
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        super().__init__(f"'{name}' ended with {how} (its output: {log})\n  {end}")


@dataclass
class _Child:
    name: str
    process: subprocess.Popen[bytes]
    log: Path
    essential: bool
    stop_time: float | None


@dataclass
class Supervisor:
    """Context manager of a set of processes.

    Args:
        log_dir: Folder of the processes' output, ``<name>.log``.
        environment: Added to this process's environment.
    """

    log_dir: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    _children: list[_Child] = field(default_factory=list)

    def __enter__(self) -> Self:
        """Return the supervisor."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything."""
        self.stop()

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        essential: bool = True,
        stop_time: float | None = None,
    ) -> None:
        """Start a process.

        Args:
            name: For messages and the log file.
            command: Program and arguments.
            essential: Whether the whole run fails if it ends with an error.
            stop_time: How long [s] it may take to end after the first of `STOP_SIGNALS`, where
                that is longer than usual.

        Raises:
            CardsError: The program does not exist.
        """
        self.log_dir.mkdir(parents=True, exist_ok=True)
        log = inside(self.log_dir, f"{name}.log")
        try:
            with log.open("wb") as out:
                process = spawn(
                    command,
                    None,
                    stdin=None,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    environment={**os.environ, **self.environment},
                    at_our_end=signal.SIGTERM,
                )
        except OSError as error:
            raise CardsError(f"cannot start '{name}' ({command[0]}): {error}") from error
        self._children.append(_Child(name, process, log, essential, stop_time))

    def poll(self) -> set[str]:
        """Return the names of the processes that have ended without an error.

        Raises:
            ProcessFailedError: An essential process ended with an error.
        """
        ended = set()
        for child in self._children:
            code = child.process.poll()
            if code is None:
                continue
            if code != 0 and child.essential:
                raise ProcessFailedError(child.name, code, child.log)
            ended.add(child.name)
        return ended

    @property
    def process_ids(self) -> dict[str, int]:
        """Process ids by name, of all that were started."""
        return {child.name: child.process.pid for child in self._children}

    def stop(self, *names: str) -> None:
        """Stop the named processes, or all, last started first; returns when they are gone."""
        chosen = [c for c in reversed(self._children) if not names or c.name in names]
        for number, patience in STOP_SIGNALS:
            running = [child for child in chosen if child.process.poll() is None]
            if not running:
                return
            for child in running:
                _signal_group(child.process, number)
            begin = time.monotonic()
            for child in running:
                own = child.stop_time or 0.0 if number == STOP_SIGNALS[0][0] else 0.0
                left = begin + max(patience, own) - time.monotonic()
                try:
                    child.process.wait(max(0.0, left))
                except subprocess.TimeoutExpired:
                    continue


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return
