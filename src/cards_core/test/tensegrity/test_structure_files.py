"""What structure files mean: our format and NASA's, bodies, tags, bonds; and their mistakes."""

import math
import re

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, DescriptionError
from cards_core.formats import load
from cards_core.tensegrity import build, to_robot, write_structure
from cards_core.tensegrity.tags import TagSearch

ROD = "rod: {class: rod, radius: 0.01, density: 1000}"
CABLE = "cable: {class: cable, stiffness: 100}"
TWO_RODS = f"""format: tensegrity/1
nodes:
  a: [0, 0, 0]
  b: [0, 0, 1]
  c: [1, 0, 0]
  d: [1, 0, 1]
pair_groups:
  rod:
    - [a, b]
    - [c, d]
  cable:
    - [b, d]
builders:
  {ROD}
  {CABLE}
"""
BAR = f"""format: tensegrity/1
nodes:
  low: [0, 0, 0]
  high: [0, 0, 1]
pair_groups:
  rod:
    - [low, high]
builders:
  {ROD}
"""


def write(folder, text, name="s.yaml"):
    file = folder / name
    file.write_text(text)
    return file


def changed(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


def test_two_rods(tmp_path):
    structure = build(write(tmp_path, TWO_RODS))
    assert [body.name for body in structure.bodies] == ["a-b", "c-d"]
    (cable,) = structure.cables
    assert cable.name == "b-d"
    assert cable.node_distance == pytest.approx(1.0)
    assert cable.length == pytest.approx(0.98)  # between the surfaces of the rods
    assert cable.tension_max == pytest.approx(98.0)
    # the lowest point is 1 mm above the ground
    assert structure.nodes["a"][2] == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("head", "scale", "up"),
    [
        ("units: {length: cm}\nup: y", 0.01, [0, 0, 1]),
        ("units: {length: mm}", 0.001, [0, -1, 0]),
        ("up: x", 1.0, [0, -1, 0]),
    ],
)
def test_units_and_axes(tmp_path, head, scale, up):
    text = changed(TWO_RODS, "format: tensegrity/1", f"format: tensegrity/1\n{head}\nclearance: 0")
    text = text.replace("[0, 0, 1]", "[0, 1, 0]").replace("[1, 0, 1]", "[1, 1, 0]")
    structure = build(write(tmp_path, text))
    axis = structure.nodes["b"] - structure.nodes["a"]
    np.testing.assert_allclose(axis, scale * -np.array(up) if up[1] else scale * np.array(up))
    geometry = structure.bodies[0].solids[0].geometry
    assert geometry.radius == pytest.approx(0.01 * scale)
    # a right-handed frame stays one
    edge = structure.nodes["c"] - structure.nodes["a"]
    third = np.cross(edge, axis) / scale**2
    assert np.linalg.norm(third) == pytest.approx(1.0)


def test_inertia_of_a_compound_is_that_of_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    text = """format: tensegrity/1
nodes: {o: [0.1, 0.2, 0.5], a: [0.5, 0.2, 0.9], b: [-0.2, 0.7, 0.4], c: [0.1, -0.3, 0.8]}
pair_groups:
  rod: [[o, a], [o, b]]
  box: [[o, c]]
builders:
  rod: {class: rod, radius: 0.03, density: 900}
  box: {class: box, width: 0.05, height: 0.11, density: 700}
  a|c: {class: sphere, radius: 0.08, density: 400}
"""
    (body,) = build(write(tmp_path, text)).bodies
    geoms = ""
    for solid, density in zip(body.solids, (400, 400, 900, 900, 700), strict=True):
        kind = type(solid.geometry).__name__.lower()
        match kind:
            case "cylinder":
                size = f"{solid.geometry.radius} {solid.geometry.length / 2}"
            case "sphere":
                size = str(solid.geometry.radius)
            case _:
                size = " ".join(str(edge / 2) for edge in solid.geometry.size)
        matrix = np.zeros(9)
        quaternion = np.zeros(4)
        matrix[:] = solid.pose.rotation.ravel()
        mujoco.mju_mat2Quat(quaternion, matrix)
        pos, quat = (" ".join(map(repr, v.tolist())) for v in (solid.pose.translation, quaternion))
        geoms += (
            f'<geom type="{kind}" size="{size}" density="{density}" pos="{pos}" quat="{quat}"/>'
        )
    xml = f"<mujoco><worldbody><body><freejoint/>{geoms}</body></worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    assert body.mass == pytest.approx(model.body_mass[1], rel=1e-12)
    np.testing.assert_allclose(model.body_ipos[1], 0.0, atol=1e-9)
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.body_iquat[1])
    turn = turn.reshape(3, 3)
    expected = turn @ np.diag(model.body_inertia[1]) @ turn.T
    np.testing.assert_allclose(body.inertia.tensor, expected, atol=1e-9)


