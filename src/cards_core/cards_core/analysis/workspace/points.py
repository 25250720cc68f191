"""Sets of points: what all have in common, grids and random samples.

A point is a function of its index, and a random one of the seed, too. Philox [Salmon2011] is a
counter-based generator: its n-th block of four 64-bit numbers is a function of key and counter, so
point i takes the blocks from i * ceil(k/4) on, and no other point has to be made first.
Orientations of ball joints are uniform on the rotation group [Shoemake1992].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from cards_core.analysis.conditions.base import Column
from cards_core.analysis.workspace.coordinates import Coordinate, Coordinates, PointSetError
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


BLOCK = 4
"""64-bit numbers per step of Philox's counter."""

MAX_SEED = 2**128 - 1
"""Largest key of Philox."""


@dataclass(frozen=True)
class Samples:
    """Points drawn uniformly.

    Attributes:
        number: How many.
        seed: Any integer from 0 to `MAX_SEED`; the same seed gives the same points.
        ranges: Lower and upper value by coordinate. Others span their joint limits.
        fixed: Values by coordinate that do not vary. A ball joint of which one component is
            fixed (or that is named in `at_home`) is not random.
        at_home: Names of joints that stay at home.
    """

    number: int
    seed: int = 0
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    at_home: tuple[str, ...] = ()
    kind: ClassVar[str] = "samples"

    def __post_init__(self) -> None:
        if not (0 <= self.number <= MAX_POINTS and 0 <= self.seed <= MAX_SEED):
            raise PointSetError(
                f"{self.number} samples of seed {self.seed} (expected: both >= 0, at most "
                f"{MAX_POINTS} samples, a seed below 2^128)"
            )
        for name, (low, high) in self.ranges.items():
            # the difference of two finite numbers may not be one
            if not 0.0 <= high - low < math.inf:
                raise PointSetError(
                    f"the range of '{name}' goes from {low} to {high} "
                    "(expected: two numbers, the lower one first)"
                )

    @property
    def count(self) -> int:
        """Number of points."""
        return self.number

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "kind": self.kind,
            "number": self.number,
            "seed": self.seed,
            "ranges": {name: [float(a), float(b)] for name, (a, b) in self.ranges.items()},
            "fixed": dict(self.fixed),
            "at_home": list(self.at_home),
        }

    def bind(self, tree: Tree) -> BoundSamples:
        """Return the points of a robot; see `PointSet.bind`.

        Raises:
            UnknownNameError: The robot has no such coordinate.
            PointSetError: A coordinate has neither limits nor a range.
        """
        return BoundSamples(self, Coordinates(tree))


class BoundSamples:
    """See `BoundPoints`; columns are the random scalars and then w, x, y, z of random balls.

    Attributes:
        volume: Product of the ranges' lengths; orientations count as one.
    """

    def __init__(self, samples: Samples, coordinates: Coordinates) -> None:
        self.count = samples.number
        self._seed = samples.seed
        self._coordinates = coordinates
        self._fixed = coordinates.find_values(samples.fixed)
        ranges = {coordinates.find(name): pair for name, pair in samples.ranges.items()}
        check_once([c.name for c in (*ranges, *self._fixed)])
        home = {_joint_at_home(coordinates, name) for name in samples.at_home}
        given_balls = {c.q for c in (*ranges, *self._fixed) if c.component >= 0} | home
        self._varied: list[Coordinate] = []
        bounds: list[tuple[float, float]] = []
        for coordinate in coordinates.all:
            if coordinate in ranges:
                bounds.append(ranges[coordinate])
            elif coordinate in self._fixed or coordinate.q in home or coordinate.component >= 0:
                continue
            else:
                bounds.append(_limits(coordinates.tree, coordinate))
            self._varied.append(coordinate)
        pairs = np.array(bounds).reshape(-1, 2)
        self._low, self._span = pairs[:, 0], pairs[:, 1] - pairs[:, 0]
        self.volume = float(np.prod(self._span))
        balls = coordinates.balls.items()
        self._balls = {name: start for name, start in balls if start not in given_balls}
        self.columns = (
            *(coordinate_column(c.name, c.unit) for c in self._varied),
            *(coordinate_column(f"{ball}.{c}", "") for ball in self._balls for c in "wxyz"),
        )
        self.fixed = {c.name: value for c, value in self._fixed.items()}

    def values(self, start: int, stop: int) -> Array:
        """Return what varies of points start..stop-1, shape (n, len(columns))."""
        scalars = len(self._varied)
        uniform = uniforms(self._seed, start, stop, scalars + 3 * len(self._balls))
        parts = [self._low + self._span * uniform[:, :scalars]]
        for k in range(len(self._balls)):
            first = scalars + 3 * k
            parts.append(uniform_quaternions(uniform[:, first : first + 3]))
        return np.column_stack(parts)

    def q(self, values: Array) -> Array:
        """Return coordinates, shape (n, nq), from rows of `values`."""
        scalars = len(self._varied)
        balls = {
            start: values[:, scalars + 4 * k : scalars + 4 * k + 4]
            for k, start in enumerate(self._balls.values())
        }
        return self._coordinates.compose(self._varied, values[:, :scalars], self._fixed, balls)


def uniforms(seed: int, start: int, stop: int, width: int) -> Array:
    """Return rows start..stop-1 of a table of uniform numbers in [0, 1), shape (n, width).

    Args:
        seed: Of the table; row i depends on seed and i alone.
        start: First row.
        stop: Row after the last.
        width: Number of columns.
    """
    blocks = -(-width // BLOCK)
    generator = np.random.Philox(key=seed, counter=start * blocks)
    raw = generator.random_raw((stop - start) * blocks * BLOCK)
    table = np.asarray(raw, dtype=np.uint64).reshape(stop - start, blocks * BLOCK)
    return np.asarray((table[:, :width] >> np.uint64(11)) * 2.0**-53)


def uniform_quaternions(uniform: Array) -> Array:
    """Return quaternions (w, x, y, z) uniform on the rotation group [Shoemake1992].

    ``(sqrt(1-u0) sin a, sqrt(1-u0) cos a, sqrt(u0) sin b, sqrt(u0) cos b)`` with a = 2 pi u1 and
    b = 2 pi u2 is uniform on the sphere in four dimensions.

    Args:
        uniform: Numbers in [0, 1), shape (n, 3).
    """
    r0, r1 = np.sqrt(1.0 - uniform[:, 0]), np.sqrt(uniform[:, 0])
    a, b = 2.0 * np.pi * uniform[:, 1], 2.0 * np.pi * uniform[:, 2]
    return np.column_stack([r0 * np.sin(a), r0 * np.cos(a), r1 * np.sin(b), r1 * np.cos(b)])


def _limits(tree: Tree, coordinate: Coordinate) -> tuple[float, float]:
    low, high = float(tree.lower[coordinate.q]), float(tree.upper[coordinate.q])
    if not (math.isfinite(low) and math.isfinite(high)):
        raise PointSetError(
            f"'{coordinate.name}' has no joint limits to draw from (expected: a range for it, "
            "or a fixed value)"
        )
    return low, high


def _joint_at_home(coordinates: Coordinates, name: str) -> int:
    if name in coordinates.balls:
        return coordinates.balls[name]
    return coordinates.find(name).q
