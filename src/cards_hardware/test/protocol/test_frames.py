"""COBS and frames: there and back, and what a damaged line does to them."""

import math
import tracemalloc

import numpy as np
import protocol_cases
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cards_hardware.errors import ProtocolError
from cards_hardware.protocol import cobs
from cards_hardware.protocol.codec import encode
from cards_hardware.protocol.frames import Frame, FrameDecoder, encode_frame
from cards_hardware.protocol.schema import MAX_PAYLOAD, MAX_WIRE

GOOD = Frame(1, 0, 1, 0x1F, 7, 123456, b"\x01\x00")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("", "01"),
        ("00", "01 01"),
        ("00 00", "01 01 01"),
        ("11 22 00 33", "03 11 22 02 33"),
        ("11 22 33 44", "05 11 22 33 44"),
        ("11 00 00 00", "02 11 01 01 01"),
        ("01" * 253, "fe" + "01" * 253),
        ("01" * 254, "ff" + "01" * 254),
        ("01" * 255, "ff" + "01" * 254 + "02 01"),
        ("01" * 254 + "00", "ff" + "01" * 254 + "01 01"),
        ("00" + "01" * 254, "01 ff" + "01" * 254),
        ("01" * 508, ("ff" + "01" * 254) * 2),
    ],
)
def test_cobs_examples(data, code):
    """The examples of Cheshire and Baker, and the ends of blocks."""
    assert cobs.encode(bytes.fromhex(data)) == bytes.fromhex(code)
    assert cobs.decode(bytes.fromhex(code)) == bytes.fromhex(data)


@settings(deadline=None)
@given(st.binary(max_size=1100) | st.lists(st.sampled_from([0, 1, 255]), max_size=1100).map(bytes))
def test_cobs_there_and_back(data):
    code = cobs.encode(data)
    assert 0 not in code
    assert len(data) < len(code) <= len(data) + math.ceil(max(len(data), 1) / 254)
    assert cobs.decode(code) == data


@given(st.binary(max_size=600))
def test_cobs_decodes_or_says_no(code):
    data = cobs.decode(code)
    assert data is None or len(data) < max(len(code), 1)


@settings(deadline=None)
@given(st.lists(protocol_cases.frames(), max_size=5), st.integers(1, 700))
def test_frames_come_back_however_they_are_cut(sent, size):
    wire = b"".join(map(encode_frame, sent))
    decoder = FrameDecoder()
    found = [
        frame
        for at in range(0, len(wire), size)
        for frame in decoder.feed(memoryview(wire)[at : at + size])
    ]
    assert found == sent
    assert (decoder.ok, decoder.errors, decoder.waiting) == (len(sent), 0, 0)


@given(st.lists(st.binary(max_size=1500), max_size=6))
def test_garbage_never_raises_and_a_frame_behind_a_delimiter_is_found(garbage):
    decoder = FrameDecoder()
    for piece in garbage:
        decoder.feed(piece)
        assert decoder.waiting <= MAX_WIRE
    assert decoder.feed(b"\0" + encode_frame(GOOD))[-1] == GOOD


@given(st.binary(max_size=1500))
def test_garbage_costs_one_good_frame_at_most(garbage):
    wire = encode_frame(GOOD)
    assert FrameDecoder().feed(garbage + wire + wire)[-1:] == [GOOD]


def test_empty_frames_are_nothing():
    decoder = FrameDecoder()
    assert decoder.feed(bytes(1000)) == []
    assert decoder.errors == 0


def test_a_line_without_delimiters_needs_no_memory():
    decoder = FrameDecoder()
    chunk = b"\x55" * 4096
    decoder.feed(chunk)
    tracemalloc.start()
    try:
        for _ in range(1000):
            decoder.feed(chunk)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 2 * MAX_WIRE
    assert decoder.too_long == 1
    assert decoder.feed(b"\0" + encode_frame(GOOD)) == [GOOD]


