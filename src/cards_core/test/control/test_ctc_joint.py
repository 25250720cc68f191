"""Joint-space control: published tensions, closed loops on the exact model, infeasibility."""

from dataclasses import replace

import numpy as np
import pytest
from control_robots import (
    Motion,
    Plant,
    Run,
    ball_arm,
    bm_arm,
    fixed_point,
    hanging_platform,
    model_of,
    planar_2r,
    roboy_arm,
    step,
)

from cards_core.control import ControlModel, ControlStatus, CtcJoint
from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError
from cards_core.spatial import quaternion_matrix, quaternion_product, rotation_exp
from cards_core.trajectories import quintic_spline
from random_robots import random_robot


def inverse_dynamics(robot, q, qd, qdd, **parameters):
    """Tensions for an acceleration: the reference is the state itself."""
    dynamics = make_dynamics(robot)
    item = CtcJoint(model_of(dynamics), **parameters)
    q, qd, qdd = (np.array(x, dtype=float) for x in (q, qd, qdd))
    item.set_reference(Motion(q.size, lambda t: (q, qd, qdd)))
    return step(item, 0.0, q, qd)


@pytest.mark.parametrize("solver", ["daqp", "osqp"])
@pytest.mark.parametrize(
    ("robot", "state", "tensions"),
    [
        (
            bm_arm(),
            ((0.2, 0.1, 0.3, 0.4), (0.3, -0.2, 0.1, 0.5), (0.1, 0.2, -0.3, 0.4)),
            (10, 27.25767987, 11.87168586, 25.97264189, 10, 20.06270809),
        ),
        (
            planar_2r(),
            ((0.3, -0.5), (0.4, 0.2), (0.5, -0.3)),
            (10, 16.98003952, 37.54627344, 10),
        ),
        (planar_2r(), ((-0.5, 0.5), (0, 0), (0, 0)), (41.3328, 10, 10, 14.039668)),
        (planar_2r(), ((0.5, -0.5), (0, 0), (0, 0)), (10, 14.039668, 41.3328, 10)),
    ],
)
def test_least_norm_tensions_of_an_independent_implementation(robot, state, tensions, solver):
    out = inverse_dynamics(robot, *state, solver=solver)
    assert out.status is ControlStatus.OK
    # the static ones are known to 4 decimals
    tolerance = 5e-5 if not np.any(state[1]) else {"daqp": 1e-6, "osqp": 1e-5}[solver]
    np.testing.assert_allclose(out.tensions, tensions, atol=tolerance)


def test_equation_of_motion_holds_wherever_the_status_is_ok():
    count = 0
    for seed in range(25):
        robot = random_robot(seed, n_links=3, n_muscles=12)
        muscles = tuple(replace(m, tension_min=1.0, tension_max=800.0) for m in robot.muscles)
        dynamics = make_dynamics(replace(robot, muscles=muscles), "numeric")
        tree, rng = dynamics.tree, np.random.default_rng(seed)
        item = CtcJoint(model_of(dynamics), kp=30.0)
        goal = tree.random(rng)
        qd_d, qdd_d = rng.normal(size=(2, tree.nv))
        item.set_reference(Motion(tree.nq, lambda t, y=goal, v=qd_d, a=qdd_d: (y, v, a)))
        q, qd = tree.random(rng), rng.normal(size=tree.nv)
        out = step(item, 0.0, q, qd)
        state = dynamics.update(q, qd)
        torque = state.mass_matrix @ out.acceleration + state.coriolis + state.gravity
        missing = torque + state.muscle_jacobian.T @ out.tensions
        assert np.linalg.norm(missing) == pytest.approx(out.residual, abs=1e-6)
        assert (out.status is ControlStatus.OK) == (out.residual <= 1e-6)
        np.testing.assert_allclose(tree.integrate(q, out.error), goal * _sign(tree, q, goal, out))
        count += out.status is ControlStatus.OK
    assert count > 0


def _sign(tree, q, goal, out):
    """+-1 per coordinate: a quaternion and its negative are the same rotation."""
    reached = tree.integrate(q, out.error)
    sign = np.ones(tree.nq)
    for node in tree.nodes:
        if node.kind == "ball":
            part = slice(node.q, node.q + 4)
            sign[part] = np.sign(reached[part] @ goal[part])
    return sign


