"""Missed states, counted from stamps."""

import numpy as np

from cards_core.loop.missed_states import MissedStates

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
