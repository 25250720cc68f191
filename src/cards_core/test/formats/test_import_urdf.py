"""URDF: the same kinematics, masses and limits; what it cannot say; muscles from YAML; errors."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, DescriptionError
from cards_core.formats import load
from cards_core.formats.imports.model import write_imported
from cards_core.formats.urdf.cli import main
from cards_core.formats.urdf.importer import import_urdf, with_masses
from cards_core.formats.urdf.writer import to_urdf
from cards_core.robot import Robot
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_core.robot.model import WORLD_NODE
from cards_core.spatial import Pose, axis_rotation, rpy_matrix

FOLDER = Path(__file__).resolve().parents[4] / "examples" / "urdf_arm"
ARM = (FOLDER / "arm.urdf").read_text(encoding="utf-8")
MUSCLES = (FOLDER / "muscles.yaml").read_text(encoding="utf-8")

MASS = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


def urdf(*joints, links=("a", "b"), extra=""):
    body = "".join(f'<link name="{name}">{MASS}</link>' for name in links)
    return f'<robot name="r">{body}{"".join(joints)}{extra}</robot>'


def joint(kind, inside="", name="j", ends=("a", "b")):
    parent, child = ends
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f"{inside}</joint>"
    )


def codes(model):
    return {item.code for item in model.findings}


def poses(robot, q):
    """Return rotation and position of every link in the world."""
    tree = robot.tree
    motion = forward_kinematics(tree, q, np.zeros(tree.nv))
    out = {}
    for name, (node, pose) in tree.link_node.items():
        if node == WORLD_NODE:
            out[name] = (pose.rotation, pose.translation)
        else:
            rotation = motion.rotation[node]
            out[name] = (
                rotation @ pose.rotation,
                motion.position[node] + rotation @ pose.translation,
            )
    return out


# The arm ---------------------------------------------------------------------------------------


def test_arm_against_its_closed_form():
    robot = import_urdf(FOLDER / "arm.urdf", muscles=FOLDER / "muscles.yaml").robot
    for shoulder, elbow in ((0.0, 0.0), (0.3, -0.7), (-1.0, 1.2)):
        found = poses(robot, np.array([shoulder, elbow]))
        upper = axis_rotation([1, 0, 0], shoulder)
        fore = axis_rotation([1, 0, 0], shoulder + elbow)
        np.testing.assert_allclose(found["forearm"][1], upper @ [0, 0, -0.3], atol=1e-14)
        np.testing.assert_allclose(found["forearm"][0], fore, atol=1e-14)
    assert [m.name for m in robot.muscles] == [
        "shoulder_front",
        "shoulder_back",
        "biceps",
        "triceps",
    ]
    assert robot.operational_frame == "hand"
    (frame,) = robot.frames
    assert (frame.name, frame.link) == ("hand", "forearm")
    np.testing.assert_allclose(frame.pose.translation, [0, 0, -0.28])
    assert robot.home == {"elbow": (0.4,)}


def test_mass_matrix_is_that_of_pinocchio():
    pin = pytest.importorskip("pinocchio")
    robot = import_urdf(FOLDER / "arm.urdf").robot
    other = pin.buildModelFromXML(ARM)
    data = other.createData()
    dynamics = make_dynamics(robot, "numeric")
    rng = np.random.default_rng(3)
    assert list(other.names)[1:] == list(robot.tree.position_names)
    for _ in range(10):
        q = rng.uniform(-1, 1, 2)
        expected = pin.crba(other, data, q)
        expected = np.triu(expected) + np.triu(expected, 1).T
        found = dynamics.update(q, np.zeros(2)).mass_matrix
        np.testing.assert_allclose(found, expected, atol=1e-14)
        gravity = pin.computeGeneralizedGravity(other, data, q)
        np.testing.assert_allclose(dynamics.update(q, np.zeros(2)).gravity, gravity, atol=1e-12)


def test_muscles_wrap_as_the_file_says():
    robot = import_urdf(FOLDER / "arm.urdf", muscles=FOLDER / "muscles.yaml").robot
    dynamics = make_dynamics(robot, "numeric")
    lengths = dict(
        zip(
            (m.name for m in robot.muscles),
            dynamics.update(np.zeros(2), np.zeros(2)).muscle_lengths,
            strict=True,
        )
    )
    assert lengths["triceps"] == pytest.approx(math.hypot(0.3, 0.005), abs=1e-12)
    # over a cylinder of 0.03 m at y = 0.01, from y = 0.035, z = 0.2 to y = 0.03, z = -0.1
    a, b = np.array([0.025, 0.2]), np.array([0.02, -0.1])
    da, db = np.linalg.norm(a), np.linalg.norm(b)
    angle = math.acos(a @ b / da / db) - math.acos(0.03 / da) - math.acos(0.03 / db)
    expected = math.sqrt(da**2 - 9e-4) + math.sqrt(db**2 - 9e-4) + 0.03 * angle
    assert lengths["biceps"] == pytest.approx(expected, abs=1e-12)
    assert robot.muscles[2].path[1].friction == 0.05


def test_gazebo_blocks_and_motors():
    model = import_urdf(FOLDER / "arm.urdf", motors="transmissions")
    robot = model.robot
    assert robot.link("upper_arm").collisions[0].friction == 0.4
    assert robot.link("forearm").visuals[0].rgba == (1.0, 0.5, 0.1, 1.0)
    assert robot.link("base_link").visuals[0].rgba == (0.6, 0.62, 0.65, 1.0)
    assert [j.name for j in robot.joints if j.motor] == ["elbow"]
    assert [j.name for j in import_urdf(ARM, motors="all").robot.joints if j.motor] == [
        "shoulder",
        "elbow",
    ]
    assert not any(j.motor for j in import_urdf(ARM).robot.joints)
    assert "gazebo-ignored" in codes(model)
    heavy = ARM.replace("<mu1>0.4</mu1>", "<turnGravityOff>true</turnGravityOff>")
    assert "gravity-acts" in codes(import_urdf(heavy))
    lost = ARM.replace('reference="forearm"', 'reference="four_arm"')
    assert "gazebo-reference" in codes(import_urdf(lost))


# Joints ----------------------------------------------------------------------------------------


def test_axis_is_x_where_none_is_given():
    robot = import_urdf(urdf(joint("continuous"))).robot
    np.testing.assert_array_equal(robot.joint("j").axes[0].axis, [1.0, 0.0, 0.0])
    assert math.isinf(robot.joint("j").axes[0].upper)


def test_planar_joint_moves_in_the_plane_of_its_axis():
    origin = '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="1 2 2"/>'
    robot = import_urdf(urdf(joint("planar", origin))).robot
    assert robot.joint("j").kind == "planar"
    assert robot.tree.position_names == ("j_1", "j_2", "j_3")
    frame = rpy_matrix(0.1, 0.2, 0.3)
    normal = frame @ np.array([1, 2, 2]) / 3
    rotation, position = poses(robot, np.array([0.3, -0.4, 0.7]))["b"]
    moved = position - [1, 2, 3]
    assert abs(moved @ normal) < 1e-14
    assert np.linalg.norm(moved) == pytest.approx(0.5, abs=1e-14)
    np.testing.assert_allclose(rotation, axis_rotation(normal, 0.7) @ frame, atol=1e-14)


def test_floating_joint_between_links_and_from_the_world():
    robot = import_urdf(urdf(joint("floating", '<origin xyz="1 0 0"/>'))).robot
    assert (robot.joint("j").kind, robot.joint("j").parent) == ("free", "a")
    assert robot.tree.nv == 6
    np.testing.assert_allclose(poses(robot, robot.tree.home)["b"][1], [1, 0, 0])
    world = '<robot name="r"><link name="world"/>' + f'<link name="b">{MASS}</link>'
    robot = import_urdf(world + joint("floating", ends=("world", "b")) + "</robot>").robot
    assert (robot.joint("j").kind, robot.joint("j").parent) == ("free", WORLD)
    assert len(robot.links) == 1


def test_mimic_is_named():
    text = urdf(
        joint("continuous"),
        joint("continuous", '<mimic joint="j" multiplier="2"/>', "k", ("b", "c")),
        links=("a", "b", "c"),
    )
    free = import_urdf(text)
    assert free.robot.tree.nv == 2
    assert "mimic-left-out" in codes(free)
    assert import_urdf(text, mimic="fixed").robot.tree.nv == 1
    with pytest.raises(DescriptionError, match="joint 'x' does not exist"):
        import_urdf(text.replace('mimic joint="j"', 'mimic joint="x"'))


def test_what_other_programs_write_into_dynamics_and_collisions_is_passed_over():
    """As in the files of the Franka arm and of TIAGo."""
    dynamics = '<dynamics D="1" K="7000" damping="0.003" mu_coulomb="0" mu_viscous="16"/>'
    link = f"""<link name="c">{MASS}<collision><geometry><sphere radius="0.1"/></geometry>
      <material name="grey"/></collision></link>"""
    limit = '<limit lower="-1" upper="1" effort="9" velocity="1"/>'
    model = import_urdf(
        urdf(
            joint("revolute", limit + dynamics),
            joint("fixed", name="k", ends=("b", "c")),
            extra=link,
        )
    )
    assert model.robot.joint("j").axes[0].damping == 0.003
    assert len(model.robot.link("c").collisions) == 1


def test_limits():
    missing = import_urdf(urdf(joint("revolute")))
    assert "limit-missing" in codes(missing)
    text = '<limit lower="0.2" upper="0.6" effort="3" velocity="4"/>'
    model = import_urdf(urdf(joint("prismatic", text + '<dynamics damping="5" friction="6"/>')))
    (axis,) = model.robot.joint("j").axes
    assert (axis.lower, axis.upper, axis.effort, axis.velocity) == (0.2, 0.6, 3.0, 4.0)
    assert (axis.damping, axis.friction) == (5.0, 6.0)
    assert model.robot.home == {"j": (0.2,)}
    assert "home-moved" in codes(model)


def locked_finding(model, name):
    (found,) = [f for f in model.warnings if f.code == "joint-locked" and f"'{name}'" in f.subject]
    return found


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_equal_limits_fix_a_joint_where_they_hold_it(tmp_path, kind):
    """The links stand as those of a joint that can move do, with the coordinate at the limit."""
    inside = '<origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><axis xyz="0 0.6 0.8"/>'
    limit = '<limit lower="{}" upper="{}" effort="1" velocity="1"/>'
    text = urdf(
        "\n" + joint(kind, inside + limit.format(0.3, 0.3)),
        joint("continuous", '<origin xyz="0 0 1"/>', "k", ("b", "c")),
        links=("a", "b", "c"),
    )
    held = import_urdf(text)
    moving = import_urdf(text.replace(limit.format(0.3, 0.3), limit.format(-1, 1)))
    assert held.robot.joint("j").kind == "fixed"
    assert held.robot.tree.nv == 1
    assert locked_finding(held, "j").line == 2
    assert "both 0.3" in locked_finding(held, "j").message
    expected = poses(moving.robot, np.array([0.3, 0.7]))
    for link, (rotation, position) in poses(held.robot, np.array([0.7])).items():
        np.testing.assert_allclose(rotation, expected[link][0], atol=1e-14)
        np.testing.assert_allclose(position, expected[link][1], atol=1e-14)
    back = load(write_imported(held, tmp_path))
    assert back.joint("j").kind == "fixed"
    with pytest.raises(DescriptionError, match=r"2: .*joint 'j'.*lower 1 is above upper 0\.3"):
        import_urdf(text.replace('lower="0.3"', 'lower="1"'))


def test_limits_that_are_missing_are_0_and_0_as_urdf_has_it():
    model = import_urdf(
        urdf(
            joint("revolute", '<limit effort="1" velocity="1"/>'),
            joint("continuous", "", "k", ("b", "c")),
            links=("a", "b", "c"),
        ),
        motors="all",
    )
    assert model.robot.joint("j").kind == "fixed"
    assert "without its motor" in locked_finding(model, "j").message
    assert [item.name for item in model.robot.joints if item.motor] == ["k"]


def test_what_mimics_a_joint_that_does_not_move_does_not_move():
    limit = '<limit lower="0.5" upper="0.5" effort="1" velocity="1"/>'
    text = urdf(
        joint("revolute", limit),
        joint("continuous", '<mimic joint="j" multiplier="2" offset="0.1"/>', "k", ("b", "c")),
        joint("continuous", '<mimic joint="k" multiplier="-1"/>', "m", ("c", "d")),
        joint("continuous", "", "n", ("d", "e")),
        links=("a", "b", "c", "d", "e"),
    )
    model = import_urdf(text)
    assert [item.kind for item in model.robot.joints] == [*["fixed"] * 3, "revolute", "fixed"]
    # 0.5, then 2 * 0.5 + 0.1, then minus that, all about x
    rotation = poses(model.robot, np.zeros(1))["d"][0]
    np.testing.assert_allclose(rotation, axis_rotation([1, 0, 0], 0.5), atol=1e-14)
    assert "both 1.1 rad" in locked_finding(model, "k").message
    assert "mimic-left-out" not in codes(model)
    circle = text.replace(limit, '<mimic joint="m"/>')
    with pytest.raises(DescriptionError, match="mimic each other in a circle"):
        import_urdf(circle)


def test_base_and_names():
    text = urdf(joint("continuous", name="b"))
    model = import_urdf(text, base="free")
    assert model.robot.tree.nv == 7
    assert model.renamed == (("b", "b_2"),)
    mass = '<inertial><mass value="1"/></inertial>'
    odd = f'<robot name="my robot"><link name="a/b c">{mass}</link></robot>'
    model = import_urdf(odd)
    assert (model.robot.name, model.robot.links[0].name) == ("my_robot", "a_b_c")
    assert "inertia-repaired" in codes(model)


def test_the_name_of_the_robot_is_reported_and_letters_stay():
    text = urdf(joint("continuous", name="gelenk_ä"), links=("größe", "b")).replace(
        '"a"', '"größe"'
    )
    model = import_urdf(text.replace('name="r"', 'name="mein Arm"'))
    assert model.name == "mein_Arm"
    assert model.renamed == (("mein Arm", "mein_Arm"),)
    assert model.to_dict()["renamed"] == [{"source": "mein Arm", "name": "mein_Arm"}]
    assert {link.name for link in model.robot.links} == {"größe", "b"}
    assert model.robot.tree.position_names == ("gelenk_ä",)


def test_massless_links():
    text = (
        '<robot name="r"><link name="a">' + MASS + '</link><link name="m"/><link name="b">'
        + MASS + "</link>"
        + joint("continuous", ends=("a", "m"))
        + joint("continuous", '<origin xyz="0 0 1"/>', "k", ("m", "b"))
        + "</robot>"
    )  # fmt: skip
    model = import_urdf(text)
    assert {link.name for link in model.robot.links} == {"a", "m", "b"}
    assert "link-without-mass" in codes(model)
    ready = with_masses(model.robot)
    assert 0.0 < ready.link("m").inertia.mass < 1e-5


def test_places_behind_places_are_frames():
    """A chain of fixed links without mass becomes frames of the last link with mass."""
    pose = '<origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/>'
    chain = [joint("fixed", pose, f"j{k}", (f"m{k}", f"m{k + 1}")) for k in range(3)]
    names = "".join(f'<link name="m{k + 1}"/>' for k in range(3))
    side = '<link name="s"/>' + joint("fixed", pose, "js", ("m1", "s"))
    robot = import_urdf(
        f'<robot name="r"><link name="m0">{MASS}</link>{names}{"".join(chain)}{side}</robot>'
    ).robot
    assert [link.name for link in robot.links] == ["m0"]
    assert {frame.link for frame in robot.frames} == {"m0"}
    places = {frame.name: frame.pose for frame in robot.frames}
    np.testing.assert_allclose(places["m1"].translation, [1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(places["m2"].translation, [1, 1, 0], atol=1e-15)
    np.testing.assert_allclose(places["m3"].translation, [0, 1, 0], atol=1e-15)
    np.testing.assert_allclose(places["s"].translation, [1, 1, 0], atol=1e-15)


def test_shapes_and_quaternions():
    shapes = (
        '<visual><origin quat_xyzw="0 0 0.7071067811865476 0.7071067811865476" xyz="1 0 0"/>'
        '<geometry><capsule radius="0.1" length="0.3"/></geometry></visual>'
        '<visual><geometry><sphere radius="0.1"/></geometry>'
        '<material name="x"><color rgba="1 0 0 1"/></material></visual>'
        '<visual><geometry><mesh filename="package://p/none.stl"/></geometry></visual>'
    )
    model = import_urdf(urdf(joint("fixed")).replace(MASS, MASS + shapes, 1))
    first, second = model.robot.link("a").visuals
    np.testing.assert_allclose(
        first.pose.rotation, axis_rotation([0, 0, 1], math.pi / 2), atol=1e-15
    )
    assert second.rgba == (1.0, 0.0, 0.0, 1.0)
    assert {first.name, second.name} == {"visual", "visual_2"}
    assert "mesh-missing" in codes(model)


def test_what_is_no_mesh_is_not_copied(tmp_path):
    (tmp_path / "secret.txt").write_text("no mesh")
    shape = '<visual><geometry><mesh filename="../secret.txt"/></geometry></visual>'
    (tmp_path / "r").mkdir()
    file = tmp_path / "r" / "r.urdf"
    file.write_text(urdf(joint("fixed")).replace(MASS, MASS + shape, 1))
    model = import_urdf(file)
    assert "mesh-missing" in codes(model)
    assert not list(write_imported(model, tmp_path / "out").rglob("*.txt"))


def test_meshes_of_packages_are_found_and_copied(tmp_path):
    package = tmp_path / "some_folder"
    (package / "meshes" / "a").mkdir(parents=True)
    (package / "meshes" / "b").mkdir()
    (package / "urdf").mkdir()
    (package / "package.xml").touch()
    for name in "ab":
        (package / "meshes" / name / "x.obj").write_text(f"# {name}\nv 0 0 0\n")
    shapes = "".join(
        f'<visual><geometry><mesh filename="{uri}" scale="1 2 3"/></geometry></visual>'
        for uri in ("package://arm_description/meshes/a/x.obj", "../meshes/b/x.obj")
    )
    file = package / "urdf" / "r.urdf"
    file.write_text(urdf(joint("fixed")).replace(MASS, MASS + shapes, 1))
    written = write_imported(import_urdf(file), tmp_path / "out")
    visuals = load(written).link("a").visuals
    assert [Path(v.geometry.uri).read_text()[:3] for v in visuals] == ["# a", "# b"]
    assert sorted(p.name for p in written.rglob("*.obj")) == ["x.obj", "x.obj"]
    assert all(written in Path(v.geometry.uri).parents for v in visuals)


# There and back --------------------------------------------------------------------------------


def every_kind():
    """Return a robot with a joint of every kind, at odd places."""
    rng = np.random.default_rng(8)

    def pose():
        return Pose(rpy_matrix(*rng.uniform(-1, 1, 3)), rng.uniform(-1, 1, 3))

    def axes(n):
        made = [rng.normal(size=3) for _ in range(n)]
        return tuple(
            JointAxis(a / np.linalg.norm(a), -0.5, 0.7, 10.0, 20.0, 0.1, 0.2) for a in made
        )

    kinds = {"fixed": 0, "revolute": 1, "prismatic": 1, "universal": 2, "planar": 3, "ball": 0}
    links, joints, parent = [], [], WORLD
    for kind, count in [*kinds.items(), ("free", 0)]:
        points = rng.normal(size=(10, 3))
        tensor = sum(p @ p * np.eye(3) - np.outer(p, p) for p in points)
        links.append(Link(kind, Inertia(rng.uniform(1, 2), rng.normal(size=3), tensor)))
        above = WORLD if kind == "free" else parent
        joints.append(Joint(f"joint_{kind}", kind, above, kind, pose(), pose(), axes(count)))
        parent = kind
    return Robot("every_kind", tuple(links), tuple(joints))


@pytest.mark.parametrize(
    "name", ["every_kind", "roboy_arm", "musashi_like", "spherical_2s", "prism_3"]
)
def test_our_export_comes_back(name):
    robot = every_kind() if name == "every_kind" else load(name)
    model = import_urdf(to_urdf(robot), collisions="all")
    back = model.robot
    assert [(j.name, j.kind, j.parent, j.child) for j in back.joints] == [
        (j.name, j.kind, j.parent, j.child) for j in robot.joints
    ] or {(j.name, j.kind, j.parent, j.child) for j in back.joints} == {
        (j.name, j.kind, j.parent, j.child) for j in robot.joints
    }
    for link in robot.links:
        other = back.link(link.name).inertia
        assert other.mass == pytest.approx(link.inertia.mass, rel=1e-12)
        np.testing.assert_allclose(other.com, link.inertia.com, atol=1e-12)
        np.testing.assert_allclose(other.tensor, link.inertia.tensor, atol=1e-12)
    for joint_ in robot.joints:
        for axis, other in zip(joint_.axes, back.joint(joint_.name).axes, strict=True):
            for key in ("lower", "upper", "effort", "velocity", "damping", "friction"):
                assert getattr(axis, key) == getattr(other, key)
    place = {n: i for i, n in enumerate(back.tree.position_names)}
    order = [place[n] for n in robot.tree.position_names]
    rng = np.random.default_rng(1)
    for _ in range(5):
        q = robot.tree.random(rng)
        mine = np.empty_like(q)
        mine[order] = q
        found, expected = poses(back, mine), poses(robot, q)
        for key, (rotation, position) in expected.items():
            np.testing.assert_allclose(found[key][0], rotation, atol=1e-12)
            np.testing.assert_allclose(found[key][1], position, atol=1e-12)


# Errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('<robot name="r" xmlns:xacro="x">\n<xacro:include filename="y"/></robot>', 2, "xacro"),
        ('<robot name="r">\n<link name="${prefix}a"/></robot>', 2, "'${prefix}a' is xacro"),
        ("<sdf/>", 1, "an SDF"),
        ('<robot name="r"/>', 1, "has no link"),
        (urdf(joint("revolut")), 1, "type 'revolut'"),
        (urdf(joint("fixed", ends=("a", "c"))), 1, "link 'c' does not exist"),
        (urdf(joint("fixed"), joint("fixed", name="k")), 1, "already the child of joint 'j'"),
        (urdf(joint("fixed"), joint("fixed", ends=("b", "a"), name="k")), 1, "in a circle"),
        (urdf(joint("fixed"), joint("fixed")), 1, "the name is taken"),
        (urdf(joint("continuous", '<axsi xyz="1 0 0"/>')), 1, "did you mean 'axis'"),
        (urdf(joint("continuous", '<axis xzy="1 0 0"/>')), 1, "unknown attribute 'xzy'"),
        (urdf(joint("continuous", '<axis xyz="0 0 0"/>')), 1, "without direction"),
        (urdf(joint("planar", '<axis xyz="0 0 0"/>')), 1, "without direction"),
        (urdf(joint("prismatic", '<limit lower="1" upper="0"/>')), 1, "above upper"),
        (urdf(joint("fixed", '<origin xyz="1 2"/>')), 1, "xyz: 2 values"),
        (urdf(joint("fixed")).replace('value="1"', 'value="x"'), 1, "'x' is not a number"),
        (urdf(joint("fixed")).replace('value="1"', 'value="-1"'), 1, "negative"),
        (urdf(joint("fixed"))[:-5], 1, "malformed XML"),
    ],
)
def test_wrong_files_are_named(text, line, words):
    with pytest.raises(DescriptionError) as info:
        import_urdf(text)
    assert words in str(info.value)
    assert info.value.line == line


def test_xacro_by_name(tmp_path):
    file = tmp_path / "arm.urdf.xacro"
    file.write_text(ARM)
    with pytest.raises(DescriptionError, match=r"xacro arm.urdf.xacro > robot.urdf"):
        import_urdf(file)


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("muscles:", "muscels:", 4, "did you mean 'muscles'"),
        ("base_link, point: [0, 0.08", "bass_link, point: [0, 0.08", 8,
         "muscles.shoulder_front.path[0].link: link 'bass_link' does not exist"),
        ("point: [0, 0.03, -0.1]}", "point: [0, 0.03]}", 9, "has 2 values"),
        ("tension: {min: 2, max: 200}", "tension: {min: 20, max: 2}", 6, "0 <= min <= max"),
        ("tension: {min: 2, max: 200}", "tension: {min: 2, maximum: 200}", 6,
         "muscles.shoulder_front.tension.maximum: unknown key 'maximum'; did you mean 'max'"),
        ("tension: {min: 2, max: 200}", "tension:\n      min: 2\n      max: x", 8,
         "muscles.shoulder_front.tension.max: max 'x' is no"),
        ("tension: {min: 2, max: 200}", "tension: {min: 2}", 6, "has no key 'max'"),
        ("    tension: {min: 2, max: 200}\n", "", 5,
         "muscles.shoulder_front: has no 'tension' (expected: 'tension')"),
        ("tension: {min: 2, max: 200}", "tension: {min: 2, max: 200}\n    friction: 1", 7,
         "(expected: contact: true, or"),
        ("tension: {min: 2, max: 200}", "tension: {min: 2, max: 200}\n    type: legs", 7,
         "muscles.shoulder_front.type: unknown type 'legs'"),
        ("wrap: elbow", "wrap: knee", 19, "'knee' does not exist"),
        ("side: [0, 0.05, -0.3]", "side: [0, 0.05]", 19, "3 numbers in a list: [x, y, z]"),
        ("cylinder: {radius: 0.03}", "cylinder: {radius: 0}", 3,
         "wrap_surfaces.elbow.cylinder.radius: radius 0 m is not positive"),
        ("operational_frame: hand", "operational_frame: foot", 26, "operational_frame: frame"),
        ("home: {elbow: 0.4}", "home: {knee: 0.4}", 27, "home.knee: joint 'knee'"),
        ("home: {elbow: 0.4}", "home: {elbow: 9}", 27, "home.elbow: 9 is outside"),
        ("home: {elbow: 0.4}", "motors: [elbow, wris]", 27, "motors[1]: joint 'wris'"),
        ("home: {elbow: 0.4}", "frames: {f: {link: nix}}", 27, "frames.f.link: link 'nix' does"),
        ("point: [0, 0.08, -0.05]", "pt: [0, 0.08, -0.05]", 8, "unknown key 'pt'"),
        ("    path:", "    way:", 7, "'way'"),
    ],
)  # fmt: skip
def test_wrong_muscles_are_named_in_the_words_of_yaml(tmp_path, before, after, line, words):
    assert before in MUSCLES
    file = tmp_path / "muscles.yaml"
    file.write_text(MUSCLES.replace(before, after, 1))
    with pytest.raises(DescriptionError) as info:
        import_urdf(FOLDER / "arm.urdf", muscles=file)
    assert info.value.source == str(file)
    assert info.value.line == line
    assert words in str(info.value)
    assert not re.search(r"<\w|attribute|=\"|blanks", str(info.value))


def test_muscles_of_cardsflow_and_of_a_plugin(tmp_path):
    points = '<link name="base_link"><viaPoint type="FIXPOINT">0 0.08 0</viaPoint></link>'
    points += '<link name="forearm"><viaPoint type="FIXPOINT">0 0.02 0</viaPoint></link>'
    file = tmp_path / "cardsflow.xml"
    file.write_text(f'<cardsflow><myoMuscle name="m">{points}</myoMuscle></cardsflow>')
    (muscle,) = import_urdf(FOLDER / "arm.urdf", muscles=file).robot.muscles
    # CARDSflow's points are relative to the centre of mass
    np.testing.assert_allclose(muscle.path[1].position, [0, 0.02, -0.14])
    block = (
        "<gazebo><plugin><module_name>cards_muscle_plugin.system</module_name>"
        '<muscle name="m"><tension min="0" max="5"/>'
        '<via_point link="base_link">0 0.1 0</via_point>'
        '<via_point link="hand">0 0.1 0</via_point></muscle></plugin></gazebo></robot>'
    )
    model = import_urdf(ARM.replace("</robot>", block))
    # a link that a muscle is on stays a link
    assert model.robot.muscles[0].path[1].link == "hand"
    with pytest.raises(DescriptionError, match="one place for the muscles"):
        import_urdf(ARM.replace("</robot>", block), muscles=file)


def test_command(tmp_path, capsys):
    arm, muscles = str(FOLDER / "arm.urdf"), str(FOLDER / "muscles.yaml")
    assert main([arm, "--muscles", muscles, "-o", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["muscles"] == 4
    assert len(load(tmp_path / "urdf_arm").muscles) == 4
    assert main([arm, "-o", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([str(tmp_path / "none.urdf")]) == 2
    with pytest.raises(SystemExit):
        main([arm, "--mimic", "maybe"])
    with pytest.raises(CardsError, match="maybe"):
        import_urdf(ARM, mimic="maybe")


def test_meshes_in_formats_that_are_not_drawn_are_named(tmp_path):
    (tmp_path / "a.3ds").write_bytes(b"x")
    (tmp_path / "b.stl").write_bytes(b"x")
    visual = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
    text = urdf(joint("continuous")).replace(MASS, MASS + visual.format("a.3ds"), 1)
    text = text.replace(f'"b">{MASS}', f'"b">{MASS}{visual.format("b.stl")}')
    model = import_urdf(text, folder=tmp_path)
    (found,) = [item for item in model.warnings if item.code == "mesh-not-drawn"]
    assert found.subject == "link 'a'"
    assert "meshes in the format .3ds are not drawn (drawn: .stl, " in found.message


def binary_stl_of(size):
    """Return a tetrahedron with edges of a size, as binary STL."""
    corners = size * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], "<f4")
    faces = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    data = b"".join(bytes(12) + corners[list(face)].tobytes() + bytes(2) for face in faces)
    return bytes(80) + (4).to_bytes(4, "little") + data


def with_mesh(tmp_path, name, content, *, tag="visual", scale=""):
    """Return a robot's file, whose link ``b`` has a mesh in line 3; joints 0.5 m apart."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    shape = f'\n\n<{tag}><geometry><mesh filename="{name}"{scale}/></geometry></{tag}>'
    mass = MASS.replace('="1"', '=".01"')
    text = urdf(joint("continuous", '<origin xyz="0.5 0 0"/>')).replace(MASS, mass)
    text = text.replace(f'"b">{mass}', f'"b">{mass}{shape}')
    file = tmp_path / "r.urdf"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("m.stl", b"", "is empty"),
        ("m.3ds", b"", "is empty"),
        (
            "m.STL",
            bytes(80) + (2**31).to_bytes(4, "little"),
            "is damaged: 84 bytes for 2147483648 faces",
        ),
        ("m.stl", binary_stl_of(0.1)[:-1], "is damaged: 283 bytes for 4 faces"),
        ("m.stl", bytes(84), "holds no triangles"),
        ("m.stl", b"solid m\nvertex 0 0\n", "cannot be read: line 2 is no vertex: 'vertex 0 0'"),
        ("m.stl", b"solid m\n" + b"vertex 0 0 nan\n" * 3, "has vertices that are not finite"),
        ("m.obj", b"v 1 2 3\n", "holds no triangles"),
        ("m.dae", b"<COLLADA", "cannot be read: "),
    ],
)
def test_damaged_meshes_are_named(tmp_path, name, content, problem):
    file = with_mesh(tmp_path, name, content)
    model = import_urdf(file)
    (found,) = [item for item in model.warnings if item.code == "mesh-damaged"]
    assert (found.subject, found.source, found.line) == ("link 'b'", str(file), 3)
    assert f"mesh '{name}' {problem}" in found.message
    folder = write_imported(model, tmp_path / "out")
    assert (folder / "meshes" / name).read_bytes() == content
    # of collisions that are taken over, too
    file = with_mesh(tmp_path, name, content, tag="collision")
    assert "mesh-damaged" not in codes(import_urdf(file))
    expected = not name.endswith((".3ds", ".dae"))  # which are left out
    assert ("mesh-damaged" in codes(import_urdf(file, collisions="all"))) == expected


def test_meshes_in_millimetres_are_doubted(tmp_path):
    model = import_urdf(with_mesh(tmp_path, "m.stl", binary_stl_of(300.0)))
    (found,) = [item for item in model.warnings if item.code == "units-doubtful"]
    assert (found.subject, found.line) == ("link 'b'", 3)
    assert "mesh 'm.stl' is 300 m long, and the joints and muscles of the robot measure" in (
        found.message
    )
    for size, scale in ((300.0, ' scale="0.001 0.001 0.001"'), (40.0, "")):
        model = import_urdf(with_mesh(tmp_path, "m.stl", binary_stl_of(size), scale=scale))
        assert not {"units-doubtful", "mesh-damaged"} & codes(model)
