"""Offsets of incremental length sensors from poses that nobody knows."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import ShapeError, UnknownNameError
from cards_core.estimation import EstimationError, calibrate_lengths
from cards_core.estimation.offsets import offset_observability
from cards_core.formats import load
from random_robots import random_robot

NOISE = 1e-4


def held(robot, count, *, span=0.25, noise=NOISE, seed=0, first=0.02, around=None):
    """Readings of a robot that is held in poses, the first one near home; or all are around it."""
    rng = np.random.default_rng(seed)
    dynamics, tree = make_dynamics(robot, "numeric"), robot.tree
    q = np.array([tree.random(rng, span=span) for _ in range(count)])
    if around is not None:
        q = tree.home + rng.uniform(-around, around, q.shape)
        q = np.clip(q, tree.lower, tree.upper)
    q[0] = tree.integrate(tree.home, first * rng.normal(size=tree.nv))
    offsets = rng.normal(scale=0.2, size=len(robot.muscles))
    lengths = np.array([dynamics.update(row, np.zeros(tree.nv)).muscle_lengths for row in q])
    readings = lengths - offsets + noise * rng.normal(size=lengths.shape)
    return q, offsets, readings


@pytest.mark.parametrize("name", ["roboy_arm", "bm_arm"])
def test_exact_readings_give_exact_offsets(name):
    robot = load(name)
    q, offsets, readings = held(robot, 12, noise=0.0)
    found = calibrate_lengths(robot, readings, length_noise=1e-6)
    assert found, found
    np.testing.assert_allclose(found.offsets, offsets, atol=2e-6)
    np.testing.assert_allclose(found.q, q, atol=2e-5)
    assert found.rms < 1e-7


@pytest.mark.parametrize("name", ["spherical_2s", "ipanema_1"])
def test_poses_far_from_one_another_are_told_apart(name):
    """Where several poses have almost the same lengths: 2 more muscles than coordinates."""
    robot, wrong = load(name), 0
    for seed in range(12):
        _, offsets, readings = held(robot, 12, around=0.5, seed=seed)
        found = calibrate_lengths(robot, readings, length_noise=NOISE)
        error = np.abs(found.offsets - offsets).max()
        wrong += not (found and error < max(1e-3, 5.0 * found.offset_stds.max()))
    assert wrong <= 1


def test_standard_deviations_are_those_of_the_errors():
    """Over many sets of readings, error over standard deviation has the variance 1."""
    robot, ratios = load("bm_arm"), []
    for seed in range(25):
        _, offsets, readings = held(robot, 10, seed=seed)
        found = calibrate_lengths(robot, readings, length_noise=NOISE)
        assert found.converged
        ratios.append((found.offsets - offsets) / found.offset_stds)
    spread = np.mean(np.square(ratios), axis=0)
    # 25 squares of standard normal numbers: 99.9 % of their means lie within this
    assert spread.min() > 0.35
    assert spread.max() < 2.1


def test_more_poses_tell_more():
    robot = load("roboy_arm")
    few, many = (
        calibrate_lengths(robot, held(robot, count)[2], length_noise=NOISE) for count in (8, 40)
    )
    assert np.all(many.offset_stds < few.offset_stds)
    assert few.rms == pytest.approx(NOISE * np.sqrt(1.0 - (8 * 4 + 11) / 88.0), rel=0.3)


def test_joints_that_are_known_help():
    robot = load("planar_2r")
    q, offsets, readings = held(robot, 10)
    without = calibrate_lengths(robot, readings, length_noise=NOISE)
    joints = np.full_like(q, np.nan)
    joints[:, 0] = q[:, 0]
    found = calibrate_lengths(robot, readings, joints=joints, length_noise=NOISE, joint_noise=1e-4)
    assert np.all(found.offset_stds < without.offset_stds)
    assert np.abs((found.offsets - offsets) / found.offset_stds).max() < 4.0


def test_angles_count_as_lengths_do():
    """Three muscles and three angles are six numbers for the four coordinates of a pose."""
    full = load("bm_arm")
    robot = replace(full, muscles=tuple(full.muscles[row] for row in (0, 2, 5)))
    with pytest.raises(EstimationError, match="3 muscles and 0 known joints do not determine"):
        calibrate_lengths(robot, held(robot, 16, around=0.5)[2])
    right = 0
    for seed in range(12):
        q, offsets, readings = held(robot, 16, around=0.5, seed=seed)
        joints = np.full_like(q, np.nan)
        joints[:, [0, 1, 3]] = q[:, [0, 1, 3]]
        found = calibrate_lengths(
            robot, readings, joints=joints, length_noise=NOISE, joint_noise=1e-4
        )
        assert not found.undetermined
        assert found.offset_stds.max() < 2e-3
        error = np.abs((found.offsets - offsets) / found.offset_stds).max()
        right += bool(found) and error < 4.0
    assert right >= 11


def test_what_no_pose_tells_is_named():
    """Without redundancy nothing is; one pose alone tells nothing of a redundant robot either."""
    robot = load("planar_2r")
    two = replace(robot, muscles=robot.muscles[:2])
    _, _, readings = held(two, 10)
    found = calibrate_lengths(two, readings)
    assert found.undetermined == ("cable_1", "cable_2")
    assert not found
    _, _, readings = held(robot, 1)
    assert set(calibrate_lengths(robot, readings).undetermined) == {m.name for m in robot.muscles}


def test_prismatic_joints_agree_with_the_theory_of_offsets():
    """What `offset_observability` says of the same poses."""
    robot = load("planar_xy")
    q, _, readings = held(robot, 15, span=0.2)
    dynamics = make_dynamics(robot, "numeric")
    jacobians = [dynamics.update(row, np.zeros(3)).muscle_jacobian.copy() for row in q]
    theory = offset_observability(np.array(jacobians), [m.name for m in robot.muscles])
    found = calibrate_lengths(robot, readings, length_noise=NOISE, first=q[0])
    assert bool(theory) == (not found.undetermined)


def test_points_of_muscles_are_found_with_the_offsets():
    """Two muscles whose points on the arm are 4 mm off, as the description does not know."""
    robot = load("bm_arm")
    moved, truth = list(robot.muscles), {}
    for row in (0, 4):
        path = list(moved[row].path)
        place = path[1].position + np.array([0.003, -0.002, 0.0015])
        path[1] = replace(path[1], position=place)
        moved[row] = replace(moved[row], path=tuple(path))
        truth[f"{moved[row].name}/1"] = place
    real = replace(robot, muscles=tuple(moved))
    _, offsets, readings = held(real, 30, noise=2e-5, span=0.4)
    blind = calibrate_lengths(robot, readings, length_noise=2e-5)
    names = [moved[row].name for row in (0, 4)]
    found = calibrate_lengths(robot, readings, points_of=names, length_noise=2e-5)
    assert found.converged
    assert found.rms < 0.2 * blind.rms
    assert set(found.points) == set(truth)
    for name, place in truth.items():
        error = (found.points[name] - place) / found.point_stds[name]
        assert np.abs(error).max() < 4.0
        assert found.point_stds[name].max() < 2.5e-3
    assert np.abs((found.offsets - offsets) / found.offset_stds).max() < 4.0


def test_lengths_by_points_are_derivatives():
    from cards_core.estimation.length_calibration import _Problem

    robot = random_robot(3, n_links=3, n_muscles=8, kinds=("revolute", "ball"))
    straight = [m.name for m in robot.muscles if all(hasattr(e, "position") for e in m.path)]
    q, _, readings = held(robot, 2, span=0.1)
    problem = _Problem(robot, readings, None, straight[:2], (1e-3, 1e-3, 1.0, 1e-2))
    points = np.array([problem._position(k, j) for k, j in problem.points])
    _, jacobian = problem._evaluate(q, np.zeros(8), points, points)
    h, columns = 1e-6, jacobian.shape[1]
    for column in range(columns):
        step = np.zeros(columns)
        step[column] = h
        on = problem._evaluate(*problem._moved(q, np.zeros(8), points, step), points)[0]
        back = problem._evaluate(*problem._moved(q, np.zeros(8), points, -step), points)[0]
        np.testing.assert_allclose((on - back) / (2 * h), jacobian[:, column], atol=1e-3)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"readings": np.zeros((3, 2))},
            ShapeError,
            r"expected \(N, 4\), one for each of cable_1",
        ),
        ({"readings": np.full((3, 4), np.nan)}, ShapeError, "not finite"),
        ({"joints": np.zeros((2, 2))}, ShapeError, r"expected \(3, 2\)"),
        ({"points_of": ["cable_9"]}, UnknownNameError, "cable_1"),
        ({"length_noise": 0.0}, ShapeError, "length_noise"),
    ],
)
def test_bad_input_is_named(change, error, message):
    robot = load("planar_2r")
    given = {"readings": held(robot, 3)[2]} | change
    with pytest.raises(error, match=message):
        calibrate_lengths(robot, given.pop("readings"), **given)


def test_muscles_that_wrap_and_too_few_muscles_are_refused():
    robot = load("wrap_elbow")
    wrapping = next(m for m in robot.muscles if any(not hasattr(e, "position") for e in m.path))
    readings = np.zeros((2, len(robot.muscles)))
    with pytest.raises(EstimationError, match="wraps"):
        calibrate_lengths(robot, readings, points_of=[wrapping.name])
    two = load("planar_2r")
    with pytest.raises(EstimationError, match="1 muscles and 0 known joints do not determine"):
        calibrate_lengths(replace(two, muscles=two.muscles[:1]), np.zeros((2, 1)))
