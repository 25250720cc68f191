"""Muscles that are too hot or too tense give way."""

import numpy as np
import pytest

from cards_core.control.mrc.temperature_safety import Protection, TemperatureLimits, protect
from cards_core.errors import ParameterError, ShapeError

MOST = np.full(3, 400.0)
DT = 0.008


def after(seconds, tensions, temperatures, state=None, limits=None):
    state = state or Protection.none(3)
    for _ in range(round(seconds / DT)):
        state = protect(
            state,
            tensions,
            temperatures,
            largest=MOST,
            limits=limits or TemperatureLimits(),
            dt=DT,
        )
    return state


def test_nothing_happens_below_the_limits():
    state = after(10.0, np.full(3, 320.0), np.full(3, 60.0))
    assert not state.given.any()
    assert not (state.hot | state.tense | state.latched | state.unknown).any()


def test_hot_muscles_lengthen_in_proportion_and_recover():
    state = after(8.0, np.full(3, 100.0), np.array([70.0, 79.999, 40.0]))
    assert state.given == pytest.approx([8.0 * 1.25e-4 / 2, 8.0 * 1.25e-4, 0.0], rel=1e-3)
    assert state.hot.tolist() == [True, True, False]
    assert not state.latched.any()
    state = after(1.6, np.full(3, 100.0), np.full(3, 50.0), state)
    assert state.given == pytest.approx([1e-4, 6e-4, 0.0], rel=1e-3)
    assert not after(10.0, np.full(3, 100.0), np.full(3, 50.0), state).given.any()


def test_tense_muscles_lengthen_up_to_the_largest_length():
    state = after(0.8, np.array([640.0, 400.0, 320.0]), None)
    assert state.given == pytest.approx([8e-3, 2e-3, 0.0], rel=1e-9)
    assert after(60.0, MOST, None, state).given == pytest.approx(np.full(3, 1e-2))


def test_the_hard_limit_latches():
    state = after(DT, np.zeros(3), np.array([80.0, 79.9, 20.0]))
    assert state.latched.tolist() == [True, False, False]
    assert after(60.0, np.zeros(3), np.full(3, 20.0), state).latched.tolist() == [
        True,
        False,
        False,
    ]


def test_a_lost_sensor_counts_as_hot_but_does_not_latch():
    state = after(1.0, np.zeros(3), np.array([np.nan, 20.0, 20.0]))
    assert state.unknown.tolist() == [True, False, False]
    assert state.given[0] == pytest.approx(1.25e-4)
    assert not state.latched.any()
    assert not after(DT, np.zeros(3), np.full(3, 20.0), state).unknown.any()


def test_a_robot_without_temperatures_is_not_hot():
    assert not after(10.0, np.zeros(3), None).given.any()
    assert not after(1.0, np.full(3, np.nan), None).given.any()


def test_limits_and_shapes_are_checked():
    with pytest.raises(ParameterError, match="soft below hard"):
        TemperatureLimits(soft=80.0, hard=60.0)
    with pytest.raises(ParameterError, match="heat_rate"):
        TemperatureLimits(heat_rate=-1.0)
    with pytest.raises(ShapeError, match="temperatures"):
        after(DT, np.zeros(3), np.zeros(2))
