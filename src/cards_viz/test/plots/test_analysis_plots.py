"""Plots of point analyses."""

import numpy as np
import pytest

from cards_viz.plots.analyses import Quantity, estimate_figure, over_points
from cards_viz.plots.drawing import MAX_POINTS, save


@pytest.mark.parametrize("n", [2, 5000])
def test_one_row_per_quantity_with_values(n, tmp_path):
    x = np.arange(n, dtype=float)
    quantities = [
        Quantity("tensions", "N", ["a", "b"], np.column_stack([x, -x])),
        Quantity("none", "N", [], np.zeros((n, 0))),
        Quantity("many", "m", [f"m{i}" for i in range(20)], np.full((n, 20), np.nan)),
    ]
    figure = over_points(x, "time [s]", quantities, "id of robot")
    tensions, many = figure.axes
    assert tensions.get_title(loc="left") == "tensions"
    assert [text.get_text() for text in tensions.get_legend().get_texts()] == ["a", "b"]
    assert many.get_legend() is None
    assert many.get_xlabel() == "time [s]"
    assert (tensions.get_ylabel(), many.get_ylabel()) == ("N", "m")
    rising, falling = tensions.lines
    shown = x[:: -(-n // MAX_POINTS)]
    for line, values in ((rising, shown), (falling, -shown)):
        np.testing.assert_array_equal(line.get_xdata(), shown)
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert len(many.lines) == 20
    save(figure, tmp_path / "plot.png")


def test_one_point_has_bars(tmp_path):
    quantities = [
        Quantity("tensions", "N", ["a", "b"], np.array([[3.0, -2.0]])),
        Quantity("unknown", "m", ["c"], np.array([[np.nan]])),
    ]
    figure = over_points(np.zeros(1), "point", quantities, "id of robot")
    tensions, unknown = figure.axes
    assert [bar.get_width() for bar in tensions.patches] == [3.0, -2.0]
    assert [text.get_text() for text in tensions.get_yticklabels()] == ["a", "b"]
    assert (tensions.get_xlabel(), unknown.get_xlabel()) == ("N", "m")
    save(figure, tmp_path / "plot.png")


def test_a_line_that_covers_another_has_gaps():
    x = np.linspace(0.0, 1.0, 50)
    values = np.column_stack([x, x**2, x + 1e-4])
    figure = over_points(x, "time [s]", [Quantity("tensions", "N", list("abc"), values)], "id")
    assert [line.get_linestyle() for line in figure.axes[0].lines] == ["-", "-", "--"]


CONTENT = {
    "robot": "stewart_gough",
    "confidence": 0.95,
    "wrench": [1.0, -2.0, 3.0, 0.1, 0.2, -0.3],
    "interval": [0.5, 0.4, 0.3, 0.05, 0.04, 0.03],
}


def test_a_wrench_has_its_intervals():
    figure = estimate_figure(CONTENT)
    assert figure.get_suptitle() == "stewart_gough: wrench on the plate, 95 % intervals"
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ["force [N]", "moment [N m]"]
    names = [[text.get_text() for text in axes.get_xticklabels()] for axes in figure.axes]
    assert names == [["fx", "fy", "fz"], ["mx", "my", "mz"]]
    for k, axes in enumerate(figure.axes):
        part = slice(3 * k, 3 * k + 3)
        wrench, interval = np.array(CONTENT["wrench"][part]), np.array(CONTENT["interval"][part])
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), wrench)
        ends = np.array([line[:, 1] for line in axes.collections[0].get_segments()])
        np.testing.assert_allclose(ends, np.column_stack([wrench - interval, wrench + interval]))


def test_errors_of_a_study_are_beside_what_is_predicted():
    sigma = [0.5, 1.0, 2.0, 0.1, 0.2, 0.0]
    errors = np.random.default_rng(0).normal(size=(1000, 6)) * sigma
    study = {"errors": errors.tolist(), "predicted_sigma": sigma, "trials": 1000}
    figure = estimate_figure({**CONTENT, "study": study})
    assert "errors of 1000 estimates" in figure.get_suptitle()
    labels = [axes.get_xlabel().removeprefix("error of ") for axes in figure.axes]
    assert labels == ["fx [N]", "fy [N]", "fz [N]", "mx [N m]", "my [N m]", "mz [N m]"]
    for axes, s in zip(figure.axes[:5], sigma, strict=False):
        curve = axes.lines[0]
        assert curve.get_ydata().max() == pytest.approx(1.0 / (s * np.sqrt(2.0 * np.pi)), rel=1e-3)
        area = sum(bar.get_height() * bar.get_width() for bar in axes.patches)
        assert area == pytest.approx(1.0)
    # what has no error has no distribution
    assert not figure.axes[5].patches
    assert len(figure.axes[5].lines) == 1


def test_nothing_to_draw():
    assert not over_points(np.zeros(1), "point", [], "nothing").axes
