"""The compiled refresh of pattern generators beside its Python form."""

import dataclasses
import math

import numpy as np
import pytest

from cards_core.control import ControlModel, ControlStatus, controller_parameters, make_controller
from cards_core.control.cpg.controller import PatternGenerator
from cards_core.control.cpg.files import read_pattern
from cards_core.control.cpg.network import Network
from cards_core.control.cpg.oscillators import Feedback, OpenLoop
from cards_core.control.cpg.parameters import PatternParameters
from cards_core.errors import CardsError, CompilationError
from cards_core.formats import load
from cards_core.robot.state import RobotState
from cards_core.shared_files import find_file

ROBOT = load("tetrahedral_6")  # five joints of eight cables
MODEL = ControlModel(ROBOT)
TREE, COUNT = ROBOT.tree, len(ROBOT.muscles)
HOME = MODEL.dynamics.update(TREE.home, np.zeros(TREE.nv)).muscle_lengths.copy()
TOLERANCE = 1e-12
"""Relative to the largest, see `cards_core.control.cpg.native_refresh`; per second, as what the
last bits of feedback do to the oscillators adds up."""


def pattern(kind, inputs=4):
    rng = np.random.default_rng(0)
    couplings = np.column_stack((rng.uniform(0, 1, 100), rng.uniform(-np.pi, np.pi, 100)))
    made = PatternParameters(
        Feedback(20.0, 0.04, 5.0, 0.02, 3.0) if kind == "feedback" else OpenLoop(1.2, 0.2, 0.4),
        0.5,
        couplings,
        per_joint=8,
        feedback=Network.random(2, 4, 3, rng) if kind == "feedback" else None,
        goal=Network.random(inputs, 8, 8, rng),
        goal_tension=9.0,
        tension=2.0,
    )
    return dataclasses.replace(made, goal=None, goal_tension=0.0) if inputs == 0 else made


CASES = {
    "none": {},
    "open_loop": {"pattern": pattern("open", 2), "command": 0.7},
    "feedback": {"pattern": pattern("feedback", 2)},
    "world": {"pattern": pattern("feedback", 4), "goal": [1.0, -2.0], "ramp_time": 0.0},
    "heading": {"pattern": pattern("feedback", 2), "goal": [1.0, 2.0]},
    "some": {"pattern": pattern("open", 2), "goal": [0.3, 0.1], "muscles": ["*"]},
}


def pair(name):
    ours, theirs = (make_controller("cpg", MODEL, **CASES[name]) for _ in range(2))
    assert ours.native == "yes"
    theirs.step_in_python()
    return ours, theirs


def compare(ours, theirs, state, seconds=1.0):
    a, b = (item.step(state) for item in (ours, theirs))
    assert (a is ours.relaxed) == (b is theirs.relaxed)
    assert (ours.output.status, ours.reason) == (theirs.output.status, theirs.reason)
    pairs = [
        (getattr(a[0], x), getattr(b[0], x)) for x in ("values", "rest_lengths", "rest_rates")
    ]
    pairs.append((ours.output.tensions, theirs.output.tensions))
    pairs.append((ours.oscillators.state, theirs.oscillators.state))
    pairs += [(x.read(), y.read()) for x, y in zip(ours.signals, theirs.signals, strict=True)]
    for x, y in pairs:
        atol = TOLERANCE * max(1.0, seconds) * np.abs(y).max(initial=0.0)
        np.testing.assert_allclose(x, y, rtol=0.0, atol=atol)
    return ours.output.status


def state_of(time, rng, spread=0.2):
    q = TREE.integrate(TREE.home, spread * rng.standard_normal(TREE.nv))
    lengths = HOME * rng.uniform(0.8, 1.2, COUNT)
    tensions = rng.uniform(0.0, 70.0, COUNT)
    return RobotState(time, q, np.zeros(TREE.nv), muscle_lengths=lengths, tensions=tensions)


@pytest.mark.parametrize("name", CASES)
def test_both_forms_agree_on_random_states(name):
    ours, theirs = pair(name)
    rng = np.random.default_rng(1)
    time = 2.0
    for k in range(150):
        time += float(rng.choice([0.001, 0.01, 0.02]))
        compare(ours, theirs, state_of(time, rng), time - 2.0)
        if k == 80:
            time -= 1.0
    assert ours.native == "yes"
    assert ours.output.status is ControlStatus.OK
    assert (np.abs(ours.command[0].rest_rates).max() > 0.0) == (name != "none")


def test_the_published_patterns_are_compiled():
    for file, more in (("tetrahedral_6", {}), ("tetrahedral_6_goal", {"goal": [2.0, 1.0]})):
        given = read_pattern(find_file(file, folder="config/patterns", suffix=".yaml"))
        ours, theirs = (make_controller("cpg", MODEL, pattern=given, **more) for _ in range(2))
        theirs.step_in_python()
        rng = np.random.default_rng(2)
        for k in range(30):
            compare(ours, theirs, state_of(0.01 * k, rng, 0.05))
        assert ours.native == "yes"


