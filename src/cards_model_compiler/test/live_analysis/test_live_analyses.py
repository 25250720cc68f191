"""What is said about a state, against differences, closed forms and the motion it came from."""

from dataclasses import replace

import numpy as np
import pytest
from hybrid_robots import platform_arm

from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.formats import load as load_model
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link
from cards_core.robot.model import Robot
from cards_model_compiler.live_analysis.analyses import (
    ConditionAnalysis,
    ForwardKinematicsAnalysis,
    InteractionAnalysis,
    RobotState,
    StiffnessAnalysis,
    state_at_home,
)
from random_robots import random_robot

ROBOTS = ("planar_2r", "wrap_elbow", "spherical_2s", "ball")


def load(name):
    """A robot of models/, or two bodies on ball joints in random cables."""
    if name == "ball":
        return random_robot(3, n_links=2, n_muscles=9, kinds=("ball",))
    return load_model(name)


def state_of(dynamics, q, qd=None, tensions=None, *, number=0, time=0.0):
    """A state as a perfect host would send it."""
    tree = dynamics.tree
    qd = np.zeros(tree.nv) if qd is None else qd
    m = len(dynamics.robot.muscles)
    tensions = np.full(m, 50.0) if tensions is None else tensions
    found = dynamics.update(q, qd)
    lengths, rates = found.muscle_lengths.copy(), found.muscle_jacobian @ qd
    stamp = round(1e9 * time)
    return RobotState(number, time, stamp, 0.0, q, qd, lengths, rates, tensions)


def unknown(state, *fields):
    return replace(state, **{name: np.full_like(getattr(state, name), np.nan) for name in fields})


def pose_of(dynamics, seed=0):
    return dynamics.tree.random(np.random.default_rng(seed), span=0.3)


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("name", ["wrench_closure", "tension_factor", "interference"])
def test_a_condition_says_what_the_registry_says(robot, name):
    dynamics = make_dynamics(load(robot))
    analysis = ConditionAnalysis(make_dynamics(load(robot)), name, {})
    condition = make_condition(dynamics, name)
    assert analysis.columns == tuple(column.name for column in condition.columns[1:])
    for seed in range(3):
        state = state_of(dynamics, pose_of(dynamics, seed))
        answer = analysis.evaluate(state)
        expected = condition.evaluate(state.q[None])
        assert answer.status == PointStatus(int(expected["status"][0]))
        for value, column in zip(answer.values, analysis.columns, strict=True):
            assert value == pytest.approx(float(expected[column][0]), nan_ok=True)


def test_options_reach_the_condition():
    dynamics = make_dynamics(load("planar_2r"))
    state = state_of(dynamics, dynamics.tree.home)
    free = ConditionAnalysis(dynamics, "interference", {}).evaluate(state)
    assert free.status is PointStatus.FEASIBLE
    tight = ConditionAnalysis(dynamics, "interference", {"min_distance": 10.0})
    answer = tight.evaluate(state)
    assert answer.status is PointStatus.INFEASIBLE
    pair = tight.words(answer.values)["pair"]
    assert set(pair.split(" - ")) <= set(tight.condition.others)


@pytest.mark.parametrize("robot", ROBOTS)
def test_stiffness_is_the_change_of_force_against_a_displacement(robot):
    """Ideal cables: -d(tau - G)/dq by differences of the numeric backend."""
    model = load(robot)
    dynamics, other = make_dynamics(model), make_dynamics(model, "numeric")
    tree, m = dynamics.tree, len(model.muscles)
    rng = np.random.default_rng(1)
    state = state_of(dynamics, pose_of(dynamics, 1), tensions=rng.uniform(10.0, 60.0, m))
    analysis = StiffnessAnalysis(dynamics, 0.0, gravity=True)
    answer = analysis.evaluate(state)

    def force(step):
        found = other.update(tree.integrate(state.q, step), np.zeros(tree.nv))
        return found.muscle_jacobian.T @ state.tensions + found.gravity

    h = 1e-5
    columns = [(force(h * e) - force(-h * e)) / (2.0 * h) for e in np.eye(tree.nv)]
    expected = np.array(columns).T
    assert answer.status is PointStatus.FEASIBLE
    # central differences: h^2 of the third derivative, and rounding / h
    np.testing.assert_allclose(answer.detail.matrix, expected, atol=1e-6 * np.abs(expected).max())
    least = np.linalg.eigvalsh(0.5 * (expected + expected.T))[0]
    assert answer.values[0] == pytest.approx(least, abs=1e-6 * np.abs(expected).max())


def test_stiff_cables_stiffen_and_give_a_frequency():
    dynamics = make_dynamics(load("planar_2r"))
    state = state_of(dynamics, np.array([0.3, -0.5]))
    soft = StiffnessAnalysis(dynamics, 0.0, gravity=True).evaluate(state)
    stiff = StiffnessAnalysis(dynamics, 1e6, gravity=True).evaluate(state)
    assert stiff.values[0] > soft.values[0]
    assert stiff.values[1] > 0.0


