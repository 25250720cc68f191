"""``./cards calibrate``: its questions and answers, in front of boards on the bench."""

from __future__ import annotations

import argparse
import json
import os
import signal
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from bench_board import BenchBoard

from cards_bringup.cli import main
from cards_bringup.real_robot import calibration
from cards_bringup.real_robot.calibration import Wizard
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_hardware.boards.layout import read_layout
from cards_hardware.calibration.procedure import Calibration
from cards_hardware.calibration.recording import Recorder
from cards_hardware.calibration.report import STEPS, CalibrationReport
from cards_hardware.protocol.enums import ParameterId

pytestmark = pytest.mark.serial


@pytest.fixture(scope="module")
def arm():
    robot = load("roboy_arm")
    dynamics = make_dynamics(robot)
    return robot, read_layout("roboy_arm", robot, port="/dev/x", dynamics=dynamics), dynamics


@pytest.fixture
def wizard(arm, monkeypatch):
    """A wizard whose user types what a list says."""
    robot, layout, dynamics = arm
    board, recorder = BenchBoard(dynamics, layout.boards[0]), Recorder()
    board.on_sample = recorder

    def make(*answers, yes=False, no_save=False, as_json=False, poses=None):
        args = argparse.Namespace(
            yes=yes,
            json=as_json,
            no_save=no_save,
            check_seconds=1.0,
            robot="roboy_arm",
            poses=poses,
        )
        calibration = Calibration(robot, layout.boards, [board], [recorder], wait=board.wait)
        report = CalibrationReport("roboy_arm", datetime(2026, 1, 2, tzinfo=UTC))
        report.add_board("arm", "/dev/x", board.ident)
        made = Wizard(args, calibration, report, dynamics.tree.home)
        waiting = list(answers)
        monkeypatch.setattr(made._console, "input", lambda _prompt: waiting.pop(0))
        return SimpleNamespace(wizard=made, board=board, report=report, waiting=waiting)

    return make


def test_the_whole_way(wizard, capsys):
    made = wizard("", "", "", "", "save")
    made.wizard.run(STEPS)
    assert not made.waiting
    assert made.report.saved
    assert not made.report.ok  # nobody moved the arm
    assert sorted(made.report.unchecked) == sorted(f"motor{i}" for i in range(11))
    assert list(made.report.steps) == list(STEPS)
    assert (
        made.board.saved[ParameterId.LOAD_ZERO, 0] == made.report.parameters["arm"]["LOAD_ZERO"][0]
    )
    assert any("less than 1 N" in hint for hint in made.report.hints)
    assert any("directions not checked" in hint for hint in made.report.hints)
    text = capsys.readouterr().out
    for heading in (
        "1  Tension zero",
        "2  Length offset",
        "3  Joint zero",
        "4  Check",
        "before [mm]",
    ):
        assert heading in text


def test_lengths_from_unknown_poses(wizard, arm):
    """The user moves the robot whenever he is asked; joints are zeroed at the last pose."""
    tree, rng, held = arm[0].tree, np.random.default_rng(3), []
    made = wizard(*[""] * 11, poses=10)
    ask = made.wizard._ask

    def moved(step):
        if step == "length":
            made.board.q = tree.home + 0.02 if not held else tree.random(rng)
            held.append(made.board.q)
        return ask(step)

    made.wizard._ask = moved
    made.wizard.run(("length", "joints"))
    assert len(held) == 10
    assert made.report.ok
    pose = list(made.report.pose.values())
    np.testing.assert_allclose(pose, held[-1], atol=3e-3)
    offsets = [made.board.memory[ParameterId.LENGTH_OFFSET, i] for i in range(11)]
    assert np.abs(np.array(offsets) - made.board.true_offset).max() < 500  # um
    assert any("10 unknown poses" in hint for hint in made.report.hints)


def test_poses_that_are_all_one_are_an_error_that_names_the_muscles(wizard):
    made = wizard(*[""] * 3, poses=3)
    with pytest.raises(CardsError, match=r"do not tell the lengths of motor0, .*more poses"):
        made.wizard.run(("length",))


