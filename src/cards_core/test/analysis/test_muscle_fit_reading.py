"""Specifications of fits: poses, goals, and messages for what cannot be meant."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fit_specifications import specification_of

from cards_core.analysis.muscle_fit.reading import read_specification
from cards_core.dynamics import make_dynamics
from cards_core.errors import DescriptionError
from cards_core.formats import load
from cards_core.formats.urdf.importer import import_urdf
from cards_core.robot.elements import Wrap

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"

GOOD = """\
format: muscle_fit/1
poses: {grid: {joint_1: [-1, 1, 3], joint_2: [0, 1, 2]}}
points:
  - {muscle: cable_1, point: origin, distance: 0.1}
closure: {margin: 0.01}
"""


def read(tmp_path, text, robot="planar_2r"):
    file = tmp_path / "fit.yaml"
    file.write_text(text, encoding="utf-8")
    return read_specification(file, load(robot))


def test_poses_of_all_kinds(tmp_path):
    text = """\
format: muscle_fit/1
poses: {grid: {joint_1: [-1, 1, 3]}, fix: {joint_2: 0.3}}
points:
  - {muscle: all, box: 0.1}
moment_arms:
  - {muscle: cable_1, joint: joint_1, at: [0, 0.1], fix: {joint_2: 0.2}, values: [0.1, 0.2]}
  - {muscle: cable_2, joint: joint_2, values: 0.3, tolerance: [1, 2, 3]}
  - {muscle: cable_3, joint: joint_2, poses: {list: [{joint_1: 0.4}, {}]}, values: 0}
closure: {margin: 0.01, poses: {samples: 5, seed: 2, ranges: {joint_1: [0, 0.1]}}}
"""
    found = read(tmp_path, text)
    home = load("planar_2r").tree.home
    curve, common, listed, closure = found.goals
    np.testing.assert_allclose(found.q[curve.rows], [[0, 0.2], [0.1, 0.2]])
    np.testing.assert_allclose(found.q[common.rows], [[-1, 0.3], [0, 0.3], [1, 0.3]])
    np.testing.assert_allclose(found.q[listed.rows], [[0.4, home[1]], home])
    assert len(closure.rows) == 5
    assert (found.q[closure.rows, 0] <= 0.1).all()
    assert list(common.tolerance) == [1, 2, 3]
    assert list(curve.wanted) == [0.1, 0.2]
    assert len(found.variables.points) == 8
    assert found.pose(int(curve.rows[1])) == {"joint_1": 0.1, "joint_2": 0.2}


@pytest.mark.parametrize(
    ("poses", "words"),
    [
        ("grid: {elbow: [-3, 0, 4]}", r"fit.yaml:3: poses: pose 1 of 4 has elbow = -3, beyond"),
        ("list: [{}, {elbow: 0.5}]", r"pose 2 of 2 has elbow = 0.5, beyond its limits .* \.\. 0 "),
        ("samples: 5, ranges: {elbow: [0.1, 1]}", r"\(5 poses are beyond limits\) .expected: "),
        ("list: [{}], fix: {elbow: 0.5}", r"pose 1 of 1 has elbow = 0.5"),
    ],
)
def test_poses_beyond_limits_are_refused_unless_they_are_asked_for(tmp_path, poses, words):
    text = f"""\
format: muscle_fit/1
points: [{{muscle: motor9, distance: 0.01}}]
poses: {{{poses}}}
moment_arms: [{{muscle: motor9, joint: elbow, values: 0.03}}]
"""
    with pytest.raises(DescriptionError, match=words):
        read(tmp_path, text, "roboy_arm")
    found = read(tmp_path, text + "beyond_limits: true\n", "roboy_arm")
    column = found.robot.tree.position_names.index("elbow")
    lower, upper = found.robot.tree.lower[column], found.robot.tree.upper[column]
    angles = found.q[:, column]
    assert ((angles < lower) | (angles > upper)).any()
    with pytest.raises(DescriptionError, match="true or false"):
        read(tmp_path, text + "beyond_limits: 1\n", "roboy_arm")


def test_curves_beyond_limits_are_refused(tmp_path):
    text = """\
format: muscle_fit/1
points: [{muscle: motor9, distance: 0.01}]
moment_arms: [{muscle: motor9, joint: elbow, at: [-0.3, 0.2], values: 0.03}]
"""
    with pytest.raises(DescriptionError, match=r"at: pose 2 of 2 has elbow = 0.2, beyond"):
        read(tmp_path, text, "roboy_arm")


def test_lengths_along_a_joint_and_at_poses(tmp_path):
    text = """\
