"""What is foreseen of a reference, against linear programs and the geometry of the arm."""

import re
from functools import partial

import numpy as np
import pytest
from scipy.optimize import least_squares, linprog

from cards_core.control import ControlModel, make_controller
from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.preview import LOOK_STEP, SLOWER, _ideal, preview
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
