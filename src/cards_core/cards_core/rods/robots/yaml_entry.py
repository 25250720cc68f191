"""One entry of a rod robot's YAML file: values looked up in it, then in the defaults.

Every complaint is a `DescriptionError` with file, line and key; keys that other programs use are
answered with ours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.material import Material
from cards_core.rods.section import Section
from cards_core.typing import Vector3
from cards_core.yaml_fields import Field

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
}
"""What other programs call a key, for the message."""

Made = TypeVar("Made", Section, Material)


def number(field: Field, *, above: float = -math.inf, at_least: float = -math.inf) -> float:
    """Return a finite number; texts such as ``"200e9"`` count as the number they spell."""
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
    """Check the keys of a rod; what other programs call them is told."""
    if isinstance(field.value, dict):
        for key in field.value:
            for ours, others in _OTHER_NAMES.items():
                if key not in known and str(key).lower() in others:
                    raise Field(field.document, (*field.place, key), None).error(
                        f"unknown key '{key}'", f"'{ours}'"
                    )
    field.mapping(known)


class Entry:
    """One rod: looks keys up in its entry, then in the defaults.

    Args:
        field: The entry.
        defaults: The block ``defaults``, empty where there is none.
        name: Of the rod, for messages.
    """

    def __init__(self, field: Field, defaults: Field, name: str) -> None:
        self.field, self.defaults, self.name = field, defaults, name

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
