"""A run that was recorded: read from its folder, and asked for what it knows of each muscle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cards_core.errors import CardsError, DescriptionError
from cards_core.foreign_files import read_json
from cards_core.formats import load
from cards_core.loop.run_log import CONTROLLER_LOG, SIMULATOR_LOG
from cards_core.robot.model import Robot, Tree
from cards_core.robot.motors import motors_of
from cards_core.typing import Array
from cards_viz.labels import (
    TEMPERATURE_STATES,
    Labels,
    by_state,
    joint_labels,
    numbered,
    operational_labels,
)
from cards_viz.runs.log import ControllerLog, RunLogError, SimulatorLog
from cards_viz.runs.summary import KEYS, SUMMARY, RunInfo


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """A robot, the logs of one of its runs, and what the logs do not know.

    Attributes:
        name: What to call it, e.g. the name of its folder.
        robot: The robot.
        simulator: Log of the simulator.
        controller: Log of the controller, None where none ran.
        info: What the logs do not know.
    """

    name: str
    robot: Robot
    simulator: SimulatorLog
    controller: ControllerLog | None
    info: RunInfo

    @classmethod
    def read(cls, folder: Path | str, robot: Robot | None = None) -> Self:
        """Read a run folder.

        Args:
            folder: With ``summary.json``, ``simulator.npz`` and, where a controller ran,
                ``controller.npz``.
            robot: The robot; None: the one that ``summary.json`` names.

        Raises:
            RunLogError: It is no run folder of a robot with muscles, or a log is damaged or is
                one of another robot.
            CardsError: The robot cannot be read.
        """
        path = Path(folder)
        summary = _summary(path)
        if isinstance(robots := summary.get("robots"), dict) and robots:
            raise RunLogError(
                str(path),
                f"has the runs of {len(robots)} robots",
                "the folder of one of them: " + ", ".join(str(path / name) for name in robots),
            )
        if not (path / SIMULATOR_LOG).is_file():
            raise RunLogError(
                str(path), f"has no {SIMULATOR_LOG}", "the run folder of a robot with muscles"
            )
        model = str(summary.get("model", summary["robot"]))
        if robot is None:
            try:
                robot = load(model)
            except CardsError as error:
                raise RunLogError(
                    str(path), f"its robot cannot be read: {error}", "another robot, with --robot"
                ) from error
        entries = {
            key: value
            for key, value in summary.items()
            if key not in KEYS or key in ("controller", "mode", "wall_time_s")
        }
        log = path / CONTROLLER_LOG
        simulator = SimulatorLog.load(path / SIMULATOR_LOG)
        controller = ControllerLog.load(log) if log.is_file() else None
        check_widths(robot, simulator, controller, f"{path}: ")
        info = RunInfo.from_mapping(entries)
        return cls(path.resolve().name, robot, simulator, controller, info)

    @property
    def time(self) -> Array:
        """Times of the simulator's steps, shape (T,), [s]."""
        return self.simulator.time

    @cached_property
    def muscle_names(self) -> tuple[str, ...]:
        """Names of the muscles, length m."""
        return tuple(muscle.name for muscle in self.robot.muscles)

    @cached_property
    def temperatures(self) -> Array | None:
        """Temperature of each muscle's motor, shape (T, m), [degC]; NaN where it has none.

        That of the winding, or of the housing where the winding's is not recorded. None if no
        muscle has a temperature.
        """
        places = by_state(self.simulator.actuator_names)
        out = np.full((len(self.time), len(self.muscle_names)), np.nan)
        for state in reversed(TEMPERATURE_STATES):
            for muscle, column in places.get(state, {}).items():
                out[:, self.muscle_names.index(muscle)] = self.simulator.actuators[:, column]
        return out if np.isfinite(out).any() else None

    def signal(self, name: str) -> Array | None:
        """Return a signal of the controller, shape (K, m); NaN for muscles it does not have.

        Args:
            name: Of the signal, e.g. ``relaxation``.

        Returns:
            None if the controller has no such signal, or not one of muscles.
        """
        found = None if self.controller is None else self.controller.signals.get(name)
        if found is None or not set(found.names) <= set(self.muscle_names):
            return None
        out = np.full((len(found.values), len(self.muscle_names)), np.nan)
        out[:, [self.muscle_names.index(muscle) for muscle in found.names]] = found.values
        return out

    def states(self, row: int) -> dict[str, float]:
        """Return the actuator states in a row of the simulator's log, by name."""
        values = self.simulator.actuators[row].tolist()
        return dict(zip(self.simulator.actuator_names, values, strict=True))

    def error_norm(self, unit: str) -> Array | None:
        """Return the norm of the entries of the tracking error in ``m`` or ``rad``, shape (K,)."""
        if self.controller is None:
            return None
        units = np.array(labels_of(self.robot.tree, self.controller, self.info).error_units)
        error = self.controller.error[:, units == unit]
        return np.asarray(np.linalg.norm(error, axis=1)) if error.shape[1] else None


