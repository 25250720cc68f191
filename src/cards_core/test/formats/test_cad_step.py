"""STEP assemblies: masses and inertias against closed forms, joints, muscles, units, materials."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("OCP", reason="needs cadquery-ocp-novtk: ./cards setup --test")

from cad_samples import (
    COLOURS,
    CONFIG,
    PINS,
    PLACES,
    POINTS,
    Step,
    expected_inertia,
    location,
    shapes,
    turn_y,
    write_arm,
)

from cards_core.errors import DescriptionError
from cards_core.formats.cad import Reader, import_cad
from cards_core.formats.cad.importer import recognise
from cards_core.formats.imports.model import write_imported
from cards_core.formats.sdf.reader import read_sdf
from cards_core.spatial import Pose


@pytest.fixture(scope="module")
def reader():
    with Reader() as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("cad")
    (made / "arm.yaml").write_text(CONFIG)
    return made


@pytest.fixture(scope="module")
def arm(folder, reader):
    file = write_arm(folder / "arm.step")
    return import_cad(file, config=folder / "arm.yaml", assembly=reader.read(file))


def check_masses(robot, tolerance=1e-9):
    assert [link.name for link in robot.links] == list(PLACES)
    for link in robot.links:
        mass, com, tensor = expected_inertia(link.name)
        assert link.inertia.mass == pytest.approx(mass, rel=tolerance)
        assert np.abs(link.inertia.com - com).max() < tolerance * 0.3
        assert np.abs(link.inertia.tensor - tensor).max() < tolerance * np.abs(tensor).max()


def expected_points():
    """Return link and place in the link [m] of every via point, by muscle."""
    out = {}
    for name, (link, place) in POINTS.items():
        kind, muscle, *_ = name.split(":")
        if kind == "muscle":
            out.setdefault(muscle, []).append((link, 1e-3 * np.array(place)))
    return out


def check_muscles(robot, tolerance=1e-12):
    wanted = expected_points()
    assert [muscle.name for muscle in robot.muscles] == sorted(wanted)
    assert len(robot.muscles) == 6
    for muscle in robot.muscles:
        assert [item.link for item in muscle.path] == [link for link, _ in wanted[muscle.name]]
        for item, (_, place) in zip(muscle.path, wanted[muscle.name], strict=True):
            assert np.abs(item.position - place).max() < tolerance


def poses(robot, q):
    """Return the pose of every link, by hand: from one joint to the next."""
    values = dict(zip(robot.tree.position_names, q, strict=True))
    out = {"world": Pose()}
    for joint in robot.joints:
        motion = Pose()
        if joint.kind == "revolute":
            (axis,) = joint.axes
            assert np.allclose(axis.axis, [0.0, 1.0, 0.0]) or np.allclose(axis.axis, [0, 0, 1])
            angle = values[joint.name]
            turn = turn_y(angle)
            if np.allclose(axis.axis, [0.0, 0.0, 1.0]):
                turn = np.roll(np.roll(turn, 1, 0), 1, 1)
            motion = Pose(turn, np.zeros(3))
        out[joint.child] = (
            out[joint.parent] @ joint.parent_to_joint @ motion @ joint.joint_to_child
        )
    return out


def check_kinematics(robot):
    """Links stand where the assembly has them, and turn about their pins."""
    assert robot.tree.position_names == ("shoulder", "elbow")
    zero = poses(robot, [0.0, 0.0])
    assert np.allclose(zero["lower_arm"].apply([0.0, 0.0, 0.0])[[0, 2]], [0.3, 0.0], atol=1e-12)
    moved = poses(robot, [0.4, -0.7])
    elbow = turn_y(0.4) @ [0.3, 0.0, 0.0]
    hand = elbow + turn_y(0.4 - 0.7 + 0.3) @ [0.25, 0.02, 0.0]
    node, _ = robot.tree.locate("hand")
    assert node == 1
    frame = robot.frame("hand")
    assert np.allclose(moved["lower_arm"].apply(frame.pose.translation), hand, atol=1e-12)


def test_two_link_arm(arm):
    robot = arm.robot
    check_masses(robot)
    check_muscles(robot)
    check_kinematics(robot)
    assert [joint.kind for joint in robot.joints] == ["fixed", "revolute", "revolute"]
    assert robot.operational_frame == "hand"
    assert {(m.tension_min, m.tension_max) for m in robot.muscles} == {(5.0, 600.0)}
    assert not arm.warnings
    colour = robot.link("upper_arm").visuals[0].rgba
    assert colour == pytest.approx((*COLOURS["upper_arm"], 1.0), abs=2e-3)


def test_what_is_written_reads_back(arm, tmp_path):
    target = write_imported(arm, tmp_path)
    robot = read_sdf(target / "model.sdf")
    check_masses(robot)
    check_muscles(robot)
    report = json.loads((target / "import_report.json").read_text())
    assert report["counts"]["muscles"] == 6
    assert [item["basis"] for item in report["bodies"]] == [
        "aluminium", "steel", "aluminium", "steel", "aluminium",
    ]  # fmt: skip
    assert report["questions"] == {"unit": "mm", "questions": []}
    used = {item["name"] for item in report["features"] if item["used"]}
    assert used == {"base/pin#cylinder1", "lower_arm/beam#hole1"}
    assert len(list(target.glob("*_hull.stl"))) == 5
    mesh = (target / "base_foot.stl").read_bytes()
    count = int.from_bytes(mesh[80:84], "little")
    assert count == 12
    assert len(mesh) == 84 + 50 * count


@pytest.mark.parametrize(("unit", "shown"), [("INCH", "inch"), ("M", "m"), ("CM", "cm")])
def test_units(unit, shown, folder, reader):
    file = write_arm(folder / f"{unit}.step", unit)
    found = import_cad(file, config=folder / "arm.yaml", assembly=reader.read(file))
    assert found.to_dict()["questions"]["unit"] == shown
    # the file has 15 digits of another unit
    check_masses(found.robot, 1e-9)
    check_muscles(found.robot, 1e-12)


def placements(text, product, records):
    """Add items to the shape representation of a product."""
    number = max(int(n) for n in re.findall(r"^#(\d+)", text, re.MULTILINE)) + 1
    names = []
    added = ""
    for record in records:
        first = number
        for line in record:
            line = re.sub(r"@(\d+)", lambda m, start=first: f"#{start + int(m[1])}", line)
            added += f"#{number} = {line};\n"
            number += 1
        names.append(f"#{first}")
    ident = re.search(rf"#(\d+) = PRODUCT\('{product}'", text)[1]
    formation = re.search(rf"#(\d+) = PRODUCT_DEFINITION_FORMATION\([^;]*#{ident}\)", text)[1]
    definition = re.search(rf"#(\d+) = PRODUCT_DEFINITION\([^;]*,#{formation},", text)[1]
    shape = re.search(rf"#(\d+) = PRODUCT_DEFINITION_SHAPE\([^;]*#{definition}\)", text)[1]
    representation = re.search(rf"SHAPE_DEFINITION_REPRESENTATION\(#{shape},#(\d+)\)", text)[1]
    text, count = re.subn(rf"(#{representation} = \w+\('',\()", rf"\g<1>{','.join(names)},", text)
    assert count == 1
    head, tail = text.rsplit("ENDSEC;", 1)
    return head + added + "ENDSEC;" + tail


@pytest.mark.parametrize(("unit", "factor"), [("MM", 1.0), ("INCH", 1 / 25.4)])
def test_placements_and_points_with_names(unit, factor, folder, reader):
    """What CAD programs write for coordinate systems and reference points."""
    file = write_arm(folder / f"named_{unit}.step", unit)

    def point(name, x, y, z):
        return [f"CARTESIAN_POINT('{name}',({factor * x!r},{factor * y!r},{factor * z!r}))"]

    axes = [
        "AXIS2_PLACEMENT_3D('muscle:7:1',@1,@2,@3)",
        *point("", 10.0, 0.0, 25.0),
        "DIRECTION('',(0.,1.,0.))",
        "DIRECTION('',(1.,0.,0.))",
    ]
    text = placements(file.read_text(), "upper_arm", [axes])
    more = [point("Muscle:7:2", 50.0, 0.0, 12.0), point("muscel:7:3", 5.0, 0.0, 12.0)]
    text = placements(text, "lower_arm", more)
    file.write_text(text)
    model = import_cad(file, config=folder / "arm.yaml", assembly=reader.read(file))
    robot = model.robot
    (found,) = [item for item in model.warnings if item.code == "marker-misspelt"]
    line = 1 + text[: text.index("muscel")].count("\n")
    assert found.message.startswith(f"line {line}: ")
    assert "did you mean 'muscle:7:3'?" in found.message
    one, two = robot.muscle("7").path
    assert (one.link, two.link) == ("upper_arm", "lower_arm")
    assert np.allclose(one.position, [0.01, 0.0, 0.025], atol=1e-12)
    assert np.allclose(two.position, [0.05, 0.0, 0.012], atol=1e-12)


def test_placements_that_belong_to_nothing(folder, reader):
    file = write_arm(folder / "lost.step")
    whole = file.read_text()
    head, tail = whole.rsplit("ENDSEC;", 1)
    file.write_text(head + "#99999 = CARTESIAN_POINT('muscle:7:1',(0.,0.,0.));\nENDSEC;" + tail)
    line = head.count("\n") + 1
    with pytest.raises(DescriptionError, match=rf"lost\.step:{line}: placement 'muscle:7:1': bel"):
        reader.read(file)


def test_parts_in_other_files(tmp_path, reader):
    """An exporter's way to write each part into a file: what it names could be any file."""
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox
    from OCP.STEPCAFControl import STEPCAFControl_Writer
    from OCP.STEPControl import STEPControl_StepModelType
    from OCP.TCollection import TCollection_ExtendedString
    from OCP.TDataStd import TDataStd_Name
    from OCP.TDocStd import TDocStd_Document
    from OCP.TopLoc import TopLoc_Location
    from OCP.XCAFDoc import XCAFDoc_DocumentTool

    document = TDocStd_Document(TCollection_ExtendedString("XmlOcaf"))
    shapes = XCAFDoc_DocumentTool.ShapeTool_s(document.Main())
    assembly = shapes.NewShape()
    for name in ("inner", "outer"):
        part = shapes.AddShape(BRepPrimAPI_MakeBox(10.0, 10.0, 10.0).Shape(), False)
        TDataStd_Name.Set_s(part, TCollection_ExtendedString(name))
        shapes.AddComponent(assembly, part, TopLoc_Location())
    shapes.UpdateAssemblies()
    (tmp_path / "robot").mkdir()
    file = tmp_path / "robot" / "main.step"
    writer = STEPCAFControl_Writer()
    assert writer.Transfer(document, STEPControl_StepModelType.STEPControl_AsIs, "part_")
    writer.Write(str(file))
    text = file.read_text()
    line = text[: text.index("DOCUMENT_FILE(")].count("\n") + 1
    inner = "'part_inner.stp'"
    for name in ("'part_inner.stp'", "'../part_inner.stp'", "'/dev/zero'", "'\xff\xe4.stp'"):
        file.write_bytes(text.replace(inner, name).encode("latin-1"))
        shown = "" if "\xff" in name else name
        with pytest.raises(
            DescriptionError,
            match=rf"main\.step:{line}: DOCUMENT_FILE: .*{re.escape(shown)} and 1 more.*one file",
        ):
            reader.read(file)


