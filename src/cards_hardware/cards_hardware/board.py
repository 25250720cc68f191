"""One board: session, commands, states, and what happens when any of it breaks.

Whatever breaks, line or board, ends with the board not armed on this side. A session that comes
back by itself is one that reads; only `Board.arm` makes commands pass again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cards_core.errors import CardsError
from cards_core.typing import Array
from cards_hardware.board_data import (
    BoardEvent,
    BoardSample,
    BoardStatus,
    Ident,
    finite_channels,
    flag_words,
    state_word,
)
from cards_hardware.board_inbox import Inbox
from cards_hardware.board_keeper import Keeper
from cards_hardware.board_layout import BAUDRATE, BoardLayout
from cards_hardware.board_settings import Settings
from cards_hardware.board_status import muscle_faults, status_of
from cards_hardware.errors import BoardError, HardwareError, RequestError
from cards_hardware.exchange import Exchange, host_us
from cards_hardware.protocol.enums import (
    Caps,
    EstopReason,
    Fault,
    Request,
    ResetCause,
    Severity,
    State,
)
from cards_hardware.protocol.frames import Frame
from cards_hardware.protocol.schema import BROADCAST
from cards_hardware.serial_link import SerialLink
from cards_hardware.session import Session
from cards_hardware.telemetry import Telemetry

SILENT = 15
"""Heartbeats of ours without a frame from the board, then it counts as gone: 0.3 s. Counted, not
timed: when this machine stands still for a while, the board's frames are waiting to be read."""

OPEN_TIMEOUT = 2.0
"""For the first answer: opening the port resets some boards, [s]."""

_SYNC_FAST, _SYNC_SLOW = 0.02, 0.1  # [s] between exchanges of times, at first and then
_SYNC_FIRST = 16  # exchanges at the fast pace
_STEP = 0.005  # [s] between looks at the state
_COMMANDED = frozenset({State.ARMED, State.ACTIVE, State.HOLD})
_ESTOP_TIMES = 3
_MAX_SLEW = 65000.0
_NEEDED = {
    "force": (Caps.TENSION, "tensions"),
    "length": (Caps.MSC, "lengths"),
    "pressure": (Caps.PRESSURE, "pressures"),
}
_CAUSES = {int(item): item.text for item in ResetCause}


