"""The end of a demonstration run, normal or not: nothing that was recorded may be lost."""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self, TypeAlias

from cards_bringup.bootstrap.process import handled, raise_interrupt
from cards_bringup.nodes.supervisor import ProcessFailedError
from cards_bringup.progress import RunProgress
from cards_core.errors import CardsError
from cards_core.loop.verdict import EXIT_CODES

_CLOCK_TICK = 0.1
"""By which the time of a file may be before that of the clock, [s]."""


class RunInterrupts:
    """Turns the first Ctrl-C, SIGTERM or SIGHUP into the end of a run. Context manager.

    While the run goes on, a signal raises `KeyboardInterrupt`. Once it does not, because of that
    or because `saving` was called, the next signal only reports that results are being written;
    one more raises `KeyboardInterrupt` again, and the results are given up. After `saved` a signal
    sets an event.

    Args:
        say: Called with messages of one line.

    Attributes:
        given_up: Whether the user gave up the results.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._saving = self._warned = self.given_up = False
        self._stopped: threading.Event | None = None
        self._handlers = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Install the signal handlers; only in the main thread."""
        if threading.current_thread() is threading.main_thread():
            self._handlers.enter_context(handled(self._handle))
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the previous handlers."""
        self._handlers.close()

    def saving(self) -> None:
        """Note that the run is over: from now on results are written."""
        self._saving = True

    def saved(self) -> threading.Event:
        """Note that the results are written; return what the next signal sets.

        It is set already if a signal came while they were. One more signal raises
        `KeyboardInterrupt`.
        """
        self._stopped = threading.Event()
        if self._warned:
            self._stopped.set()
        return self._stopped

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            _leave_terminal()
        if self._stopped is not None and not self._stopped.is_set():
            # no exception: what opens a page may be in a library that swallows it
            self._stopped.set()
            self._warned = True
            return
        if not self._saving:
            self._saving = True
            raise_interrupt(frame)
        elif not self._warned:
            self._warned = True
            self._say("writing what was recorded; Ctrl-C once more gives it up")
        else:
            self.given_up = True
            raise KeyboardInterrupt


def _leave_terminal() -> None:
    """Stop printing to a terminal: writing to one that was closed fails, and saving with it."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        if os.isatty(stream) or not _takes_words(stream):
            os.dup2(null, stream)
    os.close(null)


def _takes_words(stream: int) -> bool:
    try:
        os.write(stream, b"")
    except OSError:
        return False
    return True


Start: TypeAlias = Callable[[Callable[[float], None], Callable[[str], None]], object]
"""Runs to the end; called with a function that takes the time [s] and one that takes notes.
"""


@dataclass(frozen=True)
class RunEnd:
    """How a run ended.

    Attributes:
        begun: When it began, on the monotonic clock, [s].
        wall: How long it took, [s].
        reached: Simulated time that was reported last, [s].
        stopped: Whether the user ended it.
        error: What ended it, if something did.
        real_time_factor: Simulated time per real time, without the start of nodes and the end of
            the run, with pauses; None where time was reported less than twice.
    """

    begun: float
    wall: float
    reached: float
    stopped: bool = False
    error: CardsError | None = None
    real_time_factor: float | None = None

    @property
    def failure(self) -> str:
        """The error that ended it, in one line; empty without an error."""
        return "" if self.error is None else str(self.error).splitlines()[0]


def simulate(args: argparse.Namespace, start: Start, duration: float, out: Path) -> RunEnd:
    """Run to the end, and save the logs of processes that ended without doing so.

    Args:
        args: Arguments of ``./cards demo``.
        start: Runs.
        duration: For the progress bar, [s]; 0: without end.
        out: Run folder.
    """
    from cards_core.loop.run_log import recover

    begin = time.monotonic()
    speed = _Speed()
    stopped, error = False, None

    def on_time(now: float) -> None:
        speed.note(now, time.monotonic())
        progress.update(now)

    with RunProgress(args.robot, duration, quiet=args.json) as progress:
        try:
            start(on_time, lambda note: say(args, note))
        except KeyboardInterrupt:
            stopped = True
        except CardsError as problem:
            error = problem
        except OSError as problem:
            why = problem.strerror or problem
            error = CardsError(f"{out}: the run cannot be recorded: {why}{_room(problem)}")
    wall = time.monotonic() - begin
    try:
        folders = [out, *(path for path in out.iterdir() if path.is_dir())]  # one of each robot
        for path in (path for folder in folders for path in recover(folder)):
            say(args, f"{path.relative_to(out)}: saved for a process that ended without doing so")
    except OSError as problem:
        before = f"{out}: " if error is None else f"{error}; "
        error = CardsError(
            f"{before}a log cannot be written: {problem.strerror or problem}{_room(problem)}. Its "
            f"rows are in hidden files in {out}, of which cards_core.loop.run_log.recover makes "
            "the log then"
        )
    return RunEnd(begin, wall, speed.reached, stopped, error, speed.real_time_factor)


