"""The line to a board: bytes in and out of a serial port, frames to the listener.

One thread reads what is there. Who sends writes itself as long as the line takes it; only what
the line does not take at once is left to a writer thread. What waits goes out in this order:
emergency stops, the newest command (an older one that still waits is replaced: it is history),
the rest first come first served. Frames are made at the moment they go out, so that their time
stamps and sequence numbers are those of the line.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import termios
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import serial

from cards_hardware.errors import HardwareError
from cards_hardware.protocol.frames import Frame, FrameDecoder

Encoder: TypeAlias = Callable[[], bytes]
"""Makes a frame, called when it goes out."""

_CHUNK = 4096
_PAUSE = 0.0003  # [s] to wait for the rest of a frame that comes byte by byte
_POLL = 0.5  # [s] after which the reader looks whether it shall end
_QUEUE = 256  # frames that may wait; a line that stands still is lost long before
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


class SerialLink:
    """A serial port with frames on it.

    Args:
        port: Path of the device.
        baudrate: [baud]; a pseudo-terminal or a board on USB ignores it.
        on_frame: Called by the reader thread with every good frame and its arrival, host
            monotonic time [s].
        on_lost: Called once, by any thread, when the line is gone, with the reason. Not by
            `close`.
        write_timeout: Time after which a line that takes nothing is given up, [s].

    Attributes:
        port: As given.
        decoder: Splits bytes into frames and counts the damaged ones.
        replaced: Commands that a newer one replaced before they went out.
        dropped: Other frames for which there was no more room to wait.
        sent_bytes, received_bytes: Since `open`.
    """

    def __init__(
        self,
        port: str,
        baudrate: int = 1_000_000,
        *,
        on_frame: Callable[[Frame, float], None],
        on_lost: Callable[[str], None],
        write_timeout: float = 0.3,
    ) -> None:
        self.port = port
        self._baudrate = baudrate
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._write_timeout = write_timeout
        self.decoder = FrameDecoder()
        self.replaced = 0
        self.dropped = 0
        self.sent_bytes = 0
        self.received_bytes = 0
        self._serial: serial.Serial | None = None
        self._fd = -1
        self._threads: list[threading.Thread] = []
        self._state_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._urgent: deque[Encoder] = deque()
        self._command: Encoder | None = None
        self._fifo: deque[Encoder] = deque()
        self._rest = b""  # of a frame that is half out
        self._leftover = threading.Event()
        self._closing = True
        self._wake_read, self._wake_write = -1, -1

    @property
    def is_open(self) -> bool:
        """Whether the line is there as far as known."""
        return not self._closing

    # Opening and closing ----------------------------------------------------------------------

    def open(self) -> None:
        """Open the port, for this program alone.

        Raises:
            HardwareError: It does not exist, is in use, or is not a serial port.
        """
        if self._serial is not None:
            self.close()
        try:
            port = serial.Serial(
                self.port,
                self._baudrate,
                timeout=0,
                write_timeout=self._write_timeout,
                exclusive=True,
            )
        # SerialException is an OSError; a device that goes while it is set up gives termios.error
        except (OSError, ValueError, termios.error) as error:
            raise HardwareError(_explain(self.port, error)) from None
        # USB adapters keep bytes for 16 ms otherwise; not all drivers know the call
        with contextlib.suppress(OSError, ValueError, NotImplementedError, AttributeError):
            port.set_low_latency_mode(True)
        self.decoder.reset()
        self._urgent.clear()
        self._fifo.clear()
        self._command = None
        self._rest = b""
        self._leftover.clear()
        self.sent_bytes = self.received_bytes = 0
        self._serial, self._fd = port, port.fileno()
        self._wake_read, self._wake_write = os.pipe()
        self._closing = False
        name = os.path.basename(self.port)
        self._threads = [
            threading.Thread(target=self._read, name=f"read {name}", daemon=True),
            threading.Thread(target=self._write, name=f"write {name}", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Close the port; what waits is not sent. May be called at any time, by any thread."""
        self._stop()
        current = threading.current_thread()
        for thread in self._threads:
            if thread is not current and thread.is_alive():
                thread.join(2.0)
        if current in self._threads:
            return  # the callback of a thread of ours: whoever closes next finishes it
        # nobody may write to what this number means next; in this order, as who writes and finds
        # the line gone has the lock of writing and asks for the other one
        with self._write_lock, self._state_lock:
            port, self._serial = self._serial, None
            if port is None:
                return
            self._fd = -1
            with contextlib.suppress(OSError):
                port.close()
            os.close(self._wake_read)
            os.close(self._wake_write)
        self._threads = []

    def _stop(self) -> bool:
        """Ask the threads to end; True for the first who asks."""
        with self._state_lock:
            if self._closing:
                return False
            self._closing = True
            os.write(self._wake_write, b"x")
            self._leftover.set()
            return True

    def _lost(self, reason: str) -> None:
        if self._stop():
            self._on_lost(reason)

    # Sending ----------------------------------------------------------------------------------

    def send(self, frame: Encoder | bytes) -> None:
        """Send a frame after those that wait.

        On a line that is gone this does nothing: `on_lost` has been told.
        """
        if len(self._fifo) < _QUEUE:
            self._fifo.append(_encoder(frame))
        else:
            self.dropped += 1
        self._flush()

    def send_command(self, frame: Encoder | bytes) -> None:
        """Send a command; if the line is busy, instead of one that waits."""
        if self._command is not None:
            self.replaced += 1
        self._command = _encoder(frame)
        self._flush()

    def send_urgent(self, frame: Encoder | bytes) -> None:
        """Send a frame before all others; a command that waits is dropped."""
        self._command = None
        self._urgent.append(_encoder(frame))
        self._flush()

    def _flush(self) -> None:
        """Write what waits, as far as the line takes it; the writer thread does the rest."""
        while not self._closing and self._waiting():
            if not self._write_lock.acquire(blocking=False):
                self._leftover.set()  # who holds it may have looked already
                return
            try:
                if not self._write_waiting():
                    self._leftover.set()
                    return
            finally:
                self._write_lock.release()

    def _waiting(self) -> bool:
        return bool(self._rest or self._urgent or self._command or self._fifo)

    def _write_waiting(self) -> bool:
        """Write until nothing waits (True) or the line takes no more (False)."""
        while not self._closing:
            data = self._rest or self._next()
            if not data:
                return True
            try:
                count = os.write(self._fd, data)
            except BlockingIOError:
                count = 0
            except OSError as error:
                self._rest = b""
                self._lost(f"cannot write: {error.strerror} (unplugged?)")
                return True
            self.sent_bytes += count
            self._rest = data[count:]
            if self._rest:
                return False
        return True

    def _next(self) -> bytes:
        """Make the next frame; only under the lock of writing."""
        if self._urgent:
            return self._urgent.popleft()()
        command, self._command = self._command, None
        if command is not None:
            return command()
        if self._fifo:
            return self._fifo.popleft()()
        return b""

    def _write(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        while True:
            self._leftover.wait()
            self._leftover.clear()
            if self._closing:
                return
            taken = time.monotonic()
            while not self._closing:
                with self._write_lock:
                    sent = self.sent_bytes
                    if self._write_waiting() and not self._waiting():
                        break
                    if self.sent_bytes != sent:
                        taken = time.monotonic()
                if time.monotonic() - taken > self._write_timeout:
                    self._lost(f"takes no bytes for {self._write_timeout:g} s")
                    return
                poll.poll(20)

    # Receiving --------------------------------------------------------------------------------

    def _read(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        try:
            while not self._closing:
                events = dict(poll.poll(_POLL * 1e3))
                if self._closing or not events:
                    continue
                arrival = time.monotonic()
                if not self._take(arrival, events.get(self._fd, 0)):
                    return
        except Exception as error:  # a listener of ours: the line must not go on half alive
            self._lost(f"internal error: {type(error).__name__}: {error}")
            raise

    def _take(self, arrival: float, event: int) -> bool:
        """Read what is there; False when the line is gone."""
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            if event & _GONE:
                self._lost("the device has gone (unplugged?)")
                return False
            return True
        except OSError as error:
            self._lost(f"cannot read: {error.strerror} (unplugged?)")
            return False
        if not data:
            self._lost("the device has gone (unplugged?)")
            return False
        self.received_bytes += len(data)
        frames = self.decoder.feed(data)
        for frame in frames:
            self._on_frame(frame, arrival)
        if not frames:
            time.sleep(_PAUSE)
        return True


def _encoder(frame: Encoder | bytes) -> Encoder:
    if isinstance(frame, bytes):
        data = frame
        return lambda: data
    return frame


def _explain(port: str, error: Exception) -> str:
    """Return what to tell the user about a port that does not open."""
    number = getattr(error, "errno", None)
    text = str(error)
    if not port:
        return "no serial port given: say port:=/dev/ttyACM0, or /dev/serial/by-id/..."
    if not os.path.exists(port):
        return f"port {port} does not exist: is the board plugged in and powered?"
    if "exclusively lock" in text or number in (11, 16):
        return f"port {port} is in use by another program: end that first"
    if isinstance(error, PermissionError) or number == 13:
        return f"port {port} may not be opened by this user: join the group 'dialout'"
    if f"({errno.ENOTTY}, " in text:  # pyserial packs the error into words
        return f"{port} is not a serial port: name the device of the board, e.g. /dev/ttyACM0"
    return f"port {port} cannot be opened: {text}"
