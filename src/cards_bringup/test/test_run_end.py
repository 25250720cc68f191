"""However a run ends, what was recorded is kept, and the end is told."""

import argparse
import json
import os
import signal
import time

import numpy as np
import pytest

from cards_bringup.demo.run_end import RunEnd, RunInterrupts, conclude, nothing_recorded, simulate
from cards_bringup.demo.run_folder import preparing
from cards_bringup.nodes.supervisor import ProcessFailedError
from cards_core.errors import CardsError
from cards_core.loop.run_log import RunLog

pytestmark = pytest.mark.serial

ARGS = argparse.Namespace(robot="planar_2r", json=False)


def run(start, out):
    return simulate(ARGS, start, 1.0, out)


def test_an_end_as_it_should_be(tmp_path):
    end = run(lambda on_time, _note: on_time(0.7), tmp_path)
    assert (end.reached, end.stopped, end.failure) == (0.7, False, "")


@pytest.mark.parametrize(
    ("error", "stopped", "failure"),
    [
        (KeyboardInterrupt, True, ""),
        (CardsError("it broke\nand more"), False, "it broke"),
        (OSError(28, "No space left on device"), False, "the run cannot be recorded"),
    ],
)
def test_rows_of_a_log_that_was_not_closed_are_saved(tmp_path, capsys, error, stopped, failure):
    log = RunLog(tmp_path / "simulator.npz", {"time": None})

    def start(_on_time, _note):
        for k in range(600):
            log.append(float(k))
        raise error

    end = run(start, tmp_path)
    assert end.stopped is stopped
    assert failure in end.failure
    assert "simulator.npz: saved for a process" in capsys.readouterr().err
    with np.load(tmp_path / "simulator.npz") as saved_log:
        assert saved_log["time"].tolist() == list(range(512))


@pytest.mark.parametrize("during", [False, True])
@pytest.mark.parametrize(
    ("number", "remedy"), [(28, "free space there"), (30, "a folder that can be written")]
)
def test_a_log_that_cannot_be_written_is_told_whole(tmp_path, monkeypatch, during, number, remedy):
    """Where, why and what would be right, whether or not the run had failed before."""
    error = OSError(number, os.strerror(number))

    def fail(*_):
        raise error

    monkeypatch.setattr("cards_core.loop.run_log.recover", fail)
    end = run(fail if during else lambda *_: None, tmp_path)
    assert f"a log cannot be written: {os.strerror(number)} (expected: {remedy})" in end.failure
    assert end.failure.startswith(f"{tmp_path}: {'the run' if during else 'a log'} cannot be")
    assert "Errno" not in end.failure


def test_real_time_factor_leaves_out_start_and_resets(tmp_path, monkeypatch):
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)

    def start(on_time, _note):
        nonlocal clock
        # the simulator is reset after the second report
        for now, reached in ((3.0, 0.2), (4.0, 2.2), (5.0, 0.1), (6.0, 1.1)):
            clock = now
            on_time(reached)
        clock = 9.0

    end = run(start, tmp_path)
    assert (end.begun, end.wall, end.reached) == (0.0, 9.0, 1.1)
    assert end.real_time_factor == pytest.approx((2.0 + 1.0) / 3.0)


def test_no_real_time_factor_without_two_reports(tmp_path):
    assert run(lambda on_time, _note: on_time(1.0), tmp_path).real_time_factor is None


def test_a_bug_is_not_hidden(tmp_path):
    def start(_on_time, _note):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(start, tmp_path)


def ended():
    return RunEnd(time.monotonic() - 1.0, 1.0, 0.0, True)


def test_stopped_before_anything_was_recorded(tmp_path, capsys):
    out = tmp_path / "runs" / "run"
    with preparing() as prepare:
        prepare(out)
        (out / "logs").mkdir()
        (out / "logs" / "simulator.log").write_text("ready")
        (out / "simulator.npz").write_bytes(b"")
        assert nothing_recorded(ARGS, ended(), out, "simulator") == 130
    assert capsys.readouterr().err == "stopped before anything was recorded\n"
    assert list(tmp_path.iterdir()) == []


def test_what_was_in_the_folder_before_the_run_stays(tmp_path):
    others = [tmp_path / "data.npz", tmp_path / "logs" / "mine.log", tmp_path / "sub" / "x.npz"]
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.write_text("precious")
        os.utime(path, (1.0e9, 1.0e9))
    with preparing() as prepare:
        prepare(tmp_path)
        (tmp_path / "logs" / "simulator.log").write_text("ready")
        assert nothing_recorded(ARGS, ended(), tmp_path, "simulator") == 130
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(others)


def test_nothing_recorded_and_not_stopped_is_an_error(tmp_path):
    broken = RunEnd(0.0, 1.0, 0.0, error=CardsError("it broke"))
    with pytest.raises(CardsError, match="it broke"):
        nothing_recorded(ARGS, broken, tmp_path, "simulator")
    with pytest.raises(CardsError, match="'simulator' ended with exit code 0"):
        nothing_recorded(ARGS, RunEnd(0.0, 1.0, 0.0), tmp_path, "simulator")


def write_nothing():
    raise OSError(28, "No space left on device")


def test_results_that_cannot_be_written(tmp_path):
    end = RunEnd(0.0, 1.0, 1.0)
    with (
        RunInterrupts(print) as interrupts,
        pytest.raises(CardsError, match=r"No space left on device; the logs are there"),
    ):
        conclude(ARGS, interrupts, end, tmp_path, write=write_nothing, show=print)


@pytest.mark.parametrize(("verdict", "code"), [("ok", 0), ("failed", 1), ("stopped", 130)])
def test_the_exit_code_is_that_of_the_verdict(tmp_path, capsys, verdict, code):
    error = CardsError("it broke") if verdict == "failed" else None
    end = RunEnd(0.0, 1.0, 1.0, verdict == "stopped", error)
    shown = []
    for json_only in (True, False):
        args = argparse.Namespace(robot="planar_2r", json=json_only)
        with RunInterrupts(print) as interrupts:
            found = conclude(
                args,
                interrupts,
                end,
                tmp_path,
                write=lambda: {"verdict": verdict},
                show=lambda *given: shown.append(given),
            )
        assert found == code
        printed = capsys.readouterr()
        assert ("error: it broke" in printed.err) == (verdict == "failed")
        assert json_only == bool(printed.out)
        assert not json_only or json.loads(printed.out) == {"verdict": verdict}
    assert shown == [({"verdict": verdict}, tmp_path)]


def test_what_ended_a_run_is_whole_in_one_line(tmp_path):
    log = tmp_path / "ctc_joint.log"
    log.write_text("ready\nenabled\n")
    end = RunEnd(0.0, 1.0, 0.0, error=ProcessFailedError("ctc_joint", -9, log))
    assert end.failure == f"'ctc_joint' ended with signal SIGKILL (its output: {log})"


def test_after_the_results_a_signal_ends_the_page_without_an_exception():
    """One that came while they were written ends it too; one more is an exception again."""
    with RunInterrupts(lambda _note: None) as interrupts:
        interrupts.saving()
        stopped = interrupts.saved()
        assert not stopped.is_set()
        signal.raise_signal(signal.SIGINT)
        assert stopped.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with RunInterrupts(lambda _note: None) as interrupts:
        interrupts.saving()
        signal.raise_signal(signal.SIGINT)
        assert interrupts.saved().is_set()
