"""Curves of Hill-type muscles: each function returns a value and its derivatives.

Normalised quantities: fibre length over optimal length, fibre velocity over the fastest shortening
velocity (negative while shortening), tendon length over slack length, force over F0.

``de_groote_2016``: [DeGroote2016]_ in the normalisation of OpenSim, whose
tendon carries exactly 0 at its slack length and F0 at its nominal strain, and whose force-velocity
curve is exactly 1 at rest (the printed constants, rounded to three digits, miss that by 1 %).
``thelen_2003``: [Thelen2003]_ with OpenSim's parameters.

Outside the range in which muscles work the exponentials go on along their tangents.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from cards_core.muscles.actuators.arithmetic import Arithmetic, Real, clip

Curve: TypeAlias = tuple[Real, Real]
"""Value and slope."""

BentCurve: TypeAlias = tuple[Real, Real, Real]
"""Value, slope and curvature."""

SLACK_SLOPE_STRAINS = 3.0
"""Multiples of the nominal strain at which the tendon's curve becomes straight."""

LONGEST_FIBER = 2.5
"""Normalised length at which the passive curve becomes straight."""


class DeGroote2016:
    """Curves of De Groote et al. 2016; the constants can be replaced, e.g. by the printed ones.

    Args:
        tendon: (c1, c2, c3) of ``c1 exp(kT (l - c2)) - c3``.
        active: Four values (b1, b2, b3, b4) for each of the three Gaussians.
        passive: (growth, strain at F0, length without force).
        velocity: (d1, d2, d3, d4) of ``d1 asinh(d2 v + d3) + d4``.
    """

    strain = 0.049
    activation_time = 0.015
    deactivation_time = 0.060
    iterations = 4  # until rounding stops them, also in violent motion

    def __init__(
        self,
        tendon: tuple[float, float, float] = (0.2, 1.0, 0.2),
        active: tuple[tuple[float, float, float, float], ...] = (
            (0.8150671134243542, 1.055033428970575, 0.162384573599574, 0.063303448465465),
            (0.433004984392647, 0.716775413397760, -0.029947116970696, 0.200356847296188),
            (0.1, 1.0, 0.5 * math.sqrt(0.5), 0.0),
        ),
        passive: tuple[float, float, float] = (4.0, 0.6, 0.2),
        velocity: tuple[float, float, float, float] = (
            -0.3211346127989808,
            -8.149,
            -0.374,
            0.8825327733249912,
        ),
    ) -> None:
        self._tendon = tendon
        self._active = active
        self._passive = passive
        self._velocity = velocity

    def tendon_stiffness(self, strain: float) -> float:
        """Return kT that gives F0 at a strain."""
        c1, c2, c3 = self._tendon
        return math.log((1.0 + c3) / c1) / (1.0 + strain - c2)

    def tendon(self, m: Arithmetic, length: Real, strain: Real, stiffness: Real) -> Curve:
        """Force and slope at a length; ``stiffness`` is `tendon_stiffness` of ``strain``."""
        c1, c2, c3 = self._tendon
        end = 1.0 + SLACK_SLOPE_STRAINS * strain
        inside = clip(m, length, 1.0, end)
        growing = c1 * m.exp(stiffness * (inside - c2))
        slope = stiffness * growing
        force = growing - c3 + slope * (m.maximum(length, end) - end)
        return m.where(length < 1.0, 0.0, m.maximum(force, 0.0)), m.where(length < 1.0, 0.0, slope)

    def tendon_length(self, m: Arithmetic, force: Real, strain: Real, stiffness: Real) -> Real:
        """Length at a force >= 0 below the straight part."""
        del strain
        c1, c2, c3 = self._tendon
        return c2 + m.log((force + c3) / c1) / stiffness

    def active(self, m: Arithmetic, length: Real) -> Curve:
        """Active force-length curve: three Gaussians."""
        value, slope = 0.0, 0.0
        for b1, b2, b3, b4 in self._active:
            width = b3 + b4 * length
            # the second width passes through zero near 0.15, where its Gaussian is zero too
            width = m.where(width < 0.0, m.minimum(width, -1e-3), m.maximum(width, 1e-3))
            z = (length - b2) / width
            bell = b1 * m.exp(-0.5 * m.minimum(z * z, 1e3))
            value = value + bell
            slope = slope - bell * z * (1.0 - z * b4) / width
        return value, slope

    def passive(self, m: Arithmetic, length: Real) -> Curve:
        """Passive force-length curve."""
        growth, strain, start = self._passive
        rate = growth / strain
        offset = math.exp(rate * (start - 1.0))
        scale = math.exp(growth) - offset
        inside = clip(m, length, start, LONGEST_FIBER)
        growing = m.exp(rate * (inside - 1.0)) / scale
        slope = rate * growing
        value = (
            growing - offset / scale + slope * (m.maximum(length, LONGEST_FIBER) - LONGEST_FIBER)
        )
        return value, m.where(length < start, 0.0, slope)

    def velocity(self, m: Arithmetic, velocity: Real, activation: Real) -> BentCurve:
        """Force-velocity curve; does not depend on the activation."""
        del activation
        d1, d2, d3, d4 = self._velocity
        x = d2 * velocity + d3
        value = d1 * m.asinh(x) + d4
        slope = d1 * d2 / m.sqrt(x * x + 1.0)
        slope = m.where(value > 0.0, slope, 0.0)
        return m.maximum(value, 0.0), slope, -d2 * slope * x / (x * x + 1.0)

    def activation_rate(
        self, m: Arithmetic, excitation: Real, activation: Real, rise: Real, fall: Real
    ) -> Real:
        """Return 1/tau, [1/s]: the two time constants joined by a tanh (b = 10)."""
        f = 0.5 * m.tanh(10.0 * (excitation - activation))
        pace = 0.5 + 1.5 * activation
        return (f + 0.5) / (rise * pace) + (0.5 - f) * pace / fall


