"""Offsets of length sensors as states, and joint sensors beside lengths, against the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.special import chdtri

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, ShapeError
from cards_core.estimation import EstimationError, JointEstimator, offset_observability
from random_robots import random_robot

RATE = 40.0
NOISE = 2e-4
OFFSET = 2e-3
SMOOTH = 1.0
"""Acceleration noise of a motion with about 1 rad/s^2 that changes in a second."""


def motion(dynamics, duration):
    """Sines about the middle of the joint limits: q, qd, each with one row per sample."""
    tree = dynamics.tree
    k = np.arange(tree.nv)
    omega = 2.0 * np.pi * (0.23 + 0.05 * k)
    centre, reach = (tree.lower + tree.upper) / 2.0, (tree.upper - tree.lower) / 2.0
    size = np.minimum(0.7 * np.sqrt(2.0) / omega, 0.9 * reach)
    phase = np.outer(np.arange(round(duration * RATE)) / RATE, omega) + k
    return centre + size * np.sin(phase), size * omega * np.cos(phase)


def lengths_at(dynamics, q):
    return dynamics.update(q, np.zeros(dynamics.tree.nv)).muscle_lengths.copy()


def signs(rng, count):
    return rng.choice([-1.0, 1.0], count)


@pytest.mark.parametrize("offset", [0.0, OFFSET])
def test_the_moving_arm_is_followed_at_40_hz_and_its_offsets_are_found_in_10_s(models, offset):
    dynamics = models("roboy_arm")
    q, qd = motion(dynamics, 20.0)
    fastest = np.sqrt(np.mean(qd**2, axis=0)).max()
    assert 0.5 < fastest < 0.9
    for seed in range(3):
        rng = np.random.default_rng(seed)
        b = offset * signs(rng, 11)
        measured = [lengths_at(dynamics, row) + b + NOISE * rng.standard_normal(11) for row in q]
        estimator = JointEstimator(dynamics, NOISE, acceleration_noise=SMOOTH, offset_std=offset)
        estimator.start(measured[0], near=(dynamics.tree.lower + dynamics.tree.upper) / 2.0)
        found = [estimator.step(row, 1.0 / RATE) for row in measured[1:]]
        assert all(one.plausible for one in found)
        half = len(q) // 2
        errors = np.array([one.q for one in found[half:]]) - q[half + 1 :]
        assert np.degrees(np.sqrt(np.mean(errors**2, axis=0))).max() < 0.5
        there = found[half]
        assert np.abs(there.offsets - b).max() < 0.3e-3
        assert (np.abs(there.offsets - b) <= 4.0 * there.offset_std).all()
        assert np.array_equal(there.offsets, np.zeros(11)) == (offset == 0.0)
        assert there.offset_std.max() < 0.1 * OFFSET


@pytest.mark.parametrize("name", ["roboy_arm", "wrap_elbow", "planar_2r"])
def test_the_covariance_of_pose_and_offsets_is_that_of_their_errors(models, name):
    """Truth drawn from the filter's own model: errors are chi-square (NEES), and so are NIS."""
    monte_carlo(models(name))


def test_the_covariance_of_offsets_on_a_body_with_a_quaternion():
    robot = random_robot(4, n_links=1, kinds=("free",), n_muscles=12)
    monte_carlo(make_dynamics(robot, "numeric"))


def monte_carlo(dynamics):
    tree, nv, m = dynamics.tree, dynamics.tree.nv, len(dynamics.robot.muscles)
    density, dt, offset, runs, steps = 1.0, 0.002, 5e-4, 40, 60
    rng = np.random.default_rng(2)
    block = np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]]) * density**2
    root = np.linalg.cholesky(block)
    limited = np.isfinite(tree.lower).all() and np.isfinite(tree.upper).all()
    q0 = (tree.lower + tree.upper) / 2.0 if limited else tree.home
    nees, nis, rows = [], 0.0, 0
    for _ in range(runs):
        q, qd, b = q0, 0.2 * rng.standard_normal(nv), offset * rng.standard_normal(m)
        estimator = JointEstimator(dynamics, NOISE, acceleration_noise=density, offset_std=offset)
        estimator.begin(tree.integrate(q, 1e-3 * rng.standard_normal(nv)), std=1e-3, rate_std=0.2)
        for _ in range(steps):
            noise = root @ rng.standard_normal((2, nv))
            q = tree.integrate(q, qd * dt + noise[0])
            qd = qd + noise[1]
            lengths = lengths_at(dynamics, q) + b
            found = estimator.step(lengths + NOISE * rng.standard_normal(m), dt)
            nis, rows = nis + found.nis, rows + found.rows
        error = np.concatenate([tree.difference(q, found.q), qd - found.qd, b - found.offsets])
        nees.append(error @ np.linalg.solve(found.covariance, error))
    dof = runs * (2 * nv + m)
    assert chdtri(dof, 0.9995) < sum(nees) < chdtri(dof, 0.0005)
    assert chdtri(rows, 0.9995) < nis < chdtri(rows, 0.0005)


