"""Pictures of a workspace: maps of slices, scattered points, rays; PNG, SVG and HTML.

Where the condition holds, colour is a metric; elsewhere it is the status. The HTML file is a cloud
of points to turn, cut and ask, without any network.
"""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from cards_core.analysis.status import PointStatus
from cards_core.analysis.workspace import Grid, Rays, Result
from cards_core.analysis.workspace.coordinates import Coordinates
from cards_core.errors import UnknownNameError
from cards_core.files import writing_together
from cards_core.typing import Array
from cards_viz.colors import colors
from cards_viz.plots.drawing import (
    STYLE,
    TENSION_COLORMAP,
    draw_cells,
    robust_range,
    save,
)
from cards_viz.workspace.page_robot import robot_lines

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


MOST_CELLS = 800
"""Values per axis of a map; more cannot be seen."""

MOST_DOTS = 20_000
"""Points of a scatter plot."""

MOST_RAYS = 1000
"""Rays of a plot, of which each is a line."""

SLICES = 6
"""Maps of a grid of three or more axes."""

CONTOURS = 6


def draw(result: Result, *, metric: str | None = None, folder: Path | None = None) -> list[Path]:
    """Draw a result.

    Args:
        result: What to draw.
        metric: Column of the colours; default: the condition's first.
        folder: Where to; default: ``plots`` in the result's folder.

    Returns:
        The files: PNG and SVG, and an HTML page for points.

    Raises:
        UnknownNameError: There is no such metric.
        OSError: The folder cannot be written.
    """
    target = folder or result.path / "plots"
    figure, name = workspace_figure(result, metric)
    names = [f"{name}.png", f"{name}.svg"]
    with writing_together(target) as work:
        save(figure, work / names[0])
        save(figure, work / names[1])
        if result.job.points.kind != "rays":
            names.append("points.html")
            _write_page(result, work / names[2], metric=metric)
    return [target / name for name in names]


def workspace_figure(result: Result, metric: str | None = None) -> tuple[Figure, str]:
    """Return the figure of a result and its name: map, slices, points or rays.

    Raises:
        UnknownNameError: There is no such metric.
    """
    columns = columns_of(result)
    points = result.job.points
    with mpl.rc_context(STYLE):
        if points.kind == "rays":
            return _rays(result, columns), "rays"
        chosen = columns.metric(metric)
        if not result.summary["points"]:
            return _empty(result), "map"
        if isinstance(points, Grid):
            free = [k for k, count in enumerate(points.shape) if count > 1]
            if len(free) == 2:
                return _maps(result, columns, chosen, free[:2], [{}]), "map"
            if len(free) > 2:
                count = points.shape[free[2]]
                places = np.unique(np.linspace(0, count - 1, min(SLICES, count)).round())
                at = [{free[2]: int(place)} for place in places]
                return _maps(result, columns, chosen, free[:2], at), "slices"
        return _scatter(result, columns, chosen), "points"


def _title(result: Result) -> str:
    summary = result.summary
    share = summary["fraction_feasible"]
    text = f"{summary['robot']}: {summary['condition']}"
    return text if share is None else f"{text}, {100.0 * share:.1f} % feasible"


def _empty(result: Result) -> Figure:
    figure = Figure(figsize=(5.0, 2.0))
    figure.suptitle(_title(result), x=0.02, ha="left", fontweight="bold")
    figure.text(0.5, 0.4, "no points", ha="center", color="#666666")
    return figure


