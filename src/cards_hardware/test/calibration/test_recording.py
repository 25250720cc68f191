"""Recordings of boards at rest, and their statistics against those of NumPy."""

import numpy as np
import pytest

from cards_hardware.boards.telemetry import BoardSample
from cards_hardware.calibration.recording import LEAST_SAMPLES, Recorder, RestStatistics, record
from cards_hardware.errors import HardwareError
from cards_hardware.protocol.enums import State


def sample(time, state=State.DISARMED):
    return BoardSample(time, time, 0, 1, int(state), 0, 0, np.full((4, 2), time),
                       np.full((2, 1), -time))  # fmt: skip


def recorded(count, seconds=1.0, states=()):
    recorder = Recorder()
    recorder(sample(9.0))  # before it begins

    def wait(asked):
        assert asked == seconds
        for i in range(count):
            recorder(sample(float(i), dict(states).get(i, State.DISARMED)))

    (found,) = record([recorder], ["arm"], seconds, wait)
    recorder(sample(9.0))
    assert recorder.stop() == []
    return found


def test_what_was_recorded_is_in_columns():
    found = recorded(LEAST_SAMPLES)
    times = np.arange(float(LEAST_SAMPLES))
    np.testing.assert_array_equal(found.times, times)
    np.testing.assert_array_equal(found.lengths, np.column_stack([times, times]))
    np.testing.assert_array_equal(found.tensions, np.column_stack([times, times]))
    np.testing.assert_array_equal(found.positions, -times[:, None])
    assert set(found.states) == {float(State.DISARMED)}


@pytest.mark.parametrize(("seconds", "least"), [(1.0, 50), (10.0, 50), (0.5, 25), (0.02, 1)])
def test_how_many_samples_are_enough(seconds, least):
    assert len(recorded(least, seconds).times) == least
    with pytest.raises(HardwareError, match=rf"'arm' sent {least - 1} samples in {seconds:g} s"):
        recorded(least - 1, seconds)


@pytest.mark.parametrize(("state", "word"), [(State.ACTIVE, "ACTIVE"), (99, "number 99")])
def test_one_sample_of_another_state_is_one_too_many(state, word):
    with pytest.raises(HardwareError, match=rf"board 'arm' is {word} \(expected: DISARMED"):
        recorded(60, states=[(59, state)])


def test_a_recorder_begins_anew():
    recorder = Recorder()
    for time in (1.0, 2.0):
        recorder.start()
        recorder(sample(time))
    assert [item.time for item in recorder.stop()] == [2.0]
    assert recorder.stop() == []


def test_noise_is_that_about_a_straight_line():
    rng = np.random.default_rng(5)
    t = np.sort(rng.uniform(3.0, 9.0, 40))
    values = rng.normal(size=(40, 3)) + np.outer(t, [0.5, -2.0, 0.0])
    found = RestStatistics.of(t, values)
    for k in range(3):
        line, (square,) = np.polyfit(t, values[:, k], 1, full=True)[:2]
        assert found.noise[k] == pytest.approx(np.sqrt(square / 38))
        assert found.drift[k] == pytest.approx(line[0] * (t[-1] - t[0]))
        assert found.mean[k] == pytest.approx(values[:, k].mean())


def test_samples_of_one_instant_have_no_drift():
    found = RestStatistics.of(np.array([2.0]), np.array([[5.0, 6.0]]))
    assert (found.mean.tolist(), found.drift.tolist()) == ([5.0, 6.0], [0.0, 0.0])
    assert found.noise.tolist() == [0.0, 0.0]
    broken = RestStatistics.of(np.arange(3.0), np.array([[1.0], [np.nan], [1.0]]))
    assert np.isnan(broken.mean[0])
