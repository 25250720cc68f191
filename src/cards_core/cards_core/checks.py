"""Checks of numbers that come from outside: NaN and infinity never pass for a number."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from cards_core.errors import CardsError, ShapeError, UnknownNameError
from cards_core.typing import Array


def finite_number(
    value: Any,
    what: str,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    at_most: float = math.inf,
    infinite: bool = False,
    error: type[CardsError] = CardsError,
) -> float:
    """Return ``value`` as a float that is a number and within its range.

    Args:
        value: A number, or a text that is one.
        what: What it is, with its unit; the message begins with it.
        above: Exclusive lower end.
        at_least: Inclusive lower end.
        below: Exclusive upper end.
        at_most: Inclusive upper end.
        infinite: Whether infinity is accepted, where the range has it.
        error: Class of the error.

    Raises:
        CardsError: It is no number, NaN, infinite or out of its range.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    allowed = math.isfinite(number) or (infinite and abs(number) == math.inf)
    # comparisons with NaN are false; infinity is below the upper end that there is none
    high = number <= at_most and (number < below or below == math.inf)
    if allowed and above < number and at_least <= number and high:
        return number
    ends = ((">", above), (">=", at_least), ("<", below), ("<=", at_most))
    limits = " and ".join(f"{sign} {end:g}" for sign, end in ends if math.isfinite(end))
    wanted = f"{'a number' if infinite else 'a finite number'} {limits}".rstrip()
    raise error(f"{what} is {value} (expected: {wanted})")


def check_choice(value: str, what: str, choices: Iterable[str]) -> None:
    """Refuse a name that is none of the choices.

    Args:
        value: The name.
        what: What it chooses, e.g. ``backend``.
        choices: Names that are accepted, e.g. ``get_args`` of a ``Literal``.

    Raises:
        UnknownNameError: Lists the choices.
    """
    choices = tuple(choices)
    if value not in choices:
        raise UnknownNameError(what, str(value), choices)


def finite_array(values: Any, what: str, shape: tuple[int, ...]) -> Array:
    """Return ``values`` as a new array of finite floats.

    Args:
        values: Numbers.
        what: What they are; the message begins with it.
        shape: Of the array.

    Raises:
        ShapeError: Not numbers, another shape, NaN or infinity.
    """
    try:
        out: Array = np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"{what} is {values!r}; expected numbers of shape {shape}") from None
    if out.shape != shape or not np.isfinite(out).all():
        raise ShapeError(f"{what} is {values!r}; expected finite numbers of shape {shape}")
    return out
