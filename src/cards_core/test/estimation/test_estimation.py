"""Joint coordinates from noisy muscle lengths, against the truth they were made from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import chdtri

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, ShapeError
from cards_core.estimation import EstimationError, JointEstimator, observability
from random_robots import random_robot

DT = 0.002
NOISE = 2e-4
ROBOTS = ("roboy_arm", "planar_2r", "bm_arm", "ipanema_1", "wrap_elbow")


def lengths_at(dynamics, q):
    return dynamics.update(q, np.zeros(dynamics.tree.nv)).muscle_lengths.copy()


def swing(dynamics, steps, size=0.08):
    """A smooth motion near home: q (n, nq), qd (n, nv), lengths (n, m)."""
    tree = dynamics.tree
    home = tree.home
    amplitude = np.full(tree.nv, size)
    phase = np.linspace(0.0, 2.0, tree.nv)
    q, qd, lengths = [home], [], []
    for k in range(steps):
        t = k * DT
        rate = 2 * np.pi * 0.4
        qd.append(amplitude * rate * np.sin(rate * t) * np.cos(phase))
        lengths.append(lengths_at(dynamics, q[-1]))
        middle = amplitude * rate * np.sin(rate * (t + DT / 2)) * np.cos(phase)
        q.append(tree.integrate(q[-1], middle * DT))
    return np.array(q[:-1]), np.array(qd), np.array(lengths)


@pytest.mark.parametrize("name", ROBOTS)
def test_joints_follow_noisy_lengths_to_half_a_degree(models, name):
    dynamics = models(name)
    q, qd, lengths = swing(dynamics, 1000)
    rng = np.random.default_rng(1)
    estimator = JointEstimator(dynamics, NOISE)
    estimator.start(lengths[0] + NOISE * rng.standard_normal(lengths.shape[1]), near=q[0])
    errors, rates = [], []
    for k in range(1, len(q)):
        found = estimator.step(lengths[k] + NOISE * rng.standard_normal(lengths.shape[1]), DT)
        errors.append(dynamics.tree.difference(q[k], found.q))
        rates.append(qd[k] - found.qd)
        assert found.plausible
    rms = np.degrees(np.sqrt(np.mean(np.square(errors), axis=0)))
    # per joint; metres of a prismatic joint times 57: its half a degree is 9 mm
    assert rms.max() < 0.5
    assert np.sqrt(np.mean(np.square(rates[100:]))) < 0.5
    assert estimator.restarts == 0


@pytest.mark.parametrize("name", ROBOTS)
def test_the_covariance_is_that_of_the_errors(models, name):
    """Truth drawn from the filter's own model: errors are chi-square (NEES), and so are NIS."""
    monte_carlo(models(name))


def test_the_covariance_of_a_body_with_a_quaternion():
    robot = random_robot(4, n_links=1, kinds=("free",), n_muscles=12)
    monte_carlo(make_dynamics(robot, "numeric"))


def monte_carlo(dynamics):
    tree, nv, density, runs, steps = dynamics.tree, dynamics.tree.nv, 1.0, 40, 60
    rng = np.random.default_rng(2)
    block = np.array([[DT**3 / 3, DT**2 / 2], [DT**2 / 2, DT]]) * density**2
    root = np.linalg.cholesky(block)
    q0 = swing(dynamics, 1)[0][0]
    nees, nis, rows = [], 0.0, 0
    for _ in range(runs):
        q, qd = q0, 0.2 * rng.standard_normal(nv)
        estimator = JointEstimator(dynamics, NOISE, acceleration_noise=density)
        estimator.begin(tree.integrate(q, 1e-3 * rng.standard_normal(nv)), std=1e-3, rate_std=0.2)
        for _ in range(steps):
            noise = root @ rng.standard_normal((2, nv))
            q = tree.integrate(q, qd * DT + noise[0])
            qd = qd + noise[1]
            lengths = lengths_at(dynamics, q)
            found = estimator.step(lengths + NOISE * rng.standard_normal(len(lengths)), DT)
            nis, rows = nis + found.nis, rows + found.rows
        error = np.concatenate([tree.difference(q, found.q), qd - found.qd])
        nees.append(error @ np.linalg.solve(found.covariance, error))
    dof = runs * 2 * nv
    assert chdtri(dof, 0.9995) < sum(nees) < chdtri(dof, 0.0005)
    # innovations of one run are independent of each other
    assert chdtri(rows, 0.9995) < nis < chdtri(rows, 0.0005)


def test_two_half_steps_are_one_step(models):
    for name in ("roboy_arm", "ipanema_1"):
        dynamics = models(name)
        rng = np.random.default_rng(3)
        nothing = np.full(len(dynamics.robot.muscles), np.nan)
        once, twice = JointEstimator(dynamics), JointEstimator(dynamics)
        velocity = 0.1 * rng.standard_normal(dynamics.tree.nv)
        for estimator in (once, twice):
            estimator.begin(swing(dynamics, 1)[0][0])
            estimator.qd = velocity
            estimator.qd = (
                0.1 * rng.standard_normal(dynamics.tree.nv) if estimator is once else once.qd
            )
        whole = once.step(nothing, 0.01)
        twice.step(nothing, 0.005)
        halves = twice.step(nothing, 0.005)
        assert np.allclose(whole.q, halves.q, atol=1e-12)
        # the covariance of a turning ball is carried along to first order in the noise
        tolerance = 1e-12 if name == "roboy_arm" else 1e-5
        assert np.allclose(whole.covariance, halves.covariance, atol=tolerance)
        assert not whole.used.any()


