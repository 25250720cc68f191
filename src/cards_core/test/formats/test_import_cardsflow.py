"""Robots of CARDSflow: kinematics and lengths against the numbers of the file, repairs, errors."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, DescriptionError
from cards_core.formats import load
from cards_core.formats.cardsflow.cli import main
from cards_core.formats.cardsflow.importer import import_cardsflow
from cards_core.formats.imports.masses import tensors_about_origin
from cards_core.formats.imports.model import write_imported
from cards_core.formats.sdf.checks import home_poses
from cards_core.robot.elements import Cylinder, Inertia, Mesh, Sphere, Wrap
from cards_core.robot.inertia import inertia_problem

SAMPLE = Path(__file__).resolve().parents[4] / "examples" / "cardsflow_arm"
SDF = (SAMPLE / "model.sdf").read_text(encoding="utf-8")
MUSCLES = (SAMPLE / "cardsflow.xml").read_text(encoding="utf-8")


def folder(tmp_path, sdf=SDF, muscles=MUSCLES):
    """Write a robot and return its folder."""
    path = tmp_path / "robot"
    path.mkdir(exist_ok=True)
    (path / "model.sdf").write_text(sdf, encoding="utf-8")
    if muscles is not None:
        (path / "cardsflow.xml").write_text(muscles, encoding="utf-8")
    return path


def muscle(body):
    return f'<cardsflow><myoMuscle name="m">{body}</myoMuscle></cardsflow>'


def at(link, text, kind="FIXPOINT", extra=""):
    return f'<link name="{link}"><viaPoint type="{kind}" {extra}>{text}</viaPoint></link>'


def codes(model):
    return {item.code for item in model.findings}


def lengths(robot):
    dynamics = make_dynamics(robot, "numeric")
    state = dynamics.update(dynamics.tree.home, np.zeros(dynamics.tree.nv))
    return dict(zip((m.name for m in robot.muscles), np.array(state.muscle_lengths), strict=True))


def rest(sdf):
    """Return the positions of the links of a file whose links are not rotated."""
    return {
        link.get("name"): np.array([float(x) for x in link.findtext("pose").split()[:3]])
        for link in ET.fromstring(sdf).iter("link")
    }


def arc_length(a, b, radius):
    """Return the length over a circle around the origin between two points of its plane."""
    da, db = np.linalg.norm(a), np.linalg.norm(b)
    angle = math.acos(a @ b / (da * db)) - math.acos(radius / da) - math.acos(radius / db)
    assert angle > 0.0, "does not touch"
    return math.sqrt(da**2 - radius**2) + math.sqrt(db**2 - radius**2) + radius * angle


# What the numbers mean -------------------------------------------------------------------------


def test_links_stand_where_the_file_says():
    robot = import_cardsflow(SAMPLE).robot
    poses = home_poses(robot)
    for name, position in rest(SDF).items():
        np.testing.assert_allclose(poses[name].translation, position, atol=1e-12)
        np.testing.assert_allclose(poses[name].rotation, np.eye(3), atol=1e-12)
    assert [joint.name for joint in robot.joints if joint.kind == "revolute"] == [
        "shoulder",
        "elbow",
    ]
    assert robot.operational_frame == "hand"


def test_lengths_at_rest_are_those_of_the_points():
    robot = import_cardsflow(SAMPLE).robot
    places = rest(SDF)
    found = lengths(robot)
    for element in ET.fromstring(MUSCLES).iter("myoMuscle"):
        points = [
            places[link.get("name")] + [float(x) for x in point.text.split()]
            for link in element.iter("link")
            for point in link
        ]
        if element.get("name") == "biceps":
            a, centre, b = points
            expected = arc_length(a - centre, b - centre, 0.03)
        else:
            expected = sum(np.linalg.norm(q - p) for p, q in pairwise(points))
        assert found[element.get("name")] == pytest.approx(expected, abs=1e-12)


def test_cylinder_is_along_the_z_axis_of_its_link(tmp_path):
    """A helix: with the plane's length s and the rise h, the length is sqrt(s^2 + h^2)."""
    a, b, centre = (-0.06, 0.02, 0.11), (0.07, 0.01, 0.05), (0.0, 0.0, 0.07)
    path = folder(
        tmp_path,
        muscles=muscle(
            at("base", "-0.06 0.02 0.11")
            + at("base", "0 0 0.07", "CYLINDRICAL", 'radius="0.03" state="1" revCounter="0"')
            + at("base", "0.07 0.01 0.05")
            + at("upper_arm", "0.07 0.01 0.15")
        ),
    )
    model = import_cardsflow(path)
    (surface,) = model.robot.wrap_surfaces
    assert surface.geometry == Cylinder(0.03, math.inf)
    flat = arc_length(np.subtract(a, centre)[:2], np.subtract(b, centre)[:2], 0.03)
    expected = math.hypot(flat, a[2] - b[2]) + np.linalg.norm(
        np.add([0.07, 0.01, 0.15], [0, 0, 0.85]) - np.add(b, [0, 0, 1])
    )
    assert lengths(model.robot)["m"] == pytest.approx(expected, abs=1e-12)
    assert "wrap-state" in codes(model)


