"""Rod robots from SDF and YAML: what is read, and the answer to every bad input."""

import re

import numpy as np
import pytest
from rod_documents import LINK, YAML, joint, read, sdf

from cards_core.errors import CardsError, DescriptionError
from cards_core.formats import load
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import BaseKind, TipKind, rod_lengths, rod_starts
from cards_core.spatial import rpy_matrix


def test_what_a_robot_is_made_of(tmp_path):
    robot = read(tmp_path, YAML + "initial: {pose: [0, 0, 0.45, 0.1, 0, 0]}\n")
    assert robot.n_limbs == 3
    assert robot.joint_names == ("a_length", "b_length", "c_length")
    assert robot.controlled == ("z", "rx", "ry")
    assert robot.actuated.all()
    np.testing.assert_allclose(robot.q_lower, 0.1)
    np.testing.assert_allclose(robot.q_upper, 1.0)
    np.testing.assert_allclose(robot.home_q, 0.5)
    np.testing.assert_allclose(robot.home_pose[:3, :3], rpy_matrix(0.1, 0, 0))
    np.testing.assert_allclose(robot.gravity, [0, 0, -9.81])
    limb = robot.limb("b")
    assert (limb.base.kind, limb.base.link) == (BaseKind.EXTENSIBLE, "base")
    assert (limb.tip.kind, limb.tip.joint, limb.tip.link) == (
        TipKind.REVOLUTE, "b_joint_0", "b_end",
    )  # fmt: skip
    np.testing.assert_allclose(limb.tip.joint_pose[:3, 3], [-0.05, 0.0866, 0])
    np.testing.assert_allclose(limb.tip.attach[:3, 3], [0, 0, -0.02])
    # plate and three joint bodies of 0.01 kg each, all with their centre in one plane
    assert robot.plate.mass == pytest.approx(0.04)
    np.testing.assert_allclose(robot.plate.com, 0, atol=1e-6)
    arms = 0.01 * (0.1**2 + 2 * (0.05**2 + 0.0866**2))
    assert robot.plate.inertia[2, 2] == pytest.approx(4e-5 + arms, rel=1e-6)
    np.testing.assert_allclose(rod_lengths(robot, np.array([0.2, 0.3, 0.4])), [0.2, 0.3, 0.4])
    assert {link.name for link in robot.description.links} >= {"base", "plate", "a_end"}


TIPS = {
    "fixed": (),
    "revolute": (("revolute", "0 0.6 0.8"),),
    "prismatic": (("prismatic", "0 0 -1"),),
    "spherical": (("ball",),),
    "universal": (("universal", "1 0 0", "0 1 0"),),
    "cylindrical": (("prismatic", "0 0 1"), ("revolute", "0 0 1")),
    "planar": (("prismatic", "1 0 0"), ("prismatic", "0 1 0"), ("revolute", "0 0 1")),
}
CHAINS = {
    "universal": (("revolute", "0 1 0"), ("revolute", "1 0 0")),
    "spherical": (("revolute", "1 0 0"), ("revolute", "0 1 0"), ("revolute", "0 0 1")),
    "cylindrical": (("revolute", "0 1 0"), ("prismatic", "0 -1 0")),
}


@pytest.mark.parametrize(("kind", "joints"), [*TIPS.items(), *CHAINS.items()])
def test_joints_at_the_plate(tmp_path, kind, joints):
    tip = mixed(tmp_path, joints).limbs[0].tip
    assert tip.kind == kind
    # a motion along each free direction of the mask is one that the joints of the SDF allow
    directions = []
    for item in joints:
        for axis in item[1:]:
            unit = np.array([float(word) for word in axis.split()])
            linear = np.zeros(3) if item[0] != "prismatic" else unit
            directions.append(np.concatenate([linear, unit * (item[0] != "prismatic")]))
    if kind == "spherical":
        directions = list(np.eye(6)[3:])
    turn = np.kron(np.eye(2), tip.joint_pose[:3, :3])
    free = turn[:, tip.kind.free]
    assert np.linalg.matrix_rank(np.column_stack([free, *directions])) == tip.kind.free.sum()
    np.testing.assert_allclose(tip.joint_pose[:3, 3], [0.1, 0, 0 if joints else -0.02], atol=1e-12)
    # joint frame and attachment together are the tip frame of the file
    np.testing.assert_allclose((tip.joint_pose @ tip.attach)[:3, 3], [0.1, 0, -0.02], atol=1e-12)
    np.testing.assert_allclose((tip.joint_pose @ tip.attach)[:3, :3], np.eye(3), atol=1e-12)