def test_joseph_form_stays_positive(models):
    dynamics = models("roboy_arm")
    q, _, lengths = swing(dynamics, 2)
    estimator = JointEstimator(dynamics, 1e-6, acceleration_noise=1e-3)
    estimator.begin(q[0], std=1.0)
    for _ in range(20000):
        found = estimator.step(lengths[0], DT)
    assert np.array_equal(found.covariance, found.covariance.T)
    assert np.linalg.eigvalsh(found.covariance)[0] > 0.0


@pytest.mark.parametrize("error", [0.003, -0.003, 0.2])
def test_a_bad_muscle_is_left_out_named_and_let_in_again(models, error):
    dynamics = models("roboy_arm")
    q, _, lengths = swing(dynamics, 1200)
    rng = np.random.default_rng(4)
    estimator = JointEstimator(dynamics, NOISE)
    estimator.start(lengths[0], near=q[0])
    bad, worst = 3, 0.0
    for k in range(1, len(q)):
        measured = lengths[k] + NOISE * rng.standard_normal(11)
        wrong = 300 <= k < 700
        measured[bad] += error * wrong
        found = estimator.step(measured, DT)
        assert found.plausible
        worst = max(worst, float(np.abs(dynamics.tree.difference(q[k], found.q)).max()))
        if wrong:
            assert not found.used[bad]
            assert abs(found.residuals[bad]) > 4.0
            assert np.sign(found.residuals[bad]) == np.sign(error)
        if k in (320, 699):
            assert list(np.flatnonzero(found.suspect)) == [bad]
    assert not found.suspect.any()
    assert found.used[bad]
    assert np.degrees(worst) < 2.0  # 0.2 m would be a turn


def test_without_two_muscles_for_a_second(models):
    dynamics = models("roboy_arm")
    q, _, lengths = swing(dynamics, 1000)
    rng = np.random.default_rng(5)
    estimator = JointEstimator(dynamics, NOISE)
    estimator.start(lengths[0], near=q[0])
    errors = []
    for k in range(1, len(q)):
        measured = lengths[k] + NOISE * rng.standard_normal(11)
        valid = np.ones(11, dtype=bool)
        if 200 <= k < 700:
            measured[2] = np.nan
            valid[7] = False
        found = estimator.step(measured, DT, valid)
        assert found.used.sum() == (9 if 200 <= k < 700 else 11)
        assert np.isnan(found.residuals[2]) == (200 <= k < 700)
        errors.append(q[k] - found.q)
    assert np.degrees(np.sqrt(np.mean(np.square(errors), axis=0))).max() < 0.5


def test_a_blow_is_followed_and_no_muscle_is_blamed(models):
    """All muscles jump together: the prediction is wrong, not they."""
    dynamics = models("roboy_arm")
    q, _, lengths = swing(dynamics, 400)
    away = q[300] + np.array([0.08, -0.05, 0.1, 0.06])
    estimator = JointEstimator(dynamics, NOISE)
    estimator.start(lengths[0], near=q[0])
    rng = np.random.default_rng(6)
    for k in range(1, 300):
        estimator.step(lengths[k] + NOISE * rng.standard_normal(11), DT)
    there = lengths_at(dynamics, away)
    for _ in range(5):
        found = estimator.step(there + NOISE * rng.standard_normal(11), DT)
    assert found.plausible
    assert not found.suspect.any()
    assert np.abs(found.q - away).max() < np.radians(1.5)


def test_nonsense_is_called_so_and_the_pose_found_again_after_it(models):
    dynamics = models("roboy_arm")
    q, _, lengths = swing(dynamics, 2)
    estimator = JointEstimator(dynamics, NOISE)
    estimator.start(lengths[0], near=q[0])
    rng = np.random.default_rng(7)
    for _ in range(20):
        assert not estimator.step(rng.uniform(0.1, 0.6, 11), DT).plausible
        assert (estimator.q >= dynamics.tree.lower).all()
    for _ in range(50):
        found = estimator.step(lengths[0] + NOISE * rng.standard_normal(11), DT)
    assert found.plausible
    assert np.abs(found.q - q[0]).max() < np.radians(1.5)


def test_joint_limits_hold_and_the_others_move_along(models):
    dynamics = models("wrap_elbow")
    tree = dynamics.tree
    q = tree.home.copy()
    q[0] = tree.upper[0]
    lengths = lengths_at(dynamics, q)
    estimator = JointEstimator(dynamics, NOISE)
    estimator.begin(q)
    rng = np.random.default_rng(8)
    for _ in range(300):
        found = estimator.step(lengths + NOISE * rng.standard_normal(len(lengths)), DT)
        assert (found.q <= tree.upper).all()
        assert (found.q >= tree.lower).all()
        if found.q[0] == tree.upper[0]:
            assert found.qd[0] <= 0.0
    assert abs(found.q[0] - q[0]) < np.radians(0.5)


