"""A solved slice: arrays in the shape of its grid, a summary, and its files."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.errors import UnknownNameError
from cards_core.files import writing_together
from cards_core.rods.analysis.plate_grid import PlateGrid
from cards_core.rods.analysis.slice_status import SliceOptions, SliceStatus, is_good
from cards_core.typing import Array

METRICS = {
    "min_eigenvalue": ("N/m, N m", "smallest eigenvalue of the plate's stiffness"),
    "margin": ("", "the same relative to home"),
    "curvature": ("1/m", "greatest curvature of a rod"),
    "stress": ("Pa", "greatest stress of a rod (von Mises)"),
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
        if name not in METRICS:
            raise UnknownNameError("metric", name, METRICS)
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
        """Return least and greatest value over the good points, and where."""
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