def mixed(folder, joints):
    """Such joints in limb a alone: three prismatic ones would let the plate slide away."""
    document, one = sdf(tip=(("ball",),)), sdf(tip=joints)
    first, last = '<link name="a_', '<frame name="b_start"'
    part = one[one.index('<frame name="a_tip"') : one.index(last)]
    if joints:
        part = one[one.index(first) : one.index(last)]
    return read(
        folder, YAML, document[: document.index(first)] + part + document[document.index(last) :]
    )


def test_base_joints(tmp_path):
    document = sdf()
    moved = f'<link name="crank"><pose>0.1 0 0 0 0 0.5</pose>{LINK}</link>'
    moved += joint("motor", "revolute", "base", "crank", "0 1 0").replace(
        "</axis>", "<limit><lower>-1</lower><upper>2</upper></limit></axis>"
    )
    moved += f'<link name="slider"><pose>-0.05 0.0866 0 0 0 0</pose>{LINK}</link>'
    moved += joint("slide", "prismatic", "base", "slider", "0 0 1")
    document = document.replace("</model>", moved + "</model>")
    document = document.replace(
        '<frame name="a_start" attached_to="base"><pose>0.1 0.0 0 ',
        '<frame name="a_start" attached_to="crank"><pose>0.01 0 0.02 ',
    ).replace(
        '<frame name="b_start" attached_to="base"><pose>-0.05 0.0866 0 ',
        '<frame name="b_start" attached_to="slider"><pose>0 0 0.03 ',
    )
    text = YAML.replace("  base: extensible\n", "")
    robot = read(tmp_path, text.replace("[z, rx, ry]", "[z, rx]"), document)
    assert [limb.base.kind for limb in robot.limbs] == ["revolute", "prismatic", "fixed"]
    assert robot.actuated.tolist() == [True, True, False]
    np.testing.assert_allclose(robot.q_lower, [-1, -np.inf, 0])
    np.testing.assert_allclose(robot.q_upper, [2, np.inf, 0])
    starts = rod_starts(robot, np.array([0.3, 0.04, 0.0]))
    turn = rpy_matrix(0, 0, 0.5) @ rpy_matrix(0, 0.3, 0)
    np.testing.assert_allclose(starts[0][:3, :3], turn, atol=1e-14)
    np.testing.assert_allclose(starts[0][:3, 3], [0.1, 0, 0] + turn @ [0.01, 0, 0.02])
    np.testing.assert_allclose(starts[1][:3, 3], [-0.05, 0.0866, 0.07], atol=1e-14)


# Numbers and units ----------------------------------------------------------------------------


@pytest.mark.parametrize("written", ["200e9", '"200e9"', "2e11", "2.0e11", "2.0e+11", "200.0e+9"])
def test_numbers_that_yaml_1_1_takes_for_texts(tmp_path, written):
    robot = read(tmp_path, YAML.replace("200.0e+9", written))
    assert robot.limbs[0].rod.material.young == 2e11
    # said once, although all limbs use it, and only where PyYAML would have read a text
    assert len(robot.notes) == (0 if "e+" in written else 1)
    if robot.notes:
        assert "rods.yaml:3: defaults.E" in robot.notes[0]


