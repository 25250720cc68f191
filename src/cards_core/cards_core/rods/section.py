"""Cross-sections of rods: area, second moments, torsion constant, extreme fibres.

The section lies in the axes d1, d2 of the rod's frame; d3 is the tangent of the free rod. The
axes are principal: ``integral of x y dA = 0``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cards_core.errors import RodError
from cards_core.rods.material import positive


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
