"""Way, work and cost of transport against closed forms."""

import math

import numpy as np
import pytest

from cards_core.formats import load
from cards_learning.measures import SHORTEST, Work, measure, objective


def test_way_goal_speed_and_cost():
    found = measure(
        np.array([1.0, 1.0, 0.1]),
        np.array([4.0, 5.0, 0.9]),
        duration=10.0,
        work=(100.0, -20.0),
        weight=40.0,
        goal=np.array([4.0, 1.0]),
    )
    assert found.distance == 5.0  # planar
    assert found.speed == 0.5
    assert found.goal_distance == 4.0
    assert found.towards_goal == 3.0 - 4.0
    assert found.cost_of_transport_ideal == 100.0 / (40.0 * 5.0)
    assert found.cost_of_transport_motor == -20.0 / (40.0 * 5.0)
    assert objective(found, {"distance": 2.0, "work_ideal": -0.01}) == 10.0 - 1.0


def test_without_goal_and_way_all_else_is_finite():
    place = np.zeros(3)
    found = measure(place, place, duration=1.0, work=(1.0, 1.0), weight=10.0)
    assert math.isnan(found.towards_goal)
    assert found.cost_of_transport_ideal == 1.0 / (10.0 * SHORTEST)
    assert found.finite


def test_work_of_winches_follows_their_rest_lengths():
    """Ideal: what is wound in under tension; of the motors: signed."""
    robot = load("tetrahedral_6")
    names = [f"{muscle.name}/rest_length" for muscle in robot.muscles]
    m = len(names)
    work = Work(robot.muscles, names)
    rest = np.full((4, m), 0.2)
    rest[:, 0] = [0.20, 0.19, 0.19, 0.21]
    tensions = np.zeros((4, m))
    tensions[:, 0] = [10.0, 20.0, 30.0, 40.0]
    work.add(rest + 0.1, tensions, rest)
    assert work.ideal == pytest.approx(10.0 * 0.01, rel=1e-12)
    assert work.motor == pytest.approx(10.0 * 0.01 - 30.0 * 0.02, rel=1e-12)


def test_work_without_winches_follows_the_lengths():
    robot = load("planar_2r")
    m = len(robot.muscles)
    work = Work(robot.muscles, ())
    lengths = np.zeros((2, m))
    lengths[:, 1] = [0.3, 0.25]
    work.add(lengths, np.full((2, m), 8.0), np.zeros((2, 0)))
    assert work.ideal == work.motor == pytest.approx(8.0 * 0.05, rel=1e-12)


def test_motors_with_a_current_do_the_work_of_the_current():
    robot = load("musashi_like")
    states = [f"{muscle.name}/current" for muscle in robot.muscles]
    work = Work(robot.muscles, states)
    m = len(robot.muscles)
    lengths, currents = np.zeros((2, m)), np.zeros((2, m))
    lengths[:, 0], currents[:, 0] = [0.3, 0.29], 0.5
    work.add(lengths, np.zeros((2, m)), currents)
    cable = robot.muscles[0].actuator
    turns = cable.motor.gear_ratio / (cable.spool_radius or 0.0045)  # rotor radians per metre
    assert work.motor == pytest.approx(0.5 * cable.motor.torque_constant * turns * 0.01, rel=1e-12)
    assert work.ideal == 0.0
