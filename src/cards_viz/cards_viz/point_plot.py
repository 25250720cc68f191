"""Plot of quantities over the points or the time of an analysis: one row of axes per quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.figure import Figure

from cards_core.typing import Array
from cards_viz.line_colors import LINE_COLORS
from cards_viz.plots import STYLE, thin

NAMED = 12
"""More lines than this are not named one by one."""


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
                axes.plot(time, values[:, i], color=color, label=name, marker=marker)
            axes.set_title(item.title)
            axes.set_ylabel(item.unit)
            if len(item.names) <= NAMED:
                axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        all_axes[-1].set_xlabel(label)
    return figure
