"""Words for events."""

import pytest

from cards_hardware.boards.events import (
    event_words,
    flag_names,
    flag_words,
    state_word,
)
from cards_hardware.protocol.enums import (
    AckCode,
    EventCode,
    Fault,
    MuscleFlag,
    ParameterId,
    State,
)
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


@pytest.mark.parametrize(
    ("code", "value", "words"),
    [
        (EventCode.BOOT, 99, "started: number 99"),
        (EventCode.STATE, State.BOOT << 8 | State.DISARMED, "BOOT -> DISARMED"),
        (EventCode.STATE, State.HOLD << 8 | 200, "HOLD -> number 200"),
        (EventCode.COMMAND_LATE, 20_600, "no fresh command for 21 ms: HOLD"),
        (EventCode.COMMAND_GONE, 2_000_000, "no fresh command for 2000 ms: DISARMED"),
        (EventCode.HEARTBEAT_LOST, 250_000, "no heartbeat of the host for 250 ms"),
        (EventCode.ESTOP, 77, "emergency stop: number 77"),
        (EventCode.FAULT_CLEARED, 0, "cleared: no fault"),
        (EventCode.FAULT_CLEARED, int(Fault.TICK), "cleared: control ticks came late too often"),
        (EventCode.FAULT_SET, int(Fault.TICK | Fault.VBUS_LOW),
         "fault: supply voltage below its minimum; control ticks came late too often"),
        (EventCode.FAULT_SET, -(2**31), "fault: unknown bits 0x80000000"),
        (EventCode.MUSCLE_FLAG, 0, "no flag"),
        (EventCode.MUSCLE_FLAG, int(MuscleFlag.OVERSPEED), "much faster than allowed"),
        (EventCode.MUSCLE_FLAG, -(2**31), "unknown bits 0x80000000"),
        (EventCode.REFUSED, 0xFE << 8 | 200, "refused type 0xFE: number 200"),
        (EventCode.PARAMETER, 0xFFF0 << 8 | 255, "parameter 0xfff0[255] was changed"),
        (EventCode.TICK_LATE, 1_260, "a control tick came late, 1.3 ms"),
    ],
)  # fmt: skip
def test_words_are_whole_and_numbers_in_their_units(code, value, words):
    assert event_words(int(code), int(value)) == words


def test_events_without_words_of_their_own_have_those_of_the_table_and_the_value():
    plain = [code for code in EventCode if event_words(int(code), 4711).endswith("(4711)")]
    for code in plain:
        assert event_words(int(code), -3) == f"{code.text.split(';')[0]} (-3)"


def test_flags_in_words_and_names():
    flags = MuscleFlag.SLACK | MuscleFlag.SOFT_TEMPERATURE
    assert flag_words(flags) == (
        "winding without tension: wire off its pulley or hook",
        "above the soft temperature, tension limit derated",
    )
    assert flag_words(Fault(1 << 30 | int(Fault.TICK)))[1:] == ("unknown bits 0x40000000",)
    assert flag_words(Fault(0)) == ()
    assert flag_names(flags) == ("slack", "soft temperature")
    assert flag_names(Fault(0)) == ()


def test_states_in_words():
    assert [state_word(None), state_word(State.HOLD), state_word(99)] == [
        "unknown", "HOLD", "number 99",
    ]  # fmt: skip
