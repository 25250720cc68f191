"""URDF rewritten as elements of SDF, which its reader reads.

What differs: poses of joints are relative to the parent link, links stand at the joint that they
are child of; an axis is x where none is given; names of links and joints may be equal; joints may
be planar or floating. Those become chains of joints through links without mass, as our export
writes them, and one joint again afterwards (`cards_core.formats.imports.massless`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.imports.findings import FindingList, NameTable, renamed_robot, safe_name
from cards_core.formats.imports.meshes import FoundMeshes
from cards_core.formats.imports.next_command import wrong_root
from cards_core.formats.imports.sdf_tree import add, check_links
from cards_core.formats.sdf.elements import numbers as as_text
from cards_core.formats.sdf.elements import rotation_to
from cards_core.formats.sdf.schema import VERSIONS
from cards_core.formats.sdf.values import (
    attribute,
    known_names,
    numbers,
    parse_number,
    required,
    unknown_name,
)
from cards_core.formats.urdf.gazebo import Colour, GazeboBlocks
from cards_core.formats.urdf.schema import check, check_open
from cards_core.formats.urdf.writer import UNLIMITED
from cards_core.formats.xml_lines import XmlElement, shorten
from cards_core.robot.elements import WORLD

MimicChoice: TypeAlias = Literal["free", "fixed"]
"""What becomes of joints that mimic others: they move freely, or not at all."""

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
"""Types of joints of URDF."""


def check_root(root: XmlElement, name: str) -> None:
    """Refuse what is no URDF.

    Args:
        root: Of the document.
        name: Of the file.

    Raises:
        DescriptionError: It is a xacro file, or of another format.
    """
    for element in root.iter():
        assert isinstance(element, XmlElement)
        values = (*element.attrib.values(), element.text or "")
        expression = next((v for v in values if "${" in v or "$(" in v), None)
        if element.tag.startswith("xacro:") or expression is not None:
            what = (
                f"<{shorten(element.tag)}>" if expression is None else f"'{shorten(expression)}'"
            )
            raise element.error(
                f"{what} is xacro, not URDF", f"its output: xacro {Path(name).name} > robot.urdf"
            )
    if name.endswith(".xacro"):
        raise DescriptionError(
            "is named as a xacro file",
            source=name,
            expected=f"its output: xacro {Path(name).name} > robot.urdf",
        )
    if root.tag != "robot":
        raise wrong_root(root, "a URDF", "<robot> as root")


@dataclass
class UrdfReader:
    """Rewrites one URDF.

    Attributes:
        findings: Takes notes and warnings.
        blocks: What ``<gazebo>`` says.
        found: Finds the files of meshes.
        mimic: What becomes of joints that mimic others.
        links: Name in the file to our name.
        joints: The same of joints.
        meshes: Link, our name, to path and scale of its first mesh.
        massless: Links without ``<inertial>``, our names.
        renamed: Names in the file and ours, where they differ.
    """

    findings: FindingList
    blocks: GazeboBlocks
    found: FoundMeshes
    mimic: MimicChoice = "free"
    links: dict[str, str] = field(default_factory=dict)
    joints: dict[str, str] = field(default_factory=dict)
    meshes: dict[str, tuple[str, str]] = field(default_factory=dict)
    massless: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    _colours: dict[str, Colour] = field(default_factory=dict)
    _elements: dict[str, XmlElement] = field(default_factory=dict)
    _names: NameTable = field(default_factory=lambda: NameTable({WORLD}))

    def convert(self, robot: XmlElement) -> XmlElement:
        """Return an ``<sdf>`` element with the model.

        Args:
            robot: The ``<robot>`` element.

        Raises:
            DescriptionError: Something is wrong; the message names file, line and element.
        """
        check_open(robot, self.findings)
        check_links(robot)
        self._declare(robot)
        for material in robot.children("material"):
            self._colour(material)
        sdf = add(None, "sdf", robot, version=VERSIONS[-2])
        original = robot.get("name", "")
        name = safe_name(original, "robot")
        model = add(sdf, "model", robot, name=name)
        parents = self._parents(robot)
        for element in robot:
            if element.tag == "link":
                self._link(model, element, parents)
            elif element.tag == "joint":
                self._joint(model, element)
        self.renamed = [*renamed_robot(original, name)]
        self.renamed += [item for item in self._names.renamed if item[0] != WORLD]
        return sdf

    def _declare(self, robot: XmlElement) -> None:
        """Give every link and joint a name of its own."""
        for tag, table in (("link", self.links), ("joint", self.joints)):
            first: dict[str, XmlElement] = {}
            for element in robot.children(tag):
                name = attribute(element, "name")
                if name in first:
                    raise element.error(
                        f"the name is taken by the {tag} in line {first[name].line}",
                        "unique names",
                    )
                first[name] = element
                if tag == "joint":
                    self._elements[name] = element
                if tag == "link" and name == WORLD:
                    table[name] = WORLD
                else:
                    table[name] = self._names.claim(name, tag)
        if not self.links:
            raise robot.error("has no link", "at least one <link>")

    def _parents(self, robot: XmlElement) -> Mapping[str, str]:
        """Return the joint, our name, that each link stands at: of a chain the last one."""
        out: dict[str, str] = {}
        above: dict[str, XmlElement] = {}
        for joint in robot.children("joint"):
            check_open(joint, self.findings)
            for role in ("parent", "child"):
                end = required(joint, role)
                check(end)
                link = attribute(end, "link")
                if link not in self.links:
                    raise unknown_name(end, "link", link, self.links)
            child = attribute(required(joint, "child"), "link")
            if child == WORLD:
                raise joint.error("its child is the world", "world as parent only")
            name = self.joints[attribute(joint, "name")]
            if child in out:
                raise joint.error(
                    f"link '{shorten(child)}' is already the child of joint '{out[child]}'",
                    "a tree: every link is the child of one joint",
                )
            out[child] = name + _LAST.get(joint.get("type", "").strip(), "")
            above[child] = joint
        _refuse_circles(above)
        return out

    # Links -----------------------------------------------------------------------------------

    def _link(self, model: XmlElement, element: XmlElement, parents: Mapping[str, str]) -> None:
        check_open(element, self.findings)
        original = attribute(element, "name")
        name = self.links[original]
        if name == WORLD:
            if element[:]:
                self.findings.warn(
                    "world-left-out",
                    element.label,
                    "what it holds is left out: the world has no shapes and no mass here",
                    at=element,
                )
            return
        link = add(model, "link", element, name=name)
        if original in parents:
            add(link, "pose", element, relative_to=parents[original])
        inertial = element.child("inertial")
        if inertial is None:
            self.massless.append(name)
        else:
            _inertial(link, inertial)
        for tag, read in (("collision", self._collision), ("visual", self._visual)):
            table = NameTable()
            for item in element.children(tag):
                check(item)
                read(link, item, table.claim(item.get("name", ""), tag), original)

    def _collision(self, link: XmlElement, item: XmlElement, name: str, original: str) -> None:
        out = add(None, "collision", item, name=name)
        if not self._shape(out, link, item):
            return
        _attach(link, out)
        if original in self.blocks.friction:
            ode = add(add(add(out, "surface", item), "friction", item), "ode", item)
            add(ode, "mu", item, repr(self.blocks.friction[original]))

    def _visual(self, link: XmlElement, item: XmlElement, name: str, original: str) -> None:
        out = add(None, "visual", item, name=name)
        if not self._shape(out, link, item):
            return
        _attach(link, out)
        material = item.child("material")
        colour = None if material is None else self._colour(material)
        colour = colour or self.blocks.colours.get(original)
        if colour is not None:
            add(add(out, "material", item), "diffuse", item, as_text(*colour))

    def _colour(self, material: XmlElement) -> Colour | None:
        check(material)
        name = material.get("name", "").strip()
        element = material.child("color")
        if element is None:
            if material.child("texture") is None and name not in self._colours:
                self.findings.note(
                    "material-unknown",
                    f"material '{shorten(name)}'",
                    "no colour of this name: grey",
                    at=material,
                )
            return self._colours.get(name)
        check(element)
        r, g, b, a = numbers(element, 4, what="numbers r g b a", key="rgba").tolist()
        colour = tuple(min(max(x, 0.0), 1.0) for x in (r, g, b, a))
        self._colours.setdefault(name, (colour[0], colour[1], colour[2], colour[3]))
        return (colour[0], colour[1], colour[2], colour[3])

    def _shape(self, out: XmlElement, link: XmlElement, item: XmlElement) -> bool:
        """Add pose and geometry; False where the mesh file is missing."""
        _pose(out, item)
        element = required(item, "geometry")
        check(element)
        shapes = element[:]
        if len(shapes) != 1:
            raise element.error(
                f"holds {len(shapes)} shapes", "one of box, capsule, cylinder, mesh, sphere"
            )
        shape = shapes[0]
        assert isinstance(shape, XmlElement)
        check(shape)
        geometry = add(out, "geometry", element)
        if shape.tag != "mesh":
            made = add(geometry, shape.tag, shape)
            for key in _SIZES[shape.tag]:
                count = 3 if key == "size" else 1
                values = numbers(shape, count, key=key)
                if not (values > 0.0).all():
                    raise shape.error(f"{key} is not positive", "numbers greater than 0")
                add(made, key, shape, as_text(*values.tolist()))
            return True
        uri = attribute(shape, "filename")
        scale = "1 1 1"
        if "scale" in shape.attrib:
            scale = as_text(*numbers(shape, 3, key="scale").tolist())
        found = self.found.uri(shape, uri)
        if found is None:
            self.findings.warn(
                "mesh-missing",
                item.label,
                f"'{shorten(uri)}' is no mesh file that was found: left out",
                at=shape,
            )
            return False
        self.meshes.setdefault(link.get("name", ""), (found, scale))
        mesh = add(geometry, "mesh", shape)
        add(mesh, "uri", shape, found)
        add(mesh, "scale", shape, scale)
        return True

    # Joints ----------------------------------------------------------------------------------

    def hold(self, element: XmlElement, axis: XmlElement) -> bool:
        """Give the axis of a joint that mimics one that does not move limits that hold it.

        Args:
            element: ``<joint>`` of the URDF.
            axis: Of the joint that is written.

        Returns:
            Whether it is such a joint.
        """
        mimic = element.child("mimic")
        if mimic is None or self.mimic != "free" or (held := self._held(element, {})) is None:
            return False
        limit = add(axis, "limit", mimic)
        for key in ("lower", "upper"):
            add(limit, key, mimic, repr(held))
        return True

    def _joint(self, model: XmlElement, element: XmlElement) -> None:
        name = self.joints[attribute(element, "name")]
        kind = attribute(element, "type")
        if kind not in JOINT_TYPES:
            raise element.error(f"type '{shorten(kind)}' is unknown", known_names(JOINT_TYPES))
        for tag in ("axis", "limit", "dynamics", "mimic"):
            child = element.child(tag)
            if child is not None:
                check(child)
        for tag in ("calibration", "safety_controller"):
            if element.child(tag) is not None:
                self.findings.note(
                    "element-ignored",
                    element.label,
                    f"<{tag}> has no meaning here",
                    at=element,
                )
        mimic = element.child("mimic")
        if mimic is not None:
            kind = self._mimic(element, mimic, kind)
        ends = [
            self.links[attribute(required(element, role), "link")] for role in ("parent", "child")
        ]
        _STEPS.get(kind, _single)(self, _Joint(model, element, name, kind, *ends))

    def _mimic(self, element: XmlElement, mimic: XmlElement, kind: str) -> str:
        other = attribute(mimic, "joint")
        if other not in self.joints:
            raise unknown_name(mimic, "joint", other, self.joints)
        held = self._held(element, {})
        if held is not None and self.mimic == "free" and kind in _SINGLE:
            self.findings.note(
                "mimic-locked",
                element.label,
                f"mimics joint '{shorten(other)}', which does not move: it stays at {held:g}",
                at=mimic,
            )
            return "revolute" if kind == "continuous" else kind
        does = "moves freely" if self.mimic == "free" else "is fixed at 0"
        law = f"{mimic.get('multiplier', '1')} times that one plus {mimic.get('offset', '0')}"
        self.findings.warn(
            "mimic-left-out",
            element.label,
            f"mimics joint '{shorten(other)}', {shorten(law)}: joints are not coupled here, it "
            f"{does} (see --mimic)",
            at=mimic,
        )
        return kind if self.mimic == "free" else "fixed"

    def _held(self, element: XmlElement, seen: dict[str, XmlElement]) -> float | None:
        """Return the place that limits, or those of the joint it mimics, hold a joint at."""
        name, mimic = attribute(element, "name"), element.child("mimic")
        if mimic is None:
            return _locked_at(element)
        if name in seen:
            raise mimic.error("joints mimic each other in a circle", "one that mimics none")
        seen[name] = element
        leader = self._elements.get(attribute(mimic, "joint"))
        found = None if leader is None else self._held(leader, seen)
        factor, offset = (
            parse_number(mimic.get(key, default), mimic, what=key)
            for key, default in (("multiplier", "1"), ("offset", "0"))
        )
        return _locked_at(element) if found is None else factor * found + offset


@dataclass(frozen=True)
class _Joint:
    """A joint to be written.

    Attributes:
        model: Takes the joints.
        element: Of the URDF.
        name: Our name.
        kind: Type in the URDF.
        parent, child: Links, our names.
    """

    model: XmlElement
    element: XmlElement
    name: str
    kind: str
    parent: str
    child: str


_Step: TypeAlias = Callable[[UrdfReader, _Joint], None]


def _new_joint(joint: _Joint, name: str, kind: str, parent: str, child: str) -> XmlElement:
    element = add(joint.model, "joint", joint.element, name=name, type=kind)
    add(element, "parent", joint.element, parent)
    add(element, "child", joint.element, child)
    return element


def _single(reader: UrdfReader, joint: _Joint) -> None:
    made = _new_joint(joint, joint.name, joint.kind, joint.parent, joint.child)
    element = joint.element
    _pose(made, element, relative_to=_frame_of(joint.parent))
    if joint.kind == "fixed":
        return
    axis = add(made, "axis", element)
    given = element.child("axis")
    xyz = "1 0 0" if given is None else as_text(*numbers(given, 3, key="xyz").tolist())
    add(axis, "xyz", given or element, xyz)
    if not reader.hold(element, axis):
        _limit(reader, axis, element, joint.kind)
    dynamics = element.child("dynamics")
    if dynamics is not None:
        values = add(axis, "dynamics", dynamics)
        for key in ("damping", "friction"):
            if key in dynamics.attrib:
                add(values, key, dynamics, attribute(dynamics, key))


def _locked_at(element: XmlElement) -> float | None:
    """Return the place that its limits hold a joint at, [rad] or [m]; None if it can move."""
    limit = element.child("limit")
    if limit is None or element.get("type", "").strip() not in ("revolute", "prismatic"):
        return None
    lower, upper = (
        parse_number(limit.get(key, "").strip() or "0", limit, what=key, infinite=True)
        for key in ("lower", "upper")
    )
    return lower if lower == upper and abs(lower) < UNLIMITED else None


def _frame_of(parent: str) -> str:
    """Return the name of a link's frame in poses; the world has that of the model."""
    return "__model__" if parent == WORLD else parent


