"""The rose and the circle: geometry, timing, planes."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from cards_core.trajectories import Circle, Flower, TrajectoryError

XZ = {"axes": ([1, 0, 0], [0, 0, 1])}


def path(flower, count=20001):
    """Points in the plane, relative to the centre, shape (count, 2)."""
    y = flower.sample(np.linspace(0.0, flower.duration, count))[0] - flower.centre
    return np.column_stack([y @ flower.u, y @ flower.v])


@pytest.mark.parametrize("petals", [1, 3, 4, 5, 7, 8, 12])
def test_number_of_petals(petals):
    """Tips are where the radius peaks at the amplitude; they stand in a regular polygon."""
    flower = Flower([0.0, 0.0], 0.2, 10.0, petals=petals)
    xy = path(flower)
    radius = np.hypot(*xy.T)
    peak = (radius[1:-1] > radius[:-2]) & (radius[1:-1] >= radius[2:])
    tips = xy[1:-1][peak]
    assert len(tips) == petals
    np.testing.assert_allclose(np.hypot(*tips.T), 0.2, atol=1e-5)
    directions = np.sort(np.arctan2(tips[:, 1], tips[:, 0]) % (2 * math.pi))
    gaps = np.diff([*directions, directions[0] + 2 * math.pi])
    np.testing.assert_allclose(gaps, 2 * math.pi / petals, atol=2e-2)
    # no two petals are the same one drawn twice
    assert radius.max() == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("petals", [1, 3, 4, 5, 8])
def test_every_point_lies_on_the_rose(petals):
    """R = A cos(k theta) as an equation of x and y, without the parametrisation."""
    k = petals if petals % 2 else petals // 2
    xy = path(Flower([0.0, 0.0], 0.2, 10.0, petals=petals), 2001)
    z = xy[:, 0] + 1j * xy[:, 1]
    # |z|^(k + 1) = +-A Re(z^k), the sign being that of r^(k + 1)
    left, right = np.abs(z) ** (k + 1), 0.2 * (z**k).real
    if k % 2 == 0:
        right = np.abs(right)
    np.testing.assert_allclose(left, right, atol=1e-15)


@pytest.mark.parametrize(("petals", "area"), [(1, 0.25), (3, 0.25), (5, 0.25), (4, 0.5), (8, 0.5)])
def test_enclosed_area(petals, area):
    """The area is pi A^2 / 4 for odd k and pi A^2 / 2 for even k."""
    x, y = path(Flower([0.0, 0.0], 0.2, 10.0, petals=petals)).T
    shoelace = 0.5 * np.sum(x[:-1] * np.diff(y) - y[:-1] * np.diff(x))
    assert shoelace == pytest.approx(area * math.pi * 0.04, rel=1e-5)


def test_flower_of_the_roboy_arm():
    flower = Flower([0.45, -0.45, 0.45], 0.15, 30.0, **XZ)
    assert flower.petals == 5
    for t in (0.0, 30.0):
        y, yd, ydd = flower(t)
        np.testing.assert_allclose(y, [0.45, -0.45, 0.45], atol=1e-15)
        assert not yd.any()
        assert not ydd.any()
    y, yd, _ = flower.sample(np.linspace(0.0, 30.0, 3001))
    np.testing.assert_allclose(y[:, 1], -0.45, atol=1e-15)
    assert np.linalg.norm(y - flower.centre, axis=1).max() == pytest.approx(0.15, abs=1e-6)
    # the length of the drawn line is that of the rose: integral of sqrt(r^2 + r'^2)
    drawn = np.trapezoid(np.linalg.norm(yd, axis=1), np.linspace(0.0, 30.0, 3001))
    length = quad(lambda p: 0.15 * math.hypot(math.cos(5 * p), 5 * math.sin(5 * p)), 0, math.pi)[0]
    assert drawn == pytest.approx(length, rel=1e-5)


def test_first_petal_points_along_the_first_axis():
    for angle in (0.0, 0.7):
        xy = path(Flower([1.0, 2.0], 0.2, 10.0, angle=angle))
        tip = xy[np.argmax(np.hypot(*xy.T)[:5000])]
        assert math.atan2(tip[1], tip[0]) == pytest.approx(angle, abs=1e-2)


def test_angle_turns_the_figure():
    plain, turned = Flower([0, 0], 0.2, 10.0), Flower([0, 0], 0.2, 10.0, angle=0.4)
    c, s = math.cos(0.4), math.sin(0.4)
    np.testing.assert_allclose(turned(3.3)[2], [[c, -s], [s, c]] @ plain(3.3)[2], atol=1e-14)


def test_repeats_draw_the_figure_again():
    """An odd rose is drawn in half a turn, so each repetition covers pi."""
    once, twice = Flower([0, 0], 0.2, 10.0), Flower([0, 0], 0.2, 10.0, repeats=2)
    np.testing.assert_allclose(twice(5.0)[0], 0.0, atol=1e-15)
    area = [
        np.sum(x[:-1] * np.diff(y) - y[:-1] * np.diff(x)) for x, y in (path(once).T, path(twice).T)
    ]
    assert area[1] == pytest.approx(2.0 * area[0], rel=1e-5)


def test_circle_keeps_its_radius_and_turns_as_told():
    circle = Circle([1.0, 2.0, 3.0], 0.5, 4.0, revolutions=2.25, **XZ)
    y = circle.sample(np.linspace(0.0, 4.0, 501))[0] - circle.centre
    np.testing.assert_allclose(np.linalg.norm(y, axis=1), 0.5, atol=1e-14)
    np.testing.assert_allclose(circle.start, [1.5, 2.0, 3.0], atol=1e-14)
    np.testing.assert_allclose(circle.end, [1.0, 2.0, 3.5], atol=1e-14)
    turned = np.unwrap(np.arctan2(y[:, 2], y[:, 0]))
    assert turned[-1] == pytest.approx(4.5 * math.pi, abs=1e-12)
    # at mid time the speed is 15/8 of the average
    assert np.linalg.norm(circle(2.0)[1]) == pytest.approx(1.875 * 4.5 * math.pi * 0.5 / 4.0)


def test_circle_turns_backwards_and_starts_at_an_angle():
    circle = Circle([0.0, 0.0], 1.0, 4.0, revolutions=-0.25, angle=math.pi / 2)
    np.testing.assert_allclose(circle.start, [0.0, 1.0], atol=1e-15)
    np.testing.assert_allclose(circle.end, [1.0, 0.0], atol=1e-15)


def test_normal_defines_a_right_handed_plane():
    rng = np.random.default_rng(4)
    for normal in [*np.eye(3), *rng.normal(size=(20, 3))]:
        circle = Circle([0, 0, 0], 1.0, 1.0, normal=normal)
        frame = np.column_stack([circle.u, circle.v, normal / np.linalg.norm(normal)])
        np.testing.assert_allclose(frame.T @ frame, np.eye(3), atol=1e-14)
        assert np.linalg.det(frame) == pytest.approx(1.0)
    np.testing.assert_array_equal(Circle([0, 0, 0], 1.0, 1.0, normal=[0, 2, 0]).u, [1, 0, 0])
    np.testing.assert_array_equal(Circle([0, 0, 0], 1.0, 1.0, normal=[0, 2, 0]).v, [0, 0, -1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"petals": 2, **XZ}, "odd number or a multiple of 4"),
        ({"petals": 6, **XZ}, "odd number or a multiple of 4"),
        ({"petals": 0, **XZ}, "whole number"),
        ({"petals": 2.5, **XZ}, "whole number"),
        ({"petals": 1e300, **XZ}, "whole number"),
        ({"repeats": 0, **XZ}, "repeats"),
        ({"angle": math.nan, **XZ}, "angle"),
        ({}, "expected axes or normal"),
        ({"normal": [0, 1, 0], **XZ}, "both"),
        ({"normal": [0, 0, 0]}, "not zero"),
        ({"normal": [0, 1]}, "normal"),
        ({"axes": ([1, 0, 0], [1, 1, 0])}, "not perpendicular"),
        ({"axes": ([1, 0, 0], [0, 0, 0])}, "second axis"),
        ({"axes": ([1, 0], [0, 1])}, "first axis"),
    ],
)
def test_refuses_what_is_no_flower(options, message):
    with pytest.raises(TrajectoryError, match=message):
        Flower([0.0, 0.0, 0.0], 0.1, 10.0, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Flower([0.0], 0.1, 1.0), "at least 2"),
        (lambda: Flower([0.0, 0.0], -0.1, 1.0), "amplitude"),
        (lambda: Flower([0.0, 0.0], 0.1, 0.0), "duration"),
        (lambda: Circle([0.0, 0.0], 0.0, 1.0), "radius"),
        (lambda: Circle([0.0, 0.0], 1.0, 1.0, revolutions=0), "revolutions"),
        (lambda: Circle([0.0] * 4, 1.0, 1.0, normal=[1, 0, 0]), "expected axes"),
    ],
)
def test_refuses_bad_arguments(call, message):
    with pytest.raises(TrajectoryError, match=message):
        call()
