"""Wrench feasibility, its margin, static poses: hulls, linear programs, invariances, limits."""

import dataclasses

import condition_oracles as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from cards_core.analysis.conditions.base import ConditionError
from cards_core.analysis.conditions.kernels import RequiredWrenches, capacity, distances
from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError, ShapeError, UnknownNameError
from cards_core.formats import load

YES, NO = PointStatus.FEASIBLE, PointStatus.INFEASIBLE
BORDER = 1e-9
"""Slack of the oracle, whose own tolerance is 1e-10, below which it cannot tell."""


def limits(rng, m):
    lower = rng.uniform(0.0, 1.0, m)
    return lower, lower + rng.uniform(0.5, 3.0, m)


def wrenches_near_the_border(rng, jacobians, lower, upper):
    top = np.where(np.isinf(upper), lower + 2.0, upper)
    f = 0.5 * (lower + top) + rng.normal(size=jacobians.shape[:2])
    return -np.einsum("nmv,nm->nv", jacobians, f)


def check_feasibility(jacobians, lower, upper, corner_lists, status):
    """Compare with linear programs, borderline points included: none may be left out."""
    slacks = np.array(
        [
            min(oracle.tension_slack(jacobian, lower, upper, corner) for corner in corners)
            for jacobian, corners in zip(jacobians, corner_lists, strict=True)
        ]
    )
    assert np.abs(slacks).min() > BORDER, "the oracle cannot tell for some point: another seed"
    np.testing.assert_array_equal(status, np.where(slacks > 0.0, YES, NO))
    return slacks


# IPAnema -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ipanema():
    return make_dynamics(load("ipanema_1"))


def with_least_tension(robot, least):
    muscles = tuple(dataclasses.replace(m, tension_min=least) for m in robot.muscles)
    return dataclasses.replace(robot, muscles=muscles)


def test_wrench_feasibility_of_a_thousand_poses_of_ipanema_agrees_with_a_linear_program(ipanema):
    dynamics = make_dynamics(with_least_tension(ipanema.robot, 5.0))
    q = oracle.ipanema_poses(np.random.default_rng(8), 1000)
    state = dynamics.batch(q)
    lower, upper = np.full(8, 5.0), np.full(8, 720.0)
    corners = state.gravity[:, None]
    status = make_condition(dynamics, "wrench_feasible").evaluate(q)["status"]
    slacks = check_feasibility(state.muscle_jacobian, lower, upper, corners, status)
    assert 100 < (slacks > 0.0).sum() < 900
    # the other two algorithms agree
    by_corner = make_condition(dynamics, "wrench_feasible", {"method": "vertices"})
    np.testing.assert_array_equal(by_corner.evaluate(q)["status"], status)
    static = make_condition(dynamics, "static").evaluate(q)
    np.testing.assert_array_equal(static["status"], status)


def test_a_box_of_wrenches_at_a_frame_and_accelerations(ipanema):
    q = oracle.ipanema_poses(np.random.default_rng(9), 20) * [0.4, 0.4, 1, 1, 1, 1]
    state = ipanema.batch(q)
    low, high = [-20.0, -10.0, 0.0, 0.0, -0.5, 0.0], [20.0, 30.0, 0.0, 0.0, 0.5, 0.0]
    acceleration = [0.1, 0.0, 0.3, 0.0, 0.0, 0.01]
    options = {"wrench_lower": low, "wrench_upper": high, "accelerations": acceleration}
    status = make_condition(ipanema, "wrench_feasible", options).evaluate(q)["status"]
    by_corner = make_condition(ipanema, "dynamic", {**options, "method": "vertices"})
    np.testing.assert_array_equal(by_corner.evaluate(q)["status"], status)
    corners = []
    for k, row in enumerate(q):
        jacobian = ipanema.operational(row, np.zeros(6)).jacobian.copy()
        middle, half = 0.5 * np.add(low, high), 0.5 * np.subtract(high, low)
        wide = np.vstack([-(jacobian * half[:, None]), (state.mass_matrix[k] * acceleration).T])
        corners.append(oracle.corners(state.gravity[k] - jacobian.T @ middle, wide[wide.any(1)]))
    slacks = check_feasibility(
        state.muscle_jacobian, np.zeros(8), np.full(8, 720.0), corners, status
    )
    assert 2 < (slacks > 0.0).sum() < 18


