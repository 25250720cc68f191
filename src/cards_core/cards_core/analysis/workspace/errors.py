"""Errors of workspace jobs."""

from cards_core.errors import CardsError


class PointSetError(CardsError):
    """A grid, sample, ray or file of points that cannot be meant: the message says why."""


class JobError(CardsError):
    """A job or its folder that cannot be used: another job's, of other code, not writable."""