def _limit(reader: UrdfReader, axis: XmlElement, element: XmlElement, kind: str) -> None:
    limit = element.child("limit")
    if limit is None:
        if kind != "continuous":
            reader.findings.warn(
                "limit-missing",
                element.label,
                "no <limit>, which URDF demands: it moves without limits",
                at=element,
            )
        return
    made = add(axis, "limit", limit)
    for key in ("lower", "upper", "effort", "velocity"):
        if kind == "continuous" and key in ("lower", "upper"):
            continue
        default = "0" if key in ("lower", "upper") else "inf"
        text = limit.get(key, "").strip() or default
        value = parse_number(text, limit, what=key, infinite=True)
        if abs(value) >= UNLIMITED:
            text = "-inf" if value < 0.0 else "inf"
        add(made, key, limit, text)


def _chain(reader: UrdfReader, joint: _Joint, steps: list[tuple[str, str, str]]) -> None:
    """Add joints of (suffix, type, axis) through links without mass."""
    parent = joint.parent
    for index, (suffix, kind, xyz) in enumerate(steps):
        last = index == len(steps) - 1
        child = joint.child if last else f"{joint.name}_{index + 1}_link"
        step = joint.name + suffix
        if not last:
            link = add(joint.model, "link", joint.element, name=child)
            add(link, "pose", joint.element, relative_to=step)
            reader.massless.append(child)
        made = _new_joint(joint, step, kind, parent, child)
        if index == 0:
            _pose(made, joint.element, relative_to=_frame_of(parent))
        else:
            add(made, "pose", joint.element, relative_to=parent)
        add(add(made, "axis", joint.element), "xyz", joint.element, xyz)
        parent = child


