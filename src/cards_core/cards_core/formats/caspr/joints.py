"""The joints of CASPR: their 18 types as sequences of elementary motions, and ours made of them.

A CASPR joint maps child to parent coordinates by ``x_p = location + r(q) + R(q) x_c``; there is no
fixed rotation between the frames. Each type below lists its motions from parent to child: slides
``r`` first (in parent axes), then rotations in the order in which their matrices are multiplied.

================= ============ ================== ============================================
type              CASPR q      R (child to parent) our joint(s)
================= ============ ================== ============================================
R_X R_Y R_Z       th           Rx, Ry, Rz          revolute
R_AXIS            th           about ``axis``      revolute
U_XY              a b          Rx(a) Ry(b)         universal
U_YZ              b g          Ry(b) Rz(g)         universal
U_XZ              a g          Rx(a) Rz(g)         universal
P_X               x            E                   prismatic
P_AXIS            d            E                   prismatic
P_XY P_XZ T_XYZ   x y, x z ..  E                   prismatic chain
PLANAR_XY         x y th       Rz(th)              planar
PLANAR_XZ         x z th       Ry(th)              planar
PLANAR_YZ         y z th       Rx(th)              planar
S_EULER_XYZ       a b g        Rx(a) Ry(b) Rz(g)   revolute chain a, b, g
S_FIXED_XYZ       a b g        Rz(g) Ry(b) Rx(a)   revolute chain g, b, a (reversed)
SPATIAL_EULER_XYZ x y z a b g  Rx(a) Ry(b) Rz(g)   prismatic x, y, z, revolute a, b, g
================= ============ ================== ============================================

A CASPR joint becomes one joint, or a chain of joints with massless links between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cards_core.formats.caspr.fields import Node
from cards_core.formats.imports.findings import FindingList, NameTable
from cards_core.robot.elements import Joint, JointAxis, Link
from cards_core.spatial import Pose
from cards_core.typing import Array, Vector3

# Types -----------------------------------------------------------------------------------------


AXES: Mapping[str, tuple[float, float, float]] = {
    "x": (1.0, 0.0, 0.0),
    "y": (0.0, 1.0, 0.0),
    "z": (0.0, 0.0, 1.0),
}


@dataclass(frozen=True)
class ElementaryMotion:
    """One degree of freedom.

    Attributes:
        letter: CASPR's letter of the coordinate; suffix of the joint in a chain.
        kind: ``revolute`` or ``prismatic``.
        axis: Unit axis, or None if the file gives it (``R_AXIS``, ``P_AXIS``).
    """

    letter: str
    kind: Literal["revolute", "prismatic"]
    axis: tuple[float, float, float] | None

    @property
    def default_limits(self) -> tuple[float, float]:
        """CASPR's physical limits of the coordinate: +-pi or none."""
        limit = math.pi if self.kind == "revolute" else math.inf
        return -limit, limit


@dataclass(frozen=True)
class JointType:
    """A CASPR joint type.

    Attributes:
        name: The XML attribute ``type``.
        motions: From parent to child.
        coordinates: Letters in the order of CASPR's q.
        assembly: ``single`` motion, one ``universal`` or ``planar`` joint, or a ``chain`` of
            one-motion joints with massless links between them.
    """

    name: str
    motions: tuple[ElementaryMotion, ...]
    coordinates: str
    assembly: Literal["single", "universal", "planar", "chain"]

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.motions)

    @property
    def rotation_coordinates(self) -> tuple[int, ...]:
        """Positions in q of a, b, g if the type has three-dimensional rotation, else empty."""
        if not self.name.startswith(("S_", "SPATIAL_")):
            return ()
        return tuple(self.coordinates.index(letter) for letter in "abg")


def _slide(axis: str) -> ElementaryMotion:
    return ElementaryMotion(axis, "prismatic", AXES[axis])


def _turn(letter: str, axis: str) -> ElementaryMotion:
    return ElementaryMotion(letter, "revolute", AXES[axis])


_A, _B, _G = _turn("a", "x"), _turn("b", "y"), _turn("g", "z")
_X, _Y, _Z = _slide("x"), _slide("y"), _slide("z")

_TYPES = (
    JointType("R_X", (_turn("t", "x"),), "t", "single"),
    JointType("R_Y", (_turn("t", "y"),), "t", "single"),
    JointType("R_Z", (_turn("t", "z"),), "t", "single"),
    JointType("R_AXIS", (ElementaryMotion("t", "revolute", None),), "t", "single"),
    JointType("U_XY", (_A, _B), "ab", "universal"),
    JointType("U_YZ", (_B, _G), "bg", "universal"),
    JointType("U_XZ", (_A, _G), "ag", "universal"),
    JointType("P_X", (_X,), "x", "single"),
    JointType("P_XY", (_X, _Y), "xy", "chain"),
    JointType("P_XZ", (_X, _Z), "xz", "chain"),
    JointType("P_AXIS", (ElementaryMotion("d", "prismatic", None),), "d", "single"),
    JointType("T_XYZ", (_X, _Y, _Z), "xyz", "chain"),
    JointType("PLANAR_XY", (_X, _Y, _turn("t", "z")), "xyt", "planar"),
    JointType("PLANAR_XZ", (_X, _Z, _turn("t", "y")), "xzt", "planar"),
    JointType("PLANAR_YZ", (_Y, _Z, _turn("t", "x")), "yzt", "planar"),
    JointType("S_EULER_XYZ", (_A, _B, _G), "abg", "chain"),
    JointType("S_FIXED_XYZ", (_G, _B, _A), "abg", "chain"),
    JointType("SPATIAL_EULER_XYZ", (_X, _Y, _Z, _A, _B, _G), "xyzabg", "chain"),
)

JOINT_TYPES: Mapping[str, JointType] = {item.name: item for item in _TYPES}
"""All joint types that CASPR can load, by name."""

UNSUPPORTED: Mapping[str, str] = {
    "S_QUATERNION": "S_EULER_XYZ",
    "SPATIAL_QUATERNION": "SPATIAL_EULER_XYZ",
}
"""Types that CASPR's sources name but cannot load, and the nearest one that it can."""


# From a file -----------------------------------------------------------------------------------


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
                at=joint,
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
                at=joint,
            )
        values[: len(given)] = given
        sides.append(values)
    lower, upper = sides
    if np.any(lower == upper):
        i = int(np.argmax(lower == upper))
        raise joint.error(
            f"q_min and q_max of coordinate '{kind.coordinates[i]}' are both {lower[i]:g}",
            "q_min < q_max; for a coordinate that shall not move, a type without it",
        )
    if np.any(lower > upper):
        i = int(np.argmax(lower > upper))
        raise joint.error(
            f"q_min {lower[i]:g} is larger than q_max {upper[i]:g} "
            f"(coordinate '{kind.coordinates[i]}')",
            "q_min < q_max",
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
