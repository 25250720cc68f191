"""Fits of via points: derivatives, margins against linear programs, and whole fits."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fit_specifications import specification_of
from moved_muscles import moved
from scipy.optimize import linprog, minimize
from scipy.spatial import ConvexHull

from cards_core.analysis.muscle_fit.fit import MuscleFit, independent_parts
from cards_core.analysis.muscle_fit.margins import (
    closure_margin,
    most_facets,
    single_shortfall,
    torque_interval,
    torque_shortfall,
)
from cards_core.analysis.muscle_fit.moment_arms import MusclePath, link_motion
from cards_core.analysis.muscle_fit.problem import FitProblem
from cards_core.analysis.muscle_fit.result import markdown, not_met, torque_range
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import load, read_sdf, to_sdf
from cards_core.formats.urdf.importer import import_urdf

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
FORMAT = {"format": "muscle_fit/1"}
PLANAR_GRID = {"grid": {"joint_1": [-1, 1, 7], "joint_2": [-1, 1, 7]}}


def fit(robot, data, **settings):
    return MuscleFit(specification_of(FORMAT | data, robot), **settings)


def some_poses(robot, count, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([robot.tree.random(rng) for _ in range(count)])


def jacobians(robot, q):
    """L from the dynamics, shape (n, m, nv): another implementation than that of the fit."""
    return rows(robot, q)[..., :-1]


def rows(robot, q):
    """L and lengths from the dynamics, shape (n, m, nv + 1)."""
    found = make_dynamics(robot, "numeric").batch(q)
    return np.concatenate([found.muscle_jacobian, found.muscle_lengths[..., None]], axis=2)


# Moment arms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["roboy_arm", "spherical_2s", "wrap_elbow", "antagonist_joint"])
def test_rows_of_l_and_lengths_are_those_of_the_dynamics(name):
    robot = load(name)
    q = some_poses(robot, 5)
    motion, expected = link_motion(robot, q), rows(robot, q)
    for i, muscle in enumerate(robot.muscles):
        points = np.array([item.position for item in muscle.via_points])
        found = MusclePath(robot, muscle, motion).row(points)
        np.testing.assert_allclose(found, expected[:, i], rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["roboy_arm", "spherical_2s", "wrap_elbow", "antagonist_joint"])
def test_derivatives_by_points_are_differences_of_the_dynamics(name):
    robot = load(name)
    q = some_poses(robot, 3)
    motion, h = link_motion(robot, q), 2e-6
    for i, muscle in enumerate(robot.muscles[:4]):
        points = np.array([item.position for item in muscle.via_points])
        places = [k for k, item in enumerate(muscle.path) if item in muscle.via_points]
        path = MusclePath(robot, muscle, motion)
        found = path.gradient(points, wanted=list(range(len(points))))
        for k, place in enumerate(places):
            for axis in range(3):
                ends = []
                for sign in (1.0, -1.0):
                    item = muscle.path[place]
                    step = sign * h * np.eye(3)[axis]
                    parts = list(muscle.path)
                    parts[place] = replace(item, position=item.position + step)
                    muscles = list(robot.muscles)
                    muscles[i] = replace(muscle, path=tuple(parts))
                    ends.append(rows(replace(robot, muscles=tuple(muscles)), q)[:, i])
                difference = (ends[0] - ends[1]) / (2.0 * h)
                np.testing.assert_allclose(found[:, :, k, axis], difference, rtol=0, atol=1e-6)


CASES = {
    "arms": ("roboy_arm", {"moment_arms": [{"like": "roboy_arm"}]}, {"samples": 4}),
    "lengths": (
        "wrap_elbow",
        {
            "lengths": [
                {"muscle": name, "values": 0.3, "tolerance": 0.01}
                for name in ("biceps", "triceps")
            ]
        },
        {"samples": 4},
    ),
    "torques and closure": (
        "roboy_arm",
        {
            "closure": {"margin": 0.05},
            "torques": [
                {"joint": ["elbow", "shoulder_axis_2"], "range": [-400, 400]},
                {"joint": "elbow", "range": [-900, 900], "others": "free", "gravity": True},
            ],
        },
        {"samples": 5},
    ),
    "closure where rows are in line": (
        "planar_2r",
        {"closure": {"margin": 0.05}},
        {"grid": {"joint_1": [-1.4, 1.5, 4], "joint_2": [-1.5, 1.4, 4]}},
    ),
    "a radius of two muscles": (
        "antagonist_joint",
        {
            "radii": [{"surface": "wheel", "range": [0.02, 0.04]}],
            "moment_arms": [{"muscle": "left", "joint": "hinge", "values": 0.035}],
            "closure": {"margin": 0.05},
        },
        {"samples": 4},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_jacobian_of_residuals_is_that_of_differences(case):
    name, goals, poses = CASES[case]
    points = {"points": [{"muscle": "all", "box": 0.02}]}
    specification = specification_of(FORMAT | goals | points | {"poses": poses}, load(name))
    problem = FitProblem(specification)
    y = 0.6 * specification.variables.random(np.random.default_rng(1))
    r, jacobian = problem.linearise(y)
    np.testing.assert_array_equal(r, problem.residuals(y))
    assert np.count_nonzero(r) > 3
    h = 1e-6
    difference = np.column_stack(
        [
            (problem.residuals(y + step) - problem.residuals(y - step)) / (2.0 * h)
            for step in h * np.eye(len(y))
        ]
    )
    np.testing.assert_allclose(jacobian, difference, rtol=0, atol=1e-5 * np.abs(jacobian).max())


# Margins -----------------------------------------------------------------------------------------


def closure_by_linear_program(rows):
    """Whether there is f >= 1 with L'f = 0, and L has full rank [Roberts1998]."""
    m, n = rows.shape
    found = linprog(np.ones(m), A_eq=rows.T, b_eq=np.zeros(n), bounds=(1.0, None), method="highs")
    return found.status == 0 and np.linalg.matrix_rank(rows) == n


