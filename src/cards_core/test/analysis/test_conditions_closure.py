"""Wrench closure and tension factor against linear programs, and what must not change them."""

import condition_oracles as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cards_core.analysis.conditions.kernels import (
    RequiredWrenches,
    capacity,
    distances,
    tension_factors,
)
from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.formats import load

BORDER = 1e-9
"""Margin of the oracle, whose own tolerance is 1e-10, below which it cannot tell."""

YES, NO = PointStatus.FEASIBLE, PointStatus.INFEASIBLE

SIZES = [(4, 2, 300), (4, 3, 300), (8, 6, 300), (11, 4, 300), (36, 24, 60), (76, 24, 20)]
each_size = pytest.mark.parametrize(("m", "nv", "count"), SIZES)


def closed(jacobians, **options):
    return tension_factors(jacobians, normalise=True, **options)[0]


def check_closure(jacobians, status):
    """Compare with the oracle, borderline cases included: none of them may be left out."""
    margins = np.array([oracle.closure_margin(jacobian) for jacobian in jacobians])
    assert np.abs(margins).min() > BORDER, "the oracle cannot tell for some point: another seed"
    np.testing.assert_array_equal(status, np.where(margins > 0.0, YES, NO))
    return margins


def test_wrench_closure_of_a_thousand_poses_of_ipanema_agrees_with_a_linear_program():
    dynamics = make_dynamics(load("ipanema_1"))
    q = oracle.ipanema_poses(np.random.default_rng(4), 1000)
    jacobians = dynamics.batch(q).muscle_jacobian
    status = make_condition(dynamics, "wrench_closure").evaluate(q)["status"]
    margins = check_closure(jacobians, status)
    assert 100 < (margins > 0.0).sum() < 900


@each_size
def test_closure_agrees_with_a_linear_program(m, nv, count):
    jacobians = oracle.balanced_jacobians(np.random.default_rng(m + nv), count, m, nv)
    check_closure(jacobians, closed(jacobians))


@pytest.mark.parametrize(("m", "nv"), [(8, 6), (11, 4), (36, 24)])
def test_closure_is_refused_where_all_muscles_pull_to_one_side(m, nv):
    jacobians = np.random.default_rng(m).normal(size=(50, m, nv))
    jacobians[:, :, 0] = np.abs(jacobians[:, :, 0])
    assert (closed(jacobians) == NO).all()


@each_size
def test_tension_factor_agrees_with_a_linear_program(m, nv, count):
    jacobians = oracle.balanced_jacobians(np.random.default_rng(2 * m), count // 3, m, nv)
    status, least, most = tension_factors(jacobians)
    expected = np.array([oracle.tension_factor(jacobian) for jacobian in jacobians])
    # 1e-10 per row is what the oracle grants itself
    np.testing.assert_allclose(least, expected, rtol=0.0, atol=1e-10 * m)
    assert (most >= least - 1e-12).all()
    np.testing.assert_array_equal(status == YES, expected > BORDER)


def test_tension_factor_of_known_cases():
    cross = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    uneven = np.array([[1.0], [-3.0]])
    status, least, most = tension_factors(np.array([cross]))
    assert status[0] == YES
    np.testing.assert_allclose([least[0], most[0]], 1.0, atol=1e-14)
    status, least, most = tension_factors(np.array([uneven]))
    np.testing.assert_allclose([least[0], most[0]], 1.0 / 3.0, atol=1e-14)
    # the muscle in the middle can be as tight as the others, or not help at all
    three = np.array([[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]])
    np.testing.assert_allclose(tension_factors(np.array([three]))[1], 0.5, atol=1e-14)


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 6))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_degenerate_matrices_of_small_integers(seed, nv, more):
    rng = np.random.default_rng(seed)
    m = nv + more
    jacobian = rng.integers(-2, 3, (m, nv)) * rng.choice([0, 1, 1], (m, 1)).astype(float)
    if rng.random() < 0.5:
        jacobian[0] = jacobian[-1] * rng.choice([-1.0, 2.0, 0.5])
    status, least, most = tension_factors(jacobian[None])
    if np.linalg.matrix_rank(jacobian) < nv:
        assert status[0] == PointStatus.RANK_DEFICIENT
        assert np.isnan(least[0])
        assert np.isnan(most[0])
    else:
        # an internal load of integers up to 2 in 6 columns has no ratio between 0 and 1e-6
        expected = oracle.tension_factor(jacobian)
        assert expected < 1e-8 or expected > 1e-6
        assert (status[0] == YES) == (expected > 1e-6)
        assert closed(jacobian[None])[0] == status[0]


