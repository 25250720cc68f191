"""What the colours of rods mean: curvature, bending stress or strain, and which rods are red."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.status import RodStatus
from cards_core.typing import Array
from cards_viz.colormap import TensionScale, linear_light
from cards_viz.rod_snapshot import CURVATURE, STRAIN, STRESS, RodSnapshot
from cards_viz.rod_tubes import alarmed, piece_values


@dataclass(frozen=True)
class Quantity:
    """Something that rods are coloured by.

    Attributes:
        title: As in the choice and the legend.
        unit: Of the legend.
        factor: Legend value by SI value.
        column: Of `RodSnapshot.lines`.
        first: Upper end of the scale to begin with, in the legend's unit.
    """

    title: str
    unit: str
    factor: float
    column: int
    first: float


QUANTITIES = {
    "curvature": Quantity("Curvature", "1/m", 1.0, CURVATURE, 0.5),
    "stress": Quantity("Bending stress", "MPa", 1e-6, STRESS, 50.0),
    "strain": Quantity("Largest strain", "‰", 1e3, STRAIN, 0.2),
}
"""By the name that the choice has."""

RED = {
    RodStatus.NEAR_LIMIT: 0.85,
    RodStatus.UNSTABLE: 1.0,
    RodStatus.UNREACHABLE: 1.0,
    RodStatus.NOT_CONVERGED: 1.0,
    RodStatus.HELD: 1.0,
    RodStatus.SINGULAR: 1.0,
    RodStatus.YIELD: 0.85,
}
"""How red rods turn, 0..1, by status; all others keep their colours."""


class RodColors:
    """Colours of all pieces of all rods.

    Args:
        robot: The robot.

    Attributes:
        chosen: Key of `QUANTITIES`.
        scales: Range of each quantity, in the unit of its legend; grows with what it sees.
    """

    def __init__(self, robot: RodRobot) -> None:
        self.names = [limb.name for limb in robot.limbs]
        self.chosen = "curvature"
        self.scales = {
            name: TensionScale(high=quantity.first) for name, quantity in QUANTITIES.items()
        }

    @property
    def quantity(self) -> Quantity:
        """The chosen one."""
        return QUANTITIES[self.chosen]

    @property
    def scale(self) -> TensionScale:
        """Range of the chosen one."""
        return self.scales[self.chosen]

    def reset(self) -> None:
        """Let the ranges begin anew."""
        for name, quantity in QUANTITIES.items():
            self.scales[name].high = quantity.first

    def values(self, lines: Array) -> Array:
        """Return the chosen quantity at all points, shape (n, k), in the legend's unit.

        Args:
            lines: As `RodSnapshot.lines`.
        """
        return np.asarray(self.quantity.factor * lines[:, :, self.quantity.column])

    def colors(self, snapshot: RodSnapshot, lines: Array) -> npt.NDArray[np.uint8]:
        """Return the colours of all pieces in linear light and widen the scale.

        Args:
            snapshot: Tells which rods are red.
            lines: The points between which the pieces lie, shape (n, l, 6).

        Returns:
            Shape (n (l - 1), 3).
        """
        self.scale.include(self.values(snapshot.lines))
        plain = self.scale.colors(piece_values(self.values(lines)))
        # viser takes the colours of instances as linear light
        return linear_light(alarmed(plain, self.alarm(snapshot)).reshape(-1, 3))

    def alarm(self, snapshot: RodSnapshot) -> Array:
        """Return how red every rod is, 0..1, shape (n,): those that it is about, or all."""
        level = RED.get(snapshot.status, 0.0)
        about = {snapshot.limb, *snapshot.limbs}
        if level and about & set(self.names):
            return np.array([level if name in about else 0.0 for name in self.names])
        return np.full(len(self.names), level)
