"""Payloads: SI values there and back, every wire value, and what is refused."""

import math
import struct
import zlib

import numpy as np
import protocol_cases
import pytest
from hypothesis import given, settings

from cards_hardware.errors import ProtocolError
from cards_hardware.protocol.codec import encode, pack, unpack, unpack_payload
from cards_hardware.protocol.enums import State
from cards_hardware.protocol.frames import Frame, FrameDecoder
from cards_hardware.protocol.table import MESSAGES

FAST = {
    "state": State.ACTIVE,
    "flags": 3,
    "cmd_t_us": 5,
    "cmd_age_us": 1500,
    "loop_us": 200,
    "length": [0.25, -0.000001],
    "rate": [0.1, -3.2],
    "tension": [123.4, math.nan],
    "current": [1.5, 0.0],
    "position": [1.570796],
    "velocity": [-2.001],
}


def test_a_state_byte_by_byte():
    """As the table in the documentation says, written by hand."""
    payload = pack("STATE_FAST", FAST)
    assert payload == struct.pack(
        "<BBBHIIH ihhh ihhh ih",
        *(3, 2, 1, 3, 5, 1500, 200),
        *(250000, 1000, 1234, 1500),
        *(-1, -32000, -32768, 0),
        *(1570796, -2001),
    )
    values = unpack_payload("STATE_FAST", payload)
    assert values["state"] == State.ACTIVE
    assert (values["muscles"], values["joints"]) == (2, 1)
    assert values["length"].tolist() == [0.25, -0.000001]
    assert values["tension"][0] == 123.4
    assert math.isnan(values["tension"][1])
    assert values["velocity"].tolist() == [-2.001]


def test_a_frame_byte_by_byte():
    """HELLO, stuffed by eye; its CRC is checked in the tests of frames."""
    wire = encode(
        "HELLO", {"min_major": 2, "max_major": 2, "nonce": 0x01020304}, node=1, seq=2, t_us=0x0500
    )
    # 20 01 01 02 | 00 05 00 00 | 02 02 04 03 02 01 crc
    expected = bytes.fromhex("05 20 01 01 02 02 05 01 0b 02 02 04 03 02 01")
    crc = zlib.crc32(bytes.fromhex("20 01 01 02 00 05 00 00 02 02 04 03 02 01"))
    assert wire == expected + crc.to_bytes(4, "little") + b"\0"


def test_mask_fields_are_one_per_set_bit():
    payload = pack("CMD_TENSION", {"mask": 0b1010, "tension": [1.0, 2.0], "slew": [3.0, 4.0]})
    assert payload == struct.pack("<I hH hH", 0b1010, 10, 3, 20, 4)
    assert unpack_payload("CMD_TENSION", payload)["tension"].tolist() == [1.0, 2.0]


def test_texts_and_serial_numbers():
    event = {"code": 1, "severity": 1, "muscle": 255, "value": -7, "text": "Größe " + "x" * 40}
    values = unpack_payload("EVENT", pack("EVENT", event))
    assert values["text"] == "Größe " + "x" * 24
    assert values["length"] == 32
    cut = pack("LOG", {"level": 1, "text": "x" * 31 + "µ"})
    assert unpack_payload("LOG", cut)["text"] == "x" * 31
    names = {field.name for field in MESSAGES["IDENT"].fields()}
    ident = dict.fromkeys(names, 0) | {"uid": b"12345678"}
    assert unpack_payload("IDENT", pack("IDENT", ident))["uid"] == b"12345678"
    damaged = pack("LOG", {"level": 1, "text": "ab"})[:-1] + b"\xff"
    assert unpack_payload("LOG", damaged)["text"] == "a\ufffd"


@settings(deadline=None, max_examples=600)
@given(protocol_cases.messages())
def test_every_wire_value_comes_back(case):
    message, scalars, groups, payload = case
    values = unpack_payload(message.name, payload)
    assert set(values) == {field.name for field in message.fields()}
    for field in message.scalars:
        _check(field, scalars[field.name], values[field.name])
    for group, rows in zip(message.groups, groups, strict=True):
        for column, field in enumerate(group.fields):
            if isinstance(values[field.name], np.ndarray):
                assert len(values[field.name]) == len(rows)
                for row, value in zip(rows, values[field.name].tolist(), strict=True):
                    _check(field, row[column], value)
    assert pack(message.name, values) == payload


def _check(field, raw, value):
    if field.quantity is None:
        assert value == raw
        assert isinstance(value, int)
    elif raw == field.type.invalid:
        assert math.isnan(value)
    else:
        assert value == pytest.approx(raw * field.quantity.scale, rel=1e-12, abs=0)


@settings(deadline=None, max_examples=300)
@given(protocol_cases.messages())
def test_payloads_may_grow_but_not_shrink(case):
    message, _, _, payload = case
    longer = unpack_payload(message.name, payload + b"\xff\x00\x01")
    assert pack(message.name, longer) == payload
    for size in range(len(payload)):
        with pytest.raises(ProtocolError, match=f"payload of {size} bytes"):
            unpack_payload(message.name, payload[:size])


