"""Singular values and the unilateral measures: NumPy, closed forms, and what they promise."""

import condition_oracles as oracle
import daqp
import numpy as np
import pytest

from cards_core.analysis.conditions.kernels import singular_values, unilateral_factors
from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.formats import load

YES, NO = PointStatus.FEASIBLE, PointStatus.INFEASIBLE


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
        ("condition_number", "most", -1.0),
        ("manipulability", "least", 1.0),
        ("unilateral_dexterity", "least", 1.0),
        ("force_amplification", "most", -1.0),
        ("tension_factor", "least", 1.0),
        ("capacity_margin", "least", 1.0),
        ("joint_limits", "least", 1.0),
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