class Thelen2003:
    """Curves of Thelen 2003."""

    strain = 0.04
    activation_time = 0.015
    deactivation_time = 0.050
    iterations = 6  # the curve is steep beyond its kink at rest

    _toe_force, _toe_growth = 0.33, 3.0
    _rise = _toe_force * _toe_growth / -math.expm1(-_toe_growth)
    _toe = _rise / (_rise + 1.0 - _toe_force)
    """Share of the strain at F0 where the toe ends (0.609): force and slope are continuous."""
    _width, _passive_growth, _passive_strain = 0.45, 5.0, 0.6
    _shape, _largest = 0.25, 1.4

    def tendon_stiffness(self, strain: float) -> float:
        """Return the slope of the linear part."""
        return (1.0 - self._toe_force) / (strain * (1.0 - self._toe))

    def tendon(self, m: Arithmetic, length: Real, strain: Real, stiffness: Real) -> Curve:
        """Force and slope at a length; ``stiffness`` is `tendon_stiffness` of ``strain``."""
        toe = self._toe * strain
        e = length - 1.0
        inside = clip(m, e, 0.0, toe)
        scale = self._toe_force / math.expm1(self._toe_growth)
        growing = scale * m.exp(self._toe_growth * inside / toe)
        beyond = m.maximum(e, toe) - toe
        force = growing - scale + stiffness * beyond
        slope = m.where(e < toe, self._toe_growth / toe * growing, stiffness)
        return force, m.where(e < 0.0, 0.0, slope)

    def tendon_length(self, m: Arithmetic, force: Real, strain: Real, stiffness: Real) -> Real:
        """Length at a force >= 0."""
        toe = self._toe * strain
        scale = self._toe_force / math.expm1(self._toe_growth)
        curved = m.minimum(force, self._toe_force)
        e = toe / self._toe_growth * m.log(1.0 + curved / scale)
        return 1.0 + e + m.maximum(force - self._toe_force, 0.0) / stiffness

    def active(self, m: Arithmetic, length: Real) -> Curve:
        """Active force-length curve: one Gaussian."""
        z = length - 1.0
        bell = m.exp(-m.minimum(z * z / self._width, 500.0))
        return bell, -2.0 * z / self._width * bell

    def passive(self, m: Arithmetic, length: Real) -> Curve:
        """Passive force-length curve; zero up to the optimal length."""
        rate = self._passive_growth / self._passive_strain
        scale = math.expm1(self._passive_growth)
        inside = clip(m, length, 1.0, LONGEST_FIBER)
        growing = m.exp(rate * (inside - 1.0)) / scale
        slope = rate * growing
        beyond = m.maximum(length, LONGEST_FIBER) - LONGEST_FIBER
        return growing - 1.0 / scale + slope * beyond, m.where(length < 1.0, 0.0, slope)

    def velocity(self, m: Arithmetic, velocity: Real, activation: Real) -> BentCurve:
        """Force-velocity curve, Thelen's equation solved for the force."""
        pace = 0.25 + 0.75 * activation
        u = velocity / pace
        short = clip(m, u, -1.0, 0.0)
        bottom = 1.0 - short / self._shape
        shortening = (1.0 + short) / bottom
        steep = (1.0 + 1.0 / self._shape) / (bottom * bottom)
        long = m.maximum(u, 0.0)
        c = (2.0 + 2.0 / self._shape) / (self._largest - 1.0)
        top = 1.0 + c * long
        lengthening = (1.0 + c * self._largest * long) / top
        flat = c * (self._largest - 1.0) / (top * top)
        slope = m.where(u > 0.0, flat, m.where(u < -1.0, 0.0, steep)) / pace
        bend = m.where(u > 0.0, -2.0 * c / top, 2.0 / (self._shape * bottom)) * slope / pace
        return m.where(u > 0.0, lengthening, shortening), slope, bend

    def activation_rate(
        self, m: Arithmetic, excitation: Real, activation: Real, rise: Real, fall: Real
    ) -> Real:
        """Return 1/tau, [1/s]: one time constant up, one down."""
        pace = 0.5 + 1.5 * activation
        return m.where(excitation > activation, 1.0 / (rise * pace), pace / fall)


CURVES: dict[str, DeGroote2016 | Thelen2003] = {
    "de_groote_2016": DeGroote2016(),
    "thelen_2003": Thelen2003(),
}
"""By the name in model files."""
