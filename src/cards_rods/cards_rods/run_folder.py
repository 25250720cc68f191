"""The folder of a run of a robot of rods: summary and plots, made from its log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from cards_core.files import writing_together
from cards_core.foreign_files import read_arrays
from cards_core.rods.robots.initial_guess import InitialGuess
from cards_core.rods.robots.robot import BaseKind, RodRobot
from cards_core.rods.robots.solution import RobotShapes
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.spatial import rotation_log
from cards_core.typing import Array
from cards_rods.rod_simulation import LOG_NAME
from cards_rods.summary import Log, RodRun, summarise
from cards_viz.colors import ACTUAL, DESIRED, ERROR, LINE_COLORS, nice_ceiling
from cards_viz.plots.drawing import TENSION_COLORMAP, labelled, save, styled_figure, thin

COORDINATES = (("x", "mm"), ("y", "mm"), ("z", "mm"), ("rx", "deg"), ("ry", "deg"), ("rz", "deg"))
"""Name and unit of the plate's coordinates in plots: change since the start."""


def plot_plate(log: Log, title: str) -> Figure:
    """Plot the plate's pose and its command as change since the start."""
    time, poses, targets, inverse = thin(
        log["time"], log["pose"], log["target_pose"], log["inverse"]
    )
    first = poses[0].reshape(4, 4)
    actual, told = _changes(poses, first), _changes(targets, first)
    told[inverse < 0.5] = np.nan
    with styled_figure(10.0, 6.6, title) as figure:
        axes = figure.subplots(3, 2, sharex=True)
        for i, (name, unit) in enumerate(COORDINATES):
            axis: Axes = axes[i % 3, i // 3]
            axis.plot(time, told[:, i], color=DESIRED, lw=3.0, label="told")
            axis.plot(time, actual[:, i], color=ACTUAL, label="plate")
            axis.set_ylabel(labelled(name, unit))
        for axis in axes[-1]:
            axis.set_xlabel("time [s]")
            axis.set_xlim(time[0], max(time[-1], time[0] + 1e-9))
        handles, texts = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside upper right", ncols=2)
        figure.align_ylabels()
    return figure


def _changes(poses: Array, first: Array) -> Array:
    """Return change of position [mm] and rotation vector [deg] from a first pose, shape (T, 6)."""
    matrices = poses.reshape(-1, 4, 4)
    turns = np.array([rotation_log(pose[:3, :3] @ first[:3, :3].T) for pose in matrices])
    return np.hstack([1e3 * (matrices[:, :3, 3] - first[:3, 3]), np.degrees(turns)])


def plot_joints(log: Log, robot: RodRobot, title: str) -> Figure:
    """Plot the joints as change since the start, and the force that each rod puts on its base.

    Args:
        log: Log of the run.
        robot: The robot.
        title: Title of the figure.
    """
    time, q, bases = thin(log["time"], log["q"], log["base_wrenches"])
    forces = np.linalg.norm(bases.reshape(len(time), -1, 6)[..., :3], axis=-1)
    turning = all(limb.base.kind is BaseKind.REVOLUTE for limb in robot.limbs)
    factor, unit = (180.0 / np.pi, "deg") if turning else (1e3, "mm")
    with styled_figure(10.0, 5.6, title) as figure:
        over, under = figure.subplots(2, 1, sharex=True)
        for i, name in enumerate(robot.joint_names):
            color = LINE_COLORS[i % len(LINE_COLORS)]
            over.plot(time, factor * (q[:, i] - q[0, i]), color=color, label=name, lw=1.1)
            under.plot(time, forces[:, i], color=color, lw=1.1)
        over.set_ylabel(f"joint, change since start [{unit}]")
        under.set_ylabel("force of the rod on its base [N]")
        under.set_xlabel("time [s]")
        over.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
        over.set_xlim(time[0], max(time[-1], time[0] + 1e-9))
    return figure


def plot_stability(log: Log, title: str) -> Figure:
    """Plot the smallest eigenvalue of the plate's stiffness over its value at the start."""
    time, least, start, held = thin(
        log["time"], log["min_eigenvalue"], log["start_eigenvalue"], log["held"]
    )
    share = least / start
    with styled_figure(10.0, 3.2, title) as figure:
        axis = figure.subplots()
        axis.plot(time, share, color=ACTUAL, label="smallest eigenvalue over that of the start")
        axis.axhline(0.0, color=ERROR, lw=1.2, ls="--", label="collapse")
        if (held > 0.5).any():
            axis.fill_between(
                time, 0.0, 1.0, where=(held > 0.5).tolist(), color=ERROR, alpha=0.15, lw=0.0,
                transform=axis.get_xaxis_transform(), label="held",
            )  # fmt: skip
        axis.set_ylim(min(-0.05, 1.1 * float(share.min())), nice_ceiling(float(share.max())))
        axis.set_ylabel("margin")
        axis.set_xlabel("time [s]")
        axis.set_xlim(time[0], max(time[-1], time[0] + 1e-9))
        axis.legend(loc="lower left")
    return figure


def plot_step_time(log: Log, title: str) -> Figure:
    """Plot the distribution of the duration of steps that solved something."""
    values = log["step_us"][(log["substeps"] > 0.0) & (log["step_us"] > 0.0)]
    with styled_figure(7.0, 3.2, title) as figure:
        axis = figure.subplots()
        if not values.size:
            axis.text(0.5, 0.5, "nothing moved", ha="center", transform=axis.transAxes)
            return figure
        edges = np.geomspace(0.9 * values.min(), 1.15 * values.max(), 80)
        axis.hist(values, bins=edges.tolist(), color="#9fbfe0", edgecolor="#6f98c6", lw=0.3)
        axis.set_xscale("log")
        axis.set_yscale("log")
        for row, share in enumerate((50, 99)):
            x = float(np.percentile(values, share))
            axis.axvline(x, color=ACTUAL, lw=1.2)
            axis.annotate(
                f" p{share} {x:.0f} µs ", (x, 0.98 - 0.1 * row), va="top", fontsize=8.5,
                xycoords=("data", "axes fraction"), color=ACTUAL,
            )  # fmt: skip
        axis.set_xlabel("duration [µs]")
        axis.set_ylabel("steps")
        axis.xaxis.set_major_formatter("{x:g}")
    return figure


def plot_shapes(
    found: Sequence[tuple[str, RobotShapes, Array]], robot: RodRobot, title: str
) -> Figure:
    """Draw rods and plate at some moments, the rods coloured by curvature.

    Args:
        found: Caption, shapes and plate pose of each moment.
        robot: The robot.
        title: Of the figure.
    """
    everything = np.concatenate([one.positions.reshape(-1, 3) for _, one, _ in found])
    middle = 0.5 * (everything.min(axis=0) + everything.max(axis=0))
    reach = max(0.5 * float(np.ptp(everything, axis=0).max()), 1e-3)
    top = nice_ceiling(float(np.max([one.curvature.max() for _, one, _ in found], initial=1e-6)))
    corners = np.array([limb.tip.joint_pose[:3, 3] for limb in robot.limbs])
    corners = corners[np.argsort(np.arctan2(*(corners - corners.mean(axis=0))[:, 1::-1].T))]
    with styled_figure(4.2 * len(found), 4.6, title) as figure:
        for i, (caption, one, pose) in enumerate(found):
            axis = figure.add_subplot(1, len(found), i + 1, projection="3d")
            axis.set_title(caption)
            for line, curvature in zip(one.positions, one.curvature, strict=True):
                pieces = np.stack([line[:-1], line[1:]], axis=1)
                lines = Line3DCollection(list(pieces), cmap=TENSION_COLORMAP, linewidths=2.0)
                lines.set_array(0.5 * (curvature[:-1] + curvature[1:]))
                lines.set_clim(0.0, top)
                axis.add_collection3d(lines)
            outline = corners[np.arange(len(corners) + 1) % len(corners)]
            axis.plot(*(outline @ pose[:3, :3].T + pose[:3, 3]).T, color="#555555", lw=1.5)
            _frame(axis, middle, reach, flat=robot.planar, last=i + 1 == len(found))
        figure.colorbar(lines, ax=figure.axes, label="curvature [1/m]", shrink=0.7)
    return figure


def _frame(axis: Axes, middle: Array, reach: float, *, flat: bool, last: bool) -> None:
    settings: Mapping[str, float] = dict(zip("xyz", middle, strict=True))
    for name, value in settings.items():
        getattr(axis, f"set_{name}lim")(value - reach, value + reach)
        if name != "z" or last:  # between two drawings it would be cut
            getattr(axis, f"set_{name}label")(f"{name} [m]")
    axis.set_box_aspect((1.0, 1.0, 1.0))  # type: ignore[arg-type]  # of 3D axes
    axis.locator_params(nbins=4)
    if flat:
        axis.view_init(elev=90.0, azim=-90.0)  # type: ignore[attr-defined]  # likewise


SUMMARY = "summary.json"
PLOTS = ("plate", "joints", "stability", "step_time", "shapes")

_POINTS = 61


def load_log(folder: Path) -> dict[str, np.ndarray]:
    """Return the columns of a run's log. Raises `CardsError` if there is no good one."""
    return read_arrays(folder / LOG_NAME, expected="the log of a run")


def write_results(
    folder: Path, robot: RodRobot, metadata: Mapping[str, Any], run: RodRun | None = None
) -> dict[str, Any]:
    """Write summary and plots beside the log; return the summary.

    Args:
        folder: Of the run, with ``rod_solver.npz`` in it.
        robot: The robot that moved.
        metadata: What the log does not know, e.g. the wall time; becomes part of the summary.
        run: What the log does not know and the verdict needs.

    Raises:
        CardsError: There is no log, or it has no rows.
    """
    log = load_log(folder)
    summary = summarise(robot.name, log, metadata, run)
    with writing_together(folder) as work:
        for name, figure in rod_figures(log, robot).items():
            save(figure, work / f"{name}.png")
        text = json.dumps(summary, indent=2, allow_nan=False)
        (work / SUMMARY).write_text(text + "\n", encoding="utf-8")
    return summary


def rod_figures(log: Log, robot: RodRobot) -> dict[str, Figure]:
    """Return the figures of a run, by names of `PLOTS`.

    Args:
        log: Columns of ``rod_solver.npz``.
        robot: The robot that moved.
    """
    figures = {
        "plate": plot_plate(log, f"{robot.name}: plate, change since the start"),
        "joints": plot_joints(log, robot, f"{robot.name}: joints"),
        "stability": plot_stability(log, f"{robot.name}: how far from collapse"),
        "step_time": plot_step_time(log, f"{robot.name}: duration of a step"),
    }
    moments = _moments(log, robot)
    if moments:
        figures["shapes"] = plot_shapes(moments, robot, f"{robot.name}: shapes")
    return figures


def _moments(log: Log, robot: RodRobot) -> list[tuple[str, Any, Any]]:
    """Return shapes at the start, where the plate is farthest away, and where it is softest."""
    solver = RodRobotSolver(robot)
    places = log["pose"].reshape(-1, 4, 4)[:, :3, 3]
    away = int(np.argmax(np.linalg.norm(places - places[0], axis=1)))
    found = []
    for caption, row in (
        ("start", 0),
        ("farthest from it", away),
        ("softest", int(np.argmin(log["min_eigenvalue"]))),
    ):
        pose = log["pose"][row].reshape(4, 4)
        guess = InitialGuess(log["q"][row], pose, log["base_wrenches"][row].reshape(-1, 6))
        solution = solver.dgm(guess.q, wrench=log["wrench"][row], start=guess)
        if solution.converged:
            title = f"{caption}, t = {log['time'][row]:.1f} s"
            found.append((title, solver.shapes(solution, _POINTS), solution.pose))
    return found
