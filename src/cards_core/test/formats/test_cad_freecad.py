"""FreeCAD documents: the same robot as from STEP, joints of CROSS, what FreeCAD itself writes."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest

pytest.importorskip("OCP", reason="needs cadquery-ocp-novtk: ./cards setup --test")

from cad_samples import (
    BLOCKS,
    CONFIG,
    PINS,
    PLACES,
    POINTS,
    TURNED,
    arm_objects,
    brep,
    expected_inertia,
    shapes,
    write_arm,
    write_arm_document,
    write_document,
    xml_choice,
    xml_float,
    xml_label,
    xml_links,
    xml_placement,
    xml_property,
)

from cards_core.dynamics import make_dynamics
from cards_core.errors import DescriptionError
from cards_core.formats.cad import Reader, import_cad
from cards_core.spatial import axis_rotation

STEEL_PINS = 'material: aluminium\nbodies:\n  "*pin": {material: steel}\n'


@pytest.fixture(scope="module")
def reader():
    with Reader() as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("freecad")
    (made / "arm.yaml").write_text(CONFIG)
    (made / "pins.yaml").write_text(STEEL_PINS)
    return made


@pytest.fixture(scope="module")
def from_step(folder, reader):
    file = write_arm(folder / "arm.step")
    return import_cad(file, config=folder / "arm.yaml", assembly=reader.read(file)).robot


def check_same(robot, other, tolerance=1e-9):
    """Two descriptions of one robot: masses, mass matrix, gravity, muscle lengths, Jacobian."""
    assert robot.tree.position_names == other.tree.position_names
    assert [m.name for m in robot.muscles] == [m.name for m in other.muscles]
    for one, two in zip(robot.links, other.links, strict=True):
        assert one.name == two.name
        assert one.inertia.mass == pytest.approx(two.inertia.mass, rel=tolerance)
    first, second = make_dynamics(robot), make_dynamics(other)
    for q in ([0.0, 0.0], [0.3, -0.6], [-0.8, 0.9]):
        a = first.update(np.array(q), np.array([0.2, -0.4]))
        b = second.update(np.array(q), np.array([0.2, -0.4]))
        for name in ("mass_matrix", "coriolis", "gravity", "muscle_lengths", "muscle_jacobian"):
            x, y = getattr(a, name), getattr(b, name)
            assert np.abs(x - y).max() <= tolerance * max(1.0, np.abs(y).max()), name


def test_same_robot_as_from_step(folder, reader, from_step):
    file = write_arm_document(folder / "arm.FCStd")
    found = import_cad(file, config=folder / "arm.yaml", assembly=reader.read(file))
    check_same(found.robot, from_step)
    assert found.name == "two_link_arm"
    for link in found.robot.links:
        mass, com, tensor = expected_inertia(link.name)
        assert link.inertia.mass == pytest.approx(mass, rel=1e-9)
        assert np.abs(link.inertia.com - com).max() < 1e-10
        assert np.abs(link.inertia.tensor - tensor).max() < 1e-9 * np.abs(tensor).max()


def test_joints_of_cross(folder, reader, from_step):
    """Links stand at their joints with z along the axis; the robot moves the same."""
    file = write_arm_document(folder / "cross.FCStd", cross=True)
    found = import_cad(file, config=folder / "pins.yaml", assembly=reader.read(file))
    check_same(found.robot, from_step)
    shoulder = found.robot.joint("shoulder")
    assert shoulder.axes[0].axis.tolist() == [0.0, 0.0, 1.0]
    assert (shoulder.axes[0].lower, shoulder.axes[0].upper) == pytest.approx(
        (-math.pi / 3, math.pi / 3)
    )


@pytest.mark.parametrize("limits", [(0.0, 0.0), (-60.0, -60.0), (60.0, -60.0)])
def test_limits_of_cross(folder, reader, limits):
    """The workbench's 0 and 0 are no limits; else equal ones fix the joint, crossed ones err."""
    objects, files = arm_objects(folder, cross=True)
    stated = xml_float("LowerLimit", -60.0) + xml_float("UpperLimit", 60.0)
    lower, upper = limits
    new = xml_float("LowerLimit", lower) + xml_float("UpperLimit", upper)
    objects = [
        (name, kind, inside.replace(stated, new) if name == "Joint_shoulder" else inside)
        for name, kind, inside in objects
    ]
    file = write_document(folder / "limits.FCStd", objects, files)

    def read():
        return import_cad(file, config=folder / "pins.yaml", assembly=reader.read(file))

    if lower > upper:
        with pytest.raises(DescriptionError, match=r"joint 'shoulder': limits 1\.04"):
            read()
        return
    found = read()
    joint = found.robot.joint("shoulder")
    codes = {item.code for item in found.warnings}
    if lower == 0.0:
        assert "no-limits" in codes
        assert math.isinf(joint.axes[0].lower)
        return
    assert "joint-locked" in codes
    assert joint.kind == "fixed"
    free = write_arm_document(folder / "free.FCStd", cross=True)
    free = import_cad(free, config=folder / "pins.yaml", assembly=reader.read(free))
    moves = free.robot.joint("shoulder")
    turned = moves.parent_to_joint.rotation @ axis_rotation([0, 0, 1], math.radians(-60.0))
    np.testing.assert_allclose(joint.parent_to_joint.rotation, turned, atol=1e-12)