class Board(Settings):
    """A board of muscles on a serial port.

    Args:
        layout: What it is to be.
        on_sample: Called by the reader thread with every new sample.
        on_event: Called by any thread with what happened.
        on_change: Called by any thread after the state of board or session changed.
        reconnect: Whether to look for the board again when it is lost.
        any_node: Whether to take the address of the first board that answers.

    Attributes:
        layout: As given.
        link: The line.
        reconnects, resets: Since `open`.
    """

    def __init__(
        self,
        layout: BoardLayout,
        *,
        on_sample: Callable[[BoardSample], None] | None = None,
        on_event: Callable[[BoardEvent], None] | None = None,
        on_change: Callable[[], None] | None = None,
        reconnect: bool = True,
        any_node: bool = False,
    ) -> None:
        self.layout = layout
        self._on_change = on_change
        self._reconnect = reconnect
        self.link = SerialLink(
            layout.port, layout.baudrate, on_frame=self._on_frame, on_lost=self._on_lost
        )
        node = BROADCAST if any_node else layout.node
        self._exchange = Exchange(self.link, layout.name, node, self._why_gone)
        self._session = Session(layout, self._exchange, any_node)
        self._inbox = Inbox(
            layout,
            self._session,
            self._exchange,
            on_sample=on_sample,
            on_event=on_event,
            on_state=self._on_state,
            on_doubt=self._on_doubt,
        )
        self._keeper = Keeper(
            f"keep {layout.name}", beat=self._beat, lost=self._is_lost, recover=self._recover
        )
        self.reconnects = 0
        self.resets = 0
        self._connected = False
        self._armed = False
        self._problem = "not open"
        self._estop: int | None = None
        self._limits_due = False
        self._doubt = ""  # why the session may be over although the line is there
        self._synced = 0.0
        self._kinds: set[str] = set()  # of commands that the board is known to take
        self._heard = 0.0
        self._quiet = 0
        self._requests = threading.RLock()  # who talks about sessions and states

    @classmethod
    def direct(cls, port: str, baudrate: int = BAUDRATE, node: int | None = None) -> Board:
        """Return the board at a port, whatever it is: for tools that need no robot.

        Args:
            port: Path of the device.
            baudrate: [baud]
            node: Its address; None for that of the board that answers.
        """
        layout = BoardLayout("board", 1 if node is None else node, port, baudrate)
        return cls(layout, any_node=node is None, reconnect=False)

    # What is known ----------------------------------------------------------------------------

    @property
    def ident(self) -> Ident | None:
        """Who it said it is."""
        return self._session.ident

    @property
    def sample(self) -> BoardSample | None:
        """Newest STATE_FAST of this session."""
        return self._inbox.telemetry.sample

    @property
    def telemetry(self) -> Telemetry:
        """What it sent, counted and timed."""
        return self._inbox.telemetry

    @property
    def slow(self) -> Mapping[str, Any]:
        """Newest STATE_SLOW of this session; empty before the first."""
        return self.telemetry.slow

    @property
    def connected(self) -> bool:
        """Whether there is a session."""
        return self._connected

    @property
    def armed(self) -> bool:
        """Whether commands go to the board."""
        return self._armed

    @property
    def state(self) -> int | None:
        """State that the board reported last; None without a session."""
        return self._inbox.state if self._connected else None

    @property
    def fault(self) -> int:
        """Bits of `Fault` that the board reported last."""
        return self._inbox.fault

    @property
    def node(self) -> int:
        """Its address."""
        return self._exchange.node

    @property
    def foreign_frames(self) -> int:
        """Frames of other nodes on the line."""
        return self._session.foreign

    @property
    def simulated(self) -> bool:
        """Whether the board says that it is emulated."""
        return self._inbox.simulated

    @property
    def estop_pending(self) -> bool:
        """Whether an emergency stop waits for the line to come back."""
        return self._estop is not None and not self.link.is_open

    @property
    def problem(self) -> str:
        """Why the board cannot be used now; empty if it can."""
        if self._problem:
            return self._problem
        if self._session.doubled:
            return self._session.doubled
        if self._inbox.state == State.ESTOP:
            return "emergency stop: clear it when the cause is gone"
        if self._inbox.state == State.FAULT:
            return f"fault: {'; '.join(flag_words(Fault(self._inbox.fault))) or 'unknown'}"
        return ""

    def status(self) -> BoardStatus:
        """Return how it is."""
        return status_of(self)

    # Opening and closing ----------------------------------------------------------------------

    def open(self) -> None:
        """Open the port and begin a session: identify, limits, clock. Never arms.

        Raises:
            PortError: The port cannot be opened.
            BoardError: Not the right board, or one that does not answer.
        """
        self.close()
        self._keeper.prepare()
        self.reconnects = self.resets = 0
        try:
            self._connect(OPEN_TIMEOUT)
        except CardsError as error:
            self.link.close()
            self._problem = str(error)
            raise
        self._keeper.start()

    def close(self) -> None:
        """End the session; an armed board is disarmed first. May be called at any time."""
        if self._armed:
            with contextlib.suppress(CardsError):
                self.disarm()
        self._armed = False
        self._keeper.stop()
        self.link.close()
        self._set_connected(False)
        self._problem = "not open"

    def _connect(self, timeout: float) -> None:
        """Open the line and begin a session."""
        self.link.open()
        self._inbox.heard = time.monotonic()
        if self._estop is not None:
            self._send_estop(self._estop)
        self._begin(timeout)

    def _begin(self, timeout: float) -> None:
        """Begin a session on an open line."""
        with self._requests:
            self._armed = False
            self._doubt = ""
            self._kinds.clear()
            before = self._session.ident
            self._inbox.reset()
            ident = self._session.identify(timeout, new=True)
            if before and before.uid == ident.uid and before.boot_count != ident.boot_count:
                self.resets += 1
                cause = _CAUSES.get(ident.reset_cause, f"cause {ident.reset_cause}")
                self._inbox.tell(Severity.ERROR, f"the board has started anew: {cause}")
            if before and before.uid != ident.uid:
                text = f"another board than before: serial number {ident.uid}, was {before.uid}"
                self._inbox.tell(Severity.ERROR, text)
            self._load_limits()
            self._doubt = ""
            self._problem = ""
            self._quiet = 0
            self._set_connected(True)
        self._changed()

    # Commands ---------------------------------------------------------------------------------

    def command_tension(self, tensions: Array, slew: float | None = None) -> bool:
        """Command tensions.

        Args:
            tensions: Per channel, [N]; NaN leaves the channel out of the command.
            slew: Largest change, [N/s]; None for the limit of each muscle.

        Returns:
            Whether it was sent: only to an armed board.

        Raises:
            ProtocolError: A value does not fit into the message.
        """
        mask, chosen = finite_channels(tensions)
        rate = 0.0 if slew is None else min(slew, _MAX_SLEW)
        values = {"mask": mask, "tension": chosen, "slew": np.full(len(chosen), rate)}
        return self._command("CMD_TENSION", mask, values)

    def command_lengths(self, lengths: Array) -> bool:
        """Command lengths from which muscles pull with the layout's stiffness, [m]; as above."""
        mask, chosen = finite_channels(lengths)
        values = {
            "mask": mask,
            "l_target": chosen,
            "stiffness": np.full(len(chosen), self.layout.stiffness),
            "bias": np.full(len(chosen), self.layout.bias),
        }
        return self._command("CMD_MSC", mask, values)

    def command_pressures(self, pressures: Array) -> bool:
        """Command pressures, [Pa]; as above."""
        mask, chosen = finite_channels(pressures)
        return self._command("CMD_PRESSURE", mask, {"mask": mask, "pressure": chosen})

    def _command(self, name: str, mask: int, values: Mapping[str, Any]) -> bool:
        if not self._armed or not mask:
            return False
        self._exchange.command(name, values)
        return True

    def check_kind(self, kind: str) -> None:
        """Check that the board takes a kind of command. Raises `BoardError`."""
        if kind not in self._kinds:
            self._session.needs(*_NEEDED[kind])
            self._kinds.add(kind)

    def estop(self, reason: int = EstopReason.OPERATOR) -> None:
        """Stop: safe tensions at once. From any thread, at any time; never waits.

        Without a line it is remembered, and the first thing to be sent when the line is back.
        """
        self._estop = int(reason)
        self._armed = False
        self._send_estop(self._estop)
        self._keeper.wake()

    def _send_estop(self, reason: int) -> None:
        self._exchange.urgent("ESTOP", {"reason": reason}, times=_ESTOP_TIMES, node=BROADCAST)

    # Requests ---------------------------------------------------------------------------------

    def arm(self, timeout: float = 1.0) -> None:
        """Switch the drives on, at safe tensions; then commands pass.

        Raises:
            BoardError: It is not connected, refuses, or does not get there in time.
        """
        with self._requests:
            if self._estop is not None:
                raise self._error("emergency stop: clear it before arming")
            if self.problem:
                raise self._error(f"cannot be armed: {self.problem}")
            if self._limits_due:
                self._load_limits()
            if self._limits_due:
                raise self._error(
                    f"takes no limits in state {state_word(self._inbox.state)}: disarm it first"
                )
            self._ask_state(Request.ARM, _COMMANDED, timeout, token=True)
            # whoever stops it sets the reason first and takes the arming back then, so it is set
            # first here and the reasons looked at then
            self._armed = True
            stopped = self._estop is not None or bool(self._doubt) or not self._connected
            if stopped or self._inbox.state not in _COMMANDED:
                self._armed = False
                raise self._error("was stopped or lost while it was armed")
        self._changed()

    def disarm(self, timeout: float = 1.0) -> None:
        """Switch the drives off. Raises `BoardError`."""
        self._armed = False
        with self._requests:
            if self._inbox.state in (State.DISARMED, State.BOOT):
                return
            self._ask_state(Request.DISARM, {State.DISARMED}, timeout)
        self._changed()

    def relax(self, timeout: float = 1.0) -> None:
        """Lower tensions to the safe ones, slowly, and take no more commands."""
        self._armed = False
        with self._requests:
            if self._inbox.state not in _COMMANDED:
                return
            self._ask_state(Request.RELAX, {State.RELAX, State.DISARMED}, timeout)
        self._changed()

    def clear(self, timeout: float = 1.0) -> None:
        """Clear a latched fault or emergency stop; the board is disarmed then.

        Raises:
            BoardError: The cause is still there, or the board does not answer.
        """
        with self._requests:
            self._armed = False
            self._estop = None
            self._ask_state(Request.CLEAR, {State.DISARMED}, timeout, token=True)
        self._changed()

    def _ask_state(
        self,
        request: Request,
        wanted: frozenset[State] | set[State],
        timeout: float,
        *,
        token: bool = False,
    ) -> None:
        what = request.name.lower()
        if reason := self._why_gone():
            raise self._error(f"cannot {what}: {reason}")
        number = self._session.identify(1.0, new=False).token if token else 0
        try:
            self._exchange.request("STATE_REQUEST", {"request": int(request), "token": number})
        except RequestError as error:
            raise self._error(f"{what}: {_reason(error)}{self._hindrance()}") from None
        end = time.monotonic() + timeout
        while self._inbox.state not in wanted:
            if reason := self._why_gone():
                raise self._error(f"{what}: {reason}")
            if time.monotonic() > end:
                raise self._error(
                    f"{what}: still {state_word(self._inbox.state)} after {timeout:g} s, expected "
                    f"{' or '.join(item.name for item in wanted)}{self._hindrance()}"
                )
            time.sleep(_STEP)

    def _hindrance(self) -> str:
        """Return what the board shows that may keep it from doing what it was asked."""
        parts = list(flag_words(Fault(self._inbox.fault)))
        parts += [f"{name}: {', '.join(words)}" for name, words in muscle_faults(self).items()]
        if self._inbox.state not in (State.DISARMED, None):
            parts.insert(0, f"state {state_word(self._inbox.state)}")
        return f" ({'; '.join(parts)})" if parts else ""

    # What happens by itself -------------------------------------------------------------------

    def _on_frame(self, frame: Frame, arrival: float) -> None:
        self._inbox.take(frame, arrival)

    def _on_state(self, state: int) -> None:
        if state not in _COMMANDED:
            self._armed = False
        self._changed()

    def _on_doubt(self, why: str) -> None:
        """The session may be over although the line is there; the keeper finds out."""
        if not self._doubt:
            self._doubt = why
            self._keeper.wake()
        self._armed = False

    def _on_lost(self, reason: str) -> None:
        self._session_over(reason, f"port {self.link.port} lost: {reason}")
        self._keeper.wake()

    def _session_over(self, reason: str, text: str) -> None:
        self._set_connected(False)
        self._armed = False
        self._problem = f"lost: {reason}"
        self._inbox.tell(Severity.ERROR, text)
        self._changed()

    def _set_connected(self, connected: bool) -> None:
        self._connected = self._inbox.in_session = connected

    # What the keeper does ---------------------------------------------------------------------

    def _beat(self) -> None:
        """Show life, exchange times, and load limits as soon as the board takes them."""
        wanted = State.ACTIVE if self._armed else State.DISARMED
        beat = {"state": int(wanted), "fault": 0, "t_peer": self._inbox.peer_t_us}
        self._quiet = self._quiet + 1 if self._inbox.heard == self._heard else 0
        self._heard = self._inbox.heard
        self._exchange.post("HEARTBEAT", beat)
        now = time.monotonic()
        first = self.telemetry.clock.exchanges < _SYNC_FIRST
        if now - self._synced >= (_SYNC_FAST if first else _SYNC_SLOW) - 1e-3:
            self._synced = now
            self.link.send(self._time)
        if self._limits_due and self._inbox.state == State.DISARMED:
            try:
                self._load_limits()
            except HardwareError as error:
                self._problem = str(error)
                self._limits_due = False
                self._inbox.tell(Severity.ERROR, str(error))

    def _time(self) -> bytes:
        values = {"t1": host_us() & 0xFFFFFFFF, "t2": 0, "t3": 0}
        return self._exchange.frame("TIME_SYNC", values)()

    def _load_limits(self) -> None:
        self._limits_due = not self._session.load_limits()
        self._inbox.expects_limits = bool(self.layout.limits) and not self._limits_due

    def _is_lost(self) -> bool:
        """Tell whether the session is over."""
        if self._connected:
            silent = f"silent for {time.monotonic() - self._inbox.heard:.1f} s"
            why = silent if self._quiet > SILENT else self._doubt
            if why:
                self._session_over(why, f"session lost: {why}")
        if self._connected:
            return False
        if not self._reconnect:
            self.link.close()
            self._keeper.stop()
        return True

    def _recover(self) -> bool:
        """Try once to get a session again."""
        try:
            if self.link.is_open:
                self._inbox.heard = time.monotonic()
                self._begin(0.4)
            else:
                self.link.close()
                self._connect(0.6)
        except CardsError as error:
            self._problem = f"lost: {error}"
            return False
        self.reconnects += 1
        self._inbox.tell(Severity.WARN, "session is back; the robot is not armed")
        return True

    # Rest -------------------------------------------------------------------------------------

    def _why_gone(self) -> str:
        if self._keeper.ending:
            return "the session is being closed"
        return "" if self.link.is_open else (self._problem or "not open")

    def _error(self, problem: str) -> BoardError:
        return BoardError(self.layout.name, self.link.port, problem)

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()


def _reason(error: RequestError) -> str:
    """Return the message of a refused request without board and port."""
    return str(error).split(": ", 1)[1]