@pytest.mark.parametrize("solver", ["daqp", "osqp"])
def test_planar_robot_tracks_the_published_motion(solver):
    """q: (-0.5, 0.5) -> (0.5, -0.5) -> (-0.5, 0.5), quintics, 8 s, Kp 2000, Kd 90, 1 kHz."""
    robot = planar_2r()
    reference = quintic_spline([0.0, 4.0, 8.0], [[-0.5, 0.5], [0.5, -0.5], [-0.5, 0.5]])
    item = CtcJoint(ControlModel(robot), kp=2000.0, kd=90.0, solver=solver)
    item.set_reference(reference)
    run = Run(item, Plant(robot, [-0.5, 0.5]), 8.0 if solver == "daqp" else 1.0)
    assert np.abs(run.error).max() < 5e-4
    assert run.tensions.min() >= 10.0
    assert run.tensions.max() <= 100.0
    assert run.count(ControlStatus.OK) == run.status.size


def test_errors_decay_as_the_gains_say():
    """Edd + Kd ed + Kp e = 0 with e(0) = e0, ed(0) = 0; critical: e0 (1 + w t) exp(-w t)."""
    robot = planar_2r()
    item = CtcJoint(ControlModel(robot), kp=[100.0, 25.0])
    goal, offset = np.array([-0.3, 0.4]), np.array([0.02, -0.03])
    item.set_reference(fixed_point(goal, 2))
    # tensions held over a step act like springs there: the deviation is of first order in h
    run = Run(item, Plant(robot, goal - offset), 0.3, h=5e-5)
    assert run.count(ControlStatus.OK) == run.status.size
    w = np.array([10.0, 5.0])
    phase = run.time[:, None] * w
    np.testing.assert_allclose(run.error, offset * (1 + phase) * np.exp(-phase), atol=7e-5)


def test_gains_take_effect_while_running():
    robot = planar_2r()
    item = CtcJoint(ControlModel(robot), kp=100.0)
    q = np.array([-0.5, 0.5])
    item.set_reference(fixed_point(q + 0.01, 2))
    first = step(item, 0.0, q, np.zeros(2)).acceleration.copy()
    item.set_gains([200.0, 300.0], 0.0)
    second = step(item, 0.1, q, np.zeros(2)).acceleration
    np.testing.assert_allclose(first, 1.0)
    np.testing.assert_allclose(second, [2.0, 3.0])


def test_force_weights_share_the_load():
    robot = roboy_arm()
    q = (1.45, 0.0, 0.1, -1.2)
    even = inverse_dynamics(robot, q, np.zeros(4), np.zeros(4))
    strongest = int(np.argmax(even.tensions))
    before = even.tensions[strongest]
    weights = np.ones(11)
    weights[strongest] = 100.0
    spared = inverse_dynamics(robot, q, np.zeros(4), np.zeros(4), force_weight=weights)
    assert spared.status is even.status is ControlStatus.OK
    assert spared.tensions[strongest] < 0.8 * before
    # only relative sizes matter
    scaled = inverse_dynamics(robot, q, np.zeros(4), np.zeros(4), force_weight=1e-6 * weights)
    np.testing.assert_allclose(scaled.tensions, spared.tensions, rtol=1e-6)


