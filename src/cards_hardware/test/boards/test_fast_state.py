"""The fast reader of STATE_FAST gives what the codec gives."""

import numpy as np
import pytest

from cards_hardware.boards.telemetry import JOINT_ROWS, MUSCLE_ROWS, read_fast_state
from cards_hardware.errors import ProtocolError
from cards_hardware.protocol.codec import pack, unpack_payload


def payload(muscles, joints, seed=0):
    rng = np.random.default_rng(seed)
    values = {
        "state": 3,
        "flags": 0x155,
        "cmd_t_us": 4_000_000_000,
        "cmd_age_us": 123,
        "loop_us": 77,
        "length": rng.uniform(-1.0, 2.0, muscles),
        "rate": rng.uniform(-1.0, 1.0, muscles),
        "tension": rng.uniform(0.0, 500.0, muscles),
        "current": rng.uniform(-5.0, 5.0, muscles),
        "position": rng.uniform(-3.0, 3.0, joints),
        "velocity": rng.uniform(-3.0, 3.0, joints),
    }
    if muscles > 1:
        values["length"][1] = values["tension"][0] = np.nan
    return pack("STATE_FAST", values)


@pytest.mark.parametrize(("muscles", "joints"), [(0, 0), (1, 0), (11, 4), (16, 16)])
def test_it_gives_what_the_codec_gives(muscles, joints):
    data = payload(muscles, joints)
    values = unpack_payload("STATE_FAST", data)
    state = read_fast_state(data)
    for name, value in state.head.items():
        assert value == values[name]
    for row, name in enumerate(MUSCLE_ROWS):
        np.testing.assert_array_equal(state.muscles[row], values[name])
    for row, name in enumerate(JOINT_ROWS):
        np.testing.assert_array_equal(state.joints[row], values[name])


def test_the_rows_are_those_that_samples_name():
    assert MUSCLE_ROWS == ("length", "rate", "tension", "current")
    assert JOINT_ROWS == ("position", "velocity")


def test_bytes_behind_it_are_ignored_and_missing_ones_refused():
    data = payload(3, 1)
    np.testing.assert_array_equal(
        read_fast_state(data + b"new").muscles, read_fast_state(data).muscles
    )
    for end in range(len(data)):
        with pytest.raises(ProtocolError):
            read_fast_state(data[:end])


def test_more_muscles_than_there_can_be():
    data = bytearray(payload(1, 0)) + bytes(600)
    data[1] = 17
    with pytest.raises(ProtocolError, match="17 muscles"):
        read_fast_state(bytes(data))
