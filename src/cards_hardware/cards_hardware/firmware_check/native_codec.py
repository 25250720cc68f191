"""The firmware's codec as a shared library: the same bytes for Python and C."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cards_hardware.errors import HardwareError
from cards_hardware.protocol.frames import Frame
from cards_hardware.protocol.generate import checkout
from cards_hardware.protocol.schema import HEADER_SIZE, MAX_PAYLOAD, MAX_WIRE

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
        command = [program, "-std=c11", "-O2", *WARNINGS, "-shared", "-fPIC"]
        command += ["-Wl,-Bsymbolic", "-o", str(library)]
        done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise HardwareError(f"{name} does not compile: {done.stderr.strip()}")
    return ctypes.CDLL(str(library))


class NativeCodec:
    """The codec of the firmware.

    Args:
        folder: Where the library is built.

    Raises:
        HardwareError: There is no compiler, no firmware, or it does not compile.
    """

    def __init__(self, folder: Path) -> None:
        self._library = build(folder, "native_codec", SOURCES)
        self._library.native_crc32.restype = ctypes.c_uint32
        for name in ("cobs_encode", "cobs_decode", "encode", "decoder_size", "feed"):
            getattr(self._library, f"native_{name}").restype = ctypes.c_size_t

    def crc32(self, data: bytes) -> int:
        """Return the CRC of some bytes."""
        return int(self._library.native_crc32(data, ctypes.c_size_t(len(data))))

    def cobs_encode(self, data: bytes, room: int | None = None) -> bytes | None:
        """Return the code, None if it does not fit into `room` bytes."""
        size = len(data) + len(data) // 254 + 1 if room is None else room
        out = ctypes.create_string_buffer(max(size, 1))
        used = self._library.native_cobs_encode(
            data, ctypes.c_size_t(len(data)), out, ctypes.c_size_t(size)
        )
        return out.raw[:used] if used else None

    def cobs_decode(self, code: bytes) -> bytes | None:
        """Return what a code stands for, None if it is none."""
        buffer = ctypes.create_string_buffer(code, max(len(code), 1))
        used = self._library.native_cobs_decode(buffer, ctypes.c_size_t(len(code)))
        return None if used == _NOTHING else buffer.raw[:used]

    def repack(self, kind: int, payload: bytes) -> bytes | None:
        """Read a payload into its struct and write it again; None if it is refused."""
        out = ctypes.create_string_buffer(MAX_PAYLOAD)
        used = ctypes.c_size_t()
        status = self._library.native_repack(
            ctypes.c_uint8(kind),
            payload,
            ctypes.c_size_t(len(payload)),
            out,
            ctypes.c_size_t(MAX_PAYLOAD),
            ctypes.byref(used),
        )
        assert status != 3, "a payload could be read but not written"
        return out.raw[: used.value] if status == 0 else None

    def encode(self, frame: Frame) -> bytes | None:
        """Return a frame on the wire, None if it does not fit. The major version is ours."""
        head = (frame.major << 4 | frame.flags, frame.node, frame.type, frame.seq, frame.t_us)
        body = struct.pack("<BBBBI", *head) + frame.payload
        out = ctypes.create_string_buffer(MAX_WIRE + 1)
        used = self._library.native_encode(
            body, ctypes.c_size_t(len(body)), out, ctypes.c_size_t(MAX_WIRE + 1)
        )
        return out.raw[:used] if used else None

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