def test_point_masses_and_masses_in_place_of_densities(tmp_path):
    text = changed(TWO_RODS, "density: 1000", "mass: 2") + "point_masses: {b: 0.5}\n"
    body, other = build(write(tmp_path, text)).bodies
    assert (body.mass, other.mass) == (pytest.approx(2.5), pytest.approx(2.0))
    assert body.position[2] - other.position[2] == pytest.approx(0.5 * 0.5 / 2.5)
    rod = 2.0 * (3 * 0.01**2 + 1) / 12
    reduced = 2.0 * 0.5 / 2.5
    assert body.inertia.tensor[0, 0] == pytest.approx(rod + reduced * 0.25)


HUNG = """format: tensegrity/1
nodes: {low: [0, 0, 1], high: [0, 0, 2], left: [-1, 0, 3], right: [1, 0, 3], hook: [0, 1, 3]}
pair_groups:
  rod: [[low, high]]
  cable: [[high, left], [high, right], [hook, high]]
pinned: [left, right, hook]
builders:
  rod: {class: rod, radius: 0.01, density: 1000}
  cable: {class: cable, stiffness: 100, pretension: 5, anchor: node}
"""


def test_cables_end_at_pinned_nodes_in_the_world(tmp_path):
    structure = build(write(tmp_path, HUNG))
    (body,) = structure.bodies
    lift = structure.nodes["low"][2] - 1.0  # all of it stands on the ground
    ends = [(cable.first, cable.second) for cable in structure.cables]
    assert [(a.body, b.body) for a, b in ends] == [
        (body.name, "world"), (body.name, "world"), ("world", body.name)
    ]  # fmt: skip
    np.testing.assert_allclose(ends[0][1].position, [-1.0, 0.0, 3.0 + lift])
    robot = to_robot(structure)
    dynamics = make_dynamics(robot, "numeric")
    lengths = dynamics.update(robot.tree.home, np.zeros(6)).muscle_lengths
    np.testing.assert_allclose(lengths, np.sqrt(2.0), atol=1e-9)
    loose = changed(HUNG, "pinned: [left, right, hook]", "pinned: [left, right]")
    with pytest.raises(DescriptionError, match=r"'hook' is on no rod.*listed under 'pi"):
        build(write(tmp_path, loose))
    held = changed(HUNG, "pinned: [left", "pinned: [high, left")
    with pytest.raises(DescriptionError, match="pinned node 'high' is on a rod"):
        build(write(tmp_path, held))


# Parts -----------------------------------------------------------------------------------------


def test_repeated_parts_their_order_of_motion_and_names(tmp_path):
    write(tmp_path, BAR, "bar.yaml")
    text = f"""format: tensegrity/1
clearance: 0
substructures:
  v: {{path: bar.yaml, repeat: 3, offset: [0.5, 0, 0], scale: 2, translation: [0, 1, 0]}}
  v[1:3]: {{rotation: {{axis: [0, 2, 0], angle: 180, reference: [0, 0, 0]}}}}
bond_groups:
  cable:
    v[*]/node_node:
      - [low, low]
      - [high, high, top]
builders:
  {CABLE}
"""
    structure = build(write(tmp_path, text))
    assert [body.name for body in structure.bodies] == ["v0", "v1", "v2"]
    assert [cable.name for cable in structure.cables] == [
        "v0.low-v1.low",
        "v0-v1.top",
        "v1.low-v2.low",
        "v1-v2.top",
    ]
    assert structure.cables[1].tags == ("cable", "v0", "v1", "v0/v1")
    # scaled about the centroid after the rotation, then moved
    low, high = structure.nodes["v2.low"], structure.nodes["v2.high"]
    np.testing.assert_allclose(low - high, [0, 0, 2], atol=1e-15)
    np.testing.assert_allclose(low[:2], [1.0, 1.0], atol=1e-15)


