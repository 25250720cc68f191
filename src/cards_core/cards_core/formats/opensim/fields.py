"""Typed access to the elements of an OpenSim document; every refusal names file and line."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.sdf.values import boolean, numbers, parse_number, text_of
from cards_core.formats.xml_lines import XmlElement
from cards_core.spatial import Pose
from cards_core.typing import Array, Matrix3

MAX_VALUES = 10_000
"""Longest vector that is read; a damaged file must not exhaust the memory."""


def number(
    element: XmlElement,
    tag: str,
    default: float | None = None,
    *,
    above: float | None = None,
    lower: float | None = None,
    infinite: bool = False,
) -> float:
    """Return the number in a child element.

    Args:
        element: The parent.
        tag: Name of the child.
        default: Value without the child; None: it must be there.
        above: The number must be greater than this.
        lower: The number must be at least this.
        infinite: It may be infinite.

    Raises:
        DescriptionError: No such child, no number, or one outside the range.
    """
    child = element.child(tag)
    if child is None or not text_of(child):
        if default is None:
            raise (child or element).error(f"no <{tag}>", f"<{tag}> with a number")
        return default
    value = parse_number(text_of(child), child, infinite=infinite)
    if above is not None and not value > above:
        raise child.error(f"{value:g}", f"a number greater than {above:g}")
    if lower is not None and not value >= lower:
        raise child.error(f"{value:g}", f"a number of at least {lower:g}")
    return value


def control_range(element: XmlElement) -> tuple[float, float]:
    """Return least and largest force of an actuator, [N] or [Nm]: its controls times its force."""
    force = number(element, "optimal_force", 1.0)
    low = number(element, "min_control", -math.inf, infinite=True)
    high = number(element, "max_control", math.inf, infinite=True)
    low, high = sorted((force * low, force * high)) if force else (0.0, 0.0)
    return low, high


def vector(element: XmlElement, tag: str, size: int, default: Array | None = None) -> Array:
    """Return the numbers in a child element, shape (size,).

    Args:
        element: The parent.
        tag: Name of the child.
        size: How many numbers.
        default: Value without the child; None: it must be there.

    Raises:
        DescriptionError: No such child, or not ``size`` numbers.
    """
    child = element.child(tag)
    if child is None:
        if default is None:
            raise element.error(f"no <{tag}>", f"<{tag}> with {size} numbers")
        return default
    return numbers(child, size)


def sequence(element: XmlElement, tag: str) -> Array:
    """Return the numbers in a mandatory child element, shape (n,).

    Raises:
        DescriptionError: No such child, something that is no number, or too many of them.
    """
    child = element.child(tag)
    if child is None:
        raise element.error(f"no <{tag}>", f"<{tag}> with numbers")
    words = text_of(child).split(None, MAX_VALUES)
    if len(words) > MAX_VALUES:
        raise child.error(f"more than {MAX_VALUES} numbers", "a shorter sequence")
    return np.array([parse_number(word, child) for word in words])


def flag(element: XmlElement, tag: str, default: bool) -> bool:
    """Return the truth value in a child element.

    Args:
        element: The parent.
        tag: Name of the child.
        default: Value without the child.

    Raises:
        DescriptionError: Neither true nor false.
    """
    text = word(element, tag)
    return boolean(text, element.child(tag) or element) if text else default


def word(element: XmlElement, *tags: str) -> str:
    """Return the text of the first child with one of the tags, or an empty text."""
    for tag in tags:
        child = element.child(tag)
        if child is not None and text_of(child):
            return text_of(child)
    return ""


def name_of(element: XmlElement) -> str:
    """Return the name of an element. Raises `DescriptionError` if it has none."""
    name = (element.get("name") or "").strip()
    if not name:
        raise element.error("no name", 'name="..."')
    return name


def name_taken(element: XmlElement, first: XmlElement) -> DescriptionError:
    """Return the error for an object with the name of an earlier one; it names both."""
    return element.error(
        f"{first.label} in line {first.line} has this name too", "names used once"
    )


def objects(element: XmlElement | None, tag: str) -> Iterator[XmlElement]:
    """Iterate over the objects of a set, ``<tag><objects>...``; nothing if there is no set."""
    inner = element.child(tag) if element is not None else None
    listed = inner.child("objects") if inner is not None else None
    if listed is not None:
        yield from listed


def xyz_rotation(angles: Array) -> Matrix3:
    """Return ``Rx(a) Ry(b) Rz(c)``, OpenSim's body-fixed rotations about x, y, z.

    Args:
        angles: Shape (3,), [rad].
    """
    (ca, cb, cc), (sa, sb, sc) = np.cos(angles), np.sin(angles)
    about_x = np.array([[1.0, 0.0, 0.0], [0.0, ca, -sa], [0.0, sa, ca]])
    about_y = np.array([[cb, 0.0, sb], [0.0, 1.0, 0.0], [-sb, 0.0, cb]])
    about_z = np.array([[cc, -sc, 0.0], [sc, cc, 0.0], [0.0, 0.0, 1.0]])
    out: Matrix3 = about_x @ about_y @ about_z
    return out


def placement(element: XmlElement, translation: str, orientation: str) -> Pose:
    """Return the pose that two children state, zero where they are missing.

    Args:
        element: The parent.
        translation: Name of the child with the position, [m].
        orientation: Name of the child with the body-fixed x-y-z angles, [rad].
    """
    zero = np.zeros(3)
    return Pose(
        xyz_rotation(vector(element, orientation, 3, zero)), vector(element, translation, 3, zero)
    )
