"""What a parameter is, parameters as fields of a dataclass, and sets of parameters.

A parameter is declared once: as a `Parameter` with its name, or with `parameter` as a field of a
dataclass, whose name and type it then has. Readers, messages and the tables of the documentation
come from that.

Whole numbers are accepted where real numbers are meant (``kp: 100``), and one number where all
entries of a vector are to be equal, or where a vector may have any length. A value that does not
fit is refused with a message that names the expected length and range.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast, get_args, get_type_hints

import numpy as np

from cards_core.checks import shown
from cards_core.errors import ParameterError, UnknownNameError
from cards_core.parameters.parameter_file import Section, check_parameters, where_given

Value = bool | int | float | str | np.ndarray | tuple[str, ...] | tuple[np.ndarray, ...] | None

_SCALARS = {bool: "bool", int: "integer", float: "double", str: "string"}
"""Types of single values, and their names; bool first, because True is an int."""

LARGEST = 1e20
"""Bound of the size of all numbers that may not be infinite: beyond it, products overflow."""

REQUIRED: Any = dataclasses.MISSING
"""Default of a parameter that must be given."""


@dataclass(frozen=True)
class Parameter:
    """What a parameter is.

    Attributes:
        name: As in ``ros2 param``.
        default: Its type decides what is accepted; a sequence of numbers makes a vector. None
            where there need be no value, `REQUIRED` where one must be given.
        description: One sentence.
        unit: Shown in brackets after the description.
        lower, upper: Limits of each number, inclusive.
        above: Exclusive lower limit of each number.
        choices: Accepted texts, if only these are.
        length: Accepted length of a vector; None means any.
        names: What the entries of a vector belong to, for messages.
        or_vector: A text may also be given as a vector of `length` numbers.
        square: A vector of `length` numbers may also be given as a square matrix: its rows, or
            all of its numbers by rows. It is an array of two dimensions then, and the limits do
            not hold for its entries. One number alone is no matrix.
        infinite: Numbers above `LARGEST` and infinite ones are accepted where a limit allows them.
        live: May be changed while the node runs.
        range_note: Said after the limits where a number is beyond them.
        default_text: Says what the default is where it comes from the model.
        kind: Type that the default does not show: of a single value, bool, int, float or str; of
            the entries of a sequence that are no numbers, str, or tuple for rows of numbers.
        noun: What messages and tables call it.
    """

    name: str
    default: bool | int | float | str | Sequence[float] | None
    description: str
    unit: str = ""
    lower: float = -math.inf
    upper: float = math.inf
    above: float = -math.inf
    choices: tuple[str, ...] = ()
    length: int | None = None
    names: tuple[str, ...] = ()
    or_vector: bool = False
    square: bool = False
    infinite: bool = False
    live: bool = False
    range_note: str = ""
    default_text: str = ""
    kind: type | None = None
    noun: str = "parameter"

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is REQUIRED

    @property
    def scalar_type(self) -> type | None:
        """Type of a single value; None for a sequence."""
        if isinstance(self.default, Sequence | np.ndarray) and not isinstance(self.default, str):
            return None
        if self.kind is not None:
            return self.kind
        return next(kind for kind in _SCALARS if isinstance(self.default, kind))

    @property
    def type_name(self) -> str:
        """Type in words."""
        if self.or_vector:
            return "string or double[]"
        scalar = self.scalar_type
        if scalar is not None:
            return _SCALARS[scalar]
        return "string[]" if self.kind is str else "double[][]" if self.kind else "double[]"

    @property
    def full_description(self) -> str:
        """Description with unit, limits and length."""
        text = self.description
        if self.unit:
            text += f" [{self.unit}]"
        if self.choices:
            return f"{text} ({self.range_text})"
        return f"{text} {self.range_text}".rstrip()

    @property
    def range_text(self) -> str:
        """Limits of each number, or the choices; empty if there are none."""
        if self.choices:
            return " | ".join(self.choices)
        if math.isfinite(self.above):
            end = f", <= {self.upper:g}" if math.isfinite(self.upper) else ""
            return f"> {self.above:g}{end}"
        if math.isfinite(self.lower) and math.isfinite(self.upper):
            return f"{self.lower:g} .. {self.upper:g}"
        if math.isfinite(self.lower):
            return f">= {self.lower:g}"
        return f"<= {self.upper:g}" if math.isfinite(self.upper) else ""

    @property
    def shown_default(self) -> str:
        """The default in Markdown, in words where the model decides."""
        default = self.default
        if self.default_text:
            return self.default_text
        if self.required:
            return "required"
        if default is None:
            return "none"
        if isinstance(default, bool):
            return "true" if default else "false"
        if isinstance(default, str):
            return f"`{default}`" if default else "empty"
        if isinstance(default, int | float):
            return f"{default:g}"
        values = set(default)
        alike = len(values) == 1 and all(map(_is_number, values))
        return f"{default[0]:g} each" if alike else str(list(default))

    def check(self, value: Any) -> Value:
        """Return the value in the form its user works with.

        Vectors are arrays, lists of texts or of rows tuples.

        Raises:
            ParameterError: With what was wrong and what would be right.
        """
        if isinstance(value, np.generic):  # a number of NumPy is a number
            value = value.item()
        if value is None and self.default is None:
            return None
        scalar = self.scalar_type
        if scalar is bool:
            if isinstance(value, bool):
                return value
            raise self._wrong(value, "true or false")
        if scalar is str:
            if self.or_vector and not isinstance(value, str):
                return self._check_vector(value)
            if not isinstance(value, str):
                raise self._wrong(value, "a text")
            if self.choices and value not in self.choices:
                raise self._wrong(value, " or ".join(self.choices))
            return value
        if scalar is int:
            if isinstance(value, bool) or not isinstance(value, int):
                raise self._wrong(value, "a whole number")
            self._check_range(_floats([value]), value)
            return value
        if scalar is float:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self._wrong(value, "a number")
            self._check_range(_floats([value]), value)
            return float(value)
        if self.kind is str:
            return self._check_texts(value)
        if self.kind is tuple:
            if not isinstance(value, list | tuple | np.ndarray):
                raise self._wrong(value, "a list of lists of numbers")
            return tuple(self._check_vector(row) for row in value)
        return self._check_vector(value)

    def _check_texts(self, value: Any) -> tuple[str, ...]:
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list | tuple) or not all(isinstance(t, str) for t in texts):
            raise self._wrong(value, "a list of texts")
        return tuple(texts)

    def _check_vector(self, value: Any) -> np.ndarray:
        expected = "numbers" if self.length is None else f"{self.length} numbers"
        if self.names:
            expected += f", one for each of {', '.join(self.names)}"
        if self.square and self.length is not None:
            expected += f", or {self.length**2}, a matrix by rows"
        entries = value.tolist() if isinstance(value, np.ndarray) else value
        if _is_number(entries):
            entries = [entries] * (1 if self.length is None else self.length)
        numbers = [] if entries is None else entries  # ROS has no type for an empty list
        listed = isinstance(numbers, Iterable) and not isinstance(numbers, str | bytes | Mapping)
        if listed:
            numbers = [v.item() if isinstance(v, np.generic) else v for v in numbers]
            if self.square and all(isinstance(row, list | tuple) for row in numbers):
                if any(len(row) != len(numbers) for row in numbers):
                    raise self._wrong(value, f"a list of {expected}")
                numbers = [number for row in numbers for number in row]
        if not listed or not all(map(_is_number, numbers)):
            raise self._wrong(value, f"a list of {expected}")
        array = _floats(numbers)
        if self._is_matrix(array.size):
            if not np.all(np.isfinite(array)):
                raise self._wrong(value, "finite numbers")
            return array.reshape(-1, math.isqrt(array.size))
        if self.length is not None and array.size != self.length:
            raise ParameterError(
                f"{self.noun} '{self.name}' has {array.size} values (expected: {expected})"
            )
        self._check_range(array, value)
        return array

    def _is_matrix(self, size: int) -> bool:
        """Tell whether so many numbers are those of a matrix."""
        return self.square and self.length is not None and size == self.length**2 > self.length

    def _check_range(self, array: np.ndarray, value: Any) -> None:
        good = (array >= self.lower) & (array <= self.upper)
        if math.isfinite(self.above):
            good &= array > self.above
        if not self.infinite:
            good &= np.abs(array) <= LARGEST
        if not np.all(good):
            finite = "" if self.infinite else f"finite, {_size(array)}"
            limits = f"{self.lower:g} .. {self.upper:g}"
            if math.isfinite(self.above):
                limits = self.range_text
            raise self._wrong(value, f"{finite}{limits}{self.range_note}")

    def _wrong(self, value: Any, expected: str) -> ParameterError:
        return ParameterError(
            f"{self.noun} '{self.name}' is {shown(value)} (expected: {expected})"
        )

    @property
    def ros_default(self) -> Any:
        """The default in a form that rclpy declares; parameters of nodes have one."""
        if self.required:
            raise ParameterError(f"{self.noun} '{self.name}' has no default (nodes need one)")
        if self.default is None or isinstance(self.default, bool | int | float | str):
            return self.default
        return [float(x) for x in self.default] if self.kind is None else list(self.default)


def _size(array: np.ndarray) -> str:
    """Return what is expected of the size of numbers, if that is what is wrong."""
    over = np.isfinite(array) & (np.abs(array) > LARGEST)
    return f"size up to {LARGEST:g}, " if over.any() else ""


def parameter(
    default: bool | float | str | None,
    description: str,
    unit: str = "",
    *,
    lower: float = -math.inf,
    upper: float = math.inf,
    above: float = -math.inf,
    choices: tuple[str, ...] = (),
) -> Any:
    """Return a field of a dataclass that is a parameter; the arguments are those of `Parameter`.

    The field gives the parameter its name, the field's annotation its type: bool, int, float or
    str, or one of them and None. A field without it that is a dataclass of parameters itself is a
    group of them, see `groups_of`.
    """
    spec = Parameter(
        "", default, description, unit, lower=lower, upper=upper, above=above, choices=choices
    )
    return dataclasses.field(default=default, metadata={"parameter": spec})


@dataclass(frozen=True)
class Group:
    """A field of a dataclass of parameters that holds parameters of its own.

    Attributes:
        name: Of the field.
        kind: The dataclass.
        default: What holds where the group is not given: its parameters' defaults, or None;
            `REQUIRED` if it must be given.
    """

    name: str
    kind: type
    default: Any

    @property
    def required(self) -> bool:
        """Whether the group must be given."""
        return self.default is REQUIRED


def parameters_of(cls: type) -> tuple[Parameter, ...]:
    """Return the parameters that are fields of a dataclass, without those of its groups."""
    return _fields_of(cast(Any, cls))[0]


def groups_of(cls: type) -> tuple[Group, ...]:
    """Return the groups of parameters that are fields of a dataclass."""
    return _fields_of(cast(Any, cls))[1]


@cache
def _fields_of(cls: Any) -> tuple[tuple[Parameter, ...], tuple[Group, ...]]:
    hints = get_type_hints(cls)
    specs, groups = [], []
    for item in dataclasses.fields(cls):
        kind = _only_type(hints[item.name])
        if "parameter" in item.metadata:
            spec = item.metadata["parameter"]
            specs.append(dataclasses.replace(spec, name=item.name, kind=kind))
            continue
        default = item.default
        if item.default_factory is not dataclasses.MISSING:
            default = item.default_factory()
        groups.append(Group(item.name, kind, default))
    return tuple(specs), tuple(groups)


def _only_type(hint: Any) -> type:
    """Return T of the annotations ``T`` and ``T | None``."""
    arms = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    (found,) = (arm for arm in arms if arm is not type(None))
    only: type = found
    return only


def parameter_table(specs: Sequence[Parameter], *, live: bool = True) -> list[str]:
    """Return the rows of a Markdown table: name, type, default, live, description.

    Args:
        specs: At least one.
        live: With a column that says which may be changed while the node runs.
    """
    column, line = (" live |", "---|") if live else ("", "")
    rows = [f"| {specs[0].noun} | type | default |{column} meaning |", f"|---|---|---|{line}---|"]
    for spec in specs:
        cell = (" yes |" if spec.live else "  |") if live else ""
        text = spec.full_description.replace("|", "\\|")
        rows.append(f"| `{spec.name}` | {spec.type_name} | {spec.shown_default} |{cell} {text} |")
    return rows


def attribute_table(specs: Iterable[Parameter]) -> list[str]:
    """Return the rows of a Markdown table: name, unit, default, accepted values, meaning."""
    rows = ["| attribute | unit | default | accepted | meaning |", "|---|---|---|---|---|"]
    for spec in specs:
        accepted = ", ".join(f"`{name}`" for name in spec.choices) or spec.range_text
        default = "" if spec.default is None else spec.shown_default
        cells = (f"`{spec.name}`", spec.unit, default, accepted)
        rows.append(f"| {' | '.join(cells)} | {spec.description} |")
    return rows


def check_new(name: str, declared: Collection[str]) -> None:
    """Refuse a name that has been declared before, by the same class or by the loop.

    Raises:
        ParameterError: It has.
    """
    if name in declared:
        raise ParameterError(
            f"parameter '{name}' is declared twice (expected: a name that neither the class nor "
            "the loop around it has declared)"
        )


def _floats(numbers: Sequence[float]) -> np.ndarray:
    """Return an array of numbers, of NaN if one is beyond floating point: no range has it."""
    try:
        return np.array(numbers, dtype=float)
    except OverflowError:
        return np.full(len(numbers), np.nan)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class ParameterStore(Protocol):
    """Where values of declared parameters come from: a node, or `ParameterSet`."""

    def declare(self, specs: Iterable[Parameter]) -> None:
        """Declare parameters; raises `ParameterError` for a value that does not fit."""
        ...

    def refuse_others(self, elsewhere: Iterable[str] = ()) -> None:
        """Call after the last `declare`: raises for what was given and is not declared.

        Args:
            elsewhere: Names that others of the same process have.
        """
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
            check_new(spec.name, self._specs)
            self._specs[spec.name] = spec
            value = self._given.get(spec.name, spec.ros_default)
            try:
                self._values[spec.name] = spec.check(value)
            except ParameterError as error:
                place = where_given(self._node, spec.name, value, self._sections)
                raise ParameterError(f"{place}{error}") from None

    def refuse_others(self, elsewhere: Iterable[str] = ()) -> None:
        """Call after the last `declare`.

        Args:
            elsewhere: Names that others of the same process have.

        Raises:
            DescriptionError: A value was given for a parameter that is not declared.
        """
        known = [*self._values, *elsewhere]
        check_parameters(self._node, self._given, known, self._sections)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the declared parameters."""
        return iter(self._values)

    def __getitem__(self, name: str) -> Any:
        """Return the checked value of a declared parameter. Raises `UnknownNameError`."""
        try:
            return self._values[name]
        except KeyError:
            raise UnknownNameError("parameter", name, self._values) from None
