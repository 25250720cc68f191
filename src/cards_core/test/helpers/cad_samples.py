"""A two-link arm as a CAD assembly, made with Open CASCADE, with its masses in closed form.

Millimetres, in the x-z plane; a pin of the base runs in a hole of the upper arm, a pin of the
upper arm in a hole of the lower arm, both along y.
"""

from __future__ import annotations

import math
import zipfile
from pathlib import Path

import numpy as np

PLACES = {"base": (0.0, 0.0, 0.0), "upper_arm": (0.0, 0.0, 0.0), "lower_arm": (300.0, 0.0, 0.0)}
"""Origin of each sub-assembly in the arm."""

TURNED = {"lower_arm": 0.3}
"""Angle about y at which a sub-assembly stands in the arm, [rad]."""

# blocks: corner, edges, radius of a hole along y at the origin; pins: centre, radius, length
BLOCKS = {
    ("base", "foot"): ((-60.0, -40.0, -100.0), (120.0, 80.0, 40.0), 0.0),
    ("upper_arm", "beam"): ((-15.0, -10.0, -15.0), (330.0, 20.0, 30.0), 5.0),
    ("lower_arm", "beam"): ((-12.0, 12.0, -10.0), (262.0, 16.0, 20.0), 4.0),
}
PINS = {
    ("base", "pin"): ((0.0, 0.0, 0.0), 5.0, 60.0),
    ("upper_arm", "pin"): ((300.0, 20.0, 0.0), 4.0, 36.0),
}
POINTS = {
    "muscle:1:1": ("base", (-60.0, 0.0, 45.0)),
    "muscle:1:2": ("upper_arm", (110.0, 0.0, 20.0)),
    "muscle:2:1": ("base", (-60.0, 0.0, -45.0)),
    "muscle:2:2": ("upper_arm", (110.0, 0.0, -20.0)),
    "muscle:3:1": ("upper_arm", (60.0, 0.0, 20.0)),
    "muscle:3:2": ("upper_arm", (290.0, 0.0, 30.0)),
    "muscle:3:3": ("lower_arm", (90.0, 0.0, 15.0)),
    "muscle:4:1": ("upper_arm", (60.0, 0.0, -20.0)),
    "muscle:4:2": ("upper_arm", (290.0, 0.0, -30.0)),
    "muscle:4:3": ("lower_arm", (90.0, 0.0, -15.0)),
    "muscle:5:1": ("base", (-60.0, 0.0, 60.0)),
    "muscle:5:2": ("upper_arm", (280.0, 0.0, 40.0)),
    "muscle:5:3": ("lower_arm", (130.0, 0.0, 15.0)),
    "muscle:6:1": ("base", (-60.0, 0.0, -60.0)),
    "muscle:6:2": ("upper_arm", (280.0, 0.0, -40.0)),
    "muscle:6:3": ("lower_arm", (130.0, 0.0, -15.0)),
    "frame:hand": ("lower_arm", (250.0, 20.0, 0.0)),
}
"""Name to link and place in the link's frame, [mm]."""

COLOURS = {"base": (0.3, 0.3, 0.35), "upper_arm": (0.2, 0.45, 0.7), "lower_arm": (0.8, 0.5, 0.2)}

CONFIG = """\
material: aluminium
bodies:
  "*/pin": {material: steel}
joints:
  shoulder: {kind: revolute, parent: base, child: upper_arm, at: "base/pin#cylinder1",
             axis: [0, 1, 0], limits: [-1.2, 1.2]}
  elbow: {kind: revolute, parent: upper_arm, child: lower_arm, at: "lower_arm/beam#hole1",
          axis: [0, 1, 0], limits: [-1.2, 1.2]}
muscle_defaults: {tension: [5, 600]}
"""

DENSITY = {"beam": 2700.0, "foot": 2700.0, "pin": 7850.0}


