"""What a table of messages consists of: wire types, quantities, fields, and shared sizes.

A quantity is an integer times a scale. The value that is farthest from zero means "invalid":
the least one of a signed type, the largest one of an unsigned type. In Python that is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

WireType = Literal["u8", "u16", "u32", "i16", "i32"]

INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Wire:
    """An integer type on the wire, little endian.

    Attributes:
        size: [bytes]
        code: Letter of Python's `struct`.
        minimum: Minimum value that it holds.
        maximum: Largest value that it holds.
        invalid: Value that means "no valid value" where the field is a quantity.
        c_type: Type in C.
    """

    size: int
    code: str
    minimum: int
    maximum: int
    invalid: int
    c_type: str


WIRE: dict[str, Wire] = {
    "u8": Wire(1, "B", 0, 2**8 - 1, 2**8 - 1, "uint8_t"),
    "u16": Wire(2, "H", 0, 2**16 - 1, 2**16 - 1, "uint16_t"),
    "u32": Wire(4, "I", 0, 2**32 - 1, 2**32 - 1, "uint32_t"),
    "i16": Wire(2, "h", -(2**15), 2**15 - 1, -(2**15), "int16_t"),
    "i32": Wire(4, "i", -(2**31), 2**31 - 1, -(2**31), "int32_t"),
}
"""All wire types by name."""


@dataclass(frozen=True)
class Quantity:
    """A physical quantity on the wire.

    Attributes:
        wire: Its wire type.
        scale: SI value of one count, [unit].
        unit: SI unit.
    """

    wire: WireType
    scale: float
    unit: str


QUANTITIES: dict[str, Quantity] = {
    "length": Quantity("i32", 1e-6, "m"),
    "rate": Quantity("i16", 1e-4, "m/s"),
    "tension": Quantity("i16", 0.1, "N"),
    "slew": Quantity("u16", 1.0, "N/s"),
    "current": Quantity("i16", 1e-3, "A"),
    "angle": Quantity("i32", 1e-6, "rad"),
    "joint_rate": Quantity("i16", 1e-3, "rad/s"),
    "temperature": Quantity("i16", 0.01, "C"),
    "pressure": Quantity("u32", 1.0, "Pa"),
    "voltage": Quantity("u16", 1e-3, "V"),
    "count32": Quantity("i32", 1.0, "count"),
    "count16": Quantity("i16", 1.0, "count"),
}
"""All quantities by name; C has ``MLP_SCALE_<NAME>`` for each."""


MAJOR = 2
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

    Raises:
        ValueError: A name is there twice, a field stands behind a group, or the message may be too
            long for a frame.
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