@pytest.mark.parametrize("shape", [(3, 1), (4, 2), (6, 3), (7, 4), (4, 4)])
def test_closure_margin_is_the_least_reach_over_all_directions(shape):
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(40):
        rows = rng.normal(size=shape) + 0.3 * rng.normal(size=shape[1])
        rho, c, weights = closure_margin(rows)
        inside += rho > 0.0
        assert (rho > 1e-9) == closure_by_linear_program(rows)
        assert abs((rows @ c).max() - rho) < 1e-9
        assert abs(np.linalg.norm(c) - 1.0) < 1e-12
        directions = rng.normal(size=(4000, shape[1]))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        assert (rows @ directions.T).max(axis=0).min() >= rho - 1e-12
        np.testing.assert_allclose(weights @ rows, rho * c, rtol=0, atol=1e-9)
        assert (weights >= 0.0).all()
        assert abs(weights.sum() - 1.0) < 1e-12
    assert inside > 3 or shape == (4, 4)


def test_closure_margin_of_rows_that_span_too_little_is_zero():
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.5, 0.0]])
    rho, c, _ = closure_margin(rows)
    assert rho == 0.0
    assert abs(c[0]) < 1e-12
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    assert abs(closure_margin(square)[0] - 1.0) < 1e-12


def test_hulls_have_at_most_as_many_facets_as_said():
    assert [most_facets(m, 2) for m in (2, 3, 10)] == [0, 3, 10]  # corners of polygons
    assert [most_facets(m, 3) for m in (4, 8)] == [4, 12]  # triangulations: 2 m - 4
    curve = np.array([[t**k for k in range(1, 5)] for t in np.linspace(-1, 1, 9)])
    assert most_facets(9, 4) == len(ConvexHull(curve).simplices)  # a cyclic polytope has them


