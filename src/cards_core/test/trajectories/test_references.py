"""What every kind of reference promises: exact derivatives, holding the ends, fresh arrays."""

import itertools

import numpy as np
import pytest

from cards_core.trajectories import (
    Circle,
    EulerRotation,
    Flower,
    Hold,
    PointToPoint,
    Rhythm,
    Sequence,
    Stack,
    TrajectoryError,
    TrajectoryPoint,
    cubic_average_spline,
    cubic_spline,
    from_joint_trajectory,
    linear_spline,
    parabolic_blend,
    quintic_spline,
    rotation_spline,
    with_approach,
)

RNG = np.random.default_rng(11)
TIMES = [0.0, 0.7, 2.0, 3.1]
POINTS = RNG.uniform(-1.0, 1.0, (4, 3))
VELOCITIES = RNG.uniform(-1.0, 1.0, (4, 3))
ACCELERATIONS = RNG.uniform(-1.0, 1.0, (4, 3))
PLANE = {"axes": ([1, 0, 0], [0, 0, 1])}


def all_kinds():
    p2p = PointToPoint(POINTS[0], POINTS[1], 1.5)
    moving = quintic_spline(TIMES, POINTS, VELOCITIES, ACCELERATIONS)
    messages = [
        TrajectoryPoint(0.5, POINTS[0], VELOCITIES[0], ACCELERATIONS[0]),
        TrajectoryPoint(1.0, POINTS[1], VELOCITIES[1]),
        TrajectoryPoint(2.5, POINTS[2]),
    ]
    return {
        "point_to_point": p2p,
        "linear": linear_spline(TIMES, POINTS),
        "cubic": cubic_spline(TIMES, POINTS, VELOCITIES),
        "cubic_average": cubic_average_spline(TIMES, POINTS, VELOCITIES[0], VELOCITIES[3]),
        "quintic": moving,
        "parabolic_blend": parabolic_blend(TIMES, POINTS, [0.2, 0.6, 0.1]),
        "caspr_sampling": quintic_spline(TIMES, POINTS, caspr_time_step=0.03),
        "flower": Flower([0.4, -0.4, 0.5], 0.15, 6.0, **PLANE),
        "flower_even": Flower([0.4, -0.4], 0.15, 6.0, petals=8, angle=0.3, repeats=2),
        "circle": Circle([0.1, 0.2, 0.3], 0.5, 4.0, normal=[1, 2, 3], revolutions=-1.5, angle=0.4),
        "rhythm": Rhythm(POINTS[0], [0.3, 0.0, 0.2], 0.7, 9.0, phases=POINTS[1], begin=POINTS[2]),
        "hold": Hold([1.0, 2.0], 3.0),
        "euler_xyz": EulerRotation(TIMES, POINTS),
        "fixed_xyz": EulerRotation(TIMES, POINTS, convention="fixed_xyz"),
        "spatial": rotation_spline(
            "quintic", TIMES, np.hstack([POINTS, POINTS[::-1]]), [((5, 3, 4), "euler_xyz")]
        ),
        "stack": Stack([((2, 0, 1), p2p), ((3, 4, 5), moving)]),
        "sequence": Sequence([p2p, Hold(POINTS[1], 0.4), PointToPoint(POINTS[1], POINTS[2], 1)]),
        "approach": with_approach(moving, POINTS[3] + 1.0, 0.8),
        "message": from_joint_trajectory("abc", messages, start=POINTS[3]),
    }


KINDS = all_kinds()
each_kind = pytest.mark.parametrize("kind", KINDS)


def difference(function, t, h):
    """Central difference of fourth order."""
    return (
        8.0 * (function(t + h) - function(t - h)) - (function(t + 2 * h) - function(t - 2 * h))
    ) / (12.0 * h)