def test_a_step_with_problems_is_asked_again_and_can_be_skipped(wizard, capsys):
    made = wizard("", "", "s")
    made.board.tensions[4] = 90.0
    made.wizard.run(("tension",))
    assert not made.waiting
    assert "is the muscle slack" in capsys.readouterr().out.replace("\n", " ")
    assert made.report.skipped == {"tension": "as asked"}
    assert not made.report.saved
    assert made.board.saved is None


def test_abort_in_the_middle_puts_everything_back(wizard):
    made = wizard("", "a")
    before = dict(made.board.memory)
    with pytest.raises(KeyboardInterrupt):
        made.wizard.run(STEPS)
    assert made.board.memory != before
    made.wizard.put_back()
    assert made.board.memory == before
    assert made.board.saved is None


def test_where_nobody_can_be_asked_a_problem_is_an_error(wizard):
    made = wizard(yes=True)
    made.board.load_noise = 8.0
    with pytest.raises(CardsError, match="step tension: motor0: noise of"):
        made.wizard.run(STEPS)


def test_no_save_leaves_the_board_as_it_was(wizard, capsys, tmp_path):
    made = wizard(yes=True, no_save=True, as_json=True)
    before = dict(made.board.memory)
    made.wizard.run(("tension", "length"))
    assert made.board.memory == before
    assert made.board.saved is None
    made.wizard.finish(tmp_path / "x.yaml")
    found = json.loads(capsys.readouterr().out)
    assert not found["saved"]
    assert found["ok"]


def test_a_wrong_direction_is_not_saved_unless_asked(wizard):
    for answer, saved in (("", False), ("save", True)):
        made = wizard("", "", "", "s", answer)
        board = made.board
        board.sign[:] = 1.0
        board.sign[3] = -1.0
        home, begin = board.dynamics.tree.home, board.time
        # stands still until step 4
        board.motion = lambda t, board=board, home=home, begin=begin: setattr(
            board, "q", home + (0.0 if t < begin + 4.2 else 0.15 * (t - begin - 4.2))
        )
        made.wizard.run(("length", "joints", "check"))
        assert made.report.steps["check"]
        assert any("motor3: runs the other way" in problem for problem in made.report.problems)
        assert made.report.saved == saved
        board.motion = lambda _t: None


def move_in_the_check(made, speed):
    """Let the arm stand still for the steps before, then move it by hand."""
    board, check = made.board, made.wizard._check

    def moved():
        home, begin = board.q.copy(), board.time
        pace = np.array([1.0, 1.7, 2.3, 3.1])  # every joint in its own way
        board.motion = lambda t: setattr(board, "q", home + speed * np.sin(pace * (t - begin)))
        check()

    made.wizard._check = moved


@pytest.mark.parametrize(("speed", "saved"), [(0.0, False), (0.4, True)])
def test_without_questions_nothing_is_saved_whose_direction_was_not_checked(
    wizard, capsys, tmp_path, speed, saved
):
    made = wizard(yes=True, as_json=True)
    before = dict(made.board.memory)
    move_in_the_check(made, speed)
    made.wizard._args.check_seconds = 4.0
    made.wizard.run(STEPS)
    made.wizard.finish(tmp_path / "x.yaml")
    found = json.loads(capsys.readouterr().out)
    assert (found["problems"], found["saved"], found["ok"]) == ([], saved, saved)
    assert found["problems"] == []
    assert (found["unchecked"] == []) == saved
    if not saved:
        assert made.board.memory == before
        assert any("directions that were not checked" in hint for hint in found["hints"])


