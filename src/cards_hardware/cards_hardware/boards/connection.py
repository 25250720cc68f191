"""The session with one board: started, kept alive, supervised, and recovered when it is lost.

A recovered session only reads: the owner is told of every interruption, and decides when commands
may pass again. What the board sends is dispatched in the reader thread of the line.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from cards_core.errors import CardsError
from cards_hardware.boards.events import BoardEvent, event_words
from cards_hardware.boards.handshake import Handshake
from cards_hardware.boards.layout import BoardLayout
from cards_hardware.boards.line_thread import HEARTBEAT, LineThread
from cards_hardware.boards.serial_link import SerialLink
from cards_hardware.boards.telemetry import BoardSample, FastState, Telemetry, read_fast_state
from cards_hardware.boards.transport import Transport
from cards_hardware.errors import HardwareError, ProtocolError
from cards_hardware.protocol.codec import unpack
from cards_hardware.protocol.enums import (
    EventCode,
    FastFlag,
    HeaderFlag,
    ResetCause,
    Severity,
    State,
)
from cards_hardware.protocol.frames import Frame
from cards_hardware.protocol.schema import BROADCAST, NO_INDEX8
from cards_hardware.protocol.table import MESSAGES

OPEN_TIMEOUT = 2.0
"""For the first answer: opening the port resets some boards, [s]."""

SILENT = round(0.3 / HEARTBEAT)
"""Heartbeats of ours without a frame from the board, then it counts as gone: 0.3 s. Counted, not
timed: when this machine stands still for a while, the board's frames are waiting to be read."""

CARE = 0.02
"""Between two looks of the supervisor at a session, [s]."""

_BACKOFF = (0.1, 2.0)
"""First and longest pause between attempts to get a board back, [s]."""

_SYNC_FAST, _SYNC_SLOW = 0.02, 0.1  # [s] between exchanges of times, at first and then
_SYNC_FIRST = 16  # exchanges at the fast pace
_TIME = {"t1": 0, "t2": 0, "t3": 0}  # t1 is written when the frame goes out
_CAUSES = {int(item): item.text for item in ResetCause}


