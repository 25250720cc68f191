"""Elastic cables that a motor winds: eq. 3.3 of [Mirletz2016], and the law by the winch's rate."""

from dataclasses import replace

import numpy as np
import pytest
from actuator_samples import actuator_robot

from cards_core.errors import DescriptionError, ParameterError
from cards_core.formats.sdf.muscle_block import parse_muscle_block
from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.command import FORCE, LENGTH, NO_COMMAND
from cards_core.robot.actuators import (
    Cable,
    ImpedanceControl,
    Motor,
    SeriesElastic,
    Spring,
    Thermal,
)

DT = 1e-3
STALL, FASTEST, RADIUS = 0.7, 12.0, 0.01
"""Of appendix A.2 of [Mirletz2016]: 70 N and 0.12 m/s at a spool of 1 cm."""
MOTOR = Motor(
    resistance=FASTEST / STALL,
    torque_constant=1.0,
    voltage=FASTEST,
    max_current=STALL,
    rotor_inertia=1e-4,
    gear_ratio=1.0,
    gear_efficiency=1.0,
    viscous_friction=1e-3,
    backdrivable=False,
    envelope="symmetric",
)
CABLE = Cable(
    stiffness=1000.0,
    damping=10.0,
    rest_length=0.17,
    spool_radius=RADIUS,
    position_gain=2e7,
    velocity_gain=5e3,
    motor=MOTOR,
)

both = pytest.mark.parametrize("backend", ["numeric", "compiled"])


def bank_of(cable, backend="numeric", dt=DT, length=0.18):
    bank = ActuatorBank(actuator_robot(cable), dt, backend)
    bank.reset(np.array([length]))
    return bank


def step(bank, kind, value, length=0.18, rate=0.0):
    return bank.step(
        np.array([length]), np.array([rate]), np.array([kind]), np.array([float(value)])
    )[0]


@both
@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (0.0, (16.994, 16.985566, 16.906385, 16.073569, 13.581925)),
        (10.0, (17.008, 17.019245, 17.082565, 17.826527, 22.488336)),
    ],
)
def test_rest_length_under_full_torque_as_in_the_toolkit(target, expected, backend):
    """NTRTsim 0443cbd5, a cable held at 18 cm, after 1, 2, 10, 100 and 500 steps, [cm]."""
    bank = bank_of(CABLE, backend)
    rest = []
    for _ in range(500):
        step(bank, LENGTH, target)
        rest.append(100.0 * bank.state_values[0])
    assert [rest[k - 1] for k in (1, 2, 10, 100, 500)] == pytest.approx(expected, abs=6e-7)


def test_no_load_speed_of_the_published_motor():
    """At tau = b w on the line from 0.7 N m to 12 rad/s: 11.8 rad/s, with either sign."""
    expected = RADIUS * STALL / (STALL / FASTEST + 1e-3)
    assert expected == pytest.approx(0.118, abs=5e-4)
    for target, length, sign in ((10.0, 0.0, -1.0), (0.0, 0.0, 1.0)):
        bank = bank_of(replace(CABLE, rest_length=5.0), length=5.0)
        for _ in range(100):
            step(bank, LENGTH, target, length=length)
        assert bank.state_values[1] == pytest.approx(sign * expected, rel=1e-6)


@both
def test_only_a_backdrivable_motor_is_turned_by_its_cable(backend):
    """Without current (no torque at all), a load pays out one and not the other."""
    weak = replace(MOTOR, max_current=1e-9)
    bank = bank_of(replace(CABLE, motor=weak), backend)
    for _ in range(100):
        tension = step(bank, NO_COMMAND, 0.0)
    assert bank.state_values[0] == 0.17
    assert tension == pytest.approx(10.0, abs=1e-9)
    free = replace(weak, backdrivable=True, viscous_friction=0.02)
    bank = bank_of(replace(CABLE, motor=free), backend)
    for _ in range(3000):
        tension = step(bank, NO_COMMAND, 0.0)
    assert bank.state_values[0] == pytest.approx(0.18, abs=1e-5)
    # without the generator's brake the energy of the spring goes into friction
    assert tension < 0.01


def test_a_motor_brakes_as_a_generator_or_no_harder_than_it_drives():
    """Turned by hand at twice its no-load speed: (-U - kt w)/R, or nothing at all."""
    free = replace(MOTOR, backdrivable=True, max_current=100.0)
    for motor, current in (
        (replace(free, envelope="generator"), (-FASTEST + 2 * FASTEST) / MOTOR.resistance),
        (free, 0.0),
    ):
        bank = bank_of(replace(CABLE, motor=motor))
        bank.state[1] = -2 * FASTEST * RADIUS  # pays out
        step(bank, LENGTH, 10.0, length=0.0)  # and is told to
        assert bank.state_values[2] == pytest.approx(current, abs=1e-12)


