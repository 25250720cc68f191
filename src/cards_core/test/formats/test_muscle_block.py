"""Our plugin block: what it may say, and how mistakes are reported."""

import numpy as np
import pytest
from sdf_documents import JOINTS, block, link, model

from cards_core.errors import DescriptionError
from cards_core.formats import parse_muscle_block, read_sdf

CABLE = (
    '<muscle name="{name}"><tension min="1" max="2"/><via_point link="a">0 0 0</via_point>'
    '<via_point link="b">0 0 1</via_point></muscle>'
)
PAIR = (
    link("a")
    + link("b")
    + '<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz>'
    "<limit><lower>-1</lower><upper>1</upper></limit></axis></joint>"
)


def robot_with(inside):
    return read_sdf(model(PAIR + block(inside)), name="robot.sdf")


def test_a_block_in_a_model():
    robot = read_sdf(JOINTS)
    assert [m.name for m in robot.muscles] == ["quad", "string"]
    quad = robot.muscle("quad")
    assert (quad.kind, quad.tension_min, quad.tension_max) == ("cable", 5, 400)
    assert [p.link for p in quad.path] == ["trunk", "thigh", "shank"]
    np.testing.assert_array_equal(quad.path[2].position, [0.04, 0, 0.1])
    assert robot.muscle("string").path[0].link == "world"
    assert robot.operational_frame == "toe"
    assert robot.home["hip"] == (0.1, -0.2)
    assert robot.home["ankle"] == (0.8, 0, 0.6, 0)
    assert JOINTS.splitlines()[quad.line - 1].strip() == '<muscle name="quad" type="cable">'


def test_the_text_that_gazebo_hands_over():
    # the shape of sdformat's Element::ToString("")
    text = """<plugin name='gz::sim::systems::PythonSystemLoader' filename='gz-sim-python-system-loader-system'>
  <module_name>cards_muscle_plugin.system</module_name>
  <operational_frame>tip</operational_frame>
  <home joint='j'>0.5</home>
  <muscle name='c' type='cable'>
    <tension min='10' max='100'/>
    <via_point link='world'>1.5 0 0</via_point>
    <via_point link='b'>0.1 0 0.8</via_point>
  </muscle>
</plugin>
"""  # noqa: E501
    found = parse_muscle_block(text)
    assert found.muscles[0].name == "c"
    assert found.operational_frame == "tip"
    assert found.home == {"j": (0.5,)}
    assert parse_muscle_block(text, links=["b"]).muscles[0].path[1].link == "b"
    with pytest.raises(DescriptionError, match="link 'b' does not exist"):
        parse_muscle_block(text, links=["c"])


def test_the_order_of_muscles_is_that_of_the_file():
    names = ["z", "a", "m"]
    robot = robot_with("".join(CABLE.format(name=n) for n in names))
    assert [m.name for m in robot.muscles] == names


def test_a_link_is_an_operational_frame_too():
    assert robot_with("<operational_frame>b</operational_frame>").operational_frame == "b"


def test_an_empty_block_is_a_robot_without_muscles():
    assert robot_with("").muscles == ()


