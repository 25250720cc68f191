"""Motions that tell offsets of length sensors, and the bound of what lengths tell."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, ShapeError
from cards_core.estimation import EstimationError, offset_bound, plan_exciting_motion
from cards_core.shared_files import find_file
from cards_core.trajectories import from_dict, load_references
from random_robots import random_robot

NOISE, OFFSET, RATE = 2e-4, 2e-3, 40.0
SHARE = 0.6


def jacobians_on(dynamics, reference, until):
    still = np.zeros(dynamics.tree.nv)
    times = np.arange(round(until * RATE)) / RATE
    poses = reference.sample(times)[0]
    return np.array([dynamics.update(q, still).muscle_jacobian.copy() for q in poses])


def std(jacobians):
    return np.sqrt(np.diag(offset_bound(jacobians, NOISE, OFFSET)))


def reference_of(motion, tree):
    return from_dict(
        {"trajectories": {"found": motion.entry()}}, names=tree.position_names, source="test"
    )["found"]


@pytest.fixture(scope="module")
def motion(models):
    dynamics = models("roboy_arm")
    return plan_exciting_motion(dynamics, dynamics.tree.home, speed=0.8, tension_share=SHARE)


def test_the_bound_is_that_of_all_poses_and_offsets_together():
    """Of (q_1 .. q_K, b) with free poses, the block of b of the inverse of J'J/sigma^2."""
    rng = np.random.default_rng(1)
    poses, m, nv = 4, 6, 3
    jacobians = rng.standard_normal((poses, m, nv))
    stacked = np.zeros((poses * m, poses * nv + m))
    for k, jacobian in enumerate(jacobians):
        rows = slice(k * m, (k + 1) * m)
        stacked[rows, k * nv : (k + 1) * nv] = jacobian
        stacked[rows, poses * nv :] = np.eye(m)
    information = stacked.T @ stacked / 0.1**2
    information[poses * nv :, poses * nv :] += np.eye(m) / 2.0**2
    expected = np.linalg.inv(information)[poses * nv :, poses * nv :]
    assert np.allclose(offset_bound(jacobians, 0.1, 2.0), expected, rtol=1e-9)
    with pytest.raises(ShapeError, match=r"expected \(K, m, nv\)"):
        offset_bound(jacobians[0], 0.1, 2.0)


def test_what_one_pose_cannot_tell_stays_as_uncertain_as_before():
    jacobian = np.random.default_rng(2).standard_normal((6, 3))
    bound = offset_bound(np.array([jacobian] * 1000), 1e-4, OFFSET)
    basis = np.linalg.qr(jacobian)[0]
    assert np.allclose(basis.T @ bound @ basis, OFFSET**2 * np.eye(3), rtol=1e-6)


def test_poses_are_within_limits_speed_and_the_strength_of_the_muscles(models, motion):
    dynamics = models("roboy_arm")
    tree, robot = dynamics.tree, dynamics.robot
    assert np.array_equal(motion.points[0], tree.home)
    assert motion.duration == pytest.approx(10.0)
    reference = reference_of(motion, tree)
    q, qd, _ = reference.sample(np.linspace(0.0, motion.duration, 401))
    assert (q >= tree.lower - 1e-9).all()
    assert (q <= tree.upper + 1e-9).all()
    assert 0.4 < np.abs(qd).max() < 0.8 + 1e-9
    least = [m.tension_min for m in robot.muscles]
    most = [SHARE * m.tension_max for m in robot.muscles]
    for pose in q[::10]:
        state = dynamics.update(pose, np.zeros(tree.nv))
        found = lsq_linear(-state.muscle_jacobian.T, state.gravity, (least, most), tol=1e-12)
        assert np.abs(found.fun).max() < 1e-3 * np.abs(state.gravity).max()


def test_the_bound_it_states_is_that_of_its_readings(models, motion):
    dynamics = models("roboy_arm")
    assert np.allclose(motion.bound[0], OFFSET)
    assert (np.diff(motion.bound, axis=0) <= 1e-12).all()
    reference = reference_of(motion, dynamics.tree)
    for k in (4, 8):
        told = std(jacobians_on(dynamics, reference, k * motion.segment))
        assert np.allclose(told, motion.bound[k], rtol=0.1)
    assert motion.bound[-1].max() < 0.1e-3


def test_the_same_seed_gives_the_same_motion(models, motion):
    dynamics = models("roboy_arm")
    again = plan_exciting_motion(dynamics, dynamics.tree.home, speed=0.8, tension_share=SHARE)
    assert motion.points.tobytes() == again.points.tobytes()


def test_a_range_is_kept(models):
    dynamics = models("roboy_arm")
    home = dynamics.tree.home
    motion = plan_exciting_motion(
        dynamics, home, lower=home - 0.1, upper=home + 0.1, duration=2.0, segments=2
    )
    assert np.abs(motion.points - home).max() <= 0.1 + 1e-12
    assert np.abs(motion.points - home).max() > 0.05


def test_the_shipped_motion_tells_what_ordinary_ones_do_not(models):
    """The bounds in docs/muscle_relaxation.md."""
    dynamics = models("musashi_like")
    path = find_file("musashi_like", folder="config/trajectories", suffix=".yaml")
    references = load_references(path, names=dynamics.tree.position_names)
    bounds = [
        std(jacobians_on(dynamics, references[name], 10.0)).max()
        for name in ("find_offsets", "gestures")
    ]
    assert np.round(np.array(bounds) * 1e3, 2).tolist() == [0.08, 0.23]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": 0.0}, r"speed is 0.0 \(expected: a finite number > 0\)"),
        ({"segments": -1}, "segments is -1"),
        ({"duration": np.inf}, "duration is inf"),
        ({"lower": np.zeros(4), "upper": np.array([1.0, 1.0, -1.0, 1.0])}, "range of '.*' is 0"),
        ({"lower": np.zeros(3)}, r"has shape \(3,\), expected \(4,\)"),
        ({"tension_share": 1e-6}, "muscles of roboy_arm hold none of 300 poses"),
    ],
)
def test_what_makes_no_sense_is_refused(models, options, message):
    dynamics = models("roboy_arm")
    with pytest.raises(CardsError, match=message):
        plan_exciting_motion(dynamics, dynamics.tree.home, **options)


def test_ball_joints_and_poses_that_nothing_holds(models):
    free = make_dynamics(random_robot(4, n_links=1, kinds=("free",), n_muscles=12), "numeric")
    with pytest.raises(CardsError, match="has ball joints"):
        plan_exciting_motion(free, free.tree.home)
    dynamics = models("roboy_arm")
    with pytest.raises(EstimationError, match="expected: another start"):
        plan_exciting_motion(dynamics, dynamics.tree.home, tension_share=1e-6)
