"""What the rods need of a simulator beyond what muscles need; `cards_muscle_plugin.gazebo` has it.

Everything but `system` works with these protocols, so it is tested without Gazebo.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from cards_muscle_plugin.ports import (
    Bodies,
    JointPort,
    LinkPort,
    MeasuredJoint,
    MovingLink,
    PulledLink,
)


class PlatePort(LinkPort, Protocol):
    """A link that no joint holds."""

    def move(self, twist: Sequence[float]) -> None:
        """Set its velocity for the next step: of its origin, angular, in its own axes, (6,)."""
        ...


class RodModelPort(Protocol):
    """The model that holds the plugin; see `cards_muscle_plugin.ports.ModelPort`."""

    path: tuple[str, ...]
    file: Path | None
    static: bool

    def exists(self) -> bool:
        """Whether it is still in the world."""
        ...

    def gravity(self) -> Sequence[float] | None:
        """Return the world's gravity, (3,), [m/s^2]; None if it is not known."""
        ...

    def link_names(self) -> list[str]:
        """Return the names of all links."""
        ...

    def link(self, name: str, *, moving: bool) -> PlatePort | None:
        """Return a link, None if there is none; velocities are measured if it is ``moving``."""
        ...

    def joint(self, name: str) -> JointPort | None:
        """Return a joint, None if there is none, and have it measured."""
        ...

    def bodies(
        self,
        links: Sequence[MovingLink],
        joints: Sequence[MeasuredJoint],
        pulled: Sequence[PulledLink],
    ) -> Bodies:
        """See `cards_muscle_plugin.ports.ModelPort`."""
        ...
