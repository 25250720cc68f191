"""Errors of the real robot: a port, a board, a message, or the robot as a whole.

Messages are one line, name board and port where there is one, and say what to do.
"""

from __future__ import annotations

from cards_core.errors import CardsError


class HardwareError(CardsError):
    """Something of the real robot is not as it must be."""


class BoardError(HardwareError):
    """A board that is not the one expected, does not answer, or refuses.

    Args:
        board: Its name.
        port: Its port.
        problem: What is wrong, and what would be right.
    """

    def __init__(self, board: str, port: str, problem: str) -> None:
        self.board = board
        self.port = port
        super().__init__(f"board '{board}' at {port or 'no port'}: {problem}")


class RequestError(BoardError):
    """A request that a board refused or did not answer.

    Args:
        board: Its name.
        port: Its port.
        request: Name of the message.
        problem: What happened.
        code: What the board answered; None for nothing.
        detail: Muscle or field concerned; None if none.
    """

    def __init__(
        self,
        board: str,
        port: str,
        request: str,
        problem: str,
        *,
        code: int | None = None,
        detail: int | None = None,
    ) -> None:
        self.request = request
        self.code = code
        self.detail = detail
        super().__init__(board, port, f"{request}: {problem}")


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
