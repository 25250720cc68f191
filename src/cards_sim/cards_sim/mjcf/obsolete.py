"""Attributes that MuJoCo once had: they are blanked out of the text that it reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from cards_core.formats.xml_lines import XmlElement

_NOTHING = "changes no robot"

_DROPPED: dict[tuple[str, str], tuple[str | None, str]] = {
    ("camera", "orthographic"): (None, ""),
    ("compiler", "convexhull"): (None, ""),
    ("compiler", "exactmeshinertia"): ("false", ""),
    ("flag", "passive"): ("enable", "springs and damping, switched off there, act here"),
    ("flag", "sensornoise"): (None, ""),
    ("flag", "solverstat"): (None, ""),
    ("lengthrange", "inteval"): ("", "the default interval counts"),
    ("option", "apirate"): (None, ""),
    ("option", "collision"): ("all", "geoms touch by contype and conaffinity here"),
    ("option", "mpr_iterations"): (None, ""),
    ("option", "mpr_tolerance"): (None, ""),
    ("quality", "numarrows"): (None, ""),
}
"""Element and attribute to the value that changes nothing, None for any, and what others do."""

_INSTEAD = {("compiler", "exactmeshinertia"): "inertia='exact' at each <mesh>"}
"""What attributes became that change the robot itself."""

_ATTRIBUTE = re.compile(rb"\s([^\s=]+)\s*=\s*(?:\"[^\"]*\"|'[^']*')")


def obsolete(element: XmlElement) -> Iterator[tuple[str, str]]:
    """Yield attributes that newer MuJoCo refuses, and what leaving them out does.

    Args:
        element: Of an MJCF file.

    Raises:
        DescriptionError: One of them changes the robot.
    """
    for name, value in element.attrib.items():
        key = element.tag, name
        if key not in _DROPPED:
            continue
        harmless, otherwise = _DROPPED[key]
        if harmless is None or value == harmless:
            yield name, _NOTHING
        elif key in _INSTEAD:
            raise element.error(
                f"newer MuJoCo does not have {name}", f"{_INSTEAD[key]} in its place"
            )
        else:
            yield name, f"changes this: {otherwise}"


def without(file: Path, attributes: Iterable[tuple[XmlElement, str]]) -> bytes:
    """Return the text of a file with blanks in place of attributes, so that lines stay.

    Args:
        file: The file.
        attributes: Elements of it, and the name of an attribute of each.
    """
    data = file.read_bytes()
    for element, name in attributes:
        for match in _ATTRIBUTE.finditer(data, element.begin):
            if match[1] == name.encode():
                blank = re.sub(rb"[^\r\n]", b" ", match[0])
                data = data[: match.start()] + blank + data[match.end() :]
                break
    return data
