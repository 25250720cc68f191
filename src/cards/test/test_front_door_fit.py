"""`cards.fit_muscles`: the fitted robot, with and without a folder, and calls without sense."""

import pytest

import cards
from cards_core.errors import CardsError, DescriptionError
from cards_core.formats import to_sdf

TEXT = """\
format: muscle_fit/1
points:
  - {muscle: cable_1, distance: 0.1}
moment_arms:
  - {muscle: cable_1, joint: joint_1, at: [0], values: 0.4, tolerance: 1.0e-6}
"""


@pytest.fixture
def task(tmp_path):
    file = tmp_path / "fit.yaml"
    file.write_text(TEXT, encoding="utf-8")
    return file


def test_the_fitted_robot_has_the_moment_arm(task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    robot = cards.load("planar_2r")
    told = []
    result = cards.fit_muscles(robot, task, progress=told.append)
    assert result.met
    assert repr(result) == "<fit of planar_2r: all goals met, 2 points moved>"
    assert told[-1].done == told[-1].total
    state = cards.compile(result.robot, "L")(q={"joint_1": 0.0})
    assert abs(-state.L[0, 0] - 0.4) < 1e-6
    assert [item.name for item in tmp_path.iterdir()] == ["fit.yaml"]


def test_a_robot_without_a_file_is_written_whole(task, tmp_path):
    robot = cards.load(to_sdf(cards.load("planar_2r")))
    result = cards.fit_muscles(robot, task, out=tmp_path / "out")
    again = cards.load(tmp_path / "out")
    for a, b in zip(result.robot.muscles, again.muscles, strict=True):
        for x, y in zip(a.via_points, b.via_points, strict=True):
            assert x.position.tolist() == y.position.tolist()


@pytest.mark.parametrize(
    ("robot", "settings", "message"),
    [
        (None, {}, "the robot is None"),
        ("planar_2r", {}, "expected: a robot with muscles, e.g. cards.load"),
        (True, {"starts": 0}, "starts is 0"),
        (True, {"seed": -1}, "seed is -1"),
        (True, {"specification": None}, "the specification is None"),
        (True, {"resume": True}, "expected: out alone"),
    ],
)
def test_calls_that_make_no_sense(task, robot, settings, message):
    given = {"specification": task} | settings
    model = cards.load("planar_2r") if robot is True else robot
    with pytest.raises(CardsError, match=message):
        cards.fit_muscles(model, **given)


def test_mistakes_in_the_file_are_named(task):
    task.write_text(TEXT.replace("cable_1", "cable_7"), encoding="utf-8")
    with pytest.raises(DescriptionError, match=r"fit.yaml:3: points\[0\].muscle: is 'cable_7'"):
        cards.fit_muscles(cards.load("planar_2r"), task)