def test_shortfalls_of_torques_are_those_of_linear_programs():
    rng = np.random.default_rng(5)
    lower, upper = np.full(6, 10.0), np.full(6, 100.0)
    short = 0
    for _ in range(40):
        rows = 0.05 * rng.normal(size=(6, 3))
        wanted = rng.normal(size=3) * 4.0
        d, e, f = torque_shortfall(rows, lower, upper, wanted)
        found = linprog(
            np.zeros(6), A_eq=-rows.T, b_eq=wanted, bounds=np.column_stack([lower, upper])
        )
        assert (d == 0.0) == (found.status == 0)
        if d > 0.0:
            short += 1
            # what proves it: no tensions get farther than d along e
            ends = np.stack([-(rows @ -e) * lower, -(rows @ -e) * upper])
            assert ends.max(axis=0).sum() <= wanted @ -e - d + 1e-7
        assert (f >= lower - 1e-9).all()
        assert (f <= upper + 1e-9).all()
    assert 5 < short < 35


def test_the_interval_of_one_joint_counts_infinite_tensions_only_where_there_is_an_arm():
    column = np.array([0.1, 0.0, -0.2])
    lower, upper = np.array([1.0, 1.0, 2.0]), np.array([10.0, np.inf, 20.0])
    assert torque_interval(column, lower, upper) == (-1.0 + 0.4, -0.1 + 4.0)
    d, e, f = single_shortfall(column, lower, upper, 5.0)
    assert (d, e) == (5.0 - 3.9, -1.0)
    assert abs(-(column[[0, 2]] @ f[[0, 2]]) - 3.9) < 1e-12
    assert single_shortfall(column, lower, upper, 0.0)[0] == 0.0
    infinite = torque_interval(column, lower, np.full(3, np.inf))
    assert infinite == (-np.inf, np.inf)


# Whole fits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_moment_arms_of_a_robot_with_moved_points_come_back(seed):
    original = load("roboy_arm")
    task = {
        "poses": {"samples": 40},
        "points": [{"muscle": "all", "distance": 0.03}],
        "moment_arms": [{"like": "roboy_arm", "tolerance": 1e-6}],
    }
    start = moved(original, 0.02, seed)
    result = fit(start, task).run()
    assert result.met
    q = some_poses(original, 30, seed=9)  # also where it was not fitted
    miss = jacobians(result.robot, q) - jacobians(original, q)
    before = jacobians(start, q) - jacobians(original, q)
    assert np.sqrt(np.mean(before**2)) > 3e-3
    assert np.sqrt(np.mean(miss**2)) < 1e-6
    # muscles of the shoulder are known but for nothing: their points come back too
    for was, now in zip(original.muscles[:9], result.robot.muscles[:9], strict=True):
        for a, b in zip(was.via_points, now.via_points, strict=True):
            assert np.linalg.norm(a.position - b.position) < 1e-6
    for was, now in zip(start.muscles, result.robot.muscles, strict=True):
        for a, b in zip(was.via_points, now.via_points, strict=True):
            assert np.linalg.norm(a.position - b.position) <= 0.03 + 1e-9


def test_lengths_of_a_robot_with_moved_points_come_back():
    """Lengths alone, over a grid: moment arms, which are their slopes, come back with them."""
    original = load("wrap_elbow")
    start = moved(original, 0.01, 3)
    q = some_poses(original, 12)
    names = original.tree.position_names
    task = {
        "points": [{"muscle": "all", "box": 0.02}],
        "lengths": [
            {
                "muscle": muscle.name,
                "poses": {"list": [dict(zip(names, row.tolist(), strict=True)) for row in q]},
                "values": rows(original, q)[:, i, -1].tolist(),
                "tolerance": 1e-6,
            }
            for i, muscle in enumerate(original.muscles)
        ],
    }
    result = fit(start, task).run()
    assert result.met
    found, expected, before = (rows(r, q) for r in (result.robot, original, start))
    assert np.abs(found - expected)[..., -1].max() < 1e-6
    assert np.abs(before - expected)[..., -1].max() > 3e-3
    assert np.abs(found - expected).max() < 0.05 * np.abs(before - expected).max()


