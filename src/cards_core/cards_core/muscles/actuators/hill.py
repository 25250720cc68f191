"""Hill-type muscle: activation, fibre and tendon, and their curves.

Each curve returns a value and its derivatives. Normalised quantities: fibre length over optimal
length, fibre velocity over the fastest shortening velocity (negative while shortening), tendon
length over slack length, force over F0.

``de_groote_2016``: [DeGroote2016]_ in the normalisation of OpenSim, whose
tendon carries exactly 0 at its slack length and F0 at its nominal strain, and whose force-velocity
curve is exactly 1 at rest (the printed constants, rounded to three digits, miss that by 1 %).
``thelen_2003``: [Thelen2003]_ with OpenSim's parameters. ``millard_2012``:
`cards_core.muscles.actuators.millard`.

Outside the range in which muscles work the exponentials go on along their tangents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from cards_core.muscles.actuators.activation import ThelenActivation
from cards_core.muscles.actuators.arithmetic import (
    NUMPY,
    Arithmetic,
    Real,
    clip,
    increasing_root,
)
from cards_core.muscles.actuators.millard import Millard2012
from cards_core.muscles.actuators.model import (
    Inputs,
    Model,
    Parameters,
    integral,
    limits,
)
from cards_core.muscles.command import EXCITATION, FORCE
from cards_core.robot.elements import Muscle
from cards_core.typing import Array

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
        """Force and slope at a length; ``stiffness`` is `tendon_stiffness` of ``strain``.

        Args:
            m: Functions of real arguments.
            length: Tendon length over slack length [1], shape (n,).
            strain: Strain at the maximum isometric force [1], shape (n,).
            stiffness: Shape (n,).
        """
        c1, c2, c3 = self._tendon
        end = 1.0 + SLACK_SLOPE_STRAINS * strain
        inside = clip(m, length, 1.0, end)
        growing = c1 * m.exp(stiffness * (inside - c2))
        slope = stiffness * growing
        force = growing - c3 + slope * (m.maximum(length, end) - end)
        return m.where(length < 1.0, 0.0, m.maximum(force, 0.0)), m.where(length < 1.0, 0.0, slope)

    def tendon_length(self, m: Arithmetic, force: Real, strain: Real, stiffness: Real) -> Real:
        """Length at a force >= 0 below the straight part.

        Args:
            m: Functions of real arguments.
            force: Force over the maximum isometric one [1], shape (n,).
            strain: Strain at the maximum isometric force [1], shape (n,).
            stiffness: Shape (n,).

        Returns:
            Length over slack length [1], shape (n,).
        """
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
        """Force-velocity curve; does not depend on the activation.

        Args:
            m: Functions of real arguments.
            velocity: Fibre velocity over the maximum one [1], shape (n,).
            activation: 0..1, shape (n,).
        """
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
        """Return 1/tau, [1/s]: the two time constants joined by a tanh (b = 10).

        Args:
            m: Functions of real arguments.
            excitation: 0..1, shape (n,).
            activation: 0..1, shape (n,).
            rise: Time constant of activation, [s].
            fall: Time constant of deactivation, [s].
        """
        f = 0.5 * m.tanh(10.0 * (excitation - activation))
        pace = 0.5 + 1.5 * activation
        return (f + 0.5) / (rise * pace) + (0.5 - f) * pace / fall


class Thelen2003(ThelenActivation):
    """Curves of Thelen 2003.

    Args:
        active_width: gamma of the active force-length curve.
        passive: (growth kPE, strain at F0 e0) of the passive curve.
        velocity: (shape Af, largest force) of the force-velocity curve.
    """

    strain = 0.04
    activation_time = 0.015
    deactivation_time = 0.050
    iterations = 6  # the curve is steep beyond its kink at rest

    _toe_force, _toe_growth = 0.33, 3.0
    _rise = _toe_force * _toe_growth / -math.expm1(-_toe_growth)
    _toe = _rise / (_rise + 1.0 - _toe_force)
    """Share of the strain at F0 where the toe ends (0.609): force and slope are continuous."""

    def __init__(
        self,
        active_width: float = 0.45,
        passive: tuple[float, float] = (5.0, 0.6),
        velocity: tuple[float, float] = (0.25, 1.4),
    ) -> None:
        self._width = active_width
        self._passive_growth, self._passive_strain = passive
        self._shape, self._largest = velocity

    def tendon_stiffness(self, strain: float) -> float:
        """Return the slope of the linear part."""
        return (1.0 - self._toe_force) / (strain * (1.0 - self._toe))

    def tendon(self, m: Arithmetic, length: Real, strain: Real, stiffness: Real) -> Curve:
        """Force and slope at a length; see `DeGroote2016.tendon`."""
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
        """Length at a force >= 0; see `DeGroote2016.tendon_length`."""
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
        """Thelen's equation solved for the force; arguments as of `DeGroote2016.velocity`."""
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


