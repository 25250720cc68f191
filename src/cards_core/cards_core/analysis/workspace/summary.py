"""What a result says at a glance: counts, volume, bounding box, extremes; found in one pass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.analysis.conditions.base import Column, Results
from cards_core.analysis.status import ANSWERS, PointStatus
from cards_core.analysis.workspace.points import BoundGrid, BoundPoints, BoundSamples
from cards_core.typing import Array


class PointSummary:
    """Collects chunks of points, in order.

    Args:
        points: The points.
        columns: Of the condition.
    """

    def __init__(self, points: BoundPoints, columns: tuple[Column, ...]) -> None:
        self._points = points
        self._columns = [c for c in columns if np.dtype(c.dtype).kind == "f"]
        self._counts = np.zeros(256, np.int64)
        self._weight = _CellWeights(points) if isinstance(points, BoundGrid) else None
        self._volume = 0.0
        self._low: Array | None = None
        self._high: Array | None = None
        self._extremes = {c.name: Extremes() for c in self._columns}

    def add(self, start: int, values: Array, columns: Results) -> None:
        """Add points start.. with what varies in them and the condition's columns.

        Args:
            start: Number of the first point.
            values: Varying coordinates of the points, shape (n, k).
            columns: Columns of the condition by name, shape (n,) each.
        """
        status = columns["status"]
        self._counts += np.bincount(status, minlength=256)
        feasible = status == PointStatus.FEASIBLE
        if feasible.any() and values.shape[1]:
            rows = values[feasible]
            low, high = rows.min(axis=0), rows.max(axis=0)
            self._low = low if self._low is None else np.minimum(self._low, low)
            self._high = high if self._high is None else np.maximum(self._high, high)
        if self._weight is not None:
            indices = start + np.flatnonzero(feasible)
            self._volume += float(np.sum(self._weight.of(indices)))
        for name, extremes in self._extremes.items():
            extremes.add(columns[name], values, start)

    def result(self) -> dict[str, Any]:
        """Return the summary as plain data; what there is none of is None."""
        total = int(self._counts.sum())
        feasible = int(self._counts[PointStatus.FEASIBLE])
        names = [c.name for c in self._points.columns]
        out: dict[str, Any] = {
            "points": total,
            "statuses": status_counts(self._counts),
            "fraction_feasible": feasible / total if total else None,
            "answered": int(sum(self._counts[status] for status in ANSWERS)),
            "volume": self._volume_entry(feasible, total),
            "bounding_box": None,
        }
        if self._low is not None and self._high is not None:
            out["bounding_box"] = {
                name: [float(low), float(high)]
                for name, low, high in zip(names, self._low, self._high, strict=True)
            }
        out["metrics"] = {
            c.name: {"unit": c.unit, "text": c.text, **self._extremes[c.name].result(names)}
            for c in self._columns
        }
        return out

    def _volume_entry(self, feasible: int, total: int) -> dict[str, Any] | None:
        """Return the measure of the feasible part, its standard error and its unit."""
        units = [c.unit for c in self._points.columns if c.unit]
        unit = " ".join(
            f"{u}^{n}" if (n := units.count(u)) > 1 else u for u in dict.fromkeys(units)
        )
        if isinstance(self._points, BoundGrid) and self._weight is not None:
            if not self._weight.dimensions:
                return None
            whole = self._weight.whole
            return {"feasible": self._volume, "of": whole, "unit": unit, "standard_error": None}
        if isinstance(self._points, BoundSamples) and total:
            whole, p = self._points.volume, feasible / total
            error = whole * math.sqrt(p * (1.0 - p) / total)
            return {"feasible": whole * p, "of": whole, "unit": unit, "standard_error": error}
        return None


class RaySummary:
    """Collects chunks of intervals of rays, in order.

    Args:
        length: Of a ray.
    """

    def __init__(self, length: float) -> None:
        self._length = length
        self._counts = np.zeros(256, np.int64)
        self._lengths = np.zeros(256)
        self._rays = 0
        self._crossing = 0

    def add(self, columns: Results) -> None:
        """Add the intervals of some rays."""
        status, ray = columns["status"], columns["ray"]
        self._counts += np.bincount(status, minlength=256)
        widths = columns["end"] - columns["begin"]
        self._lengths += np.bincount(status, weights=widths, minlength=256)
        self._rays += len(np.unique(ray))
        self._crossing += len(np.unique(ray[status == PointStatus.FEASIBLE]))

    def result(self) -> dict[str, Any]:
        """Return the summary as plain data."""
        whole = self._rays * self._length
        return {
            "rays": self._rays,
            "rays_with_feasible_part": self._crossing,
            "intervals": int(self._counts.sum()),
            "statuses": status_counts(self._counts),
            "lengths": {
                PointStatus(int(i)).name: float(self._lengths[i])
                for i in np.flatnonzero(self._counts)
            },
            "fraction_feasible": (
                float(self._lengths[PointStatus.FEASIBLE]) / whole if whole else None
            ),
        }


class Extremes:
    """Smallest and largest value of a column and where they first occur."""

    def __init__(self) -> None:
        self._best: list[tuple[float, int, Array] | None] = [None, None]

    def add(self, column: npt.NDArray[Any], values: Array, start: int) -> None:
        """Look at the points start.. with what varies in them.

        Args:
            column: Values of the column, shape (n,).
            values: Varying coordinates of the points, shape (n, k).
            start: Number of the first point.
        """
        finite = np.flatnonzero(np.isfinite(column))
        if not len(finite):
            return
        for k, (pick, sign) in enumerate(((np.argmin, 1.0), (np.argmax, -1.0))):
            row = int(finite[pick(column[finite])])
            value = float(column[row])
            best = self._best[k]
            if best is None or sign * value < sign * best[0]:
                self._best[k] = (value, start + row, values[row].copy())

    def result(self, names: list[str]) -> dict[str, Any]:
        """Return value, index and coordinates of both."""
        out: dict[str, Any] = {}
        for key, best in zip(("min", "max"), self._best, strict=True):
            out[key] = None
            if best is not None:
                place = {name: float(v) for name, v in zip(names, best[2], strict=True)}
                out[key] = {"value": best[0], "index": best[1], "at": place}
        return out


class _CellWeights:
    """Size of the cell around every point of a grid; cells of the border are half as wide.

    Attributes:
        dimensions: Number of axes with more than one value.
        whole: Sum over all points: the product of the ranges.
    """

    def __init__(self, grid: BoundGrid) -> None:
        self._shape = grid.shape
        self._factors = []
        for axis in grid.axis_values:
            factor = np.ones(len(axis))
            if len(axis) > 1:
                factor *= abs(float(axis[-1] - axis[0])) / (len(axis) - 1)
                factor[[0, -1]] *= 0.5
            self._factors.append(factor)
        spread = [abs(float(a[-1] - a[0])) for a in grid.axis_values if len(a) > 1]
        self.dimensions = len(spread)
        self.whole = math.prod(spread)

    def of(self, indices: npt.NDArray[np.intp]) -> Array:
        weights = np.ones(len(indices))
        if self._factors:
            places = np.unravel_index(indices, self._shape)
            for factor, place in zip(self._factors, places, strict=True):
                weights *= factor[place]
        return weights


def status_counts(counts: npt.NDArray[np.int64]) -> dict[str, int]:
    """Return name to number of the statuses that occur."""
    return {PointStatus(int(i)).name: int(counts[i]) for i in np.flatnonzero(counts)}
