"""Titles of the charts beside a robot on its page."""

from unittest.mock import MagicMock

import pytest

from cards_core.formats import load
from cards_viz.labels import joint_labels
from cards_viz.muscles import panels


@pytest.mark.parametrize(
    ("robot", "titles"),
    [
        ("roboy_arm", ["Joints"]),
        ("prism_3", ["Joints", "Joints, quaternions"]),
    ],
)
def test_charts_of_several_units_have_titles_of_their_own(monkeypatch, robot, titles):
    made = []
    monkeypatch.setattr(panels, "LivePlot", lambda _, title, *args, **kw: made.append(title))
    labels = joint_labels(load(robot).tree)
    panels.PlotPanel(MagicMock(), labels, [], 10.0)
    assert made == titles
