"""Functions that actuator models are written in: slopes, limits, roots."""

import numpy as np
import pytest
from scipy.optimize import brentq

from cards_core.muscles.actuators.arithmetic import (
    DUAL,
    NUMPY,
    Dual,
    clip,
    increasing_root,
    root_with_unit_slope,
)
from cards_core.muscles.actuators.model import integral

X = np.array([0.3, 0.7, 1.6, 2.4])
SLOPE = np.array([1.0, -2.0, 0.5, 3.0])

EXPRESSIONS = {
    "exp": lambda m, x: m.exp(x),
    "log": lambda m, x: m.log(x),
    "sqrt": lambda m, x: m.sqrt(x),
    "tanh": lambda m, x: m.tanh(x),
    "asinh": lambda m, x: m.asinh(x),
    "minimum": lambda m, x: m.minimum(x * x, 2.0 * x),
    "maximum": lambda m, x: m.maximum(x * x, 2.0 * x),
    "where": lambda m, x: m.where(x > 1.0, x * x * x, 5.0 - x),
    "sum": lambda m, x: 1.0 + x + x + 2.0,
    "difference": lambda m, x: 1.0 - x - (x * x - 3.0),
    "product": lambda m, x: 3.0 * x * (x + 1.0) * 2.0,
    "quotient": lambda m, x: 2.0 / x + x / (1.0 + x * x) + x / 4.0,
    "power": lambda m, x: x**2 + x**5 + x**-1,
    "negative": lambda m, x: -(x * x),
    "below": lambda m, x: m.where(x < 0.7, x, x * x),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_slopes_are_those_of_finite_differences(name):
    expression, h = EXPRESSIONS[name], 1e-6
    found = expression(DUAL, Dual(X, SLOPE))
    np.testing.assert_allclose(found.value, expression(NUMPY, X), rtol=1e-15)
    around = [expression(NUMPY, X + side * h * SLOPE) for side in (1.0, -1.0)]
    inside = X != 0.7 if name == "below" else np.ones(4, bool)
    difference = (around[0] - around[1]) / (2.0 * h)
    np.testing.assert_allclose(found.slope[inside], difference[inside], rtol=1e-7)


def test_arrays_leave_operators_to_numbers_with_slopes():
    x = Dual(X, SLOPE)
    for made, slope in [(X * x, X * SLOPE), (X - x, -SLOPE), (X + x, SLOPE),
                        (X / x, -SLOPE / X)]:  # fmt: skip
        assert isinstance(made, Dual)
        np.testing.assert_allclose(made.slope, slope, rtol=1e-14)


def test_constants_have_no_slope_and_comparisons_are_of_values():
    assert Dual.of(3.0).slope == 0.0
    x = Dual(X, SLOPE)
    assert Dual.of(x) is x
    assert (x < 0.7).tolist() == [True, False, False, False]
    assert (x > Dual(0.7)).tolist() == [False, False, True, True]
    assert (x == 0.7).tolist() == [False, True, False, False]


def test_kinks_have_the_slope_of_the_side_that_is_taken():
    at = Dual(np.array([0.0]), np.array([1.0]))
    assert DUAL.sqrt(at).slope.tolist() == [0.0]
    assert DUAL.maximum(at, 0.0).slope.tolist() == [0.0]
    assert DUAL.minimum(at, 0.0).slope.tolist() == [0.0]
    assert DUAL.maximum(Dual(1e-9, 1.0), 0.0).slope == 1.0


def test_limits_and_which_counts_where_they_cross():
    values = clip(NUMPY, np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), -1.0, 1.0)
    assert values.tolist() == [-1.0, -1.0, 0.0, 1.0, 1.0]
    assert clip(NUMPY, np.array([0.0]), 3.0, 2.0).tolist() == [2.0]


@pytest.mark.parametrize("start", [0.0, 0.5, 3.0])
def test_roots_are_those_of_brents_method(start):
    targets = np.array([0.1, 1.0, 4.0, 19.0])

    def residual(x):
        return np.exp(x) - 1.0 - targets, np.exp(x), np.exp(x)

    found = increasing_root(NUMPY, residual, start + 0.0 * targets, (0.0 * targets, 3.0), 30)
    expected = [brentq(lambda x, t=t: np.exp(x) - 1.0 - t, -1.0, 4.0) for t in targets]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_halleys_step_is_exact_for_a_hyperbola():
    """(x - 0.3)/(1 + x): value/slope alone would overshoot."""

    def residual(x):
        return (x - 0.3) / (1.0 + x), 1.3 / (1.0 + x) ** 2, -2.6 / (1.0 + x) ** 3

    found = increasing_root(NUMPY, residual, np.array([0.5]), (np.array([0.0]), 5.0), 1)
    assert found[0] == pytest.approx(0.3, abs=1e-15)


def test_every_iterate_is_inside_the_bracket_whatever_the_function_does():
    asked = []

    def residual(x):
        asked.append(float(x[0]))
        return x**3 - 0.001, np.full(1, 1e-9), 0.0  # slopes that are far too small

    found = increasing_root(NUMPY, residual, np.array([1.9]), (np.array([0.0]), 2.0), 60)
    assert min(asked) >= 0.0
    assert max(asked) <= 2.0
    assert found[0] == pytest.approx(0.1, abs=1e-9)  # by bisection
    assert len(asked) == 60


@pytest.mark.parametrize("start", [-3.0, 0.0, 5.0])
def test_backward_euler_step_of_a_relaxation(start):
    """X' = -k x^3: x + dt k x^3 = x0 has one root, from wherever it is begun."""
    x0, k = np.array([0.5, 1.0, 2.0]), 30.0

    def residual(x):
        return x - x0 + 0.1 * k * x**3, 1.0 + 0.3 * k * x**2

    def three(x):
        value, slope = residual(x)
        return value, slope, 0.0

    found = root_with_unit_slope(NUMPY, three, start + 0.0 * x0, 60)
    expected = [brentq(lambda x, t=t: x - t + 0.1 * k * x**3, -5.0, 5.0, xtol=1e-15) for t in x0]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_integrals_are_those_of_antiderivatives():
    start, end = np.array([0.0, -1.0, 2.0]), np.array([1.0, 0.5, 2.0])
    found = integral(np.exp, start, end)
    np.testing.assert_allclose(found, np.exp(end) - np.exp(start), rtol=1e-14, atol=1e-15)
    assert integral(lambda x: 3.0 * x**2, np.array([1.0]), 3.0)[0] == pytest.approx(26.0)
