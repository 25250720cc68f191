"""Picture of an estimated wrench: intervals, and of a study the errors of all trials."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from cards_viz.line_colors import LINE_COLORS
from cards_viz.plots import STYLE

NAMES = (("fx", "fy", "fz"), ("mx", "my", "mz"))
UNITS = ("N", "N m")


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
            axes.set_xticks(range(3), NAMES[k])
            axes.set_xlim(-0.5, 2.5)
            axes.set_ylabel(f"{('force', 'moment')[k]} [{UNITS[k]}]")
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
        axes.set_xlabel(f"error of {NAMES[k // 3][k % 3]} [{UNITS[k // 3]}]")
    return figure
