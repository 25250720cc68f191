"""A slice of the workspace: plate poses on a grid, their status and criteria, the solved slice.

The grid is a line, a plane or a block; the other coordinates are held. ``x``, ``y``, ``z`` are the
position of the plate in the world, [m]; ``rx``, ``ry``, ``rz`` the rotation vector r, [rad], in
world axes, by which the plate is turned from home::

    p = (x, y, z)        R = exp([r]x) R_home

What a grid does not mention is as at home.
"""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.analysis.workspace import Grid, PointSetError
from cards_core.checks import check_choice, finite_array, finite_number
from cards_core.files import writing_together
from cards_core.rods.robots.robot import PLATE_COORDINATES, RodRobot
from cards_core.rods.tracking.continuation import STOP_FRACTION, WARN_FRACTION
from cards_core.spatial import quaternion_matrix, rotation_exp
from cards_core.typing import Array


def find_coordinate(robot: RodRobot, name: str) -> str:
    """Return the name of a plate coordinate that may be prescribed.

    Raises:
        UnknownNameError: The plate has no such coordinate.
        PointSetError: It results from equilibrium and cannot be prescribed.
    """
    check_choice(name, "plate coordinate", robot.coordinates)
    if name not in robot.controlled:
        raise PointSetError(
            f"plate coordinate '{name}' of {robot.name} follows from equilibrium (expected: "
            f"{', '.join(robot.controlled)}, which its joints control)"
        )
    return name


class PlateGrid:
    """The poses of a grid.

    Args:
        robot: The robot.
        grid: Axes named by plate coordinates.
        home: Plate pose at home, shape (4, 4).

    Attributes:
        shape: Number of values of every axis; the last is the fastest.
        count: Number of points.
        names: Of the axes.
        axis_values: Values of every axis.
        fixed: Values of the fixed coordinates and are not at home, by name.

    Raises:
        PointSetError: A coordinate that is given twice or cannot be prescribed; no points.
        UnknownNameError: No such coordinate.
    """

    def __init__(self, robot: RodRobot, grid: Grid, home: Array) -> None:
        self.names = tuple(find_coordinate(robot, axis.name) for axis in grid.axes)
        self.fixed = {find_coordinate(robot, n): float(v) for n, v in grid.fixed.items()}
        given = (*self.names, *self.fixed)
        for name in given:
            if given.count(name) > 1:
                raise PointSetError(f"'{name}' is given twice (expected: once)")
        for name, value in self.fixed.items():
            if not np.isfinite(value):
                raise PointSetError(f"the value of '{name}' is {value} (expected: a number)")
        if not grid.count:
            raise PointSetError("a grid without points (expected: at least one value per axis)")
        self.robot, self.grid, self.home = robot, grid, home
        self.shape, self.count = grid.shape, grid.count
        self.axis_values = [axis.values() for axis in grid.axes]

    @property
    def units(self) -> tuple[str, ...]:
        """``m`` or ``rad`` of every axis."""
        return tuple(unit_of(name) for name in self.names)

    def coordinates(self, index: int) -> Array:
        """Return the values of the axes at a point, shape (axes,)."""
        places = np.unravel_index(index, self.shape) if self.shape else ()
        return np.array([v[k] for v, k in zip(self.axis_values, places, strict=True)])

    def table(self) -> Array:
        """Return the values of the axes at all points, shape (count, axes)."""
        if not self.shape:
            return np.empty((1, 0))
        meshes = np.meshgrid(*self.axis_values, indexing="ij")
        return np.stack([mesh.ravel() for mesh in meshes], axis=1)

    def pose(self, index: int) -> Array:
        """Return the pose of a point, shape (4, 4)."""
        pose, turn = self.home.copy(), np.zeros(3)
        values = dict(zip(self.names, self.coordinates(index), strict=True)) | self.fixed
        for name, value in values.items():
            slot = PLATE_COORDINATES.index(name)
            if slot < 3:
                pose[slot, 3] = value
            else:
                turn[slot - 3] = value
        if turn.any():
            pose[:3, :3] = quaternion_matrix(rotation_exp(turn)) @ self.home[:3, :3]
        return pose

    def nearest_home(self) -> int:
        """Return the index of the point that is nearest to home along every axis."""
        places = []
        for name, values in zip(self.names, self.axis_values, strict=True):
            slot = PLATE_COORDINATES.index(name)
            home = self.home[slot, 3] if slot < 3 else 0.0
            places.append(int(np.argmin(np.abs(values - home))))
        return int(np.ravel_multi_index(places, self.shape)) if places else 0

    def cell_sizes(self) -> Array:
        """Return the size of the cell around every point, (count,); half at the borders."""
        sizes = np.ones(1)
        for values in self.axis_values:
            factor = np.ones(len(values))
            if len(values) > 1:
                factor *= abs(float(values[-1] - values[0])) / (len(values) - 1)
                factor[[0, -1]] *= 0.5
            sizes = np.outer(sizes, factor).ravel()
        return sizes


