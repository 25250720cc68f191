"""A control loop must begin its reference with the first state and log every step."""

import numpy as np
import pytest

from cards_core.control import ControlModel, make_controller
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.loop.control_loop import ControlLoop
from cards_core.robot.state import RobotState
from cards_core.stamps import seconds
from cards_core.trajectories import PointToPoint

STEP = 1_000_000  # [ns]
START = np.array([-0.5, 0.5])


@pytest.fixture(scope="module")
def model():
    return ControlModel(load("planar_2r"), "numeric")


def make_loop(model, reference, **options):
    return ControlLoop(make_controller("ctc_joint", model), reference, **options)


def step(loop, stamp, q, qd):
    """Step a loop and return how its controller came to the command."""
    loop.step(RobotState(seconds(stamp), q, qd))
    return loop.controller.output


def test_the_reference_begins_with_the_first_step_and_anew_after_start(model):
    reference = PointToPoint(START, [0.5, -0.5], 2.0)
    loop = make_loop(model, reference)
    for offset in (7 * STEP, 40 * STEP):
        for k in (0, 1, 500):
            out = step(loop, offset + k * STEP, START, np.zeros(2))
            wanted = reference(seconds(offset + k * STEP) - seconds(offset))
            assert out.desired.tobytes() == wanted[0].tobytes()
            assert out.desired_dot.tobytes() == wanted[1].tobytes()
        loop.start()
        assert loop.steps == 0


def test_without_a_reference_the_first_place_is_held(model):
    loop = make_loop(model, None)
    step(loop, 0, START, np.zeros(2))
    assert np.array_equal(step(loop, STEP, START + 0.1, np.zeros(2)).desired, START)
    loop.start()
    assert np.array_equal(step(loop, 2 * STEP, START + 0.1, np.zeros(2)).desired, START + 0.1)


@pytest.mark.parametrize("back", [0.0, 1.5])
def test_a_reference_that_repeats_begins_anew_at_its_end(model, back):
    """It goes back from its end first, if it has a speed for that, and does so again and again."""
    reference = PointToPoint(START, [0.5, -0.5], 2.0)
    speed = 15 / 8 * np.sqrt(2.0) / back if back else 0.0
    loop = make_loop(model, reference, approach_speed=speed, repeat=True)
    at = START
    for k in range(1200):
        at = step(loop, 10 * k * STEP, at, np.zeros(2)).desired.copy()
        time = 10 * k % (2000 + 1000 * back) / 1000
        if k > 200:  # the way back comes before the reference
            time = (10 * k - 2000) % (2000 + 1000 * back) / 1000 - back
        if time > 0.0:
            assert np.allclose(at, reference(time)[0], atol=1e-8)
        else:
            assert np.all(np.abs(at) <= 0.5 + 1e-9)
    # without it the end is held
    held = make_loop(model, reference, approach_speed=speed)
    for k in (0, 250, 300):
        at = step(held, 10 * k * STEP, START, np.zeros(2)).desired
    assert np.array_equal(at, [0.5, -0.5])


def test_a_repeated_reference_is_continuous(model):
    reference = PointToPoint(START, [0.5, -0.5], 1.0)
    loop = make_loop(model, reference, approach_speed=0.5, repeat=True)
    at = START
    for k in range(20_000):
        out = step(loop, k * STEP, at, np.zeros(2))
        assert np.abs(out.desired - at).max() < 1.01e-3 * 15 / 8  # 15/8 rad/s is the largest
        at = out.desired.copy()
    assert loop.steps == 20_000


def test_a_live_reference_is_not_repeated(model):
    loop = make_loop(model, PointToPoint(START, [0.5, -0.5], 1.0), repeat=True)
    step(loop, 0, START, np.zeros(2))
    loop.follow(PointToPoint(START, [0.1, 0.2], 1.0), 0.0)
    for k in (1, 1000, 1500, 2500):
        at = step(loop, k * STEP, START, np.zeros(2)).desired
    assert np.allclose(at, [0.1, 0.2], atol=1e-12)


def test_the_way_to_the_start_of_the_reference(model):
    reference = PointToPoint(START, [0.5, -0.5], 2.0)
    there = START + np.array([0.3, -0.4])  # 0.5 away
    loop = make_loop(model, reference, approach_speed=0.25)
    length = 15 / 8 * 0.5 / 0.25
    assert np.allclose(step(loop, 0, there, np.zeros(2)).desired, there, atol=1e-12)
    previous, fastest = there, 0.0
    for k in range(1, round(length * 100)):
        out = step(loop, 10 * k * STEP, there, np.zeros(2))
        fastest = max(fastest, float(np.linalg.norm(out.desired_dot)))
        assert np.linalg.norm(out.desired - previous) < 0.01
        previous = out.desired.copy()
    assert 0.24 < fastest < 0.25 + 1e-9
    end = round(length * 1e9)
    assert np.allclose(step(loop, end, there, np.zeros(2)).desired, START, atol=1e-9)
    later = step(loop, end + 10**9, there, np.zeros(2)).desired
    assert np.allclose(later, reference(1.0)[0], atol=1e-9)