def via(*points):
    inside = "".join(f'<via_point link="{n}">{p}</via_point>' for n, p in points)
    return f'<muscle name="m"><tension min="1" max="2"/>\n{inside}</muscle>'


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (via(("a", "0 0 0"), ("bb", "0 0 0")),
         r"<via_point> of muscle 'm': link 'bb' does not exist; did you mean 'b'\?.*a, b, world"),
        (via(("a", "0 0 0")), "muscle 'm': has 1 points besides wraps.*at least two"),
        (via(("a", "0 0 0"), ("a", "0 0 0"), ("b", "0 0 0")), "at the same place"),
        (via(("a", "0 0 0"), ("a", "0 0 1e-10"), ("b", "0 0 0")), "at the same place"),
        (via(("a", "0 0"), ("b", "0 0 0")), "2 values.*3 numbers x y z"),
        (via(("a", "0 nan 0"), ("b", "0 0 0")), "'nan' is not finite"),
        (via(("a", "0 inf 0"), ("b", "0 0 0")), "'inf' is not finite"),
        (via(("", "0 0 0"), ("b", "0 0 0")), "has no attribute 'link'"),
        (CABLE.format(name="m") * 2, "the name is taken by the muscle in line 1"),
        (CABLE.format(name=""), "has no attribute 'name'"),
        (CABLE.format(name="m").replace('"m"', '"m" type="hil"'),
         "unknown type 'hil'.*cable, hill, ligament, pneumatic, series_elastic"),
        (CABLE.format(name="m").replace('"m"', '"m" colour="red"'),
         "unknown attribute 'colour'.*friction_speed, name, type"),
        (CABLE.format(name="m").replace('min="1"', 'min="3"'), "0 <= min <= max"),
        (CABLE.format(name="m").replace('min="1"', 'min="-1"'), "0 <= min <= max"),
        (CABLE.format(name="m").replace('min="1"', ""), "has no attribute 'min'"),
        (CABLE.format(name="m").replace('max="2"', 'max="inf"'), "max 'inf' is not finite"),
        (CABLE.format(name="m").replace('max="2"', 'max="2" unit=""'), "unknown attribute 'unit'"),
        (CABLE.format(name="m").replace('<tension min="1" max="2"/>', ""), "has no <tension>"),
        (CABLE.format(name="m").replace("</muscle>", "<rap/></muscle>"),
         "<rap>: unknown element in muscle 'm'.*<wrap>.*parameters, pulley, tension, via_point"),
        ("<musle/>", "unknown element.*did you mean <muscle>.*home, module_name, motor, muscle"),
        (CABLE.format(name="m").replace('"m"', '"m" friction_speed="0"'), "speed greater than 0"),
        ("text", "text 'text' has no meaning"),
        ("<operational_frame>hand</operational_frame>", "frame or link 'hand' does not exist"),
        ("<operational_frame>j</operational_frame>", "frame or link 'j' does not exist"),
        ("<operational_frame/>", "is empty"),
        ('<home joint="k">0</home>', "joint 'k' does not exist.*a_free, j"),
        ('<home joint="j">0 0</home>', r"2 values for a revolute joint.*1 \(one for each axis\)"),
        ('<home joint="j">2</home>', "2 is outside the limits of the joint.*-1 to 1"),
        ('<home joint="j"/>', "0 values"),
        ('<home joint="j">0</home><home joint="j">0</home>', "'j' has a home already, in line 1"),
        ('<home joint="a_free">0 0 0 1 0 0 0</home>', "is its <pose>"),
        ('<motor joint="k"/>', "joint 'k' does not exist"),
        ('<motor joint="a_free"/>', "a motor at a free joint"),
        ('<motor joint="j"/><motor joint="j"/>', "has a motor already"),
    ],
)  # fmt: skip
def test_mistakes_name_the_muscle_and_what_is_accepted(inside, message):
    with pytest.raises(DescriptionError, match=message) as caught:
        robot_with(inside)
    assert caught.value.source == "robot.sdf"
    assert caught.value.line in (1, 2)
    assert caught.value.expected


def test_a_misspelt_module_is_not_another_plugin():
    text = model(PAIR + block(CABLE.format(name="m")).replace(".system", ".sytem"))
    with pytest.raises(DescriptionError, match=r"<module_name>cards_muscle_plugin\.system<"):
        read_sdf(text)


def test_two_blocks_in_one_model_are_refused():
    with pytest.raises(DescriptionError, match="a second muscle plugin; the first is in line 1"):
        read_sdf(model(PAIR + block("") + "\n" + block("")))


def test_only_our_plugin_is_a_muscle_block():
    for text in ('<plugin filename="x" name="y"/>', "<model/>"):
        with pytest.raises(DescriptionError, match="not "):
            parse_muscle_block(text)


def test_names_in_a_nested_model_are_its_own():
    inner = f'<model name="n">{PAIR}{block(CABLE.format(name="m"))}</model>'
    robot = read_sdf(model(link("a") + inner + block(
        '<operational_frame>n::b</operational_frame>'
        '<muscle name="m"><tension min="0" max="1"/><via_point link="a">0 0 0</via_point>'
        '<via_point link="n::b">0 0 1</via_point></muscle>'
    )))  # fmt: skip
    assert [m.name for m in robot.muscles] == ["m", "n::m"]
    assert [p.link for p in robot.muscle("n::m").path] == ["n::a", "n::b"]
    assert [p.link for p in robot.muscle("m").path] == ["a", "n::b"]
    assert robot.operational_frame == "n::b"