def unit_of(name: str) -> str:
    """Return the unit of a plate coordinate."""
    return "m" if PLATE_COORDINATES.index(name) < 3 else "rad"


class SliceStatus(IntEnum):
    """Status of one plate pose; where several hold, the first of `SEVERITY`."""

    OK = 0
    """A stable equilibrium that the robot gets to from home without leaving good points."""
    NEAR_LIMIT = 1
    """The same, but the plate's smallest stiffness is a small part of that at home."""
    YIELD = 2
    """The same, but a rod is strained beyond what its material declares to bear."""
    CUT_OFF = 3
    """A good equilibrium, but the ways to it within the slice lead through points that are not."""
    JOINT_LIMIT = 4
    """An equilibrium that needs a joint outside its limits."""
    UNSTABLE = 5
    """An equilibrium that does not hold: the plate's smallest stiffness is <= 0, or a rod
    collapses even if the plate is held."""
    UNREACHABLE = 6
    """No equilibrium was found, and a rod is certainly too short for the pose."""
    NOT_FOUND = 7
    """No equilibrium was found from any neighbour. That is no proof that there is none."""


SEVERITY = (
    SliceStatus.UNSTABLE,
    SliceStatus.JOINT_LIMIT,
    SliceStatus.CUT_OFF,
    SliceStatus.NEAR_LIMIT,
    SliceStatus.YIELD,
    SliceStatus.OK,
)
"""Statuses of points with an equilibrium, most serious first."""

GOOD = (SliceStatus.OK, SliceStatus.NEAR_LIMIT, SliceStatus.YIELD)
"""Statuses of the reachable, stable workspace."""

UNKNOWN = 255
"""Of a point that was not looked at yet; never in a result."""


