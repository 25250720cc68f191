"""The picture of the muscles' functions says what the result says."""

import numpy as np
import pytest

from cards_core.analysis.cable_function import analyse_cable_function
from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_viz.plots.analyses import cable_function
from cards_viz.plots.drawing import save


@pytest.fixture(scope="module")
def result():
    dynamics = make_dynamics(load("planar_2r"))
    rng = np.random.default_rng(0)
    q = np.array([dynamics.tree.random(rng) for _ in range(50)])
    return analyse_cable_function(dynamics, q, groups={"pair": ["cable_1", "cable_2"]})


def test_cells_have_the_numbers(result, tmp_path):
    figure = cable_function(result)
    save(figure, tmp_path / "plot.png")
    left, middle, right = figure.axes
    static = result.necessity["static"]
    texts = [text.get_text() for text in middle.texts]
    assert len(texts) == 5 * 2
    assert texts[::2] == [f"{100 * lost / static.feasible:.3g} %" for lost in static.lost]
    assert [text.get_text() for text in middle.get_yticklabels()] == list(result.groups)
    arms = [text.get_text() for text in left.texts]
    assert arms == [f"{1e3 * x:.3g}" for x in result.arms.mean_size.ravel()]
    assert len(right.texts) == 4 * 3
    image = left.images[0].get_array()
    balance = (result.arms.positive - result.arms.negative) / 50
    np.testing.assert_allclose(image, balance)


def test_nothing_to_show(result, tmp_path):
    """Poses of which none can be held, and none at all: the tables are there, without numbers."""
    dynamics = make_dynamics(load("planar_2r"))
    for q in (np.zeros((0, 2)), np.full((3, 2), np.nan)):
        empty = analyse_cable_function(dynamics, q)
        figure = cable_function(empty)
        assert figure.get_suptitle() == f"Functions of the muscles of planar_2r, {len(q)} poses"
        columns = (
            ["joint_1 [mm]", "joint_2 [mm]"],
            list(empty.necessity),
            ["needed", "exchangeable", "idle"],
        )
        for axes, names in zip(figure.axes, columns, strict=True):
            assert [text.get_text() for text in axes.get_xticklabels()] == names
            assert [text.get_text() for text in axes.get_yticklabels()] == list(empty.groups)
        arms, lost, held = figure.axes
        assert {text.get_text() for text in arms.texts} == {""}
        assert (arms.images[0].get_array() == 0.0).all()
        for axes in (lost, held):
            assert {text.get_text() for text in axes.texts} == {"-"}
            assert axes.images[0].get_array().mask.all()
        save(figure, tmp_path / "plot.png")
