"""The body image of a description: paths over its links and surfaces."""

from __future__ import annotations

import numpy as np

from cards_core.body_image.interface import BodyImage, Stretch
from cards_core.dynamics import make_dynamics
from cards_core.muscles.actuators.springs import Elongations
from cards_core.robot.model import Robot
from cards_core.typing import Array, Backend


class GeometricBodyImage(BodyImage):
    """f(q) of the muscle paths; g of the springs of series elastic units and of a linear stretch.

    Args:
        robot: The description. Behind a spring, l is what the winder has paid out.
        stretch: Of its muscles beside their springs, see `Stretch`; none if None.
        backend: ``compiled`` or ``numeric``.

    Attributes:
        rigid: Whether tension does not matter.
        dynamics: Whose paths they are.
    """

    kind = "geometric"

    def __init__(
        self, robot: Robot, stretch: Stretch | None = None, backend: Backend = "compiled"
    ) -> None:
        super().__init__(robot)
        self.stretch = stretch or Stretch.none(len(robot.muscles))
        self._springs = Elongations(robot.muscles)
        stretched = self.stretch.alpha.any() or self.stretch.beta.any()
        self.rigid = not (stretched or self._springs.rows)
        self.dynamics = make_dynamics(robot, backend)
        self._still = np.zeros(robot.tree.nv)

    def evaluate(self, q: Array, tensions: Array) -> tuple[Array, Array]:
        """Return l and dl/dq; see `BodyImage.evaluate`."""
        state = self.dynamics.update(q, self._still)
        lengths, jacobian = state.muscle_lengths, state.muscle_jacobian
        if self.rigid:
            return lengths, jacobian
        share = 1.0 - self.stretch.beta * tensions
        lengths = lengths * share - self.stretch.alpha * tensions
        if self._springs.rows:
            lengths = lengths - self._springs(tensions)
        return lengths, jacobian * share[:, None]
