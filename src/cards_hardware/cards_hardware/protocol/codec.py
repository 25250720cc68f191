"""Messages <-> payloads: SI values in Python, scaled integers on the wire.

Values are a dict by field name. Quantities are floats in SI units, NaN where the board has no
valid value; other numbers are ints. Repeated fields are arrays; ``mask`` fields have one element
per set bit, lowest bit first. Counts (``muscles``, ``joints``, ``length``) may be left out when
encoding. Texts are str.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from cards_hardware.protocol.errors import ProtocolError
from cards_hardware.protocol.frames import Frame, encode_frame
from cards_hardware.protocol.layout import Values, counts_of, group_layout, message_layout
from cards_hardware.protocol.packing import pack
from cards_hardware.protocol.schema import MAJOR
from cards_hardware.protocol.table import BY_ID, MESSAGES

__all__ = ["Values", "encode", "pack", "unpack", "unpack_payload", "wrap"]


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
    codec = message_layout(name)
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
        layout = group_layout(name, counts_of(message, values))
        if len(payload) < layout.end:
            raise ProtocolError(
                name, f"payload of {len(payload)} bytes, its counts need {layout.end}"
            )
        layout.read(payload, values)
    return values
