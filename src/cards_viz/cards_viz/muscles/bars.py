"""The table of muscles on the page: a bar each for tension, released length and temperature.

A column is there if the run has what it shows. With two runs every cell has a bar for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import viser

from cards_core.robot.elements import Muscle
from cards_core.typing import Array
from cards_viz.colors import NOT_A_NUMBER, TensionScale, css, css_gradient, nice_ceiling
from cards_viz.labels import TEMPERATURE_STATES, natural_order
from cards_viz.muscles.interface import BarLimits, MuscleSnapshot

COLD = 20.0
"""Temperature at which its bar is empty, [degC]."""

RELEASED_COLOR = "#74a9d8"
COOL_COLOR, SOFT_COLOR, HARD_COLOR = "#69b07a", "#f08c00", "#e03131"
MARK_COLOR = "#111111"

NUMBER_WIDTH = 25
"""Of the number beside a bar, [px]."""


@dataclass(frozen=True, eq=False)
class Bars:
    """The bars of one run in a column, one for each muscle.

    Attributes:
        values: Shape (m,), in the unit of the column; NaN: no bar.
        colors: CSS colours, length m.
        marks: Where a line stands across the bar, shape (m,), None without lines.
    """

    values: Array
    colors: Sequence[str]
    marks: Array | None = None


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the table.

    Attributes:
        title: With the unit.
        low, high: Values at which a bar is empty and full.
        digits: Decimals of the numbers.
        runs: Bars of each run.
        scale: CSS background of the strip under the title.
        note: What the marks are, if there are any.
    """

    title: str
    low: float
    high: float
    digits: int
    runs: Sequence[Bars]
    scale: str
    note: str = ""

    def fraction(self, values: Array) -> Array:
        """Return how far bars are filled, 0..1."""
        part = (np.asarray(values, dtype=float) - self.low) / max(self.high - self.low, 1e-12)
        return np.asarray(np.clip(np.nan_to_num(part), 0.0, 1.0))


class MuscleTable:
    """The table on a page.

    Args:
        gui: Where to add it, at the present place of the layout.
        muscles: Of the robot.
        scale: Range of the tensions.
        runs: What the runs are called where there are several.
    """

    def __init__(
        self,
        gui: viser.GuiApi,
        muscles: Sequence[Muscle],
        scale: TensionScale,
        runs: Sequence[str] = (),
    ) -> None:
        self._names = [muscle.name for muscle in muscles]
        self._order = natural_order(self._names)
        self._scale = scale
        self._runs = tuple(runs)
        self._released = 0.0  # largest so far, [m]
        self._html = gui.add_html("")

    def draw(self, *snapshots: MuscleSnapshot) -> None:
        """Show a snapshot of each run."""
        if not self._names:
            return
        for snapshot in snapshots:
            if snapshot.released is not None and np.isfinite(snapshot.released).any():
                self._released = max(self._released, float(np.nanmax(snapshot.released)))
        columns = columns_of(self._names, snapshots, self._scale, self._released)
        self._html.content = table_html(self._names, columns, self._runs, self._order)


def columns_of(
    names: Sequence[str], snapshots: Sequence[MuscleSnapshot], scale: TensionScale, released: float
) -> list[Column]:
    """Return the columns for what the runs have.

    Args:
        names: Of the muscles, length m.
        snapshots: One of each run.
        scale: Range of the tensions.
        released: Largest released length so far, [m]; counts where no limit is known.
    """
    columns = [_tension_column(snapshots, scale)]
    if any(snapshot.released is not None for snapshot in snapshots):
        columns.append(_released_column(len(names), snapshots, released))
    temperatures = [temperatures_of(names, snapshot.states) for snapshot in snapshots]
    if any(one is not None for one in temperatures):
        columns.append(_temperature_column(len(names), temperatures, snapshots[0].limits))
    return columns


def _tension_column(snapshots: Sequence[MuscleSnapshot], scale: TensionScale) -> Column:
    runs = [
        Bars(one.tensions, [css(color) for color in scale.colors(one.tensions)], one.necessary)
        for one in snapshots
    ]
    note = "necessary tension" if any(one.necessary is not None for one in snapshots) else ""
    return Column("tension [N]", scale.low, scale.high, 1, runs, css_gradient(), note)


def _released_column(count: int, snapshots: Sequence[MuscleSnapshot], released: float) -> Column:
    known = [one.limits.released for one in snapshots if one.limits.released is not None]
    high = max(known, default=nice_ceiling(max(released, 1e-4)))
    runs = [
        Bars(
            np.full(count, np.nan) if one.released is None else 1e3 * one.released,
            [RELEASED_COLOR] * count,
        )
        for one in snapshots
    ]
    return Column("released [mm]", 0.0, 1e3 * high, 2, runs, RELEASED_COLOR)


def _temperature_column(
    count: int, temperatures: Sequence[Array | None], limits: BarLimits
) -> Column:
    runs = []
    for values in temperatures:
        shown = np.full(count, np.nan) if values is None else values
        colors = [temperature_color(value, limits) for value in shown]
        runs.append(Bars(shown, colors, np.full(count, limits.soft)))
    soft = 100.0 * (limits.soft - COLD) / max(limits.hard - COLD, 1e-9)
    scale = (
        f"linear-gradient(to right, {COOL_COLOR} {soft:.0f}%, {SOFT_COLOR} {soft:.0f}%, "
        f"{SOFT_COLOR} 96%, {HARD_COLOR} 96%)"
    )
    note = f"limit, {limits.soft:g} °C"
    return Column("motor [°C]", COLD, limits.hard, 1, runs, scale, note)


