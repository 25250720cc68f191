"""Attributes that MuJoCo once had: those that change no robot are blanked out before it reads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from cards_core.formats.xml_lines import XmlElement

_ANY = "any value"

_DROPPED = {
    ("camera", "orthographic"): (_ANY, ""),
    ("compiler", "convexhull"): (_ANY, ""),
    ("compiler", "exactmeshinertia"): ("false", "inertia='exact' at each <mesh>"),
    ("flag", "passive"): ("enable", "spring='disable' damper='disable'"),
    ("flag", "sensornoise"): (_ANY, ""),
    ("lengthrange", "inteval"): ("", "interval"),
    ("option", "apirate"): (_ANY, ""),
    ("option", "collision"): ("all", "contype='0' conaffinity='0' at geoms that touch nothing"),
    ("option", "mpr_iterations"): (_ANY, ""),
    ("option", "mpr_tolerance"): (_ANY, ""),
    ("quality", "numarrows"): (_ANY, ""),
}
"""Element and attribute to the value that changes nothing, and what others became since."""

_ATTRIBUTE = re.compile(rb"\s([^\s=]+)\s*=\s*(?:\"[^\"]*\"|'[^']*')")


def obsolete(element: XmlElement) -> list[str]:
    """Return the attributes of an element that newer MuJoCo refuses and that change nothing.

    Args:
        element: Of an MJCF file.

    Raises:
        DescriptionError: One of them does change something.
    """
    found = [name for name in element.attrib if (element.tag, name) in _DROPPED]
    for name in found:
        harmless, instead = _DROPPED[element.tag, name]
        if harmless not in (_ANY, element.get(name)):
            raise element.error(f"{name} is none of newer MuJoCo", f"{instead} in its place")
    return found


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
