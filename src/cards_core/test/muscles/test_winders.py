"""The impedance law behind a spring: it reads the winder, and gives the motor a current."""

import math
from dataclasses import replace

import numpy as np
import pytest
from actuator_samples import actuator_robot

from cards_core.body_image.geometric import GeometricBodyImage
from cards_core.formats import load
from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.command import FORCE, IMPEDANCE, LENGTH
from cards_core.robot.actuators import Cable, Motor, SeriesElastic, Spring

DT = 1e-3
A, B = 15.0, 350.0
WIRE = Spring(law="exponential", force_scale=A, growth=B)
RADIUS, GEAR = 0.006, 29.0
PLAIN = Motor(gear_ratio=GEAR, gear_efficiency=1.0, max_current=50.0, voltage=1e3)


def elongation(tension):
    return np.log(1.0 + tension / A) / B


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_friction_of_the_winder_is_what_winding_lacks_and_paying_out_adds(backend):
    """2 N at the wire are dry_friction = 2 N r/N; the motor pulls with 60 N in either direction.

    And 5 N of viscous friction at 50 mm/s, which ends the vibration against the spring.
    """
    turns = GEAR / RADIUS
    motor = replace(PLAIN, dry_friction=2.0 / turns, viscous_friction=100.0 / turns**2)
    bank = ActuatorBank(
        actuator_robot(SeriesElastic(spring=WIRE, motor=motor, spool_radius=RADIUS)), DT, backend
    )
    for rate, expected in ((-0.05, 53.0), (0.05, 67.0)):
        length = np.array([0.6])
        bank.reset(length)
        for _ in range(3000):
            length = length + rate * DT
            told = np.array([IMPEDANCE]), np.array([60.0])
            tension = bank.step(length, np.array([rate]), *told)
        assert tension[0] == pytest.approx(expected, abs=0.05)
        read, speed = bank.encoders(length, np.array([rate]))
        assert length[0] - read[0] == pytest.approx(elongation(tension[0]), abs=1e-9)
        assert speed[0] == pytest.approx(rate, rel=0.01)


def test_a_motor_that_is_left_alone_holds_where_the_law_left_it():
    unit = SeriesElastic(spring=WIRE, motor=replace(PLAIN, dry_friction=1e-3), spool_radius=RADIUS)
    bank = ActuatorBank(actuator_robot(unit), DT, "numeric")
    length, still = np.array([0.6]), np.zeros(1)
    bank.reset(length)
    for _ in range(2000):
        bank.step(length, still, np.array([IMPEDANCE]), np.array([60.0]))
    before = bank.encoders(length, still)[0].copy()
    for _ in range(500):
        bank.step(length, still, np.array([-1]), still)
    assert bank.encoders(length, still)[0] == pytest.approx(before, abs=2e-5)
    assert bank.step(length, still, np.array([LENGTH]), before) == pytest.approx(60.0, abs=0.5)


def test_without_a_spring_the_encoder_reads_the_path():
    bank = ActuatorBank(actuator_robot(Cable(), Cable(stiffness=1e4)), DT, "numeric")
    lengths, rates = np.array([0.3, 0.31]), np.array([0.1, -0.1])
    assert bank.encoders(lengths, rates) == (lengths, rates)
    assert bank.impedance_kinds.tolist() == [FORCE, FORCE]


def test_the_body_image_of_a_description_knows_its_springs():
    """L = f(q) - ln(1 + T/A)/B behind springs, f(q) for the others; dl/dq is the path's."""
    plain = load("planar_2r")
    unit = SeriesElastic(spring=WIRE)
    muscles = (*plain.muscles[:1], *(replace(m, actuator=unit) for m in plain.muscles[1:]))
    rigid, sprung = GeometricBodyImage(plain), GeometricBodyImage(replace(plain, muscles=muscles))
    q, tensions = np.array([0.3, -0.4]), np.array([80.0, 0.0, 60.0, 200.0])
    path, slope = (x.copy() for x in rigid.evaluate(q, tensions))
    found = sprung.evaluate(q, tensions)
    expected = path - np.array([0.0, *elongation(tensions[1:])])
    assert found[0] == pytest.approx(expected, abs=1e-9)
    assert found[1] == pytest.approx(slope, abs=1e-15)
    assert math.isclose(found[0][1], path[1], abs_tol=1e-12)  # slack: nothing stretched
