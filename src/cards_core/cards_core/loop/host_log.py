"""The log of a simulator of muscles: one row per step, the same columns from every host.

Beside the state it has what a verdict needs to know: ``gate``, the
`cards_core.muscles.command.GateCondition` of the step, ``refused``, the commands refused so far,
and ``behind``, the real time that has been lost so far, [s], in mode realtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cards_core.loop.run_log import RunLog
from cards_core.robot.model import Robot, Tree
from cards_core.robot.motors import motors_of

NAME = "simulator.npz"
"""File in the folder of a run."""


def open_host_log(path: Path, robot: Robot, tree: Tree, state_names: Sequence[str]) -> RunLog:
    """Open a log of time, q, qd, muscles, actuator states, efforts, gate, refused and behind.

    Args:
        path: The ``.npz`` to write.
        robot: The robot.
        tree: Lays out q and qd.
        state_names: Names of the actuator states.

    Raises:
        OSError: It cannot be written there.
    """
    muscles, motors = len(robot.muscles), motors_of(tree)
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
            "efforts": len(motors),
            "gate": None,
            "refused": None,
            "behind": None,
        },
        {
            "position_names": np.array(tree.position_names, dtype=np.str_),
            "muscle_names": np.array([muscle.name for muscle in robot.muscles], dtype=np.str_),
            "actuator_names": np.array(state_names, dtype=np.str_),
            "motor_names": np.array(motors.names, dtype=np.str_),
        },
    )


def kept_by_reset(log: RunLog | None) -> str:
    """Return what the answer of a reset says of what has been recorded so far."""
    if log is None or not log.rows:
        return ""
    return f"; the {log.rows} steps before are kept as part {log.number} of the log"
