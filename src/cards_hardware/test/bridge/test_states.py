"""States merged from samples of boards: order, age, what is missing, the worst state."""

import math
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

from cards_core.formats import load
from cards_hardware.boards.telemetry import BoardSample
from cards_hardware.bridge import states as module
from cards_hardware.bridge.states import STALE, StateMerger
from cards_hardware.protocol.enums import State

ROBOT = load("planar_2r")
COUNT = len(ROBOT.muscles)
ONE, TWO = np.array([1, 3]), np.array([2, 0])  # rows of the muscles of two boards
NOW = 1000.0


def board(rows, joint):
    place = np.array([joint])
    return SimpleNamespace(
        muscle_rows=rows, joints=(f"joint_{joint + 1}",), position_rows=place, velocity_rows=place
    )


LAYOUT = SimpleNamespace(boards=(board(ONE, 1), board(TWO, 0)), has_joints=True)


def sample(arrival=NOW, *, first=0.0, state=State.ARMED, delay=0.001):
    return BoardSample(
        time=arrival - delay, arrival=arrival, t_us=0, number=1, state=int(state), flags=0,
        command_t_us=0, muscles=first + np.arange(8.0).reshape(4, 2),
        joints=np.array([[first + 0.5], [first + 0.25]]),
    )  # fmt: skip


class Merger:
    """A merger of two boards, and how often it told of a new state."""

    def __init__(self, **more):
        self.told = 0
        self.merger = StateMerger(
            ROBOT, LAYOUT, dynamics=None, estimator=None, on_state=self.tell, **more
        )
        self.boards = [SimpleNamespace(sample=None), SimpleNamespace(sample=None)]

    def tell(self):
        self.told += 1

    def sampled(self, index, item):
        self.boards[index].sample = item
        self.merger.sampled(index, item)

    def take(self):
        return self.merger.take(self.boards)


@pytest.fixture
def pair(monkeypatch):
    made = Merger()
    made.now = NOW
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def test_this_robot_has_the_muscles_of_these_boards():
    assert COUNT == 4


def test_values_are_in_the_robot_s_order(pair):
    pair.sampled(1, sample(NOW - 0.003, first=100.0))
    assert pair.told == 0
    pair.sampled(0, sample(NOW))
    assert pair.told == 1
    state = pair.take()
    assert state.lengths.tolist() == [101.0, 0.0, 100.0, 1.0]
    assert state.rates.tolist() == [103.0, 2.0, 102.0, 3.0]
    assert state.tensions.tolist() == [105.0, 4.0, 104.0, 5.0]
    assert state.currents.tolist() == [107.0, 6.0, 106.0, 7.0]
    assert (state.q.tolist(), state.qd.tolist()) == ([100.5, 0.5], [100.25, 0.25])
    assert state.board_times == pytest.approx((NOW - 0.001, NOW - 0.004))
    assert state.time == NOW - 0.001
    assert (state.complete, state.estimated, state.number) == (True, False, 1)
    assert state.state is State.ARMED


def test_each_state_is_taken_once_and_counted(pair):
    for number in (1, 2, 3):
        for index in (0, 1):
            pair.sampled(index, sample())
        assert pair.take().number == number
        assert pair.take() is None
    assert pair.told == 3


def test_only_the_newest_state_waits(pair):
    for first in (0.0, 10.0):
        for index in (0, 1):
            pair.sampled(index, sample(first=first))
    assert pair.take().lengths.min() == 10.0
    pair.sampled(0, sample())
    pair.merger.reset()
    pair.sampled(1, sample())
    assert pair.take() is None
    for index in (0, 1):
        pair.sampled(index, sample())
    pair.merger.reset()
    assert pair.take() is None