def test_neighbours_on_one_link_stay_apart():
    """Each of two points gets nearest to the origin at the same place."""
    robot = load("planar_2r")
    cable = robot.muscles[0]
    end = cable.path[-1]
    before = replace(end, position=end.position + np.array([0.01, 0.0, 0.0]))
    path = (*cable.path[:-1], before, end)
    robot = replace(robot, muscles=(replace(cable, path=path), *robot.muscles[1:]))
    task = {
        "points": [{"muscle": cable.name, "point": [2, 3], "distance": 0.1}],
        "lengths": [{"muscle": cable.name, "poses": {"list": [{}]}, "values": 0.01}],
    }
    result = fit(robot, task, starts=3).run()
    assert not result.met
    a, b = (point.position for point in result.robot.muscles[0].via_points[-2:])
    assert np.linalg.norm(a - b) > 4e-4


def test_bounds_that_begin_within_a_surface_lead_out_of_it():
    """The place in the bounds that is nearest to the present one is 3 mm deep in the elbow."""
    source = EXAMPLES / "urdf_arm"
    robot = import_urdf(source / "arm.urdf", muscles=source / "muscles.yaml").robot
    point = {"muscle": "biceps", "point": 1, "lower": [0, 0, -0.3], "upper": [0, 0.2, -0.29]}
    arm = {"muscle": "biceps", "joint": "elbow", "at": [0.2, 1], "values": 0.0}
    result = fit(robot, {"points": [point], "moment_arms": [arm]}, starts=2).run()
    read_sdf(to_sdf(result.robot))  # which refuses a point within a surface


def test_a_planar_arm_gets_force_closure_at_all_poses():
    robot = load("planar_2r")
    task = {
        "poses": PLANAR_GRID,
        "points": [{"muscle": "all", "box": [0.3, 0, 0.3]}],
        "closure": {"margin": 0.01},
    }
    result = fit(robot, task).run()
    assert result.met
    q = result.specification.q
    before = [closure_by_linear_program(rows) for rows in jacobians(robot, q)]
    after = [closure_by_linear_program(rows) for rows in jacobians(result.robot, q)]
    assert len(after) == 49
    assert sum(before) < 45
    assert all(after)
    margins = [closure_margin(rows)[0] for rows in jacobians(result.robot, q)]
    assert min(margins) >= 0.0099
    for was, now in zip(robot.muscles, result.robot.muscles, strict=True):
        for a, b in zip(was.via_points, now.via_points, strict=True):
            away = np.abs(a.position - b.position)
            assert (away <= [0.3 + 1e-9, 0.0, 0.3 + 1e-9]).all()


def test_torques_are_given_within_the_limits_of_the_tensions():
    robot = load("planar_2r")
    task = {
        "poses": {"grid": {"joint_1": [-0.6, 0.6, 4], "joint_2": [-0.6, 0.6, 4]}},
        "points": [{"muscle": "all", "box": [0.3, 0, 0.3]}],
        "torques": [{"joint": ["joint_1", "joint_2"], "range": [-8, 8]}],
    }
    result = fit(robot, task).run()
    assert result.met
    assert any((item.before > item.goal.tolerance).any() for item in result.goals)
    bounds = [(m.tension_min, m.tension_max) for m in robot.muscles]
    for rows in jacobians(result.robot, result.specification.q):
        for torque in ([8, 0], [-8, 0], [0, 8], [0, -8]):
            wanted = 0.99 * np.array(torque)  # the tolerance is 1 %
            found = linprog(np.zeros(4), A_eq=-rows.T, b_eq=wanted, bounds=bounds)
            assert found.status == 0
    goal = result.goals[0].goal
    low, high = torque_range(result.problem, goal, result.rows_after, 3)
    assert low < -7.9
    assert high > 7.9


def test_tolerances_are_used_where_the_least_squares_leave_some_beyond():
    """One pose among five wants something else: its tolerance is the width of all others."""
    task = {
        "points": [{"muscle": "cable_1", "point": "insertion", "box": [0.05, 0, 0]}],
        "moment_arms": [
            {
                "muscle": "cable_1",
                "joint": "joint_1",
                "at": [0, 0, 0, 0, 0],
                "values": [0.44, 0.44, 0.44, 0.44, 0.455],
                "tolerance": 0.009,
            }
        ],
    }
    result = fit(load("planar_2r"), task).run()
    assert result.met
    assert result.starts == 1
    assert result.goals[0].misses.max() > 0.8 * 0.009