def test_who_asks_for_no_check_gets_none(wizard):
    made = wizard(yes=True)
    made.wizard.run(("tension", "length", "joints"))
    assert made.report.saved
    assert made.report.ok


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--json",), "--json without --yes"),
        ((), "no terminal to ask questions on"),
        (("--yes", "--steps", "tension,wire"), "no step named 'wire'"),
        (("--yes", "--q=1,x"), "--q '1,x': 'x' (expected: a finite number"),
        (("--yes", "--q=1"), "expected (4,)"),
        (
            ("--yes", "--seconds", "0"),
            "argument --seconds: '0' (expected: a finite number >= 0.2 and <= 60)",
        ),
        (("--yes", "--out", "report.txt"), "ends on .yaml or .json"),
        (("--yes", "--port", "/dev/nonexistent"), "/dev/nonexistent does not exist"),
    ],
)
def test_what_was_typed_wrongly(arguments, text, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", open("/dev/null", encoding="utf-8"))  # noqa: SIM115
    assert main(["calibrate", "roboy_arm", *arguments]) == 2
    assert text in capsys.readouterr().err


@pytest.fixture
def plugged_in(arm, monkeypatch):
    """The board that the command finds at its port."""
    _, layout, dynamics = arm
    board = BenchBoard(dynamics, layout.boards[0])
    board.layout, board.close = layout.boards[0], lambda: None
    board.opened = False

    def open_boards(_layouts, recorders):
        board.opened, board.on_sample = True, recorders[0]
        return [board]

    monkeypatch.setattr(calibration, "_open", open_boards)
    monkeypatch.setattr("time.sleep", board.wait)
    return board


COMMAND = ["calibrate", "roboy_arm", "--yes", "--port", "/dev/x"]
ALL = ["--steps", "tension,length,joints"]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("/proc/nope/x.yaml", "cannot be written: No such file"),
        ("/dev/full/x.yaml", "cannot be written"),
        ("FOLDER", "is a folder (expected: the name of a file)"),
    ],
)
def test_a_report_that_cannot_be_written_is_told_before_a_board_is_touched(
    plugged_in, tmp_path, capsys, place, text
):
    (tmp_path / "a.yaml").mkdir()
    out = place.replace("FOLDER", str(tmp_path / "a.yaml"))
    assert main([*COMMAND, *ALL, "--out", out]) == 2
    assert text in capsys.readouterr().err
    assert not plugged_in.opened


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_a_report_that_fails_after_saving_is_printed(
    plugged_in, tmp_path, monkeypatch, capsys, how
):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cards_hardware.calibration.report.write_atomically", full)
    assert main([*COMMAND, *ALL, *how, "--out", str(tmp_path / "a.yaml")]) == 1
    said = capsys.readouterr()
    first, second = said.err.splitlines()
    assert "No space left on device" in first
    assert "the calibration was saved to flash, its report is" in first
    report = json.loads(second)
    assert report["saved"]
    assert report["steps"]["length"][0]["old"] == 0
    assert "a.yaml" not in said.out
    assert plugged_in.saved == plugged_in.memory


@pytest.mark.usefixtures("hangup")
@pytest.mark.parametrize(
    "sent",
    [(n, after) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) for after in (0, 1)],
)
def test_a_signal_while_it_saves_leaves_what_the_report_says(
    plugged_in, tmp_path, monkeypatch, capsys, sent
):
    """In the middle of saving all is put back; when all was saved, the command says so."""
    number, after = sent
    old, out = dict(plugged_in.memory), tmp_path / "a.yaml"
    plugged_in.saved = dict(old)
    whose, name = (Calibration, "save") if after else (BenchBoard, "save_parameters")
    save, times = getattr(whose, name), []

    def ended(self):
        save(self)
        times.append(self)
        if len(times) == 1:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(whose, name, ended)
    assert main([*COMMAND, *ALL, "--out", str(out)]) == 130
    report = yaml.safe_load(out.read_text())
    assert (report["aborted"], report["saved"]) == ("by hand", after)
    assert (plugged_in.saved == old) != after
    assert plugged_in.saved == plugged_in.memory
    assert ("saved to flash before it was ended" in capsys.readouterr().err) == after


def test_the_report_is_written_when_it_fails_too(plugged_in, tmp_path, capsys):
    plugged_in.load_noise = 8.0
    out = tmp_path / "new" / "report.yaml"
    assert main(["calibrate", "roboy_arm", "--yes", "--port", "/dev/x", "--out", str(out)]) == 2
    assert "noise of" in capsys.readouterr().err
    found = yaml.safe_load(out.read_text())
    assert "noise of" in found["aborted"]
    assert not found["ok"]
