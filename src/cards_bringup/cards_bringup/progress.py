"""A progress bar on a terminal, lines at intervals elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

PREPARATION = 3.0
"""A run in which no time has passed after this is said to be prepared, [s]."""

LINE_PERIOD = 10.0
"""Without a terminal a line is printed this often, [s]."""


class _Drawn:
    """A progress bar on a terminal, else nothing. Context manager.

    Args:
        title: What runs.
        columns: Columns between the bar and the remaining time.
        total: Where the bar ends; None if that is not known.
        quiet: Show nothing.
        fields: First values of further fields that columns show.
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[ProgressColumn],
        total: float | None,
        *,
        quiet: bool,
        **fields: Any,
    ) -> None:
        self._title = title
        self._quiet = quiet
        self._begin = self._line = time.monotonic()
        self._bar: Progress | None = None
        if not quiet and sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                *columns,
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task(title, total=total, **fields)

    def __enter__(self) -> Self:
        """Start drawing."""
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop drawing."""
        if self._bar is not None:
            self._bar.stop()

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._begin

    def _show(self, text: str, **values: Any) -> None:
        """Move the bar to its new values; without one, print a text behind the title if due."""
        if self._bar is not None:
            self._bar.update(self._task, **values)
        elif not self._quiet and (now := time.monotonic()) - self._line >= LINE_PERIOD:
            self._line = now
            print(f"{self._title}: {text}", file=sys.stderr)


class RunProgress(_Drawn):
    """Shows how much simulated time has passed. Context manager.

    Args:
        title: What runs.
        total: Simulated time of the whole run, [s]; 0: it has no end.
        quiet: Show nothing.
    """

    def __init__(self, title: str, total: float, *, quiet: bool = False) -> None:
        self._total = total
        columns = (
            TextColumn("{task.completed:6.2f} s" + (f" of {total:.2f} s" if total else "")),
            TimeElapsedColumn(),
        )
        super().__init__(title, columns, total or None, quiet=quiet)
        self._moves = False
        self._waiting = threading.Timer(PREPARATION, self._say_waiting)
        self._waiting.daemon = True

    def __enter__(self) -> Self:
        """Start drawing."""
        self._waiting.start()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        """Stop drawing."""
        self._waiting.cancel()
        super().__exit__()

    def _say_waiting(self) -> None:
        if self._moves or self._quiet:
            return
        text = f"{self._title}: being prepared; a model that is new is compiled first"
        if self._bar is not None:
            self._bar.update(self._task, description=text)
        else:
            print(text, file=sys.stderr)

    def update(self, sim_time: float) -> None:
        """Show that ``sim_time`` [s] has been reached; call it at most some ten times a second."""
        if not self._moves and sim_time > 0.0:
            self._moves = True
            self._waiting.cancel()
            if self._bar is not None:
                self._bar.update(self._task, description=self._title)
        if not self._moves:
            return
        of_total = f" of {self._total:.1f}" if self._total else ""
        text = f"{sim_time:.1f}{of_total} s simulated in {self._seconds:.0f} s"
        self._show(text, completed=sim_time)


class CountProgress(_Drawn):
    """Shows how many items are done, how fast, and the remaining time.

    Context manager.

    Args:
        title: What runs.
        unit: What is counted, e.g. ``points``.
        quiet: Show nothing.
    """

    def __init__(self, title: str, unit: str, *, quiet: bool = False) -> None:
        self._unit = unit
        self._first: int | None = None
        columns = (MofNCompleteColumn(), _RateColumn(unit))
        super().__init__(title, columns, None, quiet=quiet)

    def update(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` are done; the first call sets the start of the rate."""
        if self._first is None:
            self._first, self._begin = done, time.monotonic()
            if self._bar is not None:
                self._bar.reset(self._task, total=total, completed=done, first=done)
        rate = (done - self._first) / max(self._seconds, 1e-9)
        left = f", {(total - done) / rate:.0f} s left" if rate > 0.0 else ""
        text = f"{done} of {total} {self._unit}, {rate:.0f} per second{left}"
        self._show(text, completed=done, total=total)


class BestProgress(_Drawn):
    """Shows how many items are done, the best score so far, and the remaining time.

    Context manager.

    Args:
        title: What runs.
        unit: What is counted, e.g. ``trials``.
        quiet: Show nothing.
    """

    def __init__(self, title: str, unit: str, *, quiet: bool = False) -> None:
        self._unit = unit
        columns = (
            MofNCompleteColumn(),
            TextColumn("best {task.fields[best]}"),
            TimeElapsedColumn(),
        )
        super().__init__(title, columns, None, quiet=quiet, best="-")

    def update(self, done: int, total: int, best: float) -> None:
        """Show that ``done`` of ``total`` are done, and the best score so far.

        Args:
            done: Number of finished ones.
            total: Number of all.
            best: Best score so far.
        """
        text = f"{done} of {total} {self._unit} in {self._seconds:.0f} s, best {best:.4g}"
        self._show(text, completed=done, total=total, best=f"{best:.4g}")


class ShareProgress(_Drawn):
    """Shows which share of something is done. Context manager.

    Args:
        title: What runs.
        quiet: Show nothing.
    """

    def __init__(self, title: str, *, quiet: bool = False) -> None:
        columns = (TaskProgressColumn(), TimeElapsedColumn())
        super().__init__(title, columns, 1.0, quiet=quiet)

    def update(self, share: float) -> None:
        """Show that a share, from 0 to 1, is done."""
        self._show(f"{share:.0%} in {self._seconds:.0f} s", completed=share)


class _RateColumn(ProgressColumn):
    """Items per second since the first update."""

    def __init__(self, unit: str) -> None:
        super().__init__(Column(no_wrap=True))
        self._unit = unit

    def render(self, task: Task) -> Text:
        done = task.completed - task.fields.get("first", 0)
        rate = done / task.elapsed if task.elapsed else 0.0
        return Text(f"{rate:,.0f} {self._unit}/s")
