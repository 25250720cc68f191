"""What goes to the boards when a command comes."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.formats import load
from cards_core.muscles.command import CommandRefusedError
from cards_hardware.bridge.command_gate import CommandGate

ROBOT = load("planar_2r")
NAMES = [muscle.name for muscle in ROBOT.muscles]


def test_a_whole_command_goes_out_as_it_came_in_any_order():
    gate = CommandGate(ROBOT, timeout=0.1)
    assert gate.submit(NAMES, [11.0, 12.0, 13.0, 14.0], "force", 1.0).tolist() == [11, 12, 13, 14]
    assert gate.submit(NAMES[::-1], [11.0, 12.0, 13.0, 14.0], "force", 1.0).tolist() == [
        14,
        13,
        12,
        11,
    ]


def test_a_partial_command_addresses_its_muscles_and_repeats_nothing():
    gate = CommandGate(ROBOT, timeout=0.1)
    gate.submit(NAMES, [50.0] * 4, "force", 1.0)
    told = gate.submit([NAMES[2], NAMES[0]], [30.0, 20.0], "force", 1.01)
    assert np.array_equal(told, [20.0, np.nan, 30.0, np.nan], equal_nan=True)
    # also when the others have long been without a command
    told = gate.submit([NAMES[1]], [60.0], "force", 9.0)
    assert np.array_equal(told, [np.nan, 60.0, np.nan, np.nan], equal_nan=True)
    assert gate.stale(9.0)
    assert gate.command.stale_muscles == (NAMES[0], NAMES[2], NAMES[3])


def test_limits_of_the_boards_count():
    limited = replace(ROBOT, muscles=tuple(replace(m, tension_max=60.0) for m in ROBOT.muscles))
    gate = CommandGate(limited, timeout=0.1)
    with pytest.raises(CommandRefusedError, match=r"61 N, expected 10 \.\. 60 N"):
        gate.submit(NAMES, [20.0, 61.0, 20.0, 20.0], "force", 0.0)
    assert not np.isfinite(gate.command._times).any()


def test_boards_have_no_excitation():
    with pytest.raises(CommandRefusedError, match="excitation"):
        CommandGate(ROBOT, timeout=0.1).submit(NAMES, [0.5] * 4, "excitation", 0.0)
