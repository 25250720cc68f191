"""The firmware's C in this process: its codec, and a whole board.

The codec as a shared library takes the same bytes as the one in Python. The board is the
firmware's core as it is flashed, compiled for this machine; the caller advances its clock, drives
answer every tick, and load cells show what the current pulls. For tests that must see every tick.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cards_hardware.errors import HardwareError
from cards_hardware.protocol.codec import Values, encode, unpack
from cards_hardware.protocol.enums import AckCode, ParameterId, Request, State
from cards_hardware.protocol.frames import Frame, FrameDecoder
from cards_hardware.protocol.generate import checkout
from cards_hardware.protocol.schema import HEADER_SIZE, MAJOR, MAX_MUSCLES, MAX_WIRE

SOURCES = (
    "test/native_codec.c",
    "core/protocol.c",
    "core/cobs.c",
    "core/crc32.c",
    "core/frame.c",
)
"""Below ``firmware/``."""

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror")
"""What the firmware must compile with."""

_NOTHING = ctypes.c_size_t(-1).value


def compiler() -> str | None:
    """Return the C compiler of this machine, None if there is none."""
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def build(folder: Path, name: str, sources: Sequence[str]) -> ctypes.CDLL:
    """Compile files of the firmware into a shared library if needed, and load it.

    Args:
        folder: Where it is built.
        name: Its name.
        sources: Files or patterns below ``firmware/``.

    Raises:
        HardwareError: There is no compiler, no firmware, or it does not compile.
    """
    firmware = checkout() / "firmware"
    program = compiler()
    if program is None:
        raise HardwareError("no C compiler (cc, gcc, clang) found; install gcc")
    files = [str(file) for pattern in sources for file in sorted(firmware.glob(pattern))]
    if len(files) < len(sources):
        raise HardwareError(f"{firmware} is not the firmware; run from a checkout")
    library = folder / f"{name}.so"
    newest = max(file.stat().st_mtime for file in firmware.rglob("*.[ch]"))
    if not library.is_file() or library.stat().st_mtime < newest:
        command = [program, "-std=c11", "-O2", *WARNINGS, *os.environ.get("CFLAGS", "").split()]
        command += ["-shared", "-fPIC", "-Wl,-Bsymbolic", "-o", str(library)]
        done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise HardwareError(f"{name} does not compile: {done.stderr.strip()}")
    return ctypes.CDLL(str(library))


class NativeCodec:
    """The codec of the firmware, of which decoders are needed here.

    Args:
        folder: Where the library is built.

    Raises:
        HardwareError: There is no compiler, no firmware, or it does not compile.
    """

    def __init__(self, folder: Path) -> None:
        self._library = build(folder, "native_codec", SOURCES)
        for name in ("decoder_size", "feed"):
            getattr(self._library, f"native_{name}").restype = ctypes.c_size_t

    def decoder(self) -> NativeDecoder:
        """Return a new decoder."""
        return NativeDecoder(self._library)


class NativeDecoder:
    """The firmware's `FrameDecoder`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._memory = ctypes.create_string_buffer(library.native_decoder_size())

    def feed_raw(self, data: bytes) -> bytes:
        """Return the good frames that bytes complete: length u16, header, payload of each."""
        room = len(data) + MAX_WIRE + 2
        out = ctypes.create_string_buffer(room)
        used = self._library.native_feed(
            self._memory, data, ctypes.c_size_t(len(data)), out, ctypes.c_size_t(room)
        )
        assert used != _NOTHING, "more came out than went in"
        return out.raw[:used]

    def feed(self, data: bytes) -> list[Frame]:
        """Return the good frames that bytes complete."""
        raw = self.feed_raw(data)
        frames = []
        at = 0
        while at < len(raw):
            (size,) = struct.unpack_from("<H", raw, at)
            first, node, kind, seq, t_us = struct.unpack_from("<BBBBI", raw, at + 2)
            payload = raw[at + 2 + HEADER_SIZE : at + 2 + size]
            frames.append(Frame(first >> 4, first & 15, node, kind, seq, t_us, payload))
            at += 2 + size
        return frames

    @property
    def errors(self) -> int:
        """Damaged frames of all kinds."""
        return sum(self.counters[1:])

    @property
    def counters(self) -> tuple[int, int, int, int]:
        """Good frames; bad CRC, bad code, too long."""
        out = (ctypes.c_uint32 * 4)()
        self._library.native_counters(self._memory, out)
        return out[0], out[1], out[2], out[3]


_ROOM = 65536

