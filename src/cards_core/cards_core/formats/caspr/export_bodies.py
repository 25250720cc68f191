"""The links of a robot as CASPR has them: frames without fixed rotations, its 18 types of joints.

A CASPR joint maps child to parent coordinates by ``x_p = location + r(q) + R(q) x_c``. Ours by
``P M(q) J``. With K the pose of our link in CASPR's frame of the same body (the identity for the
world) and R0 the rotation of ``K_p P``::

    location = translation of K_p P,    axes = R0 axes,    K_c = (R0, 0) J

so that all of CASPR's frames are parallel to the world's at q = 0. Links that fixed joints hold
together are one body; those held by the world are CASPR's link 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.caspr.bodies import coordinate_names
from cards_core.formats.caspr.joints import JOINT_TYPES, JointType
from cards_core.robot.elements import AXES_PER_KIND, WORLD, Inertia, Joint, JointAxis
from cards_core.robot.model import Robot, add_inertia, move_inertia
from cards_core.spatial import Pose
from cards_core.typing import Vector3

SAME_AXIS = 1e-15
"""Deviation of an axis from a coordinate axis that is rounding."""


@dataclass(eq=False)
class ExportedMotion:
    """One degree of freedom.

    Attributes:
        coordinate: Name of ours.
        kind: ``revolute`` or ``prismatic``.
        direction: Unit axis in CASPR's frame of the parent at q = 0, shape (3,).
        axis: With the limits.
        home: Initial value, [rad] or [m].
    """

    coordinate: str
    kind: str
    direction: Vector3
    axis: JointAxis
    home: float


@dataclass(eq=False)
class ExportedBody:
    """A link of CASPR.

    Attributes:
        name: Of the first of its links, or of the joint that it is within.
        parent: Its parent, None for the ground.
        location: Of its joint in the parent, shape (3,), [m].
        joints: Names of our joints between them.
        motions: From parent to child; together one of CASPR's types.
        kind: That type.
        motor: Whether motors drive its joint.
        links: Our links that it consists of.
        inertia: In its frame; None without mass.
        number: CASPR's number, 1-based.
    """

    name: str
    parent: ExportedBody | None
    location: Vector3
    joints: tuple[str, ...]
    motions: list[ExportedMotion]
    kind: JointType
    motor: bool = False
    links: list[str] = field(default_factory=list)
    inertia: Inertia | None = None
    number: int = 0

    @property
    def ordered(self) -> list[ExportedMotion]:
        """The motions in the order of CASPR's q."""
        letters = [motion.letter for motion in self.kind.motions]
        return [self.motions[letters.index(letter)] for letter in self.kind.coordinates]


@dataclass(eq=False)
class ExportedSystem:
    """All bodies.

    Attributes:
        bodies: In CASPR's order, parents first; see `_ordered`.
        places: For every link of ours and ``world``: its body, None for the ground, and its pose
            in CASPR's frame of that body.
        notes: What got lost.
    """

    bodies: list[ExportedBody]
    places: dict[str, tuple[ExportedBody | None, Pose]]
    notes: list[str]


def export_bodies(robot: Robot) -> ExportedSystem:
    """Return the bodies of a robot.

    Raises:
        DescriptionError: A joint that CASPR does not have, or no joint that moves.
    """
    home = dict(zip(robot.tree.position_names, robot.tree.home.tolist(), strict=True))
    system = ExportedSystem([], {WORLD: (None, Pose())}, [])
    for joint in _ordered(robot):
        body, pose = system.places[joint.parent]
        placed = pose @ joint.parent_to_joint
        if joint.kind == "fixed":
            system.places[joint.child] = (body, placed @ joint.joint_to_child)
        else:
            new = _add_joint(system, robot, joint, home, body=body, placed=placed)
            turned = Pose(placed.rotation) @ joint.joint_to_child
            system.places[joint.child] = (new, turned)
    if not system.bodies:
        raise DescriptionError(
            "no link moves", source=robot.source, expected="at least one joint that is not fixed"
        )
    _add_links(system, robot)
    _join_chains(system, _used_links(robot))
    for number, body in enumerate(system.bodies, start=1):
        body.number = number
    _add_notes(system, robot)
    return system


def _ordered(robot: Robot) -> list[Joint]:
    """Return the joints as declared where an import then has our order of coordinates.

    Else depth first: where parents come later, or fixed joints bring children of one body into
    another order.
    """
    by_child = {item.child: item for item in robot.joints}
    tree = [by_child[link] for link in robot.tree.link_node if link != WORLD]
    return list(robot.joints) if _siblings(robot.joints) == _siblings(tree) else tree


def _siblings(joints: Sequence[Joint]) -> dict[str, list[str]]:
    """Return what moves on each body, in order; empty where a parent comes later."""
    bodies: dict[str, str] = {WORLD: WORLD}
    out: dict[str, list[str]] = {}
    for joint in joints:
        if joint.parent not in bodies:
            return {}
        body = bodies[joint.parent]
        bodies[joint.child] = body if joint.kind == "fixed" else joint.child
        if joint.kind != "fixed":
            out.setdefault(body, []).append(joint.child)
    return out


