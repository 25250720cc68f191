"""Events of a board, and the protocol's numbers in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cards_hardware.protocol.enums import (
    AckCode,
    EstopReason,
    EventCode,
    Fault,
    MuscleFlag,
    ParameterId,
    ResetCause,
    State,
)
from cards_hardware.protocol.table import BY_ID


@dataclass(frozen=True)
class BoardEvent:
    """Something that happened on a board or on the way to it.

    Attributes:
        time: Time of arrival, host monotonic [s].
        board: Name.
        severity: `Severity`.
        text: What happened, in words.
        code: `EventCode` of an event of the board's; None for what was noticed here.
        muscle: Name of the muscle concerned, if any.
        value: See `EventCode`.
    """

    time: float
    board: str
    severity: int
    text: str
    code: int | None = None
    muscle: str | None = None
    value: int = 0


def flag_words(flags: Fault | MuscleFlag) -> tuple[str, ...]:
    """Return the set bits in words; a bit that this version does not know as a number."""
    kind = type(flags)
    words = [item.text.split(";")[0] for item in kind if item in flags]
    unknown = int(flags) & ~sum(int(item) for item in kind)
    if unknown:
        words.append(f"unknown bits {unknown:#x}")
    return tuple(words)


def flag_names(flags: Fault | MuscleFlag) -> tuple[str, ...]:
    """Return the names of the set bits, in lower case and without underscores."""
    return tuple(
        (item.name or hex(item)).lower().replace("_", " ") for item in type(flags) if item in flags
    )


def state_word(state: int | None) -> str:
    """Return the name of a state, also of one that this version does not know."""
    if state is None:
        return "unknown"
    return State(state).name if state in _STATES else f"number {state}"


_STATES = frozenset(int(item) for item in State)


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
        value: Value of the event.
    """
    if code not in _CODES:
        return f"event {code}, value {value}"
    words = _WORDS.get(code)
    if words is not None:
        return words(value)
    return f"{EventCode(code).text.split(';')[0]} ({value})"
