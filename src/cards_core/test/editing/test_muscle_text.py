"""Muscles change in the text of a file, and nothing else does."""

import difflib
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cards_core.errors import DescriptionError
from cards_core.formats import load
from cards_core.formats.locate import find_model, known_models
from cards_core.formats.sdf.elements import add_muscle, add_wrap_surface
from cards_core.formats.sdf.muscle_text import EditedBlock, EditedMuscle, EditedSurface, MuscleText
from cards_core.formats.sdf.reader import read_sdf
from cards_core.robot.actuators import Hill, Motor, Thermal
from cards_core.robot.elements import WORLD, Cylinder, Muscle, Sphere, ViaPoint, Wrap, WrapSurface
from cards_core.spatial import Pose

TEXT = """<?xml version='1.0'?>
<!-- in front --><sdf version="1.11"><model name='arm'>
  <link name="base"><inertial><mass>1.50</mass></inertial></link>
  <joint name="fix" type="fixed"><parent>world</parent><child>base</child></joint>
  <link name="fore"><pose>0 0 0.30 0 0 0</pose></link>
  <joint name="elbow" type="revolute"><parent>base</parent><child>fore</child>
    <axis><xyz>0 1.0 0</xyz><limit><lower>-1</lower><upper>1</upper></limit></axis></joint>
  <plugin filename="other" name="other"><gain>3.0</gain></plugin>
  <plugin filename="gz-sim-python-system-loader-system" name="gz::sim::systems::PythonSystemLoader">
    <module_name>cards_muscle_plugin.system</module_name>
    <!-- a joint that muscles pass -->
    <wrap_surface link='base' name='ball'><sphere radius='0.0200'/></wrap_surface>   <!-- 2 cm -->
    <muscle
        type = "cable"
        name = "one">
      <tension   max="100.0" min="1e1"/> <!-- from the data sheet -->
      <via_point link="base">0.10 0 0</via_point> <!-- origin -->
      <wrap surface="ball"/>
      <via_point friction="0.0" link="fore">0.10 0.00 0.1</via_point>
      <!-- last -->
      <via_point link="fore">  1e-1 0 0.20 <!-- measured --></via_point>
    </muscle>
    <muscle name="two"><tension min="1" max="2"/><parameters stiffness="500" damping="0"/><via_point link="base">-0.1 0 0</via_point><via_point link="fore">-0.1 0 0.1</via_point></muscle>
  </plugin> <!-- behind -->
</model></sdf>
<!-- at the end -->
"""  # noqa: E501


def text_of(tmp_path, text=TEXT):
    file = tmp_path / "model.sdf"
    file.write_bytes(text.encode())
    return MuscleText(file.read_bytes(), file)