def _planar(reader: UrdfReader, joint: _Joint) -> None:
    given = joint.element.child("axis")
    normal = np.array([1.0, 0.0, 0.0]) if given is None else numbers(given, 3, key="xyz")
    if np.linalg.norm(normal) < 1e-9:
        raise (given or joint.element).error(
            "an axis without direction", "a vector that is not zero"
        )
    kinds = ("prismatic", "prismatic", "revolute")
    axes = rotation_to(normal).T
    _chain(
        reader,
        joint,
        [
            (f"_{i + 1}", kind, as_text(*axis.tolist()))
            for i, (kind, axis) in enumerate(zip(kinds, axes, strict=True))
        ],
    )


def _floating(reader: UrdfReader, joint: _Joint) -> None:
    axes = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}
    steps = [(f"_{c}", "prismatic", xyz) for c, xyz in axes.items()]
    steps += [(f"_r{c}", "continuous", xyz) for c, xyz in axes.items()]
    _chain(reader, joint, steps)


_SINGLE = ("revolute", "continuous", "prismatic")
_STEPS: Mapping[str, _Step] = {"planar": _planar, "floating": _floating}
_LAST = {"planar": "_3", "floating": "_rz"}


def _refuse_circles(above: Mapping[str, XmlElement]) -> None:
    """Refuse links that are above themselves; ``above`` has the joint that holds each link."""
    hung: set[str] = set()
    for link in above:
        way: dict[str, None] = {}
        while link in above and link not in hung:
            if link in way:
                raise above[link].error(
                    f"link '{shorten(link)}' is above itself, in a circle", "a tree of links"
                )
            way[link] = None
            link = attribute(required(above[link], "parent"), "link")  # noqa: PLW2901
        hung.update(way)


