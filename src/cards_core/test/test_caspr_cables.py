"""Cables files: kinds, references, pulleys, sets, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from caspr_samples import TWO_CABLES, bodies, cable, cables, link, minimal

from cards_core.description.caspr import import_caspr
from cards_core.description.caspr.cables import KINDS
from cards_core.errors import DescriptionError, UnknownNameError

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
    assert finding.code == "elasticity-not-simulated"
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


def test_passive_spring_is_no_muscle(tmp_path):
    spring = cable(
        "spring", POINTS, kind="cable_passive_linear_spring", properties="<K>100</K><l0>0.5</l0>"
    )
    model = load(tmp_path, cables({"m": [cable("c", POINTS), spring]}))
    assert [m.name for m in model.robot.muscles] == ["c"]
    kept = model.cable_set.cables[1]
    assert kept.passive
    assert {k: v.tolist() for k, v in kept.parameters.items()} == {"K": [100.0], "l0": [0.5]}
    (finding,) = [item for item in model.report.warnings if "spring" in item.code]
    assert finding.code == "passive-spring-left-out"


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


@pytest.mark.parametrize(
    ("xml", "tag", "point"),
    [
        (PULLEY, "base_rotating_pulley", [1, 2, 3]),
        (SCREW, "screw_base_rotating_pulley", [4, 5, 6]),
    ],
)
def test_pulleys_become_via_points(tmp_path, xml, tag, point):
    text = cables(
        {"m": [cable("c", [(1, "0 0 0.5")], first=xml, reference='attachment_reference="com"')]}
    )
    model = load(tmp_path, text)
    # world coordinates, whatever the reference of the cable
    assert positions(model) == [point, [0, 0, 1.0]]
    (finding,) = model.report.warnings
    assert finding.code == "pulley-as-via-point"
    assert tag in finding.message
    kept = model.cable_set.cables[0]
    assert kept.pulley == tag
    assert kept.parameters[f"{tag}/pulley_radius"].tolist() == [0.05]


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
