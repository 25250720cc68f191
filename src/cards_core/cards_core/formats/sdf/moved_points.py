"""Write moved via points and changed radii into the text of an SDF, and touch nothing else.

Comments, foreign elements, attributes, blanks and line ends stay as they are: of each number that
has changed, its digits are replaced, all others keep theirs. The robot knows the lines of its
muscles, so that the text is found again where names repeat in several models of one file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.sdf.muscle_path import PATH_ELEMENTS
from cards_core.robot.elements import Cylinder, Sphere, ViaPoint
from cards_core.robot.model import Robot

_COMMENT = re.compile(rb"<!--.*?-->|<!\[CDATA\[|\]\]>", re.DOTALL)
_NUMBER = re.compile(rb"[^\s]+")
_RADIUS = re.compile(rb"""\bradius\s*=\s*(?:"([^"]*)"|'([^']*)')""")


@dataclass
class _Element:
    """Where an element stands in the text, as byte offsets.

    Attributes:
        tag: Its name.
        name: Its attribute ``name``, or nothing.
        line: Of its start tag.
        start: Where the start tag begins.
        inner: Where the content begins.
        end: Where the content ends.
        children: Elements within.
    """

    tag: str
    name: str
    line: int
    start: int
    inner: int
    end: int = 0
    children: list[_Element] = field(default_factory=list)


def with_moved_points(text: bytes, before: Robot, after: Robot) -> bytes:
    """Return the text of an SDF file with the via points and radii of another robot.

    Args:
        text: The file, in UTF-8 or a superset of ASCII.
        before: The robot that was read from it.
        after: The same with other positions of via points, and other radii of wrap surfaces that
            are spheres or cylinders.

    Raises:
        DescriptionError: The file is not the one that the robot was read from, or a muscle stands
            in a file that it includes.
    """
    root = _Scanner(text, before).scan()
    changes: list[tuple[int, int, bytes]] = []
    for old, new in zip(before.muscles, after.muscles, strict=True):
        pairs = zip(old.path, new.path, strict=True)
        moved = [
            k
            for k, (a, b) in enumerate(pairs)
            if isinstance(a, ViaPoint)
            and isinstance(b, ViaPoint)
            and np.any(a.position != b.position)
        ]
        if not moved:
            continue
        element = _find(root, "muscle", old.line, old.name, before)
        parts = [child for child in element.children if child.tag in PATH_ELEMENTS]
        for k in moved:
            was, now = old.path[k], new.path[k]
            assert isinstance(was, ViaPoint)
            assert isinstance(now, ViaPoint)
            if k >= len(parts) or parts[k].tag != "via_point":
                raise _other_file(before, old.line, f"muscle '{old.name}'")
            changes += _numbers(text, parts[k], was, now, before)
    for a, b in zip(before.wrap_surfaces, after.wrap_surfaces, strict=True):
        if not isinstance(a.geometry, Sphere | Cylinder):
            continue
        assert isinstance(b.geometry, Sphere | Cylinder)
        if a.geometry.radius != b.geometry.radius:
            element = _find(root, "wrap_surface", a.line, a.name, before)
            changes.append(_radius(text, element, b.geometry.radius, before))
    for start, end, number in sorted(changes, reverse=True):
        text = text[:start] + number + text[end:]
    return text


def _find(root: _Element, tag: str, line: int | None, name: str, robot: Robot) -> _Element:
    own = name.rpartition("::")[2]  # names of nested models have their prefix in the robot alone
    stack = [root]
    while stack:
        element = stack.pop()
        if (element.tag, element.line, element.name) == (tag, line, own):
            return element
        stack += element.children
    raise _other_file(robot, line, f"{tag.replace('_', ' ')} '{name}'")


def _other_file(robot: Robot, line: int | None, name: str) -> DescriptionError:
    where = "it stands in a file that this one includes" if line is None else "it is not there"
    return DescriptionError(
        where,
        source=robot.source,
        line=line,
        element=name,
        expected="the muscles in the file itself, unchanged since it was read",
    )


def _numbers(
    text: bytes, element: _Element, was: ViaPoint, now: ViaPoint, robot: Robot
) -> list[tuple[int, int, bytes]]:
    content = text[element.inner : element.end]
    blank = _COMMENT.sub(lambda found: b" " * len(found[0]), content)
    tokens = list(_NUMBER.finditer(blank))
    values = [_float(token[0]) for token in tokens]
    if len(tokens) != 3 or not np.array_equal(values, was.position):
        raise _other_file(robot, was.line, f"<via_point> on {was.link}")
    return [
        (element.inner + token.start(), element.inner + token.end(), _digits(new))
        for token, old, new in zip(tokens, was.position, now.position, strict=True)
        if old != new
    ]


def _radius(text: bytes, element: _Element, radius: float, robot: Robot) -> tuple[int, int, bytes]:
    for child in element.children:
        found = _RADIUS.search(text, child.start, child.inner)
        if child.tag in ("sphere", "cylinder") and found:
            group = 1 if found[1] is not None else 2
            return found.start(group), found.end(group), _digits(radius)
    raise _other_file(robot, element.line, "<wrap_surface>")


def _float(token: bytes) -> float:
    try:
        return float(token)
    except ValueError:
        return float("nan")


def _digits(value: float) -> bytes:
    """Return the shortest digits that read back as the number."""
    return (f"{value:.0f}" if value == int(value) else repr(float(value))).encode()


class _Scanner:
    """Finds elements and where they stand.

    Args:
        text: The file.
        robot: For messages.
    """

    def __init__(self, text: bytes, robot: Robot) -> None:
        self._text, self._robot = text, robot
        self._root = _Element("", "", 0, 0, 0)

    def scan(self) -> _Element:
        """Return an element that has the document within."""
        if self._text[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise DescriptionError(
                "is in UTF-16", source=self._robot.source, expected="a file in UTF-8"
            )
        parser = expat.ParserCreate()
        stack = [self._root]

        def start(tag: str, attributes: dict[str, str]) -> None:
            begin = parser.CurrentByteIndex
            name = attributes.get("name", "")
            line = parser.CurrentLineNumber
            item = _Element(tag, name, line, begin, self._after_tag(begin))
            stack[-1].children.append(item)
            stack.append(item)

        def end(tag: str) -> None:
            stack.pop().end = parser.CurrentByteIndex

        parser.StartElementHandler, parser.EndElementHandler = start, end
        try:
            parser.Parse(self._text, True)
        except expat.ExpatError as error:
            raise DescriptionError(
                f"malformed XML: {expat.ErrorString(error.code)}",
                source=self._robot.source,
                line=error.lineno,
                expected="well-formed XML",
            ) from None
        return self._root

    def _after_tag(self, begin: int) -> int:
        """Return where the content begins behind a start tag, whose values may have ``>``."""
        quote = 0
        for k in range(begin, len(self._text)):
            byte = self._text[k]
            if quote:
                quote = 0 if byte == quote else quote
            elif byte in b"\"'":
                quote = byte
            elif byte == ord(">"):
                return k + 1
        return len(self._text)
