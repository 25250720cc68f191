"""A relay between bridge and board that can cut, disturb and record the line.

The relay opens the port of an emulated board and offers another one to the bridge. Everything
that passes is decoded and kept with its direction, so a test reads from the frames, in the
board's own time, what the board did while nobody else was there to hear it.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
import tty
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np

from cards_core.errors import CardsError
from cards_hardware.protocol.frames import Frame, FrameDecoder

Direction = Literal["to_board", "to_host"]

KEPT = 400_000
"""Frames that are kept; older ones are forgotten."""


@dataclass(frozen=True)
class RelayedFrame:
    """A frame that passed.

    Attributes:
        time: Time on this machine's monotonic clock, [s].
        direction: Where it went.
        passed: Whether the other side got it.
        frame: The frame.
    """

    time: float
    direction: Direction
    passed: bool
    frame: Frame


class Relay:
    """Context manager of a relay in a thread of its own.

    Args:
        port: Port of the board.
        link: Path at which the other port appears, a symbolic link.
        seed: Chance of the byte errors.

    Attributes:
        link: As given; what to give to the bridge.
        error_rate: Bytes changed, lost or doubled, as a share, in both directions.
        delay: Added to both directions, [s].
    """

    def __init__(self, port: str | Path, link: str | Path, *, seed: int = 0) -> None:
        self._port_path = str(port)
        self.link = Path(link)
        self.error_rate = 0.0
        self.delay = 0.0
        self._rng = np.random.default_rng(seed)
        self._frames: deque[RelayedFrame] = deque(maxlen=KEPT)
        self._decoders = {"to_board": FrameDecoder(), "to_host": FrameDecoder()}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._waiting: deque[tuple[float, Direction, bytes]] = deque()
        self._master = self._slave = self._board = -1
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)

    def __enter__(self) -> Self:
        """Open both ends."""
        try:
            self._board = os.open(self._port_path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            raise CardsError(f"relay: {self._port_path} cannot be opened: {error}") from error
        tty.setraw(self._board)
        self.plug()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and close both ends."""
        self._stop.set()
        self._thread.join(2.0)
        self.unplug()
        os.close(self._board)

    # The cable --------------------------------------------------------------------------------

    @property
    def plugged(self) -> bool:
        """Whether the port for the bridge is there."""
        return self._master >= 0

    def unplug(self) -> None:
        """Pull the cable out: the port vanishes, as that of a USB device does."""
        with self._lock:
            self._waiting.clear()
            self.link.unlink(missing_ok=True)
            for number in (self._master, self._slave):
                if number >= 0:
                    os.close(number)
            self._master = self._slave = -1

    def plug(self) -> None:
        """Plug the cable in again: the port is there under its name."""
        with self._lock:
            if self._master >= 0:
                return
            # the other end stays open here: a port without a reader must not look unplugged
            self._master, self._slave = os.openpty()
            tty.setraw(self._slave)
            os.set_blocking(self._master, False)
            temporary = self.link.with_name(f".{self.link.name}.new")
            temporary.unlink(missing_ok=True)
            temporary.symlink_to(os.ttyname(self._slave))
            temporary.replace(self.link)

    def inject(self, data: bytes) -> None:
        """Send bytes to the board as if they had come from the host."""
        self._write(self._board, data)

    # What passed ------------------------------------------------------------------------------

    def frames(
        self, name: str | None = None, direction: Direction | None = None
    ) -> list[RelayedFrame]:
        """Return what passed so far, oldest first; of one message or direction only."""
        with self._lock:
            everything = list(self._frames)
        return [
            item
            for item in everything
            if (name is None or item.frame.name == name)
            and (direction is None or item.direction == direction)
        ]

    def drain(self) -> list[RelayedFrame]:
        """Return what passed since the last call, oldest first, and forget it."""
        with self._lock:
            everything = list(self._frames)
            self._frames.clear()
        return everything

    def forget(self) -> None:
        """Forget what passed so far."""
        with self._lock:
            self._frames.clear()

    # Thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                master = self._master
            ends = [self._board] + ([master] if master >= 0 else [])
            patience = 0.002 if self._waiting else 0.02
            try:
                ready, _, _ = select.select(ends, [], [], patience)
            except (OSError, ValueError):
                continue  # unplugged meanwhile
            with self._lock:
                if self._board in ready:
                    self._take(self._board, "to_host")
                if master in ready and master == self._master:
                    self._take(master, "to_board")
                self._deliver(time.monotonic())

    def _take(self, source: int, direction: Direction) -> None:
        try:
            data = os.read(source, 65536)
        except OSError:
            time.sleep(0.001)  # an end that is being reopened
            return
        now = time.monotonic()
        passed = self._master >= 0
        for frame in self._decoders[direction].feed(data):
            self._frames.append(RelayedFrame(now, direction, passed, frame))
        if passed:
            self._waiting.append((now + self.delay, direction, self._disturbed(data)))

    def _deliver(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            _, direction, data = self._waiting.popleft()
            self._write(self._board if direction == "to_board" else self._master, data)

    def _disturbed(self, data: bytes) -> bytes:
        if not self.error_rate:
            return data
        out = bytearray()
        for byte, chance, kind in zip(
            data,
            self._rng.random(len(data)),
            self._rng.integers(0, 3, len(data)),
            strict=True,
        ):
            if chance >= self.error_rate:
                out.append(byte)
            elif kind == 0:
                out.append(byte ^ (1 << int(self._rng.integers(0, 8))))
            elif kind == 1:
                out += bytes((byte, int(self._rng.integers(0, 256))))
        return bytes(out)

    @staticmethod
    def _write(number: int, data: bytes) -> None:
        # what does not fit is lost, as on a line without flow control
        with contextlib.suppress(OSError):
            os.write(number, data)
