"""Coupled oscillators against SciPy on the equations as they are printed, and closed forms."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cards_core.control.cpg.oscillators import (
    Couplings,
    Feedback,
    OpenLoop,
    OscillatorError,
    Oscillators,
)
from cards_core.errors import ParameterError, ShapeError


def couplings(rows):
    target, source, weight, phase = zip(*rows, strict=True)
    return Couplings(np.array(target), np.array(source), np.array(weight), np.array(phase))


def random_couplings(rng, n, share=0.4):
    rows = [
        (i, j, rng.uniform(0.0, 1.0), rng.uniform(-np.pi, np.pi))
        for i in range(n)
        for j in range(n)
        if i != j and rng.uniform() < share
    ]
    return couplings(rows)


def printed(item, feedback):
    """Return the right-hand side as the equations state it: sums over pairs, no tricks."""
    p, c = item.parameters, item.couplings
    n = len(item.state)

    def rhs(_t, y):
        theta, r, last = y.reshape(n, 3).T
        out = np.zeros((n, 3))
        for i in range(n):
            pull = 0.0
            for e in range(c.targets.size):
                if c.targets[e] == i:
                    j = c.sources[e]
                    pull += r[j] * c.weights[e] * np.sin(theta[j] - theta[i] - c.phases[e])
            if isinstance(p, OpenLoop):
                a = p.convergence
                out[i] = (
                    2.0 * np.pi * p.frequency + pull,
                    last[i],
                    a * (a / 4.0 * (p.amplitude - r[i]) - last[i]),
                )
            else:
                f_omega, f_r, f_theta = feedback[i]
                out[i] = (
                    last[i] + p.phase_gain * f_theta + pull,
                    p.convergence * (p.amplitude + p.amplitude_gain * f_r - r[i] ** 2) * r[i],
                    p.frequency_gain * f_omega * np.sin(theta[i]),
                )
        return out.ravel()

    return rhs


def test_three_oscillators_settle_where_nasas_test_says():
    """1 Hz, R = 1, a = 20, all weights 1: outputs (0, -1, 0) after 20 s."""
    quarter = 0.5 * np.pi
    rows = [
        *((0, 1, 1.0, quarter), (1, 0, 1.0, quarter), (1, 2, 1.0, quarter)),
        *((2, 1, 1.0, quarter), (0, 2, 1.0, 0.0), (2, 0, 1.0, 0.0)),
    ]
    item = Oscillators(3, OpenLoop(1.0, 1.0), couplings(rows))
    for _ in range(200):
        item.advance(0.1)
    np.testing.assert_allclose(item.output, [0.0, -1.0, 0.0], atol=1e-7)


@pytest.mark.parametrize(
    "parameters", [OpenLoop(1.7, 3.0), Feedback(9.0, 6.0, 2.0, 3.0, 1.5, 2.0)]
)
def test_equal_to_the_printed_equations(parameters):
    rng = np.random.default_rng(5)
    item = Oscillators(7, parameters, random_couplings(rng, 7))
    reference = item.state.ravel().copy()
    for _ in range(20):
        feedback = rng.uniform(-1.0, 1.0, (7, 3))
        item.advance(0.05, feedback)
        found = solve_ivp(
            printed(item, feedback), (0.0, 0.05), reference, "DOP853", rtol=1e-13, atol=1e-14
        )
        reference = found.y[:, -1]
        np.testing.assert_allclose(item.state.ravel(), reference, rtol=0.0, atol=1e-8)


def test_amplitude_with_feedback_becomes_the_root():
    item = Oscillators(1, Feedback(5.0, 4.0, 0.0, 12.0, 0.0, 1.0), Couplings.none())
    item.advance(20.0, np.array([[0.0, 0.7, 0.0]]))
    assert item.state[0, 1] == pytest.approx(np.sqrt(4.0 + 12.0 * 0.7), abs=1e-9)
    assert item.state[0, 0] == pytest.approx(100.0, abs=1e-8)


def test_open_loop_amplitude_is_critically_damped():
    item = Oscillators(1, OpenLoop(0.0, 2.0, convergence=20.0), Couplings.none())
    item.advance(0.13)
    t, pole = 0.13, 10.0
    exact = 2.0 * (1.0 - (1.0 + pole * t) * np.exp(-pole * t))
    assert item.state[0, 1] == pytest.approx(exact, abs=1e-9)


def test_descending_command_sets_frequency_and_amplitude():
    item = Oscillators(1, OpenLoop(0.5, 1.0, 0.25, 2.0), Couplings.none())
    item.command(2.0)
    item.advance(3.0)
    assert item.state[0, 0] == pytest.approx(2.0 * np.pi * 3.0, abs=1e-9)
    assert item.state[0, 1] == pytest.approx(5.0, abs=1e-9)


def test_calls_may_be_cut_anywhere_and_a_reset_begins_anew():
    rng = np.random.default_rng(2)
    some = random_couplings(rng, 5)
    whole, parts = (Oscillators(5, OpenLoop(2.0, 1.0), some) for _ in range(2))
    whole.advance(1.0)
    for duration in (0.3, 0.0, 0.001, 0.499, 0.2):
        parts.advance(duration)
    np.testing.assert_allclose(parts.state, whole.state, rtol=0.0, atol=1e-8)
    again = parts.state.copy()
    parts.reset()
    for duration in (0.3, 0.0, 0.001, 0.499, 0.2):
        parts.advance(duration)
    np.testing.assert_array_equal(parts.state, again)  # to the last bit


def test_an_integration_that_fails_says_so_and_changes_nothing():
    item = Oscillators(1, OpenLoop(1e5, 1.0), Couplings.none(), limit=100)
    pair = Oscillators(2, OpenLoop(1e3, 1e3), couplings([(0, 1, 9.0, 0.4), (1, 0, 5.0, 1.0)]))
    small = Oscillators(
        2, OpenLoop(1e3, 1e3), couplings([(0, 1, 9.0, 0.4), (1, 0, 5.0, 1.0)]), limit=50
    )
    pair.advance(0.1)
    with pytest.raises(OscillatorError, match="more than 50 evaluations for"):
        small.advance(0.1)
    np.testing.assert_array_equal(small.state, 0.0)
    item.advance(0.01)
    wild = Oscillators(1, Feedback(1.0, 1.0, 1.0, 1.0, 1.0), Couplings.none())
    before = wild.state.copy()
    with pytest.raises(OscillatorError, match="not finite"):
        wild.advance(0.1, np.array([[np.nan, 0.0, 0.0]]))
    np.testing.assert_array_equal(wild.state, before)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(OscillatorError, match="expected >= 0"):
            wild.advance(bad)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: couplings([(0, 0, 1.0, 0.0)]), ParameterError, "coupled with itself"),
        (lambda: couplings([(0, 1, np.nan, 0.0)]), ShapeError, "weights of couplings"),
        (lambda: couplings([(0, -1, 1.0, 0.0)]), ParameterError, "expected >= 0"),
        (
            lambda: Oscillators(2, OpenLoop(1.0, 1.0), couplings([(0, 2, 1.0, 0.0)])),
            ParameterError,
            "names oscillator 2; expected at most 1",
        ),
        (lambda: OpenLoop(np.nan, 1.0), ParameterError, "frequency is nan"),
        (lambda: OpenLoop(1.0, 1.0, convergence=0.0), ParameterError, "convergence is 0.0"),
        (lambda: Feedback(1.0, -1.0), ParameterError, "amplitude is -1.0"),
    ],
)
def test_mistakes(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_what_parameters_begin_with():
    assert (OpenLoop(1.0, 2.0).convergence, Feedback(1.0, 2.0).convergence) == (20.0, 1.0)
    item = Oscillators(2, Feedback(5.0, 9.0), Couplings.none())
    assert item.state.tolist() == [[0.0, 3.0, 5.0]] * 2
    assert item.output.tolist() == [3.0, 3.0]
    # without couplings and feedback that is a circle
    item.advance(0.25)
    assert item.state[0] == pytest.approx([1.25, 3.0, 5.0], abs=1e-9)
    open_loop = Oscillators(2, OpenLoop(1.0, 2.0), Couplings.none())
    assert (open_loop.kind, item.kind) == ("open_loop", "feedback")
    assert not open_loop.state.any()
    assert Feedback(1.0, 0.0).amplitude == 0.0


def test_a_command_holds_until_the_next_one_and_outlives_a_reset():
    item = Oscillators(1, OpenLoop(0.5, 1.0, 0.25, 2.0), Couplings.none())
    item.command(-1.0)
    item.reset()
    item.advance(2.0)
    assert item.state[0, 0] == pytest.approx(2.0 * np.pi * 0.25 * 2.0, abs=1e-9)
    item.command(0.0)
    item.reset()
    item.advance(2.0)
    assert item.state[0, 0] == pytest.approx(2.0 * np.pi * 0.5 * 2.0, abs=1e-9)


def test_feedback_is_that_of_the_last_call():
    item = Oscillators(1, Feedback(5.0, 4.0, 0.0, 0.0, 2.0), Couplings.none())
    item.advance(0.5, np.array([[0.0, 0.0, 1.0]]))
    assert item.state[0, 0] == pytest.approx(0.5 * 7.0, abs=1e-9)
    assert item.feedback.tolist() == [[0.0, 0.0, 1.0]]
    item.advance(0.5)
    assert item.state[0, 0] == pytest.approx(0.5 * 7.0 + 0.5 * 5.0, abs=1e-9)
    assert not item.feedback.any()
    assert item.advance(0.0, np.array([[1.0, 0.0, 0.0]])) == 0
    assert item.feedback.tolist() == [[1.0, 0.0, 0.0]]


def test_couplings_are_lists_of_one_length():
    for changes, words in (
        ({"targets": np.zeros((1, 1))}, "shape"),
        ({"sources": np.array([1, 2])}, r"sources of couplings has shape \(2,\)"),
        ({"weights": np.ones(2)}, "weights of couplings"),
        ({"phases": np.array([np.inf])}, "phases of couplings"),
    ):
        given = {"targets": [0], "sources": [1], "weights": [1.0], "phases": [0.5]} | changes
        with pytest.raises(ShapeError, match=words):
            Couplings(**given)
    with pytest.raises(ParameterError, match="oscillator 3 is coupled with itself"):
        couplings([(0, 1, 1.0, 0.0), (3, 3, 1.0, 0.0)])
    with pytest.raises(ParameterError, match="targets of couplings holds -1"):
        couplings([(-1, 0, 1.0, 0.0)])
    assert Couplings.none().targets.shape == Couplings.none().phases.shape == (0,)
    with pytest.raises(ParameterError, match="names oscillator 5; expected at most 4"):
        Oscillators(5, OpenLoop(1.0, 1.0), couplings([(5, 0, 1.0, 0.0)]))
    Oscillators(6, OpenLoop(1.0, 1.0), couplings([(5, 0, 1.0, 0.0)]))
