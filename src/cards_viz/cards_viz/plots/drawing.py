"""What all plots share: style, files, thinning, labels, ranges, maps of cells."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize, to_rgb
from matplotlib.figure import Figure

from cards_core.errors import UnknownNameError
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


@contextlib.contextmanager
def styled_figure(width: float, height: float, title: str | None = None) -> Iterator[Figure]:
    """Make a figure in the house style, which holds for what is drawn within the block.

    Args:
        width: [in].
        height: [in].
        title: Bold, above everything on the left.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        if title is not None:
            figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
        yield figure


def thin(time: Array, *series: Array) -> list[Array]:
    """Return time and series with at most about `MAX_POINTS` evenly chosen rows."""
    stride = max(1, -(-len(time) // MAX_POINTS))
    return [values[::stride] for values in (time, *series)]


# what would make files of equal data differ: versions of software, dates
_METADATA: Mapping[str, Mapping[str, None]] = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
    ".svg": {"Creator": None, "Date": None},
}


def save(figure: Figure, path: Path | str) -> None:
    """Write ``figure`` in the house style; equal data give equal files.

    Args:
        figure: The figure.
        path: The file; its suffix, ``.pdf``, ``.png`` or ``.svg``, is the format.

    Raises:
        UnknownNameError: No format has this suffix; the message lists those there are.
        OSError: The file cannot be written.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _METADATA:
        raise UnknownNameError("format of figures", suffix or Path(path).name, _METADATA)
    with mpl.rc_context({**STYLE, "svg.hashsalt": "cards"}):
        figure.savefig(path, format=suffix[1:], metadata=_METADATA[suffix])


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


def draw_cells(
    axes: Axes,
    ticks: tuple[Array, Array],
    status: npt.NDArray[np.uint8],
    status_colors: Mapping[Any, str],
    values: Array,
    *,
    valued: npt.NDArray[np.bool_],
    norm: Normalize,
) -> None:
    """Draw a map: a cell around each point of a grid, coloured by its value or its status.

    Args:
        axes: Where.
        ticks: Coordinates to the right, shape (n,), and upwards, shape (m,), each rising or
            falling evenly.
        status: Shape (n, m).
        status_colors: Colour of each status.
        values: Shape (n, m).
        valued: Which cells have the colour of their value, shape (n, m).
        norm: Range of the values.
    """
    image = np.ones((*status.shape, 3))
    for kind, color in status_colors.items():
        image[status == kind] = to_rgb(color)
    image[valued] = TENSION_COLORMAP(norm(values[valued]))[:, :3]
    first, second = ticks
    axes.imshow(
        image.transpose(1, 0, 2)[:: _sign(second), :: _sign(first)],
        origin="lower",
        extent=(*_edges(first), *_edges(second)),
        aspect="auto",
        interpolation="nearest",
    )
    axes.grid(visible=False)


def _sign(values: Array) -> int:
    return 1 if values[-1] >= values[0] else -1


def _edges(values: Array) -> tuple[float, float]:
    """Return where an image of cells around these values begins and ends."""
    half = abs(values[-1] - values[0]) / (2 * (len(values) - 1))
    return float(values.min() - half), float(values.max() + half)
