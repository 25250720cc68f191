"""Units of charts: prefixes that fit, ticks that differ, plots that keep what they had."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("viser", reason="viser is not installed")

from cards_viz.labels import natural_order
from cards_viz.pages.widgets import FINEST_SPAN, LivePlot, unit_and_factor


@pytest.mark.parametrize(
    ("unit", "largest", "shown"),
    [
        ("m", 2.0, "m"), ("m", 0.05, "mm"), ("m", 3e-5, "µm"), ("m", 2e-8, "nm"), ("m", 0.0, "m"),
        ("rad", 0.01, "mrad"), ("N", 5000.0, "kN"), ("N", 250.0, "N"), ("1/m", 5e-4, "10⁻³ 1/m"),
        ("", 2e-5, "10⁻⁶"), ("m", 1e-15, "nm"), ("N", 1e9, "kN"), ("m", np.nan, "m"),
    ],
)  # fmt: skip
def test_unit(unit, largest, shown):
    assert unit_and_factor(unit, largest)[0] == shown


@pytest.mark.parametrize("exponent", np.arange(-8.0, 2.9, 0.05))
def test_numbers_have_neither_too_many_nor_too_few_digits(exponent):
    _, factor = unit_and_factor("m", 10.0**exponent)
    assert 0.4 <= 10.0**exponent * factor < 1000.0


def test_a_unit_does_not_flicker():
    """Between two prefixes both will do: the present one stays."""
    _, milli = unit_and_factor("m", 0.3)
    assert milli == 1e3
    assert unit_and_factor("m", 0.9, milli) == ("mm", 1e3)
    assert unit_and_factor("m", 0.9, 1.0) == ("m", 1.0)
    assert unit_and_factor("m", 1.1, milli) == ("m", 1.0)


class Gui:
    def add_html(self, content):
        return SimpleNamespace(content=content)

    def add_uplot(self, data, series, **_):
        assert len(data) == len(series)
        return SimpleNamespace(data=data)


def test_a_chart_says_its_unit_and_shows_values_in_it():
    chart = LivePlot(Gui(), "Error", ["a"], unit="m", with_desired=True)
    assert "Error [m]" in chart._legend.content
    for k in range(3):
        chart.append(0.1 * k, np.array([1e-6 * k]), np.array([2e-6]))
    chart.draw(10.0)
    assert "Error [µm]" in chart._legend.content
    time, desired, actual, _ = chart._plot.data
    np.testing.assert_allclose(time, [0.0, 0.1, 0.2])
    np.testing.assert_allclose(desired, 2.0)
    np.testing.assert_allclose(actual, [0.0, 1.0, 2.0])


@pytest.mark.parametrize("values", [[0.0, 0.0, 0.0], [0.5, 0.5 + 1e-9, 0.5], [-3.0, -3.0, -3.0]])
def test_ticks_can_be_told_apart(values):
    """What hardly moves has a range in which three decimals differ, around it."""
    chart = LivePlot(Gui(), "x", ["a"], unit="m")
    for k, value in enumerate(values):
        chart.append(float(k), np.array([value]))
    chart.draw(10.0)
    _, shown, extent = chart._plot.data
    low, high = np.nanmin(extent), np.nanmax(extent)
    assert high - low >= FINEST_SPAN - 1e-12
    assert low <= shown.min() <= shown.max() <= high


def test_a_chart_of_nothing_known_stays_empty():
    chart = LivePlot(Gui(), "x", ["a"])
    chart.draw(10.0)
    chart.append(0.0, np.array([np.nan]))
    chart.draw(10.0)
    assert np.isnan(chart._plot.data[1]).all()


def test_names_in_the_order_of_people():
    names = ["motor10", "motor9", "motor0", "a", "motor9b"]
    assert [names[i] for i in natural_order(names)] == [
        "a", "motor0", "motor9", "motor9b", "motor10",
    ]  # fmt: skip
