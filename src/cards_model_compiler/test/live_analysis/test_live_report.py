"""Parameters, report and diagnostics of ``live_analysis`` without ROS messages."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cards_core.analysis.conditions.base import ConditionError
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError, UnknownNameError
from cards_core.formats import load
from cards_core.parameters.declaration import ParameterSet
from cards_model_compiler.live_analysis.analyses import InteractionAnalysis, RobotState
from cards_model_compiler.live_analysis.parameters import make_analyses, make_stiffness, parameters
from cards_model_compiler.live_analysis.report import PoseReport
from cards_model_compiler.live_analysis.workers import Outcome

ROBOT = load("planar_2r")


def values(**given):
    out = ParameterSet(given)
    out.declare(parameters())
    return out


def state_at(robot, q, number=0, came=0.0):
    dynamics = make_dynamics(robot, "numeric")
    found = dynamics.update(q, np.zeros(dynamics.tree.nv))
    m, nv = len(robot.muscles), dynamics.tree.nv
    lengths = found.muscle_lengths.copy()
    f = np.full(m, 30.0)
    return RobotState(number, came, 1_500_000_000, 0.0, q, np.zeros(nv), lengths, np.zeros(m), f)


def report_of(robot, state, **given):
    value = values(**given)
    analyses, missing = make_analyses(robot, value)
    conditions = {name: a for name, a in analyses.items() if hasattr(a, "condition")}
    maker = PoseReport(
        make_dynamics(robot),
        value["tension_distribution"],
        make_stiffness(robot, value),
        InteractionAnalysis(make_dynamics(robot)),
        conditions,
    )
    latest = {name: Outcome(state, a.evaluate(state), 0.0) for name, a in analyses.items()}
    with np.errstate(all="ignore"):
        report = maker.make(state, latest, missing, 0.25)
    return json.loads(json.dumps(report, allow_nan=False))


def test_the_report_of_a_pose():
    q = np.array([0.3, -0.5])
    state = state_at(ROBOT, q)
    report = report_of(ROBOT, state, tension_distribution="least_maximum")
    other = make_dynamics(ROBOT, "numeric").update(q, np.zeros(2))
    assert (report["robot"], report["time"], report["age"]) == ("planar_2r", 1.5, 0.25)
    assert report["joint_states"]["position"] == {"joint_1": 0.3, "joint_2": -0.5}
    for part in (report["muscle_states"]["length"], report["lengths"]["length"]):
        assert list(part) == ["cable_1", "cable_2", "cable_3", "cable_4"]
        np.testing.assert_allclose(list(part.values()), other.muscle_lengths, atol=1e-12)
    held = report["tension_distribution"]
    assert (held["status"], held["method"]) == ("FEASIBLE", "least_maximum")
    np.testing.assert_allclose(list(held["needed"].values()), other.gravity, atol=1e-9)
    f = np.array(list(held["tension"].values()))
    np.testing.assert_allclose(-other.muscle_jacobian.T @ f, other.gravity, atol=1e-6)
    assert np.array(report["stiffness"]["matrix"]).shape == (2, 2)
    assert set(report["interaction"]["joints"]) == {joint.name for joint in ROBOT.joints}
    estimate = report["forward_kinematics"]
    assert estimate["status"] == "FEASIBLE"
    np.testing.assert_allclose(list(estimate["position"].values()), q, atol=1e-9)
    conditions = report["conditions"]
    assert conditions["wrench_closure"] == {"status": "FEASIBLE", "age": 0.0}
    assert 0.0 < conditions["tension_factor"]["tension_factor"] <= 1.0
    assert " - " in conditions["interference"]["pair"]


def test_the_report_of_an_unknown_pose_says_so():
    state = state_at(ROBOT, np.array([0.3, -0.5]))
    report = report_of(ROBOT, replace(state, q=np.full(2, np.nan)))
    assert report["joint_states"]["position"] == {"joint_1": None, "joint_2": None}
    for name in ("lengths", "tension_distribution", "stiffness", "interaction"):
        assert report[name]["status"] == "NOT_FINITE"
    assert {said["status"] for said in report["conditions"].values()} == {"NOT_FINITE"}
    # the lengths are known
    assert report["forward_kinematics"]["difference"] is None
    assert None not in report["forward_kinematics"]["position"].values()


def test_the_report_of_a_robot_without_muscles():
    bare = replace(ROBOT, muscles=())
    report = report_of(bare, state_at(bare, np.array([0.3, -0.5])))
    assert report["muscle_states"]["length"] == {}
    assert report["tension_distribution"]["status"] == "NO_MUSCLES"
    assert report["forward_kinematics"]["status"] == "NO_MUSCLES"
    assert report["stiffness"]["status"] == "FEASIBLE"  # of gravity alone


def test_conditions_are_chosen_by_name():
    analyses, missing = make_analyses(ROBOT, values(conditions=" static, static ,manipulability"))
    assert list(analyses) == [
        "static",
        "manipulability",
        "stiffness",
        "interaction",
        "forward_kinematics",
    ]
    assert missing == {}
    assert "static" not in make_analyses(ROBOT, values(conditions=""))[0]
    with pytest.raises(UnknownNameError, match="no condition named 'statik'"):
        make_analyses(ROBOT, values(conditions="statik"))


def test_a_condition_that_is_not_for_this_robot_is_left_out_with_its_reason():
    joints = tuple(replace(j, motor=j.kind == "revolute") for j in ROBOT.joints)
    driven = replace(ROBOT, joints=joints)
    analyses, missing = make_analyses(driven, values(conditions="wrench_closure,interference"))
    assert "wrench_closure" not in analyses
    assert "interference" in analyses
    assert "no coordinate that is left to muscles" in missing["wrench_closure"]
    # who gives options means it
    text = '{"wrench_closure": {}}'
    with pytest.raises(ConditionError, match="no coordinate"):
        make_analyses(driven, values(conditions="wrench_closure", condition_options=text))


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("{", ParameterError, "'condition_options' is no JSON"),
        ("[1]", ParameterError, "expected: a JSON object with an object for each condition"),
        ('{"static": 1}', ParameterError, "expected: a JSON object"),
        ('{"statik": {}}', UnknownNameError, "no condition named 'statik'"),
        ('{"static": {"least": 1}}', UnknownNameError, "no option named 'least'"),
        (
            '{"interference": {"min_distance": -1}}',
            ParameterError,
            "'min_distance' is -1 ",
        ),
    ],
)
def test_bad_options_are_named(text, error, words):
    with pytest.raises(error, match=words):
        make_analyses(ROBOT, values(conditions="static,interference", condition_options=text))


PAGE = Path(__file__).parents[4] / "docs" / "ros_interface.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="docs/ros_interface.md is not here")
def test_the_numbers_of_the_statuses_are_in_the_documentation():
    text = PAGE.read_text()
    for status in PointStatus:
        assert f"{status.value} {status.name}" in text


@pytest.mark.skipif(not PAGE.is_file(), reason="docs/ros_interface.md is not here")
def test_all_diagnostics_of_the_node_are_in_the_documentation():
    pytest.importorskip("rclpy", reason="rclpy is not installed")
    from cards_model_compiler.live_analysis.node import NODE_NAME, STATUSES

    text = PAGE.read_text()
    for name in STATUSES:
        assert f"`{NODE_NAME}: {name}`" in text
