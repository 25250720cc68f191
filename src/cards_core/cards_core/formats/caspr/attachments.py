"""Read the attachments of a CASPR cable: the points its path goes through.

A point on link 0 is given in world coordinates; on other links from the joint origin or from the
centre of mass, as the cable says, in link axes. The first attachment may be a caster pulley, whose
swivel axis is the incoming cable: our `Pulley`. CASPR's arc is ``R acos(cos phi)``, which is ours
up to half a turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cards_core.formats.caspr.bodies import BodySystem
from cards_core.formats.caspr.fields import Node
from cards_core.formats.caspr.findings import FindingList
from cards_core.formats.sdf.muscle_path import SAME_PLACE
from cards_core.robot.elements import Pulley, ViaPoint
from cards_core.typing import Array


@dataclass(frozen=True)
class PulleyKind:
    """Elements of a pulley in CASPR's files.

    Attributes:
        point: Where the cable meets the wheel.
        axis: Direction of the incoming cable.
        others: What is not simulated.
    """

    point: str
    axis: str
    others: tuple[str, ...] = ()


PULLEYS: Mapping[str, PulleyKind] = {
    "base_rotating_pulley": PulleyKind("fixed_location", "cable_entry_vector"),
    "screw_base_rotating_pulley": PulleyKind(
        "constant_winch_point",
        "cable_pulley_entry_vector",
        ("winch_vector", "winch_radius", "winch_groove_width"),
    ),
}
"""Special first attachments."""

RADIUS = "pulley_radius"


def read_attachments(
    attachments: Node,
    system: BodySystem,
    reference: str,
    parameters: dict[str, Array],
    findings: FindingList,
) -> tuple[tuple[ViaPoint | Pulley, ...], str | None]:
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
    path: list[ViaPoint | Pulley] = []
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


def _same_place(a: ViaPoint | Pulley, b: ViaPoint) -> bool:
    return a.link == b.link and float(np.linalg.norm(a.position - b.position)) < SAME_PLACE


def _read_pulley(
    element: Node, system: BodySystem, parameters: dict[str, Array], findings: FindingList
) -> ViaPoint | Pulley:
    """Return a pulley (world coordinates) and keep its numbers.

    Without a wheel (radius 0, or no direction of the cable) it is a via point.
    """
    kind = PULLEYS[element.tag]
    tags = (kind.point, RADIUS, kind.axis, *kind.others)
    element.warn_unknown(findings, children=tags)
    for tag in tags:
        child = element.find(tag)
        if child is not None:
            parameters[f"{element.tag}/{tag}"] = child.vector()
    position, ground = element.child(kind.point).vector(3), system.link_name(0)
    radius = 0.0 if element.find(RADIUS) is None else element.child(RADIUS).number()
    if radius < 0.0:
        raise element.child(RADIUS).error(f"{radius:g} m is negative", ">= 0")
    if radius > 0.0 and element.find(kind.axis) is not None:
        axis = element.child(kind.axis).vector(3)
        length = float(np.linalg.norm(axis))
        if length > 0.0:
            return Pulley(ground, position, axis / length, radius, element.line)
    return ViaPoint(ground, position)
