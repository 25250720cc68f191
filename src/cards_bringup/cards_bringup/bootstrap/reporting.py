"""What is reported before CARDS runs: errors of the setup, and its progress on standard error."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType
from typing import TextIO


class SetupError(Exception):
    """The environment cannot be made or used; the message says what to do."""


class Progress:
    """One line with the elapsed time.

    On a terminal the line is rewritten; elsewhere a line is printed now and then.

    Args:
        title: What is being done.
        stream: Where to; standard error if not given, because output is for results.
        interval: Seconds between lines where there is no terminal.
    """

    def __init__(self, title: str, stream: TextIO | None = None, interval: float = 10.0) -> None:
        self._title = title
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._interval = 0.1 if self._terminal else interval
        self._start = time.monotonic()
        self._next = self._start
        self._detail = ""

    def __enter__(self) -> Progress:
        self.update()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._next = 0.0
        if self._terminal:
            self.update()
            self._stream.write("\n")
            self._stream.flush()
        elif kind is None and time.monotonic() - self._start > self._interval:
            self.update()

    def update(self, detail: str = "") -> None:
        """Print the line if it is due; `detail` follows the title."""
        self._detail = detail or self._detail
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._interval
        text = f"cards: {self._title}"
        if self._detail:
            text += f": {self._detail}"
        elapsed = now - self._start
        if elapsed >= 1.0:
            text += f", {elapsed:.0f} s"
        if self._terminal:
            # a line that wraps could not be rewritten
            text = f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}"
        else:
            text += "\n"
        self._stream.write(text)
        self._stream.flush()
