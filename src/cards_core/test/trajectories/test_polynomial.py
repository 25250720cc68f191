"""Piecewise polynomials against SciPy and against closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.interpolate import PPoly

from cards_core.trajectories import PiecewisePolynomial, PointToPoint, TrajectoryError
from cards_core.trajectories.polynomial import cubic, quintic

FINITE = st.floats(-10.0, 10.0)


@pytest.mark.parametrize("degree", range(6))
def test_agrees_with_scipy(degree):
    rng = np.random.default_rng(degree)
    breaks = np.array([0.0, 0.3, 1.7, 2.0])
    c = rng.normal(size=(3, degree + 1, 2))
    ours = PiecewisePolynomial(breaks, c)
    # SciPy: highest power first, in local time that is not normalised
    power = np.arange(degree + 1)
    local = c / np.diff(breaks)[:, None, None] ** power[None, :, None]
    theirs = PPoly(local.transpose(1, 0, 2)[::-1], breaks)
    for t in np.linspace(0.0, 2.0, 41):
        for nu, value in enumerate(ours(t)):
            np.testing.assert_allclose(value, theirs(t, nu), rtol=1e-10, atol=1e-10)


def test_scalar_agrees_with_arrays():
    rng = np.random.default_rng(2)
    ours = PiecewisePolynomial([0.0, 1.0, 1.5], rng.normal(size=(2, 6, 1)))
    for t in (-1.0, 0.0, 0.4, 1.0, 1.2, 1.5, 2.0):
        np.testing.assert_allclose(ours.scalar(t), np.ravel(ours(t)), atol=1e-12)


def test_side_says_which_piece_speaks_at_a_break():
    c = [[[0.0], [1.0]], [[1.0], [3.0]]]
    assert PiecewisePolynomial([0, 1, 2], c)(1.0)[1] == 3.0
    assert PiecewisePolynomial([0, 1, 2], c, side="left")(1.0)[1] == 1.0
    assert PiecewisePolynomial([0, 1, 2], c, side="left").sample([1.0])[1] == 1.0


def test_select_takes_coordinates_in_the_order_asked_for():
    c = np.random.default_rng(0).normal(size=(2, 4, 3))
    full = PiecewisePolynomial([0, 1, 2], c)
    part = full.select([2, 0])
    for a, b in zip(part(1.3), full(1.3), strict=True):
        np.testing.assert_array_equal(a, b[[2, 0]])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(FINITE, min_size=6, max_size=6), st.floats(1e-2, 100.0))
def test_quintic_and_cubic_meet_their_end_conditions(x, duration):
    start, end = [np.array([v]) for v in x[:3]], [np.array([v]) for v in x[3:]]
    p = PiecewisePolynomial([0.0, duration], [quintic(tuple(start), tuple(end), duration)])
    scale = 1e-11 * (1.0 + max(1.0, duration) ** 2) / min(1.0, duration) ** 2
    np.testing.assert_allclose(np.ravel(p(0.0)), x[:3], atol=scale)
    np.testing.assert_allclose(np.ravel(p(duration)), x[3:], atol=scale)
    p = PiecewisePolynomial([0.0, duration], [cubic(*start[:2], *end[:2], duration)])
    np.testing.assert_allclose(np.ravel(p(0.0))[:2], x[:2], atol=scale)
    np.testing.assert_allclose(np.ravel(p(duration))[:2], x[3:5], atol=scale)


def test_point_to_point_has_the_published_values():
    """S = 1/4: 53/512; s = 1/2: 1/2; maximum speed 15/8; largest acceleration 10/sqrt(3)."""
    motion = PointToPoint([2.0], [5.0], 4.0)
    assert motion(1.0)[0] == pytest.approx(2.0 + 3.0 * 53.0 / 512.0, abs=1e-14)
    assert motion(2.0)[0] == pytest.approx(3.5, abs=1e-14)
    assert motion(2.0)[1] == pytest.approx(1.875 * 3.0 / 4.0, abs=1e-14)
    peak = motion(4.0 * (0.5 - np.sqrt(3.0) / 6.0))[2]
    assert peak == pytest.approx(10.0 / np.sqrt(3.0) * 3.0 / 16.0, abs=1e-13)
    y, yd, ydd = motion.sample(np.linspace(0.0, 4.0, 2001))
    assert yd.max() == pytest.approx(1.40625, abs=1e-12)
    assert ydd.max() <= peak + 1e-12
    assert np.all(np.diff(y[:, 0]) >= 0.0)


def test_point_to_point_has_the_least_jerk():
    """The integral of jerk^2 is 720 D^2 / T^5, and any other rest-to-rest motion has more."""
    distance, duration = 0.8, 1.6
    motion = PointToPoint([0.0], [distance], duration)

    def jerk(t):
        h = 1e-4
        return float(motion(t + h)[2][0] - motion(t - h)[2][0]) / (2.0 * h)

    inner = (2e-4, duration - 2e-4)
    cost = quad(lambda t: jerk(t) ** 2, *inner, epsabs=1e-9)[0]
    assert cost == pytest.approx(720.0 * distance**2 / duration**5, rel=2e-3)
    for size in (0.1, -0.1):
        # jerk of size * s^3 (1 - s)^3, which is at rest at both ends with two derivatives
        bump = np.polynomial.Polynomial([0, 0, 0, 1, -3, 3, -1]).deriv(3) * (size / duration**3)
        other = quad(lambda t, b=bump: (jerk(t) + b(t / duration)) ** 2, *inner, epsabs=1e-9)[0]
        assert other > cost


@pytest.mark.parametrize(
    ("breaks", "shape"),
    [
        ([0.0, 1.0], (2, 3, 1)),
        ([0.0, 1.0], (1, 7, 1)),
        ([0.0, 1.0, 1.0], (2, 2, 1)),
        ([0.5, 1.0], (1, 2, 1)),
        ([0.0, np.inf], (1, 2, 1)),
        ([0.0, 1e-200], (1, 3, 1)),
    ],
)
def test_refuses_what_does_not_fit(breaks, shape):
    with pytest.raises(TrajectoryError):
        PiecewisePolynomial(breaks, np.ones(shape))
