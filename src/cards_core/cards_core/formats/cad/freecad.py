"""FreeCAD documents (``.FCStd``) without FreeCAD: ``Document.xml`` and the shapes beside it.

Links and joints of the CROSS workbench (https://github.com/galou/freecad.cross) are read where a
document has them. Lengths in a document are millimetres, angles degrees.
"""

from __future__ import annotations

import math
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from OCP.BinTools import BinTools
from OCP.BRep import BRep_Builder
from OCP.BRepTools import BRepTools
from OCP.TopLoc import TopLoc_Location
from OCP.TopoDS import TopoDS_Shape

from cards_core.errors import DescriptionError
from cards_core.formats.cad.assembly import (
    Assembly,
    Component,
    GivenJoint,
    GivenLink,
    Solid,
    unique_path,
)
from cards_core.formats.cad.occt import (
    MM,
    measure,
    points_of,
    shells_of,
    solids_of,
    working_on,
)
from cards_core.formats.imports.markers import MARKER, meant_marker, misspelt
from cards_core.formats.xml_lines import XmlElement, parse_xml, shorten
from cards_core.spatial import Pose, quaternion_matrix
from cards_core.typing import Array, Vector3

MAX_UNPACKED = 500_000_000
"""Most that the files of a document may hold together, [bytes]."""

MAX_DEPTH = 50
MAX_COMPONENTS = 20_000

CONTAINERS = ("App::Part", "Assembly::AssemblyObject")
GROUPS = ("App::DocumentObjectGroup", "App::DocumentObjectGroupPython")
DATUMS = re.compile(
    r"PartDesign::(CoordinateSystem|Point|Line|Plane|ShapeBinder|SubShapeBinder)"
    r"|Part::(Datum\w+|LocalCoordinateSystem)|App::(LocalCoordinateSystem|Point|Line|Plane|Origin)"
)
CONSUMING = ("Base", "Tool", "Tools", "Shapes", "Source", "Sources", "Profile", "Sections")
"""Properties by which a shape is made of other shapes, which are then no bodies themselves."""

LIMITLESS = {"continuous", "fixed", "floating", "planar"}
KINDS = {"continuous": "revolute", "floating": "free"}