def test_names_in_other_letters(folder, reader):
    """Names are decoded by Open CASCADE, and by us where they are compared."""
    file = write_arm(folder / "letters.step")
    text = file.read_text()
    text = text.replace("'lower_arm'", "'Unterarm-\\X2\\00D6\\X0\\'")
    point = ["CARTESIAN_POINT('muscle:7:2',(50.,0.,12.))"]
    text = placements(text, r"Unterarm-\\X2\\00D6\\X0\\", [point])
    file.write_text(text)
    found = reader.read(file)
    paths = [item.path for item in found.components]
    assert "two_link_arm/Unterarm-\u00d6/muscle:7:2" in paths


def test_markers_that_are_bodies(folder, reader):
    """Small balls and rings, and wrap surfaces: no mass, the place of their centre or hole."""
    from OCP.BRepPrimAPI import (
        BRepPrimAPI_MakeCylinder,
        BRepPrimAPI_MakeSphere,
        BRepPrimAPI_MakeTorus,
    )

    def extra(step, links):
        upper, lower = links["upper_arm"], links["lower_arm"]
        ball = BRepPrimAPI_MakeSphere(2.0).Shape()
        step.part(upper, "muscle:8:1", ball, location((20.0, 0.0, 25.0)))
        ring = BRepPrimAPI_MakeTorus(6.0, 1.0).Shape()
        step.part(lower, "muscle:8:3", ring, location((80.0, 0.0, 15.0)))
        pulley = BRepPrimAPI_MakeCylinder(12.0, 30.0).Shape()
        step.part(upper, "wrap:pulley:8:2", pulley, location((300.0, 0.0, 0.0)))
        step.part(lower, "wrap:bead", BRepPrimAPI_MakeSphere(9.0).Shape(), location((30, 0, 0)))
        loop = BRepPrimAPI_MakeTorus(7.0, 1.5).Shape()
        step.part(lower, "wrap:loop", loop, location((60, 0, 0)))

    file = write_arm(folder / "bodies.step", extra=extra)
    found = import_cad(file, config=folder / "arm.yaml", assembly=reader.read(file))
    robot = found.robot
    check_masses(robot)
    first, wrap, last = robot.muscle("8").path
    assert np.allclose(first.position, [0.02, 0.0, 0.025], atol=1e-9)
    assert np.allclose(last.position, [0.08, 0.0, 0.015], atol=1e-12)
    assert wrap.surface == "pulley"
    surfaces = {item.name: item for item in robot.wrap_surfaces}
    pulley = surfaces["pulley"]
    assert pulley.link == "upper_arm"
    assert (pulley.geometry.radius, pulley.geometry.length) == pytest.approx((0.012, 0.03))
    assert np.allclose(pulley.pose.translation, [0.3, 0.0, 0.015], atol=1e-12)
    assert surfaces["bead"].geometry.radius == pytest.approx(0.009)
    loop = surfaces["loop"].geometry
    assert (loop.radius, loop.tube_radius) == pytest.approx((0.007, 0.0015))


