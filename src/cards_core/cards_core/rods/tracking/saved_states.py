"""Saved states of a rod robot: as plain numbers and back, under names, in a file.

A state is q, the plate pose, the wrenches at the rod starts and the wrench on the plate. The base
wrenches identify the branch: from them one solve leads back to the same equilibrium. Rods that are
cut into segments are too sensitive to their base wrenches for that; the solver's whole record is
saved with them. `SavedStates` keeps states by name, in memory and, if wanted, in a JSON file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.errors import CardsError, UnknownNameError
from cards_core.files import write_atomically
from cards_core.rods.robots.initial_guess import InitialGuess
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import Finding, RodStatus
from cards_core.rods.tracking.commands import checked_pose, checked_wrench
from cards_core.rods.tracking.targets import Target, pose_difference

FORMAT = "cards rod state 1"


def state_to_dict(robot: RodRobot, solution: Solution, target: Target) -> dict[str, Any]:
    """Return a state as a dictionary of strings and lists of numbers.

    Args:
        robot: The robot.
        solution: The state.
        target: Its target.
    """
    state = {
        "format": FORMAT,
        "robot": robot.name,
        "joints": dict(zip(robot.joint_names, solution.q.tolist(), strict=True)),
        "pose": solution.pose.tolist(),
        "base_wrenches": solution.base_wrenches.tolist(),
        "wrench": np.asarray(target.wrench).tolist(),
        "frame": target.frame,
        "given": "joints" if target.by_joints else "pose",
    }
    if solution.segments > 1:
        state["segments"] = solution.segments
        state["record"] = solution.record.tolist()
    return state


def state_from_dict(
    robot: RodRobot, solver: RodRobotSolver, state: dict[str, Any]
) -> tuple[Solution, Target] | Finding:
    """Solve a saved state again.

    Args:
        robot: The robot.
        solver: Its solver.
        state: As made by `state_to_dict`.

    Returns:
        The solution and the target that it fulfils; or INVALID for a state that is not one of
        this robot, NOT_CONVERGED, or BRANCH_CHANGED if the solver ended somewhere else.
    """
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        return Finding(RodStatus.INVALID, f"saved state: expected format '{FORMAT}'")
    joints = state.get("joints")
    if not isinstance(joints, dict) or set(joints) != set(robot.joint_names):
        names = ", ".join(map(str, joints)) if isinstance(joints, dict) else "none"
        return Finding(
            RodStatus.INVALID,
            f"saved state of '{state.get('robot')}' has the joints {names};"
            f" '{robot.name}' has {', '.join(robot.joint_names)}",
        )
    pose = checked_pose(robot, state.get("pose"), solver.base)
    wrench = checked_wrench(state.get("wrench"), str(state.get("frame")))
    for value in (pose, wrench):
        if isinstance(value, Finding):
            return Finding(value.status, f"saved state: {value.message}")
    assert not isinstance(pose, Finding)
    assert not isinstance(wrench, Finding)
    try:
        q = np.array([float(joints[name]) for name in robot.joint_names])
        base = np.array(state.get("base_wrenches"), dtype=float)
    except (TypeError, ValueError):
        return Finding(RodStatus.INVALID, "saved state: has entries that are no numbers")
    if base.shape != (robot.n_limbs, 6) or not (np.isfinite(base).all() and np.isfinite(q).all()):
        return Finding(
            RodStatus.INVALID, f"saved state: base_wrenches must be {robot.n_limbs} x 6 numbers"
        )
    start, frame = _start(solver, state) or InitialGuess(q, pose, base), str(state["frame"])
    solution = solver.dgm(q, wrench=wrench, frame=frame, start=start)
    if solution.status is not RodStatus.OK:
        return Finding(
            RodStatus.NOT_CONVERGED, "saved state: no equilibrium there; was the robot changed?"
        )
    step = pose_difference(pose, solution.pose)
    if np.linalg.norm(step[:3]) > 1e-3 or np.linalg.norm(step[3:]) > 1e-2:
        return Finding(
            RodStatus.BRANCH_CHANGED,
            "saved state: the equilibrium found is"
            f" {1e3 * np.linalg.norm(step[:3]):.1f} mm from the saved one; not taken",
        )
    if state.get("given") == "joints":
        return solution, Target(q, None, wrench, frame)
    return solution, Target(None, solution.pose.copy(), wrench, frame)


def _start(solver: RodRobotSolver, state: dict[str, Any]) -> Solution | None:
    """Return the saved record as a solution to start from; None if there is none that fits."""
    if "record" not in state:
        return None
    try:
        return solver.recorded(np.array(state["record"], dtype=float), int(state["segments"]))
    except (KeyError, TypeError, ValueError):
        return None


LONGEST_NAME = 64

State = Mapping[str, Any]
"""What `Tracker.save` returns: objects, arrays, texts and numbers of JSON."""


class SavedStates:
    """States by name.

    Args:
        robot: Name of the robot; a file of another one is refused.
        file: Where they are kept; read now, written at each change. None: in memory only.

    Raises:
        CardsError: The file is damaged, or of another robot.
    """

    def __init__(self, robot: str, file: Path | None = None) -> None:
        self._robot = robot
        self._file = file
        self._states: dict[str, State] = {}
        if file is not None and file.exists():
            self._states = self._read(file)

    def _read(self, file: Path) -> dict[str, State]:
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            robot, states = content["robot"], dict(content["states"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CardsError(
                f"{file}: no saved states ({error!r}) "
                '(expected: {"robot": name, "states": {name: state}}, or no such file)'
            ) from error
        if robot != self._robot:
            raise CardsError(f"{file}: states of robot '{robot}' (expected: '{self._robot}')")
        return states

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the order in which they were saved."""
        return tuple(self._states)

    def __getitem__(self, name: str) -> State:
        """Return a state. Raises `UnknownNameError`."""
        try:
            return self._states[name]
        except KeyError:
            raise UnknownNameError("saved state", name, self._states) from None

    def save(self, name: str, state: State) -> None:
        """Save a state, in place of one of the same name.

        Raises:
            CardsError: The name is empty, too long or not printable.
            OSError: The file cannot be written; the state is kept in memory.
        """
        if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
            raise CardsError(
                f"state name {name!r} (expected: 1 to {LONGEST_NAME} printable characters)"
            )
        self._states[name] = state
        self._write()

    def delete(self, name: str) -> None:
        """Forget a state. Raises `UnknownNameError`, or OSError as `save`."""
        self[name]
        del self._states[name]
        self._write()

    def text(self) -> str:
        """Return all states as one JSON object by name."""
        return json.dumps(self._states, allow_nan=False)

    def _write(self) -> None:
        if self._file is None:
            return
        content = {"robot": self._robot, "states": self._states}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._file, json.dumps(content, allow_nan=False) + "\n")
