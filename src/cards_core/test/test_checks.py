"""NaN and infinity are refused wherever a number is a setting and no data."""

import math
from functools import partial

import numpy as np
import pytest

from cards_core.analysis.cable_function import analyse_cable_function, tension_ranges
from cards_core.analysis.conditions.registry import CONDITIONS
from cards_core.analysis.forward_dynamics import MOST_STEPS, ForwardDynamics
from cards_core.analysis.forward_kinematics import ForwardKinematics
from cards_core.analysis.inverse_dynamics import InverseDynamics
from cards_core.analysis.stiffness import joint_stiffness
from cards_core.analysis.tension_distribution import METHODS, make_tension_distribution
from cards_core.analysis.workspace import Axis, Grid, Rays, Samples
from cards_core.analysis.workspace.coordinates import Coordinates
from cards_core.checks import (
    check_fits,
    finite_array,
    finite_number,
    free_memory,
    most_items,
    readable,
    size_text,
)
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, RodError, ShapeError
from cards_core.formats import load
from cards_core.robot.perturb import perturbed
from cards_core.rods.analysis.measurements import BaseMeasurement
from cards_core.rods.analysis.workspace_slice import SliceOptions
from cards_core.rods.tracking.continuation import describe_margin

NOT_FINITE = [math.nan, math.inf, -math.inf]


@pytest.fixture(scope="module")
def dynamics():
    return make_dynamics(load("planar_2r"), "numeric")


@pytest.mark.parametrize("value", [*NOT_FINITE, "nan", "inf", "-inf", "1e400", "", "one", None])
def test_what_is_no_number(value):
    with pytest.raises(CardsError, match=r"^width \[m\] is .* \(expected: a finite number\)$"):
        finite_number(value, "width [m]")


def test_numbers_and_their_ranges():
    assert finite_number("1e3", "x") == 1000.0
    assert finite_number(np.float32(2), "x", above=1.0, at_most=2.0) == 2.0
    assert finite_number(math.inf, "x", above=0.0, infinite=True) == math.inf
    for value, limits, text in (
        (0.0, {"above": 0.0}, "a finite number > 0"),
        (-1, {"at_least": 0.0, "below": 1.0}, "a finite number >= 0 and < 1"),
        (1, {"at_least": 0.0, "below": 1.0}, "a finite number >= 0 and < 1"),
        (3, {"at_most": 2.5}, "a finite number <= 2.5"),
        (-math.inf, {"above": 0.0, "infinite": True}, "a number > 0"),
        (math.nan, {"infinite": True}, "a number"),
        (math.inf, {"below": 2.0, "infinite": True}, "a number < 2"),
    ):
        with pytest.raises(RodError) as caught:
            finite_number(value, "x", error=RodError, **limits)
        assert str(caught.value) == f"x is {value} (expected: {text})"


def test_arrays():
    np.testing.assert_array_equal(finite_array(["1", 2], "x", (2,)), [1.0, 2.0])
    for values in ([1.0], [1.0, math.nan], [[1.0, 2.0]], "ab", [None, 1.0], [1.0, math.inf]):
        with pytest.raises(ShapeError, match=r"^x is "):
            finite_array(values, "x", (2,))


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("name", ["stiffness", "axial_stiffness"])
def test_stiffness_of_muscles(dynamics, name, value):
    q, tensions = np.zeros(2), np.full(4, 20.0)
    for given in (value, [1e4, value, 1e4, 1e4], np.array([1e4, 1e4, 1e4, value])):
        with pytest.raises(ShapeError, match="muscle stiffness"):
            joint_stiffness(dynamics, q, tensions, **{name: given})


