"""Ctrl-C once, twice and three times, and where it would be lost."""

import importlib
import os
import pty
import signal
import sys
import time

import pytest

from cards_bringup.bootstrap.process import CommandInterrupts, ended_by_signals
from cards_bringup.demo.run_end import RunInterrupts

pytestmark = pytest.mark.serial


def press(number=signal.SIGINT):
    os.kill(os.getpid(), number)


def test_the_first_ends_the_run_the_second_warns_the_third_gives_up():
    said = []
    with RunInterrupts(said.append) as interrupts:
        with pytest.raises(KeyboardInterrupt):
            press()
        assert said == []
        press()
        assert said == ["writing what was recorded; Ctrl-C once more gives it up"]
        assert not interrupts.given_up
        with pytest.raises(KeyboardInterrupt):
            press()
        assert interrupts.given_up


@pytest.mark.usefixtures("hangup")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_results_of_a_run_that_ended_by_itself_are_not_lost_by_one(number):
    said = []
    with RunInterrupts(said.append) as interrupts:
        interrupts.saving()
        press(number)
        assert len(said) == 1
        with pytest.raises(KeyboardInterrupt):
            press(number)


@pytest.mark.usefixtures("hangup")
def test_a_closed_terminal_ends_the_run_and_nothing_is_said_into_it_any_more(tmp_path):
    program = (
        "import os, signal\n"
        "from cards_bringup.demo.run_end import RunInterrupts\n"
        "with RunInterrupts(print):\n"
        "    try:\n"
        "        print('runs', flush=True)\n"
        "        signal.pause()\n"
        "    except KeyboardInterrupt:\n"
        "        print('saving', flush=True)\n"
        "        open('saved', 'w').close()\n"
    )
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-c", program])
    with os.fdopen(terminal, "rb", buffering=0) as screen:
        assert screen.read(4) == b"runs"
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert (tmp_path / "saved").exists()


ENDINGS = {
    "run": lambda: RunInterrupts(print),
    "once": lambda: ended_by_signals(once=True),
    "again and again": lambda: ended_by_signals(once=False),
}


@pytest.fixture(params=ENDINGS)
def ending(request):
    """What a command does where Ctrl-C or SIGTERM ends it."""
    return ENDINGS[request.param]


def test_an_import_that_drops_it_loses_no_interrupt(ending, tmp_path, monkeypatch):
    (tmp_path / "optional_part.py").write_text(
        "import os\ntry:\n    os.kill(os.getpid(), 15)\nexcept BaseException:\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "optional_part", raising=False)

    def work():
        importlib.import_module("optional_part")
        time.sleep(5)

    with ending(), pytest.raises(KeyboardInterrupt):
        work()


def test_a_destructor_loses_no_interrupt(ending, monkeypatch):
    class Dropping:
        def __del__(self):
            press()

    def work():
        Dropping()
        time.sleep(5)

    monkeypatch.setattr(sys, "unraisablehook", CommandInterrupts()._dropped)
    with ending(), pytest.raises(KeyboardInterrupt):
        work()


def test_nohup_stays_what_it_is():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    said = []
    try:
        with RunInterrupts(said.append):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            press(signal.SIGHUP)
        assert said == []
    finally:
        signal.signal(signal.SIGHUP, before)


def test_afterwards_signals_are_as_before():
    before = signal.getsignal(signal.SIGINT)
    with RunInterrupts(print):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
