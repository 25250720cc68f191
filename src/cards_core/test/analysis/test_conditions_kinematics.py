"""Wrench closure, tension factor, dexterity: linear programs, NumPy, closed forms, invariances."""

import condition_oracles as oracle
import daqp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cards_core.analysis.conditions.kernels import (
    RequiredWrenches,
    capacity,
    distances,
    singular_values,
    tension_factors,
    unilateral_factors,
)
from cards_core.analysis.conditions.registry import CONDITIONS, make_condition
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.errors import UnknownNameError
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


@pytest.mark.parametrize(("m", "nv"), [(1, 1), (3, 3), (8, 6), (11, 4), (36, 24), (76, 24)])
def test_singular_values_are_those_of_numpy(m, nv):
    rng = np.random.default_rng(m)
    jacobians = rng.normal(size=(30, m, nv)) * 10.0 ** rng.uniform(-3, 3, (30, 1, nv))
    scale = rng.uniform(0.5, 20.0, nv)
    status, sigma = singular_values(jacobians, scale)
    expected = np.linalg.svd(jacobians * scale, compute_uv=False)
    assert (status == YES).all()
    np.testing.assert_allclose(sigma, expected, rtol=1e-9, atol=1e-13 * expected.max())
    np.testing.assert_allclose(sigma[:, 0], expected[:, 0], rtol=1e-12)


def test_rank_does_not_depend_on_units_and_has_a_threshold():
    rng = np.random.default_rng(5)
    basis = np.linalg.qr(rng.normal(size=(8, 4)))[0]
    for ratio, expected in ((1e-8, YES), (1e-9, YES), (1e-12, PointStatus.RANK_DEFICIENT)):
        turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        jacobian = basis @ np.diag([1.0, 1.0, 1.0, ratio]) @ turn
        status, sigma = singular_values(jacobian[None], np.ones(4))
        assert status[0] == expected
        assert np.isnan(sigma[0]).all() == (expected != YES)
        units = jacobian * [1.0, 1e3, 1e-3, 10.0]
        assert singular_values(units[None], np.ones(4))[0][0] == expected


def shortest_load(jacobian):
    """The shortest u >= 1 with L'u = 0: a quadratic program in the null space."""
    m, nv = jacobian.shape
    basis = np.linalg.svd(jacobian.T)[2][nv:].T
    z, _, flag, _ = daqp.solve(
        np.eye(m - nv),
        np.zeros(m - nv),
        basis.copy(),
        np.full(m, 1e30),
        np.ones(m),
        np.zeros(m, dtype=np.int32),
    )
    assert flag == 1
    return basis @ z


@pytest.mark.parametrize(("m", "nv"), [(3, 2), (7, 6), (8, 6), (11, 4), (20, 12)])
def test_unilateral_factor_is_that_of_the_shortest_load(m, nv):
    jacobians = oracle.balanced_jacobians(np.random.default_rng(m), 25, m, nv)
    status, rho = unilateral_factors(jacobians)
    for jacobian, outcome, value in zip(jacobians, status, rho, strict=True):
        closed = oracle.closure_margin(jacobian) > 1e-9
        assert outcome == (YES if closed else NO)
        if closed:
            u = shortest_load(jacobian)
            np.testing.assert_allclose(value, 1.0 / np.sqrt(1.0 + u @ u), rtol=1e-6)
        else:
            assert value == 0.0


def test_unilateral_factor_of_one_muscle_more_than_coordinates():
    """The null space is a line: h_min / sqrt(1 + h_min^2) as in the source."""
    jacobians = oracle.balanced_jacobians(np.random.default_rng(1), 40, 7, 6)
    status, rho = unilateral_factors(jacobians)
    for jacobian, outcome, value in zip(jacobians, status, rho, strict=True):
        h = np.linalg.svd(jacobian.T)[2][-1]
        h_min = max(h.min(), (-h).min())
        assert (outcome == YES) == (h_min > 0.0)
        expected = h_min / np.sqrt(1.0 + h_min**2) if h_min > 0.0 else 0.0
        np.testing.assert_allclose(value, expected, atol=1e-10)


