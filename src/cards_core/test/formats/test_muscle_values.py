"""New numbers in the text of an SDF: only those, whatever else is in the file."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from moved_muscles import moved

from cards_core.errors import DescriptionError
from cards_core.formats import load, read_sdf
from cards_core.formats.sdf.muscle_text import MuscleText
from cards_core.robot.elements import Cylinder, Sphere


def resized(robot, radius):
    """The robot with this radius of all spheres and cylinders."""
    surfaces = tuple(
        replace(item, geometry=replace(item.geometry, radius=radius))
        if isinstance(item.geometry, Sphere | Cylinder)
        else item
        for item in robot.wrap_surfaces
    )
    return replace(robot, wrap_surfaces=surfaces)


def with_values(text, robot, other):
    return MuscleText(text, robot.source, robot.name).with_values(robot, other)


def points_of(robot):
    return [item.position.tolist() for muscle in robot.muscles for item in muscle.via_points]


@pytest.mark.parametrize("name", ["roboy_arm", "musashi_like", "antagonist_joint", "tetraspine"])
def test_only_lines_with_moved_numbers_change(name):
    robot = load(name)
    text = Path(robot.source).read_bytes()
    other = resized(moved(robot, 1e-4, 0), 0.0295)
    new = with_values(text, robot, other)
    again = read_sdf(new, name=robot.source, base=Path(robot.source).parent)
    assert points_of(again) == points_of(other)
    assert [s.geometry for s in again.wrap_surfaces if isinstance(s.geometry, Cylinder)] == [
        s.geometry for s in other.wrap_surfaces if isinstance(s.geometry, Cylinder)
    ]
    pairs = list(zip(text.splitlines(), new.splitlines(), strict=True))
    changed = [a for a, b in pairs if a != b]
    assert len(changed) >= len(points_of(robot))
    assert all(b"via_point" in line or b"radius" in line for line in changed)
    assert with_values(text, robot, robot) == text


TEXT = """\
<?xml version="1.0"?>
<!-- a comment with <via_point link="a">9 9 9</via_point> in it -->
<sdf version="1.11"><model name="m">
<link name="a"><inertial><mass>1</mass></inertial></link>
<link name="b"><pose>0 0 1 0 0 0</pose><inertial><mass>1</mass></inertial></link>
<joint name="w" type="fixed"><parent>world</parent><child>a</child></joint>
<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 1 0</xyz></axis>\
</joint>
<plugin filename="gz-sim-python-system-loader-system" name="gz::sim::systems::PythonSystemLoader">
<module_name>cards_muscle_plugin.system</module_name>
<muscle name="one" type="cable"><tension min="1" max="9"/>
<via_point   link = 'a' >  0.10   <!-- y --> 0
   1e-1  </via_point><via_point link="b">0.2 0 -0.5</via_point></muscle><muscle name="two" \