def test_joint_of_cross_to_no_link(folder, reader):
    objects, files = arm_objects(folder, cross=True)
    wrong = xml_choice("Parent", ["nowhere"], "nowhere")
    right = xml_choice("Parent", list(PLACES), "upper_arm")
    objects = [(name, kind, inside.replace(right, wrong)) for name, kind, inside in objects]
    file = write_document(folder / "nowhere.FCStd", objects, files)
    with pytest.raises(DescriptionError, match="joint 'elbow': its parent is 'nowhere'"):
        import_cad(file, config=folder / "pins.yaml", assembly=reader.read(file))


def test_what_freecad_writes(folder, reader, from_step):
    program = shutil.which("freecadcmd") or shutil.which("FreeCADCmd")
    if program is None:
        pytest.skip("needs FreeCAD: apt install freecad")
    data = {
        "blocks": [[*key, *value] for key, value in BLOCKS.items()],
        "pins": [[*key, *value] for key, value in PINS.items()],
        "points": [[key, *value] for key, value in POINTS.items()],
        "places": PLACES,
        "turned": TURNED,
        "file": str(folder / "made.FCStd"),
    }
    script = folder / "make_arm.py"
    script.write_text(f"DATA = {data!r}\n" + MAKE_ARM)
    home = folder / "home"
    home.mkdir()
    done = subprocess.run(
        [program, str(script)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert (folder / "made.FCStd").is_file(), done.stdout[-2000:] + done.stderr[-2000:]
    file = folder / "made.FCStd"
    # FreeCAD numbers labels that are used twice
    config = folder / "numbered.yaml"
    text = CONFIG.replace("lower_arm/beam#", "lower_arm/beam001#").replace('"*/pin"', '"*/pin*"')
    config.write_text(text)
    found = import_cad(file, config=config, assembly=reader.read(file))
    check_same(found.robot, from_step)


MAKE_ARM = """
import math
import FreeCAD as fc, Part
doc = fc.newDocument("two_link_arm")
y = fc.Vector(0, 1, 0)
parts = {}
for link, place in DATA["places"].items():
    part = doc.addObject("App::Part", "Part_" + link)
    part.Label = link
    turn = fc.Rotation(y, math.degrees(DATA["turned"].get(link, 0.0)))
    part.Placement = fc.Placement(fc.Vector(*place), turn)
    parts[link] = part

def cylinder(name, centre, radius, length):
    made = doc.addObject("Part::Cylinder", name)
    made.Radius, made.Height = radius, length
    start = fc.Vector(*centre) - fc.Vector(0, length / 2, 0)
    made.Placement = fc.Placement(start, fc.Rotation(fc.Vector(0, 0, 1), y))
    return made

for link, name, corner, edges, hole in DATA["blocks"]:
    box = doc.addObject("Part::Box", "Box")
    box.Length, box.Width, box.Height = edges
    box.Placement = fc.Placement(fc.Vector(*corner), fc.Rotation())
    made = box
    if hole:
        made = doc.addObject("Part::Cut", "Cut")
        made.Base, made.Tool = box, cylinder("Hole", (0, 0, 0), hole, 400)
        parts[link].addObject(made.Base)
        parts[link].addObject(made.Tool)
    made.Label = name
    parts[link].addObject(made)
for link, name, centre, radius, length in DATA["pins"]:
    made = cylinder("Pin", centre, radius, length)
    made.Label = name
    parts[link].addObject(made)
for number, (name, link, place) in enumerate(DATA["points"]):
    if number % 2:
        made = doc.addObject("Part::Vertex", "Point")
        made.X, made.Y, made.Z = place
    else:
        made = doc.addObject("PartDesign::CoordinateSystem", "Frame")
        made.Placement = fc.Placement(fc.Vector(*place), fc.Rotation())
    made.Label = name
    parts[link].addObject(made)
doc.recompute()
doc.saveAs(DATA["file"])
"""


def test_links_groups_and_what_is_used_up(folder, reader):
    """An ``App::Link`` is a second instance; a group is no level; a cut uses its tools up."""
    shape = shapes()["base", "foot"]
    files = {"PartShape.brp": brep(shape, folder)}
    solid = '<Property name="Shape" type="Part::PropertyPartShape"><Part file="PartShape.brp"/>'
    solid += "</Property>"
    target = xml_property("LinkedObject", "PropertyXLink", '<XLink file="" name="Foot"/>')
    base = xml_property("Base", "PropertyLink", '<Link value="Block"/>')
    hidden = xml_property("Visibility", "PropertyBool", '<Bool value="false"/>')
    objects = [
        ("Group", "App::DocumentObjectGroup", xml_label("things") + xml_links("Group", ["Foot"])),
        ("Foot", "Part::Feature", xml_label("left") + xml_placement((0, 10, 0)) + solid),
        ("Copy", "App::Link", xml_label("right") + xml_placement((0, 500, 0)) + target),
        ("Block", "Part::Box", xml_label("block") + xml_placement((0, 0, 0)) + solid),
        ("Cut", "Part::Cut", xml_label("cut") + xml_placement((900, 0, 0)) + solid + base),
        ("Old", "Part::Feature", xml_label("old") + solid + hidden),
    ]
    found = reader.read(write_document(folder / "links.FCStd", objects, files))
    places = {item.path: item.pose.translation.tolist() for item in found.components}
    assert places == {
        "left": [0.0, 0.01, 0.0],
        "right": [0.0, 0.5, 0.0],
        "cut": [0.9, 0.0, 0.0],
    }
    assert [remark[1] for remark in found.remarks] == ["object 'old'"]
    assert all(len(item.solids) == 1 for item in found.components)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.replace('Q3="1.0"', 'Q3="0.5"'), "the quaternion of Placement is"),
        (lambda x: x.replace('Px="0"', 'Px="one"'), r"Placement.Px is 'one' \(expected: a finite"),
        (lambda x: x.replace("<Objects>", "<Nothing>").replace("</Objects>", "</Nothing>"),
         "has no objects"),
        (lambda x: x.replace("shape.brp", "other.brp"), "has no file 'other.brp'"),
        (lambda x: x.replace('"Foot"/></Objects>', '"Feet"/></Objects>'), "is not declared"),
    ],
)  # fmt: skip
def test_wrong_documents(change, message, folder, reader):
    files = {"shape.brp": brep(shapes()["base", "foot"], folder)}
    solid = '<Property name="Shape" type="Part::PropertyPartShape"><Part file="shape.brp"/>'
    objects = [
        ("Foot", "Part::Feature", xml_label("foot") + xml_placement((0, 0, 0)) + solid
         + "</Property>"),
    ]  # fmt: skip
    file = write_document(folder / "wrong.FCStd", objects, files)
    import zipfile

    with zipfile.ZipFile(file) as archive:
        text = archive.read("Document.xml").decode()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("Document.xml", change(text))
        archive.writestr("shape.brp", files["shape.brp"])
    with pytest.raises(DescriptionError, match=message) as caught:
        reader.read(file)
    assert str(file) in str(caught.value)
    assert json.dumps(str(caught.value))
