"""The rods of a robot as its YAML file describes them; see docs/rod_robots.md for the format.

Values are looked up in the entry of a rod, then in the defaults. Every error is a
`DescriptionError` with file, line and key. Nothing is filled in silently: what a rod needs and the
file does not say is an error that names the key; the key of another program is answered with ours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.robots.robot import BaseKind, SolverSettings, TipKind
from cards_core.rods.rod import Material, Rod, Section
from cards_core.typing import Vector3
from cards_core.yaml_fields import Document, Field

STEPS_MOST = 100_000
"""Steps, segments and iterations of a solver, at most."""

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")

_MIX_UP = "one of them; the other follows"

_OTHER_NAMES = {
    "E": ("young", "young_modulus", "youngs_modulus", "elastic_modulus", "modulus"),
    "G": ("shear", "shear_modulus"),
    "nu": ("poisson", "poisson_ratio", "poissons_ratio"),
    "rho": ("density",),
    "radius": ("r", "rod_radius", "outer_radius"),
    "diameter": ("d", "rod_diameter"),
    "length": ("l", "rod_length"),
    "plate": ("tip_joint", "plate_joint", "platform"),
    "base": ("base_joint",),
    "u0": ("curvature", "precurvature"),
    "v0": ("strain", "initial_strain", "prestrain"),
    "load": ("distributed_load", "force_density"),
}
"""What other programs call a key, for the message."""

Made = TypeVar("Made", Section, Material, Rod)


def number(field: Field, *, above: float = -math.inf, at_least: float = -math.inf) -> float:
    """Return a finite number; texts such as ``"200e9"`` count as the number they spell.

    Args:
        field: The field.
        above: What the number must exceed.
        at_least: Smallest number that is accepted.

    Raises:
        DescriptionError: It is no such number.
    """
    if isinstance(field.value, str) and _NUMBER.fullmatch(field.value):
        field.document.texts_elsewhere.append(field.place)
        field = Field(field.document, field.place, float(field.value))
    return field.number(above=above, at_least=at_least)


def vector(field: Field, size: int, what: str) -> Vector3:
    """Return a list of finite numbers; see `number`."""
    values = [number(item) for item in field.items()]
    if len(values) != size:
        raise field.error(f"has {len(values)} values", f"{size}: {what}")
    return np.array(values)


def check_keys(field: Field, known: tuple[str, ...]) -> None:
    """Check the keys of a rod; the error for a key of another program names ours."""
    if isinstance(field.value, dict):
        for key in field.value:
            for ours, others in _OTHER_NAMES.items():
                if key not in known and str(key).lower() in others:
                    raise Field(field.document, (*field.place, key), None).error(
                        f"unknown key '{key}'", f"'{ours}'"
                    )
    field.mapping(known)


SECTION_KEYS = ("radius", "diameter", "section")

MATERIAL_KEYS = ("E", "G", "nu", "rho", "yield_strain", "yield_stress", "damping")

LIMB_KEYS = ("length", "limits", "base", "plate", "start", "tip", "u0", "v0", "load", "bulge")

ROD_KEYS = (*SECTION_KEYS, *MATERIAL_KEYS, *LIMB_KEYS)
"""Keys of a rod, and of ``defaults`` (without ``name``)."""

TOP_KEYS = (
    "defaults",
    "rods",
    "planar",
    "controlled_dof",
    "gravity",
    "plate_mass",
    "initial",
    "wrench",
    "solver",
)
"""Keys of the file."""

_SECTIONS: dict[str, tuple[str, ...]] = {
    "circle": ("radius",),
    "tube": ("radius", "inner_radius"),
    "rectangle": ("width", "height"),
    "general": ("area", "I1", "I2", "J", "half_width", "torsion_radius"),
}


@dataclass(frozen=True, eq=False)
class RodEntry:
    """One entry of ``rods``.

    Attributes:
        field: The entry in the file, for messages.
        name: Of the limb.
        rod: Section, material, shape at rest.
        length: Unstrained length, [m]; None for an extensible limb that does not state one.
        limits: Of the length of an extensible limb, [m].
        base, plate: Kinds of the joints as far as the file says them.
        base_joint, plate_joint: SDF joints that the file names.
        start, tip: Frames of the SDF that the rod starts and ends at.
        bulge: Unit vector, shape (3,), or None.
        force, moment: Loads per unstrained length, world axes, shape (3,), [N/m] and [N].
        warnings: What looks like wrong units, in words.
    """

    field: Field
    name: str
    rod: Rod
    length: float | None
    limits: tuple[float, float] | None
    base: BaseKind | None
    plate: TipKind | None
    base_joint: str | None
    plate_joint: str | None
    start: str
    tip: str
    bulge: Vector3 | None
    force: Vector3
    moment: Vector3
    warnings: tuple[str, ...]


def rod_entries(document: Document) -> list[RodEntry]:
    """Return the entries of ``rods``, each merged with ``defaults``.

    Raises:
        DescriptionError: Something is missing, unknown, of the wrong kind or out of range.
    """
    top = Field(document, (), document.data)
    top.mapping(TOP_KEYS)
    defaults = top["defaults"] if top.has("defaults") else Field(document, ("defaults",), {})
    if top.has("defaults"):
        check_keys(defaults, ROD_KEYS)
    entries: list[RodEntry] = []
    if isinstance(top["rods"].value, dict):
        raise top["rods"].error("is a mapping", "a list, each entry as '- {name: limb_1}'")
    for item in top["rods"].items():
        if isinstance(item.value, str):
            raise item.error(f"is '{item.value}'", f"a mapping: {{name: {item.value}}}")
        check_keys(item, ("name", *ROD_KEYS))
        name = item["name"].text()
        if name in (entry.name for entry in entries):
            raise item["name"].error(f"a second rod named '{name}'", "unique names")
        entries.append(_RodReader(item, defaults, name).read())
    return entries


class _RodReader:
    """One rod: looks keys up in its entry, then in the defaults.

    Args:
        field: The entry.
        defaults: The block ``defaults``, empty where there is none.
        name: Of the rod, for messages.
    """

    def __init__(self, field: Field, defaults: Field, name: str) -> None:
        self.field, self.defaults, self.name = field, defaults, name

    def read(self) -> RodEntry:
        base, base_joint = self._joint("base", BaseKind)
        plate, plate_joint = self._joint("plate", TipKind)
        section, material, curvature = self._section(), self._material(), self._curvature()
        damping = self.optional("damping") or 0.0
        strain = self._strain()
        rod = self.checked(
            [self.get("v0") or self.field],
            lambda: Rod(section, material, curvature=curvature, strain=strain, damping=damping),
        )
        force, moment = self._load()
        length, limits = self._lengths(base)
        warnings = rod.unit_warnings(
            length if length is not None else limits[0] if limits else math.inf
        )
        start, tip = self.get("start"), self.get("tip")
        return RodEntry(
            field=self.field,
            name=self.name,
            rod=rod,
            length=length,
            limits=limits,
            base=None if base is None else BaseKind(base),
            plate=None if plate is None else TipKind(plate),
            base_joint=base_joint,
            plate_joint=plate_joint,
            start=f"{self.name}_start" if start is None else start.text(),
            tip=f"{self.name}_tip" if tip is None else tip.text(),
            bulge=self._bulge(),
            force=force,
            moment=moment,
            warnings=warnings,
        )

    # Values ----------------------------------------------------------------------------------

    def get(self, key: str) -> Field | None:
        """Return the value of a key, None where neither has it."""
        for place in (self.field, self.defaults):
            if place.has(key):
                return place[key]
        return None

    def need(self, key: str, what: str) -> Field:
        """Return the value of a key that must be there; `what` it is stands in the error."""
        found = self.get(key)
        if found is None:
            raise self.field.error(
                f"rod '{self.name}' has no '{key}' ({what})", f"'{key}' here or in 'defaults'"
            )
        return found

    def positive(self, key: str, what: str) -> float:
        """Return a number > 0 that must be there."""
        return number(self.need(key, what), above=0.0)

    def one_of(self, *keys: str, what: str) -> str:
        """Return which of some keys that exclude each other is given; own ones hide defaults."""
        for place in (self.field, self.defaults):
            given = [key for key in keys if place.has(key)]
            if len(given) > 1:
                raise place[given[1]].error(f"'{given[0]}' and '{given[1]}' are given", _MIX_UP)
            if given:
                return given[0]
        names = "' or '".join(keys)
        raise self.field.error(
            f"rod '{self.name}' has no {what}", f"'{names}' here or in 'defaults'"
        )

    def optional(self, key: str, *, above: float = -math.inf) -> float | None:
        """Return a number >= 0 (or > `above`), None where there is none."""
        field = self.get(key)
        return None if field is None else number(field, above=above, at_least=0.0)

    def checked(self, fields: list[Field], make: Callable[[], Made]) -> Made:
        """Return what ``make`` makes; its `RodError` becomes an error at the field it is about.

        Args:
            fields: Of several, the one that the error speaks of is named, else the last.
            make: Makes a section or a material.
        """
        try:
            return make()
        except RodError as error:
            words = {"E": "Young", "rho": "density"}
            about = [f for f in fields if words.get(str(f.place[-1]), "?") in str(error)]
            field = (about or fields[-1:])[0]
            raise field.error(f"rod '{self.name}': {error}") from None

    # Parts -----------------------------------------------------------------------------------

    def _joint(
        self, key: str, kinds: type[BaseKind] | type[TipKind]
    ) -> tuple[str | None, str | None]:
        """Return kind and SDF joint of ``base`` or ``plate``; a text is the kind alone."""
        field = self.get(key)
        if field is None:
            return None, None
        choices = [kind.value for kind in kinds]
        if isinstance(field.value, str):
            return field.text(choices), None
        field.mapping(("type", "joint"))
        kind = field["type"].text(choices) if field.has("type") else None
        return kind, field["joint"].text() if field.has("joint") else None

    def _section(self) -> Section:
        match self.one_of(*SECTION_KEYS, what="section"):
            case "radius":
                return Section.circle(self.positive("radius", "of the section, [m]"))
            case "diameter":
                return Section.circle(self.positive("diameter", "of the section, [m]") / 2)
        field = self.need("section", "")
        kind = field["type"].text(_SECTIONS)
        keys = _SECTIONS[kind]
        field.mapping(("type", "shear_factor", *keys))
        factor = number(field["shear_factor"], above=0.0) if field.has("shear_factor") else 1.0
        if kind == "general":
            half = vector(field["half_width"], 2, "along d1 and d2, [m]")
            values = [number(field[key], above=0.0) for key in keys if key != "half_width"]
            area, first, second, torsion, radius = values
            return self.checked(
                [field],
                lambda: Section(
                    area, first, second, torsion, (half[0], half[1]), radius, (factor, factor)
                ),
            )
        sizes = [
            number(field[key], **({"at_least": 0.0} if key == "inner_radius" else {"above": 0.0}))
            for key in keys
        ]
        if kind == "circle":
            return Section.circle(sizes[0], shear_factor=factor)
        make = Section.tube if kind == "tube" else Section.rectangle
        return self.checked([field], lambda: make(sizes[0], sizes[1], shear_factor=factor))

    def _material(self) -> Material:
        young = self.positive("E", "Young's modulus, [Pa]")
        density = number(self.need("rho", "density, [kg/m^3]; 0 has no weight"), at_least=0.0)
        which = self.one_of("G", "nu", what="shear modulus 'G' and no Poisson ratio 'nu'")
        modulus = number(self.need(which, ""), **({"above": 0.0} if which == "G" else {}))
        strain = self.optional("yield_strain", above=0.0)
        stress = self.optional("yield_stress", above=0.0)
        if strain is None and stress is not None:
            strain = stress / young
        # of the keys, each is right by itself: what the material refuses is E, rho, or else nu
        return self.checked(
            [self.need(key, "") for key in ("E", "rho", which)],
            lambda: Material(
                young,
                shear=modulus if which == "G" else None,
                poisson=modulus if which == "nu" else None,
                density=density,
                yield_strain=strain,
            ),
        )

    def _curvature(self) -> tuple[float, float, float]:
        field = self.get("u0")
        if field is None:
            return (0.0, 0.0, 0.0)
        x, y, z = vector(field, 3, "curvature about d1 and d2, twist about d3, [1/m]")
        return (float(x), float(y), float(z))

    def _strain(self) -> tuple[float, float, float]:
        field = self.get("v0")
        if field is None:
            return (0.0, 0.0, 1.0)
        what = "shear along d1 and d2, stretch along d3, [m/m]; 0 0 1 is a rod without any"
        x, y, z = vector(field, 3, what)
        return (float(x), float(y), float(z))

    def _load(self) -> tuple[Vector3, Vector3]:
        field = self.get("load")
        if field is None:
            return np.zeros(3), np.zeros(3)
        units = {"force": "[N/m]", "moment": "[N]"}
        field.mapping(tuple(units))
        force, moment = (
            vector(field[key], 3, f"per length, in world axes, {unit}")
            if field.has(key)
            else np.zeros(3)
            for key, unit in units.items()
        )
        return force, moment

    def _lengths(self, base: str | None) -> tuple[float | None, tuple[float, float] | None]:
        length = self.optional("length", above=0.0)
        field = self.get("limits")
        if base != BaseKind.EXTENSIBLE:
            if length is None:
                self.need("length", "unstrained, [m]")
            # limits in 'defaults' may be meant for other rods that are extensible
            if self.field.has("limits"):
                raise self.field["limits"].error(
                    f"limits of a rod of fixed length ('base: {base}')",
                    "no 'limits'; those of a prismatic or revolute base are in the SDF joint",
                )
            return length, None
        low, high = vector(
            self.need("limits", "minimum and maximum length, [m]") if field is None else field,
            2,
            "minimum and maximum length, [m]",
        )
        assert field is not None
        if not 0.0 < low < high:
            raise field.error(f"is {low:g} to {high:g} m", "0 < minimum < maximum length")
        if length is not None and not low <= length <= high:
            raise self.need("length", "").error(
                f"is {length:g} m, outside the limits", f"{low:g} to {high:g} m"
            )
        return length, (float(low), float(high))

    def _bulge(self) -> Vector3 | None:
        field = self.get("bulge")
        if field is None:
            return None
        direction = vector(field, 3, "a direction in the frame of the model")
        size = float(np.linalg.norm(direction))
        if size < 1e-9:
            raise field.error("is a vector without direction", "a vector that is not zero")
        return direction / size


def solver_settings(top: Field) -> SolverSettings:
    """Return the block ``solver``, or the defaults where there is none."""
    if not top.has("solver"):
        return SolverSettings()
    field = top["solver"]
    field.mapping(("order", "steps", "tolerance", "segments", "policy", "max_iterations"))
    if field.has("order") and field["order"].number() != 8:
        raise field["order"].error("is not available", "8, the order of the integrator")
    default = SolverSettings()
    segments = default.segments
    if field.has("segments") and field["segments"].value != "auto":
        segments = field["segments"].whole(at_least=1, at_most=STEPS_MOST)

    def whole(key: str, value: int) -> int:
        return field[key].whole(at_least=1, at_most=STEPS_MOST) if field.has(key) else value

    return SolverSettings(
        steps=whole("steps", default.steps),
        tolerance=number(field["tolerance"], above=0.0)
        if field.has("tolerance")
        else default.tolerance,
        segments=segments,
        policy=field["policy"].text(("fresh", "chord")) if field.has("policy") else "fresh",
        max_iterations=whole("max_iterations", default.max_iterations),
    )
