"""Errors of the real robot: one line that names board, port and request."""

import pytest

from cards_core.errors import CardsError
from cards_hardware.errors import BoardError, HardwareError, ProtocolError, RequestError


def test_a_board_is_named_with_its_port():
    error = BoardError("arm", "/dev/arm", "is asleep")
    assert str(error) == "board 'arm' at /dev/arm: is asleep"
    assert (error.board, error.port) == ("arm", "/dev/arm")
    assert str(BoardError("arm", "", "is asleep")) == "board 'arm' at no port: is asleep"
    assert isinstance(error, HardwareError)
    assert isinstance(error, CardsError)


def test_a_request_is_named_with_what_was_answered():
    error = RequestError("arm", "/dev/arm", "LIMITS", "refused", code=3, detail=7)
    assert str(error) == "board 'arm' at /dev/arm: LIMITS: refused"
    assert (error.board, error.port, error.request) == ("arm", "/dev/arm", "LIMITS")
    assert (error.code, error.detail) == (3, 7)
    silent = RequestError("arm", "/dev/arm", "LIMITS", "no answer")
    assert (silent.code, silent.detail) == (None, None)
    assert isinstance(error, BoardError)


@pytest.mark.parametrize(
    ("field", "text"),
    [("rate[1]", "CMD_IMPEDANCE.rate[1]: too fast"), ("", "CMD_IMPEDANCE: too fast")],
)
def test_a_message_is_named_with_its_field(field, text):
    error = ProtocolError("CMD_IMPEDANCE", "too fast", field)
    assert str(error) == text
    assert (error.message, error.field) == ("CMD_IMPEDANCE", field)
    assert ProtocolError("A", "b").field == ""
    assert not isinstance(error, HardwareError)
