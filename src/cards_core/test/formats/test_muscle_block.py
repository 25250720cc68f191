"""Our plugin block and its parameters: what they may say, and how mistakes are reported."""

import dataclasses
import math

import numpy as np
import pytest
from sdf_documents import JOINTS, block, link, model

from cards_core.errors import DescriptionError
from cards_core.formats import parse_muscle_block, read_sdf, to_sdf
from cards_core.parameters.declaration import groups_of, parameters_of
from cards_core.robot import Muscle
from cards_core.robot.actuators import ACTUATORS, Cable, Hill, Ligament, Spring
from random_robots import random_parameters

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
        (CABLE.format(name="m").replace('"m"', '"m" friction="0.3"'),
         r"friction without contact \(expected: contact=\"true\", or friction of its via points"),
        (CABLE.format(name="m").replace('"m"', '"m" contact="true" friction="2.5"'),
         r"friction 2.5 \(expected: a capstan coefficient 0 .. 2\)"),
        (CABLE.format(name="m").replace('"m"', '"m" contact="true" friction="nan"'), "finite"),
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


# Parameters ------------------------------------------------------------------------------------


FREE_PAIR = link("a") + link("b", "<pose>0 0 1 0 0 0</pose>")
TENSION = '<tension min="1" max="2"/>'
PATH = '<via_point link="a">0 0 0</via_point><via_point link="b">0 0 0</via_point>'
HILL = 'max_isometric_force="1000" optimal_fiber_length="0.1" tendon_slack_length="0.2"'
LIGAMENT = 'stiffness="1000" slack_length="0.9"'
PAM = 'thread_length="0.3" turns="2" rest_length="0.27"'


def muscle(kind, parameters, tension=TENSION):
    return f'<muscle name="m" type="{kind}">{tension}\n{parameters}{PATH}</muscle>'


def flat(kind, attributes, tension=TENSION):
    return muscle(kind, f"<parameters {attributes}/>", tension)


def free_robot_with(inside):
    return read_sdf(model(FREE_PAIR + block(inside)), name="robot.sdf")


def actuator(inside):
    return free_robot_with(inside).muscle("m").actuator


def test_defaults_and_types():
    assert actuator(muscle("cable", "")) == Cable()
    assert actuator(flat("cable", 'stiffness="5e4"')) == Cable(stiffness=5e4)
    found = actuator(flat("hill", HILL + ' curves="thelen_2003" tendon_strain="0.033"'))
    expected = Hill(
        max_isometric_force=1000.0, optimal_fiber_length=0.1, tendon_slack_length=0.2,
        curves="thelen_2003", tendon_strain=0.033,
    )  # fmt: skip
    assert found == expected
    assert actuator(flat("ligament", LIGAMENT, "")) == Ligament(stiffness=1000.0, slack_length=0.9)


def test_groups_of_parameters():
    spring = '<parameters><spring law="exponential" force_scale="15" growth="350"/>{}</parameters>'
    found = actuator(muscle("series_elastic", spring.format("")))
    assert found.spring == Spring(law="exponential", force_scale=15.0, growth=350.0)
    assert found.motor == ACTUATORS["series_elastic"](spring=found.spring).motor
    assert found.thermal is None
    found = actuator(muscle("series_elastic", spring.format('<thermal/><motor voltage="12"/>')))
    assert found.thermal.ambient == 25.0
    assert found.motor.voltage == 12.0


