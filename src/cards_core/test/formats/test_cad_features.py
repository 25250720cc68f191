"""Features of faces, joints they suggest, names of markers, order of paths; no Open CASCADE."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cards_core.errors import DescriptionError
from cards_core.formats.cad.assembly import (
    Assembly,
    Component,
    Face,
    GivenJoint,
    GivenLink,
    Solid,
    load,
    save,
)
from cards_core.formats.cad.config import read_config
from cards_core.formats.cad.features import features_of, joint_candidates
from cards_core.formats.cad.importer import import_cad, recognise
from cards_core.formats.cad.links import mesh_volume
from cards_core.formats.cad.propose import propose
from cards_core.formats.imports.findings import FindingList
from cards_core.formats.imports.marked_frames import add_marked_muscles, muscles_from_frames
from cards_core.formats.imports.markers import TENSION_LIMITS, Marker, meant_marker, parse_marker
from cards_core.formats.sdf.reader import read_sdf
from cards_core.robot.elements import Frame, ViaPoint
from cards_core.robot.stl_file import binary_stl
from cards_core.spatial import Pose, axis_rotation

Y = np.array([0.0, 1.0, 0.0])


def cylinder(place, length=0.02, *, radius=0.005, concave=False, angle=2 * math.pi, axis=Y):
    return Face("cylinder", np.array(place), axis, radius, 0.0, length, angle, concave)


def found(link, *faces, pose=None):
    return features_of(link, link, faces, pose or Pose())


def test_two_halves_are_one_hole():
    halves = [cylinder([0, 0, 0], concave=True, angle=math.pi) for _ in range(2)]
    (hole,) = found("a", *halves)
    assert (hole.kind, hole.name) == ("hole", "a#hole1")
    assert hole.angle == pytest.approx(2 * math.pi)
    behind = cylinder([0, 0.02, 0], concave=True)
    (longer,) = found("a", *halves, behind)
    assert longer.length == pytest.approx(0.04)
    assert np.allclose(longer.centre, [0, 0.01, 0])


def test_rounded_edges_are_no_features():
    assert not found("a", cylinder([0, 0, 0], angle=math.pi / 2))
    assert len(found("a", cylinder([0, 0, 0]), cylinder([0.1, 0, 0]))) == 2


def test_features_are_in_the_assembly():
    pose = Pose(axis_rotation([0.0, 0.0, 1.0], math.pi / 2), np.array([1.0, 2.0, 3.0]))
    (pin,) = found("a", cylinder([0.1, 0, 0]), pose=pose)
    assert np.allclose(pin.centre, [1.0, 2.1, 3.0])
    assert np.allclose(pin.axis, [-1.0, 0.0, 0.0])


def test_pin_in_hole_is_a_candidate():
    pin = found("arm", cylinder([0, 0.01, 0], 0.03, radius=0.0049))
    hole = found("base", cylinder([0, 0, 0], 0.02, concave=True))
    (joint,) = joint_candidates(pin + hole)
    assert joint.kind == "revolute"
    assert joint.links == ("arm", "base")
    assert joint.clearance == pytest.approx(1e-4)
    # pin from -0.005 to 0.025, hole from -0.01 to 0.01: overlap from -0.005 to 0.01
    assert np.allclose(joint.at, [0, 0.0025, 0])


@pytest.mark.parametrize(
    ("place", "length", "radius", "axis"),
    [
        ([0.0, 0.1, 0.0], 0.02, 0.005, Y),  # beside the hole
        ([0.001, 0.0, 0.0], 0.02, 0.005, Y),  # another axis
        ([0.0, 0.0, 0.0], 0.02, 0.0051, Y),  # does not fit
        ([0.0, 0.0, 0.0], 0.02, 0.003, Y),  # rattles
        ([0.0, 0.0, 0.0], 0.02, 0.005, np.array([0.0, 0.99, math.sqrt(1 - 0.99**2)])),
    ],
)
def test_what_is_no_joint(place, length, radius, axis):
    pin = found("arm", cylinder(place, length, radius=radius, axis=axis))
    hole = found("base", cylinder([0, 0, 0], 0.02, concave=True))
    assert not joint_candidates(pin + hole)
    assert not joint_candidates([*found("one", cylinder([0, 0, 0])), *hole[:0]])


def test_bolts_are_no_hinge():
    pins = [cylinder([x, 0, 0]) for x in (0.0, 0.1)]
    holes = [cylinder([x, 0, 0], concave=True) for x in (0.0, 0.1)]
    joints = joint_candidates(found("a", *pins) + found("b", *holes))
    assert [joint.kind for joint in joints] == ["fixed", "fixed"]


def test_ball_in_socket():
    ball = Face("sphere", np.array([0.1, 0, 0]), Y, 0.02)
    socket = Face("sphere", np.array([0.1, 0, 0]), Y, 0.0202, concave=True)
    (joint,) = joint_candidates(found("a", ball) + found("b", socket))
    assert joint.kind == "ball"


# Markers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "marker"),
    [
        ("muscle:biceps:2", Marker("muscle", muscle="biceps", order=2)),
        ("muscle:07", Marker("muscle", muscle="07")),
        ("muscle:7:1@upper_arm", Marker("muscle", muscle="7", order=1, link="upper_arm")),
        ("wrap:elbow", Marker("wrap", "elbow")),
        ("wrap:elbow:biceps:2", Marker("wrap", "elbow", "biceps", 2)),
        ("frame:hand@lower", Marker("frame", "hand", link="lower")),
        ("Muscle:Biceps:2", Marker("muscle", muscle="Biceps", order=2)),
        ("WRAP:elbow", Marker("wrap", "elbow")),
        ("muscle_biceps_2", None),
        ("muscel:3:2", None),
        ("plate", None),
        ("muscles", None),
    ],
)
def test_names(name, marker):
    assert parse_marker(name) == marker


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("muscel:3:2", "muscle:3:2"),
        ("Muscles:3:2", "muscle:3:2"),
        ("muscle :3:2", "muscle:3:2"),
        ("warp:elbow", "wrap:elbow"),
        ("farme:hand@arm", "frame:hand@arm"),
        ("muscle:3:2", None),
        ("Muscle:3:2", None),
        ("muscel", None),
        ("model:part", None),
        ("from:here", None),
        ("arm::hand", None),
        ("", None),
    ],
)
def test_misspelt_names(name, meant):
    assert meant_marker(name) == meant


def test_flat_names():
    assert parse_marker("muscle_a_b_3", flat=True) == Marker("muscle", muscle="a_b", order=3)


@pytest.mark.parametrize("name", ["muscle:", "muscle:a:b", "wrap:a:b", "muscle:a:1@", "frame:"])
def test_names_that_only_begin_like_one(name):
    with pytest.raises(ValueError, match="with @LINK if need be"):
        parse_marker(name)


SDF = """<sdf version="1.11"><model name="arm">
<link name="base"/><link name="upper"/><link name="lower"/>
<joint name="fix" type="fixed"><parent>world</parent><child>base</child></joint>
<joint name="a" type="revolute"><parent>base</parent><child>upper</child>
  <axis><xyz>0 1 0</xyz></axis></joint>
