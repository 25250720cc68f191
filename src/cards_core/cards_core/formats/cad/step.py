"""STEP assemblies (AP203, AP214, AP242) by Open CASCADE's extended data reader.

Names, placements, colours, materials and nested assemblies; lengths in any unit. Points that
muscles pass can be components without solids, or placements (``AXIS2_PLACEMENT_3D``) and points
(``CARTESIAN_POINT``) of a part's shape representation that have a name.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from OCP.collections import Sequence_TDF_Label
from OCP.IFSelect import IFSelect_ReturnStatus
from OCP.Interface import Interface_Static
from OCP.Quantity import Quantity_ColorRGBA
from OCP.STEPCAFControl import STEPCAFControl_Reader
from OCP.STEPConstruct import STEPConstruct_ExternRefs
from OCP.TCollection import TCollection_ExtendedString
from OCP.TDataStd import TDataStd_Name
from OCP.TDF import TDF_Label
from OCP.TDocStd import TDocStd_Document
from OCP.TopLoc import TopLoc_Location
from OCP.XCAFDoc import (
    XCAFDoc_ColorType,
    XCAFDoc_DocumentTool,
    XCAFDoc_MaterialTool,
    XCAFDoc_ShapeTool,
)

from cards_core.errors import DescriptionError
from cards_core.formats.cad.assembly import Assembly, Component, Solid, unique_path
from cards_core.formats.cad.occt import (
    measure,
    points_of,
    pose_of,
    shells_of,
    solids_of,
    working_on,
)
from cards_core.formats.cad.step_text import (
    NamedPlacement,
    StepText,
    check_text,
    density_scale,
    external_reference_line,
    misspelt_placements,
    named_placements,
)
from cards_core.formats.imports.markers import MARKER
from cards_core.formats.xml_lines import shorten
from cards_core.spatial import Pose

MAX_COMPONENTS = 20_000
"""Instances of parts; a guard against assemblies that contain each other many times."""

_AUTOMATIC = re.compile(r"=>\[.*\]|NAUO\d*|\d*|Open CASCADE.*")
"""Names of instances that exporters make up."""


def read_step(path: Path, shown: str, tolerance: float) -> Assembly:
    """Read a STEP file.

    Args:
        path: The file.
        shown: Its name in messages.
        tolerance: Largest distance of a mesh from its surface, [m].

    Raises:
        DescriptionError: It cannot be read, is no STEP file, has no shapes, or refers to parts in
            other files.
    """
    text = check_text(path, shown)
    Interface_Static.SetCVal_s("xstep.cascade.unit", "MM")
    document = TDocStd_Document(TCollection_ExtendedString("XmlOcaf"))
    XCAFDoc_DocumentTool.Set_s(document.Main())
    reader = STEPCAFControl_Reader()
    reader.SetNameMode(True)
    reader.SetColorMode(True)
    reader.SetMatMode(True)
    status = reader.ReadFile(str(path))
    if status != IFSelect_ReturnStatus.IFSelect_RetDone:
        raise DescriptionError(
            f"Open CASCADE cannot read it ({str(status).rsplit('_', 1)[-1]})",
            source=shown,
            line=text.last_line,
            expected="a STEP file (ISO 10303-21) of AP203, AP214 or AP242",
        )
    _refuse_other_files(reader, text)
    if not reader.Transfer(document):
        raise DescriptionError(
            "no shape in it can be translated",
            source=shown,
            line=text.data_line,
            expected="solids, as AP203, AP214 or AP242 have them",
        )
    remarks = [*text.remarks, *misspelt_placements(text)]
    scale = density_scale(text)
    if scale is None:
        remarks.append(
            ("density-unit", "densities", "in units of mass other than g or kg; not used")
        )
    walker = _Walker(document, shown, tolerance, scale)
    walker.run()
    if not walker.components:
        raise DescriptionError(
            "it has no parts", source=shown, line=text.data_line, expected="an assembly of solids"
        )
    _add_placements(walker, named_placements(text))
    name = walker.components[0].name if len(walker.roots) == 1 else Path(shown).stem
    return Assembly(name, "STEP", text.unit, tuple(walker.components), remarks=tuple(remarks))


def _refuse_other_files(reader: Any, text: StepText) -> None:
    """Refuse references to parts in other files.

    Open CASCADE would read these in `Transfer`, wherever they are and whatever they are.
    """
    found = STEPConstruct_ExternRefs(reader.Reader().WS())
    found.LoadExternRefs()
    count = found.NbExternRefs()
    if not count:
        return
    try:
        name = str(found.FileName(1) or "")
    except UnicodeDecodeError:
        name = "?"
    more = f" and {count - 1} more" if count > 1 else ""
    raise DescriptionError(
        f"refers to the file '{shorten(name)}'{more}",
        source=text.shown,
        line=external_reference_line(text),
        element="DOCUMENT_FILE",
        expected="an assembly in one file: export it as a single STEP file, parts included",
    )


class _Walker:
    """Goes through the document's tree; a part that is used often is measured once."""

    def __init__(
        self, document: Any, shown: str, tolerance: float, density_scale: float | None
    ) -> None:
        main = document.Main()
        self.shapes = XCAFDoc_DocumentTool.ShapeTool_s(main)
        self.colours = XCAFDoc_DocumentTool.ColorTool_s(main)
        self.shown = shown
        self.tolerance = tolerance
        self.density_scale = density_scale
        self.components: list[Component] = []
        self.roots: list[int] = []
        self.products: list[str] = []
        self.paths: set[str] = set()
        self.measured: dict[int, tuple[tuple[Solid, ...], Any, int]] = {}

    def run(self) -> None:
        free = Sequence_TDF_Label()
        self.shapes.GetFreeShapes(free)
        for i in range(1, free.Length() + 1):
            self.roots.append(len(self.components))
            self.visit(free.Value(i), -1, Pose(), "", 0)

    def visit(self, label: Any, parent: int, above: Pose, instance: str, depth: int) -> None:
        """Add a component and what is in it."""
        if len(self.components) >= MAX_COMPONENTS or depth > 50:
            raise DescriptionError(
                f"more than {MAX_COMPONENTS} instances of parts, or more than 50 levels",
                source=self.shown,
                expected="a smaller assembly",
            )
        product, pose = _name(label), above
        if XCAFDoc_ShapeTool.IsReference_s(label):
            referred = TDF_Label()
            XCAFDoc_ShapeTool.GetReferredShape_s(label, referred)
            pose = above @ pose_of(XCAFDoc_ShapeTool.GetLocation_s(label))
            self.visit(referred, parent, pose, product, depth)
            return
        shape = XCAFDoc_ShapeTool.GetShape_s(label)
        if shape is not None and not shape.IsNull() and not shape.Location().IsIdentity():
            # a part at the top may carry its placement in the shape
            if parent < 0:
                pose = above @ pose_of(shape.Location())
            shape = shape.Located(TopLoc_Location())
        own = _shown_name(instance, product) or Path(self.shown).stem
        path = unique_path(self.paths, "" if parent < 0 else self.components[parent].path, own)
        index = len(self.components)
        assembly = XCAFDoc_ShapeTool.IsAssembly_s(label)
        solids, points, shells = ((), np.zeros((0, 3)), 0) if assembly else self.part(label, shape)
        self.products.append(product)
        self.components.append(
            Component(path, own, parent, pose, solids, points, assembly, shells)
        )
        if assembly:
            inside = Sequence_TDF_Label()
            XCAFDoc_ShapeTool.GetComponents_s(label, inside, False)
            for i in range(1, inside.Length() + 1):
                self.visit(inside.Value(i), index, pose, "", depth + 1)

    def part(self, label: Any, shape: Any) -> tuple[tuple[Solid, ...], Any, int]:
        key = label.Tag()
        if key not in self.measured:
            working_on(f"part '{_name(label)}'")
            if shape is None or shape.IsNull():
                self.measured[key] = ((), np.zeros((0, 3)), 0)
            else:
                solids = tuple(self.solid(label, item) for item in solids_of(shape))
                points = np.zeros((0, 3)) if solids else points_of(shape)
                self.measured[key] = (solids, points, shells_of(shape))
        return self.measured[key]

    def solid(self, label: Any, shape: Any) -> Solid:
        inside = TDF_Label()
        named = self.shapes.FindSubShape(label, shape, inside)
        colour = self.colour(inside) if named else None
        density = None
        if self.density_scale is not None:
            # the function multiplies what the file states by 1e-3
            stated = XCAFDoc_MaterialTool.GetDensityForShape_s(label) * 1e3
            density = stated * self.density_scale if stated > 0.0 else None
        return measure(
            shape,
            self.tolerance,
            name=_name(inside) if named else "",
            rgba=colour or self.colour(label),
            density=density,
        )

    def colour(self, label: Any) -> tuple[float, float, float, float] | None:
        for kind in (XCAFDoc_ColorType.XCAFDoc_ColorSurf, XCAFDoc_ColorType.XCAFDoc_ColorGen):
            found = Quantity_ColorRGBA()
            if self.colours.GetColor_s(label, kind, found):
                rgb = found.GetRGB()
                # Open CASCADE keeps linear values, screens and our files take sRGB
                return (*(_srgb(v()) for v in (rgb.Red, rgb.Green, rgb.Blue)), found.Alpha())
        return None