format: muscle_fit/1
poses: {grid: {joint_1: [-1, 1, 3]}}
points: [{muscle: all, box: 0.1}]
lengths:
  - {muscle: cable_1, joint: joint_2, at: [0, 0.1], values: [0.1, 0.2], weight: 2}
  - {muscle: cable_2, values: 0.3, tolerance: [1, 2, 3]}
"""
    curve, common = read(tmp_path, text).goals
    assert (curve.name, common.name) == ("length of cable_1 over joint_2", "length of cable_2")
    assert (curve.unit, curve.weight, list(curve.wanted)) == ("m", 2.0, [0.1, 0.2])
    assert list(common.tolerance) == [1, 2, 3]
    assert common.along is None


def test_bounds_within_a_surface_are_refused():
    source = EXAMPLES / "urdf_arm"
    robot = import_urdf(source / "arm.urdf", muscles=source / "muscles.yaml").robot
    point = {"muscle": "biceps", "point": 1, "lower": [0, 0, -0.3], "upper": [0, 0.02, -0.29]}
    arm = {"muscle": "biceps", "joint": "elbow", "at": [0.2, 1], "values": 0.0}
    data = {"format": "muscle_fit/1", "points": [point], "moment_arms": [arm]}
    words = r"points\[0\]: all that the bounds of point 1 of muscle 'biceps' hold is inside wrap"
    with pytest.raises(DescriptionError, match=words):
        specification_of(data, robot)
    # a surface that may shrink lets them out
    (biceps,) = (muscle for muscle in robot.muscles if muscle.name == "biceps")
    surface = next(item.surface for item in biceps.path if isinstance(item, Wrap))
    radius = robot.wrap_surface(surface).geometry.radius
    data["radii"] = [{"surface": surface, "range": [0.1 * radius, radius]}]
    assert specification_of(data, robot).variables.radii
    data["radii"][0]["range"] = [0.99 * radius, radius]
    with pytest.raises(DescriptionError, match=words):
        specification_of(data, robot)


def test_arms_like_those_of_another_robot(tmp_path):
    text = """\
