"""Homotopy: a known equilibrium followed along the straight line from one target to another.

The step length adapts: it grows while steps are accepted and shrinks where one is refused. A
tracker moves a robot and must avoid doubtful states; this only searches for a state, so its steps
may be centimetres long.

Work is counted in Newton iterations of the solver, never in seconds: the same search then ends at
the same place on every machine, whatever its load.
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
"""Called with the iterations made and those allowed, now and then."""

REPORTS = 200
"""Number of progress reports: drawing one takes as long as an iteration."""


class WorkCounter:
    """Counts the Newton iterations of one search and limits them.

    Args:
        solver: Does the work; nobody else may use it meanwhile.
        limit: Iterations after which nothing new is begun.
        progress: Called some `REPORTS` times on the way to the limit.
    """

    def __init__(
        self, solver: RodRobotSolver, limit: int, progress: Progress | None = None
    ) -> None:
        self._solver, self.limit, self._progress = solver, limit, progress
        self._begin = solver.iterations
        self._reported = 0

    @property
    def spent(self) -> int:
        """Iterations so far."""
        return self._solver.iterations - self._begin

    @property
    def left(self) -> bool:
        """Whether something new may be begun."""
        spent = self.spent
        left = spent < self.limit
        if self._progress is not None and (
            not left or spent - self._reported > self.limit / REPORTS
        ):
            self._reported = spent
            self._progress(min(spent, self.limit), self.limit)
        return left

    def charge(self, iterations: int) -> None:
        """Count iterations of another solver, made for this search or an earlier one."""
        self._begin -= iterations


FIRST_STEP = 4.0
"""First step, in steps of a tracker."""

LARGEST_STEP = 16.0
"""Greatest step, in steps of a tracker."""


@dataclass(frozen=True, eq=False)
class ContinuationResult:
    """Where a continuation ended.

    Attributes:
        solution: The last equilibrium.
        fraction: Part of the line that was covered; 1 if the end was reached.
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
    acceptance: StepAcceptance,
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
        acceptance: Refuses a step that is no neighbour of the last state, or collapses.
        solves: Greatest number of solves.
        work: No solve is begun once its limit is reached.
        visit: Called with every accepted state.
    """
    unit = 1.0 / max(target_distance(solver.robot, origin, target).steps, 1.0)
    step, smallest, largest = FIRST_STEP * unit, unit / 64.0, LARGEST_STEP * unit
    solution, fraction, count, refusal = start, 0.0, 0, ""
    last = origin
    while fraction < 1.0 and count < solves and (work is None or work.left):
        goal = min(1.0, fraction + step)
        point = interpolate(origin, target, goal)
        trial = solve_target(solver, point, solution)
        count += 1
        finding = acceptance.refuse(solution, trial, point, np.asarray(point.wrench) - last.wrench)
        if finding is None:
            solution, fraction, last = trial, goal, point
            if visit is not None:
                visit(trial)
            step = min(largest, 1.7 * step)
            continue
        refusal = finding.message
        step *= 0.4
        if step < smallest:
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
