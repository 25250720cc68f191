"""What the muscles that take no command ask of the joints, for controllers.

A ligament takes no command: its tension follows from its length and rate, and stands on the right
of the equation of motion beside the weight,

    M qdd + C + G + L_p' f_p(l, l') = -L' f + S tau
"""

from __future__ import annotations

import dataclasses

import numpy as np

from cards_core.dynamics import make_dynamics
from cards_core.dynamics.interface import Backend
from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.command import NO_COMMAND
from cards_core.robot.model import Robot
from cards_core.typing import Array

INSTANT = 1e-9
"""Time step of the actuator models, [s]; laws of passive muscles have no state, so it is idle."""


class PassiveLoad:
    """``L_p' f_p(l, l')`` of the muscles of a robot that take no tension command.

    Args:
        robot: The description, with these muscles.
        backend: ``compiled`` or ``numeric``.

    Attributes:
        names: Of these muscles.
    """

    def __init__(self, robot: Robot, backend: Backend = "compiled") -> None:
        muscles = tuple(m for m in robot.muscles if not m.takes_tension)
        passive = dataclasses.replace(robot, muscles=muscles)
        self.names: tuple[str, ...] = tuple(muscle.name for muscle in muscles)
        self._dynamics = make_dynamics(passive, backend)
        self._bank = ActuatorBank(passive, INSTANT, backend)
        tree = self._dynamics.tree
        home = self._dynamics.update(tree.home, np.zeros(tree.nv)).muscle_lengths
        self._bank.reset(home)
        self._kinds = np.full(len(muscles), NO_COMMAND)
        self._values = np.zeros(len(muscles))

    def __call__(self, q: Array, qd: Array) -> Array:
        """Return the joint forces at a state, shape (nv,), [Nm] or [N]; on the side of G.

        Args:
            q: Joint coordinates, shape (nq,).
            qd: Joint velocities, shape (nv,).
        """
        state = self._dynamics.update(q, qd)
        jacobian = state.muscle_jacobian
        tensions = self._bank.step(state.muscle_lengths, jacobian @ qd, self._kinds, self._values)
        load: Array = tensions @ jacobian
        return load