def test_offsets_that_are_almost_known_change_nothing(models):
    dynamics = models("roboy_arm")
    q, _ = motion(dynamics, 3.0)
    rng = np.random.default_rng(3)
    plain = JointEstimator(dynamics, NOISE)
    known = JointEstimator(dynamics, NOISE, offset_std=1e-9)
    for estimator in (plain, known):
        estimator.begin(q[0])
    for row in q[1:]:
        measured = lengths_at(dynamics, row) + NOISE * rng.standard_normal(11)
        one, other = plain.step(measured, 1.0 / RATE), known.step(measured, 1.0 / RATE)
        assert np.allclose(one.q, other.q, atol=1e-8)
        assert np.allclose(one.residuals, other.residuals, atol=1e-5)
    assert one.covariance.shape == (8, 8)
    assert other.covariance.shape == (19, 19)
    assert np.allclose(one.std, other.std, rtol=1e-6)


def test_only_some_sensors_have_offsets(models):
    dynamics = models("roboy_arm")
    q, _ = motion(dynamics, 4.0)
    rng = np.random.default_rng(4)
    std = np.zeros(11)
    std[[1, 6]] = OFFSET
    b = std * np.array([0, 1, 0, 0, 0, 0, -1, 0, 0, 0, 0])
    estimator = JointEstimator(dynamics, NOISE, acceleration_noise=SMOOTH, offset_std=std)
    estimator.start(lengths_at(dynamics, q[0]) + b, near=q[0])
    for row in q[1:]:
        measured = lengths_at(dynamics, row) + b + NOISE * rng.standard_normal(11)
        found = estimator.step(measured, 1.0 / RATE)
    assert np.abs(found.offsets - b).max() < 1e-4
    assert not found.offsets[std == 0.0].any()
    assert not found.offset_std[std == 0.0].any()


def test_a_blow_and_nonsense_leave_the_offsets_as_they_are(models):
    dynamics = models("roboy_arm")
    q, _ = motion(dynamics, 10.0)
    rng = np.random.default_rng(5)
    b = OFFSET * signs(rng, 11)
    estimator = JointEstimator(dynamics, NOISE, acceleration_noise=SMOOTH, offset_std=OFFSET)
    estimator.start(lengths_at(dynamics, q[0]) + b, near=q[0])
    for row in q[1:]:
        estimator.step(lengths_at(dynamics, row) + b + NOISE * rng.standard_normal(11), 1.0 / RATE)
    known = estimator.offsets
    assert np.abs(known - b).max() < 5e-4
    there = q[-1] + np.array([-0.1, 0.3, 0.1, -0.1])
    for _ in range(5):
        measured = lengths_at(dynamics, there) + b + NOISE * rng.standard_normal(11)
        found = estimator.step(measured, 1.0 / RATE)
    assert found.plausible
    assert not found.suspect.any()
    assert np.abs(found.q - there).max() < np.radians(2.0)
    assert np.abs(found.offsets - b).max() < 5e-4
    for _ in range(20):
        assert not estimator.step(rng.uniform(0.1, 0.6, 11), 1.0 / RATE).plausible
    away = np.array([1.4, -1.0, 0.2, -1.2])
    for _ in range(300):
        measured = lengths_at(dynamics, away) + b + NOISE * rng.standard_normal(11)
        found = estimator.step(measured, 1.0 / RATE)
    assert found.plausible
    assert np.abs(found.q - away).max() < np.radians(2.0)
    assert np.abs(found.offsets - b).max() < 5e-4


def test_a_muscle_that_slips_later_is_left_out(models):
    dynamics = models("roboy_arm")
    q, _ = motion(dynamics, 12.0)
    rng = np.random.default_rng(6)
    b = OFFSET * signs(rng, 11)
    estimator = JointEstimator(dynamics, NOISE, acceleration_noise=SMOOTH, offset_std=OFFSET)
    estimator.start(lengths_at(dynamics, q[0]) + b, near=q[0])
    for k, row in enumerate(q[1:]):
        measured = lengths_at(dynamics, row) + b + NOISE * rng.standard_normal(11)
        measured[4] += 0.005 * (k > 420)
        found = estimator.step(measured, 1.0 / RATE)
    assert list(np.flatnonzero(found.suspect)) == [4]
    assert np.abs(found.offsets - b).max() < 5e-4


# Which offsets can be told -------------------------------------------------------------------


