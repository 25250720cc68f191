"""ROS 2 messages as bytes, a whole series at once, without ROS.

A recording holds hundreds of thousands of messages that differ only in their stamp and their
numbers, so the layout is computed once and the numbers are filled in by NumPy (encoding them one
by one takes longer than the run). The encoding is little-endian plain CDR (XCDR1), what ROS 2
middlewares put on the wire; the definitions are those of common_interfaces.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cards_core.typing import Array

Messages = npt.NDArray[np.uint8]
"""Serialised messages of equal size, shape (n, size)."""

_SEPARATOR = "=" * 80
_TIME = "int32 sec\nuint32 nanosec\n"
_HEADER = "builtin_interfaces/Time stamp\nstring frame_id\n"


def _with_parts(text: str, **parts: str) -> str:
    """Append the definitions of the message types that ``text`` uses."""
    sections = [text]
    for name, body in parts.items():
        sections.append(f"MSG: {name.replace('__', '/')}\n{body}")
    return f"{_SEPARATOR}\n".join(sections)


DEFINITIONS = {
    "sensor_msgs/msg/JointState": _with_parts(
        "std_msgs/Header header\n"
        "string[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n",
        std_msgs__Header=_HEADER,
        builtin_interfaces__Time=_TIME,
    ),
    "std_msgs/msg/Float64MultiArray": _with_parts(
        "MultiArrayLayout layout\nfloat64[] data\n",
        std_msgs__MultiArrayLayout="MultiArrayDimension[] dim\nuint32 data_offset\n",
        std_msgs__MultiArrayDimension="string label\nuint32 size\nuint32 stride\n",
    ),
    "std_msgs/msg/String": "string data\n",
}
"""Message definitions in the form that recordings carry, by type name."""


class _Layout:
    """Bytes of one message with zeros where numbers go; remembers where they go."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.slots: list[tuple[int, int]] = []

    def align(self, size: int) -> None:
        self.data += bytes(-len(self.data) % size)

    def uint32(self, value: int) -> None:
        self.align(4)
        self.data += struct.pack("<I", value)

    def string(self, text: str) -> None:
        encoded = text.encode()
        self.uint32(len(encoded) + 1)
        self.data += encoded + b"\0"

    def doubles(self, count: int) -> None:
        """Add a sequence of float64; an empty sequence is its length only."""
        self.uint32(count)
        if count:
            self.align(8)
        self.slots.append((len(self.data), count))
        self.data += bytes(8 * count)

    def fill(self, rows: int, columns: Sequence[Array | None]) -> Messages:
        """Return ``rows`` messages with ``columns`` in the slots."""
        # offsets count from behind the 4-byte encapsulation header (CDR_LE, no options)
        template = np.frombuffer(b"\x00\x01\x00\x00" + bytes(self.data), dtype=np.uint8)
        out = np.tile(template, (rows, 1))
        for (offset, count), values in zip(self.slots, columns, strict=True):
            if values is not None and count:
                raw = np.ascontiguousarray(values, dtype="<f8").view(np.uint8)
                out[:, 4 + offset : 4 + offset + 8 * count] = raw.reshape(rows, 8 * count)
        return out


def joint_states(
    stamps: npt.NDArray[np.int64],
    names: Sequence[str],
    *,
    position: Array | None = None,
    velocity: Array | None = None,
    effort: Array | None = None,
    frame_id: str = "",
) -> Messages:
    """Serialise a series of ``sensor_msgs/msg/JointState``.

    Args:
        stamps: Header stamps, shape (n,), [ns], not negative.
        names: Names of the joints or muscles, length k.
        position: Shape (n, k); an absent field becomes an empty sequence.
        velocity: Likewise.
        effort: Likewise.
        frame_id: Frame of the header.
    """
    layout = _Layout()
    layout.data += bytes(8)  # header.stamp
    layout.string(frame_id)
    layout.uint32(len(names))
    for name in names:
        layout.string(name)
    columns = (position, velocity, effort)
    for values in columns:
        layout.doubles(0 if values is None else values.shape[1])
    out = layout.fill(len(stamps), columns)
    seconds, nanoseconds = np.divmod(stamps, 1_000_000_000)
    out[:, 4:8] = seconds.astype("<i4").view(np.uint8).reshape(-1, 4)
    out[:, 8:12] = nanoseconds.astype("<u4").view(np.uint8).reshape(-1, 4)
    return out


def float64_arrays(values: Array) -> Messages:
    """Serialise the rows of ``values`` as ``std_msgs/msg/Float64MultiArray`` without layout."""
    layout = _Layout()
    layout.uint32(0)  # layout.dim
    layout.uint32(0)  # layout.data_offset
    layout.doubles(values.shape[1])
    return layout.fill(len(values), (values,))


def string_message(text: str) -> Messages:
    """Serialise one ``std_msgs/msg/String``."""
    layout = _Layout()
    layout.string(text)
    return layout.fill(1, ())
