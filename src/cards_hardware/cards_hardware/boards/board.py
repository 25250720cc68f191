"""One board: arming, stopping, settings and status.

After any failure of line or board, the board counts as not armed here. A session that was
recovered only reads; only `Board.arm` lets commands pass again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from cards_core.errors import CardsError
from cards_hardware.boards.commands import Commands, mask_of
from cards_hardware.boards.connection import Connection
from cards_hardware.boards.events import BoardEvent, flag_words, state_word
from cards_hardware.boards.handshake import Ident
from cards_hardware.boards.layout import BAUDRATE, IMPEDANCE, BoardLayout, MuscleImpedance
from cards_hardware.boards.line_thread import BoardCommand, LineThread
from cards_hardware.boards.serial_link import SerialLink
from cards_hardware.boards.status import BoardStatus, muscle_faults, status_of
from cards_hardware.boards.telemetry import BoardSample, Telemetry
from cards_hardware.boards.transport import TIMEOUT, TRIES, host_us
from cards_hardware.errors import BoardError, RequestError
from cards_hardware.protocol.enums import EstopReason, Fault, ParameterId, Request, State
from cards_hardware.protocol.schema import BROADCAST

COMMANDED = frozenset({State.ARMED, State.ACTIVE, State.HOLD})
"""States in which commands act."""

_STATE_DELAY = 0.1  # [s] that a state may be behind the answer to a request
_POLL_PERIOD = 0.005  # [s] between looks at the state
_ESTOP_TIMES = 3
_ESTOP_PERIOD = 0.02  # [s] between emergency stops to a board that has not confirmed one

_SETTINGS_TIMEOUT = 1.0  # [s] for an answer: nothing moves, and a busy machine may stall a while
_FLASH_TIMEOUT = 3.0  # [s] that writing takes at most
_CALIBRATE_TIMEOUT = 0.5  # [s] for a calibration, which averages


class Board:
    """A board of muscles on a serial port.

    Requests raise `RequestError` when the board refuses or does not answer, `BoardError` when the
    line is lost, and `ProtocolError` for values that do not fit into the message.

    Args:
        layout: What the board should be.
        on_sample: Called by the reader thread with every new sample.
        on_event: Called by any thread with what happened.
        on_change: Called by any thread after the state of board or session changed.
        reconnect: Whether to look for the board again when it is lost.
        any_node: Whether to take the address of the first board that answers.
        thread: Keeps the line; boards that are commanded together have the same. None: one of its
            own.

    Attributes:
        layout: As given.
        commands: Makes commands for it, see `command`.
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
        thread: LineThread | None = None,
    ) -> None:
        self.layout = layout
        self._on_change = on_change
        self._estop: int | None = None  # latched until it is cleared
        self._estop_sent = 0.0
        self._estop_lock = threading.RLock()  # a line that is lost in sending tells who may stop
        self._stops = 0
        self._connection = Connection(
            layout,
            on_sample=on_sample,
            on_event=on_event,
            on_open=self._on_open,
            on_interruption=self._on_interruption,
            on_care=self._repeat_estop,
            on_state=self._on_state,
            on_change=self._changed,
            reconnect=reconnect,
            any_node=any_node,
            thread=thread,
        )
        self._transport = self._connection.transport
        self._handshake = self._connection.handshake
        self._receiver = self._connection.receiver
        self.commands = Commands(layout, self.link, self._handshake)

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

    # Opening and closing ----------------------------------------------------------------------

    def open(self) -> None:
        """Open the port and begin a session: identify, limits, clock. Never arms.

        Raises:
            HardwareError: The port cannot be opened.
            BoardError: Not the right board, or one that does not answer.
        """
        self.close()
        self._connection.open()

    def close(self) -> None:
        """End the session; an armed board is disarmed first. May be called at any time."""
        if self.armed:
            with contextlib.suppress(CardsError):
                self.disarm()
        self.link.close_gate()
        self._connection.close()

    # What the connection tells ----------------------------------------------------------------

    def _on_open(self) -> None:
        if self._estop is not None:
            self._send_estop(self._estop)

    def _on_interruption(self) -> None:
        self.link.close_gate()
        self.commands.reset()

    def _repeat_estop(self) -> None:
        """Repeat an emergency stop that the board does not confirm."""
        with self._estop_lock:  # one that is cleared meanwhile is not sent any more
            stop, sent = self._estop, time.monotonic() - self._estop_sent
            if stop is not None and sent > _ESTOP_PERIOD and self._receiver.state != State.ESTOP:
                self._send_estop(stop)  # until the board says so: a line may swallow it

    def _on_state(self, state: int) -> None:
        self._changed()  # the gate of the line has closed by itself if commands do not act now

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()

    # Stopping ---------------------------------------------------------------------------------

    def estop(self, reason: int = EstopReason.OPERATOR) -> None:
        """Stop: safe tensions at once. From any thread, at any time; never waits.

        It is sent again until the board says that it has stopped. Without a line it is
        remembered, and the first thing to be sent when the line is back.
        """
        with self._estop_lock:
            self._estop = int(reason)
            self._stops += 1
        self.link.close_gate()
        self._send_estop(int(reason))
        self._connection.wake()

    def _send_estop(self, reason: int) -> None:
        self._estop_sent = time.monotonic()
        self._transport.urgent("ESTOP", {"reason": reason}, times=_ESTOP_TIMES, node=BROADCAST)

    # Requests for states ----------------------------------------------------------------------

    def arm(self, timeout: float = 1.0) -> None:
        """Switch the drives on, at safe tensions; then commands pass.

        Raises:
            BoardError: It is not connected, refuses, or does not get there in time.
        """
        connection = self._connection
        with connection.lock:
            if self._estop is not None:
                raise self._error("emergency stop: clear it before arming")
            if self.problem:
                raise self._error(f"cannot be armed: {self.problem}")
            if connection.limits_due:
                connection.load_limits()
            if connection.limits_due:
                raise self._error(
                    f"takes no limits in state {state_word(self._receiver.state)}: disarm it first"
                )
            try:
                self._ask_state(Request.ARM, COMMANDED, timeout, token=True)
            except BoardError:
                self._post_disarm()  # should it have been armed all the same, it must not stay so
                raise
            # whoever stops it sets the reason first and takes the arming back then, so it is set
            # first here and the reasons looked at then
            self.link.open_gate()
            stopped = (
                self._estop is not None or bool(connection.restart) or not connection.connected
            )
            if stopped or self._receiver.state not in COMMANDED or not self.armed:
                self.link.close_gate()
                self._post_disarm()
                raise self._error("was stopped or lost while it was armed")
        self._changed()

    def _post_disarm(self) -> None:
        """Have the drives switched off, without waiting for an answer."""
        self._transport.post("STATE_REQUEST", {"request": int(Request.DISARM), "token": 0})

    def disarm(self, timeout: float = 1.0) -> None:
        """Switch the drives off. Raises `BoardError`."""
        self.link.close_gate()
        with self._connection.lock:
            if self._receiver.state in (State.DISARMED, State.BOOT):
                return
            self._ask_state(Request.DISARM, {State.DISARMED}, timeout)
        self._changed()

    def relax(self, timeout: float = 1.0) -> None:
        """Lower tensions to the safe ones, slowly, and take no more commands."""
        self.link.close_gate()
        with self._connection.lock:
            if self._receiver.state not in COMMANDED:
                return
            self._ask_state(Request.RELAX, {State.RELAX, State.DISARMED}, timeout)
        self._changed()

    def clear(self, timeout: float = 1.0, stops: int | None = None) -> None:
        """Clear a latched fault or emergency stop; the board is disarmed then.

        Args:
            timeout: For the answer, [s].
            stops: `stops` when it was decided to clear; None: now.

        Raises:
            BoardError: The cause is still there, the board does not answer, or it was told to
                stop meanwhile.
        """
        known = self.stops if stops is None else stops
        with self._connection.lock:
            self.link.close_gate()
            with self._estop_lock:
                if self._stops != known:
                    raise self._error("emergency stop while it was to be cleared")
                stop, self._estop = self._estop, None
            try:
                self._ask_state(Request.CLEAR, {State.DISARMED}, timeout, token=True)
            except CardsError:
                if self._estop is None:
                    self._estop = stop  # a board that was not reached has still to get it
                raise
        self._changed()

    def _ask_state(
        self,
        request: Request,
        wanted: Collection[State],
        timeout: float,
        *,
        token: bool = False,
    ) -> None:
        what = request.name.lower()
        if reason := self._connection.why_gone():
            raise self._error(f"cannot {what}: {reason}")
        number = self._handshake.identify(1.0, new=False).token if token else 0
        before = self._receiver.state
        try:
            self._transport.request("STATE_REQUEST", {"request": int(request), "token": number})
        except RequestError as error:
            # an answer may be lost, and the next try be refused because the first one worked
            if before in wanted or not self._arrives(wanted, _STATE_DELAY):
                raise self._error(f"{what}: {_reason(error)}{self._hindrance(request)}") from None
        if not self._arrives(wanted, timeout):
            if reason := self._connection.why_gone():
                raise self._error(f"{what}: {reason}")
            raise self._error(
                f"{what}: still {state_word(self._receiver.state)} after {timeout:g} s, expected "
                f"{' or '.join(item.name for item in wanted)}{self._hindrance(request)}"
            )

    def _arrives(self, wanted: Collection[State], timeout: float) -> bool:
        """Wait for a state; tell whether the board got there."""
        end = time.monotonic() + timeout
        while self._receiver.state not in wanted:
            if self._connection.why_gone() or time.monotonic() > end:
                return False
            time.sleep(_POLL_PERIOD)
        return True

    def _hindrance(self, request: Request) -> str:
        """Return what the board shows that may keep it from doing what it was asked."""
        parts = list(flag_words(Fault(self._receiver.fault)))
        faults = muscle_faults(self.layout, self.slow)
        parts += [f"{name}: {', '.join(words)}" for name, words in faults.items()]
        if parts and request is Request.ARM:
            parts.append("clear this before arming")
        if request is Request.ARM:
            parts += self._taut_muscles()
        if self._receiver.state not in (State.DISARMED, None):
            parts.insert(0, f"state {state_word(self._receiver.state)}")
        return f" ({'; '.join(parts)})" if parts else ""

    def _taut_muscles(self) -> list[str]:
        """Return which muscles pull too hard for the board to be armed."""
        sample, parameter = self.sample, ParameterId.ARM_TENSION
        try:
            limit = self.get_parameter(parameter) * parameter.scale
        except CardsError:
            return []
        tensions = () if sample is None else sample.muscles[2].tolist()
        taut = [
            f"{name} {tension:.3g} N"
            for name, tension in zip(self.layout.muscles, tensions, strict=False)
            if abs(tension) >= limit
        ]
        if not taut:
            return []
        return [f"arming needs less than {limit:g} N in every muscle: {', '.join(taut)}"]

    def _error(self, problem: str) -> BoardError:
        return BoardError(self.layout.name, self.link.port, problem)

    # Commands ---------------------------------------------------------------------------------

    def command(self, part: BoardCommand) -> bool:
        """Send a command to this board alone.

        Args:
            part: Made by `commands`.

        Returns:
            Whether it goes out: only to an armed board.
        """
        return bool(part.payload) and self.link.thread.command([part], host_us()) is None

    # Settings ---------------------------------------------------------------------------------

    def request(
        self, name: str, values: Mapping[str, Any], *, timeout: float = TIMEOUT, tries: int = TRIES
    ) -> Mapping[str, Any]:
        """Send a request, return the values of its answer.

        Args:
            name: Name of the message.
            values: Its values.
            timeout: For each try, [s].
            tries: How often to ask.
        """
        return self._transport.request(name, values, timeout=timeout, tries=tries)

    def get_parameter(self, parameter: ParameterId | int, index: int = 0) -> int:
        """Return a parameter, in units of the protocol."""
        asked = {"id": int(parameter), "index": index}
        reply = self.request("PARAM_GET", asked, timeout=_SETTINGS_TIMEOUT)
        if reply["code"]:
            raise RequestError(
                self._transport.name,
                self._transport.port,
                "PARAM_GET",
                f"no parameter {parameter!r} with index {index}",
                code=int(reply["code"]),
            )
        return int(reply["value"])

    def set_parameter(self, parameter: ParameterId | int, index: int, value: int) -> None:
        """Set a parameter until the next reset; see `save_parameters`."""
        told = {"id": int(parameter), "index": index, "value": int(value)}
        self.request("PARAM_SET", told, timeout=_SETTINGS_TIMEOUT)

    @property
    def impedance(self) -> tuple[MuscleImpedance, ...]:
        """Impedance laws of its muscles: those of the layout, or as changed since."""
        return self._handshake.laws

    def change_impedance(self, laws: tuple[MuscleImpedance, ...], *, send: bool = True) -> None:
        """Change the impedance laws, all or nothing; they act upon the set-points that follow.

        A board that restarts or is lost and comes back gets them again. In a board that may be
        armed nothing jumps: the firmware lets new gains come in by steps.

        Args:
            laws: Of every muscle.
            send: False: for the session that begins next; else to a connected board.

        Raises:
            RequestError: The board refuses a number or does not answer; its laws are as before.
            BoardError: It is not connected, or has no impedance law.
        """
        with self._connection.lock:
            if not send:
                self._handshake.laws = laws
                return
            if not self.connected:
                raise self._error(f"takes no gains: {self.problem or 'not connected'}")
            self._handshake.change_impedance(laws)

    def read_impedance(self) -> tuple[MuscleImpedance, ...]:
        """Ask the board for the impedance laws that it has.

        Raises:
            RequestError: It does not answer.
        """
        return tuple(
            MuscleImpedance(
                **{
                    name: self.get_parameter(parameter, index) * parameter.scale
                    for name, parameter in IMPEDANCE.items()
                }
            )
            for index in range(len(self.layout.muscles))
        )

    def save_parameters(self) -> None:
        """Keep the parameters over power cycles."""
        self.request("PARAM_SAVE", {}, timeout=_FLASH_TIMEOUT, tries=2)

    def get_limits(self) -> Mapping[str, Any]:
        """Return the limits in force, as in the message LIMITS."""
        return self.request("LIMITS_GET", {}, timeout=_SETTINGS_TIMEOUT)

    def calibrate(
        self, action: int, channels: Sequence[int], values: Sequence[int] | None = None
    ) -> None:
        """Take what is measured now as known; the board must be disarmed.

        Args:
            action: `CalibrateAction`.
            channels: Channels of muscles or joints, as the action says.
            values: What is true there, in the unit that the action says; None where it needs
                none.
        """
        given = [0] * len(channels) if values is None else [int(value) for value in values]
        message = {
            "action": int(action),
            "mask": mask_of(channels),
            "value": [value for _, value in sorted(zip(channels, given, strict=True))],
        }
        self.request("CALIBRATE", message, timeout=_CALIBRATE_TIMEOUT)

    # What is known ----------------------------------------------------------------------------

    @property
    def link(self) -> SerialLink:
        """The line."""
        return self._connection.link

    @property
    def ident(self) -> Ident | None:
        """Who it said it is."""
        return self._handshake.ident

    @property
    def sample(self) -> BoardSample | None:
        """Newest STATE_FAST of this session."""
        return self._receiver.telemetry.sample

    @property
    def telemetry(self) -> Telemetry:
        """What it sent, counted and timed."""
        return self._receiver.telemetry

    @property
    def slow(self) -> Mapping[str, Any]:
        """Newest STATE_SLOW of this session; empty before the first."""
        return self.telemetry.slow

    @property
    def connected(self) -> bool:
        """Whether there is a session."""
        return self._connection.connected

    @property
    def armed(self) -> bool:
        """Whether commands go to the board."""
        return self.link.gate != 0

    @property
    def state(self) -> int | None:
        """State that the board reported last; None without a session."""
        return self._receiver.state if self._connection.connected else None

    @property
    def fault(self) -> int:
        """Bits of `Fault` that the board reported last."""
        return self._receiver.fault

    @property
    def node(self) -> int:
        """Its address."""
        return self._transport.node

    @property
    def reconnects(self) -> int:
        """How often a lost session came back since `open`."""
        return self._connection.reconnects

    @property
    def resets(self) -> int:
        """How often the board restarted since `open`."""
        return self._connection.resets

    @property
    def stops(self) -> int:
        """How often `estop` was called."""
        with self._estop_lock:
            return self._stops

    @property
    def estop_ordered(self) -> bool:
        """Whether `estop` was called and not cleared since."""
        return self._estop is not None

    @property
    def estop_pending(self) -> bool:
        """Whether an emergency stop waits for the line to come back."""
        return self._estop is not None and not self.link.is_open

    @property
    def problem(self) -> str:
        """Why the board cannot be used now; empty if it can."""
        if self._connection.problem:
            return self._connection.problem
        if self._handshake.doubled:
            return self._handshake.doubled
        if self._receiver.state == State.ESTOP:
            return "emergency stop: clear it when the cause is gone"
        if self._receiver.state == State.FAULT:
            return f"fault: {'; '.join(flag_words(Fault(self._receiver.fault))) or 'unknown'}"
        return ""

    def status(self) -> BoardStatus:
        """Return its status."""
        return status_of(self.layout, self._connection, armed=self.armed, problem=self.problem)


def _reason(error: RequestError) -> str:
    """Return the message of a refused request without board and port."""
    return str(error).split(": ", 1)[1]
