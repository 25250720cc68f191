"""Plots of a fit of muscles: arms, lengths, torque ranges, closure margins, before and after."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cards_core.analysis.muscle_fit.result import FitResult, GoalOutcome, torque_range
from cards_core.analysis.muscle_fit.specification import (
    ArmGoal,
    ClosureGoal,
    LengthGoal,
    TorqueGoal,
)
from cards_core.analysis.workspace.coordinates import Coordinate
from cards_core.paths.layout import Indices
from cards_core.typing import Array
from cards_viz.plots.drawing import STYLE, labelled

WANTED, BEFORE, AFTER = "#c1440e", "#a9b0b6", "#0b6e99"
"""Colours of what was wanted, of the robot as it was, and of the fitted one."""

POSE = "pose"
"""Label of an axis to the right that numbers the poses of a goal."""

COLUMNS = 4
MOST = 24
"""Axes in a row, and in a figure: of more moment arms the worst ones before the fit are drawn."""

MOST_RANGES = 60
"""Poses at which a torque range is drawn: each end is a linear program."""


def figures(result: FitResult) -> dict[str, Figure]:
    """Return the figures that a fit has, by name.

    ``moment_arms``, ``lengths``, ``torques``, ``closure``.
    """
    kinds: tuple[tuple[str, type, Any], ...] = (
        ("moment_arms", ArmGoal, _paths),
        ("lengths", LengthGoal, _paths),
        ("torques", TorqueGoal, _torques),
        ("closure", ClosureGoal, _closure),
    )
    out = {}
    for name, kind, draw in kinds:
        goals = [item for item in result.goals if isinstance(item.goal, kind)]
        if goals:
            with mpl.rc_context(STYLE):
                out[name] = draw(result, goals)
    return out


def _grid(count: int, title: str, *, columns: int = COLUMNS) -> tuple[Figure, list[Axes]]:
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(max(6.0, 3.1 * columns), 1.0 + 2.3 * rows), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    axes = [figure.add_subplot(rows, columns, k + 1) for k in range(count)]
    return figure, axes


def _along(result: FitResult, rows: Indices, coordinate: Coordinate | None) -> tuple[Array, str]:
    """Return the values of an axis to the right, and its label.

    The coordinate that varies where only one does, else the number of the pose.
    """
    q = result.specification.q[rows]
    varied = [c for c in result.specification.pose_names if np.ptp(q[:, c.q]) > 0.0]
    if coordinate is not None and varied == [coordinate] and len(set(q[:, coordinate.q])) > 1:
        return q[:, coordinate.q], labelled(coordinate.name, coordinate.unit)
    return np.arange(1.0, len(rows) + 1.0), POSE


def _paths(result: FitResult, goals: list[GoalOutcome]) -> Figure:
    name = result.specification.robot.name
    lengths = isinstance(goals[0].goal, LengthGoal)
    title = f"{name}: {'lengths' if lengths else 'moment arms'}"
    if len(goals) > MOST:
        worst = sorted(goals, key=lambda item: -float(item.before.max()))[:MOST]
        title += f", the {MOST} of {len(goals)} that were farthest from what is wanted"
        goals = [item for item in goals if item in worst]
    figure, all_axes = _grid(len(goals), title)
    for item, axes in zip(goals, all_axes, strict=True):
        goal = item.goal
        assert isinstance(goal, ArmGoal | LengthGoal)
        along = goal.along if isinstance(goal, LengthGoal) else goal.coordinate
        x, label = _along(result, goal.rows, along)
        order = np.argsort(x, kind="stable")
        if label == POSE:  # lines from pose to pose would jump
            order = np.argsort(goal.wanted, kind="stable")
            what = "length" if lengths else "arm"
            x, label = np.asarray(np.argsort(order) + 1.0), f"pose, by wanted {what}"
        scale = 1e3 if goal.unit == "m" else 1.0
        axes.fill_between(
            x[order],
            scale * (goal.wanted - goal.tolerance)[order],
            scale * (goal.wanted + goal.tolerance)[order],
            color=WANTED,
            alpha=0.15,
            linewidth=0.0,
        )
        axes.plot(x[order], scale * goal.wanted[order], ".", color=WANTED, label="wanted")
        for rows, color, text in (
            (result.rows_before, BEFORE, "before"),
            (result.rows_after, AFTER, "after"),
        ):
            values = scale * goal.values(rows)
            axes.plot(x[order], values[order], color=color, label=text)
        muscle = result.specification.robot.muscles[goal.muscle].name
        over = "" if along is None else f" {'over' if lengths else 'about'} {along.name}"
        axes.set_title(f"{muscle}{over}", fontsize=8.0)
        axes.set_xlabel(label)
        axes.set_ylabel(labelled("length" if lengths else "arm", "mm" if goal.unit == "m" else ""))
    _legend(figure, all_axes[0])
    return figure


def _torques(result: FitResult, goals: list[GoalOutcome]) -> Figure:
    name = result.specification.robot.name
    figure, all_axes = _grid(len(goals), f"{name}: torque that muscles can give", columns=2)
    for item, axes in zip(goals, all_axes, strict=True):
        goal = item.goal
        assert isinstance(goal, TorqueGoal)
        chosen = np.unique(np.linspace(0, len(goal.rows) - 1, MOST_RANGES).astype(int))
        rows = goal.rows[chosen]
        x, label = _along(result, rows, goal.coordinate)
        if label == POSE:
            x = chosen + 1.0
        for arms, color, text in (
            (result.rows_before, BEFORE, "before"),
            (result.rows_after, AFTER, "after"),
        ):
            ends = np.array([torque_range(result.problem, goal, arms, int(row)) for row in rows])
            ends[~np.isfinite(ends)] = np.nan
            if len(x) == 1:
                axes.vlines(x, ends[:, 0], ends[:, 1], color=color, label=text, linewidth=4.0)
            else:
                axes.fill_between(
                    x, ends[:, 0], ends[:, 1], color=color, alpha=0.25, linewidth=0.0
                )
                axes.plot(x, ends[:, 0], color=color, label=text)
                axes.plot(x, ends[:, 1], color=color)
        for k, end in enumerate((goal.low, goal.high)):
            axes.axhline(end, color=WANTED, linestyle="--", label=None if k else "wanted")
        axes.set_title(goal.coordinate.name)
        axes.set_xlabel(label)
        axes.set_ylabel(labelled("torque" if goal.unit == "Nm" else "force", goal.unit))
    _legend(figure, all_axes[0])
    return figure


def _closure(result: FitResult, goals: list[GoalOutcome]) -> Figure:
    name = result.specification.robot.name
    figure, all_axes = _grid(len(goals), f"{name}: closure margin", columns=1)
    for item, axes in zip(goals, all_axes, strict=True):
        goal = item.goal
        assert isinstance(goal, ClosureGoal)
        scale = 1e3 if goal.unit == "m" else 1.0
        x = np.arange(1, len(goal.rows) + 1)
        before = scale * result.problem.margins(goal, result.rows_before)
        after = scale * result.problem.margins(goal, result.rows_after)
        axes.vlines(x, before, after, color=AFTER, alpha=0.25)
        axes.plot(x, before, "o", color=BEFORE, markersize=3.5, label="before")
        axes.plot(x, after, "o", color=AFTER, markersize=3.5, label="after")
        axes.axhline(scale * goal.margin, color=WANTED, linestyle="--", label="wanted")
        axes.axhline(0.0, color="#444444", linewidth=0.8)
        axes.set_xlabel(POSE)
        axes.set_ylabel(labelled("margin", "mm" if goal.unit == "m" else ""))
    _legend(figure, all_axes[0])
    return figure


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels))
