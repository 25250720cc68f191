"""Words for events."""

import pytest

from cards_hardware.boards.events import event_words
from cards_hardware.protocol.enums import AckCode, EventCode, Fault, MuscleFlag, ParameterId, State
from cards_hardware.protocol.table import MESSAGES


@pytest.mark.parametrize(
    ("code", "value", "words"),
    [
        (EventCode.STATE, State.ACTIVE << 8 | State.HOLD, "ACTIVE -> HOLD"),
        (EventCode.STATE, 99 << 8 | State.HOLD, "number 99 -> HOLD"),
        (EventCode.FAULT_SET, int(Fault.VBUS_LOW), "fault: supply voltage below its minimum"),
        (EventCode.MUSCLE_RELAXED, int(MuscleFlag.RUPTURE), "relaxed by the board: tension fell"),
        (EventCode.COMMAND_LOST, 100_400, "no fresh command for 100 ms: RELAX"),
        (
            EventCode.REFUSED,
            MESSAGES["CMD_TENSION"].id << 8 | AckCode.STALE,
            "refused CMD_TENSION: command older than the board accepts",
        ),
        (EventCode.PARAMETER, ParameterId.KP << 8 | 3, "parameter KP[3] was changed"),
        (EventCode.ESTOP, 1, "emergency stop: a stop button was pressed"),
        (200, 7, "event 200, value 7"),
    ],
)
def test_words(code, value, words):
    assert event_words(int(code), int(value)).startswith(words)


def test_every_event_has_words_for_every_value():
    for code in EventCode:
        for value in (0, 1, 255, 65536, 2**31 - 1, -1, -(2**31)):
            assert event_words(int(code), value)
