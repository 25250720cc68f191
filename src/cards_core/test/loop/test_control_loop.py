"""A control loop must begin its reference with the first state and log every step."""

import math

import numpy as np
import pytest

from cards_core.control import ControlModel, make_controller
from cards_core.control.interface import Controller, ControlOutput
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.loop.control_loop import ControlLoop
from cards_core.muscles.command import CommandPart
from cards_core.robot.state import RobotState
from cards_core.stamps import seconds
from cards_core.trajectories import PointToPoint
from cards_core.trajectories.base import HOLDING_TOLERANCE, UNKNOWN_TOLERANCE

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


# A controller that is told what to say ----------------------------------------------------------


class Told(Controller):
    """Returns the next of given answers; knows its place by the states, or by muscles alone."""

    kind = "told"
    summary = "for tests"
    space = "joint"
    commands = ("force", "impedance", "effort")

    def __init__(self, model, answers=(), *, needs=(), needs_joints=True):
        super().__init__(model)
        self.answers, self.references, self.resets = list(answers), [], 0
        self.needs, self.needs_joints = needs, needs_joints
        self.reference_names = self.error_names = ("a", "b")
        self.output = ControlOutput.empty(4, 0, 2, 2)
        tensions = CommandPart("force", NAMES[:3], np.array([1.0, 2.0, 3.0]))
        lengths = CommandPart("impedance", NAMES[3:], np.zeros(1), np.array([0.5]))
        self.command = self.relaxed = (tensions, lengths)

    @classmethod
    def from_parameters(cls, model, parameters):
        return cls(model)

    def step(self, state):
        self.output.time = state.time
        self.output.actual[:] = [10.0, 20.0]
        return self.answers.pop(0) if self.answers else self.command

    def place(self, q, qd):
        return q + 1.0

    def set_reference(self, reference, start=0.0):
        self.references.append((reference, start))

    def reset(self):
        self.resets += 1


NAMES = tuple(muscle.name for muscle in load("planar_2r").muscles)


def at(time, q=START, **measured):
    return RobotState(time, np.array(q), np.zeros(2), **measured)


def logged(model, tmp_path, answers):
    """Step once for each answer; return the log."""
    controller = Told(model, answers)
    loop = ControlLoop(controller, log_path=tmp_path / "controller.npz")
    for k in range(len(answers)):
        loop.step(at(1e-3 * k))
        loop.record(0.0, 0)
    loop.close()
    loop.close()  # nothing is left to do
    with np.load(tmp_path / "controller.npz") as log:
        return {name: log[name].tolist() for name in log.files}


def test_a_muscle_that_is_not_named_keeps_what_it_was_told(model, tmp_path):
    """As in the gate of a host."""
    first, second, third, fourth = NAMES
    answers = [
        (CommandPart("force", (second,), np.array([20.0])),),
        (CommandPart("force", (third, first), np.array([30.0, 10.0])),),
        (CommandPart("impedance", (fourth,), np.zeros(1), np.array([0.75])),),
        (CommandPart("force", (second,), np.array([21.0])),),
        (CommandPart("impedance", (fourth,), np.zeros(1)),),  # of l0 nothing is said
    ]
    log = logged(model, tmp_path, answers)
    assert log["tensions"] == [
        [1.0, 20.0, 3.0],
        [10.0, 20.0, 30.0],
        [10.0, 20.0, 30.0],
        [10.0, 21.0, 30.0],
        [10.0, 21.0, 30.0],
    ]
    assert log["set_lengths"][:4] == [[0.5], [0.5], [0.75], [0.75]]
    assert np.isnan(log["set_lengths"][4]).all()
    assert log["efforts"] == [[]] * 5  # a robot without motors has an empty column


