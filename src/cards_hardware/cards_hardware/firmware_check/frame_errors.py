"""Frames over a noisy line: how the decoders in Python and C handle damaged bytes.

``python -m cards_hardware.firmware_check.frame_errors --frames 1000000 --json`` sends commands
with random contents. Bytes are changed, lost and inserted, each at the given rate; now and then a
run of bytes is lost or random garbage comes between frames. Every frame that a decoder finds is
compared with what was sent:

* false: its header or payload is nothing that was sent, or it came twice or out of order;
* applied: it passed what stands before a command takes effect (major, node, type, length,
  sequence and time advanced); corrupted if it is false and passed;
* lost: it came through whole, and a delimiter stood before it, but it was not found. A whole frame
  that sticks to damaged bytes, without a delimiter between, cannot be found; it is counted apart
  (glued). Its own delimiter ends that, so damage costs one good frame at most.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from cards_hardware.errors import HardwareError, ProtocolError
from cards_hardware.firmware_check.native_firmware import NativeCodec
from cards_hardware.protocol.codec import unpack
from cards_hardware.protocol.frames import Frame, FrameDecoder, encode_frame
from cards_hardware.protocol.schema import MAJOR
from cards_hardware.protocol.table import MESSAGES

Bytes: TypeAlias = npt.NDArray[np.uint8]
Numbers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Line:
    """Error rates of a line.

    Attributes:
        changed: Probability that a byte is changed; half of these are a single bit.
        lost: Probability that a byte is lost.
        inserted: Probability that a random byte comes before a byte.
        dropped: Probability, per frame, that 1 to 300 bytes in a row are lost from there.
        garbage: Probability, per frame, of 1 to 2000 random bytes before it.
    """

    changed: float = 1e-4
    lost: float = 1e-4
    inserted: float = 1e-4
    dropped: float = 1e-3
    garbage: float = 1e-3


def damage(
    rng: np.random.Generator, wires: list[bytes], line: Line
) -> tuple[Bytes, Numbers, Flags]:
    """Send frames over a line.

    Args:
        rng: Where the damage comes from.
        wires: The frames as they are sent.
        line: How bad the line is.

    Returns:
        The bytes that arrive; per byte the frame that it came with, or before, and whether it is
        not one that was sent.
    """
    data = np.frombuffer(b"".join(wires), dtype=np.uint8).copy()
    starts = np.concatenate([[0], np.cumsum([len(wire) for wire in wires])[:-1]])
    slot = np.repeat(np.arange(len(wires)), [len(wire) for wire in wires])
    size = len(data)
    changed = np.flatnonzero(rng.random(size) < line.changed)
    flip = (1 << rng.integers(0, 8, len(changed))).astype(np.uint8)
    other = rng.integers(1, 256, len(changed), dtype=np.uint8)
    data[changed] ^= np.where(rng.random(len(changed)) < 0.5, flip, other)
    touched = np.zeros(size, dtype=bool)
    touched[changed] = True
    keep = rng.random(size) >= line.lost
    for start in starts[rng.random(len(starts)) < line.dropped]:
        begin = int(start) + int(rng.integers(0, 60))
        keep[begin : begin + int(rng.integers(1, 301))] = False
    places = np.flatnonzero(rng.random(size) < line.inserted)
    for start in starts[rng.random(len(starts)) < line.garbage]:
        places = np.append(places, np.full(int(rng.integers(1, 2001)), start))
    extra = rng.integers(0, 256, len(places), dtype=np.uint8)
    extra[rng.random(len(extra)) < 0.02] = 0
    # what is inserted belongs before what is lost: both by place, then as one selection
    arrived = np.insert(data, places, extra)
    slot = np.insert(slot, places, slot[places])
    touched = np.insert(touched, places, True)
    kept = np.insert(keep, places, True)
    return arrived[kept], slot[kept], touched[kept]


def intact(
    data: Bytes, slot: Numbers, touched: Flags, sizes: list[int], before: int
) -> tuple[Flags, Flags]:
    """Return per frame whether it arrived whole, and whether a delimiter stood before it too.

    Args:
        data: Bytes that arrived.
        slot: Per byte the frame that it came with.
        touched: Per byte whether it is not one that was sent.
        sizes: Length of every frame sent.
        before: The byte that arrived before all these.
    """
    count = len(sizes)
    owner = np.where(touched, -1, slot)
    own = np.flatnonzero(owner >= 0)
    number = np.bincount(owner[own], minlength=count)
    first = np.full(count, -1)
    last = np.full(count, -1)
    first[owner[own][::-1]] = own[::-1]
    last[owner[own]] = own
    whole = (number == np.array(sizes)) & (last - first + 1 == number)
    previous = np.where(first > 0, data[first - 1], before)
    return whole, whole & (previous == 0)


NODE = 1
MUSCLES = 11
TENSION_MAX = 1500
"""Largest tension in a command, [0.1 N]."""

PERIOD_US = 1000
"""Between two commands, [us]."""

_CHUNK = 2000  # frames damaged at once


@dataclass
class Counts:
    """What a decoder found; see the module."""

    found: int = 0
    false: int = 0
    applied: int = 0
    corrupted_applied: int = 0
    lost: int = 0
    errors: int = 0
    seconds: float = 0.0
    slowest_chunk_s: float = 0.0


@dataclass
class Report:
    """Result of a run."""

    frames: int
    line: Line
    sent_bytes: int = 0
    received_bytes: int = 0
    damaged: int = 0
    glued: int = 0
    decoders: dict[str, Counts] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether no decoder did what it must not do."""
        return all(c.corrupted_applied == c.lost == 0 for c in self.decoders.values())


class _Decoder(Protocol):
    @property
    def errors(self) -> int: ...

    def feed(self, data: bytes) -> list[Frame]: ...


