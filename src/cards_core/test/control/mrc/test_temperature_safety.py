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


@pytest.mark.parametrize(
    "name", ["heat_rate", "tension_rate", "recovery_rate", "largest", "tension_share"]
)
def test_numbers_are_positive_and_finite(name):
    for bad in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ParameterError, match=f"{name} is .*expected a finite number > 0"):
            TemperatureLimits(**{name: bad})
    TemperatureLimits(**{name: 1e-9})


@pytest.mark.parametrize(
    ("soft", "hard"), [(60.0, 60.0), (np.nan, 80.0), (60.0, np.nan), (60.0, np.inf), (-np.inf, 0)]
)
def test_temperatures_are_in_order(soft, hard):
    with pytest.raises(ParameterError, match="expected soft below hard"):
        TemperatureLimits(soft=soft, hard=hard)


def test_what_is_at_a_limit_is_not_beyond_it():
    state = after(DT, np.array([320.0, np.nextafter(320.0, 400.0), 0.0]), np.full(3, 60.0))
    assert state.tense.tolist() == [False, True, False]
    assert not state.hot.any()
    warm = after(DT, np.zeros(3), np.full(3, np.nextafter(60.0, 61.0)))
    assert warm.hot.all()
    almost = after(DT, np.zeros(3), np.full(3, np.nextafter(80.0, 0.0)))
    assert not almost.latched.any()
    assert after(DT, np.zeros(3), np.full(3, 80.0)).latched.all()


def test_heat_and_tension_add_up():
    limits = TemperatureLimits(soft=50.0, hard=90.0, heat_rate=1e-3, tension_share=0.5)
    state = after(DT, np.array([400.0, 300.0, 0.0]), np.array([60.0, 20.0, 90.0]), limits=limits)
    rates = np.array([1e-3 * 10.0 / 40.0 + 1e-2 * 1.0, 1e-2 * 0.5, 1e-3])
    assert state.given == pytest.approx(rates * DT)
    # what gave way comes back only where neither is exceeded
    back = after(DT, np.array([0.0, 201.0, 0.0]), np.full(3, 20.0), state, limits)
    assert back.given[0] == pytest.approx(rates[0] * DT - 2.5e-4 * DT)
    assert back.given[1] == pytest.approx((rates[1] + 1e-2 * 1.0 / 200.0) * DT)


def test_muscles_without_a_largest_tension_are_never_tense():
    state = protect(
        Protection.none(2),
        np.array([1e9, 321.0]),
        None,
        largest=np.array([np.inf, 400.0]),
        limits=TemperatureLimits(),
        dt=DT,
    )
    assert state.tense.tolist() == [False, True]
    for name, changed in (("tensions", {"tensions": np.zeros(3)}), ("largest", {"largest": MOST})):
        given = {"tensions": np.zeros(2), "largest": np.ones(2)} | changed
        with pytest.raises(ShapeError, match=rf"{name} has shape \(3,\), expected \(2,\)"):
            protect(
                Protection.none(2),
                given["tensions"],
                None,
                largest=given["largest"],
                limits=TemperatureLimits(),
                dt=DT,
            )
