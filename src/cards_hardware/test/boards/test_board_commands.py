"""The short way to pack commands, against the codec, which goes by the table."""

import math

import numpy as np
import pytest

from cards_hardware.boards.commands import Packer, finite_channels
from cards_hardware.errors import ProtocolError
from cards_hardware.protocol.codec import pack


def pack_tension(mask, tensions, slew):
    return Packer("CMD_TENSION").pack(mask, tensions, np.full(len(tensions), slew))


def by_the_table(mask, tensions, slew):
    slews = np.full(len(tensions), slew)
    return pack("CMD_TENSION", {"mask": mask, "tension": tensions, "slew": slews})


def test_tensions_are_packed_as_the_codec_does():
    rng = np.random.default_rng(7)
    for _ in range(500):
        mask = int(rng.integers(1, 2**16))
        tensions = rng.uniform(-3276.7, 3276.7, mask.bit_count())
        tensions[:2] = np.round(tensions[:2]) + 0.05  # between two counts
        slew = float(rng.choice([0.0, 0.5, 1.5, 500.0, rng.uniform(0.0, 65000.0)]))
        assert pack_tension(mask, tensions, slew) == by_the_table(mask, tensions, slew)


def test_set_points_and_pressures_are_packed_as_the_codec_does():
    rng = np.random.default_rng(8)
    set_points, pressures = Packer("CMD_IMPEDANCE"), Packer("CMD_PRESSURE")
    for _ in range(500):
        mask = int(rng.integers(1, 2**16))
        count = mask.bit_count()
        values = {
            "length": rng.uniform(-2147.0, 2147.0, count),
            "rate": rng.uniform(-3.2766, 3.2766, count),
            "tension": rng.uniform(-3276.7, 3276.7, count),
        }
        told = pack("CMD_IMPEDANCE", {"mask": mask, **values})
        assert set_points.pack(mask, *values.values()) == told
        pressure = rng.uniform(0.0, 4e9, count)
        told = pack("CMD_PRESSURE", {"mask": mask, "pressure": pressure})
        assert pressures.pack(mask, pressure) == told
    with pytest.raises(ProtocolError, match=r"rate\[1\]: 3.3 m/s does not fit"):
        set_points.pack(0b11, np.zeros(2), np.array([0.0, 3.3]), np.zeros(2))


def test_channels_that_are_named():
    mask, chosen = finite_channels(np.array([1.0, np.nan, 3.0]))
    assert (mask, chosen.tolist()) == (0b101, [1.0, 3.0])
    mask, chosen = finite_channels(np.array([1.0, 2.0, 3.0]))
    assert (mask, chosen.tolist()) == (0b111, [1.0, 2.0, 3.0])
    assert finite_channels(np.full(3, np.nan))[0] == 0


@pytest.mark.parametrize("slew", [0.0, 65534.0, math.nan])
@pytest.mark.parametrize("tension", [3276.7, -3276.7, 3276.749, -0.0, math.nan])
def test_values_at_the_ends_of_their_ranges(tension, slew):
    tensions = np.array([1.0, tension])
    assert pack_tension(0b101, tensions, slew) == by_the_table(0b101, tensions, slew)


@pytest.mark.parametrize(
    ("mask", "tension", "slew", "words"),
    [
        (1, 3276.8, 0.0, r"tension\[0\]: 3276.8 N does not fit"),
        (1, -3276.8, 0.0, r"tension\[0\]: -3276.8 N does not fit"),  # would mean "invalid"
        (1, math.inf, 0.0, r"tension\[0\]: inf N does not fit"),
        (1, 1.0, 65535.0, r"slew\[0\]: 65535 N/s does not fit"),
        (1, 1.0, -1.0, r"slew\[0\]: -1 N/s does not fit"),
        (1 << 16, 1.0, 0.0, "0x10000 has bits from 16 on"),
    ],
)
def test_what_does_not_fit_is_refused_as_by_the_codec(mask, tension, slew, words):
    with pytest.raises(ProtocolError, match=words):
        pack_tension(mask, np.array([tension]), slew)
