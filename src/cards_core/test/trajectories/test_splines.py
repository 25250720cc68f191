"""Splines against SciPy, against closed forms, and against CASPR's own way to compute them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BPoly, CubicHermiteSpline

from cards_core.trajectories import (
    TrajectoryError,
    caspr_times,
    cubic_average_spline,
    cubic_spline,
    linear_spline,
    parabolic_blend,
    quintic_spline,
    spline,
)

RNG = np.random.default_rng(5)
TIMES = np.array([0.0, 0.9, 1.3, 3.0, 3.7])
P, V, A = RNG.uniform(-1.0, 1.0, (3, 5, 2))
KINDS = ("linear", "cubic", "cubic_average_velocity", "quintic", "parabolic_blend")


def build(kind, times=TIMES, points=P, step=None):
    given = {"velocities": V, "accelerations": A, "blend_times": 0.15}
    used = {
        "linear": (),
        "cubic": ("velocities",),
        "cubic_average_velocity": ("velocities",),
        "quintic": ("velocities", "accelerations"),
        "parabolic_blend": ("blend_times",),
    }
    options = {name: given[name] for name in used[kind]}
    return spline(kind, times, points, caspr_time_step=step, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_goes_through_the_knots_at_their_times(kind):
    reference = build(kind)
    assert reference.duration == TIMES[-1]
    for t, p in zip(TIMES, P, strict=True):
        np.testing.assert_allclose(reference(t)[0], p, atol=1e-14)


@pytest.mark.parametrize(
    ("kind", "order"),
    [
        ("linear", 0),
        ("cubic", 1),
        ("cubic_average_velocity", 1),
        ("quintic", 2),
        ("parabolic_blend", 1),
    ],
)
def test_continuity_at_the_knots(kind, order):
    reference = build(kind)
    jumps = np.zeros(3)
    for t in reference.breaks[1:-1]:
        before, after = reference(np.nextafter(t, 0.0)), reference(t)
        jumps = np.maximum(
            jumps, [np.abs(b - a).max() for a, b in zip(before, after, strict=True)]
        )
    assert jumps[: order + 1].max() < 1e-11
    # and no more than promised: the next derivative does jump in this example
    if order < 2:
        assert jumps[order + 1] > 0.1


def test_cubic_agrees_with_scipy():
    theirs = CubicHermiteSpline(TIMES, P, V)
    for t in np.linspace(0.0, 3.7, 101):
        for nu, value in enumerate(cubic_spline(TIMES, P, V)(t)):
            np.testing.assert_allclose(value, theirs(t, nu), atol=1e-11)


def test_cubic_average_agrees_with_scipy_and_the_mean_of_secants():
    slopes = V.copy()
    for i in range(1, 4):
        left = (P[i] - P[i - 1]) / (TIMES[i] - TIMES[i - 1])
        right = (P[i + 1] - P[i]) / (TIMES[i + 1] - TIMES[i])
        slopes[i] = (left + right) / 2.0
    theirs = CubicHermiteSpline(TIMES, P, slopes)
    ours = cubic_average_spline(TIMES, P, V[0], V[-1])
    np.testing.assert_allclose(ours.sample(TIMES)[1], slopes, atol=1e-13)
    for t in np.linspace(0.0, 3.7, 101):
        for nu, value in enumerate(ours(t)):
            np.testing.assert_allclose(value, theirs(t, nu), atol=1e-11)
    rest = cubic_average_spline(TIMES, P)
    assert not rest(0.0)[1].any()
    np.testing.assert_allclose(rest(3.7)[1], 0.0, atol=1e-14)


def test_quintic_agrees_with_scipy():
    theirs = BPoly.from_derivatives(TIMES, np.stack([P, V, A], axis=1))
    for t in np.linspace(0.0, 3.7, 101):
        for nu, value in enumerate(quintic_spline(TIMES, P, V, A)(t)):
            np.testing.assert_allclose(value, theirs(t, nu), atol=1e-10)


def test_linear_agrees_with_numpy():
    t = np.linspace(0.0, 3.7, 101)
    y, yd, ydd = linear_spline(TIMES, P).sample(t)
    for j in range(2):
        np.testing.assert_allclose(y[:, j], np.interp(t, TIMES, P[:, j]), atol=1e-14)
    np.testing.assert_allclose(yd[1], (P[1] - P[0]) / 0.9, atol=1e-14)
    assert not ydd.any()


def test_parabolic_blend_has_a_trapezoidal_velocity():
    """Plateau speed D / (T - tb), reached after tb with constant acceleration."""
    reference = parabolic_blend([0.0, 5.0, 10.0], [[0.3], [0.7], [0.4]], [0.5, 1.5])
    assert reference.breaks == (0.0, 0.5, 4.5, 5.0, 6.5, 8.5, 10.0)
    plateau = 0.4 / 4.5
    y, yd, ydd = (x[:, 0] for x in reference.sample([0.25, 2.0, 4.4, 4.75, 5.0, 7.0, 9.0]))
    np.testing.assert_allclose(
        yd[:5], [plateau / 2, plateau, plateau, plateau / 2, 0.0], atol=1e-14
    )
    np.testing.assert_allclose(yd[5:], [-0.3 / 3.5, -0.3 / 3.5 / 1.5], atol=1e-14)
    np.testing.assert_allclose(ydd[:4], [2 * plateau, 0.0, 0.0, -2 * plateau], atol=1e-14)
    assert y[0] == pytest.approx(0.3 + plateau * 0.25**2, abs=1e-14)
    # the area under the velocity is the way
    t = np.linspace(0.0, 5.0, 50001)
    assert np.trapezoid(reference.sample(t)[1][:, 0], t) == pytest.approx(0.4, abs=1e-9)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_any_knots_are_met_however_late(data):
    """Conditioning: segments that begin after hours are as exact as the first."""
    n = data.draw(st.integers(2, 6))
    gaps = data.draw(st.lists(st.floats(0.01, 50.0), min_size=n - 1, max_size=n - 1))
    wait = data.draw(st.sampled_from([0.0, 1e5]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    states = rng.uniform(-3.0, 3.0, (3, n, 2))
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    if wait:
        # stand still for a day, then move
        times = np.concatenate([[0.0], wait + times])
        states[1:, 0] = 0.0
        states = np.concatenate([states[:, :1], states], axis=1)
    reference = quintic_spline(times, *states)
    for i, t in enumerate(times):
        for got, wanted in zip(reference(t), states[:, i], strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e-9)


# CASPR -----------------------------------------------------------------------------------------


def caspr_segment(kind, i, t):
    """One segment as CASPR solves it: monomials in absolute time between first and last sample."""
    ts, te = t[0], t[-1]
    out = np.zeros((3, t.size, 2))
    if kind == "parabolic_blend":
        tb = 0.15
        a = (P[i] - P[i + 1]) / (tb**2 - (te - ts) * tb)
        for k, x in enumerate(t):
            if x < ts + tb:
                out[:, k] = P[i] + a * (x - ts) ** 2 / 2, a * (x - ts), a
            elif x < te - tb:
                out[:, k] = P[i] + a * tb**2 / 2 + a * tb * (x - ts - tb), a * tb, 0 * a
            else:
                out[:, k] = P[i + 1] - a * (x - te) ** 2 / 2, -a * (x - te), -a
        return out
    order = {"linear": 1, "quintic": 3}.get(kind, 2)
    velocities = V.copy()
    if kind == "cubic_average_velocity":
        secants = np.diff(P, axis=0) / np.diff(TIMES)[:, None]
        velocities[1:-1] = (secants[1:] + secants[:-1]) / 2.0
    rows, right = [], []
    basis = np.polynomial.Polynomial
    for x, j in ((ts, i), (te, i + 1)):
        for nu, values in enumerate((P, velocities, A)[:order]):
            monomials = [basis.basis(k).deriv(nu)(x) if nu else x**k for k in range(2 * order)]
            rows.append(monomials)
            right.append(values[j])
    c = np.linalg.solve(np.array(rows), np.array(right))
    for dim, nu in itertools.product(range(2), range(3)):
        polynomial = basis(c[:, dim])
        out[nu, :, dim] = (polynomial.deriv(nu) if nu else polynomial)(t)
    return out


@pytest.mark.parametrize("step", [0.01, 0.00667, 0.07])
@pytest.mark.parametrize("kind", KINDS)
def test_caspr_sampling_reproduces_caspr(kind, step):
    times, values = [], []
    for i in range(4):
        # MATLAB's t0:dt:t1
        count = int(np.floor((TIMES[i + 1] - TIMES[i]) / step + 1e-9))
        t = TIMES[i] + step * np.arange(count + 1)
        segment = caspr_segment(kind, i, t)
        first = 0 if i == 0 else 1
        times.append(t[first:])
        values.append(segment[:, first:])
    times, values = np.concatenate(times), np.concatenate(values, axis=1)
    np.testing.assert_allclose(caspr_times(TIMES, step), times, atol=1e-12)
    reference = build(kind, step=step)
    assert reference.duration == pytest.approx(times[-1], abs=1e-12)
    if kind == "parabolic_blend":
        # at the ends of a blend the acceleration jumps: which side wins is rounding
        edge = np.abs(times[:, None] - np.array(reference.breaks)).min(axis=1) < 1e-9
        times, values = times[~edge], values[:, ~edge]
        assert times.size > 20
    ours = reference.sample(np.minimum(times, reference.duration))
    for got, wanted in zip(ours, values, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-6 * max(1.0, np.abs(wanted).max()))


def test_caspr_sampling_ends_early_as_the_2s_example_does():
    """4.1 s with a step of 0.00667 s: CASPR's last sample is at 4.09538 s, at the end pose."""
    reference = quintic_spline([0.0, 4.1], [[0.0], [1.0]], caspr_time_step=0.00667)
    assert reference.duration == pytest.approx(4.09538, abs=1e-9)
    assert reference(4.09538)[0] == pytest.approx(1.0, abs=1e-12)
    exact = quintic_spline([0.0, 4.1], [[0.0], [1.0]])
    assert exact(4.09538)[0] < 1.0 - 1e-9


