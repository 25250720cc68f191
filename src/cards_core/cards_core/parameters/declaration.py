"""What a parameter is, and sets of parameters.

Whole numbers are accepted where real numbers are meant (``kp: 100``), and one number where all
entries of a vector are to be equal. A value that does not fit is refused with a message that names
the expected length and range.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cards_core.errors import ParameterError, UnknownNameError
from cards_core.parameters.parameter_file import Section, check_parameters, where_given

Value = bool | int | float | str | np.ndarray


@dataclass(frozen=True)
class Parameter:
    """What a parameter is.

    Attributes:
        name: As in ``ros2 param``.
        default: Its type decides what is accepted; a sequence of numbers makes a vector.
        description: One sentence.
        unit: Shown in brackets after the description.
        lower, upper: Limits of each number, inclusive.
        choices: Accepted texts, if only these are.
        length: Accepted length of a vector; None means any.
        names: What the entries of a vector belong to, for messages.
        or_vector: A text may also be given as a vector of `length` numbers.
        infinite: Infinite numbers are accepted where a limit allows them.
        live: May be changed while the node runs.
        default_text: Says what the default is where it comes from the model.
    """

    name: str
    default: bool | int | float | str | Sequence[float]
    description: str
    unit: str = ""
    lower: float = -math.inf
    upper: float = math.inf
    choices: tuple[str, ...] = ()
    length: int | None = None
    names: tuple[str, ...] = ()
    or_vector: bool = False
    infinite: bool = False
    live: bool = False
    default_text: str = ""

    @property
    def type_name(self) -> str:
        """Type in words."""
        if self.or_vector:
            return "string or double[]"
        kinds = ((bool, "bool"), (int, "integer"), (float, "double"), (str, "string"))
        for kind, name in kinds:
            if isinstance(self.default, kind):
                return name
        return "double[]"

    @property
    def full_description(self) -> str:
        """Description with unit, limits and length."""
        text = self.description
        if self.unit:
            text += f" [{self.unit}]"
        if math.isfinite(self.lower) and math.isfinite(self.upper):
            text += f" {self.lower:g} .. {self.upper:g}"
        elif math.isfinite(self.lower):
            text += f" >= {self.lower:g}"
        elif math.isfinite(self.upper):
            text += f" <= {self.upper:g}"
        if self.choices:
            text += f" ({' | '.join(self.choices)})"
        return text

    def check(self, value: Any) -> Value:
        """Return the value in the form the node works with.

        Raises:
            ParameterError: With what was wrong and what would be right.
        """
        default = self.default
        if isinstance(default, bool):
            if isinstance(value, bool):
                return value
            raise self._wrong(value, "true or false")
        if isinstance(default, str):
            if self.or_vector and not isinstance(value, str):
                return self._check_vector(value)
            if not isinstance(value, str):
                raise self._wrong(value, "a text")
            if self.choices and value not in self.choices:
                raise self._wrong(value, " or ".join(self.choices))
            return value
        if isinstance(default, int):
            if isinstance(value, bool) or not isinstance(value, int):
                raise self._wrong(value, "a whole number")
            self._check_range(np.array([float(value)]), value)
            return value
        if isinstance(default, float):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self._wrong(value, "a number")
            self._check_range(np.array([float(value)]), value)
            return float(value)
        return self._check_vector(value)

    def _check_vector(self, value: Any) -> np.ndarray:
        expected = "numbers" if self.length is None else f"{self.length} numbers"
        if self.names:
            expected += f", one for each of {', '.join(self.names)}"
        if isinstance(value, int | float) and not isinstance(value, bool):
            if self.length is None:
                raise self._wrong(value, f"a list of {expected}")
            value = [value] * self.length
        entries = [] if value is None or isinstance(value, str) else list(value)
        if isinstance(value, str) or any(
            isinstance(v, bool) or not isinstance(v, int | float) for v in entries
        ):
            raise self._wrong(value, f"a list of {expected}")
        array = np.array(entries, dtype=float)
        if self.length is not None and array.size != self.length:
            raise ParameterError(
                f"parameter '{self.name}' has {array.size} values (expected: {expected})"
            )
        self._check_range(array, value)
        return array

    def _check_range(self, array: np.ndarray, value: Any) -> None:
        good = (array >= self.lower) & (array <= self.upper)
        if not self.infinite:
            good &= np.isfinite(array)
        if not np.all(good):
            finite = "" if self.infinite else "finite, "
            raise self._wrong(value, f"{finite}{self.lower:g} .. {self.upper:g}")

    def _wrong(self, value: Any, expected: str) -> ParameterError:
        return ParameterError(f"parameter '{self.name}' is {value!r} (expected: {expected})")

    @property
    def ros_default(self) -> Any:
        """The default in a form that rclpy declares."""
        if isinstance(self.default, bool | int | float | str):
            return self.default
        return [float(x) for x in self.default]


def parameter_table(specs: Iterable[Parameter]) -> list[str]:
    """Return the rows of a Markdown table: name, type, default, live, description."""
    rows = ["| parameter | type | default | live | meaning |", "|---|---|---|---|---|"]
    for spec in specs:
        default = spec.default_text or _default_text(spec.default)
        live = "yes" if spec.live else ""
        text = spec.full_description.replace("|", "\\|")
        rows.append(f"| `{spec.name}` | {spec.type_name} | {default} | {live} | {text} |")
    return rows


def _default_text(default: bool | int | float | str | Sequence[float]) -> str:
    if isinstance(default, bool):
        return "true" if default else "false"
    if isinstance(default, str):
        return f"`{default}`" if default else "empty"
    if isinstance(default, int | float):
        return f"{default:g}"
    values = sorted(set(default))
    return f"{values[0]:g} each" if len(values) == 1 else str(list(default))


class ParameterStore(Protocol):
    """Where values of declared parameters come from: a node, or `ParameterSet`."""

    def declare(self, specs: Iterable[Parameter]) -> None:
        """Declare parameters; raises `ParameterError` for a value that does not fit."""
        ...

    def refuse_others(self) -> None:
        """Call after the last `declare`: raises for what was given and is not declared."""
        ...

    def __getitem__(self, name: str) -> Any:
        """Return the checked value of a declared parameter."""
        ...


class ParameterSet:
    """Parameters without a node, e.g. from a parameter file.

    Args:
        given: Values by name; the others have their defaults.
        node: Whose parameters they are, for messages.
        sections: Where the values come from, for messages.
    """

    def __init__(
        self, given: Mapping[str, Any], node: str = "", sections: Sequence[Section] = ()
    ) -> None:
        self._given = dict(given)
        self._node = node
        self._sections = tuple(sections)
        self._values: dict[str, Value] = {}
        self._specs: dict[str, Parameter] = {}

    @property
    def specs(self) -> tuple[Parameter, ...]:
        """All declared parameters."""
        return tuple(self._specs.values())

    def declare(self, specs: Iterable[Parameter]) -> None:
        """Declare parameters. Raises `ParameterError` for a value that does not fit."""
        for spec in specs:
            self._specs[spec.name] = spec
            value = self._given.get(spec.name, spec.ros_default)
            try:
                self._values[spec.name] = spec.check(value)
            except ParameterError as error:
                place = where_given(self._node, spec.name, value, self._sections)
                raise ParameterError(f"{place}{error}") from None

    def refuse_others(self) -> None:
        """Call after the last `declare`.

        Raises:
            DescriptionError: A value was given for a parameter that is not declared.
        """
        check_parameters(self._node, self._given, self._values, self._sections)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the declared parameters."""
        return iter(self._values)

    def __getitem__(self, name: str) -> Any:
        """Return the checked value of a declared parameter. Raises `UnknownNameError`."""
        try:
            return self._values[name]
        except KeyError:
            raise UnknownNameError("parameter", name, self._values) from None
