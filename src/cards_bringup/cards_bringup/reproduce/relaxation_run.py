"""Runs of a musculoskeletal upper body under muscle relaxation control, described by data.

The controller's model of the robot differs from the robot by displaced attachments: without a
difference there is no needless tension, and nothing to relax.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.reproduce.experiment import FinishedRun, Setup, Tell
from cards_bringup.reproduce.handle import handle_reference, handle_world
from cards_bringup.reproduce.simulated_run import reference_of
from cards_core.control.mrc.controller import MuscleRelaxationControl
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.control_setup import make_control_loop
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.model import Robot
from cards_core.robot.perturb import with_payload
from cards_core.trajectories.base import Reference
from cards_core.typing import Array
from cards_sim.build import build_host
from cards_sim.host import SimulatorHost

RECORD = "relaxation.npz"
"""File in the folder of a run, with one row each `ROW_PERIOD`."""

ROW_PERIOD = 0.02
"""[s]"""

TELL_PERIOD = 0.25
"""Simulated time between two reports of progress, [s]."""

COLUMNS = (
    "time",
    "q",
    "error",
    "tensions",
    "temperatures",
    "dl",
    "given",
    "contact",
)


def relaxation_run(setup: Setup, folder: Path, tell: Tell) -> dict[str, Any]:
    """Simulate a robot under muscle relaxation control; the `Experiment.perform` of such runs.

    Args:
        setup: ``robot``: name or path; ``payload``: masses [kg] by link, at ``payload_position``
            [m] of each; ``world``: of the simulator, empty for none, ``handle`` for a handle in
            both hands; ``simulator``, ``parameters``: of simulator and controller;
            ``reference``: a trajectory, or the strokes of the handle; ``duration``: [s];
            ``end_after_latch``: how long the run goes on once a muscle was let go for its
            temperature, [s].
        folder: Gets `RECORD`.
        tell: Told the share that is done, 0 to 1.

    Returns:
        When a muscle was let go [s], if one was; and how long the controller took.

    Raises:
        CardsError: The set-up does not fit the robot; the message says why.
    """
    robot = loaded_robot(setup)
    duration = float(setup["duration"])
    host, loop = _closed_loop(robot, setup)
    controller = loop.controller
    assert isinstance(controller, MuscleRelaxationControl)
    rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    latched_at, told = None, 0.0
    while host.state.time < duration:
        state = host.state
        host.submit(loop.step(state))
        if len(rows["time"]) * ROW_PERIOD <= state.time:
            if state.temperatures is None or state.contact_forces is None:
                raise CardsError(f"{robot.name} has no motors (expected: <thermal/> in muscles)")
            values: tuple[Any, ...] = (
                state.time,
                state.q,
                controller.output.error,
                state.tensions,
                state.temperatures,
                controller.state.dl,
                controller.protection.given,
                np.linalg.norm(state.contact_forces.sum(axis=0)),
            )
            for name, value in zip(COLUMNS, values, strict=True):
                rows[name].append(np.array(value))
        host.step()
        if latched_at is None and controller.protection.latched.any():
            latched_at = state.time
        if latched_at is not None and state.time > latched_at + setup["end_after_latch"]:
            break
        if state.time >= told:
            told += TELL_PERIOD
            tell(state.time / duration)
    arrays: dict[str, Any] = {name: np.array(values) for name, values in rows.items()}
    np.savez(folder / RECORD, **arrays)
    return {"latched_at_s": latched_at}


def loaded_robot(setup: Setup) -> Robot:
    """Return the robot of a set-up with its payload."""
    robot = load(setup["robot"])
    for link, mass in setup["payload"].items():
        robot = with_payload(robot, link, mass, setup["payload_position"])
    return robot


def _closed_loop(robot: Robot, setup: Setup) -> tuple[SimulatorHost, ControlLoop]:
    parameters = {**setup["parameters"], "reference": "", "reference_file": "", "log_dir": ""}
    simulator: dict[str, Any] = dict(setup["simulator"])
    reference: Reference
    if setup["world"] == "handle":
        reference = handle_reference(robot, setup["reference"])
        host = handle_world(robot, reference.start, dt=simulator["dt"])
    else:
        reference = reference_of(robot, setup)
        start = [float(x) for x in reference.start]
        given = {**simulator, "world": setup["world"], "initial_positions": start}
        host = build_host(ParameterSet(given, "simulator"), robot)
    return host, make_control_loop("mrc", ParameterSet(parameters, "mrc"), robot, reference)


@dataclass(frozen=True, eq=False)
class RelaxationRun:
    """What a finished run left, one row each `ROW_PERIOD`.

    Attributes:
        robot: The robot.
        time: Shape (K,), [s].
        q, error: Shape (K, n), [rad].
        tensions, temperatures: Shape (K, m), [N] and [degC] of the windings.
        dl, given: What was released of each muscle, and given way to heat, shape (K, m), [m].
        contact: Magnitude of the sum of contact forces on the robot, shape (K,), [N].
        latched_at: When a muscle was let go for its temperature, [s]; NaN if none was.
    """

    robot: Robot
    time: Array
    q: Array
    error: Array
    tensions: Array
    temperatures: Array
    dl: Array
    given: Array
    contact: Array
    latched_at: float

    @classmethod
    def load(cls, run: FinishedRun) -> RelaxationRun:
        """Read the record of a run. Raises `CardsError` if there is none."""
        try:
            with np.load(run.folder / RECORD) as data:
                columns: Mapping[str, Array] = {name: data[name] for name in COLUMNS}
        except (OSError, KeyError, ValueError) as error:
            raise CardsError(f"{run.folder / RECORD} cannot be read: {error}") from None
        latched = run.numbers["latched_at_s"]
        return cls(
            loaded_robot(run.setup), **columns, latched_at=np.nan if latched is None else latched
        )

    def row(self, time: float) -> int:
        """Return the row at a time [s]."""
        return int(np.clip(np.searchsorted(self.time, time), 0, len(self.time) - 1))

    @property
    def norm(self) -> Array:
        """Norm of all tensions, shape (K,), [N]."""
        return np.asarray(np.linalg.norm(self.tensions, axis=1))

    @property
    def hottest(self) -> Array:
        """Highest temperature, shape (K,), [degC]."""
        return np.asarray(self.temperatures.max(axis=1))

    def moved(self, since: float) -> Array:
        """Return the norm of the motion since a time [s], shape (K,), [rad]."""
        return np.asarray(np.linalg.norm(self.q - self.q[self.row(since)], axis=1))

    def muscle_names(self) -> list[str]:
        """Return the names of the muscles."""
        return [muscle.name for muscle in self.robot.muscles]
