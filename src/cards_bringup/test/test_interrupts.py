"""Ctrl-C once, twice and three times."""

import os
import signal

import pytest

from cards_bringup.interrupts import Interrupts


def press(number=signal.SIGINT):
    os.kill(os.getpid(), number)


def test_the_first_ends_the_run_the_second_warns_the_third_gives_up():
    said = []
    with Interrupts(said.append) as interrupts:
        with pytest.raises(KeyboardInterrupt):
            press()
        assert said == []
        press()
        assert said == ["writing what was recorded; Ctrl-C once more gives it up"]
        assert not interrupts.given_up
        with pytest.raises(KeyboardInterrupt):
            press()
        assert interrupts.given_up


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_results_of_a_run_that_ended_by_itself_are_not_lost_by_one(number):
    said = []
    with Interrupts(said.append) as interrupts:
        interrupts.saving()
        press(number)
        assert len(said) == 1
        with pytest.raises(KeyboardInterrupt):
            press(number)


def test_afterwards_signals_are_as_before():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts(print):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
