"""Read a CASPR bodies file: rigid links, joints, inertias.

Zero pose of a CASPR link: its frame sits at its joint with the axes of the parent. Locations are
given from the joint origin of the link they belong to, in its axes. Gravity is not in any file:
9.81 m/s^2 along -z of the world.

CASPR concatenates the coordinates of the joints in the order of the links in the file. We order
them as the tree is walked (`cards_core.robot.Tree`): depth first, and the chain of an
``S_FIXED_XYZ`` joint is g, b, a. The values are the same, only their places differ, so positions,
velocities, accelerations and generalised forces all use one permutation, the `CoordinateMap`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from cards_core.errors import ShapeError
from cards_core.formats.caspr.fields import Node
from cards_core.formats.caspr.joints import JointType, build_joints, read_joint
from cards_core.formats.imports.findings import FindingList, NameTable
from cards_core.robot.elements import WORLD, Inertia, Joint, Link
from cards_core.robot.model import Robot
from cards_core.typing import Array, Vector3

BASE_LINK = "base"
"""Our name of CASPR's link 0, a link without mass that is fixed to the world."""

BASE_JOINT = "base_joint"


@dataclass(frozen=True, eq=False)
class Body:
    """A CASPR link and what became of it.

    Attributes:
        number: CASPR's number, 1-based; also its position in the file.
        original_name: Name in the file.
        link: Name of our link.
        joint_type: CASPR joint type.
        joints: Names of our joints from parent to child.
        slots: For every CASPR coordinate of the joint: (our joint, index in its coordinates).
        parent: Number of the parent, 0 for the ground.
        com, end: Centre of mass and end point from the joint origin, link axes, shape (3,), [m].
        actuated: True if a motor drives the joint.
        line: Line in the file.
    """

    number: int
    original_name: str
    link: str
    joint_type: JointType
    joints: tuple[str, ...]
    slots: tuple[tuple[str, int], ...]
    parent: int
    com: Vector3
    end: Vector3
    actuated: bool
    line: int | None = None


@dataclass(eq=False)
class BodySystem:
    """All bodies of a file as links and joints of ours.

    Attributes:
        bodies: In CASPR's order.
        links, joints, home: For `cards_core.robot.model.Robot`.
        operational_spaces: The element, if the file is of the old layout that contains it.
    """

    bodies: list[Body] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    home: dict[str, tuple[float, ...]] = field(default_factory=dict)
    operational_spaces: Node | None = None

    def link_name(self, number: int) -> str:
        """Return the name of our link for a CASPR link number (0 is the base)."""
        return BASE_LINK if number == 0 else self.bodies[number - 1].link

    @property
    def size(self) -> int:
        """Number of CASPR coordinates."""
        return sum(body.joint_type.size for body in self.bodies)


def read_bodies(root: Node, names: NameTable, findings: FindingList) -> BodySystem:
    """Read ``<bodies_system>`` (or a bare ``<links>``, as in old files).

    Args:
        root: Root element.
        names: Takes the names of links and joints.
        findings: Takes remarks.

    Raises:
        DescriptionError: An element is missing or has a value that CASPR would refuse too.
    """
    system = BodySystem()
    if root.tag == "links":
        links = root
    else:
        links = root.child("links")
        system.operational_spaces = root.find("operational_spaces")
        root.warn_unknown(findings, children=("links", "operational_spaces"))
    links.warn_unknown(
        findings, children=("link_rigid",), attributes=("display_range", "view_angle")
    )
    base = names.claim(BASE_LINK)
    system.links.append(Link(base, line=links.line))
    system.joints.append(Joint(names.claim(BASE_JOINT), "fixed", WORLD, base, line=links.line))
    for element in links:
        if element.tag == "link_rigid":
            _read_body(element, system, names, findings)
    if not system.bodies:
        raise links.error("has no links", "at least one <link_rigid>")
    return system


def _read_body(element: Node, system: BodySystem, names: NameTable, findings: FindingList) -> None:
    element.warn_unknown(
        findings, children=("joint", "physical", "parent"), attributes=("num", "name")
    )
    number = len(system.bodies) + 1
    if element.attribute_integer("num") != number:
        raise element.error(
            f'num="{element.get("num")}" is not the position of the link in the file',
            f'num="{number}"',
        )
    original = element.attribute("name")
    name = names.claim(original, f"link_{number}")
    physical = element.child("physical")
    inertia, end = _read_physical(physical, findings)
    parent, location = _read_parent(element.child("parent"), number, findings)

    joint = read_joint(element.child("joint"), original, findings)
    chain = build_joints(joint, system.link_name(parent), name, location, names)
    system.joints += chain.joints
    system.links += [*chain.links, Link(name, inertia, line=element.line)]
    for coordinate, (owner, _) in enumerate(chain.slots):
        # slots of a joint of several axes are in the order of its axes
        value = float(joint.initial[coordinate])
        system.home[owner] = (*system.home.get(owner, ()), value)
    system.bodies.append(
        Body(
            number=number,
            original_name=original,
            link=name,
            joint_type=joint.kind,
            joints=tuple(item.name for item in chain.joints),
            slots=chain.slots,
            parent=parent,
            com=inertia.com,
            end=end,
            actuated=joint.actuated,
            line=element.line,
        )
    )


