"""What an editor can do to the muscles and wrap surfaces of a robot, as functions.

Each takes a block and returns another one; nothing is changed in place. They refuse names that do
not exist or are taken; `cards_core.editing.block_checks` refuses the rest, by the rules of the
reader. A muscle may have fewer than two points, or end on a wrap, while it is being drawn: it is a
*draft*, and no muscle yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cards_core.checks import check_choice
from cards_core.editing.block_checks import check_new_name
from cards_core.errors import CardsError, ParameterError, UnknownNameError
from cards_core.formats.sdf.muscle_text import EditedBlock, EditedMuscle
from cards_core.parameters.declaration import groups_of, parameters_of
from cards_core.robot.actuators import (
    ACTUATORS,
    Actuator,
    Cable,
    Hill,
    ImpedanceControl,
    Ligament,
    Pneumatic,
    SeriesElastic,
    Spring,
    check_control,
)
from cards_core.robot.elements import (
    Muscle,
    PathElement,
    Pulley,
    Wrap,
)
from cards_core.typing import Vector3

FIRST_TENSIONS = (10.0, 500.0)
"""Limits of a new muscle, [N]."""


def unused_name(stem: str, taken: Iterable[str]) -> str:
    """Return ``stem_1``, or with the first number that is free."""
    names, number = set(taken), 1
    while f"{stem}_{number}" in names:
        number += 1
    return f"{stem}_{number}"


# Muscles ---------------------------------------------------------------------------------------


def muscle_index(block: EditedBlock, name: str) -> int:
    """Return the index of a muscle. Raises `UnknownNameError`."""
    names = [edited.muscle.name for edited in block.muscles]
    check_choice(name, "muscle", names)
    return names.index(name)


def _with_muscle(
    block: EditedBlock, name: str, change: Callable[[EditedMuscle], EditedMuscle]
) -> EditedBlock:
    index = muscle_index(block, name)
    muscles = list(block.muscles)
    muscles[index] = change(muscles[index])
    if muscles[index] is block.muscles[index]:
        return block
    return replace(block, muscles=tuple(muscles))


def add_muscle_draft(block: EditedBlock, name: str) -> EditedBlock:
    """Add a muscle without points: an ideal cable with `FIRST_TENSIONS`.

    Raises:
        CardsError: The name cannot be one, or is taken.
    """
    check_new_name("muscle", name, (e.muscle.name for e in block.muscles))
    new = EditedMuscle(Muscle(name, (), *FIRST_TENSIONS))
    return replace(block, muscles=(*block.muscles, new))


def remove_muscle(block: EditedBlock, name: str) -> EditedBlock:
    """Remove a muscle. Raises `UnknownNameError`."""
    index = muscle_index(block, name)
    return replace(block, muscles=block.muscles[:index] + block.muscles[index + 1 :])


def rename_muscle(block: EditedBlock, name: str, new: str) -> EditedBlock:
    """Give a muscle another name.

    Args:
        block: The block.
        name: Of the muscle.
        new: Its new name.

    Raises:
        CardsError: There is no such muscle, or the new name cannot be one or is taken.
    """
    if new == name:
        return block
    check_new_name("muscle", new, (e.muscle.name for e in block.muscles))
    return _with_muscle(block, name, lambda e: replace(e, muscle=replace(e.muscle, name=new)))


def set_tension(block: EditedBlock, name: str, low: float, high: float) -> EditedBlock:
    """Set the limits of a muscle's tension.

    Args:
        block: The block.
        name: Of the muscle.
        low: Minimum, [N].
        high: Maximum, [N].

    Raises:
        ParameterError: Not 0 <= low <= high, or they are not finite.
    """
    if not (math.isfinite(high) and 0.0 <= low <= high):
        raise ParameterError(
            f"muscle '{name}': tension {low:g} to {high:g} N (expected: 0 <= minimum <= maximum)"
        )

    def change(edited: EditedMuscle) -> EditedMuscle:
        muscle = replace(edited.muscle, tension_min=float(low), tension_max=float(high))
        return replace(edited, muscle=muscle)

    return _with_muscle(block, name, change)


def set_friction_speed(block: EditedBlock, name: str, speed: float) -> EditedBlock:
    """Set the sliding speed at which a muscle's friction has three quarters of its value.

    Args:
        block: The block.
        name: Of the muscle.
        speed: The speed, [m/s].

    Raises:
        ParameterError: It is not a number greater than 0.
    """
    if not (math.isfinite(speed) and speed > 0.0):
        raise ParameterError(
            f"muscle '{name}': friction_speed {speed:g} m/s (expected: a speed greater than 0)"
        )

    def change(edited: EditedMuscle) -> EditedMuscle:
        return replace(edited, muscle=replace(edited.muscle, friction_speed=float(speed)))

    return _with_muscle(block, name, change)


def set_kind(block: EditedBlock, name: str, kind: str, length: float) -> EditedBlock:
    """Give a muscle another actuator, with parameters that fit its length.

    Args:
        block: The block.
        name: Of the muscle.
        kind: Of `ACTUATORS`.
        length: Of the muscle's path now, [m].

    Raises:
        UnknownNameError: There is no such kind, or no such muscle.
    """
    check_choice(kind, "kind of actuator", ACTUATORS)

    def change(edited: EditedMuscle) -> EditedMuscle:
        muscle = edited.muscle
        if muscle.kind == kind:
            return edited
        high = muscle.tension_max if math.isfinite(muscle.tension_max) else FIRST_TENSIONS[1]
        actuator = first_actuator(kind, length if length > 0.0 else 0.1, high)
        limits = (muscle.tension_min, high) if actuator.commands else (0.0, math.inf)
        law = muscle.control if "force" in actuator.commands else ImpedanceControl()
        changed = replace(
            muscle,
            actuator=actuator,
            tension_min=limits[0],
            tension_max=limits[1],
            control=law,
        )
        return replace(edited, muscle=changed)

    return _with_muscle(block, name, change)


def first_actuator(kind: str, length: float, tension: float) -> Actuator:
    """Return an actuator that fits a path: numbers to start from, to be replaced by real ones.

    Args:
        kind: Of `ACTUATORS`.
        length: Of the path, [m].
        tension: Maximum tension, [N].

    Raises:
        UnknownNameError: There is no such kind.
    """
    match kind:
        case "hill":  # half fibre, half tendon; the fibre at its optimum
            return Hill(
                max_isometric_force=tension,
                optimal_fiber_length=0.5 * length,
                tendon_slack_length=0.5 * length,
            )
        case "pneumatic":  # most of the path is the braid, near its full length
            rest = 0.8 * length
            return Pneumatic(
                thread_length=rest / 0.95, turns=1.5, rest_length=rest, tendon_length=0.2 * length
            )
        case "series_elastic":  # 1 cm at the maximum tension
            return SeriesElastic(spring=Spring(law="polynomial", stiffness=tension / 0.01))
        case "ligament":  # slack now
            return Ligament(stiffness=10.0 * tension, slack_length=length)
        case "cable":
            return Cable()
        case _:
            raise UnknownNameError("kind of actuator", kind, ACTUATORS)


def set_parameters(block: EditedBlock, name: str, changes: Mapping[str, Any]) -> EditedBlock:
    """Set parameters of a muscle's actuator and of its impedance law.

    Args:
        block: The block.
        name: Of the muscle.
        changes: Value by parameter, with its groups before it: ``stiffness``,
            ``motor.resistance``, ``control.damping``; None: no value is given. Of a group alone:
            True gives it its defaults, None removes it.

    Raises:
        ParameterError: A value is outside its range, or they do not fit each other.
        UnknownNameError: There is no such parameter.
    """
    if not changes:
        return block

    def change(edited: EditedMuscle) -> EditedMuscle:
        muscle = edited.muscle
        actuator, control = muscle.actuator, muscle.control
        try:
            for path, value in changes.items():
                first, _, rest = path.partition(".")
                if first == "control":
                    control = _assigned(control, rest.split("."), value)
                else:
                    actuator = _assigned(actuator, path.split("."), value)
            actuator.check()
            control.check()
            check_control(actuator, control)
        except ParameterError as error:
            raise ParameterError(f"muscle '{name}': {error}") from None
        return replace(edited, muscle=replace(muscle, actuator=actuator, control=control))

    return _with_muscle(block, name, change)


def _assigned(values: Any, path: list[str], value: Any) -> Any:
    """Return a group of parameters with another value somewhere in it."""
    kind = type(values)
    specs = {spec.name: spec for spec in parameters_of(kind)}
    groups = {group.name: group for group in groups_of(kind)}
    head, *rest = path
    if not rest and head in specs:
        spec = specs[head]
        if spec.scalar_type is int and isinstance(value, float) and value == int(value):
            value = int(value)
        return replace(values, **{head: spec.check(value)})
    if head in groups:
        group = groups[head]
        inner = getattr(values, head)
        if not rest:
            if value is None and group.required:
                raise ParameterError(f"'{head}' must be there (expected: a {head})")
            return replace(values, **{head: _defaults(group.kind) if value else None})
        if inner is None:
            inner = _defaults(group.kind)
        return replace(values, **{head: _assigned(inner, rest, value)})
    raise UnknownNameError("parameter", head, [*specs, *groups])


def _defaults(kind: type) -> Any:
    if kind is Spring:
        return Spring(law="polynomial", stiffness=1e4)
    return kind()


def set_contact_friction(block: EditedBlock, name: str, index: int, value: float) -> EditedBlock:
    """Set the capstan coefficient of a via point or wrap.

    Args:
        block: The block.
        name: Of the muscle.
        index: Of the path element.
        value: The coefficient.

    Raises:
        CardsError: There is no such element, or a pulley, which has none.
    """
    return _with_element(block, name, index, lambda item: _rubbing(item, value))


def _rubbing(item: PathElement, value: float) -> PathElement:
    if isinstance(item, Pulley):
        raise CardsError("a pulley has no friction (expected: a via point or a wrap)")
    return replace(item, friction=float(value))


# Paths -----------------------------------------------------------------------------------------


def insert_element(block: EditedBlock, name: str, index: int, item: PathElement) -> EditedBlock:
    """Insert an element into a path.

    Args:
        block: The block.
        name: Of the muscle.
        index: What its index will be, 0 to the length of the path.
        item: Via point or wrap.

    Raises:
        CardsError: There is no such muscle or place.
    """

    def change(edited: EditedMuscle) -> EditedMuscle:
        path, origins = list(edited.muscle.path), list(edited.path_origin)
        if not 0 <= index <= len(path):
            raise CardsError(
                f"muscle '{name}' has {len(path)} path elements, no place {index} "
                f"(expected: 0 to {len(path)})"
            )
        path.insert(index, item)
        origins.insert(index, None)
        return _repathed(edited, path, origins)

    return _with_muscle(block, name, change)


def remove_element(block: EditedBlock, name: str, index: int) -> EditedBlock:
    """Remove an element of a path.

    Args:
        block: The block.
        name: Of the muscle.
        index: Of the element.

    Raises:
        CardsError: There is no such element.
    """

    def change(edited: EditedMuscle) -> EditedMuscle:
        _check_index(edited, index)
        path, origins = list(edited.muscle.path), list(edited.path_origin)
        del path[index], origins[index]
        return _repathed(edited, path, origins)

    return _with_muscle(block, name, change)


def move_element(block: EditedBlock, name: str, index: int, to: int) -> EditedBlock:
    """Give an element of a path another place in it.

    Args:
        block: The block.
        name: Of the muscle.
        index: Of the element.
        to: Its new index.

    Raises:
        CardsError: There is no such element or place.
    """

    def change(edited: EditedMuscle) -> EditedMuscle:
        _check_index(edited, index)
        _check_index(edited, to)
        path, origins = list(edited.muscle.path), list(edited.path_origin)
        path.insert(to, path.pop(index))
        origins.insert(to, origins.pop(index))
        return _repathed(edited, path, origins)

    return _with_muscle(block, name, change)


def place_point(
    block: EditedBlock, name: str, index: int, link: str, position: Vector3
) -> EditedBlock:
    """Move a via point, or attach it to another link.

    Args:
        block: The block.
        name: Of the muscle.
        index: Of the via point in the path.
        link: Its link, or ``world``.
        position: In coordinates of that link, shape (3,), [m].

    Raises:
        CardsError: There is no such element, or it is a wrap.
    """

    def place(item: PathElement) -> PathElement:
        if isinstance(item, Wrap):
            raise CardsError(
                f"element {index + 1} of muscle '{name}' is a wrap (expected: a via point)"
            )
        if item.link == link and np.array_equal(item.position, position):
            return item
        return replace(item, link=link, position=np.array(position, dtype=float))

    return _with_element(block, name, index, place)


def set_wrap(
    block: EditedBlock, name: str, index: int, *, side: Vector3 | None, inside: bool
) -> EditedBlock:
    """Say how a muscle passes a surface.

    Args:
        block: The block.
        name: Of the muscle.
        index: Of the wrap in the path.
        side: Where it passes, in coordinates of the surface's link, [m]; None: the shorter way.
        inside: Whether it runs through the surface.

    Raises:
        CardsError: There is no such element, or it is no wrap.
    """

    def change(item: PathElement) -> PathElement:
        if not isinstance(item, Wrap):
            raise CardsError(f"element {index + 1} of muscle '{name}' is no wrap")
        return replace(item, side=side, inside=inside)

    return _with_element(block, name, index, change)


def _with_element(
    block: EditedBlock, name: str, index: int, change: Callable[[PathElement], PathElement]
) -> EditedBlock:
    def inner(edited: EditedMuscle) -> EditedMuscle:
        _check_index(edited, index)
        path = list(edited.muscle.path)
        path[index] = change(path[index])
        if path[index] is edited.muscle.path[index]:
            return edited
        return _repathed(edited, path, list(edited.path_origin))

    return _with_muscle(block, name, inner)


def _repathed(
    edited: EditedMuscle, path: list[PathElement], origins: list[int | None]
) -> EditedMuscle:
    muscle = replace(edited.muscle, path=tuple(path))
    return replace(edited, muscle=muscle, path_origin=tuple(origins))


def _check_index(edited: EditedMuscle, index: int) -> None:
    count = len(edited.muscle.path)
    if not 0 <= index < count:
        raise CardsError(
            f"muscle '{edited.muscle.name}' has no path element {index + 1} "
            f"(expected: 1 to {count})"
        )


def parameter_fields(values: Any, prefix: str = "") -> list[tuple[str, Any, Any]]:
    """Return ``(path, Parameter, value)`` of all parameters of an actuator that are there.

    Args:
        values: An actuator, or a group of parameters.
        prefix: Put before the names.
    """
    out: list[tuple[str, Any, Any]] = [
        (prefix + spec.name, spec, getattr(values, spec.name))
        for spec in parameters_of(type(values))
    ]
    for group in groups_of(type(values)):
        inner = getattr(values, group.name)
        if inner is not None:
            out += parameter_fields(inner, f"{prefix}{group.name}.")
    return out


def optional_groups(actuator: Actuator) -> list[tuple[str, bool]]:
    """Return name, and whether it is there, of each group that an actuator may do without."""
    return [
        (group.name, getattr(actuator, group.name) is not None)
        for group in groups_of(type(actuator))
        if not group.required and group.default is None
    ]