Curves: TypeAlias = DeGroote2016 | Thelen2003 | Millard2012

CURVES: dict[str, Curves] = {
    "de_groote_2016": DeGroote2016(),
    "thelen_2003": Thelen2003(),
    "millard_2012": Millard2012(),
}
"""By the name in model files."""

_SHAPES = (
    "passive_strain",
    "active_width",
    "passive_growth",
    "velocity_shape",
    "lengthening_force",
    "active_floor",
    "active_start",
    "active_bend",
    "active_end",
    "active_slope",
    "passive_start",
    "passive_foot",
    "passive_stiffness",
    "passive_curviness",
)
"""Parameters that are constants of the curves: muscles that agree in them are one group."""


def curves_of(actuator: Any) -> Curves:
    """Return the set of curves of a muscle, with the constants that it states."""
    if all(getattr(actuator, name) is None for name in _SHAPES):
        return CURVES[actuator.curves]
    if actuator.curves == "millard_2012":
        given = (
            actuator.active_start,
            actuator.active_bend,
            actuator.active_end,
            actuator.active_floor,
            actuator.active_slope,
        )
        active = tuple(
            value if own is None else own
            for own, value in zip(given, Millard2012.active_numbers, strict=True)
        )
        passive = (
            actuator.passive_start or 0.0,
            actuator.passive_strain or 0.7,
            0.2 if actuator.passive_foot is None else actuator.passive_foot,
            actuator.passive_stiffness,
            0.75 if actuator.passive_curviness is None else actuator.passive_curviness,
        )
        return Millard2012(active, passive, actuator.lengthening_force or 1.4)
    strain = actuator.passive_strain or 0.6
    if actuator.curves == "de_groote_2016":
        return DeGroote2016(passive=(4.0, strain, 0.2))
    return Thelen2003(
        actuator.active_width or 0.45,
        (actuator.passive_growth or 5.0, strain),
        (actuator.velocity_shape or 0.25, actuator.lengthening_force or 1.4),
    )


SHORTEST_FIBER = 0.2
"""Shortest length of the fibre along the tendon, in optimal fibre lengths."""

STRONGEST = 2.0
"""Largest commanded tension, in F0."""


