"""One walk over a grid of plate poses: an equilibrium followed from point to point.

Between two neighbours the plate moves in steps of at most 10 mm and 4 degrees; each step starts
from the last, and a judge (`cards_core.rods.tracking.judge`) refuses what is no neighbour of it,
so that a walk stays on one branch. A refused step is halved, down to a sixteenth of its first
size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from cards_core.checks import finite_array, finite_number
from cards_core.rods.analysis.held_index import held_index
from cards_core.rods.analysis.plate_grid import PlateGrid
from cards_core.rods.analysis.status import GOOD, SliceStatus
from cards_core.rods.robots.guess import Guess
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.collapse import STOP_FRACTION, WARN_FRACTION
from cards_core.rods.tracking.judge import Bounds, Judge
from cards_core.rods.tracking.path import Target, between, way_between
from cards_core.typing import Array

LARGEST_STEP = 2.0
"""Largest step, in steps of a tracker (5 mm, 2 degrees)."""

SMALLEST_SHARE = 1.0 / 16.0
"""Smallest step, as a share of the first."""

LOOSE = 10.0
"""How much farther than a tracker's step one may jump where the robot does not hold anyway: the
prediction that jumps are compared with means little near the poles of the stiffness."""

SECTIONS = 25
"""Sections of each rod at which curvature and stress are looked at."""


@dataclass(frozen=True)
class SliceOptions:
    """What counts as good.

    Attributes:
        near: Smallest stiffness, relative to home, below which a point is NEAR_LIMIT.
        stop: The same below which a tracker stops: no way leads on from there.
        wrench: External wrench on the plate about its origin, shape (6,), [N, N m].
        frame: ``world`` (dead load) or ``plate`` (it turns with the plate).
    """

    near: float = WARN_FRACTION
    stop: float = STOP_FRACTION
    wrench: Array = field(default_factory=lambda: np.zeros(6))
    frame: str = "world"

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            CardsError: A share that is not between 0 and 1, a wrench that is none.
        """
        for name in ("near", "stop"):
            finite_number(getattr(self, name), f"{name} (share of home)", at_least=0.0, below=1.0)
        finite_array(self.wrench, "wrench", (6,))


@dataclass(frozen=True, eq=False)
class Point:
    """What was found at one pose.

    Attributes:
        index: Of the point.
        status: OK, NEAR_LIMIT, YIELD, JOINT_LIMIT or UNSTABLE.
        passable: Whether a robot may go on from here.
        numbers: min_eigenvalue, curvature, stress, strain, rod_index: shape (5,); the last is the
            number of ways in which rods collapse while the plate is held.
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
    def guess(self) -> Guess:
        """The state, for a solver to start from."""
        return Guess(self.q, self.pose, self.base_wrenches)


@dataclass(frozen=True, eq=False)
class Walk:
    """A way over the grid.

    Attributes:
        start: State at the first point.
        origin: Its index.
        indices: Points to visit, in order.
        strict: Stop at the first point, or step between points, that is not passable.
    """

    start: Guess
    origin: int
    indices: tuple[int, ...]
    strict: bool


class Walker:
    """Walks.

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
        self._judges = {
            strict: Judge(self.robot, kind, max(reference, 1e-300))
            for strict, kind in ((True, bounds), (False, loose))
        }
        self._lower, self._upper = self.robot.q_lower - 1e-9, self.robot.q_upper + 1e-9
        yields = [limb.rod.yield_strain for limb in self.robot.limbs]
        self._yields = np.array([math.inf if limit is None else limit for limit in yields])

    def walk(self, walk: Walk, seen: Callable[[], None] | None = None) -> list[Point]:
        """Return the points that were found; the walk ended behind the last of them.

        Args:
            walk: Where to go.
            seen: Called after every point.
        """
        self.solver.forget()  # the same points, whichever walks were made before this one
        here = self._target(walk.origin)
        solution = self._solve(here, walk.start)
        found: list[Point] = []
        if not solution.converged:
            return found
        for index in walk.indices:
            there = self._target(index)
            reached = self._go(solution, here, there, strict=walk.strict)
            if reached is None:
                break
            point = self.point(index, reached)
            found.append(point)
            if seen is not None:
                seen()
            if walk.strict and not point.passable:
                break
            solution, here = reached, there
        return found

    def point(self, index: int, solution: Solution) -> Point:
        """Describe an equilibrium."""
        table = self.solver.shapes(solution, SECTIONS).table[:, :, 3:]
        worst = table.max(axis=1)
        eigenvalue = solution.min_eigenvalue
        collapses = int(held_index(self.solver, solution).sum())
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
        count = max(1, math.ceil(way_between(self.robot, here, there).steps / LARGEST_STEP))
        stride = 1.0 / count
        least, done = SMALLEST_SHARE * stride, 0.0
        while done < 1.0:
            goal = done + stride
            goal = 1.0 if goal > 1.0 - 1e-9 else goal
            trial = self._solve(between(here, there, goal), last)
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
        """Tell whether a trial is no neighbour; one that only collapsed is, and is noted so."""
        finding = self._judges[strict].refuse(last, trial, there)
        return finding is not None and finding.status is not RodStatus.UNSTABLE

    def _passable(self, solution: Solution) -> bool:
        floor = self.options.stop * self.reference
        if not solution.min_eigenvalue > floor or self._outside(solution):
            return False
        return not held_index(self.solver, solution).any()

    def _target(self, index: int) -> Target:
        options = self.options
        return Target(None, self.grid.pose(index), options.wrench, options.frame)

    def _solve(self, target: Target, start: Guess | Solution) -> Solution:
        assert target.pose is not None
        return self.solver.igm(target.pose, wrench=target.wrench, frame=target.frame, start=start)
