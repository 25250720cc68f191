"""What an import did besides copying numbers: changes, omissions, doubts, and new names.

A `Finding` is never an error; errors are exceptions. The importer collects findings in a
`FindingList` and new names in a `NameTable`, the report prints them.

Names in other programs' files are often free text (``IPAnema 1 (Fraunhofer IPA)``) and need not be
unique. Ours can be typed in a shell and in YAML without quotes, too: they consist of letters and
digits of any script, ``_``, ``-`` and ``.``; every run of other characters becomes one ``_``.
SDF, MJCF, ROS messages and file systems have all of these; names of ROS topics do not, and are
made of the others where they are needed. Links, joints and frames share one name space, as SDF
demands.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal, Protocol

from cards_core.names import LONGEST

# Findings --------------------------------------------------------------------------------------


Level = Literal["note", "warning"]


class Place(Protocol):
    """What knows where in which file it stands, such as an element of XML."""

    @property
    def source(self) -> str | None:
        """File, if there is one."""

    @property
    def line(self) -> int | None:
        """Line in that file, 1-based."""


@dataclass(frozen=True)
class FilePlace:
    """A `Place`: a file, and a line in it if one is known."""

    source: str | None
    line: int | None = None


@dataclass(frozen=True)
class Finding:
    """One remark about an imported model.

    Attributes:
        level: ``warning`` if the imported robot behaves differently from the source or something
            was left out; ``note`` if a choice was made that changes no number.
        code: Stable identifier such as ``pulley-as-via-point``; the page of each format lists its
            own.
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

    def warn(self, code: str, subject: str, message: str, *, at: Place | None = None) -> None:
        """Add a warning; see `Finding`. ``at`` gives source and line."""
        self._add("warning", (code, subject, message), at)

    def note(self, code: str, subject: str, message: str, *, at: Place | None = None) -> None:
        """Add a note; see `Finding`. ``at`` gives source and line."""
        self._add("note", (code, subject, message), at)

    def _add(self, level: Level, what: tuple[str, str, str], at: Place | None) -> None:
        source, line = (None, None) if at is None else (at.source, at.line)
        old, new = self._items.get((level, *what)), Finding(level, *what, source, line)
        self._items[level, *what] = new if old is None else replace(old, count=old.count + 1)

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


# Names -----------------------------------------------------------------------------------------


SAFE = "letters and digits of any script, _, - and ."
"""What safe names consist of, for messages."""

MOST_CHARACTERS = LONGEST - 6
"""Of a safe name: a number may follow where it is not unique."""

MOST_BYTES = 200
"""Of a safe name in UTF-8: names of files, with more in them, may have 255."""


def safe_name(text: str, fallback: str = "unnamed") -> str:
    """Return ``text`` with unsafe characters replaced, ``fallback`` if nothing is left.

    Args:
        text: Name in another program's file.
        fallback: Name of what has none.
    """
    composed = unicodedata.normalize("NFC", text.strip())
    kept = "".join(c if _is_safe(c) else " " for c in composed)
    name = "_".join(part for part in kept.split(" ") if part)
    name = name[:MOST_CHARACTERS].encode()[:MOST_BYTES].decode(errors="ignore")
    # a leading dash would read as an option on a command line
    return name.lstrip("-_.").rstrip("_.") or fallback


def _is_safe(character: str) -> bool:
    # marks are parts of letters, such as the vowels of many scripts
    letter = character.isalnum() or unicodedata.category(character)[0] == "M"
    return (letter and character.isprintable()) or character in "_.-"


def renamed_robot(original: str, name: str) -> tuple[tuple[str, str], ...]:
    """Return the line of a report on a robot's name, none if it is the file's.

    Args:
        original: Name in the file, or what it was asked to be called.
        name: Ours.
    """
    return () if original == name else ((original, name),)


class NameTable:
    """Hands out unique names and remembers what was renamed.

    Args:
        reserved: Names that may not be handed out.

    Attributes:
        renamed: (original, name) pairs of everything whose name changed, in order.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)
        self.renamed: list[tuple[str, str]] = []

    def claim(self, text: str, fallback: str = "unnamed") -> str:
        """Return a safe, unique name for ``text``: the first free of name, name_2, name_3, ..."""
        base = safe_name(text, fallback)
        name, count = base, 1
        while name in self._taken:
            count += 1
            end = f"_{count}"
            name = base[: LONGEST - len(end)] + end
        self._taken.add(name)
        if name != text:
            self.renamed.append((text, name))
        return name