<joint name="b" type="revolute"><parent>upper</parent><child>lower</child>
  <axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"""


def with_frames(*frames):
    robot = read_sdf(SDF)
    made = tuple(Frame(name, link, Pose(np.eye(3), np.array(x))) for name, link, x in frames)
    return replace(robot, frames=made)


def test_muscles_of_frames():
    robot = muscles_from_frames(
        with_frames(
            ("muscle:10:1", "base", [0.0, 0, 1]),
            ("muscle:10:2", "lower", [1.0, 0, 1]),
            ("muscle:2", "lower", [2.0, 0, 0]),
            ("muscle:2", "base", [0.0, 0, 0]),
            ("muscle_flat_1", "base", [0.0, 0, 2]),
            ("muscle_flat_2", "upper", [0.0, 0, 3]),
            ("muscle_group_7", "upper", [9.0, 0, 3]),
            ("frame:hand", "lower", [0.0, 0, 0]),
        )
    )
    assert [muscle.name for muscle in robot.muscles] == ["2", "10", "flat"]
    # without numbers: from the base to the tip
    assert [item.link for item in robot.muscle("2").path] == ["base", "lower"]
    assert all(isinstance(item, ViaPoint) for item in robot.muscle("flat").path)
    assert robot.muscle("10").path[1].position.tolist() == [1.0, 0.0, 1.0]
    assert robot.muscle("10").tension_max == TENSION_LIMITS[1]
    # no muscle_group_1: an ordinary name
    assert [frame.name for frame in robot.frames] == ["muscle_group_7", "hand"]


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([("muscle:1:1", "base"), ("muscle:1:1", "upper")], "are at the same place of it"),
        ([("muscle:1", "base"), ("muscle:1", "base")], "are at the same place of it"),
        ([("muscle:1:1", "base"), ("muscle:1", "upper")], "some have none"),
        ([("muscle:1:1", "base")], r"muscle '1': its path is muscle:1:1 \(expected: at least two"),
        ([("muscle:1:x", "base")], "frame 'muscle:1:x': the name begins like a marker's"),
        ([("wrap:a:1:2", "base")], "no wrap surface 'a'"),
        (
            [("muscle:1:1", "base"), ("muscle:1:3", "upper")],
            "muscle '1': its points have the numbers 1, 3, and there is no 'muscle:1:2'",
        ),
        ([("muscle:1:2", "base"), ("muscle:1:3", "upper")], "there is no 'muscle:1:1'"),
        ([("muscle:1:1", "base"), ("muscle:1:9", "upper")], "'muscle:1:6' and 2 more"),
    ],
)
def test_frames_that_are_no_muscle(frames, message):
    with pytest.raises(DescriptionError, match=message):
        muscles_from_frames(with_frames(*((name, link, [0.0, 0, 0]) for name, link in frames)))


def test_points_may_be_counted_from_0():
    points = [("muscle:1:0", "base", [0.0, 0, 0]), ("muscle:1:1", "upper", [0.0, 0, 1])]
    assert len(muscles_from_frames(with_frames(*points)).muscle("1").path) == 2


def test_a_misspelt_frame_is_named():
    findings = FindingList()
    frames = [("muscle:1:1", "base"), ("muscle:1:2", "upper"), ("muscel:1:3", "lower")]
    robot = with_frames(*((name, link, [0.0, 0, 1]) for name, link in frames))
    robot = add_marked_muscles(robot, findings)
    assert len(robot.muscle("1").path) == 2
    (found,) = [item for item in findings if item.code == "marker-misspelt"]
    assert found.subject == "frame 'muscel:1:3'"
    assert "did you mean 'muscle:1:3'?" in found.message


# Assemblies made by hand -----------------------------------------------------------------------


def block(size=0.1, faces=(), **changes):
    """A cube about the origin of its component."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size / 2
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    triangles = np.array([t for a, b, c, d in quads for t in ([a, b, c], [a, c, d])])
    values = {
        "name": "",
        "volume": size**3,
        "centroid": np.zeros(3),
        "second_moment": np.eye(3) * size**5 / 6,
        "vertices": corners,
        "triangles": triangles,
        "faces": tuple(faces),
    }
    return Solid(**{**values, **changes})