def _room(problem: OSError) -> str:
    full = problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return f" (expected: {'free space there' if full else 'a folder that can be written'})"


class _Speed:
    """How fast simulated time advances.

    Attributes:
        reached: Simulated time that was noted last, [s].
    """

    def __init__(self) -> None:
        self.reached = 0.0
        self._first: float | None = None
        self._last = 0.0
        self._advanced = 0.0

    def note(self, simulated: float, real: float) -> None:
        """Note the simulated time at a real time, [s]."""
        if self._first is None:
            self._first = real
        elif simulated > self.reached:  # else the simulator was reset
            self._advanced += simulated - self.reached
        self.reached, self._last = simulated, real

    @property
    def real_time_factor(self) -> float | None:
        """Simulated time per real time between the first note and the last."""
        if self._first is None or self._last <= self._first:
            return None
        return self._advanced / (self._last - self._first)


def conclude(
    args: argparse.Namespace,
    interrupts: RunInterrupts,
    end: RunEnd,
    out: Path,
    *,
    write: Callable[[], dict[str, Any]],
    show: Callable[[dict[str, Any], Path], None],
) -> int:
    """Report how a run ended, write and show its results; return the exit code.

    Args:
        args: Arguments of ``./cards demo``.
        interrupts: A second Ctrl-C discards the results.
        end: End of the run.
        out: Run folder.
        write: Writes plots, recording and summary; returns the latter.
        show: Prints a summary for people.

    Raises:
        CardsError: The results cannot be written; the message says where the logs are.
    """
    if end.error is not None:
        print(f"error: {end.error}", file=sys.stderr)
    elif end.stopped:
        say(args, "stopped")
    try:
        summary = write()
    except KeyboardInterrupt:
        if not interrupts.given_up:
            raise
        print(f"given up: no plots and no summary; the logs are in {out}", file=sys.stderr)
        return EXIT_CODES["stopped"]
    except OSError as error:
        raise CardsError(
            f"{out}: plots, recording and summary cannot be written: {error}; the logs are there"
        ) from error
    if args.json:
        print(json.dumps(summary))
    else:
        show(summary, out)
    return EXIT_CODES[summary["verdict"]]


def nothing_recorded(args: argparse.Namespace, end: RunEnd, out: Path, host: str) -> int:
    """Report that a run recorded nothing; return the exit code.

    Args:
        args: Arguments of ``./cards demo``.
        end: End of the run.
        out: Run folder; what a run that the user stopped wrote into it is removed.
        host: Name of the node that should have recorded.

    Raises:
        CardsError: Something went wrong.
    """
    if end.error is not None:
        raise end.error
    if not end.stopped:
        # Gazebo ends without an error if it cannot read a world; its output says why
        raise ProcessFailedError(host, 0, out / "logs" / f"{host}.log")
    # logs without rows, and what its nodes printed while they started
    since = time.time() - (time.monotonic() - end.begun)
    left = [path for kind in ("*.npz", "logs/*.log") for path in out.rglob(kind)]
    left = [path for path in left if path.stat().st_mtime > since - _CLOCK_TICK]
    for path in left:
        path.unlink()
    for folder in {path.parent for path in left} - {out}:
        with contextlib.suppress(OSError):
            folder.rmdir()
    message = "stopped before anything was recorded"
    print(message, file=sys.stderr)
    if args.json:
        print(json.dumps({"error": {"type": "Stopped", "message": message}}))
    return EXIT_CODES["stopped"]


def say(args: argparse.Namespace, text: str) -> None:
    """Print a note, unless only JSON is wanted."""
    if not args.json:
        print(text, file=sys.stderr)


def instead(wanted: int, port: int) -> str:
    """Return the note after a page's address: empty, or that another port was requested."""
    return f" (port {wanted} is in use)" if wanted not in (0, port) else ""


def tell_network(args: argparse.Namespace, port: int) -> None:
    """Say so where a page can be reached from the network, with the link of spectators.

    Args:
        args: Command line, with ``host``.
        port: Of the page.
    """
    from cards_viz.pages.access import network_note, page_url, spectator_token, token

    if note := network_note(args.host):
        say(args, note + page_url(args.host, port, spectator_token(token())))