def test_si_values_are_rounded_to_the_nearest_count():
    rng = np.random.default_rng(5)
    lengths = rng.uniform(-2, 2, 16)
    columns = dict.fromkeys(
        (field.name for field in MESSAGES["STATE_FAST"].groups[0].fields), np.zeros(16)
    )
    joints = {"position": [], "velocity": []}
    payload = pack("STATE_FAST", {**FAST, **columns, **joints, "length": lengths})
    back = unpack_payload("STATE_FAST", payload)["length"]
    assert np.abs(back - lengths).max() <= 0.5e-6 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tension": [1.0, 4000.0]}, r"STATE_FAST.tension\[1\]: 4000 N .* -3276.7 to 3276.7"),
        ({"tension": [1.0, -3276.75]}, r"tension\[1\]"),
        ({"rate": [math.inf, 0.0]}, r"rate\[0\]: inf m/s"),
        ({"length": [1.0], "muscles": 2}, r"length: shape \(1,\), \(2,\) expected"),
        ({"length": 1.0, "muscles": 2}, r"length: shape \(\)"),
        ({"length": [[1.0], [1.0, 2.0]]}, "length: is no list of numbers"),
        ({"length": [1.0, "a"]}, r"length\[1\]: 'a' is not a number"),
        ({"length": [1.0, None]}, r"length\[1\]: None is not a number"),
        ({"state": 256}, "state: 256, allowed 0 to 255"),
        ({"state": 1.5}, "state: 1.5 is not a whole number"),
        ({"state": None}, "state: None is not a whole number"),
        ({"muscles": 17, "length": [0.0] * 17}, "muscles: 17, at most 16"),
        ({"muscles": -1}, "muscles: -1 is negative"),
        ({"voltage": 1.0}, "voltage: no such field; there are: cmd_age_us"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_their_place(change, words):
    with pytest.raises(ProtocolError, match=words):
        pack("STATE_FAST", {**FAST, **change})


def test_what_is_missing_or_unknown_is_named():
    short = {key: value for key, value in FAST.items() if key != "rate"}
    with pytest.raises(ProtocolError, match=r"STATE_FAST\.rate: is missing"):
        pack("STATE_FAST", short)
    with pytest.raises(ProtocolError, match=r"STATE_FAST\.length: is missing"):
        pack("STATE_FAST", {"state": 1})
    with pytest.raises(ProtocolError, match=r"CMD_TENSION\.mask: is missing"):
        pack("CMD_TENSION", {"tension": [], "slew": []})
    with pytest.raises(ProtocolError, match="HALLO: no such message; there are HELLO"):
        pack("HALLO", {})
    with pytest.raises(ProtocolError, match="mask: 0x10000 has bits from 16 on"):
        pack("CMD_TENSION", {"mask": 1 << 16, "tension": [1.0], "slew": [1.0]})
    names = {field.name for field in MESSAGES["IDENT"].fields()}
    with pytest.raises(ProtocolError, match="uid: must be 8 bytes"):
        pack("IDENT", dict.fromkeys(names, 0) | {"uid": b"1"})
    with pytest.raises(ProtocolError, match="limits_loaded: 'yes' is not a whole number"):
        pack("IDENT", dict.fromkeys(names, 0) | {"uid": bytes(8), "limits_loaded": "yes"})


def test_counts_of_a_frame_are_checked():
    payload = pack("STATE_FAST", FAST)
    with pytest.raises(ProtocolError, match="muscles: 17, at most 16"):
        unpack_payload("STATE_FAST", payload[:1] + b"\x11" + payload[2:])
    with pytest.raises(ProtocolError, match="its counts need"):
        unpack_payload("STATE_FAST", payload[:1] + b"\x10" + payload[2:])
    with pytest.raises(ProtocolError, match="mask: 0x80000000"):
        unpack_payload("CMD_CURRENT", bytes.fromhex("00000080"))
    with pytest.raises(ProtocolError, match="0x7E: no such message type"):
        unpack(Frame(1, 0, 1, 0x7E, 0, 0, b""))


def test_arrays_are_the_callers_own():
    """Two frames of the same layout share nothing."""
    payload = pack("STATE_FAST", FAST)
    one, two = (unpack_payload("STATE_FAST", payload) for _ in range(2))
    one["length"][:] = 7.0
    assert two["length"][0] == 0.25
    assert one["length"].flags.c_contiguous


@pytest.mark.parametrize("seq", [0, 255])
@pytest.mark.parametrize("t_us", [0, 2**32 - 1])
def test_sequence_and_time_at_their_ends(seq, t_us):
    (frame,) = FrameDecoder().feed(encode("LIMITS_GET", {}, node=127, seq=seq, t_us=t_us, flags=5))
    assert (frame.name, frame.node, frame.seq, frame.t_us, frame.flags) == (
        *("LIMITS_GET", 127, seq, t_us, 5),
    )


@pytest.mark.parametrize("change", [{"seq": 256}, {"t_us": 2**32}, {"node": -1}, {"flags": 16}])
def test_headers_that_do_not_fit_are_refused(change):
    header = {"node": 1, "seq": 0, "t_us": 0, "flags": 0} | change
    with pytest.raises(ProtocolError, match=next(iter(change))):
        encode("LIMITS_GET", {}, **header)