def test_constant_moment_arms_are_refused_and_named(models):
    dynamics = models("antagonist_joint")
    lengths = lengths_at(dynamics, dynamics.tree.home)
    estimator = JointEstimator(dynamics, NOISE, offset_std=OFFSET)
    with pytest.raises(EstimationError, match=r"the offsets of .*, .*: 1 of 2 dir"):
        estimator.start(lengths)
    estimator.start(lengths, allow_unobservable=True)
    rng = np.random.default_rng(7)
    for k in range(400):
        q = np.array([0.5 * np.sin(0.02 * k)])
        measured = lengths_at(dynamics, q) + NOISE * rng.standard_normal(2)
        found = estimator.step(measured, 1.0 / RATE)
    # the sum is told, the difference never
    weight = np.linalg.inv(found.covariance[2:, 2:])
    assert found.offset_std.min() > 0.5 * OFFSET
    assert 1.0 / np.sqrt(np.linalg.eigvalsh(weight)[-1]) < 0.02 * OFFSET


def test_no_redundancy_is_refused(models):
    dynamics = models("roboy_arm")
    lengths = lengths_at(dynamics, dynamics.tree.home)
    few = np.zeros(11, dtype=bool)
    few[[0, 3, 6, 9]] = True
    with pytest.raises(EstimationError, match="0 of 4 directions can be told"):
        JointEstimator(dynamics, offset_std=OFFSET).start(lengths, valid=few)


def test_a_joint_sensor_tells_what_lengths_cannot(models):
    dynamics = models("antagonist_joint")
    rng = np.random.default_rng(8)
    b = np.array([OFFSET, OFFSET / 2])
    estimator = JointEstimator(dynamics, NOISE, offset_std=OFFSET, joint_noise=2e-3)
    q = np.zeros(1)
    estimator.start(lengths_at(dynamics, q) + b, joints=q)
    for k in range(400):
        q = np.array([0.5 * np.sin(0.02 * k)])
        measured = lengths_at(dynamics, q) + b + NOISE * rng.standard_normal(2)
        found = estimator.step(measured, 1.0 / RATE, joints=q + 2e-3 * rng.standard_normal(1))
    assert found.joint_used.all()
    assert np.abs(found.offsets - b).max() < 0.05e-3
    assert (np.abs(found.offsets - b) < 4.0 * found.offset_std).all()


def test_observability_of_offsets_against_stacked_null_spaces():
    """A direction is hidden iff it is orthogonal to the left null space of L at every pose."""
    rng = np.random.default_rng(9)
    names = list("abcdef")
    first = rng.standard_normal((6, 3))
    for poses in range(1, 5):
        jacobians = np.array([first, *rng.standard_normal((poses - 1, 6, 3))])
        seen = offset_observability(jacobians, names)
        stacked = np.hstack([null_space(one.T) for one in jacobians])
        assert seen.rank == np.linalg.matrix_rank(stacked) == min(6, 3 * poses)
        assert bool(seen) == (poses > 1)
    # the same L everywhere: as one pose, and hidden are all of its columns' muscles
    same = offset_observability(np.array([first] * 5), names)
    assert same.rank == 3
    assert same.unobservable == tuple(names)
    assert np.allclose(same.information, [0, 0, 0, 1, 1, 1], atol=1e-12)


def test_parts_of_a_robot_are_told_apart():
    # muscles a, b at one joint with constant arms; c, d, e at another whose arms change
    def at(x):
        return np.array([[0.1, 0], [-0.1, 0], [0, x], [0, 0.1], [0, -x * x]])

    jacobians = np.array([at(x) for x in (0.05, 0.1, 0.2)])
    seen = offset_observability(jacobians, list("abcde"))
    assert seen.unobservable == ("a", "b")
    assert seen.rank == 4
    hidden = seen.directions[0]
    assert np.allclose(np.abs(hidden[:2]), np.sqrt(0.5))
    sensor = np.array([True, False])
    assert offset_observability(jacobians, list("abcde"), measured=sensor)
    known = np.array([False, True, True, True, True])
    assert offset_observability(jacobians, list("abcde"), uncertain=known)
    with pytest.raises(ShapeError, match="k >= 1"):
        offset_observability(np.zeros((0, 5, 2)), list("abcde"))


# Joint sensors -------------------------------------------------------------------------------


def test_joint_sensors_sharpen_and_may_be_lost(models):
    dynamics = models("roboy_arm")
    q, _ = motion(dynamics, 6.0)
    errors = {}
    for given in (False, True):
        rng = np.random.default_rng(10)
        estimator = JointEstimator(dynamics, NOISE, joint_noise=[1e-3, 1e-3, 1e-3, np.inf])
        estimator.begin(q[0])
        found = []
        for k, row in enumerate(q[1:]):
            measured = lengths_at(dynamics, row) + NOISE * rng.standard_normal(11)
            read = row + 1e-3 * rng.standard_normal(4)
            if k % 5 == 0:
                read[1] = np.nan
            one = estimator.step(measured, 1.0 / RATE, joints=read if given else None)
            assert list(one.joint_used) == [given, given and k % 5 != 0, given, False]
            assert one.rows == 11 + one.joint_used.sum()
            assert np.isnan(one.joint_residuals[3])
            found.append(one.q)
        errors[given] = np.sqrt(np.mean((np.array(found) - q[1:])[20:] ** 2, axis=0))
    assert (errors[True][:3] < 2e-3).all()
    assert errors[True][2] < 0.3 * errors[False][2]


