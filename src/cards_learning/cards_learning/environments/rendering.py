"""Pictures of the robots of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cards_core.errors import UnknownNameError
from cards_learning.environments.task import Task

if TYPE_CHECKING:
    from cards_viz.film.picture import Pictures

MODES = ("rgb_array",)

SIZE = (640, 480)
"""Width and height, [pixel]."""


class Renderer:
    """Draws robots of a task off-screen; what it needs is made with the first picture.

    Args:
        task: The task.
        mode: One of `MODES`, or None: no pictures.

    Raises:
        UnknownNameError: No such mode.
    """

    def __init__(self, task: Task, mode: str | None) -> None:
        if mode is not None and mode not in MODES:
            raise UnknownNameError("render_mode", mode, MODES)
        self._task = task
        self._pictures: Pictures | None = None

    def draw(self, i: int) -> npt.NDArray[np.uint8]:
        """Return a picture of robot i, shape (480, 640, 3), with its target.

        Raises:
            CardsError: Nothing on this machine can draw off-screen.
        """
        if self._pictures is None:
            from cards_viz.film.picture import Pictures
            from cards_viz.muscles.scene import Scene

            scene = Scene(self._task.batch.robot)
            self._pictures = Pictures(scene, width=SIZE[0], height=SIZE[1])
        state, target = self._task.batch.state, self._task.target(i)
        targets = None if target is None else target[None]
        return self._pictures.draw(state.q[i], state.tensions[i], targets)

    def close(self) -> None:
        """Let go of the graphics context."""
        if self._pictures is not None:
            self._pictures.close()
            self._pictures = None
