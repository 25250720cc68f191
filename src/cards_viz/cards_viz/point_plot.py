"""Plot of quantities over the points or the time of an analysis: one row of axes per quantity.

A single point has bars instead of lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cards_core.typing import Array
from cards_viz.line_colors import LINE_COLORS
from cards_viz.plots import STYLE, thin

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
    """Plot quantities over time or number of the point.

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
