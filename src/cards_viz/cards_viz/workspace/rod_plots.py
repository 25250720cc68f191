"""Pictures of a workspace slice of a rod robot: a curve, a map, or maps side by side.

Where the robot can be, colour is a metric; elsewhere it is the status.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cards_core.files import writing_together
from cards_core.rods.analysis.workspace_slice import METRICS, SliceResult, SliceStatus
from cards_core.rods.robots.robot import PLATE_COORDINATES
from cards_core.typing import Array
from cards_viz.plots.drawing import (
    STYLE,
    TENSION_COLORMAP,
    draw_cells,
    robust_range,
    save,
)

STATUS_COLORS = {
    SliceStatus.OK: "#2d8f5a",
    SliceStatus.NEAR_LIMIT: "#e2a03f",
    SliceStatus.YIELD: "#8a5a2b",
    SliceStatus.CUT_OFF: "#a8d5ba",
    SliceStatus.JOINT_LIMIT: "#9db9d3",
    SliceStatus.UNSTABLE: "#f3d3cf",
    SliceStatus.UNREACHABLE: "#5b6770",
    SliceStatus.NOT_FOUND: "#d3d6d9",
}
"""Colours of statuses."""

TEXTS = {
    SliceStatus.OK: "good",
    SliceStatus.NEAR_LIMIT: "good, near collapse (dots)",
    SliceStatus.YIELD: "good, but a rod yields (crosses)",
    SliceStatus.CUT_OFF: "stable, but cut off from home",
    SliceStatus.JOINT_LIMIT: "outside the joint limits",
    SliceStatus.UNSTABLE: "unstable",
    SliceStatus.UNREACHABLE: "out of reach",
    SliceStatus.NOT_FOUND: "no equilibrium found",
}
"""What the legend says of them."""

MARKS = {SliceStatus.NEAR_LIMIT: ".", SliceStatus.YIELD: "x"}
"""Marks of good points that have a doubt."""

SLICES = 6
"""Maps of a grid of three or more axes."""

LOGARITHMIC = 30.0
"""A metric whose values differ by more than this factor has a logarithmic scale."""


def draw(result: SliceResult, folder: Path, *, metric: str | None = None) -> list[Path]:
    """Draw a slice.

    Args:
        result: What to draw.
        folder: Where to.
        metric: One of `METRICS`; default: the smallest stiffness relative to home.

    Returns:
        The files, SVG and PNG.

    Raises:
        UnknownNameError: There is no such metric.
        OSError: The folder cannot be written.
    """
    with mpl.rc_context(STYLE):
        figure = slice_figure(result, metric or "margin")
    names = ("slice.svg", "slice.png")
    with writing_together(folder) as work:
        save(figure, work / names[0])
        save(figure, work / names[1])
    return [folder / name for name in names]


def slice_figure(result: SliceResult, metric: str) -> Figure:
    """Return the figure of a slice."""
    values = result.metric(metric)
    free = [k for k, count in enumerate(result.grid.shape) if count > 1]
    if len(free) < 2:
        return _curve(result, values, metric, free)
    order = [*free, *(k for k in range(values.ndim) if k not in free)]
    status, values = result.status.transpose(order), values.transpose(order)
    shape = status.shape
    status, values = status.reshape(*shape[:2], -1), values.reshape(*shape[:2], -1)
    places = np.unique(np.linspace(0, status.shape[2] - 1, SLICES).round().astype(int))
    return _maps(result, metric, status, values, order=order, places=places)


def _title(result: SliceResult) -> str:
    share = 100.0 * float(result.good.mean())
    held = ", ".join(f"{name} = {value:g}" for name, value in result.grid.fixed.items())
    text = f"{result.robot}: {share:.1f} % of the poses can be reached and hold"
    return f"{text}  ({held})" if held else text


def _label(name: str) -> str:
    unit = METRICS[name][0] if name in METRICS else ("m", "rad")[name.startswith("r")]
    shown = {"margin": "smallest stiffness / that at home"}.get(name, name.replace("_", " "))
    return f"{shown} [{unit}]" if unit else shown


def _scale(values: Array) -> Normalize:
    low, high = robust_range(values)
    return LogNorm(low, high) if low > 0.0 and high > LOGARITHMIC * low else Normalize(low, high)


def _maps(
    result: SliceResult,
    metric: str,
    status: npt.NDArray[np.uint8],
    values: Array,
    *,
    order: list[int],
    places: npt.NDArray[np.int_],
) -> Figure:
    """Draw one map, or several with one scale of colours; axes as in `order`."""
    grid = result.grid
    first, second = grid.axis_values[order[0]], grid.axis_values[order[1]]
    good = np.isin(status, (SliceStatus.OK, *MARKS))
    norm = _scale(values[good])
    same = grid.units[order[0]] == grid.units[order[1]]
    spans = abs(second[-1] - second[0]) / abs(first[-1] - first[0])
    aspect = float(np.clip(spans, 0.35, 1.8)) if same else 0.8
    across = min(len(places), 3)
    down = -(-len(places) // across)
    width = 4.8 if len(places) == 1 else 3.1
    figure = Figure(figsize=(1.8 + width * across, 1.5 + width * aspect * down))
    figure.set_layout_engine("constrained")
    figure.suptitle(_title(result), x=0.01, ha="left", fontweight="bold")
    cells = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    shape = [len(grid.axis_values[k]) for k in order[2:]]
    for axes, place in zip(cells.flat, places, strict=False):
        _map(axes, (first, second), status[..., place], values[..., place], norm)
        _home(axes, result, grid.names[order[0]], grid.names[order[1]])
        if same:
            axes.set_aspect("equal")
        at = np.unravel_index(int(place), shape) if shape else ()
        held = [
            f"{grid.names[k]} = {grid.axis_values[k][i]:.4g} {grid.units[k]}"
            for k, i in zip(order[2:], at, strict=True)
            if len(places) > 1
        ]
        axes.set_title(", ".join(held), fontsize=8.5, fontweight="normal")
    for axes in cells.flat[len(places) :]:
        axes.set_visible(False)
    for axes in cells[-1]:
        axes.set_xlabel(_label(grid.names[order[0]]))
    for axes in cells[:, 0]:
        axes.set_ylabel(_label(grid.names[order[1]]))
    if good.any():
        figure.colorbar(
            ScalarMappable(norm, TENSION_COLORMAP), ax=cells, label=_label(metric),
            extend="both", shrink=0.9, pad=0.02,
        )  # fmt: skip
    _legend(figure, status, without=SliceStatus.OK)
    return figure


def _map(
    axes: Axes,
    ticks: tuple[Array, Array],
    status: npt.NDArray[np.uint8],
    values: Array,
    norm: Normalize,
) -> None:
    first, second = ticks
    good = np.isin(status, (SliceStatus.OK, *MARKS)) & np.isfinite(values)
    draw_cells(axes, ticks, status, STATUS_COLORS, values, valued=good, norm=norm)
    size = float(np.clip(1500.0 / max(status.shape) ** 1.5, 2.5, 16.0))
    for kind, mark in MARKS.items():
        i, j = np.nonzero(status == kind)
        axes.scatter(first[i], second[j], s=size, marker=mark, c="white", lw=0.6)


def _home(axes: Axes, result: SliceResult, *names: str) -> None:
    """Mark home by a cross."""
    home = [
        result.grid.home[k, 3] if (k := PLATE_COORDINATES.index(name)) < 3 else 0.0
        for name in names
    ]
    limits = axes.get_xlim(), axes.get_ylim()
    axes.plot(*home, "+", color="white", ms=9, mew=2.2)
    axes.plot(*home, "+", color="black", ms=8, mew=1.0)
    axes.set_xlim(limits[0])
    axes.set_ylim(limits[1])


def _curve(result: SliceResult, values: Array, metric: str, free: list[int]) -> Figure:
    """Draw a metric over the only coordinate that varies, with the statuses as background."""
    grid = result.grid
    x = grid.axis_values[free[0]] if free else np.zeros(1)
    status, values = result.status.ravel(), values.ravel()
    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    figure.suptitle(_title(result), x=0.01, ha="left", fontweight="bold")
    axes = figure.subplots()
    half = 0.5 * abs(x[1] - x[0]) if len(x) > 1 else 0.5
    for place, kind in zip(x, status, strict=True):
        color = STATUS_COLORS[SliceStatus(int(kind))]
        axes.axvspan(place - half, place + half, color=color, alpha=0.55, lw=0)
    shown = np.where(status == SliceStatus.UNSTABLE, np.nan, values)
    axes.plot(x, shown, color="black", marker="." if len(x) < 60 else "")
    axes.set_xlabel(_label(grid.names[free[0]]) if free else "the only point")
    axes.set_ylabel(_label(metric))
    axes.set_xlim(x.min() - half, x.max() + half)
    _legend(figure, status, without=None)
    return figure


def _legend(figure: Figure, status: npt.NDArray[np.uint8], *, without: SliceStatus | None) -> None:
    there = [SliceStatus(int(kind)) for kind in np.unique(status)]
    patches = [
        Patch(facecolor=STATUS_COLORS[kind], label=TEXTS[kind])
        for kind in there
        if kind is not without and not (kind in MARKS and without is not None)
    ]
    marked = [kind for kind in there if kind in MARKS and without is not None]
    handles = [
        *patches,
        *(
            mpl.lines.Line2D(
                [], [], color="white", mec="#555555", ls="", marker=MARKS[kind], label=TEXTS[kind]
            )
            for kind in marked
        ),
    ]
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=min(len(handles), 3))
