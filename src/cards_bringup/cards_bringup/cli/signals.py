"""Signals that end a command as Ctrl-C does."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def ended_by_signals(*, once: bool) -> Iterator[None]:
    """Let SIGTERM, and SIGHUP of a terminal that closes, raise `KeyboardInterrupt` as Ctrl-C does.

    Args:
        once: Ignore all of them after the first: what the command puts back or writes at its end
            takes no time, and must not be cut short.
    """

    def interrupt(*_: Any) -> None:
        if once:
            for number in before:
                signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    # who ignores SIGHUP wants the command to survive its terminal: nohup
    before = {
        number: signal.getsignal(number)
        for number in _NUMBERS
        if not (number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN)
    }
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
