"""Inverse and forward kinematics: lengths of poses and back, or the reason why there are none."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.optimize import least_squares

from cards_core.analysis.forward_kinematics import METHODS, ForwardKinematics
from cards_core.analysis.inverse_kinematics import follow, inverse_kinematics
from cards_core.analysis.status import PointStatus
from cards_core.analysis.tangent import TangentSpace
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, ShapeError, UnknownNameError
from cards_core.formats import load
from random_robots import random_robot

PAPER_ROBOTS = ("planar_xy", "bm_arm", "ipanema_1", "spherical_2s")
SEEDS = range(8)


def many_muscles(seed, **options):
    """A random robot whose muscles fix its pose: three more than degrees of freedom."""
    robot = random_robot(seed, n_links=3, n_muscles=1, **options)
    nv = make_dynamics(robot, "numeric").tree.nv
    return make_dynamics(random_robot(seed, n_links=3, n_muscles=3 * nv + 3, **options), "numeric")


def swing(tree, count=40, reach=0.2):
    """A closed path around home: q (count, nq) and the velocities that belong to it."""
    rng = np.random.default_rng(tree.nv)
    amplitude = rng.uniform(0.5, 1.0, tree.nv) * reach
    phases = np.linspace(0.0, 2 * np.pi, count)
    return np.array([tree.integrate(tree.home, amplitude * np.sin(s)) for s in phases])


def distance(tree, a, b):
    return float(np.abs(tree.difference(a, b)).max())


# Tangent space ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_tangent_space_moves_like_the_tree(seed):
    tree = make_dynamics(random_robot(seed), "numeric").tree
    space, rng = TangentSpace(tree), np.random.default_rng(seed)
    for size in (1.0, 1e-5, 0.0):
        q, v = tree.random(rng), size * rng.normal(size=tree.nv)
        np.testing.assert_allclose(space.integrate(q, v), tree.integrate(q, v), atol=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_of_coordinates_and_charts(seed):
    """Both against differences of `Tree.integrate` along a motion with constant velocity."""
    tree = make_dynamics(random_robot(seed), "numeric").tree
    space, rng = TangentSpace(tree), np.random.default_rng(seed)
    q, qd, theta = tree.random(rng), rng.normal(size=tree.nv), rng.uniform(-1, 1, tree.nv)
    h = 1e-6
    numeric = (tree.integrate(q, h * qd) - tree.integrate(q, -h * qd)) / (2 * h)
    np.testing.assert_allclose(space.coordinate_rate(q, qd), numeric, atol=1e-9)
    here = tree.integrate(q, theta)
    ends = [tree.difference(tree.integrate(here, s * h * qd), q) for s in (1, -1)]
    np.testing.assert_allclose(
        space.chart_rate(theta, qd), (ends[0] - ends[1]) / (2 * h), atol=1e-8
    )


# Inverse kinematics ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_and_accelerations_are_derivatives_of_the_lengths(seed):
    dynamics = make_dynamics(random_robot(seed), "numeric")
    tree, rng = dynamics.tree, np.random.default_rng(seed)
    q, qd, qdd = tree.random(rng), rng.normal(size=tree.nv), rng.normal(size=tree.nv)
    found = inverse_kinematics(dynamics, q, qd, qdd)
    h = 1e-4

    def at(t):
        # body axes: the velocity is constant along qd, and qdd turns it
        return tree.integrate(q, t * qd + 0.5 * t * t * qdd)

    lengths = inverse_kinematics(dynamics, np.array([at(-h), q, at(h)])).lengths
    np.testing.assert_allclose(found.lengths[0], lengths[1], atol=1e-15)
    np.testing.assert_allclose(found.rates[0], (lengths[2] - lengths[0]) / (2 * h), atol=1e-6)
    second = (lengths[2] - 2 * lengths[1] + lengths[0]) / h**2
    np.testing.assert_allclose(found.accelerations[0], second, atol=1e-4)


def test_bad_points_have_a_status():
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    q = np.array([[0.1, 0.2], [np.nan, 0.0], [4.0, 0.0], [0.1, np.inf]])
    found = inverse_kinematics(dynamics, q)
    names = [PointStatus(s).name for s in found.status]
    assert names == ["FEASIBLE", "NOT_FINITE", "OUTSIDE_LIMITS", "NOT_FINITE"]
    assert np.isfinite(found.lengths[[0, 2]]).all()
    assert np.isnan(found.lengths[[1, 3]]).all()


def test_a_quaternion_that_is_none_has_a_status():
    dynamics = make_dynamics(random_robot(1, kinds=("ball",), n_links=1), "numeric")
    found = inverse_kinematics(dynamics, np.array([[1.0, 0, 0, 0], [2.0, 0, 0, 0]]))
    assert list(found.status) == [PointStatus.FEASIBLE, PointStatus.NOT_FINITE]


def test_wrong_shapes_raise():
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    with pytest.raises(ShapeError, match="joint_1, joint_2"):
        inverse_kinematics(dynamics, np.zeros((3, 3)))
    with pytest.raises(ShapeError, match="2 rows, expected 3"):
        inverse_kinematics(dynamics, np.zeros((3, 2)), np.zeros((2, 2)))


def test_a_hand_follows_its_path():
    """The circle is met, and the rates are its derivatives with the least joint motion."""
    dynamics = make_dynamics(load("roboy_arm"), "numeric")
    tree, still = dynamics.tree, np.zeros(4)
    start = dynamics.operational(tree.home, still).position.copy()
    t = np.linspace(0.0, 1.0, 21)
    away = np.column_stack([1 - np.cos(t), np.zeros_like(t), np.sin(t)])
    y, yd = start + 0.05 * away, 0.05 * np.column_stack([np.sin(t), 0 * t, np.cos(t)])
    ydd = 0.05 * np.column_stack([np.cos(t), 0 * t, -np.sin(t)])
    found = follow(dynamics, y, yd, ydd)
    assert set(found.status) == {PointStatus.FEASIBLE}
    for i in range(len(t)):
        state = dynamics.operational(found.q[i], found.qd[i])
        np.testing.assert_allclose(state.position, y[i], atol=1e-9)
        np.testing.assert_allclose(state.jacobian[:3] @ found.qd[i], yd[i], atol=1e-12)
        acceleration = state.jacobian[:3] @ found.qdd[i] + state.bias[:3]
        np.testing.assert_allclose(acceleration, ydd[i], atol=1e-12)
        null = np.linalg.svd(state.jacobian[:3])[2][3:]
        np.testing.assert_allclose(null @ found.qd[i], 0.0, atol=1e-12)


def test_a_path_out_of_reach_is_named():
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    y = np.array([[0.5, 0.0, 1.5], [3.0, 0.0, 0.0], [np.nan, 0.0, 1.0]])
    found = follow(dynamics, y, 0 * y, 0 * y)
    names = [PointStatus(value).name for value in found.status]
    assert names == ["FEASIBLE", "UNREACHABLE", "NOT_FINITE"]
    with pytest.raises(ShapeError, match=r"\(n, 3\)"):
        follow(dynamics, y[:, :2], y, y)


# Forward kinematics ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAPER_ROBOTS)
def test_round_trip_of_the_paper_s_robots(name):
    """Lengths of a path give the path back (invariant 6 of the CASPR report)."""
    dynamics = make_dynamics(load(name), "numeric")
    tree = dynamics.tree
    path = swing(tree)
    qd = np.random.default_rng(2).normal(size=(len(path), tree.nv))
    motion = inverse_kinematics(dynamics, path, qd)
    track = ForwardKinematics(dynamics).track(motion.lengths, motion.rates)
    assert set(track.status) == {PointStatus.FEASIBLE}
    assert max(distance(tree, a, b) for a, b in zip(track.q, path, strict=True)) < 1e-10
    np.testing.assert_allclose(track.qd, qd, atol=1e-8)
    assert track.residual.max() < 1e-11


@pytest.mark.parametrize("seed", SEEDS)
def test_round_trip_of_random_robots(seed):
    """Trees of all kinds of joints, with quaternions."""
    dynamics = many_muscles(seed)
    tree = dynamics.tree
    path = swing(tree)
    lengths = inverse_kinematics(dynamics, path).lengths
    track = ForwardKinematics(dynamics).track(lengths)
    assert set(track.status) == {PointStatus.FEASIBLE}
    assert max(distance(tree, a, b) for a, b in zip(track.q, path, strict=True)) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_noisy_lengths_have_the_minimum_that_scipy_finds(seed):
    dynamics = many_muscles(seed)
    tree, rng = dynamics.tree, np.random.default_rng(seed)
    q = tree.random(rng, span=0.3)
    lengths = inverse_kinematics(dynamics, q).lengths[0]
    lengths = lengths + 1e-3 * rng.normal(size=lengths.shape)
    found = ForwardKinematics(dynamics, initial=q).step(lengths)
    assert found.status is PointStatus.UNREACHABLE  # redundant lengths contradict each other
    still = np.zeros(tree.nv)

    def residual(v):
        return dynamics.update(tree.integrate(q, v), still).muscle_lengths - lengths

    oracle = least_squares(residual, still, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    ours = dynamics.update(found.q, still).muscle_lengths - lengths
    assert ours @ ours <= 2 * oracle.cost * (1 + 1e-9)
    gradient = dynamics.update(found.q, still).muscle_jacobian.T @ ours
    assert np.abs(gradient).max() < 1e-7 * np.linalg.norm(ours) * np.sqrt(len(ours))


@pytest.mark.parametrize("seed", SEEDS)
def test_limits_hold_and_the_minimum_within_them_is_scipy_s(seed):
    robot = random_robot(seed, n_links=3, n_muscles=12, kinds=("revolute", "prismatic"))
    axes = [dataclasses.replace(j.axes[0], lower=-0.2, upper=0.3) for j in robot.joints]
    joints = [dataclasses.replace(j, axes=(a,)) for j, a in zip(robot.joints, axes, strict=True)]
    dynamics = make_dynamics(dataclasses.replace(robot, joints=tuple(joints)), "numeric")
    free = make_dynamics(robot, "numeric")
    target = np.array([0.5, -0.4, 0.1])
    lengths = inverse_kinematics(free, target).lengths[0]
    found = ForwardKinematics(dynamics).step(lengths)
    assert found.status is PointStatus.UNREACHABLE
    assert np.all(found.q >= -0.2)
    assert np.all(found.q <= 0.3)
    still = np.zeros(3)
    oracle = least_squares(
        lambda q: dynamics.update(q, still).muscle_lengths - lengths,
        found.q.clip(-0.19, 0.29),
        bounds=(-0.2, 0.3),
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
    )
    ours = dynamics.update(found.q, still).muscle_lengths - lengths
    assert ours @ ours <= 2 * oracle.cost * (1 + 1e-6)


def test_limits_that_are_not_in_the_way_change_nothing():
    dynamics = make_dynamics(load("bm_arm"), "numeric")
    corner = dynamics.tree.upper.copy()
    lengths = inverse_kinematics(dynamics, corner).lengths[0]
    found = ForwardKinematics(dynamics, initial=0.9 * corner).step(lengths)
    assert found.status is PointStatus.FEASIBLE
    np.testing.assert_allclose(found.q, corner, atol=1e-9)


def test_unreachable_lengths_are_named():
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    found = ForwardKinematics(dynamics).step(np.array([9.0, 9.0, 9.0, 9.0]))
    assert found.status is PointStatus.UNREACHABLE
    assert np.isfinite(found.q).all()
    assert found.residual > 1.0


def test_nan_keeps_the_last_pose():
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    fk = ForwardKinematics(dynamics)
    q = np.array([0.2, -0.3])
    lengths = inverse_kinematics(dynamics, q).lengths[0]
    assert fk.step(lengths).status is PointStatus.FEASIBLE
    bad = fk.step(np.array([np.nan, *lengths[1:]]), np.zeros(4))
    assert bad.status is PointStatus.NOT_FINITE
    np.testing.assert_allclose(bad.q, q, atol=1e-10)
    assert np.isnan(bad.qd).all()
    assert fk.step(lengths).status is PointStatus.FEASIBLE


def test_too_few_muscles_are_rank_deficient():
    """Two lengths do not fix six coordinates, but there are poses with these lengths."""
    dynamics = make_dynamics(load("ipanema_1"), "numeric")
    q = np.array([0.1, 0.2, 1.1, 0.05, 0.0, -0.1])
    names = [m.name for m in dynamics.robot.muscles[:2]]
    lengths = inverse_kinematics(dynamics, q).lengths[0, :2]
    found = ForwardKinematics(dynamics, muscles=names).step(lengths, np.array([0.1, -0.2]))
    assert found.status is PointStatus.RANK_DEFICIENT
    assert found.residual < 1e-9
    jacobian = dynamics.update(found.q, np.zeros(6)).muscle_jacobian[:2]
    expected = np.linalg.pinv(jacobian) @ [0.1, -0.2]
    np.testing.assert_allclose(found.qd, expected, atol=1e-9)


def test_a_singular_pose_is_rank_deficient():
    """Both muscles run through the joint's axis in the stretched pose: no length changes."""
    robot = load("planar_2r")
    path = robot.muscles[0].path
    moved = dataclasses.replace(path[-1], position=np.zeros(3))
    muscle = dataclasses.replace(robot.muscles[0], path=(path[0], moved))
    second = dataclasses.replace(muscle, name="again")
    dynamics = make_dynamics(dataclasses.replace(robot, muscles=(muscle, second)), "numeric")
    lengths = inverse_kinematics(dynamics, np.zeros(2)).lengths[0]
    assert ForwardKinematics(dynamics).step(lengths).status is PointStatus.RANK_DEFICIENT


