"""CASPR's metrics and its puncture method, against hulls, linear programs and definitions."""

import condition_oracles as oracle
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from workspace_cases import cube_robot

from cards_core.analysis.conditions.base import ConditionError
from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.status import PointStatus
from cards_core.analysis.tension_distribution import make_tension_distribution
from cards_core.dynamics import make_dynamics
from cards_core.formats import load

YES, NO = PointStatus.FEASIBLE, PointStatus.INFEASIBLE


def poses(dynamics, count, seed=1, span=0.3):
    rng = np.random.default_rng(seed)
    away = np.array([dynamics.tree.random(rng) for _ in range(count)])
    return dynamics.tree.home + span * (away - dynamics.tree.home)


def vertices(dynamics, q):
    """Accelerations from rest with every muscle at one of its limits, shape (2^m, nv)."""
    muscles = dynamics.robot.muscles
    state = dynamics.update(q, np.zeros(dynamics.tree.nv))
    corners = [(m.tension_min, m.tension_max) for m in muscles]
    tensions = np.array(np.meshgrid(*corners)).reshape(len(muscles), -1)
    torque = -state.muscle_jacobian.T @ tensions - state.gravity[:, None]
    return np.linalg.solve(state.mass_matrix, torque).T


@pytest.mark.parametrize(
    ("robot", "options", "unit"),
    [
        ("ipanema_1", {}, "m/s^2 or rad/s^2"),
        ("ipanema_1", {"characteristic_length": 0.5}, "m/s^2"),
        ("planar_2r", {}, "rad/s^2"),
        ("planar_2r", {"characteristic_length": 0.5}, "m/s^2"),
        ("planar_xy", {}, "m/s^2 or rad/s^2"),
        (cube_robot(), {}, "m/s^2"),
    ],
)
def test_the_acceleration_margin_has_the_unit_of_the_coordinates(robot, options, unit):
    dynamics = make_dynamics(load(robot) if isinstance(robot, str) else robot, "numeric")
    columns = make_condition(dynamics, "acceleration_margin", options).columns
    assert [column.unit for column in columns if column.name == "acceleration_margin"] == [unit]


@pytest.mark.parametrize("name", ["planar_xy", "bm_arm", "planar_2r"])
def test_acceleration_margin_is_the_distance_of_the_hull(name):
    """The hull of the accelerations of all vertices, by Qhull: an independent construction."""
    dynamics = make_dynamics(load(name))
    q = poses(dynamics, 12)
    found = make_condition(dynamics, "acceleration_margin").evaluate(q)
    numeric = make_dynamics(load(name), "numeric")
    for k, row in enumerate(q):
        hull = ConvexHull(vertices(numeric, row))
        # |c| = 1: c'a + offset <= 0 inside
        want = -hull.equations[:, -1].max()
        assert found["acceleration_margin"][k] == pytest.approx(want, rel=1e-6, abs=1e-7)
        assert found["status"][k] == (YES if want >= 0.0 else NO)


def test_acceleration_margin_is_possible_in_every_direction_and_no_more():
    dynamics = make_dynamics(load("bm_arm"), "numeric")
    q = dynamics.tree.home
    condition = make_condition(make_dynamics(load("bm_arm")), "acceleration_margin")
    margin = float(condition.evaluate(q[None])["acceleration_margin"][0])
    assert margin > 0.0
    reached = vertices(dynamics, q)
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(2000, 4))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    reach = (directions @ reached.T).max(axis=1)
    assert reach.min() >= margin
    assert reach.min() < 3.0 * margin