def test_mesh_is_the_hull_of_the_links_mesh(tmp_path):
    corners = [(x, y, z) for x in (-30, 30) for y in (-30, 30) for z in (-30, 30)]
    path = folder(
        tmp_path,
        SDF.replace(
            '<visual name="base_visual">',
            '<visual name="mesh"><geometry><mesh><uri>model://cardsflow_arm/meshes/box.obj</uri>'
            "<scale>0.001 0.001 0.001</scale></mesh></geometry></visual>"
            '<visual name="base_visual">',
        ),
        muscle(
            at("base", "-0.1 0.01 0.02")
            + at("base", "0 0 0", "MESH")
            + at("upper_arm", "0.1 0.01 0.17")
        ),
    )
    (path / "meshes").mkdir()
    (path / "meshes" / "box.obj").write_text(
        "".join(f"v {x} {y} {z}\n" for x, y, z in corners) + "f 1 2 3\n"
    )
    model = import_cardsflow(path)
    (surface,) = model.robot.wrap_surfaces
    assert isinstance(surface.geometry, Mesh)
    # over two edges of the box, whose edges are rounded here
    sharp = 2.0 * math.hypot(0.07, 0.01) + 0.06
    assert lengths(model.robot)["m"] == pytest.approx(sharp, abs=2e-4)
    written = write_imported(model, tmp_path / "out")
    again = load(written)
    assert (written / "meshes" / "box.obj").is_file()
    np.testing.assert_allclose(lengths(again)["m"], lengths(model.robot)["m"], atol=1e-12)


def test_axis_in_the_frame_of_the_model(tmp_path):
    turned = SDF.replace("0 0 0.85 0 0 0", "0 0 0.85 0.3 0.5 0.7")
    turned = turned.replace("<xyz>1 0 0</xyz>", "<xyz>0.6 0.8 0</xyz>", 1)
    robot = import_cardsflow(folder(tmp_path, turned)).robot
    poses = home_poses(robot)
    joint = robot.joint("shoulder")
    world = poses["base"].rotation @ joint.parent_to_joint.rotation @ joint.axes[0].axis
    np.testing.assert_allclose(world, [0.6, 0.8, 0.0], atol=1e-12)
    elbow = robot.joint("elbow")  # its axis is in the axes of its own frame, those of the forearm
    axis = poses["upper_arm"].rotation @ elbow.parent_to_joint.rotation @ elbow.axes[0].axis
    np.testing.assert_allclose(axis, poses["forearm"].rotation[:, 0], atol=1e-12)


# Masses ----------------------------------------------------------------------------------------


def test_inertia_of_no_body_is_repaired_and_reported():
    model = import_cardsflow(SAMPLE)
    assert all(inertia_problem(link.inertia) is None for link in model.robot.links)
    (finding,) = [item for item in model.findings if item.code == "inertia-repaired"]
    assert finding.subject == "link 'forearm'"
    assert finding.line == SDF[: SDF.index('<link name="forearm">')].count("\n") + 1
    # it turns about x alone: that moment stays
    assert model.robot.link("forearm").inertia.tensor[0, 0] == pytest.approx(0.006, rel=1e-12)
    report = model.to_dict()
    assert report["mass"] == pytest.approx(3.6)
    assert report["masses"]["mass_matrix_change"] == pytest.approx(0.0, abs=1e-9)


def parallel(c):
    return c @ c * np.eye(3) - np.outer(c, c)


def shift(sdf):
    """Return the file with its tensors about the origin of the model."""
    root = ET.fromstring(sdf)
    for link in root.iter("link"):
        c = np.array([float(x) for x in link.findtext("pose").split()[:3]])
        m = float(link.findtext("inertial/mass"))
        moved = m * parallel(c)
        for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
            item = link.find(f"inertial/inertia/i{'xyz'[i]}{'xyz'[j]}")
            item.text = repr(float(item.text) + float(moved[i, j]))
    return ET.tostring(root, encoding="unicode")


