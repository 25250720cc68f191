"""Summary and plots in the folder of a run, made from its log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cards_core.errors import CardsError
from cards_core.files import writing_together
from cards_core.rods.robots.initial_guess import InitialGuess
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solver import RodRobotSolver
from cards_rods import run_plots
from cards_rods.session import LOG_NAME
from cards_rods.summary import Log, summarise
from cards_rods.verdict import RodRun
from cards_viz.plots.drawing import save

SUMMARY = "summary.json"
PLOTS = ("plate", "joints", "stability", "step_time", "shapes")

_POINTS = 61


def load_log(folder: Path) -> dict[str, np.ndarray]:
    """Return the columns of a run's log. Raises `CardsError` if there is no good one."""
    file = folder / LOG_NAME
    try:
        with np.load(file) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, KeyError) as error:
        raise CardsError(f"{file}: no log of a run ({error})") from error


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
        "plate": run_plots.plate(log, f"{robot.name}: plate, change since the start"),
        "joints": run_plots.joints(log, robot, f"{robot.name}: joints"),
        "stability": run_plots.stability(log, f"{robot.name}: how far from collapse"),
        "step_time": run_plots.step_time(log, f"{robot.name}: duration of a step"),
    }
    moments = _moments(log, robot)
    if moments:
        figures["shapes"] = run_plots.shapes(moments, robot, f"{robot.name}: shapes")
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
