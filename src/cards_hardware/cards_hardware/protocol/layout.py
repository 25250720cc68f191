"""How the messages lie on the wire: what the codec keeps of each, worked out once."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any, TypeAlias

import numpy as np

from cards_core.typing import Array
from cards_hardware.protocol.errors import ProtocolError
from cards_hardware.protocol.schema import MAX_MUSCLES, Field, Group, Message
from cards_hardware.protocol.table import MESSAGES

Values: TypeAlias = dict[str, Any]
"""Values of a message by field name."""

Counts: TypeAlias = tuple[int, ...]
"""Number of elements of each group of a message."""

_NUMPY = {"u8": "u1", "u16": "u2", "u32": "u4", "i16": "i2", "i32": "i4"}


class MessageLayout:
    """What is known of a message without its counts."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.scalars = struct.Struct("<" + "".join(f.type.code for f in message.scalars))
        self.fields = [(f.name, *scaling(f)) for f in message.scalars]
        self.names = frozenset(f.name for f in message.fields())
        self.columns = [Columns(group) for group in message.groups]
        texts = [g.fields[0].name for g in message.groups if g.is_text]
        self.text = texts[0] if texts else None


class Columns:
    """How the elements of a group are written."""

    def __init__(self, group: Group) -> None:
        # without padding, as on the wire
        self.dtype = np.dtype([(f.name, "<" + _NUMPY[f.wire]) for f in group.fields])
        self.fields = [(f, *scaling(f), *valid_range(f)) for f in group.fields]


class GroupLayout:
    """How the groups of a message are read for given counts."""

    def __init__(self, message: Message, counts: Counts) -> None:
        start = struct.calcsize("<" + "".join(f.type.code for f in message.scalars))
        self._start = start
        code = "<"
        invalid: list[float] = []
        factor: list[float] = []
        divisor: list[float] = []
        self._slices: list[tuple[int, int, tuple[int, int], list[tuple[str, bool]]]] = []
        self._bytes: list[tuple[str, int, int, bool]] = []
        self.end = start
        for group, count in zip(message.groups, counts, strict=True):
            if is_bytes(group):
                self._bytes.append((group.fields[0].name, self.end, count, group.is_text))
                code += f"{count}x"
            else:
                first = len(invalid)
                code += "".join(f.type.code for f in group.fields) * count
                for field in group.fields * count:
                    marker, up, down = scaling(field)
                    invalid.append(math.nan if marker is None else marker)
                    factor.append(up)
                    divisor.append(down)
                names = [(f.name, f.quantity is None) for f in group.fields]
                shape = (count, len(names))
                self._slices.append((first, len(invalid), shape, names))
            self.end += count * group.size
        self._struct = struct.Struct(code)
        self._invalid = np.array(invalid)
        self._factor = np.array(factor)
        self._divisor = np.array(divisor)
        self._scaled_up = bool(np.any(self._factor != 1.0))

    def read(self, payload: bytes, values: Values) -> None:
        """Add the values of the groups."""
        numbers: Array = np.array(self._struct.unpack_from(payload, self._start), dtype=float)
        bad = numbers == self._invalid
        if self._scaled_up:
            numbers *= self._factor
        numbers /= self._divisor
        if bad.any():
            numbers[bad] = math.nan
        for first, last, shape, fields in self._slices:
            block = numbers[first:last].reshape(shape)
            for column, (name, plain) in enumerate(fields):
                row = block[:, column]
                values[name] = row.astype(np.int64) if plain else row.copy()
        for name, start, count, is_text in self._bytes:
            data = payload[start : start + count]
            values[name] = data.decode("utf-8", "replace") if is_text else data


@functools.cache
def message_layout(name: str) -> MessageLayout:
    """Return what is known of a message."""
    return MessageLayout(MESSAGES[name])


@functools.lru_cache(maxsize=1024)
def group_layout(name: str, counts: Counts) -> GroupLayout:
    """Return how its groups are read for these counts."""
    return GroupLayout(MESSAGES[name], counts)


def is_bytes(group: Group) -> bool:
    """Tell whether a group is a run of bytes: a text, or a fixed number of u8."""
    return group.is_text or (isinstance(group.count, int) and group.fields[0].wire == "u8")


def scaling(field: Field) -> tuple[int | None, float, float]:
    """Return invalid value, factor and divisor; value = wire * factor / divisor.

    Both are whole numbers, so that the float is the one nearest to the decimal fraction.
    """
    if field.quantity is None:
        return None, 1.0, 1.0
    scale = field.quantity.scale
    up, down = (scale, 1.0) if scale >= 1.0 else (1.0, float(round(1.0 / scale)))
    return field.type.invalid, up, down


def counts_of(message: Message, values: Values) -> Counts:
    """Return the counts that the values of a message say.

    Raises:
        ProtocolError: One is too large.
    """
    counts = []
    for group in message.groups:
        if isinstance(group.count, int):
            count = group.count
        elif group.count == "mask":
            mask = values["mask"]
            if mask >> MAX_MUSCLES:
                raise ProtocolError(
                    message.name, f"0x{mask:X} has bits from {MAX_MUSCLES} on", "mask"
                )
            count = mask.bit_count()
        else:
            count = values[group.count]
            if count > group.maximum:
                raise ProtocolError(
                    message.name, f"{count}, at most {group.maximum} allowed", group.count
                )
        counts.append(count)
    return tuple(counts)


def valid_range(field: Field) -> tuple[int, int]:
    """Return least and largest wire value of a quantity: all but the invalid one."""
    kind = field.type
    if kind.invalid == kind.minimum:
        return kind.minimum + 1, kind.maximum
    return kind.minimum, kind.maximum - 1
