"""Cables files: kinds, references, pulleys, sets, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from caspr_samples import TWO_CABLES, bodies, cable, cables, link, minimal

from cards_core.dynamics import make_dynamics
from cards_core.errors import DescriptionError, UnknownNameError
from cards_core.formats.caspr import import_caspr, write_import
from cards_core.formats.caspr.cables import KINDS
from cards_core.robot.elements import Pulley, ViaPoint

POINTS = [(0, "1 2 3"), (1, "0.1 0.2 0.3")]


def load(folder, text, cable_set=None, **parts):
    return import_caspr(
        minimal(folder, cables=text, **parts), cable_set=cable_set, feasibility=False
    )


def one(folder, *args, **kwargs):
    return load(folder, cables({"main": [cable("c", POINTS, **kwargs)]}))


def positions(model, number=0):
    return [via.position.tolist() for via in model.robot.muscles[number].path]


def test_reference_joint_and_com(tmp_path):
    """The pendulum's centre of mass is at (0, 0, 0.5); the ground has none."""
    assert positions(one(tmp_path)) == [[1, 2, 3], [0.1, 0.2, 0.3]]
    com = one(tmp_path, reference='attachment_reference="com"')
    assert positions(com) == [[1, 2, 3], [0.1, 0.2, 0.8]]
    old = one(tmp_path, reference='attachment_ref="com"')
    assert positions(old) == [[1, 2, 3], [0.1, 0.2, 0.8]]


def test_limits_and_names(tmp_path):
    text = cables(
        {
            "main": [
                cable("cable 1", POINTS, limits=(0, 5)),
                cable("cable 1", POINTS, limits=(3, 3)),
            ]
        }
    )
    model = load(tmp_path, text)
    found = [(m.name, m.tension_min, m.tension_max, m.kind) for m in model.robot.muscles]
    assert found == [("cable_1", 0, 5, "cable"), ("cable_1_2", 3, 3, "cable")]
    assert "duplicate-cable" in [item.code for item in model.report.warnings]


def test_path_over_several_links(tmp_path):
    text = bodies(link(1, "R_Y"), link(2, "R_Y", location="0 0 1"))
    path = [(0, "1 0 0"), (1, "0.1 0 0.3"), (1, "0.1 0 0.6"), (2, "0.1 0 0.5")]
    model = load(tmp_path, cables({"m": [cable("c", path)]}), bodies=text)
    assert [via.link for via in model.robot.muscles[0].path] == ["base", *["link_1"] * 2, "link_2"]


def test_repeated_attachment(tmp_path):
    path = [(0, "1 0 0"), (1, "0 0 0.5"), (1, "0 0 0.5")]
    model = load(tmp_path, cables({"m": [cable("c", path)]}))
    assert len(model.robot.muscles[0].path) == 2
    assert "attachment-repeated" in [item.code for item in model.report.findings]


PROPERTIES = {
    "cable_linear_spring": {"K": "5000"},
    "cable_vsd_flexure_linear": {
        "K_cable": "40000", "vsd_force_deformation_relation": "1 2 3",
    },
    "cable_vsd_torsion_spring": {
        "K_cable": "1", "num_torsion_springs": "2",
        "torsion_spring_stiffness": "3", "torsion_spring_length": "4",
    },
    "cable_vsd_polynomial": {
        "K_cable": "40000", "num_stiffness_polynomial_coeff": "2",
        "stiffness_poly_coeff": "5.2e3 1.4e2",
    },
}  # fmt: skip


def xml_of(properties):
    return "".join(f"<{key}>{value}</{key}>" for key, value in properties.items())


@pytest.mark.parametrize("kind", PROPERTIES)
def test_elastic_kinds_are_commanded_and_their_parameters_kept(tmp_path, kind):
    properties = PROPERTIES[kind] | {"diameter": "0.002"}
    model = one(tmp_path, kind=kind, properties=xml_of(properties))
    assert [m.kind for m in model.robot.muscles] == ["cable"]
    (finding,) = model.report.warnings
    spring = kind == "cable_linear_spring"
    assert finding.code == ("spring-stiffness" if spring else "elasticity-not-simulated")
    assert (model.robot.muscles[0].actuator.stiffness is not None) == spring
    assert kind in finding.message
    (kept,) = model.cable_set.cables
    assert set(kept.parameters) == set(properties) <= {*KINDS[kind], "diameter"}
    for key, value in properties.items():
        assert kept.parameters[key].tolist() == [float(x) for x in value.split()]
        assert key in finding.message
    assert next(iter(properties)) in model.report.to_markdown()


