import numpy as np

from cards_viz.labels import by_state, split_state, state_unit
from cards_viz.muscles.panels import states_html
from cards_viz.plots.runs import actuator_states

NAMES = ("biceps/activation", "biceps/fiber_length", "m/1/activation", "spring/current")


def test_names():
    assert split_state("m/1/activation") == ("m/1", "activation")
    assert by_state(NAMES) == {
        "activation": {"biceps": 0, "m/1": 2},
        "fiber_length": {"biceps": 1},
        "current": {"spring": 3},
    }
    assert state_unit("winding_temperature") == ("°C", 1.0)
    assert state_unit("pressure") == ("kPa", 1e-3)
    assert state_unit("activation") == ("", 1.0)


def test_every_published_state_has_the_unit_of_its_kind():
    """A state whose name ends in a word that is not known here would appear without unit."""
    from cards_core.muscles.actuators import cable, hill, pneumatic, series_elastic

    published = {
        state
        for module in (cable, hill, pneumatic, series_elastic)
        for item in vars(module).values()
        for state in getattr(item, "published", ())
    }
    assert {"activation", "fiber_length", "pressure", "winding_temperature"} <= published
    assert {state for state in published if not state_unit(state)[0]} == {"activation"}


def test_one_chart_for_each_state_in_its_unit():
    time = np.linspace(0.0, 1.0, 50)
    values = np.random.default_rng(1).random((50, 4))
    figure = actuator_states(time, values, NAMES)
    labels = [axis.get_ylabel() for axis in figure.axes]
    assert labels == ["activation", "fiber length [mm]", "current [A]"]
    over, under, _ = figure.axes
    np.testing.assert_array_equal(over.lines[1].get_ydata(), values[:, 2])
    np.testing.assert_allclose(under.lines[0].get_ydata(), 1e3 * values[:, 1])
    # a muscle has the same colour in every chart, and one entry in the legend
    assert over.lines[0].get_color() == under.lines[0].get_color() != over.lines[1].get_color()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["biceps", "m/1", "spring"]


def test_table_groups_muscles_of_a_kind():
    html = states_html(
        {
            "a<b/activation": 0.25,
            "a<b/fiber_length": 0.1234,
            "c/pressure": 250e3,
            "d/activation": np.nan,
            "d/fiber_length": 0.09,
        }
    )
    assert html.count("<table") == 2
    assert html.count("<tr>") == 2 + 3
    for text in ("a&lt;b", "0.25", "123.40", "fiber length<br>[mm]", "250.00", "[kPa]", "NaN"):
        assert text in html
    assert html.index("a&lt;b") < html.index(">d<") < html.index(">c<")
