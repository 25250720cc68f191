"""Tensions of motions: published numbers, forward dynamics, mirrors, passive muscles, motors."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hybrid_robots import LIMITS, platform_arm

from cards_core.analysis.forward_dynamics import ForwardDynamics
from cards_core.analysis.inverse_dynamics import InverseDynamics, external_load
from cards_core.analysis.status import PointStatus
from cards_core.analysis.tension_distribution import METHODS, TensionLimitError
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, ShapeError
from cards_core.formats import load
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot
from random_robots import random_robot

REFERENCES = {
    # caspr.md 2.6: f* = argmin |f|^2 of CASPR's models, from an independent program
    "bm_arm": (
        [0.2, 0.1, 0.3, 0.4],
        [0.3, -0.2, 0.1, 0.5],
        [0.1, 0.2, -0.3, 0.4],
        [10, 27.25767987, 11.87168586, 25.97264189, 10, 20.06270809],
    ),
    "planar_2r": ([0.3, -0.5], [0.4, 0.2], [0.5, -0.3], [10, 16.98003952, 37.54627344, 10]),
}


def arrays(*values):
    return [np.array(v, dtype=float) for v in values]


@pytest.mark.parametrize("name", REFERENCES)
def test_published_least_norm_tensions(name):
    """planar_2r's inertia had to be made physical, which changes M by less than 1e-5."""
    q, qd, qdd, expected = arrays(*REFERENCES[name])
    found = InverseDynamics(make_dynamics(load(name), "numeric")).step(q, qd, qdd)
    assert found.status is PointStatus.FEASIBLE
    np.testing.assert_allclose(found.tensions, expected, atol=2e-6 if name == "bm_arm" else 1e-3)


@pytest.mark.parametrize(
    ("q", "f"),
    [([-0.5, 0.5], [41.3328, 10, 10, 14.039668]), ([0.5, -0.5], [10, 14.039668, 41.3328, 10])],
)
def test_mirrored_poses_have_mirrored_tensions(q, f):
    """Invariant 14 of the CASPR report, with its numbers."""
    found = InverseDynamics(make_dynamics(load("planar_2r"), "numeric")).step(np.array(q))
    np.testing.assert_allclose(found.tensions, f, atol=1e-4)  # four digits are published


@pytest.mark.parametrize("name", ["spherical_2s", "planar_xy"])
@pytest.mark.parametrize("method", ["least_norm", "least_maximum", "barycentre"])
def test_half_turn_of_a_symmetric_robot_permutes_the_tensions(name, method):
    """planar_xy about the middle of its frame; 2S is not quite symmetric: only its straight pose.

    The frame's corners and the platform's ends change places.
    """
    dynamics = make_dynamics(load(name), "numeric")
    inverse = InverseDynamics(dynamics, method)
    if name == "planar_xy":
        q, permutation = np.array([0.4, 0.45, 0.1]), [2, 3, 0, 1]
        turned = np.array([1.0 - q[0], 1.0 - q[1], q[2]])
        qdd = np.array([0.3, -0.2, 0.1])
        a = inverse.step(q, qdd=qdd).tensions
        b = inverse.step(turned, qdd=qdd * [-1.0, -1.0, 1.0]).tensions
        np.testing.assert_allclose(b, a[permutation], atol=1e-6)
    else:
        still = inverse.step(np.zeros(6))
        assert still.status in (PointStatus.FEASIBLE, PointStatus.INFEASIBLE)
        assert np.abs(still.needed).max() < 1e-12


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["planar_xy", "bm_arm"])
def test_forward_dynamics_of_inverse_dynamics(name, method):
    """FD(ID(qdd)) = qdd (invariant 5)."""
    dynamics = make_dynamics(load(name), "numeric")
    inverse, forward = InverseDynamics(dynamics, method), ForwardDynamics(dynamics)
    rng, tree = np.random.default_rng(1), dynamics.tree
    solved = 0
    for _ in range(10):
        q = tree.integrate(tree.home, 0.1 * rng.normal(size=tree.nv))
        qd, qdd = 0.2 * rng.normal(size=(2, tree.nv))
        load_ = 0.01 * rng.normal(size=tree.nv)
        found = inverse.step(q, qd, qdd, load_)
        if found.status is not PointStatus.FEASIBLE:
            continue
        solved += 1
        again = forward.step(q, qd, found.tensions, load_)
        scale = 1.0 / np.linalg.eigvalsh(dynamics.update(q, qd).mass_matrix)[0]
        np.testing.assert_allclose(again.qdd, qdd, atol=1e-6 * scale)
    assert solved > 3