def test_joint_forces_as_box_polytope_and_velocity(ipanema):
    rng = np.random.default_rng(10)
    q = oracle.ipanema_poses(rng, 10) * [0.4, 0.4, 1, 0.5, 0.5, 0.5]
    state = ipanema.batch(q)
    box = {"force_lower": [-30, 0, 10, 0, 0, 0], "force_upper": [30, 0, 40, 0, 0, 0]}
    points = np.array([[-30, 0, 10, 0, 0, 0], [30, 0, 10, 0, 0, 0], [-30, 0, 40, 0, 0, 0]])
    points = np.vstack([points, [[30, 0, 40, 0, 0, 0], [0, 0, 20, 0, 0, 0]]]).astype(float)
    margin = make_condition(ipanema, "capacity_margin", box).evaluate(q)["margin"]
    hull = make_condition(ipanema, "capacity_margin", {"vertices": points}).evaluate(q)["margin"]
    np.testing.assert_allclose(margin, hull, atol=1e-9)
    expected = [
        oracle.hull_margin(state.muscle_jacobian[k], np.zeros(8), np.full(8, 720.0), g + points)
        for k, g in enumerate(state.gravity)
    ]
    np.testing.assert_allclose(margin, expected, atol=1e-8)
    qd = rng.normal(size=6)
    moving = make_condition(ipanema, "capacity_margin", {"velocities": qd}).evaluate(q)["margin"]
    coriolis = ipanema.batch(q, np.tile(qd, (10, 1))).coriolis
    expected = [
        oracle.hull_margin(
            state.muscle_jacobian[k],
            np.zeros(8),
            np.full(8, 720.0),
            (state.gravity[k] + coriolis[k])[None],
        )
        for k in range(10)
    ]
    np.testing.assert_allclose(moving, expected, atol=1e-8)


def test_characteristic_length_makes_the_margin_a_force(ipanema):
    q = oracle.ipanema_poses(np.random.default_rng(11), 6)
    length = 0.06
    found = make_condition(ipanema, "capacity_margin", {"characteristic_length": length})
    result = found.evaluate(q)
    assert found.columns[1].unit == "N"
    plain = make_condition(ipanema, "capacity_margin").evaluate(q)
    np.testing.assert_array_equal(plain["status"], result["status"])
    state = ipanema.batch(q)
    scale = np.array([1.0, 1.0, 1.0, 1 / length, 1 / length, 1 / length])
    expected = [
        oracle.hull_margin(
            state.muscle_jacobian[k] * scale, np.zeros(8), np.full(8, 720.0), (g * scale)[None]
        )
        for k, g in enumerate(state.gravity)
    ]
    np.testing.assert_allclose(result["margin"], expected, atol=1e-8)


# Matrices ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "nv"), [(4, 2), (5, 3), (8, 3), (7, 4), (8, 6), (3, 3), (11, 4)])
def test_margin_is_that_of_the_convex_hull(m, nv):
    rng = np.random.default_rng(10 * m + nv)
    jacobians = rng.normal(size=(15, m, nv))
    lower, upper = limits(rng, m)
    loads = wrenches_near_the_border(rng, jacobians, lower, upper)
    _, margin = capacity(jacobians, lower, upper, RequiredWrenches(loads), np.ones(nv))
    expected = [
        oracle.hull_margin(jacobian, lower, upper, load[None])
        for jacobian, load in zip(jacobians, loads, strict=True)
    ]
    np.testing.assert_allclose(margin, expected, atol=1e-11)