format: muscle_fit/1
poses: {samples: 3}
points: [{muscle: motor9, distance: 0.01}]
moment_arms: [{like: roboy_arm, muscles: [motor9], joints: [elbow]}]
"""
    found = read(tmp_path, text, "roboy_arm")
    (goal,) = found.goals
    robot = load("roboy_arm")
    jacobian = make_dynamics(robot, "numeric").batch(found.q).muscle_jacobian
    np.testing.assert_array_equal(goal.wanted, -jacobian[:, goal.muscle, 3])


def test_bounds_around_and_beside_the_present_place(tmp_path):
    text = GOOD.replace(
        "{muscle: cable_1, point: origin, distance: 0.1}",
        "{muscle: cable_1, point: 2, lower: [0.2, 0, 0.5], upper: [0.4, 0, 0.7]}",
    )
    variables = read(tmp_path, text).variables
    np.testing.assert_allclose(variables.place(0, variables.start), [0.2, 0, 0.7])
    far = variables.nearest(np.array([9.0, 9.0, -9.0]))
    np.testing.assert_allclose(variables.place(0, far), [0.4, 0, 0.5])
    for _ in range(20):
        place = variables.place(0, variables.random(np.random.default_rng(0)))
        assert (place >= [0.2, 0, 0.5]).all()
        assert (place <= [0.4, 0, 0.7]).all()


LINE = "  - {muscle: cable_1, point: origin, distance: 0.1}"
ARM = "closure: {margin: 0.01}", "moment_arms: [{muscle: cable_1, joint: joint_1, %s}]"

LENGTH = "lengths: [{muscle: cable_1, joint: joint_1, %s}]"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("muscle_fit/1", "other/1", r"fit.yaml:1: format: is 'other/1' \(expected: 'muscle_fit"),
        ("closure:", "closur:", r"unknown key 'closur', did you mean 'closure'\?"),
        ("closure: {margin: 0.01}", "", "asks for nothing"),
        (f"points:\n{LINE}\n", "", "has neither 'points' nor 'radii'"),
        ("cable_1", "cable_9", r"points\[0\].muscle: is 'cable_9', did you mean 'cable_"),
        ("point: origin", "point: 3", r"point: is 3, but 'cable_1' has 2 via points \(expected"),
        ("point: origin", "point: 0", "whole number >= 1"),
        ("point: origin", "point: [1, all]", "one of origin, insertion"),
        ("point: origin", "point: middle", "one of origin, insertion"),
        ("distance: 0.1", "distance: -0.1", "finite number > 0"),
        ("distance: 0.1", "distance: 0.1, box: 0.1", "has distance, box of the keys that bound"),
        ("distance: 0.1", "box: [0, 0, 0]", "none above 0"),
        ("distance: 0.1", "box: [1, -1, 0]", "negative half edge"),
        ("distance: 0.1", "box: [1, 1]", "has 2 values"),
        ("distance: 0.1", "lower: [1, 0, 0], upper: [0, 0, 0]", "is below 'lower'"),
        ("distance: 0.1", "", "has none of the keys that bound"),
        (LINE, f"{LINE}\n{LINE}", r"points\[1\]: point 1 of muscle 'cable_1' is there twice"),
        (
            "distance: 0.1",
            "distance: 0.1, mirror: {muscle: cable_2, axis: x}",
            "point 1 of muscle 'cable_2' is 2000 mm from the mirror image of point 1",
        ),
        (
            "distance: 0.1",
            "distance: 0.1, mirror: {muscle: cable_3, axis: w}",
            "one of x, y, z",
        ),
        ("joint_1: [-1, 1, 3]", "joint_7: [-1, 1, 3]", "no coordinate named 'joint_7'"),
        ("joint_1: [-1, 1, 3]", "joint_1: [-1, 1]", "has 2 values"),
        ("joint_1: [-1, 1, 3]", "joint_1: [-1, 1, 2.5]", "a whole number of values"),
        ("joint_1: [-1, 1, 3]", "joint_1: [-1, 1, 99999]", "has 199998 poses"),
        ("joint_1: [-1, 1, 3]", "joint_1: [-1, 1, .nan]", "is '.nan'"),
        ("{grid: ", "{samples: 3, grid: ", "has grid and samples of grid, samples, list"),
        ("{grid: ", "{seed: 3, grid: ", "'seed' without 'samples'"),
        ("margin: 0.01", "margin: 0", "finite number > 0"),
        ("margin: 0.01", "margin: 0.01, tolerance: 0.02", "less than 0.01"),
        (ARM[0], ARM[1] % "values: [1, 2]", "one for each of 6 poses, or one for all"),
        (ARM[0], ARM[1] % "values: 1, tolerance: 0", "is not above 0"),
        (ARM[0], ARM[1] % "values: 1, at: [0], fix: {joint_1: 1}", "has 'joint_1' too"),
        (ARM[0], ARM[1] % "values: 1, at: [0], poses: {samples: 1}", "'poses' beside 'at'"),
        (ARM[0], ARM[1] % "values: 1, weight: 0", "finite number > 0"),
        (ARM[0], ARM[1] % "value: 1", "unknown key 'value'"),
        (ARM[0], LENGTH % "values: 1", r"'joint' without 'at' .expected: 'joint' with 'at', or"),
        (ARM[0], LENGTH % "at: [0, 1], values: [1, 0]", "has a length of 0 or less"),
        (ARM[0], "lengths: [{muscle: cable_1, at: [0], values: 1}]", "has 'at' without 'joint'"),
        (ARM[0], LENGTH % "at: [0, 1], values: [1]", "has 1 values"),
        (ARM[0], "moment_arms: [{like: bm_arm}]", "'bm_arm' has the coordinates shoulder_x"),
        (ARM[0], "moment_arms: [{like: nothing}]", "no model or file named 'nothing'"),
        (ARM[0], "torques: [{joint: joint_1, range: [1, 0]}]", "goes from 1 to 0"),
        (ARM[0], "torques: [{joint: joint_1, range: [0, 0]}]", "goes from 0 to 0"),
        (ARM[0], "torques: [{joint: joint_1, range: [0, 1], others: all}]", "zero, free"),
        (ARM[0], "radii: [{surface: a, range: [1, 2]}]", r"radii\[0\].surface: is 'a'"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(DescriptionError, match=message) as raised:
        read(tmp_path, GOOD.replace(old, new))
    assert "fit.yaml" in str(raised.value)


ELBOW = """\
format: muscle_fit/1
points: [{muscle: biceps, distance: 0.01}]
radii: [{surface: %s, range: %s}]
moment_arms: [{muscle: biceps, joint: elbow, at: [1], values: 0.03}]
"""


@pytest.mark.parametrize(
    ("surface", "limits", "message"),
    [
        ("olecranon_fossa", "[0.01, 0.02]", "the radius of 'olecranon_fossa' cannot be fitted"),
        ("trochlea", "[0.02, 0.01]", "goes from 0.02 to 0.01"),
        (
            "trochlea",
            "[0.01, 0.06]",
            r"side point of muscle 'biceps' is 10 mm inside.*at most 0.05",
        ),
    ],
)
def test_radii_that_cannot_be_fitted(tmp_path, surface, limits, message):
    with pytest.raises(DescriptionError, match=message):
        read(tmp_path, ELBOW % (surface, limits), "wrap_elbow")


def test_gravity_with_ligaments_is_refused(tmp_path):
    text = ELBOW % ("trochlea", "[0.01, 0.03]") + (
        "torques: [{joint: elbow, range: [0, 1], gravity: true, poses: {samples: 2}}]\n"
    )
    with pytest.raises(DescriptionError, match=r"has ligaments \(capsule\)"):
        read(tmp_path, text, "wrap_elbow")


def test_poses_are_needed(tmp_path):
    text = GOOD.replace("poses: {grid: {joint_1: [-1, 1, 3], joint_2: [0, 1, 2]}}\n", "")
    with pytest.raises(DescriptionError, match="closure: has no poses"):
        read(tmp_path, text)


def test_sliding_and_turning_joints_need_a_length(tmp_path):
    text = """\
