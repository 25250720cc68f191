"""How much work a search has done, and whether it may go on.

Work is counted in Newton iterations of the solver, never in seconds: the same search then ends at
the same place on every machine, however busy it is.

MERGED From an equilibrium that is known to one that is wanted, along the way between the commands.

Strides adapt: they grow while the solver follows in few iterations and halve where a solve is
refused. Unlike a tracker, which moves a robot and must not go through anything doubtful, this only
looks for a state: it may stride centimetres at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cards_core.rods.robots.initial_guess import InitialGuess
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.tracking.acceptance import StepAcceptance
from cards_core.rods.tracking.targets import Target, interpolate, target_distance

Progress = Callable[[int, int], None]
"""Called with the iterations done and those allowed, now and then."""


REPORTS = 200
"""How often progress is told: drawing it takes as long as an iteration."""


class WorkCounter:
    """Newton iterations of one search, of those that it may make.

    Args:
        solver: Does the work; nobody else may use it meanwhile.
        limit: Iterations after which nothing new is begun.
        progress: Told some `REPORTS` times on the way to the limit.
    """

    def __init__(
        self, solver: RodRobotSolver, limit: int, progress: Progress | None = None
    ) -> None:
        self._solver, self.limit, self._progress = solver, limit, progress
        self._begin = solver.iterations
        self._told = 0

    @property
    def spent(self) -> int:
        """Iterations so far."""
        return self._solver.iterations - self._begin

    @property
    def left(self) -> bool:
        """Whether something new may be begun."""
        spent = self.spent
        left = spent < self.limit
        if self._progress is not None and (not left or spent - self._told > self.limit / REPORTS):
            self._told = spent
            self._progress(min(spent, self.limit), self.limit)
        return left

    def charge(self, iterations: int) -> None:
        """Count iterations of another solver, made for this search or an earlier one."""
        self._begin -= iterations


FIRST_STRIDE = 4.0
"""First stride, in steps of a tracker."""


LARGEST_STRIDE = 16.0
"""Greatest stride, in steps of a tracker."""


@dataclass(frozen=True, eq=False)
class ContinuationResult:
    """How far a homotopy came.

    Attributes:
        solution: The last equilibrium.
        fraction: Part of the way that was gone; 1 if the end was reached.
        solves: Solves made.
        refusal: Why it ended before, in words.
    """

    solution: Solution
    fraction: float
    solves: int
    refusal: str = ""

    @property
    def arrived(self) -> bool:
        """Whether the end was reached."""
        return self.fraction >= 1.0


def follow(
    solver: RodRobotSolver,
    start: Solution,
    origin: Target,
    target: Target,
    judge: StepAcceptance,
    *,
    solves: int = 200,
    work: WorkCounter | None = None,
    visit: Callable[[Solution], object] | None = None,
) -> ContinuationResult:
    """Follow an equilibrium from one target to another.

    Args:
        solver: Solver of the robot.
        start: Equilibrium of ``origin``.
        origin: Where to begin; of the same kind (joints or pose) as ``target``.
        target: Where to go.
        judge: Refuses what is no neighbour, or collapses.
        solves: Greatest number of solves.
        work: No solve is begun when nothing of it is left.
        visit: Called with every accepted state.
    """
    unit = 1.0 / max(target_distance(solver.robot, origin, target).steps, 1.0)
    stride, smallest, largest = FIRST_STRIDE * unit, unit / 64.0, LARGEST_STRIDE * unit
    solution, fraction, count, refusal = start, 0.0, 0, ""
    last = origin
    while fraction < 1.0 and count < solves and (work is None or work.left):
        goal = min(1.0, fraction + stride)
        point = interpolate(origin, target, goal)
        trial = solve_target(solver, point, solution)
        count += 1
        finding = judge.refuse(solution, trial, point, np.asarray(point.wrench) - last.wrench)
        if finding is None:
            solution, fraction, last = trial, goal, point
            if visit is not None:
                visit(trial)
            stride = min(largest, 1.7 * stride)
            continue
        refusal = finding.message
        stride *= 0.4
        if stride < smallest:
            break
    return ContinuationResult(solution, fraction, count, "" if fraction >= 1.0 else refusal)


def solve_target(
    solver: RodRobotSolver, target: Target, start: InitialGuess | Solution
) -> Solution:
    """Solve for a target, starting from a neighbour."""
    if target.q is not None:
        return solver.dgm(target.q, wrench=target.wrench, frame=target.frame, start=start)
    assert target.pose is not None
    return solver.igm(target.pose, wrench=target.wrench, frame=target.frame, start=start)