def test_measures_of_a_robot_follow_their_definitions():
    dynamics = make_dynamics(load("ipanema_1"))
    q = oracle.ipanema_poses(np.random.default_rng(0), 200)
    length = 0.1
    options = {"characteristic_length": length}
    scaled = dynamics.batch(q).muscle_jacobian * np.r_[np.ones(3), np.full(3, 1.0 / length)]
    sigma = np.linalg.svd(scaled, compute_uv=False)
    _, rho = unilateral_factors(scaled)
    definitions = {
        "condition_number": sigma[:, 0] / sigma[:, -1],
        "manipulability": np.sqrt(np.linalg.det(np.swapaxes(scaled, 1, 2) @ scaled)),
        "unilateral_dexterity": 3.0 * rho * sigma[:, -1] / sigma[:, 0],
        "force_amplification": np.where(
            rho > 0.0, 1.0 / (sigma[:, -1] * np.maximum(rho, 1e-99)), np.inf
        ),
    }
    for name, expected in definitions.items():
        result = make_condition(dynamics, name, options).evaluate(q)
        known = np.isfinite(expected)
        np.testing.assert_allclose(result[name][known], expected[known], rtol=1e-6)
        assert (result[name][~known] == np.inf).all()
    closure = make_condition(dynamics, "wrench_closure").evaluate(q)["status"]
    dexterity = make_condition(dynamics, "unilateral_dexterity", options).evaluate(q)
    np.testing.assert_array_equal(dexterity["status"], closure)
    assert dexterity["unilateral_dexterity"].max() <= 1.0


def test_force_amplification_bounds_the_tensions_of_unit_wrenches():
    """Pseudo-inverse plus the internal load that lifts every tension above zero."""
    rng = np.random.default_rng(2)
    jacobians = oracle.balanced_jacobians(rng, 30, 7, 4, low=0.2)
    status, rho = unilateral_factors(jacobians)
    sigma = singular_values(jacobians, np.ones(4))[1]
    for jacobian, outcome, value, least in zip(jacobians, status, rho, sigma[:, -1], strict=True):
        if outcome != YES:
            continue
        u = shortest_load(jacobian)
        wrenches = rng.normal(size=(200, 4))
        wrenches /= np.linalg.norm(wrenches, axis=1, keepdims=True)
        f = -wrenches @ np.linalg.pinv(jacobian.T).T
        f = f + np.maximum(-f, 0.0).max(axis=1, keepdims=True) * u
        assert f.min() >= -1e-9
        np.testing.assert_allclose(-f @ jacobian, wrenches, atol=1e-6)
        assert np.linalg.norm(f, axis=1).max() <= 1.0 / (least * value) * (1.0 + 1e-6)


def test_thresholds_make_a_yes_or_no():
    dynamics = make_dynamics(load("ipanema_1"))
    q = oracle.ipanema_poses(np.random.default_rng(0), 50)
    for name, option, sign in (
        ("condition_number", "max", -1.0),
        ("manipulability", "min", 1.0),
        ("unilateral_dexterity", "min", 1.0),
        ("force_amplification", "max", -1.0),
        ("tension_factor", "min", 1.0),
        ("capacity_margin", "min", 1.0),
        ("joint_limits", "min", 1.0),
    ):
        plain = make_condition(dynamics, name)
        values = plain.evaluate(q)[plain.columns[1].name]
        middle = float(np.median(values[np.isfinite(values) & (values > 0.0)]))
        result = make_condition(dynamics, name, {option: middle}).evaluate(q)
        good = sign * values >= sign * middle
        exact = np.abs(values - middle) > 1e-6 * abs(middle)
        assert good[exact].any()
        assert not good[exact].all()
        np.testing.assert_array_equal((result["status"] == YES)[exact], good[exact])


def test_options_have_their_names_of_version_0_2_too():
    kind = CONDITIONS["tension_factor"].options
    assert kind.from_json({"least": 0.2}) == kind(min=0.2)
    kind = CONDITIONS["condition_number"].options
    assert kind.from_json({"most": 20.0}) == kind(max=20.0)
    with pytest.raises(UnknownNameError, match="no option named 'most'"):
        CONDITIONS["tension_factor"].options.from_json({"most": 0.2})
