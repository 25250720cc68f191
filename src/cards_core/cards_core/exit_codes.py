"""Exit codes of all commands and nodes: one table, and the one rule for answers of analyses.

Needs the standard library alone, because ``./cards`` uses it before anything is installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """How a process ends."""

    DONE = 0
    """Done. Of an analysis: answered, and the answer may be no."""
    FAILED = 1
    """It ran, and what it was for did not come about."""
    ERROR = 2
    """It could not run: the command line, a file or the machine; a line says what."""
    INTERRUPTED = 130
    """Ctrl-C."""
    PIPE_CLOSED = 141
    """The reader of the output closed the pipe, e.g. ``| head``."""


MEANING = {
    ExitCode.DONE: "done; of an analysis: answered, and the answer may be no (INFEASIBLE, "
    "UNREACHABLE, UNSTABLE, ...). Nodes, and pages of ./cards show, end so on Ctrl-C too",
    ExitCode.FAILED: "it ran without success: a run whose task failed or whose watchdog tripped, "
    "an analysis without an answer at any point (NOT_CONVERGED, NOT_FINITE, ...), a check, "
    "calibration, benchmark or test that failed, a node that ended with an error while it ran",
    ExitCode.ERROR: "it could not run: the command line, a file, a robot, a parameter, the "
    "machine; one line says what is wrong and what would be right",
    ExitCode.INTERRUPTED: "Ctrl-C",
    ExitCode.PIPE_CLOSED: "the reader of the output closed the pipe, as with `| head`",
}
"""For people: `./cards --help` and docs/bringup.md show it."""

UNANSWERED = frozenset(
    {
        # of points: cards_core.analysis.status.PointStatus
        "NOT_FINITE",
        "NO_MUSCLES",
        "UNPHYSICAL_INERTIA",
        "NOT_CONVERGED",
        "PATH_NOT_FOUND",
        # of rods besides: cards_core.rods.status.RodStatus and rods.analysis.status.SliceStatus
        "INVALID",
        "NOT_FOUND",
    }
)
"""Names of statuses that leave the question open; every other one says something of the robot."""


def of_answers(statuses: Iterable[str]) -> ExitCode:
    """Return how an analysis ends that has these statuses.

    ``DONE`` if one point is answered, or if nothing was asked; ``FAILED`` if all are open.

    Args:
        statuses: Their names, in any order and number.
    """
    names = set(statuses)
    return ExitCode.FAILED if names and names <= UNANSWERED else ExitCode.DONE


def of_process(code: int) -> int:
    """Return what a shell sees of a process that ended with a code of Python's `subprocess`.

    Args:
        code: As there: a signal's number below 0.
    """
    return 128 - code if code < 0 else code
