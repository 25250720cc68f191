"""Live targets, smooth motions to them, and joint trajectory messages."""

import numpy as np
import pytest
from scipy.interpolate import BPoly

from cards_core.errors import UnknownNameError
from cards_core.spatial import quaternion_matrix, rotation_exp
from cards_core.trajectories import (
    LiveReference,
    TrajectoryError,
    TrajectoryPoint,
    from_joint_trajectory,
)
from cards_core.trajectories.live import MIN_DURATION, PoseMotion


def test_live_reference_holds_the_last_target():
    live = LiveReference(2, [0.1, 0.2])
    np.testing.assert_array_equal(live(5.0)[0], [0.1, 0.2])
    assert live.time is None
    live.set([1.0, 2.0], [0.3, 0.0], [0.0, 0.5], time=5.0)
    assert live.time == 5.0
    assert live.accepted == 1
    for got, wanted in zip(live(5.05), ([1, 2], [0.3, 0], [0, 0.5]), strict=True):
        np.testing.assert_array_equal(got, wanted)
    live.set([3.0, 3.0], time=5.01)
    assert not live(5.02)[1].any()
    np.testing.assert_array_equal(live.end, [3.0, 3.0])


def test_live_derivatives_lapse():
    live = LiveReference(1, derivative_timeout=0.2)
    live.set([1.0], [0.3], [0.1], time=1.0)
    assert live(1.2)[1] == 0.3
    y, yd, ydd = live(1.2001)
    assert (y, yd, ydd) == (1.0, 0.0, 0.0)


def test_live_reference_copies_what_it_is_given_and_gives():
    live = LiveReference(1)
    target = np.array([1.0])
    live.set(target, time=0.0)
    target[0] = 9.0
    live(0.0)[0][0] = 7.0
    assert live(0.0)[0] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([np.nan, 0.0],), "y is .*finite"),
        (([1.0],), r"y has shape \(1,\), expected \(2,\)"),
        (([1.0, 1.0], [np.inf, 0.0]), "yd is"),
        (([1.0, 1.0], None, [1.0]), "ydd has shape"),
        (("ab",), "y is"),
    ],
)
def test_live_reference_refuses_and_keeps_the_old_target(arguments, message):
    live = LiveReference(2)
    live.set([1.0, 2.0], time=3.0)
    with pytest.raises(TrajectoryError, match=message):
        live.set(*arguments, time=4.0)
    with pytest.raises(TrajectoryError, match="older"):
        live.set([5.0, 5.0], time=2.9)
    with pytest.raises(TrajectoryError, match="time"):
        live.set([5.0, 5.0], time=np.nan)
    np.testing.assert_array_equal(live(4.0)[0], [1.0, 2.0])
    assert live.accepted == 1
    assert live.time == 3.0


def test_live_reference_without_a_target_says_so():
    with pytest.raises(TrajectoryError, match="no target yet"):
        LiveReference(2)(0.0)
    with pytest.raises(TrajectoryError, match="size"):
        LiveReference(0)
    with pytest.raises(TrajectoryError, match="timeout"):
        LiveReference(1, derivative_timeout=-1.0)


# Messages --------------------------------------------------------------------------------------

P, V, A = np.random.default_rng(2).normal(size=(3, 3, 2))
TIMES = [0.5, 1.0, 2.5]


def points(*, velocities=True, accelerations=True):
    return [
        TrajectoryPoint(t, p, v if velocities else (), a if accelerations else ())
        for t, p, v, a in zip(TIMES, P, V, A, strict=True)
    ]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_message_is_interpolated_as_its_fields_allow(order):
    """With accelerations quintic, with velocities cubic, else linear; from the start point."""
    messages = points(velocities=order > 1, accelerations=order > 2)
    reference = from_joint_trajectory("ab", messages, start=[0.3, 0.4], start_velocity=[0.1, 0.2])
    states = [
        np.vstack([[[0.3, 0.4]], P]),
        np.vstack([[[0.1, 0.2]], V]),
        np.vstack([[[0.0, 0.0]], A]),
    ]
    theirs = BPoly.from_derivatives([0.0, *TIMES], np.stack(states[:order], axis=1))
    assert reference.duration == 2.5
    for t in np.linspace(0.0, 2.4999, 60):
        for nu, value in enumerate(reference(t)):
            np.testing.assert_allclose(value, theirs(t, nu), atol=1e-9)


def test_message_may_mix_orders():
    mixed = [
        TrajectoryPoint(0.0, P[0], V[0], A[0]),
        TrajectoryPoint(1.0, P[1], V[1]),
        TrajectoryPoint(2.0, P[2]),
    ]
    reference = from_joint_trajectory("ab", mixed)
    np.testing.assert_allclose(reference(np.nextafter(1.0, 0))[1], V[1], atol=1e-9)
    np.testing.assert_allclose(reference(1.5)[1], P[2] - P[1], atol=1e-12)


def test_message_is_put_into_the_robots_order():
    plain = from_joint_trajectory("ab", points(), start=[0.0, 1.0])
    swapped = from_joint_trajectory("ab", points(), joint_names=["b", "a"], start=[1.0, 0.0])
    assert swapped.coordinate_names == ("b", "a")
    for a, b in zip(plain(0.8), swapped(0.8), strict=True):
        np.testing.assert_allclose(a, b[::-1], atol=1e-13)


def test_single_point_is_a_motion_from_the_start_or_a_hold():
    reference = from_joint_trajectory("a", [TrajectoryPoint(2.0, [1.0], [0.0])], start=[0.0])
    assert reference(1.0)[0] == pytest.approx(0.5)
    hold = from_joint_trajectory("a", [TrajectoryPoint(0.0, [1.0])])
    assert (hold(0.0)[0], hold(0.0)[1], hold(5.0)[0]) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: from_joint_trajectory("ab", []), "without points"),
        (lambda: from_joint_trajectory("", [TrajectoryPoint(0.0, [])]), "joints are none"),
        (lambda: from_joint_trajectory("aa", points(), start=[0, 0]), "joints are a, a"),
        (lambda: from_joint_trajectory("a", points(), joint_names="ab"), "each of a, b once"),
        (lambda: from_joint_trajectory("ab", points()), "expected a start"),
        (lambda: from_joint_trajectory("ab", points(), start=[0.0]), "start has shape"),
        (lambda: from_joint_trajectory("abc", points(), start=[0] * 3), "positions of point 1"),
        (lambda: from_joint_trajectory("a", [TrajectoryPoint(-1.0, [0.0])]), "point 1 is at -1"),
        (lambda: from_joint_trajectory("a", [TrajectoryPoint(0, [0.0])] * 2), "point 2 is at 0 s"),
        (lambda: from_joint_trajectory("a", [TrajectoryPoint(np.nan, [0.0])]), "time of point 1"),
        (lambda: from_joint_trajectory("a", [TrajectoryPoint(0, [np.nan])]), "finite"),
        (lambda: from_joint_trajectory("a", [TrajectoryPoint(0, [0.0], [1, 2])]), "velocities of"),
        (
            lambda: from_joint_trajectory("a", [TrajectoryPoint(0, [0.0], (), [1.0])]),
            "accelerations but no velocities",
        ),
    ],
)
def test_refuses_bad_messages(call, message):
    with pytest.raises(TrajectoryError, match=message):
        call()


def test_unknown_joint_is_named():
    with pytest.raises(UnknownNameError, match=r"no joint named 'c'.*Known: a, b"):
        from_joint_trajectory("ac", points(), joint_names="ab")


# Motions to a pose -----------------------------------------------------------------------------


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
