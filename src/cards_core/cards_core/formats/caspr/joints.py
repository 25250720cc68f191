"""Read a CASPR joint and build ours: one joint, or a chain with massless links between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.formats.caspr.fields import Node
from cards_core.formats.caspr.findings import FindingList
from cards_core.formats.caspr.joint_types import (
    JOINT_TYPES,
    UNSUPPORTED,
    ElementaryMotion,
    JointType,
)
from cards_core.formats.caspr.names import NameTable
from cards_core.robot.elements import Joint, JointAxis, Link
from cards_core.spatial import Pose
from cards_core.typing import Array, Vector3


@dataclass(frozen=True, eq=False)
class CasprJoint:
    """A ``<joint>`` as it stands in the file.

    Attributes:
        kind: Its type.
        initial, lower, upper: q_initial, q_min, q_max, shape (size,), [rad] or [m].
        axis: Unit axis of ``R_AXIS`` and ``P_AXIS``, shape (3,), else None.
        actuated: True if a motor drives it.
        line: Line in the file.
    """

    kind: JointType
    initial: Array
    lower: Array
    upper: Array
    axis: Vector3 | None
    actuated: bool
    line: int


@dataclass(frozen=True, eq=False)
class JointChain:
    """Our joints for one CASPR joint.

    Attributes:
        joints: From parent to child.
        links: The massless links between them.
        slots: For every CASPR coordinate: (our joint, index in its coordinates).
    """

    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    slots: tuple[tuple[str, int], ...]


def read_joint(joint: Node, link: str, findings: FindingList) -> CasprJoint:
    """Read a ``<joint>``.

    Args:
        joint: The element.
        link: Name of its link in the file, for remarks.
        findings: Takes remarks.

    Raises:
        DescriptionError: Unknown type, or values that do not fit it.
    """
    joint.warn_unknown(
        findings, attributes=("type", "q_initial", "q_min", "q_max", "actuated", "axis")
    )
    kind = _joint_type(joint)
    initial = joint.attribute_vector("q_initial")
    if len(initial) != kind.size:
        raise joint.error(
            f"q_initial has {len(initial)} values", f"{kind.size} for a {kind.name} joint"
        )
    if not np.all(np.isfinite(initial)):
        raise joint.error("q_initial is not finite", "finite numbers")
    lower, upper = _read_limits(joint, kind, link, findings)
    for i, letter in enumerate(kind.coordinates):
        if not lower[i] <= initial[i] <= upper[i]:
            findings.warn(
                "home-outside-limits",
                f"link '{link}'",
                f"q_initial of coordinate '{letter}' is {initial[i]:g}, outside "
                f"{lower[i]:g}..{upper[i]:g}; kept as written here, moved to the limit in the SDF",
                source=joint.source,
                line=joint.line,
            )
    axis = _read_axis(joint, kind)
    return CasprJoint(kind, initial, lower, upper, axis, _read_actuated(joint), joint.line)


def build_joints(
    source: CasprJoint, parent: str, child: str, location: Vector3, names: NameTable
) -> JointChain:
    """Return our joints for a CASPR joint.

    Args:
        source: The joint as read.
        parent: Name of our parent link.
        child: Name of our child link.
        location: Of the joint in the parent, shape (3,), [m].
        names: Takes the names: ``<child>_joint``, in chains ``<child>_joint_<letter>`` with links
            ``<child>_joint_<letter>_link``.
    """
    kind = source.kind
    stem = names.claim(f"{child}_joint")
    placement = Pose(translation=location)
    axes = tuple(_joint_axis(motion, source) for motion in kind.motions)
    where = [kind.coordinates.index(motion.letter) for motion in kind.motions]
    slots: list[tuple[str, int]] = [("", 0)] * kind.size
    if kind.assembly in ("universal", "planar"):
        for index, coordinate in enumerate(where):
            slots[coordinate] = (stem, index)
        joint = Joint(
            stem,
            kind.assembly,
            parent,
            child,
            placement,
            axes=axes,
            motor=source.actuated,
            line=source.line,
        )
        return JointChain((joint,), (), tuple(slots))
    joints: list[Joint] = []
    links: list[Link] = []
    for step, (motion, coordinate) in enumerate(zip(kind.motions, where, strict=True)):
        name = names.claim(f"{stem}_{motion.letter}") if kind.assembly == "chain" else stem
        last = step == kind.size - 1
        if not last:
            links.append(Link(names.claim(f"{name}_link"), line=source.line))
        end = child if last else links[-1].name
        joints.append(
            Joint(
                name,
                motion.kind,
                parent,
                end,
                placement,
                axes=(axes[step],),
                motor=source.actuated,
                line=source.line,
            )
        )
        slots[coordinate] = (name, 0)
        parent, placement = end, Pose()
    return JointChain(tuple(joints), tuple(links), tuple(slots))


def _joint_axis(motion: ElementaryMotion, source: CasprJoint) -> JointAxis:
    direction = np.array(motion.axis) if motion.axis is not None else source.axis
    assert direction is not None  # _read_axis has made sure
    i = source.kind.coordinates.index(motion.letter)
    return JointAxis(direction, lower=float(source.lower[i]), upper=float(source.upper[i]))


def _joint_type(joint: Node) -> JointType:
    name = joint.attribute("type")
    if name in UNSUPPORTED:
        raise joint.error(
            f"type '{name}' is named in CASPR but cannot be loaded there either",
            f"e.g. {UNSUPPORTED[name]}",
        )
    if name not in JOINT_TYPES:
        raise joint.error(f"unknown joint type '{name}'", ", ".join(JOINT_TYPES))
    return JOINT_TYPES[name]


def _read_limits(
    joint: Node, kind: JointType, original: str, findings: FindingList
) -> tuple[Array, Array]:
    """Return q_min and q_max; values that are missing become CASPR's defaults, with a warning."""
    by_letter = {motion.letter: motion.default_limits for motion in kind.motions}
    sides: list[Array] = []
    for side, attribute in enumerate(("q_min", "q_max")):
        values = np.array([by_letter[letter][side] for letter in kind.coordinates])
        given = joint.attribute_vector(attribute) if joint.get(attribute) else np.zeros(0)
        if len(given) > kind.size:
            raise joint.error(
                f"{attribute} has {len(given)} values", f"{kind.size} for a {kind.name} joint"
            )
        if len(given) < kind.size:
            missing = " ".join(kind.coordinates[len(given) :])
            findings.warn(
                "limits-missing",
                f"link '{original}'",
                f"{attribute} has {len(given)} of {kind.size} values; {missing} got CASPR's "
                f"default limit of the joint type",
                source=joint.source,
                line=joint.line,
            )
        values[: len(given)] = given
        sides.append(values)
    lower, upper = sides
    if np.any(lower > upper):
        i = int(np.argmax(lower > upper))
        raise joint.error(
            f"q_min {lower[i]:g} is larger than q_max {upper[i]:g} "
            f"(coordinate '{kind.coordinates[i]}')",
            "q_min <= q_max",
        )
    return lower, upper


def _read_axis(joint: Node, kind: JointType) -> Vector3 | None:
    needed = any(motion.axis is None for motion in kind.motions)
    if not needed:
        if joint.get("axis"):
            raise joint.error(
                f"axis given for a {kind.name} joint", "axis only with R_AXIS and P_AXIS"
            )
        return None
    axis = joint.attribute_vector("axis")
    norm = float(np.linalg.norm(axis))
    if len(axis) != 3 or not np.isfinite(norm) or norm < 1e-9:
        raise joint.error(f"axis '{joint.get('axis')}'", "three numbers that are not all zero")
    unit: Vector3 = axis / norm
    return unit


def _read_actuated(joint: Node) -> bool:
    value = joint.get("actuated") or "false"
    if value.lower() not in ("true", "false"):
        raise joint.error(f'actuated="{value}"', "true or false")
    return value.lower() == "true"
