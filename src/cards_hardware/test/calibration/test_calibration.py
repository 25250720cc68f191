"""Calibration against boards whose true zero points are known."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
import yaml
from bench_board import BenchBoard

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_hardware.boards.layout import read_layout
from cards_hardware.calibration.check import check_motion, check_with_joints
from cards_hardware.calibration.procedure import Calibration
from cards_hardware.calibration.recording import Recorder, RestStatistics
from cards_hardware.calibration.report import CalibrationReport
from cards_hardware.errors import HardwareError, RequestError
from cards_hardware.protocol.enums import CalibrateAction, ParameterId, State


@pytest.fixture(scope="module")
def arm():
    robot = load("roboy_arm")
    dynamics = make_dynamics(robot)
    return robot, dynamics, read_layout("roboy_arm", robot, port="/dev/x", dynamics=dynamics)


@pytest.fixture
def bench(arm):
    robot, dynamics, layout = arm
    board, recorder = BenchBoard(dynamics, layout.boards[0]), Recorder()
    board.on_sample = recorder
    return board, Calibration(robot, layout.boards, [board], [recorder], wait=board.wait)


def test_load_cells_are_zeroed_to_a_count(bench):
    board, calibration = bench
    results = calibration.zero_tensions(calibration.measure())
    found = np.array([board.memory[ParameterId.LOAD_ZERO, i] for i in range(11)])
    # the mean of 500 samples of 0.3 N is good to 0.013 N: a quarter of a count
    assert np.abs(found - board.true_load_zero).max() <= 1
    assert all(abs(result.after) < 0.08 for result in results)
    assert all(0.2 < result.noise < 0.4 for result in results)
    assert not any(result.problem for result in results)
    assert [result.new for result in results] == found.tolist()
    assert all(result.old == 0 for result in results)


def test_lengths_and_joints_are_those_of_the_pose(bench):
    board, calibration = bench
    q = board.dynamics.tree.home + 0.05
    board.q = q.copy()
    lengths = calibration.set_lengths(calibration.measure(), q)
    joints = calibration.zero_joints(calibration.measure(), q)
    offsets = np.array([board.memory[ParameterId.LENGTH_OFFSET, i] for i in range(11)])
    # an encoder count is 0.35 um, an offset 1 um
    assert np.abs(offsets - board.true_offset).max() <= 1
    zeros = np.array([board.memory[ParameterId.JOINT_ZERO, i] for i in range(4)])
    assert np.abs(zeros - board.true_joint_zero).max() <= 1
    assert not any(result.problem for result in (*lengths, *joints))
    board.q = q - 0.1
    _, measured, angles = board.measure()
    assert np.allclose(angles, q - 0.1, atol=1e-5)
    assert np.allclose(
        measured, calibration.lengths_at(q - 0.1)[board.layout.muscle_rows], atol=3e-6
    )


def test_a_pulling_shaking_or_dead_muscle_is_not_taken_for_slack(bench):
    board, calibration = bench
    board.tensions[2] = 120.0
    (problem,) = calibration.tension_problems(calibration.measure())
    assert problem.startswith("motor2: +1")
    board.tensions[2] = 0.0
    board.valid[5] = False
    (problem,) = calibration.tension_problems(calibration.measure())
    assert "motor5: no valid tension" in problem
    board.valid[5] = True
    board.load_noise = 5.0
    measurement = calibration.measure()
    assert len(calibration.tension_problems(measurement)) == 11
    with pytest.raises(HardwareError, match=r"not calibrated: motor0: noise of \d\.\d+ N"):
        calibration.zero_tensions(measurement)
    assert not calibration.changed
    assert all(board.memory[ParameterId.LOAD_ZERO, i] == 0 for i in range(11))


def test_a_moving_robot_is_refused(bench):
    board, calibration = bench
    begin = board.time

    def fall(t):
        board.q = board.dynamics.tree.home + 0.02 * (t - begin)

    board.motion = fall
    measurement = calibration.measure()
    problems = calibration.motion_problems(measurement)
    assert any("length of motor0 moves by" in problem for problem in problems)
    assert any("joint elbow moves by" in problem for problem in problems)
    with pytest.raises(HardwareError, match="let it come to rest"):
        calibration.set_lengths(measurement, board.q)


def test_only_disarmed_boards_that_send(bench):
    board, calibration = bench
    board.state = State.ARMED
    with pytest.raises(HardwareError, match=r"board 'arm' is ARMED \(expected: DISARMED"):
        calibration.measure()
    board.state = State.DISARMED
    board.on_sample = None
    with pytest.raises(HardwareError, match="board 'arm' sent 0 samples in 1 s"):
        calibration.measure()


def test_restore_brings_back_what_was_there_and_save_keeps(bench):
    board, calibration = bench
    before = dict(board.memory)
    calibration.zero_tensions(calibration.measure())
    calibration.set_lengths(calibration.measure(), board.q)
    calibration.zero_joints(calibration.measure(), board.q)
    assert calibration.changed
    assert board.memory != before
    calibration.restore()
    assert board.memory == before
    assert not calibration.changed
    assert board.saved is None
    calibration.zero_tensions(calibration.measure())
    calibration.save()
    assert board.saved == board.memory
    calibration.restore()  # has nothing left to bring back
    assert board.saved == board.memory


class Flaky:
    """A board whose line fails at its n-th request, before or after the board has done it."""

    def __init__(self, board, requests, at, done, lasting):
        self._board, self._requests = board, requests
        self._at, self._done, self._lasting = at, done, lasting

    def __getattr__(self, name):
        found = getattr(self._board, name)
        if name not in ("get_parameter", "set_parameter", "save_parameters"):
            return found

        def ask(*values):
            number = self._requests[0]
            self._requests[0] += 1
            fails = number >= self._at if self._lasting else number == self._at
            if not fails:
                return found(*values)
            if self._done and number == self._at:
                found(*values)
            raise RequestError("right", "/dev/y", "PARAM_SAVE", "no answer")

        return ask


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("done", [False, True])
def test_a_save_that_fails_anywhere_leaves_one_calibration_or_a_mixture_that_shows(done, lasting):
    """Whatever request fails: the flash of all boards is old, or their numbers differ."""
    robot = load("musashi_like")
    dynamics = make_dynamics(robot)
    layouts = read_layout("musashi_like", robot, port="a,b", dynamics=dynamics).boards
    number = (ParameterId.CALIBRATION, 0)
    mixtures, at, told = 0, 0, "first"
    while told:
        boards = [BenchBoard(dynamics, layout) for layout in layouts]
        for board in boards:
            board.memory[number] = 5
            board.saved = dict(board.memory)
        old = [dict(board.memory) for board in boards]
        requests = [0]
        flaky = Flaky(boards[1], requests, 10_000, done, lasting)
        begun, save = [False], boards[0].save_parameters

        def save_first(begun=begun, save=save):
            begun[0] = True
            save()

        boards[0].save_parameters = save_first
        calibration = Calibration(robot, layouts, [boards[0], flaky], [Recorder(), Recorder()])
        for each, layout in enumerate(layouts):
            lengths = [111_111] * len(layout.muscles)
            calibration._calibrate(each, CalibrateAction.LENGTH, range(len(lengths)), lengths)
        flaky._at = requests[0] + at
        told = ""
        try:
            calibration.save()
        except HardwareError as error:
            told = str(error)
        at += 1
        if told:
            mixed = boards[0].saved[number] != boards[1].saved[number]
            mixtures += mixed
            # the first board can be put back always, the second one if it answers again
            assert boards[0].memory == boards[0].saved == old[0]
            assert boards[1].saved == old[1] or (mixed and lasting)
            assert ("all boards have their old" in told) == (not calibration.changed)
            assert ("board right has" in told) == lasting
            # flash is not written before the user asks to save
            assert ("flash of board right has is not known" in told) == (lasting and begun[0])
    assert at > 10
    assert not calibration.changed  # the last one saved all
    assert boards[0].saved[number] == boards[1].saved[number] != 5
    assert [board.saved == board.memory for board in boards] == [True, True]
    assert (mixtures > 0) == lasting


def musashi():
    """A calibration of two boards whose lengths were set, the boards and what they had before."""
    robot = load("musashi_like")
    dynamics = make_dynamics(robot)
    layouts = read_layout("musashi_like", robot, port="a,b", dynamics=dynamics).boards
    boards = [BenchBoard(dynamics, layout) for layout in layouts]
    for board in boards:
        board.memory[ParameterId.CALIBRATION, 0] = 5
        board.saved = dict(board.memory)
    old = [dict(board.memory) for board in boards]
    made = Calibration(robot, layouts, boards, [Recorder(), Recorder()])
    for each, layout in enumerate(layouts):
        lengths = [111_111] * len(layout.muscles)
        made._calibrate(each, CalibrateAction.LENGTH, range(len(lengths)), lengths)
    return made, boards, old


def interrupting(at):
    """Return a tracer that raises `KeyboardInterrupt` before the at-th line of this module."""
    left = [at]

    def trace(frame, event, _argument):
        if not frame.f_code.co_filename.endswith("calibration/procedure.py"):
            return None if "bench_board" not in frame.f_code.co_filename else trace
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return trace

    return trace, left


def test_ctrl_c_anywhere_in_a_save_leaves_all_of_it_or_nothing_and_says_which():
    for at in range(1, 10_000):
        made, boards, old = musashi()
        trace, left = interrupting(at)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            made.save()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        if left[0] > 0:  # it came to its end before
            break
        if made.changed:  # it came before anything was done
            made.restore()
        new = {board.saved[ParameterId.CALIBRATION, 0] for board in boards} - {5}
        assert made.saved == (len(new) == 1)
        for board, values in zip(boards, old, strict=True):
            assert board.memory == board.saved
            assert (board.saved == values) != made.saved
        assert not made.changed
    assert at > 15


def test_a_save_that_is_ended_while_it_is_put_back_is_put_back_by_restore():
    made, boards, old = musashi()
    save, times = boards[1].save_parameters, []

    def ended():
        times.append(0)
        save()
        if len(times) < 3:
            raise KeyboardInterrupt

    boards[1].save_parameters = ended
    with pytest.raises(KeyboardInterrupt):
        made.save()
    assert made.changed
    made.restore()
    assert [board.saved for board in boards] == [board.memory for board in boards] == old
    assert not made.saved
    assert not made.changed


def test_ctrl_c_in_a_save_that_cannot_be_put_back_is_an_error_that_says_so():
    made, boards, _ = musashi()
    save = boards[0].save_parameters

    def ended():
        save()
        boards[0].set_parameter = boards[0].open = silent
        raise KeyboardInterrupt

    def silent(*_):
        raise RequestError("left", "/dev/x", "PARAM_SET", "no answer")

    boards[0].save_parameters = ended
    text = "not saved: interrupted; what flash of board left has is not known.* the others have"
    with pytest.raises(HardwareError, match=text):
        made.save()


@pytest.mark.parametrize("back", [True, False])
def test_one_board_that_restarts_after_its_save_is_put_back_or_told_truly(bench, back):
    """It answers in a new session only. There are no others, and it would be armed."""
    board, calibration = bench
    board.saved = dict(board.memory)
    old = dict(board.memory)
    calibration.set_lengths(calibration.measure(), board.q)
    save, opened, gone = board.save_parameters, board.open, [False]

    def alive(found):
        def ask(*values):
            if gone[0]:
                raise RequestError("arm", "/dev/x", "PARAM_GET", "no answer")
            return found(*values)

        return ask

    def saved():
        save()
        board.save_parameters = alive(save)
        gone[0] = True

    def reopened():
        if not back:
            raise RequestError("arm", "/dev/x", "HELLO", "no answer")
        gone[0] = False
        opened()

    board.save_parameters, board.open = saved, reopened
    board.get_parameter = alive(board.get_parameter)
    board.set_parameter = alive(board.set_parameter)
    with pytest.raises(HardwareError) as caught:
        calibration.save()
    told = str(caught.value)
    if back:
        assert board.saved == board.memory == old
        assert "all boards have their old zero points" in told
    else:
        assert "flash of board arm has is not known, its old zero points or the new ones" in told
        assert "calibrate again" in told
        assert "others" not in told
        assert "differ" not in told
    assert calibration.changed != back


def test_a_board_that_dropped_its_zero_points_is_not_saved_with_others(bench):
    """A session that began meanwhile, by another program on the port, has dropped them."""
    board, calibration = bench
    calibration.set_lengths(calibration.measure(), board.q)
    before, save = dict(calibration._old), board.save_parameters

    def dropped():
        board.memory |= {(parameter, i): value for (_, parameter, i), value in before.items()}
        save()

    board.save_parameters = dropped
    with pytest.raises(HardwareError, match="lost its zero points before they were saved"):
        calibration.save()
    assert {key[1:]: board.saved[key[1:]] for key in before} == {
        key[1:]: value for key, value in before.items()
    }


def moving(board, seconds=4.0):
    """Let somebody move the arm by hand."""
    home, begin = board.dynamics.tree.home, board.time
    size = np.array([0.15, 0.3, 0.3, 0.12])

    def motion(t):
        phase = 2 * np.pi * (t - begin) * np.array([0.25, 0.4, 0.55, 0.7])
        board.q = home + size * np.sin(phase)

    board.motion = motion
    return seconds


def test_check_passes_a_good_calibration(bench):
    board, calibration = bench
    calibration.set_lengths(calibration.measure(), board.q)
    calibration.zero_joints(calibration.measure(), board.q)
    checks, hints = check_motion(calibration, calibration.measure(moving(board)), board.q)
    assert not any(check.problem for check in checks)
    assert all(check.residual < 1e-4 for check in checks)
    assert all(abs(check.slope - 1.0) < 1e-2 for check in checks if np.isfinite(check.slope))
    assert sum(np.isfinite(check.slope) for check in checks) >= 9
    assert len(hints) <= 1


def test_check_finds_encoders_that_count_the_other_way_and_wrong_scales(bench):
    board, calibration = bench
    board.sign[3] = -1.0
    board.memory[ParameterId.ENCODER_SCALE, 4] = 347 * 2
    calibration.set_lengths(calibration.measure(), board.q)
    calibration.zero_joints(calibration.measure(), board.q)
    checks, _ = check_motion(calibration, calibration.measure(moving(board)), board.q)
    problems = {check.name: check.problem for check in checks if check.problem}
    assert set(problems) == {"motor3", "motor4"}
    assert "runs the other way: turn ENCODER_SIGN" in problems["motor3"]
    assert "changes 2.00 times as much" in problems["motor4"]


def test_check_blames_the_joint_where_all_its_muscles_are_upside_down(bench):
    board, calibration = bench
    board.joint_sign[3] = -1.0
    calibration.set_lengths(calibration.measure(), board.q)
    calibration.zero_joints(calibration.measure(), board.q)
    home, begin = board.q.copy(), board.time

    def motion(t):
        board.q = home + np.array([0.0, 0.0, 0.0, 0.17 * np.sin(2 * np.pi * (t - begin))])

    board.motion = motion
    checks, hints = check_motion(calibration, calibration.measure(2.0), home)
    assert any(check.slope < -0.5 for check in checks)
    assert any(hint.startswith("elbow: all") and "negative JOINT_SCALE" in hint for hint in hints)


def test_check_without_joint_sensors_finds_the_muscle_that_disagrees(arm):
    robot, dynamics, layout = arm
    nothing = np.zeros(0, dtype=np.intp)
    blind = replace(layout.boards[0], joints=(), position_rows=nothing, velocity_rows=nothing)
    board, recorder = BenchBoard(dynamics, blind), Recorder()
    board.on_sample = recorder
    board.sign[3] = -1.0
    calibration = Calibration(robot, [blind], [board], [recorder], wait=board.wait)
    calibration.set_lengths(calibration.measure(), board.q)
    assert calibration.zero_joints(calibration.measure(), board.q) == []
    home = board.q.copy()
    checks, hints = check_motion(calibration, calibration.measure(moving(board)), home)
    problems = [check.name for check in checks if check.problem]
    assert problems == ["motor3"]
    assert isinstance(hints, list)


def test_unmoved_muscles_say_nothing():
    dynamics = make_dynamics(load("planar_2r"))
    q = np.tile(dynamics.tree.home, (50, 1))
    lengths = dynamics.batch(q).muscle_lengths
    for check in check_with_joints(dynamics, q, lengths):
        assert not check.problem
        assert np.isnan(check.slope)
        assert check.as_dict()["slope"] is None


def test_stillness_tells_noise_from_drift():
    rng = np.random.default_rng(3)
    t = np.linspace(5.0, 6.0, 501)
    values = np.column_stack([0.3 * rng.standard_normal(501), 2.0 + 0.01 * t])
    found = RestStatistics.of(t, values)
    assert 0.27 < found.noise[0] < 0.33
    assert abs(found.drift[1] - 0.01) < 1e-9
    assert found.noise[1] < 1e-9
    assert abs(found.mean[1] - 2.055) < 1e-9


def test_report_as_yaml_and_json(bench, tmp_path):
    board, calibration = bench
    report = CalibrationReport("roboy_arm", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    report.add_board("arm", "/dev/x", board.ident)
    report.skipped["tension"] = "as asked"
    report.add_step("tension", calibration.zero_tensions(calibration.measure()))
    report.parameters = calibration.parameters()
    assert report.ok
    assert not report.skipped
    for name in ("a.yaml", "b.json"):
        report.write(tmp_path / "new" / name)
    found = yaml.safe_load((tmp_path / "new" / "a.yaml").read_text())
    assert found == json.loads((tmp_path / "new" / "b.json").read_text())
    assert found["boards"]["arm"]["uid"] == "0011223344556677"
    assert found["date"] == "2026-01-02T03:04:05+00:00"
    assert found["steps"]["tension"][0]["name"] == "motor0"
    assert len(found["parameters"]["arm"]["LOAD_ZERO"]) == 11
    with pytest.raises(CardsError, match="a name that ends on"):
        report.write(tmp_path / "report.txt")


def test_lengths_from_poses_that_nobody_knows(bench):
    """Ten poses anywhere within the limits: the true offsets of the encoders, to 0.3 mm."""
    board, calibration = bench
    tree, rng = board.dynamics.tree, np.random.default_rng(1)
    measured, poses = [], []
    for row in range(10):
        board.q = tree.home + 0.03 if row == 0 else tree.random(rng)
        poses.append(board.q.copy())
        measured.append(calibration.measure())
    found = calibration.lengths_from_poses(measured, tree.home)
    assert found, found
    np.testing.assert_allclose(found.q, poses, atol=2e-3)
    wanted = calibration.lengths_at(found.q[-1]) + found.residuals[-1]
    results = calibration.set_lengths_to(measured[-1], wanted)
    assert not any(result.problem for result in results)
    offsets = np.array([board.memory[ParameterId.LENGTH_OFFSET, i] for i in range(11)])
    assert np.abs(offsets - board.true_offset).max() < 300


def test_one_pose_alone_tells_no_lengths(bench):
    board, calibration = bench
    found = calibration.lengths_from_poses([calibration.measure()] * 3, board.dynamics.tree.home)
    assert not found
    assert len(found.undetermined) == 11


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_zero_that_shifts_by_more_than_50_newtons_is_not_believed(bench, sign):
    """Either way: a zero that was set under load shows a slack muscle far below zero."""
    board, calibration = bench
    board.true_load_zero[:] = 0
    board.tensions[2] = sign * 49.0
    assert calibration.tension_problems(calibration.measure()) == []
    board.tensions[2] = sign * 51.0
    measurement = calibration.measure()
    (problem,) = calibration.tension_problems(measurement)
    assert problem.startswith(f"motor2: {'+' if sign > 0 else '-'}51.0 N (expected: within 50 N")
    with pytest.raises(HardwareError, match="not calibrated: motor2"):
        calibration.zero_tensions(measurement)
    assert not calibration.changed
    assert all(board.memory[ParameterId.LOAD_ZERO, i] == 0 for i in range(11))


def test_restore_goes_back_to_the_beginning_after_several_calibrations(bench):
    """What counts is the value before the first one, not before the last one."""
    board, calibration = bench
    before = dict(board.memory)
    first = calibration.zero_tensions(calibration.measure())
    board.tensions[:] = 5.0  # 100 counts
    second = calibration.zero_tensions(calibration.measure())
    for a, b in zip(first, second, strict=True):
        assert abs(b.new - a.new - 100) <= 2
        assert a.old == b.old == 0
    for shift in (0.0, 0.05):
        calibration.set_lengths(calibration.measure(), board.q + shift)
        calibration.zero_joints(calibration.measure(), board.q + shift)
    calibration.restore()
    assert board.memory == before
    # after a save the beginning is what was saved
    kept = calibration.zero_tensions(calibration.measure())
    calibration.save()
    board.tensions[:] = 0.0
    calibration.zero_tensions(calibration.measure())
    board.tensions[:] = 2.0
    results = calibration.zero_tensions(calibration.measure())
    assert [result.old for result in results] == [result.new for result in kept]
    calibration.restore()
    assert [board.memory[ParameterId.LOAD_ZERO, i] for i in range(11)] == [
        result.new for result in kept
    ]
