"""Controllers by name: those of CARDS, of files, and those that other installed packages offer.

A package offers a controller by an entry point of the group `GROUP`:

    [project.entry-points."cards.controllers"]
    my_controller = "my_package.my_controller:MyController"

The class is loaded when it is asked for, and not before. `controller_file` takes one from a Python
file, for the life of the process.
"""

from __future__ import annotations

import importlib.util
import inspect
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, get_args

from cards_core.checks import check_choice, check_kind, shown
from cards_core.control.cpg.controller import PatternGenerator
from cards_core.control.ctc_joint import CtcJoint
from cards_core.control.ctc_operational import CtcOperational
from cards_core.control.impedance import ImpedanceController
from cards_core.control.interface import Controller
from cards_core.control.model import ControlModel
from cards_core.control.mrc.controller import MuscleRelaxationControl
from cards_core.errors import CardsError, UnknownNameError
from cards_core.muscles.command import KINDS, check_command
from cards_core.names import name_problem
from cards_core.parameters.declaration import Parameter, ParameterSet
from cards_core.plugins import load_offered, offered
from cards_core.robot.model import Robot
from cards_core.trajectories.base import Space

GROUP = "cards.controllers"
"""Group of entry points."""

OWN: dict[str, type[Controller]] = {
    c.kind: c
    for c in (
        CtcJoint,
        CtcOperational,
        MuscleRelaxationControl,
        ImpedanceController,
        PatternGenerator,
    )
}
"""The controllers of CARDS, by kind."""


_of_files: dict[str, type[Controller]] = {}


def controller_file(path: str | Path) -> str:
    """Make the controller of a Python file known to this process; return its kind.

    Args:
        path: A file with one subclass of `Controller` that has all of its methods.

    Raises:
        CardsError: There is no such file, it cannot be run, it has no controller or several, or
            its kind is taken.
    """
    file = Path(path).expanduser().resolve()
    where = f"controller file {path}"
    if not file.is_file():
        raise CardsError(f"{where}: no such file (expected: Python with a class of a controller)")
    name = f"cards_controller_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise CardsError(f"{where} is no Python file (expected: a name that ends in .py)")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever somebody's code raises
        raise CardsError(f"{where} cannot be run: {type(error).__name__}: {error}") from error
    found = [
        item
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, Controller) and item.__module__ == name
    ]
    if len(found) != 1:
        names = ", ".join(item.__name__ for item in found) or "none"
        raise CardsError(
            f"{where} has {len(found)} controllers: {names} (expected: one subclass of "
            "cards_core.control.interface.Controller)"
        )
    (controller,) = found
    kind = getattr(controller, "kind", None)
    if not isinstance(kind, str) or (problem := name_problem(kind)):
        problem = problem if isinstance(kind, str) else "no text"
        raise CardsError(f"{where}: the kind of {controller.__name__} is {shown(kind)}: {problem}")
    if kind in OWN:
        raise CardsError(f"{where}: the kind '{kind}' is taken (expected: another one)")
    if problem := _problem_of_class(controller):
        raise CardsError(f"{where}: {controller.__name__} {problem}")
    _of_files[kind] = controller
    return kind


def controller_kinds() -> list[str]:
    """Return the kinds of all controllers: our own, those of files, those of other packages."""
    own = [*OWN, *_of_files]
    return [*own, *sorted(set(_offered()) - set(own))]


def controller_class(kind: str) -> type[Controller]:
    """Return a controller's class.

    Raises:
        UnknownNameError: No such kind; the message lists all.
        CardsError: A package offers it, but it cannot be loaded or is no controller.
    """
    if (own := OWN.get(kind) or _of_files.get(kind)) is not None:
        return own
    known = _offered()
    if kind not in known:
        raise UnknownNameError("controller", kind, controller_kinds())
    found: type[Controller] = load_offered(
        "controller", known[kind], lambda found: _problem_of(found, kind)
    )
    return found