@pytest.mark.parametrize("solver", ["daqp", "osqp"])
def test_tensions_are_continuous_where_the_muscles_fail(solver):
    """The acceleration asked for grows until the tension limits are met, and beyond."""
    robot = planar_2r()
    dynamics = make_dynamics(robot)
    item = CtcJoint(model_of(dynamics), solver=solver)
    q = np.array([0.3, -0.5])
    rate = np.array([600.0, -400.0])  # rad/s^2 per unit of t
    item.set_reference(Motion(2, lambda t: (q, np.zeros(2), rate * t)))
    interval = {"daqp": 1e-3, "osqp": 5e-3}[solver]
    tensions, residual, status = [], [], []
    for t in np.arange(-3.0, 5.0, interval):
        out = step(item, t, q, np.zeros(2))
        tensions.append(out.tensions.copy())
        residual.append(out.residual)
        status.append(out.status)
    tensions, residual, status = np.array(tensions), np.array(residual), np.array(status)
    if solver == "osqp":  # some of the infeasible ones exceed its iteration limit
        assert np.mean(status == ControlStatus.FALLBACK) < 0.05
        status[status == ControlStatus.FALLBACK] = ControlStatus.INFEASIBLE
    infeasible = status == ControlStatus.INFEASIBLE
    assert set(status[~infeasible]) == {ControlStatus.OK}
    assert infeasible[0]
    assert infeasible[-1]
    assert np.abs(np.diff(infeasible.astype(int))).sum() == 2  # two boundaries, no flicker
    assert residual[-1] > 0.5
    # torque changes by M rate interval; no tension changes by more than that over the lever arm
    state = dynamics.update(q, np.zeros(2))
    torque_step = np.linalg.norm(state.mass_matrix @ rate) * interval
    lever = np.linalg.svd(state.muscle_jacobian)[1].min()
    change = np.linalg.norm(np.diff(tensions, axis=0), axis=1)
    assert change.max() <= 3.0 * torque_step / lever + 1e-4
    assert np.abs(np.diff(residual)).max() <= torque_step + 1e-5


def test_two_muscles_on_three_joints_do_what_they_can():
    """M < n: the missing torque is least, as SciPy's bounded least squares has it."""
    from scipy.optimize import lsq_linear

    robot = roboy_arm()
    robot = replace(robot, muscles=robot.muscles[:2])
    q = np.array([1.45, 0.0, 0.1, -1.2])
    out = inverse_dynamics(robot, q, np.zeros(4), np.ones(4))
    state = make_dynamics(robot).update(q, np.zeros(4))
    torque = state.mass_matrix @ np.ones(4) + state.coriolis + state.gravity
    best = lsq_linear(-state.muscle_jacobian.T, torque, bounds=(10.0, 5000.0), method="bvls")
    assert out.status is ControlStatus.INFEASIBLE
    assert out.residual == pytest.approx(np.linalg.norm(best.fun), rel=1e-6)
    np.testing.assert_allclose(out.tensions, best.x, rtol=1e-4)


@pytest.mark.parametrize("solver", ["daqp", "osqp"])
def test_a_robot_without_muscles_reports_the_missing_torque(solver):
    robot = replace(planar_2r(), muscles=())
    out = inverse_dynamics(robot, (0.3, -0.5), (0, 0), (0.5, -0.3), solver=solver)
    state = make_dynamics(robot).update(np.array([0.3, -0.5]), np.zeros(2))
    torque = state.mass_matrix @ [0.5, -0.3] + state.gravity
    assert out.tensions.shape == (0,)
    assert out.status is ControlStatus.INFEASIBLE
    assert out.residual == pytest.approx(np.linalg.norm(torque))


def test_slack_weights_say_which_joint_yields():
    robot = roboy_arm()
    q, qdd = np.array([1.45, 0.0, 0.1, -1.2]), np.array([3000.0, -3000.0, 3000.0, -3000.0])
    state = make_dynamics(robot).update(q, np.zeros(4))
    torque = state.mass_matrix @ qdd + state.gravity
    missing = []
    for strong in range(4):
        weights = np.full(4, 1e6)
        weights[strong] = 1e10
        out = inverse_dynamics(robot, q, np.zeros(4), qdd, slack_weight=weights)
        assert out.status is ControlStatus.INFEASIBLE
        missing.append(np.abs(torque + state.muscle_jacobian.T @ out.tensions))
    missing = np.array(missing)
    # each joint lacks least when its own weight is the large one
    np.testing.assert_array_equal(np.argmin(missing, axis=0), np.arange(4))


def spin(t, axis_rates=(0.5, -0.3, 0.4)):
    """Rotation exp(a(t) w) about a fixed axis: angular velocity da/dt w in either frame."""
    w = np.array(axis_rates)
    angle, rate, acceleration = np.sin(t), np.cos(t), -np.sin(t)
    return rotation_exp(angle * w), rate * w, acceleration * w