class _Hill(Model):
    """Activation and force of the fibre, for both kinds of tendon.

    With normalised fibre length ``lm``, velocity ``vm = lm'/v_max`` (negative while shortening),
    and constant width ``w = sin(a0)``, so that along the tendon ``y = sqrt(lm^2 - w^2)``, the
    fibre pulls the tendon with

        F = F0 (a fL(lm) fV(vm) + fP(lm) + beta vm) y/lm

    Activation: ``a' = (u - a)/tau(u, a)``, with the time constant of the set of curves, advanced
    exactly for tau constant over the step: a stays between its minimum and 1 for every step.

    Commands: excitation u, or the tension f, from which the static law (tendon at its length for
    f, fibre moving with the path) gives the activation that is taken as excitation. Without a
    command the muscle relaxes.
    """

    def __init__(self, muscles: Sequence[Muscle], dt: float) -> None:
        actuator: Any = muscles[0].actuator
        self.curves = curves_of(actuator)
        super().__init__(muscles, dt)

    @classmethod
    def variant(cls, actuator: Any) -> tuple[Any, ...]:
        """See `Model`."""
        return (actuator.curves, *(getattr(actuator, name) for name in _SHAPES))

    def parameters(self, muscle: Muscle, dt: float) -> dict[str, float]:
        """See `Model`."""
        item: Any = muscle.actuator
        curves = self.curves
        strain = item.tendon_strain or curves.strain
        return limits(muscle) | {
            "f0": item.max_isometric_force,
            "opt": item.optimal_fiber_length,
            "slack": item.tendon_slack_length,
            "width": math.sin(item.pennation_angle),
            "vmax": item.max_velocity,
            "beta": item.damping,
            "rise": item.activation_time or curves.activation_time,
            "fall": item.deactivation_time or curves.deactivation_time,
            "lowest": item.min_activation,
            "strain": strain,
            "stiffness": curves.tendon_stiffness(strain),
            "dt": dt,
        }

    def fiber(self, m: Arithmetic, p: Parameters, y: Real) -> tuple[Real, Real]:
        """Return fibre length and cosine of the pennation angle for a length along the tendon."""
        lm = m.sqrt(y * y + p.width * p.width)
        return lm, y / lm

    def activate(self, m: Arithmetic, p: Parameters, a: Real, excitation: Real) -> Real:
        """Return the activation after one step."""
        rate = self.curves.activation_rate(m, excitation, a, p.rise, p.fall)
        return excitation + (a - excitation) * m.exp(-p.dt * rate)

    def excitation(
        self,
        m: Arithmetic,
        p: Parameters,
        a: Real,
        y: Real,
        given: Inputs,
    ) -> Real:
        """Return the excitation that is asked for.

        Args:
            m: Evaluator.
            p: Parameters.
            a: Present activation.
            y: Fibre length along the tendon under the commanded tension.
            given: Path and command.
        """
        lm, cos = self.fiber(m, p, m.maximum(y, SHORTEST_FIBER))
        vm = clip(m, given.rate * cos / (p.vmax * p.opt), -1.0, 1.0)
        force = self.commanded(m, p, given.value) / cos
        strength = self.curves.active(m, lm)[0] * self.curves.velocity(m, vm, a)[0]
        missing = force - self.curves.passive(m, lm)[0] - p.beta * vm
        by_force = missing / m.maximum(strength, 0.01)
        excitation = m.where(given.kind == EXCITATION, given.value, 0.0)
        excitation = m.where(given.kind == FORCE, by_force, excitation)
        return clip(m, excitation, p.lowest, 1.0)

    def commanded(self, m: Arithmetic, p: Parameters, value: Real) -> Real:
        """Return the commanded tension over F0."""
        return m.minimum(clip(m, value, p.tension_min, p.tension_max) / p.f0, STRONGEST)

    def energy(self, x: Sequence[Array], lengths: Array) -> Array:
        """Return the energy of the parallel element and, where elastic, of the tendon."""
        p = self.p
        stored: Array = (
            p.f0
            * p.opt
            * integral(lambda s: self.curves.passive(NUMPY, s)[0], 0.0 * x[1], x[1] / p.opt)
        )
        return stored


