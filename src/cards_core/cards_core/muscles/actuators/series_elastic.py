"""Series elastic unit: motor, gear, spool, spring, and the loop that positions the motor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from cards_core.muscles.actuators import motor, springs, thermal
from cards_core.muscles.actuators.arithmetic import (
    NUMPY,
    Arithmetic,
    Real,
    clip,
    root_with_unit_slope,
)
from cards_core.muscles.actuators.model import (
    Inputs,
    Model,
    Parameters,
    limits,
)
from cards_core.muscles.command import FORCE, IMPEDANCE, LENGTH
from cards_core.robot.elements import Muscle
from cards_core.typing import Array

DEFAULT_BANDWIDTH = 100.0
"""Natural frequency [rad/s] of the motor's position loop where no gain is given."""

ITERATIONS = 6
"""Newton iterations for the winding speed; friction and limits are kinks."""


class SeriesElasticUnit(Model):
    """Motor with gear and spool that winds a cable behind a nonlinear spring.

    With rest length x, winding speed ``w = -x'``, spring elongation ``delta = l - x`` and the
    tension T of the spring (`springs`), everything seen at the cable (``n = N/r`` rotor radians
    per metre, mass ``m = J n^2``):

        m w' = kt n i - g(w) T - n (tau_c tanh(n w/w0) + b n w)
        i within +-I_max, and within (+-U - kt n w)/R               (torque-speed limit)
        g = 1 + (1/eta - 1) tanh(n w/w0) (winding),  1 + (1 - eta) tanh(n w/w0) (paying out)

    The electrical time constant (L/R = 0.2 ms) is neglected, the current follows at once. The
    loop of the motor driver, fed with the present tension, is

        kt n i = T + kp (x - x_ref) + kd (w_ref - w)

    and by default critically damped at 100 rad/s. Commands: ``x_ref`` itself, or the tension f,
    for which ``x_ref = l - delta(f)`` and ``w_ref = -l'``. Without a command the last ``x_ref``
    holds. With ``driver="current"`` there is no loop: ``kt n i = f``, 0 without a command.

    A tension f of the impedance law becomes the current ``kt n i = f`` as it is. The law knows
    the winder (its length is x, its rate -w), so between ground and load there is nothing but
    springs, dampers and the mass of the motor, which only take energy away. Through x_ref that is
    not so: the position loop hides the load from the law, and both together grow.

    Speed and rest length advance by one backward Euler step, in which the spring is taken linear:
    stable for every gain and inertia. Form and default values of the motor: [Wittmeier2013]_ and
    public MyoMuscle data. Temperatures: `thermal`.

    States: ``rest_length`` [m], ``winding_speed`` [m/s], ``current`` [A], ``winding_temperature``
    and ``housing_temperature`` [degC] (of units with a ``thermal`` group).
    """

    published: ClassVar[tuple[str, ...]] = ("rest_length", "winding_speed", "current")
    hidden: ClassVar[tuple[str, ...]] = ("reference",)
    winder: ClassVar[tuple[str, str] | None] = ("rest_length", "winding_speed")

    def __init__(self, muscles: Sequence[Muscle], dt: float) -> None:
        actuator: Any = muscles[0].actuator
        self.law: str = actuator.spring.law
        self.open_loop: bool = actuator.driver == "current"
        super().__init__(muscles, dt)

    @classmethod
    def variant(cls, actuator: Any) -> tuple[Any, ...]:
        """See `Model`."""
        return actuator.spring.law, actuator.driver

    def parameters(self, muscle: Muscle, dt: float) -> dict[str, float]:
        """See `Model`."""
        unit: Any = muscle.actuator
        inertia = unit.motor.rotor_inertia * (unit.motor.gear_ratio / unit.spool_radius) ** 2
        kp = unit.position_gain or inertia * DEFAULT_BANDWIDTH**2
        kd = 2.0 * (kp * inertia) ** 0.5 if unit.velocity_gain is None else unit.velocity_gain
        values = limits(muscle) | springs.parameters(unit.spring)
        values |= motor.parameters(unit.motor, unit.spool_radius)
        return values | {
            "dt": dt,
            "kp": kp,
            "kd": kd,
            "lightness": dt / inertia,
        }

    def steepness(self, actuator: Any) -> tuple[float, float]:
        """See `Model`."""
        return springs.nominal_stiffness(actuator.spring), 0.0

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        tension, state, _ = self.drive(m, p, x, given, p.resistance)
        return tension, state

    def drive(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
        resistance: Real,
    ) -> tuple[Real, list[Real], Real]:
        """Advance motor and spring; return tension, states and current.

        Args:
            m: Evaluator.
            p: Parameters, in the same form as the other arguments.
            x: Rest length [m], winding speed [m/s], current [A] and reference of the driver [m].
            given: Path and command.
            resistance: Of the winding, [ohm].

        Returns:
            Tension [N], new states in the order of ``x``, and current [A].
        """
        rest, speed, reference = x[0], x[1], x[3]
        d = springs.coordinate_of_elongation(m, self.law, p, given.length - rest)
        before, slope = springs.tension(m, self.law, p, d)
        _, stretch = springs.elongation(m, self.law, p, d)
        stiffness = slope / stretch
        # a slack spring is wound up before it pulls
        taut = before + stiffness * m.minimum(given.length - rest, 0.0)

        force = clip(m, given.value, p.tension_min, p.tension_max)
        wanted = springs.coordinate_of_tension(m, self.law, p, force)
        gap = springs.elongation(m, self.law, p, wanted)[0]
        reference = m.where(given.kind == LENGTH, given.value, reference)
        reference = m.where(given.kind == FORCE, given.length - gap, reference)
        direct = given.kind == IMPEDANCE
        reference = m.where(direct, rest, reference)
        reference_speed = m.where(given.kind == FORCE, -given.rate, 0.0)

        told = m.where(given.kind == FORCE, given.value, 0.0)
        kp, kd = (0.0, 0.0) if self.open_loop else (p.kp, p.kd)
        level = told if self.open_loop else before

        def current(w: Real) -> tuple[Real, Real]:
            loop = level + kp * (rest - p.dt * w - reference) + kd * (reference_speed - w)
            drive = m.where(direct, force, loop)
            emf = p.gain * w
            allowed = clip(m, drive / p.gain, -p.max_current, p.max_current)
            # beyond its no-load speed a motor brakes as a generator, whatever the driver wants
            i = clip(m, allowed, (-p.voltage - emf) / resistance, (p.voltage - emf) / resistance)
            free = m.where(allowed == drive / p.gain, (p.dt * kp + kd) / p.gain, 0.0)
            free = m.where(direct, 0.0, free)
            return i, -m.where(i == allowed, free, p.gain / resistance)

        def residual(w: Real) -> tuple[Real, Real, Real]:
            i, i_slope = current(w)
            load = m.maximum(taut + stiffness * p.dt * w, 0.0)
            load_slope = m.where(load > 0.0, stiffness * p.dt, 0.0)
            bend = m.tanh(p.sharpness * w)
            bend_slope = p.sharpness * (1.0 - bend * bend)
            loss = m.where(w > 0.0, p.winding_loss, p.paying_loss)
            drag = load * (1.0 + loss * bend) + p.dry * bend + p.viscous * w
            drag_slope = load_slope * (1.0 + loss * bend) + load * loss * bend_slope
            drag_slope = drag_slope + p.dry * bend_slope + p.viscous
            push, push_slope = p.gain * i, p.gain * i_slope
            return (
                w - speed - p.lightness * (push - drag),
                1.0 + p.lightness * (drag_slope - push_slope),
                0.0,
            )

        speed = root_with_unit_slope(m, residual, speed, ITERATIONS)
        i, _ = current(speed)
        rest = rest - p.dt * speed
        d = springs.coordinate_of_elongation(m, self.law, p, given.length - rest)
        tension, _ = springs.tension(m, self.law, p, d)
        return tension, [rest, speed, i, reference], i

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        p, force = self.p, self.p.tension_min
        d = springs.coordinate_of_tension(NUMPY, self.law, p, force)
        gap = springs.elongation(NUMPY, self.law, p, d)[0]
        still = np.zeros(len(lengths))
        return [lengths - gap, still, force / p.gain, lengths - gap]

    def energy(self, x: Sequence[Array], lengths: Array) -> Array:
        """See `Model`."""
        d = springs.coordinate_of_elongation(NUMPY, self.law, self.p, lengths - x[0])
        stored: Array = springs.energy(self.law, self.p, d)
        return stored


class HeatedSeriesElasticUnit(SeriesElasticUnit):
    """`SeriesElasticUnit` whose motor has temperatures; the winding's resistance follows them."""

    published: ClassVar[tuple[str, ...]] = (
        *SeriesElasticUnit.published,
        *thermal.QUANTITIES,
    )

    def parameters(self, muscle: Muscle, dt: float) -> dict[str, float]:
        """See `Model`."""
        unit: Any = muscle.actuator
        return super().parameters(muscle, dt) | thermal.parameters(unit.thermal, dt)

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        rest, speed, current, winding, housing, reference = x
        resistance = thermal.resistance(m, p, winding)
        tension, (rest, speed, current, reference), i = self.drive(
            m, p, (rest, speed, current, reference), given, resistance
        )
        winding, housing = thermal.advance(p, winding, housing, i * i * resistance)
        return tension, [rest, speed, current, winding, housing, reference]

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        rest, speed, current, reference = super().rest(lengths)
        ambient: Array = self.p.ambient
        return [rest, speed, current, ambient.copy(), ambient.copy(), reference]
