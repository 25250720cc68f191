"""Controllers by name: those of CARDS, and those that other installed packages offer.

A package offers a controller by an entry point of the group `GROUP`:

    [project.entry-points."cards.controllers"]
    my_controller = "my_package.my_controller:MyController"

The class is loaded when it is asked for, and not before.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from cards_core.control.ctc_joint import CtcJoint
from cards_core.control.ctc_operational import CtcOperational
from cards_core.control.interface import Controller
from cards_core.control.model import ControlModel
from cards_core.errors import CardsError, UnknownNameError
from cards_core.parameters.declaration import Parameter, ParameterSet
from cards_core.robot.model import Robot

GROUP = "cards.controllers"
"""Group of entry points."""

OWN: dict[str, type[Controller]] = {c.kind: c for c in (CtcJoint, CtcOperational)}
"""The controllers of CARDS, by kind."""


def controller_kinds() -> list[str]:
    """Return the kinds of all controllers: our own, then those of other packages."""
    return [*OWN, *sorted(set(_offered()) - set(OWN))]


def controller_class(kind: str) -> type[Controller]:
    """Return a controller's class.

    Raises:
        UnknownNameError: No such kind; the message lists all.
        CardsError: A package offers it, but it cannot be loaded or is no controller.
    """
    if kind in OWN:
        return OWN[kind]
    offered = _offered()
    if kind not in offered:
        raise UnknownNameError("controller", kind, controller_kinds())
    entry = offered[kind]
    where = f"controller '{kind}' ({entry.value})"
    try:
        found = entry.load()
    except Exception as error:
        raise CardsError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Controller)):
        raise CardsError(
            f"{where} is no controller (expected: a subclass of "
            "cards_core.control.interface.Controller)"
        )
    if getattr(found, "kind", None) != kind:
        raise CardsError(
            f"{where} has the kind {getattr(found, 'kind', None)!r} (expected: the name of its "
            "entry point)"
        )
    return found


def suited_controllers(robot: Robot) -> list[str]:
    """Return the kinds of the controllers that can drive a robot."""
    return [kind for kind in controller_kinds() if not controller_class(kind).unsuited(robot)]


def make_controller(kind: str, model: Robot | ControlModel, **parameters: Any) -> Controller:
    """Return a controller by name.

    Args:
        kind: See `controller_kinds`.
        model: The robot, with all of its muscles; or what is known of it, to choose a backend.
        **parameters: Keyword arguments of the class; the others keep their defaults.

    Raises:
        UnknownNameError: No such kind or parameter; the message lists all.
        ParameterError: A parameter of the wrong size or out of range.
    """
    factory: Callable[..., Controller] = controller_class(kind)
    known = [name for name in inspect.signature(factory).parameters if name != "model"]
    for name in parameters:
        if name not in known:
            raise UnknownNameError(f"parameter of {kind}", name, known)
    if isinstance(model, Robot):
        model = ControlModel(model)
    return factory(model, **parameters)


def controller_parameters(
    kind: str, robot: Robot, given: Mapping[str, Any] | None = None
) -> list[Parameter]:
    """Return the parameters of a controller of a robot.

    Args:
        kind: Of the controller.
        robot: Gives the lengths and some of the defaults.
        given: Values by name, on which the lengths of others may depend.

    Raises:
        UnknownNameError: No such kind; the message lists all.
        CardsError: The controller cannot drive the robot, or a value does not fit.
    """
    parameters = ParameterSet(given or {})
    controller_class(kind).from_parameters(ControlModel(robot, "numeric"), parameters)
    return list(parameters.specs)


def _offered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}
