"""The rules by which a trajectory under way fails or succeeds."""

import math

import numpy as np
import pytest

from cards_core.errors import CardsError, UnknownNameError
from cards_core.trajectories.execution import ResultCode, TrajectoryExecution, tolerances
from cards_core.trajectories.live import TrajectoryPoint, from_joint_trajectory

NAMES = ("shoulder", "elbow")


def execution(path=math.inf, goal=0.1, goal_time=0.5):
    point = TrajectoryPoint(2.0, [1.0, -2.0], (), ())
    reference = from_joint_trajectory(NAMES, [point], start=[0.0, 0.0])
    return TrajectoryExecution(reference, NAMES, np.full(2, path), np.full(2, goal), goal_time)


def test_on_its_way():
    progress = execution(path=0.05).look(1.0, np.array([0.5, -1.0]))
    assert progress.code is None
    np.testing.assert_allclose(progress.desired, [0.5, -1.0], atol=1e-12)
    np.testing.assert_allclose(progress.error, 0.0, atol=1e-12)


def test_path_is_left():
    progress = execution(path=0.05).look(1.0, np.array([0.5, -1.2]))
    assert progress.code == ResultCode.PATH_TOLERANCE_VIOLATED
    assert progress.text == "elbow left its path by 0.2 at t = 1.000 s (tolerance 0.05)"
    # without a tolerance any distance will do
    assert execution().look(1.0, np.array([9.0, 9.0])).code is None


def test_goal_is_reached_late_or_not_at_all():
    one = execution()
    short = np.array([1.0, -1.7])
    assert one.look(2.0, np.array([0.95, -2.05])).code == ResultCode.SUCCESSFUL
    assert one.look(2.0, short).code is None
    assert one.look(2.5, short).code is None
    late = one.look(2.6, short)
    assert late.code == ResultCode.GOAL_TOLERANCE_VIOLATED
    assert late.text.startswith("elbow missed its goal by 0.3 ")
    np.testing.assert_allclose(late.desired, [1.0, -2.0], atol=1e-12)
    assert execution(goal_time=math.inf).look(1e6, short).code is None
    # the path's tolerance does not count at the goal
    assert execution(path=0.01).look(2.0, np.array([0.95, -2.0])).code == ResultCode.SUCCESSFUL


def test_tolerances():
    given = {"shoulder": 0.0, "elbow": 0.3}
    np.testing.assert_array_equal(tolerances(NAMES, 0.02, given, "goal"), [0.02, 0.3])
    np.testing.assert_array_equal(tolerances(NAMES, 0.0, {"elbow": -1.0}, "goal"), [np.inf] * 2)
    with pytest.raises(UnknownNameError, match="elbo"):
        tolerances(NAMES, 0.0, {"elbo": 1.0}, "goal_tolerance")
    for wrong in (-2.0, math.nan):
        with pytest.raises(CardsError, match="more than 0, 0 or -1"):
            tolerances(NAMES, 0.0, {"elbow": wrong}, "goal_tolerance")
