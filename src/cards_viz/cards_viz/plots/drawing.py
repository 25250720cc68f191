"""What all plots share: style, files, thinning, ranges, labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from cards_core.typing import Array
from cards_viz.colors import colors

STYLE: Any = {
    "font.size": 9.0,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.edgecolor": "#7a7a7a",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.facecolor": "white",
    "savefig.dpi": 140.0,
}

TENSION_COLORMAP = ListedColormap(colors(np.linspace(0.0, 1.0, 256)) / 255.0, name="tension")

MAX_POINTS = 2500
"""More points than this cannot be seen in a plot; longer series are thinned."""


def thin(time: Array, *series: Array) -> list[Array]:
    """Return time and series with at most about `MAX_POINTS` evenly chosen rows."""
    stride = max(1, -(-len(time) // MAX_POINTS))
    return [values[::stride] for values in (time, *series)]


def save(figure: Figure, path: Path | str) -> None:
    """Write ``figure`` as PNG, in the house style."""
    with mpl.rc_context(STYLE):
        # no software version in the file: equal data give equal files
        figure.savefig(path, format="png", metadata={"Software": None})


def labelled(name: str, unit: str) -> str:
    """Return the label of an axis."""
    return f"{name} [{unit}]" if unit else name


def robust_range(values: Array) -> tuple[float, float]:
    """Return the range that 98 % of the finite values are in; never empty."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low, high = (float(v) for v in np.percentile(finite, [1.0, 99.0]))
    return (low, high) if high > low else (low - 0.5, low + 0.5)
