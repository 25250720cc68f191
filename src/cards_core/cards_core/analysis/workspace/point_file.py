"""Points from files: CSV, Parquet, NPZ. Rows with NaN are points that have no answer.

A file is read once, in blocks, into a plain table of doubles; jobs keep that table in their
folder, so that they can be resumed without the file and read any rows without the others.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cards_core.analysis.conditions.base import Column
from cards_core.analysis.workspace.coordinates import Coordinate, Coordinates, PointSetError
from cards_core.analysis.workspace.points import check_once, coordinate_column
from cards_core.checks import brief
from cards_core.errors import UnknownNameError
from cards_core.robot.model import QUATERNION_TOLERANCE, Tree
from cards_core.table_files import open_csv, read_npz
from cards_core.typing import Array


def pyarrow_module() -> Any:
    """Return the package ``pyarrow``, which reads Parquet files, with its module ``parquet``."""
    # it takes 0.2 s to import, and most results are never read by the process that starts the job
    import pyarrow.parquet

    return pyarrow


COORDINATES = "q/"
"""Before the names of coordinates in tables of point analyses."""

BLOCK_ROWS = 65536
"""Rows read at a time."""

SUFFIXES = (".csv", ".parquet", ".npz")


@dataclass(frozen=True)
class PointTable:
    """Points that were read.

    Attributes:
        names: Of the columns: coordinates, or w, x, y, z of ball joints.
        sha256: Of the values.
        rows: Number of points.
        fixed: Values by coordinate of what is not in the table; the rest is at home.
        data: The values, shape (rows, len(names)), a map of a file. Not part of the JSON.
    """

    names: tuple[str, ...]
    sha256: str
    rows: int
    fixed: Mapping[str, float] = field(default_factory=dict)
    data: Array | None = field(default=None, compare=False, repr=False)
    kind: ClassVar[str] = "file"

    @property
    def count(self) -> int:
        """Number of points."""
        return self.rows

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "kind": self.kind,
            "names": list(self.names),
            "sha256": self.sha256,
            "rows": self.rows,
            "fixed": dict(self.fixed),
        }

    def bind(self, tree: Tree) -> BoundTable:
        """Return the points of a robot; see `PointSet.bind`."""
        return BoundTable(self, Coordinates(tree))


class BoundTable:
    """See `BoundPoints`."""

    def __init__(self, table: PointTable, coordinates: Coordinates) -> None:
        self._data = table.data
        self.count = table.rows
        self._coordinates = coordinates
        self._scalars, self._balls = columns_of(table.names, coordinates)
        self._fixed = coordinates.find_values(table.fixed)
        check_once([c.name for c in (*self._scalars, *self._fixed)])
        units = {c.name: c.unit for c in self._scalars}
        names = [
            coordinates.find(n).name if n in self._scalars.values() else n for n in table.names
        ]
        self.columns: tuple[Column, ...] = tuple(
            coordinate_column(name, units.get(name, "")) for name in names
        )
        self._slots = [table.names.index(name) for name in self._scalars.values()]
        self.fixed = {c.name: value for c, value in self._fixed.items()}

    def values(self, start: int, stop: int) -> Array:
        """Return rows start..stop-1 of the table, shape (n, len(columns))."""
        assert self._data is not None, "the values of a point file stay with the job's folder"
        return np.array(self._data[start:stop])

    def q(self, values: Array) -> Array:
        """Return coordinates, shape (n, nq), from rows of `values`."""
        balls = {start: values[:, slots] for start, slots in self._balls.items()}
        return self._coordinates.compose(
            list(self._scalars), values[:, self._slots], self._fixed, balls
        )


def columns_of(
    names: tuple[str, ...], coordinates: Coordinates
) -> tuple[dict[Coordinate, str], dict[int, list[int]]]:
    """Sort the columns of a table into coordinates and quaternions.

    Returns:
        Coordinate to the column's name, and first entry in q of a ball joint to the columns of
        w, x, y, z.

    Raises:
        UnknownNameError: A column is no coordinate.
        PointSetError: A quaternion is not complete, or a column is there twice.
    """
    check_once(list(names))
    balls: dict[int, list[int]] = {}
    taken: set[str] = set()
    for ball, start in coordinates.balls.items():
        wanted = [f"{ball}.{c}" for c in "wxyz"]
        here = [name for name in wanted if name in names]
        if here and len(here) < 4:
            missing = ", ".join(name for name in wanted if name not in here)
            raise PointSetError(f"the quaternion of '{ball}' lacks {missing} (expected: all four)")
        if here:
            balls[start] = [names.index(name) for name in wanted]
            taken |= set(wanted)
    scalars: dict[Coordinate, str] = {}
    for name in names:
        if name not in taken:
            coordinate = coordinates.find(name)
            if coordinate in scalars or (coordinate.component >= 0 and coordinate.q in balls):
                raise PointSetError(f"'{coordinate.name}' is given twice (expected: once)")
            scalars[coordinate] = name
    return scalars, balls


def read_points(
    path: str | os.PathLike[str], tree: Tree, *, fixed: Mapping[str, float] | None = None
) -> PointTable:
    """Read points from a file.

    CSV (with a head line) and Parquet: one column per coordinate, by name; columns whose name is
    no coordinate are an error in CSV and passed over in Parquet, where the results of another job
    may be the points of this one. A CSV table of a point analysis has ``q/`` before the names of
    its coordinates; its other columns are passed over. NPZ: one array per coordinate, or ``q`` of
    shape (n, nq).

    Args:
        path: The file; its suffix says what it is.
        tree: The robot's.
        fixed: Values by coordinate of what is not in the file.

    Raises:
        PointSetError: The file cannot be read; names the file, and row or column where it can.
        CardsError: Likewise, of a CSV file, with the line, or of an NPZ file, with the array.
        UnknownNameError: A column is no coordinate.
    """
    file = Path(path)
    if file.suffix.lower() not in SUFFIXES:
        raise PointSetError(f"{file}: unknown kind of file (expected: {', '.join(SUFFIXES)})")
    if not file.is_file():
        wrong = "is a folder" if file.is_dir() else "no such file"
        raise PointSetError(f"{file}: {wrong} (expected: {', '.join(SUFFIXES)})")
    coordinates = Coordinates(tree)
    names, blocks = _open(file, tree, coordinates)
    if not names:
        raise PointSetError(
            f"{file}: no column is a coordinate (expected: "
            f"{', '.join(c.name for c in coordinates.all)})"
        )
    _, balls = columns_of(names, coordinates)
    digest = hashlib.sha256()
    rows = 0
    storage = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the map of it
    for block in blocks:
        table = np.ascontiguousarray(block, dtype="<f8")
        for slots in balls.values():
            _normalise(table, slots, file, rows, names)
        content = table.tobytes()
        digest.update(content)
        storage.write(content)
        rows += len(table)
    storage.flush()
    data = (
        np.memmap(storage, dtype="<f8", mode="r", shape=(rows, len(names)))
        if rows
        else np.zeros((0, len(names)))
    )
    return PointTable(names, digest.hexdigest(), rows, dict(fixed or {}), data)


def _normalise(
    table: Array, slots: list[int], file: Path, row: int, names: tuple[str, ...]
) -> None:
    """Give quaternions the length 1; refuse those that are none. NaN passes."""
    quaternions = table[:, slots]
    length = np.linalg.norm(quaternions, axis=1)
    bad = np.abs(length - 1.0) > QUATERNION_TOLERANCE
    if bad.any():
        first = int(np.argmax(bad))
        raise PointSetError(
            f"{file}: row {row + first + 1}: the quaternion of "
            f"'{names[slots[0]].removesuffix('.w')}' has length {length[first]:.6g} "
            "(expected: w, x, y, z of length 1)"
        )
    table[:, slots] = quaternions / length[:, None]


def _open(
    file: Path, tree: Tree, coordinates: Coordinates
) -> tuple[tuple[str, ...], Iterator[Array]]:
    """Return names of the columns and the rows in blocks."""
    match file.suffix.lower():
        case ".csv":
            return _open_csv(file, coordinates)
        case ".parquet":
            return _open_parquet(file, coordinates)
        case ".npz":
            return _open_npz(file, tree)
        case suffix:
            raise UnknownNameError("kind of file", suffix, SUFFIXES)


def _open_csv(file: Path, coordinates: Coordinates) -> tuple[tuple[str, ...], Iterator[Array]]:
    csv = open_csv(file)
    # the tables of point analyses have other columns too, and say which are the coordinates
    places = [i for i, name in enumerate(csv.head) if name.startswith(COORDINATES)]
    places = places or list(range(len(csv.head)))
    names = tuple(csv.head[i].removeprefix(COORDINATES) for i in places)
    try:
        columns_of(names, coordinates)
    except (UnknownNameError, PointSetError) as error:
        raise PointSetError(f"{file}:1: {error}") from error

    def blocks() -> Iterator[Array]:
        rows: list[list[float]] = []
        for line, cells in csv.rows():
            rows.append([csv.number(line, csv.head[i], cells[i], empty=True) for i in places])
            if len(rows) == BLOCK_ROWS:
                yield np.array(rows)
                rows = []
        yield np.array(rows).reshape(-1, len(names))

    return names, blocks()


def _open_parquet(file: Path, coordinates: Coordinates) -> tuple[tuple[str, ...], Iterator[Array]]:
    pa = pyarrow_module()
    try:
        parquet = pa.parquet.ParquetFile(file)
        columns = tuple(parquet.schema_arrow.names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise PointSetError(f"{file}: {brief(error)}") from error
    quaternions = {f"{ball}.{c}" for ball in coordinates.balls for c in "wxyz"}
    known = quaternions | {c.name for c in coordinates.all}
    names = tuple(name for name in columns if name in known)
    if len(names) == 0:
        # perhaps short names; then all columns must be coordinates
        names = columns
        columns_of(names, coordinates)

    def blocks() -> Iterator[Array]:
        try:
            for batch in parquet.iter_batches(BLOCK_ROWS, columns=list(names)):
                values = [
                    batch.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False)
                    for name in names
                ]
                yield np.column_stack(values)
        except (pa.ArrowException, OSError) as error:
            raise PointSetError(f"{file}: {brief(error)}") from error

    return names, blocks()


def _open_npz(file: Path, tree: Tree) -> tuple[tuple[str, ...], Iterator[Array]]:
    arrays = read_npz(file)
    if "q" in arrays:
        names = tuple(tree.position_names)
        table = arrays["q"]
        if table.ndim != 2 or table.shape[1] != tree.nq:
            raise PointSetError(
                f"{file}: q has shape {table.shape} (expected: (n, {tree.nq}), one column "
                f"for each of {', '.join(names)})"
            )
    else:
        names = tuple(arrays)
        try:
            table = np.column_stack(list(arrays.values()))
        except ValueError as error:
            raise PointSetError(f"{file}: {error}") from error
    parts = range(0, len(table), BLOCK_ROWS)
    return names, (table[first : first + BLOCK_ROWS] for first in parts)
