"""Runs of tensegrity robots under the set-points of their impedance law, described by data.

The record of a run has poses of the bodies and what a tension sensor of the cables reads,

    T = max(0, k (l - L0)),

the tension without the damping of the cable, as in [Mirletz2016]_.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.reproduce.experiment import FinishedRun, Setup, Tell
from cards_core.control.cpg.ntrt import read_folder
from cards_core.control.cpg.oscillators import Oscillators
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.loop.control_setup import make_control_loop
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import Capsule, Cylinder
from cards_core.robot.model import Robot
from cards_core.tensegrity import build
from cards_core.typing import Array
from cards_sim.build import build_host
from cards_sim.host import SimulatorHost

RECORD = "spine.npz"
"""File in the folder of a run, with one row each ``row_period`` of the set-up."""

COMMANDS = "commands.npz"
"""File in the folder of a run: the set-points that it replays, if it does."""

TELL_PERIOD = 0.25
"""Simulated time between two reports of progress, [s]."""

COLUMNS = ("time", "poses", "tensions", "lengths")


def spine_run(setup: Setup, folder: Path, tell: Tell) -> dict[str, Any]:
    """Simulate a tensegrity robot with the controller ``impedance``.

    The `Experiment.perform` of such runs.

    Args:
        setup: ``robot``: name or path; ``simulator``, ``parameters``: of simulator and
            controller; ``commands``: set-points to replay, see `recorded`, or None; ``load``:
            forces on nodes, see `Load`, or None; ``contact_stiffness``: factor of the stiffness
            of contacts; ``duration``, ``row_period``: [s].
        folder: Gets `RECORD` and `COMMANDS`.
        tell: Told the share that is done, 0 to 1.

    Returns:
        The largest tension of each cable in all steps, [N].

    Raises:
        CardsError: The set-up does not fit the robot; the message says why.
    """
    robot = load(setup["robot"])
    host = build_host(ParameterSet(dict(setup["simulator"]), "simulator"), robot)
    _stiffen_contacts(host, float(setup["contact_stiffness"]))
    parameters = {**setup["parameters"], "reference": "", "reference_file": "", "log_dir": ""}
    if setup["commands"] is not None:
        time, rates = recorded(setup["commands"], robot, float(setup["duration"]))
        np.savez(folder / COMMANDS, time=time, rest_rate=rates)
        parameters |= {"gait": "replay", "file": str(folder / COMMANDS)}
    loop = make_control_loop("impedance", ParameterSet(parameters, "impedance"), robot)
    load_course = None if setup["load"] is None else Load(robot, setup["load"])
    stiffness = _stiffness(robot)
    duration, period = float(setup["duration"]), float(setup["row_period"])
    most = np.zeros(len(robot.muscles))
    rows: dict[str, list[Array]] = {name: [] for name in COLUMNS}
    told = 0.0
    while host.state.time < duration:
        if load_course is not None:
            load_course.push(host)
        host.submit(loop.step(host.state))
        host.step()
        state = host.state
        if state.muscle_lengths is None or state.actuators is None:
            raise CardsError(f"{robot.name} does not tell the lengths of its cables")
        tensions = np.maximum(0.0, stiffness * (state.muscle_lengths - state.actuators))
        np.maximum(most, tensions, out=most)
        if (len(rows["time"]) + 1) * period <= state.time + 1e-9:
            poses = host.simulator.link_poses()[:, :3]
            values = (np.array(state.time), poses, tensions, state.muscle_lengths.copy())
            for name, value in zip(COLUMNS, values, strict=True):
                rows[name].append(value)
        if state.time >= told:
            told += TELL_PERIOD
            tell(state.time / duration)
    arrays: dict[str, Any] = {name: np.array(values) for name, values in rows.items()}
    np.savez(folder / RECORD, **arrays)
    names = [muscle.name for muscle in robot.muscles]
    return {"largest_tensions_N": dict(zip(names, most.tolist(), strict=True))}


def _stiffness(robot: Robot) -> Array:
    out = []
    for muscle in robot.muscles:
        if not isinstance(muscle.actuator, Cable) or muscle.actuator.stiffness is None:
            raise CardsError(f"muscle '{muscle.name}' of {robot.name} is no elastic cable")
        out.append(muscle.actuator.stiffness)
    return np.array(out)


def _stiffen_contacts(host: SimulatorHost, factor: float) -> None:
    """Multiply the stiffness of all contacts by a factor.

    MuJoCo's contacts have a time constant t, their stiffness is proportional to 1/t^2.
    """
    model = host.simulator.model
    for values in (model.geom_solref, model.pair_solref):
        values[:, 0] /= math.sqrt(factor)


# Set-points to replay ----------------------------------------------------------------------------


def recorded(commands: Mapping[str, Any], robot: Robot, duration: float) -> tuple[Array, Array]:
    """Return times, shape (n,), [s], and rates v0 of all cables, shape (n, m), [m/s].

    ``kind: waves`` has ``frequency`` [Hz] and lists, one value per cable, of ``amplitude``
    [m/s], ``phase`` [rad] and ``offset`` [m/s]:

        v0 = A cos(2 pi f t + phi) + offset

    ``kind: pattern`` has ``files``, the beginning of the names of a learned set of NASA's toolkit
    below `ntrt_folder`, and ``signs``, one per cable: the output of its oscillators, from rest.
    Both have ``period``, between set-points, [s].

    Args:
        commands: See above.
        robot: Robot with m cables.
        duration: Of the run, [s].

    Raises:
        CardsError: The files of the toolkit are missing or do not fit the robot.
    """
    period = float(commands["period"])
    time = np.arange(0.0, duration, period)
    if commands["kind"] == "waves":
        amplitude, phase, offset = (
            np.array(commands[name]) for name in ("amplitude", "phase", "offset")
        )
        angle = 2.0 * np.pi * float(commands["frequency"]) * time[:, None] + phase
        return time, amplitude * np.cos(angle) + offset
    folder, _, name = str(commands["files"]).rpartition("/")
    base = ntrt_folder(folder)
    if base is None:
        raise CardsError(missing_pattern(commands))
    learned = read_folder(base / folder, name)
    oscillators = Oscillators(
        len(robot.muscles), learned.oscillators, learned.couple(robot.muscles)
    )
    scale = learned.rate_scale * np.array(commands["signs"], dtype=float)
    rates = np.empty((len(time), len(robot.muscles)))
    for row in rates:
        oscillators.advance(period)
        row[:] = scale * oscillators.output
    return time, rates


# Load --------------------------------------------------------------------------------------------


class Load:
    """Forces on nodes of a structure over time.

    Args:
        robot: Its structure file lies beside its description.
        course: ``direction``: unit vector of the world; ``shares``: of nodes, as the structure
            names them, in the force; ``times`` [s] and ``forces`` [N]: the force, linear between
            these, zero before and after; ``period``: it changes at multiples of this, [s].

    Raises:
        CardsError: The structure cannot be read, or has no such node.
    """

    def __init__(self, robot: Robot, course: Mapping[str, Any]) -> None:
        if robot.source is None:
            raise CardsError(f"{robot.name} has no file (expected: one beside its structure)")
        structure = build(Path(robot.source).parent / "structure.yaml")
        dynamics = make_dynamics(robot, "numeric")
        poses = dynamics.link_poses(robot.tree.home)
        links = [link.name for link in robot.links]
        self._nodes: list[tuple[str, Array, float]] = []
        for node, share in course["shares"].items():
            link = node.partition(".")[0]
            if node not in structure.nodes or link not in links:
                raise CardsError(f"{robot.name} has no node '{node}'")
            pose = poses[links.index(link)]
            point = pose[:3, :3].T @ (structure.nodes[node] - pose[:3, 3])
            self._nodes.append((link, point, float(share)))
        self._direction = np.array(course["direction"], dtype=float)
        self._times, self._forces = course["times"], course["forces"]
        self._period, self._changes = float(course["period"]), 0

    def push(self, host: SimulatorHost) -> None:
        """Push the robot of a host at the present time."""
        time = host.state.time
        if time + 1e-9 < self._changes * self._period:
            return
        self._changes += 1
        force = self.force(time)
        if force != 0.0:
            for link, point, share in self._nodes:
                host.simulator.apply_wrench(
                    link, share * force * self._direction, duration=self._period, point=point
                )

    def force(self, time: float) -> float:
        """Return the force at a time, [N]."""
        return float(np.interp(time, self._times, self._forces, left=0.0, right=0.0))


# Files of NASA's toolkit -------------------------------------------------------------------------

NTRT_VARIABLE = "CARDS_NTRT"
"""Environment variable: a clone of NTRTsim."""


def ntrt_folder(below: str) -> Path | None:
    """Return the clone of NASA's toolkit if it has a folder ``below``, else None."""
    base = Path(os.environ.get(NTRT_VARIABLE, ""))
    return base if NTRT_VARIABLE in os.environ and (base / below).is_dir() else None