def turn_y(angle):
    """Rotation about y."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def expected_inertia(link):
    """Return mass, centre and inertia about it of a link in its frame, in closed form, SI."""
    parts = []
    for (owner, name), (corner, edges, hole) in BLOCKS.items():
        if owner == link:
            a, b, c = (1e-3 * e for e in edges)
            centre = 1e-3 * (np.array(corner) + 0.5 * np.array(edges))
            rho = DENSITY[name]
            m = rho * a * b * c
            parts.append(
                (m, centre, m / 12 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b]))
            )
            if hole:
                r = 1e-3 * hole
                m = rho * math.pi * r * r * b
                side = m * (3 * r * r + b * b) / 12
                middle = np.array([0.0, centre[1], 0.0])
                parts.append((-m, middle, -np.diag([side, m * r * r / 2, side])))
    for (owner, name), (centre, radius, length) in PINS.items():
        if owner == link:
            r, h = 1e-3 * radius, 1e-3 * length
            m = DENSITY[name] * math.pi * r * r * h
            side = m * (3 * r * r + h * h) / 12
            parts.append((m, 1e-3 * np.array(centre), np.diag([side, m * r * r / 2, side])))
    mass = sum(m for m, _, _ in parts)
    com = sum(m * p for m, p, _ in parts) / mass
    tensor = np.zeros((3, 3))
    for m, p, own in parts:
        d = p - com
        tensor += own + m * (d @ d * np.eye(3) - np.outer(d, d))
    return mass, com, tensor


def shapes():
    """Return the parts as shapes of Open CASCADE, by (link, part)."""
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox, BRepPrimAPI_MakeCylinder
    from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt

    def along_y(centre, radius, length):
        x, y, z = centre
        frame = gp_Ax2(gp_Pnt(x, y - length / 2, z), gp_Dir(0.0, 1.0, 0.0))
        return BRepPrimAPI_MakeCylinder(frame, radius, length).Shape()

    out = {}
    for key, (corner, edges, hole) in BLOCKS.items():
        far = [c + e for c, e in zip(corner, edges, strict=True)]
        block = BRepPrimAPI_MakeBox(gp_Pnt(*corner), gp_Pnt(*far)).Shape()
        if hole:
            block = BRepAlgoAPI_Cut(block, along_y((0.0, 0.0, 0.0), hole, 400.0)).Shape()
        out[key] = block
    for key, (centre, radius, length) in PINS.items():
        out[key] = along_y(centre, radius, length)
    return out


def location(place, angle=0.0):
    """Return a placement of Open CASCADE: moved, and turned about y."""
    from OCP.gp import gp_Ax1, gp_Dir, gp_Pnt, gp_Trsf, gp_Vec
    from OCP.TopLoc import TopLoc_Location

    turn, move = gp_Trsf(), gp_Trsf()
    turn.SetRotation(gp_Ax1(gp_Pnt(0, 0, 0), gp_Dir(0, 1, 0)), angle)
    move.SetTranslation(gp_Vec(*place))
    return TopLoc_Location(move.Multiplied(turn))


class Step:
    """An assembly that is written as a STEP file."""

    def __init__(self, name):
        from OCP.TCollection import TCollection_ExtendedString
        from OCP.TDocStd import TDocStd_Document
        from OCP.XCAFDoc import XCAFDoc_DocumentTool

        self.document = TDocStd_Document(TCollection_ExtendedString("XmlOcaf"))
        XCAFDoc_DocumentTool.Set_s(self.document.Main())
        self.shapes = XCAFDoc_DocumentTool.ShapeTool_s(self.document.Main())
        self.colours = XCAFDoc_DocumentTool.ColorTool_s(self.document.Main())
        self.top = self.shapes.NewShape()
        self.name(self.top, name)

    @staticmethod
    def name(label, name):
        from OCP.TCollection import TCollection_ExtendedString
        from OCP.TDataStd import TDataStd_Name

        TDataStd_Name.Set_s(label, TCollection_ExtendedString(name))

    def assembly(self, parent, name, place):
        label = self.shapes.NewShape()
        self.name(label, name)
        self.shapes.AddComponent(parent, label, place)
        return label

    def part(self, parent, name, shape, place, *, colour=None, instance=None):
        from OCP.Quantity import Quantity_Color, Quantity_TypeOfColor
        from OCP.XCAFDoc import XCAFDoc_ColorType

        label = self.shapes.AddShape(shape, False)
        self.name(label, name)
        if colour:
            value = Quantity_Color(*colour, Quantity_TypeOfColor.Quantity_TOC_sRGB)
            self.colours.SetColor(label, value, XCAFDoc_ColorType.XCAFDoc_ColorSurf)
        component = self.shapes.AddComponent(parent, label, place)
        if instance:
            self.name(component, instance)
        return label

    def frame(self, parent, name, place):
        from OCP.BRep import BRep_Builder
        from OCP.TopoDS import TopoDS_Compound

        nothing = TopoDS_Compound()
        BRep_Builder().MakeCompound(nothing)
        self.part(parent, name, nothing, place)

    def write(self, path, unit="MM"):
        from OCP.IFSelect import IFSelect_ReturnStatus
        from OCP.Interface import Interface_Static
        from OCP.STEPCAFControl import STEPCAFControl_Writer
        from OCP.STEPControl import STEPControl_StepModelType

        self.shapes.UpdateAssemblies()
        writer = STEPCAFControl_Writer()
        writer.SetNameMode(True)
        writer.SetColorMode(True)
        Interface_Static.SetCVal_s("write.step.unit", unit)
        try:
            assert writer.Transfer(self.document, STEPControl_StepModelType.STEPControl_AsIs)
            assert writer.Write(str(path)) == IFSelect_ReturnStatus.IFSelect_RetDone
        finally:
            Interface_Static.SetCVal_s("write.step.unit", "MM")
        return Path(path)


def write_arm(path, unit="MM", extra=None):
    """Write the arm as a STEP file.

    Args:
        path: The file.
        unit: Of length, as Open CASCADE calls it: MM, INCH, M.
        extra: Called with the assembly and its links before it is written.
    """
    step = Step("two_link_arm")
    solids = shapes()
    links = {}
    for link, place in PLACES.items():
        links[link] = step.assembly(step.top, link, location(place, TURNED.get(link, 0.0)))
        for (owner, name), shape in solids.items():
            if owner == link:
                step.part(links[link], name, shape, location((0, 0, 0)), colour=COLOURS[link])
    for name, (link, place) in POINTS.items():
        step.frame(links[link], name, location(place))
    if extra:
        extra(step, links)
    return step.write(path, unit)


# FreeCAD ---------------------------------------------------------------------------------------


def xml_property(name, kind, inside):
    return f'<Property name="{name}" type="App::{kind}">{inside}</Property>'


def xml_placement(place, angle=0.0, name="Placement"):
    x, y, z = place
    s, c = math.sin(angle / 2), math.cos(angle / 2)
    return xml_property(
        name,
        "PropertyPlacement",
        f'<PropertyPlacement Px="{x!r}" Py="{y!r}" Pz="{z!r}" '
        f'Q0="0" Q1="{s!r}" Q2="0" Q3="{c!r}"/>',
    )


def xml_label(text, name="Label"):
    return xml_property(name, "PropertyString", f'<String value="{text}"/>')


def xml_links(name, values):
    inside = "".join(f'<Link value="{value}"/>' for value in values)
    return xml_property(
        name, "PropertyLinkList", f'<LinkList count="{len(values)}">{inside}</LinkList>'
    )


def xml_choice(name, words, word):
    listed = "".join(f'<Enum value="{w}"/>' for w in words)
    return xml_property(
        name,
        "PropertyEnumeration",
        f'<Integer value="{words.index(word)}" CustomEnum="true"/>'
        f'<CustomEnumList count="{len(words)}">{listed}</CustomEnumList>',
    )


def xml_float(name, value):
    return xml_property(name, "PropertyFloat", f'<Float value="{value!r}"/>')


def brep(shape, folder):
    """Return a shape as FreeCAD stores it."""
    from OCP.BRepTools import BRepTools

    file = Path(folder) / "shape.brp"
    assert BRepTools.Write_s(shape, str(file))
    return file.read_bytes()


def arm_objects(folder, cross=False):
    """Return the objects of the arm as a FreeCAD document: (name, type, properties), and files.

    Args:
        folder: For scratch files.
        cross: Add links and joints of the CROSS workbench.
    """
    objects, files = [], {}
    solids = shapes()
    number = 0
    for link, place in PLACES.items():
        members = []
        for (owner, name), shape in solids.items():
            if owner != link:
                continue
            number += 1
            files[f"PartShape{number}.brp"] = brep(shape, folder)
            inside = f'<Part file="PartShape{number}.brp"/>'
            members.append(f"Solid{number}")
            objects.append(
                (
                    members[-1],
                    "Part::Feature",
                    xml_label(name)
                    + xml_placement((0, 0, 0))
                    + f'<Property name="Shape" type="Part::PropertyPartShape">{inside}</Property>',
                )
            )
        for name, (owner, point) in POINTS.items():
            if owner == link:
                number += 1
                members.append(f"LCS{number}")
                objects.append(
                    (
                        members[-1],
                        "PartDesign::CoordinateSystem",
                        xml_label(name) + xml_placement(point),
                    )
                )
        angle = TURNED.get(link, 0.0)
        own = xml_label(link) + xml_placement(place, angle) + xml_links("Group", members)
        objects.append((f"Part_{link}", "App::Part", own))
    if cross:
        kinds = ["fixed", "prismatic", "revolute", "continuous", "planar", "floating"]
        names = list(PLACES)
        for link in names:
            # the link's frame has the joint's axis as z; the part stands in it as it did
            objects.append(
                (
                    f"Link_{link}",
                    "App::FeaturePython",
                    xml_label(link)
                    + xml_label("Cross::Link", "_Type")
                    + xml_links("Real", [f"Part_{link}"])
                    + xml_property(
                        "MountedPlacement",
                        "PropertyPlacement",
                        mounted(link),
                    ),
                )
            )
        for joint, parent, child in (
            ("shoulder", "base", "upper_arm"),
            ("elbow", "upper_arm", "lower_arm"),
        ):
            objects.append(
                (
                    f"Joint_{joint}",
                    "App::FeaturePython",
                    xml_label(joint)
                    + xml_label("Cross::Joint", "_Type")
                    + xml_choice("Type", kinds, "revolute")
                    + xml_choice("Parent", names, parent)
                    + xml_choice("Child", names, child)
                    + xml_property("Origin", "PropertyPlacement", origin(child))
                    + xml_float("LowerLimit", -60.0)
                    + xml_float("UpperLimit", 60.0),
                )
            )
    return objects, files


def placement_element(pose):
    from cards_core.spatial import matrix_quaternion

    w, x, y, z = matrix_quaternion(pose.rotation)
    px, py, pz = 1e3 * pose.translation
    return (
        f'<PropertyPlacement Px="{float(px)!r}" Py="{float(py)!r}" Pz="{float(pz)!r}" '
        f'Q0="{float(x)!r}" Q1="{float(y)!r}" Q2="{float(z)!r}" Q3="{float(w)!r}"/>'
    )


def cross_pose(link):
    """Return the frame of a CROSS link in the arm: at its joint, z along the joint's axis."""
    from cards_core.spatial import Pose, axis_rotation

    if link == "base":
        return Pose()
    # z along y of the arm
    tilt = axis_rotation(np.array([1.0, 0.0, 0.0]), -math.pi / 2)
    return Pose(turn_y(TURNED.get(link, 0.0)) @ tilt, 1e-3 * np.array(PLACES[link]))


