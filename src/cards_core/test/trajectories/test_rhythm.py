"""Rhythms: the oscillators of the pattern generator, phases that lock, rest at both ends."""

import numpy as np
import pytest

from cards_core.control.cpg.oscillators import Couplings, OpenLoop, Oscillators
from cards_core.trajectories import TrajectoryError, from_dict
from cards_core.trajectories.rhythm import FADE, Rhythm

CENTRE = [0.1, -0.2, 0.3]
AMPLITUDE = [0.3, 0.1, 0.2]
PHASES = [0.0, 1.0, -2.0]


def rhythm(**changes):
    return Rhythm(CENTRE, AMPLITUDE, 0.8, 12.0, **{"phases": PHASES, **changes})


def test_it_is_the_compiled_pattern_generator():
    """Another integrator of the same equations, whose couplings go from one to each other."""
    begin = np.array([0.4, 0.1, -0.5])
    ours = rhythm(begin=begin, convergence=8.0, coupling=3.0)
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    targets, sources = np.array(pairs).T
    p = np.array(PHASES)
    weights = np.full(len(pairs), 3.0 / np.mean(AMPLITUDE))
    couplings = Couplings(targets, sources, weights, p[sources] - p[targets])
    network = Oscillators(3, OpenLoop(0.8, 1.0, convergence=8.0), couplings)
    network._amplitude[:] = AMPLITUDE  # one for each, which pattern files have not
    network.state[:, 0] = begin
    for k in range(1, 61):
        network.advance(0.1)
        expected = np.array(CENTRE) + network.output
        np.testing.assert_allclose(ours(0.1 * k)[0], expected, rtol=0.0, atol=1e-8)


def test_phases_lock_and_amplitudes_are_reached():
    """From wrong phases it finds the lags, and swings about its centre."""
    made = rhythm(begin=[0.3, 0.5, 0.0])
    times = np.arange(5.0, 7.5, 1e-3)  # two periods, before it fades
    y = made.sample(times)[0] - CENTRE
    np.testing.assert_allclose(np.abs(y).max(axis=0), AMPLITUDE, rtol=2e-3)
    first = np.fft.rfft(y, axis=0)[2]  # two periods of 1.25 s
    lags = np.angle(first / first[0])
    np.testing.assert_allclose(np.exp(1j * lags), np.exp(1j * np.array(PHASES)), atol=5e-3)


def test_it_rests_at_its_centre_at_both_ends():
    made = rhythm()
    for t in (0.0, 12.0 - 1e-9):
        y, yd, _ = made(t)
        np.testing.assert_allclose(y, CENTRE, atol=1e-7)
        np.testing.assert_allclose(yd, 0.0, atol=1e-6)
    assert made.breaks == (0.0, 12.0 - FADE / 10.0, 12.0)
    assert np.array_equal(made(13.0)[0], CENTRE)


def test_a_coordinate_without_amplitude_stays():
    made = Rhythm([1.0, 2.0], [0.0, 0.5], 1.0, 8.0)
    y, yd, ydd = made.sample(np.linspace(0.0, 8.0, 50))
    assert np.array_equal(y[:, 0], np.full(50, 1.0))
    assert not yd[:, 0].any()
    assert not ydd[:, 0].any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"phases": [0.0]}, "phases has shape"),
        ({"convergence": 0.0}, "convergence is 0"),
        ({"convergence": 1.0}, "expected more than the 40 s"),
        ({"coupling": -1.0}, "coupling is -1"),
        ({"coupling": 1e6}, "coupling times duration is 1.2e"),
        ({"convergence": 1e300}, "convergence times duration"),
        ({"begin": [0.0, np.nan, 0.0]}, "begin is"),
    ],
)
def test_values_that_do_not_fit(changes, message):
    with pytest.raises(TrajectoryError, match=message):
        rhythm(**changes)


@pytest.mark.parametrize("amplitude", [[0.1, -0.1, 0.1], [0.0, 0.0, 0.0]])
def test_amplitudes_that_do_not_fit(amplitude):
    with pytest.raises(TrajectoryError, match="amplitude"):
        Rhythm(CENTRE, amplitude, 1.0, 12.0)


def test_it_is_read_from_a_file():
    data = {
        "trajectories": {
            "swing": {
                "kind": "rhythm",
                "centre": CENTRE,
                "amplitude": AMPLITUDE,
                "frequency": 0.8,
                "phases": PHASES,
                "duration": 12.0,
            }
        }
    }
    found = from_dict(data)["swing"]
    assert found.space == "joint"
    np.testing.assert_array_equal(found(3.3)[0], rhythm()(3.3)[0])
