"""A log of one row per step: one memory copy per row, constant memory.

Rows go to a buffer, full buffers to a hidden file beside the ``.npz`` that `RunLog.close` makes of
them, which appears under its name complete or not at all. A reset of the simulation begins the
next *part*: nothing recorded is lost. If the process is killed, the hidden file
stays, and `recover` makes the same file of it as `RunLog.close`.

=================================== ====================================================
``simulator.npz``                   the last part, the only one without a reset
``simulator.before_reset_1.npz``    what was recorded before the first reset, and so on
``.simulator.npz.<process>.1.rows`` rows of the first part, while the log is open
=================================== ====================================================
"""

from __future__ import annotations

import json
import math
import os
import re
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from cards_core.errors import ShapeError
from cards_core.files import replacing
from cards_core.typing import Array

SIMULATOR_LOG = "simulator.npz"
"""Log of a host, simulated or emulated, in the folder of a run; see `cards_core.loop.host_log`."""

CONTROLLER_LOG = "controller.npz"
"""Log of a controller in the folder of a run; see `cards_core.loop.control_loop`."""

ROWS_PER_WRITE = 256
"""Rows that are written at once: small enough to take some ten microseconds."""

_COPIED = 16 * ROWS_PER_WRITE  # rows


def part_path(path: Path, number: int) -> Path:
    """Return where a log has the part before a reset, 1 the first."""
    return path.with_name(f"{path.stem}.before_reset_{number}{path.suffix}")


def part_paths(path: Path) -> list[Path]:
    """Return the files of a log that exist, in the order in which they were recorded."""
    pattern = re.compile(rf"{re.escape(path.stem)}\.before_reset_(\d+){re.escape(path.suffix)}")
    folder = path.parent.iterdir() if path.parent.is_dir() else ()
    numbered = {int(found[1]): file for file in folder if (found := pattern.fullmatch(file.name))}
    last = [path] if path.exists() else []
    return [numbered[number] for number in sorted(numbered)] + last


def begun(path: Path) -> float:
    """Return when the recording of a log, or a part, began; NaN if its file does not say so.

    On the monotonic clock of the machine, [s], so that logs of several processes compare.

    Raises:
        OSError: The file cannot be read.
        BadZipFile: It is no log.
    """
    with zipfile.ZipFile(path) as archive:
        try:
            return float(archive.comment)
        except ValueError:
            return math.nan


class RunLog:
    """Collects rows of named columns and writes them as arrays of shape (rows, width).

    Args:
        path: The ``.npz`` to write; its folder is made.
        widths: Column name to number of values; None means a scalar column, shape (rows,).
        constants: Further arrays to store as they are, e.g. the names of the columns' entries.

    Attributes:
        path: As given.
        rows: Of the present part.
        number: Of the present part, 1 the first.
        failed: Whether rows could not be written; those that come after are not recorded.

    Raises:
        OSError: The folder cannot be made or is not writable.
    """

    def __init__(
        self,
        path: str | Path,
        widths: Mapping[str, int | None],
        constants: Mapping[str, Array | np.ndarray] | None = None,
    ) -> None:
        self.path = Path(path)
        self.rows = 0
        self._widths = dict(widths)
        self._constants = {name: np.asarray(v) for name, v in (constants or {}).items()}
        self._slices: list[slice] = []
        start = 0
        for width in self._widths.values():
            stop = start + (1 if width is None else width)
            self._slices.append(slice(start, stop))
            start = stop
        self._buffer = np.empty((ROWS_PER_WRITE, start))
        self._used = 0
        self._finished: list[Path] = []
        self._closed = self.failed = False
        self._pending: OSError | None = None  # of `next_part`
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._begin()

    @property
    def number(self) -> int:
        """Number of the present part, 1 the first."""
        return len(self._finished) + 1

    def append(self, *values: float | Array) -> None:
        """Add a row: one value or array for each column, in the order of ``widths``.

        Raises:
            OSError: Rows cannot be written, e.g. because the disk is full; raised once.
        """
        if self._pending is not None:
            error, self._pending = self._pending, None
            raise error
        if self.failed:
            return
        if len(values) != len(self._slices):
            raise ShapeError(
                f"{len(values)} values given, expected one for each of {list(self._widths)}"
            )
        row = self._buffer[self._used]
        for where, value in zip(self._slices, values, strict=True):
            row[where] = value
        self._used += 1
        self.rows += 1
        if self._used == ROWS_PER_WRITE:
            self._flush()

    def _begin(self) -> None:
        header = {
            "widths": self._widths,
            "constants": {name: value.tolist() for name, value in self._constants.items()},
            "begun": time.monotonic(),
        }
        rows = self.path.with_name(f".{self.path.name}.{os.getpid()}.{self.number}.rows")
        # in a folder of all users, another one could make a link of this name
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        self._file: BinaryIO = os.fdopen(os.open(rows, flags, 0o666), "wb")
        self._rows_path = rows
        self._file.write(json.dumps(header).encode() + b"\n")
        self._file.flush()

    def _flush(self) -> None:
        used, self._used = self._used, 0
        try:
            self._file.write(self._buffer[:used].data)
            self._file.flush()
        except OSError:
            self.failed = True
            raise

    def next_part(self) -> None:
        """Begin the next part, as after a reset of the simulation; one without rows starts again.

        What keeps rows from being written is raised by the next `append`: a reset must not fail
        because of a full disk.
        """
        if self.failed:
            return
        try:
            self._flush()
            self._file.close()
            if self.rows:
                self._finished.append(self._rows_path)
            self.rows = 0
            self._begin()
        except OSError as error:
            self.failed, self._pending = True, error

    def close(self) -> Path:
        """Write the files and return the path of the last; the log cannot be used afterwards.

        The arrays are written column by column, so the memory needed does not grow with the
        length of the run.

        Raises:
            OSError: A file cannot be written; the rows stay in their hidden files, for `recover`.
        """
        if self._closed:
            return self.path
        self._closed = True
        with suppress(OSError):  # said already
            if not self.failed:
                self._flush()
            self._file.close()
        for number, rows in enumerate(self._finished, 1):
            _convert(rows, part_path(self.path, number))
        if self._rows_path not in self._finished:
            _convert(self._rows_path, self.path)
        return self.path


