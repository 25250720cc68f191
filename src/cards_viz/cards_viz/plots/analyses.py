"""Plots of analyses: quantities over points or time, functions of muscles, checks, wrenches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cards_core.analysis.cable_function import CableFunction
from cards_core.analysis.robot_check import RobotCheck
from cards_core.analysis.status import PointStatus
from cards_core.typing import Array
from cards_viz.colors import LINE_COLORS
from cards_viz.plots.drawing import STYLE, styled_figure, thin

SHARE_BINS = 10
"""Intervals of a coordinate over which shares of poses are counted."""

NAMED = 12
"""More lines than this are not named one by one."""

SAME = 5e-3
"""Lines that differ by less than this share of a row's range are one to the eye."""


@dataclass(frozen=True, eq=False)
class Quantity:
    """What is drawn in one row.

    Attributes:
        title: Above the axes.
        unit: Of the values.
        names: Of the lines.
        values: shape (n, number of lines).
    """

    title: str
    unit: str
    names: Sequence[str]
    values: Array


def over_points(x: Array, label: str, quantities: Sequence[Quantity], title: str) -> Figure:
    """Plot quantities over time or over the number of the point.

    Args:
        x: Shape (n,).
        label: Of the axis of x, with unit.
        quantities: From top to bottom.
        title: Of the figure.
    """
    rows = [item for item in quantities if item.values.size]
    with mpl.rc_context(STYLE):
        if len(x) == 1 and rows:
            return _bars(rows, title)
        figure = Figure(figsize=(8.0, 0.8 + 2.3 * max(len(rows), 1)), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
        if not rows:
            return figure
        all_axes = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        for axes, item in zip(all_axes, rows, strict=True):
            time, values = thin(x, item.values)
            marker = "o" if len(time) < 3 else None
            for i, name in enumerate(item.names):
                color = LINE_COLORS[i % len(LINE_COLORS)]
                style = "--" if _hides(values, i) else "-"
                axes.plot(time, values[:, i], style, color=color, label=name, marker=marker)
            axes.set_title(item.title)
            axes.set_ylabel(item.unit)
            if len(item.names) <= NAMED:
                axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        all_axes[-1].set_xlabel(label)
    return figure


def _hides(values: Array, i: int) -> bool:
    """Return whether a line would cover an earlier one, which is then seen through its gaps."""
    if i >= NAMED or not np.isfinite(values).any():
        return False
    apart = SAME * (np.nanmax(values) - np.nanmin(values))
    away = np.abs(values[:, :i] - values[:, i : i + 1])
    return bool(np.any(np.all((away <= apart) | np.isnan(away), axis=0)))


def _bars(rows: Sequence[Quantity], title: str) -> Figure:
    """Draw the values of one point."""
    heights = [len(item.names) + 2.0 for item in rows]
    figure = Figure(figsize=(8.0, 0.8 + 0.24 * sum(heights)), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    column: list[Axes] = list(
        figure.subplots(len(rows), 1, squeeze=False, height_ratios=heights).flat
    )
    for axes, item in zip(column, rows, strict=True):
        places = np.arange(len(item.names))
        colors = [LINE_COLORS[i % len(LINE_COLORS)] for i in places]
        bars = axes.barh(places, item.values[0], color=colors, height=0.7)
        texts = [f"{value:.4g}" for value in item.values[0]]
        axes.bar_label(bars, texts, padding=3, fontsize=7.5)
        axes.set_yticks(places, item.names)
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.grid(visible=False, axis="y")
        axes.set_title(item.title)
        axes.set_xlabel(item.unit)
    return figure


CELL = 0.62, 0.27
"""Width and height of a cell, [inch]."""

DARK = 0.55
"""Share of the colour range from which text on a cell is white."""


def cable_function(result: CableFunction) -> Figure:
    """Plot an analysis of the muscles' functions as three tables with coloured cells.

    Left: the share of poses in which a muscle turns a coordinate in its positive sense (red)
    minus that in which it turns it in the negative one (blue), with the mean size of the moment
    arm. Middle: the share of each workspace that is lost without a muscle or group. Right: how
    often a muscle is needed, exchangeable or idle in the distributions that hold a pose.

    Args:
        result: What was found.
    """
    conditions = list(result.necessity)
    rows = max(len(result.groups), 1)
    widths = [max(len(result.coordinates), 2), max(len(conditions), 2), 3]
    labels = 0.09 * max((len(name) for name in result.groups), default=4)
    size = CELL[0] * sum(widths) + 3.0 * labels + 2.5, CELL[1] * rows + 2.6
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=size, layout="constrained")
        figure.suptitle(
            f"Functions of the muscles of {result.robot}, {result.poses} poses",
            x=0.01,
            ha="left",
            fontweight="bold",
        )
        left, middle, right = figure.subplots(1, 3, width_ratios=widths)
        _moment_arms(left, result)
        _necessity(middle, result)
        _tensions(right, result)
    return figure


def _moment_arms(axes: Axes, result: CableFunction) -> None:
    arms = result.arms
    balance = (arms.positive - arms.negative) / max(arms.poses, 1)
    units = ["mm" if unit == "m" else "1" for unit in result.units]
    factor = np.array([1e3 if unit == "m" else 1.0 for unit in result.units])
    texts = [
        [f"{value:.3g}" if np.isfinite(value) else "" for value in row]
        for row in arms.mean_size * factor
    ]
    columns = [f"{name} [{unit}]" for name, unit in zip(result.coordinates, units, strict=True)]
    _table(axes, balance, texts, result.muscles, columns, map_="RdBu_r", low=-1.0)
    axes.set_title("Mean moment arm; red turns +, blue -")


def _necessity(axes: Axes, result: CableFunction) -> None:
    columns = [
        found.lost / found.feasible if found.feasible else np.full(len(result.groups), np.nan)
        for found in result.necessity.values()
    ]
    shares = np.stack(columns, axis=1) if columns else np.zeros((len(result.groups), 0))
    _table(axes, shares, _percent(shares), list(result.groups), list(result.necessity))
    axes.set_title("Workspace lost without it")


def _tensions(axes: Axes, result: CableFunction) -> None:
    use = result.tensions
    counts = np.stack([use.needed, use.exchangeable, use.idle], axis=1)
    shares = counts / use.poses if use.poses else np.full(counts.shape, np.nan)
    names = ["needed", "exchangeable", "idle"]
    _table(axes, shares, _percent(shares), use.muscles, names)
    axes.set_title("In poses that can be held")


def _percent(shares: Array) -> list[list[str]]:
    return [[f"{100.0 * x:.3g} %" if np.isfinite(x) else "-" for x in row] for row in shares]


def _table(
    axes: Axes,
    values: Array,
    texts: Sequence[Sequence[str]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    map_: str = "Purples",
    low: float = 0.0,
) -> None:
    """Draw a table whose cells have a colour for a value between low and 1, and a text."""
    if values.size:
        axes.imshow(values, cmap=map_, vmin=low, vmax=1.0, aspect="auto")
    for i, row in enumerate(texts):
        for j, text in enumerate(row):
            dark = np.isfinite(values[i, j]) and abs(values[i, j]) > DARK
            style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7.5}
            axes.text(j, i, text, color="white" if dark else "#333333", **style)
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


WRENCH_NAMES = (("fx", "fy", "fz"), ("mx", "my", "mz"))
WRENCH_UNITS = ("N", "N m")


def estimate_figure(content: dict[str, Any]) -> Figure:
    """Draw forces and moments with their intervals, or the distribution of errors of a study.

    Args:
        content: Of ``./cards analyse force-sensing --json``.
    """
    study = content.get("study")
    with mpl.rc_context(STYLE):
        if study is not None:
            return _errors(content, study)
        figure = Figure(figsize=(7.0, 3.2), layout="constrained")
        share = 100.0 * content["confidence"]
        title = f"{content['robot']}: wrench on the plate, {share:g} % intervals"
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
        for k, axes in enumerate(figure.subplots(1, 2)):
            part = slice(3 * k, 3 * k + 3)
            axes.errorbar(
                range(3), content["wrench"][part], content["interval"][part],
                fmt="o", color=LINE_COLORS[0], capsize=4,
            )  # fmt: skip
            axes.axhline(0.0, color="#888888", lw=0.8)
            axes.set_xticks(range(3), WRENCH_NAMES[k])
            axes.set_xlim(-0.5, 2.5)
            axes.set_ylabel(f"{('force', 'moment')[k]} [{WRENCH_UNITS[k]}]")
    return figure


def _errors(content: dict[str, Any], study: dict[str, Any]) -> Figure:
    """Draw a histogram of errors per component beside the predicted normal distribution."""
    errors, sigma = np.array(study["errors"]), np.array(study["predicted_sigma"])
    figure = Figure(figsize=(8.5, 4.8), layout="constrained")
    title = (
        f"{content['robot']}: errors of {study['trials']} estimates (bars) and what their "
        "covariance predicts (lines)"
    )
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    for k, axes in enumerate(figure.subplots(2, 3).flat):
        color = LINE_COLORS[k % 3]
        if sigma[k] > 0.0:
            bins = np.linspace(-4.0 * sigma[k], 4.0 * sigma[k], 25)
            axes.hist(errors[:, k], bins=bins, density=True, color=color, alpha=0.45)
            x = np.linspace(bins[0], bins[-1], 200)
            density = np.exp(-0.5 * (x / sigma[k]) ** 2) / (sigma[k] * np.sqrt(2.0 * np.pi))
            axes.plot(x, density, color="black")
        axes.axvline(0.0, color="#888888", lw=0.8)
        axes.set_yticks([])
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlabel(f"error of {WRENCH_NAMES[k // 3][k % 3]} [{WRENCH_UNITS[k // 3]}]")
    return figure


def robot_check(result: RobotCheck, positions: Sequence[str]) -> Figure:
    """Plot where closure and static equilibrium are lost, and the moment arms.

    Args:
        result: The check.
        positions: Names of the entries of q: `Tree.position_names`.
    """
    varied = [i for i in range(result.q.shape[1]) if np.ptp(result.q[:, i]) > 0.0]
    named = [list(positions).index(c) if c in positions else None for c in result.coordinates]
    columns = [i for i in varied if i in named] or varied
    rows = max(len(result.coordinates), len(columns), 1)
    with styled_figure(11.0, 0.8 + 2.1 * rows) as figure:
        figure.suptitle(
            f"{result.robot}: {'fit' if result.fit else 'unfit'}, {len(result.q)} poses",
            x=0.01,
            ha="left",
            fontweight="bold",
        )
        axes = figure.subplots(rows, 2, squeeze=False)
        shares = [("closure", result.closure), ("static", result.static)]
        for row, index in enumerate(columns):
            _draw_shares(axes[row, 0], result.q[:, index], shares)
            axes[row, 0].set_xlabel(positions[index])
        if columns:
            axes[0, 0].legend()
        x = np.arange(len(result.muscles))
        for j, name in enumerate(result.coordinates):
            low, high = 1e3 * result.arm_least[:, j], 1e3 * result.arm_most[:, j]
            axes[j, 1].bar(x, high - low, bottom=low, color=LINE_COLORS[0])
            axes[j, 1].axhline(0.0, color="0.5", linewidth=0.8)
            axes[j, 1].set_ylabel(f"arm, {name} [mm]")
            axes[j, 1].set_xticks(x, result.muscles if j == len(result.coordinates) - 1 else [])
            axes[j, 1].tick_params(axis="x", labelrotation=90)
        for side, used in ((0, len(columns)), (1, len(result.coordinates))):
            for row in range(used, rows):
                axes[row, side].set_visible(False)
    return figure


def _draw_shares(
    axes: Axes, values: Array, shares: Sequence[tuple[str, npt.NDArray[np.uint8] | None]]
) -> None:
    """Draw which share of the poses is feasible, by the value of one coordinate."""
    edges = np.linspace(values.min(), values.max(), SHARE_BINS + 1)
    where = np.clip(np.digitize(values, edges) - 1, 0, SHARE_BINS - 1)
    middle = (edges[1:] + edges[:-1]) / 2.0
    counts = np.bincount(where, minlength=SHARE_BINS)
    for color, (name, status) in zip(LINE_COLORS, shares, strict=False):
        if status is None:
            continue
        good = np.bincount(where, status == PointStatus.FEASIBLE, SHARE_BINS)
        there = counts > 0
        axes.plot(middle[there], good[there] / counts[there], "o-", color=color, label=name)
    axes.set_ylim(-0.05, 1.05)
    axes.set_ylabel("share of poses")
