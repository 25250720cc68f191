"""The order in which a grid is filled: rounds of walks that do not meet.

One round goes along one axis: from every known point with an unknown neighbour along that axis a
walk sets out through the gap. Two walks of a round never enter the same gap, so they may run side
by side, and what is found does not depend on how many do. Rounds along all axes in turn fill
whatever is connected, around corners too. First only good points lead on (what is found is what
the robot gets to from home); then everything that was found does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from cards_core.rods.analysis.plate_grid import PlateGrid
from cards_core.rods.analysis.status import GOOD, UNKNOWN, SliceStatus
from cards_core.rods.analysis.walk import Point, Walk
from cards_core.rods.robots.guess import Guess
from cards_core.rods.robots.robot import RodRobot

Runner = Callable[[list[Walk]], Iterable[list[Point]]]
"""Makes walks, and returns what each of them found, in their order."""


class Sweeps:
    """What is known about the points of a grid, and what to do next.

    Args:
        robot: The robot.
        grid: The points.

    Attributes:
        status: Shape (count,), `SliceStatus` or UNKNOWN.
        numbers: Shape (count, 5), see `Point`; NaN where nothing was found.
        q: Shape (count, n).
        poses: Shape (count, 4, 4).
        wrenches: Shape (count, n, 6).
    """

    def __init__(self, robot: RodRobot, grid: PlateGrid) -> None:
        count, n = grid.count, robot.n_limbs
        self.grid = grid
        self.status: npt.NDArray[np.uint8] = np.full(count, UNKNOWN, np.uint8)
        self.numbers = np.full((count, 5), np.nan)
        self.q = np.full((count, n), np.nan)
        self.poses = np.full((count, 4, 4), np.nan)
        self.wrenches = np.full((count, n, 6), np.nan)
        self._leads = np.zeros(count, bool)  # a walk may set out from here
        self._indices = np.arange(count).reshape(grid.shape)

    def put(self, point: Point, *, strict: bool) -> None:
        """Note what was found; good points that were found in passing others are cut off."""
        i, status = point.index, point.status
        if not strict and status in GOOD:
            status = SliceStatus.CUT_OFF
        self.status[i] = status
        self.numbers[i], self.q[i] = point.numbers, point.q
        self.poses[i], self.wrenches[i] = point.pose, point.base_wrenches
        self._leads[i] = point.passable or not strict

    def fill(self, run: Runner, *, strict: bool) -> None:
        """Fill the grid as far as walks get.

        Args:
            run: Makes the walks of a round.
            strict: Only good points lead on; else all that were found do.
        """
        if not strict:
            self._leads = self.status != UNKNOWN
        axes = [k for k, count in enumerate(self.grid.shape) if count > 1]
        tried = np.zeros((2, len(self.grid.shape), self.grid.count), bool)
        idle, k = 0, 0
        while axes and idle < len(axes):
            axis = axes[k % len(axes)]
            walks = list(self._walks(axis, tried, strict))
            for walk, points in zip(walks, run(walks), strict=True):
                for point in points:
                    self.put(point, strict=strict)
                if len(points) < len(walk.indices):
                    failed = walk.indices[len(points)]
                    side = int(walk.indices[0] < walk.origin)
                    tried[side, axis, failed] = True
            idle = 0 if walks else idle + 1
            k += 1

    def _walks(self, axis: int, tried: npt.NDArray[np.bool_], strict: bool) -> Iterator[Walk]:
        """Return the walks of a round along an axis."""
        lines = np.moveaxis(self._indices, axis, -1).reshape(-1, self.grid.shape[axis])
        for line in lines:
            open_ = self.status[line] == UNKNOWN
            if not open_.any() or not self._leads[line].any():
                continue
            edges = np.flatnonzero(np.diff(np.concatenate([[False], open_, [False]]).astype(int)))
            for first, end in zip(edges[::2], edges[1::2], strict=True):
                gap = line[first:end]
                if first > 0 and self._leads[line[first - 1]] and not tried[0, axis, gap[0]]:
                    yield self._walk(line[first - 1], gap, strict)
                elif end < len(line) and self._leads[line[end]] and not tried[1, axis, gap[-1]]:
                    yield self._walk(line[end], gap[::-1], strict)

    def _walk(self, origin: int, gap: npt.NDArray[np.int_], strict: bool) -> Walk:
        start = Guess(self.q[origin], self.poses[origin], self.wrenches[origin])
        return Walk(start, int(origin), tuple(int(i) for i in gap), strict)