type="cable"><tension max="9" min="1"/><via_point link="a">-.1 0 0.1</via_point>
<via_point link="b"><![CDATA[-0.2 0 -0.5]]></via_point></muscle>
</plugin>
<plugin filename="other" name="x>y"><via_point link="a">0.10 0 1e-1</via_point></plugin>
</model></sdf>
"""


def with_position(robot, muscle, point, position):
    muscles = list(robot.muscles)
    path = list(muscles[muscle].path)
    path[point] = replace(path[point], position=np.array(position))
    muscles[muscle] = replace(muscles[muscle], path=tuple(path))
    return replace(robot, muscles=tuple(muscles))


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_blanks_comments_and_other_elements_stay(tmp_path, ends, mark):
    file = tmp_path / "model.sdf"
    text = mark + TEXT.replace("\n", ends).encode()
    file.write_bytes(text)
    robot = load(file)
    new = with_values(text, robot, with_position(robot, 0, 0, [0.1, 0.25, 0.1]))
    assert new == text.replace(b"<!-- y --> 0", b"<!-- y --> 0.25")
    new = with_values(text, robot, with_position(robot, 1, 0, [-0.1, 0, 1 / 3]))
    assert new == text.replace(b">-.1 0 0.1<", b">-.1 0 0.3333333333333333<")
    new = with_values(text, robot, with_position(robot, 1, 1, [2, 0, -0.5]))
    assert new == text.replace(b"[-0.2 0 -0.5]", b"[2 0 -0.5]")


def test_a_file_that_has_changed_is_refused(tmp_path):
    file = tmp_path / "model.sdf"
    file.write_text(TEXT)
    robot = load(file)
    other = with_position(robot, 0, 0, [0.1, 0.25, 0.1])
    for old, new in (("0.10 ", "0.11 "), ('name="one"', 'name="uno"')):
        with pytest.raises(DescriptionError, match="unchanged since it was read"):
            with_values(TEXT.replace(old, new, 1).encode(), robot, other)
    lower = TEXT.replace("<sdf", "\n<sdf", 1).encode()  # lines do not count
    assert with_values(lower, robot, other) == lower.replace(b"<!-- y --> 0", b"<!-- y --> 0.25")
    with pytest.raises(DescriptionError, match="malformed XML"):
        with_values(TEXT[:-9].encode(), robot, other)
    with pytest.raises(DescriptionError, match="not UTF-8"):
        with_values(TEXT.encode("utf-16"), robot, other)


def test_muscles_of_an_included_file_are_not_in_this_one(tmp_path):
    (tmp_path / "inner.sdf").write_text(TEXT)
    outer = tmp_path / "model.sdf"
    outer.write_text(
        '<sdf version="1.11"><model name="o"><include><uri>inner.sdf</uri></include></model></sdf>'
    )
    robot = load(outer)
    assert robot.muscles[0].name == "m::one"
    with pytest.raises(DescriptionError, match=r"stands in a file that .*model.sdf' includes"):
        with_values(outer.read_bytes(), robot, moved(robot, 0.01, 0))


def test_a_nested_model_has_its_numbers_changed_in_its_own_block(tmp_path):
    """Names of the robot have the prefix of the model, those of the text do not."""
    inner = TEXT[TEXT.index("<model") : TEXT.index("</sdf>")]
    twice = inner.replace('name="m"', 'name="left"') + inner.replace('name="m"', 'name="right"')
    text = f'<sdf version="1.11"><model name="o">{twice}</model></sdf>'.encode()
    file = tmp_path / "model.sdf"
    file.write_bytes(text)
    robot = load(file)
    assert [muscle.name for muscle in robot.muscles][2] == "right::one"
    new = with_values(text, robot, with_position(robot, 2, 0, [0.1, 0.25, 0.1]))
    left, right = text.split(b'"right"')
    right = right.replace(b"<!-- y --> 0", b"<!-- y --> 0.25")
    assert new == left + b'"right"' + right


@pytest.mark.parametrize(
    "there",
    [
        "0.1<!-- a -->0 0 1e-1",
        "0.10&#32;0 1<!-- a -->e-1",
        "<![CDATA[0.]]>10 0 0.1",
        "0.1 0&#x20;.1",
    ],
)
def test_numbers_that_do_not_stand_in_one_piece_are_written_anew(tmp_path, there):
    file = tmp_path / "model.sdf"
    begin = TEXT.index("0.10   <!--")
    text = (TEXT[:begin] + there + TEXT[TEXT.index("</via_point>", begin) :]).encode()
    file.write_bytes(text)
    robot = load(file)
    assert points_of(robot)[0] == [0.1, 0.0, 0.1]
    other = with_position(robot, 0, 0, [0.1, 0.25, 0.1])
    new = with_values(text, robot, other)
    assert points_of(read_sdf(new)) == points_of(other)
    assert new.count(b"<!-- a -->") == text.count(b"<!-- a -->")