@pytest.mark.parametrize("per_metre", [False, True], ids=["g/cm3", "kg/m3"])
def test_material_of_the_file_and_exceptions(per_metre, folder, reader):
    """The file's density counts before the general material, a stated mass before both."""
    from OCP.TCollection import TCollection_HAsciiString
    from OCP.XCAFDoc import XCAFDoc_DocumentTool

    step = Step("parts")
    materials = XCAFDoc_DocumentTool.MaterialTool_s(step.document.Main())
    links = [step.assembly(step.top, name, location((0, 0, 0))) for name in ("one", "two")]
    words = [TCollection_HAsciiString(text) for text in ("PTFE", "", "density", "POSITIVE")]
    solids = shapes()
    label = step.part(links[0], "heavy", solids["base", "foot"], location((0, 0, 0)))
    name, description, density, kind = words
    materials.SetMaterial(label, name, description, 2.2, density, kind)  # g/cm^3
    step.part(links[1], "light", solids["base", "pin"], location((0, 0, 0)))
    step.part(links[1], "motor", solids["upper_arm", "pin"], location((0, 0, 0)))
    file = step.write(folder / "material.step")
    # Open CASCADE writes g^3 cm^2; other programs write what is meant
    text = file.read_text()
    (mass,) = re.findall(r"DERIVED_UNIT_ELEMENT\((#\d+),3\.\)", text)
    (length,) = re.findall(r"DERIVED_UNIT_ELEMENT\((#\d+),2\.\)", text)
    text = text.replace(f"({mass},3.)", f"({mass},1.)").replace(
        f"({length},2.)", f"({length},-3.)"
    )
    if per_metre:
        units = {mass: ("MASS", ".KILO.,.GRAM."), length: ("LENGTH", "$,.METRE.")}
        for number, (kind, unit) in units.items():
            record = f"{number} = ( {kind}_UNIT() NAMED_UNIT(*) SI_UNIT({unit}) );"
            text = re.sub(rf"{number} = [^;]*;", record, text)
        text = text.replace("'density',2.2,", "'density',2200.,")
    file.write_text(text)
    config = folder / "material.yaml"
    config.write_text(
        "material: pla\nbodies:\n  two/motor: {mass: 0.25}\n"
        "joints:\n  weld: {kind: fixed, parent: one, child: two}\n"
    )
    found = recognise(file, config=config, assembly=reader.read(file))
    density = {body.path: (body.density, body.basis) for body in found.bodies}
    assert density["one/heavy"] == (pytest.approx(2200.0), "the file")
    assert density["two/light"] == (1240.0, "pla")
    motor = next(body for body in found.bodies if body.path == "two/motor")
    assert motor.inertia.mass == pytest.approx(0.25, rel=1e-14)
    _, radius, length = PINS["upper_arm", "pin"]
    axial = np.linalg.eigvalsh(motor.inertia.tensor)[0]
    assert axial == pytest.approx(0.25 * (1e-3 * radius) ** 2 / 2, rel=1e-9)
    assert length > radius


