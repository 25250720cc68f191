"""What `cards eval` prints of robots with muscles that wrap and that take no command."""

import numpy as np
import pytest

from cards_bringup.cli.eval import evaluate


@pytest.fixture(scope="module")
def results():
    state = np.array([0.8]), np.array([1.5]), np.array([2.0])
    return [evaluate("wrap_elbow", *state, backend=name) for name in ("compiled", "numeric")]


@pytest.mark.parametrize("key", ["l", "ld", "L", "M", "C", "G", "needed_joint_force"])
def test_backends_agree(results, key):
    """Also where rates of L are found by evaluating the model beside q."""
    compiled, numeric = results
    np.testing.assert_allclose(compiled[key], numeric[key], rtol=1e-9, atol=1e-10)


def test_only_muscles_that_can_be_told_a_tension_get_one(results):
    result = results[0]
    tensions = dict(zip(result["muscle_names"], result["tensions"], strict=True))
    assert tensions["capsule"] == pytest.approx(0.0, abs=1e-9)
    assert result["tensions_feasible"]
    needed = -np.asarray(result["L"]).T @ result["tensions"]
    np.testing.assert_allclose(needed, result["needed_joint_force"], atol=1e-6)
