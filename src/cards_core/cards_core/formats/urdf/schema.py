"""Which elements of URDF are read, and which are passed over.

Elements that state numbers are closed: what they may hold is listed, anything else is an error.
Robots, links and joints carry extensions of many programs, which are passed over with a note;
what looks like a misspelt element of URDF is an error there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from cards_core.formats.imports.findings import FindingList
from cards_core.formats.sdf.schema import Content, check_content
from cards_core.formats.sdf.values import known_names
from cards_core.formats.xml_lines import XmlElement, shorten


def _content(once: str = "", many: str = "", ignored: str = "", attributes: str = "") -> Content:
    words = [frozenset(part.split()) for part in (once, many, ignored, attributes)]
    return Content(once=words[0], many=words[1], ignored=words[2], attributes=words[3])


OPEN: Mapping[str, Content] = {
    "robot": _content(
        many="link joint material transmission gazebo ros2_control", attributes="name version"
    ),
    "link": _content("inertial", "visual collision", attributes="name type"),
    "joint": _content(
        "origin parent child axis limit dynamics mimic calibration safety_controller",
        attributes="name type",
    ),
}
"""Elements that other programs extend."""

CLOSED: Mapping[str, Content] = {
    "inertial": _content("origin mass inertia"),
    "visual": _content("origin geometry material", attributes="name"),
    "collision": _content(
        "origin geometry",
        ignored="verbose contact_coefficients material surface max_contacts",
        attributes="name",
    ),
    "origin": _content(attributes="xyz rpy quat_xyzw"),
    "mass": _content(attributes="value"),
    "inertia": _content(attributes="ixx ixy ixz iyy iyz izz"),
    "geometry": _content("box cylinder sphere capsule mesh"),
    "box": _content(attributes="size"),
    "cylinder": _content(attributes="radius length"),
    "capsule": _content(attributes="radius length"),
    "sphere": _content(attributes="radius"),
    "mesh": _content(attributes="filename scale"),
    "material": _content("color texture", attributes="name"),
    "color": _content(attributes="rgba"),
    "texture": _content(attributes="filename"),
    "parent": _content(attributes="link"),
    "child": _content(attributes="link"),
    "axis": _content(attributes="xyz"),
    "limit": _content(
        attributes="lower upper effort velocity acceleration deceleration jerk"
    ),
    "dynamics": _content(attributes="damping friction D K mu_coulomb mu_viscous"),
    "mimic": _content(attributes="joint multiplier offset"),
}  # fmt: skip
"""Elements whose content is all that there is."""

_CLOSE = 0.75  # similarity from which an unknown element is taken for a misspelt one


def check(element: XmlElement) -> None:
    """Check children and attributes of an element that others do not extend.

    Raises:
        DescriptionError: An unknown or repeated child, an unknown attribute, or text.
    """
    check_content(element, CLOSED[element.tag])


def check_open(element: XmlElement, findings: FindingList) -> None:
    """Check an element that other programs extend; note what is passed over.

    Args:
        element: ``<robot>``, ``<link>`` or ``<joint>``.
        findings: Takes the notes.

    Raises:
        DescriptionError: A child or attribute is given twice, or looks like a misspelt one.
    """
    content = OPEN[element.tag]
    known = content.once | content.many
    seen: set[str] = set()
    for child in element:
        name = child.tag
        if name in content.once and name in seen:
            raise child.error("given twice", f"one <{name}>")
        seen.add(name)
        if name not in known:
            _unknown(child, f"element <{shorten(name)}>", name, known)
            findings.note(
                "element-ignored",
                element.label,
                f"<{shorten(name)}> has no meaning here",
                at=child,
            )
    for name in element.attrib:
        if name not in content.attributes and ":" not in name and name != "xmlns":
            _unknown(element, f"attribute '{shorten(name)}'", name, content.attributes)
            findings.note(
                "attribute-ignored",
                element.label,
                f"attribute '{shorten(name)}' has no meaning here",
                at=element,
            )


def _unknown(element: XmlElement, what: str, name: str, known: frozenset[str]) -> None:
    close = get_close_matches(name, known, n=1, cutoff=_CLOSE) if len(name) < 80 else []
    if close:
        raise element.error(f"unknown {what}; did you mean '{close[0]}'?", known_names(known))
