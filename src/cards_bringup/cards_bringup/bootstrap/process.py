"""Standard streams and Ctrl-C of a program: streams are open, Ctrl-C ends it without a traceback.

Between ``./cards`` and the environment's Python, which replaces it, Ctrl-C has to wait: no Python
can answer it before its first line runs. It stays blocked over ``execve``, and is delivered where
the command has begun.
"""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command: Ctrl-C, a wish of another program, a terminal that was closed."""

_DROPPING = ("importlib", "trimesh", "rclpy")
"""Packages in which an interrupt is lost or becomes another error: trimesh goes on without what it
cannot import or read, rclpy makes a RuntimeError of one that comes as it converts a message."""


class _Output(io.FileIO):
    """Standard output whose errors name it."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from None


def open_streams() -> None:
    """Replace closed standard streams, whose numbers the next opened file would get otherwise.

    What is written to a closed standard output is an error, as for any program; nobody misses what
    is written to a closed standard error.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # the lowest free number is the one that is missing; writing to 1 fails
            mode = os.O_WRONLY if number == 2 else os.O_RDONLY
            os.set_inheritable(os.open(os.devnull, mode), True)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False, encoding="utf-8")  # noqa: SIM115
    old = sys.stdout
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(1, "wb", closefd=False)),
        encoding=getattr(old, "encoding", "utf-8"),
        errors=getattr(old, "errors", None),
        line_buffering=getattr(old, "line_buffering", False),
        write_through=getattr(old, "write_through", False),
    )
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False, encoding="utf-8")  # noqa: SIM115


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Block Ctrl-C, also for the program that replaces this one in the block."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:  # only where nothing replaced it
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def raise_interrupt(frame: FrameType | None, lost: FrameType | None = None) -> None:
    """Raise `KeyboardInterrupt` where it arrives: now, or at the end of what would drop it.

    Args:
        frame: What a signal has interrupted.
        lost: The outermost call known to drop exceptions.
    """
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _DROPPING:
            lost = frame
        frame = frame.f_back
    if lost is None:
        raise KeyboardInterrupt
    ended = False

    def follow(frame: FrameType, event: str, _value: Any) -> None:
        nonlocal ended
        if ended:
            sys.setprofile(None)
            raise KeyboardInterrupt
        ended = event == "return" and frame is lost

    sys.setprofile(follow)


@contextmanager
def handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle what ends a command: `ENDING`, where ``nohup`` does not keep SIGHUP away."""
    before = {
        number: signal.signal(number, handler)
        for number in ENDING
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def ended_by_signals(*, once: bool) -> Iterator[None]:
    """Let SIGTERM, and SIGHUP of a terminal that closes, raise `KeyboardInterrupt` as Ctrl-C does.

    Args:
        once: Ignore all of them after the first: what the command puts back or writes at its end
            takes no time, and must not be cut short.
    """

    def interrupt(_number: int, frame: FrameType | None) -> None:
        if once:
            for number in ENDING:
                signal.signal(number, signal.SIG_IGN)
        raise_interrupt(frame)

    with handled(interrupt):
        yield


class CommandInterrupts:
    """Ctrl-C as KeyboardInterrupt, for the length of a command; knows whether there was one.

    Attributes:
        seen: Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.seen = False
        self._code: int | None = None

    def accept(self) -> None:
        """Deliver pending and later interrupts; a program that ignores Ctrl-C keeps ignoring it.

        Raises:
            KeyboardInterrupt: It was pressed before.
        """
        atexit.register(self._leave)  # the first one, which Python calls last
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._raise)
        sys.unraisablehook = self._dropped
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def end(self, code: int) -> None:
        """Let Ctrl-C end the program at once from now on, with its exit code."""
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(code))
        self._code = code
        if self.seen:  # a page that was still starting need not say that it has stopped
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

    def _leave(self) -> None:
        """End before Python takes itself down, in which what threads of pages use hangs."""
        if self._code is not None:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os._exit(self._code)

    def _raise(self, _number: int, frame: FrameType | None) -> None:
        insists, self.seen = self.seen, True
        raise_interrupt(None if insists else frame)

    def _dropped(self, args: sys.UnraisableHookArgs) -> None:
        if issubclass(args.exc_type, KeyboardInterrupt):
            raise_interrupt(sys._getframe(), sys._getframe())
        else:
            sys.__unraisablehook__(args)
