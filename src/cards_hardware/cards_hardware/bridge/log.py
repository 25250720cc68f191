"""The log of the bridge: one row per state of the real robot."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cards_core.loop.run_log import RunLog
from cards_core.robot.model import Robot, Tree
from cards_core.stamps import seconds
from cards_hardware.bridge.hardware_state import HardwareState

NAME = "hardware.npz"
"""File in the folder of a run."""


class BridgeLog:
    """Rows of what was published, with the columns of a simulator's log and some more.

    Args:
        path: The ``.npz`` to write.
        robot: The robot.
        tree: Lays out q and qd.

    Raises:
        OSError: It cannot be written there.
    """

    def __init__(self, path: Path, robot: Robot, tree: Tree) -> None:
        muscles = len(robot.muscles)
        self._log = RunLog(
            path,
            {
                "time": None,
                "q": tree.nq,
                "qd": tree.nv,
                "muscle_lengths": muscles,
                "muscle_rates": muscles,
                "tensions": muscles,
                "currents": muscles,
                "board_state": None,
                "active": None,
                "age": None,
            },
            {
                "position_names": np.array(tree.position_names, dtype=np.str_),
                "muscle_names": np.array([muscle.name for muscle in robot.muscles], dtype=np.str_),
            },
        )

    def record(self, stamp: int, state: HardwareState, age: float, *, active: bool) -> None:
        """Add a row.

        Args:
            stamp: Stamp of the message, [ns].
            state: What was published.
            age: Time from the sample to the message, [s].
            active: Whether commands passed.

        Raises:
            OSError: The row cannot be written.
        """
        self._log.append(
            seconds(stamp),
            state.q,
            state.qd,
            state.lengths,
            state.rates,
            state.tensions,
            state.currents,
            float(state.state),
            float(active),
            age,
        )

    def close(self) -> None:
        """Write the file. Raises `OSError`."""
        self._log.close()


def open_log(folder: str, robot: Robot, tree: Tree) -> BridgeLog | None:
    """Open the log in a folder, none if the folder is empty. Raises `OSError`."""
    return BridgeLog(Path(folder) / NAME, robot, tree) if folder else None
