"""Rods, boxes and spheres: place, mass, inertia, lowest point, and where cables leave them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cards_core.robot.elements import Box, Cylinder, Inertia, Sphere
from cards_core.spatial import Pose, rpy_matrix
from cards_core.tensegrity import kinds
from cards_core.tensegrity.parts import Node
from cards_core.typing import Matrix3, Vector3
from cards_core.yaml_fields import Field

PARALLEL = 1e-12
"""Sine of the angle below which a cable leaves along the axis of its rod."""


@dataclass(eq=False)
class Rigid:
    """A rod, box or sphere with its place in the world.

    Attributes:
        kind: Its parameters.
        nodes: Both ends, or the centre of a sphere.
        name, tags, part: Of its pair or node, and the path of the part it is in.
        at: Where it is written.
    """

    kind: kinds.Rod | kinds.Box | kinds.Ball
    nodes: tuple[Node, ...]
    name: str
    tags: tuple[str, ...]
    part: str
    at: Field

    @property
    def length(self) -> float:
        """Distance of its nodes, [m]."""
        return float(np.linalg.norm(self.nodes[-1].position - self.nodes[0].position))

    @property
    def center(self) -> Vector3:
        """Its centre of mass, shape (3,), [m]."""
        place: Vector3 = (self.nodes[0].position + self.nodes[-1].position) / 2.0
        return place

    @property
    def geometry(self) -> Cylinder | Box | Sphere:
        """Its shape, along z."""
        match self.kind:
            case kinds.Rod():
                return Cylinder(self.kind.radius, self.length)
            case kinds.Box():
                return Box(np.array([self.kind.width, self.kind.height, self.length]))
        return Sphere(self.kind.radius)

    @property
    def rotation(self) -> Matrix3:
        """Shape to world."""
        if isinstance(self.kind, kinds.Ball):
            return np.eye(3)
        axis = (self.nodes[1].position - self.nodes[0].position) / self.length
        return upright_to(axis) if isinstance(self.kind, kinds.Box) else along(axis)

    @property
    def pose(self) -> Pose:
        """Shape to world, [m]."""
        return Pose(self.rotation, self.center)

    def inertia(self) -> Inertia:
        """Return mass, centre and tensor in world axes, of a uniform solid."""
        match self.geometry:
            case Cylinder(radius, length):
                mass = self.kind.mass_of(math.pi * radius**2 * length)
                across = mass * (3.0 * radius**2 + length**2) / 12.0
                moments = np.array([across, across, mass * radius**2 / 2.0])
            case Sphere(radius):
                mass = self.kind.mass_of(4.0 / 3.0 * math.pi * radius**3)
                moments = np.full(3, 0.4 * mass * radius**2)
            case Box(size):
                mass = self.kind.mass_of(float(np.prod(size)))
                squares = size**2
                moments = mass / 12.0 * (squares.sum() - squares)
        turn = self.rotation
        return Inertia(mass, self.center, (turn * moments) @ turn.T)

    def lowest(self) -> float:
        """Return the height of its lowest point, [m]."""
        z = self.rotation[2]
        match self.geometry:
            case Cylinder(radius, length):
                below = abs(float(z[2])) * length / 2.0 + radius * math.hypot(z[0], z[1])
            case Sphere(radius):
                below = radius
            case Box(size):
                below = float(np.abs(z) @ size) / 2.0
        return float(self.center[2]) - below

    def surface(self, node: Node, towards: Vector3, degrees: float) -> Vector3:
        """Return where a cable from one of its nodes leaves its surface, in the world, [m].

        On a rod or box: beside the node, at a right angle to the axis, on the side that faces
        the other end, turned about the axis by an angle. On a sphere: straight towards that end.
        This is `tgRodInfo::getConnectionPoint` of NASA's toolkit.

        Args:
            node: One of its nodes.
            towards: Place of the other node of the cable, shape (3,), [m].
            degrees: Angle about the axis.
        """
        place = node.position
        direction = towards - place
        direction = direction / np.linalg.norm(direction)
        if isinstance(self.kind, kinds.Ball):
            out: Vector3 = place + self.kind.radius * direction
            return out
        axis = (self.nodes[1].position - self.nodes[0].position) / self.length
        side = direction - axis * float(axis @ direction)
        if np.linalg.norm(side) < PARALLEL:
            side = np.cross(axis, _beside(axis))
        side = side / np.linalg.norm(side)
        if degrees:
            angle = math.radians(degrees)
            side = side * math.cos(angle) + np.cross(axis, side) * math.sin(angle)
        # of a box the toolkit takes half its width on all sides
        reach = self.kind.radius if isinstance(self.kind, kinds.Rod) else self.kind.width / 2.0
        out = place + reach * side
        return out


def _beside(axis: Vector3) -> Vector3:
    """Return a fixed vector at a right angle to an axis; the toolkit's, with z up."""
    x, y, z = axis
    found = np.array([z + y, -x, -x])
    return found if found.any() else np.array([1.0, 0.0, 0.0])


def along(axis: Vector3) -> Matrix3:
    """Return a rotation that takes z to the line of a unit axis, with roll 0.

    Its angles are rounded to 1e-12 rad, so that files have few digits. The line has no sense:
    a cylinder may point either way.
    """
    x, y, z = axis if (axis[2], axis[1], axis[0]) >= (0.0, 0.0, 0.0) else -axis
    across = math.hypot(x, y)
    if across < 1e-12:
        return np.eye(3)
    return rpy_matrix(0.0, round(math.atan2(across, z), 12), round(math.atan2(y, x), 12))


def upright_to(axis: Vector3) -> Matrix3:
    """Return the smallest rotation from z to a unit axis; half a turn about x if it is -z."""
    cosine = float(axis[2])
    cross = np.array([-axis[1], axis[0], 0.0])
    norm = float(np.linalg.norm(cross))
    if norm < 1e-12:
        return np.eye(3) if cosine > 0.0 else np.diag([1.0, -1.0, -1.0])
    x, y, _ = cross / norm
    c, s = cosine, norm
    return np.array(
        [
            [c + x * x * (1 - c), x * y * (1 - c), y * s],
            [x * y * (1 - c), c + y * y * (1 - c), -x * s],
            [-y * s, x * s, c],
        ]
    )
