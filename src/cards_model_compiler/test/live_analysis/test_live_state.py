"""States out of messages: pairs, other orders, and what is wrong or missing."""

import numpy as np
import pytest
from hybrid_robots import platform_arm

pytest.importorskip("rclpy", reason="rclpy is not installed")
from dataclasses import replace

from cards_core.formats import load
from cards_model_compiler.live_analysis.state import KEPT, LiveState
from cards_ros.diagnostics import Level
from cards_ros.messages import JointStateSample
from random_robots import random_robot

pytestmark = pytest.mark.ros

TREE = load("planar_2r").tree
MUSCLES = tuple(muscle.name for muscle in TREE.robot.muscles)
TIMEOUT = 0.5


def sample(names, stamp, *fields):
    rows = [np.array(field, dtype=float) for field in fields]
    return JointStateSample(tuple(names), stamp, *rows, *[np.zeros(0)] * (3 - len(rows)))


def joints(stamp, q=(0.1, 0.2), qd=(0.3, 0.4)):
    return sample(TREE.position_names, stamp, q, qd)


def muscles(stamp, lengths=(1.0, 2.0, 3.0, 4.0), rates=(0.0,) * 4, tensions=(5.0, 6.0, 7.0, 8.0)):
    return sample(MUSCLES, stamp, lengths, rates, tensions)


@pytest.fixture
def live():
    return LiveState(TREE, TIMEOUT)


def test_a_pair(live):
    assert live.problem(0.0).text == "no joint_states yet"
    assert live.stale(0.0)
    assert not live.take([], [], 0.0)
    assert live.state is None
    assert live.take([joints(7)], [muscles(7)], 1.0)
    state = live.state
    assert (state.number, state.came, state.stamp, state.time_difference) == (0, 1.0, 7, 0.0)
    assert state.q.tolist() == [0.1, 0.2]
    assert state.qd.tolist() == [0.3, 0.4]
    assert state.lengths.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert state.tensions.tolist() == [5.0, 6.0, 7.0, 8.0]
    assert live.problem(1.0) is None
    assert not live.take([], [], 1.1)  # no news


def test_other_orders_and_actuator_states(live):
    names = (*reversed(MUSCLES), f"{MUSCLES[0]}/activation")
    other = sample(names, 0, [4.0, 3.0, 2.0, 1.0, 0.5], [0.0] * 5, [8.0, 7.0, 6.0, 5.0, 0.0])
    turned = sample(reversed(TREE.position_names), 0, [0.2, 0.1], [0.4, 0.3])
    live.take([turned], [other], 0.0)
    assert live.state.q.tolist() == [0.1, 0.2]
    assert live.state.lengths.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert live.state.tensions.tolist() == [5.0, 6.0, 7.0, 8.0]
    assert live.problem(0.0) is None


def test_the_newest_two_of_one_stamp_belong_together(live):
    """The joints of t = 3 are there, the muscles are still on their way."""
    came = [joints(1), joints(2, q=(2.0, 2.0)), joints(3, q=(3.0, 3.0))]
    live.take(came, [muscles(1), muscles(2)], 0.0)
    assert (live.state.stamp, live.state.q[0], live.state.time_difference) == (2, 2.0, 0.0)
    live.take([], [muscles(3)], 0.1)
    assert (live.state.stamp, live.state.q[0], live.state.time_difference) == (3, 3.0, 0.0)


def test_two_clocks_that_never_agree(live):
    live.take([joints(10_000_000)], [muscles(12_000_000)], 0.0)
    assert live.state.stamp == 10_000_000
    assert live.state.time_difference == pytest.approx(2e-3)
    live.take([joints(20_000_000)], [], 0.1)
    assert live.state.time_difference == pytest.approx(-8e-3)
    # senders without a clock
    for k in range(2 * KEPT):
        live.take([joints(0, q=(k, k))], [muscles(0)], 0.2)
        assert live.state.q[0] == k


def test_an_old_pair_does_not_come_back(live):
    live.take([joints(1)], [muscles(1)], 0.0)
    live.take([joints(2, q=(2.0, 2.0))], [], 0.1)
    assert live.state.q[0] == 2.0
    assert live.state.time_difference == pytest.approx(-1e-9)


