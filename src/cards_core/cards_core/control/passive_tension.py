"""The tension below which muscles that pull without a command cannot be commanded.

A stretched Hill-type muscle has the force of its parallel element, a McKibben muscle that of its
bladder, whatever it is told. A controller that takes ``tension_min`` for the least tension counts
on less pull than there is, and leaves a steady offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.muscles.actuators.groups import make_groups
from cards_core.muscles.actuators.model import Inputs
from cards_core.muscles.command import FORCE
from cards_core.robot.elements import Muscle
from cards_core.robot.model import Robot
from cards_core.typing import Array

POINTS, ROUGH_POINTS = 256, 33
"""Of the table of a muscle; between them it is linear, within 2e-4 of the greatest force. Its ends
are found with a rough one."""

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
        ranges = [muscle.actuator.passive_range for muscle in robot.muscles]
        self._rows = np.array([i for i, span in enumerate(ranges) if span is not None], dtype=int)
        pulling = [robot.muscles[i] for i in self._rows]
        self.names: tuple[str, ...] = tuple(muscle.name for muscle in pulling)
        spans = np.array([span for span in ranges if span is not None]).reshape(-1, 2)
        rough = np.linspace(spans[:, 0], spans[:, 1], ROUGH_POINTS, axis=1)
        lower = np.array([muscle.tension_min for muscle in pulling])[:, None]
        upper = np.array([muscle.tension_max for muscle in pulling])[:, None]
        tensions = _least_tensions(pulling, rough)
        # where the tension changes from its least to its greatest limit; argmax: the first True
        first = np.maximum(np.argmax(tensions > lower, axis=1) - 1, 0)
        last = ROUGH_POINTS - np.argmax((tensions < upper)[:, ::-1], axis=1)
        last = np.clip(last, first + 1, ROUGH_POINTS - 1)
        each = np.arange(len(pulling))
        lengths = np.linspace(rough[each, first], rough[each, last], POINTS, axis=1)
        self._first, self._spacing = lengths[:, 0], lengths[:, 1] - lengths[:, 0]
        self._tensions = _least_tensions(pulling, lengths)

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


def _least_tensions(muscles: Sequence[Muscle], lengths: Array) -> Array:
    """Return least tensions [N] of muscles at lengths of their paths [m], shape (k, n) each."""
    out = np.zeros(lengths.shape)
    for group in make_groups(muscles, STEP)[0]:
        model, rows = group.model, group.rows
        asked = lengths[rows].ravel()
        # each muscle as many times as there are lengths
        repeated = {
            name: np.repeat(value, lengths.shape[1]) for name, value in vars(model.p).items()
        }
        model.p = SimpleNamespace(**repeated)
        kinds = np.full(asked.size, FORCE)
        least = Inputs(asked, 0.0 * asked, kinds, model.p.tension_min)
        tensions, _ = model.step(NUMPY, model.p, model.rest(asked), least)
        out[rows] = tensions.reshape(len(rows), -1)
    return out
