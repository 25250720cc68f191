"""Tables of the point analyses: CSV with names in the first line, or NPZ.

Columns are called ``quantity/name``: ``q/elbow``, ``qd/elbow``, ``l/biceps``, ``f/biceps``, and
``time``. Columns without a quantity are the one that is asked for. An empty cell is NaN: a point
that has no answer.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cards_core.csv_table import open_csv
from cards_core.errors import CardsError
from cards_core.npz_table import read_npz
from cards_core.robot.model import Tree
from cards_core.typing import Array


def read_table(path: Path, tree: Tree, *, main: str) -> dict[str, Array]:
    """Read a CSV or NPZ table.

    Args:
        path: The file.
        tree: Gives the names and the order of the columns.
        main: Quantity of columns that have a bare name.

    Returns:
        Quantity (``q``, ``qd``, ``qdd``, ``l``, ``ld``, ``f``, ``time``) to array, shape
        (n, width), in the robot's order.

    Raises:
        CardsError: No such file, no table, or columns that do not fit the robot.
    """
    muscles = tuple(muscle.name for muscle in tree.robot.muscles)
    names = {
        "q": tree.position_names,
        "qd": tree.velocity_names,
        "qdd": tree.velocity_names,
        "l": muscles,
        "ld": muscles,
        "f": muscles,
        "time": ("time",),
    }
    if not path.is_file():
        wrong = "is a folder" if path.is_dir() else "does not exist"
        raise CardsError(f"{path} {wrong} (expected: a CSV or NPZ file)")
    out = _read_npz(path, names) if path.suffix == ".npz" else _read_csv(path, names, main)
    counts = {len(values) for values in out.values()}
    if len(counts) > 1:
        raise CardsError(f"{path}: arrays of {sorted(counts)} rows (expected: one number of rows)")
    if counts == {0}:
        raise CardsError(f"{path} has no rows (expected: one for each point)")
    return out


def _read_npz(path: Path, names: dict[str, tuple[str, ...]]) -> dict[str, Array]:
    out = {}
    for key, values in read_npz(path, names).items():
        rows = values[:, None] if key == "time" and values.ndim == 1 else np.atleast_2d(values)
        if rows.ndim != 2 or rows.shape[1] != len(names[key]):
            raise CardsError(
                f"{path}: '{key}' has shape {values.shape} (expected: (n, {len(names[key])}): "
                f"{', '.join(names[key])})"
            )
        out[key] = rows
    return out


def _read_csv(path: Path, names: dict[str, tuple[str, ...]], main: str) -> dict[str, Array]:
    csv = open_csv(path)
    head = csv.head
    wanted = {
        name: (key, i)
        for key, entries in names.items()
        for i, entry in enumerate(entries)
        for name in ((entry,) if key == "time" else (f"{key}/{entry}",))
    }
    wanted |= {name: (main, i) for i, name in enumerate(names[main]) if name != "time"}
    used = {key for key, _ in (wanted[name] for name in head if name in wanted)}
    if not used - {"time"}:
        raise CardsError(
            f"{path}:1: none of the columns {', '.join(head)} is known (expected: "
            f"{main}/{', '.join(names[main])} and others)"
        )
    columns = [(i, *wanted[name]) for i, name in enumerate(head) if name in wanted]
    for column, key, i in columns:  # a bare name and the full one are the same
        if (key, i) in {(k, j) for other, k, j in columns if other < column}:
            raise CardsError(f"{path}:1: column '{head[column]}' is there twice (expected: once)")
    for key in used:
        there = {i for _, k, i in columns if k == key}
        missing = [entry for i, entry in enumerate(names[key]) if i not in there]
        if missing:
            raise CardsError(
                f"{path}:1: no column for {', '.join(missing)} (expected: {key}/NAME for each of "
                f"{', '.join(names[key])})"
            )
    rows = [
        [csv.number(line, head[column], cells[column], empty=True) for column, _, _ in columns]
        for line, cells in csv.rows()
    ]
    table = np.array(rows).reshape(-1, len(columns))
    out = {key: np.empty((len(table), len(names[key]))) for key in used}
    for k, (_, key, i) in enumerate(columns):  # others are results of other kinds, and status
        out[key][:, i] = table[:, k]
    return out