def test_parts_that_share_a_place_are_one_body(tmp_path):
    write(tmp_path, BAR, "bar.yaml")
    text = """format: tensegrity/1
substructures:
  v: {path: bar.yaml, repeat: 3, offset: [0, 0, 1]}
"""
    (body,) = build(write(tmp_path, text, "chain.yaml")).bodies
    assert body.name == "chain"
    assert len(body.solids) == 3
    assert len(body.joints) == 2


def test_edges_are_replaced_and_the_second_part_is_mated(tmp_path):
    angles = [0, 120, 240]
    nodes = "".join(
        f"  {level}{i}: [{math.cos(math.radians(a))}, {math.sin(math.radians(a))}, {z}]\n"
        for level, z in (("b", 0), ("t", 1.5))
        for i, a in enumerate(angles)
    )
    prism = f"""format: tensegrity/1
nodes:
{nodes}pair_groups:
  rod: [[b0, t1], [b1, t2], [b2, t0]]
  cable: [[b0, b1], [b1, b2], [b2, b0], [t0, t1], [t1, t2], [t2, t0], [b0, t0], [b1, t1], [b2, t2]]
builders:
  {ROD}
  {CABLE}
"""
    write(tmp_path, prism, "prism.yaml")
    text = """format: tensegrity/1
substructures:
  p/q: {path: prism.yaml}
  q: {rotation: {axis: [1, 2, 3], angle: 77}}
bond_groups:
  cable:
    p/q/node_edge: [[t0, b0/b1], [t1, b1/b2], [t2, b2/b0]]
"""
    structure = build(write(tmp_path, text))
    # three cables of each triangle are gone, six are new
    assert len(structure.cables) == 9 + 9 - 6 + 6
    names = {cable.name for cable in structure.cables}
    assert {"p-q.b0-t0", "p-q.t0-b1"} <= names
    assert not {"p.t0-t1", "q.b0-b1"} & names
    place = structure.nodes
    middle = [(place[f"q.b{i}"] + place[f"q.b{(i + 1) % 3}"]) / 2 for i in range(3)]
    for i in range(3):  # the middles of the edges are half as far from the axis, on the same side
        apart = place[f"p.t{i}"][:2] / np.linalg.norm(place[f"p.t{i}"][:2])
        np.testing.assert_allclose(middle[i][:2], 0.5 * apart, atol=1e-12)
        assert middle[i][2] == pytest.approx(place["p.t0"][2])
    assert place["q.t0"][2] - place["q.b0"][2] == pytest.approx(1.5)


# Builders --------------------------------------------------------------------------------------


def test_searches():
    tags = ("outer", "cable", "v1")
    assert TagSearch.parse("cable outer").matches(tags)
    assert TagSearch.parse("inner|outer").matches(tags)
    assert not TagSearch.parse("cable inner").matches(tags)
    assert not TagSearch.parse("cable -outer").matches(tags)
    assert TagSearch.parse("cable -inner").matches(tags)
    assert TagSearch.parse("part cable").matches(tags, ("part",))
    assert not TagSearch.parse("cable -part").matches(tags, ("part",))
    for text in ("", "a|", "-", "-a|b"):
        with pytest.raises(ValueError, match="tag"):
            TagSearch.parse(text)


def test_a_rod_is_no_edge_to_be_replaced(tmp_path):
    text = changed(TWO_RODS, "    - [c, d]", "    - [c, d]\n    - [a, c]\n    - [b, c]")
    text = changed(text, f"  {CABLE}\n", "").replace("  cable:\n    - [b, d]\n", "")
    write(tmp_path, text, "frame.yaml")
    bond = f"""format: tensegrity/1
substructures: {{p/q: {{path: frame.yaml, offset: [0, 3, 0]}}}}
bond_groups:
  cable:
    p/q/node_edge: [[a, a/b], [c, c/d], [d, a/c]]
builders:
  {CABLE}
"""
    with pytest.raises(DescriptionError, match=r"s.yaml:5: .*'a', 'b' is a rod"):
        build(write(tmp_path, bond))


