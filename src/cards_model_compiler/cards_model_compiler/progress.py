"""How far the compilation is: a bar on a terminal, a line per phase elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self


class CompileProgress:
    """Shows phases on standard error; call it with phase and done fraction.

    Context manager around one robot, after `start`.

    Args:
        robots: How many robots will be compiled.
        quiet: Show nothing.
    """

    def __init__(self, robots: int, *, quiet: bool = False) -> None:
        self._robots = robots
        self._quiet = quiet
        self._number = 0
        self._name = ""
        self._begin = time.monotonic()
        self._bar: Any = None
        if not quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,  # which rich would send to standard error, too
                redirect_stderr=False,
            )
            self._task = self._bar.add_task("", total=1.0)

    def start(self, name: str) -> Self:
        """Begin with the next robot; returns itself, to be entered."""
        self._number += 1
        self._name = name if self._robots == 1 else f"[{self._number}/{self._robots}] {name}"
        self._begin = time.monotonic()
        if self._bar is not None:
            self._bar.reset(self._task, description=self._name)
        return self

    def __call__(self, what: str, done: float) -> None:
        """Show that a phase begins."""
        if self._bar is not None:
            from rich.markup import escape

            text = escape(f"{self._name}: {what}")
            self._bar.update(self._task, description=text, completed=done)
        elif not self._quiet:
            seconds = time.monotonic() - self._begin
            print(f"{self._name}: {what} ({seconds:.1f} s)", file=sys.stderr, flush=True)

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
