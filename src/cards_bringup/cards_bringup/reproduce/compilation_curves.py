"""What the motions and grids of the model-compilation paper give, interpreted and compiled.

The paper draws them (Figures 3 to 6) beside its tables of times: coordinates found from cable
lengths, cable forces, and workspaces. A compiled model must give the same as the interpreted one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from cards_bringup.benchmarks.paper import (
    DURATION,
    forward_kinematics,
    motion,
    workspace_grid,
)
from cards_bringup.reproduce.experiment import Band, Claim, FinishedRun, Plot
from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.inverse_dynamics import InverseDynamics
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import Dynamics, make_dynamics
from cards_core.robot.model import Robot
from cards_core.typing import Array, Backend
from cards_viz.colors import ACTUAL, DESIRED, LINE_COLORS
from cards_viz.plots.drawing import styled_figure

FILE = "curves.npz"
"""What `save_curves` leaves in the folder of a run."""

STEP = 0.1
"""Time between two points of a curve, [s]."""

BACKENDS: tuple[Backend, ...] = ("numeric", "compiled")

CONDITIONS = {"wcc": "wrench_closure", "wfc": "wrench_feasible"}
"""Measurement to condition of a point of a workspace."""

FIGURES = (
    "What the paper shows in its Figures 3 to 6, whose curves are not at hand as numbers. "
    "Coloured: compiled, {what}; black dots: interpreted."
)


# Calculation -------------------------------------------------------------------------------------


def _found_coordinates(dynamics: Dynamics) -> dict[str, Array]:
    """Return q of the motion as ``true``, and q found from its cable lengths as ``found``."""
    solver = forward_kinematics(dynamics)
    states = list(motion(dynamics, STEP))
    lengths = [dynamics.update(q, qd).muscle_lengths.copy() for q, qd, _ in states]
    true = np.array([q for q, _, _ in states])
    return {"true": true, "found": np.array([solver.step(row).q for row in lengths])}


def _tensions(dynamics: Dynamics) -> dict[str, Array]:
    """Return the least-norm cable forces of the motion as ``found``, [N]."""
    solver = InverseDynamics(dynamics)
    return {"found": np.array([solver.step(*state).tensions for state in motion(dynamics, STEP)])}


def _holds(condition: str) -> Callable[[Dynamics], dict[str, Array]]:
    def found(dynamics: Dynamics) -> dict[str, Array]:
        points = workspace_grid(dynamics)
        result = make_condition(dynamics, condition).evaluate(points)
        good = result["status"] == PointStatus.FEASIBLE
        return {"points": points, "found": good.astype(float)}

    return found


CURVES: Mapping[str, Callable[[Dynamics], dict[str, Array]]] = {
    "fk": _found_coordinates,
    "id": _tensions,
    **{what: _holds(condition) for what, condition in CONDITIONS.items()},
}
"""Measurement, as in `cards_bringup.benchmarks.paper.MEASUREMENTS`, to what it finds."""


def save_curves(robot: Robot, what: str, folder: Path) -> None:
    """Calculate what a robot's motion or grid gives, by both backends, into `FILE`.

    Args:
        robot: The robot.
        what: A measurement, key of `CURVES`.
        folder: Folder of `FILE`.
    """
    arrays: dict[str, Any] = {
        f"{backend}_{name}": array
        for backend in BACKENDS
        for name, array in CURVES[what](make_dynamics(robot, backend)).items()
    }
    np.savez(folder / FILE, **arrays)


def _load(run: FinishedRun) -> dict[str, Array]:
    with np.load(run.folder / FILE) as file:
        return dict(file)


# Claims ------------------------------------------------------------------------------------------

_SAME = {
    "fk": (
        "largest difference of the coordinates found, interpreted and compiled",
        1e-6,
        "m or rad",
    ),
    "id": ("largest difference of the cable forces, interpreted and compiled", 1e-6, "N"),
    "wcc": ("points that only one of interpreted and compiled accepts", 0.0, ""),
    "wfc": ("points that only one of interpreted and compiled accepts", 0.0, ""),
}

_MOTION = "motion of 10 s, parabolic blend"
_SOURCES = {"fk": _MOTION, "id": _MOTION, "wcc": "grid of 200 points", "wfc": "grid of 200 points"}


def curve_claims(what: str, titles: Mapping[str, str]) -> tuple[Claim, ...]:
    """Return the claims about what a measurement finds; `titles` names the robots."""
    text, most, unit = _SAME[what]
    claims = [
        Claim(
            f"{robot}.difference",
            f"{title}: {text}",
            f"Figures 3 to 6, {_SOURCES[what]}",
            Band(0.0, most),
            unit,
            statement="the compiled model gives the same",
            why="both are exact to rounding; solvers end at 1e-8",
        )
        for robot, title in titles.items()
    ]
    if what == "fk":
        claims += [
            Claim(
                f"{robot}.error",
                f"{title}: maximum error of the coordinates found from the cable lengths",
                f"Figures 3 to 6, {_SOURCES[what]}",
                Band(0.0, 1e-6),
                "m or rad",
                statement="the motion is found again",
                why="the lengths are exact",
            )
            for robot, title in titles.items()
        ]
    return tuple(claims)


def curve_values(what: str, runs: Mapping[str, FinishedRun]) -> dict[str, float]:
    """Return the values of `curve_claims`."""
    values: dict[str, float] = {}
    for robot, run in runs.items():
        curves = _load(run)
        difference = np.abs(curves["compiled_found"] - curves["numeric_found"])
        values[f"{robot}.difference"] = float(
            difference.sum() if what in CONDITIONS else difference.max()
        )
        if what == "fk":
            error = np.abs(curves["compiled_found"] - curves["compiled_true"])
            values[f"{robot}.error"] = float(error.max())
    return values


# Plots -------------------------------------------------------------------------------------------


def curve_plot(what: str, runs: Mapping[str, FinishedRun], titles: Mapping[str, str]) -> Plot:
    """Draw what each robot's motion or grid gives.

    Args:
        what: A measurement, key of `CURVES`.
        runs: Finished run of each robot, at most four.
        titles: Title of each robot's chart, by the same names.
    """
    with styled_figure(10.0, 5.6) as figure:
        axes = figure.subplots(2, 2).flat
        for axis, (robot, run) in zip(axes, runs.items(), strict=True):
            draw = _draw_grid if what in CONDITIONS else _draw_curves
            draw(axis, _load(run))
            axis.set_title(titles[robot], loc="left")
        labels = {
            "fk": "Coordinates found from the cable lengths [m or rad]",
            "id": "Cable forces of least norm [N]",
            "wcc": "Wrench closure: first and second coordinate [m or rad]",
            "wfc": "Wrench feasibility: first and second coordinate [m or rad]",
        }
        figure.suptitle(labels[what], x=0.01, ha="left", fontweight="bold")
    drawn = "filled where the condition holds" if what in CONDITIONS else "a colour each"
    return Plot(figure, FIGURES.format(what=drawn))


def _draw_curves(axis: Axes, curves: Mapping[str, Array]) -> None:
    times = np.linspace(0.0, DURATION, len(curves["compiled_found"]))
    for i, values in enumerate(curves["compiled_found"].T):
        axis.plot(times, values, color=LINE_COLORS[i % len(LINE_COLORS)], lw=1.2)
    axis.plot(times[::10], curves["numeric_found"][::10], "k.", ms=3)
    axis.set_xlabel("time [s]")


def _draw_grid(axis: Axes, curves: Mapping[str, Array]) -> None:
    points = curves["compiled_points"]
    good = curves["compiled_found"] > 0.5
    axis.plot(*points[~good, :2].T, "s", color=DESIRED, ms=5, mfc="none")
    axis.plot(*points[good, :2].T, "s", color=ACTUAL, ms=5)
    axis.plot(*points[curves["numeric_found"] > 0.5, :2].T, "k.", ms=3)
