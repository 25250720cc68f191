"""``<parameters>``: every type of muscle, every parameter, every mistake."""

import dataclasses
import math

import numpy as np
import pytest
from sdf_documents import block, link, model

from cards_core.errors import DescriptionError
from cards_core.formats import read_sdf, to_sdf
from cards_core.formats.sdf.muscle_parameters import parameters_of
from cards_core.robot import Muscle
from cards_core.robot.actuators import ACTUATORS, Cable, Hill, Ligament, Spring
from random_robots import random_parameters

PAIR = link("a") + link("b", "<pose>0 0 1 0 0 0</pose>")
TENSION = '<tension min="1" max="2"/>'
PATH = '<via_point link="a">0 0 0</via_point><via_point link="b">0 0 0</via_point>'
HILL = 'max_isometric_force="1000" optimal_fiber_length="0.1" tendon_slack_length="0.2"'
LIGAMENT = 'stiffness="1000" slack_length="0.9"'
PAM = 'thread_length="0.3" turns="2" rest_length="0.27"'


def muscle(kind, parameters, tension=TENSION):
    return f'<muscle name="m" type="{kind}">{tension}\n{parameters}{PATH}</muscle>'


def flat(kind, attributes, tension=TENSION):
    return muscle(kind, f"<parameters {attributes}/>", tension)


def robot_with(inside):
    return read_sdf(model(PAIR + block(inside)), name="robot.sdf")


def actuator(inside):
    return robot_with(inside).muscle("m").actuator


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
    assert robot_with(flat("ligament", LIGAMENT, "")).muscle("m").tension_max == math.inf
    with pytest.raises(DescriptionError, match=r"takes no command to limit.*no <tension>"):
        robot_with(flat("ligament", LIGAMENT))
    for kind, cls in ACTUATORS.items():
        if "force" in cls.commands:
            with pytest.raises(DescriptionError, match="has no <tension>"):
                robot_with(flat(kind, "", ""))


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (flat("cable", 'stiffness="0"'), r"stiffness 0 N/m .*greater than 0 N/m"),
        (flat("cable", 'stiffness="-5"'), "<parameters> of muscle 'm': stiffness -5 N/m"),
        (flat("cable", 'stiffness="nan"'), "stiffness 'nan' is not finite"),
        (flat("cable", 'stiffness="inf"'), "stiffness 'inf' is not finite"),
        (flat("cable", 'stiffness="stiff"'), "stiffness 'stiff' is not a number"),
        (flat("cable", 'stiffness=""'), "has no attribute 'stiffness'"),
        (flat("cable", 'stifness="5"'), "unknown attribute 'stifness'; did you mean 'stiffness'"),
        (flat("cable", 'stiffness="5" damping="-1"'), "damping -1 N s/m.*at least 0 N s/m"),
        (flat("cable", 'damping="1"'), "'damping' needs a 'stiffness'"),
        (muscle("cable", "<parameters/><parameters/>"), "given twice"),
        (muscle("cable", "<parameters>5</parameters>"), "text '5' has no meaning"),
        (muscle("hill", ""), "has no <parameters>.*max_isometric_force, optimal_fiber_length"),
        (flat("hill", HILL[:27]), "has no 'optimal_fiber_length'.*l_opt, greater than 0 m"),
        (flat("hill", HILL + ' curves="millard"'),
         "curves 'millard' is unknown.*de_groote_2016, thelen_2003"),
        (flat("hill", HILL + ' pennation_angle="2"'),
         "pennation_angle 2 rad .*at least 0 rad and at most 1.4 rad"),
        (flat("hill", HILL + ' stiffness="2"'), "unknown attribute 'stiffness'"),
        (flat("series_elastic", ""), "has no <spring>.*expected: <spring>"),
        (muscle("series_elastic", '<parameters><spring law="linear"/></parameters>'),
         "<spring> of <parameters> of muscle 'm': law 'linear' is unknown"),
        (muscle("series_elastic", '<parameters><spring law="polynomial"/></parameters>'),
         "law 'polynomial' needs 'stiffness'"),
        (muscle("series_elastic", '<parameters><spring/></parameters>'),
         r"has no 'law' \(expected: law=\"polynomial|exponential|triangle\"\)"),
        (muscle("series_elastic", '<parameters><spring law="exponential" force_scale="1" '
                'growth="1"/><motor voltage="0"/></parameters>'),
         "<motor> of <parameters> of muscle 'm': voltage 0 V"),
        (flat("pneumatic", PAM.replace("0.27", "0.31")), "'rest_length' 0.31 m must lie between"),
        (flat("ligament", LIGAMENT + ' toe_strain="2"', ""), "toe_strain 2"),
    ],
)  # fmt: skip
def test_mistakes_name_the_parameter_and_what_is_accepted(inside, message):
    with pytest.raises(DescriptionError, match=message) as caught:
        robot_with(inside)
    assert caught.value.source == "robot.sdf"
    assert caught.value.line in (1, 2)
    assert caught.value.expected


def groups(cls):
    yield cls
    for item in parameters_of(cls):
        if item.nested:
            yield from groups(item.type)


@pytest.mark.parametrize("kind", ACTUATORS)
def test_every_parameter_is_documented_and_can_be_read(kind):
    for cls in groups(ACTUATORS[kind]):
        for item in parameters_of(cls):
            assert item.nested or item.type in (float, str), item
            assert item.nested or item.metadata["meaning"]


@pytest.mark.parametrize("kind", ACTUATORS)
def test_parameters_survive_writing(kind):
    rng = np.random.default_rng(1)
    robot = read_sdf(model(PAIR + block(muscle("cable", ""))))
    for _ in range(20):
        made = random_parameters(rng, ACTUATORS[kind])
        limits = (0.0, math.inf) if not made.commands else (1.0, 2.0)
        path = robot.muscles[0].path
        full = dataclasses.replace(robot, muscles=(Muscle("m", path, *limits, actuator=made),))
        assert read_sdf(to_sdf(full)).muscle("m").actuator == made


def test_what_cannot_be_written():
    robot = read_sdf(model(PAIR + block(muscle("cable", ""))))
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
