"""Conditions of robots: the registry, bad points, passive muscles, motors, threads."""

import dataclasses
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import condition_oracles as oracle
import numpy as np
import pytest
from caspr_samples import SHARED, needs_caspr_models

from cards_core.analysis import native_library
from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.base import STATUS, ConditionError, Options, option
from cards_core.analysis.conditions.registry import CONDITIONS, make_condition
from cards_core.analysis.inverse_dynamics import PassiveMuscles
from cards_core.analysis.status import ANSWERS, PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError, ShapeError, UnknownNameError
from cards_core.formats import load
from cards_core.formats.caspr import import_caspr
from cards_core.robot.actuators import Ligament
from cards_core.robot.elements import JointAxis
from random_robots import random_robot

YES, NO = PointStatus.FEASIBLE, PointStatus.INFEASIBLE
OURS = (
    "wrench_closure",
    "tension_factor",
    "wrench_feasible",
    "capacity_margin",
    "acceleration_margin",
    "static",
    "dynamic",
    "condition_number",
    "manipulability",
    "modified_tension_factor",
    "unilateral_dexterity",
    "force_amplification",
    "joint_limits",
)
each_name = pytest.mark.parametrize("name", OURS)
MUSCLES_NEEDED = [name for name in OURS if name != "joint_limits"]
ROBOTS = ("planar_xy", "bm_arm", "ipanema_1", "spherical_2s", "roboy_arm", "wrap_elbow")