@each_kind
def test_derivatives_are_those_of_finite_differences(kind):
    reference = KINDS[kind]
    for begin, end in itertools.pairwise(reference.breaks):
        if end - begin < 1e-6:
            continue
        # fractions away from the breaks, where the stencil would reach into the next piece
        for fraction in (0.02, 0.13, 0.37, 0.5, 0.71, 0.98):
            t = begin + fraction * (end - begin)
            h = 2e-4 * (end - begin)
            _, yd, ydd = reference(t)
            scale = 1e-7 * max(1.0, np.abs(ydd).max())
            np.testing.assert_allclose(difference(lambda x: reference(x)[0], t, h), yd, atol=scale)
            np.testing.assert_allclose(
                difference(lambda x: reference(x)[1], t, h), ydd, atol=scale
            )


@each_kind
def test_holds_both_ends_at_rest(kind):
    reference = KINDS[kind]
    last = reference(reference.duration)[0]
    np.testing.assert_array_equal(reference.end, last)
    for t, point in (
        (-1e-12, reference.start),
        (-5.0, reference.start),
        (np.nextafter(reference.duration, np.inf), last),
        (reference.duration + 100.0, last),
    ):
        y, yd, ydd = reference(t)
        np.testing.assert_allclose(y, point, atol=1e-14)
        assert not yd.any()
        assert not ydd.any()


@each_kind
def test_position_has_no_jump(kind):
    reference = KINDS[kind]
    for t in reference.breaks:
        before, after = reference(t - 1e-9)[0], reference(t + 1e-9)[0]
        np.testing.assert_allclose(before, after, atol=1e-7)


@each_kind
def test_sample_agrees_with_calls(kind):
    reference = KINDS[kind]
    inside = np.random.default_rng(3).uniform(-0.5, reference.duration + 0.5, 60)
    times = np.concatenate([inside, reference.breaks, [-1.0, reference.duration + 1.0]])
    sampled = reference.sample(times)
    for k, t in enumerate(times):
        for got, wanted in zip(sampled, reference(t), strict=True):
            assert got.shape == (times.size, reference.size)
            np.testing.assert_allclose(got[k], wanted, atol=1e-11)
    assert reference.sample([])[0].shape == (0, reference.size)


@each_kind
def test_returns_fresh_arrays(kind):
    reference = KINDS[kind]
    for t in (-1.0, 0.0, 0.4 * reference.duration, reference.duration, reference.duration + 1.0):
        first = [x.copy() for x in reference(t)]
        for array in reference(t):
            array += 1.0
        for kept, again in zip(first, reference(t), strict=True):
            np.testing.assert_array_equal(kept, again)
            assert again.shape == (reference.size,)
            assert again.dtype == np.float64


@each_kind
def test_sample_refuses_what_is_not_a_list_of_times(kind):
    with pytest.raises(TrajectoryError, match="times"):
        KINDS[kind].sample([0.0, np.nan])
    with pytest.raises(TrajectoryError, match="times"):
        KINDS[kind].sample([[0.0], [1.0]])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Hold([1.0, np.inf]), "finite"),
        (lambda: Hold([]), "shape"),
        (lambda: Hold("ab"), "list of numbers"),
        (lambda: Hold([1.0], -1.0), "0 or more"),
        (lambda: PointToPoint([0.0], [1.0, 2.0], 1.0), r"end has shape \(2,\), expected \(1,\)"),
        (lambda: PointToPoint([0.0], [1.0], 0.0), "duration"),
        (lambda: PointToPoint([0.0], [1.0], np.nan), "duration"),
        (lambda: PointToPoint([0.0], [1.0], "long"), "duration is 'long'"),
        (lambda: PointToPoint([0.0], [1e308], 1e-9), "not finite"),
    ],
)
def test_refuses_bad_arguments(build, message):
    with pytest.raises(TrajectoryError, match=message):
        build()


def test_repr_names_kind_size_and_duration():
    assert repr(Hold([1.0, 2.0], 3.0)) == "<Hold: 2 coordinates, 3 s>"
