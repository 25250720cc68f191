"""The loop of the impedance law on boards: against a polynomial by hand, and known robots."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cards_core.analysis.impedance_loop import SampledLoop, slowest_motion
from cards_core.analysis.robot_check import check_robot
from cards_core.analysis.workspace.points import Samples
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, ShapeError
from cards_core.formats import load
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot

MASS = 0.5
BARE = SampledLoop(rate_filter=1e5, proportional=0.0, integral=0.0, lag=1e-7)
"""Only the delay of a period, and that of holding and differencing."""


@pytest.fixture(scope="module")
def slider():
    """A body of half a kilogram on a rail, one muscle along it."""
    x = np.array([1.0, 0.0, 0.0])
    body = Link("body", Inertia(MASS, np.zeros(3), 0.01 * np.eye(3)))
    joint = Joint("x", "prismatic", WORLD, "body", axes=(JointAxis(x, -0.5, 0.5),))
    path = (ViaPoint(WORLD, -x), ViaPoint("body", 0.0 * x))
    robot = Robot("slider", (body,), (joint,), (Muscle("m", path, 0.0, 500.0),))
    return make_dynamics(robot, "numeric")


def motion(dynamics, stiffness, damping, loop=None):
    count = len(dynamics.robot.muscles)
    gains = np.full(count, float(stiffness)), np.full(count, float(damping))
    return slowest_motion(dynamics, dynamics.tree.home, *gains, loop)


@pytest.mark.parametrize("stiffness", [0.0, 2e3, 2e4, 6e4])
@pytest.mark.parametrize("damping", [1.0, 60.0, 150.0, 300.0, 600.0])
def test_one_mass_is_that_of_its_transfer_function(slider, stiffness, damping):
    """``1 + G C = 0`` with G = dt^2/(2 m) (z + 1)/(z - 1)^2, C = (K + B (1 - 1/z)/dt)/z."""
    dt = BARE.period
    gain = dt**2 / (2.0 * MASS)
    law = np.polyadd([stiffness, 0.0], np.multiply(damping / dt, [1.0, -1.0]))
    plant = np.polymul([1.0, -2.0, 1.0], [1.0, 0.0, 0.0])
    roots = np.roots(np.polyadd(plant, gain * np.polymul([1.0, 1.0], law)))
    found = motion(slider, stiffness, damping, BARE)
    largest = max(abs(roots))
    # an integral without gain stands still: what dies out faster is not seen
    assert found.growth == pytest.approx(max(math.log(largest) / dt, 0.0), abs=0.5)
    assert found.stable == (largest < 1.0001)


def test_every_delay_takes_damping_away(slider):
    quick = replace(BARE, integral=80.0)
    loops = [quick, replace(quick, lag=5e-4), replace(quick, lag=5e-4, rate_filter=100.0)]
    growths = [motion(slider, 1e4, 250.0, loop).growth for loop in loops]
    assert growths == sorted(growths)
    assert growths[0] < 0.0 < growths[-1]


def test_boards_of_a_robot_with_light_links():
    """With 60 N/mm and 300 N s/m emulated boards swung at 100 Hz and took the biceps out."""
    dynamics = make_dynamics(load("musashi_like"))
    names = [muscle.name for muscle in dynamics.robot.muscles]
    for stiffness in (6e4, 3e4, 1.5e4):
        found = motion(dynamics, stiffness, 300.0)
        assert not found.stable
        assert 80.0 < found.frequency < 110.0
        assert names[found.muscle].split("_", 1)[1] == "biceps"
    laws = [muscle.control for muscle in dynamics.robot.muscles]
    stiffness, damping = np.array([[law.stiffness, law.damping] for law in laws]).T
    own = slowest_motion(dynamics, dynamics.tree.home, stiffness, damping)
    assert own is not None
    assert own.growth < -1.0


def test_the_check_of_a_robot_says_so(slider):
    robot = slider.robot
    (muscle,) = robot.muscles
    for damping, severity in ((300.0, [("impedance", "warning", "m")]), (30.0, [])):
        control = replace(muscle.control, stiffness=1e4, damping=damping)
        one = replace(robot, muscles=(replace(muscle, control=control),))
        result = check_robot(make_dynamics(one, "numeric"), Samples(20), least_closure=0.0)
        found = [f for f in result.findings if f.part == "impedance"]
        assert [(f.part, f.severity, f.subject) for f in found] == severity
        assert all("boards would shake it at 20 of 20 poses" in f.text for f in found)


def test_without_a_law_there_is_no_loop(slider):
    assert motion(slider, 0.0, 0.0) is None
    with pytest.raises(ShapeError, match=r"expected \(1,\)"):
        slowest_motion(slider, slider.tree.home, np.zeros(2), np.zeros(1))
    with pytest.raises(CardsError, match="rate_filter"):
        motion(slider, 1.0, 1.0, replace(BARE, rate_filter=0.0))
