"""Plot of what each muscle is for: moment arms, workspace without it, use in distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cards_core.analysis.cable_function import CableFunction
from cards_core.typing import Array
from cards_viz.plots import STYLE

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
    """Draw cells with the colour of a value between low and 1 and a text each."""
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