def test_acceleration_margin_says_which_poses_can_be_held():
    """Those where it is not negative; a length of 1 m changes no number, a large least all."""
    robot = load("ipanema_1")
    dynamics = make_dynamics(robot)
    q = poses(dynamics, 60, span=0.06)
    margin = make_condition(dynamics, "acceleration_margin").evaluate(q)
    static = make_condition(dynamics, "static").evaluate(q)
    np.testing.assert_array_equal(margin["status"] == YES, static["status"] == YES)
    assert 5 < np.count_nonzero(margin["status"] == YES) < 55
    in_metres = make_condition(dynamics, "acceleration_margin", {"characteristic_length": 1.0})
    np.testing.assert_allclose(
        in_metres.evaluate(q)["acceleration_margin"], margin["acceleration_margin"]
    )
    demanding = make_condition(dynamics, "acceleration_margin", {"min": 1e3}).evaluate(q)
    assert not (demanding["status"] == YES).any()
    with pytest.raises(ConditionError, match="max_facets"):
        make_condition(dynamics, "acceleration_margin", {"max_facets": 3})


@pytest.mark.parametrize("name", ["planar_xy", "bm_arm", "ipanema_1"])
def test_modified_tension_factor_is_what_it_says(name):
    """By linear programs and NumPy's singular values, for all muscles and for all but one."""
    dynamics = make_dynamics(load(name))
    q = poses(dynamics, 15)
    found = make_condition(dynamics, "modified_tension_factor").evaluate(q)
    numeric = make_dynamics(load(name), "numeric")
    for k, row in enumerate(q):
        jacobian = numeric.update(row, np.zeros(numeric.tree.nv)).muscle_jacobian
        sets = [jacobian]
        if len(jacobian) > jacobian.shape[1] + 1:
            sets += [np.delete(jacobian, i, axis=0) for i in range(len(jacobian))]
        want = 0.0
        for one in sets:
            sigma = np.linalg.svd(one, compute_uv=False)
            want = max(want, oracle.tension_factor(one) * sigma[-1] / sigma[0])
        assert found["modified_tension_factor"][k] == pytest.approx(want, rel=1e-5, abs=1e-8)
    plain = make_condition(dynamics, "tension_factor").evaluate(q)["tension_factor"]
    if name == "planar_xy":  # one muscle more than coordinates: there is nothing to leave out
        assert np.all(found["modified_tension_factor"] <= plain)


def puncture(matrix, needed, low, high):
    return make_tension_distribution("puncture", low, high, len(matrix)).solve(matrix, needed)


def test_puncture_takes_the_first_point_within_the_limits():
    """Of the line between two solutions, by a linear program in one variable."""
    rng, moved = np.random.default_rng(3), 0
    for _ in range(300):
        nv = int(rng.integers(2, 6))
        m = nv + int(rng.integers(1, 4))
        matrix = rng.normal(size=(nv, m))
        low, high = np.full(m, 5.0), np.full(m, 100.0)
        needed = matrix @ rng.uniform(low, high)
        inside = make_tension_distribution("improved_closed_form", low, high, nv).solve(
            matrix, needed
        )
        found = puncture(matrix, needed, low, high)
        if inside.status != YES:
            assert found.status == inside.status
            continue
        assert found.status == YES
        np.testing.assert_allclose(matrix @ found.tensions, needed, atol=1e-7)
        assert found.tensions.min() >= 5.0 - 1e-8
        start = np.linalg.pinv(matrix) @ needed
        way = inside.tensions - start
        best = linprog(
            [1.0],
            A_ub=np.concatenate([-way, way])[:, None],
            b_ub=np.concatenate([start - low, high - start]) + 1e-9,
            bounds=[(0.0, 1.0)],
        )
        np.testing.assert_allclose(found.tensions, start + best.x[0] * way, atol=1e-5)
        assert np.linalg.norm(found.tensions) <= np.linalg.norm(inside.tensions) + 1e-9
        moved += 0.0 < best.x[0] < 1.0
    assert moved > 100


def test_puncture_is_the_least_norm_where_that_keeps_the_limits():
    matrix = np.array([[1.0, -1.0, 0.2]])
    needed = np.array([30.0])
    low, high = np.full(3, -50.0), np.full(3, 100.0)
    found = puncture(matrix, needed, low, high)
    np.testing.assert_allclose(found.tensions, np.linalg.pinv(matrix) @ needed, atol=1e-9)
