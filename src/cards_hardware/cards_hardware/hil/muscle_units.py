"""Muscle units of the plant: design, tolerances, and the board's parameters for them.

Every unit has a geared motor with a winder, a current loop of its own, an absolute encoder on the
motor's side of the gear, and a load cell in the wire. `UnitDesign` holds what is in the catalogue;
`UnitCalibration` what differs from piece to piece and is found by calibration on a real robot.

The firmware is given the calibration as parameters (`board_parameters`), so a wrong sign, scale or
zero shows as a robot that goes astray. On a real robot these numbers come from data sheets and
from ``./cards calibrate``. They are whole numbers in the units of the parameter table, so a scale
is right to about 1e-3, as a measured one.

A unit has a rigid wire, which turns the winder with the path and feels no inertia of the rotor, or
a `spring` in series with it: then the winder turns by itself, as heavy as its rotor is, and the
encoder says how much wire it has let out, ``l_path - delta(T)``. The sampling inside the driver is
left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from cards_core.errors import CardsError
from cards_core.robot.actuators import Motor, SeriesElastic, Spring, Thermal
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_hardware.protocol.enums import ParameterId

USUAL_TENSION = 800.0
"""Largest tension of the usual unit, [N]."""

LOOP_GAIN = 0.25
"""Proportional gain of the tension loop times k_I: with a delay of two ticks it must stay well
below one, the feed-forward does the rest."""

LOOP_RATE = 80.0
"""Integral gain times k_I, [1/s]: how fast friction of the winder is corrected."""

WIRE_RATE = 30.0
"""Behind an elastic wire: gain of the elongation, as ``m w^2`` with the rotor's inertia m at the
wire, [rad/s]: with the wire's own stiffness it brings the rotor to its place."""

WIRE_DAMPING = 60.0
"""Likewise damping of the elongation's rate, as ``m c``, [1/s]. As much as the delay bears, 3.5 ms
from encoder to motor, d: a light load on the wire feels ``-(w^2 + c corner) d / 2`` of damping,
-5/s with the corner of 30/s in ``firmware/core/muscle.c``; joints have more. As little as the wire
needs, whose stiffness grows with the tension: at 200 N rotor and wire swing at 50 rad/s."""

WIRE_LOOP_RATE = 20.0
"""Integral gain times k_I there, [1/s]: without a proportional one, and so slow that it does not
carry the rotor past its place."""

ELASTIC_SPRING = Spring(law="exponential", force_scale=15.0, growth=350.0)
"""Wire and nonlinear element of the usual unit: 16 N/mm at 30 N, 75 N/mm at 200 N."""

BENCH_TOLERANCES: tuple[tuple[ParameterId, float], ...] = (
    (ParameterId.DRIVE_TIMEOUT, 0.1),
    (ParameterId.TICK_LATE_MAX, 1000.0),
)
"""What a bench must allow that a robot must not: plant and board share a machine that now and then
does something else for some milliseconds. The watchdog of commands stays as it is."""

Counts = npt.NDArray[np.int64]

ParameterValue = tuple[ParameterId, int, int]
"""Parameter, index, value in the units of the table."""


@dataclass(frozen=True)
class TensionLoop:
    """Gains of the tension loop as forces at the wire, see ``firmware/core/muscle.h``.

    Attributes:
        proportional: Force per error of the tension.
        integral: Likewise, [1/s].
        stiffness: k of the slack wire, [N/m]; 0: it is rigid.
        growth: g of the wire, ``dT/dd = k + g T``, [1/m].
        elongation: Force per error of the elongation, [N/m].
        damping: Force per rate of the elongation, [N s/m].
    """

    proportional: float
    integral: float
    stiffness: float = 0.0
    growth: float = 0.0
    elongation: float = 0.0
    damping: float = 0.0


def _wire_of(spring: Spring) -> tuple[float, float]:
    """Return k and g of ``dT/dd = k + g T``: exact for an exponential, else at no tension."""
    if spring.law == "exponential" and spring.force_scale and spring.growth:
        return spring.force_scale * spring.growth, spring.growth
    quadratic = spring.quadratic or 0.0
    if spring.law != "polynomial" or not spring.stiffness or quadratic < 0.0:
        raise CardsError(
            f"spring {spring}: the board's tension loop knows no such wire (expected: exponential "
            "or polynomial, with quadratic >= 0)"
        )
    return spring.stiffness, 2.0 * quadratic / spring.stiffness


