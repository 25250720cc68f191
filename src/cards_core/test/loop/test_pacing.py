"""Deadlines of the loop, with invented times."""

import math

import numpy as np
import pytest

from cards_core.errors import CardsError
from cards_core.loop.pacing import Pacer


def run(pacer, durations, start=0.0):
    """Simulate a loop whose steps take the given times; return when each step began."""
    now, begins = start, []
    for duration in durations:
        now += max(0.0, pacer.remaining(now))
        begins.append(now)
        now += duration
        pacer.done(now)
    return begins


def test_steps_begin_on_the_grid():
    pacer = Pacer(1e-3)
    pacer.start(10.0)
    begins = run(pacer, [2e-4] * 1000, start=10.0)
    np.testing.assert_allclose(begins, 10.0 + 1e-3 * np.arange(1000), rtol=0, atol=1e-12)
    assert (pacer.steps, pacer.overruns, pacer.dropped) == (1000, 0, 0)


def test_no_drift_over_a_day_of_steps():
    pacer = Pacer(1e-3)
    pacer.start(0.0)
    pacer._count = 86_400_000
    assert pacer.deadline == pytest.approx(86_400.0, abs=1e-10)


def test_late_steps_are_counted_and_caught_up():
    pacer = Pacer(0.01)
    pacer.start(0.0)
    begins = run(pacer, [0.001, 0.035, 0.001, 0.001, 0.001, 0.001, 0.001])
    np.testing.assert_allclose(begins, [0.0, 0.01, 0.045, 0.046, 0.047, 0.05, 0.06], atol=1e-12)
    # the long step was due to end at 0.02; the two after it began too late to end in time
    assert pacer.overruns == 3
    assert pacer.dropped == 0


def test_step_that_ends_exactly_at_the_deadline_is_in_time():
    pacer = Pacer(0.25)
    pacer.start(0.0)
    assert pacer.done(0.25)
    assert not pacer.done(0.5 + 1e-9)


def test_long_delay_drops_whole_periods_and_keeps_the_grid():
    pacer = Pacer(0.25, max_lag=1.0)
    pacer.start(0.0)
    pacer.done(10.1)
    assert pacer.dropped == 39  # 0.25 + 39 * 0.25 = 10.0
    assert pacer.deadline == 10.0
    assert pacer.remaining(10.1) == pytest.approx(-0.1)
    pacer.done(10.15)
    assert pacer.deadline == 10.25
    assert pacer.dropped == 39
    assert pacer.overruns == 1


def test_speed_changes_from_the_next_deadline_on():
    pacer = Pacer(0.25, speed=2.0)
    pacer.start(0.0)
    assert pacer.interval == 0.125
    pacer.done(0.1)
    assert pacer.deadline == 0.125
    pacer.set_speed(0.5)
    assert pacer.deadline == 0.125
    pacer.done(0.2)
    assert pacer.deadline == 0.625


def test_resume_after_a_pause_keeps_the_counters():
    pacer = Pacer(0.25)
    pacer.start(0.0)
    pacer.done(0.3)
    pacer.resume(100.0)
    assert pacer.remaining(100.0) == 0.0
    assert (pacer.steps, pacer.overruns) == (1, 1)
    pacer.start(200.0)
    assert (pacer.steps, pacer.overruns) == (0, 0)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_senseless_values_are_errors(value):
    with pytest.raises(CardsError, match="period"):
        Pacer(value)
    with pytest.raises(CardsError, match="speed"):
        Pacer(1.0, speed=value)
    with pytest.raises(CardsError, match="speed"):
        Pacer(1.0).set_speed(value)
    with pytest.raises(CardsError, match="max_lag"):
        Pacer(1.0, max_lag=value)


def test_real_time_that_was_given_up():
    pacer = Pacer(0.001, speed=2.0, max_lag=0.01)
    pacer.start(0.0)
    pacer.done(0.008)  # late, but caught up
    assert pacer.behind == 0.0
    pacer.done(1.0)
    assert pacer.behind == pytest.approx(1.0 - 2 * 0.0005)
    pacer.start(2.0)
    assert pacer.behind == 0.0


def test_only_what_is_longer_than_the_longest_lag_is_given_up():
    pacer = Pacer(0.25, max_lag=1.0)
    pacer.start(0.0)
    assert not pacer.done(1.25)  # 1 s late
    assert (pacer.dropped, pacer.deadline) == (0, 0.25)
    pacer.start(0.0)
    pacer.done(1.2501)
    assert (pacer.dropped, pacer.deadline) == (4, 1.25)
    usual = Pacer(0.25)  # half a second is caught up
    usual.done(0.75)
    assert usual.dropped == 0
    usual.start(0.0)
    usual.done(0.7501)
    assert usual.dropped == 2


def test_a_new_pacer_has_its_first_deadline_at_zero_and_runs_in_real_time():
    pacer = Pacer(0.25)
    assert (pacer.deadline, pacer.interval, pacer.behind) == (0.0, 0.25, 0.0)
    assert (pacer.steps, pacer.overruns, pacer.dropped) == (0, 0, 0)
    assert pacer.remaining(-1.0) == 1.0


def test_a_pacer_that_is_started_or_resumed_has_no_steps_behind_it():
    pacer = Pacer(0.25, max_lag=0.5)
    pacer.start(0.0)
    for k in range(3):
        pacer.done(10.0 * (k + 1))
    assert pacer.dropped > 0
    pacer.resume(100.0)
    assert pacer.deadline == 100.0
    assert pacer.done(100.25)
    assert pacer.deadline == 100.25
    pacer.start(200.0)
    assert (pacer.deadline, pacer.dropped) == (200.0, 0)
