"""What an import did besides copying numbers: every change, omission and doubt by name.

A `Finding` is never an error; errors are exceptions. The importer collects findings in a
`FindingList`, the report prints them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal

Level = Literal["note", "warning"]


@dataclass(frozen=True)
class Finding:
    """One remark about an imported model.

    Attributes:
        level: ``warning`` if the imported robot behaves differently from CASPR or something was
            left out; ``note`` if a choice was made that changes no number.
        code: Stable identifier such as ``pulley-as-via-point``; `docs/caspr.md` lists all.
        subject: What it is about, e.g. ``cable set 'original'``.
        message: One sentence: what was found and what was done.
        source: File, if there is one.
        line: Line in that file, 1-based.
        count: How often the same was found; `line` is that of the first.
    """

    level: Level
    code: str
    subject: str
    message: str
    source: str | None = None
    line: int | None = None
    count: int = 1

    @property
    def place(self) -> str:
        """``file:line``, or an empty string."""
        if self.source is None:
            return ""
        return self.source if self.line is None else f"{self.source}:{self.line}"

    def __str__(self) -> str:
        """Return one line: level, file name and line, subject, message, code."""
        place = f"{PurePath(self.place).name}: " if self.place else ""
        times = f" ({self.count} times, here first)" if self.count > 1 else ""
        return f"{self.level}: {place}{self.subject}: {self.message}{times} [{self.code}]"


@dataclass
class FindingList:
    """Findings in the order in which they were first made; equal ones are counted."""

    _items: dict[tuple[str, ...], Finding] = field(default_factory=dict)

    def warn(
        self,
        code: str,
        subject: str,
        message: str,
        *,
        source: str | None = None,
        line: int | None = None,
    ) -> None:
        """Add a warning; see `Finding` for the arguments."""
        self._add(Finding("warning", code, subject, message, source, line))

    def note(
        self,
        code: str,
        subject: str,
        message: str,
        *,
        source: str | None = None,
        line: int | None = None,
    ) -> None:
        """Add a note; see `Finding` for the arguments."""
        self._add(Finding("note", code, subject, message, source, line))

    def _add(self, new: Finding) -> None:
        key = (new.level, new.code, new.subject, new.message)
        old = self._items.get(key)
        self._items[key] = new if old is None else replace(old, count=old.count + 1)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The warnings only."""
        return tuple(item for item in self if item.level == "warning")

    def counts(self) -> dict[str, int]:
        """Return the number of warnings per code."""
        counter: Counter[str] = Counter()
        for item in self.warnings:
            counter[item.code] += item.count
        return dict(sorted(counter.items()))
