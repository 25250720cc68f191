"""Names that a description may have, and where wrong ones are refused."""

import dataclasses
import re

import pytest

from cards_core.errors import DescriptionError
from cards_core.formats.imports.findings import NameTable, renamed_robot, safe_name
from cards_core.formats.sdf.reader import read_sdf
from cards_core.names import LONGEST, name_problem
from cards_core.robot import Tree
from cards_core.robot.elements import Joint, JointAxis, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot

SDF = """<sdf version="1.11">
<model name="@model@">
  <link name="@link@"><inertial><mass>1</mass></inertial></link>
  <joint name="@joint@" type="revolute">
    <parent>world</parent><child>@link@</child><axis><xyz>0 0 1</xyz></axis>
  </joint>
  <frame name="@frame@" attached_to="@link@"/>
  <plugin filename="loader" name="gz::sim::systems::PythonSystemLoader">
    <module_name>cards_muscle_plugin.system</module_name>
    <wrap_surface name="@wrap_surface@" link="@link@">
      <sphere radius="0.01"/>
    </wrap_surface>
    <muscle name="@muscle@">
      <via_point link="world">0 1 0</via_point><via_point link="@link@">1 0 0</via_point>
      <tension min="0" max="1"/>
    </muscle>
  </plugin>
</model>
</sdf>
"""

KINDS = ("model", "link", "joint", "frame", "wrap_surface", "muscle")

BAD = {
    "../../../evil": "the character '/'",
    "a/b": "the character '/'",
    "a\\b": r"the character '\\'",
    "..": "begins with '.'",
    ".git": "begins with '.'",
    "end.": "ends with '.'",
    "a&#10;b": r"the character '\n'",
    "a\u200bb": r"the character '\u200b'",
    "x" * (LONGEST + 1): "has 101 characters",
}


def sdf(**names):
    text = SDF
    for kind in KINDS:
        text = text.replace(f"@{kind}@", names.get(kind, f"my_{kind}"))
    return text


@pytest.mark.parametrize("name", ["a", "BMArm 2", "muscle.12", "größe-1", "left|1 (long)", "a:b"])
def test_names(name):
    assert name_problem(name) is None
    for kind in KINDS:
        robot = read_sdf(sdf(**{kind: name}))
        Tree(robot)
    assert read_sdf(sdf(model=name)).name == name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BAD)
def test_a_wrong_name_is_refused_where_it_is_read(kind, name):
    with pytest.raises(DescriptionError, match=re.escape(BAD[name])) as caught:
        read_sdf(sdf(**{kind: name}), name="robot.sdf")
    assert str(caught.value).startswith("robot.sdf:")
    assert kind in str(caught.value)
    line = next(i for i, text in enumerate(SDF.splitlines(), 1) if f'<{kind} name="@' in text)
    assert caught.value.line == line


@pytest.mark.parametrize("kind", ["model", "link", "joint", "frame"])
def test_an_include_cannot_bring_one_either(tmp_path, kind):
    (tmp_path / "part.sdf").write_text(sdf(**{kind: "a/b"} if kind != "model" else {}))
    name = "<name>../up</name>" if kind == "model" else ""
    include = f"<include><uri>part.sdf</uri>{name}</include>"
    text = f'<sdf version="1.11"><world name="w">{include}</world></sdf>'
    with pytest.raises(DescriptionError, match="the name"):
        read_sdf(text, base=tmp_path)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("größe-1", "größe-1"),
        ("腕.2", "腕.2"),
        ("мышца_3", "мышца_3"),
        ("भुजा", "भुजा"),  # vowels are marks
        ("bra\u0301s", "br\u00e1s"),  # composed: one character where there is one
        ("IPAnema 1 (Fraunhofer IPA)", "IPAnema_1_Fraunhofer_IPA"),
        ("left::arm/1", "left_arm_1"),
        ("a\u200bb\u2028c", "a_b_c"),
        ("--force", "force"),
        (".hidden.", "hidden"),
        ("__", "robot"),
        ("-_-", "robot"),
        ("a\x00b", "a_b"),
        ("💪", "robot"),
        ("", "robot"),
    ],
)
def test_imported_names_keep_letters_of_every_script(text, name):
    assert safe_name(text, "robot") == name
    assert name_problem(name) is None
    assert safe_name(name, "other") == name
    assert renamed_robot(text, name) == (() if text == name else ((text, name),))


@pytest.mark.parametrize("text", ["x" * 300, "腕" * 300, "e\u0301" * 300, "𝒳" * 300])
def test_imported_names_fit_into_the_names_of_files(text):
    table = NameTable()
    names = [table.claim(text) for _ in range(3)]
    assert len(set(names)) == 3
    for name in names:
        assert name_problem(name) is None
        assert len(name.encode()) + len("_collision.stl") <= 255
    assert [old for old, _ in table.renamed] == [text] * 3


def arm():
    return Robot(
        "arm",
        (Link("upper"),),
        (Joint("elbow", "revolute", "world", "upper", axes=(JointAxis(axis=(0.0, 0.0, 1.0)),)),),
        (
            Muscle(
                "flexor", (ViaPoint("world", (0, 0, 1)), ViaPoint("upper", (1, 0, 0))), 0.0, 1.0
            ),
        ),
    )


def test_a_robot_that_was_not_read_is_held_to_the_same():
    robot = arm()
    Tree(robot)
    with pytest.raises(DescriptionError, match=r"model '\.\./up': the name has the character '/'"):
        Tree(dataclasses.replace(robot, name="../up"))
    muscle = dataclasses.replace(robot.muscles[0], name="a/b")
    with pytest.raises(DescriptionError, match="muscle 'a/b': the name"):
        Tree(dataclasses.replace(robot, muscles=(muscle,)))
    # names of nested models are made of several
    Tree(dataclasses.replace(robot, muscles=(dataclasses.replace(muscle, name="left::a"),)))


def test_a_message_is_one_line_whatever_a_name_has_in_it():
    error = DescriptionError("is wrong", source="a\nb.sdf", element="model 'x\n\x1b[31my é'")
    assert str(error) == r"a\nb.sdf: model 'x\n\x1b[31my é': is wrong"
    assert error.element == "model 'x\n\x1b[31my é'"