def _add_joint(
    system: ExportedSystem,
    robot: Robot,
    joint: Joint,
    home: dict[str, float],
    *,
    body: ExportedBody | None,
    placed: Pose,
) -> ExportedBody:
    """Add the body that a joint moves, and those between its axes if CASPR has no such joint."""
    kinds = {
        "revolute": ("revolute",),
        "prismatic": ("prismatic",),
        "universal": ("revolute", "revolute"),
        "planar": ("prismatic", "prismatic", "revolute"),
    }
    if joint.kind not in kinds:
        raise robot.error(
            joint,
            f"CASPR has no {joint.kind} joint: its coordinates are lengths and angles, no "
            "quaternions",
            ", ".join(("fixed", *kinds)),
        )
    motions: list[ExportedMotion] = []
    names = coordinate_names(joint)
    for name, motion, axis in zip(names, kinds[joint.kind], joint.axes, strict=True):
        direction = placed.rotation @ (axis.axis / np.linalg.norm(axis.axis))
        motions.append(ExportedMotion(name, motion, direction, axis, home[name]))
    known = joint_type(motions, AXES_PER_KIND[joint.kind] > 1)
    groups = [motions] if known else [[item] for item in motions]
    location = placed.translation
    for i, group in enumerate(groups):
        kind = known or joint_type(group, several=False)
        assert kind is not None  # one axis is R_AXIS or P_AXIS at least
        name = joint.child if i == len(groups) - 1 else f"{group[0].coordinate}_link"
        body = ExportedBody(name, body, location, (joint.name,), group, kind, joint.motor)
        system.bodies.append(body)
        location = np.zeros(3)
    assert body is not None
    return body


def joint_type(motions: Sequence[ExportedMotion], several: bool) -> JointType | None:
    """Return CASPR's type for motions in their order.

    Args:
        motions: From parent to child.
        several: Whether they are one joint of ours of several axes; else they are one each.
    """
    usual = ("universal", "planar") if several else ("single", "chain")
    for kind in JOINT_TYPES.values():
        if kind.assembly in usual and len(kind.motions) == len(motions):
            pairs = list(zip(kind.motions, motions, strict=True))
            if all(
                a.kind == b.kind and (a.axis is None or _same(np.array(a.axis), b.direction))
                for a, b in pairs
            ):
                return kind
    return None


def _same(a: Vector3, b: Vector3) -> bool:
    return float(np.max(np.abs(a - b))) <= SAME_AXIS


def _add_links(system: ExportedSystem, robot: Robot) -> None:
    for link in robot.links:
        body, pose = system.places[link.name]
        if body is None:
            if link.inertia.mass > 0.0:
                system.notes.append(
                    f"link '{link.name}': {link.inertia.mass:g} kg left out: it is fixed to the "
                    "world, and CASPR's ground has no mass"
                )
            continue
        body.links.append(link.name)
        if not link.inertia.is_massless:
            moved = move_inertia(link.inertia, pose)
            # a sum with nothing would already round
            body.inertia = moved if body.inertia is None else add_inertia(body.inertia, moved)


def _used_links(robot: Robot) -> set[str]:
    """Return the links that muscles and frames are on."""
    used = {frame.link for frame in robot.frames}
    if robot.operational_frame is not None:
        used.add(robot.frame(robot.operational_frame).link)
    surfaces = {item.name: item.link for item in robot.wrap_surfaces}
    for muscle in robot.muscles:
        for item in muscle.path:
            used.add(surfaces.get(getattr(item, "surface", ""), "") or getattr(item, "link", ""))
    return used


def _join_chains(system: ExportedSystem, used: set[str]) -> None:
    """Make one joint of those that follow each other in one point, as ``S_EULER_XYZ`` does."""
    longest = max(kind.size for kind in JOINT_TYPES.values())
    children: dict[int, int] = {}
    for body in system.bodies:
        children[id(body.parent)] = children.get(id(body.parent), 0) + 1
    joined: set[int] = set()
    for body in reversed(system.bodies):
        if id(body) in joined or len(body.motions) > 1:
            continue
        chain = [body]
        while len(chain) < longest:
            above = chain[0].parent
            if (
                above is None
                or above.inertia is not None
                or len(above.motions) > 1
                or above.motor != body.motor
                or children[id(above)] > 1
                or np.any(chain[0].location)
                or used.intersection(above.links)
            ):
                break
            chain.insert(0, above)
        for start in range(len(chain) - 1):
            motions = [motion for part in chain[start:] for motion in part.motions]
            kind = joint_type(motions, several=False)
            if kind is not None:
                first, between = chain[start], chain[start:-1]
                body.parent, body.location = first.parent, first.location
                body.joints = tuple(name for part in chain[start:] for name in part.joints)
                body.motions, body.kind = motions, kind
                joined.update(id(part) for part in between)
                break
    system.bodies = [body for body in system.bodies if id(body) not in joined]


def _add_notes(system: ExportedSystem, robot: Robot) -> None:
    renamed: list[str] = []
    for body in system.bodies:
        if len(body.links) > 1:
            others = ", ".join(f"'{name}'" for name in body.links if name != body.name)
            system.notes.append(f"link '{body.name}': {others} fixed to it became part of it")
        stem = f"{body.name}_joint"
        for motion, part in zip(body.motions, body.kind.motions, strict=True):
            chain = body.kind.assembly == "chain"
            back = f"{stem}_{part.letter}" if chain else stem
            if body.kind.assembly in ("universal", "planar"):
                back = f"{stem}_{body.motions.index(motion) + 1}"
            if motion.coordinate != back:
                renamed.append(f"'{motion.coordinate}' ({back})")
    if renamed:
        system.notes.append(
            "CASPR names no joints; an import names them after their links: " + ", ".join(renamed)
        )
    for what, unit in (
        ("effort", "Nm or N"),
        ("velocity", "rad/s or m/s"),
        ("damping", "Nms/rad or Ns/m"),
        ("friction", "Nm or N"),
    ):
        lost = [
            f"'{joint.name}' {getattr(axis, what):g}"
            for joint in robot.joints
            for axis in joint.axes
            if getattr(axis, what) not in (0.0, np.inf)
        ]
        if lost:
            label = f"{what} limits" if what in ("effort", "velocity") else what
            system.notes.append(f"{label} of joints left out, [{unit}]: {', '.join(lost)}")
