"""The short way to pack tensions, against the codec, which goes by the table."""

import math

import numpy as np
import pytest

from cards_hardware.boards.commands import pack_tension
from cards_hardware.errors import ProtocolError
from cards_hardware.protocol.codec import pack


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
