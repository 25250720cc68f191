"""Tables of numbers in files, as all commands read them: CSV, and NPZ archives.

CSV has names in the first line and is UTF-8, with or without the byte order mark that spreadsheets
write. Every row has as many values as the first line has names, and no name is there twice: a
value that would be dropped or moved is an error. Lines without any text are passed over. An empty
cell is NaN where numbers may be missing.

Where the first line has no comma, semicolons or tabs separate, and numbers may have a decimal
comma, as spreadsheets write them in many countries. Motion and storage files of OpenSim (``.mot``,
``.sto``) are read too: names follow the line ``endheader``, blanks separate.

An NPZ archive holds real numbers. What would be converted with a loss, or into something that
nobody meant (the imaginary part of a complex number, a date, a record), is an error, and so is
whatever NumPy finds wrong with a file.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cards_core.errors import CardsError, DescriptionError
from cards_core.foreign_files import read_arrays
from cards_core.typing import Array

# CSV -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CsvForm:
    """How the lines of a file are read.

    Attributes:
        separator: Between values; empty: blanks, as in files of OpenSim.
        skipped: Lines before that with the names.
        degrees: Whether angles are in degrees, as the head of a file of OpenSim says.
    """

    separator: str = ","
    skipped: int = 0
    degrees: bool = False


@dataclass(frozen=True)
class CsvTable:
    """A CSV file whose first line was read.

    Attributes:
        path: The file.
        head: Names of the columns, without blanks around them.
        form: How its lines are read.
    """

    path: Path
    head: tuple[str, ...]
    form: CsvForm

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Read the file; yields the number of the line, and one text for every column.

        Raises:
            CardsError: A row has more or fewer values than the first line has names.
        """
        with _reading(self.path, self.form) as lines:
            next(lines, None)
            for line, cells in lines:
                if len(cells) != len(self.head):
                    raise CardsError(
                        f"{self.path}:{line}: {len(cells)} values (expected: {len(self.head)}, "
                        f"as the first line: {', '.join(self.head)})"
                    )
                yield line, [cell.strip() for cell in cells]

    def number(self, line: int, name: str, text: str, *, empty: bool = False) -> float:
        """Return the number in a cell.

        Args:
            line: Its line.
            name: Its column.
            text: What is in it.
            empty: Whether it may be missing: nothing is NaN then, and NaN and infinity are no
                errors.

        Raises:
            CardsError: It is no number, or not a finite one.
        """
        if empty and not text:
            return math.nan
        comma = self.form.separator != "," and text.count(",") == 1 and "." not in text
        try:
            value = float(text.replace(",", ".") if comma else text)
        except ValueError:
            raise CardsError(
                f"{self.path}:{line}: {name} is '{text}' (expected: a number)"
            ) from None
        if not (empty or math.isfinite(value)):
            raise CardsError(f"{self.path}:{line}: {name} is '{text}' (expected: a finite number)")
        return value


def open_csv(path: Path, *, degrees: bool = False) -> CsvTable:
    """Read the names of the columns of a CSV file, or of a motion file of OpenSim.

    Args:
        path: The file.
        degrees: Whether the caller converts angles of files in degrees, see `CsvForm.degrees`.

    Raises:
        CardsError: It cannot be read, is empty, has a name twice, or is in degrees.
    """
    form = _form(path)
    if form.degrees and not degrees:
        raise CardsError(f"{path}: inDegrees=yes (expected: radians, with inDegrees=no)")
    with _reading(path, form) as lines:
        line, cells = next(lines, (1, []))
    head = tuple(cell.strip() for cell in cells)
    if not head:
        raise CardsError(f"{path} is empty (expected: names in the first line)")
    for i, name in enumerate(head):
        if name and name in head[:i]:
            raise CardsError(f"{path}:{line}: column '{name}' is there twice (expected: once)")
    return CsvTable(path, head, form)


MOST_HEAD = 1000
"""Lines that the head of a file of OpenSim has at most."""


def _form(path: Path) -> CsvForm:
    """Tell how a file is read from its first lines."""
    with _text_of(path) as stream:
        first = ""
        entries: dict[str, str] = {}
        for count, line in enumerate(itertools.islice(stream, MOST_HEAD), 1):
            text = line.strip()
            first = first or text
            if text.lower() == "endheader":
                return CsvForm("", count, entries.get("indegrees") == "yes")
            name, _, value = text.partition("=")
            entries[name.strip().lower()] = value.strip().lower()
    if "," in first:
        return CsvForm()
    return CsvForm(next((mark for mark in ";\t" if mark in first), ","))


@contextmanager
def _reading(path: Path, form: CsvForm) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Open a file; gives its lines with their numbers, without those that have no text."""
    with _text_of(path) as stream:
        for _ in range(form.skipped):
            next(stream)
        if not form.separator:
            numbered = enumerate(stream, form.skipped + 1)
            yield ((number, line.split()) for number, line in numbered if line.strip())
            return
        reader = csv.reader(stream, strict=True, delimiter=form.separator)
        # one blank cell is a line of blanks; where there are commas, somebody meant a row
        yield (
            (reader.line_num, cells)
            for cells in reader
            if len(cells) > 1 or (cells and cells[0].strip())
        )


@contextmanager
def _text_of(path: Path) -> Iterator[TextIO]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            yield stream
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CardsError(f"{path}: {error} (expected: a CSV file)") from error


# NPZ -------------------------------------------------------------------------------------------


_EXPECTED = "an NPZ file of numbers"

_REAL = "biuf"
"""Kinds of `numpy.dtype` that are real numbers: boolean, integers, floating point."""


def read_npz(path: Path, names: Collection[str] | None = None) -> dict[str, Array]:
    """Read arrays of an NPZ archive.

    Args:
        path: The file.
        names: Those that are wanted; the others are not looked at, and may be missing. None: all.

    Raises:
        CardsError: No such archive, or a wanted array is not one of real numbers.
    """
    found = read_arrays(path, lambda name: names is None or name in names, _EXPECTED)
    for name, values in found.items():
        if values.dtype.kind not in _REAL:
            raise DescriptionError(
                f"'{name}' has elements of type {values.dtype}",
                source=str(path),
                expected=_EXPECTED,
            )
    return {name: values.astype(float) for name, values in found.items()}
