"""The robot behind the boards: MuJoCo, motor drives and sensors, stepped by a board's ticks.

Here the muscle units pull, not the actuator models of the description: every muscle of a board
has the tension that its motor makes. Muscles that no board drives have none.

At first the robot rests on a stand. The stand is taken away a moment after the first command of a
controller, when the tensions hold the robot; it does not come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cards_core.errors import CardsError
from cards_core.robot.actuators import Cable
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_hardware.hil.drives import Drives, Sensors
from cards_hardware.hil.muscle_units import UnitCalibration, UnitDesign, manufacture
from cards_sim.simulator import Simulator

DT = 1e-3
"""Time step, [s]: the tick of the boards."""

STAND_TIME = 0.4
"""The stand goes so long after the first command, [s]: from the safe tension to any other one
takes 0.25 s at the boards' 2 kN/s."""


@dataclass(frozen=True)
class Channels:
    """What a board is wired to.

    Attributes:
        name: Name of the board.
        muscles: Rows of its muscles in robot.muscles, in the order of its channels.
        joints: Indices into q of its joint encoders, likewise.
    """

    name: str
    muscles: tuple[int, ...]
    joints: tuple[int, ...]


class World:
    """A robot with muscle units.

    Args:
        robot: The description.
        seed: Chance of manufacture and noise.
        design: What the units are made of.
        stand_time: See `STAND_TIME`.

    Attributes:
        simulator, drives, sensors, calibration: The parts.
        time: Since the start, held on the stand or not, [s].
        commanded: When the first command of a controller came, [s]; None before.
        q, qd, lengths, rates: State of the robot, as in `cards_core.robot.state.RobotState`.
        tensions: In the step that led here, shape (m,), [N].
        state_names: Names of `inner_states`.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        seed: int = 0,
        design: UnitDesign | None = None,
        stand_time: float = STAND_TIME,
    ) -> None:
        self.design = design or UnitDesign()
        self.robot = robot
        self.simulator = Simulator(_with_units(robot), DT)
        state = self.simulator.state
        self.q, self.qd = state.q, state.qd
        self.lengths = state.measured("muscle_lengths")
        self.rates = state.measured("muscle_rates")
        self.tensions: Array = np.zeros(len(robot.muscles))
        parts, noise = np.random.default_rng(seed).spawn(2)
        self.calibration: UnitCalibration = manufacture(
            self.design, self.lengths, len(self.q), parts
        )
        self.drives = Drives(self.design, self.calibration, DT)
        self.sensors = Sensors(self.design, self.calibration, noise)
        self._stand_time = stand_time
        self.ticks = 0
        self.commanded: float | None = None
        names = [muscle.name for muscle in robot.muscles]
        self.state_names = [
            *(f"{name}/current" for name in names),
            *(f"{name}/temperature" for name in names),
        ]

    @property
    def time(self) -> float:
        """Time since the start, [s]."""
        return self.ticks * DT

    @property
    def held(self) -> bool:
        """Whether the stand is still there."""
        return self.commanded is None or self.time < self.commanded + self._stand_time

    @property
    def inner_states(self) -> Array:
        """Currents [A], then temperatures of the windings [degC], shape (2 m,)."""
        return np.concatenate([self.drives.current, self.drives.temperature[0]])

    def command(
        self, rows: Sequence[int] | slice, currents: Array, enabled: bool, source: int
    ) -> None:
        """Take over what a board tells its drives; see `Drives.command`.

        Args:
            rows: Muscles of the board.
            currents: [A].
            enabled: Whether the drivers are to be on.
            source: The host's command behind it, 0 for none.
        """
        self.drives.command(rows, currents, enabled)
        if source and self.commanded is None:
            self.commanded = self.time

    def advance(self) -> None:
        """Advance by one tick.

        Raises:
            SimulationStoppedError: The physics diverged.
        """
        held = self.held
        tensions = self.drives.advance(self.rates)
        self.ticks += 1
        self.tensions = tensions
        if held:
            return
        simulator = self.simulator
        simulator.step(tensions)
        state = simulator.state
        self.q, self.qd = state.q, state.qd
        self.lengths = state.measured("muscle_lengths")
        self.rates = state.measured("muscle_rates")


def _with_units(robot: Robot) -> Robot:
    """Return the robot with ideal cables, whose tension may be anything that a motor makes."""
    muscles = tuple(
        replace(muscle, actuator=Cable(), tension_min=0.0, tension_max=np.inf)
        for muscle in robot.muscles
    )
    return replace(robot, muscles=muscles)


def channels_of(
    robot: Robot,
    positions: Sequence[str],
    name: str,
    muscles: Sequence[str],
    joints: Sequence[str],
) -> Channels:
    """Return what a board is wired to, by names.

    Args:
        robot: The robot.
        positions: Names of the entries of q.
        name: Name of the board.
        muscles: Names of its muscles.
        joints: Names of the joints that it measures.

    Raises:
        CardsError: A name that the robot does not have.
    """

    def find(wanted: Sequence[str], known: Sequence[str], what: str) -> tuple[int, ...]:
        missing = [one for one in wanted if one not in known]
        if missing:
            raise CardsError(
                f"board '{name}': {robot.name} has no {what} {', '.join(missing)} "
                f"(expected: some of {', '.join(known)})"
            )
        return tuple(known.index(one) for one in wanted)

    names = [muscle.name for muscle in robot.muscles]
    return Channels(
        name, find(muscles, names, "muscle"), find(joints, list(positions), "joint coordinate")
    )
