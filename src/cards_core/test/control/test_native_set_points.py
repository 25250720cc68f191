"""Compiled refreshes of set-points beside their Python form: `impedance`."""

import math

import numpy as np
import pytest

from cards_core.control import ControlModel, ControlStatus, controller_parameters, make_controller
from cards_core.control.impedance import ImpedanceController
from cards_core.control.recorded_commands import RecordedCommands
from cards_core.errors import CompilationError, ParameterError
from cards_core.formats import load
from cards_core.robot.state import RobotState

ROBOT = load("tetraspine_hardware")
MODEL = ControlModel(ROBOT, "numeric")
COUNT = len(ROBOT.muscles)
TOLERANCE = 1e-12
"""Relative to the largest rate: NumPy has a sine of its own, which differs in the last bit."""


def recorded(*, whole=False):
    """Set-points that begin late, with muscles of which nothing is said at first."""
    rng = np.random.default_rng(3)
    times = np.array([1, 2, 4, 7]) if whole else np.array([0.1, 0.4, 0.45, 2.0])
    values = {
        "tension": rng.uniform(0.0, 20.0, (4, COUNT)),
        "rest_rate": rng.standard_normal((4, COUNT)),
    }
    values["tension"][:2, 1] = np.nan
    return RecordedCommands(times, values)


SINE = {"gait": "sine", "amplitude": 0.5, "body_waves": 1.5, "top_phase": 0.4, "tension": 20.0}

CASES = {
    "hold": {"tension": np.linspace(1.0, 9.0, COUNT)},
    "sine": {**SINE, "turn": 3.0, "rear": 2.0, "refresh_rate": 200.0},
    "replay": {"gait": "replay", "commands": recorded(), "refresh_rate": 500.0},
    "again": {"gait": "replay", "commands": recorded(), "repeat": True, "refresh_rate": 500.0},
    "whole": {"gait": "replay", "commands": recorded(whole=True), "repeat": True},
    "some": {**SINE, "groups": {"muscles": ["*outer*"], "inside": ["*outer_left"]}},
}


def pair(name):
    ours, theirs = (make_controller("impedance", MODEL, **CASES[name]) for _ in range(2))
    assert ours.native == "yes"
    theirs.step_in_python()
    assert theirs.native == "no, as asked for"
    return ours, theirs


def compare(ours, theirs, time):
    empty = np.full(ROBOT.tree.nq, np.nan)
    state = RobotState(time, empty, np.full(ROBOT.tree.nv, np.nan))
    (a,), (b,) = ours.step(state), theirs.step(state)
    assert ours.output.status is theirs.output.status
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.rest_lengths, b.rest_lengths)
    size = np.abs(b.rest_rates).max(initial=0.0)
    np.testing.assert_allclose(a.rest_rates, b.rest_rates, rtol=0.0, atol=TOLERANCE * size)
    np.testing.assert_array_equal(ours.output.tensions, theirs.output.tensions)
    return ours.output.status


@pytest.mark.parametrize("name", CASES)
def test_both_forms_tell_the_same(name):
    """At times that come as they come, go back, stand still and are none."""
    ours, theirs = pair(name)
    rng = np.random.default_rng(1)
    time, told = 5.0, []
    for k in range(400):
        time += float(rng.choice([0.0, 0.001, 0.005, 0.3]))
        if k % 100 == 50:
            time -= 3.0
        bad = k % 37 == 5
        at = [math.nan, math.inf, -math.inf][k % 3] if bad else time
        status = compare(ours, theirs, at)
        assert (status is ControlStatus.INVALID_STATE) == bad
        told.append(ours.command[0].rest_rates.copy())
        if k == 200:
            for item in (ours, theirs):
                item.reset()
    assert ours.native == "yes"
    moves = name != "hold"
    assert (np.ptp(told, axis=0).max() > 0.0) == moves


def test_what_is_changed_between_steps_reaches_both_forms():
    ours, theirs = pair("sine")
    values = {spec.name: spec.default for spec in controller_parameters("impedance", ROBOT)}
    values |= {"tension": np.full(COUNT, 20.0), "amplitude": 0.3, "frequency": 1.1}
    for i, more in enumerate(
        ({}, {"inside_factor": 0.3}, {"top_phase": 1.0, "body_waves": 3.0}, {"turn": -4.0})
    ):
        values |= more
        before = ours.command[0].rest_rates.copy()
        for item in (ours, theirs):
            item.change(values)
        for k in range(40):
            compare(ours, theirs, i + 0.01 * k)
        assert not np.array_equal(before, ours.command[0].rest_rates)
    for item in (ours, theirs):
        with pytest.raises(ParameterError, match="expected at most"):
            item.change(values | {"inside_factor": 5.0, "turn": 1e6})
    compare(ours, theirs, 9.0)


class Own(ImpedanceController):
    """Somebody else's: twice the tension."""

    def _refresh(self, time):
        super()._refresh(time)
        self._told_tension *= 2.0


def test_steps_of_python_say_why(monkeypatch):
    assert Own(MODEL).native == "no, Own has a _refresh of its own"
    odd = RecordedCommands(np.array([0.0, 1.0]), {"tension": np.ones((2, 1))})
    item = ImpedanceController(MODEL, gait="replay", commands=odd)
    assert item.native == f"no, tension has shape (2, 1), not (2, {COUNT})"

    def refuse(*_):
        raise CompilationError("there is no C compiler")

    monkeypatch.setattr("cards_core.control.native_program._program", refuse)
    item = ImpedanceController(MODEL, tension=3.0)
    assert item.native == "no, there is no C compiler"
    item.step(RobotState(0.0, np.zeros(0), np.zeros(0)))
    np.testing.assert_array_equal(item.command[0].values, 3.0)
