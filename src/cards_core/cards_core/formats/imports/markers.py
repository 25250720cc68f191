"""Frames and points whose names say what they are: via points of muscles, wrap surfaces, frames.

CAD programs and their exporters keep names and places, and nothing else about muscles. So the name
says it:

=========================== ====================================================================
``muscle:biceps:2``         second point of the path of muscle ``biceps``, from origin to insertion
``muscle:7``                a point of muscle ``7``; its points are ordered from base to tip
``wrap:elbow``              a sphere, cylinder or torus that muscles wrap over
``wrap:elbow:biceps:2``     the same; it is element 2 of the path of ``biceps``
``frame:hand``              a named frame of the robot
=========================== ====================================================================

``@LINK`` behind any of them names the link, where the place in the assembly does not. Where a
format forbids colons, ``muscle_biceps_2`` is read like ``muscle:biceps:2``. The first word may be
capitalised; points of a muscle are numbered without gaps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from cards_core.errors import DescriptionError
from cards_core.robot.elements import WORLD, Joint, PathElement, ViaPoint, Wrap
from cards_core.typing import Vector3

KINDS = ("muscle", "wrap", "frame")
"""What a marker begins with, before a colon."""

MARKER = r"(?i:muscle|wrap|frame):"
"""How the name of a marker begins, as a regular expression."""

TENSION_LIMITS = (5.0, 500.0)
"""Tension limits of a muscle where nothing states them, [N]."""

_MUSCLE = re.compile(r"(?i:muscle):(?P<muscle>[^:@]+)(?::(?P<order>\d{1,6}))?(?:@(?P<link>.+))?")
_FLAT = re.compile(r"(?i:muscle)_(?P<muscle>.+)_(?P<order>\d{1,6})")
_WRAP = re.compile(
    r"(?i:wrap):(?P<name>[^:@]+)(?::(?P<muscle>[^:@]+):(?P<order>\d{1,6}))?(?:@(?P<link>.+))?"
)
_FRAME = re.compile(r"(?i:frame):(?P<name>[^:@]+)(?:@(?P<link>.+))?")


@dataclass(frozen=True)
class Marker:
    """What a name says.

    Attributes:
        kind: What it marks.
        name: Of the surface or frame; empty for a point.
        muscle: Whose path it belongs to; empty if none.
        order: Its place in the path, or None.
        link: The link that the name states, or None.
    """

    kind: Literal["muscle", "wrap", "frame"]
    name: str = ""
    muscle: str = ""
    order: int | None = None
    link: str | None = None


@dataclass(frozen=True, eq=False)
class MarkedPoint:
    """An element of a muscle's path that was found by its name.

    Attributes:
        name: As in the file.
        marker: What it says.
        link: Where it is.
        position: In link coordinates, shape (3,), [m]; unused for a surface.
        line: Of the file that has it, if the file has lines.
    """

    name: str
    marker: Marker
    link: str
    position: Vector3
    line: int | None = None


def marked(names: Iterable[str]) -> set[str]:
    """Return which of some names are those of markers, or begin like one.

    Args:
        names: Of frames, sites or links; ``muscle_biceps_2`` counts as of `flat_muscles`.
    """
    names = list(names)
    flat = flat_muscles(names)
    return {
        name
        for name in names
        if re.match(MARKER, name) or ((found := _FLAT.fullmatch(name)) and found["muscle"] in flat)
    }


def parse_marker(name: str, *, flat: bool = False) -> Marker | None:
    """Return what a name says, or None if it is not the name of a marker.

    Args:
        name: Of a frame, site, point or body.
        flat: Read ``muscle_biceps_2`` too.

    Raises:
        ValueError: It begins like one and is none; the text says what would be right.
    """
    text = name.strip()
    kind, found = text.partition(":")[0].lower(), None
    if kind == "muscle" and ":" in text:
        found = _MUSCLE.fullmatch(text)
    elif kind == "wrap" and ":" in text:
        found = _WRAP.fullmatch(text)
    elif kind == "frame" and ":" in text:
        found = _FRAME.fullmatch(text)
    elif flat and (match := _FLAT.fullmatch(text)):
        return Marker("muscle", muscle=match["muscle"], order=int(match["order"]))
    else:
        return None
    if found is None:
        wanted = {
            "muscle": "muscle:NAME:K or muscle:NAME",
            "wrap": "wrap:NAME or wrap:NAME:MUSCLE:K",
            "frame": "frame:NAME",
        }
        raise ValueError(f"{wanted[kind]}, with @LINK if need be")
    words = found.groupdict()
    order = words.get("order")
    return Marker(
        kind,  # type: ignore[arg-type]  # a key of the patterns
        name=words.get("name") or "",
        muscle=words.get("muscle") or "",
        order=None if order is None else int(order),
        link=words["link"],
    )


def meant_marker(name: str) -> str | None:
    """Return the marker's name that one with a misspelt first word was meant to be, else None.

    Args:
        name: Of a frame, site, point or body, such as ``muscel:3:2`` or ``muscle :3:2``.
    """
    word, colon, rest = name.strip().partition(":")
    if not colon or not rest or re.match(MARKER, name.strip()):
        return None
    near = get_close_matches(word.strip().lower(), KINDS, n=1, cutoff=0.75)
    return f"{near[0]}:{rest.strip()}" if near else None


def misspelt(meant: str) -> str:
    """Return what is said of a name that `meant_marker` knows better.

    Args:
        meant: The right one.
    """
    return f"no marker, and so no part of a muscle; did you mean '{meant}'?"


def flat_muscles(names: Iterable[str]) -> set[str]:
    """Return the muscles that names such as ``muscle_biceps_1`` state.

    Args:
        names: Of frames, sites or links.

    Returns:
        Those with a point 1 and another one at least.
    """
    orders: dict[str, set[int]] = {}
    for name in names:
        if match := _FLAT.fullmatch(name.rpartition("::")[2]):
            orders.setdefault(match["muscle"], set()).add(int(match["order"]))
    return {muscle for muscle, found in orders.items() if 1 in found and len(found) > 1}


def muscle_paths(
    points: Iterable[MarkedPoint], joints: Sequence[Joint], source: str | None
) -> dict[str, tuple[PathElement, ...]]:
    """Return the path of every muscle from its marked points.

    Args:
        points: In any order.
        joints: Of the robot; points without a number are ordered from base to tip.
        source: File, for messages.

    Raises:
        DescriptionError: Two points at one place of a path, points with and without a number,
            numbers with gaps, an order that is not decided, or a path of fewer than two points.
    """
    grouped: dict[str, list[MarkedPoint]] = {}
    for point in points:
        grouped.setdefault(point.marker.muscle, []).append(point)
    depth = _depths(joints)
    out = {}
    for muscle in sorted(grouped, key=natural_order):
        ordered = _ordered(muscle, grouped[muscle], depth, source)
        elements: list[PathElement] = [
            Wrap(item.marker.name)
            if item.marker.kind == "wrap"
            else ViaPoint(item.link, item.position)
            for item in ordered
        ]
        ends = (elements[0], elements[-1])
        if len(elements) < 2 or not all(isinstance(item, ViaPoint) for item in ends):
            raise DescriptionError(
                f"its path is {', '.join(item.name for item in ordered)}",
                source=source,
                line=ordered[0].line,
                element=f"muscle '{muscle}'",
                expected="at least two points, with a point at either end",
            )
        out[muscle] = tuple(elements)
    return out


def _ordered(
    muscle: str, points: list[MarkedPoint], depth: Mapping[str, int], source: str | None
) -> list[MarkedPoint]:
    numbered = [item for item in points if item.marker.order is not None]
    keys = [
        depth.get(item.link, 0) if item.marker.order is None else item.marker.order
        for item in points
    ]
    problem = expected = line = None
    if numbered and len(numbered) < len(points):
        problem = "some of its points have a number and some have none"
        expected = f"muscle:{muscle}:1, muscle:{muscle}:2, ..."
        line = next(item.line for item in points if item.marker.order is None)
    elif len(set(keys)) < len(keys):
        twice = next(i for i, key in enumerate(keys) if key in keys[:i])
        first = keys.index(keys[twice])
        problem = f"'{points[first].name}' and '{points[twice].name}' are at the same place of it"
        expected = "a number each, from origin to insertion"
        line = points[twice].line
    elif numbered:
        orders = sorted(keys)
        # whoever counts from 0 does so throughout
        missing = sorted(set(range(min(1, orders[0]), orders[-1])) - set(orders))
        if missing:
            shown = ", ".join(f"'muscle:{muscle}:{number}'" for number in missing[:5])
            more = "" if len(missing) <= 5 else f" and {len(missing) - 5} more"
            found = ", ".join(str(number) for number in orders[:10])
            problem = f"its points have the numbers {found}, and there is no {shown}{more}"
            expected = "numbers without gaps from 1 on, from origin to insertion"
            after = min(order for order in orders if order > missing[0])
            line = points[keys.index(after)].line
    if problem:
        raise DescriptionError(
            problem, source=source, line=line, element=f"muscle '{muscle}'", expected=expected
        )
    return [item for _, item in sorted(zip(keys, points, strict=True), key=lambda pair: pair[0])]


def natural_order(text: str) -> list[tuple[int, int, str]]:
    """Sort key that puts 2 before 10."""
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
        for part in re.split(r"(\d+)", text)
        if part
    ]


def _depths(joints: Sequence[Joint]) -> dict[str, int]:
    """Return how many joints are between every link and the world."""
    parents = {joint.child: joint.parent for joint in joints}
    out = {WORLD: 0}
    for link in parents:
        count, above = 0, link
        while above in parents and count <= len(parents):
            above, count = parents[above], count + 1
        out[link] = count
    return out
