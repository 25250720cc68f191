"""Files with what was measured of a rod robot: points of its rods, wrenches at their bases.

CSV with names in the first line. Points: ``limb, x, y, z`` and, where it is known, ``s``, the arc
length from the rod's start. Base wrenches: ``limb, fx, fy, fz, mx, my, mz``. A limb is a name.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from cards_core.csv_table import CsvTable, open_csv
from cards_core.errors import CardsError
from cards_core.rods.analysis.measurements import ShapeMeasurement
from cards_core.rods.robots.robot import RodRobot
from cards_core.typing import Array

POINTS = ("x", "y", "z")
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")


def read_shapes(path: Path, robot: RodRobot, sigma: float) -> tuple[ShapeMeasurement, ...]:
    """Read points of rods.

    Args:
        path: CSV file.
        robot: Knows the limbs.
        sigma: Standard deviation of each coordinate, [m].

    Raises:
        CardsError: No such file, columns or limbs, or a cell that is no number.
    """
    rows, csv = _read(path, ("limb", *POINTS))
    columns = (*POINTS, "s") if "s" in csv.head else POINTS
    names = [limb.name for limb in robot.limbs]
    found: dict[int, list[list[float]]] = {}
    for number, row in rows:
        limb = _limb(row["limb"], names, f"{path}:{number}")
        cells = [csv.number(number, name, row[name]) for name in columns]
        found.setdefault(limb, []).append(cells)
    out = []
    for limb, points in sorted(found.items()):
        table = np.array(points)
        s = table[:, 3] if "s" in columns else None
        out.append(ShapeMeasurement(limb, table[:, :3], sigma, s))
    return tuple(out)


def read_bases(path: Path, robot: RodRobot) -> Array:
    """Read wrenches at the bases, shape (n, 6).

    Raises:
        CardsError: No such file or columns, limbs that are missing or there twice.
    """
    rows, csv = _read(path, ("limb", *WRENCH))
    names = [limb.name for limb in robot.limbs]
    out = np.full((robot.n_limbs, 6), np.nan)
    for number, row in rows:
        limb = _limb(row["limb"], names, f"{path}:{number}")
        if np.isfinite(out[limb]).any():
            raise CardsError(f"{path}:{number}: limb '{names[limb]}' is there twice")
        out[limb] = [csv.number(number, name, row[name]) for name in WRENCH]
    missing = [name for name, row in zip(names, out, strict=True) if np.isnan(row).any()]
    if missing:
        raise CardsError(f"{path}: no row of {', '.join(missing)} (expected: one of every limb)")
    return out


def write_shapes(path: Path, robot: RodRobot, shapes: Iterable[ShapeMeasurement]) -> None:
    """Write points of rods as `read_shapes` reads them."""
    shapes = tuple(shapes)
    known = all(shape.s is not None for shape in shapes)
    head = ["limb", *POINTS, "s"] if known else ["limb", *POINTS]
    rows = []
    for shape in shapes:
        s = shape.s if known and shape.s is not None else np.empty((len(shape.points), 0))
        for point, at in zip(shape.points, s, strict=True):
            rows.append([robot.limbs[shape.limb].name, *point, *np.atleast_1d(at)])
    _write(path, head, rows)


def write_bases(path: Path, robot: RodRobot, wrenches: Array) -> None:
    """Write wrenches at the bases as `read_bases` reads them."""
    rows = [[limb.name, *row] for limb, row in zip(robot.limbs, wrenches, strict=True)]
    _write(path, ["limb", *WRENCH], rows)


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows([row[0], *(repr(float(str(x))) for x in row[1:])] for row in rows)


def _read(path: Path, wanted: Sequence[str]) -> tuple[list[tuple[int, dict[str, str]]], CsvTable]:
    csv = open_csv(path)
    missing = [name for name in wanted if name not in csv.head]
    if missing:
        raise CardsError(
            f"{path}:1: no column {', '.join(missing)} (expected: {', '.join(wanted)})"
        )
    rows = [(line, dict(zip(csv.head, cells, strict=True))) for line, cells in csv.rows()]
    return rows, csv


def _limb(text: str, names: Sequence[str], place: str) -> int:
    if text not in names:
        raise CardsError(f"{place}: limb '{text}' (expected: one of {', '.join(names)})")
    return list(names).index(text)
