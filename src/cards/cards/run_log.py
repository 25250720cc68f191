"""What a simulation recorded: arrays by name, plots, a run folder."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cards_core.checks import check_kind, shown
from cards_core.control.interface import Controller
from cards_core.errors import CardsError, UnknownNameError
from cards_core.loop.run_log import CONTROLLER_LOG, SIMULATOR_LOG
from cards_core.robot.model import Robot
from cards_core.rods.robots.robot import RodRobot
from cards_core.typing import Array
from cards_rods.rod_simulation import LOG_NAME
from cards_rods.run_folder import rod_figures, write_results
from cards_rods.summary import RodRun
from cards_viz.film.view import View
from cards_viz.plots.drawing import save
from cards_viz.runs.comparison import Comparison
from cards_viz.runs.comparison import compare as compare_recorded
from cards_viz.runs.folder import run_figures, write_run
from cards_viz.runs.log import ControllerLog, SimulatorLog
from cards_viz.runs.recorded import RecordedRun
from cards_viz.runs.summary import RunInfo


class Recording(ABC):
    """Arrays by name, one row per step; what runs of all robots have in common.

    Attributes:
        robot: The robot.
        arrays: Name to array.
    """

    robot: Robot | RodRobot
    arrays: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        """Return an array by name. Raises `UnknownNameError`."""
        if not isinstance(name, str) or name not in self.arrays:
            raise UnknownNameError("array of a run", name, self.arrays)
        return self.arrays[name]

    def __contains__(self, name: object) -> bool:
        return name in self.arrays

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.arrays["time"])

    @property
    def time(self) -> Array:
        """Times of the steps, shape (T,), [s]."""
        return self.arrays["time"]

    @property
    def q(self) -> Array:
        """Joint coordinates, shape (T, nq), [rad] or [m]."""
        return self.arrays["q"]

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return list(self.arrays)

    @abstractmethod
    def figures(self) -> dict[str, Figure]:
        """Return all figures of this run, by name."""

    def plot(self, name: str | None = None) -> Figure:
        """Return a figure, e.g. for a notebook.

        Args:
            name: Of `figures`; None for what tells most.

        Raises:
            UnknownNameError: No figure has this name; the message lists those there are.
        """
        found = self.figures()
        if name is None:
            name = next(known for known in (*_FIRST, *found) if known in found)
        if not isinstance(name, str) or name not in found:
            raise UnknownNameError("figure of this run", name, found)
        return found[name]

    def save_plot(self, file: str | os.PathLike[str], name: str | None = None) -> None:
        """Write a figure; the suffix of the file, e.g. ``.svg``, is the format.

        Args:
            file: The file; its folder exists.
            name: As of `plot`.

        Raises:
            CardsError: The file has no name, or no format has its suffix, or no figure the name.
            OSError: It cannot be written.
        """
        save(self.plot(name), _path(file))

    @abstractmethod
    def save(self, folder: str | os.PathLike[str]) -> dict[str, Any]:
        """Write a run folder; return the content of its ``summary.json``.

        Args:
            folder: Made if it does not exist; what an earlier run left there is replaced.

        Raises:
            CardsError: The folder has no name.
            OSError: It cannot be written.
        """


def _path(name: str | os.PathLike[str]) -> Path:
    """Return a path. Raises `CardsError` for what is none: a number, an empty text."""
    check_kind(name, (str, os.PathLike), "the path", "a text or a Path")
    text = os.fspath(name)
    if not text or "\0" in text:
        raise CardsError(f"the path is {shown(text)} (expected: a name)")
    return Path(text)


_FIRST = ("tracking", "plate", "tensions")
"""Figures that tell most, the most telling first."""


class RunLog(Recording):
    """A run of a robot with muscles.

    Args:
        robot: The robot.
        simulator: Log of the host, arrays with a row per step.
        controller: Log of the controller; None without one.
        info: Mode, times and names of the run.
        name: Name of the robot in a world of several.

    Attributes:
        robot: The robot.
        arrays: ``time``, ``q``, ``qd``, ``muscle_lengths``, ``muscle_rates``, ``tensions``,
            ``efforts``, ``actuators`` of the simulator; with a controller also ``desired``,
            ``actual``, ``error``, ``status`` and more, the commanded ``command_tensions`` and the
            controller's signals, e.g. ``relaxation`` of ``mrc``.
        controller: Kind of the controller; ``none`` without one.
        name: Of the folder it was read from; empty if it was not.
    """

    def __init__(
        self,
        robot: Robot,
        simulator: SimulatorLog,
        controller: ControllerLog | None,
        info: RunInfo,
        name: str = "",
    ) -> None:
        self.robot: Robot = robot
        self.name = name
        self.controller = info.controller
        self._logs, self._info = (simulator, controller), info
        arrays = {k: v for k, v in vars(simulator).items() if isinstance(v, np.ndarray)}
        if controller is not None:
            logged = dict(vars(controller))
            signals = logged.pop("signals")
            logged |= {key: signal.values for key, signal in signals.items()}
            for key, values in logged.items():
                arrays[f"command_{key}" if key in arrays else key] = values
        self.arrays = arrays

    @classmethod
    def load(
        cls,
        folder: Path,
        robot: Robot,
        *,
        controller: Controller | None,
        mode: str,
        wall_time: float,
        duration: float,
        refusal: str = "",
    ) -> RunLog:
        """Read the logs of a run.

        Args:
            folder: With ``simulator.npz`` and, where a controller ran, ``controller.npz``.
            robot: The robot.
            controller: The controller.
            mode: How time advanced.
            wall_time: Duration of the run, [s].
            duration: Time that was to be simulated, [s].
            refusal: Why the last of the refused commands was refused.
        """
        simulator = SimulatorLog.load(folder / SIMULATOR_LOG)
        log = None if controller is None else ControllerLog.load(folder / CONTROLLER_LOG)
        info = RunInfo(
            "none" if controller is None else controller.kind,
            mode,
            wall_time,
            "joint" if controller is None else controller.space,
            () if controller is None else controller.reference_names,
            duration_s=duration,
            refusal=refusal,
        )
        return cls(robot, simulator, log, info)

    def recorded(self, name: str = "") -> RecordedRun:
        """Return the run as its page, and the comparison with another one, take it.

        Args:
            name: What to call it; empty: the name of its folder, or of robot and controller.
        """
        name = name or self.name or f"{self.robot.name}, {self.controller}"
        return RecordedRun(name, self.robot, *self._logs, self._info)

    def figures(self) -> dict[str, Figure]:
        """Return all figures of this run: tracking, path, tensions and others."""
        return run_figures(self.robot, *self._logs, self._info)

    def video(
        self,
        file: str | os.PathLike[str],
        *,
        speed: float = 1.0,
        rate: float = 30.0,
        size: tuple[int, int] = (1280, 720),
        view: View | None = None,
        begin: float = 0.0,
        end: float = math.inf,
        progress: Callable[[float], None] | None = None,
    ) -> int:
        """Write a film of this run; see `cards_viz.film.film.film_run`.

        Args:
            file: Ends in ``.mp4``, ``.webm`` or ``.gif``.
            speed: Simulated seconds per second of the film.
            rate: Pictures per second of the film.
            size: Width and height, [pixel].
            view: Where the camera is; None: it follows the robot from behind and above.
            begin: Simulation time of the first picture, [s].
            end: That of the last one, at most, [s].
            progress: Told the share that is done, from 0 to 1.

        Returns:
            Number of pictures.

        Raises:
            CardsError: An argument does not fit, this machine cannot draw, or FFmpeg is missing.
            OSError: The file cannot be written.
        """
        # the renderer is loaded by those who film only
        from cards_viz.film.film import film_run

        return film_run(
            self.recorded(),
            _path(file),
            speed=speed,
            rate=rate,
            size=size,
            view=view,
            begin=begin,
            end=end,
            progress=progress,
        )

    def save(self, folder: str | os.PathLike[str]) -> dict[str, Any]:
        """Write summary, plots, recording and logs; see `Recording.save`."""
        return write_run(
            _path(folder),
            self.robot,
            self._info,
            *self._logs,
        )


def read_run(folder: str | os.PathLike[str], robot: Robot | None = None) -> RunLog:
    """Read a run folder of a robot with muscles, e.g. of ``./cards demo`` or `RunLog.save`.

    Args:
        folder: The run folder.
        robot: The robot; None: the one that the folder's ``summary.json`` names.

    Raises:
        CardsError: It is no such folder, a log is damaged or of another robot, or there is no
            such robot.
    """
    run = RecordedRun.read(_path(folder), robot)
    return RunLog(run.robot, run.simulator, run.controller, run.info, run.name)


def compare(a: RunLog, b: RunLog) -> Comparison:
    """Compare two runs of one robot at equal simulation times.

    Args:
        a: A run of `cards.simulate` or `cards.read_run`.
        b: Another one.

    Raises:
        CardsError: They are no runs of robots with equal muscles and coordinates, or have no
            common time.
    """
    for which, run in (("first", a), ("second", b)):
        check_kind(run, RunLog, f"the {which} run", "a run of a robot with muscles")
    return compare_recorded(a.recorded(), b.recorded())


class RodRunLog(Recording):
    """A run of a robot of rods.

    Args:
        robot: The robot.
        arrays: Arrays of the run by name, a row per step.
        run: What judges the run.
        wall_time: Duration of the run in real time, [s].

    Attributes:
        robot: The robot.
        arrays: ``time``, ``q``, ``pose`` (rows of 4 x 4), ``status``, ``min_eigenvalue``,
            ``base_wrenches`` and more, as in ``rod_solver.npz``.
    """

    def __init__(
        self, robot: RodRobot, arrays: Mapping[str, np.ndarray], run: RodRun, wall_time: float
    ) -> None:
        self.robot: RodRobot = robot
        self.arrays = dict(arrays)
        self._run, self._wall_time = run, wall_time

    def figures(self) -> dict[str, Figure]:
        """Return all figures of this run: plate, joints, stability, duration of steps, shapes."""
        return rod_figures(self.arrays, self.robot)

    def save(self, folder: str | os.PathLike[str]) -> dict[str, Any]:
        """Write summary, plots and log; see `Recording.save`."""
        target = _path(folder)
        target.mkdir(parents=True, exist_ok=True)
        np.savez(target / LOG_NAME, **self.arrays)  # type: ignore[arg-type]  # one option only
        metadata = {"transport": "in one process", "wall_time_s": self._wall_time}
        return write_results(target, self.robot, metadata, self._run)
