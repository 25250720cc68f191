"""What is asked of a board as a whole: to arm, relax, disarm, clear, and to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

from cards_core.errors import CardsError
from cards_hardware.board_data import flag_words, state_word
from cards_hardware.board_keeper import Keeper
from cards_hardware.board_status import BoardView, muscle_faults
from cards_hardware.errors import BoardError, RequestError
from cards_hardware.protocol.enums import EstopReason, Fault, Request, State
from cards_hardware.protocol.schema import BROADCAST

COMMANDED = frozenset({State.ARMED, State.ACTIVE, State.HOLD})
"""States in which commands act."""

_LATE = 0.1  # [s] that a state may be behind the answer to a request
_STEP = 0.005  # [s] between looks at the state
_ESTOP_TIMES = 3


class StateRequests(BoardView):
    """Requests for states of a board, one at a time. Base of `Board`."""

    _keeper: Keeper
    _requests: threading.RLock  # who talks about sessions and states
    _on_change: Callable[[], None] | None
    _estop_sent: float
    _limits_due: bool
    _doubt: str  # why the session may be over although the line is there

    # Stopping ---------------------------------------------------------------------------------

    def estop(self, reason: int = EstopReason.OPERATOR) -> None:
        """Stop: safe tensions at once. From any thread, at any time; never waits.

        It is sent again until the board says that it has stopped. Without a line it is
        remembered, and the first thing to be sent when the line is back.
        """
        self._estop = int(reason)
        self._armed = False
        self._send_estop(self._estop)
        self._keeper.wake()

    def _send_estop(self, reason: int) -> None:
        self._estop_sent = time.monotonic()
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
            try:
                self._ask_state(Request.ARM, COMMANDED, timeout, token=True)
            except BoardError:
                self._post_disarm()  # should it have been armed all the same, it must not stay so
                raise
            # whoever stops it sets the reason first and takes the arming back then, so it is set
            # first here and the reasons looked at then
            self._armed = True
            stopped = self._estop is not None or bool(self._doubt) or not self._connected
            if stopped or self._inbox.state not in COMMANDED:
                self._armed = False
                self._post_disarm()
                raise self._error("was stopped or lost while it was armed")
        self._changed()

    def _post_disarm(self) -> None:
        """Have the drives switched off, without waiting for an answer."""
        self._exchange.post("STATE_REQUEST", {"request": int(Request.DISARM), "token": 0})

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
            if self._inbox.state not in COMMANDED:
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
        if reason := self._why_gone():
            raise self._error(f"cannot {what}: {reason}")
        number = self._session.identify(1.0, new=False).token if token else 0
        before = self._inbox.state
        try:
            self._exchange.request("STATE_REQUEST", {"request": int(request), "token": number})
        except RequestError as error:
            # an answer may be lost, and the next try be refused because the first one worked
            if before in wanted or not self._arrives(wanted, _LATE):
                raise self._error(f"{what}: {_reason(error)}{self._hindrance(request)}") from None
        if not self._arrives(wanted, timeout):
            if reason := self._why_gone():
                raise self._error(f"{what}: {reason}")
            raise self._error(
                f"{what}: still {state_word(self._inbox.state)} after {timeout:g} s, expected "
                f"{' or '.join(item.name for item in wanted)}{self._hindrance(request)}"
            )

    def _arrives(self, wanted: Collection[State], timeout: float) -> bool:
        """Wait for a state; tell whether the board got there."""
        end = time.monotonic() + timeout
        while self._inbox.state not in wanted:
            if self._why_gone() or time.monotonic() > end:
                return False
            time.sleep(_STEP)
        return True

    def _hindrance(self, request: Request) -> str:
        """Return what the board shows that may keep it from doing what it was asked."""
        parts = list(flag_words(Fault(self._inbox.fault)))
        faults = muscle_faults(self.layout, self.slow)
        parts += [f"{name}: {', '.join(words)}" for name, words in faults.items()]
        if parts and request is Request.ARM:
            parts.append("clear this before arming")
        if self._inbox.state not in (State.DISARMED, None):
            parts.insert(0, f"state {state_word(self._inbox.state)}")
        return f" ({'; '.join(parts)})" if parts else ""

    def _load_limits(self) -> None:
        self._limits_due = not self._session.load_limits()
        self._inbox.expects_limits = bool(self.layout.limits) and not self._limits_due

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