def test_a_part_used_twice_is_one_mesh(folder, reader):
    step = Step("twins")
    shape = shapes()["base", "foot"]
    from OCP.TDF import TDF_Label

    label = step.shapes.AddShape(shape, False)
    step.name(label, "foot")
    for name, place in (("left", (0, 0, 0)), ("right", (0, 500, 0))):
        component = step.shapes.AddComponent(step.top, label, location(place))
        assert isinstance(component, TDF_Label)
        step.name(component, name)
    file = step.write(folder / "twins.step")
    config = folder / "twins.yaml"
    config.write_text(
        "material: steel\njoints: {weld: {kind: fixed, parent: left, child: right}}\n"
    )
    found = import_cad(file, config=config, assembly=reader.read(file))
    assert [link.name for link in found.robot.links] == ["left", "right"]
    assert sorted(found.files) == ["left.stl", "left_hull.stl"]
    left, right = found.robot.links
    assert left.inertia.mass == right.inertia.mass
    # link frames are those of the components, so both have the same numbers
    assert np.allclose(left.inertia.com, right.inertia.com)
    joint = next(joint for joint in found.robot.joints if joint.name == "weld")
    placed = joint.parent_to_joint @ joint.joint_to_child
    assert np.allclose(placed.translation, [0.0, 0.5, 0.0])


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_points_that_are_not_finite(value, folder, reader):
    file = write_arm(folder / "finite.step")
    assembly = reader.read(file)
    solid = next(item.solids[0] for item in assembly.components if item.solids)
    solid.vertices[0, 0] = value
    with pytest.raises(DescriptionError, match=r"body '.*points that are not finite .*ignore"):
        import_cad(file, assembly=assembly)


