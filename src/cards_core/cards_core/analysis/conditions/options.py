"""Options of conditions: dataclasses whose fields know unit and meaning, to and from JSON.

The single source for what a condition can be told: the command line, jobs on disk and workers in
other processes make the same object from the same JSON.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from cards_core.errors import CardsError, UnknownNameError

Group = TypeVar("Group", bound="Options")


class ConditionError(CardsError):
    """A condition that cannot be made for this robot with these options."""


def option(
    unit: str,
    text: str,
    default: Any,
    *,
    minimum: float = -math.inf,
    above: float = -math.inf,
    choices: tuple[str, ...] = (),
) -> Any:
    """A dataclass field that is an option.

    Args:
        unit: SI unit, empty if it has none.
        text: What it means, half a sentence.
        default: What holds without it; None where "not given" has a meaning of its own.
        minimum: Inclusive lower end, of every number in it.
        above: Exclusive lower end, of every number in it.
        choices: Accepted names, for text.
    """
    return field(
        default=default,
        metadata={
            "unit": unit,
            "text": text,
            "minimum": minimum,
            "above": above,
            "choices": choices,
        },
    )


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of the options of all conditions; a condition without options uses it as it is.

    Fields hold numbers, text, True/False, None, and tuples of numbers or of such tuples, so that
    every group is JSON.
    """

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            ConditionError: A value has the wrong type or is out of its range; the message names
                the option.
        """
        hints = get_type_hints(type(self))
        for item in dataclasses.fields(self):
            given, hint = getattr(self, item.name), hints[item.name]
            value = _fitted(given, hint)
            if value is _REFUSED:
                raise ConditionError(f"option '{item.name}' is {given!r}, expected {item.type}")
            object.__setattr__(self, item.name, value)
            _check_range(item.name, value, item.metadata)

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON: all of them, also those that have their default."""
        return {item.name: _listed(getattr(self, item.name)) for item in dataclasses.fields(self)}

    @classmethod
    def from_json(cls: type[Group], values: Mapping[str, Any]) -> Group:
        """Make options of what `to_json` returned, or of a part of it.

        Raises:
            UnknownNameError: There is no option of this name.
            ConditionError: A value is of the wrong type or out of range.
        """
        names = [item.name for item in dataclasses.fields(cls)]
        for name in values:
            if name not in names:
                raise UnknownNameError("option", name, names)
        return cls(**dict(values))


_REFUSED = object()


def _fitted(value: Any, hint: Any) -> Any:
    """Return a value as its type wants it, or _REFUSED.

    Lists are tuples, integers are floats, and one number or name may stand where a list of them
    may.
    """
    if isinstance(hint, types.UnionType):
        fits = (_fitted(value, part) for part in get_args(hint))
        return next((item for item in fits if item is not _REFUSED), _REFUSED)
    if get_origin(hint) is tuple:
        if hasattr(value, "tolist"):
            value = value.tolist()
        if _fitted(value, get_args(hint)[0]) is not _REFUSED and get_args(hint)[0] in (float, str):
            value = (value,)
        if not isinstance(value, list | tuple):
            return _REFUSED
        items = tuple(_fitted(item, get_args(hint)[0]) for item in value)
        return _REFUSED if any(item is _REFUSED for item in items) else items
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, bool):
        return _REFUSED
    return value if isinstance(value, hint) else _REFUSED


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


def _numbers(value: Any) -> list[float]:
    if isinstance(value, tuple):
        return [number for item in value for number in _numbers(item)]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    return [float(value)]


def _check_range(name: str, value: Any, metadata: Mapping[str, Any]) -> None:
    for number in _numbers(value):
        if not math.isfinite(number):
            raise ConditionError(f"option '{name}' is {value!r}, expected finite numbers")
        if metadata.get("minimum", -math.inf) > number:
            raise ConditionError(
                f"option '{name}' is {number:g}, expected at least {metadata['minimum']:g}"
            )
        if metadata.get("above", -math.inf) >= number:
            raise ConditionError(
                f"option '{name}' is {number:g}, expected more than {metadata['above']:g}"
            )
    choices = metadata.get("choices", ())
    if choices and isinstance(value, str) and value not in choices:
        raise UnknownNameError(f"value of option '{name}'", value, choices)