def test_the_last_builder_that_fits_counts(tmp_path):
    text = TWO_RODS + "  cable -b: {class: cable, stiffness: 200, pretension: 1}\n"
    assert build(write(tmp_path, text)).cables[0].stiffness == 200


def test_nasa_defaults_and_units(tmp_path):
    text = """nodes: {a: [0, 0, 0], b: [0, 10, 0], c: [10, 0, 0], d: [10, 10, 0]}
pair_groups:
  rod: [[a, b]]
  box: [[c, d]]
  string: [[b, d]]
  pull: [[a, c]]
builders:
  pull:
    class: tgKinematicContactCableInfo
    parameters: {pretension: 500, motor_friction: 10, moveX: 1}
"""
    with pytest.raises(DescriptionError, match=r":10: .*unknown key 'moveX'"):
        build(write(tmp_path, text))
    structure = build(write(tmp_path, changed(text, ", moveX: 1", "")))
    rod, box = structure.bodies
    assert rod.mass == pytest.approx(math.pi * 0.25 * 10)
    assert box.mass == pytest.approx(2 * 2 * 10)  # width and height are halves there
    string, pull = structure.cables
    assert (string.stiffness, string.damping, string.tension_max) == (1000, 10, 10)
    assert string.actuator.speed_max == pytest.approx(1.0)
    assert string.min_rest_length == pytest.approx(0.001)
    assert string.length == pytest.approx(0.1 - 0.005 - 0.01)
    assert pull.contact
    assert pull.actuator.type == "motor"
    assert pull.actuator.friction == pytest.approx(1e-3)
    assert pull.actuator.inertia == pytest.approx(1e-4)
    assert pull.length - pull.rest_length == pytest.approx(0.005)
    assert structure.notes == (
        "1 cable has a motor; the SDF has its largest speed as winch_speed",
    )


def test_actuators_and_control_of_cables(tmp_path):
    text = changed(
        TWO_RODS,
        "stiffness: 100}",
        "stiffness: 100, damping: 3, rest_length: 0.5, anchor: [node, edge], "
        "actuator: {tension_max: 40, speed_max: 0.2}, control: {stiffness: 7, tension_floor: 1}}",
    )
    structure = build(write(tmp_path, text))
    (muscle,) = to_robot(structure).muscles
    assert structure.cables[0].length == pytest.approx(0.99)
    assert (muscle.tension_min, muscle.tension_max) == (0.0, 40.0)
    assert muscle.actuator.rest_length == 0.5
    assert muscle.actuator.winch_speed == 0.2
    assert muscle.actuator.damping == 3.0
    assert (muscle.control.stiffness, muscle.control.tension_floor) == (7.0, 1.0)


def test_friction_of_cables_that_touch_is_in_the_sdf(tmp_path):
    text = changed(TWO_RODS, "stiffness: 100}", "stiffness: 100, contact: true, friction: 0.25}")
    structure = build(write(tmp_path, text))
    (muscle,) = load(write_structure(structure, tmp_path / "model")).muscles
    assert (muscle.contact, muscle.friction) == (True, 0.25)
    with pytest.raises(
        DescriptionError, match=r":\d+: .*friction of a cable that touches nothing"
    ):
        build(write(tmp_path, changed(text, "contact: true, ", "")))
    with pytest.raises(DescriptionError, match=r":\d+: .*friction.*-1"):
        build(write(tmp_path, changed(text, "friction: 0.25", "friction: -1")))


def test_tensions_above_the_largest_are_noted(tmp_path):
    """The limit is for commands: a spring that is stretched more has what its law says."""
    for given in ("tension_max: 5", "actuator: {tension_max: 5, speed_max: 0.1}"):
        text = changed(TWO_RODS, "stiffness: 100}", f"stiffness: 100, pretension: 6, {given}}}")
        (note,) = build(write(tmp_path, text)).notes
        assert re.fullmatch(r"cable '.*' has 6 N as built, above its tension_max of 5 N", note)
        text = changed(text, "pretension: 6", "pretension: 5")
        assert build(write(tmp_path, text)).notes == ()
    text = changed(TWO_RODS, "stiffness: 100}", "stiffness: 100, rest_length: 0.3}")
    (note,) = build(write(tmp_path, text)).notes  # k L0 without a limit: stretched by more than L0
    assert "above its tension_max of 30 N" in note


