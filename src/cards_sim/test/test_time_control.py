"""When the simulator steps, on invented clocks: paced time waits for answers and for the clock."""

import pytest

from cards_sim.time_control import MAX_LAG, TimeControl

DT = 0.001


def control(mode, robots=1):
    out = TimeControl(DT, mode=mode, speed=1.0, waits=True, robots=robots)
    out.pacer.start(100.0)
    return out


def run(control, delay, until):
    """Answer every state ``delay`` [s] after it was there; return the time on the clock."""
    now = 100.0
    while control.steps < until:
        now += delay
        control.commanded(0, now)
        while not control.may_step(now):
            now += control.patience(now, 1.0)
        control.stepping()
        control.done(now)
    return now - 100.0


def test_paced_time_is_that_of_the_clock_while_answers_come_in_time():
    paced = control("paced")
    assert run(paced, delay=1e-4, until=1000) == pytest.approx(1.0, abs=2 * DT)
    assert paced.pacer.behind == 0.0


def test_paced_time_is_slower_and_never_ahead_of_an_answer_where_answers_are_late():
    paced = control("paced")
    assert run(paced, delay=0.003, until=1000) == pytest.approx(3.0, abs=2 * MAX_LAG)
    assert paced.pacer.behind == pytest.approx(2.0, abs=2 * MAX_LAG)
    # as in lockstep no time passes without an answer, however long it takes
    assert not paced.may_step(1e9)
    assert paced.steps == 1000


def test_the_wait_for_the_first_answer_is_no_lost_time():
    paced = control("paced")
    paced.commanded(0, 160.0)
    assert paced.may_step(160.0)
    paced.stepping()
    paced.done(160.0)
    assert paced.pacer.behind == 0.0


def test_paced_time_waits_for_all_robots():
    paced = control("paced", robots=2)
    paced.commanded(0, 100.0)
    assert not paced.may_step(101.0)
    paced.commanded(1, 101.0)
    assert paced.may_step(101.0)


@pytest.mark.parametrize(
    ("mode", "answered", "clocked"),
    [
        ("realtime", False, True),
        ("as_fast_as_possible", False, False),
        ("lockstep", True, False),
        ("paced", True, True),
    ],
)
def test_what_each_mode_waits_for(mode, answered, clocked):
    time = control(mode)
    time.commanded(0, 100.0)
    time.stepping()
    time.done(100.0)
    assert time.may_step(200.0) is not answered
    if answered:
        time.commanded(0, 100.0)
    assert time.may_step(100.0) is not clocked
    assert time.may_step(100.0 + 2 * DT)
