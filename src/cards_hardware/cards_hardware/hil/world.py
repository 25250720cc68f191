"""The robot behind the boards: MuJoCo, motor drives and sensors, stepped by a board's ticks.

Here the muscle units pull, not the actuator models of the description: every muscle of a board
has the tension that its motor makes. Muscles that no board drives have none.

At first the robot rests on a stand. The stand is taken away a moment after the first command of a
controller, when the tensions hold the robot; it does not come back.

Motor drives, winders and sensors: currents in, wire tensions and heat out. Per unit and step of
dt, with the rate l' of its path, positive while the path lengthens:

    i+ = u + (i - u) exp(-dt / t_c)                         current loop, |u| <= its own limit
    T  = max(0, k_I i + F_d tanh(l' / v_s) + b l')          friction opposes; a wire cannot push
    c+ - Ta = F (c - Ta) + b_1 i^2 R(c)                     winding and housing

With a spring in series (`UnitDesign.spring`) the winder turns by itself, x being the wire that it
has let out:

    m x'' = T - k_I i - F_d tanh(x'/v_s) - b x',    T = h(l - x),    m = J (n/r)^2

This is the actuator `series_elastic` with a driver of currents, integrated together with the
bodies (`cards_core.muscles.implicit`). The encoder then gives x, not l.

The driver sets u = 0 by itself when no command came for 5 ms, or when it is not enabled. Sensors
give counts of encoders and load cells as the drive bus carries them; rounding, zeros, signs and
scales are those of `UnitCalibration`, noise is seeded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, ShapeError
from cards_core.muscles.actuators.thermal import discretise
from cards_core.muscles.command import FORCE
from cards_core.robot.actuators import Cable
from cards_core.robot.model import Robot
from cards_core.robot.world import World as Surroundings
from cards_core.typing import Array
from cards_hardware.hil.muscle_units import UnitCalibration, UnitDesign, manufacture, units_of
from cards_sim.simulator import Simulator

HEAT_PERIOD = 0.1
"""Temperatures move slowly: they advance this seldom, [s], with the mean heat in between."""

_SLACK_CURRENT = 1e-3  # [A]: friction holds against a pull, but a motor without current lets go

_NOISE_ROWS = 4096


class Drives:
    """The drives of all muscles of a robot.

    Args:
        design: What the units are made of.
        calibration: What differs between them.
        dt: Step, [s].

    Attributes:
        current: Shape (m,), [A].
        temperature: Winding and housing, shape (2, m), [degC].
        enabled: Whether the last command enabled the driver, shape (m,).
        command_age: Time since that command, shape (m,), [s].
    """

    def __init__(self, design: UnitDesign, calibration: UnitCalibration, dt: float) -> None:
        self._design = design
        self._scale = calibration.current_scale
        self._dt = dt
        count = len(self._scale)
        self._keep = math.exp(-dt / design.current_time)
        # a command just as old as the limit was the last one in time
        self._timeout = design.command_timeout + 0.5 * dt
        self._target = np.zeros(count)
        self.current: Array = np.zeros(count)
        self.enabled = np.zeros(count, dtype=bool)
        self.command_age: Array = np.full(count, np.inf)
        self._ambient = design.thermal.ambient
        self.temperature: Array = np.full((2, count), self._ambient)
        self._heat_steps = max(1, round(HEAT_PERIOD / dt))
        self._heat_matrix, self._heat_input = discretise(design.thermal, self._heat_steps * dt)
        self._squares = np.zeros(count)
        self._square_steps = 0

    def command(self, rows: Sequence[int] | slice, currents: Array, enabled: bool) -> None:
        """Take over a command for the drives of one board.

        Args:
            rows: Its muscles.
            currents: One per muscle, finite, [A].
            enabled: Whether the drivers are to be on.

        Raises:
            ShapeError: Wrong number of currents.
        """
        count = self._target[rows].size
        if currents.size != count:
            raise ShapeError(f"currents are {currents}, expected {count} numbers in A")
        limit = self._design.current_limit
        self._target[rows] = np.minimum(np.maximum(currents, -limit), limit)
        self.enabled[rows] = enabled
        self.command_age[rows] = 0.0

    def hold(self) -> None:
        """Take the last commands for new ones."""
        self.command_age[:] = 0.0

    def advance(self, rates: Array) -> Array:
        """Advance by dt; return the tensions of rigid wires, a new array of shape (m,), [N].

        Args:
            rates: Rates of the paths, shape (m,), [m/s].
        """
        design, force = self._design, self.push()
        force += design.dry_friction * np.tanh(rates / design.friction_speed)
        force += design.viscous_friction * rates
        pulls = (force > 0.0) & (self.current > _SLACK_CURRENT)
        tensions: Array = np.where(pulls, force, 0.0)
        return tensions

    def push(self) -> Array:
        """Advance currents and heat by dt; return the motors' forces at the wire, (m,), [N]."""
        alive = self.enabled & (self.command_age <= self._timeout)
        self.command_age += self._dt
        self.current *= self._keep
        self.current += (1.0 - self._keep) * np.where(alive, self._target, 0.0)
        self._squares += self.current**2
        self._square_steps += 1
        if self._square_steps == self._heat_steps:
            self._heat()
        return self._scale * self.current

    def _heat(self) -> None:
        design = self._design
        growth = design.thermal.copper_coefficient
        resistance = design.resistance * (1.0 + growth * (self.temperature[0] - 25.0))
        power = resistance * self._squares / self._square_steps
        warmth = self._heat_matrix @ (self.temperature - self._ambient)
        self.temperature = self._ambient + warmth + np.outer(self._heat_input, power)
        self._squares[:] = 0.0
        self._square_steps = 0

    @property
    def supply_voltage(self) -> float:
        """Voltage at the drivers now, [V]."""
        drawn = float(np.abs(self.current).sum())
        return self._design.supply - self._design.supply_resistance * drawn