def test_what_stays_away_is_not_known_any_more(live):
    live.take([joints(1)], [muscles(1)], 0.0)
    live.take([joints(2)], [], 0.6)
    assert np.isfinite(live.state.q).all()
    assert np.isnan(live.state.tensions).all()
    assert np.isnan(live.state.time_difference)
    assert live.problem(0.6).level is Level.STALE
    assert live.problem(0.6).text == "no muscle_states for 0.5 s"
    assert not live.stale(0.6)
    assert live.stale(1.2)
    # a robot without joint sensors
    live.take([], [muscles(5)], 2.0)
    assert np.isnan(live.state.q).all()
    assert np.isfinite(live.state.lengths).all()
    assert live.state.stamp == 5


@pytest.mark.parametrize(
    ("message", "level", "words"),
    [
        (
            sample(["neck"], 0, [0.1], [0.0]),
            Level.ERROR,
            ["no value for joint_1", "unknown: neck"],
        ),
        (joints(0, q=(np.nan, 0.0)), Level.ERROR, ["position of 'joint_1' is nan"]),
        (joints(0, qd=(0.0, np.inf)), Level.ERROR, ["velocity of 'joint_2' is inf"]),
        (joints(0, q=(1.0,)), Level.ERROR, ["1 values of position for 2 names"]),
        (sample(TREE.position_names, 0, [0.1, 0.2]), Level.WARN, ["no velocity in the message"]),
        (sample([], 0), Level.ERROR, ["no value for joint_1, joint_2"]),
    ],
)
def test_a_bad_message_is_named_and_its_numbers_are_not_known(live, message, level, words):
    assert live.take([message], [muscles(0)], 0.0)
    problem = live.problem(0.0)
    assert problem.level is level
    for word in ["joint_states: ", *words]:
        assert word in problem.text
    assert not np.isfinite(np.concatenate([live.state.q, live.state.qd])).all()
    assert np.isfinite(live.state.lengths).all()
    live.take([joints(1)], [muscles(1)], 0.1)
    assert live.problem(0.1) is None


def test_bad_muscle_states(live):
    for message, words in (
        (sample(["a"], 0, [1.0], [0.0], [1.0]), "no value for cable_1"),
        (muscles(0, tensions=(1.0, np.nan, 1.0, 1.0)), "effort of 'cable_2' is nan"),
        (sample(MUSCLES, 0, [1.0] * 4, [0.0] * 4), "no effort in the message"),
    ):
        live.take([joints(0)], [message], 0.0)
        assert words in live.problem(0.0).text
        assert np.isnan(live.state.tensions).any()
        assert np.isfinite(live.state.q).all()


def test_quaternions_have_length_one():
    tree = random_robot(0, n_links=1, kinds=("ball",)).tree
    assert tree.nq > tree.nv
    live = LiveState(tree, TIMEOUT)
    q = tree.home * 1.0005  # rounding of a sensor
    live.take([sample(tree.position_names, 0, q, np.zeros(tree.nq))], [], 0.0)
    np.testing.assert_allclose(live.state.q, tree.home, atol=1e-15)
    live.take([sample(tree.position_names, 1, 2.0 * tree.home, np.zeros(tree.nq))], [], 0.1)
    assert np.isnan(live.state.q).all()
    assert "length 2, expected (w, x, y, z) of length 1" in live._joints.problem.text
    assert live.state.qd.shape == (tree.nv,)


def test_without_muscles_nobody_waits_for_them():
    tree = replace(TREE.robot, muscles=()).tree
    live = LiveState(tree, TIMEOUT)
    assert live.take([joints(0)], [], 0.0)
    assert live.problem(0.0) is None
    assert live.state.lengths.shape == (0,)
    assert not live.stale(0.1)
    assert live.stale(1.0)


def test_efforts_of_motors_stand_beside_their_coordinates():
    tree = platform_arm().tree
    live = LiveState(tree, TIMEOUT)
    names = tuple(reversed(tree.position_names))
    fields = [[0.0] * 5, [0.0] * 5, [-1.0, 3.0, 0.0, 0.0, 0.0]]
    assert live.take([sample(names, 7, *fields)], [], 1.0)
    assert live.state.efforts.tolist() == [3.0, -1.0]
    # a host that says nothing of efforts
    assert live.take([sample(names, 8, *fields[:2])], [], 1.0)
    assert np.isnan(live.state.efforts).tolist() == [True, True]