def check_widths(
    robot: Robot, simulator: SimulatorLog, controller: ControllerLog | None, place: str = ""
) -> None:
    """Check that logs have the columns of a robot.

    Args:
        robot: The robot of the run.
        simulator: Its log.
        controller: The controller's log; None: not recorded.
        place: What the message begins with.

    Raises:
        RunLogError: A log is of another robot.
    """
    tree, m, motors = robot.tree, len(robot.muscles), len(motors_of(robot.tree))
    wanted = {
        "q": tree.nq,
        "qd": tree.nv,
        "muscle_lengths": m,
        "muscle_rates": m,
        "tensions": m,
        "efforts": motors,
    }
    found = [("simulator log", name, getattr(simulator, name), wanted[name]) for name in wanted]
    if controller is not None:
        commands = len(robot.commanded().muscles)
        found.append(("controller log", "tensions", controller.tensions, commands))
        found.append(("controller log", "efforts", controller.efforts, motors))
    for log, name, values, width in found:
        if values.shape[1] != width:
            raise RunLogError(
                f"{place}{log}",
                f"'{name}' has {values.shape[1]} columns",
                f"{width} for robot '{robot.name}'",
            )
    if controller is not None and controller.desired.shape != controller.actual.shape:
        raise RunLogError(
            f"{place}controller log",
            f"'desired' has shape {controller.desired.shape}, "
            f"'actual' has shape {controller.actual.shape}",
            "equal shapes",
        )


def labels_of(tree: Tree, controller: ControllerLog | None, info: RunInfo) -> Labels:
    """Return names of the controlled coordinates, numbered where those given do not fit.

    Args:
        tree: Coordinates of the robot.
        controller: Log of the controller, None where none ran.
        info: What the logs do not know.

    Raises:
        RunLogError: ``axes`` names another number of coordinates than the log has.
    """
    if controller is None:
        return joint_labels(tree)
    width, error_width = controller.desired.shape[1], controller.error.shape[1]
    if info.space == "joint":
        labels = joint_labels(tree)
    else:
        labels = operational_labels(info.axes or "xyz"[:width])
    if (len(labels.names), len(labels.error_names)) == (width, error_width):
        return labels
    if info.axes:
        raise RunLogError(
            "run metadata",
            f"axes names {len(info.axes)} coordinates, the controller log has {width}",
            "one name for each",
        )
    return numbered(width, error_width)


def row_at(times: Array, time: float | Array) -> npt.NDArray[np.intp]:
    """Return the row of the last time that is not later, [s]; the first row before all."""
    rows = np.searchsorted(times, np.asarray(time) + 1e-9, side="right") - 1
    return np.clip(rows, 0, len(times) - 1)


def _summary(folder: Path) -> Mapping[str, Any]:
    path = folder / SUMMARY
    if not folder.is_dir():
        raise RunLogError(
            str(folder), "no such folder", "a run folder, e.g. of ./cards demo --out"
        )
    if not path.exists():
        raise RunLogError(
            str(folder), f"has no {SUMMARY}", "a run folder, e.g. of ./cards demo --out"
        )
    try:
        summary = read_json(path)
    except DescriptionError as error:
        raise RunLogError(str(path), error.problem, error.expected) from error
    if not isinstance(summary, dict) or "robot" not in summary:
        raise RunLogError(str(path), "does not name a robot", "the entry 'robot'")
    return summary
