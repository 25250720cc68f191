"""The 18 joint types of CASPR as sequences of elementary motions.

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
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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