@pytest.mark.parametrize(("apart", "whole"), [(0.9 * STALE, True), (1.1 * STALE, False)])
def test_samples_of_one_state_are_not_far_apart(pair, apart, whole):
    pair.sampled(0, sample(NOW - apart))
    pair.sampled(1, sample(NOW))
    assert (pair.told == 1) == whole
    if not whole:
        pair.sampled(0, sample(NOW))
        assert pair.told == 1


def test_a_silent_board_leaves_states_without_it(pair):
    pair.sampled(0, sample(NOW))
    pair.sampled(1, sample(NOW, first=100.0, state=State.RELAX))
    assert pair.take().complete
    pair.now = NOW + 1.1 * STALE
    assert pair.take() is None  # neither is new
    pair.sampled(0, sample(pair.now))
    state = pair.take()
    assert not state.complete
    assert state.lengths[ONE].tolist() == [0.0, 1.0]
    assert np.isnan(state.lengths[TWO]).all()
    assert np.isnan(state.q[0])
    assert state.q[1] == 0.5
    assert (state.board_times[0], math.isnan(state.board_times[1])) == (pair.now - 0.001, True)
    assert state.time == pair.now - 0.001
    assert state.state is State.ARMED  # what the silent one said last counts no more
    assert pair.take() is None
    pair.sampled(0, sample(pair.now + 0.002))
    assert pair.take().number == state.number + 1


def test_while_all_boards_send_a_state_is_waited_for(pair):
    pair.sampled(0, sample(NOW))
    pair.sampled(1, sample(NOW))
    pair.take()
    pair.now = NOW + 0.9 * STALE
    pair.sampled(0, sample(pair.now))
    assert pair.take() is None


def test_a_board_that_never_sent_is_a_silent_one(pair):
    pair.sampled(1, sample(NOW, first=7.0))
    pair.now = NOW + 0.5 * STALE
    state = pair.take()
    assert (state.complete, state.number) == (False, 1)
    assert state.q[0] == 7.5


def test_no_board_no_state(pair):
    assert pair.take() is None


def test_a_joint_that_gives_nothing_makes_a_state_incomplete(pair):
    broken = sample()
    broken.joints[0, 0] = np.nan
    pair.sampled(0, broken)
    pair.sampled(1, sample())
    state = pair.take()
    assert not state.complete
    assert np.isnan(state.q[1])
    assert state.lengths.min() == 0.0


RESTRICTIVE = (
    State.ACTIVE, State.ARMED, State.HOLD, State.RELAX, State.DISARMED, State.BOOT, State.FAULT,
    State.ESTOP,
)  # fmt: skip


@pytest.mark.parametrize(("one", "two"), list(permutations(RESTRICTIVE, 2)))
def test_the_most_restrictive_state_counts_on_whichever_board(pair, one, two):
    for index, state in enumerate((one, two)):
        pair.sampled(index, sample(state=state))
    assert pair.take().state is max(one, two, key=RESTRICTIVE.index)


@pytest.mark.parametrize("known", RESTRICTIVE)
@pytest.mark.parametrize("first", [True, False])
def test_a_state_of_newer_firmware_counts_as_one_before_all_tests(pair, known, first):
    """An emergency stop of the other board is not hidden by it, in whichever order they are."""
    for index, state in enumerate((99, known) if first else (known, 99)):
        pair.sampled(index, sample(state=state))
    assert pair.take().state is max(State.BOOT, known, key=RESTRICTIVE.index)


def test_nobody_need_listen(pair):
    quiet = StateMerger(ROBOT, LAYOUT, dynamics=None, estimator=None, on_state=None)
    assert quiet.problem == ""
    assert quiet.passive.tolist() == []
    for index in (0, 1):
        quiet.sampled(index, sample())
    assert quiet.take(pair.boards).complete


def test_muscles_that_no_board_drives_are_passive():
    layout = SimpleNamespace(boards=LAYOUT.boards[:1], has_joints=True)
    merger = StateMerger(ROBOT, layout, dynamics=None, estimator=None, on_state=None)
    assert merger.passive.tolist() == [0, 2]