def changed_lines(before, after):
    """Return the lines that only one of two texts has."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in list(lines)[2:] if not line.startswith("@@")]


def written(item):
    """Return what the writer makes of a muscle or surface."""
    parent = ET.Element("plugin")
    if isinstance(item, Muscle):
        add_muscle(parent, item)
    else:
        add_wrap_surface(parent, item, None)
    return ET.tostring(parent[0])


def assert_says(data, block, file):
    """The text reads back as the block."""
    robot = read_sdf(data, base=file.parent, name=str(file))
    assert list(map(written, robot.muscles)) == [written(e.muscle) for e in block.muscles]
    assert list(map(written, robot.wrap_surfaces)) == [written(e.surface) for e in block.surfaces]


@pytest.mark.parametrize("name", known_models(rods=False))
def test_a_robot_that_is_not_changed_keeps_every_byte(name):
    file = find_model(name)
    text = MuscleText(file.read_bytes(), file)
    assert text.rewritten(text.block) == file.read_bytes()


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_one_point_changes_one_number(tmp_path, ending):
    before = TEXT.replace("\n", ending)
    text = text_of(tmp_path, before)
    edited = text.block.muscles[0]
    path = list(edited.muscle.path)
    path[3] = replace(path[3], position=np.array([0.1, 0.0, 0.25]))
    new = replace(edited, muscle=replace(edited.muscle, path=tuple(path)))
    block = replace(text.block, muscles=(new, text.block.muscles[1]))
    after = text.rewritten(block)
    assert changed_lines(before, after.decode()) == [
        '-      <via_point link="fore">  1e-1 0 0.20 <!-- measured --></via_point>',
        '+      <via_point link="fore">  1e-1 0 0.25 <!-- measured --></via_point>',
    ]
    assert_says(after, block, tmp_path / "model.sdf")


def test_attributes_keep_their_order_and_quotes(tmp_path):
    text = text_of(tmp_path)
    one, two = text.block.muscles
    one = replace(one, muscle=replace(one.muscle, name='one<"&', tension_max=120.0))
    actuator = replace(two.muscle.actuator, stiffness=600.0, damping=2.0)
    two = replace(two, muscle=replace(two.muscle, actuator=actuator))
    block = replace(text.block, muscles=(one, two))
    after = text.rewritten(block)
    assert changed_lines(TEXT, after.decode())[:4] == [
        '-        name = "one">',
        '-      <tension   max="100.0" min="1e1"/> <!-- from the data sheet -->',
        '+        name = "one&lt;&quot;&amp;">',
        '+      <tension   max="120" min="1e1"/> <!-- from the data sheet -->',
    ]
    assert b'<parameters stiffness="600" damping="2"/>' in after
    assert_says(after, block, tmp_path / "model.sdf")


def test_groups_of_parameters_come_and_go(tmp_path):
    text = text_of(tmp_path)
    one, two = text.block.muscles
    both = replace(two.muscle.actuator, motor=Motor(resistance=2.0), thermal=Thermal(ambient=20.0))
    two = replace(two, muscle=replace(two.muscle, actuator=both))
    block = replace(text.block, muscles=(one, two))
    after = text.rewritten(block)
    assert_says(after, block, tmp_path / "model.sdf")
    (tmp_path / "model.sdf").write_bytes(after)
    again = MuscleText(after, tmp_path / "model.sdf")
    two = again.block.muscles[1]
    plain = replace(two.muscle.actuator, motor=None, thermal=None)
    two = replace(two, muscle=replace(two.muscle, actuator=plain))
    block = replace(again.block, muscles=(again.block.muscles[0], two))
    assert_says(again.rewritten(block), block, tmp_path / "model.sdf")


def test_comments_survive_what_is_removed_and_moved(tmp_path):
    text = text_of(tmp_path)
    one = text.block.muscles[0]
    path = one.muscle.path
    new = ViaPoint("base", np.array([0.1, 0.0, 0.05]))
    order = (path[3], new, path[1], path[0])  # turned round, one gone, one new
    edited = EditedMuscle(replace(one.muscle, path=order), 0, (3, None, 1, 0))
    block = replace(text.block, muscles=(edited,))
    after = text.rewritten(block).decode()
    for comment in ("origin", "last", "measured", "2 cm", "from the data sheet", "behind"):
        assert after.count(f"<!-- {comment} -->") == 1
    assert 'name="two"' not in after
    assert_says(after.encode(), block, tmp_path / "model.sdf")


def test_new_muscles_and_surfaces_stand_where_a_hand_would_put_them(tmp_path):
    text = text_of(tmp_path)
    surface = WrapSurface("roll", "base", Cylinder(0.01, 0.1), Pose.from_xyz_rpy((0, 0, 0.1)))
    path = (ViaPoint(WORLD, np.array([0.2, 0, 0])), ViaPoint("fore", np.array([0, 0, 0.1])))
    new = EditedMuscle(Muscle("three", path, 1.0, 2.0), None, (None, None))
    block = EditedBlock((*text.block.muscles, new), (*text.block.surfaces, EditedSurface(surface)))
    after = text.rewritten(block)
    assert changed_lines(TEXT, after.decode()) == [
        '+    <wrap_surface name="roll" link="base" pose="0 0 0.1 0 0 0">',
        '+      <cylinder radius="0.01" length="0.1"/>',
        "+    </wrap_surface>",
        '+    <muscle name="three" type="cable">',
        '+      <tension min="1" max="2"/>',
        '+      <via_point link="world">0.2 0 0</via_point>',
        '+      <via_point link="fore">0 0 0.1</via_point>',
        "+    </muscle>",
    ]
    assert_says(after, block, tmp_path / "model.sdf")


def test_a_robot_without_muscles_gets_a_plugin(tmp_path):
    begin = TEXT.index('  <plugin filename="gz')
    plain = TEXT[:begin] + TEXT[TEXT.index("</model>") :]
    text = text_of(tmp_path, plain)
    assert text.block.muscles == ()
    path = (ViaPoint(WORLD, np.array([0.2, 0, 0])), ViaPoint("fore", np.array([0, 0, 0.1])))
    block = EditedBlock((EditedMuscle(Muscle("one", path, 1.0, 2.0), None, (None, None)),))
    after = text.rewritten(block)
    lines = changed_lines(plain, after.decode())
    assert len(lines) > 5
    assert all(line.startswith("+") for line in lines)
    assert_says(after, block, tmp_path / "model.sdf")


def test_random_edits_read_back(tmp_path):
    """Any permutation, removal and insertion of path elements, surfaces and muscles."""
    rng = np.random.default_rng(5)
    text = text_of(tmp_path)
    for _ in range(150):
        surfaces = [*text.block.surfaces]
        if rng.random() < 0.5:
            geometry = [Sphere(0.01), Cylinder(0.01, 0.2)][rng.integers(2)]
            surfaces[0] = replace(
                surfaces[0], surface=replace(surfaces[0].surface, geometry=geometry)
            )
        muscles = []
        for edited in text.block.muscles:
            if rng.random() < 0.2:
                continue
            pairs = list(zip(edited.muscle.path, edited.path_origin, strict=True))
            pairs = [pairs[i] for i in rng.permutation(len(pairs))][rng.integers(2) :]
            for _ in range(int(rng.integers(4))):
                link = ["base", "fore"][rng.integers(2)]
                pairs.insert(
                    int(rng.integers(len(pairs) + 1)),
                    (ViaPoint(link, np.round(rng.uniform(0.1, 0.2, 3), 3)), None),
                )
            while pairs and isinstance(pairs[0][0], Wrap):
                pairs.append(pairs.pop(0))
            while pairs and isinstance(pairs[-1][0], Wrap):
                pairs.pop()
            # neither touching neighbours nor points at one place
            if sum(isinstance(item, ViaPoint) for item, _ in pairs) < 2:
                continue
            if rng.random() < 0.3:
                pairs = [
                    (replace(item, link="fore") if isinstance(item, ViaPoint) else item, origin)
                    for item, origin in pairs
                ]
            path = tuple(item for item, _ in pairs)
            kind = Hill(
                max_isometric_force=float(rng.integers(1, 9)),
                optimal_fiber_length=0.1,
                tendon_slack_length=0.1,
            )
            muscle = replace(edited.muscle, path=path)
            if rng.random() < 0.3:
                muscle = replace(muscle, actuator=kind)
            muscles.append(EditedMuscle(muscle, edited.origin, tuple(o for _, o in pairs)))
        rng.shuffle(muscles)
        block = EditedBlock(tuple(muscles), tuple(surfaces))
        after = text.rewritten(block)
        for comment in ("in front", "a joint that muscles pass", "2 cm", "behind", "at the end"):
            assert after.decode().count(f"<!-- {comment} -->") == 1
        assert b'<plugin filename="other" name="other"><gain>3.0</gain></plugin>' in after
        assert_says(after, block, tmp_path / "model.sdf")


@pytest.mark.parametrize(
    "head",
    ["\ufeff", "<!-- \u00fcber 2 m \u2014 -->\n", "<!DOCTYPE sdf>\n", "<?note a > b ?>\n"],
)
def test_places_are_right_behind_any_head(tmp_path, head):
    """Bytes, not characters; a mark of the byte order counts too."""
    plain = head + TEXT.partition("\n")[2].replace("data sheet", "d\u00e4ta sheet")
    text = text_of(tmp_path, plain)
    one = text.block.muscles[0]
    one = replace(one, muscle=replace(one.muscle, tension_max=120.0, name="\u00fc"))
    block = replace(text.block, muscles=(one, text.block.muscles[1]))
    after = text.rewritten(block)
    wanted = plain.replace('max="100.0"', 'max="120"').replace('"one"', '"\u00fc"')
    assert after.decode() == wanted
    assert_says(after, block, tmp_path / "model.sdf")


def test_what_cannot_be_edited_is_said_with_its_place(tmp_path):
    file = tmp_path / "model.sdf"
    file.write_bytes(TEXT.replace("data sheet", "d\u00e4ta").encode("latin-1"))
    with pytest.raises(DescriptionError, match=r"model.sdf:16: the text is not UTF-8"):
        MuscleText(file.read_bytes(), file)
    world = (
        '<sdf version="1.11"><world name="w"><include><uri>model://roboy_arm</uri></include>'
        "</world></sdf>"
    )
    with pytest.raises(DescriptionError, match="stands in a file that this one includes"):
        text_of(tmp_path, world)


def test_places_of_elements_are_those_of_the_text():
    file = Path(load("wrap_elbow").source)
    text = MuscleText(file.read_bytes(), file)
    for element, edited in zip(text._muscles, text.block.muscles, strict=True):
        part = file.read_bytes()[element.begin : element.end].decode()
        assert part.startswith("<muscle ")
        assert part.endswith("</muscle>")
        assert part.count(f'name="{edited.muscle.name}"') == 1
