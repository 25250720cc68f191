"""Stiffness of single muscles along their path: dT/dl with the command held.

================ ============================================== ==============================
muscle           what is held                                   dT/dl
================ ============================================== ==============================
ideal cable      the tension                                    0, or as given
elastic cable    the rest length                                k while taut, 0 while slack
series elastic   the motor                                      slope of its spring at T
pneumatic        the pressure that gives T at this length       by differences of its static law
hill             the activation that gives T at this length     by differences of its model
ligament         nothing                                        slope of its law at l
================ ============================================== ==============================
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import cast

import numpy as np

from cards_core.errors import UnknownNameError
from cards_core.muscles.actuators import ActuatorBank, springs
from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.muscles.actuators.model import Inputs
from cards_core.muscles.actuators.pneumatic import McKibbenMuscle
from cards_core.muscles.command import EXCITATION, FORCE
from cards_core.robot.actuators import Cable, Hill, Ligament, Pneumatic, SeriesElastic
from cards_core.robot.elements import Muscle
from cards_core.robot.model import Robot
from cards_core.typing import Array

SETTLING_STEP = 0.05
"""Time step in which activations settle, [s]."""

SETTLING_STEPS = 60
"""Steps until everything is at rest: 3 s, a hundred time constants."""

DIFFERENCE = 1e-5
"""Change of length of the central differences, [m]."""


def muscle_stiffness(robot: Robot, lengths: Array, tensions: Array) -> Array:
    """Return dT/dl of every muscle at rest, shape (m,), [N/m].

    Args:
        robot: The description.
        lengths: shape (m,), [m].
        tensions: shape (m,), [N]; ligaments have that of their law instead.

    Raises:
        UnknownNameError: An actuator of a kind whose stiffness is not known.
    """
    out = np.zeros(len(robot.muscles))
    settled: list[int] = []
    for i, muscle in enumerate(robot.muscles):
        if muscle.kind in SETTLED:
            settled.append(i)
        elif muscle.kind in SLOPES:
            out[i] = SLOPES[muscle.kind](muscle, float(lengths[i]), float(tensions[i]))
        else:
            raise UnknownNameError("stiffness of an actuator", muscle.kind, (*SLOPES, *SETTLED))
    if settled:
        muscles = [robot.muscles[i] for i in settled]
        out[settled] = _held(robot, muscles, lengths[settled], tensions[settled])
    return out


def _cable_slope(muscle: Muscle, _length: float, tension: float) -> float:
    stiffness = cast(Cable, muscle.actuator).stiffness
    return stiffness if stiffness is not None and tension > 0.0 else 0.0


def _ligament_slope(muscle: Muscle, length: float, _tension: float) -> float:
    ligament = cast(Ligament, muscle.actuator)
    strain = length / ligament.slack_length - 1.0
    share = min(max(strain / ligament.toe_strain, 0.0), 1.0)
    return ligament.stiffness * share / ligament.slack_length


def _spring_slope(muscle: Muscle, _length: float, tension: float) -> float:
    spring = cast(SeriesElastic, muscle.actuator).spring
    if tension <= 0.0:
        return 0.0
    p = SimpleNamespace(**springs.parameters(spring))
    d = springs.coordinate_of_tension(NUMPY, spring.law, p, np.array(tension))
    slope = springs.tension(NUMPY, spring.law, p, d)[1]
    return float(slope / springs.elongation(NUMPY, spring.law, p, d)[1])


def _braid_slope(muscle: Muscle, length: float, tension: float) -> float:
    model = McKibbenMuscle([muscle], SETTLING_STEP)
    p = model.one(0)
    braid = length - p.tendon
    given = Inputs(length, 0.0, FORCE, tension)
    pressure = model.commanded_pressure(NUMPY, p, braid, given)
    above = model.static(NUMPY, p, pressure, braid + DIFFERENCE)
    below = model.static(NUMPY, p, pressure, braid - DIFFERENCE)
    return float((above - below) / (2.0 * DIFFERENCE))


SLOPES: Mapping[str, Callable[[Muscle, float, float], float]] = {
    Cable.kind: _cable_slope,
    SeriesElastic.kind: _spring_slope,
    Ligament.kind: _ligament_slope,
    Pneumatic.kind: _braid_slope,
}
"""By kind of actuator, dT/dl of a muscle from its length and tension."""

SETTLED = (Hill.kind,)
"""Kinds whose models are run until they are at rest, all muscles together."""


def _held(robot: Robot, muscles: Sequence[Muscle], lengths: Array, tensions: Array) -> Array:
    """Let Hill muscles reach their tensions, then move them with the activation held."""
    only = dataclasses.replace(robot, muscles=tuple(muscles))
    bank = ActuatorBank(only, SETTLING_STEP, "numeric")
    still = np.zeros(len(muscles))
    bank.reset(lengths)

    def settle(at: Array, kinds: Array, values: Array) -> Array:
        for _ in range(SETTLING_STEPS):
            out = bank.step(at, still, kinds.astype(np.intp), values)
        return np.array(out)

    settle(lengths, np.full(len(muscles), FORCE), tensions)
    states = dict(zip(bank.state_names, bank.state_values.tolist(), strict=True))
    values = np.array([states[f"{muscle.name}/activation"] for muscle in muscles])
    kinds = np.full(len(muscles), EXCITATION)
    above = settle(lengths + DIFFERENCE, kinds, values)
    below = settle(lengths - DIFFERENCE, kinds, values)
    return (above - below) / (2.0 * DIFFERENCE)