BAD_YAML = [
    # what is replaced, by what, what the message must say
    ("200.0e+9", "steel", r"rods.yaml:3: defaults.E: is 'steel' .*a finite number > 0"),
    ("200.0e+9", "-1", r"defaults.E: is -1 .*> 0"),
    ("200.0e+9", ".nan", r"defaults.E: is '.nan'"),
    ("200.0e+9", "20", r"defaults.E: rod 'a': Young's modulus is 20 Pa.*units"),
    ("  E: 200.0e+9\n", "", r"rods\[0\]: rod 'a' has no 'E'.*in 'defaults'"),
    ("  rho: 8000\n", "", r"rod 'a' has no 'rho'"),
    ("  G: 80.0e+9\n", "", r"rod 'a' has no shear modulus 'G' and no Poisson ratio 'nu'"),
    ("  G: 80.0e+9\n", "  G: 80.0e+9\n  nu: 0.3\n", r"defaults.nu: 'G' and 'nu' are given"),
    ("  G: 80.0e+9\n", "  nu: 0.6\n", r"defaults.nu: .*-1 < nu <= 0.5"),
    ("  G: 80.0e+9\n", "  nu: -1\n", r"defaults.nu: .*-1 < nu <= 0.5"),
    ("  radius: 0.001\n", "", r"rod 'a' has no section .*'radius' or 'diameter' or 'section'"),
    ("  radius: 0.001\n", "  radius: 0\n", r"defaults.radius: is 0 .*> 0"),
    ("  length: 0.5\n", "  length: 0\n", r"defaults.length: is 0"),
    ("  length: 0.5\n", "  length: 1.5\n", r"length: is 1.5 m, outside .*0.1 to 1 m"),
    ("[0.1, 1.0]", "[1.0, 0.1]", r"limits: is 1 to 0.1 m .*minimum < maximum"),
    ("[0.1, 1.0]", "[-0.1, 1.0]", r"limits: is -0.1 to 1 m"),
    ("  limits: [0.1, 1.0]\n", "", r"rod 'a' has no 'limits'"),
    ("{name: a}", "{name: a, bulge: [0, 0, 0]}", r"rods\[0\].bulge: .*not zero"),
    ("{name: a}", "{name: a, colour: red}", r"unknown key 'colour'"),
    ("{name: a}", "{name: a, density: 8000}", r"unknown key 'density' \(expected: 'rho'\)"),
    ("{name: a}", "a", r"rods\[0\]: is 'a' .*{name: a}"),
    ("  E: ", "    E: ", r"rods.yaml:3: not valid YAML: .*in one column"),
    ("{name: a}", "{name: a, E: [1]}", r"rods\[0\].E: is a list"),
    ("{name: b}", "{name: a}", r"rods\[1\].name: a second rod named 'a'"),
    ("  - {name: b}\n", "", r"YAML has 2 \(a, c\), SDF has 3 \(a, b, c\)"),
    ("{name: b}", "{name: d}", r"YAML has 3 \(a, d, c\), SDF has 3 \(a, b, c\)"),
    ("  - {name: b}\n", "  - {length: 0.5}\n", r"rods\[1\]: has no 'name'"),
    ("extensible", "telescopic", r"is 'telescopic' .*fixed, prismatic, revolute, extensible"),
    ("extensible", "prismatic", r"base: prismatic, but .*'base' is moved by no joint"),
    ("{name: c}", "{name: c, plate: ball}", r"rods\[2\].plate: is 'ball' .*spherical"),
    ("{name: c}", "{name: c, plate: fixed}", r"revolute joint 'c_joint_0' .*rod: revolute"),
    ("{name: c}", "{name: c, plate: {joint: hinge}}", r"names joint 'hinge', but .*'c_joint_0'"),
    ("{name: c}", "{name: c, tip: d_tip}", r"YAML has 3 \(a, b, c\), SDF has"),
    ("[z, rx, ry]", "[z, rx]", r"controlled_dof: 2 coordinates for 3 actuators .*3 of x, y"),
    ("[z, rx, ry]", "[z, rx, rx]", r"names a coordinate twice"),
    ("[z, rx, ry]", "[z, rx, roll]", r"is 'roll' .*one of x, y, z, rx, ry, rz"),
    ("controlled_dof: [z, rx, ry]\n", "", r"3 actuators cannot control all 6 .*'controlled_dof'"),
    ("rods:", "gravity: [0, 0]\nrods:", r"gravity: has 2 values"),
    ("rods:", "gravity: .inf\nrods:", r"gravity: is '.inf'"),
    ("rods:", "wrench: {force: [0, 0, 1], frame: base}\nrods:", r"is 'base' .*world, plate"),
    ("rods:", "solver: {order: 4}\nrods:", r"solver.order: is not available .*8"),
    ("rods:", "solver: {policy: fast}\nrods:", r"is 'fast' .*fresh, chord"),
    ("rods:", "initial: {pose: [0, 0, .inf, 0, 0, 0]}\nrods:", r"initial.pose\[2\]: is '.inf'"),
    ("rods:", "initial: {q: [0.5, 0.5, 2]}\nrods:", r"limb 'c': 2 is outside .*0.1 to 1"),
    ("rods:", "initial: {q: [0.5, 0.5]}\nrods:", r"initial.q: has 2 values .*3: one per rod"),
    ("rods:", "planar: true\nrods:", r"controlled_dof\[0\]: is 'z'.*one of x, y, rz"),
]  # fmt: skip
BAD_QUATERNION = "initial: {pose: {position: [0, 0, 1], quaternion: [%s]}}\nrods:"


