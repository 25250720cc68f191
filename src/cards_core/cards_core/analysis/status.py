"""What can be said about one point of an analysis: an answer, or the reason why there is none."""

from __future__ import annotations

from enum import IntEnum


class PointStatus(IntEnum):
    """Outcome at one point; stored as ``uint8`` in results, by name in text and JSON.

    The first two are answers; every other value says why there is no answer, and the numbers of
    that point are NaN.
    """

    FEASIBLE = 0
    """The condition holds, or the solution was found."""
    INFEASIBLE = 1
    """The condition does not hold, or there is no solution: a proven no."""
    NOT_FINITE = 2
    """The point itself, or what follows from it, contains NaN or infinity."""
    NO_MUSCLES = 3
    """The robot has no muscles (or none that takes a tension)."""
    TOO_FEW_MUSCLES = 4
    """Fewer muscles than the question needs, whatever the point: m <= nv for wrench closure."""
    RANK_DEFICIENT = 5
    """The muscle Jacobian has a rank below nv here: some joint forces cannot be made at all."""
    UNPHYSICAL_INERTIA = 6
    """The mass matrix is not positive definite here."""
    NOT_CONVERGED = 7
    """The iteration ended without a solution; the values are the best that was found."""
    UNREACHABLE = 8
    """No coordinates within the limits have what was asked for, e.g. these muscle lengths."""
    OUTSIDE_LIMITS = 9
    """The coordinates are outside the joint limits."""
    PATH_NOT_FOUND = 10
    """The path of a wrapping muscle could not be found."""


ANSWERS = (PointStatus.FEASIBLE, PointStatus.INFEASIBLE)
"""Values that answer the question; all others say why there is no answer."""
