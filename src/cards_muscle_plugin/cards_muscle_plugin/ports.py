"""What the plugin needs of a simulator, as protocols; `cards_muscle_plugin.gazebo` has Gazebo's.

Everything but `gazebo` and `system` works with these, so it is tested without Gazebo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cards_core.typing import Array


@dataclass(frozen=True)
class StepInfo:
    """Where time is, as a system is told before and after a step.

    Attributes:
        time: Simulated time at the end of the step that is being done, [ns].
        dt: Time step, [ns]; 0 while paused.
        paused: Time stands still.
    """

    time: int
    dt: int
    paused: bool


@dataclass(frozen=True)
class JointInfo:
    """A joint as the simulator describes it.

    Attributes:
        name: Relative to the model.
        kind: ``revolute``, ``prismatic`` ... in SDFormat's words.
        parent: Parent link, relative to the model, or ``world``.
        child: Child link.
    """

    name: str
    kind: str
    parent: str
    child: str


class LinkPort(Protocol):
    """A link in the simulator."""

    def read_pose(self, pose: Array) -> bool:
        """Write the link-to-world matrix, shape (4, 4); False if it is not known (yet)."""
        ...

    def read_twist(self, twist: Array) -> bool:
        """Write velocity of the origin and angular velocity in world axes; False as above."""
        ...

    def add_wrench(self, wrench: Sequence[float]) -> None:
        """Apply force and torque about the link's origin, in world axes, in the next step."""
        ...


class JointPort(Protocol):
    """A joint with axes in the simulator."""

    def read(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """Return its positions and velocities; None if they are not known (yet)."""
        ...

    def put(self, positions: Sequence[float]) -> None:
        """Put it to positions, at rest, before the next step."""
        ...

    def drive(self, efforts: Sequence[float]) -> None:
        """Apply a torque or force about or along each of its axes in the next step."""
        ...


MovingLink = tuple[LinkPort, Array, Array]
"""A link, where its pose goes, shape (4, 4), and where its twist goes, shape (6,)."""

MeasuredJoint = tuple[JointPort, Array, Array]
"""A joint, and where its positions and its velocities go, shape (number of axes,) each."""

PulledLink = tuple[int, LinkPort]
"""Row of the table of wrenches, and the link that gets it."""

KNOWN = -1
"""Answer of `Bodies.read`: the motion of all is known."""


class Bodies(Protocol):
    """What is read and pulled in each step."""

    def read(self) -> int:
        """Write poses, twists and coordinates to their places.

        Returns:
            `KNOWN`, or the index of the first link, or the number of links plus the index of the
            first joint, whose motion the simulator does not know (yet).
        """
        ...

    def pull(self, wrenches: Array) -> None:
        """Apply wrenches in the next step.

        Args:
            wrenches: Force and torque about each link's origin, world axes, shape (n, 6).
        """
        ...


class HoldingModelPort(Protocol):
    """The model that holds a plugin. Names are relative to it: ``link``, ``nested::link``.

    Attributes:
        path: Names of the models from the world down to this one.
        file: File that it was read from, if the simulator knows.
        static: It never moves.
    """

    path: tuple[str, ...]
    file: Path | None
    static: bool

    def exists(self) -> bool:
        """Whether it is still in the world."""
        ...

    def link_names(self) -> list[str]:
        """Return the names of all links, those of nested models too."""
        ...

    def link(self, name: str, *, moving: bool) -> LinkPort | None:
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
        """Return what reads and pulls moving links and joints of this model together.

        Args:
            links: Links that are read.
            joints: Joints that are read.
            pulled: Links that are pulled.
        """
        ...


class ModelPort(HoldingModelPort, Protocol):
    """The model that holds the plugin of muscles."""

    def joints(self) -> list[JointInfo]:
        """Return all joints, those of nested models too, in the order of the file."""
        ...

    def neighbour(self, model: str, link: str) -> LinkPort | None:
        """Measure a link of another model of the world and return it, or None if it is missing."""
        ...


class WorldPort(Protocol):
    """Control of time. Each request takes effect at the end of the present step.

    The methods return False if the simulator cannot be reached.
    """

    def pause(self, paused: bool) -> bool:
        """Stop time, or let it go on."""
        ...

    def step(self) -> bool:
        """Do one step while paused."""
        ...

    def rewind(self, paused: bool) -> bool:
        """Put the whole world back to time zero, and stop time there or not."""
        ...

    def stop(self) -> bool:
        """End the simulator."""
        ...
