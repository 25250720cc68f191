"""What a controller knows of its robot: the equation of motion, with the muscles it can command.

    M qdd + C + G + w(q, qd) = -L' f + S tau

L and f belong to the muscles that take a tension; tau are the efforts of the joint motors, if any
(`cards_core.robot.motors`). Muscles that take none, such as ligaments, pull all the same: w is
their load, ``L_p' f_p(l, l')``. Those that pull before they are told to, such as Hill-type
muscles, cannot be commanded less than they have, ``f >= f_p(l)``.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np

from cards_core.control.passive_tension import PassiveTension
from cards_core.dynamics import make_dynamics
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import ParameterError
from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.command import NO_COMMAND
from cards_core.robot.model import Robot
from cards_core.typing import Array, Backend

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


class ControlModel:
    """The equation of motion of a robot as a controller uses it; see the module.

    Args:
        robot: The description, with all of its muscles.
        backend: ``compiled`` or ``numeric``.
        dynamics: Replaces the dynamics of ``robot.commanded()``.

    Attributes:
        robot: As given.
        commanded: The robot with only those muscles that take a tension.
        dynamics: M, C, G and L, with the rows of L of the commanded muscles. Its arrays change
            with every update, so a model belongs to one controller at a time.
        load: w at a state, shape (nv,); None where all muscles take a tension.

    Raises:
        ParameterError: ``dynamics`` has muscles that take no tension.
    """

    def __init__(
        self, robot: Robot, backend: Backend = "compiled", *, dynamics: Dynamics | None = None
    ) -> None:
        self.robot = robot
        self.commanded = robot.commanded()
        self.dynamics = dynamics or make_dynamics(self.commanded, backend)
        for muscle in self.dynamics.robot.muscles:
            if not muscle.takes_tension:
                raise ParameterError(
                    f"muscle '{muscle.name}' takes no tension command: it is passive (expected: "
                    "the dynamics of robot.commanded())"
                )
        self.load: PassiveLoad | None = None
        if self.commanded is not robot:
            self.load = PassiveLoad(robot, backend)

    @cached_property
    def passive(self) -> PassiveTension | None:
        """Least tensions f_p; None where muscles do only what they are told."""
        passive = PassiveTension(self.commanded)
        return passive if passive.names else None
