"""A rod: cross-section, material and shape at rest, and the stiffnesses that follow.

The section lies in the axes d1, d2 of the rod's frame; d3 is the tangent of the free rod. The
axes are principal: ``integral of x y dA = 0``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.native_library import NativeRod
from cards_core.typing import Array, Vector3


@dataclass(frozen=True)
class Section:
    """A cross-section; `circle`, `tube` and `rectangle` make the common ones.

    Args:
        area: A, [m2].
        second_moment_1: Bending about d1: ``I1 = integral of y^2 dA``, [m4].
        second_moment_2: Bending about d2: ``I2 = integral of x^2 dA``, [m4].
        torsion_constant: J in ``torque = G J twist`` (Saint-Venant; I1 + I2 for circles alone),
            [m4].
        half_width: Largest |x| and |y| of the section, along d1 and d2, [m].
        torsion_radius: ``largest shear strain / twist`` of free torsion, [m].
        shear_factor: Shear stiffness over G A, along d1 and d2; 1 as in the published simulators
            of continuum parallel robots, about 0.9 (circle) and 5/6 (rectangle) after Timoshenko.
        round: Bending stress depends on the size of the curvature alone (circle, tube).

    Raises:
        RodError: A value is not positive.
    """

    area: float
    second_moment_1: float
    second_moment_2: float
    torsion_constant: float
    half_width: tuple[float, float]
    torsion_radius: float
    shear_factor: tuple[float, float] = (1.0, 1.0)
    round: bool = False

    def __post_init__(self) -> None:
        for name, unit in (
            ("area", "m2"),
            ("second_moment_1", "m4"),
            ("second_moment_2", "m4"),
            ("torsion_constant", "m4"),
            ("torsion_radius", "m"),
        ):
            object.__setattr__(self, name, positive(getattr(self, name), _words(name), unit))
        for name in ("half_width", "shear_factor"):
            values = tuple(getattr(self, name))
            if len(values) != 2:
                raise RodError(f"{_words(name)}: {len(values)} values; expected 2 (along d1, d2)")
            unit = "m" if name == "half_width" else "(ratio)"
            object.__setattr__(
                self, name, tuple(positive(value, _words(name), unit) for value in values)
            )

    @property
    def radius(self) -> float:
        """Distance of the farthest fibre from the axis, for drawing, [m]; rectangles: corner."""
        if self.round:
            return self.half_width[0]
        return math.hypot(*self.half_width)

    @property
    def polar_moment(self) -> float:
        """``I1 + I2``, [m4]: the rotational inertia about d3 per density and length."""
        return self.second_moment_1 + self.second_moment_2

    @classmethod
    def circle(cls, radius: float, *, shear_factor: float = 1.0) -> Section:
        """Return a full circle of this radius [m]."""
        return cls.tube(radius, 0.0, shear_factor=shear_factor)

    @classmethod
    def tube(cls, radius: float, inner_radius: float, *, shear_factor: float = 1.0) -> Section:
        """Return a circular tube of outer and inner radius [m].

        Args:
            radius: Outer radius, [m].
            inner_radius: Inner radius, [m].
            shear_factor: Shear correction factor [1].

        Raises:
            RodError: A radius is not positive or the inner one not smaller.
        """
        r = positive(radius, "radius", "m")
        inner = float(inner_radius)
        if not 0.0 <= inner < r:
            raise RodError(f"inner radius is {inner:g} m; expected 0 <= inner radius < {r:g} m")
        moment = math.pi * (r**4 - inner**4) / 4.0
        return cls(
            area=math.pi * (r * r - inner * inner),
            second_moment_1=moment,
            second_moment_2=moment,
            torsion_constant=2.0 * moment,
            half_width=(r, r),
            torsion_radius=r,
            shear_factor=(shear_factor, shear_factor),
            round=True,
        )

    @classmethod
    def rectangle(cls, width: float, height: float, *, shear_factor: float = 1.0) -> Section:
        """Return a rectangle, `width` along d1 and `height` along d2 [m].

        Torsion by Saint-Venant's series (section 109 of [Timoshenko1970]).

        Args:
            width: Along d1, [m].
            height: Along d2, [m].
            shear_factor: Shear correction factor [1].
        """
        x, y = positive(width, "width", "m"), positive(height, "height", "m")
        long, short = max(x, y), min(x, y)
        stiffness, strain = 1.0 / 3.0, 1.0
        for k in range(1, 40, 2):
            angle = k * math.pi * long / (2.0 * short)
            stiffness -= 64.0 / math.pi**5 * short / long * math.tanh(angle) / k**5
            if angle < 700.0:
                strain -= 8.0 / math.pi**2 / (k * k * math.cosh(angle))
        return cls(
            area=x * y,
            second_moment_1=x * y**3 / 12.0,
            second_moment_2=y * x**3 / 12.0,
            torsion_constant=long * short**3 * stiffness,
            half_width=(x / 2.0, y / 2.0),
            torsion_radius=short * strain,
            shear_factor=(shear_factor, shear_factor),
        )


def _words(name: str) -> str:
    return name.replace("_", " ")


YOUNG_RANGE = (1e2, 2e12)
"""Young's moduli [Pa] between the softest gel and twice diamond; others are wrong units."""

DENSITY_RANGE = (1.0, 3e4)
"""Densities [kg/m3] between aerogel and osmium; others are wrong units."""


def positive(value: float, what: str, unit: str) -> float:
    """Return the value as a float if it is finite and positive.

    Args:
        value: The value.
        what: What it is, for messages.
        unit: Its unit, for messages.

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
            shear = positive(self.shear, "shear modulus", "Pa")  # type: ignore[arg-type]  # also of None
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


THICK = 1.0 / 20.0
"""Radius over length above which a rod is no rod, or its radius not in metres."""

LIGHT = 100.0
"""Density [kg/m3] below which a rod was probably given in g/cm3."""

FAR_STRAIN = 0.5
"""Difference of v0 from (0, 0, 1) beyond which a strain was probably given in its place."""

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

    @cached_property
    def free_stretch(self) -> float:
        """|v0|: length of the free rod's centre-line per arc length; 1 unless there is a v0."""
        return math.sqrt(sum(value * value for value in self.strain))

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
        if abs(self.strain[2] - 1.0) + math.hypot(*self.strain[:2]) > FAR_STRAIN:
            found.append(
                f"v0 is {' '.join(f'{value:g}' for value in self.strain)}: the derivative of the "
                "position, 0 0 1 of a rod without strain, not the strain itself"
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
