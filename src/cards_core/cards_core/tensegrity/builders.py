"""Builders of a structure file: which tags become what.

Classes of ours are ``rod``, ``box``, ``sphere`` and ``cable``; those of NASA's toolkit keep their
names, parameters, defaults and units (the file's length, kg, s: a force is in kg length/s^2).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from cards_core.errors import ParameterError
from cards_core.parameters.declaration import parameters_of
from cards_core.robot.actuators import ImpedanceControl
from cards_core.tensegrity.kinds import EDGE, NODE, Ball, Box, Color, Cord, Kind, Rod, Winch
from cards_core.tensegrity.tags import TagSearch
from cards_core.tensegrity.units import Convention
from cards_core.yaml_fields import Field


class _Checked(Protocol):
    """Parameters that must fit each other."""

    def check(self) -> None: ...


T = TypeVar("T", bound=_Checked)


@dataclass(frozen=True, eq=False)
class Builder:
    """One line of ``builders``.

    Attributes:
        search: What it looks for.
        kind: What becomes of it.
        at: Where it is written; None for those that NASA's files have without saying so.
    """

    search: TagSearch
    kind: Kind
    at: Field | None


OWN: Mapping[str, type[Kind]] = {"rod": Rod, "box": Box, "sphere": Ball, "cable": Cord}


def read_builders(root: Field, convention: Convention) -> list[Builder]:
    """Return the builders of a file in their order.

    Raises:
        DescriptionError: No such class or parameter, or a value out of range.
    """
    if not root.has("builders"):
        return []
    field = root["builders"]
    out = []
    for name in field.mapping():
        item = field[name]
        try:
            search = TagSearch.parse(name)
        except ValueError as error:
            raise item.error(str(error), "tags to look for, such as 'outer cable'") from None
        item.mapping()
        kind = item["class"].text((*OWN, *_NASA))
        make = _read_own if kind in OWN else _read_nasa
        out.append(Builder(search, make(item, kind, convention), item))
    return out


def nasa_defaults(convention: Convention) -> list[Builder]:
    """Return the builders that each of NASA's files begins with."""
    made = {"rod": "tgRodInfo", "string": "tgBasicActuatorInfo", "box": "tgBoxInfo",
            "sphere": "tgSphereInfo"}  # fmt: skip
    return [
        Builder(TagSearch.parse(tag), _make_nasa(kind, {}, convention), None)
        for tag, kind in made.items()
    ]


# Ours ------------------------------------------------------------------------------------------


def _read_own(item: Field, kind: str, convention: Convention) -> Kind:
    cls = OWN[kind]
    if cls is not Cord:
        more: dict[str, Any] = {}
        if item.has("color"):
            more["color"] = _color(item["color"])
        return _read(item, cls, convention, ("class", "color"), more)
    more = {}
    if item.has("anchor"):
        more["anchors"] = _anchors(item["anchor"])
    if item.has("actuator"):
        more["actuator"] = _read(item["actuator"], Winch, convention)
    if item.has("control"):
        more["control"] = _read(item["control"], ImpedanceControl, convention)
    keys = ("class", "anchor", "actuator", "control")
    return _read(item, Cord, convention, keys, more)


def _read(
    field: Field,
    cls: type[T],
    convention: Convention,
    keys: Iterable[str] = (),
    more: Mapping[str, Any] | None = None,
) -> T:
    """Return a dataclass of parameters; those with the unit m are in the file's length."""
    specs = {spec.name: spec for spec in parameters_of(cls)}
    field.mapping((*keys, *specs))
    values: dict[str, Any] = dict(more or {})
    for name, spec in specs.items():
        if not field.has(name):
            if spec.required:
                raise field.error(f"has no '{name}'", f"{name}: {spec.full_description}")
            continue
        item = field[name]
        value = item.number() if spec.scalar_type is float else item.value
        try:
            value = spec.check(value)
        except ParameterError as error:
            raise item.error(str(error)) from None
        values[name] = value
        if spec.unit == "m":
            values[name] = item.number() * convention.length
    made = cls(**values)
    try:
        made.check()
    except ParameterError as error:
        raise field.error(str(error)) from None
    return made


def _anchors(field: Field) -> tuple[str, str]:
    """Return where both ends are; one text stands for both."""
    if isinstance(field.value, list):
        first, second = (item.text((EDGE, NODE)) for item in _two(field, "anchors: edge or node"))
        return first, second
    both = field.text((EDGE, NODE))
    return both, both


def _two(field: Field, what: str) -> list[Field]:
    items = field.items()
    if len(items) != 2:
        raise field.error(f"has {len(items)} entries", f"2 {what}")
    return items


