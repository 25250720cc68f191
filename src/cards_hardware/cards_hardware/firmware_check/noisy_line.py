"""A line with transmission errors, and which frames came through intact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

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