def test_ball_joint_follows_a_rotation():
    robot = ball_arm()
    item = CtcJoint(ControlModel(robot), kp=400.0)
    item.set_reference(Motion(4, spin))
    y, yd, _ = spin(0.0)
    run = Run(item, Plant(robot, y, yd), 2.0)
    assert run.count(ControlStatus.OK) == run.status.size
    assert run.distance.max() < 2e-4


def test_ball_joint_error_decays_from_far_along_the_shortest_way():
    robot = ball_arm()
    item = CtcJoint(ControlModel(robot), kp=100.0)
    offset = np.array([0.15, -0.1, 0.25])
    goal = rotation_exp([0.1, 0.1, -0.1])
    start = quaternion_product(goal, rotation_exp(-offset))
    item.set_reference(fixed_point(-goal, 3))  # -goal is the same rotation
    run = Run(item, Plant(robot, start), 0.6, h=2e-4)
    phase = 10.0 * run.time
    # a rotation about a fixed axis is the scalar equation exactly
    expected = offset * ((1 + phase) * np.exp(-phase))[:, None]
    np.testing.assert_allclose(run.error, expected, atol=2e-4)


def test_moving_target_far_from_the_body_has_no_feedforward_error():
    """With the rates carried over to the actual axes the error obeys edd + Kd ed + Kp e = 0.

    Valid to first order in e; the wrong axes would leave an error that does not decay.
    """
    robot = ball_arm()
    item = CtcJoint(ControlModel(robot), kp=400.0)
    item.set_reference(Motion(4, spin))
    y, yd, _ = spin(0.0)
    start = quaternion_product(y, rotation_exp([0.0, 0.1, -0.1]))
    run = Run(item, Plant(robot, start, yd), 1.0)
    assert run.distance[0] > 0.1
    assert run.distance[-1] < 2e-4


@pytest.mark.parametrize("python", [False, True])
def test_ball_joint_rates_are_carried_as_the_actual_frame_turns(python):
    """The acceleration is the derivative of the carried velocity, whatever the robot does.

    v = R' R_d w_d with w_d constant; far from the reference and turning otherwise than it.
    """
    robot = ball_arm()
    item = CtcJoint(ControlModel(robot), kp=0.0, kd=0.0)
    if python:
        item.step_in_python()
    wanted, actual = np.array([0.8, -0.5, 1.1]), np.array([-0.7, 0.9, 0.4])
    start = rotation_exp([0.1, 0.3, -0.2])

    def desired(t):
        return rotation_exp(t * wanted)

    def place(t):
        return quaternion_product(start, rotation_exp(t * actual))

    def velocity(t):
        return quaternion_matrix(place(t)).T @ quaternion_matrix(desired(t)) @ wanted

    item.set_reference(Motion(4, lambda t: (desired(t), wanted, np.zeros(3))))
    t, h = 0.3, 1e-5
    out = step(item, t, place(t), actual)
    derivative = (velocity(t + h) - velocity(t - h)) / (2.0 * h)
    np.testing.assert_allclose(out.acceleration, derivative, atol=1e-8)
    assert np.linalg.norm(derivative) > 0.3


def test_free_body_on_eight_cables_follows_a_pose():
    robot = hanging_platform()

    def pose(t):
        q, w, a = spin(t, (0.1, 0.05, -0.2))
        p = np.array([0.2 * np.sin(t), 0.1 * np.sin(2 * t), 0.1 * (1 - np.cos(t))])
        v = np.array([0.2 * np.cos(t), 0.2 * np.cos(2 * t), 0.1 * np.sin(t)])
        c = np.array([-0.2 * np.sin(t), -0.4 * np.sin(2 * t), 0.1 * np.cos(t)])
        return np.concatenate([p, q]), np.concatenate([v, w]), np.concatenate([c, a])

    item = CtcJoint(ControlModel(robot), kp=400.0)
    item.set_reference(Motion(7, pose))
    y, yd, _ = pose(0.0)
    run = Run(item, Plant(robot, y, yd), 2.0)
    assert run.count(ControlStatus.OK) == run.status.size
    assert np.abs(run.error).max() < 3e-4


def test_slack_weight_is_checked():
    with pytest.raises(ParameterError, match=r"slack_weight of 'joint_2' is 0.0"):
        CtcJoint(ControlModel(planar_2r()), slack_weight=[1.0, 0.0])
