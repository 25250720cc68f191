"""Trajectory files: what they build, what their errors say, and that no input breaks them."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.formats import load
from cards_core.trajectories import (
    Circle,
    EulerRotation,
    Flower,
    Hold,
    PointToPoint,
    Rhythm,
    SampledReference,
    Sequence,
    TrajectoryError,
    cubic_average_spline,
    cubic_spline,
    from_dict,
    linear_spline,
    load_references,
    parabolic_blend,
    quintic_spline,
    rotation_spline,
    write_traj,
)
from cards_core.trajectories.library import KINDS, find_reference_file, read_reference

ROOT = Path(__file__).parents[4]
CONFIG = ROOT / "config" / "trajectories"

EVERY_KIND = """\
# every kind and every key
trajectories:
  reach: {kind: point_to_point, from: [0, 0, 0], to: [1, -1, 0.5], duration: 2}
  lines:
    kind: linear
    description: straight lines
    time_definition: absolute
    points:
      - {position: [0, 0, 0]}
      - {time: 1, position: [1, 0, 0]}
      - {time: 3.5, position: [1, 2, 0]}
  curve:
    kind: cubic
    time_definition: relative
    points:
      - {time: 0, position: [0, 0, 0], velocity: [1, 0, 0]}
      - {time: 1e0, position: [1, 0, 0], velocity: [0, 1, 0]}
      - {time: 2, position: [1, 2, 0]}
  mean:
    kind: cubic_average_velocity
    time_definition: relative
    points:
      - {position: [0, 0, 0]}
      - {time: 1, position: [1, 0, 0]}
      - {time: 2, position: [1, 2, 0], velocity: [0.5, 0, 0]}
  smooth:
    kind: quintic
    time_definition: relative
    caspr_sampling: true
    time_step: 0.3
    points:
      - {position: [0, 0, 0]}
      - {time: 1, position: [1, 0, 0], velocity: [0.1, 0, 0], acceleration: [0, .5, 0]}
      - {time: 2, position: [1, 2, 0]}
  blend:
    kind: parabolic_blend
    time_definition: absolute
    blend_time_default: 0.2
    points:
      - {position: [0, 0, 0]}
      - {time: 1, position: [1, 0, 0]}
      - {time: 3, position: [1, 2, 0], blend_time: 0.75}
  turn:
    kind: quintic
    time_definition: relative
    rotations: [{coordinates: [2, 0, 1], convention: fixed_xyz}]
    points:
      - {position: [0, 0, 0]}
      - {time: 2, position: [0.3, -0.2, 0.4]}
  flower:
    kind: flower
    centre: [0.4, -0.4, 0.4]
    amplitude: 0.1
    duration: 9
    petals: 8
    repeats: 2
    angle: 0.1
    normal: [0, 1, 0]
  ring:
    kind: circle
    space: operational
    centre: [0.4, -0.4, 0.4]
    radius: 0.1
    duration: 9
    revolutions: -0.5
    angle: 0.1
    axes: [[1, 0, 0], [0, 0, 1]]
  wait: {kind: hold, position: [1, 2, 0], duration: 1.5}
  swing:
    kind: rhythm
    centre: [1, 2, 0]
    amplitude: [0.2, 0, 0.1]
    frequency: 0.8
    duration: 10
    phases: [0, 0, 1.5]
    begin: [0, 0, 1]
    convergence: 8
    coupling: 3
  show:
    kind: sequence
    continuity: velocity
    parts: [blend, wait, {kind: point_to_point, from: [1, 2, 0], to: [0, 0, 0], duration: 1}]
  recorded: {kind: file, file: smooth.traj}