@dataclass(frozen=True, kw_only=True)
class UnitDesign:
    """A muscle unit as in the catalogue.

    Attributes:
        torque_constant: k_t of the motor, [Nm/A].
        gear_ratio: n.
        efficiency: eta of the gear.
        winder_radius: r, [m].
        current_limit: Limit of the driver itself, [A].
        current_time: Time constant of the current loop, [s].
        command_timeout: Without a command for longer than this, the driver sets zero, [s].
        dry_friction: Dry friction of the winder, as force at the wire, [N].
        friction_speed: Wire speed at which dry friction is three quarters of that, [m/s].
        viscous_friction: Viscous friction at the wire, [N s/m].
        resistance: Resistance of the winding at 25 degC, [Ohm].
        thermal: Winding and housing, bolted to a frame that takes the heat.
        encoder_counts: Per turn of the motor.
        load_resolution: Nominal force per count of the load cell, [N].
        load_noise: Standard deviation, [N].
        load_range: Largest force that is measured, [N]; beyond it the reading stays there.
        joint_bits: Resolution of the joint encoders: 2^bits counts per turn.
        rotor_inertia: Of rotor and gear at the rotor, [kg m^2]; felt with a spring only.
        spring: Elastic wire and element between winder and load cell; None: a rigid wire. That of
            a description goes before, see `units_of`.
        supply: Voltage without load, [V].
        supply_resistance: Resistance of battery and cables, [Ohm].
    """

    torque_constant: float = 0.0136
    gear_ratio: float = 53.0
    efficiency: float = 0.72
    winder_radius: float = 0.006
    current_limit: float = 15.0
    current_time: float = 0.5e-3
    command_timeout: float = 5e-3
    dry_friction: float = 4.0
    friction_speed: float = 2e-3
    viscous_friction: float = 60.0
    resistance: float = 0.3
    thermal: Thermal = field(default_factory=lambda: Thermal(housing_resistance=3.0))
    encoder_counts: int = 2048
    load_resolution: float = 0.05
    load_noise: float = 0.3
    load_range: float = 1500.0
    joint_bits: int = 20
    rotor_inertia: float = 5.5e-7
    spring: Spring | None = None
    supply: float = 24.0
    supply_resistance: float = 0.01

    def scaled(self, strength: float) -> UnitDesign:
        """Return units for weaker or stronger muscles: forces by a factor, currents the same.

        Friction, noise and resolution of a unit scale with its size: the wire friction of a motor
        for 800 N would block a small arm.
        """
        return replace(
            self,
            torque_constant=self.torque_constant * strength,
            dry_friction=self.dry_friction * strength,
            viscous_friction=self.viscous_friction * strength,
            load_resolution=self.load_resolution * strength,
            load_noise=self.load_noise * strength,
            load_range=self.load_range * strength,
            rotor_inertia=self.rotor_inertia * strength,
            spring=None if self.spring is None else _stronger(self.spring, strength),
        )

    @property
    def force_per_current(self) -> float:
        """``k_I = k_t n eta / r``, [N/A]."""
        return self.torque_constant * self.gear_ratio * self.efficiency / self.winder_radius

    @property
    def winder_mass(self) -> float:
        """``J (n/r)^2``: the rotor's inertia as the wire feels it, [kg]."""
        return self.rotor_inertia * (self.gear_ratio / self.winder_radius) ** 2

    @property
    def loop(self) -> TensionLoop:
        """Gains of the board's tension loop for such units.

        Raises:
            CardsError: The spring is a triangle, or gets softer with the tension: the board knows
                ``dT/dd = k + g T`` only.
        """
        if self.spring is None:
            return TensionLoop(LOOP_GAIN, LOOP_RATE)
        stiffness, growth = _wire_of(self.spring)
        mass = self.winder_mass
        return TensionLoop(
            0.0, WIRE_LOOP_RATE, stiffness, growth, mass * WIRE_RATE**2, mass * WIRE_DAMPING
        )

    def actuator(self, force_per_current: float) -> SeriesElastic:
        """Return the unit as an actuator whose motor is told the force that its current makes.

        Args:
            force_per_current: k_I of this piece, the loss of the gear included, [N/A].

        Raises:
            CardsError: Its wire is rigid.
        """
        if self.spring is None:
            raise CardsError("a unit with a rigid wire is no actuator (expected: a spring)")
        n = self.gear_ratio / self.winder_radius
        motor = Motor(
            resistance=self.resistance,
            torque_constant=force_per_current / n,
            voltage=self.supply,
            max_current=self.current_limit,
            rotor_inertia=self.rotor_inertia,
            gear_ratio=self.gear_ratio,
            gear_efficiency=1.0,
            dry_friction=self.dry_friction / n,
            viscous_friction=self.viscous_friction / n**2,
            friction_speed=self.friction_speed * n,
        )
        return SeriesElastic(
            spool_radius=self.winder_radius, driver="current", motor=motor, spring=self.spring
        )

    @property
    def wire_per_count(self) -> float:
        """Wire per count of the encoder, ``2 pi r / (n counts)``, [m]."""
        return 2.0 * math.pi * self.winder_radius / (self.gear_ratio * self.encoder_counts)

    @property
    def angle_per_count(self) -> float:
        """Joint angle per count, [rad]."""
        return 2.0 * math.pi / 2**self.joint_bits


