"""A robot of rods under command, without ROS: what happens at each step, and its log.

The node ``rod_solver`` puts topics around a `RodSimulation`; a run without ROS calls it directly.
Both therefore do the same arithmetic.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cards_core.errors import CardsError
from cards_core.foreign_files import parse_json
from cards_core.loop.run_log import RunLog
from cards_core.parameters.declaration import ParameterStore
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import PLATE_COORDINATES, RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.status import REJECTED, Finding
from cards_core.rods.tracking.commands import pose_from
from cards_core.rods.tracking.tracker import Tracker, TrackingResult
from cards_core.saved_states import SavedStates, State
from cards_core.spatial import rotation_log
from cards_core.typing import Array
from cards_rods.demo_motion import DemoMotion

Mode = Literal["dgm", "igm"]
"""dgm: joints are commanded, the plate follows; igm: the plate is commanded, the joints follow."""

LOG_NAME = "rod_solver.npz"
"""File of the log within the folder of a run."""

CONDITION_PERIOD = 0.01
"""Least time between two condition numbers, [s]: each takes as long as half a solve."""


class RodSimulation:
    """Commands, demo motion, saved states and log of one robot.

    Args:
        robot: The robot.
        tracker: Goes from command to command; made, and started, if None.
        substeps: Most solves per step.
        motion_duration: Of one round of the demo motion, [s].
        states: Saved states.
        log_path: ``.npz`` to write with one row per step; none if None.

    Raises:
        CardsError: No equilibrium was found to start from.
        OSError: The log cannot be written there.

    Attributes:
        robot, tracker, states, log: As given.
        result: Last result of the tracker.
        mode: Which command counted last.
        target_q, target_pose: Last command; the one not commanded is where the robot went.
        wrench, wrench_frame: External wrench on the plate, shape (6,), and ``world`` or ``plate``.
        refused: The last command that was refused and why; empty after one that was accepted.
        refusals: How many commands were refused.
        steps: Done so far.
        step_us: Duration of the last step, [us].
    """

    def __init__(
        self,
        robot: RodRobot,
        tracker: Tracker | None = None,
        *,
        substeps: int = 8,
        motion_duration: float = 20.0,
        states: SavedStates | None = None,
        log_path: Path | None = None,
    ) -> None:
        self.robot = robot
        self.tracker = Tracker(robot) if tracker is None else tracker
        self.result: TrackingResult = self.tracker.start()
        if self.result.solution is None:
            raise CardsError(f"{robot.name} has no state to start from: {self.result.message}")
        self._start: State = self.tracker.save()
        self.states = SavedStates(robot.name) if states is None else states
        self.mode: Mode
        self.wrench, self.wrench_frame = self.tracker.wrench, self.tracker.wrench_frame
        self._aim_here()
        start = self.solution
        self._motion = DemoMotion(
            robot, start.pose, start.q, start.stiffness, wrench=self.wrench,
            duration=motion_duration,
        )  # fmt: skip
        self._controlled = [PLATE_COORDINATES.index(name) for name in robot.controlled]
        self._fitted = False
        self._playing_since: float | None = None
        self._substeps = substeps
        self.refused = ""
        self.refusals = 0
        self.steps = 0
        self.step_us = 0.0
        self._now, self._condition, self._conditioned = 0.0, 0.0, -math.inf
        self.log: RunLog | None = None
        if log_path is not None:
            self.open_log(log_path)

    def _aim_here(self) -> None:
        solution = self.solution
        self.mode = "dgm" if self.tracker.target.by_joints else "igm"
        self.target_q = np.array(solution.q)
        self.target_pose = np.array(solution.pose)

    # Commands ---------------------------------------------------------------------------------

    def command_joints(self, names: Sequence[str], positions: Array | Sequence[float]) -> bool:
        """Command joints; those that are not named keep their targets.

        Args:
            names: Of joints or limbs, in any order; empty: all joints in the robot's order.
            positions: One for each, [m] or [rad].

        Returns:
            Whether the command was accepted; if not, `refused` says why, and nothing changed.
        """
        here = self.solution.q if self.mode == "igm" else self.target_q
        q = np.array(here, dtype=float)
        names = tuple(names) or self.robot.joint_names
        try:
            if len(positions) != len(names):
                raise CardsError(f"{len(positions)} positions for {len(names)} joints")
            places = [self.robot.joint_index(name) for name in names]
            if len(set(places)) != len(places):
                raise CardsError(f"a joint appears twice in {', '.join(names)}")
        except CardsError as error:
            return self.refuse("dgm", str(error))
        q[places] = positions
        self._playing_since = None
        return self._joints(q)

    def command_pose(self, position: Sequence[float], quaternion: Sequence[float]) -> bool:
        """Command the plate; returns the same as `command_joints`.

        Args:
            position: Shape (3,), [m].
            quaternion: ``(w, x, y, z)`` of unit length to a thousandth.
        """
        pose = pose_from(position, quaternion)
        if isinstance(pose, Finding):
            return self.refuse("igm", pose.message)
        self._playing_since = None
        return self._pose(pose)

    def set_wrench(self, wrench: Sequence[float] | Array, frame: str = "world") -> bool:
        """Load the plate; returns the same as `command_joints`.

        Args:
            wrench: Force and moment about the plate's origin, shape (6,), [N, Nm].
            frame: ``world``: keeps its direction; ``plate``: turns with the plate.
        """
        self._playing_since = None
        return self._load(np.array(wrench, dtype=float), frame)

    def _joints(self, q: Array) -> bool:
        if not self._accepted("dgm", self.tracker.command_joints(q)):
            return False
        self.mode, self.target_q = "dgm", q
        return True

    def _pose(self, pose: Array) -> bool:
        if not self._accepted("igm", self.tracker.command_pose(pose)):
            return False
        self.mode, self.target_pose = "igm", pose
        return True

    def _load(self, wrench: Array, frame: str) -> bool:
        if not self._accepted("wrench", self.tracker.set_wrench(wrench, frame)):
            return False
        self.wrench, self.wrench_frame = wrench, frame
        return True

    def _accepted(self, what: str, result: TrackingResult) -> bool:
        if result.status in REJECTED:
            return self.refuse(what, result.message)
        self.refused = ""
        self.result = result
        return True

    def refuse(self, what: str, reason: str) -> bool:
        """Record why a command was refused; returns False."""
        self.refused = f"{what}: {reason}"
        self.refusals += 1
        return False

    # States -----------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take the present state as the target."""
        self._playing_since = None
        self.tracker.stop()
        self._aim_here()

    def home(self) -> None:
        """Return to the start state at once, with the load that acted there."""
        self._take(self._start)

    def accept_branch(self) -> None:
        """Where the robot is held by BRANCH_CHANGED, go on with the equilibrium that was found."""
        self._playing_since = None
        self.result = self.tracker.accept_branch()
        self._aim_here()

    def restore(self) -> None:
        """Return to the state before another branch was accepted, or a state loaded."""
        self._playing_since = None
        self.result = self.tracker.restore()
        self._aim_here()

    def save(self, name: str) -> State:
        """Save the present state under a name and return it. Raises as `SavedStates.save`."""
        state = self.tracker.save()
        self.states.save(name, state)
        return state

    def load(self, text: str) -> None:
        """Go to a state at once.

        Args:
            text: Name of a saved state, or a state itself as a JSON object.

        Raises:
            CardsError: There is no such state, or it is damaged or of another robot.
        """
        if text.lstrip().startswith("{"):
            state = parse_json(text, "the state", "a JSON object")
        else:
            state = self.states[text]
        self._take(state)

    def _take(self, state: State) -> None:
        before = self.tracker.result.solution
        result = self.tracker.load(dict(state))
        if result.solution is before:
            raise CardsError(result.message)
        self._playing_since = None
        self.result = result
        self.refused = ""
        self.wrench, self.wrench_frame = self.tracker.wrench, self.tracker.wrench_frame
        self._aim_here()

    # Steps ------------------------------------------------------------------------------------

    @property
    def solution(self) -> Solution:
        """The last good equilibrium."""
        solution = self.result.solution
        assert solution is not None, "the tracker keeps the last one"
        return solution

    @property
    def world_wrench(self) -> Array:
        """The external wrench in world axes, shape (6,)."""
        if self.wrench_frame == "world":
            return self.wrench
        turn = self.solution.pose[:3, :3]
        return np.concatenate([turn @ self.wrench[:3], turn @ self.wrench[3:]])

    @property
    def playing(self) -> bool:
        """Whether the demo motion runs."""
        return self._playing_since is not None

    @property
    def moving(self) -> bool:
        """Whether there is a command that has not been reached, nor given up."""
        return self.playing or not (self.result.held or self.result.remaining.arrived)

    def play(self, on: bool) -> None:
        """Begin the demo motion with the next step, or end it where it is.

        The motion begins at the start state, to which the robot returns at once.
        """
        if on:
            if not self._fitted:
                self._motion.fit(Tracker(self.robot), self._start)
                self._fitted = True
            self.home()
            self._playing_since = math.inf
        elif self.playing:
            self.stop()

    def step(self, now: float, patience: float = math.inf) -> TrackingResult:
        """Go on towards the command, or along the motion, and log it.

        Args:
            now: Time of the step, [s]; never less than in the last step.
            patience: No further solve is begun after this time, [s].
        """
        if self._playing_since is not None:
            self._playing_since = min(self._playing_since, now)
            self._play(now - self._playing_since)
        begin = time.perf_counter()
        self.result = self.tracker.step(self._substeps, patience)
        self.step_us = 1e6 * (time.perf_counter() - begin)
        self.steps += 1
        self._now = now
        if self.log is not None:
            self.log.append(*self._row(now))
        return self.result

    def _play(self, time: float) -> None:
        target = self._motion.at(time)
        if (target.wrench != self.wrench).any() or self.wrench_frame != "world":
            self._load(target.wrench, "world")
        if target.kind == "pose":
            self._pose(target.pose)
        else:
            self._joints(target.q)

    def solve(self, limit: float) -> TrackingResult:
        """Step until the command is reached or held, for at most ``limit`` [s].

        Where the time ends it before, the status is MOVING, or worse, and the message says so.
        The way does not depend on the time, only how much of it has been gone.
        """
        end = time.monotonic() + limit
        while True:
            self.result = self.tracker.step(self._substeps, max(end - time.monotonic(), 0.0))
            done = self.result.held or self.result.remaining.arrived
            if done:
                return self.result
            if time.monotonic() >= end:
                left = 100.0 * self.result.remaining.fraction
                late = f"not there yet after {limit:g} s: {left:.1f} % of the way is left"
                message = "; ".join(text for text in (self.result.message, late) if text)
                self.result = replace(self.result, message=message)
                return self.result

    def errors(self) -> tuple[float, float]:
        """Return the distance of the plate from the commanded pose, ([m], [rad]); NaN in dgm.

        In the coordinates that the robot controls.
        """
        if self.mode == "dgm":
            return float("nan"), float("nan")
        pose, target = self.solution.pose, self.target_pose
        turn = rotation_log(target[:3, :3] @ pose[:3, :3].T)
        way = [*(target[:3, 3] - pose[:3, 3]).tolist(), *turn.tolist()]
        return (
            math.hypot(*(way[i] for i in self._controlled if i < 3)),
            math.hypot(*(way[i] for i in self._controlled if i >= 3)),
        )

    @property
    def condition(self) -> float:
        """Condition number of the joints' Jacobian, `CONDITION_PERIOD` old at most."""
        if not abs(self._now - self._conditioned) < CONDITION_PERIOD - 1e-9:
            self._condition, self._conditioned = self.solution.condition, self._now
        return self._condition

    def _row(self, now: float) -> tuple[Any, ...]:
        result, solution = self.result, self.solution
        return (
            now, float(result.status), float(result.held), float(self.mode == "igm"),
            solution.q, self.target_q, solution.pose.ravel(), self.target_pose.ravel(),
            *self.errors(), self.wrench, solution.base_wrenches.ravel(),
            result.min_eigenvalue, result.reference_eigenvalue, self.condition,
            solution.residual, float(solution.iterations),
            float(result.substeps), self.step_us,
        )  # fmt: skip

    def open_log(self, path: Path) -> None:
        """Record the steps to come. Raises OSError if the log cannot be written there."""
        names = {"joint_names": np.array(self.robot.joint_names, dtype=np.str_)}
        self.log = RunLog(path, log_columns(self.robot.n_limbs), names)

    def close(self) -> None:
        """Write the log, which ends. Raises OSError."""
        if self.log is not None:
            log, self.log = self.log, None
            log.close()