def test_caspr_sampling_waits_at_the_knot():
    reference = linear_spline([0.0, 1.0, 2.0], [[0.0], [1.0], [3.0]], caspr_time_step=0.3)
    assert reference.breaks == pytest.approx((0.0, 0.9, 1.0, 1.9))
    assert reference(0.95)[0] == 1.0
    assert reference(0.95)[1] == 0.0
    assert reference(1.9)[0] == pytest.approx(3.0)


def test_caspr_sampling_changes_nothing_where_the_step_fits():
    for kind in KINDS:
        t = np.linspace(0.013, 3.69, 50)
        for a, b in zip(build(kind).sample(t), build(kind, step=0.1).sample(t), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-10)


# Errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear_spline([0.0], [[1.0]]), "at least 2"),
        (lambda: linear_spline([1.0, 2.0], [[1.0], [2.0]]), "first knot is at 1 s, expected 0"),
        (lambda: linear_spline([0.0, 2.0, 2.0], np.ones((3, 1))), "knot 3 is at 2 s, knot 2 at 2"),
        (lambda: linear_spline([0.0, 2.0], np.ones((3, 1))), r"shape \(3, 1\), expected \(2, n\)"),
        (lambda: linear_spline([0.0, 1.0], [[1.0], [np.nan]]), "knot 2"),
        (lambda: linear_spline([0.0, 1.0], [[1.0], [1.0, 2.0]]), "equally long"),
        (lambda: linear_spline([0.0, 1.0], np.ones((2, 0))), "empty"),
        (lambda: cubic_spline([0.0, 1.0], [[1.0], [2.0]], [[1.0]]), "velocities have shape"),
        (lambda: cubic_average_spline([0.0, 1.0], [[1.0], [2.0]], [1.0, 2.0]), "start velocity"),
        (lambda: quintic_spline([0.0, 1.0], [[1.0], [2.0]], None, [[1, 2], [1, 2]]), "acceler"),
        (lambda: parabolic_blend([0.0, 1.0], [[1.0], [2.0]], 0.5), "0 < 2 blend_time < 1 s"),
        (lambda: parabolic_blend([0.0, 1.0], [[1.0], [2.0]], 0.0), "blend time of 0 s"),
        (lambda: parabolic_blend([0.0, 1.0], [[1.0], [2.0]], [0.1, 0.1]), "blend times"),
        (lambda: linear_spline([0.0, 1.0], [[1.0], [2.0]], caspr_time_step=2.0), "at most 1 s"),
        (lambda: linear_spline([0.0, 1.0], [[1.0], [2.0]], caspr_time_step=0.0), "time step"),
        (lambda: spline("septic", [0.0, 1.0], [[1.0], [2.0]]), "expected one of .*quintic"),
        (lambda: spline("linear", TIMES, P, velocities=V), "linear spline has no velocities"),
        (lambda: spline("cubic", TIMES, P, blend_times=1.0), "cubic spline has no blend_times"),
        (lambda: spline("parabolic_blend", TIMES, P), "needs blend_times"),
    ],
)
def test_refuses_bad_arguments(call, message):
    with pytest.raises(TrajectoryError, match=message):
        call()
