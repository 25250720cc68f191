"""The content of our ``<plugin>`` element: muscles, home position, operational frame, motors.

The same text is read from a model file and from what Gazebo hands to the muscle plugin
(``sdf.to_string("")``), by the same code. The block is ours: what it does not know is an error.

Muscle types and their parameters are those of `cards_core.robot.actuators.ACTUATORS`, which states
names, units, ranges and defaults; nothing here knows a single actuator. ``<parameters>`` has the
parameters of the actuator as attributes. A group of parameters is a child element of the same
name.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cards_core.errors import ParameterError
from cards_core.formats.sdf.muscle_path import (
    PATH_ELEMENTS,
    Names,
    read_friction,
    read_path,
    read_wrap_surface,
)
from cards_core.formats.sdf.schema import Content, check_content
from cards_core.formats.sdf.values import (
    attribute,
    boolean,
    known_names,
    numbers,
    parse_number,
    required,
    text_of,
)
from cards_core.formats.xml_lines import XmlElement, XmlSource, parse_xml, shorten
from cards_core.names import EXPECTED, name_problem
from cards_core.parameters.declaration import Parameter, Value, groups_of, parameters_of
from cards_core.robot.actuators import ACTUATORS, Actuator, ImpedanceControl, check_control
from cards_core.robot.elements import Muscle, WrapSurface

# Parameters ------------------------------------------------------------------------------------


class _Checked(Protocol):
    def check(self) -> None: ...


T = TypeVar("T", bound=_Checked)


def read_parameters(muscle: XmlElement, cls: type[T]) -> T:
    """Return the actuator with the parameters in the ``<parameters>`` of a muscle.

    The element may be missing where every parameter has a default.

    Raises:
        DescriptionError: A parameter is unknown, missing, not a number, outside its range, or
            does not fit the others.
    """
    element = muscle.child("parameters")
    if element is None:
        required = [spec.name for spec in parameters_of(cls) if spec.required]
        required += [group.name for group in groups_of(cls) if group.required]
        if required:
            raise muscle.error("has no <parameters>", f"<parameters> with {', '.join(required)}")
        return cls()
    return _read(element, cls)


def _read(element: XmlElement, cls: type[T]) -> T:
    specs, groups = parameters_of(cls), groups_of(cls)
    check_content(
        element,
        Content(
            once=frozenset(group.name for group in groups),
            attributes=frozenset(spec.name for spec in specs),
        ),
    )
    values: dict[str, Any] = {}
    for spec in specs:
        if spec.name in element.attrib:
            values[spec.name] = _value(element, spec)
        elif spec.required:
            raise element.error(f"has no '{spec.name}'", _expected(spec))
    for group in groups:
        child = element.child(group.name)
        if child is not None:
            values[group.name] = _read(child, group.kind)
        elif group.required:
            raise element.error(f"has no <{group.name}>", f"<{group.name}>")
    made = cls(**values)
    try:
        made.check()
    except ParameterError as error:
        raise element.error(str(error), "parameters that fit each other") from None
    return made


def _value(element: XmlElement, spec: Parameter) -> Value:
    text = attribute(element, spec.name)
    value: Value = text
    if spec.scalar_type is bool:
        value = boolean(text, element, what=spec.name)
    elif spec.scalar_type is not str:
        value = parse_number(text, element, what=spec.name)
        if spec.scalar_type is int and value == int(value):
            value = int(value)
    try:
        return spec.check(value)
    except ParameterError:
        unit = f" {spec.unit}" if spec.unit else ""
        raise element.error(f"{spec.name} is {shorten(text)}{unit}", _expected(spec)) from None


def _expected(spec: Parameter) -> str:
    """Return what a parameter should be: meaning, unit and range."""
    return f"{spec.name}: {spec.full_description}"


# Block -----------------------------------------------------------------------------------------


PLUGIN_FILENAME = "gz-sim-python-system-loader-system"
PLUGIN_NAME = "gz::sim::systems::PythonSystemLoader"
MODULE = "cards_muscle_plugin.system"
"""``<module_name>`` by which our block is recognised."""


@dataclass(frozen=True, eq=False)
class MuscleBlock:
    """What a block says, with names as written (relative to the model that holds it).

    Attributes:
        muscles: In the order of the block.
        wrap_surfaces: In the order of the block.
        operational_frame: Frame or link that operational-space control moves.
        home: Joint name to initial coordinates.
        motors: Names of the joints with an actuator of their own.
        elements: ``(kind, name)`` to the element that says it, for messages.
    """

    muscles: tuple[Muscle, ...] = ()
    wrap_surfaces: tuple[WrapSurface, ...] = ()
    operational_frame: str | None = None
    home: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    motors: tuple[str, ...] = ()
    elements: Mapping[tuple[str, str], XmlElement] = field(default_factory=dict)


def is_muscle_plugin(plugin: XmlElement) -> bool:
    """Return True for our ``<plugin>`` element, False for those of others.

    Raises:
        DescriptionError: The plugin holds muscles, but names another module: a spelling mistake
            that would make a robot without muscles.
    """
    module = plugin.child("module_name")
    if module is not None and text_of(module) == MODULE:
        return True
    if plugin.child("muscle") is not None:
        raise (module if module is not None else plugin).error(
            "a plugin with muscles that is not the muscle plugin",
            f"<module_name>{MODULE}</module_name>",
        )
    return False


def parse_muscle_block(
    text: XmlSource,
    *,
    name: str = "<plugin>",
    links: Collection[str] | None = None,
    base: str | os.PathLike[str] | None = None,
) -> MuscleBlock:
    """Read the muscles from the text of a ``<plugin>`` element.

    Args:
        text: ``<plugin ...>...</plugin>`` as XML text, path or file.
        name: Name of the text for messages.
        links: Names that paths may use besides ``world``; None skips this check.
        base: Folder that the mesh files of wrap surfaces are relative to.

    Raises:
        DescriptionError: The text is not our block, or says something wrong.
    """
    root = parse_xml(text, name=name)
    if root.tag != "plugin":
        raise root.error("not a plugin", f"<plugin> with <module_name>{MODULE}</module_name>")
    if not is_muscle_plugin(root):
        raise root.error("not the muscle plugin", f"<module_name>{MODULE}</module_name>")
    return read_muscle_block(root, links=links, base=None if base is None else Path(base))


def read_muscle_block(
    plugin: XmlElement, *, links: Collection[str] | None = None, base: Path | None = None
) -> MuscleBlock:
    """Read the muscles from a parsed ``<plugin>`` element; arguments as `parse_muscle_block`."""
    check_content(plugin, _PLUGIN)
    collected = _Collected(links, base)
    # surfaces first: a muscle may stand before the surfaces it wraps over
    for element in sorted(plugin, key=lambda item: item.tag != "wrap_surface"):
        if element.tag in ELEMENTS:
            ELEMENTS[element.tag](element, collected)
    return MuscleBlock(
        tuple(collected.muscles),
        tuple(collected.surfaces.values()),
        collected.operational_frame,
        collected.home,
        tuple(collected.motors),
        collected.elements,
    )


# Elements ------------------------------------------------------------------------------------


@dataclass
class _Collected:
    links: Collection[str] | None
    base: Path | None
    surfaces: dict[str, WrapSurface] = field(default_factory=dict)
    muscles: list[Muscle] = field(default_factory=list)
    operational_frame: str | None = None
    home: dict[str, tuple[float, ...]] = field(default_factory=dict)
    motors: list[str] = field(default_factory=list)
    elements: dict[tuple[str, str], XmlElement] = field(default_factory=dict)

    def declare(self, kind: str, name: str, element: XmlElement) -> None:
        """Remember where something is said. Raises `DescriptionError` if it is said twice."""
        first = self.elements.setdefault((kind, name), element)
        if first is not element:
            raise element.error(
                f"'{shorten(name)}' has a {kind} already, in line {first.line}", f"one {kind} each"
            )

    def named(self, element: XmlElement) -> str:
        """Return the name of a muscle or surface.

        Raises:
            DescriptionError: It is none (`cards_core.names`), or taken.
        """
        name = attribute(element, "name")
        if problem := name_problem(name):
            raise element.error(problem, EXPECTED)
        first = self.elements.setdefault((element.tag, name), element)
        if first is not element:
            raise element.error(
                f"the name is taken by the {element.tag} in line {first.line}", "unique names"
            )
        return name


def _read_wrap_surface(element: XmlElement, out: _Collected) -> None:
    name = out.named(element)
    out.surfaces[name] = read_wrap_surface(element, name, links=out.links, base=out.base)


def _read_muscle(element: XmlElement, out: _Collected) -> None:
    kind = element.get("type", "cable").strip()
    if kind not in ACTUATORS:
        raise element.error(f"unknown type '{shorten(kind)}'", known_names(ACTUATORS))
    check_content(element, _MUSCLE)
    name = out.named(element)
    lower, upper = _read_tension(element, ACTUATORS[kind])
    actuator = read_parameters(element, ACTUATORS[kind])
    control = _read_control(element, actuator)
    out.muscles.append(
        Muscle(
            name=name,
            path=read_path(element, Names(out.links, out.surfaces)),
            tension_min=lower,
            tension_max=upper,
            actuator=actuator,
            friction_speed=_read_friction_speed(element),
            contact=_read_contact(element),
            friction=_read_friction(element),
            control=control,
            line=element.line,
        )
    )


def _read_tension(muscle: XmlElement, actuator: type[Actuator]) -> tuple[float, float]:
    """Read ``<tension min max/>``, [N]: 0 <= min <= max.

    Mandatory for types that take a force command; optional for others that take commands, refused
    for passive ones, where there is nothing to limit.
    """
    element = muscle.child("tension")
    if element is None:
        if "force" in actuator.commands:
            required(muscle, "tension")
        return 0.0, math.inf
    if not actuator.commands:
        raise element.error(
            f"a {actuator.kind} takes no command to limit", "no <tension> for this type"
        )
    check_content(element, _TENSION)
    lower, upper = (
        parse_number(attribute(element, key), element, what=key) for key in ("min", "max")
    )
    if not 0.0 <= lower <= upper:
        raise element.error(f"min {lower:g} N, max {upper:g} N", "0 <= min <= max")
    return lower, upper


def _read_control(muscle: XmlElement, actuator: Actuator) -> ImpedanceControl:
    """Read ``<control/>``, the impedance law of a muscle that takes a tension."""
    element = muscle.child("control")
    if element is None:
        return ImpedanceControl()
    if "force" not in actuator.commands:
        raise element.error(f"a {actuator.kind} takes no tension", "no <control> for this type")
    control = _read(element, ImpedanceControl)
    try:
        check_control(actuator, control)
    except ParameterError as error:
        raise element.error(str(error)) from None
    return control


def _read_friction_speed(element: XmlElement) -> float:
    if "friction_speed" not in element.attrib:
        return Muscle.friction_speed
    text = attribute(element, "friction_speed")
    speed = parse_number(text, element, what="friction_speed")
    if speed <= 0.0:
        raise element.error(f"friction_speed {speed:g} m/s", "a speed greater than 0")
    return speed


def _read_contact(element: XmlElement) -> bool:
    if "contact" not in element.attrib:
        return Muscle.contact
    return boolean(attribute(element, "contact"), element, what="contact")


def _read_friction(element: XmlElement) -> float:
    """Read ``friction`` of a muscle with contact; other paths have it where they rub."""
    if "friction" in element.attrib and not _read_contact(element):
        raise element.error(
            "friction without contact", 'contact="true", or friction of its via points and wraps'
        )
    return read_friction(element)


def _read_operational_frame(element: XmlElement, out: _Collected) -> None:
    check_content(element, _TEXT)
    name = text_of(element)
    if not name:
        raise element.error("is empty", "the name of a frame or link")
    out.elements["operational_frame", name] = element
    out.operational_frame = name


def _read_home(element: XmlElement, out: _Collected) -> None:
    check_content(element, _HOME)
    joint = attribute(element, "joint")
    out.declare("home", joint, element)
    # a free joint has 7 coordinates; the number for this joint is checked where joints are known
    out.home[joint] = tuple(float(x) for x in numbers(element, *range(1, 8)))


def _read_motor(element: XmlElement, out: _Collected) -> None:
    check_content(element, _MOTOR)
    joint = attribute(element, "joint")
    out.declare("motor", joint, element)
    out.motors.append(joint)


ELEMENTS: Mapping[str, Callable[[XmlElement, _Collected], None]] = {
    "wrap_surface": _read_wrap_surface,
    "muscle": _read_muscle,
    "operational_frame": _read_operational_frame,
    "home": _read_home,
    "motor": _read_motor,
}
"""Elements of the block."""

_PLUGIN = Content(
    once=frozenset({"module_name", "operational_frame"}),
    many=frozenset(ELEMENTS) - {"operational_frame"},
    attributes=frozenset({"filename", "name"}),
)
_MUSCLE = Content(
    once=frozenset({"tension", "parameters", "control"}),
    many=frozenset(PATH_ELEMENTS),
    attributes=frozenset({"name", "type", "friction_speed", "contact", "friction"}),
)
_TENSION = Content(attributes=frozenset({"min", "max"}))
_TEXT = Content(text=True)
_HOME = Content(attributes=frozenset({"joint"}), text=True)
_MOTOR = Content(attributes=frozenset({"joint"}))
