"""Who is waited for as fast as possible, on invented clocks."""

import pytest

from cards_core.loop.answer_watch import LEAST_PATIENCE, PATIENCE, AnswerWatch

MS = 1_000_000


def test_nobody_is_waited_for_until_somebody_answers():
    watch = AnswerWatch()
    for k in range(5):
        watch.published(k * MS, 10.0)
        assert watch.remaining(10.0) == 0.0
    assert watch.unanswered == 0


def test_after_the_first_command_each_state_is_waited_for():
    watch = AnswerWatch()
    watch.published(0, 10.0)
    watch.commanded(0)
    assert watch.remaining(10.0) == 0.0
    for k in range(1, 50):
        now = 10.0 + 0.4 * k  # slow, but not too slow
        watch.published(k * MS, now)
        assert watch.remaining(now) == pytest.approx(PATIENCE)
        watch.commanded((k - 1) * MS)  # the answer to an older state is none
        assert watch.remaining(now + 0.3) == pytest.approx(PATIENCE - 0.3)
        watch.commanded(k * MS)
        assert watch.remaining(now + 0.3) == 0.0
    assert watch.unanswered == 0


def test_states_that_are_not_published_are_not_waited_for():
    watch = AnswerWatch()
    watch.published(0, 0.0)
    watch.commanded(0)
    watch.published(MS, 0.0)
    watch.commanded(MS)
    assert watch.remaining(0.0) == watch.remaining(100.0) == 0.0


def test_time_goes_on_without_an_answer_and_waits_again_for_who_comes_back():
    watch = AnswerWatch()
    watch.published(0, 0.0)
    watch.commanded(0)
    watch.published(MS, 0.0)
    assert watch.remaining(PATIENCE) == 0.0
    assert watch.unanswered == 1
    watch.published(2 * MS, 1.0)
    assert watch.remaining(1.0) == 0.0
    watch.commanded(MS)  # late, but it is there
    assert watch.remaining(1.0) > 0.0
    watch.commanded(2 * MS)
    watch.published(3 * MS, 2.0)
    assert watch.remaining(2.0) == pytest.approx(PATIENCE)
    assert watch.unanswered == 1


def test_a_sender_that_answers_now_and_then_costs_less_and_less():
    watch = AnswerWatch()
    watch.published(0, 0.0)
    watch.commanded(0)
    now = waited = 0.0
    for k in range(1, 1001):
        watch.published(k * MS, now)
        if k % 10 == 0:
            watch.commanded((k - 5) * MS)
        waited += (left := watch.remaining(now))
        now += left
        assert watch.remaining(now) == 0.0
    assert waited < 2.0 * PATIENCE + 100 * LEAST_PATIENCE
    assert watch.unanswered == 101


def test_commands_by_hand_are_no_answers():
    watch = AnswerWatch()
    watch.published(0, 0.0)
    watch.published(MS, 0.0)
    watch.commanded(0)
    assert watch.remaining(0.0) == 0.0


def test_a_reset_forgets_who_answered():
    watch = AnswerWatch()
    watch.published(0, 0.0)
    watch.commanded(0)
    watch.published(MS, 0.0)
    assert watch.remaining(1.0) == 0.0
    watch.begin()
    watch.published(0, 1.0)
    assert watch.remaining(1.0) == 0.0
    assert watch.unanswered == 0


def test_patience_is_half_a_second_and_halves_down_to_a_millisecond():
    watch = AnswerWatch()
    now, waits = 0.0, []
    for k in range(1, 13):
        watch.commanded((k - 1) * MS)  # late: somebody answers, but not the state of now
        watch.published(k * MS, now)
        waits.append(watch.remaining(now))
        now += waits[-1]
        assert watch.remaining(now) == 0.0
    assert waits == pytest.approx([max(0.5 / 2**k, 1e-3) for k in range(12)])
    assert watch.unanswered == 12


def test_a_reset_has_patience_again():
    watch = AnswerWatch()
    for k in range(1, 4):
        watch.commanded((k - 1) * MS)
        watch.published(k * MS, 0.0)
        watch.remaining(10.0)
    watch.begin()
    watch.published(0, 20.0)
    watch.commanded(0)
    watch.published(MS, 20.0)
    assert watch.remaining(20.0) == 0.5
    assert watch.remaining(20.25) == 0.25
    assert watch.unanswered == 0


def test_the_first_command_may_come_before_any_state():
    watch = AnswerWatch()
    watch.commanded(0)
    watch.published(MS, 3.0)
    assert watch.remaining(3.0) == 0.5
    watch.commanded(0)  # typed by hand, in between: the state still has no answer
    assert watch.remaining(3.0) == 0.5
    watch.commanded(MS)
    assert watch.remaining(3.0) == 0.0
