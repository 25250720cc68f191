"""What a run on the ground is judged by: way, speed, work, cost of transport.

Distances are planar. With places p of the reference from p_0 to p_e and a goal g [Mirletz2016]_
(section 4.2):

    distance = |p_e - p_0|,   towards_goal = |p_0 - g| - |p_e - g|,   speed = distance/duration

Cost of transport, with the weight m g of the robot (eq. 4.1):

    COT = W/(m g d)

Two definitions of the work W over steps j and muscles, with the free length L of a cable (its rest
length where a winch changes it, else its length) and the force F of its motor at the cable (the
tension, where the model has no current):

    ideal   W = sum T_{j-1} max(0, L_{j-1} - L_j)    lengthening is free
    motor   W = sum F_{j-1} (L_{j-1} - L_j)          signed: lengthening gives work back
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from cards_core.muscles.actuators import motor
from cards_core.muscles.actuators.motor_cable import SPOOL_RADIUS
from cards_core.robot.elements import Muscle
from cards_core.typing import Array

SHORTEST = 1e-3
"""For the cost of transport a way is at least this long, [m]: none would cost infinity."""


@dataclass(frozen=True)
class Measures:
    """What a run gave.

    Attributes:
        distance: Planar way from begin to end, [m].
        speed: The same per time, [m/s].
        towards_goal: How much nearer the goal is, [m]; NaN without one.
        goal_distance: Planar distance from the goal at the end, [m]; NaN without one.
        nearest: Least planar distance from the goal on the way, [m]; NaN without one.
        work_ideal, work_motor: W, [J].
        cost_of_transport_ideal, cost_of_transport_motor: W/(m g d).
    """

    distance: float
    speed: float
    towards_goal: float
    goal_distance: float
    nearest: float
    work_ideal: float
    work_motor: float
    cost_of_transport_ideal: float
    cost_of_transport_motor: float

    @property
    def finite(self) -> bool:
        """Whether all are numbers, but for a goal that there is not."""
        return all(math.isfinite(v) for name, v in asdict(self).items() if name not in OF_GOALS)


NAMES: tuple[str, ...] = tuple(item.name for item in fields(Measures))
"""What an objective may consist of."""

OF_GOALS = ("towards_goal", "goal_distance", "nearest")
"""Those that need a goal."""


def measure(
    begin: Array,
    end: Array,
    *,
    duration: float,
    work: tuple[float, float],
    weight: float,
    goal: Array | None = None,
    nearest: float = math.inf,
) -> Measures:
    """Return the measures of a run.

    Args:
        begin: x, y of the reference at the begin, shape (2,) or more, [m].
        end: At the end.
        duration: > 0, [s].
        work: Ideal and of the motors, [J].
        weight: m g, [N].
        goal: x, y, [m].
        nearest: Least planar distance from the goal between begin and end, [m].
    """
    distance = math.hypot(*(end[:2] - begin[:2]))
    near = nearer = least = math.nan
    if goal is not None:
        near, far = math.hypot(*(goal - end[:2])), math.hypot(*(goal - begin[:2]))
        nearer, least = far - near, min(near, far, nearest)
    denominator = weight * max(distance, SHORTEST)
    ideal, motors = work
    return Measures(
        distance,
        distance / duration,
        nearer,
        near,
        least,
        ideal,
        motors,
        ideal / denominator,
        motors / denominator,
    )


def objective(measures: Measures, weights: Mapping[str, float]) -> float:
    """Return the weighted sum of some measures; more is better."""
    return float(sum(weight * getattr(measures, name) for name, weight in weights.items()))


class Work:
    """Adds up the work of muscles, step by step.

    Args:
        muscles: Of the robot.
        state_names: Published states of their actuators, ``muscle/state``.

    Attributes:
        ideal, motor: So far, [J].
    """

    def __init__(self, muscles: Sequence[Muscle], state_names: Sequence[str]) -> None:
        self.ideal = self.motor = 0.0
        names = [muscle.name for muscle in muscles]
        places = {name: i for i, name in enumerate(state_names)}
        self._wound = _rows(names, places, "rest_length")
        self._driven = _rows(names, places, "current")
        self._gain = np.array([_gain(muscles[i]) for i in self._driven[0]])

    def add(self, lengths: Array, tensions: Array, states: Array) -> None:
        """Add the work of steps.

        Args:
            lengths: Of the muscles, [m], shape (n + 1, m): before the first step and after each.
            tensions: Likewise, [N].
            states: Published states of the actuators, likewise.
        """
        free, force = lengths.copy(), tensions.copy()
        muscles, columns = self._wound
        free[:, muscles] = states[:, columns]
        muscles, columns = self._driven
        force[:, muscles] = self._gain * states[:, columns]
        wound = -np.diff(free, axis=0)
        self.ideal += float(np.sum(tensions[:-1] * np.maximum(wound, 0.0)))
        self.motor += float(np.sum(force[:-1] * wound))


def _rows(names: list[str], places: Mapping[str, int], state: str) -> tuple[list[int], list[int]]:
    """Return muscles that have a state, and where it is."""
    found = [(i, places[f"{n}/{state}"]) for i, n in enumerate(names) if f"{n}/{state}" in places]
    return [i for i, _ in found], [column for _, column in found]


def _gain(muscle: Muscle) -> float:
    """Return the force at the cable for one ampere, [N/A]."""
    actuator: Any = muscle.actuator
    radius = SPOOL_RADIUS if actuator.spool_radius is None else actuator.spool_radius
    return float(motor.parameters(actuator.motor, radius)["gain"])
