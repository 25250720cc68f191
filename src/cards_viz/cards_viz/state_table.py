"""The actuator states in the browser view, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import viser

from cards_viz.actuator_states import split, title, unit
from cards_viz.snapshot import Snapshot


class StateTable:
    """Shows the actuator states below the tension sliders, where there are any."""

    def __init__(self, gui: viser.GuiApi) -> None:
        self._html = gui.add_html("", visible=False)

    def draw(self, snapshot: Snapshot) -> None:
        """Show the states of a snapshot."""
        self._html.visible = bool(snapshot.states)
        if snapshot.states:
            self._html.content = states_html(snapshot.states)


def states_html(states: Mapping[str, float]) -> str:
    """Return one table for each kind of actuator, with a row for each muscle, as HTML.

    Args:
        states: Values as published, by name.
    """
    muscles: dict[str, dict[str, float]] = {}
    for name, value in states.items():
        muscle, state = split(name)
        muscles.setdefault(muscle, {})[state] = value
    kinds: dict[tuple[str, ...], list[str]] = {}
    for muscle, values in muscles.items():
        kinds.setdefault(tuple(values), []).append(muscle)
    tables = [
        _table(columns, {name: muscles[name] for name in rows}) for columns, rows in kinds.items()
    ]
    return f'<div style="padding:4px 12px;overflow-x:auto;font-size:11px">{"".join(tables)}</div>'


def _table(columns: Sequence[str], rows: Mapping[str, Mapping[str, float]]) -> str:
    side = "padding:1px 0 1px 8px;text-align:right;font-variant-numeric:tabular-nums"
    head = "".join(
        f'<th style="{side};font-weight:500;color:#868e96;vertical-align:bottom">'
        f"{escape(title(state))}{f'<br>[{unit(state)[0]}]' if unit(state)[0] else ''}</th>"
        for state in columns
    )
    body = "".join(
        f'<tr><td style="white-space:nowrap">{escape(muscle)}</td>'
        + "".join(
            f'<td style="{side}">{_number(unit(state)[1] * values[state])}</td>'
            for state in columns
        )
        + "</tr>"
        for muscle, values in rows.items()
    )
    return (
        '<table style="border-collapse:collapse;width:100%;margin-bottom:8px">'
        f"<tr><th></th>{head}</tr>{body}</table>"
    )


def _number(value: float) -> str:
    """Write four digits, fewer for small numbers: the last ones would only flicker."""
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "∞"
    return f"{value:.0f}" if abs(value) >= 1000.0 else f"{value:.2f}"