def test_a_detour_on_the_own_link_changes_no_tension():
    """Invariant 8: more via points on the link where a muscle begins add length, no pull."""
    robot = load("bm_arm")
    detours = [
        dataclasses.replace(
            muscle,
            path=(ViaPoint(muscle.path[0].link, muscle.path[0].position + 0.1), *muscle.path),
        )
        for muscle in robot.muscles
    ]
    plain = make_dynamics(robot, "numeric")
    other = make_dynamics(dataclasses.replace(robot, muscles=tuple(detours)), "numeric")
    q, qdd = np.array([0.2, 0.1, 0.3, 0.4]), np.array([0.1, 0.2, -0.3, 0.4])
    lengths = [d.update(q, np.zeros(4)).muscle_lengths for d in (plain, other)]
    np.testing.assert_allclose(lengths[1] - lengths[0], 0.1 * np.sqrt(3.0))
    tensions = [InverseDynamics(d).step(q, qdd=qdd).tensions for d in (plain, other)]
    np.testing.assert_allclose(tensions[1], tensions[0], atol=1e-7)


def test_an_external_wrench_is_a_load():
    """A force that pulls the hand up takes away what the muscles hold: virtual work."""
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    q, wrench = np.array([0.3, 0.4]), np.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    loaded = external_load(dynamics, q, "tip", wrench)
    h = 1e-6
    for k, direction in enumerate(np.eye(2)):
        poses = [
            dynamics.operational(q + s * h * direction, np.zeros(2), "tip").position.copy()
            for s in (1, -1)
        ]
        turn = direction.sum() * np.array([0.0, 1.0, 0.0])
        work = wrench[:3] @ (poses[0] - poses[1]) / (2 * h) + wrench[3:] @ turn
        assert loaded[k] == pytest.approx(-work, abs=1e-8)
    still = InverseDynamics(dynamics).step(q)
    found = InverseDynamics(dynamics).step(q, external=loaded)
    np.testing.assert_allclose(found.needed, still.needed + loaded)


def test_a_ligament_stands_on_the_right():
    """Stretched forearm: the capsule pulls, the muscles hold it and the weight."""
    dynamics = make_dynamics(load("wrap_elbow"), "numeric")
    inverse = InverseDynamics(dynamics)
    found = inverse.step(np.array([0.02]), np.array([-0.5]), np.array([0.3]))
    ligament = dynamics.robot.muscles[2].actuator
    state = dynamics.update(np.array([0.02]), np.array([-0.5]))
    e = state.muscle_lengths[2] / ligament.slack_length - 1.0
    rate = float(state.muscle_jacobian[2] @ [-0.5]) / ligament.slack_length
    assert 0.0 < e < ligament.toe_strain
    elastic = ligament.stiffness * e**2 / (2 * ligament.toe_strain)
    expected = elastic + min(max(ligament.damping * rate, 0.0), elastic)
    assert found.tensions[2] == pytest.approx(expected, rel=1e-9)
    assert found.status is PointStatus.FEASIBLE
    balance = -state.muscle_jacobian.T @ found.tensions
    np.testing.assert_allclose(balance, found.needed, atol=1e-9)


def slider(**muscle):
    """A mass of 2 kg on a vertical rail between two cables."""
    joint = Joint("rail", "prismatic", WORLD, "mass", axes=(JointAxis(np.array([0, 0, 1.0])),))
    body = Inertia(2.0, np.zeros(3), np.eye(3))
    up = (ViaPoint(WORLD, np.array([0.0, 0, 1])), ViaPoint("mass", np.zeros(3)))
    down = (ViaPoint(WORLD, np.array([0.0, 0, -1])), ViaPoint("mass", np.zeros(3)))
    spring = Muscle("spring", down, 0.0, 50.0, **muscle)
    return Robot("slider", (Link("mass", body),), (joint,), (Muscle("top", up, 1.0, 80.0), spring))


