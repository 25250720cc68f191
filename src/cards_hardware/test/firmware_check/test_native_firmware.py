"""The firmware's codec does what Python's does, byte by byte; golden vectors for both."""

import binascii
import ctypes
import json
import math
import struct

import protocol_cases
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_code import folder_for

from cards_hardware.errors import ProtocolError
from cards_hardware.firmware_check.native_firmware import NativeCodec
from cards_hardware.protocol import cobs
from cards_hardware.protocol.codec import pack, unpack_payload
from cards_hardware.protocol.frames import Frame, FrameDecoder, encode_frame
from cards_hardware.protocol.generate import checkout, golden
from cards_hardware.protocol.schema import MAJOR, MAX_PAYLOAD, MAX_WIRE
from cards_hardware.protocol.table import MESSAGES

VECTORS = checkout() / "firmware" / "test" / "golden_vectors.txt"


class WholeCodec(NativeCodec):
    """With the functions that only these tests call."""

    def __init__(self, folder):
        super().__init__(folder)
        self._library.native_crc32.restype = ctypes.c_uint32
        for name in ("cobs_encode", "cobs_decode", "encode"):
            getattr(self._library, f"native_{name}").restype = ctypes.c_size_t

    def crc32(self, data):
        """Return the CRC of some bytes."""
        return int(self._library.native_crc32(data, ctypes.c_size_t(len(data))))

    def cobs_encode(self, data, room=None):
        """Return the code, None if it does not fit into `room` bytes."""
        size = len(data) + len(data) // 254 + 1 if room is None else room
        out = ctypes.create_string_buffer(max(size, 1))
        used = self._library.native_cobs_encode(
            data, ctypes.c_size_t(len(data)), out, ctypes.c_size_t(size)
        )
        return out.raw[:used] if used else None

    def cobs_decode(self, code):
        """Return what a code stands for, None for an unknown code."""
        buffer = ctypes.create_string_buffer(code, max(len(code), 1))
        used = self._library.native_cobs_decode(buffer, ctypes.c_size_t(len(code)))
        return None if used == ctypes.c_size_t(-1).value else buffer.raw[:used]

    def repack(self, kind, payload):
        """Read a payload into its struct and write it again; None if it is refused."""
        out = ctypes.create_string_buffer(MAX_PAYLOAD)
        used = ctypes.c_size_t()
        status = self._library.native_repack(
            ctypes.c_uint8(kind),
            payload,
            ctypes.c_size_t(len(payload)),
            out,
            ctypes.c_size_t(MAX_PAYLOAD),
            ctypes.byref(used),
        )
        assert status != 3, "a payload could be read but not written"
        return out.raw[: used.value] if status == 0 else None

    def encode(self, frame):
        """Return a frame on the wire, None if it does not fit. The major version is ours."""
        head = (frame.major << 4 | frame.flags, frame.node, frame.type, frame.seq, frame.t_us)
        body = struct.pack("<BBBBI", *head) + frame.payload
        out = ctypes.create_string_buffer(MAX_WIRE + 1)
        used = self._library.native_encode(
            body, ctypes.c_size_t(len(body)), out, ctypes.c_size_t(MAX_WIRE + 1)
        )
        return out.raw[:used] if used else None


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    return WholeCodec(folder_for("native", tmp_path_factory))


def blocks():
    """Read the file of vectors without the module that wrote it."""
    for block in VECTORS.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            yield dict(line.partition(" ")[::2] for line in lines)


GOOD = [block for block in blocks() if "message" in block]
DAMAGED = [block for block in blocks() if "damaged" in block]


def frame_of(block):
    payload = block["payload"]
    return Frame(
        *map(int, block["header"].split()), bytes.fromhex("" if payload == "-" else payload)
    )


def same(value, wanted):
    if isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(same, value, wanted))
    if isinstance(value, bytes):
        return value == bytes.fromhex(wanted)
    return math.isnan(value) if wanted is None else value == wanted


def test_there_are_vectors():
    assert len(GOOD) == 3 * len(MESSAGES) + 3
    assert len(DAMAGED) >= 10


@pytest.mark.parametrize("block", GOOD, ids=lambda b: f"{b['message']}-{b['header']}")
def test_golden_vectors_in_python(block):
    frame, wire = frame_of(block), bytes.fromhex(block["wire"])
    assert FrameDecoder().feed(wire) == [frame]
    assert encode_frame(frame) == wire
    if block["message"] != "-":
        values = unpack_payload(block["message"], frame.payload)
        wanted = json.loads(block["values"])
        assert values.keys() == wanted.keys()
        assert all(same(values[key], wanted[key]) for key in wanted)
        again = pack(block["message"], values)
        assert frame.payload.startswith(again)


