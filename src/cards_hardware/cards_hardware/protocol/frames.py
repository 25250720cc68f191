"""Frames on a line: ``COBS(header | payload | crc32) 00``."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from cards_hardware.errors import ProtocolError
from cards_hardware.protocol import cobs
from cards_hardware.protocol.schema import CRC_SIZE, HEADER_SIZE, MAX_FRAME, MAX_PAYLOAD, MAX_WIRE
from cards_hardware.protocol.table import BY_ID

_HEADER = struct.Struct("<BBBBI")
_CRC = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame whose CRC is right.

    Attributes:
        major: Version of the protocol of its sender.
        flags: Bits of `HeaderFlag`.
        node: From the host the destination, from a board itself.
        type: Type byte of the message; it may be one that we do not know.
        seq: Sequence number, per sender and type, 255 -> 0.
        t_us: Clock of the sender, modulo 2^32 [us].
        payload: The message, see `codec.unpack`.
    """

    major: int
    flags: int
    node: int
    type: int
    seq: int
    t_us: int
    payload: bytes

    @property
    def name(self) -> str:
        """Name of the message, or its type as ``0x7E`` if there is none."""
        message = BY_ID.get(self.type)
        return message.name if message else f"0x{self.type:02X}"


def encode_frame(frame: Frame) -> bytes:
    """Return a frame as it goes over the line, with its delimiter.

    Raises:
        ProtocolError: A number or the payload is too large.
    """
    if len(frame.payload) > MAX_PAYLOAD:
        raise ProtocolError(
            frame.name, f"payload of {len(frame.payload)} bytes, at most {MAX_PAYLOAD} fit"
        )
    if not (0 <= frame.major <= 15 and 0 <= frame.flags <= 15):
        raise ProtocolError(
            frame.name, f"major {frame.major}, flags {frame.flags}: both must be in 0..15"
        )
    try:
        header = _HEADER.pack(
            frame.major << 4 | frame.flags, frame.node, frame.type, frame.seq, frame.t_us
        )
    except struct.error:
        raise ProtocolError(
            frame.name,
            f"node {frame.node}, type {frame.type}, seq {frame.seq}, t_us {frame.t_us}: must be "
            "in 0..255, 0..255, 0..255, 0..2^32-1",
        ) from None
    body = header + frame.payload
    return cobs.encode(body + _CRC.pack(zlib.crc32(body))) + b"\0"


class FrameDecoder:
    """Takes a stream of bytes apart.

    Its memory is bounded, it never raises, and whatever arrived before, the first whole frame
    after a delimiter is found.

    Attributes:
        ok: Good frames.
        bad_crc: Frames whose CRC differs.
        bad_code: Frames that are not COBS, or too short for header and CRC.
        too_long: Runs of bytes longer than any frame.
    """

    def __init__(self) -> None:
        self.ok = self.bad_crc = self.bad_code = self.too_long = 0
        self._rest = b""
        self._skipping = False

    def reset(self) -> None:
        """Forget the bytes of a frame that began; the counters go on."""
        self._rest = b""
        self._skipping = False

    @property
    def errors(self) -> int:
        """Damaged frames of all kinds."""
        return self.bad_crc + self.bad_code + self.too_long

    @property
    def waiting(self) -> int:
        """Bytes kept of a frame that is not complete."""
        return len(self._rest)

    def feed(self, data: bytes | bytearray | memoryview) -> list[Frame]:
        """Take bytes as they arrived; return the good frames that they complete."""
        frames: list[Frame] = []
        pieces = bytes(data).split(b"\0")
        last = pieces.pop()
        for piece in pieces:
            wire = self._rest + piece if self._rest else piece
            self._rest = b""
            if self._skipping:
                self._skipping = False
            elif len(wire) > MAX_WIRE:
                self.too_long += 1
            elif wire:  # two delimiters in a row enclose nothing
                frame = self._finish(wire)
                if frame is not None:
                    frames.append(frame)
        if not self._skipping and last:
            self._rest += last
            if len(self._rest) > MAX_WIRE:
                self.too_long += 1
                self._skipping = True
                self._rest = b""
        return frames

    def _finish(self, wire: bytes) -> Frame | None:
        data = cobs.decode(wire)
        if data is None or not HEADER_SIZE + CRC_SIZE <= len(data) <= MAX_FRAME:
            self.bad_code += 1
            return None
        body = data[:-CRC_SIZE]
        if zlib.crc32(body) != int.from_bytes(data[-CRC_SIZE:], "little"):
            self.bad_crc += 1
            return None
        self.ok += 1
        first, node, kind, seq, t_us = _HEADER.unpack_from(body)
        return Frame(first >> 4, first & 15, node, kind, seq, t_us, body[HEADER_SIZE:])
