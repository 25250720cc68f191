"""Stamps must survive a message and be the same on both sides."""

from hypothesis import given
from hypothesis import strategies as st

from cards_core.stamps import LONGEST_RUN, end_of, nanoseconds, quantised, seconds


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