def test_a_motor_with_rotor_is_in_the_sdf(tmp_path):
    """Stall torque r T_max, no-load speed v_max/r, inertia, friction: eq. 3.3 of [Mirletz2016]."""
    motor = (
        "actuator: {type: motor, rotor: true, radius: 0.01, friction: 1e-3, inertia: 1e-4, "
        "tension_max: 70, speed_max: 0.12, position_gain: 2e7, velocity_gain: 5e3}, "
        "control: {damping: 200, rate: winch}}"
    )
    structure = build(
        write(tmp_path, changed(TWO_RODS, "stiffness: 100}", f"stiffness: 100, {motor}"))
    )
    assert structure.notes == ()
    robot = load(write_structure(structure, tmp_path / "model"))
    (muscle,) = robot.muscles
    cable, rotor = muscle.actuator, muscle.actuator.motor
    assert cable.winch_speed is None
    assert (cable.spool_radius, cable.position_gain, cable.velocity_gain) == (0.01, 2e7, 5e3)
    stall = rotor.voltage / rotor.resistance * rotor.torque_constant
    assert stall == pytest.approx(0.7, rel=1e-11)
    assert rotor.max_current * rotor.torque_constant == pytest.approx(0.7, rel=1e-11)
    assert rotor.voltage / rotor.torque_constant == pytest.approx(12.0, rel=1e-11)
    assert (rotor.rotor_inertia, rotor.viscous_friction) == (1e-4, 1e-3)
    assert (rotor.gear_ratio, rotor.gear_efficiency) == (1.0, 1.0)
    assert (rotor.backdrivable, rotor.envelope) == (False, "symmetric")
    assert muscle.control.rate == "winch"


# Mistakes --------------------------------------------------------------------------------------

