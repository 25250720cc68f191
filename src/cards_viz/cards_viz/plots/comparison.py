"""Plots of two runs in one figure: an overview, and a small chart for each muscle or joint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cards_core.typing import Array
from cards_viz.colors import LINE_COLORS
from cards_viz.plots.drawing import labelled, styled_figure, thin

RUN_COLORS = (LINE_COLORS[0], LINE_COLORS[1])
"""Colours of the two runs."""

_STYLES = ("-", (0, (4, 1.2)))  # the second lies over the first where they agree

COLUMNS = 5
"""Small charts in a row at most."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Data of one run: times, shape (K,), [s], and values, shape (K,) or (K, k)."""

    time: Array
    values: Array


Pair = tuple[Curve | None, Curve | None]


def overview(charts: Sequence[tuple[str, str, Pair]], labels: Sequence[str], title: str) -> Figure:
    """Plot one value of both runs in each chart, all over the same time.

    Args:
        charts: Name, unit and curves, values of shape (K,).
        labels: Of the runs.
        title: Of the figure.
    """
    with styled_figure(10.0, 1.1 + 1.8 * len(charts), title) as figure:
        axes = figure.subplots(len(charts), 1, sharex=True, squeeze=False)[:, 0]
        for axis, (name, unit, pair) in zip(axes, charts, strict=True):
            _draw(axis, pair, None)
            axis.set_ylabel(labelled(name, unit))
            if unit != "°C":
                axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
        axes[-1].set_xlabel("time [s]")
        axes[-1].set_xlim(*_span([pair for _, _, pair in charts]))
        _legend(figure, labels)
        figure.align_ylabels(list(axes))
    return figure


def entries(
    name: str, unit: str, names: Sequence[str], pair: Pair, labels: Sequence[str]
) -> Figure:
    """Plot both runs in a small chart for each entry, with shared axes.

    Args:
        name: Of the quantity.
        unit: Of its values.
        names: Of the entries, length k.
        pair: Values of shape (K, k).
        labels: Of the runs.
    """
    columns = min(COLUMNS, len(names))
    rows = math.ceil(len(names) / columns)
    with styled_figure(
        max(2.3 * columns, 6.0), 1.1 + 1.5 * rows, labelled(name.capitalize(), unit)
    ) as figure:
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
        for i, axis in enumerate(axes):
            if i >= len(names):
                axis.set_visible(False)
                continue
            _draw(axis, pair, i)
            axis.set_title(names[i], fontsize=8.5, fontweight="normal")
            if i + columns >= len(names):
                axis.set_xlabel("time [s]")
                axis.xaxis.set_tick_params(labelbottom=True)
        axes[0].set_xlim(*_span([pair]))
        _legend(figure, labels)
    return figure


def _draw(axis: Axes, pair: Pair, column: int | None) -> None:
    for curve, color, style in zip(pair, RUN_COLORS, _STYLES, strict=True):
        if curve is not None:
            values = curve.values if column is None else curve.values[:, column]
            time, values = thin(curve.time, values)
            axis.plot(time, values, color=color, ls=style, lw=1.2)


def _legend(figure: Figure, labels: Sequence[str]) -> None:
    handles = [
        mpl.lines.Line2D([], [], color=color, ls=style)
        for color, style in zip(RUN_COLORS, _STYLES, strict=True)
    ]
    figure.legend(handles, list(labels), loc="outside upper right", ncols=2)


def _span(pairs: Sequence[Pair]) -> tuple[float, float]:
    ends = [
        (curve.time[0], curve.time[-1]) for pair in pairs for curve in pair if curve is not None
    ]
    low, high = float(np.min(ends)), float(np.max(ends))
    return low, max(high, low + 1e-9)
