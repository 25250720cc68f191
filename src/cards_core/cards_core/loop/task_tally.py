"""Counts, step by step, what `cards_core.loop.verdict` needs to know of a controller's work."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cards_core.control.interface import ControlStatus
from cards_core.loop.verdict import TaskFacts, Tracking
from cards_core.trajectories.base import Tolerance
from cards_core.typing import Array


class TaskTally:
    """Counts of a controller's steps, and sums of their errors.

    Args:
        error_units: ``m`` or ``rad`` of every entry of the error, shape (k,); entries of another
            unit are not judged.
    """

    def __init__(self, error_units: Sequence[str]) -> None:
        units = list(error_units)
        self._groups = [
            _Group(unit, np.flatnonzero([item == unit for item in units]))
            for unit in ("m", "rad")
            if unit in units
        ]
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self._counts = dict.fromkeys(ControlStatus, 0)
        self._remaining = self._time = 0.0
        for group in self._groups:
            group.reset()

    def add(
        self,
        time: float,
        status: ControlStatus,
        error: Array,
        tolerance: Tolerance,
        remaining: float,
    ) -> None:
        """Count a step.

        Args:
            time: Of the state, [s].
            status: Of the answer.
            error: Desired minus actual, shape (k,), [m] and [rad].
            tolerance: Of what is tracked now.
            remaining: What is left of the reference, [s]; less than 0 when it is over, NaN if it
                has no end.
        """
        self._counts[status] += 1
        self._time, self._remaining = time, remaining
        if status is ControlStatus.INVALID_STATE:
            return
        for group in self._groups:
            group.add(error, tolerance)

    def facts(
        self,
        *,
        missed: int = 0,
        reached: float = -math.inf,
        not_finite: tuple[str, ...] = (),
    ) -> TaskFacts:
        """Return what has been counted.

        Args:
            missed: States without an answer.
            reached: Time at the end of the run, [s], if it is known.
            not_finite: Sentences on what was not finite.
        """
        counts = self._counts
        left = self._remaining - max(0.0, reached - self._time)
        return TaskFacts(
            steps=sum(counts.values()),
            infeasible=counts[ControlStatus.INFEASIBLE] + counts[ControlStatus.FALLBACK],
            invalid=counts[ControlStatus.INVALID_STATE],
            joint_limit=counts[ControlStatus.JOINT_LIMIT],
            missed=missed,
            remaining=left if left > 0.0 else 0.0,
            tracking=tuple(group.tracking() for group in self._groups if group.judged),
            not_finite=not_finite,
        )


class _Group:
    """The lengths, or the angles, of an error."""

    def __init__(self, unit: str, rows: np.ndarray) -> None:
        self._unit, self._rows = unit, rows
        self.reset()

    def reset(self) -> None:
        self.judged = 0
        self._squares = self._used = self._end = self._used_at_end = 0.0

    def add(self, error: Array, tolerance: Tolerance) -> None:
        limit = tolerance.length if self._unit == "m" else tolerance.angle
        if not limit > 0.0:
            return
        part = error[self._rows]
        square = float(part.dot(part))
        self.judged += 1
        self._squares += square
        self._used += square / limit**2
        self._end = math.sqrt(square)
        self._used_at_end = self._end / limit

    def tracking(self) -> Tracking:
        count = self.judged
        return Tracking(
            self._unit,
            math.sqrt(self._squares / count),
            self._end,
            math.sqrt(self._used / count),
            self._used_at_end,
        )
