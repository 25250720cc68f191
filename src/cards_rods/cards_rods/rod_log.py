"""The log of a robot of rods: one row per step."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cards_core.loop.run_log import RunLog
from cards_core.rods.robots.robot import RodRobot

LOG_NAME = "rod_solver.npz"


def columns(limbs: int) -> dict[str, int | None]:
    """Return name and width of each column; poses and wrenches are rows of their matrices."""
    return {
        "time": None,
        "status": None,
        "held": None,
        "inverse": None,  # 1 where a pose was told, 0 where joints were
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
        "condition": None,
        "residual": None,
        "iterations": None,
        "substeps": None,
        "step_us": None,
    }


def make_log(path: Path, robot: RodRobot) -> RunLog:
    """Begin the log of a robot. Raises OSError if it cannot be written there."""
    names = {"joint_names": np.array(robot.joint_names, dtype=np.str_)}
    return RunLog(path, columns(robot.n_limbs), names)
