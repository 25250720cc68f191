"""Standard streams and Ctrl-C of a program: streams are open, Ctrl-C ends it without a traceback.

Between ``./cards`` and the environment's Python, which replaces it, Ctrl-C has to wait: no Python
can answer it before its first line runs. It stays blocked over ``execve``, and is delivered where
the command has begun.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


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


class CommandInterrupts:
    """Ctrl-C as KeyboardInterrupt, for the length of a command; knows whether there was one.

    Where Python drops exceptions, in destructors and callbacks, the interrupt is repeated.

    Attributes:
        seen: Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.seen = False

    def accept(self) -> None:
        """Deliver pending and later interrupts; a program that ignores Ctrl-C keeps ignoring it.

        Raises:
            KeyboardInterrupt: It was pressed before.
        """
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._raise)
        sys.unraisablehook = self._dropped
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def end(self, code: int) -> None:
        """Let Ctrl-C end the program at once from now on, with its exit code."""
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(code))

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        self.seen = True
        raise KeyboardInterrupt

    def _dropped(self, args: sys.UnraisableHookArgs) -> None:
        if not issubclass(args.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(args)
            return
        # not from in here, where it would be dropped again
        again = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()
