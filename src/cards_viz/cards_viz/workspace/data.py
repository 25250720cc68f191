"""The data that pictures of workspaces use: columns by name, thinned points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.analysis.status import PointStatus
from cards_core.analysis.workspace import Grid, Result
from cards_core.errors import UnknownNameError
from cards_core.typing import Array

STATUS_COLORS = {
    PointStatus.FEASIBLE: "#2d8f5a",
    PointStatus.INFEASIBLE: "#d5d8db",
    PointStatus.NOT_FINITE: "#c23b4b",
    PointStatus.NO_MUSCLES: "#8a5a2b",
    PointStatus.TOO_FEW_MUSCLES: "#b08a5a",
    PointStatus.RANK_DEFICIENT: "#22a3b5",
    PointStatus.UNPHYSICAL_INERTIA: "#7d57b5",
    PointStatus.NOT_CONVERGED: "#d1639f",
    PointStatus.UNREACHABLE: "#5b6770",
    PointStatus.OUTSIDE_LIMITS: "#a9b7c4",
    PointStatus.PATH_NOT_FOUND: "#3d3d3d",
}
"""Colours of statuses that have no number to colour them by."""


@dataclass(frozen=True)
class Columns:
    """Names of a result's columns.

    Attributes:
        coordinates: What varies.
        metrics: Columns of floats of the condition.
        units: By name.
    """

    coordinates: tuple[str, ...]
    metrics: tuple[str, ...]
    units: dict[str, str]

    def metric(self, name: str | None) -> str | None:
        """Return a metric by name, or the first one, or None if there is none.

        Raises:
            UnknownNameError: There is no such metric.
        """
        if name is not None and name not in self.metrics:
            raise UnknownNameError("metric", name, self.metrics)
        return name or (self.metrics[0] if self.metrics else None)

    def label(self, name: str) -> str:
        """Return ``name [unit]``."""
        unit = self.units.get(name, "")
        return f"{name} [{unit}]" if unit else name


def columns_of(result: Result) -> Columns:
    """Return the names of a result's columns."""
    about: dict[str, dict[str, str]] = result.metadata["columns"]
    names = list(about)
    split = names.index("status")
    coordinates = tuple(n for n in names[:split] if about[n]["text"] == "coordinate")
    units = {name: about[name]["unit"] for name in names}
    return Columns(coordinates, tuple(names[split + 1 :]), units)


@dataclass(frozen=True)
class GridPart:
    """Evenly thinned values of some axes of a grid, with the other axes held.

    Attributes:
        axes: Values of each axis that varies.
        names: Of these axes.
        rows: Indices of the points in the result, in the shape of the axes.
        held: Values of the others.
    """

    axes: list[Array]
    names: list[str]
    rows: npt.NDArray[np.intp]
    held: dict[str, float]

    def values(self, result: Result, name: str) -> npt.NDArray[Any]:
        """Return a column in the shape of the axes."""
        order = np.argsort(self.rows, axis=None)
        flat = np.empty(self.rows.size, dtype=np.float64)
        flat[order] = result.rows(self.rows.ravel()[order], name)[name]
        return flat.reshape(self.rows.shape)


def grid_part(result: Result, free: list[int], limits: list[int], at: dict[int, int]) -> GridPart:
    """Choose points of a grid.

    Args:
        result: Of a grid.
        free: Axes that vary.
        limits: Most values of each of them.
        at: Index of the value of other axes; those that are not named are at their middle.
    """
    grid = result.job.points
    assert isinstance(grid, Grid)
    chosen: list[npt.NDArray[np.intp]] = []
    for k, count in enumerate(grid.shape):
        if k in free:
            stride = max(1, math.ceil(count / limits[free.index(k)]))
            chosen.append(np.arange(0, count, stride))
        else:
            chosen.append(np.array([at.get(k, count // 2)]))
    rows = np.ravel_multi_index(np.ix_(*chosen), grid.shape).transpose(
        [*free, *(k for k in range(len(grid.shape)) if k not in free)]
    )
    axes = [grid.axes[k].values()[chosen[k]] for k in free]
    full = columns_of(result).coordinates
    held = {
        full[k]: float(axis.values()[chosen[k][0]])
        for k, axis in enumerate(grid.axes)
        if k not in free
    }
    names = [full[k] for k in free]
    return GridPart(axes, names, rows.reshape([len(a) for a in axes]), held)


def scattered(result: Result, most: int) -> npt.NDArray[np.intp]:
    """Return the rows of at most about ``most`` points, spread evenly over a result."""
    grid = result.job.points
    total = int(result.summary["points"])
    if isinstance(grid, Grid) and grid.axes and total > most:
        # thin each axis evenly, so that the picture stays a grid
        limits = list(grid.shape)
        while math.prod(limits) > most:
            largest = int(np.argmax(limits))
            limits[largest] = max(1, int(limits[largest] * 0.95))
        part = grid_part(result, list(range(len(limits))), limits, {})
        return np.sort(part.rows.ravel())
    stride = max(1, math.ceil(total / most))
    return np.arange(0, total, stride)


def varies(values: Array) -> bool:
    """Return whether there are two different finite values."""
    finite = values[np.isfinite(values)]
    return bool(finite.size and finite.max() > finite.min())