MISTAKES = {
    "unknown key": ("nodes:", "gravity: 9\nnodes:", ":2:", "unknown key 'gravity'"),
    "unknown unit": ("nodes:", "units: {length: inch}\nnodes:", ":2:", "one of m, dm, cm, mm"),
    "unknown quantity": ("nodes:", "units: {force: N}\nnodes:", ":2:", "one of length"),
    "other format": ("tensegrity/1", "tensegrity/9", ":1:", "one of tensegrity/1"),
    "duplicate node": ("  b: [0, 0, 1]", "  b: [0, 0, 1]\n  b: [0, 0, 2]", ":5:", "'b' .*twice"),
    "not a number": ("[0, 0, 1]", "[0, 0, .nan]", ":4:", "finite number"),
    "two numbers": ("[0, 0, 1]", "[0, 1]", ":4:", "x, y, z"),
    "unknown node": ("- [b, d]", "- [b, e]", ":12:", "no node named 'e'"),
    "no length": ("  b: [0, 0, 1]", "  b: [0, 0, 0]", ":9:", "no length"),
    "cable without length": ("  d: [1, 0, 1]", "  d: [0, 0, 1]", ":12:", "no length"),
    "pair twice": ("- [b, d]", "- [b, d]\n    - [d, b]", ":13:", "pair already, in line 12"),
    "pair of one node": ("- [b, d]", "- [b, b]", ":12:", "'b' with itself"),
    "no builder": ("  cable:\n    -", "  cord:\n    -", ":12:", "no builder for 'cord'"),
    "unused builder": (
        CABLE,
        f"{CABLE}\n  cabel: {{class: cable, stiffness: 1}}",
        ":16:",
        "cabel",
    ),
    "unknown class": ("class: cable", "class: wire", ":15:", "rod, box, sphere, cable, tgRodInfo"),
    "unknown parameter": ("stiffness: 100", "stifness: 100", ":15:", "did you mean 'stiffness'"),
    "no stiffness": (", stiffness: 100", "", ":15:", "has no 'stiffness'"),
    "range": ("radius: 0.01", "radius: 0", ":14:", "radius"),
    "two masses": ("density: 1000", "density: 1, mass: 1", ":14:", "density or mass"),
    "rest length": ("stiffness: 100", "stiffness: 100, pretension: 98", ":12:", "rest length > 0"),
    "rest twice": (
        "stiffness: 100",
        "stiffness: 100, pretension: 9, rest_length: 1",
        ":15:",
        "pretension and rest_length",
    ),
    "rotor of a winch": (
        "stiffness: 100",
        "stiffness: 100, actuator: {rotor: true, tension_max: 1, speed_max: 1}",
        ":15:",
        "'rotor' belongs to a motor",
    ),
    "gain without rotor": (
        "stiffness: 100",
        "stiffness: 100, actuator: {type: motor, radius: 1, friction: 0, inertia: 1, "
        "position_gain: 1, tension_max: 1, speed_max: 1}",
        ":15:",
        "'position_gain' without a rotor",
    ),
    "rate of no winch": (
        "stiffness: 100",
        "stiffness: 100, control: {rate: winch}",
        ":15:",
        "rate 'winch' without a rotor",
    ),
    "motor": (
        "stiffness: 100",
        "stiffness: 100, actuator: {type: motor, tension_max: 1, speed_max: 1}",
        ":15:",
        "radius, friction and inertia",
    ),
    "loose cable": ("- [a, b]", "- [a, c]", ":12:", "on no rod, box or sphere"),
    "bond of one": (
        "builders:",
        "bond_groups: {cable: {a/node_node: [[a, b]]}}\nbuilders:",
        ":13:",
        "no part named 'a'",
    ),
    "name twice": ("- [c, d]", "- [c, d, a-b]", ":10:", "'a-b' is there already"),
    "name": ("- [c, d]", "- [c, d, a::b]", ":10:", "character of"),
    "point mass": ("nodes:", "point_masses: {a: -1}\nnodes:", ":2:", "> 0"),
    "far node": ("[1, 0, 1]", "[1, 0, 1e300]", ":6:", "a magnitude below"),
    "thick rod": ("radius: 0.01", "radius: 1e200", ":14:", "a magnitude below"),
    "heavy rod": ("radius: 0.01", "radius: 1e9", ":9:", "mass of .* kg .expected: 1e-12"),
    "light rod": ("density: 1000", "mass: 1e-300", ":9:", "mass of 1e-300 kg"),
    "stiff cable": (
        "stiffness: 100",
        "stiffness: 9e15, rest_length: 2",
        ":12:",
        "largest tension",
    ),
    "control character": ("[1, 0, 1]", "[1, 0, \0]", ":6:", "character #x0000"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_told_with_file_and_line(tmp_path, what):
    old, new, line, words = MISTAKES[what]
    file = write(tmp_path, changed(TWO_RODS, old, new))
    with pytest.raises(DescriptionError, match=words) as caught:
        build(file)
    assert f"s.yaml{line}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("substructures: {v: {path: missing.yaml}}", "s.yaml:1: .*missing.yaml. is no file"),
        (
            "format: tensegrity/1\nsubstructures: {v: {path: bar.yaml, repeat: 1e9}}",
            r"s.yaml:2: .*is 1000000000 \(expected: a whole number 1 \.\. 10000",
        ),
        ("substructures: {v: {path: s.yaml}}", "s.yaml:1: .*contains itself"),
        ("substructures: {v/v: {path: bar.yaml}}", "s.yaml:1: .*'v' is there already"),
        ("substructures: {v: {offset: [1, 0, 0]}}", "s.yaml:1: .*no part named 'v'"),
        ("substructures: {v: {path: bar.yaml, repeat: 2}}", "s.yaml:1: .*unknown key 'repeat'"),
        ("units: {length: m}", "s.yaml:1: .*not in NASA's format"),
        (
            "substructures: {v/w: {path: bar.yaml, offset: [1, 0, 0]}}\n"
            "bond_groups: {cable: {v/w/node_edge: [[low, low/high], [high, low/high]]}}",
            "s.yaml:2: .*3 or more",
        ),
        (
            "substructures: {v/w: {path: bar.yaml, offset: [1, 0, 0]}}\n"
            "bond_groups: {cable: {v/w/node_side: [[low, low]]}}",
            "s.yaml:2: .*node_node or node_edge",
        ),
        (
            "substructures: {v/w: {path: bar.yaml}}\n"
            "bond_groups: {string: {v/w/node_node: [[middle, low]]}}",
            "s.yaml:2: .*no node named 'middle'",
        ),
        ("nodes: {a: [0, 0, 0]}", "no rod, box or sphere"),
    ],
)
def test_mistakes_in_parts(tmp_path, text, words):
    write(tmp_path, BAR, "bar.yaml")
    with pytest.raises(DescriptionError, match=words):
        build(write(tmp_path, text))


