"""From parameters to a control loop: what is declared, what is made of it, what is refused."""

import math

import numpy as np
import pytest

from cards_core.control.registry import controller_class
from cards_core.errors import CardsError, ParameterError
from cards_core.formats import load
from cards_core.loop.control_setup import (
    MODEL_ERRORS,
    make_control_loop,
    model_parameters,
    reference_parameters,
    run_parameters,
)
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.state import RobotState
from cards_core.trajectories import PointToPoint

QUICK = {"model": "planar_2r", "backend": "numeric"}


def make(kind="ctc_joint", robot=None, tracked=None, **parameters):
    given = ParameterSet(QUICK | parameters, kind)
    return make_control_loop(kind, given, robot, tracked)


def masses(loop):
    return [link.inertia.mass for link in loop.controller.model.robot.links]


# Parameters -----------------------------------------------------------------------------------


def test_a_controller_that_is_told_nothing():
    given = ParameterSet({})
    given.declare(model_parameters())
    given.declare(run_parameters())
    assert {spec.name: given[spec.name] for spec in given.specs} == {
        "model": "roboy_arm",
        "mass_factor": 1.0,
        "attachment_offset": 0.0,
        "moment_arm_error": 0.0,
        "perturbation_seed": 0,
        "backend": "compiled",
        "reference": "",
        "reference_file": "",
        "approach_speed": 0.25,
        "repeat_reference": False,
        "autostart": True,
        "accept_other_model": False,
        "state_rate": 50.0,
        "state_timeout": 0.5,
        "log_dir": "",
    }
    assert {name: given[name] for name in MODEL_ERRORS} == MODEL_ERRORS  # no errors


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("mass_factor", 1e-3, 1e3),
        ("attachment_offset", 0.0, 1.0),
        ("moment_arm_error", 0.0, 0.5),
        ("approach_speed", 0.0, 100.0),
        ("state_rate", 0.1, 1e4),
        ("state_timeout", 0.01, 3600.0),
        ("reference_speed", 1e-3, 100.0),
    ],
)
def test_numbers_of_a_controller_have_bounds(name, least, most):
    specs = [*model_parameters(), *run_parameters()]
    specs += reference_parameters(controller_class("ctc_operational"))
    for value in (least, most):
        given = ParameterSet({name: value})
        given.declare(specs)
        assert given[name] == value
    for value in (np.nextafter(least, -1.0), np.nextafter(most, math.inf), math.nan):
        with pytest.raises(ParameterError, match=name):
            ParameterSet({name: value}).declare(specs)


def test_seeds_are_whole_and_dynamics_are_of_two_kinds():
    for name, bad in (("perturbation_seed", -1), ("perturbation_seed", 0.5), ("backend", "fast")):
        with pytest.raises(ParameterError, match=name):
            ParameterSet({name: bad}).declare(model_parameters())


def test_points_over_a_topic_are_for_operational_space():
    (spec,) = reference_parameters(controller_class("ctc_operational"))
    assert (spec.name, spec.default, spec.unit) == ("reference_speed", 0.25, "m/s or rad/s")
    assert reference_parameters(controller_class("ctc_joint")) == []
    with pytest.raises(CardsError, match="no parameter 'reference_speed'"):
        make(reference_speed=0.5)
    loop = make("ctc_operational", load("roboy_arm"), reference_speed=0.5)
    assert loop.controller.kind == "ctc_operational"


# The model ------------------------------------------------------------------------------------


def test_without_errors_the_controller_has_the_model_as_it_was_described():
    robot = load("planar_2r")
    loop = make(robot=robot)
    assert loop.robot is robot
    assert loop.controller.model.robot is robot
    assert make().robot.name == "planar_2r"  # by its name


def test_errors_change_what_the_controller_knows_and_not_what_it_tells_others():
    robot = load("planar_2r")
    loop = make(robot=robot, mass_factor=1.25)
    assert loop.robot is robot
    assert masses(loop) == pytest.approx([1.25 * link.inertia.mass for link in robot.links])

    def points(loop):
        muscles = loop.controller.model.robot.muscles
        return np.array([point.position for muscle in muscles for point in muscle.path])

    exact = points(make(robot=robot))
    for name in ("attachment_offset", "moment_arm_error"):
        moved = points(make(robot=robot, **{name: 0.01}))
        assert np.abs(moved - exact).max() > 0.0
        again = points(make(robot=robot, **{name: 0.01}, perturbation_seed=0))
        assert np.array_equal(moved, again)
        other = points(make(robot=robot, **{name: 0.01}, perturbation_seed=1))
        assert not np.array_equal(moved, other)
    far = points(make(robot=robot, attachment_offset=0.02)) - exact
    near = points(make(robot=robot, attachment_offset=0.01)) - exact
    assert far == pytest.approx(2.0 * near)


# References and logs --------------------------------------------------------------------------


def test_a_reference_by_name_or_one_that_is_given():
    assert make().reference is None
    named = make(reference="there_and_back")
    assert (named.reference.size, named.reference.duration) == (2, 8.0)
    given = PointToPoint(np.zeros(2), np.ones(2), 1.0)
    assert make(tracked=given, reference="nowhere").reference.duration == 1.0
    assert make(reference_file="planar_2r", reference="there_and_back").reference.size == 2
    with pytest.raises(CardsError, match="there_and_back"):
        make(reference="nowhere")


def test_a_reference_has_the_space_of_its_controller():
    robot = load("roboy_arm")
    flower = make("ctc_operational", robot, reference="flower")
    assert flower.reference.size == len(flower.controller.reference_names) == 3
    for kind, space in (("ctc_joint", "operational"), ("ctc_operational", "joint")):
        name, of = ("flower", robot) if space == "operational" else ("there_and_back", None)
        with pytest.raises(CardsError, match=space):
            make(kind, of, reference=name)


def test_how_the_reference_is_approached_and_repeated():
    loop = make()
    assert (loop.approach_speed, loop.repeat) == (0.25, False)
    loop = make(approach_speed=0.75, repeat_reference=True)
    assert (loop.approach_speed, loop.repeat) == (0.75, True)


def test_the_log_has_its_name_in_its_folder(tmp_path):
    assert make().log is None
    loop = make(log_dir=str(tmp_path / "run"))
    loop.step(RobotState(0.0, np.zeros(2), np.zeros(2)))
    loop.record(1.0, 0)
    loop.close()
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["controller.npz"]


# What is refused ------------------------------------------------------------------------------


def test_what_nobody_declared_is_refused_with_the_names_that_exist():
    with pytest.raises(CardsError, match="no parameter 'kpp'; did you mean 'kp'"):
        make(kpp=3.0)
    assert make(kp=300.0).controller.kind == "ctc_joint"
    with pytest.raises(CardsError, match="no_such_kind"):
        make("no_such_kind")
    with pytest.raises(CardsError, match="no_such_robot"):
        make(model="no_such_robot")


def test_controllers_that_do_not_suit_a_robot_are_refused():
    with pytest.raises(CardsError, match=r"'mrc' cannot drive planar_2r: .* no stiffness"):
        make("mrc", load("planar_2r"))


def test_what_a_class_returns_must_be_a_controller(monkeypatch):
    kind = controller_class("ctc_joint")
    monkeypatch.setattr(kind, "from_parameters", classmethod(lambda *_: 3))
    with pytest.raises(CardsError, match=r"controller 'ctc_joint' .*what from_parameters returns"):
        make()