def _shown_name(instance: str, product: str) -> str:
    """Return the name of an instance; that of its part where that says more."""
    if _AUTOMATIC.fullmatch(instance) or (_marks(product) and not _marks(instance)):
        return product
    return instance


def _marks(name: str) -> bool:
    return re.match(MARKER, name) is not None


def _srgb(linear: float) -> float:
    value = 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1.0 / 2.4) - 0.055
    return round(min(max(value, 0.0), 1.0), 4)


def _name(label: Any) -> str:
    found = TDataStd_Name()
    if label.IsNull() or not label.FindAttribute(TDataStd_Name.GetID_s(), found):
        return ""
    return str(found.Get().ToExtString()).strip()


def _add_placements(walker: _Walker, named: list[NamedPlacement]) -> None:
    """Add placements with names as components of every instance of their part."""
    for item in named:
        instances = [i for i, product in enumerate(walker.products) if product == item.product]
        if not instances:
            raise DescriptionError(
                f"its part '{item.product}' is not in the assembly",
                source=walker.shown,
                element=f"placement '{item.name}'",
                expected="one of " + ", ".join(sorted({p for p in walker.products if p})[:20]),
            )
        for index in instances:
            above = walker.components[index]
            pose = above.pose @ replace(item.pose, translation=item.unit * item.pose.translation)
            path = unique_path(walker.paths, above.path, item.name)
            walker.components.append(Component(path, item.name, index, pose))
