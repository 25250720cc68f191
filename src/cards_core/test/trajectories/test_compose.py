"""Sequences, stacks and approaches."""

import numpy as np
import pytest

from cards_core.trajectories import (
    Flower,
    Hold,
    LiveReference,
    PointToPoint,
    Sequence,
    Stack,
    TrajectoryError,
    cubic_spline,
    linear_spline,
    quintic_spline,
    with_approach,
)


def test_sequence_plays_its_parts_one_after_the_other():
    a, b = PointToPoint([0.0], [1.0], 2.0), PointToPoint([1.0], [-1.0], 3.0)
    both = Sequence([a, Hold([1.0], 0.5), b])
    assert both.duration == 5.5
    assert both.breaks == (0.0, 2.0, 2.5, 5.5)
    for t, part, local in ((0.7, a, 0.7), (2.0, a, 2.0), (2.3, a, 9.0), (3.1, b, 0.6), (9, b, 9)):
        for got, wanted in zip(both(t), part(local), strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e-12)


def test_sequence_does_not_pause_where_moving_parts_meet():
    """Durations that binary numbers cannot hold: no instant may fall into a part's hold."""
    line = linear_spline([0.0, 0.1], [[0.0], [0.1]])
    parts = [line]
    for k in range(1, 40):
        parts.append(linear_spline([0.0, 0.1], [[0.1 * k], [0.1 * k + 0.1]]))
    moving = Sequence(parts, continuity="velocity")
    times = [t for b in moving.breaks for t in (np.nextafter(b, -1), b, np.nextafter(b, 99))][1:-1]
    for t in times:
        assert moving(t)[1] == pytest.approx(1.0), t
        assert moving(t)[0] == pytest.approx(t, abs=1e-12)
    np.testing.assert_allclose(moving.sample(times)[1], 1.0)


def test_sequence_refuses_a_jump_and_names_it():
    a, b = PointToPoint([0.0, 1.0], [1.0, 1.0], 1.0), PointToPoint([1.0, 1.5], [0.0, 0.0], 1.0)
    with pytest.raises(
        TrajectoryError,
        match=r"position of coordinate 2 jumps from 1 at the end of part 2 to 1\.5 at the start "
        r"of part 3",
    ):
        Sequence([a, Hold([1.0, 1.0], 1.0), b])


def test_sequence_checks_derivatives_if_asked_to():
    line = linear_spline([0.0, 1.0], [[0.0], [1.0]])
    still = Hold([1.0], 1.0)
    Sequence([line, still])
    with pytest.raises(TrajectoryError, match="velocity of coordinate 1 jumps from 1"):
        Sequence([line, still], continuity="velocity")
    soft = cubic_spline([0.0, 1.0], [[0.0], [1.0]], [[0.0], [0.0]])
    Sequence([soft, still], continuity="velocity")
    with pytest.raises(TrajectoryError, match="acceleration of coordinate 1 jumps from -6"):
        Sequence([soft, still], continuity="acceleration")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Sequence([]), "no parts"),
        (lambda: Sequence([Hold([1.0]), Hold([1.0, 2.0])]), "part 2 has 2 coordinates"),
        (lambda: Sequence([Hold([1.0])], continuity="jerk"), "continuity"),
        (lambda: Sequence([LiveReference(1, [0.0]), Hold([0.0])]), "end of part 1"),
        (lambda: Stack([]), "block indices"),
        (lambda: Stack([((0, 1), Hold([1.0]))]), "2 indices for a block of 1"),
        (lambda: Stack([((0,), Hold([1.0])), ((0,), Hold([1.0]))]), "once"),
        (lambda: Stack([((0,), Hold([1.0])), ((2,), Hold([1.0]))]), "0 to 1"),
        (lambda: with_approach(Hold([1.0]), [0.0, 1.0], 1.0), "start has shape"),
        (lambda: with_approach(Hold([1.0]), [0.0], 0.0), "speed"),
        (lambda: with_approach(Hold([1.0]), [np.nan], 1.0), "finite"),
    ],
)
def test_refuses_bad_arguments(call, message):
    with pytest.raises(TrajectoryError, match=message):
        call()


def test_stack_puts_every_coordinate_in_its_place():
    a, b = PointToPoint([0.0, 10.0], [1.0, 20.0], 1.0), PointToPoint([-5.0], [5.0], 2.0)
    stack = Stack([((2, 0), a), ((1,), b)])
    assert stack.duration == 2.0
    for t in (0.3, 1.0, 1.6):
        for got, x, y in zip(stack(t), a(t), b(t), strict=True):
            np.testing.assert_array_equal(got, [x[1], y[0], x[0]])


def test_approach_goes_from_rest_to_the_start_at_the_given_speed():
    flower = Flower([0.4, -0.4], 0.1, 10.0)
    flower.name, flower.space = "flower", "operational"
    reference = with_approach(flower, [0.7, 0.0], 0.25)
    assert reference.name == "flower"
    assert reference.space == "operational"
    way = reference.duration - 10.0
    assert way == pytest.approx(1.875 * 0.5 / 0.25)
    np.testing.assert_array_equal(reference.start, [0.7, 0.0])
    _, yd, _ = reference.sample(np.linspace(0.0, way, 1001))
    assert np.linalg.norm(yd, axis=1).max() == pytest.approx(0.25, rel=1e-6)
    for got, wanted in zip(reference(way + 3.0), flower(3.0), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-12)


def test_approach_joins_a_moving_start_without_a_jump():
    moving = quintic_spline([0.0, 1.0], [[1.0], [2.0]], [[0.7], [0.0]], [[-0.3], [0.0]])
    reference = with_approach(moving, [0.0], 1.0)
    join = reference.duration - 1.0
    before, after = reference(np.nextafter(join, 0.0)), reference(join)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    assert after[1] == pytest.approx(0.7)
    assert not reference(0.0)[1].any()


def test_no_approach_where_none_is_needed():
    hold = Hold([1.0, 1.0])
    assert with_approach(hold, [1.0, 1.0009], 1.0) is hold
    assert with_approach(hold, [1.0, 1.0011], 1.0) is not hold
    assert with_approach(hold, [1.0, 1.0011], 1.0, tolerance=0.01) is hold
