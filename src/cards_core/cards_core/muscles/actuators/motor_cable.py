"""Cables that a motor pulls: current and temperatures of muscles with a tension controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from cards_core.muscles.actuators import motor, thermal
from cards_core.muscles.actuators.arithmetic import Arithmetic, Real, clip
from cards_core.muscles.actuators.cable import IdealCable
from cards_core.muscles.actuators.model import Inputs, Parameters
from cards_core.muscles.command import FORCE
from cards_core.robot.elements import Muscle
from cards_core.typing import Array

SPOOL_RADIUS = 0.0045
"""Where none is given, [m]; that of the MyoMuscle unit."""


class MotorCable(IdealCable):
    """Ideal cable with the current that its motor needs.

    The driver measures the tension and gives the motor the current for the commanded tension f.
    With winding speed ``w = -l'`` and the motor seen at the cable (``n = N/r``):

        kt n i = g(w) f + n (tau_c tanh(n w/w0) + b n w)
        i within +-I_max, and within (+-U - kt n w)/R               (torque-speed limit)
        T = f where i is within; else what i leaves, T = (kt n i - drag)/g(w) within 0 .. T_max

    g is the loss of the gear as in `series_elastic.SeriesElasticUnit`. The inertia of the motor
    is left to the driver: the tension follows at once. A motor that is pulled faster than its
    no-load speed brakes like a damper of (kt n)^2/R, which can be stiffer than the step bears on
    light links; the largest tension of the muscle bounds it. Friction costs current, not tension,
    as the sensor is between spool and cable; friction along the path is the path's.

    States: ``current`` [A].
    """

    published: ClassVar[tuple[str, ...]] = ("current",)

    def parameters(self, muscle: Muscle, dt: float) -> dict[str, float]:
        """See `Model`."""
        cable: Any = muscle.actuator
        radius = SPOOL_RADIUS if cable.spool_radius is None else cable.spool_radius
        return super().parameters(muscle, dt) | motor.parameters(cable.motor, radius)

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        tension, current = self.pull(m, p, given, p.resistance)
        return tension, [current]

    @staticmethod
    def pull(m: Arithmetic, p: Parameters, given: Inputs, resistance: Real) -> tuple[Real, Real]:
        """Return tension and current.

        Args:
            m: Evaluator.
            p: Parameters, in the same form as the other arguments.
            given: Path and command.
            resistance: Of the winding, [ohm].

        Returns:
            Tension [N] and current [A].
        """
        force = clip(m, given.value, p.tension_min, p.tension_max)
        force = m.where(given.kind == FORCE, force, p.tension_min)
        speed = -given.rate
        bend = m.tanh(p.sharpness * speed)
        gear = 1.0 + m.where(speed > 0.0, p.winding_loss, p.paying_loss) * bend
        drag = p.dry * bend + p.viscous * speed
        wanted = (force * gear + drag) / p.gain
        emf = p.gain * speed
        current = clip(m, wanted, -p.max_current, p.max_current)
        current = clip(m, current, (-p.voltage - emf) / resistance, (p.voltage - emf) / resistance)
        left = clip(m, (p.gain * current - drag) / gear, 0.0, p.tension_max)
        return m.where(current == wanted, force, left), current

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        return [self.p.tension_min / self.p.gain + np.zeros(len(lengths))]


class HeatedMotorCable(MotorCable):
    """`MotorCable` whose motor has temperatures; the winding's resistance follows them.

    States: ``current`` [A], ``winding_temperature`` and ``housing_temperature`` [degC].
    """

    published: ClassVar[tuple[str, ...]] = (*MotorCable.published, *thermal.QUANTITIES)

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
        _, winding, housing = x
        resistance = thermal.resistance(m, p, winding)
        tension, current = self.pull(m, p, given, resistance)
        heat = current * current * resistance
        return tension, [current, *thermal.advance(p, winding, housing, heat)]

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        ambient: Array = self.p.ambient
        return [*super().rest(lengths), ambient.copy(), ambient.copy()]