class Connection:
    """The line to a board and the session on it.

    Args:
        layout: What the board should be.
        on_sample: Called by the reader thread with every new sample.
        on_event: Called by any thread with what happened.
        on_open: Called when the line is open; what it sends goes out first.
        on_interruption: Called by any thread when the board's state is no longer certain: a
            session begins, is over, or the board seems to have restarted.
        on_care: Called every `CARE` during a session.
        on_state: Called by the reader thread after the state of the board changed.
        on_change: Called by any thread after the session began or ended.
        reconnect: Whether to look for the board again when it is lost.
        any_node: Whether to take the address of the first board that answers.
        thread: Keeps the line, see `SerialLink`.

    Attributes:
        link, transport, handshake, receiver: The parts.
        lock: Held while sessions begin; hold it while talking about states.
        connected: Whether there is a session.
        problem: Why there is no session, or why limits are missing; empty if all is well.
        restart: Sign that the board has restarted although the line is there; empty if none.
        limits_due: Whether the board has still to be told its limits.
        reconnects, resets: Since `open`.
    """

    def __init__(
        self,
        layout: BoardLayout,
        *,
        on_sample: Callable[[BoardSample], None] | None,
        on_event: Callable[[BoardEvent], None] | None,
        on_open: Callable[[], None],
        on_interruption: Callable[[], None],
        on_care: Callable[[], None],
        on_state: Callable[[int], None],
        on_change: Callable[[], None],
        reconnect: bool,
        any_node: bool,
        thread: LineThread | None,
    ) -> None:
        self._layout = layout
        self._on_open = on_open
        self._on_interruption = on_interruption
        self._on_care = on_care
        self._on_change = on_change
        self._reconnect = reconnect
        self.link = SerialLink(
            layout.port,
            layout.baudrate,
            on_frame=self._on_frame,
            on_lost=self._on_lost,
            thread=thread,
        )
        node = BROADCAST if any_node else layout.node
        self.transport = Transport(self.link, layout.name, node, self.why_gone)
        self.handshake = Handshake(layout, self.transport, any_node)
        self.receiver = Receiver(
            layout,
            self.handshake,
            self.transport,
            on_sample=on_sample,
            on_event=on_event,
            on_state=on_state,
            on_restart=self._on_restart,
        )
        self._exchanges = _TimeExchanges(self.transport, self.receiver)
        self._supervisor = _Supervisor(
            f"keep {layout.name}", care=self._care, lost=self._is_lost, recover=self._recover
        )
        self.lock = threading.RLock()
        self.connected = False
        self.problem = "not open"
        self.restart = ""
        self.limits_due = False
        self.reconnects = 0
        self.resets = 0

    # Opening and closing ----------------------------------------------------------------------

    def open(self) -> None:
        """Open the port and begin a session: identify, limits, clock.

        Raises:
            HardwareError: The port cannot be opened.
            BoardError: Not the right board, or one that does not answer.
        """
        self._supervisor.prepare()
        self.reconnects = self.resets = 0
        try:
            self._connect(OPEN_TIMEOUT)
        except CardsError as error:
            self.link.close()
            self.problem = str(error)
            raise
        self._supervisor.start()

    def close(self) -> None:
        """End the session. May be called at any time."""
        self._supervisor.stop()
        self.link.close()
        self._set_connected(False)
        self.problem = "not open"

    def wake(self) -> None:
        """Have the supervisor check at once."""
        self._supervisor.wake()

    def why_gone(self) -> str:
        """Return why nothing can be sent; empty if it can."""
        if self._supervisor.ending:
            return "the session is being closed"
        return "" if self.link.is_open else (self.problem or "not open")

    def load_limits(self) -> None:
        """Tell the board its limits, unless its state forbids that; see `limits_due`."""
        self.limits_due = not self.handshake.load_limits()
        self.receiver.expects_limits = bool(self._layout.limits) and not self.limits_due

    def _connect(self, timeout: float) -> None:
        """Open the line and begin a session."""
        self.link.open()
        self.receiver.heard = time.monotonic()
        self._on_open()
        self._begin(timeout)

    def _begin(self, timeout: float) -> None:
        """Begin a session on an open line."""
        with self.lock:
            self._on_interruption()
            self.restart = ""
            before = self.handshake.ident
            self.receiver.reset()
            ident = self.handshake.identify(timeout, new=True)
            if before and before.uid == ident.uid and before.boot_count != ident.boot_count:
                self.resets += 1
                cause = _CAUSES.get(ident.reset_cause, f"cause {ident.reset_cause}")
                self.receiver.tell(Severity.ERROR, f"the board has restarted: {cause}")
            if before and before.uid != ident.uid:
                text = f"another board than before: serial number {ident.uid}, was {before.uid}"
                self.receiver.tell(Severity.ERROR, text)
            self.load_limits()
            self.handshake.load_impedance()
            self.restart = ""
            self.problem = ""
            self.link.beat(True)
            self._set_connected(True)
        self._on_change()

    # What the reader thread notices -----------------------------------------------------------

    def _on_frame(self, frame: Frame, arrival: float) -> None:
        self.receiver.take(frame, arrival)

    def _on_restart(self, sign: str) -> None:
        """The board seems to have restarted although the line is there."""
        if not self.restart:
            self.restart = sign
            self._supervisor.wake()
        self._on_interruption()

    def _on_lost(self, reason: str) -> None:
        self._session_over(reason, f"port {self.link.port} lost: {reason}")
        self._supervisor.wake()

    def _session_over(self, reason: str, text: str) -> None:
        self.link.beat(False)
        self._set_connected(False)
        self._on_interruption()
        self.problem = f"lost: {reason}"
        self.receiver.tell(Severity.ERROR, text)
        self._on_change()

    def _set_connected(self, connected: bool) -> None:
        self.connected = self.receiver.in_session = connected

    # What the supervisor does -----------------------------------------------------------------

    def _care(self) -> None:
        """Say that this program is alive, and load limits as soon as the board takes them."""
        self.link.alive()
        self._on_care()
        self._exchanges.ask()
        if self.limits_due and self.receiver.state == State.DISARMED:
            try:
                self.load_limits()
            except HardwareError as error:
                self.problem = str(error)
                self.limits_due = False
                self.receiver.tell(Severity.ERROR, str(error))

    def _is_lost(self) -> bool:
        """Tell whether the session is over."""
        if self.connected:
            silent = f"silent for {time.monotonic() - self.receiver.heard:.1f} s"
            why = silent if self.link.counts().unanswered > SILENT else self.restart
            if why:
                self._session_over(why, f"session lost: {why}")
        if self.connected:
            return False
        if not self._reconnect:
            self.link.close()
            self._supervisor.stop()
        return True

    def _recover(self) -> bool:
        """Try once to get a session again."""
        try:
            if self.link.is_open:
                self.receiver.heard = time.monotonic()
                self._begin(0.4)
            else:
                self.link.close()
                self._connect(0.6)
        except CardsError as error:
            self.problem = f"lost: {error}"
            return False
        self.reconnects += 1
        self.receiver.tell(Severity.WARN, "session is back; the robot is not armed")
        return True


