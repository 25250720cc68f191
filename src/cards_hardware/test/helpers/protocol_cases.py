"""Random messages for the tests of the protocol."""

import struct

from hypothesis import strategies as st

from cards_hardware.protocol.frames import Frame
from cards_hardware.protocol.schema import MAJOR, MAX_PAYLOAD
from cards_hardware.protocol.table import MESSAGES


def integers(field):
    """Wire values of a field; the ends of the range are as likely as all that is between."""
    kind = field.type
    ends = st.sampled_from([kind.minimum, kind.minimum + 1, 0, kind.maximum - 1, kind.maximum])
    return ends | st.integers(kind.minimum, kind.maximum)


@st.composite
def wire_values(draw, message):
    """Draw a message as numbers: (scalars by name, [rows of group 0], [rows of group 1] ...)."""
    scalars = {field.name: draw(integers(field)) for field in message.scalars}
    groups = []
    for group in message.groups:
        if group.is_text:
            text = draw(st.text(max_size=8)).encode()
            rows = [(byte,) for byte in text]
            scalars["length"] = len(rows)
        else:
            if isinstance(group.count, int):
                count = group.count
            elif group.count == "mask":
                scalars["mask"] = draw(st.integers(0, 2**16 - 1))
                count = bin(scalars["mask"]).count("1")
            else:
                count = scalars[group.count] = draw(st.integers(0, group.maximum))
            row = st.tuples(*(integers(field) for field in group.fields))
            rows = draw(st.lists(row, min_size=count, max_size=count))
        groups.append(rows)
    return scalars, groups


def pack_numbers(message, scalars, groups):
    """Write wire values as the table says, without the codec."""
    data = b"".join(
        struct.pack("<" + field.type.code, scalars[field.name]) for field in message.scalars
    )
    for group, rows in zip(message.groups, groups, strict=True):
        code = "<" + "".join(field.type.code for field in group.fields)
        data += b"".join(struct.pack(code, *row) for row in rows)
    return data


@st.composite
def messages(draw):
    """Draw (message, scalars, groups, payload)."""
    message = draw(st.sampled_from(list(MESSAGES.values())))
    scalars, groups = draw(wire_values(message))
    return message, scalars, groups, pack_numbers(message, scalars, groups)


def frames():
    """Frames of any content of our major version."""
    byte = st.integers(0, 255)
    payload = st.binary(max_size=MAX_PAYLOAD) | st.builds(
        lambda piece, times: (piece * times)[:MAX_PAYLOAD],
        st.binary(min_size=1, max_size=4),
        st.integers(1, MAX_PAYLOAD),
    )
    return st.builds(
        Frame,
        st.just(MAJOR),
        st.integers(0, 15),
        byte,
        byte,
        byte,
        st.integers(0, 2**32 - 1),
        payload,
    )
