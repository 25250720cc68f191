"""Material of a rod: elastic moduli, density, yield strain."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cards_core.errors import RodError

YOUNG_RANGE = (1e2, 2e12)
"""Young's moduli [Pa] between the softest gel and twice diamond; others are wrong units."""

DENSITY_RANGE = (1.0, 3e4)
"""Densities [kg/m3] between aerogel and osmium; others are wrong units."""


def positive(value: float, what: str, unit: str) -> float:
    """Return the value as a float if it is finite and positive.

    Raises:
        RodError: It is not; the message names `what`.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise RodError(f"{what} is {value!r}; expected a positive number in {unit}") from None
    if not (math.isfinite(number) and number > 0.0):
        raise RodError(f"{what} is {number:g} {unit}; expected a finite positive number")
    return number


@dataclass(frozen=True)
class Material:
    """Isotropic, linearly elastic material.

    The shear modulus is given, or follows from Poisson's ratio: ``G = E / (2 (1 + nu))``.

    Args:
        young: Young's modulus E, [Pa].
        shear: Shear modulus G, [Pa]; instead of `poisson`.
        poisson: Poisson's ratio nu, -1 < nu <= 0.5; instead of `shear`.
        density: Mass per volume, [kg/m3]; 0 for a rod without weight.
        yield_strain: Strain at which the material yields or breaks; None: unknown, no check.

    Raises:
        RodError: A value outside its range, or neither or both of `shear` and `poisson`.
    """

    young: float
    shear: float | None = None
    poisson: float | None = None
    density: float = 0.0
    yield_strain: float | None = None

    def __post_init__(self) -> None:
        young = positive(self.young, "Young's modulus", "Pa")
        object.__setattr__(self, "young", young)
        if not YOUNG_RANGE[0] <= young <= YOUNG_RANGE[1]:
            raise RodError(
                f"Young's modulus is {young:g} Pa, which no material has; units? (expected "
                f"{YOUNG_RANGE[0]:g} to {YOUNG_RANGE[1]:g} Pa, steel is 2e11)"
            )
        if (self.shear is None) == (self.poisson is None):
            given = "neither is" if self.shear is None else "both are"
            raise RodError(
                f"shear modulus or Poisson's ratio: {given} given; expected one of them"
            )
        if self.poisson is not None:
            ratio = float(self.poisson)
            if not -1.0 < ratio <= 0.5:
                raise RodError(f"Poisson's ratio is {ratio:g}; expected -1 < nu <= 0.5")
            object.__setattr__(self, "poisson", ratio)
            object.__setattr__(self, "shear", young / (2.0 * (1.0 + ratio)))
        else:
            shear = positive(self.shear, "shear modulus", "Pa")  # type: ignore[arg-type]
            if shear < YOUNG_RANGE[0] / 10.0:
                raise RodError(
                    f"shear modulus is {shear:g} Pa, which no material has; expected Pa (steel is "
                    "8e10), or poisson=, Poisson's ratio"
                )
            object.__setattr__(self, "shear", shear)
        density = float(self.density)
        if density != 0.0:
            density = positive(density, "density", "kg/m3")
            if not DENSITY_RANGE[0] <= density <= DENSITY_RANGE[1]:
                raise RodError(
                    f"density is {density:g} kg/m3, which no material has; units? (expected 0 or "
                    f"{DENSITY_RANGE[0]:g} to {DENSITY_RANGE[1]:g} kg/m3, steel is 7850)"
                )
        object.__setattr__(self, "density", density)
        if self.yield_strain is not None:
            object.__setattr__(
                self, "yield_strain", positive(self.yield_strain, "yield strain", "(ratio)")
            )

    @property
    def shear_modulus(self) -> float:
        """Shear modulus G, [Pa], given or from Poisson's ratio."""
        assert self.shear is not None
        return self.shear