def test_nothing_is_joined_silently(folder, reader):
    file = write_arm(folder / "silent.step")
    with pytest.raises(DescriptionError, match=r"3 links and 0 joints.*--propose"):
        import_cad(file, assembly=reader.read(file))


def test_joints_are_proposed(folder, reader):
    from cards_core.formats.cad.propose import propose

    file = write_arm(folder / "proposed.step")
    assembly = reader.read(file)
    found = recognise(file, assembly=assembly)
    assert [item.kind for item in found.candidates] == ["revolute", "revolute"]
    text = propose(found)
    config = folder / "proposed.yaml"
    config.write_text(text)
    with pytest.raises(DescriptionError, match=r"proposed\.yaml:\d+: joints\..*nobody"):
        import_cad(file, config=config, assembly=assembly)
    config.write_text(text.replace("confirmed: false", "confirmed: true"))
    robot = import_cad(file, config=config, assembly=assembly).robot
    shoulder, elbow = (joint for joint in robot.joints if joint.kind == "revolute")
    assert (shoulder.parent, shoulder.child) == ("base", "upper_arm")
    assert (elbow.parent, elbow.child) == ("upper_arm", "lower_arm")
    for joint, at in ((shoulder, [0.0, 0.0, 0.0]), (elbow, [0.3, 0.02, 0.0])):
        assert np.allclose(np.abs(joint.axes[0].axis), [0.0, 1.0, 0.0], atol=1e-12)
        assert np.allclose(joint.parent_to_joint.translation, at, atol=1e-12)


def test_open_cascade_is_missing(monkeypatch, tmp_path):
    import importlib.util

    (tmp_path / "arm.step").write_text("")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Exception, match="pip install cadquery-ocp-novtk"):
        import_cad(tmp_path / "arm.step")
