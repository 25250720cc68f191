"""What muscles are for: robots whose answer is known by hand, and linear programs of HiGHS."""

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from cards_core.analysis.cable_function import (
    WithoutMuscles,
    analyse_cable_function,
    tension_ranges,
)
from cards_core.analysis.conditions.base import ConditionError
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.errors import ShapeError, UnknownNameError
from cards_core.formats import load
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot
from random_robots import random_robot

G = 9.81


def highs(jacobian, load, lower, upper):
    """Ranges by HiGHS: status and two arrays."""
    m = len(lower)
    least, most = np.full(m, np.nan), np.full(m, np.nan)
    bounds = np.stack([lower, upper], axis=1)
    for j in range(m):
        for way, out in ((1.0, least), (-1.0, most)):
            cost = np.zeros(m)
            cost[j] = way
            found = linprog(cost, A_eq=-jacobian.T, b_eq=load, bounds=bounds, method="highs")
            if found.status == 2:
                return PointStatus.INFEASIBLE, least, most
            out[j] = math.inf if found.status == 3 else way * found.fun
    return PointStatus.FEASIBLE, least, most


# Ranges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("nv", "m"), [(1, 1), (1, 5), (2, 4), (3, 3), (6, 8), (4, 12), (5, 3)])
def test_ranges_against_highs(nv, m):
    rng = np.random.default_rng([nv, m])
    n = 40
    jacobian = rng.normal(size=(n, m, nv))
    lower = rng.uniform(0.0, 1.0, m)
    upper = rng.uniform(5.0, 50.0, m)
    if m > nv:
        upper[0] = math.inf
    tensions = rng.uniform(lower, np.minimum(upper, 60.0), (n, m))
    load = -np.einsum("nij,ni->nj", jacobian, tensions)
    load[::3] += rng.normal(size=load[::3].shape) * 20.0  # some of these cannot be carried
    status, least, most = tension_ranges(jacobian, load, lower, upper)
    # HiGHS itself grants 1e-7 of residual; tensions are some 50 N
    for k in range(n):
        expected = highs(jacobian[k], load[k], lower, upper)
        assert status[k] == expected[0]
        if status[k] == PointStatus.FEASIBLE:
            np.testing.assert_allclose(least[k], expected[1], rtol=0, atol=1e-5)
            np.testing.assert_allclose(most[k], expected[2], rtol=0, atol=1e-5)
    assert (status == PointStatus.FEASIBLE).sum() > n / 3


def test_ranges_where_the_rank_is_too_low():
    """Columns of L that are equal, zero, and sums of others; loads that fit, and that do not."""
    rng = np.random.default_rng(1)
    jacobian = rng.normal(size=(30, 7, 4))
    jacobian[:, :, 2] = 2.0 * jacobian[:, :, 0]
    jacobian[:, :, 3] = 0.0
    jacobian[:, 5] = 0.0  # a muscle that does nothing
    lower, upper = np.full(7, 1.0), np.full(7, 30.0)
    load = -np.einsum("nij,ni->nj", jacobian, rng.uniform(1.0, 30.0, (30, 7)))
    load[10:20, 2] += 1e-3
    load[20:, 3] = 1e-3
    status, least, most = tension_ranges(jacobian, load, lower, upper)
    assert (status[:10] == PointStatus.FEASIBLE).all()
    assert (status[10:] == PointStatus.INFEASIBLE).all()
    assert np.isnan(least[10:]).all()
    np.testing.assert_array_equal(least[:10, 5], 1.0)
    np.testing.assert_array_equal(most[:10, 5], 30.0)
    for k in range(10):
        _, expected_least, expected_most = highs(jacobian[k], load[k], lower, upper)
        np.testing.assert_allclose(least[k], expected_least, rtol=0, atol=1e-5)
        np.testing.assert_allclose(most[k], expected_most, rtol=0, atol=1e-5)


def test_ranges_of_degenerate_problems():
    """Whole numbers: many vertices coincide, where a careless simplex method turns in circles."""
    rng = np.random.default_rng(2)
    jacobian = rng.integers(-1, 2, (200, 10, 4)).astype(float)
    tensions = rng.integers(0, 2, (200, 10)).astype(float)
    load = -np.einsum("nij,ni->nj", jacobian, tensions)
    lower, upper = np.zeros(10), np.ones(10)
    status, least, most = tension_ranges(jacobian, load, lower, upper)
    assert (status == PointStatus.FEASIBLE).all()
    for k in range(0, 200, 10):
        _, expected_least, expected_most = highs(jacobian[k], load[k], lower, upper)
        np.testing.assert_allclose(least[k], expected_least, rtol=0, atol=1e-7)
        np.testing.assert_allclose(most[k], expected_most, rtol=0, atol=1e-7)


