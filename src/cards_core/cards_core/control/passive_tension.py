"""The tension below which muscles that pull without a command cannot be commanded.

A stretched Hill-type muscle has the force of its parallel element, a McKibben muscle that of its
bladder, whatever it is told. A controller that takes ``tension_min`` for the least tension counts
on less pull than there is, and leaves a steady offset.
"""

from __future__ import annotations

import numpy as np

from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.muscles.actuators.groups import model_type
from cards_core.muscles.actuators.model import Inputs
from cards_core.muscles.command import FORCE
from cards_core.robot.elements import Muscle
from cards_core.robot.model import Robot
from cards_core.typing import Array

POINTS = 1024
"""Of the table of a muscle; between them it is linear, within 2e-4 of the greatest force."""

STEP = 1e-3
"""Time step of the actuator models, [s]; they start at rest and stay there."""


class PassiveTension:
    """Least tensions ``f_p(l)`` at rest, from a table over the lengths of the paths.

    ``f_p`` is the tension that a muscle has in equilibrium when it is told its ``tension_min``:
    passive force and that of the least activation, or ``tension_min`` if that is more. Terms that
    depend on the velocity are not in it. Beyond the table it goes on along its last slope.

    Args:
        robot: A robot whose muscles all take tensions.

    Attributes:
        names: Of the muscles that pull without a command; empty if none does.
    """

    def __init__(self, robot: Robot) -> None:
        tables = {
            i: _table(muscle, muscle.actuator.passive_range)
            for i, muscle in enumerate(robot.muscles)
            if muscle.actuator.passive_range is not None
        }
        self._rows = np.array(list(tables), dtype=int)
        self.names: tuple[str, ...] = tuple(robot.muscles[i].name for i in tables)
        self._first = np.array([lengths[0] for lengths, _ in tables.values()])
        self._spacing = np.array([lengths[1] - lengths[0] for lengths, _ in tables.values()])
        self._tensions = np.zeros((len(tables), POINTS))
        for row, (_, tensions) in zip(self._tensions, tables.values(), strict=True):
            row[:] = tensions

    def raise_to(self, lower: Array, lengths: Array, unit: float) -> None:
        """Raise lower bounds of tensions to what the muscles have without a command.

        Args:
            lower: Bounds of all muscles, shape (m,), in units; overwritten.
            lengths: Of all paths, shape (m,), [m].
            unit: Of the bounds, [N].
        """
        place = np.maximum((lengths[self._rows] - self._first) / self._spacing, 0.0)
        below = np.minimum(place.astype(int), POINTS - 2)
        each = np.arange(len(self._rows))
        start = self._tensions[each, below]
        slope = self._tensions[each, below + 1] - start
        tension = start + (place - below) * slope
        lower[self._rows] = np.maximum(lower[self._rows], tension / unit)


def _table(muscle: Muscle, span: tuple[float, float]) -> tuple[Array, Array]:
    """Return lengths of a path [m] and the least tensions there [N], each of shape (POINTS,)."""
    lengths = np.linspace(*span, POINTS)
    model = model_type(muscle.actuator)([muscle], STEP)
    least = Inputs(lengths, 0.0 * lengths, np.full(POINTS, FORCE), muscle.tension_min)
    tensions, _ = model.step(NUMPY, model.p, model.rest(lengths), least)
    return lengths, tensions