def missing_pattern(commands: Mapping[str, Any]) -> str:
    """Return why a pattern cannot be replayed here; empty if it can."""
    folder, _, name = str(commands["files"]).rpartition("/")
    base = ntrt_folder(folder)
    if base is not None and (base / folder / f"{name}_node-0.nnw").is_file():
        return ""
    return (
        f"{folder}/{name}_*.nnw of NTRTsim are not here (expected: {NTRT_VARIABLE} names a clone "
        "of github.com/NASA-Tensegrity-Robotics-Toolkit/NTRTsim)"
    )


# Finished runs -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SpineRun:
    """What a finished run left.

    Attributes:
        robot: The robot.
        time: Shape (K,), [s].
        poses: Of the bodies, link to world, shape (K, n, 3, 4); their frames are at their centres
            of mass.
        tensions: What sensors read, shape (K, m), [N].
        lengths: Of the cables, shape (K, m), [m].
        largest: Largest tension of each cable in all steps, shape (m,), [N].
    """

    robot: Robot
    time: Array
    poses: Array
    tensions: Array
    lengths: Array
    largest: Array

    @classmethod
    def load(cls, run: FinishedRun) -> SpineRun:
        """Read the record of a run. Raises `CardsError` if there is none."""
        try:
            with np.load(run.folder / RECORD) as data:
                columns = {name: data[name] for name in COLUMNS}
        except (OSError, KeyError, ValueError) as error:
            raise CardsError(f"{run.folder / RECORD} cannot be read: {error}") from None
        robot = load(run.setup["robot"])
        most = run.numbers["largest_tensions_N"]
        return cls(robot, **columns, largest=np.array([most[m.name] for m in robot.muscles]))

    @property
    def places(self) -> Array:
        """Centres of mass of the bodies, shape (K, n, 3), [m]."""
        return self.poses[..., 3]

    @property
    def length(self) -> Array:
        """Distance of the first body from the last, shape (K,), [m]."""
        ends = self.places[:, 0] - self.places[:, -1]
        return np.asarray(np.linalg.norm(ends, axis=1))

    def row(self, time: float) -> int:
        """Return the row at a time [s]."""
        return int(np.clip(np.searchsorted(self.time, time - 1e-9), 0, len(self.time) - 1))

    def column(self, cable: str) -> int:
        """Return the column of a cable."""
        return [muscle.name for muscle in self.robot.muscles].index(cable)

    def rods(self, row: int) -> Array:
        """Return the ends of all rods, shape (r, 2, 3), [m]."""
        out = []
        for pose, link in zip(self.poses[row], self.robot.links, strict=True):
            for shape in link.collisions:
                if isinstance(shape.geometry, Capsule | Cylinder):
                    half = 0.5 * shape.geometry.length * shape.pose.rotation[:, 2]
                    ends = shape.pose.translation + np.array([-half, half])
                    out.append(ends @ pose[:, :3].T + pose[:, 3])
        return np.array(out)

    def cables(self, row: int) -> Array:
        """Return the ends of all cables, shape (m, 2, 3), [m]."""
        links = {link.name: i for i, link in enumerate(self.robot.links)}
        out = []
        for muscle in self.robot.muscles:
            first, last = muscle.via_points[0], muscle.via_points[-1]
            ends = []
            for point in (first, last):
                pose = self.poses[row, links[point.link]]
                ends.append(pose[:, :3] @ point.position + pose[:, 3])
            out.append(ends)
        return np.array(out)
