"""Rays: lines through the coordinates, cut into intervals of one status each.

A ray is ``q(s) = start (+) s * direction`` for 0 <= s <= length, where (+) is `Tree.integrate`.
Its status is computed at ``scan + 1`` equally spaced points; wherever two neighbours differ the
change is bisected to the tolerance. An interval shorter than the scan's step that lies between two
equal neighbours is not seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cards_core.analysis.conditions.base import Column, Results
from cards_core.analysis.workspace.coordinates import Coordinates, PointSetError
from cards_core.analysis.workspace.points import (
    MAX_AXIS,
    MAX_SEED,
    BoundPoints,
    PointSet,
    uniforms,
)
from cards_core.errors import UnknownNameError
from cards_core.robot.model import Tree
from cards_core.typing import Array

Evaluate = Callable[[Array], Results]
"""From coordinates, shape (n, nq), to a condition's columns."""

DIRECTION_SALT = 0x9E3779B97F4A7C15
"""Keeps random directions independent of random starts with the same seed."""


@dataclass(frozen=True)
class Rays:
    """A bundle of rays from each of a set of starting points.

    Attributes:
        starts: Where rays begin; ray i begins at point i // per_start.
        direction: Velocity per unit of s by name (`Tree.velocity_names`, or their ends). Empty:
            random directions, uniform on the unit sphere of the velocities in ``among``.
        length: Largest s.
        scan: Number of steps of the scan.
        tolerance: Of s where the status changes.
        among: Names of velocities of random directions; empty: all.
        per_start: Rays from every start; 1 with a given direction.
        seed: Of random directions.
    """

    starts: PointSet
    direction: Mapping[str, float] = field(default_factory=dict)
    length: float = 1.0
    scan: int = 64
    tolerance: float = 1e-6
    among: tuple[str, ...] = ()
    per_start: int = 1
    seed: int = 0
    kind: ClassVar[str] = "rays"

    def __post_init__(self) -> None:
        object.__setattr__(self, "among", tuple(self.among))
        if not (0.0 < self.length < math.inf):
            raise PointSetError(f"rays of length {self.length} (expected: more than 0)")
        if self.scan < 1 or self.per_start < 1 or not 0 <= self.seed <= MAX_SEED:
            raise PointSetError(
                "scan, rays per start: expected at least 1; seed: at least 0, below 2^128"
            )
        if not (0.0 < self.tolerance < math.inf):
            raise PointSetError(f"tolerance {self.tolerance} of rays (expected: more than 0)")
        if self.scan > MAX_AXIS:
            raise PointSetError(f"a scan of {self.scan} steps (expected: at most {MAX_AXIS})")
        if self.starts.kind == "rays":
            raise PointSetError("rays start from rays (expected: a grid, samples or a file)")
        if self.direction and self.per_start != 1:
            raise PointSetError("one direction gives one ray per start (expected: per_start 1)")

    @property
    def count(self) -> int:
        """Number of rays."""
        return self.starts.count * self.per_start

    @property
    def evaluations(self) -> int:
        """Points of the scan of one ray."""
        return self.scan + 1

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "kind": self.kind,
            "starts": self.starts.to_json(),
            "direction": dict(self.direction),
            "length": float(self.length),
            "scan": self.scan,
            "tolerance": float(self.tolerance),
            "among": list(self.among),
            "per_start": self.per_start,
            "seed": self.seed,
        }

    def bind(self, tree: Tree) -> BoundRays:
        """Return the rays of a robot; see `PointSet.bind`."""
        return BoundRays(self, tree)


