"""Values -> payloads: SI values in, scaled integers out, everything checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from cards_hardware.protocol.errors import ProtocolError
from cards_hardware.protocol.layout import (
    Columns,
    Counts,
    Values,
    counts_of,
    is_bytes,
    message_layout,
    scaling,
    valid_range,
)
from cards_hardware.protocol.schema import MAX_TEXT, Field, Group, Message
from cards_hardware.protocol.table import MESSAGES


def pack(name: str, values: Mapping[str, Any]) -> bytes:
    """Return the payload of a message; see `encode`."""
    message = MESSAGES.get(name)
    if message is None:
        raise ProtocolError(name, f"no such message; there are {', '.join(MESSAGES)}")
    codec = message_layout(name)
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


def _counts_given(message: Message, given: Values) -> Counts:
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
    return counts_of(message, given)


def _pack_group(
    message: Message, group: Group, count: int, columns: Columns, given: Values
) -> bytes:
    if is_bytes(group):
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
    invalid, factor, divisor = scaling(field)
    assert invalid is not None
    try:
        quantity = float(value)
    except (TypeError, ValueError):
        raise ProtocolError(message.name, f"{value!r} is not a number", place) from None
    if math.isnan(quantity):
        return invalid
    low, high = valid_range(field)
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
