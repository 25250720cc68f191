"""Numbers, vectors, booleans and poses out of XML text, with errors that name the element."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from difflib import get_close_matches

import numpy as np

from cards_core.checks import LARGEST
from cards_core.errors import DescriptionError
from cards_core.formats.xml_lines import XmlElement, shorten
from cards_core.spatial import Pose, quaternion_matrix, rpy_matrix
from cards_core.typing import Array

# float() also takes "1_000", "nan" and the digits of every script
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)


def text_of(element: XmlElement) -> str:
    """Return the text of an element without blanks at its ends."""
    return (element.text or "").strip()


def parse_number(
    text: str, element: XmlElement, *, what: str = "", infinite: bool = False
) -> float:
    """Return ``text`` as a number.

    Args:
        text: The number as written.
        element: Where it stands, for the message.
        what: Name of the value, if the element holds several.
        infinite: Accept ``inf`` and turn magnitudes from `LARGEST` on into infinity.

    Raises:
        DescriptionError: Not a number, not finite, or larger than `LARGEST`.
    """
    text = text.strip()
    place = f"{what} " if what else ""
    if len(text) > 100 or not _NUMBER.fullmatch(text):
        if infinite and _INFINITE.fullmatch(text):
            return -math.inf if text.startswith("-") else math.inf
        if _INFINITE.fullmatch(text) or text.lower().lstrip("+-") == "nan":
            raise element.error(f"{place}'{text}' is not finite", "a finite number")
        raise element.error(f"{place}'{shorten(text)}' is not a number", "a number such as -0.25")
    value = float(text)
    if abs(value) >= LARGEST:
        if infinite:
            return math.copysign(math.inf, value)
        raise element.error(f"{place}'{text}' is too large", f"a magnitude below {LARGEST:g}")
    return value


def numbers(
    element: XmlElement, *counts: int, what: str = "numbers", key: str | None = None
) -> Array:
    """Return the numbers in an element's text, or in its attribute ``key``.

    Their count must be one of ``counts``.

    Args:
        element: The element.
        counts: Allowed counts of numbers.
        what: What the numbers are, for the error.
        key: Name of the attribute; None: the text.

    Returns:
        Shape (count,), in the unit of the file.

    Raises:
        DescriptionError: Another count, or something that is no number.
    """
    text = text_of(element) if key is None else element.get(key, "")
    place = "" if key is None else f"{key}: "
    words = text.split(None, max(counts) + 1)
    if len(words) not in counts:
        wanted = " or ".join(str(c) for c in counts)
        found = f"more than {max(counts)}" if len(words) > max(counts) else str(len(words))
        raise element.error(f"{place}{found} values", f"{wanted} {what}, separated by blanks")
    return np.array([parse_number(word, element, what=key or "") for word in words])


def scalar(
    parent: XmlElement,
    tag: str,
    default: float,
    *,
    minimum: float | None = None,
    infinite: bool = False,
) -> float:
    """Return the number in the child ``tag``, or ``default`` where there is no such child.

    Args:
        parent: The parent element.
        tag: Name of the child.
        default: Value without the child.
        minimum: Smallest value that is accepted.
        infinite: Whether ``inf`` is accepted.

    Raises:
        DescriptionError: Not a number, or below ``minimum``.
    """
    element = parent.child(tag)
    if element is None:
        return default
    value = parse_number(text_of(element), element, infinite=infinite)
    if minimum is not None and value < minimum:
        raise element.error(f"{value:g} is too small", f"at least {minimum:g}")
    return value


def positive(parent: XmlElement, tag: str) -> float:
    """Return the number in the mandatory child ``tag``; it must be greater than zero."""
    element = required(parent, tag)
    value = parse_number(text_of(element), element)
    if value <= 0.0:
        raise element.error(f"{value:g} is not positive", "a number greater than 0")
    return value


def boolean(text: str, element: XmlElement, *, what: str = "") -> bool:
    """Return an SDFormat boolean: ``true``, ``false``, ``1`` or ``0``.

    Args:
        text: The text, blanks around it ignored.
        element: Element that it stands in, for the error.
        what: What the value is, for the error.

    Raises:
        DescriptionError: Something else.
    """
    word = text.strip().lower()
    if word in ("true", "1"):
        return True
    if word in ("false", "0"):
        return False
    prefix = f"{what} " if what else ""
    raise element.error(f"{prefix}'{shorten(text.strip())}' is not a boolean", "true or false")


def flag(parent: XmlElement, tag: str, default: bool = False) -> bool:
    """Return the boolean in the child ``tag``, or ``default`` where there is no such child.

    Args:
        parent: The parent element.
        tag: Name of the child.
        default: Value without the child.
    """
    element = parent.child(tag)
    return default if element is None else boolean(text_of(element), element)


def required(parent: XmlElement, tag: str) -> XmlElement:
    """Return the child ``tag``. Raises `DescriptionError` where there is none."""
    element = parent.child(tag)
    if element is None:
        raise parent.error(f"has no <{tag}>", f"one <{tag}> element")
    return element


def attribute(element: XmlElement, name: str) -> str:
    """Return a mandatory attribute without blanks at its ends; it must not be empty."""
    value = element.get(name, "").strip()
    if not value:
        raise element.error(f"has no attribute '{name}'", f'{name}="..."')
    return value


def parse_pose(element: XmlElement | None) -> Pose:
    """Return the pose in a ``<pose>`` element; None or an empty element is the identity.

    ``x y z roll pitch yaw`` in [m] and [rad] (``degrees="true"``: [deg]), or with
    ``rotation_format="quat_xyzw"`` ``x y z qx qy qz qw``.
    """
    if element is None:
        return Pose()
    form = element.get("rotation_format", "euler_rpy").strip()
    degrees = boolean(element.get("degrees", "false"), element, what="degrees")
    if form not in ("euler_rpy", "quat_xyzw"):
        raise element.error(
            f"rotation_format '{shorten(form)}' is unknown", "euler_rpy or quat_xyzw"
        )
    if not text_of(element):
        return Pose()
    if form == "quat_xyzw":
        if degrees:
            raise element.error("degrees with a quaternion", "degrees only with euler_rpy")
        values = numbers(element, 7, what="numbers x y z qx qy qz qw")
        if np.linalg.norm(values[3:]) < 1e-9:
            raise element.error("the quaternion is zero", "a unit quaternion qx qy qz qw")
        # already a unit quaternion up to the digits written: quaternion_matrix normalises
        return Pose(quaternion_matrix(values[[6, 3, 4, 5]]), values[:3])
    values = numbers(element, 6, what="numbers x y z roll pitch yaw")
    angles = np.radians(values[3:]) if degrees else values[3:]
    return Pose(rpy_matrix(*(float(a) for a in angles)), values[:3])


def known_names(names: Iterable[str], limit: int = 30) -> str:
    """Return a list of names for a message."""
    items = sorted(set(names))
    more = f", ... ({len(items)} in all)" if len(items) > limit else ""
    return ", ".join(shorten(item) for item in items[:limit]) + more if items else "none"


def unknown_name(
    element: XmlElement, role: str, name: str, known: Iterable[str]
) -> DescriptionError:
    """Return the error for a reference to something that does not exist, with a suggestion.

    Args:
        element: Where the reference is.
        role: What is referred to, e.g. ``link``.
        name: The unknown name.
        known: Existing names.
    """
    items = sorted(set(known))
    # get_close_matches is quadratic in the length of the words
    close = get_close_matches(name, items[:300], n=1) if len(name) <= 200 else []
    hint = f"; did you mean '{close[0]}'?" if close else ""
    return element.error(f"{role} '{shorten(name)}' does not exist{hint}", known_names(items))
