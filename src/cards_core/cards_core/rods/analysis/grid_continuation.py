"""Continuation over a grid of plate poses: equilibria followed from point to point along paths.

Between two neighbours the plate moves in steps of at most 10 mm and 4 degrees; each step starts
from the last. A step to a state that is no neighbour is refused
(`cards_core.rods.tracking.continuation`), so a path stays on one branch; it is halved, down to a
sixteenth of its first length.

The grid is filled in rounds of paths that do not meet. One round goes along one axis: from every
known point with an unknown neighbour along that axis a path leads through the gap. Two paths of a
round never enter the same gap, so they may be followed in parallel, and the result does not depend
on how many are. Rounds along all axes in turn fill whatever is connected, around corners too.
First only good points are continued (they are what the robot reaches from home); then all points
that were found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cards_core.rods.analysis.workspace_slice import (
    GOOD,
    UNKNOWN,
    PlateGrid,
    SliceOptions,
    SliceStatus,
)
from cards_core.rods.robots.initial_guess import InitialGuess
from cards_core.rods.robots.limb_failure import limb_morse_index
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.continuation import Bounds, StepAcceptance
from cards_core.rods.tracking.targets import Target, interpolate, target_distance
from cards_core.typing import Array

LARGEST_STEP = 2.0
"""Largest step, in steps of a tracker (5 mm, 2 degrees)."""

SMALLEST_SHARE = 1.0 / 16.0
"""Smallest step, as a share of the first."""

LOOSE = 10.0
"""Factor on the allowed jump of a tracker where the robot is not stable anyway: the prediction
that jumps are compared with means little near the poles of the stiffness."""

SECTIONS = 25
"""Sections of each rod at which curvature and stress are evaluated."""


@dataclass(frozen=True, eq=False)
class Point:
    """Result at one pose.

    Attributes:
        index: Of the point.
        status: OK, NEAR_LIMIT, YIELD, JOINT_LIMIT or UNSTABLE.
        passable: Whether a robot may go on from here.
        numbers: min_eigenvalue, curvature, stress, strain, rod_index: shape (5,); the last is the
            Morse index of all rods with the plate held.
        q: Joint coordinates, shape (n,).
        pose: Plate pose, shape (4, 4).
        base_wrenches: Shape (n, 6).
    """

    index: int
    status: SliceStatus
    passable: bool
    numbers: Array
    q: Array
    pose: Array
    base_wrenches: Array

    @property
    def guess(self) -> InitialGuess:
        """The state, for a solver to start from."""
        return InitialGuess(self.q, self.pose, self.base_wrenches)


@dataclass(frozen=True, eq=False)
class GridPath:
    """A path over the grid.

    Attributes:
        start: State at the first point.
        origin: Its index.
        indices: Points to visit, in order.
        strict: Stop at the first point, or step between points, that is not passable.
    """

    start: InitialGuess
    origin: int
    indices: tuple[int, ...]
    strict: bool


class PathFollower:
    """Follows paths.

    Args:
        solver: Of the robot.
        grid: The poses.
        options: What counts as good.
        reference: Smallest eigenvalue of K at home.
    """

    def __init__(
        self,
        solver: RodRobotSolver,
        grid: PlateGrid,
        options: SliceOptions,
        reference: float,
    ) -> None:
        self.solver, self.grid, self.options = solver, grid, options
        self.reference = reference
        self.robot: RodRobot = solver.robot
        bounds = Bounds(stop_fraction=-math.inf, enforce_limits=False)
        loose = replace(bounds, jump_factor=LOOSE * bounds.jump_factor)
        self._acceptance = {
            strict: StepAcceptance(self.robot, kind, max(reference, 1e-300))
            for strict, kind in ((True, bounds), (False, loose))
        }
        self._lower, self._upper = self.robot.q_lower - 1e-9, self.robot.q_upper + 1e-9
        yields = [limb.rod.yield_strain for limb in self.robot.limbs]
        self._yields = np.array([math.inf if limit is None else limit for limit in yields])

    def follow(self, path: GridPath, seen: Callable[[], None] | None = None) -> list[Point]:
        """Return the points that were found; the path ended after the last of them.

        Args:
            path: Points to visit.
            seen: Called after every point.
        """
        self.solver.forget()  # the same points, whichever paths were followed before
        here = self._target(path.origin)
        solution = self._solve(here, path.start)
        found: list[Point] = []
        if not solution.converged:
            return found
        for index in path.indices:
            there = self._target(index)
            reached = self._go(solution, here, there, strict=path.strict)
            if reached is None:
                break
            point = self.point(index, reached)
            found.append(point)
            if seen is not None:
                seen()
            if path.strict and not point.passable:
                break
            solution, here = reached, there
        return found

    def point(self, index: int, solution: Solution) -> Point:
        """Describe an equilibrium."""
        table = self.solver.shapes(solution, SECTIONS).table[:, :, 3:]
        worst = table.max(axis=1)
        eigenvalue = solution.min_eigenvalue
        collapses = int(limb_morse_index(self.solver, solution).sum())
        status = self._status(solution, worst[:, 2], collapses)
        numbers = np.array([eigenvalue, *worst.max(axis=0), collapses])
        return Point(
            index,
            status,
            status in GOOD and eigenvalue > self.options.stop * self.reference,
            numbers,
            solution.q.copy(),
            solution.pose.copy(),
            solution.base_wrenches.copy(),
        )

    def _status(self, solution: Solution, strains: Array, collapses: int) -> SliceStatus:
        eigenvalue = solution.min_eigenvalue
        if collapses or not eigenvalue > 0.0:
            return SliceStatus.UNSTABLE
        if self._outside(solution):
            return SliceStatus.JOINT_LIMIT
        if eigenvalue < self.options.near * self.reference:
            return SliceStatus.NEAR_LIMIT
        return SliceStatus.YIELD if (strains > self._yields).any() else SliceStatus.OK

    def _outside(self, solution: Solution) -> bool:
        return bool(((solution.q < self._lower) | (solution.q > self._upper)).any())

    def _go(self, last: Solution, here: Target, there: Target, *, strict: bool) -> Solution | None:
        """Move from one pose to the next; None if that fails, or is not allowed on the way."""
        count = max(1, math.ceil(target_distance(self.robot, here, there).steps / LARGEST_STEP))
        stride = 1.0 / count
        least, done = SMALLEST_SHARE * stride, 0.0
        while done < 1.0:
            goal = done + stride
            goal = 1.0 if goal > 1.0 - 1e-9 else goal
            trial = self._solve(interpolate(here, there, goal), last)
            if not trial.converged or self._refused(last, trial, there, strict):
                stride *= 0.5
                if stride < least:
                    return None
                continue
            if strict and goal < 1.0 and not self._passable(trial):
                return None
            last, done = trial, goal
        return last

    def _refused(self, last: Solution, trial: Solution, there: Target, strict: bool) -> bool:
        """Tell whether a trial is no neighbour; a neighbour that collapsed is not refused."""
        finding = self._acceptance[strict].refuse(last, trial, there)
        return finding is not None and finding.status is not RodStatus.UNSTABLE

    def _passable(self, solution: Solution) -> bool:
        floor = self.options.stop * self.reference
        if not solution.min_eigenvalue > floor or self._outside(solution):
            return False
        return not limb_morse_index(self.solver, solution).any()

    def _target(self, index: int) -> Target:
        options = self.options
        return Target(None, self.grid.pose(index), options.wrench, options.frame)

    def _solve(self, target: Target, start: InitialGuess | Solution) -> Solution:
        assert target.pose is not None
        return self.solver.igm(target.pose, wrench=target.wrench, frame=target.frame, start=start)


Runner = Callable[[list[GridPath]], Iterable[list[Point]]]
"""Follows paths and returns the points of each, in their order."""


class GridFill:
    """Fills a grid: the known points, and the paths of the next round.

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
        self._leads = np.zeros(count, bool)  # a path may start here
        self._indices = np.arange(count).reshape(grid.shape)

    def put(self, point: Point, *, strict: bool) -> None:
        """Record a point; a good one behind points that are not good is CUT_OFF."""
        i, status = point.index, point.status
        if not strict and status in GOOD:
            status = SliceStatus.CUT_OFF
        self.status[i] = status
        self.numbers[i], self.q[i] = point.numbers, point.q
        self.poses[i], self.wrenches[i] = point.pose, point.base_wrenches
        self._leads[i] = point.passable or not strict

    def fill(self, run: Runner, *, strict: bool) -> None:
        """Fill the grid as far as paths lead.

        Args:
            run: Follows the paths of a round.
            strict: Only good points are continued; else all that were found.
        """
        if not strict:
            self._leads = self.status != UNKNOWN
        axes = [k for k, count in enumerate(self.grid.shape) if count > 1]
        tried = np.zeros((2, len(self.grid.shape), self.grid.count), bool)
        idle, k = 0, 0
        while axes and idle < len(axes):
            axis = axes[k % len(axes)]
            paths = list(self._paths(axis, tried, strict))
            for path, points in zip(paths, run(paths), strict=True):
                for point in points:
                    self.put(point, strict=strict)
                if len(points) < len(path.indices):
                    failed = path.indices[len(points)]
                    side = int(path.indices[0] < path.origin)
                    tried[side, axis, failed] = True
            idle = 0 if paths else idle + 1
            k += 1

    def _paths(self, axis: int, tried: npt.NDArray[np.bool_], strict: bool) -> Iterator[GridPath]:
        """Return the paths of a round along an axis."""
        lines = np.moveaxis(self._indices, axis, -1).reshape(-1, self.grid.shape[axis])
        for line in lines:
            open_ = self.status[line] == UNKNOWN
            if not open_.any() or not self._leads[line].any():
                continue
            edges = np.flatnonzero(np.diff(np.concatenate([[False], open_, [False]]).astype(int)))
            for first, end in zip(edges[::2], edges[1::2], strict=True):
                gap = line[first:end]
                if first > 0 and self._leads[line[first - 1]] and not tried[0, axis, gap[0]]:
                    yield self._path(line[first - 1], gap, strict)
                elif end < len(line) and self._leads[line[end]] and not tried[1, axis, gap[-1]]:
                    yield self._path(line[end], gap[::-1], strict)

    def _path(self, origin: int, gap: npt.NDArray[np.int_], strict: bool) -> GridPath:
        start = InitialGuess(self.q[origin], self.poses[origin], self.wrenches[origin])
        return GridPath(start, int(origin), tuple(int(i) for i in gap), strict)
