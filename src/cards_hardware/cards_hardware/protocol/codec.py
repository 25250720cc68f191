"""Messages <-> payloads: SI values in Python, scaled integers on the wire.

Values are a dict by field name. Quantities are floats in SI units, NaN where the board has no
valid value; other numbers are ints. Repeated fields are arrays; ``mask`` fields have one element
per set bit, lowest bit first. Counts (``muscles``, ``joints``, ``length``) may be left out when
encoding. Texts are str.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from cards_core.typing import Array
from cards_hardware.errors import ProtocolError
from cards_hardware.protocol.frames import Frame, encode_frame
from cards_hardware.protocol.schema import MAJOR, MAX_MUSCLES, MAX_TEXT, Field, Group, Message
from cards_hardware.protocol.table import BY_ID, MESSAGES

Values: TypeAlias = dict[str, Any]
"""Values of a message by field name."""

_Counts: TypeAlias = tuple[int, ...]
"""Number of elements of each group of a message."""

_NUMPY = {"u8": "u1", "u16": "u2", "u32": "u4", "i16": "i2", "i32": "i4"}


class _MessageLayout:
    """What is known of a message without its counts."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.scalars = struct.Struct("<" + "".join(f.type.code for f in message.scalars))
        self.fields = [(f.name, *_scaling(f)) for f in message.scalars]
        self.names = frozenset(f.name for f in message.fields())
        self.columns = [_Columns(group) for group in message.groups]
        texts = [g.fields[0].name for g in message.groups if g.is_text]
        self.text = texts[0] if texts else None


class _Columns:
    """How the elements of a group are written."""

    def __init__(self, group: Group) -> None:
        # without padding, as on the wire
        self.dtype = np.dtype([(f.name, "<" + _NUMPY[f.wire]) for f in group.fields])
        self.fields = [(f, *_scaling(f), *_valid_range(f)) for f in group.fields]


class _GroupLayout:
    """How the groups of a message are read for given counts."""

    def __init__(self, message: Message, counts: _Counts) -> None:
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
            if _is_bytes(group):
                self._bytes.append((group.fields[0].name, self.end, count, group.is_text))
                code += f"{count}x"
            else:
                first = len(invalid)
                code += "".join(f.type.code for f in group.fields) * count
                for field in group.fields * count:
                    marker, up, down = _scaling(field)
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
def _message_layout(name: str) -> _MessageLayout:
    """Return what is known of a message."""
    return _MessageLayout(MESSAGES[name])


@functools.lru_cache(maxsize=1024)
def _group_layout(name: str, counts: _Counts) -> _GroupLayout:
    """Return how its groups are read for these counts."""
    return _GroupLayout(MESSAGES[name], counts)


def _is_bytes(group: Group) -> bool:
    """Tell whether a group is a run of bytes: a text, or a fixed number of u8."""
    return group.is_text or (isinstance(group.count, int) and group.fields[0].wire == "u8")


def _scaling(field: Field) -> tuple[int | None, float, float]:
    """Return invalid value, factor and divisor; value = wire * factor / divisor.

    Both are whole numbers, so that the float is the one nearest to the decimal fraction.
    """
    if field.quantity is None:
        return None, 1.0, 1.0
    scale = field.quantity.scale
    up, down = (scale, 1.0) if scale >= 1.0 else (1.0, float(round(1.0 / scale)))
    return field.type.invalid, up, down


def _counts_of(message: Message, values: Values) -> _Counts:
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


def _valid_range(field: Field) -> tuple[int, int]:
    """Return smallest and largest wire value of a quantity: all but the invalid one."""
    kind = field.type
    if kind.invalid == kind.minimum:
        return kind.minimum + 1, kind.maximum
    return kind.minimum, kind.maximum - 1


def pack(name: str, values: Mapping[str, Any]) -> bytes:
    """Return the payload of a message; see `encode`."""
    message = MESSAGES.get(name)
    if message is None:
        raise ProtocolError(name, f"no such message; there are {', '.join(MESSAGES)}")
    codec = _message_layout(name)
    given = dict(values)
    unknown = given.keys() - codec.names
    if unknown:
        known = ", ".join(sorted(codec.names)) or "none"
        raise ProtocolError(name, f"no such field; there are: {known}", min(unknown))
    if codec.text is not None:
        given[codec.text] = _text_bytes(message, codec.text, given.get(codec.text, ""))
    counts = _counts_given(message, given)
    missing = codec.names - given.keys()
    if missing:
        raise ProtocolError(name, "is missing", min(missing))
    scalars = [_raw(message, field, given[field.name]) for field in message.scalars]
    payload = codec.scalars.pack(*scalars)
    for group, count, columns in zip(message.groups, counts, codec.columns, strict=True):
        payload += _pack_group(message, group, count, columns, given)
    return payload


def _counts_given(message: Message, given: Values) -> _Counts:
    """Return the counts of all groups; put those that were left out into `given`."""
    for group in message.groups:
        key = group.count
        if isinstance(key, str) and key != "mask" and key not in given:
            first = group.fields[0].name
            if first not in given:
                raise ProtocolError(message.name, "is missing", first)
            given[key] = len(given[first])
    for group in message.groups:
        key = group.count
        if isinstance(key, str):
            if key not in given:
                raise ProtocolError(message.name, "is missing", key)
            given[key] = _integer(message, key, given[key])
            if given[key] < 0:
                raise ProtocolError(message.name, f"{given[key]} is negative", key)
    return _counts_of(message, given)


