"""Dispatches what a board sends.

Everything here runs in the reader thread of the line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from cards_hardware.boards.events import BoardEvent, event_words
from cards_hardware.boards.handshake import Handshake
from cards_hardware.boards.layout import BoardLayout
from cards_hardware.boards.telemetry import BoardSample, FastState, Telemetry, read_fast_state
from cards_hardware.boards.transport import Transport
from cards_hardware.errors import ProtocolError
from cards_hardware.protocol.codec import unpack
from cards_hardware.protocol.enums import EventCode, FastFlag, HeaderFlag, Severity
from cards_hardware.protocol.frames import Frame
from cards_hardware.protocol.schema import NO_INDEX8
from cards_hardware.protocol.table import MESSAGES

# plain numbers: operations on enumerations cost microseconds
_STATE_FAST = MESSAGES["STATE_FAST"].id
_SIMULATED, _LIMITS_LOADED = int(FastFlag.SIMULATED), int(FastFlag.LIMITS_LOADED)
_CONTRADICTIONS = 5  # exchanges in a row that do not fit the clock: it was set anew


class Receiver:
    """Decodes, counts and dispatches the frames of one board.

    Args:
        layout: What the board should be.
        handshake: Decides which frames are of this board.
        transport: Knows the requests that wait for an answer.
        on_sample: Called with every new sample of a session.
        on_event: Called with what happened.
        on_state: Called after the state of the board changed.
        on_restart: Called with the sign when the board seems to have restarted.

    Attributes:
        telemetry: The newest values.
        state: State of the board, None before the first report.
        fault: Bits of `Fault`.
        simulated: Whether the board says that it is emulated.
        heard: Time of the newest frame, [s].
        peer_t_us: Time stamp of the board's newest heartbeat.
        in_session: Whether what comes belongs to a session.
        expects_limits: Whether the board had its limits loaded in this session.
    """

    def __init__(
        self,
        layout: BoardLayout,
        handshake: Handshake,
        transport: Transport,
        *,
        on_sample: Callable[[BoardSample], None] | None,
        on_event: Callable[[BoardEvent], None] | None,
        on_state: Callable[[int], None],
        on_restart: Callable[[str], None],
    ) -> None:
        self._layout = layout
        self._handshake = handshake
        self._transport = transport
        self._on_sample = on_sample
        self._on_event = on_event
        self._on_state = on_state
        self._on_restart = on_restart
        self.telemetry = Telemetry()
        self.state: int | None = None
        self.fault = 0
        self.simulated = False
        self.heard = 0.0
        self.peer_t_us = 0
        self.in_session = False
        self.expects_limits = False
        self._contradictions = 0

    def reset(self) -> None:
        """Forget what belongs to a session."""
        self.telemetry.reset()
        self.state = None
        self.fault = 0
        self.expects_limits = False

    def tell(self, severity: int, text: str) -> None:
        """Report what was noticed on this side; any thread."""
        if self._on_event is not None:
            self._on_event(BoardEvent(time.monotonic(), self._layout.name, severity, text))

    def take(self, frame: Frame, arrival: float) -> None:
        """Take a frame.

        Args:
            frame: As it came.
            arrival: Host monotonic time, [s].
        """
        if not self._handshake.belongs(frame):
            return
        missing = self.telemetry.count(frame)
        self.heard = arrival
        try:
            if frame.type == _STATE_FAST:
                self._fast(frame, read_fast_state(frame.payload), missing, arrival)
            else:
                self._other(frame, unpack(frame), arrival)
        except ProtocolError:
            return  # a message that we do not know

    def _other(self, frame: Frame, values: Mapping[str, Any], arrival: float) -> None:
        match frame.name:
            case "STATE_SLOW":
                self.telemetry.slow = values
                self.fault = values["fault"]
            case "TIME_SYNC":
                self._time(values, arrival)
            case "HEARTBEAT":
                self.peer_t_us = frame.t_us
                self.fault = values["fault"]
                self._new_state(values["state"])
            case "IDENT":
                self._handshake.identified(values)
                self.simulated = bool(frame.flags & HeaderFlag.SIMULATED)
                self._transport.answered(frame.name, values)
            case "EVENT":
                self._event(values, arrival)
            case "LOG":
                self.tell(values["level"], values["text"])
            case "ESTOP":
                self.tell(Severity.ERROR, "the board reports an emergency stop")
            case _:
                self._transport.answered(frame.name, values)

    def _fast(self, frame: Frame, state: FastState, missing: int, arrival: float) -> None:
        flags = state.head["flags"]
        if self.in_session and self.expects_limits and not flags & _LIMITS_LOADED:
            self._on_restart("it has lost its limits")
            return
        self.simulated = bool(flags & _SIMULATED)
        sample = self.telemetry.fast(frame, state, missing, arrival)
        self._new_state(sample.state)
        if self._on_sample is not None and self.in_session:
            self._on_sample(sample)

    def _time(self, values: Mapping[str, Any], arrival: float) -> None:
        t4 = round(arrival * 1e6)
        t1 = t4 - ((t4 - values["t1"]) & 0xFFFFFFFF)
        clock = self.telemetry.clock
        if clock.add(t1, values["t2"], values["t3"], t4):
            self._contradictions = 0
            return
        # a machine that stands still makes one such exchange now and then
        self._contradictions += 1
        if self._contradictions < _CONTRADICTIONS:
            return
        self._contradictions = 0
        if self.expects_limits:  # it still has them, so it has not started anew
            clock.reset()
            self.tell(Severity.WARN, "its clock was set anew")
        else:
            self._on_restart("its clock was set anew")

    def _event(self, values: Mapping[str, Any], arrival: float) -> None:
        if values["code"] == EventCode.FAULT_SET:
            self.fault |= values["value"] & 0xFFFFFFFF
        if self._on_event is None:
            return
        row, code, text = values["muscle"], values["code"], values["text"]
        names = self._layout.muscles
        muscle = None
        if row != NO_INDEX8:
            muscle = names[row] if row < len(names) else f"muscle {row}"
        text = text or event_words(code, values["value"])
        self._on_event(
            BoardEvent(
                arrival, self._layout.name, values["severity"], text, code, muscle, values["value"]
            )
        )

    def _new_state(self, state: int) -> None:
        if state != self.state:
            self.state = state
            self._on_state(state)