def test_a_wrong_joint_sensor_is_left_out_named_and_let_in_again(models):
    dynamics = models("roboy_arm")
    q, _ = motion(dynamics, 15.0)
    rng = np.random.default_rng(11)
    estimator = JointEstimator(dynamics, NOISE, joint_noise=2e-3)
    estimator.begin(q[0])
    for k, row in enumerate(q[1:]):
        measured = lengths_at(dynamics, row) + NOISE * rng.standard_normal(11)
        read = row + 2e-3 * rng.standard_normal(4)
        wrong = 150 <= k < 300
        read[1] += 0.3 * wrong
        found = estimator.step(measured, 1.0 / RATE, joints=read)
        assert found.plausible
        assert np.degrees(np.abs(found.q - row).max()) < 3.0
        if wrong:
            assert not found.joint_used[1]
            assert found.joint_residuals[1] > 4.0
        if k in (170, 299):
            assert list(np.flatnonzero(found.joint_suspect)) == [1]
            assert not found.suspect.any()
    assert not found.joint_suspect.any()


def test_joint_sensors_carry_what_no_length_tells(models):
    dynamics = models("roboy_arm")
    q, _ = motion(dynamics, 4.0)
    rng = np.random.default_rng(12)
    few = np.zeros(11, dtype=bool)
    few[9:] = True  # the elbow's
    lengths = [lengths_at(dynamics, row) + NOISE * rng.standard_normal(11) for row in q]
    estimator = JointEstimator(dynamics, NOISE, joint_noise=2e-3)
    with pytest.raises(EstimationError, match="no length tells"):
        estimator.start(lengths[0], valid=few, near=q[0])
    without_elbow = q.copy()
    without_elbow[:, 3] = np.nan
    estimator.start(lengths[0], valid=few, joints=without_elbow[0])
    for row, measured, read in zip(q[1:], lengths[1:], without_elbow[1:], strict=True):
        noisy = read + 2e-3 * rng.standard_normal(4)
        found = estimator.step(measured, 1.0 / RATE, few, joints=noisy)
        assert np.degrees(np.abs(found.q - row).max()) < 2.0
    assert found.used.sum() == 2


def test_a_sensor_of_orientation():
    robot = random_robot(4, n_links=1, kinds=("free",), n_muscles=12)
    dynamics = make_dynamics(robot, "numeric")
    tree = dynamics.tree
    rng = np.random.default_rng(13)
    estimator = JointEstimator(dynamics, NOISE, joint_noise=1e-3)
    q = tree.home
    estimator.begin(q)
    velocity = 0.2 * rng.standard_normal(6)
    for k in range(100):
        q = tree.integrate(q, velocity / RATE)
        read = tree.integrate(q, 1e-3 * rng.standard_normal(6))
        read[3:] *= 1.0 - 2.0 * (k % 2)  # q and -q are one orientation
        found = estimator.step(np.full(12, np.nan), 1.0 / RATE, joints=read)
    assert found.rows == 6
    assert np.abs(tree.difference(q, found.q)).max() < 3e-3
    read[4] = np.nan  # a quaternion without one number is none
    assert estimator.step(np.full(12, np.nan), 1.0 / RATE, joints=read).rows == 3


def test_errors_say_what_would_be_right(models):
    dynamics = models("planar_2r")
    for bad in (-1e-3, np.nan, np.inf):
        with pytest.raises(CardsError, match=r"offset_std is .* \[m\] \(expected: numbers >= 0\)"):
            JointEstimator(dynamics, offset_std=bad)
    for bad in (0.0, np.nan):
        with pytest.raises(CardsError, match=r"joint_noise is .* numbers > 0"):
            JointEstimator(dynamics, joint_noise=bad)
    lengths = lengths_at(dynamics, dynamics.tree.home)
    estimator = JointEstimator(dynamics)
    estimator.begin(dynamics.tree.home)
    with pytest.raises(CardsError, match=r"without their noise \(expected: joint_noise\)"):
        estimator.step(lengths, 0.01, joints=np.zeros(2))
    estimator = JointEstimator(dynamics, joint_noise=1e-3)
    estimator.begin(dynamics.tree.home)
    with pytest.raises(ShapeError, match=r"joints has shape .*joint_1, joint_2"):
        estimator.step(lengths, 0.01, joints=np.zeros(3))