@both
@pytest.mark.parametrize("backdrivable", [True, False])
def test_it_holds_the_tension_it_is_told_and_the_length_where_it_was_left(backend, backdrivable):
    motor = Motor(backdrivable=backdrivable)
    bank = bank_of(Cable(stiffness=1e4, motor=motor), backend, length=0.3)
    for force in (60.0, 20.0):
        for _ in range(500):
            tension = step(bank, FORCE, force, length=0.3)
        assert tension == pytest.approx(force, abs=0.2)
    before = bank.state_values[0]
    for _ in range(500):
        step(bank, NO_COMMAND, 0.0, length=0.3)
    assert bank.state_values[0] == pytest.approx(before, abs=2e-5)
    for _ in range(500):
        step(bank, LENGTH, 0.297, length=0.3)
    assert bank.state_values[0] == pytest.approx(0.297, abs=2e-5)


def test_its_damping_is_that_of_the_cable():
    bank = bank_of(CABLE)
    # 10 N at rest, and c l' within +-E
    for rate, tension in ((0.1, 11.0), (-0.1, 9.0), (10.0, 20.0), (-10.0, 0.0)):
        bank.reset(np.array([0.18]))
        found = step(bank, FORCE, 10.0, rate=rate)
        assert found == pytest.approx(tension, rel=0.02, abs=1e-9)


@both
def test_a_light_rotor_is_stepped_in_parts_or_refused(backend):
    """The same speed at 5 ms as at 0.1 ms, where the time constant of the motor is 1.7 ms."""
    speeds = []
    for dt, steps in ((1e-4, 1000), (5e-3, 20)):
        bank = bank_of(replace(CABLE, rest_length=5.0), backend, dt, length=5.0)
        for _ in range(steps):
            step(bank, LENGTH, 0.0, length=0.0)
        speeds.append(bank.state_values[1])
    assert speeds[1] == pytest.approx(speeds[0], rel=1e-3)
    light = replace(CABLE, motor=replace(MOTOR, rotor_inertia=1e-9))
    with pytest.raises(ParameterError, match=r"'m0' has a time constant of .* too short"):
        bank_of(light, backend)


def test_a_motor_that_warms_up():
    """i^2 R, the resistance with the temperature."""
    motor = replace(MOTOR, backdrivable=True)
    bank = bank_of(replace(CABLE, motor=motor, thermal=Thermal()))
    plain = bank_of(replace(CABLE, motor=motor))
    for _ in range(200):
        step(bank, FORCE, 30.0)
        step(plain, FORCE, 30.0)
    assert bank.state_names[2:] == (
        *("m0/current", "m0/winding_temperature", "m0/housing_temperature"),
    )
    assert bank.state_values[3] > 25.0
    assert bank.state_values[0] == pytest.approx(plain.state_values[0], abs=1e-4)


# The rate of the impedance law -----------------------------------------------------------------


def by_winch(cable):
    robot = actuator_robot(cable)
    control = ImpedanceControl(damping=200.0, rate="winch")
    return replace(robot, muscles=tuple(replace(m, control=control) for m in robot.muscles))


@both
def test_the_law_sees_the_rate_of_the_rest_length_and_the_length_of_the_path(backend):
    bank = ActuatorBank(by_winch(CABLE), DT, backend)
    bank.reset(np.array([0.18]))
    for _ in range(5):
        before = bank.state_values[0]
        step(bank, LENGTH, 0.0)
    given = np.array([0.18]), np.array([0.7])
    length, rate = bank.encoders(*given)
    assert length[0] == 0.18
    assert rate[0] == pytest.approx((bank.state_values[0] - before) / DT, rel=1e-9)
    assert given[1][0] == 0.7  # untouched
    plain = ActuatorBank(actuator_robot(CABLE), DT, backend)
    plain.reset(np.array([0.18]))
    assert plain.encoders(*given)[1][0] == 0.7


@pytest.mark.parametrize(
    "actuator",
    [
        Cable(),
        Cable(stiffness=1e3, winch_speed=0.1),
        Cable(motor=Motor()),
        SeriesElastic(spring=Spring(law="polynomial", stiffness=1e3)),
    ],
)
def test_where_no_motor_winds_an_elastic_cable_there_is_no_such_rate(actuator):
    with pytest.raises(DescriptionError, match=r"m0.*rate 'winch' needs a cable with 'stiffness'"):
        ActuatorBank(by_winch(actuator), DT, "numeric")


BLOCK = """<plugin filename="f" name="n"><module_name>cards_muscle_plugin.system</module_name>
<muscle name="m" type="cable"><tension min="0" max="70"/>
<parameters stiffness="1000">MOTOR</parameters>
<control damping="200" rate="winch"/>
<via_point link="world">0 0 0</via_point><via_point link="world">0 0 1</via_point>
</muscle></plugin>
"""


def test_a_file_says_so_and_is_refused_with_its_line():
    text = BLOCK.replace("MOTOR", '<motor backdrivable="false" envelope="symmetric"/>')
    (muscle,) = parse_muscle_block(text).muscles
    assert muscle.control.rate == "winch"
    assert not muscle.actuator.motor.backdrivable
    with pytest.raises(DescriptionError, match=r":4: .*rate 'winch'"):
        parse_muscle_block(BLOCK.replace("MOTOR", ""))
    with pytest.raises(DescriptionError, match=r":4: .*rate.*encoder.*winch"):
        parse_muscle_block(text.replace("winch", "path"))