class BoundRays:
    """The rays of one robot.

    Attributes:
        columns: What is known of a ray: coordinates of its start that vary, its direction where
            that is random.
    """

    def __init__(self, rays: Rays, tree: Tree) -> None:
        self.rays = rays
        self.count = rays.count
        self._coordinates = Coordinates(tree)
        self._starts: BoundPoints = rays.starts.bind(tree)
        self._nv = tree.nv
        self._direction: Array | None = None
        if rays.direction:
            self._direction = np.zeros(tree.nv)
            for name, value in rays.direction.items():
                self._direction[velocity_index(tree, name)] = value
            if not np.isfinite(self._direction).all() or not self._direction.any():
                raise PointSetError(f"direction {dict(rays.direction)} of rays has no direction")
        among = rays.among or tree.velocity_names
        self._among = [velocity_index(tree, name) for name in among]
        self.columns: tuple[Column, ...] = self._starts.columns
        if self._direction is None:
            self.columns += tuple(
                Column(f"direction_{tree.velocity_names[i]}", "float64", "", "direction")
                for i in self._among
            )
        self.fixed = self._starts.fixed

    def values(self, start: int, stop: int) -> Array:
        """Return `columns` of rays start..stop-1."""
        first, last = start // self.rays.per_start, -(-stop // self.rays.per_start)
        points = self._starts.values(first, last)
        rays = np.arange(start, stop)
        rows = points[rays // self.rays.per_start - first]
        if self._direction is None:
            width = len(self._among)
            uniform = uniforms(self.rays.seed ^ DIRECTION_SALT, start, stop, 2 * width)
            rows = np.column_stack([rows, _unit_vectors(uniform)])
        return rows

    def q(self, values: Array) -> Array:
        """Return starts, shape (n, nq), from rows of `values`."""
        return self._starts.q(values[:, : len(self._starts.columns)])

    def lines(self, values: Array) -> tuple[Array, Array]:
        """Return starts, shape (n, nq), and directions, shape (n, nv), from rows of `values`."""
        starts = len(self._starts.columns)
        q = self.q(values)
        if self._direction is not None:
            return q, np.tile(self._direction, (len(values), 1))
        directions = np.zeros((len(values), self._nv))
        directions[:, self._among] = values[:, starts:]
        return q, directions

    def cut(self, first_ray: int, values: Array, evaluate: Evaluate) -> Results:
        """Cut rays into intervals.

        Args:
            first_ray: Index of the first of these rays.
            values: Rows of `values`.
            evaluate: The condition; its first column is ``status``.

        Returns:
            Columns ``ray``, those of `columns`, ``begin``, ``end``, ``status``, and of every other
            column of the condition the smallest and largest value at points of the scan in the
            interval (NaN if there is none), ordered by ray and begin.
        """
        q, directions = self.lines(values)
        count, nodes = len(q), self.rays.scan + 1
        s = np.linspace(0.0, self.rays.length, nodes)

        def at(rows: npt.NDArray[np.intp], distances: Array) -> Results:
            moved = self._coordinates.move(q[rows], distances[:, None] * directions[rows])
            return evaluate(moved)

        rays = np.repeat(np.arange(count), nodes)
        scan = at(rays, np.tile(s, count))
        status = scan["status"].reshape(count, nodes)
        changes = _changes(status, s, self.rays.tolerance, lambda r, d: at(r, d)["status"])
        # what begins: every ray's first interval, and one at every change
        ray = np.concatenate([np.arange(count), changes[0]])
        begin = np.concatenate([np.zeros(count), changes[1]])
        kind = np.concatenate([status[:, 0], changes[2]])
        order = np.lexsort((begin, ray))
        ray, begin, kind = ray[order], begin[order], kind[order]
        last = np.append(ray[1:] != ray[:-1], True) if len(ray) else np.zeros(0, bool)
        end = np.where(last, self.rays.length, np.append(begin[1:], 0.0)[: len(begin)])
        out: Results = {"ray": first_ray + ray}
        for i, known in enumerate(self.columns):
            out[known.name] = values[ray, i]
        out |= {"begin": begin, "end": end, "status": kind}
        # every point of the scan belongs to the last interval of its ray that begins before it
        stretch = 2.0 * self.rays.length
        place = np.searchsorted(ray * stretch + begin, rays * stretch + np.tile(s, count), "right")
        for name, column in scan.items():
            if name != "status":
                out |= _extremes(name, np.asarray(column, float), place - 1, len(ray))
        return out


def velocity_index(tree: Tree, name: str) -> int:
    """Return the place of a velocity by its name, or by its end if only one name ends so.

    Raises:
        UnknownNameError: There is none; the message lists all.
        PointSetError: Several names end so.
    """
    names = tree.velocity_names
    if name in names:
        return names.index(name)
    ends = [n for n in names if n.endswith((f"_{name}", f".{name}"))]
    if len(ends) > 1:
        raise PointSetError(
            f"velocity '{name}' may be {' or '.join(ends)} (expected: one in full)"
        )
    if not ends:
        raise UnknownNameError("velocity", name, names)
    return names.index(ends[0])


def _changes(
    status: npt.NDArray[np.uint8],
    s: Array,
    tolerance: float,
    status_at: Callable[[npt.NDArray[np.intp], Array], npt.NDArray[np.uint8]],
) -> tuple[npt.NDArray[np.intp], Array, npt.NDArray[np.uint8]]:
    """Find where the status changes: rays, distances, and the status from there on.

    Between two points with different status all changes are found that bisection meets: where
    the right end of the last bracket is neither, the rest of the step is bisected again.
    """
    ray, step = np.nonzero(status[:, 1:] != status[:, :-1])
    low, far = s[step], s[step + 1]
    left, right = status[ray, step], status[ray, step + 1]
    found: list[tuple[Any, Any, Any]] = []
    while len(ray):
        high, there = far.copy(), right.copy()
        begin = low.copy()
        # the number of halvings is fixed beforehand: the same for every ray and every run
        for _ in range(_halvings(float((high - begin).max()), tolerance)):
            middle = 0.5 * (begin + high)
            now = status_at(ray, middle)
            same = now == left
            begin = np.where(same, middle, begin)
            high = np.where(same, high, middle)
            there = np.where(same, there, now)
        found.append((ray, 0.5 * (begin + high), there))
        again = (there != right) & (far - high > tolerance)
        ray, low, far = ray[again], high[again], far[again]
        left, right = there[again], right[again]
    if not found:
        return np.zeros(0, np.intp), np.zeros(0), np.zeros(0, np.uint8)
    rays, distances, kinds = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return rays, distances, kinds


def _halvings(width: float, tolerance: float) -> int:
    # more than 60 halvings of a double do nothing
    return min(max(math.ceil(math.log2(width / tolerance)), 0), 60)


def _extremes(name: str, values: Array, place: npt.NDArray[np.intp], count: int) -> Results:
    least, largest = np.full(count, np.inf), np.full(count, -np.inf)
    good = ~np.isnan(values)
    np.minimum.at(least, place[good], values[good])
    np.maximum.at(largest, place[good], values[good])
    seen = np.zeros(count, bool)
    seen[place[good]] = True
    least[~seen] = largest[~seen] = np.nan
    return {f"{name}_min": least, f"{name}_max": largest}


def _unit_vectors(uniform: Array) -> Array:
    """Return vectors uniform on the unit sphere from 2 k numbers in [0, 1) each (Box-Muller)."""
    half = uniform.shape[1] // 2
    radius = np.sqrt(-2.0 * np.log1p(-uniform[:, :half]))
    vectors = radius * np.cos(2.0 * np.pi * uniform[:, half:])
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