def read_freecad(path: Path, shown: str, tolerance: float) -> Assembly:
    """Read a FreeCAD document.

    Args:
        path: The file.
        shown: Its name in messages.
        tolerance: Largest distance of a mesh from its surface, [m].

    Raises:
        DescriptionError: It cannot be read, or has no bodies.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _Document(archive, shown, tolerance).assembly()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DescriptionError(
            f"the archive is damaged: {shorten(str(error), 200)}",
            source=shown,
            expected="a document that FreeCAD opens; save it again",
        ) from None


class _Object:
    """An object of a document with its properties."""

    def __init__(self, name: str, kind: str, element: XmlElement) -> None:
        self.name = name
        self.kind = kind
        self.element = element
        self.properties: dict[str, XmlElement] = {}
        for block in element.children("Properties"):
            for item in block.children("Property"):
                self.properties[item.get("name") or ""] = item

    def value(self, name: str, tag: str, attribute: str = "value") -> str | None:
        item = self.properties.get(name)
        found = item.child(tag) if item is not None else None
        return None if found is None else found.get(attribute)

    @property
    def label(self) -> str:
        return self.value("Label", "String") or self.name

    def number(self, name: str) -> float:
        """Return a number; 0 if there is none."""
        text = self.value(name, "Float")
        return 0.0 if text is None else self.finite(text, name)

    def finite(self, text: str | None, name: str) -> float:
        try:
            out = float(text or "")
        except ValueError:
            out = math.nan
        if not math.isfinite(out):
            raise self.error(f"{name} is '{text}'", "a finite number")
        return out

    def flag(self, name: str, default: bool) -> bool:
        text = self.value(name, "Bool")
        return default if text is None else text == "true"

    def links(self, name: str) -> list[str]:
        """Return the objects that a property of links names."""
        item = self.properties.get(name)
        if item is None:
            return []
        found = []
        for element in item.iter():
            if element.tag == "XLink":
                if element.get("file"):
                    raise self.error(
                        f"{name} is in another document, {element.get('file')}",
                        "everything in one document",
                    )
                found.append(element.get("name") or "")
            elif element.tag in ("Link", "LinkSub"):
                found.append(element.get("value") or element.get("obj") or "")
        return [name for name in found if name]

    def choice(self, name: str) -> str:
        """Return the text that an enumeration has."""
        item = self.properties.get(name)
        number = None if item is None else item.child("Integer")
        if item is None or number is None:
            return ""
        words = [e.get("value") or "" for e in item.iter("Enum")]
        text = number.get("value") or ""
        index = int(text) if text.isdecimal() else -1
        if not 0 <= index < len(words):
            raise self.error(f"{name} is choice {text} of {len(words)}", "one of its choices")
        return words[index]

    def placement(self, name: str = "Placement") -> Pose:
        item = self.properties.get(name)
        found = item.child("PropertyPlacement") if item is not None else None
        if found is None:
            return Pose()
        p = [self.finite(found.get(f"P{axis}"), f"{name}.P{axis}") for axis in "xyz"]
        q = [self.finite(found.get(f"Q{i}"), f"{name}.Q{i}") for i in (3, 0, 1, 2)]
        if abs(math.sqrt(sum(v * v for v in q)) - 1.0) > 1e-6:
            raise self.error(f"the quaternion of {name} is {q}", "one of length 1")
        return Pose(quaternion_matrix(q), np.array(p) * MM)

    def error(self, problem: str, expected: str) -> DescriptionError:
        return self.element.error(problem, expected, element=f"object '{self.label}'")


class _Document:
    """Reads the objects and builds the components."""

    def __init__(self, archive: zipfile.ZipFile, shown: str, tolerance: float) -> None:
        self.archive = archive
        self.shown = shown
        self.tolerance = tolerance
        self.remarks: list[tuple[str, str, str]] = []
        self.paths: set[str] = set()
        self.components: list[Component] = []
        self.shapes: dict[str, tuple[tuple[Solid, ...], Array, int]] = {}
        total = sum(item.file_size for item in archive.infolist())
        if total > MAX_UNPACKED:
            raise DescriptionError(
                f"its files hold {total} bytes",
                source=shown,
                expected=f"at most {MAX_UNPACKED} bytes",
            )
        self.root = parse_xml(self.file("Document.xml"), name=f"{shown}/Document.xml")
        self.objects = self.read_objects()
        self.colours = self.read_colours()

    def file(self, name: str) -> bytes:
        """Return a file of the archive, which may hold more than it says."""
        try:
            with self.archive.open(name) as stream:
                data = stream.read(MAX_UNPACKED + 1)
        except KeyError:
            raise DescriptionError(
                f"has no file '{name}'", source=self.shown, expected="a document of FreeCAD"
            ) from None
        except (OSError, UnicodeError, ValueError, OverflowError) as error:
            raise DescriptionError(
                f"the file '{name}' in it cannot be read: {error}",
                source=self.shown,
                expected="a document that FreeCAD opens; save it again",
            ) from None
        if len(data) > MAX_UNPACKED:
            raise DescriptionError(
                f"the file '{name}' in it is too large",
                source=self.shown,
                expected=f"at most {MAX_UNPACKED} bytes",
            )
        return data

    def read_objects(self) -> dict[str, _Object]:
        if self.root.tag != "Document":
            raise self.root.error("is no FreeCAD document", "<Document>")
        declared, data = self.root.child("Objects"), self.root.child("ObjectData")
        if declared is None or data is None:
            raise self.root.error("has no objects", "<Objects> and <ObjectData>")
        kinds = {e.get("name") or "": e.get("type") or "" for e in declared.children("Object")}
        out = {}
        for element in data.children("Object"):
            name = element.get("name") or ""
            if name not in kinds:
                raise element.error("is not declared in <Objects>", "one of the objects there")
            out[name] = _Object(name, kinds[name], element)
        return out

    def read_colours(self) -> dict[str, tuple[float, float, float, float]]:
        """Return the colours that ``GuiDocument.xml`` has, if there is one."""
        if "GuiDocument.xml" not in self.archive.namelist():
            return {}
        root = parse_xml(self.file("GuiDocument.xml"), name=f"{self.shown}/GuiDocument.xml")
        out = {}
        for provider in root.iter("ViewProvider"):
            for item in provider.iter("Property"):
                colour = next(item.iter("PropertyColor"), None)
                text = colour.get("value") if colour is not None else None
                if item.get("name") == "ShapeColor" and text and text.isdecimal():
                    value = int(text) & 0xFFFFFFFF
                    r, g, b = (((value >> shift) & 255) / 255.0 for shift in (24, 16, 8))
                    out[provider.get("name") or ""] = (round(r, 4), round(g, 4), round(b, 4), 1.0)
        return out

    # Components ------------------------------------------------------------------------------

    def assembly(self) -> Assembly:
        links = [o for o in self.objects.values() if o.value("_Type", "String") == "Cross::Link"]
        given_links: tuple[GivenLink, ...] = ()
        given_joints: tuple[GivenJoint, ...] = ()
        if links:
            given_links, given_joints = self.cross(links)
        else:
            for item in self.tops():
                self.visit(item, -1, Pose(), 0)
        if not self.components:
            raise self.root.error("has no bodies", "an assembly of bodies")
        texts = {
            item.get("name"): text.get("value")
            for block in self.root.children("Properties")
            for item in block.children("Property")
            if (text := item.child("String")) is not None
        }
        return Assembly(
            texts.get("Label") or Path(self.shown).stem,
            "FreeCAD",
            "mm",
            tuple(self.components),
            given_links,
            given_joints,
            tuple(self.remarks),
        )

    def tops(self) -> list[_Object]:
        """Return the objects in no container, not used up by others."""
        inside = {
            name
            for item in self.objects.values()
            if item.kind in (*CONTAINERS, *GROUPS, "PartDesign::Body")
            for name in item.links("Group")
        }
        return [item for name, item in self.objects.items() if name not in inside]

    def used_up(self) -> set[str]:
        if not hasattr(self, "_used_up"):
            self._used_up = {
                name
                for item in self.objects.values()
                if "Shape" in item.properties and not item.kind.startswith("App::")
                for key in CONSUMING
                for name in item.links(key)
            }
        return self._used_up

    def visit(
        self,
        item: _Object,
        parent: int,
        above: Pose,
        depth: int,
        *,
        name: str = "",
        replaced: Pose | None = None,
    ) -> None:
        """Add an object and what is in it.

        Args:
            item: The object.
            parent: Index of the component around it, or -1.
            above: Pose of that component.
            depth: How many objects are around it.
            name: Name to use in place of the label.
            replaced: Placement to use in place of its own.
        """
        if depth > MAX_DEPTH or len(self.components) >= MAX_COMPONENTS:
            raise item.error(
                f"nested more than {MAX_DEPTH} deep, or one of more than {MAX_COMPONENTS}",
                "a smaller document",
            )
        label = name or item.label
        marker = re.match(MARKER, label) is not None
        hidden = not item.flag("Visibility", True) and replaced is None and not marker
        if item.kind in GROUPS:
            for inner in self.members(item):
                self.visit(inner, parent, above, depth + 1)
            return
        own = item.placement() if replaced is None else replaced
        if item.kind.startswith("App::Link") and item.kind != "App::LinkGroup":
            self.visit_link(item, parent, above, depth, label=label, replaced=replaced)
            return
        container = item.kind in CONTAINERS
        body = item.kind == "PartDesign::Body"
        shape = "Shape" in item.properties and DATUMS.fullmatch(item.kind) is None
        if item.kind.startswith(("Sketcher::", "App::Origin", "App::Plane", "App::Line")):
            return
        if not (container or body or marker or shape):
            self.misspelt(label)
            return
        if not marker and replaced is None and item.name in self.used_up():
            return
        if hidden:
            self.remarks.append(("hidden", f"object '{label}'", "hidden, and so left out"))
            return
        pose = above @ own
        solids, points, shells = self.part(item) if shape else ((), np.zeros((0, 3)), 0)
        if not (container or body or marker) and not solids and not shells and not len(points):
            self.misspelt(label)
            return  # sketches, datums and the like
        path = unique_path(self.paths, "" if parent < 0 else self.components[parent].path, label)
        index = len(self.components)
        self.components.append(
            Component(path, label, parent, pose, solids, points, container, shells)
        )
        for inner in self.members(item) if container or body else ():
            # of a body's features only what has a name of its own counts: its shape is there
            if not body or re.match(MARKER, inner.label):
                self.visit(inner, index, pose, depth + 1)
            else:
                self.misspelt(inner.label)

    def misspelt(self, label: str) -> None:
        """Remark on an object that is left out and nearly has the name of a marker."""
        if (meant := meant_marker(label)) is not None:
            self.remarks.append(("marker-misspelt", f"object '{label}'", misspelt(meant)))

    def visit_link(
        self,
        item: _Object,
        parent: int,
        above: Pose,
        depth: int,
        *,
        label: str,
        replaced: Pose | None,
    ) -> None:
        """Add what an ``App::Link`` shows."""
        targets = item.links("LinkedObject")
        if not targets:
            raise item.error("links to nothing", "a linked object")
        for key in ("Scale", "ElementCount"):
            text = item.value(key, "Float") or item.value(key, "Integer")
            neutral = "1" if key == "Scale" else "0"
            if text is not None and float(text) != float(neutral):
                raise item.error(f"{key} is {text}", f"{neutral}")
        key = "LinkPlacement" if "LinkPlacement" in item.properties else "Placement"
        place = item.placement(key) if replaced is None else replaced
        target = self.object(targets[0], item)
        if item.flag("LinkTransform", False):
            place = place @ target.placement()
        if not item.flag("Visibility", True) and replaced is None:
            self.remarks.append(("hidden", f"object '{label}'", "hidden, and so left out"))
            return
        self.visit(target, parent, above, depth + 1, name=label, replaced=place)

    def members(self, item: _Object) -> Iterator[_Object]:
        for name in item.links("Group"):
            yield self.object(name, item)

    def object(self, name: str, user: _Object) -> _Object:
        if name not in self.objects:
            raise user.error(f"refers to '{name}'", "an object of the document")
        return self.objects[name]

    def part(self, item: _Object) -> tuple[tuple[Solid, ...], Array, int]:
        """Return solids, points and number of shells, without the object's own placement."""
        if item.name not in self.shapes:
            working_on(f"object '{item.label}'")
            shape = self.shape(item)
            if shape is None:
                self.shapes[item.name] = ((), np.zeros((0, 3)), 0)
            else:
                rgba = self.colours.get(item.name)
                found = solids_of(shape)
                solids = tuple(measure(solid, self.tolerance, rgba=rgba) for solid in found)
                points = np.zeros((0, 3)) if solids else points_of(shape)
                self.shapes[item.name] = (solids, points, shells_of(shape))
        return self.shapes[item.name]

    def shape(self, item: _Object) -> Any:
        file = item.value("Shape", "Part", "file")
        if not file:
            return None
        data = self.file(file)
        if not data:
            return None
        shape = TopoDS_Shape()
        with tempfile.NamedTemporaryFile(suffix=".brp") as stream:
            stream.write(data)
            stream.flush()
            if file.endswith(".bin"):
                done = BinTools.Read_s(shape, stream.name)
            else:
                done = BRepTools.Read_s(shape, stream.name, BRep_Builder())
        if not done or shape.IsNull():
            raise item.error(f"Open CASCADE cannot read its shape '{file}'", "a shape of FreeCAD")
        # some versions store the placement with the shape, others do not; the property counts
        return shape.Located(TopLoc_Location())

    # CROSS -----------------------------------------------------------------------------------

    def cross(self, links: list[_Object]) -> tuple[tuple[GivenLink, ...], tuple[GivenJoint, ...]]:
        names = {link.name: _cross_name(link) for link in links}
        joints = [
            self.cross_joint(o)
            for o in self.objects.values()
            if o.value("_Type", "String") == "Cross::Joint"
        ]
        poses: dict[str, Pose] = {}
        above: Mapping[str, GivenJoint] = {joint.child: joint for joint in joints}

        def pose(name: str, depth: int = 0) -> Pose:
            if name not in poses:
                joint = above.get(name)
                if joint is None or depth > len(joints):
                    poses[name] = Pose()
                else:
                    poses[name] = pose(joint.parent, depth + 1) @ joint.origin
            return poses[name]

        out = []
        for link in links:
            name = names[link.name]
            mounted = pose(name) @ link.placement("MountedPlacement")
            members = link.links("Real") or link.links("Visual")
            first = len(self.components)
            for member in members:
                self.visit(self.object(member, link), -1, Pose(), 0, replaced=mounted)
            indices = tuple(
                i for i in range(first, len(self.components)) if self.components[i].parent < 0
            )
            if link.value("LinkedObject", "XLink"):
                raise link.error("is a link to another object", "a Cross::Link of its own")
            mass, com, tensor = _cross_inertia(link)
            out.append(GivenLink(name, indices, pose(name), mass, com, tensor))
        return tuple(out), tuple(joints)

    def cross_joint(self, item: _Object) -> GivenJoint:
        kind = item.choice("Type") or "fixed"
        if item.flag("Mimic", False):
            self.remarks.append(
                (
                    "mimic",
                    f"joint '{item.label}'",
                    "follows another joint in CAD; here it is free to move",
                )
            )
        factor = MM if kind == "prismatic" else math.pi / 180.0
        lower, upper = item.number("LowerLimit") * factor, item.number("UpperLimit") * factor
        # 0 and 0 are the workbench's defaults
        if kind in LIMITLESS or lower == upper == 0.0:
            if kind not in LIMITLESS:
                self.remarks.append(
                    ("no-limits", f"joint '{item.label}'", "no range of motion is stated")
                )
            lower, upper = -math.inf, math.inf
        return GivenJoint(
            _cross_name(item),
            KINDS.get(kind, kind),
            item.choice("Parent"),
            item.choice("Child"),
            item.placement("Origin"),
            lower,
            upper,
            item.number("Effort") or math.inf,
            item.number("Velocity") * factor or math.inf,
        )


def _cross_name(item: _Object) -> str:
    return item.value("Label2", "String") or item.label


def _cross_inertia(link: _Object) -> tuple[float | None, Vector3 | None, Array | None]:
    """Return mass, centre and inertia that a link states, if its mass is not computed."""
    mass = link.number("Mass")
    if mass <= 0.0 or not link.flag("MaterialNotCalculate", False):
        return None, None, None
    centre = link.placement("CenterOfMass")
    xx, xy, xz, yy, yz, zz = (
        link.number(f"I{axes}") for axes in ("xx", "xy", "xz", "yy", "yz", "zz")
    )
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return mass, centre.translation, centre.rotation @ tensor @ centre.rotation.T
