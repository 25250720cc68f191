"""Set-points for all muscles at once and muscle by muscle are the same commands."""

import numpy as np
import pytest

from cards_core.formats import load
from cards_core.muscles.command import CommandRefusedError, MuscleCommand

ROBOT = load("prism_3")
NAMES = [muscle.name for muscle in ROBOT.muscles]
M = len(NAMES)


def gate():
    return MuscleCommand(ROBOT, timeout=0.1)


def test_whole_and_reordered_commands_give_the_same():
    rng = np.random.default_rng(4)
    values = rng.uniform(0.0, 5.0, M), rng.uniform(0.1, 1.0, M), rng.normal(size=M)
    whole, parts = gate(), gate()
    whole.submit(
        NAMES, values[0], 1.0, kind="impedance", rest_lengths=values[1], rest_rates=values[2]
    )
    back = np.arange(M)[::-1]
    parts.submit(
        [NAMES[i] for i in back],
        values[0][back],
        1.0,
        kind="impedance",
        rest_lengths=values[1][back],
        rest_rates=values[2][back],
    )
    for item in (whole, parts):
        np.testing.assert_array_equal(item.values(1.05), values[0])
        np.testing.assert_array_equal(item.impedance.rest_length, values[1])
        np.testing.assert_array_equal(item.impedance.rest_rate, values[2])
        assert (item.accepted, item.stale) == (1, False)
        item.values(1.2)
        assert item.stale


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        (0, -1.0, "tension of muscle"),
        (0, 1e9, "tension of muscle"),
        (0, np.inf, "tension of muscle"),
        (1, -0.1, "rest length of muscle"),
        (1, np.inf, "rest length of muscle"),
        (2, np.inf, "rest rate of muscle"),
    ],
)
def test_one_bad_value_refuses_all(column, value, words):
    item = gate()
    values = [np.ones(M), np.full(M, 0.5), np.zeros(M)]
    values[column][2] = value
    with pytest.raises(CommandRefusedError, match=words):
        item.submit(
            NAMES, values[0], 1.0, kind="impedance", rest_lengths=values[1], rest_rates=values[2]
        )
    assert item.stale
    np.testing.assert_array_equal(item.impedance.active, False)


def test_nan_keeps_what_was_set():
    item = gate()
    item.submit(
        NAMES,
        np.ones(M),
        1.0,
        kind="impedance",
        rest_lengths=np.full(M, 0.5),
        rest_rates=np.zeros(M),
    )
    tensions = np.full(M, 2.0)
    tensions[1] = np.nan
    item.submit(NAMES, tensions, 1.01, kind="impedance", rest_lengths=np.full(M, 0.6))
    expected = np.full(M, 2.0)
    expected[1] = 1.0
    np.testing.assert_array_equal(item.values(1.01), expected)
    np.testing.assert_array_equal(item.impedance.rest_length, 0.6)


def test_a_time_of_nonsense_is_refused():
    with pytest.raises(CommandRefusedError, match="time of the command is nan"):
        gate().submit(
            NAMES,
            np.ones(M),
            np.nan,
            kind="impedance",
            rest_lengths=np.full(M, 0.5),
            rest_rates=np.zeros(M),
        )