class Sensors:
    """The sensors of all units and joints of a robot.

    Args:
        design: What the units are made of.
        calibration: What differs between them.
        rng: Random numbers of the noise.
    """

    def __init__(
        self, design: UnitDesign, calibration: UnitCalibration, rng: np.random.Generator
    ) -> None:
        self._calibration = calibration
        self._per_length = calibration.sign / calibration.wire_per_count
        self._per_force = 1.0 / calibration.load_scale
        # the cell itself saturates, and the bus cannot carry more
        limit = np.floor(design.load_range * self._per_force)
        self._least = np.maximum(calibration.load_zero - limit, 1.0 - 2**15)
        self._most = np.minimum(calibration.load_zero + limit, 2.0**15 - 1.0)
        # drawn in advance: a call of the generator costs more than all the rest
        muscles = len(calibration.sign)
        self._noise = design.load_noise * rng.standard_normal((_NOISE_ROWS, muscles))
        self._row = 0

    def positions(self, lengths: Array) -> npt.NDArray[np.int32]:
        """Return the encoder counts of winders that have let out wire of lengths (m,), [m]."""
        counts = (lengths - self._calibration.length_offset) * self._per_length
        return np.rint(counts).astype(np.int32)

    def loads(self, tensions: Array) -> npt.NDArray[np.int16]:
        """Return the load cells' counts for tensions, shape (m,), [N]."""
        self._row = (self._row + 1) % _NOISE_ROWS
        counts = (tensions + self._noise[self._row]) * self._per_force
        counts += self._calibration.load_zero
        np.maximum(counts, self._least, out=counts)
        np.minimum(counts, self._most, out=counts)
        return np.rint(counts, out=counts).astype(np.int16)

    def joints(self, angles: Array) -> npt.NDArray[np.int32]:
        """Return the joint encoders' counts for joint positions, shape (k,), [rad] or [m]."""
        calibration = self._calibration
        counts = angles / calibration.joint_scale + calibration.joint_zero
        return np.rint(counts).astype(np.int32)


DT = 1e-3
"""Time step, [s]: the tick of the boards."""

STAND_TIME = 0.4
"""The stand goes so long after the first command, [s]: who sends commands by hand has so long
for the next ones."""


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
        around: Objects that it is among; none without.

    Attributes:
        simulator, drives, sensors, calibration: The parts.
        units: What the unit of each muscle is made of.
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
        around: Surroundings | None = None,
    ) -> None:
        self.design = design or UnitDesign()
        self.units = units_of(robot, self.design)
        self._elastic = self.units[0].spring is not None
        self.robot = robot
        dynamics = make_dynamics(robot)
        parts, noise = np.random.default_rng(seed).spawn(2)
        home = dynamics.update(dynamics.tree.home, np.zeros(dynamics.tree.nv)).muscle_lengths
        self.calibration: UnitCalibration = manufacture(
            self.design, home.copy(), dynamics.tree.nq, parts
        )
        self.simulator = Simulator(
            _with_units(robot, self.units, self.calibration), DT, world=around
        )
        state = self.simulator.state
        self.q, self.qd = state.q, state.qd
        self.lengths = state.measured("muscle_lengths")
        self.rates = state.measured("muscle_rates")
        self.tensions: Array = np.zeros(len(robot.muscles))
        states = self.simulator.muscles.state_names
        self._wound = [i for i, name in enumerate(states) if name.endswith("/rest_length")]
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
    def wires(self) -> Array:
        """Wire that the winders have let out, which encoders measure, shape (m,), [m]."""
        if not self._elastic:
            return self.lengths
        out: Array = self.simulator.muscles.state_values[self._wound]
        return out

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
        held, simulator = self.held, self.simulator
        elastic = self._elastic
        told = self.drives.push() if elastic else self.drives.advance(self.rates)
        self.ticks += 1
        if held:
            self.tensions = self._pull_the_stand(told) if elastic else told
            return
        simulator.step(told)
        state = simulator.state
        self.tensions = state.measured("tensions")
        self.q, self.qd = state.q, state.qd
        self.lengths = state.measured("muscle_lengths")
        self.rates = state.measured("muscle_rates")

    def _pull_the_stand(self, forces: Array) -> Array:
        """Step the winders with the paths at rest; return the tensions."""
        still = np.zeros(len(forces))
        kinds = np.full(len(forces), FORCE)
        return self.simulator.muscles.actuators.step(self.lengths, still, kinds, forces).copy()


def _with_units(robot: Robot, units: Sequence[UnitDesign], calibration: UnitCalibration) -> Robot:
    """Return the robot with units, whose tension may be anything that their motors make.

    Rigid wires are ideal cables, whose tensions `Drives` knows.
    """
    gains = calibration.current_scale.tolist()
    muscles = tuple(
        replace(
            muscle,
            actuator=Cable() if unit.spring is None else unit.actuator(gain),
            tension_min=0.0,
            tension_max=np.inf,
        )
        for muscle, unit, gain in zip(robot.muscles, units, gains, strict=True)
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
