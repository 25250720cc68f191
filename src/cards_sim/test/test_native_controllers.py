"""Compiled controllers of set-points in a closed loop, beside their Python form."""

import numpy as np
import pytest

from cards_core.control import ControlModel, ControlStatus, make_controller
from cards_core.control.cpg.files import pattern_file, read_pattern
from cards_core.formats import load
from cards_core.parameters.declaration import ParameterSet
from cards_sim.build import build_host


@pytest.mark.parametrize(
    ("kind", "name", "more"),
    [
        ("cpg", "tetrahedral_6", {"pattern": read_pattern(pattern_file("tetrahedral_6"))}),
        ("impedance", "tetraspine_hardware", {"gait": "sine", "amplitude": 0.05, "tension": 5.0}),
        ("mrc", "musashi_like", {}),
    ],
)
def test_a_loop_goes_on_alike(kind, name, more):
    """Three seconds with the compiled form; the other one sees the same states.

    Set-points agree to 1e-12 of the largest for every second: the last bits of feedback add up in
    the oscillators.
    """
    robot = load(name)
    ours, theirs = (make_controller(kind, ControlModel(robot), **more) for _ in range(2))
    assert ours.native == "yes"
    theirs.step_in_python()
    host = build_host(ParameterSet({"command_timeout": 0.2}, "simulator"), robot)
    for _ in range(750):
        state = host.state
        told, expected = ours.step(state), theirs.step(state)
        assert ours.output.status is theirs.output.status
        for what in ("values", "rest_lengths", "rest_rates"):
            a, b = getattr(told[0], what), getattr(expected[0], what)
            atol = 3e-12 * float(np.abs(b).max(initial=0.0))
            np.testing.assert_allclose(a, b, rtol=0.0, atol=atol if kind != "mrc" else 0.0)
        host.submit(told)
        host.steps(4)
    assert ours.output.status is ControlStatus.OK