def test_a_refresh_is_one_call(monkeypatch):
    ours, _ = pair("heading")

    def never(*_):
        raise AssertionError("a refresh of Python")

    for name in ("_feedback", "_towards_goal"):
        monkeypatch.setattr(ours, name, never)
    rng = np.random.default_rng(0)
    for k in range(20):
        ours.step(state_of(0.01 * k, rng))
        assert ours.output.status is ControlStatus.OK


def test_what_is_changed_between_steps_reaches_both_forms():
    ours, theirs = pair("feedback")
    values = {spec.name: spec.default for spec in controller_parameters("cpg", ROBOT)}
    values |= {"feedback": True}
    rng, time = np.random.default_rng(3), 0.0
    for more in (
        {"tension": np.full(COUNT, 5.0)},
        {"rest_length": 0.9 * HOME},
        {"goal": [3.0, 0.0]},
        {"goal": [-3.0, 1.0], "active": False},
        {"feedback": False, "active": True},
        {"goal": []},
    ):
        values |= more
        for item in (ours, theirs):
            item.change(values)
        for _ in range(15):
            time += 0.01
            compare(ours, theirs, state_of(time, rng), time)
    assert (ours.native, theirs.native) == ("yes", "no, as asked for")


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("where", ["muscle_lengths", "tensions", "q", "time"])
def test_nonsense_gets_the_same_answer(where, bad):
    """It lets go softly, says why, and comes back."""
    ours, theirs = pair("heading")
    rng = np.random.default_rng(4)
    said = set()
    for k in range(60):
        state = state_of(0.05 * k, rng)
        if 20 <= k < 45:
            if where == "time":
                state.time = bad
            else:
                getattr(state, where)[3] = bad
        compare(ours, theirs, state, 3.0)
        said.add(ours.reason)
    assert len(said) > 1
    assert ours.output.status is ControlStatus.OK


@pytest.mark.parametrize("quantity", ["tensions", "muscle_lengths", "q"])
@pytest.mark.parametrize("size", [0, 3, 200])
def test_wrong_shapes_get_the_same_error(quantity, size):
    said = []
    for item in pair("heading"):
        rng = np.random.default_rng(5)
        for k in range(5):
            item.step(state_of(0.01 * k, rng))
        before, at = item.command[0].rest_rates.copy(), item.oscillators.state.copy()
        state = state_of(0.06, rng)
        setattr(state, quantity, np.full(size, 0.5))
        try:
            item.step(state)
            said.append("")
        except (CardsError, ValueError, IndexError) as error:
            said.append(f"{type(error).__name__}: {error}")
            np.testing.assert_array_equal(before, item.command[0].rest_rates)
            np.testing.assert_array_equal(at, item.oscillators.state)
    assert said[0] == said[1]


def test_oscillators_that_cannot_be_integrated_are_told_by_both_forms():
    given = pattern("feedback", 2)
    wild = dataclasses.replace(given, couplings=given.couplings * (1e7, 1.0))
    ours, theirs = (make_controller("cpg", MODEL, pattern=wild) for _ in range(2))
    theirs.step_in_python()
    rng = np.random.default_rng(6)
    for k in range(4):
        compare(ours, theirs, state_of(0.02 * k, rng))
    assert "evaluations" in ours.reason
    assert ours.output.status is ControlStatus.INVALID_STATE


class Own(PatternGenerator):
    """Somebody else's: always straight ahead."""

    def _towards_goal(self, q):
        return np.ones(COUNT)


def test_refreshes_of_python_say_why(monkeypatch):
    assert Own(MODEL).native == "no, Own has a _towards_goal of its own"
    numeric = ControlModel(ROBOT, "numeric")
    item = make_controller("cpg", numeric, **CASES["heading"])
    assert item.native == "no, its dynamics are not compiled"
    item = make_controller("cpg", numeric, **CASES["feedback"])
    assert item.native == "yes"

    def refuse(*_):
        raise CompilationError("there is no C compiler")

    monkeypatch.setattr("cards_core.control.native_program._program", refuse)
    assert make_controller("cpg", numeric).native == "no, there is no C compiler"


def test_an_error_leaves_the_same_reason_in_both_forms():
    ours, theirs = pair("feedback")
    rng = np.random.default_rng(0)
    states = [state_of(0.02 * k, rng) for k in range(3)]
    states[1].tensions[0] = np.nan
    found = []
    for item in (ours, theirs):
        for state in states[:2]:
            item.step(state)
        assert item.reason
        with pytest.raises(CardsError):
            item.step(dataclasses.replace(states[2], muscle_lengths=None))
        found.append((item.reason, item.output.status))
    assert found[0] == found[1]