def _problem_of(found: Any, kind: str) -> str:
    """Return what keeps an object from being the class of a kind; empty if nothing does."""
    if not (isinstance(found, type) and issubclass(found, Controller)):
        return "is no controller (expected: a subclass of cards_core.control.interface.Controller)"
    if getattr(found, "kind", None) != kind:
        return (
            f"has the kind {getattr(found, 'kind', None)!r} (expected: the name of its "
            "entry point)"
        )
    return _problem_of_class(found)


def _problem_of_class(controller: type[Controller]) -> str:
    """Return what keeps a class from being a controller; empty if nothing does."""
    if missing := sorted(getattr(controller, "__abstractmethods__", ())):
        return f"lacks {', '.join(missing)} (expected: all methods of Controller)"
    if (space := getattr(controller, "space", None)) not in get_args(Space):
        return f"has the space {shown(space)} (expected: {' or '.join(get_args(Space))})"
    for kind in controller.commands:
        if kind not in KINDS:
            return f"gives commands of the kind {shown(kind)} (expected: some of {KINDS})"
    return ""


_OF_INSTANCES = ("model", "reference_names", "error_names", "output", "command", "relaxed")


def check_controller(controller: Any) -> None:
    """Refuse what is not a complete controller.

    Raises:
        CardsError: Another kind of object, or one whose constructor has not set all attributes of
            `Controller`; the message names them.
    """
    check_kind(controller, Controller, "the controller", "an instance of Controller")
    name = f"controller '{getattr(controller, 'kind', type(controller).__name__)}'"
    missing = [item for item in _OF_INSTANCES if not hasattr(controller, item)]
    if missing:
        remedy = "super().__init__(model) in its constructor" if "model" in missing else "all"
        raise CardsError(f"{name} has no {', '.join(missing)} (expected: {remedy})")
    check_command(controller.command, f"command of {name}")


def check_suited(kind: str, robot: Robot) -> None:
    """Refuse a controller that cannot drive a robot.

    Raises:
        UnknownNameError: No such kind; the message lists all.
        CardsError: It cannot; the message says why.
    """
    reason = controller_class(kind).unsuited(robot)
    if reason:
        raise CardsError(f"controller '{kind}' cannot drive {robot.name}: {reason}")


def suited_controllers(robot: Robot) -> list[str]:
    """Return the kinds of the controllers that can drive a robot.

    A controller of another package that fails is left out, with a warning that names it.
    """
    suited = []
    for kind in controller_kinds():
        try:
            if not controller_class(kind).unsuited(robot):
                suited.append(kind)
        except Exception as error:
            if kind in OWN:
                raise
            text = str(error) if isinstance(error, CardsError) else repr(error)
            warnings.warn(f"controller '{kind}' is left out: {text}", stacklevel=2)
    return suited


def make_controller(kind: str, model: Robot | ControlModel, **parameters: Any) -> Controller:
    """Return a controller by name.

    Args:
        kind: See `controller_kinds`.
        model: The robot, with all of its muscles; or what is known of it, to choose a backend.
        **parameters: Keyword arguments of the class; the others keep their defaults.

    Raises:
        UnknownNameError: No such kind or parameter; the message lists all.
        CardsError: The controller cannot drive the robot.
        ParameterError: A parameter of the wrong size or out of range.
    """
    factory: Callable[..., Controller] = controller_class(kind)
    known = [name for name in inspect.signature(factory).parameters if name != "model"]
    for name in parameters:
        check_choice(name, f"parameter of {kind}", known)
    check_kind(model, (Robot, ControlModel), "the robot", "a Robot or a ControlModel")
    if isinstance(model, Robot):
        model = ControlModel(model)
    check_suited(kind, model.robot)
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
    check_suited(kind, robot)
    controller_class(kind).from_parameters(ControlModel(robot, "numeric"), parameters)
    return list(parameters.specs)


def _offered() -> dict[str, EntryPoint]:
    return offered(GROUP)
