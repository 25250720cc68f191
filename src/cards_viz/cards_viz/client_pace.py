"""How fast an open page can take updates.

A page that renders in software manages a frame or two a second. More updates only pile up there:
its buttons, the emergency stop among them, answer seconds late, and it takes the processor away
from the control loop. So a short question is sent to every page again and again, behind the
updates; the time to its answer is the time that the page needs to work off what it was sent.
"""

from __future__ import annotations

import contextlib
import threading
import time

import viser

PROMPT = 0.1
"""An answer within this time shows a page that keeps up, [s]."""

SLOWEST = 2.0
"""Longest time between two updates, however slow a page is, [s]."""

_PAUSE = 0.2  # [s], between an answer and the next question
_TIMEOUT = 10.0  # [s]


class ClientPace:
    """Measures the answer times of all pages of a server.

    A page that needs the time T for an update and has k of them waiting answers after k T. With
    an interval of ``answer / ahead`` it therefore always has ``ahead`` updates to work on.

    Args:
        server: The server.
        ahead: Updates that may wait in a page that does not keep up.
    """

    def __init__(self, server: viser.ViserServer, ahead: int = 1) -> None:
        self._server = server
        self._ahead = ahead
        self._lock = threading.Lock()
        self._asked: dict[int, float] = {}
        self._answers: dict[int, float] = {}
        self._stopped = threading.Event()
        server.on_client_connect(self._start)

    def interval(self) -> float:
        """Return the least time between two updates that the slowest page needs, [s]."""
        now = time.monotonic()
        with self._lock:
            answers = list(self._answers.values())
            # who has not answered for longer than last time is at least as slow as that
            answers += [now - asked for asked in self._asked.values()]
        slowest = max(answers, default=0.0)
        return 0.0 if slowest <= PROMPT else min(slowest / self._ahead, SLOWEST)

    def stop(self) -> None:
        """Ask no more."""
        self._stopped.set()

    def _start(self, client: viser.ClientHandle) -> None:
        threading.Thread(
            target=self._follow, args=(client,), name="client_pace", daemon=True
        ).start()

    def _follow(self, client: viser.ClientHandle) -> None:
        number = client.client_id
        while not self._stopped.wait(_PAUSE) and number in self._server.get_clients():
            begin = time.monotonic()
            with self._lock:
                self._asked[number] = begin
            # a page that may not use its storage answers too; one that left is looked up above
            with contextlib.suppress(RuntimeError, TimeoutError):
                client.local_storage.get_item("cards_pace", timeout=_TIMEOUT)
            with self._lock:
                del self._asked[number]
                self._answers[number] = time.monotonic() - begin
        with self._lock:
            self._answers.pop(number, None)
