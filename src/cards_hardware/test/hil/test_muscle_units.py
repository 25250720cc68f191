"""Muscle units: numbers of the catalogue, calibrations that differ, parameters of boards."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.robot.actuators import SeriesElastic, Spring
from cards_hardware.hil.muscle_units import (
    ELASTIC_SPRING,
    USUAL_TENSION,
    UnitDesign,
    board_parameters,
    manufacture,
    units_of,
)
from cards_hardware.protocol.enums import ParameterId

USUAL = UnitDesign()
ELASTIC = UnitDesign(spring=ELASTIC_SPRING)


def test_the_usual_unit_in_numbers():
    assert USUAL_TENSION == 800.0
    assert USUAL.force_per_current == pytest.approx(0.0136 * 53 * 0.72 / 0.006)
    assert USUAL.current_limit * USUAL.force_per_current > USUAL_TENSION
    assert USUAL.load_range > USUAL_TENSION
    # 2048 counts a turn of the motor, 53 turns for one of a winder of 12 mm
    assert USUAL.wire_per_count * 2048 * 53 == pytest.approx(math.pi * 0.012)
    assert USUAL.angle_per_count * 2**20 == pytest.approx(2.0 * math.pi)
    assert USUAL.winder_mass == pytest.approx(5.5e-7 * (53 / 0.006) ** 2)
    assert 40.0 < USUAL.winder_mass < 45.0
    # 16 N/mm at 30 N, 75 N/mm at 200 N
    for tension, stiffness in [(30.0, 16e3), (200.0, 75e3)]:
        slope = ELASTIC_SPRING.growth * (ELASTIC_SPRING.force_scale + tension)
        assert slope == pytest.approx(stiffness, rel=0.02)


@pytest.mark.parametrize("strength", [0.1, 1.0, 3.0])
def test_weaker_and_stronger_units_have_the_same_currents_times_and_elongations(strength):
    scaled = ELASTIC.scaled(strength)
    forces = ("force_per_current", "dry_friction", "viscous_friction", "load_resolution",
              "load_noise", "load_range", "winder_mass")  # fmt: skip
    for name in forces:
        assert getattr(scaled, name) == pytest.approx(strength * getattr(ELASTIC, name))
    for name in ("current_limit", "current_time", "wire_per_count", "resistance", "supply"):
        assert getattr(scaled, name) == getattr(ELASTIC, name)
    assert scaled.spring.growth == ELASTIC_SPRING.growth
    assert scaled.spring.force_scale == pytest.approx(strength * ELASTIC_SPRING.force_scale)
    assert USUAL.scaled(strength).spring is None
    cubic = Spring(law="polynomial", stiffness=1e4, quadratic=2e5, cubic=3e6, travel=0.02)
    scaled = UnitDesign(spring=cubic).scaled(strength).spring
    assert (scaled.stiffness, scaled.quadratic, scaled.cubic) == pytest.approx(
        (1e4 * strength, 2e5 * strength, 3e6 * strength)
    )
    assert scaled.travel == 0.02


def test_gains_of_the_loop_by_the_wire():
    rigid = USUAL.loop
    assert (rigid.proportional, rigid.integral) == (0.25, 80.0)
    assert (rigid.stiffness, rigid.growth, rigid.elongation, rigid.damping) == (0.0,) * 4
    loop, mass = ELASTIC.loop, ELASTIC.winder_mass
    assert (loop.stiffness, loop.growth) == (15.0 * 350.0, 350.0)
    assert (loop.proportional, loop.integral) == (0.0, 20.0)
    assert loop.elongation == pytest.approx(mass * 30.0**2)
    assert loop.damping == pytest.approx(mass * 60.0)
    # k + 2 k2 d, told as k + g T: the same slope where the tension begins
    bent = Spring(law="polynomial", stiffness=1e4, quadratic=5e5)
    loop = UnitDesign(spring=bent).loop
    assert (loop.stiffness, loop.growth) == (1e4, 100.0)
    h = 1e-7
    tension = 1e4 * h + 5e5 * h * h
    slope = 1e4 + 1e6 * h
    assert loop.stiffness + loop.growth * tension == pytest.approx(slope, rel=1e-9)


@pytest.mark.parametrize(
    "spring",
    [
        Spring(law="triangle", stiffness=1e4),
        Spring(law="polynomial", stiffness=1e4, quadratic=-1e4, travel=0.01),
    ],
    ids=["triangle", "softer"],
)
def test_wires_that_the_board_does_not_know(spring):
    with pytest.raises(
        CardsError, match=r"tension loop knows no such wire .expected: exponential"
    ):
        _ = UnitDesign(spring=spring).loop


def test_a_unit_as_an_actuator_makes_the_force_of_its_current():
    unit = ELASTIC.actuator(90.0)
    motor, n = unit.motor, unit.motor.gear_ratio / unit.spool_radius
    assert motor.torque_constant * n * motor.gear_efficiency == pytest.approx(90.0)
    assert motor.dry_friction * n == pytest.approx(ELASTIC.dry_friction)
    assert motor.viscous_friction * n**2 == pytest.approx(ELASTIC.viscous_friction)
    assert motor.friction_speed / n == pytest.approx(ELASTIC.friction_speed)
    assert motor.rotor_inertia * n**2 == pytest.approx(ELASTIC.winder_mass)
    assert (motor.voltage, motor.max_current, motor.resistance) == (24.0, 15.0, 0.3)
    assert (unit.driver, unit.spring) == ("current", ELASTIC_SPRING)
    with pytest.raises(CardsError, match="rigid wire is no actuator"):
        USUAL.actuator(90.0)


def with_springs(rows):
    robot = load("planar_2r")
    spring = Spring(law="exponential", force_scale=20.0, growth=200.0)
    muscles = tuple(
        replace(muscle, actuator=SeriesElastic(spring=spring)) if i in rows else muscle
        for i, muscle in enumerate(robot.muscles)
    )
    return replace(robot, muscles=muscles), spring


def test_all_muscles_have_springs_or_none():
    robot, spring = with_springs(range(4))
    assert [unit.spring for unit in units_of(robot, ELASTIC)] == [spring] * 4
    assert units_of(with_springs(())[0], ELASTIC) == (ELASTIC,) * 4
    names = [muscle.name for muscle in robot.muscles]
    with pytest.raises(CardsError, match=rf"^muscle {names[1]} of planar_2r without a spring"):
        units_of(with_springs((0, 2, 3))[0], USUAL)
    with pytest.raises(CardsError, match=rf"^muscles {names[0]}, {names[2]} of planar_2r without"):
        units_of(with_springs((1, 3))[0], USUAL)


def test_units_from_the_shelf_differ_within_their_tolerances():
    lengths = np.linspace(0.1, 1.0, 2000)
    made = manufacture(USUAL, lengths, 500, np.random.default_rng(1))

    def spread(values, nominal):
        share = np.asarray(values) / nominal - 1.0
        return -share.min(), share.max()

    for values, nominal, most in [
        (made.wire_per_count, USUAL.wire_per_count, 0.02),
        (made.current_scale, USUAL.force_per_current, 0.05),
        (made.load_scale, USUAL.load_resolution, 0.06),
    ]:
        for side in spread(values, nominal):
            assert 0.9 * most < side <= most * (1.0 + 1e-9)
    assert set(made.sign) == {-1, 1}
    off = np.abs(made.length_offset - lengths)
    assert 0.01 <= off.min() < 0.011
    assert 0.029 < off.max() <= 0.03
    assert set(np.sign(made.length_offset - lengths)) == {-1.0, 1.0}
    assert (np.abs(made.load_zero).min(), np.abs(made.load_zero).max()) == (40, 199)
    assert set(np.sign(made.load_zero)) == {-1, 1}
    counts = 1e3 * made.load_scale
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)
    assert set(made.joint_scale) == {USUAL.angle_per_count}
    assert np.abs(made.joint_zero * USUAL.angle_per_count).max() <= math.pi
    assert np.abs(made.joint_zero * USUAL.angle_per_count).max() > 0.95 * math.pi
    weak = manufacture(USUAL.scaled(0.01), lengths[:20], 0, np.random.default_rng(1))
    assert set(weak.load_scale) == {1e-3}
    part = made.of([5, 3], [7])
    assert part.length_offset.tolist() == [made.length_offset[5], made.length_offset[3]]
    assert part.joint_zero.tolist() == [made.joint_zero[7]]
    with pytest.raises(CardsError, match="expected finite lengths in m"):
        manufacture(USUAL, np.array([0.1, np.nan]), 0, np.random.default_rng(1))


def test_a_motor_bears_its_continuous_current_for_ever():
    """Two resistances in a row lead the heat away: the winding then has 100 degC."""
    made = manufacture(USUAL, np.array([0.3]), 1, np.random.default_rng(2))
    given = list(board_parameters([USUAL], made, node=5))
    assert given[:3] == [
        (ParameterId.NODE, 0, 5), (ParameterId.MUSCLES, 0, 1), (ParameterId.JOINTS, 0, 1),
    ]  # fmt: skip
    values = {parameter: value * parameter.scale for parameter, _, value in given}
    current, thermal = values[ParameterId.CURRENT_CONTINUOUS], USUAL.thermal
    hot = USUAL.resistance * (1.0 + thermal.copper_coefficient * (100.0 - 25.0))
    ways = thermal.winding_resistance + thermal.housing_resistance
    assert thermal.ambient + current**2 * hot * ways == pytest.approx(100.0, abs=0.1)
    assert values[ParameterId.DRIVE_TIMEOUT] == pytest.approx(0.1)
    assert values[ParameterId.TICK_LATE_MAX] == pytest.approx(1000.0)
    assert values[ParameterId.KP] == pytest.approx(0.25 / made.current_scale[0], rel=1e-2)
    assert values[ParameterId.LOAD_MAX] * made.load_scale[0] == pytest.approx(1500.0, rel=1e-3)
    assert len({(parameter, index) for parameter, index, _ in given}) == len(given)