def part_pose(link):
    from cards_core.spatial import Pose

    return Pose(turn_y(TURNED.get(link, 0.0)), 1e-3 * np.array(PLACES[link]))


def mounted(link):
    return placement_element(cross_pose(link).inverse() @ part_pose(link))


def origin(child):
    parent = {"upper_arm": "base", "lower_arm": "upper_arm"}[child]
    return placement_element(cross_pose(parent).inverse() @ cross_pose(child))


def write_document(path, objects, files):
    """Write a FreeCAD document."""
    declared = "".join(f'<Object type="{kind}" name="{name}"/>' for name, kind, _ in objects)
    data = "".join(
        f'<Object name="{name}"><Properties Count="1">{inside}</Properties></Object>\n'
        for name, _, inside in objects
    )
    text = (
        "<?xml version='1.0' encoding='utf-8'?>\n<Document SchemaVersion=\"4\">\n"
        f"<Properties>{xml_label('two_link_arm')}</Properties>\n"
        f"<Objects>{declared}</Objects>\n<ObjectData>{data}</ObjectData>\n</Document>\n"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Document.xml", text)
        for name, content in files.items():
            archive.writestr(name, content)
    return Path(path)


def write_arm_document(path, cross=False):
    """Write the arm as a FreeCAD document."""
    path = Path(path)
    return write_document(path, *arm_objects(path.parent, cross))
