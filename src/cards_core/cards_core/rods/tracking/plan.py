"""The way of one command, cut into steps; steps that are refused are halved."""

from __future__ import annotations

import math

import numpy as np

from cards_core.rods.tracking.answer import Remaining
from cards_core.rods.tracking.path import STEP_ANGLE, STEP_LENGTH, Target, Way, between
from cards_core.typing import Array

MOST_LOAD_STEPS = 200.0
"""A change of load is cut into no more steps: near singular poses the estimate is huge."""


def load_steps(stiffness: Array, load: Array) -> float:
    """Return into how many steps a change of the wrench on the plate is to be cut.

    As many as the plate would move if it stayed as stiff as it is.

    Args:
        stiffness: Of the plate, shape (6, 6).
        load: Change of the wrench, shape (6,).
    """
    give = np.linalg.lstsq(stiffness, load, rcond=None)[0]
    way = np.linalg.norm(give[:3]) / STEP_LENGTH + np.linalg.norm(give[3:]) / STEP_ANGLE
    return max(min(float(way), MOST_LOAD_STEPS), 1.0)


class Plan:
    """Where a command has led to, and how far the next step goes.

    Args:
        origin, target: Ends of the way, of one kind.
        way: Between them.
        steps: Into how many steps it is cut; 0: there is nowhere to go.
        halvings: How often a step may be halved.
        cautious: Begin with the shortest step.

    Attributes:
        origin, target: As given.
        fraction: Part of the way that has been gone, 0..1.
        full: Longest step, as a part of the way.
    """

    def __init__(
        self,
        origin: Target,
        target: Target,
        way: Way,
        steps: float,
        halvings: int,
        *,
        cautious: bool = False,
    ) -> None:
        self.origin, self.target = origin, target
        self._way = way
        self.fraction = 0.0 if steps > 0.0 else 1.0
        self.full = 1.0 / max(math.ceil(steps), 1)
        least = 0.5**halvings
        self._least = min(self.full, least / max(steps, least))
        self._stride = self._least if cautious else self.full

    @property
    def arrived(self) -> bool:
        """Whether the end has been reached."""
        return self.fraction >= 1.0

    @property
    def remaining(self) -> Remaining:
        """What is left of the way."""
        if self.arrived:
            return Remaining()
        left, way = 1.0 - self.fraction, self._way
        return Remaining(left * way.translation, left * way.rotation, left * way.joints, left)

    def next(self) -> tuple[float, Target]:
        """Return the fraction and the target of the next step."""
        fraction = min(1.0, self.fraction + self._stride)
        if 1.0 - fraction < 1e-9:
            fraction = 1.0
        return fraction, between(self.origin, self.target, fraction)

    def accept(self, fraction: float) -> None:
        """Note that a step has been made; the next one may be longer."""
        self.fraction = fraction
        self._stride = min(self.full, 2.0 * self._stride)

    def halve(self) -> bool:
        """Shorten the next step; returns False if there is no shorter one."""
        if self._stride <= self._least:
            return False
        self._stride = max(self._least, 0.5 * self._stride)
        return True
