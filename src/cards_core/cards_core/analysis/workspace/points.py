"""Sets of points: what all have in common, and the grid, whose points are made by their index."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from cards_core.analysis.conditions.base import Column
from cards_core.analysis.workspace.coordinates import Coordinates
from cards_core.analysis.workspace.errors import PointSetError
from cards_core.robot.model import Tree
from cards_core.typing import Array

MAX_POINTS = 2**53
"""Largest number of points; indices stay exact in a float."""

MAX_AXIS = 2**26
"""Largest number of values of one axis: unlike the points, they are kept in memory."""


class BoundPoints(Protocol):
    """A point set of one robot.

    Attributes:
        count: Number of points.
        columns: Coordinates that vary, as columns of a result.
        fixed: Coordinates that have the same value in all points, by name; the rest is at home.
    """

    count: int
    columns: tuple[Column, ...]
    fixed: dict[str, float]

    def values(self, start: int, stop: int) -> Array:
        """Return what varies of points start..stop-1, shape (n, len(columns)).

        The same whatever was asked for before: a point is a function of its index.
        """
        ...

    def q(self, values: Array) -> Array:
        """Return coordinates, shape (n, nq), from rows of `values`."""
        ...


class PointSet(Protocol):
    """A description of points that fits into JSON, without a robot.

    Attributes:
        kind: ``grid``, ``samples``, ``file`` or ``rays``.
    """

    kind: ClassVar[str]

    @property
    def count(self) -> int:
        """Number of points, or of rays."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return plain data, with ``kind``."""
        ...

    def bind(self, tree: Tree) -> BoundPoints:
        """Return the points of a robot.

        Raises:
            UnknownNameError: The robot has no such coordinate.
            PointSetError: The set does not fit the robot.
        """
        ...


@dataclass(frozen=True)
class Axis:
    """Equally spaced values of one coordinate, both ends included.

    Attributes:
        name: Of the coordinate; see `Coordinates.find`.
        start, stop: First and last value, [m] or [rad].
        count: How many; 1 means ``start`` alone.
    """

    name: str
    start: float
    stop: float
    count: int

    def __post_init__(self) -> None:
        # the difference of two finite numbers may not be one
        if not math.isfinite(self.stop - self.start):
            raise PointSetError(
                f"the range of '{self.name}' goes from {self.start} to {self.stop} "
                "(expected: two numbers)"
            )
        if self.count < 0 or (self.count == 1 and self.start != self.stop):
            raise PointSetError(
                f"the range {self.start:g} to {self.stop:g} of '{self.name}' has {self.count} "
                "values (expected: at least 2, or one value instead of a range)"
            )
        if self.count > MAX_AXIS:
            raise PointSetError(
                f"the range of '{self.name}' has {self.count} values (expected: at most "
                f"{MAX_AXIS} along one axis)"
            )

    def values(self) -> Array:
        """Return the values, shape (count,)."""
        return np.linspace(self.start, self.stop, self.count)

    @property
    def step(self) -> float:
        """Distance of neighbours, 0 for a single value."""
        return (self.stop - self.start) / (self.count - 1) if self.count > 1 else 0.0


@dataclass(frozen=True)
class Grid:
    """All combinations of the axes' values; the last axis is the fastest, as in `numpy.ravel`.

    Attributes:
        axes: What varies; without any the grid is the single point of fixed values.
        fixed: Values of other coordinates by name; what is in neither is at home.
    """

    axes: tuple[Axis, ...]
    fixed: Mapping[str, float] = field(default_factory=dict)
    kind: ClassVar[str] = "grid"

    def __post_init__(self) -> None:
        if self.count > MAX_POINTS:
            raise PointSetError(f"a grid of {self.count} points (expected: at most {MAX_POINTS})")

    @property
    def count(self) -> int:
        """Number of points."""
        return math.prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of every axis."""
        return tuple(axis.count for axis in self.axes)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        axes = [[a.name, float(a.start), float(a.stop), int(a.count)] for a in self.axes]
        return {"kind": self.kind, "axes": axes, "fixed": dict(self.fixed)}

    def bind(self, tree: Tree) -> BoundGrid:
        """Return the points of a robot; see `PointSet.bind`."""
        return BoundGrid(self, Coordinates(tree))


class BoundGrid:
    """See `BoundPoints`.

    Attributes:
        shape: Number of values of every axis.
        axis_values: Values of every axis.
    """

    def __init__(self, grid: Grid, coordinates: Coordinates) -> None:
        self._coordinates = coordinates
        self._fixed = coordinates.find_values(grid.fixed)
        self._varied = [coordinates.find(axis.name) for axis in grid.axes]
        check_once([c.name for c in (*self._varied, *self._fixed)])
        self.axis_values = [axis.values() for axis in grid.axes]
        self.shape = grid.shape
        self.count = grid.count
        self.columns = tuple(coordinate_column(c.name, c.unit) for c in self._varied)
        self.fixed = {c.name: value for c, value in self._fixed.items()}

    def values(self, start: int, stop: int) -> Array:
        """Return what varies of points start..stop-1, shape (n, len(columns))."""
        out = np.empty((stop - start, len(self.axis_values)))
        if self.axis_values:
            indices = np.unravel_index(np.arange(start, stop), self.shape)
            for column, (axis, index) in enumerate(zip(self.axis_values, indices, strict=True)):
                out[:, column] = axis[index]
        return out

    def q(self, values: Array) -> Array:
        """Return coordinates, shape (n, nq), from rows of `values`."""
        return self._coordinates.compose(self._varied, values, self._fixed)


def coordinate_column(name: str, unit: str) -> Column:
    """Return the column of a coordinate in a result."""
    return Column(name, "float64", unit, "coordinate")


def check_once(names: list[str]) -> None:
    """Refuse a coordinate that is given twice.

    Raises:
        PointSetError: A name is there more than once.
    """
    for name in names:
        if names.count(name) > 1:
            raise PointSetError(f"'{name}' is given twice (expected: a range or a value, once)")