"""

NAMES = ("a", "b", "c")
EVERY_NAME = (
    *("reach", "lines", "curve", "mean", "smooth", "blend", "turn", "flower", "ring", "wait"),
    "swing",
    *("show", "recorded"),
)
K = np.array([[0, 0, 0], [1, 0, 0], [1, 2, 0]], dtype=float)


@pytest.fixture
def folder(tmp_path):
    smooth = quintic_spline([0, 1, 2], K)
    write_traj(tmp_path / "smooth.traj", smooth, 0.1)
    (tmp_path / "all.yaml").write_text(EVERY_KIND)
    return tmp_path


def expected():
    """What EVERY_KIND says, built from Python."""
    v0 = [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    v1 = [[0, 0, 0], [0.1, 0, 0], [0, 0, 0]]
    a1 = [[0, 0, 0], [0, 0.5, 0], [0, 0, 0]]
    blend = parabolic_blend([0, 1, 3], K, [0.2, 0.75])
    plane = {"axes": ([1, 0, 0], [0, 0, 1])}
    centre = [0.4, -0.4, 0.4]
    return {
        "reach": PointToPoint([0, 0, 0], [1, -1, 0.5], 2),
        "lines": linear_spline([0, 1, 3.5], K),
        "curve": cubic_spline([0, 1, 3], K, v0),
        "mean": cubic_average_spline([0, 1, 3], K, None, [0.5, 0, 0]),
        "smooth": quintic_spline([0, 1, 3], K, v1, a1, caspr_time_step=0.3),
        "blend": blend,
        "turn": rotation_spline(
            "quintic", [0, 2], [[0, 0, 0], [0.3, -0.2, 0.4]], [((2, 0, 1), "fixed_xyz")]
        ),
        "flower": Flower(centre, 0.1, 9, petals=8, repeats=2, angle=0.1, normal=[0, 1, 0]),
        "ring": Circle(centre, 0.1, 9, revolutions=-0.5, angle=0.1, **plane),
        "wait": Hold([1, 2, 0], 1.5),
        "swing": Rhythm(
            [1, 2, 0],
            [0.2, 0, 0.1],
            0.8,
            10,
            phases=[0, 0, 1.5],
            begin=[0, 0, 1],
            convergence=8,
            coupling=3,
        ),
        "show": Sequence([blend, Hold([1, 2, 0], 1.5), PointToPoint([1, 2, 0], [0, 0, 0], 1)]),
        "recorded": quintic_spline([0, 1, 2], K),
    }


def test_every_kind_and_key_builds_what_it_says(folder):
    loaded = load_references(folder / "all.yaml", names=NAMES, operational_size=3)
    wanted = expected()
    assert list(loaded) == list(wanted)
    for name, reference in loaded.items():
        assert reference.name == name
        assert reference.duration == pytest.approx(wanted[name].duration)
        operational = name in ("flower", "ring")
        assert reference.space == ("operational" if operational else "joint")
        assert reference.coordinate_names == (() if operational else NAMES)
        t = np.linspace(-0.1, reference.duration * 0.99, 57)
        # a file interpolates between its samples
        atol = 2e-3 if name == "recorded" else 1e-12
        for got, target in zip(reference.sample(t)[:2], wanted[name].sample(t)[:2], strict=True):
            np.testing.assert_allclose(got, target, atol=atol)
    assert isinstance(loaded["recorded"], SampledReference)


def test_the_example_uses_every_kind_and_key():
    for kind, definition in KINDS.items():
        assert f"kind: {kind}" in EVERY_KIND
        for key in (*definition.required, *definition.optional):
            assert f"{key}:" in EVERY_KIND


def test_documentation_names_every_kind_and_key():
    text = (ROOT / "docs" / "trajectories.md").read_text()
    for kind, definition in KINDS.items():
        assert f"`{kind}`" in text
        for key in (*definition.required, *definition.optional):
            assert f"`{key}" in text


def test_joints_may_come_in_another_order(folder):
    text = EVERY_KIND.replace("kind: quintic", "kind: quintic\n    joints: [c, a, b]")
    text = text.replace("{kind: file,", "{kind: file, joints: [c, a, b],")
    text = text.replace("kind: sequence", "kind: sequence\n    joints: [c, a, b]")
    text = text.replace("from: [1, 2, 0]", "from: [0, 1, 2]")
    (folder / "b.yaml").write_text(text)
    plain = load_references(folder / "all.yaml", names=NAMES)
    mixed = load_references(folder / "b.yaml", names=NAMES)
    t = np.linspace(0.0, 3.0, 31)
    for name in ("smooth", "recorded"):
        for a, b in zip(plain[name].sample(t), mixed[name].sample(t), strict=True):
            np.testing.assert_allclose(b, a[:, [1, 2, 0]], atol=1e-13)
    # a part that is defined inside follows the sequence's order, a named part does not need to
    for a, b in zip(plain["show"].sample(t), mixed["show"].sample(t), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-13)
    # column 2 of the file is joint b, column 0 is c, column 1 is a
    angles = EulerRotation([0, 2], [[0, 0, 0], [0.4, 0.3, -0.2]], convention="fixed_xyz")
    np.testing.assert_allclose(mixed["turn"](0.7)[0][[1, 2, 0]], angles(0.7)[0], atol=1e-12)


def test_rotations_may_name_joints(folder):
    text = EVERY_KIND.replace("coordinates: [2, 0, 1]", "coordinates: [c, a, b]")
    (folder / "b.yaml").write_text(text)
    a = load_references(folder / "all.yaml", names=NAMES)["turn"](0.7)[0]
    np.testing.assert_array_equal(
        load_references(folder / "b.yaml", names=NAMES)["turn"](0.7)[0], a
    )


def test_from_dict_takes_arrays():
    definition = {
        "kind": "linear",
        "time_definition": "absolute",
        "points": [
            {"position": np.zeros(2)},
            {"time": np.float64(1.0), "position": (1, 2)},
        ],
    }
    reference = from_dict({"trajectories": {"x": definition}}, size=2)["x"]
    np.testing.assert_allclose(reference(0.5)[0], [0.5, 1.0])


def test_sequences_may_name_what_comes_later():
    text = {"a": {"kind": "sequence", "parts": ["b", "b"]}, "b": {"kind": "hold", "position": [1]}}
    assert list(from_dict({"trajectories": text})) == ["a", "b"]


# The shipped files -----------------------------------------------------------------------------


def test_planar_2r_is_the_published_motion():
    reference = load_references(CONFIG / "planar_2r.yaml", size=2)["there_and_back"]
    assert reference.duration == 8.0
    assert reference.space == "joint"
    for t, q in ((0, [-0.5, 0.5]), (2, [0, 0]), (4, [0.5, -0.5]), (8, [-0.5, 0.5])):
        np.testing.assert_allclose(reference(t)[0], q, atol=1e-15)
    for t in (0.0, 4.0, 8.0):
        assert not np.any(reference(t)[1:])
    assert np.abs(reference.sample(np.linspace(0, 8, 801))[1]).max() == pytest.approx(1.875 / 4)


def test_roboy_arm_draws_the_flower():
    flower = load_references(CONFIG / "roboy_arm.yaml", operational_size=3)["flower"]
    assert flower.duration == 30.0
    assert flower.space == "operational"
    y = flower.sample(np.linspace(0.0, 30.0, 3001))[0]
    np.testing.assert_allclose(y[[0, -1]], [[0.45, -0.45, 0.45]] * 2, atol=1e-15)
    np.testing.assert_allclose(y[:, 1], -0.45, atol=1e-15)
    radius = np.linalg.norm(y - flower.centre, axis=1)
    assert radius.max() == pytest.approx(0.15, abs=1e-6)
    assert np.sum((radius[1:-1] > radius[:-2]) & (radius[1:-1] >= radius[2:])) == 5


# Errors ----------------------------------------------------------------------------------------


def change(old, new, count=1):
    assert old in EVERY_KIND
    return EVERY_KIND.replace(old, new, count)


LAST = "position: [1, 2, 0]}\n      - {time: 1, position: [0, 0, 0]}"
BLEND = "points:\n      - {position: [0, 0, 0]}\n      - {time: 1, position: [1, 0, 0]}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "all.yaml: is empty (expected: a mapping"),
        ("[1, 2]", "all.yaml:1: is a list"),
        ("trajectories: 3", "all.yaml:1: trajectories: is 3.0 (expected: a mapping"),
        ("trajectory: {}", "all.yaml:1: trajectory: unknown key 'trajectory', did you mean"),
        ("{}", "all.yaml:1: has no 'trajectories'"),
        ("trajectories: {a: 1}", "all.yaml:1: trajectory 'a': is 1.0"),
        ("trajectories: {a: {}}", "trajectory 'a': has no 'kind'"),
        ("a: [", "all.yaml:1: not valid YAML"),
        ("a: *b", "all.yaml:1: not valid YAML: found undefined alias 'b'"),
        ("a: 1\n---\nb: 1", "all.yaml:2: not valid YAML"),
        ("a: 1\na: 2", "all.yaml:2: key 'a' appears twice"),
        ("[1]: 2", "all.yaml:1: a key is a list"),
        ("a: &a [*a]", "all.yaml:1: nested too deeply"),
        ("[" * 1000, "nested too deeply"),
        ('"\\UFFFFFFFF"', "not valid YAML"),
        ("a: \x07", "not valid YAML"),
        (
            change("duration: 2}", "duration: -2}"),
            ":3: trajectory 'reach', duration: is -2 (expec",
        ),
        (change("duration: 2}", "duration: .nan}"), "duration: is '.nan' (expected: a finite"),
        (change("duration: 2}", "duration: 1e999}"), "duration: is inf (expected: a finite"),
        (change("duration: 2}", "duration: true}"), "duration: is true"),
        (change("duration: 2}", "duration: '2'}"), "duration: is '2'"),
        (change("duration: 2}", "duration: }"), "duration: is empty"),
        (
            change("duration: 2}", "durations: 2}"),
            "unknown key 'durations', did you mean 'duratio",
        ),
        (change("to: [1, -1, 0.5], ", ""), ":3: trajectory 'reach': has no 'to'"),
        (change("to: [1, -1, 0.5]", "to: [1, -1]"), "to: has 2 values (expected: 3: a, b, c)"),
        (change("to: [1, -1, 0.5]", "to: [1, x, 2]"), "trajectory 'reach', to[1]: is 'x'"),
        (change("to: [1, -1, 0.5]", "to: 3"), "to: is 3.0 (expected: a list)"),
        (change("to: [1, -1, 0.5]", "to: []"), "to: has 0 elements"),
        (change("kind: linear", "kind: linera"), ":5: trajectory 'lines', kind: is 'linera', did"),
        (change("kind: linear", "kind: 4"), "kind: is 4 (expected: one of point_to_point"),
        (change("absolute", "absolut"), "did you mean 'absolute'? (expected: one of relative"),
        (change("time: 3.5", "time: 1"), ":11: trajectory 'lines', points[2].time: is 1 s (expec"),
        (change("time: 1e0", "time: -1"), "points[1].time: is -1 (expected: a finite number > 0)"),
        (change("time: 0,", "time: 1,"), "points[0].time: is not 0 at the first point"),
        (change("{time: 1, ", "{"), "points[1]: has no 'time'"),
        (change("points:", "points: []\n    x:"), "unknown key 'x'"),
        (change(BLEND, "points:\n"), "points: has 1 elements (expected: at least 2)"),
        (
            change(
                "{time: 1, position: [1, 0, 0]}", "{time: 1, position: [1, 0, 0], velocity: 1}"
            ),
            "points[1].velocity: unknown key 'velocity'",
        ),
        (
            change("velocity: [0, 1, 0]", "velocity: [0, 1]"),
            "points[1].velocity: has 2 values (expected: 3: a, b, c)",
        ),
        (
            change(
                "- {time: 2, position: [1, 2, 0], velocity: [0.5", "- {time: 2, velocity: [0.5"
            ).replace("velocity: [0.5, 0, 0]}", "velocity: [0, 0, 0], " + LAST),
            "points[2].velocity: is computed",
        ),
        (change("blend_time: 0.75", "blend_time: 1"), "blend_time: is 1 s in a segment of 2 s"),
        (
            change("blend_time_default: 0.2", "blend_time_default: 0.5"),
            ":38: trajectory 'blend', blend_time_default",
        ),
        (change("    blend_time_default: 0.2\n", ""), "'blend': has no 'blend_time_default'"),
        (change("    time_step: 0.3\n", ""), "caspr_sampling without a time step"),
        (change("time_step: 0.3", "time_step: 7"), "time step is 7 s, expected at most 1 s"),
        (
            change("caspr_sampling: true", "caspr_sampling: yes"),
            "is 'yes' (expected: true or false",
        ),
        (
            change("coordinates: [2, 0, 1]", "coordinates: [2, 0, 3]"),
            "coordinates[2]: is 3 (expecte",
        ),
        (change("coordinates: [2, 0, 1]", "coordinates: [2, 0, 0]"), "is not a triple"),
        (change("coordinates: [2, 0, 1]", "coordinates: [2, 0, d]"), "one of a, b, c"),
        (change("fixed_xyz", "zyx"), "(expected: one of euler_xyz, fixed_xyz)"),
        (change("[0.3, -0.2, 0.4]", "[1.7, -0.2, 0.4]"), "trajectory 'turn': from knot 1"),
        (change("petals: 8", "petals: 6"), "trajectory 'flower': petals is 6, expected an odd"),
        (change("petals: 8", "petals: 2.5"), "petals: is 2.5 (expected: a whole number >= 1"),
        (change("normal: [0, 1, 0]", "normal: [0, 0, 0]"), "expected a vector that is not zero"),
        (change("    normal: [0, 1, 0]\n", ""), "either 'normal' or 'axes'"),
        (change("revolutions: -0.5", "normal: [0, 1, 0]"), "either 'normal' or 'axes'"),
        (change("axes: [[1, 0, 0], [0, 0, 1]]", "axes: [[1, 0, 0]]"), "axes: has 1 elements"),
        (change("revolutions: -0.5", "revolutions: 0"), "revolutions is 0"),
        (change("space: operational", "space: task"), "space: is 'task' (expected: one of joint"),
        (change("space: operational", "joints: [a, b, c]"), "joints: is for joint space"),
        (
            change("centre: [0.4, -0.4, 0.4]", "centre: [0.4, -0.4]"),
            "centre: has 2 values (expecte",
        ),
        (
            change("position: [1, 2, 0], duration: 1.5", "position: [1, 2]"),
            "'wait', position: has 2",
        ),
        (change("[blend, wait,", "[blend, weit,"), "parts[1]: is 'weit', did you mean 'wait'?"),
        (change("[blend, wait,", "[blend, show,"), "'show' contains itself (show -> show)"),
        (change("[blend, wait,", "[blend, flower,"), "is in operational space (expected: joint"),
        (change("[blend, wait,", "[blend, lines,"), "trajectory 'show': position of coordinate"),
        (change("[blend, wait,", "[blend, 3,"), "parts[1]: is 3 (expected: a text)"),
        (change("continuity: velocity", "continuity: jerk"), "one of position, velocity, acceler"),
        (change("smooth.traj", "none.traj"), "recorded', file: there is no file 'none.traj'"),
        (
            change("file: smooth.traj", "joints: [a, b], file: x"),
            "joints: missing: c (expected: each",
        ),
        (change("file: smooth.traj", "joints: [a, b, a], file: x"), "unknown or duplicate: a"),
        (change("file: smooth.traj", "joints: [a, b, c, d], file: x"), "unknown or duplicate: d"),
        (change("reach:", "lines:"), ":4: key 'lines' appears twice"),
    ],
)
def test_errors_name_the_place_and_what_would_be_right(folder, text, message):
    path = folder / "all.yaml"
    path.write_text(text)
    with pytest.raises(DescriptionError) as caught:
        load_references(path, names=NAMES, operational_size=3)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_errors_of_files(tmp_path, folder):
    with pytest.raises(DescriptionError, match="no such file"):
        load_references(tmp_path / "none.yaml")
    with pytest.raises(DescriptionError, match="is a folder"):
        load_references(tmp_path)
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x80")
    with pytest.raises(DescriptionError, match="cannot be read"):
        load_references(tmp_path / "x.yaml")
    (tmp_path / "smooth.traj").write_text("time_step,0.1\nt,0,p,1,v,1,a,1\nt,0.1,p,1,v,1,a,1\n")
    with pytest.raises(DescriptionError, match=r"smooth\.traj:2: 1 values after p"):
        load_references(folder / "all.yaml", names=NAMES)


def test_errors_keep_their_cause():
    points = [{"position": [0, 0, 0]}, {"time": 1, "position": [0, math.pi / 2, 0]}]
    definition = {
        "kind": "quintic",
        "time_definition": "relative",
        "points": points,
        "rotations": [{"coordinates": [0, 1, 2], "convention": "euler_xyz"}],
    }
    with pytest.raises(DescriptionError) as caught:
        from_dict({"trajectories": {"x": definition}})
    assert isinstance(caught.value.__cause__, TrajectoryError)
    assert "gimbal lock" in str(caught.value.__cause__)


def test_size_of_the_robot_is_checked():
    hold = {"trajectories": {"x": {"kind": "hold", "position": [1, 2]}}}
    from_dict(hold)
    from_dict(hold, size=2)
    with pytest.raises(DescriptionError, match=r"has 2 values .expected: 3"):
        from_dict(hold, size=3)
    with pytest.raises(TrajectoryError, match="2 names for size 3"):
        from_dict(hold, size=3, names=["a", "b"])
    hold["trajectories"]["x"]["joints"] = ["a", "b"]
    with pytest.raises(DescriptionError, match="joint names are not known"):
        from_dict(hold, size=2)


def test_quaternion_coordinates_are_not_interpolated():
    names = ["knee", "hip.w", "hip.x", "hip.y", "hip.z"]
    motion = {"kind": "point_to_point", "from": [0] * 5, "to": [1] * 5, "duration": 1}
    with pytest.raises(DescriptionError, match="joint 'hip' turns by a quaternion"):
        from_dict({"trajectories": {"x": motion}}, names=names)
    hold = {"kind": "hold", "position": [0, 1, 0, 0, 0]}
    assert from_dict({"trajectories": {"x": hold}}, names=names)["x"].size == 5


def test_endless_nesting_is_refused():
    definition = {"kind": "sequence", "parts": []}
    definition["parts"].append(definition)
    with pytest.raises(DescriptionError, match="nested too deeply"):
        from_dict({"trajectories": {"x": definition}})
    names = {f"x{i}": {"kind": "sequence", "parts": [f"x{i + 1}"]} for i in range(30)}
    names["x30"] = {"kind": "hold", "position": [1]}
    with pytest.raises(DescriptionError, match="nested too deeply"):
        from_dict({"trajectories": names})


def test_an_alias_bomb_is_defused(tmp_path):
    levels = "\n".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 15))
    (tmp_path / "bomb.yaml").write_text("l0: &l0 [1]\n" + levels)
    with pytest.raises(DescriptionError, match="too large"):
        load_references(tmp_path / "bomb.yaml")


# Fuzz ------------------------------------------------------------------------------------------

TOKENS = (
    *("", " ", "\n", "\t", ":", "-", ",", "[", "]", "{", "}", "#", "&a", "*a", "!!int", "'", '"'),
    *("0", "-1", "1e308", "-1e308", "1e-320", "1e999", ".nan", ".inf", "0x10", "1:30", "1_0"),
    *(
        "true",
        "null",
        "~",
        "[]",
        "{}",
        "[[1]]",
        "<<",
        "|",
        ">",
        "%",
        "@",
        "\0",
        "\x85",
        "é",
        "\U0001f600",
    ),
    *(kind for kind in KINDS),
    *("relative", "absolute", "time", "position", "velocity", "points", "parts", "kind", "joints"),
)


def mutate(text, rng):
    for _ in range(rng.integers(1, 5)):
        lines = text.split("\n")
        i, j = rng.integers(0, len(lines), 2)
        at = int(rng.integers(0, max(len(text), 1)))
        length = int(rng.integers(0, 8))
        token = TOKENS[rng.integers(len(TOKENS))]
        match rng.integers(0, 8):
            case 0:
                text = text[:at] + token + text[at + length :]
            case 1:
                text = text[:at] + text[at + length :]
            case 2:
                lines[i], lines[j] = lines[j], lines[i]
                text = "\n".join(lines)
            case 3:
                text = "\n".join([*lines[:i], lines[j], *lines[i:]])
            case 4:
                text = "\n".join([*lines[:i], *lines[i + 1 :]])
            case 5:
                lines[i] = " " * int(rng.integers(0, 7)) + lines[i].lstrip()
                text = "\n".join(lines)
            case _:
                # replace a value: most likely to get past the parser
                words = lines[i].split(" ")
                k = int(rng.integers(0, len(words)))
                tail = words[k][len(words[k].rstrip(",]}")) :]
                words[k] = token + tail
                lines[i] = " ".join(words)
                text = "\n".join(lines)
    return text


def test_no_input_breaks_the_loader(folder):
    """1,500 damaged files: read, and then giving finite numbers, or refused with our error."""
    rng = np.random.default_rng(20)
    head, *sections = re.split(r"\n  (?=\w)", EVERY_KIND)
    assert len(sections) == len(EVERY_NAME)
    # what the sequence needs
    at = EVERY_NAME.index("show")
    needs = [sections[EVERY_NAME.index(name)] for name in ("blend", "wait")]
    sections[at] = "\n  ".join([sections[at], *needs])
    path = folder / "fuzz.yaml"
    accepted, messages = 0, []
    for _ in range(1500):
        text = mutate(f"{head}\n  {sections[rng.integers(len(sections))]}\n", rng)
        path.write_text(text, encoding="utf-8")
        try:
            references = load_references(path, names=NAMES, operational_size=3)
        except CardsError as error:
            messages.append(str(error))
            continue
        accepted += 1
        for reference in references.values():
            for t in (-1.0, 0.0, 0.31 * reference.duration, reference.duration, 1e9):
                assert np.isfinite(reference(t)).all(), text
    assert all(str(folder) in message for message in messages)
    # neither all nothing nor all noise
    assert 100 < accepted < 1000


def test_no_data_breaks_from_dict():
    """Random data of any type in the place of any value."""
    rng = np.random.default_rng(21)
    junk = (
        None,
        True,
        -1,
        0,
        1e308,
        math.nan,
        "x",
        "kind",
        [],
        {},
        [1],
        {"a": 1},
        b"x",
        1j,
        10**400,
    )
    base = {
        "kind": "quintic",
        "space": "joint",
        "time_definition": "relative",
        "points": [
            {"position": [0, 0, 0]},
            {"time": 1, "position": [1, 1, 1], "velocity": [0, 0, 1]},
        ],
        "rotations": [],
    }

    def spoil(value):
        if rng.random() < 0.12:
            return junk[rng.integers(len(junk))]
        if isinstance(value, dict):
            return {key: spoil(item) for key, item in value.items() if rng.random() > 0.03}
        return [spoil(item) for item in value] if isinstance(value, list) else value

    outcomes = {True: 0, False: 0}
    for _ in range(1000):
        try:
            from_dict({"trajectories": {"x": spoil(base)}}, names=NAMES)
            outcomes[True] += 1
        except CardsError:
            outcomes[False] += 1
    assert min(outcomes.values()) > 50


# Files by name ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def robot():
    return load("planar_2r")


def test_the_file_of_the_robot_is_the_default(robot, tmp_path):
    assert find_reference_file("", robot).name == "planar_2r.yaml"
    assert find_reference_file("roboy_arm", robot).name == "roboy_arm.yaml"
    own = tmp_path / "own.yaml"
    own.write_text("trajectories: {}\n")
    assert find_reference_file(str(own), robot) == own


def test_installed_files_are_found(robot, tmp_path, monkeypatch):
    folder = tmp_path / "share" / "cards_bringup" / "config" / "trajectories"
    folder.mkdir(parents=True)
    (folder / "installed.yaml").write_text("trajectories: {}\n")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert find_reference_file("installed", robot) == folder / "installed.yaml"


@pytest.mark.parametrize("name", ["nothing", "../planar_2r", "/nowhere/planar_2r.yaml"])
def test_unknown_files_are_refused_with_those_there_are(robot, name):
    with pytest.raises(UnknownNameError, match="planar_2r"):
        find_reference_file(name, robot)


def test_references_are_read_by_name_and_space(robot):
    tree = robot.tree
    reference = read_reference("there_and_back", "", robot, tree, space="joint")
    assert reference.duration == 8.0
    with pytest.raises(UnknownNameError, match="there_and_back"):
        read_reference("there", "", robot, tree, space="joint")
    with pytest.raises(CardsError, match="joint space, expected one in operational space"):
        read_reference("there_and_back", "", robot, tree, space="operational")
