"""World, command gate and log: what a host of muscles does between two messages.

The node puts topics around `SimulatorHost`; a runner without ROS calls it directly. Both
therefore do the same arithmetic, and a closed loop gives the same trajectory to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy.typing as npt

from cards_core.muscles.command import MuscleCommand
from cards_core.robot.actuators import CommandKind
from cards_core.typing import Array
from cards_ros.host_log import open_host_log
from cards_ros.log import RunLog
from cards_ros.stamps import nanoseconds
from cards_sim.simulator import Simulator, SimulatorState


class SimulatorHost:
    """A simulated robot that takes commands by name.

    Args:
        simulator: The world.
        command_timeout: Time without a valid command after which tensions decay, [s].
        decay_time: How long they take to decay to the minimum, [s].
        initial_positions: Joint coordinates at time zero, shape (nq,); home if None.
        log_path: ``.npz`` to write with one row per step; none if None. A reset
            begins its next part.

    Attributes:
        simulator, command: The world and its command gate.
        state: State now.
        stamp: Its time as it appears in messages, [ns].
        log: The log, if any.
        behind: Real time lost so far, [s]; whoever paces the steps says so here.

    Raises:
        ShapeError: Wrong number of initial positions.
        OSError: The log cannot be written there.
    """

    def __init__(
        self,
        simulator: Simulator,
        *,
        command_timeout: float,
        decay_time: float = 0.0,
        initial_positions: Array | None = None,
        log_path: str | Path | None = None,
    ) -> None:
        self.simulator = simulator
        robot, tree = simulator.robot, simulator.tree
        self.command = MuscleCommand(robot, timeout=command_timeout, decay_time=decay_time)
        self._initial = initial_positions
        self.log: RunLog | None = None
        if log_path is not None:
            names = simulator.muscles.state_names
            self.log = open_host_log(Path(log_path), robot, tree, names)
        self.state: SimulatorState
        self.stamp = 0
        self.behind = 0.0
        self.reset()

    def reset(self) -> None:
        """Go back to time zero, forget all commands, release the emergency stop."""
        self.simulator.reset(self._initial)
        self.command.reset()
        self.behind = 0.0
        if self.log is not None:
            self.log.next_part()
        self._read()

    def submit(
        self, names: Sequence[str], values: npt.ArrayLike, kind: CommandKind = "force"
    ) -> None:
        """Take over a command at the present time; see `MuscleCommand.submit`.

        Raises:
            CommandRefusedError: The command is not acceptable; nothing of it was applied.
        """
        self.command.submit(names, values, self.simulator.time, kind=kind)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Who was told nothing at the present time; see `MuscleCommand.unanswered`."""
        return self.command.unanswered(self.simulator.time)

    def step(self) -> None:
        """Advance by one step and log it: `advance`, then `record`."""
        self.advance()
        self.record()

    def advance(self) -> None:
        """Advance by one step with what the command gate says.

        Raises:
            SimulationStoppedError: The physics diverged; `state` is the last good one.
        """
        simulator = self.simulator
        values = self.command.values(simulator.time)
        simulator.step(values, self.command.kinds)
        self._read()

    def record(self) -> None:
        """Log the present state. Raises `OSError` if the log cannot be written."""
        if self.log is not None:
            s = self.state
            gate = self.command
            muscles = (s.muscle_lengths, s.muscle_rates, s.tensions, s.actuators)
            how = (float(gate.condition), float(gate.refused), self.behind)
            self.log.append(s.time, s.q, s.qd, *muscles, s.efforts, *how)

    def _read(self) -> None:
        self.state = self.simulator.state
        self.stamp = nanoseconds(self.state.time)

    def close(self) -> None:
        """Write the log."""
        if self.log is not None:
            self.log.close()
