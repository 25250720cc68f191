"""Read ``<parameters>``: the fields of an actuator's dataclass as attributes.

`cards_core.robot.actuators` states names, units, ranges and defaults; nothing here knows a
single actuator. A field that is a dataclass itself is a child element of the same name.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from cards_core.formats.sdf.schema import Content, check_content
from cards_core.formats.sdf.values import attribute, boolean, known_names, parse_number
from cards_core.formats.xml_lines import XmlElement, shorten


class _Checked(Protocol):
    def check(self) -> None: ...


T = TypeVar("T", bound=_Checked)


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One field of a parameter dataclass.

    Attributes:
        name: Of the field and of the attribute or child element.
        type: float, int, bool or str; a dataclass for child elements.
        nested: True for child elements.
        required: True if there is no default.
        default: The default; for child elements the one that an absent element gives.
        metadata: What `cards_core.robot.actuators.parameter` stored.
    """

    name: str
    type: type
    nested: bool
    required: bool
    default: Any
    metadata: Mapping[str, Any]


def parameters_of(cls: type) -> tuple[Parameter, ...]:
    """Return the parameters of an actuator class, or of a class nested in one."""
    out: list[Parameter] = []
    hints = typing.get_type_hints(cls)
    for item in dataclasses.fields(cls):
        kind = hints[item.name]
        if isinstance(kind, types.UnionType):  # X | None
            (kind,) = (arm for arm in typing.get_args(kind) if arm is not type(None))
        default = item.default
        if item.default_factory is not dataclasses.MISSING:
            default = item.default_factory()
        required = default is dataclasses.MISSING
        nested = dataclasses.is_dataclass(kind)
        out.append(Parameter(item.name, kind, nested, required, default, item.metadata))
    return tuple(out)


def read_parameters(muscle: XmlElement, cls: type[T]) -> T:
    """Return the actuator with the parameters in the ``<parameters>`` of a muscle.

    The element may be missing where every parameter has a default.

    Raises:
        DescriptionError: A parameter is unknown, missing, not a number, outside its range, or
            does not fit the others.
    """
    element = muscle.child("parameters")
    if element is None:
        mandatory = [item.name for item in parameters_of(cls) if item.required]
        if mandatory:
            raise muscle.error("has no <parameters>", f"<parameters> with {', '.join(mandatory)}")
        return cls()
    return _read(element, cls)


def _read(element: XmlElement, cls: type[T]) -> T:
    known = parameters_of(cls)
    check_content(
        element,
        Content(
            once=frozenset(item.name for item in known if item.nested),
            attributes=frozenset(item.name for item in known if not item.nested),
        ),
    )
    values: dict[str, Any] = {}
    for item in known:
        child = element.child(item.name) if item.nested else None
        if child is not None:
            values[item.name] = _read(child, item.type)
        elif not item.nested and item.name in element.attrib:
            values[item.name] = _value(element, item)
        elif item.required:
            kind = f"<{item.name}>" if item.nested else f"'{item.name}'"
            raise element.error(f"has no {kind}", _expected(item))
    made = cls(**values)
    try:
        made.check()
    except ValueError as error:
        raise element.error(str(error), "parameters that fit each other") from None
    return made


def _value(element: XmlElement, item: Parameter) -> float | int | bool | str:
    text = attribute(element, item.name)
    if item.type is bool:
        return boolean(text, element, what=item.name)
    if item.type is str:
        if item.metadata["choices"] and text not in item.metadata["choices"]:
            raise element.error(
                f"{item.name} '{shorten(text)}' is unknown", known_names(item.metadata["choices"])
            )
        return text
    value = parse_number(text, element, what=item.name)
    if item.type is int and value != int(value):
        raise element.error(f"{item.name} {value:g} is not whole", _expected(item))
    low, high = item.metadata["minimum"], item.metadata["maximum"]
    if value <= item.metadata["above"] or not low <= value <= high:
        unit = f" {item.metadata['unit']}" if item.metadata["unit"] else ""
        raise element.error(f"{item.name} {value:g}{unit}", _expected(item))
    return int(value) if item.type is int else value


def _expected(item: Parameter) -> str:
    """Return what a parameter should be, with range, unit and meaning."""
    meta = item.metadata
    if item.nested or not meta:
        return f"<{item.name}>"
    if meta["choices"]:
        return f'{item.name}="{"|".join(meta["choices"])}"'
    unit = f" {meta['unit']}" if meta["unit"] else ""
    limits = []
    if meta["above"] > -float("inf"):
        limits.append(f"greater than {meta['above']:g}{unit}")
    if meta["minimum"] > -float("inf"):
        limits.append(f"at least {meta['minimum']:g}{unit}")
    if meta["maximum"] < float("inf"):
        limits.append(f"at most {meta['maximum']:g}{unit}")
    return f"{item.name}: {meta['meaning']}, {' and '.join(limits) or f'a number{unit}'}"
