"""Cables with motors: current, limits and temperatures against closed forms."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.errors import DescriptionError, ParameterError
from cards_core.formats import load
from cards_core.muscles.actuators.bank import ActuatorBank
from cards_core.muscles.actuators.thermal import MotorTemperatures
from cards_core.muscles.command import FORCE, LENGTH
from cards_core.robot.actuators import Cable, Motor, Thermal

DT = 1e-3
MOTOR = Motor(
    resistance=0.8,
    torque_constant=0.0136,
    voltage=48.0,
    max_current=6.0,
    gear_ratio=29.0,
    gear_efficiency=0.85,
    dry_friction=0.002,
    viscous_friction=1e-6,
)
RADIUS = 0.006
N = MOTOR.gear_ratio / RADIUS
GAIN = MOTOR.torque_constant * N


def robot(thermal=None, motor=MOTOR):
    plain = load("planar_2r")
    cable = Cable(motor=motor, spool_radius=RADIUS, thermal=thermal)
    return replace(plain, muscles=tuple(replace(m, actuator=cable) for m in plain.muscles))


def bank(thermal=None, backend="numeric", motor=MOTOR):
    made = ActuatorBank(robot(thermal, motor), DT, backend)
    made.reset(np.full(4, 1.0))
    return made


def step(made, force, rate=0.0, kind=FORCE):
    full = np.full(4, 1.0)
    made.step(full, rate * full, np.full(4, kind), force * full)
    tensions = made.step(full, rate * full, np.full(4, kind), force * full)
    return tensions[0], made.state_values[0]


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
@pytest.mark.parametrize("rate", [0.0, -0.05, 0.05, -0.3, 0.2])
def test_current_of_a_tension(backend, rate):
    tension, current = step(bank(backend=backend), 60.0, rate)
    assert tension == 60.0  # to the last bit
    speed = -rate
    bend = np.tanh(N * speed / MOTOR.friction_speed)
    eta = MOTOR.gear_efficiency
    gear = 1 + ((1 / eta - 1) if speed > 0 else (1 - eta)) * bend
    torque = gear * 60.0 / N + MOTOR.dry_friction * bend + MOTOR.viscous_friction * N * speed
    assert current == pytest.approx(torque / MOTOR.torque_constant, rel=1e-12)


def test_a_motor_at_its_limits_leaves_less():
    weak = replace(MOTOR, max_current=0.5)
    tension, current = step(bank(motor=weak), 95.0)
    assert current == 0.5
    assert tension == pytest.approx(0.5 * GAIN, rel=1e-12)
    # near its no-load speed the voltage is what is left for the current
    speed = 0.98 * MOTOR.voltage / GAIN
    tension, current = step(bank(), 95.0, -speed)
    assert current == pytest.approx((MOTOR.voltage - GAIN * speed) / MOTOR.resistance, rel=1e-12)
    assert tension < 95.0
    assert step(bank(), 95.0, 2.0)[0] >= 0.0


def test_what_is_no_tension_is_the_least_one():
    assert step(bank(), 0.3, kind=LENGTH)[0] == load("planar_2r").muscles[0].tension_min
    assert step(bank(), 1e6)[0] == load("planar_2r").muscles[0].tension_max


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_temperatures_come_to_rest_where_the_resistances_say(backend):
    thermal = Thermal(
        copper_coefficient=0.0, housing_heat_capacity=0.1, winding_heat_capacity=0.02, ambient=20.0
    )
    made = bank(thermal, backend)
    full = np.full(4, 1.0)
    for _ in range(20_000):  # 20 times the time constant of the housing
        made.step(full, 0 * full, np.full(4, FORCE), 90.0 * full)
    current, winding, housing = made.state_values[:3]
    heat = MOTOR.resistance * (90.0 / GAIN) ** 2
    assert current == pytest.approx(90.0 / GAIN)
    assert housing - 20.0 == pytest.approx(heat * thermal.housing_resistance, rel=1e-6)
    total = thermal.housing_resistance + thermal.winding_resistance
    assert winding - 20.0 == pytest.approx(heat * total, rel=1e-6)


def test_heat_is_stored_or_leaves():
    thermal = Thermal(copper_coefficient=0.004)
    made = bank(thermal)
    full, stored, put, left = np.full(4, 1.0), [], 0.0, 0.0
    for _ in range(2000):
        before = made.state_values[1:3].copy()
        made.step(full, 0 * full, np.full(4, FORCE), 95.0 * full)
        current, winding, housing = made.state_values[:3]
        hot = 1 + thermal.copper_coefficient * (before[0] - 25.0)
        put += DT * MOTOR.resistance * hot * current**2
        middle = 0.5 * (before[1] + housing)
        left += DT * (middle - thermal.ambient) / thermal.housing_resistance
        stored.append(
            thermal.winding_heat_capacity * (winding - 25.0)
            + thermal.housing_heat_capacity * (housing - 25.0)
        )
    assert np.all(np.diff(stored) > 0.0)
    assert put == pytest.approx(stored[-1] + left, rel=1e-6)


def test_temperatures_are_found_by_name():
    names = [
        "b/current",
        "b/housing_temperature",
        "c/winding_temperature",
        "c/housing_temperature",
    ]
    found = MotorTemperatures(["a", "b", "c"], names).among(np.array([1.0, 30.0, 50.0, 40.0]))
    assert np.isnan(found[0])
    assert found[1:].tolist() == [30.0, 50.0]
    # a board that does not estimate the winding, or not yet
    found = MotorTemperatures(["a", "b", "c"], names).among(np.array([1.0, 30.0, np.nan, 40.0]))
    assert found[1:].tolist() == [30.0, 40.0]
    assert MotorTemperatures(["a"], ["a/current"]).among(np.array([1.0])) is None


@pytest.mark.parametrize(
    ("cable", "words"),
    [
        ({"thermal": Thermal()}, "it needs 'heat_per_square_force'"),
        (
            {"motor": Motor(), "thermal": Thermal(heat_per_square_force=1e-3)},
            "belongs to muscles without a 'motor'",
        ),
        (
            {"thermal": Thermal(heat_per_square_force=1e-3, copper_coefficient=0.0)},
            "there is no 'motor'",
        ),
        ({"spool_radius": 0.01}, "'spool_radius' needs a 'motor'"),
        ({"motor": Motor(), "stiffness": 1e4, "winch_speed": 0.1}, "'winch_speed' and a 'motor'"),
        ({"stiffness": 1e4, "position_gain": 1.0}, "'position_gain' needs a 'motor'"),
        ({"motor": Motor(), "velocity_gain": 1.0}, "'velocity_gain' needs a 'stiffness'"),
        ({"motor": Motor(backdrivable=False)}, "'backdrivable' belongs to the motor of a cable"),
        ({"motor": Motor(envelope="symmetric")}, "'envelope' belongs to the motor of a cable"),
        ({"motor": Motor(max_current=-1.0)}, "max_current"),
    ],
)
def test_groups_that_do_not_fit(cable, words):
    with pytest.raises(ParameterError, match=words):
        Cable(**cable).check()
    plain = load("planar_2r")
    muscles = (replace(plain.muscles[0], actuator=Cable(**cable)), *plain.muscles[1:])
    with pytest.raises(DescriptionError, match=plain.muscles[0].name):
        ActuatorBank(replace(plain, muscles=muscles), DT)