def temperature_color(value: float, limits: BarLimits) -> str:
    """Return the CSS colour of a temperature [degC]: below, above the soft, above the hard limit.

    Args:
        value: The temperature; NaN is grey.
        limits: Where the colours change.
    """
    if not np.isfinite(value):
        return css(NOT_A_NUMBER)
    if value >= limits.hard:
        return HARD_COLOR
    return SOFT_COLOR if value >= limits.soft else COOL_COLOR


def temperatures_of(names: Sequence[str], states: Mapping[str, float]) -> Array | None:
    """Return the temperature of each muscle's motor, shape (m,), [degC]; NaN where it has none.

    Args:
        names: Of the muscles, length m.
        states: Actuator states by name. The winding's temperature counts, the housing's where the
            winding's is not known.

    Returns:
        None if no muscle has a temperature.
    """
    out = np.full(len(names), np.nan)
    found = False
    for i, name in enumerate(names):
        for state in TEMPERATURE_STATES:
            value = states.get(f"{name}/{state}")
            if value is not None:
                found = True
                if np.isfinite(value):
                    out[i] = value
                    break
    return out if found else None


def table_html(
    names: Sequence[str],
    columns: Sequence[Column],
    runs: Sequence[str] = (),
    order: Sequence[int] | None = None,
) -> str:
    """Return the table as HTML: a row for each muscle, a stacked bar in each cell for each run.

    Args:
        names: Of the muscles.
        columns: Of the table.
        runs: What they are called, where there are two.
        order: Of the rows; default: that of the names.
    """
    head = "".join(_head(column) for column in columns)
    rows = []
    for i in range(len(names)) if order is None else order:
        name = names[i]
        cells = "".join(_cell(column, i) for column in columns)
        line = "#f1f3f5" if len(columns[0].runs) > 1 else "transparent"
        rows.append(
            f'<tr style="border-top:1px solid {line}">'
            f'<td style="white-space:nowrap;width:1%;padding-right:3px">{escape(name)}</td>'
            f"{cells}</tr>"
        )
    legend = " &nbsp; ".join(
        f'<span style="white-space:nowrap"><b style="color:{MARK_COLOR}">│</b> '
        f"{escape(column.title.split(' ')[0])}: {escape(column.note)}</span>"
        for column in columns
        if column.note
    )
    if runs:
        legend = f"upper bar {escape(runs[0])}, lower bar {escape(runs[1])} &nbsp; {legend}"
    foot = f'<div style="color:#868e96;margin-top:5px">{legend}</div>' if legend else ""
    return (
        '<div style="padding:0 12px;font-size:11px;line-height:1.2">'
        '<table style="border-collapse:collapse;width:100%"><tr><th></th>'
        f"{head}</tr>{''.join(rows)}</table>{foot}</div>"
    )


def _head(column: Column) -> str:
    return (
        '<th style="font-weight:500;color:#868e96;padding:0 0 3px 5px">'
        f'<div style="white-space:nowrap">{escape(column.title)}</div>'
        f'<div style="height:4px;border-radius:2px;margin-right:{NUMBER_WIDTH}px;'
        f'background:{column.scale}"></div>'
        '<div style="display:flex;justify-content:space-between;font-size:10px;font-weight:400">'
        f"<span>{column.low:g}</span>"
        f'<span style="margin-right:{NUMBER_WIDTH}px">{column.high:g}</span></div></th>'
    )


def _number(value: float, digits: int) -> str:
    """Return a number of about three digits: further ones would only flicker."""
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.{digits}f}"


def _cell(column: Column, row: int) -> str:
    bars = []
    height = 15 if len(column.runs) == 1 else 11  # [px]
    for run in column.runs:
        value = float(run.values[row])
        missing = not np.isfinite(value)
        fill = mark = ""
        if not missing:
            part = 100.0 * float(column.fraction(run.values[row]))
            fill = (
                f'<span style="position:absolute;left:0;top:0;bottom:0;width:{part:.1f}%;'
                f'border-radius:2px;background:{run.colors[row]}"></span>'
            )
            if run.marks is not None and np.isfinite(run.marks[row]):
                place = 100.0 * float(column.fraction(run.marks[row]))
                mark = (
                    f'<span style="position:absolute;left:calc({place:.1f}% - 1px);top:0;bottom:0;'
                    f'width:2px;background:{MARK_COLOR}"></span>'
                )
        text = "–" if missing else _number(value, column.digits)
        bars.append(
            f'<div style="display:grid;grid-template-columns:1fr {NUMBER_WIDTH}px;'
            f'align-items:center;height:{height}px">'
            f'<span style="position:relative;height:{height - 3}px;background:#eef0f2;'
            f'border-radius:2px">{fill}{mark}</span>'
            f'<span style="text-align:right;font-size:10px;line-height:{height}px;'
            f'font-variant-numeric:tabular-nums">{text}</span></div>'
        )
    return f'<td style="padding:0 0 0 5px">{"".join(bars)}</td>'
