"""The thread that keeps a session alive, and gets a lost one back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

HEARTBEAT = 0.02
"""Between two heartbeats of ours, [s]."""

_BACKOFF = (0.1, 2.0)
"""First and longest pause between attempts to get a board back, [s]."""


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
