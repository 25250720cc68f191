"""Which muscles take a tension command, and what the others pull.

A ligament takes no command: its tension follows from its length and rate, and stands on the right
of the equation of motion,

    -L_a' f_a = M qdd + C + G + w_e + L_p' f_p(l, l')

A user may also declare muscles passive: an elastic cable that nobody winds is a spring.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cards_core.analysis.tension_distribution.base import TensionLimitError
from cards_core.dynamics.interface import Dynamics
from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.command import NO_COMMAND
from cards_core.robot.actuators import Cable
from cards_core.robot.model import Robot
from cards_core.typing import Array

INSTANT = 1e-9
"""Time step of the actuator models, [s]: so short that nothing is treated as stiff."""


class PassiveMuscles:
    """The muscles of a robot that pull without being told to.

    Args:
        dynamics: Of the robot; gives the lengths at home, to which elastic cables without a rest
            length are wound.
        names: Muscles that are passive besides those that take no tension command.

    Attributes:
        active: Indices of the muscles that take a tension, shape (m_a,).
        passive: Indices of the others, shape (m_p,).

    Raises:
        UnknownNameError: No muscle has this name.
        TensionLimitError: An ideal cable was declared passive: it has no law.
    """

    def __init__(self, dynamics: Dynamics, names: Sequence[str] = ()) -> None:
        robot = dynamics.robot
        for name in names:
            muscle = robot.muscle(name)
            if isinstance(muscle.actuator, Cable) and muscle.actuator.stiffness is None:
                raise TensionLimitError(
                    f"muscle '{name}' is an ideal cable: without a command it has no tension of "
                    "its own (expected: a muscle with a stiffness)"
                )
        passive = [
            i
            for i, muscle in enumerate(robot.muscles)
            if muscle.name in names or "force" not in muscle.actuator.accepted_commands
        ]
        self.passive: npt.NDArray[np.intp] = np.array(passive, dtype=np.intp)
        self.active: npt.NDArray[np.intp] = np.array(
            [i for i in range(len(robot.muscles)) if i not in passive], dtype=np.intp
        )
        self._bank: ActuatorBank | None = None
        if passive:
            tree = dynamics.tree
            # no command: ideal models do not occur here, all others have a state or a law
            self._bank = ActuatorBank(_only(robot, passive), INSTANT, "numeric")
            home = dynamics.update(tree.home, np.zeros(tree.nv)).muscle_lengths
            self._bank.reset(home[self.passive])
            self._rest = self._bank.state.copy()
            self._none = np.full(len(passive), NO_COMMAND)

    def tensions(self, lengths: Array, rates: Array) -> Array:
        """Return the tensions of the passive muscles, shape (m_p,), [N].

        Args:
            lengths: Of all muscles, shape (m,), [m].
            rates: Of all muscles, shape (m,), [m/s].
        """
        if self._bank is None:
            return np.zeros(0)
        self._bank.state[:] = self._rest
        out = self._bank.step(
            lengths[self.passive], rates[self.passive], self._none, np.zeros(len(self.passive))
        )
        return out.copy()


def _only(robot: Robot, rows: Sequence[int]) -> Robot:
    return dataclasses.replace(robot, muscles=tuple(robot.muscles[i] for i in rows))