def test_rates_sharpen_the_velocity(models):
    dynamics = models("roboy_arm")
    q, qd, lengths = swing(dynamics, 600)
    errors = {}
    for given in (False, True):
        rng = np.random.default_rng(9)
        estimator = JointEstimator(dynamics, NOISE, rate_noise=1e-3)
        estimator.start(lengths[0], near=q[0])
        found = []
        for k in range(1, len(q)):
            rates = dynamics.update(q[k], qd[k]).muscle_jacobian @ qd[k]
            noisy = rates + 1e-3 * rng.standard_normal(11)
            if k % 7 == 0:
                noisy[4] = np.nan
            measured = lengths[k] + NOISE * rng.standard_normal(11)
            found.append(estimator.step(measured, DT, rates=noisy if given else None).qd)
        errors[given] = float(np.sqrt(np.mean(np.square(np.array(found)[50:] - qd[51:]))))
    assert errors[True] < 0.3 * errors[False]


@pytest.mark.parametrize("name", ROBOTS)
def test_cold_start_from_lengths_alone(models, name):
    dynamics = models(name)
    q = swing(dynamics, 200)[0][150]
    rng = np.random.default_rng(10)
    lengths = lengths_at(dynamics, q)
    lengths = lengths + NOISE * rng.standard_normal(len(lengths))
    found = JointEstimator(dynamics, NOISE).start(lengths)
    poses = [found.q, *found.others]
    far = [np.abs(dynamics.tree.difference(q, p)).max() for p in poses]
    assert min(far) < np.radians(3.0)
    assert "fits to" in found.statement
    assert (len(found.others) > 0) == ("other poses have the same lengths" in found.statement)


def test_cold_start_leaves_a_wrong_muscle_out(models):
    dynamics = models("roboy_arm")
    q, _, lengths = swing(dynamics, 100)
    measured = lengths[50].copy()
    measured[6] += 0.02
    estimator = JointEstimator(dynamics, NOISE)
    found = estimator.start(measured)
    assert found.excluded == (dynamics.robot.muscles[6].name,)
    assert found.excluded[0] in found.statement
    assert np.allclose(found.q, q[50], atol=1e-3)
    assert not estimator.step(measured, DT).used[6]


def test_lengths_of_no_pose_are_refused_with_the_worst_muscles(models):
    dynamics = models("roboy_arm")
    lengths = lengths_at(dynamics, dynamics.tree.home) + 0.05 * np.array([1, -1, 1] * 3 + [1, -1])
    with pytest.raises(EstimationError, match=r"no pose of roboy_arm .* off by .* mm"):
        JointEstimator(dynamics).start(lengths)


def test_what_no_length_tells_is_named(models):
    dynamics = models("roboy_arm")
    lengths = lengths_at(dynamics, dynamics.tree.home)
    few = np.zeros(11, dtype=bool)
    few[:2] = True
    with pytest.raises(EstimationError, match=r"rank of L is 2 of 4: no length tells "):
        JointEstimator(dynamics).start(lengths, valid=few)
    estimator = JointEstimator(dynamics)
    found = estimator.start(lengths, valid=few, allow_unobservable=True)
    assert found.observability.rank == 2
    assert np.isinf(found.observability.std).any()
    with pytest.raises(EstimationError, match="no muscle of roboy_arm has a valid length"):
        estimator.start(lengths, valid=np.zeros(11, dtype=bool))


def test_observability_of_known_matrices():
    jacobian = np.array([[0.1, 0.0, 0.1], [0.2, 0.0, 0.2], [0.0, 0.0, 0.3]])
    seen = observability(jacobian, 1e-4, ["a", "b", "c"])
    assert seen.rank == 2
    assert seen.unobservable == ("b",)
    assert np.allclose(seen.std[[0, 2]], 1e-4 * np.sqrt([1 / 0.05 + 1 / 0.09, 1 / 0.09]))
    assert np.isinf(seen.std[1])
    together = observability(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), 1e-4, ["a", "b", "c"])
    assert together.unobservable == ("a", "b")
    assert observability(np.eye(2), 1e-4, ["a", "b"])


def test_errors_say_what_would_be_right(models):
    dynamics = models("planar_2r")
    with pytest.raises(CardsError, match=r"length_noise is 0 \[m\] \(expected: numbers > 0\)"):
        JointEstimator(dynamics, 0)
    with pytest.raises(ShapeError, match="expected one number or 2"):
        JointEstimator(dynamics, acceleration_noise=np.ones(3))
    estimator = JointEstimator(dynamics)
    m = len(dynamics.robot.muscles)
    with pytest.raises(EstimationError, match="start"):
        estimator.step(np.ones(m), DT)
    estimator.begin(dynamics.tree.home)
    with pytest.raises(CardsError, match="dt is -1"):
        estimator.step(np.ones(m), -1.0)
    with pytest.raises(ShapeError, match="lengths has shape"):
        estimator.step(np.ones(m + 1), DT)
