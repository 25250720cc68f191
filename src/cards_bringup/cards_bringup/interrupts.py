"""Ctrl-C in a command that records: it ends the run, not the saving of what was recorded."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends a run. SIGHUP comes when its terminal is closed; ``nohup`` keeps it away."""


class Interrupts:
    """Turns the first Ctrl-C, SIGTERM or SIGHUP into the end of a run. Context manager.

    While the run goes on, a signal raises `KeyboardInterrupt`. Once it does not, because of that
    or because `saving` was called, the next signal only says that results are being written; one
    more raises `KeyboardInterrupt` again: somebody does not want them.

    Args:
        say: Told what is going on, one line.

    Attributes:
        given_up: Whether somebody did not want the results.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._saving = self._warned = self.given_up = False
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Handle the signals; elsewhere than in the main thread they are left alone."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                    continue
                self._old[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restore what was."""
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def saving(self) -> None:
        """Note that the run is over: from now on results are written."""
        self._saving = True

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            _leave_terminal()
        if not self._saving:
            self._saving = True
            raise KeyboardInterrupt
        if not self._warned:
            self._warned = True
            self._say("writing what was recorded; Ctrl-C once more gives it up")
            return
        self.given_up = True
        raise KeyboardInterrupt


def _leave_terminal() -> None:
    """Say nothing more to a terminal: words to one that is gone fail, and the saving with them."""
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