@pytest.mark.parametrize(("old", "new", "message"), BAD_YAML)
def test_bad_yaml(tmp_path, old, new, message):
    assert old in YAML
    with pytest.raises(DescriptionError, match=message) as caught:
        read(tmp_path, YAML.replace(old, new, 1))
    assert re.match(rf"{tmp_path}/\S+:\d+: ", str(caught.value))


@pytest.mark.parametrize("values", ["0, 0, 0, 0", "1, 1, 0, 0"])
def test_bad_quaternions_in_the_yaml(tmp_path, values):
    with pytest.raises(DescriptionError, match=r"quaternion: has the norm .*a unit quaternion"):
        read(tmp_path, YAML.replace("rods:", BAD_QUATERNION % values))
    # off by digits: normalised; 90 deg of pitch is nothing special
    robot = read(tmp_path, YAML.replace("rods:", BAD_QUATERNION % "0.7071, 0, 0.7071, 0"))
    np.testing.assert_allclose(robot.home_pose[:3, :3], rpy_matrix(0, np.pi / 2, 0), atol=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "doubt"),
    [
        ("radius: 0.001", "radius: 1", "rods a, b, c: half width 1 m of a rod 0.5 m .*units"),
        ("length: 0.5", "length: 0.015", "half width 0.001 m of a rod 0.015 m"),
        ("radius: 0.001", "radius: 0.02", "bending stiffness .*millimetres"),
        ("rho: 8000", "rho: 8", "density 8 kg/m3"),
        (
            "length: 0.5\n  limits: [0.1, 1.0]",
            "length: 0.2\n  limits: [0.1, 0.3]",
            "rods a, b, c: 0.3 m long, but the way .*too short",
        ),
        (
            "rods:",
            "initial: {pose: [0, 0, 500, 0, 0, 0]}\nrods:",
            "rods a, b, c: 1 m long.* 499.9 m",
        ),
        ("rods:", "initial: {pose: [0, 0, 0.5, 0, 0, 90]}\nrods:", "pose: .* 90 rad .*degrees"),
    ],
)
def test_wrong_units_are_doubted(tmp_path, old, new, doubt):
    robot = read(tmp_path, YAML.replace(old, new).replace("[0.1,", "[0.01,"))
    assert re.search(doubt, " ".join(robot.notes))


def test_slips_in_the_sdf_are_doubted(tmp_path):
    assert read(tmp_path).notes == ()
    (pose,) = read(tmp_path, document=sdf(plate_pose="0 0 0.5 0 0 360")).notes
    assert re.search("model.sdf:1: <pose> of link 'plate': .*360 rad .*degrees", pose)
    (mass,) = read(tmp_path, document=sdf(mass=False)).notes
    assert re.search("link 'plate': no <inertial>; it counts with 1 kg", mass)
    turned = sdf().replace("-0.05 0.0866 0 0 0 0", "-0.05 0.0866 0 3.14159265 0 0", 1)
    (start,) = read(tmp_path, document=turned).notes
    assert start.startswith("rods b: leaves away from its tip")


