"""A live target must be reached smoothly from wherever the reference is."""

import numpy as np
import pytest

from cards_core.spatial import quaternion_matrix, rotation_exp
from cards_core.trajectories import TrajectoryError
from cards_core.trajectories.pose_motion import MIN_DURATION, PoseMotion

MOVING = (np.array([0.1, 0.2]), np.array([0.3, -0.1]), np.array([0.5, 0.4]))


def test_position_starts_as_given_and_ends_at_rest():
    target = np.array([0.5, -0.1])
    motion = PoseMotion(MOVING, target, None, speed=0.25)
    assert motion.size == 2
    assert motion.duration == pytest.approx(15 / 8 * 0.5 / 0.25)
    for got, wanted in zip(motion(0.0), MOVING, strict=True):
        assert np.allclose(got, wanted, atol=1e-12)
    y, yd, ydd = motion(motion.duration)
    assert np.allclose(y, target)
    assert np.allclose(yd, 0.0, atol=1e-12)
    assert np.allclose(ydd, 0.0, atol=1e-12)


def test_from_rest_the_speed_is_kept():
    zero = np.zeros(2)
    motion = PoseMotion((zero, zero, zero), np.array([0.3, 0.4]), None, speed=0.25)
    speeds = [np.linalg.norm(motion(t)[1]) for t in np.linspace(0, motion.duration, 501)]
    assert max(speeds) == pytest.approx(0.25, rel=1e-6)


def test_rotation_turns_about_one_axis_and_derivatives_fit():
    rng = np.random.default_rng(5)
    first, turn = rotation_exp(rng.normal(size=3)), np.array([0.4, -0.7, 0.3])
    start = (np.concatenate([[0.1], first]), np.zeros(4), np.zeros(4))
    last = rotation_exp(turn)
    target = quaternion_matrix(last) @ quaternion_matrix(first)
    from cards_core.spatial import matrix_quaternion

    motion = PoseMotion(start, np.array([0.2]), matrix_quaternion(target), speed=0.5)
    assert motion.size == 5
    assert np.allclose(quaternion_matrix(motion(0.0)[0][1:]), quaternion_matrix(first))
    end = motion(motion.duration)
    assert np.allclose(quaternion_matrix(end[0][1:]), target, atol=1e-9)
    assert np.allclose(end[1], 0.0, atol=1e-9)
    h = 1e-6
    for t in (0.2, 0.5, 0.9):
        a, b = (quaternion_matrix(motion(t + s * h)[0][1:]) for s in (-1, 1))
        middle, rates, accelerations = motion(t)
        omega = (b - a) / (2 * h) @ quaternion_matrix(middle[1:]).T  # world-frame hat(omega)
        assert np.allclose([omega[2, 1], omega[0, 2], omega[1, 0]], rates[1:], atol=1e-6)
        finite = (motion(t + h)[1] - motion(t - h)[1]) / (2 * h)
        assert np.allclose(finite, accelerations, atol=1e-5)


def test_close_targets_are_smoothed_and_bad_ones_refused():
    zero = np.zeros(2)
    assert PoseMotion((zero, zero, zero), zero, None, speed=1.0).duration == MIN_DURATION
    with pytest.raises(TrajectoryError, match="position of the target"):
        PoseMotion((zero, zero, zero), np.array([np.nan, 0.0]), None, speed=1.0)
    start = (np.array([0.0, 1.0, 0.0, 0.0, 0.0]), np.zeros(4), np.zeros(4))
    with pytest.raises(TrajectoryError, match="unit length"):
        PoseMotion(start, np.zeros(1), np.array([0.0, 0.0, 0.0, 2.0]), speed=1.0)