def test_a_frame_in_pieces_of_a_long_run_is_not_taken_for_one():
    """What follows a run that was too long is skipped until a delimiter, however it is cut."""
    wire = encode_frame(GOOD)
    for cut in range(1, 30):
        decoder = FrameDecoder()
        run = b"\x55" * (MAX_WIRE + cut)
        assert decoder.feed(run) == decoder.feed(wire) == []
        assert decoder.feed(wire) == [GOOD]
        assert decoder.too_long == 1


def test_reset_forgets_half_a_frame():
    wire = encode_frame(GOOD)
    decoder = FrameDecoder()
    decoder.feed(wire[:5])
    decoder.reset()
    assert decoder.feed(wire) == [GOOD]


def test_the_longest_frame():
    frame = Frame(1, 0, 1, 0x7F, 0, 0, bytes(range(1, 251)) * 2)
    assert len(frame.payload) == MAX_PAYLOAD
    wire = encode_frame(frame)
    assert len(wire) <= MAX_WIRE + 1
    assert FrameDecoder().feed(wire) == [frame]
    with pytest.raises(ProtocolError, match="payload of 501 bytes, at most 500"):
        encode_frame(Frame(1, 0, 1, 0x7F, 0, 0, bytes(501)))


# damage of the decoded frame: CRC-32 sees all of these ----------------------------------------


COMMAND = encode(
    "CMD_TENSION",
    {"mask": 0b111, "tension": [10.0, 250.0, 0.0], "slew": [0.0, 2000.0, 100.0]},
    node=1,
    seq=255,
    t_us=2**32 - 1,
)


def accepted(bits, size, body):
    """Feed a frame with a pattern of flipped bits, little endian; return what is found."""
    number = int.from_bytes(body, "little") ^ bits
    decoder = FrameDecoder()
    return decoder.feed(cobs.encode(number.to_bytes(size, "little")) + b"\0")


def test_every_single_and_double_bit_error_is_seen():
    body = cobs.decode(COMMAND[:-1])
    size = len(body)
    assert accepted(0, size, body)
    for i in range(8 * size):
        assert not accepted(1 << i, size, body)
        for k in range(i):
            assert not accepted(1 << i | 1 << k, size, body)


def test_every_kind_of_burst_up_to_32_bits_is_seen():
    """All places and lengths; of the bits between the ends all of short bursts, some of long."""
    rng = np.random.default_rng(3)
    body = cobs.decode(COMMAND[:-1])
    size = len(body)
    for length in range(3, 33):
        inner = length - 2
        if inner <= 4:
            patterns = list(range(2**inner))
        else:
            patterns = rng.integers(0, 2**inner, 16).tolist()
        for pattern in patterns:
            burst = 1 | pattern << 1 | 1 << (length - 1)
            for place in range(0, 8 * size - length + 1, 1 + int(length > 8) * 6):
                assert not accepted(burst << place, size, body)


def test_no_single_bit_of_the_wire_makes_another_frame():
    """Bits of the wire are not those of the frame: a changed code byte moves zeros about."""
    rng = np.random.default_rng(11)
    for _ in range(60):
        payload = np.where(rng.random(60) < 0.7, rng.integers(0, 256, 60), 0).astype(np.uint8)
        frame = Frame(
            1, 0, 1, 0x20, int(rng.integers(256)), int(rng.integers(2**32)), bytes(payload)
        )
        wire = encode_frame(frame)
        for place in range(len(wire)):
            for bit in range(8):
                damaged = bytearray(wire)
                damaged[place] ^= 1 << bit
                assert FrameDecoder().feed(bytes(damaged) + b"\0") == []


def test_lengths_alone_do_not_make_a_frame():
    """A frame cut anywhere, or with bytes doubled, is none."""
    for at in range(1, len(COMMAND) - 1):
        assert FrameDecoder().feed(COMMAND[:at] + b"\0") == []
        assert FrameDecoder().feed(COMMAND[at:]) == []
        assert FrameDecoder().feed(COMMAND[:at] + COMMAND[at - 1 :]) == []