class _TimeExchanges:
    """Asks the board for its time now and then.

    Args:
        transport: To the board.
        receiver: What comes from it.
    """

    def __init__(self, transport: Transport, receiver: Receiver) -> None:
        self._transport = transport
        self._receiver = receiver
        self._asked = 0.0

    def ask(self) -> None:
        """Ask if it is time to."""
        now = time.monotonic()
        first = self._receiver.telemetry.clock.exchanges < _SYNC_FIRST
        if now - self._asked >= (_SYNC_FAST if first else _SYNC_SLOW) - 1e-3:
            self._asked = now
            self._transport.post("TIME_SYNC", _TIME)


class _Supervisor:
    """Thread that looks after a session, and recovers a lost one.

    Args:
        name: Name of the thread.
        care: Called every `CARE` while there is a session.
        lost: Tells whether the session is over.
        recover: Tries once to get it back; tells whether it did.
    """

    def __init__(
        self,
        name: str,
        *,
        care: Callable[[], None],
        lost: Callable[[], bool],
        recover: Callable[[], bool],
    ) -> None:
        self._name = name
        self._care = care
        self._lost = lost
        self._recover = recover
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def ending(self) -> bool:
        """Whether the session is being closed."""
        return self._ending.is_set()

    def prepare(self) -> None:
        """Reset for a new session."""
        self._ending.clear()
        self._wake.clear()

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ending.set()
        self._wake.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(5.0)

    def wake(self) -> None:
        """Have the thread check at once."""
        self._wake.set()

    def _run(self) -> None:
        first, longest = _BACKOFF
        pause = first
        due = time.monotonic()
        while not self.ending:
            self._wake.wait(max(0.0, due - time.monotonic()))
            self._wake.clear()
            if self.ending:
                return
            if self._lost():
                if self._ending.wait(pause):
                    return
                pause = first if self._recover() else min(2.0 * pause, longest)
                due = time.monotonic()
            elif (now := time.monotonic()) >= due:
                due = max(due + CARE, now)
                self._care()


# plain numbers: operations on enumerations cost microseconds
_STATE_FAST = MESSAGES["STATE_FAST"].id
_SIMULATED, _LIMITS_LOADED = int(FastFlag.SIMULATED), int(FastFlag.LIMITS_LOADED)
_CONTRADICTIONS = 5  # exchanges in a row that do not fit the clock: it was set again


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
        if self.expects_limits:  # it still has them, so it has not restarted
            clock.reset()
            self.tell(Severity.WARN, "its clock was set again")
        else:
            self._on_restart("its clock was set again")

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