def assembly(*components):
    return Assembly("things", "STEP", "mm", components)


def component(name, place=(0.0, 0.0, 0.0), *solids, parent=-1, **more):
    pose = Pose(np.eye(3), np.array(place))
    return Component(name, name, parent, pose, solids, **more)


TWO = assembly(
    component("base", (0, 0, 0), block(faces=[cylinder([0.1, 0, 0])])),
    component("arm", (0.2, 0, 0), block(faces=[cylinder([-0.1, 0, 0], concave=True)])),
    component("muscle:1:1", (0, 0, 0.1), parent=0),
    component("muscle:1:2", (0.2, 0, 0.1), parent=1),
)
JOINT = "joints: {j: {kind: revolute, parent: base, child: arm, at: 'arm#hole1', axis: [0,2,0]}}\n"


def imported(tmp_path, text, content=TWO):
    config = tmp_path / "c.yaml"
    config.write_text(text)
    return import_cad("a.step", config=config, assembly=content)


def test_a_misspelt_component_is_named_and_a_capital_counts(tmp_path):
    parts = TWO.components
    parts = (*parts[:2], replace(parts[2], name="Muscle:1:1"), *parts[3:])
    wrong = component("muscel:1:3", (0.2, 0, 0.2), parent=1)
    model = imported(tmp_path, JOINT + "material: water", assembly(*parts, wrong))
    assert [len(muscle.path) for muscle in model.robot.muscles] == [2]
    (found,) = [item for item in model.warnings if item.code == "marker-misspelt"]
    assert found.subject == "component 'muscel:1:3'"
    assert "did you mean 'muscle:1:3'?" in found.message


def test_degrees_and_a_joint_that_is_far_away_are_doubted(tmp_path):
    joint = JOINT.replace("'arm#hole1'", "[0, 0, 30]").replace("}}", ", limits: [-90, 90]}}")
    model = imported(tmp_path, joint + "material: water")
    said = [item.message for item in model.warnings if item.code == "units-doubtful"]
    assert [text.split()[0] for text in said] == ["limits", "it"]
    heavy = imported(tmp_path, JOINT + "bodies: {'*': {density: 1.0e+7}}")
    (warning,) = [item for item in heavy.warnings if item.code == "units-doubtful"]
    assert "weigh 2e+04 kg" in warning.message