class RigidTendonMuscle(_Hill):
    """`_Hill` with an inextensible tendon.

        y = (l - l_slack)/l_opt,   vm = l' (y/lm)/(v_max l_opt)

    Shorter than the tendon the muscle is slack; between that and the shortest fibre the tension
    fades in. The force-velocity curve is a damper of thousands of N s/m, usually stiff against
    the host's step (`cards_core.muscles.implicit`).

    States: ``activation``, ``fiber_length`` [m].
    """

    published: ClassVar[tuple[str, ...]] = ("activation", "fiber_length")

    def steepness(self, actuator: Any) -> tuple[float, float]:
        """See `Model`: both curves of the active muscle, the force-velocity curve at rest."""
        still = np.zeros(1)
        fibers = np.linspace(0.5, 1.25, 76)
        rising = sum(
            curve(NUMPY, fibers)[1] for curve in (self.curves.active, self.curves.passive)
        )
        slope = float(self.curves.velocity(NUMPY, still, still + 1.0)[1][0]) + actuator.damping
        fastest = actuator.max_velocity * actuator.optimal_fiber_length
        force = actuator.max_isometric_force
        return force * float(
            np.max(rising)
        ) / actuator.optimal_fiber_length, force * slope / fastest

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        a = x[0]
        y = (given.length - p.slack) / p.opt
        a = self.activate(m, p, a, self.excitation(m, p, a, y, given))
        lm, cos = self.fiber(m, p, m.maximum(y, SHORTEST_FIBER))
        fade = clip(m, y / SHORTEST_FIBER, 0.0, 1.0)
        vm = given.rate * cos / (p.vmax * p.opt)
        fv = self.curves.velocity(m, vm, a)[0]
        strength = a * self.curves.active(m, lm)[0]
        pull = strength * fv + self.curves.passive(m, lm)[0] + p.beta * vm
        return p.f0 * fade * cos * m.maximum(pull, 0.0), [a, lm * p.opt]

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        p = self.p
        y = (lengths - p.slack) / p.opt
        given = Inputs(lengths, 0.0 * lengths, np.full(len(lengths), FORCE), p.tension_min)
        a = self.excitation(NUMPY, p, 0.0 * y, y, given)
        lm, _ = self.fiber(NUMPY, p, np.maximum(y, SHORTEST_FIBER))
        return [a, lm * p.opt]