def _maps(
    result: Result,
    columns: Columns,
    metric: str | None,
    free: list[int],
    places: list[dict[int, int]],
) -> Figure:
    """Draw one map, or slices side by side with one scale of colours."""
    parts = [grid_part(result, free, [MOST_CELLS, MOST_CELLS], at) for at in places]
    status = [part.values(result, "status").astype(np.uint8) for part in parts]
    values = [
        part.values(result, metric) if metric else np.full(s.shape, np.nan)
        for part, s in zip(parts, status, strict=True)
    ]
    good = [v[s == PointStatus.FEASIBLE] for v, s in zip(values, status, strict=True)]
    if not varies(np.concatenate(good)):  # one colour says no more than the status
        metric, values = None, [np.full(s.shape, np.nan) for s in status]
    norm = Normalize(*robust_range(np.concatenate(good)))
    across = min(len(parts), 3)
    down = -(-len(parts) // across)
    width = 4.6 if len(parts) == 1 else 3.1
    figure = Figure(
        figsize=(1.8 + width * across, 1.2 + width * _aspect(parts[0], columns) * down)
    )
    figure.set_layout_engine("constrained")
    figure.suptitle(_title(result), x=0.01, ha="left", fontweight="bold")
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for axes, part, s, v in zip(grid.flat, parts, status, values, strict=False):
        _map(axes, part, s, v, norm)
        if _same_unit(part, columns):
            axes.set_aspect("equal")
        axes.set_title(_held(part, columns, places), fontsize=8.5, fontweight="normal")
    for axes in grid.flat[len(parts) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel(columns.label(parts[0].names[0]))
    for axes in grid[:, 0]:
        axes.set_ylabel(columns.label(parts[0].names[1]))
    _legend(figure, grid, status, norm, columns.label(metric) if metric else None)
    return figure


def _map(
    axes: Axes, part: GridPart, status: npt.NDArray[np.uint8], values: Array, norm: Normalize
) -> None:
    """Draw cells of status and metric, with contours of the metric."""
    first, second = part.axes
    colored = (status == PointStatus.FEASIBLE) & np.isfinite(values)
    draw_cells(axes, (first, second), status, STATUS_COLORS, values, valued=colored, norm=norm)
    shown = np.where(colored, values, np.nan)
    if (
        min(status.shape) > 2
        and np.isfinite(shown).sum() > 8
        and np.nanmax(shown) > np.nanmin(shown)
    ):
        levels = MaxNLocator(CONTOURS).tick_values(norm.vmin or 0.0, norm.vmax or 1.0)
        lines = axes.contour(first, second, shown.T, levels, colors="white", linewidths=0.8)
        axes.clabel(lines, fontsize=7, fmt="%.3g")


def _same_unit(part: GridPart, columns: Columns) -> bool:
    return columns.units.get(part.names[0]) == columns.units.get(part.names[1])


def _aspect(part: GridPart, columns: Columns) -> float:
    """Return height over width of a map, within what a page can take."""
    if not _same_unit(part, columns):
        return 0.8
    spans = [abs(a[-1] - a[0]) for a in part.axes]
    return float(np.clip(spans[1] / spans[0], 0.35, 1.8))


def _held(part: GridPart, columns: Columns, places: list[dict[int, int]]) -> str:
    if len(places) == 1 and not part.held:
        return ""
    return ", ".join(f"{n} = {v:.4g} {columns.units[n]}" for n, v in part.held.items())


def _legend(
    figure: Figure,
    axes: Any,
    status: list[npt.NDArray[np.uint8]],
    norm: Normalize,
    label: str | None,
) -> None:
    there = np.unique(np.concatenate([s.ravel() for s in status]))
    if label is not None and PointStatus.FEASIBLE in there:
        scale = ScalarMappable(norm, TENSION_COLORMAP)
        figure.colorbar(scale, ax=axes, label=label, extend="both", shrink=0.9, pad=0.02)
    patches = [
        Patch(facecolor=STATUS_COLORS[kind], label=kind.name.lower().replace("_", " "))
        for kind in map(PointStatus, there.tolist())
        if label is None or kind != PointStatus.FEASIBLE
    ]
    if patches:
        figure.legend(handles=patches, loc="outside lower left", ncols=len(patches))


def _scatter(result: Result, columns: Columns, metric: str | None) -> Figure:
    """Draw points in the plane of the first two coordinates, or over the only one."""
    table = result.rows(scattered(result, MOST_DOTS))
    status = table["status"]
    values = table[metric] if metric else np.full(len(status), np.nan)
    names = columns.coordinates
    good = status == PointStatus.FEASIBLE
    norm = Normalize(*robust_range(values[good]))
    pairs = [(names[i], names[j]) for j in range(1, min(len(names), 3)) for i in range(j)]
    if pairs and not varies(values[good]):
        metric = None
    figure = Figure(figsize=(1.8 + 3.6 * max(len(pairs), 1), 4.4), layout="constrained")
    figure.suptitle(_title(result), x=0.01, ha="left", fontweight="bold")
    grid = figure.subplots(1, max(len(pairs), 1), squeeze=False)
    for axes, (first, second) in zip(grid[0], pairs, strict=False):
        for kind in np.unique(status):
            here = status == kind
            if kind != PointStatus.FEASIBLE or metric is None:
                color = STATUS_COLORS[PointStatus(int(kind))]
                axes.scatter(table[first][here], table[second][here], s=4, color=color, lw=0)
        if metric is not None:
            axes.scatter(
                table[first][good],
                table[second][good],
                s=5,
                c=values[good],
                norm=norm,
                cmap=TENSION_COLORMAP,
                lw=0,
            )
        axes.locator_params(nbins=5)
        axes.set_xlabel(columns.label(first))
        axes.set_ylabel(columns.label(second))
    if not pairs:
        x = table[names[0]] if names else np.zeros(len(status))
        for kind in np.unique(status):
            here = status == kind
            color = STATUS_COLORS[PointStatus(int(kind))]
            shown = values[here] if metric else np.zeros(here.sum())
            grid[0, 0].plot(x[here], shown, ".", color=color, ms=3)
        grid[0, 0].set_xlabel(columns.label(names[0]) if names else "the only point")
        grid[0, 0].set_ylabel(columns.label(metric) if metric else "")
    _legend(figure, grid, [status], norm, columns.label(metric) if metric and pairs else None)
    return figure


def _rays(result: Result, columns: Columns) -> Figure:
    """Draw the intervals of rays: s (or the one coordinate that a ray moves) to the right.

    The vertical axis is the number of the ray, or the coordinate in which the starts differ.
    """
    table = result.columns()
    count = int(result.summary["rays"])
    rays, status = table["ray"], table["status"]
    named = columns.coordinates[0] if len(columns.coordinates) == 1 else None
    stride = max(1, -(-count // MOST_RAYS))
    shown = rays % stride == 0
    height = table[named] if named else rays.astype(float)
    figure = Figure(figsize=(8.5, 4.8), layout="constrained")
    figure.suptitle(_title(result), x=0.01, ha="left", fontweight="bold")
    axes = figure.subplots()
    begin, rate, label = _along(result)
    for kind in np.unique(status):
        here = shown & (status == kind)
        ends = np.stack(
            [
                np.column_stack([begin + rate * table["begin"][here], height[here]]),
                np.column_stack([begin + rate * table["end"][here], height[here]]),
            ],
            axis=1,
        )
        color = STATUS_COLORS[PointStatus(int(kind))]
        width = float(np.clip(220.0 * stride / max(count, 1), 0.6, 6.0))
        axes.add_collection(LineCollection(list(ends), colors=color, lw=width, capstyle="butt"))
    axes.autoscale()
    axes.set_xlabel(label)
    axes.set_ylabel(columns.label(named) if named else "ray")
    _legend(figure, [axes], [status], Normalize(0.0, 1.0), None)
    return figure


def _along(result: Result) -> tuple[float, float, str]:
    """Return a, b and a label such that a + b s is what all rays have on the axis."""
    rays = result.job.points
    assert isinstance(rays, Rays)
    coordinates = {c.name: c for c in Coordinates(result.job.robot.load().tree).all}
    moved = [coordinates[name] for name in rays.direction if name in coordinates]
    fixed = result.summary["fixed"]
    if len(rays.direction) == 1 and moved and moved[0].name in fixed:
        name, rate = next(iter(rays.direction.items()))
        return float(fixed[name]), rate, f"{name} [{moved[0].unit}]"
    units = {coordinate.unit for coordinate in moved}
    same = len(units) == 1 and len(moved) == len(rays.direction)
    return 0.0, 1.0, f"s along the ray [{units.pop()}]" if same else "s along the ray"


MOST_POINTS = 200_000
"""More points than this make the page slow and no clearer."""

TEMPLATE = Path(__file__).with_name("page.html")
PLACEHOLDER = "/*DATA*/"


def _write_page(result: Result, path: Path, *, metric: str | None = None) -> None:
    """Write the page of a result of points.

    Args:
        result: Of a grid, samples, or a file.
        path: Where to.
        metric: Column of the colours; default: the first.

    Raises:
        UnknownNameError: There is no such metric.
    """
    data = page_data(result, metric)
    # a robot's name may not end the script element
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    page = TEMPLATE.read_text(encoding="utf-8").replace(PLACEHOLDER, text)
    path.write_text(page, encoding="utf-8")


def page_data(result: Result, metric: str | None = None) -> dict[str, Any]:
    """Return the content of the page as plain data."""
    names = columns_of(result)
    chosen = names.metric(metric)
    rows = scattered(result, MOST_POINTS)
    table = result.rows(rows)
    status = table["status"]
    if metric is None and chosen and not varies(table[chosen][status == PointStatus.FEASIBLE]):
        chosen = None  # one colour says no more than the status
    counts = result.summary["statuses"]
    total = int(result.summary["points"])
    part = f"{len(rows)} of {total} points" if len(rows) < total else f"{total} points"
    fixed = ", ".join(f"{name} = {value:g}" for name, value in result.summary["fixed"].items())
    there = [PointStatus[name] for name in counts]
    # what is feasible is what one looks for; all else can be switched on
    hidden = [int(s) for s in there if s != PointStatus.FEASIBLE]
    axes: list[str | None] = [*names.coordinates[:3]]
    axes += [None] * (3 - len(axes))
    fixed_values = {n: float(v) for n, v in result.summary["fixed"].items()}
    lines = robot_lines(result.job.robot.load(), names.coordinates[:3], fixed_values)
    if lines is not None:
        axes = [*lines.axes]
    return {
        "title": f"{result.summary['robot']}: {result.summary['condition']}",
        "about": part + (f"; {fixed}" if fixed else ""),
        "columns": [
            {"name": n, "unit": names.units[n], "data": _encoded(table[n])}
            for n in (*names.coordinates, *names.metrics)
        ],
        "status": _encoded(status),
        "axes": axes,
        "robot": lines and {"lines": _encoded(lines.lines), "level": lines.level.tolist()},
        "metric": chosen,
        "metrics": list(names.metrics),
        "hidden": hidden if PointStatus.FEASIBLE in there else [],
        "statuses": [
            {
                "value": int(s),
                "name": s.name.lower().replace("_", " "),
                "rgb": _rgb(STATUS_COLORS[s]),
                "count": counts[s.name],
            }
            for s in there
        ],
        "colormap": colors(np.linspace(0.0, 1.0, 32)).tolist(),
    }


def _encoded(column: npt.NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(column, "<f4").tobytes()).decode()


def _rgb(css: str) -> list[int]:
    return [int(css[k : k + 2], 16) for k in (1, 3, 5)]
