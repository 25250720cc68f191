"""What every host of muscles is: a robot that gives states and takes commands.

The embedded simulator, Gazebo and the real robot are hosts. What they do with a command, when they
refuse it, which parameters they have and what they record is decided here, so that a controller
cannot tell them apart.

The log has one row per step and the same columns from every host. Beside the state it has what a
verdict needs to know: ``gate``, the `cards_core.muscles.command.GateCondition` of the step,
``accepted`` and ``refused``, the commands so far, and ``behind``, the real time that has been
lost so far, [s], in modes that follow the clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError
from cards_core.loop.model_agreement import accept_parameter
from cards_core.loop.run_log import RunLog
from cards_core.muscles import impedance
from cards_core.muscles.command import (
    Command,
    CommandPart,
    CommandRefusedError,
    MuscleCommand,
    check_command,
)
from cards_core.muscles.explicit_steps import BOUND, fastest_motion
from cards_core.parameters.declaration import Parameter
from cards_core.robot.actuators import Cable
from cards_core.robot.model import Robot, Tree
from cards_core.robot.motors import motors_of
from cards_core.robot.state import RobotState
from cards_core.stamps import LONGEST_RUN, seconds
from cards_core.typing import Array

# Parameters ------------------------------------------------------------------------------------


MODES = ("realtime", "as_fast_as_possible", "lockstep", "paced")
"""How time advances. ``realtime``: with the clock, whether an answer has come or not.
``as_fast_as_possible``: not with the clock, but not ahead of who answers states; see
`cards_core.loop.answer_watch`. ``lockstep``: each step waits for the answer to its
state. ``paced``: as lockstep, and not faster than the clock; slower where answers take longer."""

ANSWERED_MODES = ("lockstep", "paced")
"""Modes in which every step waits for the answer to its state; no answer can come too late."""

WATCHED_MODES = ("as_fast_as_possible",)
"""Modes in which time waits for answers, but not for ever."""

CLOCKED_MODES = ("realtime", "paced")
"""Modes in which time is not faster than the clock."""


def host_parameters() -> list[Parameter]:
    """Return the parameters that depend neither on the simulator nor on the robot."""
    return [
        Parameter("mode", "realtime", "How time advances.", choices=MODES),
        Parameter(
            "publish_rate",
            1000.0,
            "Rate of the states in simulated time; in lockstep and paced every step is published.",
            "Hz",
            lower=0.1,
            upper=1e6,
        ),
        Parameter(
            "clock_rate", 100.0, "Rate of /clock in simulated time.", "Hz", lower=0.1, upper=1e6
        ),
        Parameter(
            "command_timeout",
            0.1,
            "Simulated time without a valid command after which tensions decay to the minimum.",
            "s",
            lower=1e-3,
            upper=3600.0,
        ),
        Parameter("decay_time", 0.0, "How long that decay takes.", "s", lower=0.0, upper=3600.0),
        Parameter(
            "wait_for_command",
            True,
            "Time starts with the first accepted command (always so in lockstep and paced).",
        ),
        Parameter(
            "duration",
            0.0,
            "Simulated time after which the simulation ends; 0: endless.",
            "s",
            lower=0.0,
            upper=LONGEST_RUN,
        ),
        accept_parameter(
            "Accept commands even if another node has a different model (compiler.md)."
        ),
        Parameter("log_dir", "", "Folder for simulator.npz, one row per step; empty: no log."),
    ]


def initial_positions(tree: Tree) -> Parameter:
    """Return the parameter with the coordinates at time zero."""
    return Parameter(
        "initial_positions",
        tuple(tree.home),
        "Joint coordinates at time zero.",
        "rad or m",
        length=tree.nq,
        names=tree.position_names,
        default_text="the model's home",
    )


BOARD_TICK = 1e-3
"""Time step of muscle boards, which have their own time, [s]."""

GAINS = {f"impedance_{gain}": gain for gain in impedance.GAINS}
"""Parameters that are gains of the impedance law, and their names there."""


def impedance_gains(robot: Robot, *, default: str = "the muscle's <control>") -> list[Parameter]:
    """Return the parameters with the gains of the muscles' impedance law; none without muscles.

    Args:
        robot: Its muscles have the values at start.
        default: Where these come from, in words.
    """
    law = impedance.ImpedanceLaw(robot.muscles)
    names = tuple(muscle.name for muscle in robot.muscles)
    symbols = {
        "stiffness": ("K", "N/m"),
        "damping": ("B", "N s/m"),
        "tension_floor": ("T_floor", "N"),
    }
    return [
        Parameter(
            name,
            tuple(getattr(law, gain).tolist()),
            f"{symbols[gain][0]} of the impedance law.",
            symbols[gain][1],
            lower=0.0,
            upper=impedance.MOST[gain],
            length=len(names),
            names=names,
            default_text=default,
            live=True,
        )
        for name, gain in GAINS.items()
        if names
    ]


def refuse_unstable(robot: Robot, gains: Mapping[str, Array], dt: float) -> None:
    """Refuse gains of the impedance law with which explicit steps are not stable at home.

    Judged are ideal cables, whose muscles have the tension of the law at once.

    Args:
        robot: The robot, with all muscles.
        gains: ``stiffness`` [N/m] and ``damping`` [N s/m] of all muscles, shape (m,) each.
        dt: Time step, [s].

    Raises:
        ParameterError: The message names the muscle that shakes most, and the bound.
    """
    muscles = robot.muscles
    ideal = [isinstance(m.actuator, Cable) and m.actuator.stiffness is None for m in muscles]
    stiffness, damping = (np.where(ideal, gains[n], 0.0) for n in ("stiffness", "damping"))
    if not np.any(stiffness + damping):
        return
    dynamics = make_dynamics(robot, "numeric")
    state = dynamics.update(dynamics.tree.home, np.zeros(dynamics.tree.nv))
    jacobian = state.muscle_jacobian
    mobility = jacobian @ np.linalg.solve(state.mass_matrix, jacobian.T)
    growth, shares = fastest_motion(mobility, stiffness, damping, dt)
    if growth >= BOUND:
        worst = int(np.argmax(shares))
        raise ParameterError(
            f"stiffness {stiffness[worst]:g} N/m and damping {damping[worst]:g} N s/m of "
            f"muscle '{muscles[worst].name}', with those of the others, make the robot swing "
            f"up at home (expected: dt^2 K + 2 dt B over the mass that they move below "
            f"{BOUND:g}, and not {growth:.4g}, for a period dt of {1e3 * dt:g} ms)"
        )


# Log -------------------------------------------------------------------------------------------


def open_host_log(
    path: Path,
    robot: Robot,
    tree: Tree,
    state_names: Sequence[str],
    columns: Sequence[str] = (),
) -> RunLog:
    """Open a log of time, q, qd, muscles, actuator states, efforts, gate, commands and behind.

    Args:
        path: The ``.npz`` to write.
        robot: The robot.
        tree: Lays out q and qd.
        state_names: Names of the actuator states.
        columns: Names of further numbers, which only this host has.

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
            "accepted": None,
            "refused": None,
            "behind": None,
            **dict.fromkeys(columns),
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


