"""McKibben muscle: force of the braid, and the pressure in it."""

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
    root_with_unit_slope,
)
from cards_core.muscles.actuators.model import (
    Inputs,
    Model,
    Parameters,
    limits,
)
from cards_core.muscles.command import FORCE, PRESSURE
from cards_core.robot.elements import Muscle
from cards_core.typing import Array

REFERENCE_PRESSURE = 1e5
"""Pressure of the reference atmosphere in which ISO 6358 measures flow, [Pa]."""

LINEAR_RATIO = 0.995
"""Pressure ratio above which the flow is taken linear (laminar); its slope stays finite."""

ITERATIONS = 5
"""Newton iterations for the pressure behind a valve."""


class McKibbenMuscle(Model):
    """Braided muscle after [Chou1996]_, with the end correction k of [Tondu2000]_.

    With braid length ``L = l - tendon_length``, contraction ``e = 1 - L/L0``, thread angle
    ``cos a0 = L0/b`` and radius ``r0 = b sin a0/(2 pi n)`` at rest:

        F = (p - p_th)+ pi r0^2 (3/tan^2 a0 (1 - k e)^2 - 1/sin^2 a0) + kb (L - L0)
        T = max(F, 0) (1 + mu tanh(l'/v0))

    With k = 1 this is ``p b^2/(4 pi n^2) (3 L^2/b^2 - 1)``, the virtual work of an ideal braid.
    Thread friction is published as a constant force (2.5 N) or as 2 to 6 % of the force; it is a
    share of the tension here, so that a slack muscle has none.

    Pressure (above atmosphere): a first-order lag, ``p' = (p_cmd - p)/tau``, or flow through a
    valve (`ValveMcKibbenMuscle`). Commands: pressure, or the tension at rest, which the static
    law turns into a pressure. Without a command the muscle is vented. State: ``pressure`` [Pa].
    """

    published: ClassVar[tuple[str, ...]] = ("pressure",)

    def parameters(self, muscle: Muscle, dt: float) -> dict[str, float]:
        """See `Model`."""
        item: Any = muscle.actuator
        cos = item.rest_length / item.thread_length
        sin2 = 1.0 - cos**2
        r0 = item.thread_length * math.sqrt(sin2) / (2.0 * math.pi * item.turns)
        area = math.pi * r0**2
        shape, fixed = 3.0 * cos**2 / sin2, 1.0 / sin2
        return limits(muscle) | {
            "tendon": item.tendon_length,
            "b": item.thread_length,
            "l0": item.rest_length,
            "k": item.end_correction,
            "shape": area * shape,
            "fixed": area * fixed,
            "threshold": item.threshold_pressure,
            "bladder": item.bladder_stiffness,
            "mu": item.friction,
            "v0": item.friction_speed,
            "max_pressure": item.max_pressure,
            "decay": math.exp(-dt / item.pressure_time),
        }

    def steepness(self, actuator: Any) -> tuple[float, float]:
        """See `Model`: braid and thread friction at the largest pressure and the rest length."""
        cos = actuator.rest_length / actuator.thread_length
        sin2 = 1.0 - cos**2
        area = actuator.thread_length**2 * sin2 / (4.0 * math.pi * actuator.turns**2)
        shape = 3.0 * cos**2 / sin2
        strongest = actuator.max_pressure * area * (shape - 1.0 / sin2)
        braid = 2.0 * actuator.max_pressure * area * shape * actuator.end_correction
        stiffness = braid / actuator.rest_length + actuator.bladder_stiffness
        return stiffness, actuator.friction * strongest / actuator.friction_speed

    @staticmethod
    def area(m: Arithmetic, p: Parameters, length: Real) -> Real:
        """Return dF/dp at a braid length, [m^2]; negative below the shortest length.

        Args:
            m: Functions of real arguments.
            p: Parameters by name, shape (n,) each.
            length: Length of the braid, shape (n,), [m].
        """
        braid = m.maximum(1.0 - p.k * (1.0 - clip(m, length, 0.0, p.b) / p.l0), 0.0)
        return p.shape * braid * braid - p.fixed

    def commanded_pressure(self, m: Arithmetic, p: Parameters, braid: Real, given: Inputs) -> Real:
        """Return the pressure that is asked for, within 0 .. max_pressure.

        Args:
            m: Evaluator.
            p: Parameters, in the same form as the other arguments.
            braid: Length of the braid, [m].
            given: Path and command; without a command the pressure is 0.

        Returns:
            Pressure above atmosphere, [Pa].
        """
        force = clip(m, given.value, p.tension_min, p.tension_max)
        area = m.maximum(self.area(m, p, braid), 1e-6 * p.fixed)
        by_force = p.threshold + (force - p.bladder * (braid - p.l0)) / area
        pressure = m.where(given.kind == PRESSURE, given.value, 0.0)
        pressure = m.where(given.kind == FORCE, by_force, pressure)
        return clip(m, pressure, 0.0, p.max_pressure)

    def static(self, m: Arithmetic, p: Parameters, pressure: Real, braid: Real) -> Real:
        """Return the tension without friction at a pressure and a braid length.

        Args:
            m: Functions of real arguments.
            p: Parameters by name, shape (n,) each.
            pressure: Gauge pressure, shape (n,), [Pa].
            braid: Length of the braid, shape (n,), [m].
        """
        inner = m.maximum(pressure - p.threshold, 0.0)
        return m.maximum(inner * self.area(m, p, braid) + p.bladder * (braid - p.l0), 0.0)

    @staticmethod
    def with_friction(m: Arithmetic, p: Parameters, static: Real, rate: Real) -> Real:
        """Return the tension with friction.

        Args:
            m: Functions of real arguments.
            p: Parameters by name, shape (n,) each.
            static: Tension without friction, shape (n,), [N].
            rate: Rate of the length, shape (n,), [m/s].
        """
        return static * (1.0 + p.mu * m.tanh(rate / p.v0))

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        pressure = x[0]
        braid = given.length - p.tendon
        target = self.commanded_pressure(m, p, braid, given)
        pressure = target + (pressure - target) * p.decay
        static = self.static(m, p, pressure, braid)
        return self.with_friction(m, p, static, given.rate), [pressure]

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        p, braid = self.p, lengths - self.p.tendon
        given = Inputs(lengths, 0.0 * lengths, np.full(len(lengths), FORCE), p.tension_min)
        pressure = self.commanded_pressure(NUMPY, p, braid, given)
        return [pressure]

    def energy(self, x: Sequence[Array], lengths: Array) -> Array:
        """Return the energy of the bladder pulled beyond its rest length.

        Shorter than that, only the pressure can have compressed it.
        """
        stretch = np.maximum(lengths - self.p.tendon - self.p.l0, 0.0)
        energy: Array = 0.5 * self.p.bladder * stretch**2
        return energy