class ElasticTendonMuscle(_Hill):
    """`_Hill` in series with an elastic tendon: F of the fibre equals ``F0 fT(lt)``.

    One backward Euler step per call: the unknown is the tendon's normalised length lt, with

        y = (l - l_slack lt)/l_opt,   vm = (lm(y) - lm_old)/(dt v_max)
        fT(lt) = (a fL(lm) fV(vm) + fP(lm) + beta vm) y/lm

    by a fixed number of safeguarded iterations from the last step's value; fL and fP, which change
    little in a step, are taken along their tangents at lm_old (exact at rest). The tension is that
    of the tendon. States: ``activation``, ``fiber_length`` [m].
    """

    published: ClassVar[tuple[str, ...]] = ("activation", "fiber_length")
    hidden: ClassVar[tuple[str, ...]] = ("tendon",)

    def steepness(self, actuator: Any) -> tuple[float, float]:
        """See `Model`: the tendon at its nominal strain."""
        strain = actuator.tendon_strain or self.curves.strain
        stiffness = self.curves.tendon_stiffness(strain)
        slope = self.curves.tendon(NUMPY, np.array([1.0 + strain]), strain, stiffness)[1]
        force = actuator.max_isometric_force
        return force * float(slope[0]) / actuator.tendon_slack_length, 0.0

    def tendon(self, m: Arithmetic, p: Parameters, lt: Real) -> tuple[Real, Real]:
        """Return the tendon's normalised force fT and its slope dfT/dlt.

        Args:
            m: Evaluator.
            p: Parameters of the muscles.
            lt: Tendon length over slack length.
        """
        return self.curves.tendon(m, lt, p.strain, p.stiffness)

    @staticmethod
    def along(p: Parameters, length: Real, lt: Real) -> Real:
        """Return y = (l - l_slack lt)/l_opt, the fibre's normalised length along the tendon.

        Args:
            p: Parameters of the muscles.
            length: Of the path, l, [m].
            lt: Tendon length over slack length.
        """
        return (length - p.slack * lt) / p.opt

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        a, fiber, lt = x
        force = self.commanded(m, p, given.value)
        stretched = self.curves.tendon_length(m, force, p.strain, p.stiffness)
        y = self.along(p, given.length, stretched)
        a = self.activate(m, p, a, self.excitation(m, p, a, y, given))
        old = fiber / p.opt
        old_y = m.sqrt(m.maximum(old * old - p.width * p.width, SHORTEST_FIBER**2))
        span = p.dt * p.vmax
        fl_old, fl_slope = self.curves.active(m, old)
        fp_old, fp_slope = self.curves.passive(m, old)

        def residual(lt: Real) -> tuple[Real, Real, Real]:
            force, slope = self.tendon(m, p, lt)
            y = m.maximum(self.along(p, given.length, lt), SHORTEST_FIBER)
            lm, cos = self.fiber(m, p, y)
            vm = (lm - old) / span
            fv, fv_slope, fv_bend = self.curves.velocity(m, vm, a)
            fl = fl_old + fl_slope * (lm - old)
            fp = fp_old + fp_slope * (lm - old)
            pull = a * fl * fv + fp + p.beta * vm
            pull_slope = a * (fl_slope * fv + fl * fv_slope / span) + fp_slope + p.beta / span
            by_y = pull_slope * cos * cos + pull * p.width * p.width / (lm * lm * lm)
            pace = p.slack / p.opt
            bend = -a * fl * fv_bend * cos * (cos * pace / span) ** 2
            return force - pull * cos, m.maximum(slope + by_y * pace, 1e-3), bend

        # a fibre no shorter than before behind a slack tendon pulls; the shortest one does not
        low = (
            m.minimum(self.along(p, given.length, 0.0) - old_y, p.slack / p.opt) * p.opt / p.slack
        )
        high = m.maximum((given.length - p.opt * SHORTEST_FIBER) / p.slack, low)
        lt = increasing_root(
            m, residual, clip(m, lt, low, high), (low, high), self.curves.iterations
        )
        force, _ = self.tendon(m, p, lt)
        lm, _ = self.fiber(m, p, m.maximum(self.along(p, given.length, lt), SHORTEST_FIBER))
        return p.f0 * force, [a, lm * p.opt, lt]

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        p = self.p
        given = Inputs(lengths, 0.0 * lengths, np.full(len(lengths), FORCE), p.tension_min)
        force = self.commanded(NUMPY, p, p.tension_min)
        stretched = self.curves.tendon_length(NUMPY, force, p.strain, p.stiffness)
        y = self.along(p, lengths, stretched)
        a = self.excitation(NUMPY, p, 0.0 * y, y, given)
        low = np.ones(len(lengths))
        high = np.maximum((lengths - p.opt * SHORTEST_FIBER) / p.slack, low)
        for _ in range(60):
            middle = 0.5 * (low + high)
            force, _ = self.tendon(NUMPY, p, middle)
            lm, cos = self.fiber(
                NUMPY, p, np.maximum(self.along(p, lengths, middle), SHORTEST_FIBER)
            )
            active, passive = self.curves.active(NUMPY, lm)[0], self.curves.passive(NUMPY, lm)[0]
            short = force < (a * active + passive) * cos
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        lt = np.minimum(low, (lengths - p.opt * SHORTEST_FIBER) / p.slack)
        force, _ = self.tendon(NUMPY, p, lt)
        lm, _ = self.fiber(NUMPY, p, np.maximum(self.along(p, lengths, lt), SHORTEST_FIBER))
        return [a, lm * p.opt, lt]

    def energy(self, x: Sequence[Array], lengths: Array) -> Array:
        """See `_Hill`."""
        p = self.p
        tendon = integral(
            lambda s: self.tendon(NUMPY, p, s)[0], 0.0 * x[2] + 1.0, np.maximum(x[2], 1.0)
        )
        stored: Array = super().energy(x, lengths) + p.f0 * p.slack * tendon
        return stored