@given(st.integers(0, 2**31))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_neither_order_nor_scale_nor_coordinates_change_the_answer(seed):
    rng = np.random.default_rng(seed)
    m, nv = 8, 5
    jacobians = oracle.balanced_jacobians(rng, 4, m, nv)
    status, factor, _ = tension_factors(jacobians)
    turn = np.linalg.qr(rng.normal(size=(nv, nv)))[0] @ np.diag(10.0 ** rng.uniform(-2, 2, nv))
    permuted = jacobians[:, rng.permutation(m)]
    for same in (permuted, jacobians * rng.uniform(1e-3, 1e3), jacobians @ turn):
        other, changed, _ = tension_factors(same)
        np.testing.assert_array_equal(other, status)
        np.testing.assert_allclose(changed, factor, atol=1e-9)
    stretched = jacobians * rng.uniform(0.1, 10.0, (1, m, 1))
    np.testing.assert_array_equal(closed(stretched), closed(jacobians))


@given(st.integers(0, 2**31))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_enclosure_holds_near_the_border(seed):
    """Internal loads with one tension of 1e-3 to 1e-12 of the others, then of minus that."""
    rng = np.random.default_rng(seed)
    m, nv = 7, 5
    for sign in (1.0, -1.0):
        small = sign * 10.0 ** rng.uniform(-12, -3)
        loads = np.vstack([np.r_[small, np.ones(m - 1)], np.r_[0.0, rng.normal(size=m - 1)]])
        loads[1, 1:] -= loads[1, 1:].mean()
        # columns of L span the complement of both loads
        complement = np.linalg.svd(loads)[2][2:].T
        status, least, most = tension_factors(complement[None] @ rng.normal(size=(1, nv, nv)))
        assert least[0] <= most[0] + 1e-13
        if sign > 0.0:
            assert most[0] >= small * (1.0 - 1e-6) - 1e-13
            assert status[0] == (YES if small > 1.1e-10 else status[0])
        else:
            assert least[0] == 0.0
            assert status[0] == NO


def test_bad_points_have_a_status():
    cross = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    line = cross * [1.0, 0.0]
    units = cross * [1.0, 1e-7]  # the scale of a coordinate is a unit, not a rank
    noise = cross * [1.0, 1e-14]  # but this is rounding
    slanted = np.array([[1.0, 1.0], [-1.0, -1.0], [2.0, 2.0 + 1e-13], [1.0, 1.0]])
    void = np.full((4, 2), np.nan)
    endless = np.where(cross == 1.0, np.inf, cross)
    cases = np.array([cross, line, units, noise, slanted, void, endless])
    status, least, most = tension_factors(cases)
    assert list(status) == [
        YES,
        PointStatus.RANK_DEFICIENT,
        YES,
        PointStatus.RANK_DEFICIENT,
        PointStatus.RANK_DEFICIENT,
        PointStatus.NOT_FINITE,
        PointStatus.NOT_FINITE,
    ]
    answered = np.isin(status, [YES, NO])
    np.testing.assert_array_equal(np.isnan(least), ~answered)
    np.testing.assert_array_equal(np.isnan(most), ~answered)
    assert closed(cross[None, :2])[0] == PointStatus.TOO_FEW_MUSCLES
    assert closed(np.zeros((0, 4, 2))).shape == (0,)


def test_a_muscle_that_moves_nothing_changes_nothing():
    """Its row is rounding: no direction, and no wonders by an endless tension."""
    rng = np.random.default_rng(6)
    jacobians = rng.normal(size=(60, 7, 4))
    noise = 1e-16 * rng.normal(size=(60, 1, 4))
    with_noise = np.concatenate([jacobians, noise], axis=1)
    assert {YES, NO} == set(closed(jacobians))
    np.testing.assert_array_equal(closed(with_noise), closed(jacobians))
    expected = tension_factors(jacobians)[1]
    np.testing.assert_allclose(tension_factors(with_noise)[1], expected, atol=1e-12)
    lower, upper = np.zeros(8), np.r_[np.ones(7), np.inf]
    loads = RequiredWrenches(-np.einsum("nmv->nv", jacobians) + rng.normal(size=(60, 4)))
    status, margin = capacity(jacobians, lower[:7], upper[:7], loads, np.ones(4))
    assert {YES, NO} == set(status)
    other, same = capacity(with_noise, lower, upper, loads, np.ones(4))
    np.testing.assert_array_equal(other, status)
    np.testing.assert_allclose(same, margin, atol=1e-12)
    one_by_one, _ = distances(with_noise, lower, upper, loads, np.ones(4))
    np.testing.assert_array_equal(one_by_one, status)


def test_views_with_a_stride_give_the_same():
    buffer = np.random.default_rng(0).normal(size=(20, 70))
    view = buffer[:, 10:58].reshape(20, 8, 6)
    assert not view.flags.c_contiguous
    np.testing.assert_array_equal(tension_factors(view)[1], tension_factors(view.copy())[1])
    turned = np.asfortranarray(view)
    np.testing.assert_array_equal(tension_factors(view)[1], tension_factors(turned)[1])
