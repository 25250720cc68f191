"""Legends of live charts."""

from cards_viz.pages.widgets import UNFOLDED, _legend_html


def test_long_legends_are_folded_away():
    names = [f"cable_{i}" for i in range(UNFOLDED + 1)]
    short, long = _legend_html(names[:-1], "grey: desired"), _legend_html(names)
    assert "<details>" not in short
    assert "<details><summary" in long
    assert f"{len(names)} curves</summary>" in long
    assert all(f"{name}</span>" in long for name in names)
    assert "grey: desired" in short
