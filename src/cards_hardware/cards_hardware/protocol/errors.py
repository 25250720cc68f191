"""Errors of the codec."""

from __future__ import annotations

from cards_core.errors import CardsError


class ProtocolError(CardsError):
    """A message that cannot be written, or a payload that is none.

    Args:
        message: Name of the message.
        problem: What is wrong, and what would be right.
        field: Field concerned, with its index if it has one.
    """

    def __init__(self, message: str, problem: str, field: str = "") -> None:
        self.message = message
        self.field = field
        super().__init__(f"{message}{'.' if field else ''}{field}: {problem}")
