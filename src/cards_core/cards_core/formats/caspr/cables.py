"""Read a CASPR cables file: sets of cables with paths, force limits and parameters.

What becomes of the kinds is said in `cards_core.formats.caspr.muscles`. An attachment is a point
that a path goes through. On link 0 it is given in world coordinates; on other links from the joint
origin or from the centre of mass, as the cable says, in link axes. The first attachment may be a
caster pulley, whose swivel axis is the incoming cable: our `Pulley`. CASPR's arc is
``R acos(cos phi)``, which is ours up to half a turn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from cards_core.checks import check_choice
from cards_core.errors import DescriptionError
from cards_core.formats.caspr.bodies import BodySystem
from cards_core.formats.caspr.fields import Node
from cards_core.formats.imports.findings import FindingList, NameTable
from cards_core.formats.sdf.muscle_path import SAME_PLACE
from cards_core.robot.elements import Pulley, ViaPoint
from cards_core.typing import Array

# Attachments -----------------------------------------------------------------------------------


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
                    at=child,
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


# Cables ----------------------------------------------------------------------------------------


KINDS: Mapping[str, tuple[str, ...]] = {
    "cable_ideal": (),
    "cable_linear_spring": ("K",),
    "cable_passive_linear_spring": ("K", "l0"),
    "cable_vsd_flexure_linear": ("K_cable", "vsd_force_deformation_relation"),
    "cable_vsd_torsion_spring": (
        "K_cable",
        "num_torsion_springs",
        "torsion_spring_stiffness",
        "torsion_spring_length",
    ),
    "cable_vsd_polynomial": (
        "K_cable",
        "num_stiffness_polynomial_coeff",
        "stiffness_poly_coeff",
    ),
    "muscle_hill_type": (),
    "pneumatic_artificial_muscle": (),
}
"""Cable kinds and the properties each has besides force_min, force_max and diameter."""

PASSIVE = "cable_passive_linear_spring"

NOT_IN_CASPR = ("muscle_hill_type", "pneumatic_artificial_muscle")
"""Kinds that CASPR names but refuses as not implemented; no meaning is fixed for their numbers."""


@dataclass(frozen=True, eq=False)
class Cable:
    """A cable of a set.

    Attributes:
        original_name: Name in the file.
        name: Our name, unique in its set.
        kind: CASPR's tag.
        path: Via points on our links, the first of them perhaps a pulley.
        force_min, force_max: Limits, [N]; 0 and infinite for passive springs.
        parameters: Properties by tag; pulley data under ``<pulley tag>/<element>``.
        pulley: Tag of the pulley at the first attachment, or None.
        line: Line in the file.
    """

    original_name: str
    name: str
    kind: str
    path: tuple[ViaPoint | Pulley, ...]
    force_min: float
    force_max: float
    parameters: Mapping[str, Array] = field(default_factory=dict)
    pulley: str | None = None
    line: int | None = None

    @property
    def passive(self) -> bool:
        """True for springs that take no command."""
        return self.kind == PASSIVE


@dataclass(frozen=True, eq=False)
class CableSet:
    """A named set of cables; one set is attached at a time."""

    name: str
    cables: tuple[Cable, ...]
    line: int | None = None


@dataclass(frozen=True, eq=False)
class CableFile:
    """All sets of a file. `default` is None where the file names none."""

    sets: tuple[CableSet, ...]
    default: str | None
    source: str
    line: int | None

    def select(self, name: str | None, findings: FindingList) -> CableSet:
        """Return the set ``name``, or the default one.

        Raises:
            UnknownNameError: No set has this name.
            DescriptionError: The file's own default does not exist.
        """
        known = {item.name: item for item in self.sets}
        if name is not None:
            check_choice(name, "cable set", known)
            return known[name]
        if self.default is None:
            first = self.sets[0]
            findings.warn(
                "no-default-cable-set",
                "<cables>",
                f"default_cable_set is not given; the first set '{first.name}' was chosen",
                at=self,
            )
            return first
        if self.default not in known:
            raise DescriptionError(
                f"default_cable_set '{self.default}' does not exist",
                source=self.source,
                line=self.line,
                element="<cables>",
                expected=" or ".join(known),
            )
        return known[self.default]


def read_cables(root: Node, system: BodySystem, findings: FindingList) -> CableFile:
    """Read ``<cables>``.

    Args:
        root: Root element.
        system: The bodies that the cables are attached to.
        findings: Takes remarks.

    Raises:
        DescriptionError: An element is missing or has a value that cannot be used.
    """
    root.warn_unknown(findings, children=("cable_set",), attributes=("default_cable_set",))
    sets: list[CableSet] = []
    for element in root:
        if element.tag != "cable_set":
            continue
        name = element.attribute("id")
        if any(item.name == name for item in sets):
            raise element.error(f"second cable set with id '{name}'", "unique ids")
        element.warn_unknown(findings, children=KINDS, attributes=("id",))
        names = NameTable()
        cables: list[Cable] = []
        for child in element:
            if child.tag not in KINDS:
                raise child.error(f"unknown cable kind <{child.tag}>", ", ".join(KINDS))
            cable = _read_cable(child, len(cables) + 1, system, names, findings)
            if cable is not None:
                cables.append(cable)
        sets.append(CableSet(name, tuple(cables), element.line))
    if not sets:
        raise root.error("has no cable sets", "at least one <cable_set>")
    return CableFile(tuple(sets), root.get("default_cable_set") or None, root.source, root.line)


def _read_cable(
    element: Node, number: int, system: BodySystem, names: NameTable, findings: FindingList
) -> Cable | None:
    kind = element.tag
    original = element.attribute("name")
    element.warn_unknown(
        findings,
        children=("properties", "attachments"),
        attributes=("name", "attachment_reference", "attachment_ref"),
    )
    parameters: dict[str, Array] = {}
    properties = element.child("properties")
    force_min, force_max = _read_properties(properties, kind, parameters, findings)
    reference = element.get("attachment_reference") or element.get("attachment_ref")
    if reference not in ("joint", "com"):
        raise element.error(
            "attachment_reference is missing"
            if reference is None
            else f'attachment_reference="{reference}"',
            'attachment_reference="joint" or "com"',
        )
    path, pulley = read_attachments(
        element.child("attachments"), system, reference, parameters, findings
    )
    return Cable(
        original_name=original,
        name=names.claim(original, f"cable_{number}"),
        kind=kind,
        path=path,
        force_min=force_min,
        force_max=force_max,
        parameters=parameters,
        pulley=pulley,
        line=element.line,
    )


def _read_properties(
    properties: Node, kind: str, parameters: dict[str, Array], findings: FindingList
) -> tuple[float, float]:
    """Return the force limits and fill ``parameters``."""
    free = kind in NOT_IN_CASPR  # nothing fixes which properties these have
    if not free:
        properties.warn_unknown(
            findings, children=("force_min", "force_max", "diameter", *KINDS[kind])
        )
    for child in properties:
        if child.tag in KINDS[kind] or child.tag == "diameter" or free:
            if child.tag in parameters:
                raise child.error("given twice", "once")
            if child.tag not in ("force_min", "force_max"):
                parameters[child.tag] = child.vector()
    missing = [tag for tag in KINDS[kind] if tag not in parameters]
    if missing:
        findings.warn(
            "parameter-missing",
            properties.label,
            f"a {kind} needs {', '.join(missing)}; the import goes on without",
            at=properties,
        )
    if kind == PASSIVE:
        return 0.0, math.inf
    lower = properties.child("force_min").number()
    upper = properties.child("force_max").number(infinite=True)
    if lower < 0.0:
        raise properties.child("force_min").error(f"{lower:g} N: cables cannot push", ">= 0")
    if upper < lower:
        raise properties.child("force_max").error(
            f"{upper:g} N is less than force_min {lower:g} N", "force_min <= force_max"
        )
    return lower, upper
