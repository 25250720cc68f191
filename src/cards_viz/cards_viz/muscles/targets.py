"""Sliders for what the controller is to reach: joints, or the position of the hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import viser

from cards_core.robot.model import Tree
from cards_core.typing import Array, Vector3
from cards_viz.muscles.interface import MuscleCommands, MuscleSnapshot
from cards_viz.pages.widgets import Axis, Guard, SliderGroup

MARGIN = 0.25
"""How far a hand can be sent out of the box around the robot at home, relative to its size."""

SPAN = {"rad": np.pi, "m": 1.0}
"""Ends of the sliders of joints without limits."""


class TargetPanel:
    """A slider for each controlled coordinate; it follows the reference until it is moved.

    Args:
        gui: Where to add it.
        tree: Coordinates of the robot.
        box: Corners around the robot at home, shapes (3,), [m].
        commands: Told of targets.
        run: Runs commands.
    """

    def __init__(
        self,
        gui: viser.GuiApi,
        tree: Tree,
        box: tuple[Vector3, Vector3],
        commands: MuscleCommands,
        run: Guard,
    ) -> None:
        self._gui, self._tree, self._commands, self._run = gui, tree, commands, run
        margin = MARGIN * float(np.linalg.norm(box[1] - box[0]))
        self._low, self._high = box[0] - margin, box[1] + margin
        self._folder = gui.add_folder("Target", visible=False, expand_by_default=False)
        self._names: tuple[str, ...] = ()
        self.group: SliderGroup | None = None

    def draw(self, snapshot: MuscleSnapshot) -> None:
        """Follow the desired coordinates of a snapshot."""
        known = snapshot.desired is not None and snapshot.controller is not None
        usable = known and set(snapshot.units) <= SPAN.keys() and not snapshot.real
        if usable and tuple(snapshot.names) != self._names:
            self._build(tuple(snapshot.names), snapshot.units)
        self._folder.visible = usable
        if usable and self.group is not None and snapshot.desired is not None:
            self.group.follow(snapshot.desired)

    def _build(self, names: tuple[str, ...], units: Sequence[str]) -> None:
        if self.group is not None:
            for slider in self.group.sliders:
                slider.remove()
        self._names = names
        axes = [self._axis(name, unit) for name, unit in zip(names, units, strict=True)]

        def send(target: Array) -> None:
            self._run(lambda: self._commands.set_target(names, target))

        with self._folder:
            self.group = SliderGroup(self._gui, axes, send)

    def _axis(self, name: str, unit: str) -> Axis:
        factor, shown, step = (180.0 / np.pi, "°", 0.5) if unit == "rad" else (1e3, "mm", 1.0)
        if name in self._tree.position_names:
            place = self._tree.position_names.index(name)
            low, high = float(self._tree.lower[place]), float(self._tree.upper[place])
        else:
            low, high = float(self._low["xyz".index(name)]), float(self._high["xyz".index(name)])
        span = SPAN[unit]
        low, high = low if np.isfinite(low) else -span, high if np.isfinite(high) else span
        hint = "The controller goes there smoothly and stays; Reset goes back to its reference"
        return Axis(f"{name} [{shown}]", low, high, factor, step, hint)
