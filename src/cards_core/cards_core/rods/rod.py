"""A rod: section, material and shape at rest, and the stiffnesses that follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.material import Material
from cards_core.rods.native_library import NativeRod
from cards_core.rods.section import Section
from cards_core.typing import Array, Vector3

THICK = 1.0 / 20.0
"""Radius over length above which a rod is no rod, or its radius not in metres."""

LIGHT = 100.0
"""Density [kg/m3] below which a rod was probably given in g/cm3."""

STIFF = 1e4
"""Bending stiffness [N m2] above which a rod of such a robot was probably given in millimetres."""


@dataclass(frozen=True)
class Rod:
    """Linearly elastic Cosserat rod, the same along its length.

    With strains v and curvatures u in the axes d1, d2, d3 of the section::

        R'n = diag(GA, GA, EA) (v - v0)        R'm = diag(E I1, E I2, G J) (u - u0)

    Args:
        section: Cross-section.
        material: Material.
        curvature: u0, curvature (about d1, d2) and twist (about d3) of the free rod, [1/m].
        strain: v0, derivative of the position in section axes of the free rod; (0, 0, 1): d3 is
            the tangent and arc length is the parameter.
        damping: Kelvin-Voigt time of the internal forces, [s]: ``m = K (u - u0 + damping du/dt)``;
            used by the dynamics alone.
        inextensible: Neither shear nor extension (GA = EA = infinity), as classical closed forms
            assume.

    Raises:
        RodError: Values of the wrong number, not finite, or a negative damping.
    """

    section: Section
    material: Material
    curvature: tuple[float, float, float] = (0.0, 0.0, 0.0)
    strain: tuple[float, float, float] = (0.0, 0.0, 1.0)
    damping: float = 0.0
    inextensible: bool = False

    def __post_init__(self) -> None:
        for part, kind in ((self.section, Section), (self.material, Material)):
            if not isinstance(part, kind):
                raise RodError(f"{kind.__name__.lower()} is {part!r}; expected a {kind.__name__}")
        for name, unit in (("curvature", "1/m"), ("strain", "m/m")):
            object.__setattr__(self, name, _three(getattr(self, name), name, unit))
        if self.strain[2] <= 0.0:
            raise RodError(f"strain along d3 is {self.strain[2]:g} m/m; expected > 0, 1 if free")
        damping = float(self.damping)
        if not (math.isfinite(damping) and damping >= 0.0):
            raise RodError(f"damping time is {damping:g} s; expected a finite number >= 0")
        object.__setattr__(self, "damping", damping)

    @cached_property
    def stiffness_se(self) -> Vector3:
        """Shear and extension, diag(GA, GA, EA) with the shear factors, shape (3,), [N]."""
        if self.inextensible:
            return np.full(3, math.inf)
        area, shear = self.section.area, self.material.shear_modulus
        first, second = self.section.shear_factor
        return np.array([first * shear * area, second * shear * area, self.material.young * area])

    @cached_property
    def stiffness_bt(self) -> Vector3:
        """Bending and torsion, diag(E I1, E I2, G J), shape (3,), [N m2]."""
        young, section = self.material.young, self.section
        return np.array(
            [
                young * section.second_moment_1,
                young * section.second_moment_2,
                self.material.shear_modulus * section.torsion_constant,
            ]
        )

    @cached_property
    def mass_per_length(self) -> float:
        """Mass per unstrained length, [kg/m]."""
        return self.material.density * self.section.area

    @cached_property
    def inertia_per_length(self) -> Vector3:
        """Rotational inertia per unstrained length about d1, d2, d3, shape (3,), [kg m]."""
        moments = (
            self.section.second_moment_1,
            self.section.second_moment_2,
            self.section.polar_moment,
        )
        return self.material.density * np.array(moments)

    @property
    def radius(self) -> float:
        """Outer radius for drawing, [m]."""
        return self.section.radius

    @property
    def yield_strain(self) -> float | None:
        """Strain at which the material yields, None if unknown."""
        return self.material.yield_strain

    @cached_property
    def is_circular(self) -> bool:
        """Straight, and equally stiff in all directions: the cheaper formulas hold."""
        bending, shear = self.stiffness_bt, self.stiffness_se
        return (
            bool(bending[0] == bending[1] and shear[0] == shear[1])
            and self.curvature == (0.0, 0.0, 0.0)
            and self.strain == (0.0, 0.0, 1.0)
        )

    @property
    def bending_stiffness(self) -> float:
        """The smaller of E I1 and E I2, [N m2]: the scale of forces and moments."""
        return float(min(self.stiffness_bt[0], self.stiffness_bt[1]))

    def weight(self, gravity: Sequence[float] | Array) -> Vector3:
        """Return the weight per unstrained length in a world with this gravity [m/s2], [N/m]."""
        return self.mass_per_length * np.asarray(gravity, dtype=float)

    def native(
        self,
        force: Sequence[float] | Array = (0.0, 0.0, 0.0),
        moment: Sequence[float] | Array = (0.0, 0.0, 0.0),
    ) -> NativeRod:
        """Return the rod as the C functions take it.

        Args:
            force: Dead load per unstrained length, weight included, in world axes, (3,), [N/m].
            moment: The same for moments, (3,), [N].
        """
        out = NativeRod()
        out.inv_kse[:] = tuple(1.0 / self.stiffness_se)
        out.inv_kbt[:] = tuple(1.0 / self.stiffness_bt)
        out.v0[:] = self.strain
        out.u0[:] = self.curvature
        out.force[:] = _three(force, "distributed force", "N/m")
        out.moment[:] = _three(moment, "distributed moment", "N")
        out.circular = self.is_circular
        return out

    def unit_warnings(self, length: float) -> tuple[str, ...]:
        """Return warnings about units at this length [m], in words."""
        found: list[str] = []
        half = max(self.section.half_width)
        if half > THICK * length:
            found.append(
                f"half width {half:g} m of a rod {length:g} m long is more than a twentieth: "
                "no slender rod, or not in metres; units?"
            )
        if self.bending_stiffness > STIFF:
            found.append(
                f"bending stiffness {self.bending_stiffness:g} N m2 is beyond {STIFF:g}: "
                "radius in millimetres? units?"
            )
        if 0.0 < self.material.density < LIGHT:
            found.append(f"density {self.material.density:g} kg/m3, as of foam: g/cm3? units?")
        return tuple(found)


def _three(values: Sequence[float] | Array, what: str, unit: str) -> tuple[float, float, float]:
    try:
        out = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        raise RodError(f"{what} is {values!r}; expected three numbers in {unit}") from None
    if len(out) != 3 or not all(math.isfinite(value) for value in out):
        raise RodError(f"{what} is {out}; expected three finite numbers in {unit}")
    return out[0], out[1], out[2]
