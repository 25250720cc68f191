"""Read CASPR's operational spaces: named frames on links and the axes that are controlled.

The letters of ``active_axes`` are the rows of y in their order: x y z the world position of the
marker, a b g its orientation angles. CASPR uses two conventions for the angles:
``orientation_euler_xyz`` extracts intrinsic angles, R = Rx(a) Ry(b) Rz(g), ``pose_euler_xyz``
fixed-axis angles, R = Rz(g) Ry(b) Rx(a). In both its Jacobian rows for a b g give the angular
velocity in world axes, not the rates of the angles. We keep the letters and the convention as
data; our Jacobians (`Dynamics.operational`) have world angular velocity too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cards_core.formats.caspr.bodies import BodySystem
from cards_core.formats.caspr.fields import Node
from cards_core.formats.imports.findings import FindingList, NameTable
from cards_core.robot.elements import Frame
from cards_core.spatial import Pose

Angles = Literal["none", "intrinsic_xyz", "fixed_xyz"]

KINDS: dict[str, tuple[str, Angles]] = {
    "position": ("xyz", "none"),
    "orientation_euler_xyz": ("abg", "intrinsic_xyz"),
    "pose_euler_xyz": ("xyzabg", "fixed_xyz"),
}
"""Kinds of entries: the axes each allows and the convention of its angles."""

_MATRIX_TAGS = {"sx": "x", "sy": "y", "sz": "z", "sa": "a", "sb": "b", "sg": "g"}


@dataclass(frozen=True)
class OperationalEntry:
    """One marker of an operational space.

    Attributes:
        frame: Name of our frame.
        link: Name of our link.
        kind: CASPR's tag.
        axes: Active axes out of ``xyzabg``, in the order of y.
        angles: Convention of the letters a, b, g.
    """

    frame: str
    link: str
    kind: str
    axes: str
    angles: Angles


@dataclass(frozen=True)
class OperationalSpace:
    """An operational set: y is the concatenation of the entries' axes."""

    name: str
    entries: tuple[OperationalEntry, ...]

    @property
    def size(self) -> int:
        """Number of rows of y."""
        return sum(len(entry.axes) for entry in self.entries)


@dataclass(frozen=True, eq=False)
class OperationalFile:
    """All sets with their frames; `default` is the set to use, None if there is none."""

    spaces: tuple[OperationalSpace, ...] = ()
    frames: tuple[Frame, ...] = ()
    default: OperationalSpace | None = None
    source: str | None = None


def read_operational_spaces(
    root: Node, system: BodySystem, names: NameTable, findings: FindingList
) -> OperationalFile:
    """Read ``<operational_spaces>``.

    Args:
        root: Root element.
        system: The bodies that the spaces are defined on.
        names: Takes the names of frames.
        findings: Takes remarks.

    Raises:
        DescriptionError: An element is missing or has a value that cannot be used.
    """
    root.warn_unknown(
        findings, children=("operational_set",), attributes=("default_operational_set",)
    )
    spaces: list[OperationalSpace] = []
    frames: list[Frame] = []
    for element in root:
        if element.tag != "operational_set":
            continue
        name = element.attribute("id")
        if any(space.name == name for space in spaces):
            raise element.error(f"second operational set with id '{name}'", "unique ids")
        element.warn_unknown(findings, children=KINDS, attributes=("id",))
        entries: list[OperationalEntry] = []
        for child in element:
            if child.tag not in KINDS:
                raise child.error(f"unknown operational space <{child.tag}>", ", ".join(KINDS))
            entry, frame = _read_entry(child, name, system, names, findings)
            entries.append(entry)
            frames.append(frame)
        if not entries:
            raise element.error("is empty", "at least one of " + ", ".join(KINDS))
        spaces.append(OperationalSpace(name, tuple(entries)))
    default = _default(root, spaces, findings)
    return OperationalFile(tuple(spaces), tuple(frames), default, root.source)


def _default(
    root: Node, spaces: list[OperationalSpace], findings: FindingList
) -> OperationalSpace | None:
    wanted = root.get("default_operational_set")
    if not wanted:
        if len(spaces) != 1:
            return None
        findings.note(
            "no-default-operational-set",
            root.label,
            f"the file names no default; its only set '{spaces[0].name}' was chosen",
            at=root,
        )
        return spaces[0]
    for space in spaces:
        if space.name == wanted:
            return space
    raise root.error(
        f"default_operational_set '{wanted}' does not exist",
        " or ".join(space.name for space in spaces) or "an empty default: there are no sets",
    )


def _read_entry(
    element: Node,
    set_name: str,
    system: BodySystem,
    names: NameTable,
    findings: FindingList,
) -> tuple[OperationalEntry, Frame]:
    allowed, angles = KINDS[element.tag]
    element.warn_unknown(
        findings,
        children=("link", "offset", "axes", "selection_matrix"),
        attributes=("marker_id", "name"),
    )
    number = element.child("link").integer()
    if not 1 <= number <= len(system.bodies):
        raise element.child("link").error(
            f"link {number} does not exist", f"1 to {len(system.bodies)}"
        )
    link = system.link_name(number)
    offset_element = element.find("offset")
    offset = np.zeros(3) if offset_element is None else offset_element.vector(3)
    axes = _read_axes(element)
    if not axes or len(set(axes)) != len(axes) or any(letter not in allowed for letter in axes):
        raise element.error(
            f"active axes '{axes}'", f"letters out of '{allowed}', each at most once"
        )
    name = names.claim(element.get("name") or set_name, "marker")
    frame = Frame(name, link, Pose(translation=offset), line=element.line)
    return OperationalEntry(name, link, element.tag, axes, angles), frame


def _read_axes(element: Node) -> str:
    """Return the active axes; old files have a 0/1 <selection_matrix> instead of <axes>."""
    axes = element.find("axes")
    if axes is not None:
        return axes.attribute("active_axes")
    matrix = element.find("selection_matrix")
    if matrix is None:
        return element.child("axes").attribute("active_axes")  # raises: it is missing
    letters = ""
    for child in matrix:
        if child.tag not in _MATRIX_TAGS:
            raise child.error("is not an axis", ", ".join(_MATRIX_TAGS))
        if child.number() != 0.0:
            letters += _MATRIX_TAGS[child.tag]
    return letters
