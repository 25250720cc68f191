"""Elastic cables that a motor winds: rest length and winding speed are states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from cards_core.errors import ParameterError
from cards_core.muscles.actuators import motor, thermal
from cards_core.muscles.actuators.arithmetic import Arithmetic, Real, clip
from cards_core.muscles.actuators.cable import ElasticCable
from cards_core.muscles.actuators.model import Inputs, Parameters
from cards_core.muscles.actuators.motor_cable import SPOOL_RADIUS
from cards_core.muscles.actuators.series_elastic import DEFAULT_BANDWIDTH
from cards_core.muscles.command import FORCE, LENGTH
from cards_core.robot.elements import Muscle
from cards_core.typing import Array

LARGEST_PART = 0.9
"""Parts of a step are shorter than this times the time constant of the motor."""

MOST_PARTS = 50
"""A motor that needs more is refused."""


class WoundCable(ElasticCable):
    """`ElasticCable` with a motor in place of a winch (eq. 3.3 of [Mirletz2016]_).

    With rest length x, winding speed ``w = -x'``, elastic tension E = max(0, k (l - x)), n = N/r
    rotor radians per metre and mass m = J n^2, everything seen at the cable:

        m w' = kt n i - g(w) E - n (tau_c tanh(n w/w0) + b n w),    x' = -w,  x >= 0
        i within +-I_max, and within (+-U - kt n w)/R, or +-max(0, U - kt n |w|)/R (``envelope``)
        w >= 0 where kt n i w' <= 0, unless ``backdrivable``: the cable alone pays out nothing

    g is the loss of the gear as in `series_elastic.SeriesElasticUnit`; the damping of the cable
    acts between its ends, not on the rotor. The driver is sampled with the step,

        kt n i = E + (kp e + kd e')/k          force command f,  e = f - E, e' from the last step
        kt n i = E + kp e - kd w,  e = x - x_ref      length command x_ref; the last without one

    E is left out where e < 0 and the motor is not ``backdrivable``: what locks by itself has to be
    driven to pay out. With the default gains both loops have 100 rad/s and are critically damped.

    Semi-implicit Euler: first w, then x with the new w, in as many parts of a step as the time
    constant of the motor, m/((kt n)^2/R + b n^2), and the spring, sqrt(m/k), need; the driver's
    wish and the length stay what they are within a step. The tension is that of `ElasticCable`,
    with the new x.

    States: ``rest_length`` [m], ``winding_speed`` [m/s], ``current`` [A].
    """

    published: ClassVar[tuple[str, ...]] = ("rest_length", "winding_speed", "current")
    hidden: ClassVar[tuple[str, ...]] = ("reference", "error")
    winch: ClassVar[str | None] = "winding_speed"

    def __init__(self, muscles: Sequence[Muscle], dt: float) -> None:
        actuator: Any = muscles[0].actuator
        self.backdrivable: bool = actuator.motor.backdrivable
        self.symmetric: bool = actuator.motor.envelope == "symmetric"
        self.parts = max(_parts(muscle, dt) for muscle in muscles)
        super().__init__(muscles, dt)

    @classmethod
    def variant(cls, actuator: Any) -> tuple[Any, ...]:
        """See `Model`."""
        return actuator.motor.backdrivable, actuator.motor.envelope

    def parameters(self, muscle: Muscle, dt: float) -> dict[str, float]:
        """See `Model`."""
        cable: Any = muscle.actuator
        mass = _mass(cable)
        kp = cable.position_gain or mass * DEFAULT_BANDWIDTH**2
        kd = 2.0 * (kp * mass) ** 0.5 if cable.velocity_gain is None else cable.velocity_gain
        values = super().parameters(muscle, dt) | motor.parameters(cable.motor, _radius(cable))
        return values | {
            "kp": kp,
            "kd": kd,
            "proportional": kp / cable.stiffness,
            "derivative": kd / cable.stiffness / dt,
            "part": dt / self.parts,
            "mass": mass,
        }

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        return self.wind(m, p, x, given, p.resistance)

    def wind(
        self, m: Arithmetic, p: Parameters, x: Sequence[Real], given: Inputs, resistance: Real
    ) -> tuple[Real, list[Real]]:
        """Return tension [N] and new states.

        Args:
            m: Evaluator.
            p: Parameters, in the same form as the other arguments.
            x: Rest length [m], winding speed [m/s], current [A], reference [m] and last force
                error [N].
            given: Path and command.
            resistance: Of the winding, [ohm].
        """
        rest, speed, _, reference, last = x
        elastic = m.maximum(p.k * (given.length - rest), 0.0)
        force = clip(m, given.value, p.tension_min, p.tension_max)
        reference = m.where(given.kind == LENGTH, given.value, reference)
        error = m.where(given.kind == FORCE, force - elastic, 0.0)
        by_force = p.proportional * error + p.derivative * (error - last)
        by_length = p.kp * (rest - reference) - p.kd * speed
        by_force = by_force + self.carried(m, elastic, error)
        by_length = by_length + self.carried(m, elastic, rest - reference)
        wanted = m.where(given.kind == FORCE, by_force, by_length) / p.gain
        wanted = clip(m, wanted, -p.max_current, p.max_current)
        current = wanted
        for _ in range(self.parts):
            emf = p.gain * speed
            if self.symmetric:
                most = m.maximum(p.voltage - m.maximum(emf, -emf), 0.0) / resistance
                current = clip(m, wanted, -most, most)
            else:
                least, most = (-p.voltage - emf) / resistance, (p.voltage - emf) / resistance
                current = clip(m, wanted, least, most)
            bend = m.tanh(p.sharpness * speed)
            loss = m.where(speed > 0.0, p.winding_loss, p.paying_loss)
            drag = elastic * (1.0 + loss * bend) + p.dry * bend + p.viscous * speed
            push = p.gain * current
            faster = (push - drag) / p.mass
            speed = speed + p.part * faster
            if not self.backdrivable:
                speed = m.where(push * faster > 0.0, speed, m.maximum(speed, 0.0))
            rest = m.maximum(rest - p.part * speed, 0.0)
            elastic = m.maximum(p.k * (given.length - rest), 0.0)
        reference = m.where(given.kind == FORCE, rest, reference)
        tension = elastic + clip(m, p.c * given.rate, -elastic, elastic)
        return tension, [rest, speed, current, reference, error]

    def carried(self, m: Arithmetic, elastic: Real, error: Real) -> Real:
        """Return what the driver adds for the load; to pay out, a drive that locks needs none.

        Args:
            m: Evaluator.
            elastic: Elastic tension, [N].
            error: Error of the driver's loop, [N] or [m]; positive: wind in.

        Returns:
            [N].
        """
        return elastic if self.backdrivable else m.where(error > 0.0, elastic, 0.0)

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        (rest,) = super().rest(lengths)
        still = np.zeros(len(lengths))
        holding = np.maximum(self.p.k * (lengths - rest), 0.0) / self.p.gain
        return [rest, still, holding, rest.copy(), still.copy()]


class HeatedWoundCable(WoundCable):
    """`WoundCable` whose motor has temperatures; the winding's resistance follows them."""

    published: ClassVar[tuple[str, ...]] = (*WoundCable.published, *thermal.QUANTITIES)

    def parameters(self, muscle: Muscle, dt: float) -> dict[str, float]:
        """See `Model`."""
        cable: Any = muscle.actuator
        return super().parameters(muscle, dt) | thermal.parameters(cable.thermal, dt)

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        rest, speed, current, winding, housing, reference, last = x
        resistance = thermal.resistance(m, p, winding)
        states = (rest, speed, current, reference, last)
        tension, (rest, speed, current, *more) = self.wind(m, p, states, given, resistance)
        heat = current * current * resistance
        warm = thermal.advance(p, winding, housing, heat)
        return tension, [rest, speed, current, *warm, *more]

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        rest, speed, current, *more = super().rest(lengths)
        ambient: Array = self.p.ambient
        return [rest, speed, current, ambient.copy(), ambient.copy(), *more]


def _radius(cable: Any) -> float:
    radius: float | None = cable.spool_radius
    return SPOOL_RADIUS if radius is None else radius


def _mass(cable: Any) -> float:
    """Return m, what the cable feels of rotor and gear, [kg]."""
    mass: float = cable.motor.rotor_inertia * (cable.motor.gear_ratio / _radius(cable)) ** 2
    return mass


def _parts(muscle: Muscle, dt: float) -> int:
    """Return in how many parts a step is taken.

    Raises:
        ParameterError: Too many: the motor is too light for the step.
    """
    cable: Any = muscle.actuator
    p, mass = motor.parameters(cable.motor, _radius(cable)), _mass(cable)
    slope = p["gain"] ** 2 / p["resistance"] + p["viscous"] + p["dry"] * p["sharpness"]
    fastest = max(slope / mass, math.sqrt(cable.stiffness / mass))
    parts = max(math.ceil(dt * fastest / LARGEST_PART), 1)
    if parts > MOST_PARTS:
        raise ParameterError(
            f"the motor of muscle '{muscle.name}' has a time constant of {1.0 / fastest:.3g} s, "
            f"too short for a step of {dt:g} s; expected at least "
            f"{dt / (LARGEST_PART * MOST_PARTS):.3g} s: more 'rotor_inertia' or 'resistance', or "
            "'winch_speed' in place of the motor"
        )
    return parts
