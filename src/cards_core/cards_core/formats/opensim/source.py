"""An OpenSim model as data, before anything is converted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from cards_core.formats.opensim.functions import Function
from cards_core.formats.xml_lines import XmlElement
from cards_core.robot.elements import Inertia, WrapGeometry
from cards_core.spatial import Pose
from cards_core.typing import Array, Vector3

GROUND = "ground"
"""OpenSim's fixed frame; y points up."""


@dataclass(frozen=True, eq=False)
class Coordinate:
    """A generalized coordinate.

    Attributes:
        name: Name.
        default: Value at the start, [rad] or [m].
        lower, upper: Range, [rad] or [m].
        locked: Whether it stays at its default: it is locked, or its range has no extent.
        prescribed: Whether it follows a function of time.
        element: Where it stands.
    """

    name: str
    default: float
    lower: float
    upper: float
    locked: bool
    prescribed: bool
    element: XmlElement


@dataclass(frozen=True, eq=False)
class Axis:
    """One rotation or translation of a joint: an axis and a function of at most one coordinate."""

    axis: Vector3
    coordinate: str | None
    function: Function


@dataclass(frozen=True, eq=False)
class SourceJoint:
    """``T_parent_child = parent_frame @ motion(q) @ child_frame^-1``.

    The motion has the translation ``sum_i t_i(q) a_i`` in axes of the parent frame and the
    rotation ``R(a_1, r_1(q)) R(a_2, r_2(q)) R(a_3, r_3(q))``.

    Attributes:
        name: Name.
        kind: Element of the file, e.g. ``CustomJoint``.
        parent, child: Bodies.
        parent_frame: Frame to parent body.
        child_frame: Frame to child body.
        rotations: At most three.
        translations: At most three.
        coordinates: Names of its own coordinates.
        element: Where it stands.
    """

    name: str
    kind: str
    parent: str
    child: str
    parent_frame: Pose
    child_frame: Pose
    rotations: tuple[Axis, ...]
    translations: tuple[Axis, ...]
    coordinates: tuple[str, ...]
    element: XmlElement


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body."""

    name: str
    inertia: Inertia
    meshes: int
    element: XmlElement


@dataclass(frozen=True, eq=False)
class WrapObject:
    """A wrap object of a body.

    Attributes:
        name: Name.
        body: Body.
        geometry: Shape.
        pose: Shape to body.
        quadrant: (index of the axis, sign) or None for all of it.
        active: Whether paths wrap over it at all.
        element: Where it stands.
    """

    name: str
    body: str
    geometry: WrapGeometry
    pose: Pose
    quadrant: tuple[int, float] | None
    active: bool
    element: XmlElement


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A path point that is fixed to a body."""

    body: str
    position: Vector3
    element: XmlElement


@dataclass(frozen=True, eq=False)
class ConditionalPoint:
    """A path point that is on the path while a coordinate is in a range, [rad] or [m]."""

    body: str
    position: Vector3
    coordinate: str
    lower: float
    upper: float
    element: XmlElement


@dataclass(frozen=True, eq=False)
class MovingPoint:
    """A path point whose x, y, z are functions of coordinates; see `Axis`."""

    body: str
    axes: tuple[tuple[str | None, Function], ...]
    element: XmlElement


SourcePoint: TypeAlias = FixedPoint | ConditionalPoint | MovingPoint


@dataclass(frozen=True, eq=False)
class PathWrap:
    """A wrap object on a path, between two of its points (indices from 0, inclusive)."""

    wrap: WrapObject
    first: int
    last: int
    element: XmlElement


@dataclass(frozen=True, eq=False)
class SourceMuscle:
    """What pulls along a path; its numbers are read from `element` by the converter."""

    name: str
    kind: str
    points: tuple[SourcePoint, ...]
    wraps: tuple[PathWrap, ...]
    element: XmlElement


@dataclass(frozen=True, eq=False)
class Coupling:
    """``dependent = function(independent)``."""

    dependent: str
    independent: str
    function: Function
    element: XmlElement


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What is not read.

    Attributes:
        element: Its element.
        why: The reason.
        weighty: It pulls along a path, or what it does is not known: a warning, not a note.
    """

    element: XmlElement
    why: str
    weighty: bool = False


@dataclass(frozen=True, eq=False)
class SourceModel:
    """An OpenSim model.

    Attributes:
        name: Name.
        path: File.
        version: Number of the document's format.
        gravity: In ground axes, [m/s^2].
        bodies: By name, without the ground.
        joints: In the order of the file.
        coordinates: By name.
        couplings: By the name of the dependent coordinate.
        muscles: Muscles, cables, springs and ligaments.
        motors: What drives a coordinate.
        left_out: What is not read.
    """

    name: str
    path: Path
    version: int
    gravity: Array
    bodies: Mapping[str, Body]
    joints: tuple[SourceJoint, ...]
    coordinates: Mapping[str, Coordinate]
    couplings: Mapping[str, Coupling]
    muscles: tuple[SourceMuscle, ...]
    motors: tuple[XmlElement, ...] = ()
    left_out: tuple[LeftOut, ...] = field(default=())