class ValveMcKibbenMuscle(McKibbenMuscle):
    """`McKibbenMuscle` filled and vented through a proportional valve.

    With the volume ``V = L (b^2 - L^2)/(4 pi n^2)``, absolute pressure P and mass flow of ISO 6358
    [ISO6358]_:

        P' = (g/V) (opening C P_ref P_up phi(P_down/P_up) - P V')
        phi(r) = 1 (r <= b),  sqrt(1 - ((r - b)/(1 - b))^2) (above)
        opening = (p_cmd - p)/band within -1 .. 1; > 0 from the supply, < 0 to the atmosphere

    g = 1 is isothermal (then P V is constant behind a closed valve), 1.4 adiabatic. The volume
    change is integrated exactly, the flow by backward Euler.
    """

    hidden: ClassVar[tuple[str, ...]] = ("volume",)

    def parameters(self, muscle: Muscle, dt: float) -> dict[str, float]:
        """See `Model`."""
        item: Any = muscle.actuator
        valve = item.valve
        return super().parameters(muscle, dt) | {
            "turns2": 4.0 * math.pi * item.turns**2,
            "g": valve.polytropic_exponent,
            "flow": dt * valve.polytropic_exponent * valve.conductance * REFERENCE_PRESSURE,
            "critical": valve.critical_ratio,
            "supply": valve.supply_pressure + valve.atmosphere,
            "band": valve.band,
            "outside": valve.atmosphere,
        }

    @staticmethod
    def volume(m: Arithmetic, p: Parameters, length: Real) -> Real:
        """Return the volume in the braid, [m^3]; above zero for every length.

        Args:
            m: Functions of real arguments.
            p: Parameters by name, shape (n,) each.
            length: Length of the braid, shape (n,), [m].
        """
        inside = clip(m, length, 0.05 * p.b, 0.99 * p.b)
        return inside * (p.b * p.b - inside * inside) / p.turns2

    @staticmethod
    def phi(m: Arithmetic, p: Parameters, ratio: Real) -> tuple[Real, Real]:
        """Return the flow function and its slope for a pressure ratio >= 0; 0 beyond 1.

        Args:
            m: Functions of real arguments.
            p: Parameters by name, shape (n,) each.
            ratio: Downstream over upstream pressure [1], shape (n,).
        """
        part = clip(m, (ratio - p.critical) / (1.0 - p.critical), 0.0, _last(p.critical))
        root = m.sqrt(1.0 - part * part)
        line = m.maximum((1.0 - ratio) / (1.0 - LINEAR_RATIO), 0.0)
        steep = m.where(part > 0.0, -part / (root * (1.0 - p.critical)), 0.0)
        straight = m.where(line > 0.0, -root / (1.0 - LINEAR_RATIO), 0.0)
        laminar = ratio > LINEAR_RATIO
        return m.where(laminar, root * line, root), m.where(laminar, straight, steep)

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        pressure, volume = x
        braid = given.length - p.tendon
        target = self.commanded_pressure(m, p, braid, given)
        now = self.volume(m, p, braid)
        squeezed = (pressure + p.outside) * m.exp(p.g * m.log(volume / now))
        flow = p.flow / now

        def residual(absolute: Real) -> tuple[Real, Real, Real]:
            error = (target + p.outside - absolute) / p.band
            opening = clip(m, error, -1.0, 1.0)
            slope = m.where(opening == error, -1.0 / p.band, 0.0)
            above = m.maximum(absolute, 1.0)
            filling, filling_slope = self.phi(m, p, above / p.supply)
            venting, venting_slope = self.phi(m, p, p.outside / above)
            into, into_slope = p.supply * filling, filling_slope
            out = above * venting
            out_slope = venting - p.outside / above * venting_slope
            stream = m.where(opening > 0.0, into, out)
            stream_slope = m.where(opening > 0.0, into_slope, out_slope)
            return (
                absolute - squeezed - flow * opening * stream,
                1.0 - flow * (slope * stream + opening * stream_slope),
                0.0,
            )

        absolute = root_with_unit_slope(m, residual, squeezed, ITERATIONS)
        pressure = absolute - p.outside
        static = self.static(m, p, pressure, braid)
        return self.with_friction(m, p, static, given.rate), [pressure, now]

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        volume: Array = self.volume(NUMPY, self.p, lengths - self.p.tendon)
        return [*super().rest(lengths), volume]


def _last(critical: Real) -> Real:
    """Argument of the flow function's root where the linear part begins."""
    return (LINEAR_RATIO - critical) / (1.0 - critical)
