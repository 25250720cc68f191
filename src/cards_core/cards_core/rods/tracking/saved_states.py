"""Saved states of a rod robot: as plain numbers and back, under names, in a file.

A state is q, the plate pose, the wrenches at the rod starts and the wrench on the plate. The base
wrenches identify the branch: from them one solve leads back to the same equilibrium. Rods that are
cut into segments are too sensitive to their base wrenches for that; the solver's whole record is
saved with them. They are kept by `cards_core.saved_states`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
