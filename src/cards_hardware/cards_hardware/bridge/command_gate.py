"""Checks commands before they go to the boards; sends nothing older than the command itself.

The gate of all hosts, `MuscleCommand`, checks names, kinds and limits. A simulator then asks it in
every step what all muscles are told. Here nothing is repeated: if it were, the watchdogs of the
boards, which work muscle by muscle, would not see that a controller is silent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cards_core.muscles.command import CommandRefusedError, MuscleCommand
from cards_core.robot.actuators import CommandKind
from cards_core.robot.model import Robot
from cards_core.typing import Array


class CommandGate:
    """Checks commands and returns what to send.

    Args:
        robot: With the limits of the boards.
        timeout: Age at which a muscle's command counts as given up, [s].

    Attributes:
        command: The gate of all hosts.
    """

    def __init__(self, robot: Robot, timeout: float) -> None:
        self.command = MuscleCommand(robot, timeout=timeout)
        self._names = [muscle.name for muscle in robot.muscles]
        self._index = {name: i for i, name in enumerate(self._names)}

    def submit(
        self, names: Sequence[str], values: npt.ArrayLike, kind: CommandKind, now: float
    ) -> Array:
        """Return what to send for a command, in the order of the robot's muscles; NaN: nothing.

        Args:
            names: Muscles.
            values: What they are told, [N], [m] or [Pa].
            kind: What the values are.
            now: Time of arrival, [s].

        Raises:
            CommandRefusedError: The command is not acceptable; nothing of it is to be sent.
        """
        if kind == "excitation":
            raise CommandRefusedError(
                "excitation command refused: muscle boards take force, length and pressure"
            )
        self.command.submit(names, values, now, kind=kind)
        told = self.command.values(now)
        if list(names) != self._names:
            addressed = np.zeros(len(self._names), dtype=bool)
            addressed[[self._index[name] for name in names]] = True
            told[~addressed] = np.nan
        return told

    def stale(self, now: float) -> bool:
        """Tell whether muscles that were told something hear nothing any more."""
        self.command.values(now)
        return bool(self.command.stale)
