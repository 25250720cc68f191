"""Statuses and findings about one state or command of a rod robot, and their severity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class RodStatus(IntEnum):
    """Outcome of a solve, a step or a command; sent as a number, shown by name.

    The numbers are part of the interface (``~/state``, saved files): new values go at the end.
    """

    OK = 0
    """A stable equilibrium, well inside the limits, and what was asked for."""
    NEAR_LIMIT = 1
    """Stable, but the smallest eigenvalue of K is nearly zero: motion stops here."""
    UNSTABLE = 2
    """An equilibrium that does not hold: the smallest eigenvalue of K, or of a rod, is <= 0."""
    UNREACHABLE = 3
    """The pose needs more than a rod or a joint can give; the message says which and how much."""
    NOT_CONVERGED = 4
    """No equilibrium was found. This is no proof that there is none."""
    LIMIT = 5
    """A joint command outside its limits: rejected, nothing changed."""
    BRANCH_CHANGED = 6
    """The solver arrived at another equilibrium than the neighbour of the last one."""
    HELD = 7
    """A step towards the command failed; the last good state is held."""
    SINGULAR = 8
    """A motion of the robot is not determined at all, e.g. a rod that can spin freely."""
    NOT_FINITE = 9
    """A command with NaN or infinity: rejected, nothing changed."""
    YIELD = 10
    """Solved, but a rod is strained beyond the yield strain that its material declares."""
    AMBIGUOUS = 11
    """Solved, but which of several equilibria is meant is not clear: a rod buckles to a side that
    was not declared, or the start is not the one that the description speaks of."""
    MOVING = 12
    """Good so far; the command is not reached yet and the next step goes on."""
    INVALID = 13
    """A command that means nothing, e.g. a matrix that is no rotation: rejected."""

    def __str__(self) -> str:
        """Return the name: what people print."""
        return self.name

    def __format__(self, spec: str) -> str:
        """Format the name, or the number where the format is one of numbers, e.g. ``d``."""
        return (
            int.__format__(self, spec)
            if spec[-1:] in tuple("bcdoxXn")
            else format(self.name, spec)
        )


WITH_SOLUTION = (
    RodStatus.OK,
    RodStatus.MOVING,
    RodStatus.NEAR_LIMIT,
    RodStatus.YIELD,
    RodStatus.AMBIGUOUS,
)
"""The state is a stable equilibrium of the present command, or of a point on the way to it."""

REJECTED = (RodStatus.LIMIT, RodStatus.NOT_FINITE, RodStatus.INVALID)
"""The command was not accepted; the target is what it was before."""

SEVERITY = (
    RodStatus.NOT_CONVERGED,
    RodStatus.SINGULAR,
    RodStatus.UNSTABLE,
    RodStatus.BRANCH_CHANGED,
    RodStatus.NOT_FINITE,
    RodStatus.INVALID,
    RodStatus.LIMIT,
    RodStatus.UNREACHABLE,
    RodStatus.NEAR_LIMIT,
    RodStatus.HELD,
    RodStatus.YIELD,
    RodStatus.AMBIGUOUS,
    RodStatus.MOVING,
    RodStatus.OK,
)
"""Statuses, most serious first: a result has the first of its findings."""


def is_good(status: RodStatus) -> bool:
    """Tell whether a status comes with a stable equilibrium that may be acted upon."""
    return status in WITH_SOLUTION


@dataclass(frozen=True)
class Finding:
    """One error, warning or note.

    Attributes:
        status: Its kind.
        message: A sentence: what, where, how much, what is expected.
        limb: Index of the limb concerned, or None.
        missing: How much is missing, [m] for lengths and slides, [rad] for angles; 0 if the
            finding is not about an amount.
    """

    status: RodStatus
    message: str
    limb: int | None = None
    missing: float = 0.0
