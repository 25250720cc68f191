"""The YAML file that says what a CAD file cannot: joints, materials, muscles.

Lengths in metres and places in the axes of the assembly, angles in radians, densities in kg/m^3.
``./cards import cad FILE --propose arm.yaml`` writes one to begin with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.cad.materials import DENSITIES
from cards_core.formats.imports.markers import TENSION_LIMITS
from cards_core.robot.elements import AXES_PER_KIND, JointAxis
from cards_core.typing import Vector3
from cards_core.yaml_fields import Document, Field, read_yaml

PlaceName: TypeAlias = "str | Vector3"
"""A place: the name of a feature or marker, or coordinates in the assembly, [m]."""

JOINT_KEYS = (
    "kind", "parent", "child", "at", "axis", "limits", "effort", "velocity", "damping",
    "friction", "confirmed", "features",
)  # fmt: skip
TOP_KEYS = (
    "name", "material", "floating", "links", "bodies", "joints", "surfaces", "muscles",
    "muscle_defaults", "frames", "operational_frame", "home", "gravity",
)  # fmt: skip
LONGEST_SPAN = 100.0
"""Coordinates beyond are millimetres taken for metres, [m]."""


@dataclass(frozen=True, eq=False)
class BodyEntry:
    """What is said about bodies that a pattern matches.

    Attributes:
        mass: [kg], or None.
        density: [kg/m^3], or None.
        material: Its name where the density is a material's.
        ignore: Leave the bodies out.
        where: The entry, for messages.
    """

    mass: float | None
    density: float | None
    material: str
    ignore: bool
    where: Field


@dataclass(frozen=True, eq=False)
class JointEntry:
    """A joint.

    Attributes:
        name, kind, parent, child: As in a robot.
        at: Where its frame is.
        axes: In assembly axes.
        where: The entry, for messages.
    """

    name: str
    kind: str
    parent: str
    child: str
    at: PlaceName
    axes: tuple[JointAxis, ...]
    where: Field


@dataclass(frozen=True, eq=False)
class PathEntry:
    """An element of a muscle's path.

    Attributes:
        place: Of a via point, or None.
        surface: Name of a wrap surface, or empty.
        side: Of a wrap, a point in the assembly that the muscle passes on the side of, or None.
        link: Link of a point that is given by coordinates, or empty.
        where: The entry, for messages.
    """

    place: PlaceName | None
    surface: str
    side: PlaceName | None
    link: str
    where: Field


@dataclass(frozen=True, eq=False)
class MuscleEntry:
    """A muscle: its path if it is not that of markers, and its limits [N] if they are stated."""

    path: tuple[PathEntry, ...]
    tension: tuple[float, float] | None
    where: Field


@dataclass(frozen=True, eq=False)
class FrameEntry:
    """A named frame at a place of a link; axes of the assembly."""

    at: PlaceName
    link: str
    where: Field


@dataclass(frozen=True, eq=False)
class Config:
    """Everything that the file says.

    Attributes:
        name: Of the robot, or None.
        material: Of bodies that nothing else is said about, or None.
        floating: The root link is free to move.
        links: Link to patterns of component paths; empty for one link a top component.
        bodies: Pattern to entry.
        joints: In order; None if the file has no such key.
        surfaces: Wrap surface to the name of the feature that it is.
        muscles, frames: By name.
        tension: Limits of muscles without their own, [N], or None.
        operational_frame: Its name, or None.
        home: Joint to coordinates.
        gravity: [m/s^2], or None.
        source: The file.
        top: The whole of it, for messages.
    """

    name: str | None = None
    material: str | None = None
    floating: bool = False
    links: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bodies: Mapping[str, BodyEntry] = field(default_factory=dict)
    joints: tuple[JointEntry, ...] | None = None
    surfaces: Mapping[str, tuple[str, Field]] = field(default_factory=dict)
    muscles: Mapping[str, MuscleEntry] = field(default_factory=dict)
    frames: Mapping[str, FrameEntry] = field(default_factory=dict)
    tension: tuple[float, float] | None = None
    operational_frame: str | None = None
    home: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    gravity: Vector3 | None = None
    source: str | None = None
    top: Field = field(default_factory=lambda: Field(Document({}, "<none>"), (), {}))


def read_config(path: str | Path) -> Config:
    """Read a configuration.

    Raises:
        DescriptionError: It cannot be read, a key or value is wrong, or a proposed joint has not
            been confirmed.
    """
    document = read_yaml(path)
    top = Field(document, (), document.data if document.data is not None else {})
    top.mapping(TOP_KEYS)

    def child(key: str) -> Field | None:
        return top[key] if top.has(key) and top[key].value is not None else None

    def entries(key: str) -> list[tuple[str, Field]]:
        block = child(key)
        return [] if block is None else [(name, block[name]) for name in block.mapping()]

    name, floating, gravity = child("name"), child("floating"), child("gravity")
    material, frame, tension = child("material"), child("operational_frame"), None
    if (defaults := child("muscle_defaults")) is not None:
        defaults.mapping(("tension",))
        tension = _tension(defaults["tension"])
    return Config(
        name=None if name is None else name.name(),
        material=None if material is None else material.text(DENSITIES),
        floating=floating is not None and floating.flag(),
        links={key: _patterns(value) for key, value in entries("links")},
        bodies={key: _body(value) for key, value in entries("bodies")},
        joints=(
            tuple(_joint(key, value) for key, value in entries("joints"))
            if top.has("joints")
            else None
        ),
        surfaces={key: (value.text(), value) for key, value in entries("surfaces")},
        muscles={key: _muscle(value) for key, value in entries("muscles")},
        frames={key: _frame(value) for key, value in entries("frames")},
        tension=tension,
        operational_frame=None if frame is None else frame.text(),
        home={key: _numbers(value) for key, value in entries("home")},
        gravity=None if gravity is None else gravity.vector(3, "x, y, z [m/s^2]"),
        source=str(path),
        top=top,
    )


def _patterns(value: Field) -> tuple[str, ...]:
    if isinstance(value.value, str):
        return (value.text(),)
    return tuple(item.text() for item in value.items())


def _numbers(value: Field) -> tuple[float, ...]:
    if isinstance(value.value, list):
        return tuple(item.number() for item in value.items())
    return (value.number(),)


def _body(value: Field) -> BodyEntry:
    keys = value.mapping(("mass", "density", "material", "ignore"))
    said = [key for key in keys if key != "ignore" or value["ignore"].flag()]
    if len(said) != 1:
        raise value.error(
            f"says {', '.join(said) or 'nothing'}", "one of mass, density, material, ignore: true"
        )
    material = value["material"].text(DENSITIES) if "material" in said else ""
    density = value["density"].number(above=0.0) if "density" in said else None
    return BodyEntry(
        mass=value["mass"].number(above=0.0) if "mass" in said else None,
        density=DENSITIES[material] if material else density,
        material=material,
        ignore="ignore" in said,
        where=value,
    )


def _joint(name: str, value: Field) -> JointEntry:
    value.mapping(JOINT_KEYS)
    if value.has("confirmed") and not value["confirmed"].flag():
        raise value["confirmed"].error(
            "the joint was found, and nobody has confirmed it",
            "true, if the joint is right; else correct the joint, or delete it",
        )
    kind = value["kind"].text(AXES_PER_KIND)
    count = AXES_PER_KIND[kind]
    axes = _axes(value, count)
    return JointEntry(
        name=name,
        kind=kind,
        parent=value["parent"].text(),
        child=value["child"].text(),
        at=place(value["at"]) if value.has("at") or kind != "fixed" else np.zeros(3),
        axes=axes,
        where=value,
    )


def _axes(value: Field, count: int) -> tuple[JointAxis, ...]:
    """Return the axes of a joint with ``count`` of them; one value, or a list of one for each."""
    if count == 0:
        for key in ("axis", "limits", "effort", "velocity", "damping", "friction"):
            if value.has(key):
                raise value[key].error("a joint of this kind has no axis", f"no '{key}'")
        return ()
    axis = value["axis"]
    vectors = [axis] if count == 1 else axis.items(at_least=count)
    if len(vectors) != count:
        raise axis.error(f"has {len(vectors)} axes", f"{count}")
    limits: list[Field | None] = [None] * count
    if value.has("limits"):
        found = [value["limits"]] if count == 1 else value["limits"].items(at_least=count)
        if len(found) != count:
            raise value["limits"].error(f"has {len(found)} pairs", f"{count}")
        limits = list(found)
    numbers = {
        key: value[key].number(at_least=0.0) if value.has(key) else default
        for key, default in (
            ("effort", math.inf),
            ("velocity", math.inf),
            ("damping", 0.0),
            ("friction", 0.0),
        )
    }
    out = []
    for vector, limit in zip(vectors, limits, strict=True):
        direction = vector.vector(3, "x, y, z in assembly axes")
        length = float(np.linalg.norm(direction))
        if length < 1e-9:
            raise vector.error("is the null vector", "a direction in assembly axes")
        lower, upper = -math.inf, math.inf
        if limit is not None:
            lower, upper = limit.vector(2, "lower, upper")
            if lower >= upper:
                raise limit.error(f"is {lower:g} to {upper:g}", "lower < upper")
        out.append(JointAxis(direction / length, float(lower), float(upper), **numbers))
    if count == 2 and abs(out[0].axis @ out[1].axis) > 1e-6:
        raise axis.error("the axes are not at right angles", "axes at right angles")
    return tuple(out)


def place(value: Field) -> PlaceName:
    """Return a place.

    Raises:
        DescriptionError: Neither a text nor three numbers of a sensible size.
    """
    if isinstance(value.value, str):
        return value.text()
    point = value.vector(3, "x, y, z in the assembly [m], or the name of a feature or marker")
    if np.abs(point).max() > LONGEST_SPAN:
        raise value.error(
            f"is {float(np.abs(point).max()):g} m away", f"metres, at most {LONGEST_SPAN:g}"
        )
    return point


def _tension(value: Field) -> tuple[float, float]:
    low, high = value.vector(2, "lowest, highest tension [N]")
    if not 0.0 <= low < high:
        raise value.error(f"is {low:g} to {high:g} N", "0 <= lowest < highest")
    return float(low), float(high)


def _muscle(value: Field) -> MuscleEntry:
    value.mapping(("path", "tension"))
    path: tuple[PathEntry, ...] = ()
    if value.has("path"):
        path = tuple(_path_element(item) for item in value["path"].items(at_least=2))
        for item in (path[0], path[-1]):
            if item.surface:
                raise item.where.error("a path begins and ends with a point", "a point")
    return MuscleEntry(path, _tension(value["tension"]) if value.has("tension") else None, value)


def _path_element(value: Field) -> PathEntry:
    if isinstance(value.value, str):
        return PathEntry(value.text(), "", None, "", value)
    if value.has("wrap"):
        value.mapping(("wrap", "side"))
        side = place(value["side"]) if value.has("side") else None
        return PathEntry(None, value["wrap"].text(), side, "", value)
    value.mapping(("link", "at"))
    return PathEntry(place(value["at"]), "", None, value["link"].text(), value)


def _frame(value: Field) -> FrameEntry:
    value.mapping(("at", "link"))
    at = place(value["at"])
    if not isinstance(at, str) and not value.has("link"):
        raise value.error("has coordinates and no link", "the key 'link'")
    return FrameEntry(at, value["link"].text() if value.has("link") else "", value)


def tension_of(config: Config, muscle: str) -> tuple[tuple[float, float], bool]:
    """Return the limits of a muscle [N], and whether anything states them."""
    entry = config.muscles.get(muscle)
    stated = (entry.tension if entry is not None else None) or config.tension
    return (stated, True) if stated else (TENSION_LIMITS, False)


def unknown(value: Field, kind: str, name: str, known: list[str]) -> DescriptionError:
    """Return the error for a name that does not exist.

    Args:
        value: Where it is said.
        kind: What it should be, e.g. ``link``.
        name: The name.
        known: The names that exist.
    """
    shown = ", ".join(known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
    return value.error(f"no {kind} '{name}'", f"one of {shown}" if known else "none exist")