def arm_about_the_origin(base, point, angle):
    """Moment arm about y of a straight cable from the world to a link that is turned."""
    turned = np.array(
        [
            np.cos(angle) * point[0] + np.sin(angle) * point[2],
            -np.sin(angle) * point[0] + np.cos(angle) * point[2],
        ]
    )
    away = np.linalg.norm([base[0] - turned[0], base[2] - turned[1], base[1] - point[1]])
    return (turned[1] * base[0] - turned[0] * base[2]) / away


def test_what_cannot_be_is_said_with_what_is_nearest():
    angles = (-0.5, 0.0, 0.5)
    task = {
        "points": [{"muscle": "cable_1", "distance": 0.05}],
        "moment_arms": [
            {"muscle": "cable_1", "joint": "joint_1", "at": list(angles), "values": 2.0},
            {"muscle": "cable_3", "joint": "joint_1", "at": [0], "values": -0.3, "weight": 2},
        ],
    }
    robot = load("planar_2r")
    result = fit(robot, task, starts=3).run()
    assert not result.met
    first, second = result.summary()["goals"]
    assert (first["met"], first["poses_missed"]) == (False, 3)
    assert second["largest_miss"] == second["largest_miss_before"]  # nothing of it may move
    assert any("cable_1" in name for name in result.at_border)
    lines = not_met(result)
    assert len(lines) == 2
    assert "moment arm of cable_1 about joint_1: missed by up to 1.6" in lines[0]
    assert f"wanted 2 m, nearest {first['worst']['value']:.4g} m at joint_1" in lines[0]
    assert "**no**" in markdown(result)

    base, point = (item.position for item in robot.muscle("cable_1").via_points)

    def cost(x):
        arms = [arm_about_the_origin(base + x[:3], point + x[3:], angle) for angle in angles]
        return float(np.mean((np.array(arms) - 2.0) ** 2))

    ball = {"type": "ineq", "fun": lambda x: 0.05**2 - (x.reshape(2, 3) ** 2).sum(axis=1)}
    best = minimize(cost, np.zeros(6), method="SLSQP", constraints=ball, tol=1e-12)
    ours = first["rms_miss"] ** 2
    assert abs(cost(np.zeros(6)) - first["rms_miss_before"] ** 2) < 1e-12
    assert abs(ours - best.fun) < 1e-6 * best.fun


def test_radii_of_wrap_surfaces_are_found():
    """On the wheel, the moment arm is its radius."""
    task = {
        "poses": {"grid": {"hinge": [-0.5, 0.5, 5]}},
        "points": [{"muscle": "left", "point": "origin", "distance": 1e-3}],
        "radii": [{"surface": "wheel", "range": [0.02, 0.04]}],
        "moment_arms": [
            {"muscle": "left", "joint": "hinge", "values": -0.026, "tolerance": 1e-6},
            {"muscle": "right", "joint": "hinge", "values": 0.026, "tolerance": 1e-6},
        ],
    }
    robot = load("antagonist_joint")
    result = fit(robot, task).run()
    assert result.met
    assert abs(result.radii["wheel"][1] - 0.026) < 1e-6
    assert result.robot.wrap_surface("wheel").geometry.radius == result.radii["wheel"][1]


def test_mirrored_points_move_together_and_others_stay_to_the_last_bit():
    robot = load("musashi_like")
    task = {
        "poses": {"samples": 6},
        "points": [
            {
                "muscle": "left_pectoralis",
                "distance": 0.01,
                "mirror": {"muscle": "right_pectoralis", "axis": "y"},
            }
        ],
        "moment_arms": [
            {"muscle": "left_pectoralis", "joint": "left_shoulder_roll", "values": -0.04}
        ],
    }
    result = fit(robot, task, starts=2).run()
    assert {item.muscle for item in result.moved} == {"left_pectoralis", "right_pectoralis"}
    left, right = (result.robot.muscle(f"{side}_pectoralis") for side in ("left", "right"))
    for a, b in zip(left.via_points, right.via_points, strict=True):
        np.testing.assert_array_equal(a.position * [1.0, -1.0, 1.0], b.position)
    for was, now in zip(robot.muscles, result.robot.muscles, strict=True):
        if "pectoralis" not in was.name:
            assert was is now


