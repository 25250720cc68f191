"""Words for the events of a board, whose frames carry numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cards_hardware.board_data import flag_words, state_word
from cards_hardware.protocol.enums import (
    AckCode,
    EstopReason,
    EventCode,
    Fault,
    MuscleFlag,
    ResetCause,
)
from cards_hardware.protocol.parameters import ParameterId
from cards_hardware.protocol.table import BY_ID


def _faults(value: int) -> str:
    return "; ".join(flag_words(Fault(value & 0xFFFFFFFF)))


def _muscle(value: int) -> str:
    return "; ".join(flag_words(MuscleFlag(value & 0xFFFFFFFF)))


def _refused(value: int) -> str:
    kind, code = value >> 8, value & 255
    name = BY_ID[kind].name if kind in BY_ID else f"type 0x{kind:02X}"
    return f"{name}: {_member(AckCode, code)}"


def _member(kind: type[AckCode] | type[EstopReason] | type[ResetCause], value: int) -> str:
    known = {int(item): item.text for item in kind}
    return known.get(value, f"number {value}")


def _parameter(value: int) -> str:
    known = {int(item): item.name for item in ParameterId}
    return f"{known.get(value >> 8, hex(value >> 8))}[{value & 255}]"


_WORDS: Mapping[int, Callable[[int], str]] = {
    EventCode.BOOT: lambda value: f"started: {_member(ResetCause, value)}",
    EventCode.STATE: lambda value: f"{state_word(value >> 8)} -> {state_word(value & 255)}",
    EventCode.REFUSED: lambda value: f"refused {_refused(value)}",
    EventCode.COMMAND_LATE: lambda value: f"no fresh command for {value * 1e-3:.0f} ms: HOLD",
    EventCode.COMMAND_LOST: lambda value: f"no fresh command for {value * 1e-3:.0f} ms: RELAX",
    EventCode.COMMAND_GONE: lambda value: f"no fresh command for {value * 1e-3:.0f} ms: DISARMED",
    EventCode.HEARTBEAT_LOST: lambda value: f"no heartbeat of the host for {value * 1e-3:.0f} ms",
    EventCode.ESTOP: lambda value: f"emergency stop: {_member(EstopReason, value)}",
    EventCode.FAULT_SET: lambda value: f"fault: {_faults(value)}",
    EventCode.FAULT_CLEARED: lambda value: f"cleared: {_faults(value) or 'no fault'}",
    EventCode.MUSCLE_FLAG: lambda value: _muscle(value) or "no flag",
    EventCode.MUSCLE_RELAXED: lambda value: f"relaxed by the board: {_muscle(value)}",
    EventCode.PARAMETER: lambda value: f"parameter {_parameter(value)} was changed",
    EventCode.TICK_LATE: lambda value: f"a control tick came late, {value * 1e-3:.1f} ms",
}
_CODES = frozenset(int(item) for item in EventCode)


def event_words(code: int, value: int) -> str:
    """Return what an event says.

    Args:
        code: `EventCode`; one that this version does not know is named by its number.
        value: Of the event.
    """
    if code not in _CODES:
        return f"event {code}, value {value}"
    words = _WORDS.get(code)
    if words is not None:
        return words(value)
    return f"{EventCode(code).text.split(';')[0]} ({value})"