def poses(dynamics, count, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([dynamics.tree.random(rng) for _ in range(count)])


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


# Registry ------------------------------------------------------------------------------------


@each_name
@pytest.mark.parametrize("robot", ROBOTS)
def test_every_condition_answers_at_every_pose(robot, name):
    dynamics = make_dynamics(load(robot))
    condition = make_condition(dynamics, name)
    assert condition.name == name
    assert condition.columns[0] == STATUS
    q = poses(dynamics, 50)
    result = condition.evaluate(q)
    assert list(result) == [column.name for column in condition.columns]
    for column in condition.columns:
        assert result[column.name].shape == (50,)
        assert result[column.name].dtype == column.dtype
    assert np.isin(result["status"], ANSWERS).all()
    # points do not know of each other
    for k in (0, 17, 49):
        same(condition.evaluate(q[k : k + 1]), {key: v[k : k + 1] for key, v in result.items()})


@each_name
def test_options_are_documented_json(name):
    kind = CONDITIONS[name]
    options = kind.options()
    text = json.dumps(options.to_json())
    assert kind.options.from_json(json.loads(text)) == options
    assert kind.text
    declared = kind.options.parameters()
    assert [item.name for item in declared] == [item.name for item in dataclasses.fields(options)]
    for item in declared:
        assert item.description.endswith(".")
        assert item.noun == "option"
        assert item.type_name


def test_options_refuse_what_they_do_not_know():
    dynamics = make_dynamics(load("planar_xy"))
    with pytest.raises(UnknownNameError, match="did you mean 'wrench_closure'"):
        make_condition(dynamics, "wrench_closur")
    with pytest.raises(UnknownNameError, match="did you mean 'threshold'"):
        make_condition(dynamics, "wrench_closure", {"treshold": 1.0})
    for name, values in (
        ("threshold", "a"),
        ("threshold", True),
        ("threshold", float("nan")),
        ("threshold", -1.0),
        ("rank_tolerance", None),
    ):
        with pytest.raises(ParameterError, match=name):
            make_condition(dynamics, "wrench_closure", {name: values})
    with pytest.raises(ParameterError, match=r"option 'method' is 'facet'.* facets"):
        make_condition(dynamics, "wrench_feasible", {"method": "facet"})
    for values in (True, "a", [[1.0]], ["a"]):
        with pytest.raises(ParameterError, match="accelerations"):
            make_condition(dynamics, "dynamic", {"accelerations": values})
    with pytest.raises(ParameterError, match="max_facets"):
        make_condition(dynamics, "dynamic", {"max_facets": 1.5})


def test_lists_and_arrays_become_tuples_and_integers_floats():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Sample(Options):
        row: tuple[float, ...] = option((), "A row.", "m")
        table: tuple[tuple[float, ...], ...] = option((), "Rows.", "m", kind=tuple)
        count: int = option(1, "How many.")

    sample = Sample(row=np.arange(2), table=[[1, 2], (3, 4)])
    assert sample == Sample(row=(0.0, 1.0), table=((1.0, 2.0), (3.0, 4.0)))
    assert sample.to_json() == {"row": [0.0, 1.0], "table": [[1.0, 2.0], [3.0, 4.0]], "count": 1}
    assert Sample(row=5).row == (5.0,)  # one number for all
    for wrong in (True, "5", [[5.0]]):
        with pytest.raises(ParameterError, match="row"):
            Sample(row=wrong)
    with pytest.raises(ParameterError, match="table"):
        Sample(table=5.0)


# Bad points ----------------------------------------------------------------------------------


@each_name
def test_points_that_are_not_finite(name):
    dynamics = make_dynamics(load("planar_xy"))
    condition = make_condition(dynamics, name)
    good = np.tile(dynamics.tree.home, (4, 1))
    q = good.copy()
    q[1, 0], q[2, 2] = np.nan, np.inf
    result = condition.evaluate(q)
    assert list(result["status"][1:3]) == [PointStatus.NOT_FINITE] * 2
    for column in condition.columns[1:]:
        assert np.isnan(result[column.name][1:3]).all()
    whole = condition.evaluate(good)
    same({k: v[[0, 3]] for k, v in result.items()}, {k: v[[0, 3]] for k, v in whole.items()})
    assert (condition.evaluate(np.full((2, 3), np.nan))["status"] == PointStatus.NOT_FINITE).all()
    assert all(len(values) == 0 for values in condition.evaluate(np.zeros((0, 3))).values())
    with pytest.raises(ShapeError, match=r"expected \(n, 3\)"):
        condition.evaluate(np.zeros(3))


@pytest.mark.parametrize("name", MUSCLES_NEEDED)
def test_no_muscles_and_too_few(name):
    robot = load("planar_xy")
    bare = make_dynamics(dataclasses.replace(robot, muscles=()))
    q = np.array([bare.tree.home, np.full(3, np.nan)])
    result = make_condition(bare, name).evaluate(q)
    assert list(result["status"]) == [PointStatus.NO_MUSCLES, PointStatus.NOT_FINITE]
    one = make_dynamics(dataclasses.replace(robot, muscles=robot.muscles[:1]))
    result = make_condition(one, name).evaluate(q)
    expected = NO if name == "static" else PointStatus.TOO_FEW_MUSCLES
    assert list(result["status"]) == [expected, PointStatus.NOT_FINITE]


@pytest.mark.parametrize("name", MUSCLES_NEEDED)
def test_a_pose_where_all_cables_lose_a_direction(name):
    """All cables of the planar robot end in its centre: none can turn it."""
    robot = load("planar_xy")
    muscles = tuple(
        dataclasses.replace(
            muscle,
            path=(muscle.path[0], dataclasses.replace(muscle.path[1], position=np.zeros(3))),
        )
        for muscle in robot.muscles
    )
    dynamics = make_dynamics(dataclasses.replace(robot, muscles=muscles))
    result = make_condition(dynamics, name).evaluate(dynamics.tree.home[None])
    if name == "static":
        # no gravity in this plane: equal tensions hold it
        assert result["status"][0] == YES
        assert result["residual"][0] == 0.0
    else:
        assert result["status"][0] == PointStatus.RANK_DEFICIENT


def test_inertia_that_is_not_positive_definite():
    robot = load("planar_xy")
    link = robot.links[-1]
    bad = dataclasses.replace(link.inertia, mass=-1.0)
    links = (*robot.links[:-1], dataclasses.replace(link, inertia=bad))
    dynamics = make_dynamics(dataclasses.replace(robot, links=links))
    q = dynamics.tree.home[None]
    for method in ("facets", "vertices"):
        result = make_condition(dynamics, "dynamic", {"method": method}).evaluate(q)
        assert result["status"][0] == PointStatus.UNPHYSICAL_INERTIA
    # a question that does not need M is answered
    assert make_condition(dynamics, "wrench_closure").evaluate(q)["status"][0] in ANSWERS


# Who pulls -----------------------------------------------------------------------------------


def with_ligaments(robot, count):
    """The first muscles as ligaments that are taut at home."""
    dynamics = make_dynamics(robot)
    lengths = dynamics.update(dynamics.tree.home, np.zeros(dynamics.tree.nv)).muscle_lengths
    muscles = list(robot.muscles)
    for i in range(count):
        ligament = Ligament(stiffness=500.0, slack_length=float(lengths[i]) * (0.97 - 0.05 * i))
        muscles[i] = dataclasses.replace(muscles[i], actuator=ligament)
    return dataclasses.replace(robot, muscles=tuple(muscles))


def test_ligaments_are_load_and_no_muscles():
    dynamics = make_dynamics(with_ligaments(load("ipanema_1"), 2))
    q = oracle.ipanema_poses(np.random.default_rng(3), 200) * [0.4, 0.4, 1.0, 0.5, 0.5, 0.5]
    actuation = Actuation(dynamics)
    state = dynamics.batch(q)
    assert actuation.jacobian(state).shape == (200, 6, 6)
    np.testing.assert_array_equal(actuation.jacobian(state), state.muscle_jacobian[:, 2:])
    passive = PassiveMuscles(dynamics)
    tensions = np.array([passive.tensions(l, np.zeros(8)) for l in state.muscle_lengths])  # noqa: E741
    assert (tensions > 0.0).any()
    expected = state.gravity + np.einsum("nm,nmv->nv", tensions, state.muscle_jacobian[:, :2])
    np.testing.assert_allclose(actuation.load(state), expected, rtol=1e-6)
    # six cables for six coordinates: no closure, whatever the ligaments do
    closure = make_condition(dynamics, "wrench_closure").evaluate(q)["status"]
    assert (closure == PointStatus.TOO_FEW_MUSCLES).all()
    static = make_condition(dynamics, "static").evaluate(q)["status"]
    low, high = np.zeros(6), np.full(6, 720.0)
    slack = [
        oracle.tension_slack(jacobian, low, high, load)
        for jacobian, load in zip(state.muscle_jacobian[:, 2:], expected, strict=True)
    ]
    np.testing.assert_array_equal(static == YES, np.array(slack) > 0.0)


def test_motors_carry_their_coordinates_within_their_effort():
    robot = load("roboy_arm")
    moved = robot.joints[-1]

    def driven(effort):
        axes = tuple(dataclasses.replace(axis, effort=effort) for axis in moved.axes)
        joints = (*robot.joints[:-1], dataclasses.replace(moved, motor=True, axes=axes))
        return make_dynamics(dataclasses.replace(robot, joints=joints))

    assert isinstance(moved.axes[0], JointAxis)
    plain, strong, weak = make_dynamics(robot), driven(np.inf), driven(2.0)
    q = poses(plain, 100)
    k = plain.tree.velocity_names.index(moved.name)
    kept = [i for i in range(plain.tree.nv) if i != k]
    state = plain.batch(q)
    low = np.array([m.tension_min for m in robot.muscles])
    high = np.array([m.tension_max for m in robot.muscles])
    status = make_condition(strong, "static").evaluate(q)["status"]
    slack = [
        oracle.tension_slack(jacobian[:, kept], low, high, g[kept])
        for jacobian, g in zip(state.muscle_jacobian, state.gravity, strict=True)
    ]
    np.testing.assert_array_equal(status == YES, np.array(slack) > 0.0)
    row = np.zeros((1, plain.tree.nv))
    row[0, k] = -1.0
    for name in ("static", "wrench_feasible"):
        status = make_condition(weak, name).evaluate(q)["status"]
        slack = [
            oracle.tension_slack(np.vstack([jacobian, row]), np.r_[low, -2.0], np.r_[high, 2.0], g)
            for jacobian, g in zip(state.muscle_jacobian, state.gravity, strict=True)
        ]
        np.testing.assert_array_equal(status == YES, np.array(slack) > 0.0)
    # closure leaves the coordinate out, however weak its motor is
    same(
        make_condition(weak, "wrench_closure").evaluate(q),
        make_condition(strong, "wrench_closure").evaluate(q),
    )


def test_a_robot_that_motors_move_alone_is_refused():
    robot = load("planar_2r")
    joints = tuple(dataclasses.replace(joint, motor=True) for joint in robot.joints)
    dynamics = make_dynamics(dataclasses.replace(robot, joints=joints))
    with pytest.raises(ConditionError, match="every joint has a motor"):
        make_condition(dynamics, "wrench_closure")


def test_joint_limits():
    dynamics = make_dynamics(load("planar_xy"))
    tree = dynamics.tree
    middle = 0.5 * (tree.lower + tree.upper)
    outside = middle.copy()
    outside[1] = tree.upper[1] + 0.25
    q = np.array([middle, tree.lower, outside])
    result = make_condition(dynamics, "joint_limits").evaluate(q)
    assert list(result["status"]) == [YES, YES, NO]
    half = 0.5 * (tree.upper - tree.lower).min()
    np.testing.assert_allclose(result["limit_margin"], [half, 0.0, -0.25], atol=1e-12)


# All together --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_trees_of_all_joints_agree_with_linear_programs(seed):
    robot = random_robot(seed, n_links=3, n_muscles=1)
    nv = make_dynamics(robot, "numeric").tree.nv
    robot = random_robot(seed, n_links=3, n_muscles=nv + 4)
    robot = dataclasses.replace(
        robot,
        muscles=tuple(
            dataclasses.replace(m, tension_min=1.0, tension_max=200.0) for m in robot.muscles
        ),
    )
    dynamics = make_dynamics(robot, "numeric")
    q = poses(dynamics, 12, seed)
    state = dynamics.batch(q)
    closure = make_condition(dynamics, "wrench_closure").evaluate(q)["status"]
    static = make_condition(dynamics, "static").evaluate(q)["status"]
    low, high = np.full(nv + 4, 1.0), np.full(nv + 4, 200.0)
    for k in range(len(q)):
        jacobian = state.muscle_jacobian[k]
        if closure[k] == PointStatus.RANK_DEFICIENT:
            scaled = jacobian / np.maximum(np.linalg.norm(jacobian, axis=0), 1e-300)
            assert np.linalg.cond(scaled) > 1e9
            continue
        # muscles between two points of one link move nothing but for rounding
        jacobian[np.linalg.norm(jacobian, axis=1) < 1e-12] = 0.0
        assert (closure[k] == YES) == (oracle.closure_margin(jacobian) > 1e-9)
        slack = oracle.tension_slack(jacobian, low, high, state.gravity[k])
        assert (static[k] == YES) == (slack > 0.0)


def test_threads_with_conditions_of_their_own_give_the_same():
    robot = load("ipanema_1")
    q = oracle.ipanema_poses(np.random.default_rng(1), 4000)

    def evaluate(part):
        dynamics = make_dynamics(robot)
        return [make_condition(dynamics, name).evaluate(part) for name in OURS]

    whole = evaluate(q)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(evaluate, np.array_split(q, 8)))
    for k, expected in enumerate(whole):
        for column, values in expected.items():
            together = np.concatenate([part[k][column] for part in parts])
            np.testing.assert_array_equal(together, values)


