"""Plate poses on a grid: a line, a plane or a block; the other coordinates are held.

``x``, ``y``, ``z`` are the position of the plate in the world, [m]; ``rx``, ``ry``, ``rz`` the
rotation vector r, [rad], in world axes, by which the plate is turned from home::

    p = (x, y, z)        R = exp([r]x) R_home

What a grid does not mention is as at home.
"""

from __future__ import annotations

import numpy as np

from cards_core.analysis.workspace import Grid, PointSetError
from cards_core.errors import UnknownNameError
from cards_core.rods.robots.robot import PLATE_COORDINATES, RodRobot
from cards_core.spatial import quaternion_matrix, rotation_exp
from cards_core.typing import Array


def find_coordinate(robot: RodRobot, name: str) -> str:
    """Return the name of a plate coordinate that may be prescribed.

    Raises:
        UnknownNameError: The plate has no such coordinate.
        PointSetError: It results from equilibrium and cannot be prescribed.
    """
    if name not in robot.coordinates:
        raise UnknownNameError("plate coordinate", name, robot.coordinates)
    if name not in robot.controlled:
        raise PointSetError(
            f"plate coordinate '{name}' of {robot.name} follows from equilibrium (expected: "
            f"{', '.join(robot.controlled)}, which its joints control)"
        )
    return name


class PlateGrid:
    """The poses of a grid.

    Args:
        robot: The robot.
        grid: Axes named by plate coordinates.
        home: Plate pose at home, shape (4, 4).

    Attributes:
        shape: Number of values of every axis; the last is the fastest.
        count: Number of points.
        names: Of the axes.
        axis_values: Values of every axis.
        fixed: Values of the coordinates that do not vary and are not at home, by name.

    Raises:
        PointSetError: A coordinate that is given twice or cannot be prescribed; no points.
        UnknownNameError: No such coordinate.
    """

    def __init__(self, robot: RodRobot, grid: Grid, home: Array) -> None:
        self.names = tuple(find_coordinate(robot, axis.name) for axis in grid.axes)
        self.fixed = {find_coordinate(robot, n): float(v) for n, v in grid.fixed.items()}
        given = (*self.names, *self.fixed)
        for name in given:
            if given.count(name) > 1:
                raise PointSetError(f"'{name}' is given twice (expected: once)")
        for name, value in self.fixed.items():
            if not np.isfinite(value):
                raise PointSetError(f"the value of '{name}' is {value} (expected: a number)")
        if not grid.count:
            raise PointSetError("a grid without points (expected: at least one value per axis)")
        self.robot, self.grid, self.home = robot, grid, home
        self.shape, self.count = grid.shape, grid.count
        self.axis_values = [axis.values() for axis in grid.axes]

    @property
    def units(self) -> tuple[str, ...]:
        """``m`` or ``rad`` of every axis."""
        return tuple(unit_of(name) for name in self.names)

    def coordinates(self, index: int) -> Array:
        """Return the values of the axes at a point, shape (axes,)."""
        places = np.unravel_index(index, self.shape) if self.shape else ()
        return np.array([v[k] for v, k in zip(self.axis_values, places, strict=True)])

    def table(self) -> Array:
        """Return the values of the axes at all points, shape (count, axes)."""
        if not self.shape:
            return np.empty((1, 0))
        meshes = np.meshgrid(*self.axis_values, indexing="ij")
        return np.stack([mesh.ravel() for mesh in meshes], axis=1)

    def pose(self, index: int) -> Array:
        """Return the pose of a point, shape (4, 4)."""
        pose, turn = self.home.copy(), np.zeros(3)
        values = dict(zip(self.names, self.coordinates(index), strict=True)) | self.fixed
        for name, value in values.items():
            slot = PLATE_COORDINATES.index(name)
            if slot < 3:
                pose[slot, 3] = value
            else:
                turn[slot - 3] = value
        if turn.any():
            pose[:3, :3] = quaternion_matrix(rotation_exp(turn)) @ self.home[:3, :3]
        return pose

    def nearest_home(self) -> int:
        """Return the index of the point that is nearest to home along every axis."""
        places = []
        for name, values in zip(self.names, self.axis_values, strict=True):
            slot = PLATE_COORDINATES.index(name)
            home = self.home[slot, 3] if slot < 3 else 0.0
            places.append(int(np.argmin(np.abs(values - home))))
        return int(np.ravel_multi_index(places, self.shape)) if places else 0

    def cell_sizes(self) -> Array:
        """Return the size of the cell around every point, (count,); half at the borders."""
        sizes = np.ones(1)
        for values in self.axis_values:
            factor = np.ones(len(values))
            if len(values) > 1:
                factor *= abs(float(values[-1] - values[0])) / (len(values) - 1)
                factor[[0, -1]] *= 0.5
            sizes = np.outer(sizes, factor).ravel()
        return sizes


def unit_of(name: str) -> str:
    """Return the unit of a plate coordinate."""
    return "m" if PLATE_COORDINATES.index(name) < 3 else "rad"