@pytest.mark.parametrize("endless", [0, 1, 4, 8])
@pytest.mark.parametrize(("m", "nv"), [(8, 6), (11, 4)])
def test_feasibility_agrees_with_a_linear_program(m, nv, endless):
    rng = np.random.default_rng(m + endless)
    jacobians = rng.normal(size=(250, m, nv))
    lower, upper = limits(rng, m)
    upper[rng.permutation(m)[:endless]] = np.inf
    loads = wrenches_near_the_border(rng, jacobians, lower, upper)
    required = RequiredWrenches(loads)
    status, _ = capacity(jacobians, lower, upper, required, np.ones(nv))
    check_feasibility(jacobians, lower, upper, loads[:, None], status)
    one_by_one, distance = distances(jacobians, lower, upper, required, np.ones(nv))
    np.testing.assert_array_equal(one_by_one, status)
    np.testing.assert_array_equal(distance > 0.0, status == NO)


@pytest.mark.parametrize(("m", "nv", "count", "far"), [(36, 24, 20, 2.0), (76, 24, 10, 4.0)])
def test_large_redundancy_corner_by_corner(m, nv, count, far):
    rng = np.random.default_rng(m)
    jacobians = rng.normal(size=(count, m, nv))
    lower, upper = limits(rng, m)
    reach = np.where(np.arange(count) % 2, 0.7, far)[:, None]
    f = 0.5 * (lower + upper + reach * rng.choice([-1, 1], (count, m)) * (upper - lower))
    loads = -np.einsum("nmv,nm->nv", jacobians, f)
    generators = 0.02 * rng.normal(size=(count, 3, nv))
    required = RequiredWrenches(loads, generators)
    status, _ = distances(jacobians, lower, upper, required, np.ones(nv))
    corners = [oracle.corners(a, b) for a, b in zip(loads, generators, strict=True)]
    slacks = check_feasibility(jacobians, lower, upper, corners, status)
    assert (slacks > 0.0).any()
    assert (slacks < 0.0).any()


def test_margin_is_infinite_where_everything_can_be_made():
    cross = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    load = RequiredWrenches(np.array([[5.0, -1e6]]))
    status, margin = capacity(cross[None], np.zeros(4), np.full(4, np.inf), load, np.ones(2))
    assert status[0] == YES
    assert margin[0] == np.inf
    # and is that of the one limited direction where there is one: at most 3 along x
    upper = np.array([np.inf, 3.0, np.inf, np.inf])
    status, margin = capacity(cross[None], np.zeros(4), upper, load, np.ones(2))
    assert status[0] == NO
    np.testing.assert_allclose(margin, 3.0 - 5.0)
    upper = np.array([3.0, 2.0, np.inf, np.inf])
    load = RequiredWrenches(np.array([[1.0, 7.0]]))
    _, margin = capacity(cross[None], np.zeros(4), upper, load, np.ones(2))
    np.testing.assert_allclose(margin, 1.0)


@given(st.integers(0, 2**31), st.integers(2, 5), st.integers(0, 4))
@settings(max_examples=120, deadline=None, derandomize=True)
def test_degenerate_matrices_of_small_integers(seed, nv, more):
    rng = np.random.default_rng(seed)
    m = nv + more
    jacobian = rng.integers(-2, 3, (m, nv)) * rng.choice([0, 1, 1, 1], (m, 1)).astype(float)
    lower = rng.integers(0, 2, m).astype(float)
    upper = lower + rng.integers(0, 3, m)
    load = -jacobian.T @ (lower + rng.choice([0.0, 0.5, 1.0], m) * (upper - lower))
    load += (rng.random() < 0.6) * rng.integers(-1, 2, nv)
    required = RequiredWrenches(load[None])
    status, margin = capacity(jacobian[None], lower, upper, required, np.ones(nv))
    feasible = oracle.residual(jacobian, lower, upper, load) < 1e-8
    wide = jacobian[upper > lower]
    if len(wide) < nv:
        assert status[0] == PointStatus.TOO_FEW_MUSCLES
    elif np.linalg.matrix_rank(wide) < nv:
        assert status[0] == PointStatus.RANK_DEFICIENT
    else:
        # points on the border are feasible
        assert (status[0] == YES) == feasible
        expected = oracle.hull_margin(jacobian, lower, upper, load[None])
        np.testing.assert_allclose(margin[0], expected, atol=1e-10)
    assert np.isnan(margin[0]) == (status[0] not in (YES, NO))
    one_by_one, _ = distances(jacobian[None], lower, upper, required, np.ones(nv))
    assert (one_by_one[0] == YES) == feasible
    assert one_by_one[0] in (YES, NO)