def test_missing_parameter_is_named(tmp_path):
    model = one(tmp_path, kind="cable_linear_spring")
    assert "parameter-missing" in [item.code for item in model.report.warnings]


def test_a_linear_spring_has_the_stiffness_of_a_wire_at_its_length(tmp_path):
    """K is EA in N: k = K / l, with l the length at q_initial."""
    model = one(tmp_path, kind="cable_linear_spring", properties="<K>5000</K>")
    (muscle,) = model.robot.muscles
    length = np.linalg.norm(np.array([1, 2, 3]) - [0.1, 0.2, 0.3])  # q_initial is 0
    assert muscle.actuator.stiffness == pytest.approx(5000 / length, rel=1e-14)
    assert (muscle.tension_min, muscle.tension_max) == (1, 100)
    turned = load(
        tmp_path / "b",
        cables({"m": [cable("c", POINTS, kind="cable_linear_spring", properties="<K>5000</K>")]}),
        bodies=bodies(link(1, "R_Z", q="0.5")),
    )
    c, s = np.cos(0.5), np.sin(0.5)
    end = np.array([0.1 * c - 0.2 * s, 0.1 * s + 0.2 * c, 0.3])
    length = np.linalg.norm(np.array([1, 2, 3]) - end)
    assert turned.robot.muscles[0].actuator.stiffness == pytest.approx(5000 / length, rel=1e-14)


@pytest.mark.parametrize("value", ["0", "-5", "1 2", "1e15 "])
def test_a_stiffness_that_cannot_be_used_is_not_simulated(tmp_path, value):
    model = one(tmp_path, kind="cable_linear_spring", properties=f"<K>{value}</K>")
    usable = value == "1e15 "
    assert (model.robot.muscles[0].actuator.stiffness is not None) == usable
    code = "spring-stiffness" if usable else "elasticity-not-simulated"
    assert [item.code for item in model.report.warnings] == [code]


def passive(k="100", rest="0.5"):
    return cable(
        "spring",
        POINTS,
        kind="cable_passive_linear_spring",
        properties=f"<K>{k}</K><l0>{rest}</l0>",
    )


def test_passive_spring_pulls_and_takes_no_command(tmp_path):
    model = load(tmp_path, cables({"m": [cable("c", POINTS), passive()]}))
    assert [m.name for m in model.robot.muscles] == ["c", "spring"]
    kept = model.cable_set.cables[1]
    assert kept.passive
    assert {k: v.tolist() for k, v in kept.parameters.items()} == {"K": [100.0], "l0": [0.5]}
    ligament = model.robot.muscle("spring").actuator
    assert ligament.kind == "ligament"
    assert ligament.commands == ()
    assert ligament.slack_length == 0.5
    # CASPR's K (l - l0) at l = 0.75
    strain = 0.75 / 0.5 - 1.0
    pull = ligament.stiffness * (strain - 0.5 * ligament.toe_strain)
    assert pull == pytest.approx(100 * 0.25, rel=1e-5)
    (finding,) = [item for item in model.report.warnings if "spring" in item.code]
    assert finding.code == "passive-spring-pulls-only"
    assert "pushes" in finding.message


@pytest.mark.parametrize(("k", "rest"), [("0", "0.5"), ("-1", "0.5"), ("5", "0"), ("5", "1 2")])
def test_passive_spring_that_no_ligament_can_be(tmp_path, k, rest):
    model = load(tmp_path, cables({"m": [cable("c", POINTS), passive(k, rest)]}))
    assert [m.name for m in model.robot.muscles] == ["c"]
    assert "passive-spring-left-out" in [item.code for item in model.report.warnings]


def test_a_passive_spring_drives_nothing(tmp_path):
    text = cables({"m": [passive()]})
    assert "coordinate-not-driven" in [i.code for i in load(tmp_path, text).report.warnings]


@pytest.mark.parametrize("kind", ["muscle_hill_type", "pneumatic_artificial_muscle"])
def test_kinds_that_caspr_only_names(tmp_path, kind):
    model = one(tmp_path, kind=kind, properties="<strange>1 2</strange>")
    assert len(model.robot.muscles) == 1
    assert "cable-kind-undefined" in [item.code for item in model.report.warnings]
    assert model.cable_set.cables[0].parameters["strange"].tolist() == [1.0, 2.0]


