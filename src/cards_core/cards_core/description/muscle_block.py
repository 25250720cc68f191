"""The content of our ``<plugin>`` element: muscles, home position, operational frame, motors.

The same text is read from a model file and from what Gazebo hands to the muscle plugin
(``sdf.to_string("")``), by the same code. The block is ours: what it does not know is an error.
New elements are entries of `ELEMENTS`, new actuator models entries of `MUSCLE_TYPES`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from cards_core.description.model import WORLD, Muscle, ViaPoint
from cards_core.description.sdf_schema import Content, check_content
from cards_core.description.sdf_values import (
    attribute,
    known_names,
    numbers,
    parse_number,
    required,
    text_of,
    unknown_name,
)
from cards_core.description.xml_lines import XmlElement, XmlSource, parse_xml, shorten

PLUGIN_FILENAME = "gz-sim-python-system-loader-system"
PLUGIN_NAME = "gz::sim::systems::PythonSystemLoader"
MODULE = "cards_muscle_plugin.system"
"""``<module_name>`` by which our block is recognised."""

SAME_PLACE = 1e-9
"""Neighbouring via points on one link closer than this are at the same place, [m]."""


@dataclass(frozen=True, eq=False)
class MuscleBlock:
    """What a block says, with names as written (relative to the model that holds it).

    Attributes:
        muscles: In the order of the block.
        operational_frame: Frame or link that operational-space control moves.
        home: Joint name to initial coordinates.
        motors: Names of the joints with an actuator of their own.
        elements: ``(kind, name)`` to the element that says it, for messages.
    """

    muscles: tuple[Muscle, ...] = ()
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
) -> MuscleBlock:
    """Read the muscles from the text of a ``<plugin>`` element.

    Args:
        text: ``<plugin ...>...</plugin>`` as XML text, path or file.
        name: Name of the text for messages.
        links: Names that via points may use besides ``world``; None skips this check.

    Raises:
        DescriptionError: The text is not our block, or says something wrong.
    """
    root = parse_xml(text, name=name)
    if root.tag != "plugin":
        raise root.error("not a plugin", f"<plugin> with <module_name>{MODULE}</module_name>")
    if not is_muscle_plugin(root):
        raise root.error("not the muscle plugin", f"<module_name>{MODULE}</module_name>")
    return read_muscle_block(root, links=links)


def read_muscle_block(plugin: XmlElement, *, links: Collection[str] | None = None) -> MuscleBlock:
    """Read the muscles from a parsed ``<plugin>`` element; arguments as `parse_muscle_block`."""
    check_content(plugin, _PLUGIN)
    collected = _Collected(links)
    for element in plugin:
        if element.tag in ELEMENTS:
            ELEMENTS[element.tag](element, collected)
    return MuscleBlock(
        tuple(collected.muscles),
        collected.operational_frame,
        collected.home,
        tuple(collected.motors),
        collected.elements,
    )


# Elements ------------------------------------------------------------------------------------


@dataclass
class _Collected:
    links: Collection[str] | None
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


def _read_muscle(element: XmlElement, out: _Collected) -> None:
    name = attribute(element, "name")
    kind = element.get("type", "cable").strip()
    if kind not in MUSCLE_TYPES:
        raise element.error(f"unknown type '{shorten(kind)}'", known_names(MUSCLE_TYPES))
    first = out.elements.get(("muscle", name))
    if first is not None:
        raise element.error(
            f"the name is taken by the muscle in line {first.line}", "unique names"
        )
    out.declare("muscle", name, element)
    out.muscles.append(MUSCLE_TYPES[kind](element, name, out.links))


def _read_cable(element: XmlElement, name: str, links: Collection[str] | None) -> Muscle:
    """Read a muscle that follows the commanded tension exactly."""
    check_content(element, _CABLE)
    lower, upper = _read_tension(required(element, "tension"))
    return Muscle(
        name=name,
        path=_read_path(element, links),
        tension_min=lower,
        tension_max=upper,
        kind="cable",
        line=element.line,
    )


def _read_tension(element: XmlElement) -> tuple[float, float]:
    """Read ``<tension min max/>``, [N]: 0 <= min <= max."""
    check_content(element, _TENSION)
    lower, upper = (
        parse_number(attribute(element, key), element, what=key) for key in ("min", "max")
    )
    if not 0.0 <= lower <= upper:
        raise element.error(f"min {lower:g} N, max {upper:g} N", "0 <= min <= max")
    return lower, upper


def _read_path(element: XmlElement, links: Collection[str] | None) -> tuple[ViaPoint, ...]:
    """Read the via points of a muscle, in order from origin to insertion."""
    path: list[ViaPoint] = []
    for item in element.children("via_point"):
        check_content(item, _VIA_POINT)
        link = attribute(item, "link")
        if links is not None and link != WORLD and link not in links:
            raise unknown_name(item, "link", link, [*links, WORLD])
        position = numbers(item, 3, what="numbers x y z")
        if path and path[-1].link == link:
            distance = float(np.linalg.norm(position - path[-1].position))
            if distance < SAME_PLACE:
                raise item.error(
                    "at the same place as the via point before it, on the same link",
                    "neighbouring via points at different places",
                )
        path.append(ViaPoint(link, position))
    if len(path) < 2:
        raise element.error(f"has {len(path)} via points", "at least two <via_point>")
    return tuple(path)


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
    "muscle": _read_muscle,
    "operational_frame": _read_operational_frame,
    "home": _read_home,
    "motor": _read_motor,
}
"""Elements of the block."""

MUSCLE_TYPES: Mapping[str, Callable[[XmlElement, str, Collection[str] | None], Muscle]] = {
    "cable": _read_cable
}
"""Values of ``<muscle type="...">``."""

_PLUGIN = Content(
    once=frozenset({"module_name", "operational_frame"}),
    many=frozenset(ELEMENTS) - {"operational_frame"},
    attributes=frozenset({"filename", "name"}),
)
_CABLE = Content(
    once=frozenset({"tension"}),
    many=frozenset({"via_point"}),
    attributes=frozenset({"name", "type"}),
)
_TENSION = Content(attributes=frozenset({"min", "max"}))
_VIA_POINT = Content(attributes=frozenset({"link"}), text=True)
_TEXT = Content(text=True)
_HOME = Content(attributes=frozenset({"joint"}), text=True)
_MOTOR = Content(attributes=frozenset({"joint"}))