def make_simulation(
    value: ParameterStore,
    robot: RodRobot | None = None,
    tracker: Any = None,
    *,
    kind: type[RodSimulation] = RodSimulation,
    namespace: str = "",
) -> RodSimulation:
    """Return a robot under command, at its start state.

    Args:
        value: The parameters of `cards_rods.node_parameters`.
        robot: Replaces the parameter ``model``.
        tracker: Replaces the robot's tracker.
        kind: Class of the simulation.
        namespace: Folder within ``log_dir``, where several robots share their parameters.

    Raises:
        CardsError: The robot cannot be read, has no equilibrium to start from, or the file with
            states is not one.
        OSError: The log cannot be written.
    """
    robot = robot or read_rod_robot(value["model"])
    states = Path(value["states_file"]).expanduser() if value["states_file"] else None
    log = Path(value["log_dir"], namespace, LOG_NAME) if value["log_dir"] else None
    return kind(
        robot,
        tracker,
        substeps=value["substeps"],
        motion_duration=value["motion_duration"],
        states=SavedStates(robot.name, states),
        log_path=log,
    )


def log_columns(limbs: int) -> dict[str, int | None]:
    """Return name and width of each column; poses and wrenches are rows of their matrices."""
    return {
        "time": None,
        "status": None,
        "held": None,
        "inverse": None,  # 1 where a pose was commanded, 0 where joints were
        "q": limbs,
        "target_q": limbs,
        "pose": 16,
        "target_pose": 16,
        "position_error": None,
        "rotation_error": None,
        "wrench": 6,
        "base_wrenches": 6 * limbs,
        "min_eigenvalue": None,
        "start_eigenvalue": None,
        "condition": None,  # at most every `CONDITION_PERIOD`
        "residual": None,
        "iterations": None,
        "substeps": None,
        "step_us": None,
    }