LIMITS: dict[str, float] = {
    "tension_max": 400.0,
    "tension_min": 0.0,
    "tension_safe": 10.0,
    "length_min": 0.1,
    "length_max": 0.6,
    "rate_max": 1.0,
    "current_max": 9.0,
    "soft": 60.0,
    "hard": 80.0,
    "slew": 2000.0,
}
"""Limits of every muscle, SI units."""


class _View(ctypes.Structure):
    _fields_ = (
        ("time_us", ctypes.c_uint32),
        ("state", ctypes.c_uint32),
        ("cmd_t_us", ctypes.c_uint32),
        ("refused", ctypes.c_uint32 * (len(AckCode) - 1)),
        ("tension", ctypes.c_int16 * MAX_MUSCLES),
        ("slew", ctypes.c_uint16 * MAX_MUSCLES),
        ("current", ctypes.c_int16 * MAX_MUSCLES),
    )


class NativeDevice:
    """A board.

    The library has one board: a new object of the same library restarts it.

    Args:
        folder: Where the library is built.
        time_us: Its clock at start, [us].

    Attributes:
        view: What may be seen of the last tick: time_us, state, cmd_t_us, refused per `AckCode`
            from 1 on, tension [0.1 N] and slew [N/s] commanded, current sent to the drives [mA].

    Raises:
        HardwareError: It cannot be built.
    """

    def __init__(self, folder: Path, time_us: int = 1_000_000) -> None:
        self._library = build(folder, "native_device", ("test/native_device.c", "core/*.c"))
        self._library.native_tick.restype = ctypes.c_size_t
        self._out = ctypes.create_string_buffer(_ROOM)
        self._decoder = FrameDecoder()
        self._seq: dict[str, int] = {}
        self.view = _View()
        self.view.time_us = time_us
        self._library.native_start(ctypes.c_uint32(time_us))

    @property
    def state(self) -> State:
        """State after the last tick."""
        return State(self.view.state)

    def tick(self, data: bytes = b"", step_us: int = 1000) -> bytes:
        """Hand over bytes of the host, let time pass, tick; return the bytes for the host."""
        used = self._library.native_tick(
            ctypes.c_uint32(step_us),
            data,
            ctypes.c_size_t(len(data)),
            self._out,
            ctypes.c_size_t(_ROOM),
            ctypes.byref(self.view),
        )
        return self._out.raw[:used] if used else b""

    def send(
        self, name: str, values: Mapping[str, Any], flags: int = 0
    ) -> list[tuple[str, Values]]:
        """Send a message stamped with the time of the next tick; return what comes in it.

        Args:
            name: Name of the message.
            values: Its values by name, in wire units.
            flags: Bits of the header.

        Returns:
            Name and values of each message of the answer.
        """
        seq = self._seq[name] = (self._seq.get(name, -1) + 1) % 256
        t_us = (self.view.time_us + 1000) % 2**32
        answer = self.tick(encode(name, values, node=1, seq=seq, t_us=t_us, flags=flags))
        return [(frame.name, unpack(frame)) for frame in self._decoder.feed(answer)]

    def request(self, name: str, values: Mapping[str, Any]) -> None:
        """Send a message that must be answered by ACK ok."""
        for kind, answer in self.send(name, values, flags=1):
            if kind == "ACK" and answer["code"] == AckCode.OK:
                return
            if kind == "ACK":
                raise HardwareError(
                    f"{name}: refused, {AckCode(answer['code']).name}, detail {answer['detail']}"
                )
        raise HardwareError(f"{name}: no answer")

    def prepare(self, muscles: int, parameters: Mapping[ParameterId, int] | None = None) -> int:
        """Set it up as a host would; return the arm token."""
        for _ in range(20):
            self.tick()
        hello = {"min_major": MAJOR, "max_major": MAJOR, "nonce": 77}
        token = next(v["arm_token"] for name, v in self.send("HELLO", hello) if name == "IDENT")
        for parameter, value in {ParameterId.MUSCLES: muscles, **(parameters or {})}.items():
            self.request("PARAM_SET", {"id": parameter, "index": 0, "value": value})
        self.request("PARAM_SAVE", {})  # what differs from flash refuses arming
        for _ in range(50):
            self.tick()
        self.request("LIMITS", {key: [value] * muscles for key, value in LIMITS.items()})
        for _ in range(50):
            self.tick()
        return int(token)

    def arm(self, token: int) -> None:
        """Lead it to ARMED."""
        self.send("HEARTBEAT", {"state": State.ARMED, "fault": 0, "t_peer": 0})
        self.request("STATE_REQUEST", {"request": Request.ARM, "token": token})
