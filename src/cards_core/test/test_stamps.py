"""Stamps must survive a message and be the same on both sides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards_core.stamps import (
    LONGEST_RUN,
    end_of,
    is_due,
    nanoseconds,
    next_due,
    quantised,
    seconds,
)


@given(st.integers(0, 10**7), st.sampled_from([1e-3, 5e-4, 2e-3, 1e-4, 1 / 240]))
def test_a_quantised_time_does_not_change_again(step, dt):
    time = step * dt
    assert abs(quantised(time) - time) <= 0.5e-9 + 1e-15 * time
    assert quantised(quantised(time)) == quantised(time)
    assert nanoseconds(seconds(nanoseconds(time))) == nanoseconds(time)


def test_seconds_are_the_nearest_float():
    assert [seconds(k * 1_000_000) for k in (3, 7, 1001)] == [0.003, 0.007, 1.001]


def test_every_duration_but_zero_has_an_end():
    assert end_of(0.0) == 0
    assert [end_of(duration) for duration in (1e-320, 1e-10, 1e-9, 2.3)] == [
        1,
        1,
        1,
        2_300_000_000,
    ]
    assert end_of(LONGEST_RUN) // 10**9 < 2**31


def test_what_is_done_once_a_period_keeps_its_pace():
    rng = np.random.default_rng(0)
    times = 0.002 * np.arange(5000) + rng.normal(0.0, 2e-5, 5000)
    due, done = -np.inf, []
    for time in times:
        if is_due(time, due, 0.008):
            due = next_due(time, due, 0.008)
            done.append(time)
    assert len(done) == pytest.approx(5000 / 4, abs=1)
    # what was left out is not made up for, and time that was set back starts again
    assert next_due(10.0, 3.0, 0.008) == 10.008
    assert next_due(0.0, 3.0, 0.008) == 0.008
    assert next_due(0.5, -np.inf, 0.008) == 0.508