@dataclass(frozen=True)
class _Rows:
    """The hidden file of a part."""

    file: Path
    name: str
    process: int
    number: int


def recover(folder: Path) -> list[Path]:
    """Make the files of logs whose process ended without closing them; return their paths.

    Args:
        folder: The folder of the logs. Logs of processes that run are left alone.

    Raises:
        OSError: A file cannot be written; the rows stay where they are.
    """
    found: dict[tuple[str, int], list[_Rows]] = {}
    for rows in _left_behind(folder):
        found.setdefault((rows.name, rows.process), []).append(rows)
    made = []
    for (name, _process), parts in sorted(found.items()):
        parts.sort(key=lambda rows: rows.number)
        for rows in parts:
            path = folder / name
            target = path if rows is parts[-1] else part_path(path, rows.number)
            if _convert(rows.file, target):
                made.append(target)
    return made


def _left_behind(folder: Path) -> Iterator[_Rows]:
    pattern = re.compile(r"\.(.+\.npz)\.(\d+)\.(\d+)\.rows")
    for file in folder.iterdir() if folder.is_dir() else ():
        found = pattern.fullmatch(file.name)
        if found and not _runs(int(found[2])):
            yield _Rows(file, found[1], int(found[2]), int(found[3]))


def _runs(process: int) -> bool:
    if process == os.getpid():
        return False  # a log of ours that was not closed, or of another with our old number
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _convert(rows: Path, target: Path) -> bool:
    """Turn a hidden file into an ``.npz`` and remove it; False if it has no header."""
    with rows.open("rb") as file:
        try:
            header: dict[str, Any] = json.loads(file.readline())
        except ValueError:  # killed while it was made
            return False
        begin = file.tell()
        widths: dict[str, int | None] = header["widths"]
        total = sum(1 if width is None else width for width in widths.values())
        count = (rows.stat().st_size - begin) // (8 * total) if total else 0
        with (
            replacing(target) as temporary,
            zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive,
        ):
            start = 0
            for name, size in widths.items():
                width = 1 if size is None else size
                shape = (count,) if size is None else (count, size)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as out:
                    described = {"descr": "<f8", "fortran_order": False, "shape": shape}
                    npy.write_array_header_1_0(out, described)
                    for block in _blocks(file, begin, count, total):
                        column = block[:, start : start + width]
                        out.write(np.ascontiguousarray(column).tobytes())
                start += width
            # no array: those of a run in lockstep are the same in every run
            archive.comment = str(header["begun"]).encode()
            for name, value in header["constants"].items():
                with archive.open(f"{name}.npy", "w") as out:
                    array = np.asarray(value) if value != [] else np.array([], dtype=np.str_)
                    npy.write_array(out, array, allow_pickle=False)
    with suppress(OSError):
        rows.unlink()
    return True


def _blocks(file: BinaryIO, begin: int, count: int, width: int) -> Iterator[Array]:
    file.seek(begin)
    while count > 0:
        rows = min(count, _COPIED)
        yield np.frombuffer(file.read(8 * width * rows)).reshape(rows, width)
        count -= rows