@needs_caspr_models
@pytest.mark.parametrize("name", ["IPAnema_1", "Example_planar_XY", "BMArm", "Example_2S"])
def test_caspr_models_agree_with_linear_programs(name):
    folder = next(SHARED.rglob(f"{name}_bodies.xml")).parent
    dynamics = make_dynamics(import_caspr(folder).robot)
    q = poses(dynamics, 100)
    jacobians = dynamics.batch(q).muscle_jacobian
    status = make_condition(dynamics, "wrench_closure").evaluate(q)["status"]
    if jacobians.shape[1] <= jacobians.shape[2]:
        assert (status == PointStatus.TOO_FEW_MUSCLES).all()
        return
    for jacobian, outcome in zip(jacobians, status, strict=True):
        assert (outcome == YES) == (oracle.closure_margin(jacobian) > 1e-9)


# Documentation -------------------------------------------------------------------------------


def test_the_page_names_every_condition_option_and_source():
    docs = Path(__file__).resolve().parents[4] / "docs"
    page = (docs / "conditions.md").read_text()
    for name in OURS:
        assert f"| `{name}` |" in page
        for field in dataclasses.fields(CONDITIONS[name].options):
            assert f"`{field.name}`" in page
    keys = set(re.findall(r"\[([A-Z][A-Za-z]*\d{4})\]", page))
    folder = Path(native_library.__file__).parent
    for file in (*(folder / "conditions").glob("*.py"), *(folder / "native").glob("*.c")):
        keys |= set(re.findall(r"\[([A-Z][A-Za-z]*\d{4})[,\]]", file.read_text()))
    listed = (docs / "references.md").read_text()
    assert {"Stark1995", "Lawson1995", "Kurtz1994"} <= keys
    assert [key for key in sorted(keys) if f"[{key}]" not in listed] == []