@given(st.integers(0, 2**31))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_neither_order_nor_axes_change_the_margin_and_tensions_scale_it(seed):
    rng = np.random.default_rng(seed)
    m, nv = 7, 4
    jacobian = rng.normal(size=(1, m, nv))
    lower, upper = limits(rng, m)
    load = wrenches_near_the_border(rng, jacobian, lower, upper)
    generators = 0.1 * rng.normal(size=(1, 2, nv))
    vertices = 0.1 * rng.normal(size=(1, 3, nv))

    def margin(jacobian, lower, upper, *wrenches):
        return capacity(jacobian, lower, upper, RequiredWrenches(*wrenches), np.ones(nv))[1]

    wrenches = (load, generators, vertices)
    expected = margin(jacobian, lower, upper, *wrenches)
    order = rng.permutation(m)
    assert np.allclose(margin(jacobian[:, order], lower[order], upper[order], *wrenches), expected)
    turn = np.linalg.qr(rng.normal(size=(nv, nv)))[0]
    turned = [w @ turn for w in wrenches]
    assert np.allclose(margin(jacobian @ turn, lower, upper, *turned), expected)
    scale = rng.uniform(0.01, 100.0)
    scaled = margin(jacobian, scale * lower, scale * upper, *[scale * w for w in wrenches])
    assert np.allclose(scaled, scale * expected)
    # larger limits never make it smaller, larger requirements never larger
    assert margin(jacobian, lower, upper + 0.5, *wrenches) >= expected - 1e-12
    assert margin(jacobian, lower, upper, load, 1.5 * generators, vertices) <= expected + 1e-12
    # the same muscle twice with half the tension each
    twice = np.repeat(jacobian, 2, axis=1)
    halves = margin(twice, np.repeat(0.5 * lower, 2), np.repeat(0.5 * upper, 2), *wrenches)
    assert np.allclose(halves, expected)


@pytest.mark.parametrize("angle", [1e-3, 1e-6, 1e-9, 1e-11, 1e-13])
def test_muscles_that_are_nearly_parallel(angle):
    rng = np.random.default_rng(3)
    jacobian = rng.normal(size=(6, 3))
    jacobian[1] = jacobian[0] + angle * rng.normal(size=3)
    lower, upper = np.zeros(6), np.full(6, 2.0)
    load = -jacobian.T @ np.full(6, 1.0) + rng.normal(size=3)
    _, margin = capacity(jacobian[None], lower, upper, RequiredWrenches(load[None]), np.ones(3))
    # the limit: one muscle of twice the strength
    merged, strength = np.delete(jacobian, 1, axis=0), np.r_[4.0, np.full(4, 2.0)]
    expected = oracle.hull_margin(merged, np.zeros(5), strength, load[None])
    np.testing.assert_allclose(margin[0], expected, atol=10.0 * angle + 1e-9)


def test_bad_points_have_a_status():
    jacobians = np.random.default_rng(0).normal(size=(5, 6, 4))
    jacobians[1, 2, 1] = np.nan
    jacobians[2, :, 3] = 0.0
    jacobians[4] *= [1.0, 1.0, 1.0, 1e-8]
    loads = np.zeros((5, 4))
    loads[3, 0] = np.inf
    required = RequiredWrenches(loads)
    status, margin = capacity(jacobians, np.zeros(6), np.ones(6), required, np.ones(4))
    assert list(status[1:4]) == [
        PointStatus.NOT_FINITE,
        PointStatus.RANK_DEFICIENT,
        PointStatus.NOT_FINITE,
    ]
    assert {status[0], status[4]} <= {YES, NO}
    np.testing.assert_array_equal(np.isnan(margin), [False, True, True, True, False])
    status, distance = distances(jacobians, np.zeros(6), np.ones(6), required, np.ones(4))
    assert status[1] == status[3] == PointStatus.NOT_FINITE
    np.testing.assert_array_equal(np.isnan(distance), [False, True, False, True, False])
    required = RequiredWrenches(loads[:1])
    status, _ = capacity(jacobians[:1, :3], np.zeros(3), np.ones(3), required, np.ones(4))
    assert status[0] == PointStatus.TOO_FEW_MUSCLES