def _stronger(spring: Spring, strength: float) -> Spring:
    """Return a spring with the same elongations at forces larger by a factor."""
    forces = ("stiffness", "quadratic", "cubic", "force_scale")
    given = {name: value for name in forces if (value := getattr(spring, name)) is not None}
    return replace(spring, **{name: strength * value for name, value in given.items()})


def units_of(robot: Robot, design: UnitDesign) -> tuple[UnitDesign, ...]:
    """Return the unit of every muscle of a robot: the wire is the description's where it has one.

    Args:
        robot: Its ``series_elastic`` muscles have springs.
        design: What all units are made of; its spring counts where no muscle has one.

    Raises:
        CardsError: Some muscles have springs and others have none.
    """
    springs = [
        muscle.actuator.spring if isinstance(muscle.actuator, SeriesElastic) else None
        for muscle in robot.muscles
    ]
    if not any(springs):
        return (design,) * len(springs)
    rigid = [m.name for m, spring in zip(robot.muscles, springs, strict=True) if spring is None]
    if rigid:
        raise CardsError(
            f"muscle{'s' if len(rigid) > 1 else ''} {', '.join(rigid)} of {robot.name} without a "
            "spring (expected: series_elastic, as the others are, or no muscle of that kind)"
        )
    return tuple(replace(design, spring=spring) for spring in springs)


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitCalibration:
    """What differs from unit to unit; m muscles, k joint encoders.

    ::

        length = sign * wire_per_count * position + length_offset
        tension = load_scale * (load - load_zero)
        tension = current_scale * current          (at rest, without friction)
        angle = joint_scale * (counts - joint_zero)

    Attributes:
        wire_per_count: Shape (m,), [m].
        sign: Sign of the encoder, +1 or -1, shape (m,).
        length_offset: Path length at count zero, shape (m,), [m].
        load_scale: Shape (m,), [N] per count.
        load_zero: Counts without load, shape (m,).
        current_scale: Shape (m,), [N/A].
        joint_scale: Shape (k,), [rad] per count, or [m] for a sliding joint.
        joint_zero: Counts at zero, shape (k,).
    """

    wire_per_count: Array
    sign: Counts
    length_offset: Array
    load_scale: Array
    load_zero: Counts
    current_scale: Array
    joint_scale: Array
    joint_zero: Counts

    def of(self, muscles: Sequence[int], joints: Sequence[int]) -> UnitCalibration:
        """Return the part of one board: rows of its muscles and of its joint encoders."""
        m, k = list(muscles), list(joints)
        return UnitCalibration(
            wire_per_count=self.wire_per_count[m],
            sign=self.sign[m],
            length_offset=self.length_offset[m],
            load_scale=self.load_scale[m],
            load_zero=self.load_zero[m],
            current_scale=self.current_scale[m],
            joint_scale=self.joint_scale[k],
            joint_zero=self.joint_zero[k],
        )


