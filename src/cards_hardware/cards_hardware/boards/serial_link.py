"""The line to a board: a serial port, frames to the board, frames to the listener.

The work is done by a thread in C (`LineThread`) that reads, writes and sends heartbeats whatever
the interpreter does. What waits goes out in this order: emergency stops, the newest command, a
heartbeat, the rest first come first served. Frames are stamped when they go out, commands when
they were made. Frames that arrive, stamped when their bytes did, are handed to the listener by a
thread of Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
import termios
import threading
from collections.abc import Callable

import serial

from cards_hardware.boards.line_thread import (
    CLOSED,
    LOST,
    BoardCommand,
    Line,
    LineCounts,
    LineThread,
)
from cards_hardware.errors import HardwareError
from cards_hardware.protocol.frames import Frame
from cards_hardware.protocol.schema import BROADCAST

_BUFFER = 65536  # [B] for frames that are taken over at once
_WAIT = 0.5  # [s] after which the reader waits again
_RECORD = struct.Struct("=qIHBBBBBx")  # arrival [ns], t_us, length, major, flags, node, type, seq


class SerialLink:
    """A serial port with frames on it.

    Args:
        port: Path of the device.
        baudrate: [baud]; a pseudo-terminal or a board on USB ignores it.
        on_frame: Called by the reader thread with every good frame and its arrival, host
            monotonic time [s].
        on_lost: Called once, by the reader thread, when the line is gone, with the reason. Not by
            `close`.
        thread: Keeps the line; boards that are commanded together have the same. None: one of
            its own.
        write_timeout: Time after which a line that takes nothing is given up, [s].

    Attributes:
        port: As given.
        thread: Keeps the line.
    """

    def __init__(
        self,
        port: str,
        baudrate: int = 1_000_000,
        *,
        on_frame: Callable[[Frame, float], None],
        on_lost: Callable[[str], None],
        thread: LineThread | None = None,
        write_timeout: float = 0.3,
    ) -> None:
        self.port = port
        self.thread = thread or LineThread()
        self._baudrate = baudrate
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._write_timeout = write_timeout
        self._node = BROADCAST
        self._serial: serial.Serial | None = None
        self._line: Line | None = None
        self._reader: threading.Thread | None = None
        self._told = True  # that the line is gone, or closed by us
        # held while the line may go away: whoever uses it then finds none, or finds it whole
        self._lock = threading.RLock()
        self._counts = LineCounts()

    @property
    def is_open(self) -> bool:
        """Whether the line is there as far as known."""
        with self._lock:
            return self._line is not None and not self._told and self._line.is_open

    # Opening and closing ----------------------------------------------------------------------

    def open(self) -> None:
        """Open the port, for this program alone.

        Raises:
            HardwareError: It does not exist, is in use, or is not a serial port; or there is no
                C compiler to make the thread of lines.
        """
        if self._serial is not None:
            self.close()
        try:
            port = serial.Serial(self.port, self._baudrate, timeout=0, exclusive=True)
        # SerialException is an OSError; a device that goes while it is set up gives termios.error
        except (OSError, ValueError, termios.error) as error:
            raise HardwareError(_explain(self.port, error)) from None
        # USB adapters keep bytes for 16 ms otherwise; not all drivers know the call
        with contextlib.suppress(OSError, ValueError, NotImplementedError, AttributeError):
            port.set_low_latency_mode(True)
        try:
            line = Line(self.thread, port.fileno(), self._node, self._write_timeout)
        except HardwareError:
            port.close()
            raise
        with self._lock:
            self._serial, self._line, self._told = port, line, False
            name = f"read {os.path.basename(self.port)}"
            self._reader = threading.Thread(
                target=self._read, args=(line,), name=name, daemon=True
            )
            self._reader.start()

    def close(self) -> None:
        """Close the port; what waits is not sent. May be called at any time, by any thread."""
        with self._lock:
            self._told = True
            line, reader = self._line, self._reader
            if line is not None:
                line.close()
        if reader is threading.current_thread():
            return  # its callback: whoever closes next finishes it
        if reader is not None:
            reader.join()
        with self._lock:
            if line is None or self._line is not line:
                return  # another thread was quicker
            self._counts = line.counts().after(self._counts)
            line.free()
            port, self._serial, self._line, self._reader = self._serial, None, None, None
            if port is not None:
                with contextlib.suppress(OSError):
                    port.close()

    def _lost(self, reason: str) -> None:
        with self._lock:
            told, self._told = self._told, True
        if not told:
            self._on_lost(reason)

    # Sending ----------------------------------------------------------------------------------

    def send(
        self,
        number: int,
        payload: bytes,
        *,
        seq: int,
        flags: int = 0,
        node: int | None = None,
        urgent: bool = False,
    ) -> bool:
        """Send a frame after those that wait; returns whether there was room for it.

        On a line that is gone this does nothing: `on_lost` has been told or will be.

        Args:
            number: Type byte of the message.
            payload: The message.
            seq: Its sequence number.
            flags: Bits of `HeaderFlag`.
            node: Address of the board; None: that of the line.
            urgent: Before all others; commands pass no more until `open_gate`.
        """
        with self._lock:
            if self._line is None:
                return False
            node = self._node if node is None else node
            return self._line.send(number, payload, flags=flags, node=node, seq=seq, urgent=urgent)

    @property
    def node(self) -> int:
        """Address of the board, to which heartbeats and commands go."""
        return self._node

    @node.setter
    def node(self, node: int) -> None:
        with self._lock:
            self._node = node
            if self._line is not None:
                self._line.set_node(node)

    def beat(self, beating: bool) -> None:
        """Begin or end heartbeats, which go out as long as `alive` is called now and then."""
        with self._lock:
            if self._line is not None:
                self._line.set_beating(beating)

    def alive(self) -> None:
        """Give a sign of life of this program."""
        with self._lock:
            if self._line is not None:
                self._line.alive()

    # Commands ---------------------------------------------------------------------------------

    def open_gate(self) -> None:
        """Let commands pass, until the board says that it takes none, or the line is lost."""
        with self._lock:
            if self._line is not None and not self._told:
                self._line.set_gate(self.thread.next_gate())

    def close_gate(self) -> None:
        """Let no command pass, not even one that waits."""
        with self._lock:
            if self._line is not None:
                self._line.set_gate(0)

    @property
    def gate(self) -> int:
        """Number of the open gate, 0 if no command passes."""
        with self._lock:
            return 0 if self._line is None else self._line.gate

    def command(self, number: int, payload: bytes) -> BoardCommand:
        """Return the part of a command that is for this line, see `LineThread.command`.

        Args:
            number: Type byte of the message.
            payload: The message; empty: nothing, but the board must be able to listen.
        """
        with self._lock:
            line, gate = (-1, 0) if self._line is None else (self._line.number, self._line.gate)
        return BoardCommand(line, gate, number, self._node, payload)

    # Receiving --------------------------------------------------------------------------------

    def counts(self) -> LineCounts:
        """Return the counters of this line since the first `open`."""
        with self._lock:
            return self._counts if self._line is None else self._line.counts().after(self._counts)

    def _read(self, line: Line) -> None:
        buffer = ctypes.create_string_buffer(_BUFFER)
        try:
            while (size := line.receive(buffer, _WAIT)) >= 0:
                self._dispatch(memoryview(buffer), size)
        except Exception as error:  # a listener of ours: the line must not go on half alive
            line.give_up()
            self._lost(f"internal error: {type(error).__name__}: {error}")
            raise
        if size == LOST:
            reason = line.loss
            if reason == "takes no bytes":
                reason += f" for {self._write_timeout:g} s"
            self._lost(reason)
        else:
            assert size == CLOSED

    def _dispatch(self, records: memoryview, size: int) -> None:
        at = 0
        while at < size:
            arrival, t_us, length, major, flags, node, number, seq = _RECORD.unpack_from(
                records, at
            )
            at += _RECORD.size
            payload = bytes(records[at : at + length])
            at += length
            self._on_frame(Frame(major, flags, node, number, seq, t_us, payload), arrival * 1e-9)


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
