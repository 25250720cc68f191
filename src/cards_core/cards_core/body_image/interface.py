"""What a body image is: lengths of the muscles in a pose under tension, and their derivatives.

    l = f(q) + g(q, T),        G = dl/dq

f is the length of a path over rigid links, g what tension adds: wires and elastic units stretch,
so that an encoder at the motor reads less than the path is long. Controllers that hold muscles at
lengths, and estimators that know a robot by its muscles alone, see the robot through this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cards_core.errors import ParameterError, ShapeError
from cards_core.robot.model import Robot
from cards_core.typing import Array


class BodyImage(ABC):
    """Model of the muscle lengths of a robot.

    Attributes:
        kind: ``geometric``, ``polynomial`` or ``learned``.
        robot: Whose muscles they are.
    """

    kind: ClassVar[str]

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._q_shape = (robot.tree.nq,)
        self._t_shape = (len(robot.muscles),)

    @abstractmethod
    def evaluate(self, q: Array, tensions: Array) -> tuple[Array, Array]:
        """Return l, shape (m,), [m], and G = dl/dq in the tangent space, shape (m, nv).

        They are overwritten by the next call.

        Args:
            q: Coordinates, shape (nq,).
            tensions: T, shape (m,), [N].
        """

    def lengths(self, q: Array, tensions: Array | None = None) -> Array:
        """Return l as a new array, shape (m,), [m]; without tension if None.

        Raises:
            ShapeError: The arguments do not fit the robot.
        """
        pull = np.zeros(self._t_shape) if tensions is None else tensions
        if pull.shape != self._t_shape:
            raise ShapeError(f"tensions have shape {pull.shape}, expected {self._t_shape}")
        return self.evaluate(self.robot.tree.check_q(q), pull)[0].copy()


@dataclass(frozen=True, eq=False)
class Stretch:
    """Linear model of what tension does to a length that is read at the motor.

        g(q, T) = -(alpha + beta f(q)) T

    Attributes:
        alpha: Compliance of elastic units and fixtures, shape (m,), [m/N], >= 0.
        beta: Compliance per length of the wire, 1/(E A), shape (m,), [1/N], >= 0.

    Raises:
        ParameterError: A number is negative or not finite.
    """

    alpha: Array
    beta: Array

    def __post_init__(self) -> None:
        """Refuse what is no compliance."""
        for name in ("alpha", "beta"):
            values = getattr(self, name)
            if not (np.isfinite(values).all() and np.all(values >= 0.0)):
                raise ParameterError(f"{name} is {values}; expected finite numbers >= 0")

    @classmethod
    def none(cls, muscles: int) -> Stretch:
        """Return wires that do not stretch, for m muscles."""
        return cls(np.zeros(muscles), np.zeros(muscles))