def test_the_length_of_a_run_is_known_before_a_host_has_measured_muscles():
    robot = load("musashi_like")
    controller = make_controller("mrc", ControlModel(robot, "numeric"))
    home = np.array(robot.tree.home)
    loop = ControlLoop(controller, PointToPoint(home, home + 0.1, 2.0), approach_speed=0.25)
    assert loop.end_from(RobotState(0.0, home, np.zeros(home.size))) == pytest.approx(2.0)


def test_follow_replaces_the_reference_at_a_stamp(model):
    loop = make_loop(model, None)
    step(loop, 0, START, np.zeros(2))
    motion = PointToPoint(START, [0.5, -0.5], 2.0)
    loop.follow(motion, seconds(3 * STEP))
    out = step(loop, 903 * STEP, START, np.zeros(2))
    assert np.allclose(out.desired, motion(0.9)[0], atol=1e-12)


def test_every_step_is_logged(model, tmp_path):
    path = tmp_path / "controller.npz"
    loop = make_loop(model, PointToPoint(START, [0.5, -0.5], 2.0), log_path=path)
    rows = []
    for k in range(10):
        out = step(loop, k * STEP, START, np.zeros(2))
        rows.append((out.desired.copy(), out.tensions.copy()))
        loop.record(100.0 + k, k // 2)
    loop.close()
    with np.load(path) as log:
        assert np.array_equal(log["time"], [seconds(k * STEP) for k in range(10)])
        assert np.array_equal(log["desired"], [row[0] for row in rows])
        assert np.array_equal(log["tensions"], [row[1] for row in rows])
        assert np.array_equal(log["error"], log["desired"] - log["actual"])
        assert log["loop_us"].tolist() == [100.0 + k for k in range(10)]
        assert log["missed_deadlines"].tolist() == [k // 2 for k in range(10)]
        assert set(log["status"]) == {0.0}
        assert log["reference_names"].tolist() == ["joint_1", "joint_2"]


def test_what_a_verdict_needs_is_logged(model, tmp_path):
    reference = PointToPoint(START, START + np.array([3.0, 4.0]), 2.0)
    there = START + np.array([0.3, -0.4])  # 0.5 away
    loop = make_loop(model, reference, approach_speed=0.25, log_path=tmp_path / "controller.npz")
    whole = 15 / 8 * 0.5 / 0.25 + 2.0
    assert loop.end_from(RobotState(0.0, there, np.zeros(2))) == pytest.approx(whole)
    for k in (7, 8):
        step(loop, k * STEP, there, np.zeros(2))
        loop.record(1.0, 0)
    assert loop.tally.facts().remaining == pytest.approx(whole - 1e-3)
    loop.start(keep_log=True)
    assert loop.tally.facts().steps == 2
    loop.start()
    assert loop.tally.facts().steps == 0
    loop.close()
    with np.load(tmp_path / "controller.before_reset_1.npz") as log:
        # 5 % of the path, the approach is not counted
        assert log["tolerance_angle"] == pytest.approx([0.25, 0.25])
        assert log["remaining"] == pytest.approx([whole, whole - 1e-3])
    with np.load(tmp_path / "controller.npz") as log:
        assert log["time"].size == 0


def test_a_reference_over_a_topic_is_not_judged_and_a_held_place_is(model):
    loop = make_loop(model, None)
    assert np.isnan(loop.end_from(RobotState(0.0, START, np.zeros(2))))
    step(loop, 0, START, np.zeros(2))
    loop.record(1.0, 0)
    assert loop.tolerance.angle == 0.02
    assert len(loop.tally.facts().tracking) == 1
    loop.tally.reset()
    loop.follow(PointToPoint(START, START + 1.0, 1.0), 0.0)
    step(loop, STEP, START, np.zeros(2))
    loop.record(1.0, 0)
    assert loop.tally.facts().tracking == ()


def test_what_is_no_state_of_the_robot_is_refused_before_its_controller_sees_it(model):
    loop = make_loop(model, None)
    for q, qd, message in (
        (np.zeros(3), np.zeros(2), r"q of the state has shape \(3,\) \(expected: \(2,\)"),
        (np.zeros(2), np.zeros(1), r"qd of the state has shape \(1,\) \(expected: \(2,\)"),
        ([0.0, 0.0], np.zeros(2), "q of the state"),
    ):
        with pytest.raises(CardsError, match=message):
            loop.step(RobotState(0.0, q, qd))
    with pytest.raises(CardsError, match="the state"):
        loop.step(None)
    assert loop.steps == 0
