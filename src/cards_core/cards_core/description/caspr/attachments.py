"""Read the attachments of a CASPR cable: the points its path goes through.

A point on link 0 is given in world coordinates; on other links from the joint origin or from the
centre of mass, as the cable says, in link axes. The first attachment may be a pulley.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cards_core.description.caspr.bodies import BodySystem
from cards_core.description.caspr.fields import Node
from cards_core.description.caspr.findings import FindingList
from cards_core.description.model import ViaPoint
from cards_core.description.muscle_block import SAME_PLACE
from cards_core.typing import Array

PULLEYS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "base_rotating_pulley": ("fixed_location", ("pulley_radius", "cable_entry_vector")),
    "screw_base_rotating_pulley": (
        "constant_winch_point",
        (
            "winch_vector",
            "cable_pulley_entry_vector",
            "pulley_radius",
            "winch_radius",
            "winch_groove_width",
        ),
    ),
}
"""Special first attachments: the element that becomes the via point, and the other elements."""


def read_attachments(
    attachments: Node,
    system: BodySystem,
    reference: str,
    parameters: dict[str, Array],
    findings: FindingList,
) -> tuple[tuple[ViaPoint, ...], str | None]:
    """Return the path of a cable and the tag of its pulley, None if it has none.

    Args:
        attachments: ``<attachments>``.
        system: The links.
        reference: ``joint`` or ``com``.
        parameters: Takes the numbers of a pulley, as ``<pulley tag>/<element>``.
        findings: Takes remarks.

    Raises:
        DescriptionError: An element is missing or wrong, or there are fewer than two points.
    """
    path: list[ViaPoint] = []
    pulley: str | None = None
    attachments.warn_unknown(findings, children=("attachment", *PULLEYS))
    for child in attachments:
        if child.tag in PULLEYS:
            if path:
                raise child.error("a pulley after the first attachment", "the pulley first")
            pulley = child.tag
            path.append(_read_pulley(child, system, parameters, findings))
        elif child.tag == "attachment":
            point = _read_attachment(child, system, reference, findings)
            if path and _same_place(path[-1], point):
                findings.note(
                    "attachment-repeated",
                    child.label,
                    "at the place of the attachment before it: adds no length, left out",
                    source=child.source,
                    line=child.line,
                )
            else:
                path.append(point)
    if len(path) < 2:
        raise attachments.error(f"{len(path)} different attachments", "at least two")
    return tuple(path), pulley


def _read_attachment(
    element: Node, system: BodySystem, reference: str, findings: FindingList
) -> ViaPoint:
    element.warn_unknown(findings, children=("link", "location"))
    number = element.child("link").integer()
    if not 0 <= number <= len(system.bodies):
        raise element.child("link").error(
            f"link {number} does not exist", f"0 (ground) to {len(system.bodies)}"
        )
    location = element.child("location").vector(3)
    if number > 0 and reference == "com":
        location = location + system.bodies[number - 1].com
    return ViaPoint(system.link_name(number), location)


def _same_place(a: ViaPoint, b: ViaPoint) -> bool:
    return a.link == b.link and float(np.linalg.norm(a.position - b.position)) < SAME_PLACE


def _read_pulley(
    element: Node, system: BodySystem, parameters: dict[str, Array], findings: FindingList
) -> ViaPoint:
    """Return the fixed point of a pulley (world coordinates) and keep its other data."""
    point_tag, others = PULLEYS[element.tag]
    element.warn_unknown(findings, children=(point_tag, *others))
    for tag in others:
        child = element.find(tag)
        if child is not None:
            parameters[f"{element.tag}/{tag}"] = child.vector()
    location = element.child(point_tag).vector(3)
    parameters[f"{element.tag}/{point_tag}"] = np.array(location)
    return ViaPoint(system.link_name(0), location)
