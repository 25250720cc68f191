"""The loop of ``./cards monitor``: draw, look at the keyboard, draw again."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Iterator

from rich.console import Console
from rich.live import Live

from cards_bringup.monitor_view import render
from cards_core.errors import CardsError
from cards_hardware.monitor.snapshot import MonitorSource


def watch(source: MonitorSource, rate: float, console: Console | None = None) -> None:
    """Show a source until q or Ctrl-C.

    Args:
        source: What to show.
        rate: Pictures per second.
        console: Where; the terminal without it.
    """
    console = console or Console()
    note = ""
    with (
        keyboard() as keys,
        Live(console=console, screen=console.is_terminal, auto_refresh=False) as live,
    ):
        while True:
            width, height = console.size
            snapshot = source.snapshot()
            live.update(render(snapshot, width, height, keys=keys, note=note), refresh=True)
            typed = _typed(1.0 / rate, keys).lower()
            if "e" in typed:
                try:
                    note = source.estop()
                except CardsError as error:
                    note = str(error)
            if "q" in typed:
                return


@contextlib.contextmanager
def keyboard() -> Iterator[bool]:
    """Have keys come one by one and unseen; yields False where there is no keyboard."""
    try:
        import termios
        import tty

        number = sys.stdin.fileno()
        before = termios.tcgetattr(number)
    except (ImportError, OSError, ValueError, termios.error):
        yield False
        return
    try:
        tty.setcbreak(number)
        yield True
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def _typed(timeout: float, keys: bool) -> str:
    """Return what was typed; waits for the first key."""
    if not keys:
        time.sleep(timeout)
        return ""
    number = sys.stdin.fileno()
    ready, _, _ = select.select([number], [], [], timeout)
    # not sys.stdin.read: what it keeps in its buffer, select does not see
    if not ready:
        return ""
    try:
        return os.read(number, 64).decode(errors="replace") or "q"
    except OSError:
        return "q"  # the terminal is gone