def test_refuses_shapes_that_do_not_fit():
    jacobians = np.ones((5, 6, 4))
    required = RequiredWrenches(np.zeros((5, 4)))
    with pytest.raises(ShapeError, match="lower"):
        capacity(jacobians, np.zeros(5), np.ones(6), required, np.ones(4))
    two = RequiredWrenches(np.zeros((2, 4)))
    with pytest.raises(ShapeError, match="load"):
        capacity(jacobians, np.zeros(6), np.ones(6), two, np.ones(4))
    with pytest.raises(ShapeError, match="L has shape"):
        capacity(np.ones((6, 4)), np.zeros(6), np.ones(6), required, np.ones(4))


# Options -------------------------------------------------------------------------------------


def test_the_method_follows_the_limits(ipanema):
    box = {"force_lower": [-1.0], "force_upper": [1.0]}
    assert make_condition(ipanema, "wrench_feasible", box).method == "facets"
    few = make_condition(ipanema, "wrench_feasible", {**box, "max_facets": 10})
    assert (few.method, few.corners) == ("vertices", 64)
    assert [column.name for column in few.columns] == ["status", "distance"]
    with pytest.raises(ConditionError, match=r"56 combinations.*64 corners"):
        make_condition(ipanema, "wrench_feasible", {**box, "max_facets": 9, "max_vertices": 9})
    with pytest.raises(ConditionError, match="needs the method 'facets'"):
        make_condition(ipanema, "capacity_margin", {"method": "vertices"})
    with pytest.raises(ConditionError, match="max_facets"):
        make_condition(ipanema, "capacity_margin", {"max_facets": 10})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"force_lower": [1.0, 2.0]}, "2 numbers, expected one or 6"),
        ({"force_lower": [1.0], "force_upper": [0.0]}, "'force_lower' is above"),
        ({"vertices": [[1.0, 2.0]]}, "corner of 2 numbers, expected 6"),
        ({"wrench_upper": [1.0, 1.0]}, "expected one or 6: force x"),
    ],
)
def test_refuses_options_that_do_not_fit_the_robot(ipanema, options, message):
    with pytest.raises(ConditionError, match=message):
        make_condition(ipanema, "wrench_feasible", options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accelerations": [-1.0]}, r"'accelerations' is \[-1.0\] .expected: finite, 0 .. inf"),
        ({"tolerance": 0.0}, r"'tolerance' is 0.0 .expected: finite, > 0"),
    ],
)
def test_refuses_options_that_are_out_of_range(ipanema, options, message):
    with pytest.raises(ParameterError, match=message):
        make_condition(ipanema, "wrench_feasible", options)


def test_refuses_a_frame_that_does_not_exist(ipanema):
    with pytest.raises(UnknownNameError, match="nowhere"):
        make_condition(ipanema, "wrench_feasible", {"frame": "nowhere", "wrench_upper": [1.0]})


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


@pytest.mark.parametrize(
    ("robot", "options", "unit"),
    [
        ("ipanema_1", {}, "N or Nm"),
        ("ipanema_1", {"characteristic_length": 0.5}, "N"),
        ("planar_2r", {}, "Nm"),
    ],
)
def test_margins_have_the_unit_of_the_coordinates(robot, options, unit):
    dynamics = make_dynamics(load(robot), "numeric")
    columns = make_condition(dynamics, "capacity_margin", options).columns
    assert [column.unit for column in columns if column.name == "margin"] == [unit]
