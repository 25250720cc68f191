"""``~/state``: everything about one step in one message, as named numbers.

A sensor_msgs/JointState with names and positions: the one standard message that gives numbers
names, with one stamp. Its names never change while the node runs, so it is written as bytes.
"""

from __future__ import annotations

import numpy as np

from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import RobotShapes
from cards_core.spatial import matrix_quaternion
from cards_core.typing import Array
from cards_rods.session import RodSession

POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")
PLATE = ("x", "y", "z", "rx", "ry", "rz")

SCALARS = (
    "status",  # number of a RodStatus
    "mode",  # 0 dgm, 1 igm
    "held",
    "moving",
    "playing",
    "remaining",  # part of the command that is ahead, 0 .. 1
    "min_eigenvalue",
    "start_eigenvalue",
    "condition",
    "residual",
    "iterations",
    "substeps",
    "solve_us",  # of the solver, last solve
    "step_us",  # of the whole step
    "rate_hz",
    "skipped",
)
"""The first names, in this order."""


def state_names(robot: RodRobot) -> tuple[str, ...]:
    """Return all names of ``~/state`` in their order."""
    limbs = [limb.name for limb in robot.limbs]
    joints = robot.joint_names
    return (
        *SCALARS,
        *(f"q/{name}" for name in joints),
        *(f"target/{name}" for name in joints),
        *(f"plate/{name}" for name in POSE),
        *(f"target/{name}" for name in POSE),
        *(f"external/{name}" for name in WRENCH),
        *(f"wrench/{name}" for name in WRENCH),
        *(f"collapse/{name}" for name in PLATE),
        *(f"K/{row}{column}" for row in range(6) for column in range(6)),
        *(f"base/{limb}/{name}" for limb in limbs for name in WRENCH),
        *(f"tip/{limb}/{name}" for limb in limbs for name in WRENCH),
        *(f"curvature/{limb}" for limb in limbs),
        *(f"stress/{limb}" for limb in limbs),
    )


def pose_values(pose: Array) -> Array:
    """Return position and quaternion ``(w, x, y, z)`` of a pose (4, 4), shape (7,)."""
    return np.concatenate([pose[:3, 3], matrix_quaternion(pose[:3, :3])])


def state_values(
    session: RodSession, shapes: RobotShapes | None, rate_hz: float, skipped: int
) -> Array:
    """Return the numbers that belong to `state_names`.

    Args:
        session: The robot.
        shapes: The shapes that were computed last, for the largest curvature and stress; NaN
            without them.
        rate_hz: Steps per second.
        skipped: Steps left out because others took too long.
    """
    answer, solution = session.answer, session.solution
    none = np.full(len(session.robot.limbs), np.nan)
    scalars = (
        answer.status,
        session.mode == "igm",
        answer.held,
        session.moving,
        session.playing,
        answer.remaining.fraction,
        answer.min_eigenvalue,
        answer.reference_eigenvalue,
        solution.condition,
        solution.residual,
        solution.iterations,
        answer.substeps,
        1e6 * solution.time_s,
        session.step_us,
        rate_hz,
        skipped,
    )
    return np.concatenate(
        [
            np.array(scalars, dtype=float),
            solution.q,
            session.target_q,
            pose_values(solution.pose),
            pose_values(session.target_pose),
            solution.wrench,
            solution.plate_wrench,
            answer.eigenvector,
            np.ravel(solution.stiffness),
            np.ravel(solution.base_wrenches),
            np.ravel(solution.tip_wrenches),
            none if shapes is None else shapes.curvature.max(axis=1),
            none if shapes is None else shapes.stress.max(axis=1),
        ]
    )