def test_no_muscles():
    dynamics = make_dynamics(random_robot(3, n_muscles=0), "numeric")
    found = ForwardKinematics(dynamics).step(np.zeros(0))
    assert found.status is PointStatus.NO_MUSCLES


class LostPaths:
    """Stands for a solver of wraps that finds no path and returns a guess."""

    def __init__(self, solver):
        self.solver, self.failures = solver, 0

    def solve(self, poses):
        self.failures += 1
        return self.solver.solve(poses)


def test_a_guessed_path_is_named():
    dynamics = make_dynamics(load("wrap_elbow"), "numeric")
    lengths = inverse_kinematics(dynamics, np.array([1.2])).lengths[0]
    assert ForwardKinematics(dynamics).step(lengths).status is PointStatus.FEASIBLE
    dynamics._geodesics = LostPaths(dynamics._geodesics)
    dynamics._paths.geodesics = dynamics._geodesics
    assert ForwardKinematics(dynamics).step(lengths).status is PointStatus.PATH_NOT_FOUND


def test_differential_drifts_and_hybrid_corrects():
    dynamics = make_dynamics(load("ipanema_1"), "numeric")
    tree = dynamics.tree
    path = swing(tree, count=200)
    lengths = inverse_kinematics(dynamics, path).lengths
    errors = {}
    for method in METHODS:
        fk = ForwardKinematics(dynamics, method, tolerance=0.01, correction_period=5)
        track = fk.track(lengths)
        assert set(track.status) == {PointStatus.FEASIBLE}
        errors[method] = max(distance(tree, a, b) for a, b in zip(track.q, path, strict=True))
    assert errors["least_squares"] < 1e-10
    assert errors["least_squares"] < errors["hybrid"] < errors["differential"] < 0.1


