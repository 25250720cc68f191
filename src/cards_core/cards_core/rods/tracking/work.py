"""How much work a search has done, and whether it may go on.

Work is counted in Newton iterations of the solver, never in seconds: the same search then ends at
the same place on every machine, however busy it is.
"""

from __future__ import annotations

from collections.abc import Callable

from cards_core.rods.robots.solver import RodRobotSolver

Progress = Callable[[int, int], None]
"""Called with the iterations done and those allowed, now and then."""

TELLINGS = 200
"""How often progress is told: drawing it takes as long as an iteration."""


class Work:
    """Newton iterations of one search, of those that it may make.

    Args:
        solver: Does the work; nobody else may use it meanwhile.
        limit: Iterations after which nothing new is begun.
        progress: Told some `TELLINGS` times on the way to the limit.
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
        if self._progress is not None and (not left or spent - self._told > self.limit / TELLINGS):
            self._told = spent
            self._progress(min(spent, self.limit), self.limit)
        return left

    def charge(self, iterations: int) -> None:
        """Count iterations of another solver, made for this search or an earlier one."""
        self._begin -= iterations
