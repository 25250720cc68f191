"""Muscles and actuator states in one message.

``muscle_states`` lists the muscles and then, for each actuator with states such as activation or
temperature, one entry per state (`cards_ros.messages.MuscleStateSlots`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cards_ros.messages import NameOrder


class MuscleStateNames:
    """Tells muscles and actuator states of ``muscle_states`` apart.

    Args:
        muscles: Names of the robot's muscles.
    """

    def __init__(self, muscles: Sequence[str]) -> None:
        self._muscles = frozenset(muscles)
        self._order = NameOrder(muscles, "muscle")
        self._last: tuple[str, ...] | None = None
        self._places: Any = None
        self._states: tuple[tuple[str, int], ...] = ()

    def places(self, names: tuple[str, ...]) -> tuple[Any, tuple[tuple[str, int], ...]]:
        """Return where the muscles are, in their own order, and each state with its place.

        Args:
            names: Of a message.

        Raises:
            JointSetError: A muscle is missing or listed twice, or a name is neither a muscle nor
                a state of one.
        """
        if names is self._last:
            return self._places, self._states
        rest = [
            index
            for index, name in enumerate(names)
            if name in self._muscles or name.rpartition("/")[0] not in self._muscles
        ]
        order = self._order.order(tuple(names[index] for index in rest))
        self._places = np.array(rest, dtype=np.intp)[order]
        states = sorted(set(range(len(names))) - set(rest))
        self._states = tuple((names[index], index) for index in states)
        self._last = names
        return self._places, self._states
