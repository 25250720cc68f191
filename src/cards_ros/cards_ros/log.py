"""A log of one row per step that costs a memory copy and keeps the memory flat.

Rows go to a buffer, full buffers to an anonymous temporary file; `RunLog.close` turns them into
an ``.npz`` that appears under its name complete or not at all. Nothing is left behind if the
process is killed.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from cards_core.errors import ShapeError
from cards_core.typing import Array

ROWS_PER_WRITE = 256
"""Rows that are written at once: small enough to take some ten microseconds."""


class RunLog:
    """Collects rows of named columns and writes them as arrays of shape (rows, width).

    Args:
        path: The ``.npz`` to write; its folder is made.
        widths: Column name to number of values; None means a scalar column, shape (rows,).
        constants: Further arrays to store as they are, e.g. the names of the columns' entries.

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
        self._constants = dict(constants or {})
        self._slices: list[slice] = []
        start = 0
        for width in self._widths.values():
            stop = start + (1 if width is None else width)
            self._slices.append(slice(start, stop))
            start = stop
        self._buffer = np.empty((ROWS_PER_WRITE, start))
        self._used = 0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # unlinked at once: the rows vanish with the process unless close() was reached
        self._file = tempfile.TemporaryFile(dir=self.path.parent)  # noqa: SIM115

    def append(self, *values: float | Array) -> None:
        """Add a row: one value or array for each column, in the order of ``widths``."""
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

    def _flush(self) -> None:
        self._file.write(self._buffer[: self._used].data)
        self._used = 0

    def restart(self) -> None:
        """Forget all rows, as after a reset of the simulation."""
        self._used = 0
        self.rows = 0
        self._file.seek(0)
        self._file.truncate()

    def close(self) -> Path:
        """Write the file and return its path; the log cannot be used afterwards.

        The arrays are written column by column, so the memory needed does not grow with the
        length of the run.
        """
        if self._file.closed:
            return self.path
        self._flush()
        self._file.flush()
        width = self._buffer.shape[1]
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
                for (name, size), where in zip(self._widths.items(), self._slices, strict=True):
                    shape = (self.rows,) if size is None else (self.rows, size)
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as out:
                        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
                        npy.write_array_header_1_0(out, header)
                        self._copy_column(out, where, width)
                for name, constant in self._constants.items():
                    with archive.open(f"{name}.npy", "w") as out:
                        npy.write_array(out, np.asarray(constant), allow_pickle=False)
            os.replace(temporary, self.path)
        finally:
            temporary.unlink(missing_ok=True)
            self._file.close()
        return self.path

    def _copy_column(self, out: object, where: slice, width: int) -> None:
        self._file.seek(0)
        while chunk := self._file.read(8 * width * ROWS_PER_WRITE * 16):
            rows = np.frombuffer(chunk).reshape(-1, width)
            out.write(np.ascontiguousarray(rows[:, where]).tobytes())  # type: ignore[attr-defined]