def test_what_is_no_number_is_not_logged_as_one(model, tmp_path):
    answers = [
        (CommandPart("force", NAMES[:3], np.array(["x", "y", "z"])),),
        (CommandPart("force", NAMES[:3], np.array([1.0, 2.0])),),
        (CommandPart("force", NAMES[1:2], np.array([5.0])),),
    ]
    tensions = np.array(logged(model, tmp_path, answers)["tensions"])
    assert np.isnan(tensions[:2]).all()
    assert tensions[2, 1] == 5.0


def test_an_answer_that_is_no_command_is_refused_with_the_name_of_its_controller(model):
    loop = ControlLoop(Told(model, [3.0]))
    with pytest.raises(CardsError, match="the answer of controller 'told'"):
        loop.step(at(0.0))


def test_columns_of_tensions_are_there_whatever_is_commanded(tmp_path):
    robot = load("planar_2r")
    controller = make_controller("impedance", ControlModel(robot, "numeric"))
    loop = ControlLoop(controller, log_path=tmp_path / "controller.npz")
    loop.step(at(0.0))
    loop.record(0.0, 0)
    loop.close()
    with np.load(tmp_path / "controller.npz") as log:
        assert log["tensions"].shape == (1, 4)
        assert log["set_lengths"].shape == (1, 4)
        assert "rest_lengths" not in log.files


# Where a reference begins ----------------------------------------------------------------------


def test_a_reference_waits_for_a_state_that_says_where_the_robot_is(model):
    controller = Told(model)
    reference = PointToPoint(START, [0.5, -0.5], 2.0)
    loop = ControlLoop(controller, reference)
    nowhere = at(1.0, [np.nan, 0.0])
    assert controller.resets == 0
    loop.step(nowhere)
    loop.step(at(math.nan))
    loop.step(at(math.inf))
    assert controller.resets == 0
    loop.step(at(3.0))
    assert controller.resets == 1
    assert controller.references[-1] == (reference, 3.0)
    loop.step(at(4.0))
    assert controller.resets == 1
    assert loop.steps == 5


def test_a_controller_that_needs_no_joints_says_itself_when_it_knows_where_it_is(model):
    controller = Told(model, needs_joints=False)
    reference = PointToPoint(START, [0.5, -0.5], 2.0)
    loop = ControlLoop(controller, reference, approach_speed=0.25)
    controller.reason = "no lengths yet"
    nowhere = [np.nan, np.nan]
    loop.step(at(1.0, nowhere))
    loop.step(at(2.0, nowhere))
    assert controller.resets == 2  # it is asked again
    assert controller.references[-1] == (reference, 2.0)
    controller.reason = ""
    loop.step(at(3.0, nowhere, muscle_lengths=np.ones(4)))
    # the way to the start begins where the controller says it is
    approach, start = controller.references[-1]
    assert start == 3.0
    assert approach(0.0)[0] == pytest.approx([10.0, 20.0])
    assert approach(approach.duration)[0] == pytest.approx([0.5, -0.5])
    loop.step(at(4.0, nowhere, muscle_lengths=np.ones(4)))
    assert controller.resets == 3


def test_the_place_of_the_joints_counts_where_joints_are_measured(model):
    controller = Told(model)
    loop = ControlLoop(controller, PointToPoint(START, [0.5, -0.5], 2.0), approach_speed=0.25)
    loop.step(at(0.0, [2.0, 3.0], muscle_lengths=np.ones(4)))
    approach, _ = controller.references[-1]
    assert approach(0.0)[0] == pytest.approx([3.0, 4.0])


def test_what_a_controller_needs_is_asked_for_with_the_first_state(model):
    loop = ControlLoop(Told(model, needs=("tensions",)))
    with pytest.raises(CardsError, match="controller told needs tensions"):
        loop.step(at(0.0))
    loop.step(at(0.0, tensions=np.zeros(4)))
    loop.step(at(1e-3))  # it is for the controller to find out later