def pendulum():
    """A point mass of 2 kg, 0.7 m beyond a hinge about y."""
    bob = Link("bob", inertia=Inertia(2.0, np.array([0.7, 0.0, 0.0]), 1e-9 * np.eye(3)))
    axis = JointAxis(np.array([0.0, 1.0, 0.0]))
    hinge = Joint("hinge", "revolute", WORLD, "bob", axes=(axis,))
    return Robot("pendulum", links=(bob,), joints=(hinge,))


def test_what_a_joint_carries_in_motion():
    """Bob of a pendulum: m (w^2 r + g_r) inwards, and nothing across, where it falls freely."""
    dynamics = make_dynamics(pendulum())
    analysis = InteractionAnalysis(dynamics)
    assert analysis.columns == tuple(f"hinge/{c}" for c in ("fx", "fy", "fz", "mx", "my", "mz"))
    for angle, speed in ((0.0, 0.0), (0.4, 3.0), (-1.2, -2.0)):
        state = state_of(dynamics, np.array([angle]), np.array([speed]), np.zeros(0))
        answer = analysis.evaluate(state)
        # the link's x axis points down by the angle: gravity has the part g sin(angle) along it
        inwards = -2.0 * (speed**2 * 0.7 + 9.81 * np.sin(angle))
        np.testing.assert_allclose(answer.values, [inwards, 0, 0, 0, 0, 0], atol=1e-6)


def test_tensions_leave_nothing_for_the_joints_own_motion():
    dynamics = make_dynamics(load("planar_2r"))
    rng = np.random.default_rng(2)
    state = state_of(dynamics, np.array([0.4, -0.9]), rng.normal(size=2), rng.uniform(10, 90, 4))
    answer = InteractionAnalysis(dynamics).evaluate(state)
    np.testing.assert_allclose(answer.detail.imbalance, 0.0, atol=1e-9)


@pytest.mark.parametrize("robot", ROBOTS)
def test_the_pose_follows_from_lengths_alone(robot):
    dynamics = make_dynamics(load(robot))
    tree = dynamics.tree
    analysis = ForwardKinematicsAnalysis(make_dynamics(load(robot)), 1e-6, 0, from_measured=False)
    rng = np.random.default_rng(3)
    direction = rng.normal(size=tree.nv)
    lost = 0
    for k in range(60):
        # slowly to and fro, as 20 looks a second see it
        q = tree.integrate(tree.home, 0.2 * np.sin(0.1 * k) * direction)
        q = np.clip(q, tree.lower, tree.upper)
        qd = 0.1 * rng.normal(size=tree.nv)
        state = state_of(dynamics, q, qd, number=k, time=0.05 * k)
        answer = analysis.evaluate(state)
        lost += answer.status is not PointStatus.FEASIBLE
        if answer.status is PointStatus.FEASIBLE:
            # residual over the smallest singular value of L bounds the error
            slack = answer.values[0] / np.linalg.svd(_jacobian(dynamics, q))[1].min()
            assert answer.values[1] <= 10.0 * slack + 1e-9
            np.testing.assert_allclose(answer.detail.qd, qd, atol=1e-6)
    assert lost == 0


def _jacobian(dynamics, q):
    return dynamics.update(q, np.zeros(dynamics.tree.nv)).muscle_jacobian.copy()


def test_a_wrong_joint_sensor_shows():
    dynamics = make_dynamics(load("planar_2r"))
    analysis = ForwardKinematicsAnalysis(dynamics, 1e-6, 4, from_measured=True)
    state = state_of(dynamics, np.array([0.3, -0.5]))
    off = replace(state, q=state.q + np.array([0.0, 0.02]))
    answer = analysis.evaluate(off)
    assert answer.status is PointStatus.FEASIBLE
    np.testing.assert_allclose(answer.detail.q, state.q, atol=1e-6)
    np.testing.assert_allclose(answer.detail.differences, [0.0, -0.02], atol=1e-6)
    assert answer.values[1] == pytest.approx(0.02, abs=1e-6)
    # without joint sensors there is a pose, and nothing to compare it with
    alone = analysis.evaluate(unknown(state, "q"))
    np.testing.assert_allclose(alone.detail.q, state.q, atol=1e-6)
    assert np.isnan(alone.values[1])


def test_a_wrong_length_sensor_shows():
    dynamics = make_dynamics(load("planar_2r"))
    analysis = ForwardKinematicsAnalysis(dynamics, 1e-4, 4, from_measured=True)
    state = state_of(dynamics, np.array([0.3, -0.5]))
    off = replace(state, lengths=state.lengths + np.array([0.05, 0.0, 0.0, 0.0]))
    answer = analysis.evaluate(off)
    assert answer.status is PointStatus.UNREACHABLE
    assert answer.values[0] > 0.005
    assert analysis.evaluate(state_of(dynamics, state.q, number=1)).status is PointStatus.FEASIBLE


