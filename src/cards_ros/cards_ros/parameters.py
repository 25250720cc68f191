"""Node parameters that say what they are and refuse what does not fit.

A parameter is declared from a `Parameter` specification: description, unit, limits, expected
length. A value that does not fit is refused with a message that names the expected length and
range, at start-up and at run time alike.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from cards_core.errors import CardsError, ParameterError, UnknownNameError
from cards_core.parameters.declaration import Parameter, Value, check_new
from cards_core.parameters.parameter_file import (
    check_parameters,
    command_line_sections,
    where_given,
)

__all__ = ["Parameter", "Parameters", "Value", "keep_arguments", "passed_on"]

_ARGUMENTS: weakref.WeakKeyDictionary[Context, tuple[str, ...]] = weakref.WeakKeyDictionary()


def keep_arguments(context: Context, arguments: Sequence[str]) -> None:
    """Remember what a context was initialised with: rclpy cannot tell.

    Nodes of the context say then where a parameter that they do not have was given, and accept
    it where it was given to nodes of any name.
    """
    _ARGUMENTS[context] = tuple(arguments)


def passed_on(node: Node, namespace: str, names: Collection[str]) -> list[RosParameter]:
    """Return what a node was given that is for another node of its process and its name, too.

    Args:
        node: The node that the parameters of the process were meant for.
        namespace: Of the other node, as ROS gives it parameters; what a file has for the other
            node alone is left out.
        names: Of the parameters to pass on.
    """
    other = f"{namespace}/{node.get_name()}"
    own: set[str] = set()
    for section in command_line_sections(_ARGUMENTS.get(node.context, ())):
        if section.concerns(other) and not section.concerns(node.get_fully_qualified_name()):
            own |= section.values.keys()
    # rclpy has no public access
    given = node._parameter_overrides
    return [value for name, value in given.items() if name in names and name not in own]


class Parameters:
    """The declared parameters of a node, checked and converted.

    Args:
        node: The node to declare them on.
        on_change: Called with the checked new values before they are accepted; may raise
            `CardsError` to refuse them.
    """

    def __init__(
        self, node: Node, on_change: Callable[[Mapping[str, Value]], None] | None = None
    ) -> None:
        self._node = node
        self._specs: dict[str, Parameter] = {}
        self._values: dict[str, Value] = {}
        self._on_change = on_change
        self._declaring = False
        node.add_on_set_parameters_callback(self._on_set)

    def declare(self, specs: Iterable[Parameter]) -> None:
        """Declare parameters and read their values.

        Raises:
            ParameterError: A value given at start-up does not fit.
        """
        self._declaring = True
        try:
            for spec in specs:
                check_new(spec.name, self._specs)
                self._specs[spec.name] = spec
                self._check_given(spec)  # before ROS does, which knows no files
                declared = self._node.declare_parameter(
                    spec.name, spec.ros_default, descriptor(spec)
                )
                self._values[spec.name] = spec.check(declared.value)
        finally:
            self._declaring = False

    def _check_given(self, spec: Parameter) -> None:
        node = self._node
        # rclpy has no public access
        given = node._parameter_overrides.get(spec.name)
        if given is None:
            return
        try:
            spec.check(given.value)
        except ParameterError as error:
            sections = command_line_sections(_ARGUMENTS.get(node.context, ()))
            name = node.get_fully_qualified_name()
            place = where_given(name, spec.name, given.value, sections)
            raise ParameterError(f"{place}{error}") from None

    def refuse_others(self, elsewhere: Iterable[str] = ()) -> None:
        """Call after the last `declare`; ROS would ignore what nobody declares.

        Args:
            elsewhere: Names that other nodes of the same process have.

        Raises:
            DescriptionError: A value was given for a parameter that the node has not declared.
                Names the file and its line, or the option.
        """
        node = self._node
        # rclpy has no public access; a node that declares everything by itself would accept all
        given = node._parameter_overrides
        others = [name for name in given if not node.has_parameter(name)]
        if others:
            known = [*self._specs, *elsewhere]
            sections = command_line_sections(_ARGUMENTS.get(node.context, ()))
            check_parameters(node.get_fully_qualified_name(), others, known, sections)

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise UnknownNameError("parameter", name, self._values) from None

    @property
    def specs(self) -> tuple[Parameter, ...]:
        """All declared specifications."""
        return tuple(self._specs.values())

    def _on_set(self, parameters: list[RosParameter]) -> SetParametersResult:
        if self._declaring:
            return SetParametersResult(successful=True)  # `declare` checks, with a better message
        changes: dict[str, Value] = {}
        try:
            for parameter in parameters:
                if parameter.name in self._specs:
                    spec = self._specs[parameter.name]
                    changes[parameter.name] = spec.check(parameter.value)
            if changes and self._on_change is not None:
                self._on_change(changes)
        except CardsError as error:
            return SetParametersResult(successful=False, reason=str(error))
        self._values.update(changes)
        return SetParametersResult(successful=True)


def descriptor(spec: Parameter) -> ParameterDescriptor:
    """Return what ``ros2 param describe`` and rqt show."""
    # dynamic typing because YAML writes 100 where 100.0 is meant; `check` sees to the type
    out = ParameterDescriptor(
        description=spec.full_description, read_only=not spec.live, dynamic_typing=True
    )
    if math.isfinite(spec.lower) and math.isfinite(spec.upper):
        if spec.type_name == "double":
            out.floating_point_range = [
                FloatingPointRange(from_value=float(spec.lower), to_value=float(spec.upper))
            ]
        elif spec.type_name == "integer":
            out.integer_range = [
                IntegerRange(from_value=int(spec.lower), to_value=int(spec.upper), step=1)
            ]
    if spec.type_name == "double[]":
        length = "any number of" if spec.length is None else str(spec.length)
        out.additional_constraints = f"{length} values" + (
            f": {', '.join(spec.names)}" if spec.names else ""
        )
    elif spec.choices:
        out.additional_constraints = " | ".join(spec.choices)
    return out