def _color(field: Field) -> Color:
    values = field.vector()
    if len(values) not in (3, 4) or (values < 0).any() or (values > 1).any():
        raise field.error("is no colour", "red, green, blue and opacity if wanted, each 0 to 1")
    red, green, blue, *opacity = values.tolist()
    return red, green, blue, opacity[0] if opacity else 1.0


# NASA's ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Number:
    """A parameter: default, power of the unit of length in it, and the minimum value."""

    default: float | bool
    power: int = 0
    least: float = 0.0
    above: bool = False  # whether the value must be above the least one


_SURFACE = {
    "density": _Number(1.0, -3),
    "friction": _Number(1.0),
    "roll_friction": _Number(0.0),
    "restitution": _Number(0.2),
}
_CABLE = {
    "stiffness": _Number(1000.0, above=True),
    "damping": _Number(10.0),
    "pretension": _Number(0.0, 1),
    "history": _Number(0.0),
    "max_tension": _Number(1000.0, 1, above=True),
    "target_velocity": _Number(100.0, 1, above=True),
    "min_actual_length": _Number(0.1, 1),
    "min_rest_length": _Number(0.1, 1),
    "rotation": _Number(0.0, least=-1e3),
}
_BASIC = {**_CABLE, "moveCablePointAToEdge": _Number(True), "moveCablePointBToEdge": _Number(True)}
_MOTOR = {
    **_CABLE,
    "radius": _Number(1.0, 1, above=True),
    "motor_friction": _Number(0.0, 2),
    "motor_inertia": _Number(1.0, 2, above=True),
    "back_drivable": _Number(0.0),
}
_RADIUS = {"radius": _Number(0.5, 1, above=True)}
_SIDES = {"width": _Number(1.0, 1, above=True), "height": _Number(1.0, 1, above=True)}

_NASA: Mapping[str, Mapping[str, _Number]] = {
    "tgRodInfo": {**_RADIUS, **_SURFACE},
    "tgBoxInfo": {**_SIDES, **_SURFACE},
    "tgSphereInfo": {**_RADIUS, **_SURFACE},
    "tgBasicActuatorInfo": _BASIC,
    "tgBasicContactCableInfo": _BASIC,
    "tgKinematicActuatorInfo": _MOTOR,
    "tgKinematicContactCableInfo": _MOTOR,
}
"""Class to its parameters, with the defaults of the toolkit's YAML reader."""


def _read_nasa(item: Field, kind: str, convention: Convention) -> Kind:
    item.mapping(("class", "parameters"))
    specs = _NASA[kind]
    given: dict[str, float | bool] = {}
    if item.has("parameters") and item["parameters"].value is not None:
        parameters = item["parameters"]
        for name in parameters.mapping(specs):
            spec, field = specs[name], parameters[name]
            if isinstance(spec.default, bool) or isinstance(field.value, bool):
                given[name] = field.flag()
            elif spec.above:
                given[name] = field.number(above=spec.least)
            else:
                given[name] = field.number(at_least=spec.least)
    return _make_nasa(kind, given, convention)


def _make_nasa(kind: str, given: Mapping[str, float | bool], convention: Convention) -> Kind:
    """Return what a class of NASA makes, in SI."""
    v: dict[str, float] = {}
    for name, spec in _NASA[kind].items():
        v[name] = float(given.get(name, spec.default)) * convention.length**spec.power
    surface: dict[str, Any] = {name: v[name] for name in _SURFACE if name in v}
    match kind:
        case "tgRodInfo":
            return Rod(radius=v["radius"], **surface)
        case "tgSphereInfo":
            return Ball(radius=v["radius"], **surface)
        case "tgBoxInfo":  # the toolkit's width and height are half of the box
            return Box(width=2 * v["width"], height=2 * v["height"], **surface)
    actuator = Winch(tension_max=v["max_tension"], speed_max=v["target_velocity"])
    if kind.startswith("tgKinematic"):
        actuator = dataclasses.replace(
            actuator,
            type="motor",
            radius=v["radius"],
            friction=v["motor_friction"],
            inertia=v["motor_inertia"],
            backdrivable=v["back_drivable"] != 0.0,
        )
    ends = (v.get(f"moveCablePoint{end}ToEdge", 1.0) for end in "AB")
    first, second = (EDGE if moved else NODE for moved in ends)
    return Cord(
        stiffness=v["stiffness"],
        damping=v["damping"],
        pretension=v["pretension"],
        contact="Contact" in kind,
        rotation=math.degrees(v["rotation"]),
        min_length=v["min_actual_length"],
        min_rest_length=v["min_rest_length"],
        anchors=(first, second),
        actuator=actuator,
    )