def test_differential_is_first_order_in_the_step():
    dynamics = make_dynamics(load("bm_arm"), "numeric")
    ends = []
    for count in (100, 200):
        path = swing(dynamics.tree, count=count + 1, reach=0.1)[: count // 4 + 1]
        fk = ForwardKinematics(dynamics, "differential", tolerance=1.0)
        track = fk.track(inverse_kinematics(dynamics, path).lengths)
        ends.append(distance(dynamics.tree, track.q[-1], path[-1]))
    assert 1.7 < ends[0] / ends[1] < 2.3


def test_drift_beyond_the_tolerance_is_named():
    dynamics = make_dynamics(load("ipanema_1"), "numeric")
    lengths = inverse_kinematics(dynamics, swing(dynamics.tree, count=10)).lengths
    track = ForwardKinematics(dynamics, "differential").track(lengths)
    assert PointStatus.NOT_CONVERGED in set(track.status)


def test_more_starts_find_what_one_misses():
    """The arm stands at home; from there it cannot fold to the other side."""
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    q = np.array([-2.12823179, -1.86437542])
    lengths = inverse_kinematics(dynamics, q).lengths[0]
    alone = ForwardKinematics(dynamics).step(lengths)
    more = ForwardKinematics(dynamics, starts=10).step(lengths)
    assert alone.status is PointStatus.UNREACHABLE
    assert more.status is PointStatus.FEASIBLE
    np.testing.assert_allclose(more.q, q, atol=1e-9)


def test_a_saddle_is_not_taken_for_a_minimum():
    """Lengths that are symmetric to a symmetric arm: the gradient vanishes where it starts."""
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    upright = np.zeros(2)
    lengths = np.array([0.2, 0.3, 0.2, 0.3])
    state = dynamics.update(upright, np.zeros(2))
    gradient = state.muscle_jacobian.T @ (state.muscle_lengths - lengths)
    assert np.abs(gradient).max() < 1e-12
    cost = np.sum((state.muscle_lengths - lengths) ** 2)
    found = ForwardKinematics(dynamics, initial=upright).step(lengths)
    ours = dynamics.update(found.q, np.zeros(2)).muscle_lengths - lengths
    assert found.status is PointStatus.UNREACHABLE
    assert ours @ ours < 0.9 * cost


def test_velocity_belongs_to_the_present_pose():
    """CASPR takes L of the step before; the difference is large when a step is."""
    dynamics = make_dynamics(load("bm_arm"), "numeric")
    path = swing(dynamics.tree, count=8)
    qd = np.ones((8, 4))
    motion = inverse_kinematics(dynamics, path, qd)
    track = ForwardKinematics(dynamics).track(motion.lengths, motion.rates)
    np.testing.assert_allclose(track.qd, qd, atol=1e-8)


def test_mistakes_are_named():
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    with pytest.raises(UnknownNameError, match="least_squares"):
        ForwardKinematics(dynamics, "newton")
    with pytest.raises(UnknownNameError, match="cable_1"):
        ForwardKinematics(dynamics, muscles=["cable"])
    with pytest.raises(CardsError, match="tolerance"):
        ForwardKinematics(dynamics, tolerance=0.0)
    with pytest.raises(ShapeError, match=r"expected \(4,\)"):
        ForwardKinematics(dynamics).step(np.zeros(3))