def test_it_begins_anew_when_time_goes_back():
    dynamics = make_dynamics(load("planar_2r"))
    analysis = ForwardKinematicsAnalysis(dynamics, 1e-6, 0, from_measured=True)
    starts = []
    reset = analysis._tracker.reset
    analysis._tracker.reset = lambda q: (starts.append(q), reset(q))
    for number, time in enumerate((1.0, 1.05, 1.1, 0.0, 0.05)):
        q = np.array([0.3, -0.5]) + 0.01 * number
        assert analysis.evaluate(state_of(dynamics, q, number=number, time=time)).values[1] < 1e-6
    np.testing.assert_allclose(starts, [[0.3, -0.5], [0.33, -0.47]])


def test_it_searches_now_and_then_while_it_is_lost():
    dynamics = make_dynamics(load("planar_2r"))
    analysis = ForwardKinematicsAnalysis(dynamics, 1e-6, 2, from_measured=True)
    state = state_of(dynamics, np.array([0.3, -0.5]))
    off = replace(state, lengths=state.lengths + 0.1)
    searches = []
    reset = analysis._tracker.reset
    analysis._tracker.reset = lambda q: (searches.append(q), reset(q))
    for k in range(41):
        analysis.evaluate(replace(off, number=k, came=0.05 * k, stamp=round(5e7 * k)))
    assert len(searches) == 3  # at 0, 1 and 2 s


ALL = ("conditions", "stiffness", "interaction", "forward_kinematics")


def make(kind, dynamics):
    if kind == "conditions":
        return ConditionAnalysis(dynamics, "tension_factor", {})
    if kind == "stiffness":
        return StiffnessAnalysis(dynamics, np.nan, gravity=True)
    if kind == "interaction":
        return InteractionAnalysis(dynamics)
    return ForwardKinematicsAnalysis(dynamics, 1e-6, 0, from_measured=True)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("robot", ROBOTS)
def test_what_is_not_known_has_no_numbers(kind, robot):
    dynamics = make_dynamics(load(robot))
    state = state_of(dynamics, dynamics.tree.home)
    state = unknown(state, "q", "qd", "lengths", "rates", "tensions")
    answer = make(kind, dynamics).evaluate(state)
    assert answer.status is PointStatus.NOT_FINITE
    assert answer.values.shape == (len(make(kind, dynamics).columns),)
    assert np.isnan(answer.values).all()


@pytest.mark.parametrize("kind", ALL)
def test_a_robot_without_muscles(kind):
    dynamics = make_dynamics(replace(load("planar_2r"), muscles=()))
    answer = make(kind, dynamics).evaluate(state_at_home(dynamics))
    if kind in ("conditions", "forward_kinematics"):
        assert answer.status is PointStatus.NO_MUSCLES
        assert np.isnan(answer.values).all()
        assert answer.detail is None
    else:
        assert answer.status is PointStatus.FEASIBLE
        assert np.isfinite(answer.values[: 1 if kind == "stiffness" else None]).all()


def test_motors_whose_effort_is_not_known_are_taken_to_hold_still():
    model = load("planar_2r")
    joints = tuple(replace(j, motor=j.kind == "revolute") for j in model.joints)
    dynamics = make_dynamics(replace(model, joints=joints))
    state = state_of(dynamics, np.array([0.3, -0.5]), tensions=np.zeros(4))
    answer = InteractionAnalysis(dynamics).evaluate(state)
    held = dynamics.update(state.q, np.zeros(2)).gravity
    np.testing.assert_allclose(answer.detail.imbalance, held, atol=1e-9)


def test_motors_whose_effort_is_known_move_the_robot():
    """Along its axis a joint carries what its motor gives, and nothing without one."""
    dynamics = make_dynamics(platform_arm())
    q, qd = dynamics.tree.home, np.array([0.1, -0.2, 0.3, -0.4, 0.5])
    state = state_of(dynamics, q, qd, tensions=np.array([30.0, 20.0, 10.0, 40.0]))
    state = replace(state, efforts=np.array([3.0, -1.0]))
    answer = InteractionAnalysis(dynamics).evaluate(state)
    np.testing.assert_allclose(answer.detail.imbalance, [0.0, 0.0, 0.0, 3.0, -1.0], atol=1e-9)
    # a motor that is not heard of holds its joint still
    silent = InteractionAnalysis(dynamics).evaluate(replace(state, efforts=np.full(2, np.nan)))
    assert np.abs(silent.detail.imbalance[:3]).max() > 1.0
