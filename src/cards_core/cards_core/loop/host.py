"""What every host of muscles is: a robot that gives states and takes commands.

The embedded simulator, Gazebo and the real robot are hosts. What they do with a command, when they
refuse it, and what they record is decided here, so that a controller cannot tell them apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from cards_core.loop.host_log import open_host_log
from cards_core.loop.run_log import RunLog
from cards_core.muscles.command import Command, CommandRefusedError, MuscleCommand
from cards_core.robot.model import Robot
from cards_core.robot.state import RobotState
from cards_core.stamps import seconds


class Host(ABC):
    """A robot behind a command gate, with a log.

    Args:
        robot: The description, with all muscles.
        actuator_names: Names of the actuator states in `RobotState.actuators`.
        command_timeout: Time without a valid command after which tensions decay, [s].
        decay_time: How long they take to decay to the minimum, [s].
        log_path: ``.npz`` to write with one row per step; none if None. A reset begins its next
            part.

    Attributes:
        robot, actuator_names: As given.
        gate: What commands have to pass.
        log: The log, if any.
        behind: Real time lost so far, [s]; whoever paces the steps says so here.

    Raises:
        OSError: The log cannot be written there.
    """

    def __init__(
        self,
        robot: Robot,
        actuator_names: Sequence[str],
        *,
        command_timeout: float,
        decay_time: float = 0.0,
        log_path: str | Path | None = None,
    ) -> None:
        self.robot = robot
        self.actuator_names = tuple(actuator_names)
        self.gate = MuscleCommand(robot, timeout=command_timeout, decay_time=decay_time)
        self.behind = 0.0
        self.log: RunLog | None = None
        if log_path is not None:
            self.open_log(log_path)

    @property
    @abstractmethod
    def stamp(self) -> int:
        """Time of the present state, [ns]."""

    @property
    @abstractmethod
    def state(self) -> RobotState:
        """The present state; its arrays are not changed afterwards."""

    def submit(self, command: Command) -> None:
        """Take over a command at the present time.

        Each part is accepted or refused as a whole, as messages are; see `MuscleCommand.submit`.

        Raises:
            CommandRefusedError: A part is not acceptable, and nothing of that part was applied.
        """
        refusal: CommandRefusedError | None = None
        now = seconds(self.stamp)
        for part in command:
            try:
                self.gate.submit(part.names, part.values, now, kind=part.kind)
            except CommandRefusedError as error:
                refusal = refusal or error
        if refusal is not None:
            raise refusal

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Who was told nothing at the present time; see `MuscleCommand.unanswered`."""
        return self.gate.unanswered(seconds(self.stamp))

    def reset(self) -> None:
        """Forget all commands, release the emergency stop, begin the next part of the log.

        Subclasses put the robot back to time zero as well.
        """
        self.gate.reset()
        self.behind = 0.0
        if self.log is not None:
            self.log.next_part()

    def record(self) -> None:
        """Log the present state. Raises `OSError` if the log cannot be written."""
        if self.log is None:
            return
        state, gate = self.state, self.gate
        self.log.append(
            state.time,
            state.q,
            state.qd,
            state.measured("muscle_lengths"),
            state.measured("muscle_rates"),
            state.measured("tensions"),
            state.measured("actuators"),
            state.measured("efforts"),
            float(gate.condition),
            float(gate.refused),
            self.behind,
        )

    def open_log(self, path: str | Path) -> None:
        """Record the steps to come. Raises `OSError` if the log cannot be written there."""
        self.log = open_host_log(Path(path), self.robot, self.robot.tree, self.actuator_names)

    def close(self) -> None:
        """Write the log, which ends. Raises `OSError` if it cannot be written."""
        if self.log is not None:
            log, self.log = self.log, None
            log.close()


class SteppedHost(Host):
    """A host whose time advances when it is told to: a simulator of ours."""

    dt: float
    """Time step, [s]."""

    @abstractmethod
    def advance(self) -> None:
        """Advance by one step with what the gate says."""

    def step(self) -> None:
        """Advance by one step and log it: `advance`, then `record`."""
        self.advance()
        self.record()