def test_a_cable_that_begins_within_a_rod(tmp_path):
    text = changed(
        TWO_RODS, "  d: [1, 0, 1]", "  d: [1, 0, 1]\n  e: [0.5, 1, 0.5]\n  f: [0.5, -1, 1.49]"
    )
    text = changed(text, "- [c, d]", "- [c, d]\n    - [e, f]")
    (note,) = build(write(tmp_path, text)).notes
    # the axes are 5 mm apart along the vertical, the rod leans by 44.7 degrees
    slope = math.atan2(0.99, 2.0)
    assert f"{1e3 * (0.01 - 0.005 * math.cos(slope)):.3g} mm deep through 'e-f'" in note
    text = changed(text, "stiffness: 100", "stiffness: 100, contact: true")
    with pytest.raises(DescriptionError, match=r":15: .*deep through 'e-f'"):
        build(write(tmp_path, text))


def test_a_model_is_not_overwritten(tmp_path):
    structure = build(write(tmp_path, TWO_RODS))
    file = write_structure(structure, tmp_path / "model")
    before = file.read_bytes()
    with pytest.raises(CardsError, match="exists already"):
        write_structure(structure, tmp_path / "model")
    assert file.read_bytes() == before
    write_structure(structure, tmp_path / "model", force=True)
    assert file.read_bytes() == before


def test_a_file_that_is_no_text_is_named_with_its_line(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_bytes(b"nodes:\n  a: \xff\n")
    with pytest.raises(DescriptionError, match=r"s\.yaml:2: .*0xff is not UTF-8"):
        build(path)


def test_a_merge_key_is_refused(tmp_path):
    text = "nodes: &n {a: [0, 0, 0]}\nbuilders:\n  <<: *n\n"
    with pytest.raises(DescriptionError, match=r"s\.yaml:3: .*merge key"):
        build(write(tmp_path, text))


def test_names_of_nodes_that_look_like_numbers_keep_their_zeros(tmp_path):
    text = """\
format: tensegrity/1
nodes: {007: [0, 0, 0], 7: [1, 0, 0]}
pair_groups: {rod: [[007, 7]]}
builders: {rod: {class: rod, radius: 0.01, density: 100}}
"""
    (body,) = build(write(tmp_path, text)).bodies
    assert body.mass == pytest.approx(math.pi * 0.01**2 * 100)


def test_a_pair_twice_in_nasa_format_counts_twice(tmp_path):
    """As in the toolkit, whose own legs of the spine have one in either order."""
    text = "nodes: {a: [0, 0, 0], b: [0, 10, 0]}\npair_groups:\n  rod:\n    - [a, b]\n%s"
    once = build(write(tmp_path, text % ""))
    twice = build(write(tmp_path, text % "    - [b, a]\n"))
    assert twice.bodies[0].mass == pytest.approx(2.0 * once.bodies[0].mass)
    (note,) = twice.notes
    assert note == "'a-b' and 'b-a' join the same places, both count"
    with pytest.raises(DescriptionError, match=r":5: .*pair already, in line 4"):
        build(write(tmp_path, text % "    - [a, b]\n"))


def test_parts_at_one_place_are_noted(tmp_path):
    """As when the offset of copies is forgotten."""
    write(tmp_path, TWO_RODS, "part.yaml")
    text = "format: tensegrity/1\nsubstructures: {v: {path: part.yaml, repeat: 2%s}}\n"
    structure = build(write(tmp_path, text % ""))
    assert [note for note in structure.notes if "same places" in note] == [
        "'v0.a-b' and 'v1.a-b' join the same places, both count, and 2 more pairs"
    ]
    assert not build(write(tmp_path, text % ", offset: [0, 3, 0]")).notes
