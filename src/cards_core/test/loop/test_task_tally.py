"""Counts of a controller's steps against numbers made by hand; missed states, from stamps."""

import math

import numpy as np
import pytest

from cards_core.control import ControlStatus
from cards_core.loop.task_tally import MissedStates, TaskTally
from cards_core.trajectories import Tolerance

PERIOD = 2_000_000


def test_exact_stamps_miss_what_was_left_out() -> None:
    missed = MissedStates()
    for gap in (1, 1, 3, 1, 2, 1):
        missed.note(gap * PERIOD)
    assert missed.count == 3


def test_measured_stamps_do_not_make_missed_states() -> None:
    """Stamps of a real robot jitter, and after a stall two come close together."""
    rng = np.random.default_rng(1)
    missed = MissedStates()
    stalls = 0
    for number in range(2000):
        if number % 50 == 49:
            missed.note(round(1.6 * PERIOD))  # late, and the next one on time
            missed.note(round(0.4 * PERIOD))
            stalls += 1
        else:
            missed.note(round(PERIOD * (1 + 0.05 * rng.standard_normal())))
        assert missed.count == stalls  # 1.6 periods count as one missed, jitter as none


def test_every_second_state_answered_counts_as_half() -> None:
    missed = MissedStates()
    for number in range(1000):
        missed.note(PERIOD if number % 8 == 0 else 2 * PERIOD)
    assert missed.count == 875


def test_tally_against_numpy():
    rng = np.random.default_rng(3)
    count, error = 50, rng.normal(size=(50, 5))
    limits = rng.uniform(0.5, 1.0, size=(count, 2))
    status = rng.choice(list(ControlStatus), size=count)
    tally = TaskTally(("m", "rad", "m", "rad", "rad"))
    tally.add(-1.0, ControlStatus.INVALID_STATE, error[0], Tolerance(1.0, 1.0), 9.0)
    tally.reset()
    for k in range(count):
        answer = ControlStatus(int(status[k]))
        tally.add(0.1 * k, answer, error[k], Tolerance(*limits[k]), 7.0 - 0.1 * k)
    facts = tally.facts(missed=4, reached=5.0)
    assert (facts.steps, facts.missed) == (count, 4)
    assert facts.invalid == np.sum(status == ControlStatus.INVALID_STATE)
    assert facts.joint_limit == np.sum(status == ControlStatus.JOINT_LIMIT)
    assert facts.infeasible == np.sum((status == 2) | (status == 3))
    assert facts.remaining == pytest.approx(7.0 - 5.0)
    good = status != ControlStatus.INVALID_STATE
    for one, columns, column in zip(facts.tracking, ([0, 2], [1, 3, 4]), (0, 1), strict=True):
        sizes = np.linalg.norm(error[good][:, columns], axis=1)
        used = sizes / limits[good, column]
        assert one.unit == ("m", "rad")[column]
        assert one.rms == pytest.approx(math.sqrt(np.mean(sizes**2)))
        assert one.used == pytest.approx(math.sqrt(np.mean(used**2)))
        assert (one.end, one.used_at_end) == pytest.approx((sizes[-1], used[-1]))


def test_a_task_without_tolerance_is_not_judged():
    tally = TaskTally(("m",))
    tally.add(0.0, ControlStatus.OK, np.array([5.0]), Tolerance(), math.nan)
    assert tally.facts().tracking == ()
    assert tally.facts().remaining == 0.0