def _read_parent(element: Node, number: int, findings: FindingList) -> tuple[int, Vector3]:
    element.warn_unknown(findings, children=("num", "location"))
    parent = element.child("num").integer()
    if not 0 <= parent < number:
        raise element.child("num").error(
            f"parent {parent} of link {number}", f"0 (ground) to {number - 1}"
        )
    return parent, element.child("location").vector(3)


def _read_physical(physical: Node, findings: FindingList) -> tuple[Inertia, Vector3]:
    """Return the inertia about the centre of mass and the end point."""
    physical.warn_unknown(findings, children=("mass", "com_location", "end_location", "inertia"))
    mass = physical.child("mass").number()
    if mass < 0.0:
        raise physical.child("mass").error(f"mass {mass:g}", ">= 0")
    com = physical.child("com_location").vector(3)
    end_element = physical.find("end_location")
    end = np.zeros(3) if end_element is None else end_element.vector(3)
    element = physical.child("inertia")
    entries = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
    element.warn_unknown(findings, children=entries, attributes=("ref",))
    xx, yy, zz, xy, xz, yz = (element.child(tag).number() for tag in entries)
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    match element.attribute("ref"):
        case "com":
            pass
        case "joint":
            tensor = tensor - mass * (com @ com * np.eye(3) - np.outer(com, com))
        case other:
            raise element.error(f'ref="{other}"', 'ref="com" or ref="joint"')
    return Inertia(mass, com, tensor), end


# Coordinates -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CoordinateMap:
    """Permutation between CASPR's q and ours.

    Attributes:
        names: Our coordinate name for each of CASPR's coordinates, in CASPR's order.
        labels: CASPR's view of the same, ``<link name in the file>.<letter>``.
        index: ``q_ours[index] = q_caspr``, shape (n,).
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    index: npt.NDArray[np.intp]

    @property
    def is_identity(self) -> bool:
        """True if both orders are the same."""
        return bool(np.all(self.index == np.arange(len(self.index))))

    def from_caspr_q(self, q: Array) -> Array:
        """Return our vector for a vector (or rows of vectors) in CASPR's order, shape (..., n)."""
        values = self._checked(q)
        out = np.empty_like(values)
        out[..., self.index] = values
        return out

    def to_caspr_q(self, q: Array) -> Array:
        """Return the vector in CASPR's order for one of ours, shape (..., n)."""
        out: Array = self._checked(q)[..., self.index]
        return out

    def _checked(self, q: Array) -> Array:
        values = np.asarray(q, dtype=float)
        if values.ndim == 0 or values.shape[-1] != len(self.index):
            raise ShapeError(
                f"q has shape {values.shape}, expected (..., {len(self.index)}): "
                f"{', '.join(self.labels)}"
            )
        return values


def coordinate_names(joint: Joint) -> tuple[str, ...]:
    """Return the names that `Tree` gives to the coordinates of a joint with axes."""
    if len(joint.axes) == 1:
        return (joint.name,)
    return tuple(f"{joint.name}_{i + 1}" for i in range(len(joint.axes)))


def coordinate_map(robot: Robot, bodies: list[Body]) -> CoordinateMap:
    """Return the map for an imported robot.

    The tree is asked where it puts each coordinate: joint k of CASPR gets the home value k.
    """
    marked: dict[str, list[float]] = {}
    labels: list[str] = []
    for body in bodies:
        for letter, (joint, slot) in zip(body.joint_type.coordinates, body.slots, strict=True):
            values = marked.setdefault(joint, [0.0] * len(robot.joint(joint).axes))
            values[slot] = float(len(labels))
            labels.append(f"{body.original_name}.{letter}")
    tree = replace(robot, home={name: tuple(v) for name, v in marked.items()}).tree
    ours = [int(value) for value in tree.home]
    index = np.empty(len(labels), dtype=np.intp)
    index[ours] = np.arange(len(labels))
    return CoordinateMap(tuple(tree.position_names[i] for i in index), tuple(labels), index)