# Periods ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "period"),
    [
        ((0.0,), None),
        ((1.0, 1.25, 1.75), 0.25),  # the first two count
        ((1.0, 1.0, 1.5), None),
        ((1.0, 0.5), None),
        ((1.0, math.nan), None),
        ((1.0, math.inf), None),
    ],
)
def test_the_period_is_found_out_from_the_first_two_states(model, times, period):
    loop = ControlLoop(Told(model))
    for time in times:
        loop.step(at(time))
    assert loop.controller.period == period
    # a loop that starts again looks again
    loop.start()
    for time in (5.0, 5.125):
        loop.step(at(time))
    assert loop.controller.period == (period or 0.125)


def test_a_period_that_gains_do_not_allow_is_not_taken_over(model):
    loop = ControlLoop(make_controller("ctc_joint", model, kp=2000.0, kd=90.0))
    for time in (0.0, 1.0, 2.0):  # states that are looked at by hand
        loop.step(at(time))
    assert loop.controller.period is None
    assert loop.steps == 3


# Tolerances ------------------------------------------------------------------------------------


def test_what_a_controller_leaves_on_purpose_is_no_error(model):
    controller = Told(model)
    controller.allowance = 0.25
    held = ControlLoop(controller).tolerance
    assert (held.length, held.angle) == (
        HOLDING_TOLERANCE.length + 0.25,
        HOLDING_TOLERANCE.angle + 0.25,
    )
    loop = ControlLoop(controller, PointToPoint(START, START + np.array([3.0, 4.0]), 2.0))
    assert loop.tolerance.angle == pytest.approx(0.05 * 5.0 + 0.25)
    loop.step(at(0.0))
    loop.follow(PointToPoint(START, START + 1.0, 1.0), 0.5)
    assert loop.tolerance is UNKNOWN_TOLERANCE
    loop.step(at(0.75))
    loop.record(0.0, 0)
    assert loop.tally.facts().remaining == 0.75  # until 1.5 s
    loop.start()
    loop.step(at(2.0))
    assert loop.tolerance.angle == pytest.approx(0.5)  # its own again


def test_references_without_an_end_are_never_over(model):
    class Endless(PointToPoint):
        def __init__(self):
            super().__init__(START, START + 1.0, 1.0)
            self.duration = math.inf

    controller = Told(model)
    loop = ControlLoop(controller, Endless(), repeat=True)
    loop.step(at(0.0))
    loop.step(at(1e9))
    assert len(controller.references) == 3  # at construction, and as the reference begins twice
    loop.record(0.0, 0)
    assert loop.tally.facts().remaining == 0.0
    assert np.isnan(loop.end_from(at(7.0)))


def test_the_end_of_a_repeated_reference_counts_exactly(model):
    controller = Told(model)
    reference = PointToPoint(START, [0.5, -0.5], 2.0)
    loop = ControlLoop(controller, reference, repeat=True)
    loop.step(at(1.0))
    begun = len(controller.references)
    loop.step(at(math.nextafter(3.0, 0.0)))
    assert len(controller.references) == begun
    loop.step(at(3.0))
    assert controller.references[begun:] == [(reference, 3.0)]
    loop.step(at(4.5))
    assert len(controller.references) == begun + 1
    loop.record(0.0, 0)
    assert loop.tally.facts().remaining == 0.5


def test_asking_how_long_it_takes_leaves_the_beginning_to_come(model):
    controller = Told(model)
    reference = PointToPoint(START, [0.5, -0.5], 2.0)
    loop = ControlLoop(controller, reference)
    loop.step(at(0.0))
    state = at(5.0)
    assert loop.end_from(state) == 2.0
    assert state.time == 5.0
    loop.step(at(7.0))
    assert controller.references[-1] == (reference, 7.0)


def test_a_loop_is_of_the_robot_of_its_model_unless_told_otherwise(model):
    other = load("planar_xy")
    assert ControlLoop(Told(model)).robot is model.robot
    assert ControlLoop(Told(model), robot=other).robot is other
    loop = ControlLoop(Told(model))
    assert (loop.approach_speed, loop.repeat, loop.log, loop.steps) == (0.0, False, None, 0)
    loop.close()