# Elements --------------------------------------------------------------------------------------


_SIZES = {
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "sphere": ("radius",),
}


def _attach(parent: XmlElement, element: XmlElement) -> None:
    parent.append(element)
    element.parent = parent


def _pose(out: XmlElement, element: XmlElement, *, relative_to: str | None = None) -> None:
    """Add the ``<pose>`` that the ``<origin>`` of an element says."""
    origin = element.child("origin")
    attributes = {} if relative_to is None else {"relative_to": relative_to}
    if origin is None:
        if relative_to is not None:
            add(out, "pose", element, **attributes)
        return
    check(origin)
    xyz = numbers(origin, 3, key="xyz") if "xyz" in origin.attrib else np.zeros(3)
    angles = np.zeros(3)
    if "quat_xyzw" in origin.attrib:
        angles = numbers(origin, 4, key="quat_xyzw")
        attributes["rotation_format"] = "quat_xyzw"
    elif "rpy" in origin.attrib:
        angles = numbers(origin, 3, key="rpy")
    add(out, "pose", origin, as_text(*xyz.tolist(), *angles.tolist()), **attributes)


def _inertial(link: XmlElement, element: XmlElement) -> None:
    check(element)
    inertial = add(link, "inertial", element)
    _pose(inertial, element)
    mass = required(element, "mass")
    check(mass)
    add(inertial, "mass", mass, attribute(mass, "value"))
    given = element.child("inertia")
    made = add(inertial, "inertia", given or element)
    for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"):
        text = "0" if given is None else given.get(key, "0")
        add(made, key, given or element, text)
    if given is not None:
        check(given)