def test_ranges_of_one_distribution_and_scales():
    """As many muscles as coordinates: one distribution, whatever the units."""
    rng = np.random.default_rng(3)
    jacobian = rng.normal(size=(20, 3, 3))
    tensions = rng.uniform(1.0, 9.0, (20, 3))
    load = -np.einsum("nij,ni->nj", jacobian, tensions)
    for scale in (np.ones(3), np.array([1e-6, 1.0, 1e6])):
        status, least, most = tension_ranges(
            jacobian * scale, load * scale, np.ones(3), np.full(3, 9.0)
        )
        assert (status == PointStatus.FEASIBLE).all()
        worst = max(np.linalg.cond(one) for one in jacobian)
        np.testing.assert_allclose(least, tensions, rtol=0, atol=1e-13 * worst * 9.0)
        np.testing.assert_allclose(most, tensions, rtol=0, atol=1e-13 * worst * 9.0)


def test_ranges_order_and_strides():
    rng = np.random.default_rng(4)
    buffer = rng.normal(size=(12, 60))
    jacobian = buffer[:, 5:45].reshape(12, 8, 5)[:, :, :]
    load = buffer[:, 50:55]
    lower, upper = np.zeros(8), np.full(8, math.inf)
    status, least, most = tension_ranges(jacobian, load, lower, upper)
    order = rng.permutation(8)
    copy = np.ascontiguousarray(jacobian[:, order])
    again, least2, most2 = tension_ranges(copy, load.copy(), lower, upper)
    np.testing.assert_array_equal(status, again)
    np.testing.assert_allclose(least2, least[:, order], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(most2, most[:, order], rtol=1e-9, atol=1e-9)


def test_ranges_with_bad_points_and_bad_arguments():
    jacobian, load = np.ones((4, 2, 1)), np.full((4, 1), -3.0)
    jacobian[1, 0, 0] = np.nan
    load[2, 0] = np.inf
    status, least, _ = tension_ranges(jacobian, load, np.zeros(2), np.full(2, 9.0))
    assert list(status) == [0, PointStatus.NOT_FINITE, PointStatus.NOT_FINITE, 0]
    assert np.isnan(least[[1, 2]]).all()
    empty = tension_ranges(np.zeros((2, 0, 1)), np.array([[0.0], [1.0]]), np.zeros(0), np.zeros(0))
    assert list(empty[0]) == [PointStatus.FEASIBLE, PointStatus.INFEASIBLE]
    with pytest.raises(ShapeError, match="load"):
        tension_ranges(jacobian, load[:3], np.zeros(2), np.full(2, 9.0))
    with pytest.raises(ShapeError, match="limits"):
        tension_ranges(jacobian, load, np.full(2, 10.0), np.full(2, 9.0))
    with pytest.raises(ShapeError, match="expected \\(n, m, nv\\)"):
        tension_ranges(jacobian[0], load, np.zeros(2), np.full(2, 9.0))


# By hand --------------------------------------------------------------------------------------


def lift(*muscles, mass=2.0) -> Robot:
    """A block on a vertical slide: up is positive. Muscles are (name, above or below, limits)."""
    link = Link("block", Inertia(mass, np.zeros(3), 0.01 * np.eye(3)))
    joint = Joint("slide", "prismatic", WORLD, "block", axes=(JointAxis(np.array([0, 0, 1.0])),))
    made = tuple(
        Muscle(
            name,
            (ViaPoint(WORLD, np.array([0, 0, 5.0 * side])), ViaPoint("block", np.zeros(3))),
            low,
            high,
        )
        for name, side, low, high in muscles
    )
    return Robot("lift", (link,), (joint,), made)


POSES = np.linspace(-1.0, 1.0, 5)[:, None]
WEIGHT = 2.0 * G


def test_lift_with_one_muscle_on_each_side():
    """f_up - f_down = m g: the upper one is always needed, the lower one only for closure."""
    robot = lift(("up", 1, 1.0, 100.0), ("down", -1, 1.0, 100.0))
    result = analyse_cable_function(make_dynamics(robot), POSES)
    assert result.coordinates == ("slide",)
    assert result.units == ("",)
    assert [result.arms.role(i, 0) for i in range(2)] == ["agonist", "antagonist"]
    np.testing.assert_allclose(result.arms.least[:, 0], [1.0, -1.0], atol=1e-12)
    np.testing.assert_allclose(result.arms.mean_size, 1.0, atol=1e-12)
    static, closure = result.necessity["static"], result.necessity["wrench_closure"]
    assert (static.feasible, closure.feasible) == (5, 5)
    assert list(static.lost) == [5, 0]
    assert [static.verdict(k) for k in range(2)] == ["essential", "not needed"]
    assert [closure.verdict(k) for k in range(2)] == ["essential", "essential"]
    use = result.tensions
    np.testing.assert_allclose(use.least, [[WEIGHT + 1.0, 1.0]] * 5, rtol=1e-12)
    np.testing.assert_allclose(use.most, [[100.0, 100.0 - WEIGHT]] * 5, rtol=1e-12)
    assert [use.verdict(i) for i in range(2)] == ["always needed", "exchangeable"]


@pytest.mark.parametrize(
    ("limit", "single", "tension"), [(30.0, "exchangeable", 0), (15.0, "always needed", 5)]
)
def test_lift_with_two_muscles_above(limit, single, tension):
    """Either one can replace the other if it is strong enough; the pair cannot be replaced."""
    robot = lift(("a", 1, 0.0, limit), ("b", 1, 0.0, limit), ("down", -1, 0.0, 50.0))
    result = analyse_cable_function(make_dynamics(robot), POSES, groups={"pair": ["a", "b"]})
    static = result.necessity["static"]
    assert list(result.groups) == ["a", "b", "down", "pair"]
    assert list(static.lost) == [tension, tension, 0, 5]
    assert result.tensions.verdict(0) == single
    least = max(0.0, WEIGHT - limit)
    np.testing.assert_allclose(result.tensions.least[:, 0], least, atol=1e-10)
    np.testing.assert_allclose(
        result.tensions.most[:, 2], max(0.0, min(50.0, 2 * limit - WEIGHT)), atol=1e-10
    )
    closure = result.necessity["wrench_closure"]
    assert [closure.verdict(k) for k in range(4)] == ["not needed"] * 2 + ["essential"] * 2


def test_lift_with_a_muscle_in_the_way():
    """The lower one must pull with 90 N, the upper one cannot hold that and the weight."""
    robot = lift(("up", 1, 1.0, 100.0), ("down", -1, 90.0, 95.0))
    result = analyse_cable_function(make_dynamics(robot), POSES)
    static = result.necessity["static"]
    assert (static.answered, static.feasible) == (5, 0)
    assert list(static.gained) == [0, 5]
    assert static.verdict(1) == "unknown"
    assert result.tensions.poses == 0
    assert result.tensions.verdict(0) == "unknown"
    assert np.isnan(result.tensions.least).all()


def test_lift_with_a_muscle_that_cannot_work():
    """Limits that are equal, and a second muscle that has no room below: both idle."""
    robot = lift(("up", 1, 0.0, WEIGHT + 1.0), ("down", -1, 0.0, 9.0), ("fixed", -1, 1.0, 1.0))
    use = analyse_cable_function(make_dynamics(robot), POSES).tensions
    np.testing.assert_allclose(use.most[:, 1], 0.0, atol=1e-9)
    assert [use.verdict(i) for i in range(3)] == ["always needed", "never needed", "never needed"]
    assert list(use.idle) == [0, 5, 5]


def test_a_moment_arm_that_changes_its_sign():
    """A crank: the cable from straight below turns it back to the middle from both sides."""
    link = Link("crank", Inertia(1.0, np.zeros(3), 0.01 * np.eye(3)))
    joint = Joint("hinge", "revolute", WORLD, "crank", axes=(JointAxis(np.array([0, 1.0, 0])),))
    path = (ViaPoint(WORLD, np.array([0, 0, -2.0])), ViaPoint("crank", np.array([0, 0, -0.5])))
    robot = Robot("crank", (link,), (joint,), (Muscle("cable", path, 0.0, 10.0),))
    q = np.linspace(-1.0, 1.0, 21)[:, None]
    arms = analyse_cable_function(make_dynamics(robot), q).arms
    assert arms.role(0, 0) == "both"
    assert (arms.positive[0, 0], arms.negative[0, 0]) == (10, 10)
    length = np.sqrt(4.0 + 0.25 - 2.0 * np.cos(q[:, 0]))
    np.testing.assert_allclose(arms.most[0, 0], (np.sin(q[:, 0]) / length).max(), rtol=1e-12)
    np.testing.assert_allclose(
        arms.mean_size[0, 0], np.abs(np.sin(q[:, 0]) / length).mean(), rtol=1e-12
    )


# Robots of the repository ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def arm():
    robot = load("bm_arm")
    dynamics = make_dynamics(robot)
    rng = np.random.default_rng(5)
    q = np.array([dynamics.tree.random(rng) for _ in range(120)])
    return (
        dynamics,
        q,
        analyse_cable_function(dynamics, q, groups={"elbow": ["cable_5", "cable_6"]}),
    )


def test_cut_muscles_against_highs(arm):
    dynamics, q, result = arm
    robot = dynamics.robot
    names = [muscle.name for muscle in robot.muscles]
    lower = np.array([muscle.tension_min for muscle in robot.muscles])
    upper = np.array([muscle.tension_max for muscle in robot.muscles])
    state = dynamics.batch(q)
    groups = [(), *result.groups.values()]
    for k, group in enumerate(groups):
        gone = np.isin(names, group)
        low, high = np.where(gone, 0.0, lower), np.where(gone, 0.0, upper)
        bounds = np.stack([low, high], axis=1)
        expected = [
            linprog(np.zeros(len(names)), A_eq=-one.T, b_eq=load, bounds=bounds).status == 0
            for one, load in zip(state.muscle_jacobian, state.gravity, strict=True)
        ]
        found = result.necessity["static"].statuses[:, k] == PointStatus.FEASIBLE
        np.testing.assert_array_equal(found, expected)


def test_what_is_needed_is_lost(arm):
    """A muscle that pulls more than its minimum in every distribution cannot be cut."""
    _, _, result = arm
    use, static = result.tensions, result.necessity["static"]
    assert 0 < use.poses == static.feasible < result.poses
    needed = use.least > use.lower + use.tolerance
    held = static.statuses[:, :1] == PointStatus.FEASIBLE
    lost = held & (static.statuses[:, 1 : 1 + needed.shape[1]] == PointStatus.INFEASIBLE)
    assert (lost | ~needed).all()
    assert (use.needed > 0).all()
    assert (use.needed + use.exchangeable + use.idle == use.poses).all()
    # of a group at least what is lost without one of its muscles
    assert static.lost[-1] >= static.lost[4:6].max()


def test_without_a_least_tension_lost_and_needed_are_the_same(arm):
    dynamics, q, _ = arm
    robot = dynamics.robot
    slack = dataclasses.replace(
        robot, muscles=tuple(dataclasses.replace(m, tension_min=0.0) for m in robot.muscles)
    )
    result = analyse_cable_function(make_dynamics(slack), q)
    static = result.necessity["static"]
    np.testing.assert_array_equal(result.tensions.needed, static.lost)
    np.testing.assert_array_equal(static.gained, 0)


def test_chunks_and_order_of_poses_do_not_matter(arm, monkeypatch):
    dynamics, q, result = arm
    monkeypatch.setattr("cards_core.analysis.cable_function.analysis.CHUNK", 7)
    done = []
    again = analyse_cable_function(dynamics, q[::-1], progress=done.append)
    assert done[-1] == len(q)
    np.testing.assert_array_equal(again.tensions.least[::-1], result.tensions.least)
    np.testing.assert_array_equal(
        again.necessity["static"].lost, result.necessity["static"].lost[:6]
    )
    np.testing.assert_allclose(again.arms.mean_size, result.arms.mean_size, rtol=1e-12)


def test_other_conditions_with_options(arm):
    dynamics, q, result = arm
    force = {"force_lower": [-0.1], "force_upper": [0.1]}
    conditions = {"static": None, "wrench_feasible": force}
    found = analyse_cable_function(dynamics, q, conditions=conditions).necessity
    assert list(found) == ["static", "wrench_feasible"]
    whole = found["wrench_feasible"].statuses == PointStatus.FEASIBLE
    # what carries gravity and more carries gravity
    assert (found["static"].statuses[whole] == PointStatus.FEASIBLE).all()
    assert 0 < found["wrench_feasible"].feasible < result.necessity["static"].feasible
    with pytest.raises(UnknownNameError, match="condition"):
        analyse_cable_function(dynamics, q, conditions={"sttic": None})


@pytest.mark.parametrize("seed", [0, 1])
def test_a_robot_without_muscles_is_that_robot(seed):
    """The same as if the muscles had never been described."""
    robot = random_robot(seed, n_links=3, n_muscles=5, surfaces=("sphere",))
    dynamics = make_dynamics(robot, "numeric")
    cut = WithoutMuscles(dynamics, ["muscle1", "muscle4"])
    other = make_dynamics(cut.robot, "numeric")
    rng = np.random.default_rng(seed)
    q, qd = dynamics.tree.random(rng), rng.normal(size=dynamics.tree.nv)
    a = cut.update(q, qd)
    b = other.update(q, qd)
    batch = cut.batch(q[None], qd[None])
    for name in ("mass_matrix", "coriolis", "gravity", "muscle_lengths", "muscle_jacobian"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-9)
        np.testing.assert_allclose(getattr(batch, name)[0], getattr(b, name), atol=1e-9)
    np.testing.assert_allclose(cut.link_poses(q), other.link_poses(q), atol=1e-12)
    np.testing.assert_allclose(cut.muscle_bias(q, qd), other.muscle_bias(q, qd), atol=1e-9)
    with pytest.raises(UnknownNameError, match="muscle9"):
        WithoutMuscles(dynamics, ["muscle9"])


# Bad points and robots ------------------------------------------------------------------------


def test_poses_that_are_not_finite_count_for_nothing():
    robot = lift(("up", 1, 1.0, 100.0), ("down", -1, 1.0, 100.0))
    dynamics = make_dynamics(robot)
    bad = np.concatenate([POSES, [[np.nan], [np.inf]]])
    result = analyse_cable_function(dynamics, bad)
    good = analyse_cable_function(dynamics, POSES)
    assert (result.poses, result.arms.poses, result.tensions.poses) == (7, 5, 5)
    assert result.necessity["static"].answered == 5
    assert {**result.to_json(), "poses": 5} == good.to_json()


def test_robots_with_one_muscle_and_with_none():
    one = analyse_cable_function(make_dynamics(lift(("up", 1, 1.0, 100.0))), POSES)
    assert one.necessity["static"].verdict(0) == "essential"
    assert one.necessity["wrench_closure"].feasible == 0
    assert one.necessity["wrench_closure"].answered == 5
    assert one.tensions.verdict(0) == "always needed"
    none = analyse_cable_function(make_dynamics(lift()), POSES)
    assert none.muscles == ()
    assert none.necessity["static"].feasible == 0
    assert none.tensions.poses == 0
    for result in (one, none, analyse_cable_function(make_dynamics(lift()), POSES[:0])):
        json.dumps(result.to_json(), allow_nan=False)


def test_ligaments_are_no_choice_but_a_load():
    dynamics = make_dynamics(load("wrap_elbow"))
    q = np.linspace(0.0, 2.0, 11)[:, None]
    result = analyse_cable_function(dynamics, q)
    assert result.muscles == ("biceps", "triceps", "capsule")
    assert result.tensions.muscles == ("biceps", "triceps")
    assert [result.arms.role(i, 0) for i in range(2)] == ["agonist", "antagonist"]


def test_groups_that_cannot_be():
    dynamics = make_dynamics(lift(("up", 1, 1.0, 100.0)))
    with pytest.raises(ConditionError, match="no muscles"):
        analyse_cable_function(dynamics, POSES, groups={"g": []})
    with pytest.raises(ConditionError, match="name of a muscle"):
        analyse_cable_function(dynamics, POSES, groups={"up": ["up"]})
    with pytest.raises(UnknownNameError, match="did you mean 'up'"):
        analyse_cable_function(dynamics, POSES, groups={"g": ["upp"]})
    with pytest.raises(ShapeError, match="expected \\(n, 1\\)"):
        analyse_cable_function(dynamics, np.zeros((3, 2)))
