"""What keeps a session alive, and gets a lost one back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from cards_hardware.board_inbox import Inbox
from cards_hardware.exchange import Exchange, host_us
from cards_hardware.protocol.enums import State
from cards_hardware.serial_link import SerialLink

HEARTBEAT = 0.02
"""Between two heartbeats of ours, [s]."""

SILENT = 15
"""Heartbeats of ours without a frame from the board, then it counts as gone: 0.3 s. Counted, not
timed: when this machine stands still for a while, the board's frames are waiting to be read."""

_BACKOFF = (0.1, 2.0)
"""First and longest pause between attempts to get a board back, [s]."""

_SYNC_FAST, _SYNC_SLOW = 0.02, 0.1  # [s] between exchanges of times, at first and then
_SYNC_FIRST = 16  # exchanges at the fast pace


class Heart:
    """Shows a board that we live, exchanges times with it, and notices when it is silent.

    Args:
        link: The line.
        exchange: To the board.
        inbox: What comes from it.

    Attributes:
        quiet: Heartbeats of ours since the last frame of the board.
    """

    def __init__(self, link: SerialLink, exchange: Exchange, inbox: Inbox) -> None:
        self._link = link
        self._exchange = exchange
        self._inbox = inbox
        self.quiet = 0
        self._heard = 0.0
        self._synced = 0.0

    def beat(self, *, armed: bool) -> None:
        """Send a heartbeat, and every now and then a time."""
        wanted = State.ACTIVE if armed else State.DISARMED
        beat = {"state": int(wanted), "fault": 0, "t_peer": self._inbox.peer_t_us}
        self.quiet = self.quiet + 1 if self._inbox.heard == self._heard else 0
        self._heard = self._inbox.heard
        self._exchange.post("HEARTBEAT", beat)
        now = time.monotonic()
        first = self._inbox.telemetry.clock.exchanges < _SYNC_FIRST
        if now - self._synced >= (_SYNC_FAST if first else _SYNC_SLOW) - 1e-3:
            self._synced = now
            self._link.send(self._time)

    def _time(self) -> bytes:
        values = {"t1": host_us() & 0xFFFFFFFF, "t2": 0, "t3": 0}
        return self._exchange.frame("TIME_SYNC", values)()


class Keeper:
    """Calls what has to be done, in time.

    Args:
        name: Of the thread.
        beat: Called every `HEARTBEAT` while there is a session.
        lost: Tells whether the session is over.
        recover: Tries once to get it back; tells whether it did.
    """

    def __init__(
        self,
        name: str,
        *,
        beat: Callable[[], None],
        lost: Callable[[], bool],
        recover: Callable[[], bool],
    ) -> None:
        self._name = name
        self._beat = beat
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
        """Be ready for a new session."""
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
        """Have it look at once."""
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
                due = max(due + HEARTBEAT, now)
                self._beat()