@pytest.mark.parametrize("block", GOOD, ids=lambda b: f"{b['message']}-{b['header']}")
def test_golden_vectors_in_c(native, block):
    frame, wire = frame_of(block), bytes.fromhex(block["wire"])
    assert native.decoder().feed(wire) == [frame]
    if frame.major == MAJOR:
        assert native.encode(frame) == wire
    again = native.repack(frame.type, frame.payload)
    if block["message"] == "-":
        assert again is None
    else:
        assert again is not None
        assert frame.payload.startswith(again)
        assert len(frame.payload) - len(again) <= 1


@pytest.mark.parametrize("block", DAMAGED, ids=lambda b: b["damaged"])
def test_damaged_vectors_hold_no_frame(native, block):
    wire = bytes.fromhex(block["wire"])
    python, c = FrameDecoder(), native.decoder()
    assert python.feed(wire) == c.feed(wire) == []
    assert (python.ok, python.bad_crc, python.bad_code, python.too_long) == c.counters
    good = golden.encode_frame(frame_of(GOOD[0]))
    assert python.feed(good) == c.feed(good) == [frame_of(GOOD[0])]


def test_crc_is_the_usual_one(native):
    assert native.crc32(b"123456789") == 0xCBF43926
    assert native.crc32(b"") == 0


@settings(deadline=None)
@given(data=st.binary(max_size=600))
def test_crc_is_that_of_zlib(native, data):
    assert native.crc32(data) == binascii.crc32(data)


@settings(deadline=None)
@given(data=st.binary(max_size=1100) | st.binary(max_size=4).map(lambda piece: piece * 300))
def test_cobs_is_the_same(native, data):
    code = cobs.encode(data)
    assert native.cobs_encode(data) == code
    assert native.cobs_encode(data, len(code) - 1) is None
    assert native.cobs_decode(code) == data


@settings(deadline=None, max_examples=400)
@given(code=st.binary(max_size=600) | st.lists(st.integers(0, 6), max_size=60).map(bytes))
def test_what_is_no_code_is_none_for_both(native, code):
    assert native.cobs_decode(code) == cobs.decode(code)


@settings(deadline=None, max_examples=400)
@given(frame=protocol_cases.frames())
def test_frames_are_the_same(native, frame):
    wire = encode_frame(frame)
    assert native.encode(frame) == wire
    assert native.decoder().feed(wire) == [frame]


def test_a_payload_that_is_too_long_is_refused(native):
    assert native.encode(Frame(MAJOR, 0, 1, 1, 1, 1, b"\1" * MAX_PAYLOAD)) is not None
    assert native.encode(Frame(MAJOR, 0, 1, 1, 1, 1, b"\1" * (MAX_PAYLOAD + 1))) is None


@settings(deadline=None, max_examples=600)
@given(case=protocol_cases.messages(), extra=st.binary(max_size=3))
def test_messages_are_the_same(native, case, extra):
    message, _, _, payload = case
    assert native.repack(message.id, payload + extra) == payload
    for size in range(len(payload)):
        assert native.repack(message.id, payload[:size]) is None


@settings(deadline=None, max_examples=1500)
@given(
    kind=st.sampled_from(sorted(message.id for message in MESSAGES.values())) | st.just(0x7E),
    payload=st.binary(max_size=MAX_PAYLOAD) | st.binary(max_size=30),
)
def test_both_refuse_the_same_payloads(native, kind, payload):
    names = {message.id: message.name for message in MESSAGES.values()}
    c = native.repack(kind, payload)
    try:
        values = unpack_payload(names[kind], payload) if kind in names else None
    except ProtocolError:
        values = None
    assert (c is None) == (values is None)
    text = values is not None and "text" in values
    if values is not None and not text:  # a text that is no UTF-8 is mended by Python
        assert pack(names[kind], values) == c


@settings(deadline=None, max_examples=400)
@given(
    pieces=st.lists(
        st.binary(max_size=700)
        | protocol_cases.frames().map(encode_frame)
        | st.just(b"\x55" * 600)
        | st.just(b"\0"),
        max_size=8,
    )
)
def test_streams_are_the_same(native, pieces):
    """Frames found and all counters, for whatever arrives, however it is cut."""
    python, c = FrameDecoder(), native.decoder()
    for piece in pieces:
        assert python.feed(piece) == c.feed(piece)
        assert (python.ok, python.bad_crc, python.bad_code, python.too_long) == c.counters
