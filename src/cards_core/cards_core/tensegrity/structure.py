"""A tensegrity structure as data: rigid bodies and the cables between them. No file, no engine.

World axes with z up; bodies stand as built, their axes those of the world. SI units throughout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from cards_core.checks import by_name
from cards_core.robot.actuators import ImpedanceControl
from cards_core.robot.elements import Box, Cylinder, Inertia, Sphere
from cards_core.spatial import Pose
from cards_core.tensegrity.kinds import Color, Winch
from cards_core.typing import Vector3


@dataclass(frozen=True, eq=False)
class Solid:
    """A rod, box or sphere of a body.

    Attributes:
        name: Names of its nodes, after the part that it is in.
        tags: Of its pair or node.
        geometry: Cylinder and box along z.
        pose: Shape to body, [m].
        mass: [kg].
        friction, roll_friction, restitution: Of its surface.
        color: Red, green, blue, opacity.
        nodes: Names of the nodes at its ends, one of a sphere.
    """

    name: str
    tags: tuple[str, ...]
    geometry: Cylinder | Box | Sphere
    pose: Pose
    mass: float
    friction: float
    roll_friction: float
    restitution: float
    color: Color
    nodes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Body:
    """Solids that share nodes, as one rigid body.

    Attributes:
        name: Of the part that all its solids are in, else of its first solid.
        position: Centre of mass in the world, shape (3,), [m]; the body's origin.
        inertia: About the origin, in world axes; masses of solids that overlap add up.
        solids: What it consists of.
        point_masses: Place in the body [m] and mass [kg] of each.
        joints: Places in the body where several solids meet, and the radius to draw, [m].
    """

    name: str
    position: Vector3
    inertia: Inertia
    solids: tuple[Solid, ...]
    point_masses: tuple[tuple[Vector3, float], ...] = ()
    joints: tuple[tuple[Vector3, float], ...] = ()

    @property
    def mass(self) -> float:
        """Mass of all of it, [kg]."""
        return self.inertia.mass


@dataclass(frozen=True, eq=False)
class Anchor:
    """An end of a cable.

    Attributes:
        body: Name of the body.
        node: Name of the node, after its part.
        position: In the body, shape (3,), [m].
    """

    body: str
    node: str
    position: Vector3


@dataclass(frozen=True, eq=False)
class Cable:
    """A cable between two bodies.

    Attributes:
        name: ``part.cable``, of a bond ``first-second.cable``.
        index: Its number as NASA's toolkit counts: the cables of a structure, in the order of its
            pairs and bonds, before those of the parts within.
        tags: Of its pair; a bond adds the names of both parts.
        first, second: Its ends.
        node_distance: Distance of its nodes, [m].
        length: Distance of its ends as built, [m].
        rest_length: L0, [m].
        stiffness, damping: k [N/m] and b [N s/m].
        pretension: k (length - L0), [N], negative where it is slack.
        tension_max: Of its actuator, or k L0, [N].
        actuator: What changes L0; None of a passive cable.
        control: Its impedance law.
        contact: Whether it touches rods, boxes and terrain.
        friction: Capstan coefficient mu against what it touches.
        min_length, min_rest_length: Limits of its winch, [m].
    """

    name: str
    index: int
    tags: tuple[str, ...]
    first: Anchor
    second: Anchor
    node_distance: float
    length: float
    rest_length: float
    stiffness: float
    damping: float
    pretension: float
    tension_max: float
    actuator: Winch | None
    control: ImpedanceControl
    contact: bool
    friction: float
    min_length: float
    min_rest_length: float


@dataclass(frozen=True, eq=False)
class Structure:
    """What a structure file describes.

    Attributes:
        name: Of the structure.
        description: One sentence, or empty.
        bodies: In the order in which their first solids are built.
        cables: In the order of their index.
        nodes: Place of every node in the world by its name after its part, [m].
        notes: What the SDF does not say, or what may be a mistake.
        source: File it was read from.
    """

    name: str
    description: str
    bodies: tuple[Body, ...]
    cables: tuple[Cable, ...]
    nodes: Mapping[str, Vector3]
    notes: tuple[str, ...] = field(default=())
    source: str | None = None

    @property
    def mass(self) -> float:
        """Mass of all bodies, [kg]."""
        return float(sum(body.mass for body in self.bodies))

    @property
    def center_of_mass(self) -> Vector3:
        """Of all bodies, in the world, shape (3,), [m]."""
        weighted = [body.mass * body.position for body in self.bodies]
        return np.asarray(np.sum(weighted, axis=0)) / self.mass

    def body(self, name: str) -> Body:
        """Return a body by name. Raises `UnknownNameError`."""
        return by_name(self.bodies, name, "body")

    def cable(self, name: str) -> Cable:
        """Return a cable by name. Raises `UnknownNameError`."""
        return by_name(self.cables, name, "cable")
