"""Read a CASPR cables file: sets of cables with paths, force limits and parameters.

What becomes of the kinds is said in `cards_core.formats.caspr.muscles`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from cards_core.errors import DescriptionError, UnknownNameError
from cards_core.formats.caspr.attachments import read_attachments
from cards_core.formats.caspr.bodies import BodySystem
from cards_core.formats.caspr.fields import Node
from cards_core.formats.caspr.findings import FindingList
from cards_core.formats.caspr.names import NameTable
from cards_core.robot.elements import Pulley, ViaPoint
from cards_core.typing import Array

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
            if name not in known:
                raise UnknownNameError("cable set", name, known)
            return known[name]
        if self.default is None:
            first = self.sets[0]
            findings.warn(
                "no-default-cable-set",
                "<cables>",
                f"default_cable_set is not given; the first set '{first.name}' was chosen",
                source=self.source,
                line=self.line,
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
            source=properties.source,
            line=properties.line,
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
