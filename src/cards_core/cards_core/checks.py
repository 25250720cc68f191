"""Checks of what comes from outside: numbers, choices, and sizes against the memory there is.

NaN and infinity never pass for a number.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import textwrap
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from cards_core.errors import CardsError, ShapeError, UnknownNameError
from cards_core.typing import Array

LARGEST = 1e16
"""SDFormat's stand-in for infinity: limits from here on are infinite, other numbers refused, in
all files."""

# Kinds of objects ------------------------------------------------------------------------------


def check_kind(
    value: Any,
    kinds: type | tuple[type, ...],
    what: str,
    expected: str,
    *,
    error: type[CardsError] = CardsError,
) -> None:
    """Refuse an object of another kind.

    Args:
        value: The object.
        kinds: Classes that are accepted.
        what: What it is; the message begins with it.
        expected: What would be right.
        error: Class of the error.

    Raises:
        CardsError: It is none of these; the message shows the beginning of it.
    """
    if not isinstance(value, kinds):
        raise error(f"{what} is {shown(value)} (expected: {expected})")


_SHOWN = 80  # characters


def listed(items: Sequence[str], separator: str = ", ", most: int = 3) -> str:
    """Return a list as text, the first ones and how many more there are.

    Args:
        items: The items.
        separator: Between two items.
        most: Maximum number of items that are written out.
    """
    rest = len(items) - most
    return separator.join(items[:most]) + (f" and {rest} more" if rest > 0 else "")


def shown(value: Any) -> str:
    """Return an object as a message shows it: in one line, cut off where it is long."""
    if isinstance(value, np.ndarray | array):  # lists of numbers, as ROS hands them over
        value = value.tolist()
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def brief(error: object) -> str:
    """Return what a library says as a message shows it: in one line, cut off where it is long."""
    return textwrap.shorten(str(error), 200, placeholder=" ...")


def readable(number: float, digits: int = 3) -> str:
    """Return a number with as many digits and without powers of ten: 100, not 1e+02."""
    text = f"{number:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text else text


# Numbers and choices ---------------------------------------------------------------------------


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


def check_count(value: Any, what: str, *, at_least: int = 1) -> None:
    """Refuse what is no whole number, or less than ``at_least``.

    Args:
        value: A whole number.
        what: What it counts; the message begins with it.
        at_least: Inclusive lower end.

    Raises:
        CardsError: It is none.
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole and value >= at_least):
        raise CardsError(f"{what} is {shown(value)} (expected: a whole number >= {at_least})")


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


class Named(Protocol):
    """What has a name."""

    @property
    def name(self) -> str:
        """The name."""
        ...


Item = TypeVar("Item", bound=Named)


def by_name(items: Iterable[Item], name: str, what: str) -> Item:
    """Return the first item of a name.

    Args:
        items: Where to look.
        name: The name.
        what: What the items are, e.g. ``link``.

    Raises:
        UnknownNameError: No item has this name; the names are listed.
    """
    for item in items:
        if item.name == name:
            return item
    raise UnknownNameError(what, name, (item.name for item in items))


def real_array(values: Any, what: str) -> Array:
    """Return ``values`` as an array of floats of any shape; NaN and infinity pass.

    Args:
        values: Real numbers; an array of floats is returned as it is.
        what: What they are; the message begins with it.

    Raises:
        ShapeError: They are no real numbers, or lists of different lengths.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "cSUmM":  # complex numbers, texts and times would be converted
            return np.asarray(array, dtype=float)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ShapeError(f"{what} is {shown(values)} (expected: real numbers)")


def finite_array(
    values: Any, what: str, shape: tuple[int, ...], *, error: type[CardsError] = ShapeError
) -> Array:
    """Return ``values`` as a new array of finite floats.

    Args:
        values: Numbers.
        what: What they are; the message begins with it.
        shape: Of the array.
        error: Class of the error.

    Raises:
        CardsError: Not numbers, another shape, NaN or infinity.
    """
    try:
        out: Array = np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{what} is {values!r}; expected numbers of shape {shape}") from None
    if out.shape != shape or not np.isfinite(out).all():
        raise error(f"{what} is {values!r}; expected finite numbers of shape {shape}")
    return out


# Memory ----------------------------------------------------------------------------------------


MEMORY_SHARE = 0.5
"""Of the free memory that one computation may take: others run on the machine too."""


def free_memory() -> int:
    """Return the memory that can be had without swapping, within this process's limit, [bytes]."""
    page = os.sysconf("SC_PAGE_SIZE")
    free = os.sysconf("SC_PHYS_PAGES") * page
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                free = 1024 * int(line.split()[1])
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            used = page * int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            free = min(free, max(0, limit - used))
    return free


def most_items(bytes_each: float) -> int:
    """Return how many things of a size fit into the share of the memory that we take."""
    return max(1, int(MEMORY_SHARE * free_memory() / bytes_each))


def check_fits(count: float, bytes_each: float, what: str, remedy: str) -> None:
    """Refuse more than fits into the memory.

    Args:
        count: Number of things; may be infinite.
        bytes_each: Memory that each takes, [bytes].
        what: What they are, in the plural.
        remedy: What would be right; ``{most}`` stands for the largest number of things.

    Raises:
        CardsError: They do not fit; the message says how many they are and how much they take.
    """
    most = most_items(bytes_each)
    if not count <= most:
        raise CardsError(
            f"{count:.4g} {what} take {size_text(count * bytes_each)} of memory; "
            f"{size_text(free_memory())} are free, of which half may be used (expected: "
            f"{remedy.format(most=most)})"
        )


def size_text(number: float) -> str:
    """Return a number of bytes in words, with a unit."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if number < 1000.0:
            return f"{readable(number)} {unit}"
        number /= 1000.0
    return f"{number:.3g} PB"