def manufacture(
    design: UnitDesign, path_lengths: Array, joints: int, rng: np.random.Generator
) -> UnitCalibration:
    """Return the calibration of units as they come from the shelf, none like the other.

    Args:
        design: What was ordered.
        path_lengths: Path of every muscle at home, shape (m,), [m]; count zero of the encoders is
            within some 3 cm of it, as where the winder happened to stand when it was mounted.
        joints: Number of joint encoders.
        rng: Chance.

    Raises:
        CardsError: A path length that is not finite.
    """
    if not np.all(np.isfinite(path_lengths)):
        raise CardsError(f"path lengths are {path_lengths}, expected finite lengths in m")
    count = len(path_lengths)
    half_turn = 2 ** (design.joint_bits - 1)

    def spread(value: float, share: float) -> Array:
        return value * (1.0 + rng.uniform(-share, share, count))

    return UnitCalibration(
        wire_per_count=spread(design.wire_per_count, 0.02),
        sign=rng.choice(np.array([-1, 1]), count),
        length_offset=path_lengths + rng.uniform(0.01, 0.03, count) * rng.choice([-1, 1], count),
        # amplifiers are trimmed to whole millinewtons per count, at least one
        load_scale=np.maximum(np.rint(1e3 * spread(design.load_resolution, 0.06)), 1.0) * 1e-3,
        load_zero=rng.integers(40, 200, count) * rng.choice(np.array([-1, 1]), count),
        current_scale=spread(design.force_per_current, 0.05),
        joint_scale=np.full(joints, design.angle_per_count),
        joint_zero=rng.integers(-half_turn, half_turn, joints),
    )


def _of(loops: Sequence[TensionLoop], name: str) -> Array:
    out: Array = np.array([getattr(loop, name) for loop in loops], dtype=float)
    return out


def board_parameters(
    units: Sequence[UnitDesign], calibration: UnitCalibration, *, node: int = 1
) -> Iterator[ParameterValue]:
    """Yield the parameters of one board: counts first, as the rest needs them.

    Args:
        units: What its units are made of, alike but for their wires.
        calibration: Calibration of its units and joint encoders, see `UnitCalibration.of`.
        node: Address of the board.
    """
    muscles, joints = len(calibration.sign), len(calibration.joint_zero)
    yield ParameterId.NODE, 0, node
    yield ParameterId.MUSCLES, 0, muscles
    yield ParameterId.JOINTS, 0, joints
    for parameter, value in BENCH_TOLERANCES:
        yield parameter, 0, round(value / parameter.scale)
    design = units[0]
    thermal, loops = design.thermal, [unit.loop for unit in units]
    gain = calibration.current_scale
    same = np.ones(muscles)
    load_max = np.minimum(np.floor(design.load_range / calibration.load_scale), 2**15 - 2)
    # a motor bears for ever what heats its winding to 100 degC
    winding = thermal.winding_resistance + thermal.housing_resistance
    warm = design.resistance * (1.0 + thermal.copper_coefficient * 75.0)
    continuous = math.sqrt((100.0 - thermal.ambient) / (winding * warm))
    columns: list[tuple[ParameterId, Array]] = [
        (ParameterId.ENCODER_SCALE, calibration.wire_per_count),
        (ParameterId.ENCODER_SIGN, calibration.sign.astype(float)),
        (ParameterId.LENGTH_OFFSET, calibration.length_offset),
        (ParameterId.LOAD_SCALE, calibration.load_scale),
        (ParameterId.LOAD_ZERO, calibration.load_zero.astype(float)),
        (ParameterId.LOAD_MAX, load_max),
        (ParameterId.CURRENT_SCALE, gain),
        (ParameterId.KP, _of(loops, "proportional") / gain),
        (ParameterId.KI, _of(loops, "integral") / gain),
        (ParameterId.WIRE_STIFFNESS, _of(loops, "stiffness")),
        (ParameterId.WIRE_GROWTH, _of(loops, "growth")),
        (ParameterId.WIRE_GAIN, _of(loops, "elongation") / gain),
        (ParameterId.ROTOR_DAMPING, _of(loops, "damping") / gain),
        (ParameterId.CURRENT_CONTINUOUS, max(continuous, 1.0) * same),
        (ParameterId.WINDING_RESISTANCE, design.resistance * same),
        (ParameterId.CORE_RESISTANCE, thermal.winding_resistance * same),
        (ParameterId.CORE_CAPACITY, thermal.winding_heat_capacity * same),
        (ParameterId.HOUSING_RESISTANCE, thermal.housing_resistance * same),
        (ParameterId.HOUSING_CAPACITY, thermal.housing_heat_capacity * same),
        (ParameterId.JOINT_SCALE, calibration.joint_scale),
        (ParameterId.JOINT_ZERO, calibration.joint_zero.astype(float)),
    ]
    for parameter, values in columns:
        for index, value in enumerate(values):
            yield parameter, index, round(float(value) / parameter.scale)