def test_types_without_a_force_command_have_no_tension_limits():
    assert free_robot_with(flat("ligament", LIGAMENT, "")).muscle("m").tension_max == math.inf
    with pytest.raises(DescriptionError, match=r"takes no command to limit.*no <tension>"):
        free_robot_with(flat("ligament", LIGAMENT))
    for kind, cls in ACTUATORS.items():
        if "force" in cls.commands:
            with pytest.raises(DescriptionError, match="has no <tension>"):
                free_robot_with(flat(kind, "", ""))


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (flat("cable", 'stiffness="0"'), r"stiffness is 0 N/m .*ideal without it \[N/m\] > 0"),
        (flat("cable", 'stiffness="-5"'), "<parameters> of muscle 'm': stiffness is -5 N/m"),
        (flat("cable", 'stiffness="nan"'), "stiffness 'nan' is not finite"),
        (flat("cable", 'stiffness="inf"'), "stiffness 'inf' is not finite"),
        (flat("cable", 'stiffness="stiff"'), "stiffness 'stiff' is not a number"),
        (flat("cable", 'stiffness=""'), "has no attribute 'stiffness'"),
        (flat("cable", 'stifness="5"'), "unknown attribute 'stifness'; did you mean 'stiffness'"),
        (flat("cable", 'stiffness="5" damping="-1"'), r"damping is -1 N s/m.*\[N s/m\] >= 0"),
        (flat("cable", 'damping="1"'), "'damping' needs a 'stiffness'"),
        (muscle("cable", "<parameters/><parameters/>"), "given twice"),
        (muscle("cable", "<parameters>5</parameters>"), "text '5' has no meaning"),
        (muscle("hill", ""), "has no <parameters>.*max_isometric_force, optimal_fiber_length"),
        (flat("hill", HILL[:27]), r"has no 'optimal_fiber_length'.*l_opt \[m\] > 0"),
        (flat("hill", HILL + ' curves="millard"'),
         r"curves is millard .*de_groote_2016 \| thelen_2003"),
        (flat("hill", HILL + ' pennation_angle="2"'),
         r"pennation_angle is 2 rad .*\[rad\] 0 .. 1.4"),
        (flat("hill", HILL + ' stiffness="2"'), "unknown attribute 'stiffness'"),
        (flat("series_elastic", ""), "has no <spring>.*expected: <spring>"),
        (muscle("series_elastic", '<parameters><spring law="linear"/></parameters>'),
         "<spring> of <parameters> of muscle 'm': law is linear "),
        (muscle("series_elastic", '<parameters><spring law="polynomial"/></parameters>'),
         "law 'polynomial' needs 'stiffness'"),
        (muscle("series_elastic", '<parameters><spring/></parameters>'),
         r"has no 'law' \(expected: law: form of the curve \(polynomial \| exponential \| tri"),
        (muscle("series_elastic", '<parameters><spring law="exponential" force_scale="1" '
                'growth="1"/><motor voltage="0"/></parameters>'),
         "<motor> of <parameters> of muscle 'm': voltage is 0 V"),
        (flat("pneumatic", PAM.replace("0.27", "0.31")), "'rest_length' 0.31 m must lie between"),
        (flat("ligament", LIGAMENT + ' toe_strain="2"', ""), "toe_strain is 2"),
    ],
)  # fmt: skip
def test_mistakes_name_the_parameter_and_what_is_accepted(inside, message):
    with pytest.raises(DescriptionError, match=message) as caught:
        free_robot_with(inside)
    assert caught.value.source == "robot.sdf"
    assert caught.value.line in (1, 2)
    assert caught.value.expected


def groups(cls):
    yield cls
    for group in groups_of(cls):
        yield from groups(group.kind)


@pytest.mark.parametrize("kind", ACTUATORS)
def test_every_parameter_is_documented_and_can_be_read(kind):
    for cls in groups(ACTUATORS[kind]):
        for spec in parameters_of(cls):
            assert spec.scalar_type in (float, str, bool), spec
            assert spec.description


@pytest.mark.parametrize("kind", ACTUATORS)
def test_parameters_survive_writing(kind):
    rng = np.random.default_rng(1)
    robot = read_sdf(model(FREE_PAIR + block(muscle("cable", ""))))
    for _ in range(20):
        made = random_parameters(rng, ACTUATORS[kind])
        limits = (0.0, math.inf) if not made.commands else (1.0, 2.0)
        path = robot.muscles[0].path
        full = dataclasses.replace(robot, muscles=(Muscle("m", path, *limits, actuator=made),))
        assert read_sdf(to_sdf(full)).muscle("m").actuator == made


def test_what_cannot_be_written():
    robot = read_sdf(model(FREE_PAIR + block(muscle("cable", ""))))
    path = robot.muscles[0].path
    ligament = Ligament(stiffness=1.0, slack_length=1.0)
    for limits, made, message in (
        ((0.0, math.inf), Cable(), "unlimited tension"),
        ((1.0, math.inf), ligament, "unlimited tension"),
        ((0.0, 5.0), ligament, "limits of a ligament"),
    ):
        full = dataclasses.replace(robot, muscles=(Muscle("m", path, *limits, actuator=made),))
        with pytest.raises(DescriptionError, match=message):
            to_sdf(full)
