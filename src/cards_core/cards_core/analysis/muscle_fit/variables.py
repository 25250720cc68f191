"""What a fit may change: via points within a box or a ball, their mirror images, and wrap radii.

All are one vector y without unit: a point is ``place + size * y`` with three entries of y in
[-1, 1] each, or of a norm of at most 1; a radius is between its limits, at -1 and 1. Sets are
convex, so that the nearest vector within them exists and is found in one step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cards_core.robot.elements import Cylinder, Sphere, ViaPoint, WrapSurface
from cards_core.robot.model import Robot
from cards_core.typing import Array, Vector3

DECIMALS = 9
"""Decimals to which results are rounded, [m]: nobody makes a hole to a nanometre, and files stay
readable."""


@dataclass(frozen=True)
class PathPoint:
    """A via point of a robot.

    Attributes:
        muscle: Index of the muscle.
        element: Index in its path.
        point: Index among its via points.
    """

    muscle: int
    element: int
    point: int


@dataclass(frozen=True, eq=False)
class FittedPoint:
    """A via point that may move.

    Attributes:
        at: Which one.
        centre: Middle of where it may be, in link coordinates, shape (3,), [m].
        size: Half edges of the box, or three times the radius of the ball, shape (3,), [m]; an
            entry of 0 holds the coordinate.
        ball: Whether it is a ball.
        mirror: Its image, which moves with it; or None.
        mirror_signs: Factors of the coordinates of the image, shape (3,), one of them -1.
    """

    at: PathPoint
    centre: Vector3
    size: Vector3
    ball: bool
    mirror: PathPoint | None = None
    mirror_signs: Vector3 | None = None


@dataclass(frozen=True)
class FittedRadius:
    """The radius of a wrap surface, a sphere or cylinder, between its limits, [m]."""

    surface: str
    lower: float
    upper: float


class FitVariables:
    """The vector y of a fit and the robot that belongs to it.

    Args:
        robot: The robot as it is.
        points: Via points that may move.
        radii: Radii that may change.

    Attributes:
        size: Number of entries.
        start: y of the robot as it is, shape (size,).
    """

    def __init__(
        self, robot: Robot, points: tuple[FittedPoint, ...], radii: tuple[FittedRadius, ...]
    ) -> None:
        self.robot, self.points, self.radii = robot, points, radii
        self.size = 3 * len(points) + len(radii)
        present = self.positions_of(robot)
        start = np.zeros(self.size)
        for k, point in enumerate(points):
            moves = point.size > 0.0
            away = present[point.at.muscle][point.at.point] - point.centre
            start[3 * k : 3 * k + 3][moves] = away[moves] / point.size[moves]
        for k, radius in enumerate(radii, 3 * len(points)):
            middle, half = 0.5 * (radius.lower + radius.upper), 0.5 * (radius.upper - radius.lower)
            start[k] = (radius_of(robot, radius.surface) - middle) / half
        self.start = self.nearest(start)

    @staticmethod
    def positions_of(robot: Robot) -> list[Array]:
        """Return the via points of every muscle, each of shape (k, 3), [m]."""
        return [
            np.array([item.position for item in muscle.via_points]).reshape(-1, 3)
            for muscle in robot.muscles
        ]

    def nearest(self, y: Array) -> Array:
        """Return the vector within all bounds that is nearest to y."""
        out = np.clip(y, -1.0, 1.0)
        for k, point in enumerate(self.points):
            block = slice(3 * k, 3 * k + 3)
            if point.ball:
                norm = float(np.linalg.norm(y[block]))
                out[block] = y[block] / max(norm, 1.0)
            out[block][point.size <= 0.0] = 0.0
        return out

    def random(self, rng: np.random.Generator) -> Array:
        """Return a vector drawn uniformly within the bounds."""
        y = rng.uniform(-1.0, 1.0, self.size)
        for k, point in enumerate(self.points):
            if point.ball:
                direction = rng.normal(size=3)
                direction *= rng.uniform() ** (1.0 / 3.0) / np.linalg.norm(direction)
                y[3 * k : 3 * k + 3] = direction
        return self.nearest(y)

    def tangents(self, y: Array) -> tuple[Array, Array]:
        """Return planes that bound steps from y: ``N d <= b``, one row per ball.

        A ball's is the plane through its border in the direction of y.
        """
        rows, gaps = [], []
        for k, point in enumerate(self.points):
            if point.ball:
                row = np.zeros(self.size)
                norm = float(np.linalg.norm(y[3 * k : 3 * k + 3]))
                row[3 * k : 3 * k + 3] = y[3 * k : 3 * k + 3] / norm if norm else (1.0, 0.0, 0.0)
                rows.append(row)
                gaps.append(max(0.0, 1.0 - norm))
        return np.array(rows).reshape(-1, self.size), np.array(gaps)

    def at_border(self, y: Array) -> list[PathPoint | str]:
        """Return the points, and the names of surfaces, that are at the border of their bounds."""
        out: list[PathPoint | str] = []
        for k, point in enumerate(self.points):
            block = y[3 * k : 3 * k + 3]
            reach = float(np.linalg.norm(block)) if point.ball else float(np.abs(block).max())
            if reach > 1.0 - 1e-6:
                out.append(point.at)
        for radius, value in zip(self.radii, y[3 * len(self.points) :], strict=True):
            if abs(value) > 1.0 - 1e-6:
                out.append(radius.surface)
        return out

    def place(self, k: int, y: Array) -> Vector3:
        """Return where fitted point k is, in link coordinates, shape (3,), [m]."""
        point = self.points[k]
        return np.asarray(point.centre + point.size * y[3 * k : 3 * k + 3])

    def positions(self, y: Array) -> list[Array]:
        """Return all via points of every muscle, each of shape (k, 3), [m]."""
        out = self.positions_of(self.robot)
        for k, point in enumerate(self.points):
            place = self.place(k, y)
            out[point.at.muscle][point.at.point] = place
            if point.mirror is not None:
                assert point.mirror_signs is not None
                out[point.mirror.muscle][point.mirror.point] = point.mirror_signs * place
        return out

    def radius_values(self, y: Array) -> dict[str, float]:
        """Return the fitted radii by surface, [m]."""
        values = y[3 * len(self.points) :]
        return {
            radius.surface: float(
                0.5 * (radius.lower + radius.upper)
                + 0.5 * (radius.upper - radius.lower) * min(max(value, -1.0), 1.0)
            )
            for radius, value in zip(self.radii, values, strict=True)
        }

    def columns(self, muscle: int) -> list[tuple[int, int, Array]]:
        """Return what moves a muscle: (its via point, first entry of y, factors of the three)."""
        out = []
        for k, point in enumerate(self.points):
            if point.at.muscle == muscle:
                out.append((point.at.point, 3 * k, point.size))
            if point.mirror is not None and point.mirror.muscle == muscle:
                assert point.mirror_signs is not None
                out.append((point.mirror.point, 3 * k, point.size * point.mirror_signs))
        return out

    def apply(self, y: Array) -> Robot:
        """Return the robot with these points and radii, rounded to `DECIMALS`.

        What the fit does not move stays as it is, to the last bit.
        """
        muscles = list(self.robot.muscles)
        places = self.positions(y)
        moved = [point.at for point in self.points]
        moved += [point.mirror for point in self.points if point.mirror is not None]
        for at in moved:
            muscle = muscles[at.muscle]
            path = list(muscle.path)
            item = path[at.element]
            assert isinstance(item, ViaPoint)
            place = np.round(places[at.muscle][at.point], DECIMALS) + 0.0
            same = np.abs(place - item.position) <= 10.0**-DECIMALS
            place = np.where(same, item.position, place)
            path[at.element] = replace(item, position=place)
            muscles[at.muscle] = replace(muscle, path=tuple(path))
        radii = self.radius_values(y)
        surfaces = []
        for surface in self.robot.wrap_surfaces:
            if surface.name in radii:
                radius = round(radii[surface.name], DECIMALS)
                if abs(radius - radius_of(self.robot, surface.name)) > 10.0**-DECIMALS:
                    surfaces.append(with_radius(surface, radius))
                    continue
            surfaces.append(surface)
        return replace(self.robot, muscles=tuple(muscles), wrap_surfaces=tuple(surfaces))


def radius_of(robot: Robot, surface: str) -> float:
    """Return the radius of a wrap surface that is a sphere or a cylinder, [m]."""
    geometry = robot.wrap_surface(surface).geometry
    assert isinstance(geometry, Sphere | Cylinder)  # others are refused on reading
    return geometry.radius


def with_radius(surface: WrapSurface, radius: float) -> WrapSurface:
    """Return a surface that is a sphere or a cylinder with another radius, [m]."""
    assert isinstance(surface.geometry, Sphere | Cylinder)
    return replace(surface, geometry=replace(surface.geometry, radius=radius))