def test_a_path_that_is_not_found_is_told_and_its_neighbours_are_not_touched(monkeypatch):
    """One of the solver's answers is declared a guess, as it would declare it itself."""
    dynamics = make_dynamics(load("wrap_elbow"))
    condition = make_condition(dynamics, "static")
    points = np.array([[0.2], [0.7], [1.2]])
    clean = condition.evaluate(points)
    geodesics = dynamics._batch_geodesics
    solve = type(geodesics).solve
    calls = []

    def guess(self, poses):
        calls.append(1)
        return solve(self, poses)

    monkeypatch.setattr(type(geodesics), "solve", guess)
    lost = property(lambda self: np.array([False, len(calls) % 3 == 2, False]))
    monkeypatch.setattr(type(geodesics), "lost_muscles", lost)
    found = condition.evaluate(points)
    assert found["status"].tolist() == [
        clean["status"][0],
        PointStatus.PATH_NOT_FOUND,
        clean["status"][2],
    ]
    for column in condition.columns[1:]:
        assert np.isnan(found[column.name][1])
        np.testing.assert_array_equal(found[column.name][::2], clean[column.name][::2])


def test_quaternions_are_made_unit_and_a_zero_one_is_no_point():
    robot = random_robot(6, kinds=("ball", "revolute"))
    dynamics = make_dynamics(robot)
    condition = make_condition(dynamics, "condition_number")
    q = np.tile(dynamics.tree.neutral(), (3, 1))
    ball = next(node for node in dynamics.tree.nodes if node.kind == "ball")
    q[1, ball.q : ball.q + 4] *= 2.0
    q[2, ball.q : ball.q + 4] = 0.0
    found = condition.evaluate(q)
    assert found["status"][2] == PointStatus.NOT_FINITE
    for values in found.values():
        np.testing.assert_array_equal(values[0], values[1])


@pytest.mark.parametrize("backend", ["compiled", "numeric"])
def test_poses_so_far_away_that_lengths_overflow_have_no_answer(backend):
    dynamics = make_dynamics(load("planar_xy"), backend)
    q = np.tile(dynamics.tree.home, (3, 1))
    q[0, 0], q[1, 1] = 1e160, -1e300
    for name in OURS:
        with np.errstate(over="ignore", invalid="ignore"):
            result = make_condition(dynamics, name).evaluate(q)
        assert list(result["status"][:2]) == [PointStatus.NOT_FINITE] * 2, name
        assert result["status"][2] in ANSWERS
        for column in list(result)[1:]:
            assert np.isnan(result[column][:2]).all()
