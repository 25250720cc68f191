"""The log of a simulator of muscles: one row per step, the same columns from every host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cards_core.description.model import Robot
from cards_core.kinematics.tree import Tree
from cards_ros.log import RunLog

NAME = "simulator.npz"
"""File in the folder of a run."""


def open_host_log(path: Path, robot: Robot, tree: Tree, state_names: Sequence[str]) -> RunLog:
    """Open a log for rows of time, q, qd, muscle lengths, rates, tensions and actuator states.

    Args:
        path: The ``.npz`` to write.
        robot: The robot.
        tree: Lays out q and qd.
        state_names: Names of the actuator states.

    Raises:
        OSError: It cannot be written there.
    """
    muscles = len(robot.muscles)
    return RunLog(
        path,
        {
            "time": None,
            "q": tree.nq,
            "qd": tree.nv,
            "muscle_lengths": muscles,
            "muscle_rates": muscles,
            "tensions": muscles,
            "actuators": len(state_names),
        },
        {
            "position_names": np.array(tree.position_names, dtype=np.str_),
            "muscle_names": np.array([muscle.name for muscle in robot.muscles], dtype=np.str_),
            "actuator_names": np.array(state_names, dtype=np.str_),
        },
    )
