"""Plot of delays: each one over time, and how often it was how long."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from cards_core.typing import Array
from cards_viz.line_colors import ERROR, LINE_COLORS
from cards_viz.plots import STYLE

MAX_POINTS = 20000
"""More points than this are thinned; the longest of those that belong together is kept."""


def latencies(series: Mapping[str, tuple[Array, Array]], title: str = "Latency") -> Figure:
    """Plot delays.

    Args:
        series: Name to time [s] and delay [ms], each of shape (K,).
        title: Of the figure.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 1.2 + 2.2 * max(1, len(series))), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
        axes = figure.subplots(
            max(1, len(series)), 2, squeeze=False, gridspec_kw={"width_ratios": (2.2, 1.0)}
        )
        for row, (name, (time, delay)) in enumerate(series.items()):
            over, beside = axes[row]
            if not len(delay):
                over.set_title(f"{name}: nothing measured")
                continue
            color = LINE_COLORS[row % len(LINE_COLORS)]
            t, longest = _longest(time, delay)
            over.plot(t, longest, ".", ms=1.6, color=color, rasterized=True)
            p50, p99 = np.percentile(delay, [50.0, 99.0])
            over.set_title(
                f"{name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, max {np.max(delay):.1f} ms"
            )
            over.set_ylabel("delay [ms]")
            over.set_ylim(bottom=0.0)
            top = max(1.3 * p99, 1e-3)
            beside.hist(delay[delay <= top], bins=80, range=(0.0, top), color=color, alpha=0.7)
            beside.axvline(p99, color=ERROR, lw=1.2, ls="--")
            beside.annotate(
                " p99", (p99, 0.95), xycoords=("data", "axes fraction"), color=ERROR, va="top"
            )
            beside.set_yscale("log")
            if row == len(series) - 1:
                over.set_xlabel("time [s]")
                beside.set_xlabel("delay [ms]")
        return figure


def _longest(time: Array, delay: Array) -> tuple[Array, Array]:
    """Thin a series: of neighbours that fall together the longest stays."""
    stride = -(-len(delay) // MAX_POINTS)
    if stride <= 1:
        return time, delay
    rows = len(delay) // stride
    block = delay[: rows * stride].reshape(rows, stride)
    best = np.arange(rows) * stride + block.argmax(axis=1)
    return time[best], delay[best]