SETTINGS = {
    "simulate max_step": lambda d, x: _simulate(d, max_step=x),
    "simulate tolerance": lambda d, x: _simulate(d, tolerance=x, solver="RK45"),
    "simulate times": lambda d, x: _simulate(d, times=[0.0, x]),
    "forward kinematics": lambda d, x: ForwardKinematics(d, tolerance=x),
    "interaction weights": lambda d, x: InverseDynamics(
        d, "least_interaction", interaction_weights=np.full((2, 6), x)
    ),
    "arm tolerance": lambda d, x: analyse_cable_function(d, np.zeros((1, 2)), arm_tolerance=x),
    "tension tolerance": lambda d, x: analyse_cable_function(
        d, np.zeros((1, 2)), tension_tolerance=x
    ),
    "tension ranges": lambda _, x: tension_ranges(
        np.ones((1, 2, 1)), np.ones((1, 1)), np.zeros(2), np.ones(2), tolerance=x
    ),
    "axis start": lambda _, x: Axis("joint_1", x, 1.0, 3),
    "axis stop": lambda _, x: Axis("joint_1", 0.0, x, 3),
    "fixed": lambda d, x: Grid((), {"joint_1": x}).bind(d.tree),
    "values": lambda d, x: Coordinates(d.tree).find_values({"joint_1": x}),
    "samples": lambda _, x: Samples(3, ranges={"joint_1": (0.0, x)}),
    "ray length": lambda _, x: Rays(Grid(()), length=x),
    "ray tolerance": lambda _, x: Rays(Grid(()), tolerance=x),
    "ray direction": lambda d, x: Rays(Grid(()), direction={"joint_1": x}).bind(d.tree),
    "mass factor": lambda d, x: perturbed(d.robot, mass_factor=x),
    "attachment offset": lambda d, x: perturbed(d.robot, attachment_offset=x),
    "moment arm error": lambda d, x: perturbed(d.robot, moment_arm_error=x),
    "near": lambda _, x: SliceOptions(near=x),
    "stop": lambda _, x: SliceOptions(stop=x),
    "wrench": lambda _, x: SliceOptions(wrench=np.full(6, x)),
    "noise of forces": lambda _, x: BaseMeasurement.of(np.zeros((6, 6)), x, 1.0),
    "noise of moments": lambda _, x: BaseMeasurement.of(np.zeros((6, 6)), 1.0, x),
}


def _simulate(dynamics, times=(0.0, 0.01), **settings):
    start = np.zeros(2)
    return ForwardDynamics(dynamics).simulate(start, start, times, np.full(4, 20.0), **settings)


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_analyses(dynamics, name, value):
    with pytest.raises(CardsError):
        SETTINGS[name](dynamics, value)


@pytest.mark.parametrize("name", METHODS)
def test_limits_of_tensions(name):
    for low, high in ((math.nan, 1.0), (0.0, math.nan), (math.inf, math.inf), (-math.inf, 1.0)):
        with pytest.raises(CardsError):
            make_tension_distribution(name, np.array([low, 0.0]), np.array([high, 1.0]), 1)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_number_among_the_options_of_conditions(condition):
    group = CONDITIONS[condition].options
    for name, value in group().to_json().items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        for bad in NOT_FINITE:
            with pytest.raises(CardsError, match=f"option '{name}'"):
                group.from_json({name: bad})


def test_an_integration_that_would_take_years_is_refused(dynamics):
    with pytest.raises(CardsError, match=r"1e\+12 steps of 0\.001 s .* at most 100000 s"):
        _simulate(dynamics, times=[0.0, 1e9])
    assert pytest.approx(1e5) == MOST_STEPS * 1e-3


def test_what_does_not_fit_into_memory_is_refused(monkeypatch):
    assert 10 * 2**20 < free_memory() < 2**50
    monkeypatch.setattr("cards_core.checks.free_memory", partial(int, 2e9))
    assert most_items(1000.0) == 1_000_000
    check_fits(1e6, 1000.0, "points", "fewer")
    with pytest.raises(CardsError) as caught:
        check_fits(8e9, 1000.0, "points", "at most {most} of them")
    assert str(caught.value) == (
        "8e+09 points take 8 TB of memory; 2 GB are free, of which half may be used "
        "(expected: at most 1000000 of them)"
    )
    with pytest.raises(CardsError):
        check_fits(math.nan, 1.0, "points", "fewer")


def test_shares_have_no_powers_of_ten():
    values = (0.0, 0.123456, 9.99, 99.96, 1234.5, -250.0)
    assert [readable(value) for value in values] == ["0", "0.123", "9.99", "100", "1230", "-250"]
    assert [readable(value, 2) for value in values[2:]] == ["10", "100", "1200", "-250"]
    assert readable(math.nan) == "nan"
    assert size_text(999.9) == "1000 bytes"
    assert describe_margin(0.9999, 1.0) == "1, 100 % of its value at the start"
