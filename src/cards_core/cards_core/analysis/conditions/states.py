"""What all conditions of this package share: states of many points, and points without answer."""

from __future__ import annotations

import abc

import numpy as np
import numpy.typing as npt

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.base import Column, Results
from cards_core.analysis.conditions.options import ConditionError
from cards_core.analysis.native_library import conditions_library
from cards_core.analysis.quaternions import unit_quaternions
from cards_core.analysis.status import ANSWERS, PointStatus
from cards_core.dynamics import Dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.errors import ShapeError
from cards_core.robot.elements import Wrap
from cards_core.typing import Array


class PointCondition(abc.ABC):
    """Base of the conditions of this package; see `cards_core.analysis.conditions.base`.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        actuation: What drives the robot.

    Raises:
        ConditionError: There is no coordinate that muscles could move.
        CompilationError: There is no C compiler, and the library is not in the cache.
    """

    name: str
    columns: tuple[Column, ...]
    least_rows: int = 1
    """Fewest muscles and motors that the question needs at all."""

    def __init__(self, dynamics: Dynamics, actuation: Actuation) -> None:
        if self.least_rows and not len(actuation.coordinates):
            raise ConditionError(
                f"{self.name}: robot '{dynamics.robot.name}' has no coordinate that is left to "
                "muscles: every joint has a motor, or there is none"
            )
        if self.least_rows:
            conditions_library()  # what cannot be compiled is said here, not at the first point
        self._dynamics = dynamics
        self._actuation = actuation
        self._wraps = any(
            isinstance(element, Wrap)
            for muscle in dynamics.robot.muscles
            for element in muscle.path
        )

    @abc.abstractmethod
    def _answer(self, q: Array, state: BatchState) -> Results:
        """Answer for finite q and its state; the status of other points is written later."""

    def evaluate(self, q: Array) -> Results:
        """See `Condition.evaluate`.

        Raises:
            ShapeError: q does not have nq columns.
        """
        q = np.asarray(q, dtype=float)
        tree = self._dynamics.tree
        if q.ndim != 2 or q.shape[1] != tree.nq:
            raise ShapeError(f"q has shape {q.shape}, expected (n, {tree.nq})")
        q = unit_quaternions(tree, q)
        finite: npt.NDArray[np.bool_] = np.asarray(np.isfinite(q).all(axis=1))
        problems = np.full(len(q), PointStatus.FEASIBLE, dtype=np.uint8)
        problems[~finite] = PointStatus.NOT_FINITE
        if not finite.all():
            q = np.where(finite[:, None], q, tree.home)
        if len(self._actuation.lower) < self.least_rows:
            problems[finite] = PointStatus.NO_MUSCLES
        if (problems != PointStatus.FEASIBLE).all():
            return self._without_answer(problems)
        state = self._dynamics.batch(q, self._velocities(len(q)))
        # of finite coordinates a path that was not found makes NaN; so far away that squares
        # overflow, lengths are infinite, or NaN without any path to look for
        lost = ~np.isfinite(state.muscle_lengths).all(axis=1)
        if lost.any():
            far = np.isinf(state.muscle_lengths).any(axis=1) | (not self._wraps)
            problems[finite & lost & far] = PointStatus.NOT_FINITE
            problems[finite & lost & ~far] = PointStatus.PATH_NOT_FOUND
            for values in vars(state).values():
                values[lost] = 0.0
        results = self._answer(q, state)
        bad = problems != PointStatus.FEASIBLE
        results["status"][bad] = problems[bad]
        without = ~np.isin(results["status"], ANSWERS)
        for column in self.columns[1:]:
            results[column.name][without] = np.nan
        return results

    def _velocities(self, count: int) -> Array | None:
        """Return qd of every point; None for rest."""
        return None

    def _without_answer(self, problems: npt.NDArray[np.uint8]) -> Results:
        results: Results = {"status": problems}
        for column in self.columns[1:]:
            results[column.name] = np.full(len(problems), np.nan, dtype=column.dtype)
        return results
