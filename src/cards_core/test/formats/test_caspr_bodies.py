"""Bodies files: numbers, conventions, old layouts, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from caspr_samples import PENDULUM, TWO_CABLES, bodies, cable, cables, link, minimal, write

from cards_core.dynamics import make_dynamics
from cards_core.errors import DescriptionError
from cards_core.formats.caspr import import_caspr


def load(folder, **parts):
    return import_caspr(minimal(folder, **parts), feasibility=False)


def codes(model):
    return [item.code for item in model.report.findings]


def test_base_is_fixed_to_the_world(tmp_path):
    robot = load(tmp_path).robot
    joint = robot.joint("base_joint")
    assert (joint.kind, joint.parent, joint.child) == ("fixed", "world", "base")
    assert robot.link("base").inertia.mass == 0.0
    assert robot.gravity.tolist() == [0.0, 0.0, -9.81]
    assert robot.muscles[0].path[0].link == "base"


def test_home_and_limits(tmp_path):
    text = bodies(link(1, "U_XZ", q="0.1 -0.2", q_min="-1 -2", q_max="3 4"))
    model = load(tmp_path, bodies=text)
    tree = make_dynamics(model.robot, "numeric").tree
    assert tree.home.tolist() == [0.1, -0.2]
    assert tree.lower.tolist() == [-1, -2]
    assert tree.upper.tolist() == [3, 4]
    assert model.robot.joint("link_1_joint").kind == "universal"


def test_planar_joint(tmp_path):
    text = bodies(link(1, "PLANAR_XZ", q="0.1 0.2 0.3", q_min="-1 -1 -1", q_max="1 1 1"))
    joint = load(tmp_path, bodies=text).robot.joint("link_1_joint")
    assert joint.kind == "planar"
    assert [axis.axis.tolist() for axis in joint.axes] == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_inertia_about_the_joint(tmp_path):
    """A heap of point masses: moments about the joint in the file, about their centre in ours."""
    rng = np.random.default_rng(0)
    masses, places = rng.uniform(0.1, 1, 8), rng.normal(size=(8, 3))
    com = masses @ places / masses.sum()

    def tensor_about(origin):
        r = places - origin
        return sum(
            m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, r, strict=True)
        )

    joint = tensor_about(np.zeros(3))
    entries = [joint[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    text = bodies(
        link(
            1,
            "R_X",
            mass=float(masses.sum()),
            com=" ".join(map(str, com.tolist())),
            inertia=" ".join(map(str, entries)),
            ref="joint",
        )
    )
    body = load(tmp_path, bodies=text).robot.link("link_1").inertia
    assert body.com == pytest.approx(com)
    assert body.tensor == pytest.approx(tensor_about(com), abs=1e-12)


def test_products_keep_their_sign(tmp_path):
    text = bodies(link(1, "R_X", inertia="1 2 2.5 0.1 -0.2 0.3"))
    tensor = load(tmp_path, bodies=text).robot.link("link_1").inertia.tensor
    assert tensor.tolist() == [[1, 0.1, -0.2], [0.1, 2, 0.3], [-0.2, 0.3, 2.5]]


def test_axis_is_normalised(tmp_path):
    text = bodies(link(1, "R_AXIS", extra='axis="0 3 4"'))
    axis = load(tmp_path, bodies=text).robot.joint("link_1_joint").axes[0].axis
    assert axis == pytest.approx([0, 0.6, 0.8])


def test_motors(tmp_path):
    text = bodies(
        link(
            1, "S_EULER_XYZ", q="0 0 0", q_min="-1 -1 -1", q_max="1 1 1", extra='actuated="true"'
        ),
        link(2, "R_X", extra='actuated="false"'),
    )
    model = load(tmp_path, bodies=text)
    motors = [joint.name for joint in model.robot.joints if joint.motor]
    assert motors == [f"link_1_joint_{x}" for x in "abg"]
    assert "joint-motor" in codes(model)


def test_names_are_safe_and_unique(tmp_path):
    text = bodies(
        link(1, "R_X", name="base"), link(2, "R_X", name="a (b) c"), link(3, "R_X", name="a b c")
    )
    model = load(tmp_path, bodies=text)
    assert [body.link for body in model.bodies] == ["base_2", "a_b_c", "a_b_c_2"]
    assert ("a (b) c", "a_b_c") in model.report.renamed
    assert [body.original_name for body in model.bodies] == ["base", "a (b) c", "a b c"]


def test_limits_that_are_missing(tmp_path):
    text = bodies(link(1, "PLANAR_XY", q="0 0 0", q_min="-1", q_max="1 2 3"))
    model = load(tmp_path, bodies=text)
    tree = make_dynamics(model.robot, "numeric").tree
    assert tree.lower == pytest.approx([-1, -np.inf, -np.pi])
    assert tree.upper.tolist() == [1, 2, 3]
    (finding,) = [item for item in model.report.warnings if item.code == "limits-missing"]
    assert "q_min has 1 of 3 values; y t" in finding.message
    assert finding.line == 6


def test_home_outside_the_limits(tmp_path):
    model = load(tmp_path, bodies=bodies(link(1, "R_Y", q="2", q_min="-1", q_max="1")))
    assert "home-outside-limits" in codes(model)
    assert model.robot.home["link_1_joint"] == (2.0,)
    assert model.sdf_robot is not None
    assert model.sdf_robot.home["link_1_joint"] == (1.0,)


def test_old_layout(tmp_path):
    """A bare <links>; operational spaces in the bodies file, with a selection matrix."""
    spaces = """
  <operational_spaces default_operational_set="tip">
    <operational_set id="tip"><position marker_id="1" name="tip">
      <link>1</link><offset>0 0 1</offset>
      <selection_matrix><sx>1</sx><sy>0</sy><sz>1</sz></selection_matrix>
    </position></operational_set>
  </operational_spaces>"""
    old = bodies(link(1, "R_Y"), after=spaces)
    folder = write(tmp_path / "a", bodies=old, cables=TWO_CABLES)
    model = import_caspr(folder, feasibility=False)
    assert model.robot.operational_frame == "tip"
    assert model.operational_spaces[0].entries[0].axes == "xz"
    assert "old-layout" in codes(model)
    bare = PENDULUM.replace("<bodies_system>", "").replace("</bodies_system>", "")
    model = import_caspr(write(tmp_path / "b", bodies=bare, cables=TWO_CABLES), feasibility=False)
    assert [body.link for body in model.bodies] == ["link_1"]


def test_old_layout_yields_to_the_file(tmp_path):
    nested = '<operational_spaces default_operational_set=""></operational_spaces>'
    model = load(tmp_path, bodies=bodies(link(1, "R_Y"), after=nested))
    assert "operational-spaces-twice" in codes(model)


def test_unknown_elements_are_named(tmp_path):
    text = PENDULUM.replace("<mass>", "<colour>red</colour><mass>")
    model = load(tmp_path, bodies=text)
    (finding,) = model.report.warnings
    assert finding.code == "unknown-element"
    assert "<colour>" in finding.message
    assert finding.line is not None


def test_comments_are_ignored(tmp_path):
    text = PENDULUM.replace("<mass>", "<!-- a guess --><mass>").replace(
        "<links", "<!-- x --><links"
    )
    assert not load(tmp_path, bodies=text).report.warnings


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('num="1"', 'num="2"'), "position of the link"),
        (('num="1"', 'num="one"'), "not a number"),
        (('num="1"', 'num="1.5"'), "not an integer"),
        (("<mass>2</mass>", "<mass>-2</mass>"), ">= 0"),
        (("<mass>2</mass>", "<mass>nan</mass>"), "not finite"),
        (("<mass>2</mass>", ""), "has no <mass>"),
        (("<mass>2</mass>", "<mass>2</mass><mass>2</mass>"), "second <mass>"),
        (("0 0 0.5</com_location>", "0 0</com_location>"), "3 numbers"),
        (("0 0 0.5</com_location>", "0 zero 0</com_location>"), "'zero' is not a number"),
        (('ref="com"', 'ref="end"'), 'ref="joint"'),
        (('ref="com"', ""), "no attribute 'ref'"),
        (("<num>0</num>", "<num>1</num>"), "0 (ground) to 0"),
        (("<num>0</num>", "<num>-1</num>"), "0 (ground) to 0"),
        (('q_initial="0"', 'q_initial="0 0"'), "1 for a R_Y joint"),
        (('q_initial="0"', ""), "no attribute 'q_initial'"),
        (('q_initial="0"', 'q_initial="inf"'), "finite"),
        (('q_min="-3"', 'q_min="4"'), "q_min < q_max"),
        (('q_min="-3"', 'q_min="3"'), "q_min and q_max of coordinate 't' are both 3"),
        (('q_min="-3"', 'q_min="-3 -3"'), "q_min has 2 values"),
        (('type="R_Y"', 'type="R_AXIS"'), "axis"),
        (('type="R_Y"', 'type="R_AXIS" axis="0 0 0"'), "not all zero"),
        (('type="R_Y"', 'type="R_Y" axis="0 0 1"'), "only with R_AXIS"),
        (('type="R_Y"', 'type="R_Y" actuated="maybe"'), "true or false"),
        (('type="R_Y"', 'type="S_QUATERNION"'), "S_EULER_XYZ"),
        (('name="link 1"', 'name=""'), "no attribute 'name'"),
        (("<parent>", "<!-- <parent>"), "malformed XML"),
        (("bodies_system>", "body_system>"), "malformed XML"),
    ],
)
def test_refusals_name_the_place(tmp_path, change, words):
    with pytest.raises(DescriptionError) as info:
        load(tmp_path, bodies=PENDULUM.replace(*change, 1))
    assert words in str(info.value)
    assert info.value.source.endswith("robot_bodies.xml")
    assert info.value.line is not None
    assert info.value.expected


def test_wrong_root(tmp_path):
    with pytest.raises(DescriptionError, match="<bodies_system> or <links>"):
        load(tmp_path, bodies=TWO_CABLES)


def test_no_links(tmp_path):
    with pytest.raises(DescriptionError, match="at least one <link_rigid>"):
        load(tmp_path, bodies=bodies())


def test_link_without_mass_cannot_be_repaired(tmp_path):
    """Inertia without mass is data for analysis, but no SDF can say it."""
    model = load(tmp_path, bodies=bodies(link(1, "R_Y", mass=0)))
    assert model.sdf_robot is None
    assert "inertia-not-repairable" in codes(model)


def test_coordinates_that_nothing_drives(tmp_path):
    text = bodies(link(1, "R_Y", com="0 0 0.5"), link(2, "R_Z", com="0 0 0.5"))
    model = load(tmp_path, bodies=text)
    found = [item for item in model.report.findings if item.code == "coordinate-not-driven"]
    assert [item.subject for item in found] == ["link 'link 2'"]
    assert "link-unreferenced" in codes(model)
    ends = cables({"main": [cable("c", [(0, "1 0 1"), (2, "0.5 0 0.5")])]})
    assert "coordinate-not-driven" not in codes(load(tmp_path, bodies=text, cables=ends))
