"""What a table of messages consists of, and the sizes that all messages share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cards_hardware.protocol.units import QUANTITIES, WIRE, Quantity, Wire, WireType

MAJOR = 1
"""Version of the protocol; frames of another one are refused."""

HEADER_SIZE = 8
"""ver_flags u8, node u8, type u8, seq u8, t_us u32, [bytes]."""

CRC_SIZE = 4
"""[bytes]"""

MAX_FRAME = 512
"""Header, payload and CRC of the longest frame, [bytes]."""

MAX_PAYLOAD = MAX_FRAME - HEADER_SIZE - CRC_SIZE
"""[bytes]"""

MAX_WIRE = MAX_FRAME + MAX_FRAME // 254 + 1
"""The longest frame after COBS, without the delimiter, [bytes]."""

MAX_MUSCLES = 16
"""Muscles of one board; robots with more have more boards."""

MAX_JOINTS = 16
"""Joint sensors of one board."""

MAX_TEXT = 32
"""Text of an EVENT or a LOG, UTF-8, [bytes]."""

HOST = 0
"""Node of the host."""

BROADCAST = 127
"""Destination: every board that hears it."""

NO_INDEX16 = 65535
"""ACK.detail: no muscle or field concerned."""

NO_INDEX8 = 255
"""EVENT.muscle: no muscle concerned."""

Direction = Literal["host", "device", "both", "board", "drive"]
Count = Literal["muscles", "joints", "mask", "length"]


@dataclass(frozen=True)
class Field:
    """A number in a message.

    Attributes:
        name: Key of the decoded values, member of the C struct.
        wire: Its type on the wire.
        quantity: Its physical quantity; plain integers have none, and no invalid value.
        text: What it is.
    """

    name: str
    wire: WireType
    quantity: Quantity | None
    text: str

    @property
    def type(self) -> Wire:
        """Properties of its wire type."""
        return WIRE[self.wire]


@dataclass(frozen=True)
class Group:
    """Fields that repeat together, interleaved per element.

    Attributes:
        count: How often: a number, or the field of the same message that says it. ``mask`` is one
            element per set bit, lowest bit first; ``length`` makes bytes of a text.
        fields: What an element consists of.
    """

    count: int | Count
    fields: tuple[Field, ...]

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return sum(field.type.size for field in self.fields)

    @property
    def maximum(self) -> int:
        """Largest number of elements."""
        if isinstance(self.count, int):
            return self.count
        return {"joints": MAX_JOINTS, "length": MAX_TEXT}.get(self.count, MAX_MUSCLES)

    @property
    def is_text(self) -> bool:
        """True if the group is a text."""
        return self.count == "length"


@dataclass(frozen=True)
class Message:
    """A type of message.

    Attributes:
        name: Its name, capitals.
        id: Its type byte.
        direction: Who sends it.
        scalars: Fields that are there once; they come first.
        groups: Fields that repeat.
        text: What it is for.
    """

    name: str
    id: int
    direction: Direction
    scalars: tuple[Field, ...]
    groups: tuple[Group, ...]
    text: str

    @property
    def min_payload(self) -> int:
        """Bytes of its payload with all variable counts 0."""
        fixed = sum(g.count * g.size for g in self.groups if isinstance(g.count, int))
        return sum(field.type.size for field in self.scalars) + fixed

    @property
    def max_payload(self) -> int:
        """Bytes of its payload with all counts at their maximum."""
        scalars = sum(field.type.size for field in self.scalars)
        return scalars + sum(group.maximum * group.size for group in self.groups)

    def fields(self) -> Iterator[Field]:
        """Yield every field, in order."""
        yield from self.scalars
        for group in self.groups:
            yield from group.fields


def field(line: str) -> Field:
    """Read ``name: type, text``; a type is a wire type or the name of a quantity."""
    name, _, rest = line.partition(":")
    kind, _, text = rest.partition(",")
    kind = kind.strip()
    quantity = QUANTITIES.get(kind)
    wire: WireType = quantity.wire if quantity else kind  # type: ignore[assignment]
    if wire not in WIRE:
        raise ValueError(f"'{line}': no wire type or quantity '{kind}'")
    return Field(name.strip(), wire, quantity, text.strip())


def message(name: str, number: int, direction: Direction, text: str, *lines: str) -> Message:
    """Build a message from the lines of a table.

    Args:
        name: Its name.
        number: Its type byte.
        direction: Who sends it.
        text: What it is for.
        lines: One field each, ``name: type, text``. ``[count] name: type, text`` is an element of
            a group; consecutive lines of the same count are interleaved.
    """
    scalars: list[Field] = []
    groups: list[Group] = []
    for line in lines:
        if not line.startswith("["):
            if groups:
                raise ValueError(f"{name}: '{line}' stands behind a group")
            scalars.append(field(line))
            continue
        word, _, rest = line[1:].partition("]")
        count: int | Count = int(word) if word.isdigit() else word  # type: ignore[assignment]
        if groups and groups[-1].count == count:
            groups[-1] = Group(count, (*groups[-1].fields, field(rest)))
        else:
            groups.append(Group(count, (field(rest),)))
    result = Message(name, number, direction, tuple(scalars), tuple(groups), text)
    names = [item.name for item in result.fields()]
    if len(set(names)) != len(names) or result.max_payload > MAX_PAYLOAD:
        raise ValueError(f"{name}: a name twice, or {result.max_payload} bytes > {MAX_PAYLOAD}")
    counts = {group.count for group in groups if not isinstance(group.count, int)}
    if not counts <= {item.name for item in scalars}:
        raise ValueError(f"{name}: no field for the counts {counts}")
    return result
