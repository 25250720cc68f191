"""How far a simulator that paces itself is behind real time."""

import pytest

from cards_muscle_plugin.delay import Delay

pytestmark = pytest.mark.serial

MS = 1_000_000  # [ns]


def test_late_steps_add_up_and_what_is_caught_up_counts_no_more():
    delay = Delay(1.0)
    assert delay.note(10.0, MS) == 0.0
    assert delay.note(10.001, MS) == pytest.approx(0.0, abs=1e-12)
    assert delay.note(10.006, MS) == pytest.approx(0.004)
    assert delay.note(10.0065, MS) == pytest.approx(0.0035)
    # faster than it should be is no credit
    for k in range(1, 20):
        delay.note(10.0065 + 1e-5 * k, MS)
    assert delay.note(10.009, MS) == pytest.approx(0.00131, abs=1e-9)


def test_pauses_do_not_count_and_a_reset_begins_anew():
    delay = Delay(0.5)
    delay.note(0.0, MS)
    assert delay.note(0.003, MS) == pytest.approx(0.001)  # 1 ms is due after 2 ms
    delay.interrupt()
    assert delay.note(60.0, MS) == pytest.approx(0.001)
    delay.reset()
    assert delay.note(70.0, MS) == 0.0


def test_without_a_pace_nothing_is_late():
    delay = Delay(0.0)
    delay.note(0.0, MS)
    assert delay.note(9.0, MS) == 0.0
