"""Runs of simulated robots under control, described by data alone.

Nothing of a run comes from ``config/``: all parameters that are not in the set-up have the
defaults of their nodes, so that a run is what its set-up says.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cards.run_log import RunLog
from cards.simulation import simulate
from cards_bringup.reproduce.experiment import FinishedRun, Plot, Setup, Tell
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.control_setup import make_control_loop
from cards_core.loop.run_log import CONTROLLER_LOG, SIMULATOR_LOG
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.model import Robot
from cards_core.trajectories import Reference
from cards_core.trajectories.library import from_dict
from cards_core.typing import Array
from cards_sim.build import build_host
from cards_viz.labels import Labels, joint_labels, operational_labels
from cards_viz.plots import runs as plots
from cards_viz.runs.log import ControllerLog, SimulatorLog

TABLE_PERIOD = 0.01
"""Time between two rows of a table of a run, [s]; the logs have every step."""

POSITION = ("x", "y", "z")


def simulated_run(setup: Setup, folder: Path, tell: Tell) -> dict[str, Any]:
    """Simulate a robot under control; the `Experiment.perform` of such experiments.

    Args:
        setup: ``robot``: name or path; ``simulator``: parameters of the simulator;
            ``controller``: kind of the controller; ``parameters``: its parameters;
            ``reference``: a trajectory, as in docs/trajectories.md; ``duration``: [s].
        folder: Becomes a run folder.
        tell: Told the share that is done, 0 to 1.

    Returns:
        The verdict on the run, and what the paper would be told of it.

    Raises:
        CardsError: The set-up does not fit the robot; the message says why.
    """
    robot = load(setup["robot"])
    kind, duration = setup["controller"], float(setup["duration"])
    host = build_host(ParameterSet(dict(setup["simulator"]), "simulator"), robot)
    given = {**setup["parameters"], "reference": "", "reference_file": "", "log_dir": ""}
    control: ControlLoop = make_control_loop(
        kind, ParameterSet(given, kind), robot, reference_of(robot, setup)
    )
    run = simulate(host, control, duration=duration, on_time=lambda time: tell(time / duration))
    if not isinstance(run, RunLog):
        raise CardsError(f"{robot.name} is a robot of rods (expected: a robot with muscles)")
    summary = run.save(folder)
    return {name: summary[name] for name in ("verdict", "failures", "warnings", "wall_time_s")}


def reference_of(robot: Robot, setup: Setup) -> Reference:
    """Return what a set-up tracks."""
    task = {"trajectories": {"task": setup["reference"]}}
    made = from_dict(
        task, names=robot.tree.position_names, operational_size=len(POSITION), source="set-up"
    )
    return made["task"]


@dataclass(frozen=True)
class SimulatedRun:
    """The logs of a finished run.

    Attributes:
        robot: The robot.
        simulator: What the simulator did in each of its steps.
        controller: What the controller did in each of its steps.
    """

    robot: Robot
    simulator: SimulatorLog
    controller: ControllerLog

    @classmethod
    def load(cls, run: FinishedRun) -> SimulatedRun:
        """Read the logs. Raises `cards_viz.runs.log.RunLogError`."""
        return cls(
            load(run.setup["robot"]),
            SimulatorLog.load(run.folder / SIMULATOR_LOG),
            ControllerLog.load(run.folder / CONTROLLER_LOG),
        )

    @property
    def muscle_names(self) -> list[str]:
        """Names of all muscles."""
        return [muscle.name for muscle in self.robot.muscles]

    def tensions_at(self, time: float) -> Array:
        """Return the tensions of the step next to a time [s], shape (m,), [N]."""
        step = int(np.argmin(np.abs(self.simulator.time - time)))
        return self.simulator.tensions[step]

    def table(self) -> dict[str, Array]:
        """Return time, desired and actual coordinates and tensions, one row each 10 ms."""
        log = self.controller
        step = max(1, round(TABLE_PERIOD / float(np.median(np.diff(log.time)))))
        rows = slice(None, None, step)
        labels = self._labels()
        out = {"time [s]": log.time[rows]}
        for what, values in (("desired", log.desired), ("actual", log.actual)):
            for i, (name, unit) in enumerate(zip(labels.names, labels.units, strict=True)):
                out[f"{what} {name} [{unit}]"] = values[rows, i]
        nearest = np.searchsorted(self.simulator.time, log.time[rows])
        nearest = np.minimum(nearest, len(self.simulator.time) - 1)
        for i, name in enumerate(self.muscle_names):
            out[f"tension {name} [N]"] = self.simulator.tensions[nearest, i]
        return out

    def tracking_plot(self, title: str, caption: str) -> Plot:
        """Return desired and actual coordinates over time."""
        log = self.controller
        figure = plots.tracking(
            log.time, log.desired, log.actual, log.error, labels=self._labels(), title=title
        )
        return Plot(figure, caption)

    def tension_plot(self, caption: str) -> Plot:
        """Return the tensions over time."""
        log, muscles = self.simulator, self.robot.muscles
        lower = np.array([muscle.tension_min for muscle in muscles])
        upper = np.array([muscle.tension_max for muscle in muscles])
        return Plot(
            plots.tensions(log.time, log.tensions, self.muscle_names, lower, upper), caption
        )

    def path_plot(self, title: str, caption: str) -> Plot:
        """Return the path of the operational frame."""
        log = self.controller
        return Plot(plots.path(log.desired[:, :3], log.actual[:, :3], POSITION, title), caption)

    def _labels(self) -> Labels:
        joint = self.controller.desired.shape[1] == len(self.robot.tree.position_names)
        return joint_labels(self.robot.tree) if joint else operational_labels(POSITION)
