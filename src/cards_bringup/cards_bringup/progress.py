"""A progress bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LINE_PERIOD = 10.0
"""Without a terminal a line is printed this often, [s]."""


class RunProgress:
    """Shows how much simulated time has passed. Context manager.

    Args:
        title: What runs.
        total: Simulated time of the whole run, [s]; 0: it has no end.
        quiet: Show nothing.
    """

    def __init__(self, title: str, total: float, *, quiet: bool = False) -> None:
        self._title = title
        self._total = total
        self._quiet = quiet
        self._begin = self._line = time.monotonic()
        self._bar: Progress | None = None
        if not quiet and sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:6.2f} s" + (f" of {total:.2f} s" if total else "")),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task(title, total=total or None)

    def __enter__(self) -> Self:
        """Start drawing."""
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop drawing."""
        if self._bar is not None:
            self._bar.stop()

    def update(self, sim_time: float) -> None:
        """Show that ``sim_time`` [s] has been reached; call it at most some ten times a second."""
        if self._bar is not None:
            self._bar.update(self._task, completed=sim_time)
        elif not self._quiet and (now := time.monotonic()) - self._line >= LINE_PERIOD:
            self._line = now
            of_total = f" of {self._total:.1f}" if self._total else ""
            print(
                f"{self._title}: {sim_time:.1f}{of_total} s simulated in "
                f"{now - self._begin:.0f} s",
                file=sys.stderr,
            )