def test_tensors_about_the_origin_are_moved(tmp_path):
    valid = SDF.replace("<ixx>0.006</ixx>", "<ixx>0.0042</ixx>")
    before = import_cardsflow(folder(tmp_path, valid))
    after = import_cardsflow(folder(tmp_path, shift(valid)))
    assert "inertia-about-origin" in codes(after)
    assert "inertia-about-origin" not in codes(before)
    for link in before.robot.links:
        np.testing.assert_allclose(
            after.robot.link(link.name).inertia.tensor, link.inertia.tensor, atol=1e-12
        )
    told = import_cardsflow(folder(tmp_path, shift(valid)), inertia_about="com")
    # 0.85 m from the origin, the upper arm seems to have 0.7 kg m^2
    assert told.robot.link("upper_arm").inertia.tensor[0, 0] > 0.7
    assert "inertia-doubtful" in codes(told)


def test_tensors_about_centres_of_mass_are_left_alone():
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(300):
        inertias, coms = {}, {}
        for k in range(int(rng.integers(2, 8))):
            points = rng.normal(scale=rng.uniform(0.01, 0.1, 3), size=(20, 3))
            points -= points.mean(axis=0)
            mass = rng.uniform(0.05, 5.0)
            moments = mass * np.mean([parallel(p) for p in points], axis=0)
            inertias[f"l{k}"] = Inertia(mass, np.zeros(3), moments)
            coms[f"l{k}"] = rng.normal(scale=0.5, size=3)
        assert not tensors_about_origin(inertias, coms)
        moved = {
            name: Inertia(item.mass, item.com, item.tensor + item.mass * parallel(coms[name]))
            for name, item in inertias.items()
        }
        found += tensors_about_origin(moved, coms)
    assert found > 280


def test_dense_and_massless_links(tmp_path):
    heavy = SDF.replace("<mass>2.0</mass>", "<mass>405</mass>").replace(
        "<mass>0.6</mass>", "<mass>0</mass>"
    )
    model = import_cardsflow(folder(tmp_path, heavy))
    assert {"mass-doubtful", "link-without-mass"} <= codes(model)
    assert load(write_imported(model, tmp_path / "out")).tree.nv == 2
    with pytest.raises(DescriptionError, match=r"model\.sdf:\d+: <mass>.*negative"):
        import_cardsflow(folder(tmp_path, SDF.replace("<mass>0.6</mass>", "<mass>-1</mass>")))


# What is left out ------------------------------------------------------------------------------


def test_what_is_left_out_is_said(tmp_path):
    upper = SDF[SDF.index('<link name="upper_arm">') : SDF.index('<link name="forearm">')]
    loose = (
        '<joint name="loose" type="revolute"><parent>gone</parent><child>forearm</child></joint>'
    )
    lost = (
        '<visual name="v"><geometry><mesh><uri>model://x/none.stl</uri></mesh></geometry></visual>'
    )
    sdf = (
        SDF.replace('<link name="forearm">', upper + '<link name="forearm">' + lost)
        .replace('<joint name="shoulder"', loose + '<joint name="shoulder"')
        .replace('name="elbow"', 'name="forearm"')
        .replace("<plugin filename", "<foo/><plugin filename")
    )
    model = import_cardsflow(folder(tmp_path, sdf))
    assert {
        "given-twice",
        "joint-left-out",
        "mesh-missing",
        "joint-spring-left-out",
        "element-ignored",
        "joint-unknown",
    } <= codes(model)
    assert model.renamed == (("forearm", "forearm_joint"),)
    assert all(item.line and item.source for item in model.findings)


def test_base(tmp_path):
    free = SDF.replace("<kinematic>true</kinematic>", "")
    assert import_cardsflow(folder(tmp_path, free), base="free").robot.tree.nv == 8
    assert import_cardsflow(folder(tmp_path, free)).robot.tree.nv == 2
    # a kinematic link does not move by forces, whatever is asked for
    assert import_cardsflow(folder(tmp_path, SDF), base="free").robot.tree.nv == 2


def test_muscles_of_a_plugin(tmp_path):
    inside = MUSCLES[MUSCLES.index("<myoMuscle") : MUSCLES.index("<endEffector")]
    sdf = SDF.replace(
        'name="cardsflow_gazebo_plugin"/>', f'name="cardsflow_gazebo_plugin">{inside}</plugin>'
    )
    path = folder(tmp_path, sdf, None)
    alone = import_cardsflow(path)
    assert len(alone.robot.muscles) == 4
    (path / "cardsflow.xml").write_text(MUSCLES, encoding="utf-8")
    both = import_cardsflow(path)
    assert len(both.robot.muscles) == 4
    assert "muscles-twice" in codes(both)
    assert lengths(alone.robot) == lengths(both.robot)


def test_types_of_wraps():
    robot = import_cardsflow(SAMPLE).robot
    (surface,) = robot.wrap_surfaces
    assert surface.geometry == Sphere(0.03)
    assert [isinstance(item, Wrap) for item in robot.muscles[2].path] == [False, True, False]


# Errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("muscles", "line", "words"),
    [
        (muscle(at("base", "0 0 0", "ROUND") + at("forearm", "0 0 0")), 1, "type 'ROUND'"),
        (muscle(at("base", "0 0 0") + at("forearms", "0 0 0")), 1, "did you mean 'forearm'"),
        (muscle(at("base", "0 0") + at("forearm", "0 0 0")), 1, "2 values"),
        (muscle(at("base", "0 0 0") + "\n<link name='forearm'/>"), 2, "has no <viaPoint>"),
        (
            muscle(
                at("base", "0 0 0") + at("base", "0 0 0", "SPHERICAL") + at("forearm", "1 0 0")
            ),
            1,
            "no attribute 'radius'",
        ),
        (
            muscle(
                at("base", "0.2 0 0")
                + at("base", "0 0 0", "SPHERICAL", 'radius="-1"')
                + at("forearm", "1 0 0")
            ),
            1,
            "radius is not positive",
        ),
        (muscle(at("base", "0 0 0") + at("forearm", "0 0 0", "MESH")), 1, "which has none"),
        ("<cardsflow><muscle/></cardsflow>", 1, "unknown element"),
        ("<robot/>", 1, "not a file with CARDSflow's muscles"),
        (
            "<cardsflow>\n<endEffector name='h' link='x'/></cardsflow>",
            2,
            "link 'x' does not exist",
        ),
    ],
)
def test_wrong_muscles_are_named(tmp_path, muscles, line, words):
    with pytest.raises(DescriptionError) as info:
        import_cardsflow(folder(tmp_path, muscles=muscles))
    assert info.value.source.endswith("cardsflow.xml")
    assert info.value.line == line
    assert words in str(info.value)


@pytest.mark.parametrize(
    ("sdf", "words"),
    [
        (SDF.replace('version="1.6"', 'version="1.4"'), "SDF version '1.4'"),
        ("<robot name='x'/>", "./cards import urdf"),
        ("<cardsflow/>", "name the SDF beside it"),
        ("<sdf version='1.6'/>", "holds 0 models"),
        (SDF.replace('type="revolute"', 'type="gearbox"', 1), "'gearbox' is not supported"),
        (SDF.replace("<mass>1.0</mass>", "<mass>one</mass>"), "'one' is not a number"),
        (SDF[:400], "malformed XML"),
    ],
)
def test_wrong_files_are_named(tmp_path, sdf, words):
    with pytest.raises(DescriptionError) as info:
        import_cardsflow(folder(tmp_path, sdf))
    assert words in str(info.value)
    assert info.value.source.endswith("model.sdf")
    assert info.value.line


def test_choices_and_places(tmp_path):
    with pytest.raises(DescriptionError, match="no such file"):
        import_cardsflow(tmp_path / "none.sdf")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DescriptionError, match="holds 0 SDF files"):
        import_cardsflow(tmp_path / "empty")
    with pytest.raises(CardsError, match="0 <= MIN <= MAX"):
        import_cardsflow(SAMPLE, tension=(5.0, 1.0))
    with pytest.raises(CardsError, match="free"):
        import_cardsflow(SAMPLE, base="flying")


# Command line ----------------------------------------------------------------------------------


def test_command(tmp_path, capsys):
    assert main([str(SAMPLE), "-o", str(tmp_path), "--json", "--tension", "5", "80"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["counts"]["muscles"] == 4
    assert report["program"] == "CARDSflow"
    robot = load(tmp_path / "cardsflow_arm")
    assert {(m.tension_min, m.tension_max) for m in robot.muscles} == {(5.0, 80.0)}
    assert main([str(SAMPLE), "-o", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([str(SAMPLE), "-o", str(tmp_path), "--force", "-q"]) == 0
    assert main([str(tmp_path / "none")]) == 2
    assert main([str(SAMPLE), "-o", str(tmp_path), "--name", "second arm", "-q"]) == 0
    assert load(tmp_path / "second_arm").name == "second_arm"
    assert main([str(SAMPLE)]) == 0
    assert "nothing written" in capsys.readouterr().out


def test_a_joint_with_equal_limits_is_fixed_and_its_muscles_keep_their_lengths(tmp_path):
    held = SDF.replace("<lower>-1.2</lower><upper>1.2</upper>", "<lower>0</lower><upper>0</upper>")
    line = 1 + held[: held.index("<upper>0</upper>")].count("\n")
    moving = import_cardsflow(folder(tmp_path))
    model = import_cardsflow(folder(tmp_path, sdf=held))
    (found,) = [item for item in model.warnings if item.code == "joint-locked"]
    assert found.line is not None
    assert 0 < line - found.line < 10  # of the joint
    assert model.robot.tree.nv == moving.robot.tree.nv - 1
    assert lengths(model.robot) == pytest.approx(lengths(moving.robot), rel=1e-13)
    assert load(write_imported(model, tmp_path)).tree.nv == model.robot.tree.nv