def test_by_hand(tmp_path):
    model = imported(tmp_path, JOINT + "material: water\nfloating: true\n")
    robot = model.robot
    assert [joint.kind for joint in robot.joints] == ["free", "revolute"]
    assert [link.inertia.mass for link in robot.links] == pytest.approx([1.0, 1.0])
    assert robot.joint("j").axes[0].axis.tolist() == [0.0, 1.0, 0.0]
    assert np.allclose(robot.joint("j").parent_to_joint.translation, [0.1, 0, 0])
    assert robot.muscle("1").tension_max == 500.0
    assert {item.code for item in model.warnings} == {"tension-assumed"}
    # two cubes of 0.1 m, 0.2 m apart
    assert model.size == pytest.approx((0.3, 0.1, 0.1))
    assert "0.3 x 0.1 x 0.1 m, 2 kg, 1 warning" in model.summary()
    asked = model.to_dict()["questions"]["questions"]
    assert len(asked) == 2
    assert "How far do j move" in asked[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour: red", "unknown key 'colour'"),
        ("material: cheese", "is 'cheese'"),
        ("joints: {j: {kind: hinge, parent: base, child: arm}}", "is 'hinge'"),
        ("joints: {j: {kind: revolute, parent: base, child: arm}}", "has no 'axis'"),
        ("joints: {j: {kind: revolute, parent: base, child: arm, axis: [0,0,0], at: [0,0,0]}}",
         "the null vector"),
        (JOINT.replace("parent: base", "parent: bass"), "no link 'bass'"),
        (JOINT.replace("arm#hole1", "arm#hole9"), "no feature or marker 'arm#hole9'"),
        (JOINT.replace("'arm#hole1'", "[100.5, 0, 0]"), "is 100.5 m away"),
        (JOINT.replace("child: arm", "child: base"), "joins 'base' to itself"),
        (JOINT.replace("axis:", "limits: [1, 0], axis:"), "is 1 to 0"),
        (JOINT.replace("axis:", "confirmed: false, axis:"), "nobody has confirmed it"),
        (JOINT + "bodies: {screw: {ignore: true}}", "'screw' matches no body"),
        (JOINT + "bodies: {arm: {mass: 1, density: 2}}", "says mass, density"),
        (JOINT + "bodies: {arm: {mass: 0}}", "a finite number > 0"),
        (JOINT + "bodies: {arm: {ignore: true}}", "it has no solids"),
        (JOINT + "muscles: {2: {tension: [5, 50]}}", "no point 'muscle:2'"),
        (JOINT + "muscles: {1: {tension: [50, 5]}}", "is 50 to 5 N"),
        (JOINT + "muscles: {2: {path: ['muscle:1:1', {wrap: x}, 'muscle:1:2']}}", "surface 'x'"),
        (JOINT + "muscles: {2: {path: [{wrap: x}, 'muscle:1:2']}}", "begins and ends with a po"),
        (JOINT + "surfaces: {s: 'arm#sphere1'}", "no feature 'arm#sphere1'"),
        (JOINT + "operational_frame: hand", "no frame 'hand'"),
        (JOINT + "home: {k: 1}", "no joint 'k'"),
        (JOINT + "frames: {hand: {at: [0, 0, 0]}}", "has coordinates and no link"),
        (JOINT + "links: {arm: [armm]}", "'armm' matches no component"),
        (JOINT + "links: {base: ['*'], arm: [arm]}", "is in link 'base' too"),
        (JOINT + "links: {arm: [arm]}", "body 'base': belongs to no link"),
        ("joints: {}", "2 links and 0 joints"),
    ],
)  # fmt: skip
def test_wrong_configurations(text, message, tmp_path):
    with pytest.raises(DescriptionError, match=r".") as caught:
        imported(tmp_path, text)
    assert message in str(caught.value)
    assert str(caught.value).startswith(("a.step", str(tmp_path / "c.yaml")))