# Hosts -----------------------------------------------------------------------------------------


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

    log_columns: tuple[str, ...] = ()
    """Names of further numbers in each row of the log; see `log_values`."""

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
    def _present(self) -> RobotState:
        """The present state as the host keeps it, for reading only."""

    @property
    def state(self) -> RobotState:
        """The present state as a copy, which belongs to the reader."""
        return self._present.copy()

    @property
    def now(self) -> float:
        """Time at which a command arrives now, [s]: that of the present state in simulators."""
        return seconds(self.stamp)

    def submit(self, command: Command) -> None:
        """Take over a command at the present time.

        Each part is accepted or refused as a whole, as messages are; see `MuscleCommand.submit`.

        Raises:
            CommandRefusedError: A part is not acceptable, and nothing of that part was applied.
            CardsError: It is no command at all; see `check_command`.
        """
        check_command(command, "the command")
        refusal: CommandRefusedError | None = None
        now = self.now
        for part in command:
            try:
                self._accept(part, now)
            except CommandRefusedError as error:
                refusal = refusal or error
        if refusal is not None:
            raise refusal

    def _accept(self, part: CommandPart, now: float) -> None:
        """Take over one part of a command, or raise `CommandRefusedError`."""
        self.gate.submit(
            part.names,
            part.values,
            now,
            kind=part.kind,
            rest_lengths=part.rest_lengths,
            rest_rates=part.rest_rates,
        )

    def change(self, parameters: Mapping[str, Any]) -> None:
        """Take over gains of the impedance law, all or nothing.

        Gains that make the robot swing up at home are refused (`explicit_steps`), for muscles
        that have the tension of the law at once: ideal cables. What is below the bound may still
        shake a real robot, whose law is late; see `cards_core.analysis.impedance_loop`.

        Args:
            parameters: By the names of `impedance_gains`; others are passed over.

        Raises:
            ParameterError: A number does not fit, or is not stable with the others.
        """
        gains = {gain: parameters[name] for name, gain in GAINS.items() if name in parameters}
        if gains:
            law = self.gate.impedance
            law.check(gains)
            dt = getattr(self, "dt", BOARD_TICK)
            refuse_unstable(self.robot, {**law.gains, **gains}, dt)
            law.change(gains)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Who was told nothing at the present time; see `MuscleCommand.unanswered`."""
        return self.gate.unanswered(self.now)

    def estop(self) -> None:
        """Clear all commands, and refuse new ones until the stop is released."""
        self.gate.estop()

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
        state = self._present
        self.log.append(
            state.time,
            state.q,
            state.qd,
            state.measured("muscle_lengths"),
            state.measured("muscle_rates"),
            state.measured("tensions"),
            state.measured("actuators"),
            state.measured("efforts"),
            *self._log_tail(),
        )

    def _log_tail(self) -> tuple[float, ...]:
        """Return what a row of the log has beside the state."""
        gate = self.gate
        return (
            float(gate.condition),
            float(gate.accepted - self._before[0]),
            float(gate.refused - self._before[1]),
            self.behind,
            *self.log_values(),
        )

    def log_values(self) -> tuple[float, ...]:
        """Return the values of `log_columns` for the present state."""
        return ()

    def open_log(self, path: str | Path) -> None:
        """Record the steps to come. Raises `OSError` if the log cannot be written there."""
        # commands are counted from the beginning of the log
        self._before = self.gate.accepted, self.gate.refused
        self.log = open_host_log(
            Path(path), self.robot, self.robot.tree, self.actuator_names, self.log_columns
        )

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

    def steps(self, count: int) -> None:
        """Advance by some steps with the commands that there are, and log each, as `step` would.

        Args:
            count: >= 0.
        """
        for _ in range(count):
            self.step()
