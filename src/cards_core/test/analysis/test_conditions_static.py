"""Static workspace: bounded least squares against SciPy, at any rank of L."""

import dataclasses

import condition_oracles as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from cards_core.analysis.conditions.kernels import RequiredWrenches, distances
from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.formats import load

YES, NO = PointStatus.FEASIBLE, PointStatus.INFEASIBLE


def expected_distance(jacobian, lower, upper, load):
    """SciPy's active-set method; fixed tensions are taken out, which it does not accept."""
    wide = upper > lower
    rest = load + jacobian[~wide].T @ lower[~wide]
    if not wide.any():
        return np.linalg.norm(rest)
    found = lsq_linear(
        -jacobian[wide].T, rest, bounds=(lower[wide], upper[wide]), method="bvls", tol=1e-14
    )
    return np.linalg.norm(found.fun)


@pytest.mark.parametrize(("m", "nv"), [(1, 1), (2, 5), (4, 4), (8, 6), (6, 9), (11, 4), (36, 24)])
def test_residual_is_that_of_scipy(m, nv):
    rng = np.random.default_rng(100 * m + nv)
    jacobians = rng.normal(size=(40, m, nv))
    lower = rng.uniform(0.0, 1.0, m)
    upper = lower + rng.uniform(0.0, 3.0, m) * rng.choice([0, 1, 1], m)
    upper[rng.random(m) < 0.2] = np.inf
    loads = 2.0 * rng.normal(size=(40, nv))
    status, distance = distances(jacobians, lower, upper, RequiredWrenches(loads), np.ones(nv))
    expected = np.array(
        [expected_distance(a, lower, upper, b) for a, b in zip(jacobians, loads, strict=True)]
    )
    np.testing.assert_allclose(distance, expected, atol=1e-9)
    np.testing.assert_array_equal(status == YES, expected < 1e-8)


@given(st.integers(0, 2**31), st.integers(1, 8), st.integers(1, 6))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_rank_deficient_matrices_of_small_integers(seed, m, nv):
    rng = np.random.default_rng(seed)
    jacobian = (rng.integers(-2, 3, (m, 2)) @ rng.integers(-2, 3, (2, nv))).astype(float)
    lower = rng.integers(0, 2, m).astype(float)
    upper = np.where(rng.random(m) < 0.2, np.inf, lower + rng.integers(0, 3, m))
    reach = np.where(np.isinf(upper), 1.0, upper - lower)
    load = -jacobian.T @ (lower + rng.choice([0.0, 0.5, 1.0], m) * reach)
    load += (rng.random() < 0.5) * rng.integers(-1, 2, nv)
    status, distance = distances(
        jacobian[None], lower, upper, RequiredWrenches(load[None]), np.ones(nv)
    )
    worst = oracle.residual(jacobian, lower, upper, load)
    assert (status[0] == YES) == (worst < 1e-8)
    assert status[0] in (YES, NO)
    # largest entry <= norm <= sqrt(nv) times it
    assert worst - 1e-8 <= distance[0] <= np.sqrt(nv) * worst + 1e-8


def test_a_point_on_the_border_can_be_held():
    for name in ("planar_2r", "bm_arm"):
        dynamics = make_dynamics(load(name))
        q = dynamics.tree.home[None]
        state = dynamics.batch(q)
        robot = dynamics.robot
        upper = np.array([min(m.tension_max, 1e3) for m in robot.muscles])
        corner = -state.muscle_jacobian[0].T @ upper
        status, distance = distances(
            state.muscle_jacobian,
            np.zeros(len(upper)),
            upper,
            RequiredWrenches(corner[None]),
            np.ones(dynamics.tree.nv),
        )
        assert status[0] == YES
        assert distance[0] == 0.0


def test_the_least_tension_of_the_reference_numbers():
    """At (-0.5, 0.5) the 2R robot needs 41.3328 N of one cable; two others stay at 10 N."""
    robot = load("planar_2r")
    for most, expected in ((41.3327, NO), (41.3329, YES)):
        muscles = tuple(dataclasses.replace(m, tension_max=most) for m in robot.muscles)
        dynamics = make_dynamics(dataclasses.replace(robot, muscles=muscles))
        result = make_condition(dynamics, "static").evaluate(np.array([[-0.5, 0.5]]))
        assert result["status"][0] == expected
        assert (result["residual"][0] == 0.0) == (expected == YES)