def test_sections_and_materials(tmp_path):
    entries = """
  - {name: a, section: {type: tube, radius: 0.002, inner_radius: 0.0015}, yield_stress: 1.0e+9}
  - {name: b, section: {type: rectangle, width: 0.002, height: 0.001}, u0: [0, 2, 0], nu: 0.25}
  - {name: c, diameter: 0.002, rho: 0, damping: 0.01, bulge: [0, 3, 4]}
"""
    text = YAML[: YAML.index("\n  - {name: a}")] + entries + "controlled_dof: [z, rx, ry]\n"
    a, b, c = read(tmp_path, text).limbs
    assert a.rod.stiffness_bt[0] == pytest.approx(2e11 * np.pi / 4 * (0.002**4 - 0.0015**4))
    assert a.rod.yield_strain == pytest.approx(0.005)
    assert b.rod.stiffness_bt[1] == pytest.approx(2e11 * 0.001 * 0.002**3 / 12)
    assert b.rod.curvature == (0.0, 2.0, 0.0)
    assert b.rod.material.shear_modulus == pytest.approx(2e11 / 2.5)
    assert (c.rod.mass_per_length, c.rod.damping, c.rod.radius) == (0.0, 0.01, 0.001)
    np.testing.assert_allclose(c.bulge, [0, 0.6, 0.8])


# Rigid bodies -------------------------------------------------------------------------------


BAD_SDF = [
    ("<axis><xyz>0 0 1</xyz>", "<axis><xyz>0 0 2</xyz>", r"axis has the length 2 .*0 0 1"),
    ("<axis><xyz>0 0 1</xyz>", "<axis><xyz>0 0 0</xyz>", r"direction|not all zero"),
    ('<pose>0.1 0.0 0 0 0 0</pose>', '<pose rotation_format="quat_xyzw">0.1 0 0 0 0 1 1</pose>',
     r"quaternion has the length 1.41421"),
    ('<pose>0.1 0.0 0 0 0 0</pose>', '<pose rotation_format="quat_xyzw">0.1 0 0 0 0 0 0</pose>',
     r"quaternion is zero|length 0"),
    ('"a_tip" attached_to="a_end"', '"a_tip" attached_to="base"', r"rod ends on 'base'"),
    ('"a_start" attached_to="base"', '"a_start" attached_to="plate"', r"starts on 'plate'"),
    ('name="a_tip"', 'name="a_end_frame"', r"the limbs are not those .*a, b, c"),
    ('type="revolute"><parent>plate</parent><child>a_end', 'type="screw"><parent>plate</parent>'
     '<child>a_end', r"screw"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), BAD_SDF)
def test_bad_rigid_bodies(tmp_path, old, new, message):
    assert old in sdf()
    with pytest.raises(DescriptionError, match=message):
        read(tmp_path, YAML, sdf().replace(old, new, 1))


def test_a_tip_frame_turned_round_shows_both_frames(tmp_path):
    document = sdf().replace(
        "<pose>0 0 -0.02 0 0 0</pose>", "<pose>0 0 -0.02 0 3.1415926 0</pose>"
    )
    with pytest.raises(DescriptionError, match=r"180 deg.*\(0, 0, 1\) at .*\(.*-1\) at"):
        read(tmp_path, YAML, document)


def test_joints_that_make_nothing(tmp_path):
    joints = (("revolute", "0 0 1"), ("revolute", "0 0 1"))
    with pytest.raises(DescriptionError, match=r"make no joint that is known .*cylindrical"):
        read(tmp_path, YAML, sdf(tip=joints))


def test_a_plate_that_the_joints_do_not_hold_names_its_motion(tmp_path):
    with pytest.raises(DescriptionError, match=r"translation along \(0, 0, 1\)"):
        read(tmp_path, YAML, sdf(tip=(("prismatic", "0 0 1"),)))
    document = sdf(tip=(("ball",),))  # all three in one point
    for where in ("-0.05 0.0866", "-0.05 -0.0866"):
        document = document.replace(f'="plate">{where} 0', '="plate">0.1 0.0 0')
    with pytest.raises(DescriptionError, match=r"rotation about .* through .*from the plate's"):
        read(tmp_path, YAML, document)