def is_good(status: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return which points belong to the reachable, stable workspace."""
    return np.isin(status, [int(s) for s in GOOD])


@dataclass(frozen=True)
class SliceOptions:
    """Criteria for good points.

    Attributes:
        near: Smallest stiffness, relative to home, below which a point is NEAR_LIMIT.
        stop: The same below which a tracker stops: no way leads on from there.
        wrench: External wrench on the plate about its origin, shape (6,), [N, N m].
        frame: ``world`` (dead load) or ``plate`` (it turns with the plate).
    """

    near: float = WARN_FRACTION
    stop: float = STOP_FRACTION
    wrench: Array = field(default_factory=lambda: np.zeros(6))
    frame: str = "world"

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            CardsError: A share that is not between 0 and 1, a wrench that is none.
        """
        for name in ("near", "stop"):
            finite_number(getattr(self, name), f"{name} (share of home)", at_least=0.0, below=1.0)
        finite_array(self.wrench, "wrench", (6,))


METRICS = {
    "min_eigenvalue": ("N/m, N m", "smallest eigenvalue of the plate's stiffness"),
    "margin": ("", "the same relative to home"),
    "curvature": ("1/m", "maximum curvature of a rod"),
    "stress": ("Pa", "maximum stress of a rod (von Mises)"),
    "strain": ("", "the same divided by Young's modulus"),
    "rod_index": ("", "number of ways in which rods collapse while the plate is held"),
}
"""Numbers of a point: name to unit and meaning."""


@dataclass(frozen=True, eq=False)
class SliceResult:
    """A solved grid of plate poses.

    Attributes:
        robot: Name.
        joints: Names of the entries of q.
        grid: The poses.
        options: Wrench and bounds.
        reference: Smallest eigenvalue of K at home.
        status: `SliceStatus` in the shape of the grid.
        numbers: min_eigenvalue, curvature, stress, strain, rod_index, shape (.., 5); NaN without
            equilibrium.
        q: Joint coordinates, shape (.., n), [m] or [rad].
        missing: By how much the worst rod is too short for certain, [m]; NaN where that is not so.
        notes: What a person should know, in plain words.
    """

    robot: str
    joints: tuple[str, ...]
    grid: PlateGrid
    options: SliceOptions
    reference: float
    status: npt.NDArray[np.uint8]
    numbers: Array
    q: Array
    missing: Array
    notes: tuple[str, ...] = ()

    @cached_property
    def good(self) -> npt.NDArray[np.bool_]:
        """Where the robot can be: stable, within its joints, connected with home."""
        return is_good(self.status)

    def metric(self, name: str) -> Array:
        """Return one of `METRICS` in the shape of the grid. Raises `UnknownNameError`."""
        check_choice(name, "metric", METRICS)
        if name == "margin":
            return np.asarray(self.numbers[..., 0] / self.reference)
        columns = [metric for metric in METRICS if metric != "margin"]
        return np.asarray(self.numbers[..., columns.index(name)])

    def summary(self) -> dict[str, Any]:
        """Return counts, size and extremes as plain data."""
        good, grid = self.good, self.grid
        counts = {s.name: int((self.status == s).sum()) for s in SliceStatus}
        spread = [abs(float(v[-1] - v[0])) for v in grid.axis_values if len(v) > 1]
        units = [u for u, v in zip(grid.units, grid.axis_values, strict=True) if len(v) > 1]
        unit = " ".join(f"{u}^{k}" if (k := units.count(u)) > 1 else u for u in set(units))
        table = grid.table()
        box = None
        if good.any():
            rows = table[good.ravel()]
            box = {
                name: [float(low), float(high)]
                for name, low, high in zip(grid.names, rows.min(0), rows.max(0), strict=True)
            }
        return {
            "robot": self.robot,
            "kind": "slice",
            "points": grid.count,
            "statuses": {name: count for name, count in counts.items() if count},
            "fraction_good": float(good.mean()),
            "axes": {
                name: [float(v[0]), float(v[-1]), len(v)]
                for name, v in zip(grid.names, grid.axis_values, strict=True)
            },
            "fixed": grid.fixed,
            "wrench": [float(x) for x in self.options.wrench],
            "wrench_frame": self.options.frame,
            "home_min_eigenvalue": self.reference,
            "size": {
                "good": float(grid.cell_sizes()[good.ravel()].sum()),
                "of": float(np.prod(spread)),
                "unit": unit,
            }
            if spread
            else None,
            "bounding_box": box,
            "metrics": {
                name: {"unit": unit, "text": text, **self._extremes(name, table)}
                for name, (unit, text) in METRICS.items()
            },
            "notes": list(self.notes),
        }

    def _extremes(self, name: str, table: Array) -> dict[str, Any]:
        """Return minimum and maximum value over the good points, and where."""
        values = np.where(self.good, self.metric(name), np.nan).ravel()
        out: dict[str, Any] = {"min": None, "max": None}
        if np.isfinite(values).any():
            for key, pick in (("min", np.nanargmin), ("max", np.nanargmax)):
                row = int(pick(values))
                place = dict(zip(self.grid.names, map(float, table[row]), strict=True))
                out[key] = {"value": float(values[row]), "index": row, "at": place}
        return out

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write ``result.npz``, ``result.csv`` and ``summary.json``, each whole or not at all.

        Raises:
            OSError: The folder cannot be written.
        """
        with writing_together(folder) as work:
            self._write_npz(work / "result.npz")
            self._write_csv(work / "result.csv")
            text = json.dumps(self.summary(), indent=1) + "\n"
            (work / "summary.json").write_text(text, encoding="utf-8")
        return [Path(folder, name) for name in ("result.npz", "result.csv", "summary.json")]

    def _write_npz(self, path: Path) -> None:
        arrays: dict[str, npt.NDArray[Any]] = {
            "axes": np.array(self.grid.names, dtype=str),
            "status": self.status,
            "statuses": np.array([status.name for status in SliceStatus]),
            "joints": np.array(self.joints),
            "q": self.q,
            "missing": self.missing,
            **{name: self.metric(name) for name in METRICS},
        }
        for name, values in zip(self.grid.names, self.grid.axis_values, strict=True):
            arrays[f"axis_{name}"] = values
        np.savez(path, allow_pickle=False, **arrays)

    def _write_csv(self, path: Path) -> None:
        metrics = [self.metric(name).ravel() for name in METRICS]
        q = self.q.reshape(-1, len(self.joints))
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            joints = [f"q/{name}" for name in self.joints]
            writer.writerow([*self.grid.names, "status", *METRICS, *joints, "missing"])
            rows = zip(
                self.grid.table(), self.status.flat, zip(*metrics, strict=True), q,
                self.missing.flat, strict=True,
            )  # fmt: skip
            for place, status, values, joint_values, missing in rows:
                numbers = [*values, *joint_values, missing]
                cells = [repr(float(x)) if np.isfinite(x) else "" for x in numbers]
                name = SliceStatus(int(status)).name
                writer.writerow([*(repr(float(x)) for x in place), name, *cells])
