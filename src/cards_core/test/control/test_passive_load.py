"""Controllers of robots with ligaments: their tension is a load, by the law in closed form."""

from dataclasses import replace

import numpy as np
import pytest
from control_robots import Motion, at, step, straight

from cards_core.control import ControlModel, ControlStatus, make_controller
from cards_core.control.model import PassiveLoad
from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError
from cards_core.robot.actuators import Ligament
from cards_core.robot.elements import WORLD, Frame, Inertia, Joint, JointAxis, Link
from cards_core.robot.model import Robot

STIFFNESS, SLACK, DAMPING = 100.0, 0.4, 0.02
X, V = 0.1, 0.3
TOE = 0.06


def slider() -> Robot:
    """A block of 2 kg on a level rail, a cable to either side, a ligament to the left end."""
    axis = (JointAxis(np.array([1.0, 0.0, 0.0]), -0.4, 0.4),)
    ends = {"left": -0.5, "right": 0.5}
    cables = [
        straight(n, (WORLD, (x, 0, 0)), ("block", (0, 0, 0)), 1, 100) for n, x in ends.items()
    ]
    law = Ligament(stiffness=STIFFNESS, slack_length=SLACK, damping=DAMPING, toe_strain=TOE)
    spring = replace(cables[0], name="spring", actuator=law, tension_min=0.0, tension_max=np.inf)
    return Robot(
        "slider",
        (Link("block", Inertia(2.0, np.zeros(3), 0.01 * np.eye(3))),),
        (Joint("rail", "prismatic", WORLD, "block", axes=axis),),
        (cables[0], spring, cables[1]),
        (Frame("hook", "block", at(0, 0, 0)),),
        "hook",
    )


def pull(x: float, v: float) -> float:
    """Tension of the ligament beyond its toe; it is lengthening."""
    strain = (0.5 + x) / SLACK - 1.0
    elastic = STIFFNESS * (strain - TOE / 2)
    return elastic + min(DAMPING * v / SLACK, elastic)


@pytest.mark.parametrize("backend", ["compiled", "numeric"])
def test_the_load_is_that_of_the_law(backend):
    load = PassiveLoad(slider(), backend)
    assert load.names == ("spring",)
    for x, v in ((X, V), (0.3, 0.0), (X, V)):
        # on the side of gravity: positive pulls to the left
        np.testing.assert_allclose(load(np.array([x]), np.array([v])), [pull(x, v)], rtol=1e-12)
    np.testing.assert_array_equal(load(np.array([-0.2]), np.array([V])), [0.0])


def controlled(kind: str, acceleration: float, **parameters):
    """One step in a state of motion, with feedback gains of zero."""
    robot = slider()
    parameters = {"kp": 0.0, "kd": 0.0, **parameters}
    if kind == "ctc_operational":
        parameters["axes"] = "x"
    controller = make_controller(kind, ControlModel(robot, "numeric"), **parameters)
    controller.set_reference(Motion(1, lambda t: ([X], [V], [acceleration])))
    return step(controller, 0.0, np.array([X]), np.array([V]))


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
def test_cables_carry_the_ligament_besides_the_motion(kind):
    out = controlled(kind, 0.7)
    assert out.status is ControlStatus.OK
    left, right = out.tensions
    np.testing.assert_allclose(right - left - pull(X, V), 2.0 * 0.7, atol=1e-6)


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
def test_a_ligament_too_strong_for_the_cables_is_told(kind):
    # the right cable has 100 N at most, the left one 1 N at least
    most = (99.0 - pull(X, V)) / 2.0
    assert controlled(kind, most - 1e-4).status is ControlStatus.OK
    assert controlled(kind, most + 1e-4).status is ControlStatus.INFEASIBLE


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
def test_the_command_names_the_muscles_that_take_one(kind):
    parameters = {"axes": "x"} if kind == "ctc_operational" else {}
    controller = make_controller(kind, slider(), **parameters)
    (part,) = controller.command
    assert (part.kind, part.names) == ("force", ("left", "right"))


def test_dynamics_with_muscles_without_a_command_are_refused():
    robot = slider()
    with pytest.raises(ParameterError, match="'spring' takes no tension command"):
        ControlModel(robot, dynamics=make_dynamics(robot, "numeric"))