def test_points_stay_out_of_the_surfaces_beside_them():
    task = {
        "points": [{"muscle": "biceps", "distance": 0.05}],
        "moment_arms": [
            {"muscle": "biceps", "joint": "elbow", "at": [0.2, 1, 1.8], "values": 0.001}
        ],
    }
    robot = load("wrap_elbow")
    result = fit(robot, task, starts=1).run()
    assert not result.met
    assert result.moved
    elbow = robot.wrap_surface("trochlea")
    for item in result.robot.muscle("biceps").via_points:
        if item.link == elbow.link:
            local = elbow.pose.inverse().apply(item.position)
            assert np.hypot(local[0], local[1]) > elbow.geometry.radius


# How the search goes -----------------------------------------------------------------------------

TASK = {
    "poses": {"samples": 8},
    "points": [{"muscle": ["motor0", "motor5", "motor9"], "distance": 0.03}],
    "moment_arms": [{"like": "roboy_arm", "tolerance": 1e-9}],
}


def test_muscles_are_fitted_apart_unless_something_binds_them():
    robot = moved(load("roboy_arm"), 0.02, 0)
    parts = independent_parts(specification_of(FORMAT | TASK, robot))
    assert [len(indices) for _, indices in parts] == [6, 6, 6]
    assert sorted(np.concatenate([indices for _, indices in parts])) == list(range(18))
    together = FORMAT | TASK | {"closure": {"margin": 0.01}}
    assert len(independent_parts(specification_of(together, robot))) == 1


def test_a_fit_that_is_stopped_goes_on_to_the_same_result():
    robot = moved(load("roboy_arm"), 0.02, 0)
    whole = fit(robot, TASK, starts=3, seed=4).run()
    one = fit(robot, TASK, starts=3, seed=4)
    stops = 0
    while True:
        steps = iter(range(5))

        def stop(_now, steps=steps):
            if next(steps, None) is None:
                raise KeyboardInterrupt

        try:
            result = one.run(stop)
            break
        except KeyboardInterrupt:
            stops += 1
            partly = one.result()
            assert partly.specification.q.shape == (8, 4)
            state = json.loads(json.dumps(one.state()))
            one = fit(robot, TASK)
            one.restore(state)
    assert stops > 5
    for a, b in zip(whole.robot.muscles, result.robot.muscles, strict=True):
        for x, y in zip(a.via_points, b.via_points, strict=True):
            np.testing.assert_array_equal(x.position, y.position)


def test_progress_grows_to_its_end_and_the_best_falls():
    told = []
    fit(moved(load("roboy_arm"), 0.02, 0), TASK, starts=2, iterations=5).run(told.append)
    done, misses = [item.done for item in told], [item.miss for item in told]
    assert done == sorted(done)
    assert done[-1] == told[-1].total == 2 * 2 * 5 * 3
    assert misses == sorted(misses, reverse=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "is not of the format"),
        ({"robot": "0"}, "of another robot"),
        ({"starts": 0}, "has starts 0"),
        ({"searches": []}, "is of another specification"),
        ({"searches": [{}, {}, {}]}, "has a part that is none"),
    ],
)
def test_states_that_are_none_are_refused(change, message):
    robot = load("roboy_arm")
    one = fit(robot, TASK)
    with pytest.raises(CardsError, match=message):
        one.restore(one.state() | change)


@pytest.mark.parametrize("settings", [{"starts": 0}, {"iterations": 1.5}, {"seed": -1}])
def test_numbers_that_make_no_sense_are_refused(settings):
    with pytest.raises(CardsError, match=next(iter(settings))):
        fit(load("roboy_arm"), TASK, **settings)