def run(frames: int, line: Line, seed: int = 1, folder: Path | None = None) -> Report:
    """Send frames over a bad line.

    Args:
        frames: How many.
        line: How bad it is.
        seed: Seed of the random numbers.
        folder: Where the C decoder is built; None goes without it.

    Raises:
        HardwareError: The C decoder cannot be built.
    """
    rng = np.random.default_rng(seed)
    decoders: dict[str, _Decoder] = {"python": FrameDecoder()}
    if folder is not None:
        decoders["c"] = NativeCodec(folder).decoder()
    report = Report(frames, line)
    checkers = {
        name: _FrameChecker(report.decoders.setdefault(name, Counts())) for name in decoders
    }
    before = 0  # the last byte that arrived; the line begins with a delimiter
    for first in range(0, frames, _CHUNK):
        sent = commands(rng, first, min(_CHUNK, frames - first))
        wires = [encode_frame(frame) for frame in sent]
        data, slot, touched = damage(rng, wires, line)
        whole, clean = intact(data, slot, touched, [len(w) for w in wires], before)
        before = int(data[-1]) if len(data) else before
        report.sent_bytes += sum(map(len, wires))
        report.received_bytes += len(data)
        report.damaged += int((~whole).sum())
        report.glued += int((whole & ~clean).sum())
        pieces = list(_pieces(rng, data.tobytes()))
        for name, decoder in decoders.items():
            checkers[name].take(decoder, pieces, sent, clean)
    for name, decoder in decoders.items():
        report.decoders[name].errors = decoder.errors
    return report


def commands(
    rng: np.random.Generator, first: int, count: int, start_us: int = 0, node: int = NODE
) -> list[Frame]:
    """Return tension commands of random contents.

    Args:
        rng: Where they come from.
        first: Number of the first one; sequence number and time stamp follow from it.
        count: How many.
        start_us: Time stamp of number 0, [us].
        node: Whom they are for.
    """
    body = np.empty((count, MUSCLES, 2), dtype="<u2")
    body[:, :, 0] = rng.integers(0, TENSION_MAX + 1, (count, MUSCLES))
    body[:, :, 1] = rng.integers(0, 2001, (count, MUSCLES))
    body[rng.random(body.shape) < 0.1] = 0  # zeros are what COBS is about
    mask = ((1 << MUSCLES) - 1).to_bytes(4, "little")
    kind = MESSAGES["CMD_TENSION"].id
    frames = []
    for number, row in enumerate(body, first):
        t_us = (start_us + number * PERIOD_US) & 0xFFFFFFFF
        frames.append(Frame(MAJOR, 0, node, kind, number & 0xFF, t_us, mask + row.tobytes()))
    return frames


def _pieces(rng: np.random.Generator, data: bytes) -> Iterator[bytes]:
    """Yield the bytes as a port would: a few hundred at a time."""
    at = 0
    while at < len(data):
        size = int(rng.integers(1, 4096))
        yield data[at : at + size]
        at += size


class _FrameChecker:
    """Compares what a decoder finds with what was sent."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._gate: tuple[int, int] | None = None

    def take(
        self,
        decoder: _Decoder,
        pieces: list[bytes],
        sent: list[Frame],
        clean: Flags,
    ) -> None:
        """Feed a decoder, count what it finds."""
        counts = self._counts
        started = time.perf_counter()
        frames = [frame for piece in pieces for frame in decoder.feed(piece)]
        seconds = time.perf_counter() - started
        counts.seconds += seconds
        counts.slowest_chunk_s = max(counts.slowest_chunk_s, seconds)
        expected = {frame.t_us: i for i, frame in enumerate(sent)}
        found = np.zeros(len(sent), dtype=bool)
        newest = -1
        for frame in frames:
            counts.found += 1
            index = expected.get(frame.t_us, -1)
            good = index > newest and frame == sent[index]
            if good:
                newest = index
                found[index] = True
            counts.false += not good
            if self._passes(frame):
                counts.applied += 1
                counts.corrupted_applied += not good
        counts.lost += int((clean & ~found).sum())

    def _passes(self, frame: Frame) -> bool:
        """Do what a board does before a command takes effect, its range checks apart."""
        if frame.major != MAJOR or frame.node != NODE or frame.name != "CMD_TENSION":
            return False
        try:
            unpack(frame)
        except ProtocolError:
            return False
        if self._gate is not None:
            seq, t_us = self._gate
            if (
                not 0 < (frame.seq - seq) % 256 < 128
                or not 0 < (frame.t_us - t_us) % 2**32 < 2**31
            ):
                return False
        self._gate = (frame.seq, frame.t_us)
        return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; return 0 if the decoders passed."""
    parser = argparse.ArgumentParser(prog="python -m cards_hardware.firmware_check.frame_errors")
    parser.add_argument("--frames", type=int, default=100_000, help="how many (100000)")
    parser.add_argument(
        "--rate", type=float, default=1e-4, help="of changed, lost, inserted bytes"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers (1)")
    parser.add_argument("--no-c", action="store_true", help="the Python decoder alone")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    line = Line(changed=options.rate, lost=options.rate, inserted=options.rate)
    try:
        with tempfile.TemporaryDirectory() as folder:
            native = None if options.no_c else Path(folder)
            report = run(options.frames, line, options.seed, native)
    except HardwareError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps({**asdict(report), "passed": report.passed}, indent=2))
    else:
        print(
            f"{report.frames} frames, {report.damaged} damaged, {report.glued} whole but without "
            f"a delimiter before them"
        )
        for name, counts in report.decoders.items():
            items = ", ".join(f"{key} {value:g}" for key, value in asdict(counts).items())
            print(f"{name:6s}: {items}")
        print("passed" if report.passed else "FAILED")
    return 0 if report.passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
