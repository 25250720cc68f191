"""How a controller's task went, counted step by step for `cards_core.loop.verdict`.

A task is to track coordinates. They and the entries of their error have units, by which lengths
and angles are told apart: `units_of`. `TaskTally` counts the steps and sums their errors,
`MissedStates` counts the states that got no answer, from the stamps of those that did.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from cards_core.control.interface import Controller, ControlStatus
from cards_core.errors import UnknownNameError
from cards_core.loop.verdict import TaskFacts, Tracking
from cards_core.robot.model import Tree
from cards_core.trajectories.base import Tolerance
from cards_core.typing import Array

# Units -----------------------------------------------------------------------------------------


Units: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Of the coordinates and of the entries of the error: ``m``, ``rad``, or empty for components of
quaternions, which only coordinates are."""

POSITIONS = ("x", "y", "z")
"""Operational coordinates that are lengths; all others are components of a quaternion."""


def joint_units(tree: Tree) -> Units:
    """Return the units of a task in joint space: coordinates q, error in the tangent space."""
    units: list[str] = []
    for node in tree.nodes:
        unit = "m" if node.kind == "prismatic" else "rad"
        units += [unit] if node.nq == 1 else [""] * node.nq
    return tuple(units), error_units(units)


def error_units(units: Sequence[str]) -> tuple[str, ...]:
    """Return the units of the entries of an error: three for the four of a quaternion.

    Args:
        units: Of the coordinates: ``m``, ``rad``, or empty for components of quaternions.
    """
    out: list[str] = []
    place = 0
    while place < len(units):
        unit = units[place]
        out += [unit] if unit else ["rad"] * 3
        place += 1 if unit else 4
    return tuple(out)


def operational_units(names: Sequence[str]) -> Units:
    """Return the units of a task in operational space.

    Args:
        names: Of the coordinates: some of x, y, z, then those of a quaternion, if any.
    """
    units = tuple("m" if name in POSITIONS else "" for name in names)
    return units, error_units(units)


def units_of(controller: Controller) -> Units:
    """Return the units of what a controller tracks; none if it follows no reference.

    Raises:
        UnknownNameError: The controller has references in a space that is not known here.
    """
    if not controller.reference_names:
        return (), ()
    if controller.space == "joint":
        return joint_units(controller.model.dynamics.tree)
    if controller.space == "operational":
        return operational_units(controller.reference_names)
    raise UnknownNameError("space of references", controller.space, ("joint", "operational"))


# Missed states ---------------------------------------------------------------------------------


_REMEMBERED = 100  # gaps
_SHARE = 10  # the period is the gap that one in so many is shorter than


class MissedStates:
    """Tells how many states lay between two answered ones.

    A host does not say its period, so it is estimated: the tenth percentile of the last gaps. Not
    the shortest, because stamps of a real robot are measured and now and then two lie close; nor
    the median, because a controller that answers every second state would then miss none.

    Attributes:
        count: Missed states since the start.
    """

    def __init__(self) -> None:
        self.count = 0
        self._gaps: deque[int] = deque(maxlen=_REMEMBERED)

    def note(self, gap: int) -> None:
        """Take over the time between two answered states, [ns]."""
        self._gaps.append(gap)
        period = sorted(self._gaps)[len(self._gaps) // _SHARE]
        self.count += max(0, round(gap / period) - 1)


# Steps and errors ------------------------------------------------------------------------------


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
        """Start again."""
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
