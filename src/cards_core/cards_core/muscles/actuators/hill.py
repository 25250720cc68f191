"""Hill-type muscle: activation, fibre and tendon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from cards_core.muscles.actuators.arithmetic import (
    NUMPY,
    Arithmetic,
    Real,
    clip,
    increasing_root,
)
from cards_core.muscles.actuators.hill_curves import CURVES
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
        self.curves = CURVES[actuator.curves]
        super().__init__(muscles, dt)

    @classmethod
    def variant(cls, actuator: Any) -> tuple[Any, ...]:
        """See `Model`."""
        return (actuator.curves,)

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
        """See `Model`: the force-velocity curve of the active muscle at rest."""
        still = np.zeros(1)
        slope = float(self.curves.velocity(NUMPY, still, still + 1.0)[1][0]) + actuator.damping
        fastest = actuator.max_velocity * actuator.optimal_fiber_length
        return 0.0, actuator.max_isometric_force * slope / fastest

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
        """Return fT and its slope."""
        return self.curves.tendon(m, lt, p.strain, p.stiffness)

    @staticmethod
    def along(p: Parameters, length: Real, lt: Real) -> Real:
        """Return y for a path and a tendon length."""
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
