"""Plots of point analyses."""

import numpy as np
import pytest

from cards_viz.plots.analyses import Quantity, over_points
from cards_viz.plots.drawing import save


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
    save(figure, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


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


def test_nothing_to_draw():
    assert not over_points(np.zeros(1), "point", [], "nothing").axes