def test_gravity_and_plate_mass_are_as_the_files_say(tmp_path):
    assert read(tmp_path, YAML + "gravity: [1, 0, 3]\n").gravity.tolist() == [1, 0, 3]
    world = sdf().replace("<model ", '<world name="w"><gravity>0 0 -1.6</gravity><model ')
    world = world.replace("</model>", "</model></world>")
    assert read(tmp_path, YAML, world).gravity.tolist() == [0, 0, -1.6]
    # SDFormat has no body without mass: a plate without weight is said in the YAML
    for mass in (0, 0.08):
        robot = read(tmp_path, YAML + f"plate_mass: {mass}\n")
        assert robot.plate.mass == mass
        np.testing.assert_allclose(
            robot.plate.inertia, read(tmp_path, YAML).plate.inertia * mass / 0.04
        )
    with pytest.raises(DescriptionError, match=r"plate_mass: is -1"):
        read(tmp_path, YAML + "plate_mass: -1\n")


def test_wrenches_are_dead_or_follow_the_plate(tmp_path):
    text = YAML + "wrench: {force: [0, 0, -1], moment: [0.1, 0, 0], frame: %s}\n"
    for written, frame in (("world", "world"), ("plate", "plate")):
        robot = read(tmp_path, text % written)
        assert robot.wrench.tolist() == [0, 0, -1, 0.1, 0, 0]
        assert robot.wrench_frame == frame


def test_the_plugin_names_the_file(tmp_path):
    module = "<module_name>cards_rod_plugin.system</module_name>"
    plugin = f'<plugin filename="f" name="n">{module}%s</plugin>'
    document = sdf(extra=plugin % "<rods>mine.yaml</rods>")
    with pytest.raises(DescriptionError, match=r"the file 'mine.yaml' does not exist"):
        read(tmp_path, YAML, document)
    (tmp_path / "mine.yaml").write_text(YAML.replace("0.001", "0.002"))
    assert read(tmp_path, YAML, document).limbs[0].rod.radius == 0.002
    with pytest.raises(DescriptionError, match=r"no <rods>"):
        read(tmp_path, YAML, sdf(extra=plugin % ""))


def test_robots_of_rods_and_of_muscles_are_told_apart():
    with pytest.raises(DescriptionError, match=r"robot of rods.*docs/rod_robots.md"):
        load("stewart_gough")
    with pytest.raises(DescriptionError, match=r"is no robot of rods .*rods.yaml"):
        read_rod_robot("planar_2r")


def test_mangled_files_are_refused_politely_or_read(tmp_path):
    rng = np.random.default_rng(5)
    pieces = [
        "",
        "[]",
        "{}",
        "null",
        "true",
        "-1",
        "1e400",
        "'x'",
        "[1, 2, 3]",
        "{a: 1}",
        "*a",
        "\t",
    ]
    words = re.findall(r"[\w.+-]+|\[[^\]]*\]|\{[^}]*\}", YAML)
    read_well = 0
    for _ in range(150):
        word = words[rng.integers(len(words))]
        text = YAML.replace(word, pieces[rng.integers(len(pieces))], int(rng.integers(1, 3)))
        try:
            robot = read(tmp_path, text)
        except CardsError:
            continue
        read_well += 1
        assert np.all(np.isfinite(robot.home_pose))
        assert np.all(np.isfinite(robot.home_q))
    assert read_well < 50


@pytest.mark.parametrize("text", ["", "[]", "rods: []", "rods: {a: 1}", "rods: [a]", "a: b: c"])
def test_files_that_are_no_description(tmp_path, text):
    with pytest.raises(DescriptionError, match=r"rods.yaml"):
        read(tmp_path, text)


def test_more_actuators_than_coordinates_are_welcome(tmp_path):
    limbs = [f"limb_{k}" for k in range(8)]
    document = sdf()
    more = ""
    for k, name in enumerate(limbs[3:]):
        place = f"<pose>{0.02 * k} 0.03 %s 0 0 0</pose></frame>"
        more += f'<frame name="{name}_start" attached_to="base">{place % 0}'
        more += f'<frame name="{name}_tip" attached_to="plate">{place % 0}'
    text = YAML[: YAML.index("controlled_dof")]
    text += "".join(f"  - {{name: {name}}}\n" for name in limbs[3:])
    robot = read(tmp_path, text, document.replace("</model>", more + "</model>"))
    assert robot.n_limbs == 8
    assert robot.controlled == ("x", "y", "z", "rx", "ry", "rz")
