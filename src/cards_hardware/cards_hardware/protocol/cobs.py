"""Consistent overhead byte stuffing: bytes without zeros, so that a zero can end a frame.

Encoded data are blocks: a code byte c in 1..255, then c - 1 bytes that are not 0. A block with
c < 255 stands for its bytes and a zero, the last one for its bytes alone; c = 255 for its 254
bytes. The code grows by one byte per started 254.
"""

from __future__ import annotations

_FULL = 255


def encode(data: bytes) -> bytes:
    """Return the code of some bytes, without a delimiter."""
    parts: list[bytes] = []
    for piece in data.split(b"\0"):
        rest = piece
        while len(rest) >= _FULL - 1:
            # a full block stands for no zero: an empty block follows if the piece ends here
            parts.append(b"\xff" + rest[: _FULL - 1])
            rest = rest[_FULL - 1 :]
        parts.append(bytes((len(rest) + 1,)) + rest)
    if len(parts) > 1 and parts[-1] == b"\x01" and parts[-2][0] == _FULL and data[-1] != 0:
        parts.pop()  # the shortest code has no empty block after a full one at the end
    return b"".join(parts)


def decode(code: bytes) -> bytes | None:
    """Return what a code without delimiter stands for, None if it is no code."""
    size = len(code)
    if size == 0:
        return b""
    data = bytearray(code)
    full: list[int] = []  # where full blocks begin: no zero stands there
    at = 0
    after_full = True
    while at < size:
        step = code[at]
        if step == 0:
            return None
        if after_full:
            full.append(at)
        else:
            data[at] = 0
        after_full = step == _FULL
        at += step
    if at != size:
        return None
    for place in reversed(full):
        del data[place]
    return bytes(data)