def test_paths_surfaces_and_frames_of_a_configuration(tmp_path):
    text = JOINT + (
        "material: pom\n"
        "surfaces: {pin: 'base#cylinder1'}\n"
        "muscles:\n"
        "  m:\n"
        "    path:\n      - 'muscle:1:1'\n      - {wrap: pin, side: [0.1, 0, 0.5]}\n"
        "      - {link: arm, at: [0.3, 0, 0]}\n"
        "    tension: [1, 9]\n"
        "frames: {hand: {link: arm, at: [0.25, 0, 0]}}\n"
        "home: {j: 0.25}\ngravity: [0, 0, -1.62]\n"
    )
    robot = imported(tmp_path, text).robot
    muscle = robot.muscle("m")
    assert (muscle.tension_min, muscle.tension_max) == (1.0, 9.0)
    assert np.allclose(muscle.path[2].position, [0.1, 0, 0])
    assert np.allclose(muscle.path[1].side, [0.1, 0, 0.5])
    assert np.allclose(robot.wrap_surface("pin").pose.rotation[:, 2], Y)
    assert robot.operational_frame == "hand"
    assert np.allclose(robot.frame("hand").pose.translation, [0.05, 0, 0])
    assert robot.home["j"] == (0.25,)
    assert robot.gravity.tolist() == [0.0, 0.0, -1.62]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (block(volume=-1e-3, second_moment=-np.eye(3) * 1e-5 / 6), "inside-out"),
        (block(valid=False), "shape-faulty"),
        (block(volume=2e-3), "volume-differs"),
        (block(density=50_000.0), "density-implausible"),
    ],
)
def test_doubts(content, code):
    found_it = recognise("a.step", assembly=assembly(component("a", (0, 0, 0), content)))
    assert code in {item.code for item in found_it.job.findings}
    assert found_it.bodies[0].inertia.mass > 0.0


def test_curves_are_no_links(tmp_path):
    lines = component("sketch", points=np.zeros((2, 3)))
    model = imported(tmp_path, JOINT, assembly(*TWO.components, lines))
    assert len(model.robot.links) == 2
    assert [item.subject for item in model.findings if item.code == "no-solid"] == [
        "component 'sketch'"
    ]
    with pytest.raises(DescriptionError, match=r"a\.step: no solid in it \(expected: at least"):
        imported(tmp_path, JOINT, assembly(lines))


def test_markers_without_link_are_refused(tmp_path):
    loose = assembly(*TWO.components, component("muscle:2:1"), component("muscle:2:2@moon"))
    for name, text in (("muscle:2:1", "it is in no link"),):
        with pytest.raises(DescriptionError, match=f"'{name}': {text}"):
            imported(tmp_path, JOINT, loose)
    named = assembly(*TWO.components, component("muscle:2:1@base"), component("muscle:2:2@moon"))
    with pytest.raises(DescriptionError, match="there is no link 'moon'"):
        imported(tmp_path, JOINT, named)


def test_solids_without_volume_are_refused():
    flat = assembly(component("a", (0, 0, 0), block(volume=0.0)))
    with pytest.raises(DescriptionError, match=r"body 'a': its volume is 0 m\^3"):
        recognise("a.step", assembly=flat)


def test_a_proposal_is_a_configuration(tmp_path):
    strange = assembly(
        component("base: 1", (0, 0, 0), block(faces=[cylinder([0.1, 0, 0])])),
        component("#arm", (0.2, 0, 0), block(faces=[cylinder([-0.1, 0, 0], concave=True)])),
    )
    for content in (TWO, strange, assembly(component("one", (0, 0, 0), block()))):
        text = propose(recognise("a.step", assembly=content))
        config = tmp_path / "p.yaml"
        config.write_text(text.replace("confirmed: false", "confirmed: true"))
        read_config(config)
        model = import_cad("a.step", config=config, assembly=content)
        assert len(model.robot.links) == sum(
            not c.name.startswith("mus") for c in content.components
        )


def test_saved_and_loaded(tmp_path):
    pose = Pose(axis_rotation([0.0, 0.0, 1.0], 0.1), np.array([0.1, 0.2, 1 / 3]))
    given = GivenLink("l", (0,), pose, 1.0, np.zeros(3), np.eye(3))
    joint = GivenJoint("j", "revolute", "world", "l", pose)
    content = Assembly(
        "x", "FreeCAD", "mm", TWO.components, (given,), (joint,), (("a", "b", "c"),)
    )
    save(content, tmp_path)
    back = load(tmp_path)
    assert back.name == "x"
    assert back.remarks == content.remarks
    assert np.array_equal(back.links[0].pose.translation, pose.translation)
    assert math.isinf(back.joints[0].lower)
    assert np.array_equal(back.components[0].solids[0].vertices, block().vertices)
    assert back.components[1].solids[0].faces[0].concave


def test_meshes():
    cube = block(0.2)
    assert mesh_volume(cube.vertices + 5.0, cube.triangles) == pytest.approx(0.008)
    data = binary_stl(cube.vertices[cube.triangles])
    assert len(data) == 84 + 12 * 50
    normals = np.frombuffer(data[84:], dtype=np.dtype([("f", "<f4", 12), ("a", "<u2")]))["f"][
        :, :3
    ]
    middle = cube.vertices[cube.triangles].mean(axis=1)
    assert (np.einsum("ij,ij->i", normals, middle) > 0.0).all()