PULLEY = """<base_rotating_pulley><fixed_location>1 2 3</fixed_location>
<pulley_radius>0.05</pulley_radius><cable_entry_vector>0 0 1</cable_entry_vector>
</base_rotating_pulley>"""
SCREW = """<screw_base_rotating_pulley><constant_winch_point>4 5 6</constant_winch_point>
<winch_vector>0 0 1</winch_vector><cable_pulley_entry_vector>0 1 0</cable_pulley_entry_vector>
<pulley_radius>0.05</pulley_radius><winch_radius>0.1</winch_radius>
<winch_groove_width>0.01</winch_groove_width></screw_base_rotating_pulley>"""


def on_pulley(folder, xml, point="0 0 0.5"):
    reference = 'attachment_reference="com"'
    return load(folder, cables({"m": [cable("c", [(1, point)], first=xml, reference=reference)]}))


@pytest.mark.parametrize(
    ("xml", "tag", "point", "axis"),
    [
        (PULLEY, "base_rotating_pulley", [1, 2, 3], [0, 0, 1]),
        (SCREW, "screw_base_rotating_pulley", [4, 5, 6], [0, 1, 0]),
    ],
)
def test_pulleys(tmp_path, xml, tag, point, axis):
    model = on_pulley(tmp_path, xml)
    # world coordinates, whatever the reference of the cable
    assert positions(model) == [point, [0, 0, 1.0]]
    pulley = model.robot.muscles[0].path[0]
    assert isinstance(pulley, Pulley)
    assert (pulley.link, pulley.radius, pulley.axis.tolist()) == ("base", 0.05, axis)
    codes = [item.code for item in model.report.warnings]
    assert codes == ([] if xml is PULLEY else ["winch-left-out"])
    kept = model.cable_set.cables[0]
    assert kept.pulley == tag
    assert kept.parameters[f"{tag}/pulley_radius"].tolist() == [0.05]


def caspr_pulley(position, axis, radius, target):
    """Return CASPR's leave point and length, as its CableAttachmentPulley computes them.

    n = v x (B - F), C = F + R (n x v)/|n x v|, rho = R/|B - C|,
    A = C + rho^2 (B - C) - rho sqrt(1 - rho^2) (n^ x (B - C)), arc = R acos(FC . AC).
    """
    n = np.cross(axis, target - position)
    e = np.cross(n, axis)
    centre = position + radius * e / np.linalg.norm(e)
    b = target - centre
    rho = radius / np.linalg.norm(b)
    across = np.cross(n / np.linalg.norm(n), b)
    leave = centre + rho**2 * b - rho * np.sqrt(1 - rho**2) * across
    cosine = (position - centre) @ (leave - centre) / radius**2
    return leave, np.linalg.norm(target - leave) + radius * np.arccos(np.clip(cosine, -1, 1))


def test_lengths_and_jacobians_over_a_pulley_are_those_of_caspr(tmp_path):
    model = load(
        tmp_path,
        cables({"m": [cable("c", [(1, "0.3 0.1 0.5")], first=PULLEY)]}),
        bodies=bodies(link(1, "P_AXIS", extra='axis="0 0.6 0.8"')),
    )
    dynamics = make_dynamics(model.robot, "numeric")
    start, axis = np.array([0.3, 0.1, 0.5]), np.array([0.0, 0.6, 0.8])
    for q in np.linspace(-3, 1.5, 7):  # below the pulley: the arc is less than half a turn
        target = start + q * axis
        leave, length = caspr_pulley(np.array([1.0, 2, 3]), np.array([0.0, 0, 1]), 0.05, target)
        state = dynamics.update(np.array([q]), np.zeros(1))
        assert state.muscle_lengths[0] == pytest.approx(length, abs=1e-12)
        unit = (target - leave) / np.linalg.norm(target - leave)
        assert state.muscle_jacobian[0, 0] == pytest.approx(unit @ axis, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "point", "words"),
    [
        ((">0.05<", ">0<"), "0 0 0.5", "no wheel"),
        (("<pulley_radius>0.05</pulley_radius>", ""), "0 0 0.5", "no wheel"),
        ((">0 0 1<", ">0 0 0<"), "0 0 0.5", "no wheel"),
        (("1 2 3", "0.05 0 1"), "0 0.001 0.5", "mm inside the wheel"),
        (("1 2 3", "0 0 1"), "0 0 1.5", "on the swivel axis"),
    ],
)
def test_pulleys_that_cannot_be_are_via_points(tmp_path, change, point, words):
    model = on_pulley(tmp_path, PULLEY.replace(*change), point)
    assert isinstance(model.robot.muscles[0].path[0], ViaPoint)
    (finding,) = model.report.warnings
    assert finding.code == "pulley-as-via-point"
    assert words in finding.message
    assert write_import(model, tmp_path / "out").is_dir()


