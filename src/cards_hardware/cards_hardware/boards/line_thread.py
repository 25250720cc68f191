"""The threads in C that keep the lines of a robot's boards; see ``native/line_thread.c``.

They read and write ports, send heartbeats and pass commands on, whatever the interpreter does: a
thread of Python that holds the interpreter's lock for a tenth of a second delays nothing on a
line. Threads, not a process: they end with the program that they work for, so that nobody keeps a
board believing in a dead host, and need no copies of ports and frames.

Numbers of lines, and when they may be called, are the business of `SerialLink`.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from cards_core.codegen.library import load_library
from cards_core.errors import CompilationError
from cards_hardware.errors import HardwareError
from cards_hardware.histogram import Histogram
from cards_hardware.protocol.enums import ParameterId
from cards_hardware.protocol.schema import MAX_PAYLOAD
from cards_hardware.real_time import LINE_PRIORITY

HEARTBEAT = 0.005
"""Between two heartbeats, [s]: one that is late does not make a gap of 10 ms yet."""

HOST_TIMEOUT = 1.0
"""A host that gives no sign of life for longer gets no more heartbeats sent, [s]: the time after
which a board without commands switches its drives off."""

COMMAND_AGE = ParameterId.COMMAND_AGE.default * 1e-6
"""Commands that are older are not sent, [s]: boards refuse them."""

MAX_LINES = 16
"""Lines that one `LineThread` keeps."""

BINS = 14
LOST, CLOSED = -1, -2
"""What `receive` returns instead of bytes."""

_FOLDER = Path(__file__).with_name("native")
_SOURCES = (
    *("protocol.h", "cobs.h", "crc32.h", "frame.h", "cobs.c", "crc32.c", "frame.c"),
    "line_thread.c",
)
"""In their order. All but the last are links to the firmware's own files."""

_SCHEDULED = ("normal", "nice", "fifo")
_START = 5.0  # [s] that a busy machine may take to start a thread


class BoardCommand(NamedTuple):
    """What a command says to one board.

    Attributes:
        line: Number of its line.
        gate: Number of the open gate of that line, see `SerialLink.open_gate`; 0 for none.
        type: Type byte of the message.
        node: Address of the board.
        payload: The message; empty: nothing is said to this board, but it must be able to listen.
    """

    line: int
    gate: int
    type: int
    node: int
    payload: bytes


_SUMS: tuple[str, ...] = (
    "sent_bytes",
    "received_bytes",
    "frames",
    "bad_crc",
    "bad_code",
    "too_long",
)
_SUMS += ("dropped", "unread", "beats")


@dataclass(frozen=True)
class LineCounts:
    """Counters of a line.

    Attributes:
        sent_bytes, received_bytes: Bytes.
        frames: Good frames received.
        bad_crc, bad_code, too_long: Damaged ones.
        dropped: Frames for which there was no room to wait for the line.
        unread: Frames that nobody took because this program was busy for seconds.
        beats: Heartbeats sent.
        unanswered: Heartbeats sent since the last frame of the board.
        beat_gap: Longest time between two heartbeats, [s].
        reply: Longest round trip, [s].
        beat_jitter: By how much times between heartbeats differed from `HEARTBEAT`.
        replies: Round trips of exchanges of time, from the port to the port.
    """

    sent_bytes: int = 0
    received_bytes: int = 0
    frames: int = 0
    bad_crc: int = 0
    bad_code: int = 0
    too_long: int = 0
    dropped: int = 0
    unread: int = 0
    beats: int = 0
    unanswered: int = 0
    beat_gap: float = 0.0
    reply: float = 0.0
    beat_jitter: Histogram = field(default_factory=Histogram)
    replies: Histogram = field(default_factory=Histogram)

    @property
    def damaged(self) -> int:
        """Damaged frames of all kinds."""
        return self.bad_crc + self.bad_code + self.too_long

    def after(self, earlier: LineCounts) -> LineCounts:
        """Return the counters of both times that a line was open, `earlier` the first."""
        return LineCounts(
            **{name: getattr(self, name) + getattr(earlier, name) for name in _SUMS},
            unanswered=self.unanswered,
            beat_gap=max(self.beat_gap, earlier.beat_gap),
            reply=max(self.reply, earlier.reply),
            beat_jitter=self.beat_jitter + earlier.beat_jitter,
            replies=self.replies + earlier.replies,
        )


