"""Set-points of the impedance law over time, from a file.

CSV: a column ``time`` [s], and columns ``QUANTITY.MUSCLE`` in any order; an empty cell keeps what
was set before. NPZ: ``time``, shape (n,), and arrays ``QUANTITY``, shape (n, m), with the muscles
in the order of the robot. QUANTITY is ``tension`` [N], ``rest_length`` [m] or ``rest_rate``
[m/s]; what the file does not have stays as the controller's parameters say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cards_core.checks import check_choice
from cards_core.errors import CardsError
from cards_core.table_files import open_csv, read_npz
from cards_core.typing import Array

QUANTITIES = ("tension", "rest_length", "rest_rate")
"""T0, l0 and v0."""


@dataclass(frozen=True, eq=False)
class RecordedCommands:
    """Set-points of m muscles at n times, each held until the next.

    Attributes:
        times: Shape (n,), increasing, from the start of the run, [s].
        values: Of some of `QUANTITIES`, shape (n, m) each; NaN where there is none.
    """

    times: Array
    values: dict[str, Array]

    @property
    def duration(self) -> float:
        """Time of the last set-points, [s]."""
        return float(self.times[-1])

    def at(self, time: float) -> dict[str, Array]:
        """Return the set-points at a time [s], by quantity; nothing before the first."""
        row = int(np.searchsorted(self.times, time, side="right")) - 1
        return {} if row < 0 else {name: values[row] for name, values in self.values.items()}


def read_commands(path: Path, muscles: Sequence[str]) -> RecordedCommands:
    """Read set-points of muscles from a CSV or NPZ file.

    Args:
        path: The file.
        muscles: Names, in the order of the columns of the result.

    Raises:
        CardsError: The file is missing, damaged, or does not fit.
        UnknownNameError: It names a quantity or muscle that does not exist.
    """
    ending = path.suffix.lower()
    if ending not in (".csv", ".npz"):
        raise CardsError(f"{path}: commands in a file ending in '{ending}' (expected: .csv, .npz)")
    if not path.is_file():
        raise CardsError(f"{path} does not exist (expected: a file of commands)")
    times, values = (_csv if ending == ".csv" else _npz)(path, muscles)
    if not times.size:
        raise CardsError(f"{path} has no row (expected: at least one time)")
    bad = ~np.isfinite(times) | (np.diff(times, prepend=-np.inf) <= 0.0)
    if bad.any():
        row = int(np.argmax(bad))
        raise CardsError(
            f"{path}: row {row + 1} has the time {times[row]:g} s (expected: increasing numbers)"
        )
    if not values:
        raise CardsError(f"{path} holds no set-points (expected: {' or '.join(QUANTITIES)})")
    for name, array in values.items():
        least = -np.inf if name == "rest_rate" else 0.0
        for row, column in np.argwhere(np.isinf(array) | (array < least))[:1]:
            value = array[row, column]
            problem = f"infinite, {value:g}," if np.isinf(value) else f"negative, {value:g},"
            expected = "a number, or none" if least < 0.0 else "a number >= 0, or none"
            raise CardsError(
                f"{path}: {name} of '{muscles[column]}' is {problem} at {times[row]:g} s "
                f"(expected: {expected})"
            )
    # what is not said holds from before
    return RecordedCommands(times, {name: _kept(array) for name, array in values.items()})


def _kept(array: Array) -> Array:
    rows = np.where(np.isnan(array), -1, np.arange(len(array))[:, None])
    last = np.maximum.accumulate(rows, axis=0)
    kept = np.take_along_axis(array, np.maximum(last, 0), axis=0)
    return np.where(last < 0, np.nan, kept)


def _csv(path: Path, muscles: Sequence[str]) -> tuple[Array, dict[str, Array]]:
    table = open_csv(path)
    if "time" not in table.head:
        raise CardsError(f"{path}:1: no column 'time' (expected: time, tension.MUSCLE, ...)")
    places: list[tuple[str, int]] = []
    for name in table.head:
        if name == "time":
            places.append(("", 0))
            continue
        quantity, _, muscle = name.partition(".")
        check_choice(quantity, f"quantity of {path}, column '{name}',", QUANTITIES)
        check_choice(muscle, f"muscle of {path}, column '{name}',", muscles)
        places.append((quantity, list(muscles).index(muscle)))
    times: list[float] = []
    rows: list[list[float]] = []
    for line, cells in table.rows():
        named = zip(table.head, cells, strict=True)
        rows.append([table.number(line, n, text, empty=n != "time") for n, text in named])
        times.append(rows[-1][table.head.index("time")])
    values: dict[str, Array] = {}
    for column, (quantity, muscle_index) in enumerate(places):
        if quantity:
            empty = np.full((len(rows), len(muscles)), np.nan)
            values.setdefault(quantity, empty)[:, muscle_index] = [row[column] for row in rows]
    return np.array(times), values


def _npz(path: Path, muscles: Sequence[str]) -> tuple[Array, dict[str, Array]]:
    found = read_npz(path, ("time", *QUANTITIES))
    if "time" not in found or found["time"].ndim != 1:
        raise CardsError(f"{path} holds no 'time' of shape (n,) (expected: one, [s])")
    times = found.pop("time")
    shape = (times.size, len(muscles))
    for name, array in found.items():
        if array.shape != shape:
            raise CardsError(
                f"{path}: '{name}' has shape {array.shape} (expected: {shape}, a row for each "
                f"time and a column for each of {', '.join(muscles)})"
            )
    return times, found