def test_sets(tmp_path):
    text = cables({"a": [cable("1", POINTS)], "b": [cable("2", POINTS), cable("3", POINTS)]}, "b")
    assert [m.name for m in load(tmp_path, text).robot.muscles] == ["2", "3"]
    other = load(tmp_path, text, cable_set="a")
    assert [m.name for m in other.robot.muscles] == ["1"]
    assert "other-cable-sets" in [item.code for item in other.report.findings]
    with pytest.raises(UnknownNameError, match="Known: a, b"):
        load(tmp_path, text, cable_set="c")


def test_default_set_is_missing(tmp_path):
    text = TWO_CABLES.replace(' default_cable_set="main"', "")
    model = load(tmp_path, text)
    assert model.cable_set.name == "main"
    assert "no-default-cable-set" in [item.code for item in model.report.warnings]
    with pytest.raises(DescriptionError, match="expected: main"):
        load(tmp_path, TWO_CABLES.replace('default_cable_set="main"', 'default_cable_set="x"'))


def test_empty_set(tmp_path):
    assert load(tmp_path, cables({"Empty": []})).robot.muscles == ()


def test_cable_on_one_link_has_no_effect(tmp_path):
    text = cables({"m": [cable("c", [(1, "0 0 0"), (1, "0 0 1")]), cable("d", POINTS)]})
    found = [i for i in load(tmp_path, text).report.warnings if i.code == "cable-without-effect"]
    assert [item.subject for item in found] == ["cable 'c'"]
    assert found[0].source.endswith("robot_cables.xml")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("cable_ideal", "cable_idle"), "cable_linear_spring"),
        (('attachment_reference="joint"', ""), "joint"),
        (('attachment_reference="joint"', 'attachment_reference="end"'), "com"),
        (("<force_min>1.0", "<force_min>-1.0"), "cannot push"),
        (("<force_min>1.0", "<force_min>200"), "force_min <= force_max"),
        (("<force_min>1.0</force_min>", ""), "has no <force_min>"),
        (("<link>1</link>", "<link>2</link>"), "0 (ground) to 1"),
        (("<link>1</link>", "<link>-1</link>"), "0 (ground) to 1"),
        (("<location>1 0 1<", "<location>1 0<"), "3 numbers"),
        (('name="left"', 'name=" "'), "no attribute 'name'"),
        (('id="main"', ""), "no attribute 'id'"),
        (("</cable_set>", '</cable_set><cable_set id="main"/>'), "unique ids"),
    ],
)
def test_refusals_name_the_place(tmp_path, change, words):
    text = TWO_CABLES.replace(*change) if "idle" in change[1] else TWO_CABLES.replace(*change, 1)
    with pytest.raises(DescriptionError) as info:
        load(tmp_path, text)
    assert words in str(info.value)
    assert info.value.source.endswith("robot_cables.xml")
    assert info.value.line is not None


def test_one_attachment(tmp_path):
    with pytest.raises(DescriptionError, match="at least two"):
        load(tmp_path, cables({"m": [cable("c", POINTS[:1])]}))


def test_pulley_comes_first(tmp_path):
    text = cables({"m": [cable("c", [], first=f"<attachment><link>1</link><location>0 0 1"
                                              f"</location></attachment>{PULLEY}")]})  # fmt: skip
    with pytest.raises(DescriptionError, match="the pulley first"):
        load(tmp_path, text)


def test_no_sets(tmp_path):
    with pytest.raises(DescriptionError, match="at least one <cable_set>"):
        load(tmp_path, "<cables/>")


def test_vectors_are_separated_by_any_blanks(tmp_path):
    text = TWO_CABLES.replace("<location>1 0 1<", "<location>\n 1   0\t1 <")
    assert positions(load(tmp_path, text))[0] == [1, 0, 1]
    assert np.isfinite(load(tmp_path, text).robot.muscles[0].tension_max)