def test_a_cable_that_nobody_winds_is_a_spring():
    robot = slider(actuator=Cable(stiffness=100.0, rest_length=0.9))
    dynamics = make_dynamics(robot, "numeric")
    found = InverseDynamics(dynamics, passive=["spring"]).step(np.array([0.05]))
    assert found.tensions[1] == pytest.approx(100.0 * (1.05 - 0.9))
    assert found.tensions[0] == pytest.approx(2.0 * 9.81 + found.tensions[1])
    slack = InverseDynamics(dynamics, passive=["spring"]).step(np.array([-0.2]))
    assert slack.tensions[1] == 0.0
    active = InverseDynamics(dynamics).step(np.array([0.05]))
    assert active.tensions[1] == pytest.approx(0.0, abs=1e-6)  # least norm lets it hang


def test_an_ideal_cable_cannot_be_passive():
    with pytest.raises(TensionLimitError, match="'top' is an ideal cable"):
        InverseDynamics(make_dynamics(slider(), "numeric"), passive=["top"])


def test_only_passive_muscles_leave_no_choice():
    robot = slider(actuator=Cable(stiffness=100.0, rest_length=0.9))
    robot = dataclasses.replace(robot, muscles=robot.muscles[1:])
    found = InverseDynamics(make_dynamics(robot, "numeric"), passive=["spring"]).step(np.zeros(1))
    assert found.status is PointStatus.NO_MUSCLES


def test_motors_give_what_muscles_do_not():
    robot = load("planar_2r")
    joints = [
        j if j.kind == "fixed" or j.name != "joint_1" else dataclasses.replace(j, motor=True)
        for j in robot.joints
    ]
    dynamics = make_dynamics(dataclasses.replace(robot, joints=tuple(joints)), "numeric")
    q, qdd = np.array([0.3, -0.5]), np.array([0.5, -0.3])
    found = InverseDynamics(dynamics).step(q, qdd=qdd)
    jacobian = dynamics.update(q, np.zeros(2)).muscle_jacobian
    assert found.status is PointStatus.FEASIBLE
    assert found.motor_forces[1] == 0.0
    np.testing.assert_allclose(
        -jacobian.T @ found.tensions + found.motor_forces, found.needed, atol=1e-6
    )
    # with a limit it is one more actuator: the muscles do what a weak motor cannot
    weak = [
        dataclasses.replace(j, axes=(dataclasses.replace(j.axes[0], effort=0.01),))
        if j.motor
        else j
        for j in joints
    ]
    dynamics = make_dynamics(dataclasses.replace(robot, joints=tuple(weak)), "numeric")
    shared = InverseDynamics(dynamics).step(q, qdd=qdd)
    assert shared.status is PointStatus.FEASIBLE
    assert abs(shared.motor_forces[0]) <= 0.01 + 1e-6
    np.testing.assert_allclose(
        -jacobian.T @ shared.tensions + shared.motor_forces, shared.needed, atol=1e-5
    )
    np.testing.assert_allclose(shared.residual, 0.0, atol=1e-5)
    # without muscles nobody does it, and that is proven
    bare = dataclasses.replace(robot, joints=tuple(weak), muscles=())
    found = InverseDynamics(make_dynamics(bare, "numeric")).step(q, qdd=qdd)
    assert found.status is not PointStatus.FEASIBLE


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_counts_a_limited_motor_as_an_actuator(method):
    """An answer of any of them moves the robot as asked, within all limits."""
    dynamics = make_dynamics(platform_arm(), "numeric")
    q = np.array([0.05, -0.02, 0.03, 0.4, 0.8])
    qdd = np.array([0.1, 0.2, -0.1, 0.3, -0.2])
    found = InverseDynamics(dynamics, method).step(q, qdd=qdd)
    if found.status is PointStatus.NOT_CONVERGED:
        assert method in ("closed_form", "improved_closed_form")
        return
    assert found.status is PointStatus.FEASIBLE
    jacobian = dynamics.update(q, np.zeros(5)).muscle_jacobian
    made = -jacobian.T @ found.tensions + found.motor_forces
    np.testing.assert_allclose(made, found.needed, atol=1e-4)
    assert np.all((found.tensions >= 2.0 - 1e-6) & (found.tensions <= 400.0 + 1e-6))
    assert np.all(np.abs(found.motor_forces[3:]) <= np.array(LIMITS) + 1e-6)
    assert np.all(found.motor_forces[:3] == 0.0)