def _pack_group(
    message: Message, group: Group, count: int, columns: _Columns, given: Values
) -> bytes:
    if _is_bytes(group):
        name = group.fields[0].name
        data = given[name]
        if not isinstance(data, bytes | bytearray) or len(data) != count:
            raise ProtocolError(message.name, f"must be {count} bytes", name)
        return bytes(data)
    elements = np.empty(count, dtype=columns.dtype)
    for field, invalid, factor, divisor, low, high in columns.fields:
        try:
            array = np.asarray(given[field.name])
        except ValueError:
            raise ProtocolError(message.name, "is no list of numbers", field.name) from None
        if array.shape != (count,):
            raise ProtocolError(
                message.name, f"shape {array.shape}, ({count},) expected", field.name
            )
        if count and invalid is not None and array.dtype.kind in "fiu":
            raw = array.astype(np.float64) * divisor
            if factor != 1.0:
                raw /= factor
            np.rint(raw, out=raw)
            if raw.min() >= low and raw.max() <= high:  # not so with a NaN among them
                elements[field.name] = raw
                continue
        elements[field.name] = [
            _raw(message, field, value, i) for i, value in enumerate(array.tolist())
        ]
    return elements.tobytes()


def _raw(message: Message, field: Field, value: Any, index: int | None = None) -> int:
    """Return the wire value of one number."""
    place = field.name if index is None else f"{field.name}[{index}]"
    if field.quantity is None:
        number = _integer(message, place, value)
        if not field.type.minimum <= number <= field.type.maximum:
            raise ProtocolError(
                message.name,
                f"{number}, allowed {field.type.minimum} to {field.type.maximum}",
                place,
            )
        return number
    invalid, factor, divisor = _scaling(field)
    assert invalid is not None
    try:
        quantity = float(value)
    except (TypeError, ValueError):
        raise ProtocolError(message.name, f"{value!r} is not a number", place) from None
    if math.isnan(quantity):
        return invalid
    low, high = _valid_range(field)
    if math.isinf(quantity) or not low <= round(quantity * divisor / factor) <= high:
        raise ProtocolError(
            message.name,
            f"{quantity:g} {field.quantity.unit} does not fit, allowed "
            f"{low * factor / divisor:g} to {high * factor / divisor:g}",
            place,
        )
    return round(quantity * divisor / factor)


def _integer(message: Message, place: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or number != value:
        raise ProtocolError(message.name, f"{value!r} is not a whole number", place)
    return number


def _text_bytes(message: Message, field: str, text: Any) -> bytes:
    """Return a text in UTF-8, cut between characters where it is too long."""
    data = text.encode("utf-8") if isinstance(text, str) else text
    if not isinstance(data, bytes | bytearray):
        raise ProtocolError(message.name, f"{text!r} is not a text", field)
    return bytes(data[:MAX_TEXT]).decode("utf-8", "ignore").encode("utf-8")


def encode(
    name: str,
    values: Mapping[str, Any],
    *,
    node: int,
    seq: int,
    t_us: int,
    flags: int = 0,
) -> bytes:
    """Return a message as it goes over the line, with its delimiter.

    Args:
        name: Name of the message.
        values: Its values, SI units.
        node: From the host the destination, from a board itself.
        seq: Sequence number, 0..255.
        t_us: Clock of the sender modulo 2^32, [us].
        flags: Bits of `HeaderFlag`.

    Raises:
        ProtocolError: No such message or field, one is missing, or a value does not fit.
    """
    payload = pack(name, values)
    return wrap(name, payload, node=node, seq=seq, t_us=t_us, flags=flags)


def wrap(name: str, payload: bytes, *, node: int, seq: int, t_us: int, flags: int = 0) -> bytes:
    """Return a payload that `pack` made as it goes over the line; arguments as of `encode`."""
    return encode_frame(Frame(MAJOR, int(flags), node, MESSAGES[name].id, seq, t_us, payload))


def unpack(frame: Frame) -> Values:
    """Return the values of a frame, SI units. Bytes behind the message are ignored.

    Raises:
        ProtocolError: No such message, its payload is too short, or a count too large.
    """
    message = BY_ID.get(frame.type)
    if message is None:
        raise ProtocolError(frame.name, "no such message type")
    return unpack_payload(message.name, frame.payload)


def unpack_payload(name: str, payload: bytes) -> Values:
    """Return the values of a payload; see `unpack`."""
    codec = _message_layout(name)
    message = codec.message
    if len(payload) < message.min_payload:
        raise ProtocolError(
            name, f"payload of {len(payload)} bytes, at least {message.min_payload} needed"
        )
    values: Values = {}
    raws = codec.scalars.unpack_from(payload)
    for (field, invalid, factor, divisor), raw in zip(codec.fields, raws, strict=True):
        if invalid is None:
            values[field] = raw
        else:
            values[field] = math.nan if raw == invalid else raw * factor / divisor
    if message.groups:
        layout = _group_layout(name, _counts_of(message, values))
        if len(payload) < layout.end:
            raise ProtocolError(
                name, f"payload of {len(payload)} bytes, its counts need {layout.end}"
            )
        layout.read(payload, values)
    return values