format: muscle_fit/1
poses: {samples: 3, ranges: {%s}}
points: [{muscle: all, distance: 0.1}]
closure: {margin: 0.01}
"""
    robot = load("ipanema_1")
    names = robot.tree.position_names
    ranges = ", ".join(f"{name}: [0, 0.1]" for name in names if name.endswith(("_x", "_y", "_z")))
    with pytest.raises(DescriptionError, match="a 'length' that makes moment arms of both"):
        read(tmp_path, text % ranges, "ipanema_1")


def test_hulls_with_too_many_facets_are_refused(tmp_path):
    text = GOOD.replace("{grid: {joint_1: [-1, 1, 3], joint_2: [0, 1, 2]}}", "{list: [{}]}")
    text = text.replace("muscle: cable_1", "muscle: all").replace("0.01}", "0.01, length: 0.1}")
    with pytest.raises(DescriptionError, match="may have 4,056,234 facets"):
        read(tmp_path, text, "snake_24")


def test_a_robot_without_muscles_that_take_a_tension(tmp_path):
    robot = load("wrap_elbow")
    ligament = replace(robot, muscles=robot.muscles[2:])
    file = tmp_path / "fit.yaml"
    file.write_text(
        "format: muscle_fit/1\npoints: [{muscle: all, distance: 0.1}]\n"
        "poses: {samples: 1}\nclosure: {margin: 0.1}\n"
    )
    with pytest.raises(DescriptionError, match="no muscle of the robot takes a tension"):
        read_specification(file, ligament)


@pytest.mark.parametrize(
    ("written", "quoted", "expected"),
    [("1", '"1"', '"1"'), ("007", '"007"', '"007"'), ("[2, 1]", '["2", "1"]', '"2"')],
)
def test_names_that_look_like_numbers_are_to_be_quoted(tmp_path, written, quoted, expected):
    robot = load("planar_2r")
    names = ("1", "2", "007", "other")
    robot = replace(
        robot,
        muscles=tuple(replace(m, name=n) for m, n in zip(robot.muscles, names, strict=True)),
    )
    file = tmp_path / "fit.yaml"
    file.write_text(GOOD.replace("cable_1", written))
    with pytest.raises(DescriptionError, match=r"fit.yaml:4: .*muscle.* without quotes") as caught:
        read_specification(file, robot)
    assert str(caught.value).endswith(f"no text (expected: {expected})")
    file.write_text(GOOD.replace("cable_1", quoted))
    assert read_specification(file, robot).variables.points
    file.write_text(GOOD.replace("cable_1", "3"))
    with pytest.raises(DescriptionError, match=r"is 3 \(expected: one of 1, 2, 007, other"):
        read_specification(file, robot)