def test_least_interaction_is_a_minimum():
    """No other tensions for the same motion load the joints less."""
    dynamics = make_dynamics(load("bm_arm"), "numeric")
    joints = len(dynamics.robot.joints)
    weights = np.zeros((joints, 6))
    weights[:, :3] = 1.0
    inverse = InverseDynamics(dynamics, "least_interaction", interaction_weights=weights)
    q = np.array([0.2, 0.1, 0.1, -0.4])
    found = inverse.step(q)
    assert found.status is PointStatus.FEASIBLE
    from cards_core.analysis.interaction import JointInteraction

    interaction = JointInteraction(dynamics)
    jacobian = dynamics.update(q, np.zeros(4)).muscle_jacobian.copy()

    def cost(f):
        return np.sum(interaction.solve(q, tensions=f).forces ** 2)

    rng = np.random.default_rng(3)
    null = np.linalg.svd(jacobian.T)[2][4:].T
    best = cost(found.tensions)
    tried = 0
    for _ in range(200):
        other = found.tensions + null @ rng.normal(size=2)
        if np.all((other >= 10.0) & (other <= 80.0)):
            tried += 1
            assert cost(other) > best - 1e-6 * best
    assert tried > 5
    assert best < cost(InverseDynamics(dynamics, "optimally_safe").step(q).tensions)


def test_bad_numbers_and_degenerate_robots_have_a_status():
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    inverse = InverseDynamics(dynamics)
    bad = inverse.step(np.array([np.nan, 0.0]))
    assert bad.status is PointStatus.NOT_FINITE
    assert np.isnan(bad.tensions).all()
    assert inverse.step(np.zeros(2), qdd=np.array([np.inf, 0])).status is PointStatus.NOT_FINITE
    assert inverse.step(np.zeros(2), qdd=np.array([1e4, 0])).status is PointStatus.INFEASIBLE
    none = InverseDynamics(make_dynamics(random_robot(1, n_muscles=0), "numeric"))
    tree = none._tree
    assert none.step(tree.home).status is PointStatus.NO_MUSCLES
    one = InverseDynamics(make_dynamics(random_robot(1, n_muscles=1), "numeric"))
    assert one.step(tree.home).status is PointStatus.RANK_DEFICIENT


@pytest.mark.parametrize("passive", [False, True])
def test_poses_beyond_the_limits_are_told_apart(passive):
    """The numbers are right, but no joint goes there; what cannot be held stays INFEASIBLE."""
    robot = load("planar_2r")
    if passive:
        spring = dataclasses.replace(
            robot.muscles[0], name="spring", actuator=Cable(stiffness=1e3), tension_min=0.0
        )
        robot = dataclasses.replace(robot, muscles=(*robot.muscles, spring))
    joints = tuple(
        dataclasses.replace(
            joint, axes=tuple(dataclasses.replace(a, lower=-0.55, upper=0.55) for a in joint.axes)
        )
        for joint in robot.joints
    )
    tight = dataclasses.replace(robot, joints=joints)
    names = ("spring",) if passive else ()
    free, limited = (
        InverseDynamics(make_dynamics(one, "numeric"), passive=names) for one in (robot, tight)
    )
    for q in ([0.5, -0.5], [0.3, -0.6], [-0.56, 0.1]):
        one, two = (item.step(np.array(q)) for item in (free, limited))
        assert one.status is PointStatus.FEASIBLE
        within = np.abs(q).max() < 0.55
        assert two.status is (PointStatus.FEASIBLE if within else PointStatus.OUTSIDE_LIMITS)
        np.testing.assert_allclose(two.tensions, one.tensions, rtol=1e-9)
    far = limited.step(np.array([0.3, -0.6]), qdd=np.array([1e4, 0.0]))
    assert far.status is PointStatus.INFEASIBLE


def test_track_is_step_by_step():
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    inverse = InverseDynamics(dynamics)
    q = np.array([[0.1, 0.2], [np.nan, 0], [0.3, -0.2]])
    track = inverse.track(q, qdd=np.ones((3, 2)))
    assert list(track.status) == [0, PointStatus.NOT_FINITE, 0]
    np.testing.assert_array_equal(track.tensions[2], inverse.step(q[2], qdd=np.ones(2)).tensions)
    with pytest.raises(ShapeError, match="2 rows"):
        inverse.track(q, np.zeros((2, 2)))
    with pytest.raises(CardsError, match="weights"):
        InverseDynamics(dynamics, "least_interaction", interaction_weights=np.ones((1, 6)))
