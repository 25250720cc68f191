"""Limits that a board has already, where it is in a state in which it takes none."""

from types import SimpleNamespace

import numpy as np
import pytest

from cards_hardware.boards.handshake import Handshake, limits_message
from cards_hardware.boards.layout import NAMES, BoardLayout, MuscleLimits
from cards_hardware.errors import RequestError
from cards_hardware.protocol.enums import AckCode

WANTED = tuple(MuscleLimits(400.0 - i, slew=1000.0 + i, length_max=0.5) for i in range(3))


class StoppedBoard:
    """Refuses limits for its state, and tells those it has."""

    node = 1

    def __init__(self):
        self.has = limits_message(WANTED)

    def request(self, name, _values, **_options):
        if name == "PARAM_SET":
            return {}  # a stopped board takes what it does without a host
        if name == "LIMITS":
            raise RequestError("arm", "port", name, "refused", code=AckCode.STATE)
        assert name == "LIMITS_GET"
        return self.has


def handshake(board, *, loaded=True):
    layout = BoardLayout("arm", 1, "port", muscles=("a", "b", "c"), limits=WANTED)
    made = Handshake(layout, board, any_node=False)
    made.ident = SimpleNamespace(limits_loaded=loaded)
    return made


def test_a_stopped_board_that_has_its_limits_needs_them_no_more():
    assert handshake(StoppedBoard()).load_limits()
    assert not handshake(StoppedBoard(), loaded=False).load_limits()


@pytest.mark.parametrize("muscle", [0, 2])
@pytest.mark.parametrize("name", NAMES)
def test_one_limit_of_one_muscle_that_differs_is_enough_to_need_them_again(name, muscle):
    """A muscle with the current or tension of another robot would be armed otherwise."""
    board = StoppedBoard()
    board.has[name] = np.array(board.has[name], dtype=float)
    board.has[name][muscle] += 2.0
    assert not handshake(board).load_limits()
