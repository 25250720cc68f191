"""What the rods need of a simulator beyond what muscles need; `cards_muscle_plugin.gazebo` has it.

Everything but `system` works with these protocols, so it is tested without Gazebo.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cards_muscle_plugin.ports import HoldingModelPort, LinkPort


class PlatePort(LinkPort, Protocol):
    """A link that no joint holds."""

    def move(self, twist: Sequence[float]) -> None:
        """Set its velocity for the next step: of its origin, angular, in its own axes, (6,)."""
        ...


class RodModelPort(HoldingModelPort, Protocol):
    """The model that holds the plugin."""

    def gravity(self) -> Sequence[float] | None:
        """Return the world's gravity, (3,), [m/s^2]; None if it is not known."""
        ...

    def link(self, name: str, *, moving: bool) -> PlatePort | None:
        """Return a link, None if there is none; velocities are measured if it is ``moving``."""
        ...
