"""The soak of emulated boards without running it: its options, and memory over time."""

import os

import numpy as np
import pytest

from cards_bringup import cli
from cards_bringup.benchmarks import hil

pytestmark = pytest.mark.serial


def test_soak_options_belong_to_the_soak(capsys):
    assert cli.main(["bench", "qp", "--minutes", "3"]) == 2
    assert "of hil only" in capsys.readouterr().err
    assert cli.main(["bench", "hil", "--minutes", "0"]) == 2
    assert (
        "argument --minutes: '0' (expected: a finite number >= 0.05 and <= 1e+07)"
        in capsys.readouterr().err
    )


def test_growth_of_memory_is_a_slope_of_the_settled_part():
    memory = hil.Memory()
    memory.times = [2.0 * k for k in range(100)]
    memory.rows = {
        "flat": [30.0 + (20.0 if k > 5 else 0.0) for k in range(100)],
        "leaky": [40.0 + 0.1 * k for k in range(100)],
    }
    found = memory.summary()
    assert found["flat"]["growth_mb_per_min"] == pytest.approx(0.0, abs=1e-9)
    assert found["flat"]["first_mb"] == 30.0
    assert found["leaky"]["growth_mb_per_min"] == pytest.approx(3.0)


def test_resident_memory_of_this_process():
    assert 10.0 < hil.resident(os.getpid()) < 1e5
    assert np.isnan(hil.resident(2**22 + 1))