@dataclass(frozen=True)
class CommandCounts:
    """Counters of commands since the thread was made.

    Attributes:
        sent: To all boards that they name.
        replaced: By a newer one before they were sent.
        stale: Too old before every line took them; none of their boards got them.
        withheld: One of their boards could not listen, so none of them got its part.
    """

    sent: int = 0
    replaced: int = 0
    stale: int = 0
    withheld: int = 0


class _Settings(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in ("beat", "host", "write", "command"))


class _Part(ctypes.Structure):
    _fields_ = (
        ("line", ctypes.c_uint32),
        ("gate", ctypes.c_uint32),
        ("type", ctypes.c_uint8),
        ("node", ctypes.c_uint8),
        ("length", ctypes.c_uint16),
        ("payload", ctypes.c_uint8 * MAX_PAYLOAD),
    )


_WAITING = frozenset({"lines_start", "lines_stop", "line_open", "line_close", "line_receive"})


def source() -> str:
    """Return the program text of the thread."""
    texts = ((_FOLDER / name).read_text(encoding="utf-8") for name in _SOURCES)
    lines = (line for text in texts for line in text.splitlines())
    return "\n".join(
        ["#define _GNU_SOURCE", *(x for x in lines if not x.startswith('#include "')), ""]
    )


@functools.cache
def _library() -> SimpleNamespace:
    try:
        library = load_library("the thread of serial lines", source())
    except CompilationError as error:
        raise HardwareError(f"boards cannot be reached: {error}") from error
    integer, pointer = ctypes.c_int, ctypes.c_void_p
    signatures: dict[str, tuple[object, list[object]]] = {
        "lines_start": (pointer, [integer]),
        "lines_stop": (None, [pointer]),
        "lines_scheduled": (integer, [pointer]),
        "lines_thread_id": (integer, [pointer, integer]),
        "lines_command": (integer, [pointer, pointer, ctypes.c_uint32, ctypes.c_int64]),
        "lines_command_counts": (None, [pointer, pointer]),
        "line_open": (integer, [pointer, integer, ctypes.c_uint32, pointer]),
        "line_close": (None, [pointer, integer]),
        "line_free": (None, [pointer, integer]),
        "line_is_open": (integer, [pointer, integer]),
        "line_loss": (integer, [pointer, integer, pointer]),
        "line_give_up": (None, [pointer, integer]),
        "line_send": (
            integer,
            [pointer, integer, *[ctypes.c_uint8] * 4, ctypes.c_char_p, ctypes.c_uint16, integer],
        ),
        "line_set_node": (None, [pointer, integer, ctypes.c_uint32]),
        "line_set_gate": (None, [pointer, integer, ctypes.c_uint32]),
        "line_gate": (ctypes.c_uint32, [pointer, integer]),
        "line_set_beating": (None, [pointer, integer, integer]),
        "line_alive": (None, [pointer, integer]),
        "line_receive": (ctypes.c_long, [pointer, integer, pointer, ctypes.c_size_t, integer]),
        "line_counts": (None, [pointer, integer, pointer]),
    }
    # who gives the interpreter's lock away gets it back only when another thread lets it go; so it
    # is given away only where something is waited for
    quick = ctypes.PyDLL(library._name, handle=library._handle)
    found = SimpleNamespace()
    for name, (result, arguments) in signatures.items():
        function = getattr(library if name in _WAITING else quick, name)
        function.restype, function.argtypes = result, arguments
        setattr(found, name, function)
    return found


