"""Errors of workspace jobs."""

from cards_core.errors import CardsError


class PointSetError(CardsError):
    """A grid, sample, ray or file of points that cannot be meant: the message says why."""
