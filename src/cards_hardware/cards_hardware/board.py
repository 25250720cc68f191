"""One board: its session, and what happens when it breaks.

Whatever breaks, line or board, ends with the board not armed on this side. A session that comes
back by itself is one that reads; only `Board.arm` makes commands pass again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from cards_core.errors import CardsError
from cards_hardware.board_commands import Commands
from cards_hardware.board_data import BoardEvent, BoardSample
from cards_hardware.board_inbox import Inbox
from cards_hardware.board_keeper import SILENT, Heart, Keeper
from cards_hardware.board_layout import BAUDRATE, BoardLayout
from cards_hardware.board_requests import COMMANDED, StateRequests
from cards_hardware.board_settings import Settings
from cards_hardware.errors import HardwareError
from cards_hardware.exchange import Exchange
from cards_hardware.protocol.enums import ResetCause, Severity, State
from cards_hardware.protocol.frames import Frame
from cards_hardware.protocol.schema import BROADCAST
from cards_hardware.serial_link import SerialLink
from cards_hardware.session import Session

OPEN_TIMEOUT = 2.0
"""For the first answer: opening the port resets some boards, [s]."""

_ESTOP_AGAIN = 0.02  # [s] until a board that does not say that it has stopped is told again
_CAUSES = {int(item): item.text for item in ResetCause}


class Board(StateRequests, Commands, Settings):
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
        self._heart = Heart(self.link, self._exchange, self._inbox)
        self._keeper = Keeper(
            f"keep {layout.name}", beat=self._beat, lost=self._is_lost, recover=self._recover
        )
        self.reconnects = 0
        self.resets = 0
        self._connected = False
        self._armed = False
        self._problem = "not open"
        self._estop: int | None = None
        self._estop_sent = 0.0
        self._limits_due = False
        self._doubt = ""  # why the session may be over although the line is there
        self._kinds: set[str] = set()  # of commands that the board is known to take
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
            self._heart.quiet = 0
            self._set_connected(True)
        self._changed()

    # What happens by itself -------------------------------------------------------------------

    def _on_frame(self, frame: Frame, arrival: float) -> None:
        self._inbox.take(frame, arrival)

    def _on_state(self, state: int) -> None:
        if state not in COMMANDED:
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
        stop, told = self._estop, time.monotonic() - self._estop_sent
        if stop is not None and told > _ESTOP_AGAIN and self._inbox.state != State.ESTOP:
            self._send_estop(stop)  # until the board says so: a line may swallow it
        self._heart.beat(armed=self._armed)
        if self._limits_due and self._inbox.state == State.DISARMED:
            try:
                self._load_limits()
            except HardwareError as error:
                self._problem = str(error)
                self._limits_due = False
                self._inbox.tell(Severity.ERROR, str(error))

    def _is_lost(self) -> bool:
        """Tell whether the session is over."""
        if self._connected:
            silent = f"silent for {time.monotonic() - self._inbox.heard:.1f} s"
            why = silent if self._heart.quiet > SILENT else self._doubt
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
