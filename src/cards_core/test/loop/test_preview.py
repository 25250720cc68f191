"""What is foreseen of a reference, against linear programs and the geometry of the arm."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import least_squares, linprog

from cards_core.control import ControlModel, ControlStatus, make_controller
from cards_core.control.interface import HoldPoint
from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.loop import preview as preview_module
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.preview import LOOK_STEP, SLOWER, _Cut, _ideal, _Slower, preview
from cards_core.robot.state import RobotState
from cards_core.trajectories import PointToPoint
from cards_core.trajectories.library import read_reference

PLANAR = load("planar_2r")
DOWN = np.array([-0.5, 0.5])
UP = np.array([0.5, -0.5])


@pytest.fixture(scope="module")
def model():
    return ControlModel(PLANAR, "numeric")


def start(q=DOWN):
    return RobotState(0.0, np.array(q, dtype=float), np.zeros(len(q)))


def joint_loop(model, reference, **options):
    return ControlLoop(make_controller("ctc_joint", model, **options), reference)


def feasible(dynamics, reference, time, factor=1.0):
    """Whether some tensions within their limits do what a slower reference asks, by a LP."""
    q, qd, qdd = reference(time)
    state = dynamics.update(q, qd / factor)
    torque = state.mass_matrix @ qdd / factor**2 + state.coriolis + state.gravity
    limits = [(muscle.tension_min, muscle.tension_max) for muscle in PLANAR.muscles]
    found = linprog(
        np.zeros(len(limits)), A_eq=-state.muscle_jacobian.T, b_eq=torque, bounds=limits
    )
    return found.status == 0


def test_what_can_be_done_is_not_talked_about(model):
    assert preview(joint_loop(model, PointToPoint(DOWN, UP, 4.0)), start()) == ()
    assert preview(joint_loop(model, None), start()) == ()


def test_limits_of_joints_are_told_with_time_and_range(model):
    goal = np.array([3.5, -0.5])
    reference = PointToPoint(DOWN, goal, 2.0)
    told = preview(joint_loop(model, reference), start())
    upper = PLANAR.tree.upper[0]
    times = np.linspace(0.0, 2.0, 20_001)
    crossing = times[np.argmax(reference.sample(times)[0][:, 0] > upper)]
    (text,) = [one for one in told if "joint_1" in one]
    assert f"beyond the upper limit {upper:.6g} (feasible: -3.142 to 3.142)" in text
    time = float(re.search(r"at t = ([\d.]+) s", text)[1])
    assert 0.0 <= time - crossing <= LOOK_STEP / 10 + 1e-4
    # a run that is over before is not concerned
    before = preview(joint_loop(model, reference), start(), duration=crossing - 0.01)
    assert not any("joint_1" in one for one in before)


def test_infeasible_states_are_those_without_a_solution_of_the_linear_program(model):
    reference = PointToPoint(DOWN, UP, 0.1)
    (text,) = preview(joint_loop(model, reference), start())
    dynamics = make_dynamics(PLANAR, "numeric")
    times = np.linspace(0.0, 0.1, 11)
    bad = [time for time in times if not feasible(dynamics, reference, time)]
    assert bad
    assert text.startswith(
        "reference: no tensions within their limits do what is asked at "
        f"t = {bad[0]:.3g} s, {len(bad)} of 11 states"
    )
    factor = next(one for one in SLOWER if all(feasible(dynamics, reference, t, one) for t in bad))
    assert text.endswith(f"(feasible: {factor:g} times slower)")


def test_the_least_factor_that_helps_is_told(model):
    """Of one motion at several speeds: those hardly too fast are to be a tenth slower."""
    dynamics = make_dynamics(PLANAR, "numeric")
    told = set()
    for duration in np.geomspace(0.05, 1.0, 40):
        reference = PointToPoint(DOWN, UP, duration)
        found = preview(joint_loop(model, reference), start())
        told |= {text.rsplit("feasible: ", 1)[1] for text in found if "feasible: " in text}
    assert any(not feasible(dynamics, PointToPoint(DOWN, UP, 0.05), t) for t in (0.01, 0.04))
    assert {"1.1 times slower)", "1.25 times slower)", "2 times slower)"} <= told


def test_a_pose_that_cannot_be_held_is_not_a_matter_of_speed(model):
    lean = PointToPoint(DOWN, [1.6, 1.0], 20.0)
    (text,) = preview(joint_loop(model, lean), start())
    dynamics = make_dynamics(PLANAR, "numeric")
    assert not feasible(dynamics, lean, 20.0)
    assert text.endswith("(feasible: not even standing still there)")


def test_weak_muscles_of_the_controller_count(model):
    reference = PointToPoint(DOWN, UP, 4.0)
    (text,) = preview(joint_loop(model, reference, tension_max=10.5), start())
    assert "no tensions within their limits" in text


def test_what_is_out_of_reach_is_told_with_the_nearest_place():
    robot = load("roboy_arm")
    model = ControlModel(robot, "numeric")
    dynamics = make_dynamics(robot, "numeric")
    home = robot.tree.home
    here = dynamics.operational(home, 0.0 * home, robot.operational_frame).position.copy()
    near = PointToPoint(here, here + np.array([0.0, 0.0, 0.03]), 1.0)
    make = partial(make_controller, "ctc_operational", model, kp=2000.0, kd=90.0)
    assert preview(ControlLoop(make(), near), start(home)) == ()
    far = PointToPoint(here, here + np.array([3.0, 0.0, 0.0]), 3.0)
    told = preview(ControlLoop(make(), far), start(home))
    (text,) = [one for one in told if "from where the robot comes to" in one]
    numbers = [float(x) for x in re.findall(r"-?\d+\.\d{3}", text)]
    goal, reached = np.array(numbers[:3]), np.array(numbers[3:])
    assert np.allclose(goal, far(3.0)[0], atol=0.1)
    # some pose within the limits of the joints is there
    tree = robot.tree

    def away(q):
        frame = robot.operational_frame
        return dynamics.operational(q, 0.0 * q, frame).position - reached

    rng = np.random.default_rng(0)
    lower, upper = np.maximum(tree.lower, -np.pi), np.minimum(tree.upper, np.pi)
    tries = [
        least_squares(away, rng.uniform(lower, upper), bounds=(lower, upper)) for _ in range(20)
    ]
    assert min(np.linalg.norm(one.fun) for one in tries) < 2e-3
    distance = float(re.search(r"is ([\d.e+]+) mm", text)[1])
    assert np.linalg.norm(goal - reached) == pytest.approx(1e-3 * distance, rel=0.01)


def test_nothing_of_it_is_left(model):
    reference = PointToPoint(DOWN, UP, 4.0)
    loop, fresh = joint_loop(model, reference), joint_loop(model, reference)
    preview(loop, start())
    assert loop.steps == 0
    for k in range(3):
        state = RobotState(0.01 * k, DOWN, np.zeros(2))
        once = loop.step(state)[0].values.tobytes()
        assert once == fresh.step(state)[0].values.tobytes()


def test_the_approach_is_part_of_it():
    """The arm is elsewhere when the run begins, and the times are those of the run."""
    model = ControlModel(PLANAR, "numeric")
    reference = PointToPoint(DOWN, [3.5, -0.5], 2.0)
    controller = make_controller("ctc_joint", model)
    loop = ControlLoop(controller, reference, approach_speed=0.25)
    at = start(DOWN + np.array([0.3, -0.4]))
    approach = 15 / 8 * 0.5 / 0.25
    late = next(one for one in preview(loop, at) if "joint_1" in one)
    plain = next(one for one in preview(joint_loop(model, reference), start()) if "joint_1" in one)
    times = [float(re.search(r"at t = ([\d.]+) s", text)[1]) for text in (late, plain)]
    assert times[0] - times[1] == pytest.approx(approach, abs=LOOK_STEP / 5)


def test_shipped_references_can_be_done():
    robot = load("roboy_arm")
    model = ControlModel(robot, "numeric")
    flower = read_reference("flower", "", robot, robot.tree, space="operational")
    controller = make_controller("ctc_operational", model, kp=2000.0, kd=90.0)
    loop = ControlLoop(controller, flower, approach_speed=0.25)
    assert preview(loop, start(robot.tree.home), duration=8.0) == ()


def test_the_ideal_robot_stops_at_the_limits_of_its_joints(model):
    upper = model.dynamics.tree.upper
    begin = np.array([upper[0] - 0.2, 0.0])
    loop = joint_loop(model, None)
    away = PointToPoint(begin, [upper[0] + 0.5, 0.0], 1.0)
    places = np.array([(*s.q, *s.qd) for s in _ideal(loop, away, start(begin), 1.5)])
    assert places[:, 0].max() == upper[0]
    assert places[-1, 0] == upper[0]
    assert abs(places[-1, 2]) == 0.0


# Parts -----------------------------------------------------------------------------------------


def test_a_slower_reference_goes_the_same_way_with_less_speed_and_acceleration():
    reference = PointToPoint(DOWN, UP, 2.0)
    slower = _Slower(reference, 4.0)
    assert (slower.size, slower.duration) == (2, 8.0)
    step = 1e-5
    for time in (0.7, 3.0, 6.5):
        y, yd, ydd = slower(time)
        assert y == pytest.approx(reference(time / 4.0)[0])
        before, after = slower(time - step), slower(time + step)
        assert (after[0] - before[0]) / (2 * step) == pytest.approx(yd, abs=1e-7)
        assert (after[1] - before[1]) / (2 * step) == pytest.approx(ydd, abs=1e-7)


def test_a_reference_that_is_cut_ends_earlier_and_keeps_its_breaks():
    reference = PointToPoint(DOWN, UP, 2.0)
    cut = _Cut(reference, 0.5)
    assert (cut.size, cut.duration) == (2, 0.5)
    assert cut.breaks[-1] == 0.5
    assert all(time <= 0.5 for time in cut.breaks)
    assert all(np.array_equal(a, b) for a, b in zip(cut(0.3), reference(0.3), strict=True))


def test_speeds_above_those_of_the_joints_are_told_with_how_much_too_fast():
    """Of the whole reference: where it is too fast at first it is so by next to nothing."""
    *others, joint = PLANAR.joints

    def told(velocity, duration=0.0):
        axis = replace(joint.axes[0], velocity=velocity)
        slow = replace(PLANAR, joints=(*others, replace(joint, axes=(axis,))))
        loop = joint_loop(ControlModel(slow, "numeric"), PointToPoint(DOWN, UP, 2.0))
        return preview(loop, start(), duration)

    # the fastest is 15/8 of the distance over the time, at half of it
    fastest = 15.0 / 8.0 * 1.0 / 2.0
    (text,) = told(0.75)
    assert text.startswith("reference: velocity of 'joint_2' is -0.75")
    assert text.endswith(f"(feasible: up to 0.75 per second, {fastest / 0.75:g} times slower)")
    (text,) = told(0.5)
    assert text.endswith("up to 0.5 per second, 1.88 times slower)")  # 1.875, rounded up
    assert told(1.001 * fastest) == ()
    # a run that is over at a quarter of it: 30 u^2 (1 - u)^2 of the distance over the time
    (text,) = told(0.25, duration=0.5)
    partly = 30.0 * 0.25**2 * 0.75**2 / 2.0
    assert text.endswith(f"{np.ceil(100.0 * partly / 0.25) / 100.0:g} times slower)")


def test_what_cannot_be_foreseen_is_not_talked_about():
    """Places that are not numbers, coordinates of other kinds, controllers that need more."""
    model = ControlModel(PLANAR, "numeric")
    far = PointToPoint(DOWN, [10.0, 0.0], 1.0)
    loop = joint_loop(model, far)
    assert preview(loop, start()) != ()
    assert preview(loop, start([np.nan, 0.5])) == ()
    loop.controller.needs = ("tensions",)
    (text,) = preview(loop, start())  # limits of joints are known all the same
    assert "beyond the upper limit" in text
    robot = load("tetraspine")
    assert robot.tree.nq != robot.tree.nv
    free = make_controller("ctc_joint", ControlModel(robot, "numeric"))
    home = np.array(robot.tree.home)
    reference = HoldPoint(home, robot.tree.nv)
    begin = RobotState(0.0, home, np.zeros(robot.tree.nv))
    assert preview(ControlLoop(free, reference), begin) == ()


@pytest.mark.parametrize(
    ("statuses", "first"),
    [
        ("..xx.xx..", None),
        ("..xxx....", 4),
        ("xxx", 2),
        (".fff.", 3),
        (".xfx.xxxx", 3),
        (".jjjj.iiii", None),  # joints that are at their limits, and states that are none
    ],
)
def test_three_steps_in_a_row_without_tensions_count(monkeypatch, statuses, first):
    model = ControlModel(load("planar_2r"), "numeric")
    controller = make_controller("ctc_operational", model, axes="xz")
    kinds = {
        ".": ControlStatus.OK,
        "j": ControlStatus.JOINT_LIMIT,
        "x": ControlStatus.INFEASIBLE,
        "f": ControlStatus.FALLBACK,
        "i": ControlStatus.INVALID_STATE,
    }

    def ideal(*_):
        for number, letter in enumerate(statuses):
            controller.output.status = kinds[letter]
            yield start_at(0.25 * number)

    monkeypatch.setattr(preview_module, "_ideal", ideal)
    here = controller.place(DOWN, np.zeros(2))
    loop = ControlLoop(controller, PointToPoint(here, here, 4.0))
    told = [text for text in preview(loop, start()) if "no tensions" in text]
    assert len(told) == (first is not None)
    if told:
        assert f"at t = {0.25 * first:.3g} s, for the first time" in told[0]


def start_at(time):
    return preview_module._State(time, DOWN, np.zeros(2))


def test_the_ideal_robot_stays_where_its_controller_holds_it():
    model = ControlModel(PLANAR, "numeric")
    loop = joint_loop(model, None, kp=0.0, kd=0.0)
    controller = loop.controller
    held = PointToPoint(DOWN, DOWN, 1.0)
    rows = [(s.time, *s.q, *s.qd) for s in _ideal(loop, held, start(), 0.1)]
    assert [row[0] for row in rows] == pytest.approx(0.002 * np.arange(51))
    assert controller.output.time == pytest.approx(0.1)
    # exact torques hold a robot at rest where it is, without gains too
    assert np.abs(np.array(rows)[:, 1:3] - DOWN).max() < 1e-9