class LineThread:
    """The threads, a reader and a sender; they run while a line uses them.

    Args:
        priority: For the real-time scheduler, 0 for none; where that is not permitted they get a
            high ordinary priority.
    """

    def __init__(self, priority: int = LINE_PRIORITY) -> None:
        self.priority = priority
        self._lock = threading.Lock()
        self._users = 0
        self._handle: int | None = None
        self._gates = 0
        self._counts = CommandCounts()

    def attach(self) -> None:
        """Start the thread if this is its first user.

        Raises:
            HardwareError: There is no C compiler, or the system has no more threads.
        """
        library = _library()
        with self._lock:
            if self._handle is None:
                self._handle = library.lines_start(self.priority)
                if not self._handle:
                    self._handle = None
                    raise HardwareError("the thread of serial lines does not start: no memory")
            self._users += 1

    def detach(self) -> None:
        """End the thread if this was its last user."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._counts = self._command_counts()
                handle, self._handle = self._handle, None
                _library().lines_stop(handle)

    @property
    def handle(self) -> int | None:
        """For the functions of the library; None while nobody uses the thread."""
        return self._handle

    @property
    def scheduled(self) -> str:
        """How they are scheduled: ``fifo``, ``nice``, ``normal``; empty while nobody uses them."""
        if not self.thread_ids:
            return ""
        with self._lock:
            handle = self._handle
            return "" if handle is None else _SCHEDULED[_library().lines_scheduled(handle)]

    @property
    def thread_ids(self) -> frozenset[int]:
        """Numbers of the threads, for the system; empty while nobody uses them."""
        with self._lock:
            if self._handle is None:
                return frozenset()
            end = time.monotonic() + _START
            while True:
                found = {int(_library().lines_thread_id(self._handle, role)) for role in (0, 1)}
                if 0 not in found:
                    return frozenset(found)
                if time.monotonic() > end:
                    return frozenset()
                time.sleep(1e-3)

    def next_gate(self) -> int:
        """Return a number that no gate has had."""
        with self._lock:
            self._gates = self._gates % 0xFFFFFFFF + 1
            return self._gates

    def command(self, parts: Sequence[BoardCommand], made: int) -> int | None:
        """Send a command to all its boards, or to none of them.

        It goes out when all lines are free, if it is the newest one then and not too old.

        Args:
            parts: One per board, also of those that are told nothing.
            made: When it was made, host monotonic time [us].

        Returns:
            Index of the first part whose board cannot listen; then nothing is sent. Else None.
        """
        array = (_Part * len(parts))()
        for item, part in zip(array, parts, strict=True):
            item.line, item.gate = max(part.line, 0), part.gate
            item.type, item.node = part.type, part.node
            item.length = len(part.payload)
            ctypes.memmove(item.payload, part.payload, len(part.payload))
            if part.line < 0:
                item.gate = 0
        with self._lock:  # the thread does not end meanwhile
            if self._handle is None:
                return 0
            refused = int(_library().lines_command(self._handle, array, len(parts), made))
        return None if refused < 0 else refused

    def _command_counts(self) -> CommandCounts:
        if self._handle is None:
            return self._counts
        values = (ctypes.c_uint64 * 4)()
        _library().lines_command_counts(self._handle, values)
        old = self._counts
        return CommandCounts(
            old.sent + values[0],
            old.replaced + values[1],
            old.stale + values[2],
            old.withheld + values[3],
        )

    def command_counts(self) -> CommandCounts:
        """Return the counters of commands."""
        with self._lock:
            return self._command_counts()


class Line:
    """One port in the hands of a `LineThread`.

    Args:
        thread: Keeps it.
        fd: The port, non-blocking; it must stay open until `close` has returned.
        node: Address of the board.
        write_timeout: Time after which a line that takes nothing is given up, [s].

    Raises:
        HardwareError: The thread does not start, or keeps as many lines as it can.
    """

    def __init__(self, thread: LineThread, fd: int, node: int, write_timeout: float) -> None:
        thread.attach()
        self._thread = thread
        self._library = _library()
        times = (HEARTBEAT, HOST_TIMEOUT, write_timeout, COMMAND_AGE)
        settings = _Settings(*(round(1e6 * seconds) for seconds in times))
        self.number = int(self._library.line_open(thread.handle, fd, node, ctypes.byref(settings)))
        if self.number < 0:
            thread.detach()
            raise HardwareError(f"one program keeps {MAX_LINES} lines at most")
        self._handle = thread.handle

    def close(self) -> None:
        """Have the thread let go of the port."""
        self._library.line_close(self._handle, self.number)

    def free(self) -> None:
        """Give the place back; no other method may be called after that."""
        self._library.line_free(self._handle, self.number)
        self._thread.detach()

    @property
    def is_open(self) -> bool:
        """Whether the line is there as far as known."""
        return bool(self._library.line_is_open(self._handle, self.number))

    def receive(self, buffer: ctypes.Array[ctypes.c_char], wait: float) -> int:
        """Wait for frames; return how many bytes of the buffer hold records of them.

        Args:
            buffer: Room for them.
            wait: At most, [s].

        Returns:
            Bytes, 0 if none came, `LOST` or `CLOSED`.
        """
        size = len(buffer)
        return int(
            self._library.line_receive(self._handle, self.number, buffer, size, round(wait * 1e3))
        )

    def send(
        self,
        number: int,
        payload: bytes,
        *,
        flags: int = 0,
        node: int,
        seq: int,
        urgent: bool = False,
    ) -> bool:
        """Send a frame after those that wait; tell whether there was room.

        Args:
            number: Type byte of the message.
            payload: The message.
            flags: Bits of `HeaderFlag`.
            node: Address of the board.
            seq: Sequence number.
            urgent: Before all others, and no command passes any more.
        """
        size, first = len(payload), int(urgent)
        call = self._library.line_send
        return call(self._handle, self.number, number, flags, node, seq, payload, size, first) == 0

    def set_node(self, node: int) -> None:
        """Address of the board, which was learned."""
        self._library.line_set_node(self._handle, self.number, node)

    def set_gate(self, gate: int) -> None:
        """Number that commands must name from now on; 0: none passes."""
        self._library.line_set_gate(self._handle, self.number, gate)

    @property
    def gate(self) -> int:
        """Number of the gate, 0 if it is closed."""
        return int(self._library.line_gate(self._handle, self.number))

    def set_beating(self, beating: bool) -> None:
        """Begin or end heartbeats."""
        self._library.line_set_beating(self._handle, self.number, int(beating))

    def alive(self) -> None:
        """Give a sign of life, without which heartbeats end after `HOST_TIMEOUT`."""
        self._library.line_alive(self._handle, self.number)

    def give_up(self) -> None:
        """Count the line as lost."""
        self._library.line_give_up(self._handle, self.number)

    @property
    def loss(self) -> str:
        """Why the line is lost, in words."""
        number = ctypes.c_int()
        why = int(self._library.line_loss(self._handle, self.number, ctypes.byref(number)))
        error = os.strerror(number.value)
        return (
            "closed",
            f"cannot read: {error} (unplugged?)",
            f"cannot write: {error} (unplugged?)",
            "the device has gone (unplugged?)",
            "takes no bytes",
            "given up",
        )[why]

    def counts(self) -> LineCounts:
        """Return its counters."""
        values = (ctypes.c_uint64 * (len(_SUMS) + 3 + 2 * BINS))()
        self._library.line_counts(self._handle, self.number, values)
        numbers = list(values)
        *_, unanswered, gap, reply = numbers[: len(_SUMS) + 3]
        jitter, replies = numbers[-2 * BINS : -BINS], numbers[-BINS:]
        return LineCounts(
            **dict(zip(_SUMS, numbers, strict=False)),
            unanswered=unanswered,
            beat_gap=gap * 1e-6,
            reply=reply * 1e-6,
            beat_jitter=Histogram(tuple(jitter)),
            replies=Histogram(tuple(replies)),
        )
