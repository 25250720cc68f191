"""Operational-space control: optimality, the published flower, limits, posture, orientation."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from control_robots import (
    Motion,
    Plant,
    Run,
    fixed_point,
    hanging_platform,
    model_of,
    planar_2r,
    roboy_arm,
    step,
)
from scipy.optimize import least_squares, lsq_linear

from cards_core.control import ControlModel, ControlStatus, CtcOperational, ctc_operational
from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError, UnknownNameError
from cards_core.formats import load
from cards_core.robot.elements import JointAxis
from cards_core.robot.perturb import perturbed
from cards_core.spatial import quaternion_matrix, rotation_exp, rotation_log
from cards_core.trajectories import Flower, PointToPoint, with_approach

CENTRE = np.array([0.45, -0.45, 0.45])
ROBOY = {"kp": 2000.0, "kd": 90.0}


def flower() -> Flower:
    return Flower(CENTRE, 0.15, 30.0, petals=5, axes=([1, 0, 0], [0, 0, 1]))


def inverse_kinematics(plant: Plant, position, guess):
    """Joint coordinates of a hand position next to a guess."""

    def residual(q):
        at = plant.dynamics.operational(q, np.zeros(4)).position
        return np.concatenate([at - position, 1e-6 * (q - guess)])

    return least_squares(residual, guess, xtol=1e-15, ftol=1e-15, gtol=1e-15).x


@pytest.fixture(scope="module")
def roboy():
    return make_dynamics(roboy_arm())


@pytest.fixture(scope="module")
def petal_start():
    return inverse_kinematics(Plant(roboy_arm(), roboy_home()), CENTRE, [1.45, 0.0, 0.0, -1.4])


def roboy_home():
    return make_dynamics(roboy_arm()).tree.home


# One step ------------------------------------------------------------------------------------


def test_motion_and_task_equations_hold(roboy):
    rng = np.random.default_rng(1)
    item = CtcOperational(model_of(roboy), kp=50.0)
    ok = 0
    for _ in range(50):
        q = np.array([1.45, 0.0, 0.0, -1.0]) + rng.uniform(-0.15, 0.15, 4)
        qd = 0.3 * rng.normal(size=4)
        y, yd, ydd = CENTRE + 0.1 * rng.normal(size=3), rng.normal(size=3), rng.normal(size=3)
        item.set_reference(Motion(3, lambda t, s=(y, yd, ydd): s))
        out = step(item, 0.0, q, qd)
        place = roboy.operational(q, qd)
        jacobian, bias, at = place.jacobian[:3], place.bias[:3], place.position
        wanted = ydd + item.gains.kd * (yd - jacobian @ qd) + item.gains.kp * (y - at)
        np.testing.assert_allclose(out.acceleration, wanted, rtol=1e-9)
        np.testing.assert_allclose(out.error, y - at, atol=1e-12)
        state = roboy.update(q, qd)
        torque = -state.muscle_jacobian.T @ out.tensions - state.coriolis - state.gravity
        qdd = np.linalg.solve(state.mass_matrix, torque)
        missing = jacobian @ qdd + bias - wanted
        # what the output reports is what the real accelerations lack
        assert np.linalg.norm(missing) == pytest.approx(out.residual, rel=1e-4, abs=1e-6)
        if out.status is ControlStatus.OK:
            ok += 1
            assert np.linalg.norm(missing) < 1e-2
    assert ok > 10


@pytest.mark.parametrize("solver", ["daqp", "osqp"])
def test_optimum_agrees_with_the_eliminated_least_squares_problem(roboy, solver):
    """Accelerations eliminated by the equation of motion, solved by SciPy; no limit is near.

    SciPy has no equations: theirs is a weight that leaves 1e-10 of the multipliers.
    """
    stiff = 1e5
    weights = {"acceleration_weight": [1.0, 2.0, 0.5, 1.0], "force_weight": 1e-3}
    item = CtcOperational(
        model_of(roboy), solver=solver, posture=[1.4, 0.1, -0.1, -0.9], **weights
    )
    rng = np.random.default_rng(2)
    for _ in range(20):
        q = np.array([1.45, 0.0, 0.0, -1.0]) + rng.uniform(-0.1, 0.1, 4)
        qd = 0.1 * rng.normal(size=4)
        command = rng.normal(size=3)
        place = roboy.operational(q, qd)
        y, yd = place.position.copy(), place.jacobian[:3] @ qd
        jacobian, bias = place.jacobian[:3].copy(), place.bias[:3].copy()
        item.set_reference(Motion(3, lambda t, s=(y, yd, command): s))
        out = step(item, 0.0, q, qd)
        state = roboy.update(q, qd)
        inverse = np.linalg.inv(state.mass_matrix)
        push, drift = (
            -inverse @ state.muscle_jacobian.T,
            -inverse @ (state.coriolis + state.gravity),
        )
        pull = 100.0 * (item.posture - q) - 20.0 * qd
        root = np.sqrt(weights["acceleration_weight"])
        factor = np.vstack(
            [root[:, None] * push, np.sqrt(1e-3) * np.eye(11), stiff * jacobian @ push]
        )
        target = np.concatenate(
            [
                root * (pull - drift),
                np.zeros(11),
                stiff * (command - bias - jacobian @ drift),
            ]
        )
        best = lsq_linear(factor, target, bounds=(10.0, 5000.0), method="bvls", tol=1e-15)
        np.testing.assert_allclose(
            out.tensions, best.x, rtol=1e-6, atol={"daqp": 1e-4, "osqp": 1e-2}[solver]
        )


def test_zero_posture_gains_give_the_plain_problem(roboy):
    """Where to does not matter if nothing pulls."""
    q, qd = np.array([1.45, 0.0, 0.0, -1.0]), np.array([0.1, 0.0, -0.1, 0.2])
    tensions = []
    for posture in ("mid", "home", [1.3, 0.4, 0.2, -0.3]):
        item = CtcOperational(model_of(roboy), posture=posture, posture_kp=0.0)
        tensions.append(step(item, 0.0, q, qd).tensions.copy())
    np.testing.assert_allclose(tensions[0], tensions[1], rtol=1e-9)
    np.testing.assert_allclose(tensions[0], tensions[2], rtol=1e-9)
    pulled = step(CtcOperational(model_of(roboy), posture="home"), 0.0, q, qd).tensions
    assert np.abs(pulled - tensions[0]).max() > 1.0


# The published run ---------------------------------------------------------------------------


def test_roboy_arm_draws_the_flower(petal_start):
    """Plane y = -0.45, centre (0.45, -0.45, 0.45), amplitude 0.15, 30 s; here at 500 Hz."""
    robot = roboy_arm()
    plant = Plant(robot, petal_start)
    item = CtcOperational(ControlModel(robot), **ROBOY)
    item.set_reference(flower())
    run = Run(item, plant, 30.0, h=2e-3)
    assert run.rms < 2e-5
    assert run.distance.max() < 1e-4
    assert run.count(ControlStatus.OK) == run.status.size
    assert np.all(run.q >= plant.tree.lower)
    assert np.all(run.q <= plant.tree.upper)
    assert run.tensions.min() >= 10.0
    assert run.tensions.max() < 1000.0
    # the null-space motion is settled, not just bounded
    assert np.abs(run.qd).max() < 1.0


@pytest.mark.parametrize("solver", ["daqp", "osqp"])
def test_roboy_arm_approaches_from_home_at_its_limit(solver):
    """Joint 1 starts on its lower limit."""
    robot = roboy_arm()
    plant = Plant(robot, roboy_home())
    item = CtcOperational(ControlModel(robot), solver=solver, **ROBOY)
    hand = plant.dynamics.operational(plant.q, plant.qd).position.copy()
    item.set_reference(with_approach(flower(), hand, 0.25))
    run = Run(item, plant, 4.0 if solver == "daqp" else 0.5)
    assert run.distance.max() < 1e-3
    assert run.count(ControlStatus.OK) == run.status.size
    assert np.all(run.q >= plant.tree.lower - 1e-12)
    assert np.all(run.q <= plant.tree.upper)


@pytest.mark.parametrize("seed", [0, 7])
def test_flower_with_a_wrong_model_stays_close(petal_start, seed):
    """Masses +10 %, via points off by 2 mm, controller at 500 Hz: stable, a few millimetres."""
    wrong = perturbed(roboy_arm(), mass_factor=1.1, attachment_offset=0.002, seed=seed)
    plant = Plant(roboy_arm(), petal_start)
    item = CtcOperational(ControlModel(wrong), **ROBOY)
    item.set_reference(flower())
    run = Run(item, plant, 10.0, h=2e-3)
    assert 1e-4 < run.distance.max() < 5e-3
    assert run.count(ControlStatus.OK) == run.status.size
    assert np.all(run.q >= plant.tree.lower)
    assert np.all(run.q <= plant.tree.upper)


# Limits and infeasibility --------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", [(0.45, -0.45, 0.95), (0.1, -0.2, 0.5), (0.45, -0.8, 0.5), (0.75, -0.6, 0.3)]
)
def test_joint_limits_hold_when_the_task_leaves_the_workspace(petal_start, target):
    robot = roboy_arm()
    plant = Plant(robot, petal_start)
    item = CtcOperational(ControlModel(robot), kp=400.0)
    item.set_reference(PointToPoint(CENTRE, target, 1.5))
    run = Run(item, plant, 2.5)
    assert run.count(ControlStatus.JOINT_LIMIT) > 500
    assert run.count(ControlStatus.FALLBACK) == 0
    assert np.all(run.q >= plant.tree.lower)
    assert np.all(run.q <= plant.tree.upper)


def test_without_barriers_that_task_breaks_the_limits(petal_start):
    """The same motion by a controller that knows no limits, so that the test above can fail."""
    robot = roboy_arm()
    plant = Plant(robot, petal_start)
    joints = tuple(
        replace(joint, axes=tuple(JointAxis(axis.axis) for axis in joint.axes))
        for joint in robot.joints
    )
    middle = CtcOperational(ControlModel(robot)).posture
    item = CtcOperational(ControlModel(replace(robot, joints=joints)), kp=400.0, posture=middle)
    item.set_reference(PointToPoint(CENTRE, (0.45, -0.45, 0.95), 1.5))
    run = Run(item, plant, 0.95)
    assert np.any(run.q < plant.tree.lower - 0.02) or np.any(run.q > plant.tree.upper + 0.02)


def test_weak_muscles_are_infeasible_not_at_a_joint_limit(roboy):
    item = CtcOperational(model_of(roboy), tension_max=12.0)
    out = step(item, 0.0, np.array([1.45, 0.0, 0.0, -1.0]), np.zeros(4))
    assert out.status is ControlStatus.INFEASIBLE
    assert out.residual > 0.1
    assert out.tensions.max() == 12.0


def test_tensions_are_continuous_where_the_muscles_fail(roboy):
    """The commanded acceleration grows until the limits are met, and beyond."""
    item = CtcOperational(model_of(roboy), tension_max=25.0)
    q, qd = np.array([1.45, 0.0, 0.0, -1.0]), np.zeros(4)
    y = roboy.operational(q, qd).position.copy()
    rate = np.array([0.6, 0.2, 2.0])
    item.set_reference(Motion(3, lambda t: (y, np.zeros(3), rate * t)))
    largest = []
    for interval in (1e-3, 2.5e-4):
        tensions, status, residual = [], [], []
        for t in np.arange(0.0, 4.0, interval):
            out = step(item, t, q, qd)
            tensions.append(out.tensions.copy())
            status.append(out.status)
            residual.append(out.residual)
        assert status[0] is ControlStatus.OK
        assert status[-1] is ControlStatus.INFEASIBLE
        assert residual[-1] > 1.0
        assert sum(a is not b for a, b in itertools.pairwise(status)) == 1
        push = interval * np.linalg.norm(rate)
        change = np.linalg.norm(np.diff(tensions, axis=0), axis=1)
        within = np.array(status[1:]) == ControlStatus.OK
        # 2 kg half a metre from joints with levers of 0.02 m: 50 N per m/s^2; bound: three times
        assert change[within].max() < 150.0 * push
        largest.append([change.max(), np.abs(np.diff(residual)).max()])
    # a jump would be as large in a quarter of the interval
    assert (np.array(largest[1]) < 0.5 * np.array(largest[0])).all()


def test_tensions_are_continuous_where_a_stretched_arm_cannot_follow():
    """Elbow through zero, target beyond: what the task asks for changes sign at infinity there."""
    dynamics = make_dynamics(load("planar_2r").commanded())
    item = CtcOperational(model_of(dynamics), axes="xz")
    for shoulder in (-1.0, -0.3, 0.5):
        still = np.zeros(2)
        stretched = dynamics.operational(np.array([shoulder, 0.0]), still).position.copy()
        item.set_reference(fixed_point(1.3 * stretched[[0, 2]], 2))
        tensions = []
        for elbow in np.linspace(-0.01, 0.01, 2001):
            out = step(item, 0.0, np.array([shoulder, elbow]), still)
            assert out.status is ControlStatus.INFEASIBLE
            tensions.append(out.tensions.copy())
        # a strict order of task and cost: 60 to 80 N within 1e-5 rad
        assert np.abs(np.diff(tensions, axis=0)).max() < 0.02  # 2 N per mrad
        assert np.ptp(tensions, axis=0).max() > 1.0


@pytest.mark.parametrize("far", [0.1, 0.3, 1.0])
def test_a_target_out_of_reach_is_held_at_rest(far):
    """Straight on from the stretched arm at home, which is where it stays."""
    dynamics = make_dynamics(load("bm_arm").commanded())
    plant = Plant(dynamics.robot, dynamics.tree.home)
    still = np.zeros(dynamics.tree.nv)
    home = dynamics.operational(dynamics.tree.home, still).position.copy()
    base = dynamics.link_poses(dynamics.tree.home)[1][:3, 3]
    target = home + far * (home - base) / np.linalg.norm(home - base)
    item = CtcOperational(model_of(dynamics), posture="home")
    item.set_reference(fixed_point(target, 3))
    run = Run(item, plant, 3.0)
    late = run.tensions[run.time > 2.0]
    assert run.status[-1] == int(ControlStatus.INFEASIBLE)
    assert np.abs(np.diff(late, axis=0)).max() < 0.1  # a strict order: 16 N in the mean


@pytest.mark.parametrize("shoulder", [-1.0, 0.3, 0.5])
@pytest.mark.parametrize("reach", [0.9995, 1.00025, 1.001, 1.003, 1.01])
def test_a_stretched_arm_rests_at_the_border_of_its_reach(shoulder, reach):
    """Within 20 mm of it, on both sides; not damped, tensions change by 80 N in every step."""
    robot = load("planar_2r").commanded()
    dynamics = make_dynamics(robot)
    stretched = np.array([shoulder, 0.0])
    item = CtcOperational(model_of(dynamics), axes="xz")
    at = reach * item.place(stretched, np.zeros(2))
    item.set_reference(fixed_point(at, 2))
    run = Run(item, Plant(robot, stretched), 3.0)
    late = run.tensions[run.time > 2.0]
    assert np.abs(np.diff(late, axis=0)).max() < 0.1
    least = max(np.linalg.norm(at) - 2.0, 0.0)
    assert np.linalg.norm(item.place(run.q[-1], np.zeros(2)) - at) < least + 1.5e-3


def test_only_near_singular_poses_are_damped(monkeypatch):
    """Elsewhere tensions are those of the strict order to the last bit."""
    items = [CtcOperational(model_of(make_dynamics(load("planar_2r").commanded())), axes="xz")]
    monkeypatch.setattr(ctc_operational, "NEAR_SINGULAR", 0.0)
    items.append(CtcOperational(model_of(items[0].dynamics), axes="xz"))
    still, rng, damped = np.zeros(2), np.random.default_rng(3), 0
    reach = 2.0  # of links of 1 m; sin(elbow) is the determinant of the Jacobian
    for elbow in np.concatenate([np.linspace(-0.3, 0.3, 61), rng.uniform(-2.5, 2.5, 40)]):
        q = np.array([rng.uniform(-1.0, 1.0), elbow])
        at = items[0].place(q, still) + rng.normal(size=2) * 1e-3 * reach
        for item in items:
            item.reset()
            item.set_reference(fixed_point(at, 2))
        one, two = (step(item, 0.0, q, still) for item in items)
        if abs(elbow) > 0.11:
            np.testing.assert_array_equal(one.tensions, two.tensions)
            assert one.status is two.status
        elif abs(elbow) < 0.06:
            damped += one.status is ControlStatus.INFEASIBLE
    assert damped >= 11


def test_the_price_of_the_task_is_told_by_the_robot():
    """Tensions and masses in other units: the same pull, in multiples of the ranges at home."""
    dynamics = make_dynamics(load("planar_2r").commanded())
    item = CtcOperational(model_of(dynamics), axes="xz")
    program, m = item._program, item.tension_min.size
    q, still = dynamics.tree.home, np.zeros(2)
    step(item, 0.0, q, still)
    forces = program.matrix[:2, :m]
    moved = -np.linalg.solve(program.matrix[:2, m:], forces)
    h = program.hessian
    cost = np.diag(h[:m]) + moved.T @ np.diag(h[m:]) @ moved
    pulls = np.linalg.solve(cost, (program.matrix[2:, m:] @ moved).T * program.price)
    ranges = (item.tension_max - item.tension_min) / item._force_unit
    assert np.abs(pulls / ranges[:, None]).max() == pytest.approx(10.0, rel=1e-9)


# Posture -------------------------------------------------------------------------------------


def hold_hand(petal_start, offset=0.12, **parameters):
    """Start with joint 1 elsewhere on the self-motion of the arm; return the run."""
    plant = Plant(roboy_arm(), roboy_home())
    guess = np.add(petal_start, [offset, 0, 0, 0])

    def residual(q):
        at = plant.dynamics.operational(q, np.zeros(4)).position
        return np.append(at - CENTRE, q[0] - guess[0])

    q = least_squares(residual, guess, xtol=1e-15, ftol=1e-15, gtol=1e-15).x
    plant.q, plant.qd = q, np.zeros(4)
    item = CtcOperational(ControlModel(roboy_arm()), kp=400.0, **parameters)
    item.set_reference(fixed_point(CENTRE, 3))
    return Run(item, plant, 2.0)


def test_posture_settles_the_self_motion_without_moving_the_hand(petal_start):
    above, below = hold_hand(petal_start, 0.12), hold_hand(petal_start, -0.12)
    for run in (above, below):
        assert run.distance.max() < 2e-5
        assert np.abs(run.qd[-1]).max() < 1e-3
    # both come to the same place, near the middle of joint 1's range
    np.testing.assert_allclose(above.q[-1], below.q[-1], atol=2e-3)
    assert abs(above.q[-1, 0] - 1.45) < 0.1


def test_without_posture_the_arm_drifts(petal_start):
    above = hold_hand(petal_start, 0.12, posture_kp=0.0, posture_kd=0.0)
    below = hold_hand(petal_start, -0.12, posture_kp=0.0, posture_kd=0.0)
    for run in (above, below):
        assert run.distance.max() < 1e-4  # the hand stays, the elbow wanders off to a limit
        assert run.q[-1, 0] < 1.25


def test_posture_gains_can_be_changed(roboy):
    item = CtcOperational(model_of(roboy))
    q = np.array([1.6, 0.0, 0.0, -1.0])
    before = step(item, 0.0, q, np.zeros(4)).tensions.copy()
    item.set_posture_gains(0.0)
    assert np.abs(step(item, 0.1, q, np.zeros(4)).tensions - before).max() > 1.0
    with pytest.raises(ParameterError, match="posture_kp has 2 values"):
        item.set_posture_gains([1.0, 2.0])


def test_postures(roboy):
    np.testing.assert_allclose(CtcOperational(model_of(roboy)).posture, [1.45, 0.0, 0.0, -0.785])
    home = CtcOperational(model_of(roboy), posture="home").posture
    np.testing.assert_allclose(home, [1.2, 0.0, 0.0, -0.5])
    given = CtcOperational(model_of(roboy), posture=[1.3, 0.1, 0.2, -0.3]).posture
    np.testing.assert_allclose(given, [1.3, 0.1, 0.2, -0.3])
    platform = CtcOperational(ControlModel(hanging_platform())).posture
    np.testing.assert_allclose(platform, [0, 0, 0, 1, 0, 0, 0])  # no limits: home


# Other tasks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", ["xz", "zx"])
def test_axes_may_be_chosen_in_any_order(axes):
    robot = planar_2r()
    pick = ["xyz".index(c) for c in axes]
    plant = Plant(robot, [-0.5, 0.5])
    tip = plant.dynamics.operational(plant.q, plant.qd).position.copy()

    def circle(t):
        a = 1.0 - np.cos(t)
        y = tip + 0.1 * np.array([np.sin(a), 0.0, np.cos(a) - 1.0])
        yd = 0.1 * np.sin(t) * np.array([np.cos(a), 0.0, -np.sin(a)])
        ydd = 0.1 * np.cos(t) * np.array([np.cos(a), 0.0, -np.sin(a)])
        ydd = ydd - 0.1 * np.sin(t) ** 2 * np.array([np.sin(a), 0.0, np.cos(a)])
        return y[pick], yd[pick], ydd[pick]

    item = CtcOperational(ControlModel(robot), axes=axes, kp=400.0, posture_kp=1.0)
    assert item.reference_names == tuple(axes)
    item.set_reference(Motion(2, circle))
    run = Run(item, plant, 2.0)
    assert run.count(ControlStatus.OK) == run.status.size
    assert run.distance.max() < 5e-4


def pose(t):
    """A tool pose in the world: y = (p, quaternion), angular rates in world axes."""
    w = np.array([0.2, -0.1, 0.3])
    p = np.array([0.05 + 0.1 * np.sin(t), 0.1 * np.sin(2 * t), -0.1 + 0.1 * (1 - np.cos(t))])
    v = np.array([0.1 * np.cos(t), 0.2 * np.cos(2 * t), 0.1 * np.sin(t)])
    a = np.array([-0.1 * np.sin(t), -0.4 * np.sin(2 * t), 0.1 * np.cos(t)])
    y = np.concatenate([p, rotation_exp(np.sin(t) * w)])
    return y, np.concatenate([v, np.cos(t) * w]), np.concatenate([a, -np.sin(t) * w])


def test_platform_follows_a_pose():
    robot = hanging_platform()
    item = CtcOperational(ControlModel(robot), orientation=True, kp=400.0, posture_kp=1.0)
    assert item.reference_names[3:] == tuple(f"quaternion_{c}" for c in "wxyz")
    item.set_reference(Motion(7, pose))
    _, yd, _ = pose(0.0)
    plant = Plant(robot, [0, 0, 0, 1, 0, 0, 0])
    qd = np.linalg.solve(plant.dynamics.operational(plant.q, np.zeros(6)).jacobian, yd)
    plant.qd = qd
    run = Run(item, plant, 2.0)
    assert run.count(ControlStatus.OK) == run.status.size
    assert np.abs(run.error).max() < 5e-4


def test_orientation_alone_converges_from_half_a_radian():
    robot = hanging_platform()
    goal = rotation_exp([0.3, -0.2, 0.25])
    item = CtcOperational(ControlModel(robot), axes="", orientation=True, kp=100.0)
    item.set_reference(fixed_point(-goal, 3))
    plant = Plant(robot, [0, 0, 0, 1, 0, 0, 0])
    run = Run(item, plant, 1.5)
    np.testing.assert_allclose(run.error[0], rotation_log(quaternion_matrix(goal)), atol=1e-12)
    assert run.distance[-1] < 1e-3
    assert run.count(ControlStatus.OK) == run.status.size


def test_position_of_another_frame(roboy):
    item = CtcOperational(model_of(roboy), frame="upper_arm")
    q = np.array([1.45, 0.2, 0.0, -1.0])
    out = step(item, 0.0, q, np.zeros(4))
    expected = roboy.operational(q, np.zeros(4), "upper_arm").position
    np.testing.assert_allclose(out.actual, expected)


def test_a_robot_without_muscles_reports_what_is_missing():
    robot = replace(roboy_arm(), muscles=())
    dynamics = make_dynamics(robot)
    item = CtcOperational(model_of(dynamics))
    q = np.array([1.45, 0.0, 0.1, -1.0])
    out = step(item, 0.0, q, np.zeros(4))
    state = dynamics.update(q, np.zeros(4))
    fall = np.linalg.solve(state.mass_matrix, -state.gravity)
    missing = dynamics.operational(q, np.zeros(4)).jacobian[:3] @ fall
    assert out.status is ControlStatus.INFEASIBLE
    assert out.residual == pytest.approx(np.linalg.norm(missing), rel=1e-6)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"axes": "xq"}, ParameterError, "axes is 'xq'; expected different letters of 'xyz'"),
        ({"axes": "xx"}, ParameterError, "axes is 'xx'"),
        ({"axes": ""}, ParameterError, "axes is empty"),
        ({"frame": "hnad"}, UnknownNameError, "hnad.*did you mean 'hand'"),
        ({"posture": "rest"}, UnknownNameError, "posture named 'rest'.*mid, home"),
        ({"posture": [1.0, 2.0]}, ParameterError, "posture has 2 values; .* 4: joint_1"),
        ({"kp": [1.0, 2.0]}, ParameterError, "kp has 2 values; expected one number or 3: x, y, z"),
        ({"task_weight": 0.0}, ParameterError, "task_weight of 'x' is 0.0"),
        ({"acceleration_weight": -1.0}, ParameterError, "acceleration_weight of 'joint_1'"),
        ({"limit_rate": 0.0}, ParameterError, "limit_rate"),
        ({"limit_margin": -0.1}, ParameterError, "limit_margin"),
        ({"residual_tolerance": np.nan}, ParameterError, "residual_tolerance"),
        (
            {"posture_kp": [1.0]},
            ParameterError,
            "posture_kp has 1 values; expected one number or 4",
        ),
    ],
)
def test_parameters_are_checked(roboy, parameters, error, message):
    with pytest.raises(error, match=message):
        CtcOperational(model_of(roboy), **parameters)
