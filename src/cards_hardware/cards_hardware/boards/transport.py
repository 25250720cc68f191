"""Frames to one board: sequence numbers, requests and their answers.

Sequence numbers are given in the order in which frames go out, so they only ever advance as the
board sees them; a repeated request is a new frame. Those of heartbeats and commands are given by
the thread that keeps the line.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from cards_hardware.boards.serial_link import SerialLink
from cards_hardware.errors import BoardError, RequestError
from cards_hardware.protocol.codec import pack
from cards_hardware.protocol.enums import AckCode, HeaderFlag
from cards_hardware.protocol.schema import NO_INDEX16
from cards_hardware.protocol.table import BY_ID, MESSAGES

TIMEOUT = 0.2
"""For an answer, [s]."""

TRIES = 3
"""How often a request is sent before it has failed."""

_RETRIABLE = frozenset({AckCode.BUSY, AckCode.REPLAYED, AckCode.STALE})
_RETRY_DELAY = 0.02  # [s] before asking again whoever is busy

# what answers a request if it is not an ACK, and which values must agree
ANSWERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "HELLO": ("IDENT", ("nonce",)),
    "PARAM_GET": ("PARAM_VALUE", ("id", "index")),
    "LIMITS_GET": ("LIMITS", ()),
}


def host_us() -> int:
    """Return the host's monotonic time, [us]."""
    return time.monotonic_ns() // 1000


class _PendingRequest:
    """A request that waits for its answer."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name = name
        self.values = values
        self.answer, self.keys = ANSWERS.get(name, ("ACK", ()))
        self.seqs: set[int] = set()
        self.done = threading.Event()
        self.reply: Mapping[str, Any] = {}
        self.refusal: tuple[int, int] | None = None

    def answers(self, name: str, values: Mapping[str, Any]) -> bool:
        """Take in a message if it answers this request."""
        if name == "ACK":
            if values["type"] != MESSAGES[self.name].id or values["seq"] not in self.seqs:
                return False
            if values["code"] != AckCode.OK:
                self.refusal = int(values["code"]), int(values["detail"])
            elif self.answer != "ACK":
                return False  # the answer itself is yet to come
        elif name != self.answer or any(values[k] != self.values[k] for k in self.keys):
            return False
        self.reply = values
        self.done.set()
        return True


class Transport:
    """Sends frames to one node, and matches answers to requests.

    Args:
        link: The line.
        name: Name of the board, for messages.
        node: Its address.
        gone: Returns why it is useless to wait any longer; empty if it is not.
    """

    def __init__(self, link: SerialLink, name: str, node: int, gone: Callable[[], str]) -> None:
        self._link = link
        self.name = name
        link.node = node
        self._gone = gone
        self._sequence = dict.fromkeys(BY_ID, 0)
        self._sending = threading.Lock()
        self._turn = threading.Lock()
        self._pending: _PendingRequest | None = None

    @property
    def port(self) -> str:
        """For messages."""
        return self._link.port

    @property
    def node(self) -> int:
        """Address of the board."""
        return self._link.node

    @node.setter
    def node(self, node: int) -> None:
        self._link.node = node

    # Sending ----------------------------------------------------------------------------------

    def post(self, name: str, values: Mapping[str, Any]) -> None:
        """Send a message that nobody answers; a board that was lost does not get it.

        Raises:
            ProtocolError: A value does not fit.
        """
        self._send(name, pack(name, values))

    def urgent(self, name: str, values: Mapping[str, Any], *, times: int, node: int) -> None:
        """Send a message several times, before all others; no command passes any more.

        Args:
            name: Name of the message.
            values: Its values by name, in wire units.
            times: How many times.
            node: Address of the board.

        Raises:
            ProtocolError: A value does not fit.
        """
        payload = pack(name, values)
        for _ in range(times):
            self._send(name, payload, node=node, urgent=True)

    def _send(
        self,
        name: str,
        payload: bytes,
        *,
        flags: int = 0,
        node: int | None = None,
        urgent: bool = False,
        pending: _PendingRequest | None = None,
    ) -> None:
        number = MESSAGES[name].id
        with self._sending:  # numbers go out in their order
            seq = self._sequence[number] = (self._sequence[number] + 1) & 255
            if pending is not None:
                pending.seqs.add(seq)
            self._link.send(number, payload, seq=seq, flags=flags, node=node, urgent=urgent)

    # Requests ---------------------------------------------------------------------------------

    def request(
        self,
        name: str,
        values: Mapping[str, Any],
        *,
        timeout: float = TIMEOUT,
        tries: int = TRIES,
    ) -> Mapping[str, Any]:
        """Send a request and wait for its answer; one at a time.

        Args:
            name: Name of the message.
            values: Its values by name, in wire units.
            timeout: For each try, [s].
            tries: How often it is sent at most.

        Returns:
            Values of the answer.

        Raises:
            RequestError: No answer to any of the tries, or a refusal.
            BoardError: The line was lost meanwhile.
        """
        refusal: tuple[int, int] | None = None
        asks, payload = int(HeaderFlag.ACK_REQUEST), pack(name, values)
        with self._turn:
            pending = _PendingRequest(name, values)
            self._pending = pending
            try:
                for _ in range(tries):
                    if reason := self._gone():
                        raise BoardError(self.name, self._link.port, f"{name}: {reason}")
                    pending.done.clear()
                    pending.refusal = None
                    self._send(name, payload, flags=asks, pending=pending)
                    if not self._wait(pending, timeout):
                        continue
                    refusal = pending.refusal
                    if refusal is None:
                        return pending.reply
                    if refusal[0] not in _RETRIABLE:
                        break
                    time.sleep(_RETRY_DELAY)
            finally:
                self._pending = None
        raise self._failure(name, refusal, timeout, tries)

    def _wait(self, pending: _PendingRequest, timeout: float) -> bool:
        end = time.monotonic() + timeout
        while not pending.done.wait(max(0.0, min(end - time.monotonic(), 0.05))):
            if time.monotonic() >= end or self._gone():
                return False
        return True

    def _failure(
        self, name: str, refusal: tuple[int, int] | None, timeout: float, tries: int
    ) -> RequestError:
        port = self._link.port
        if refusal is None:
            asked = "once" if tries == 1 else f"{tries} times"
            problem = f"no answer (asked {asked}, {timeout:g} s each)"
            return RequestError(self.name, port, name, problem)
        code, detail = refusal
        known = code in {int(item) for item in AckCode}
        text = f"{AckCode(code).name.lower()}: {AckCode(code).text}" if known else f"code {code}"
        where = "" if detail == NO_INDEX16 else f" (channel or field {detail})"
        at = None if detail == NO_INDEX16 else detail
        problem = f"refused, {text}{where}"
        return RequestError(self.name, port, name, problem, code=code, detail=at)

    def answered(self, name: str, values: Mapping[str, Any]) -> bool:
        """Give a message to the request that waits for it; False if none does."""
        pending = self._pending
        return pending is not None and pending.answers(name, values)
