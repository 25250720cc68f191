"""Building blocks of all pages: guarded commands, checkboxes, groups of sliders, live plots."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import viser
from viser import uplot
from viser._messages import HotkeyKey

from cards_core.errors import CardsError
from cards_core.typing import Array
from cards_viz.colors import DESIRED, LINE_COLORS

LOG = logging.getLogger(__name__)

Guard = Callable[[Callable[[], None]], None]
"""Runs a command and shows its refusal."""


def guarded(notify: Callable[[str], None]) -> Guard:
    """Return a function that runs a command and passes the text of a refusal to ``notify``."""

    def run(command: Callable[[], None]) -> None:
        try:
            command()
        except CardsError as error:
            LOG.warning("%s", error)
            notify(str(error))
        except Exception as error:  # a view must survive a host that went away
            LOG.exception("command failed")
            notify(f"command failed: {error}")

    return run


def add_key(
    gui: viser.GuiApi,
    label: str,
    key: HotkeyKey,
    action: Callable[[], None],
    description: str = "",
) -> None:
    """Let a key of the keyboard do something, and list it among the commands of the page.

    Args:
        gui: Of the page.
        label: What it does, in a word or two.
        key: As viser calls it, e.g. ``space``.
        action: What it does.
        description: The same in a sentence.
    """
    command = gui.add_command(label, description=description or None, hotkey=key)
    command.on_trigger(lambda _: action())


class DrawingPanel:
    """Checkboxes for what is drawn."""

    def __init__(self, gui: viser.GuiApi, toggles: Sequence[tuple[str, bool, Any]]) -> None:
        for label, initial, setter in toggles:
            box = gui.add_checkbox(label, initial)
            setter(initial)
            box.on_update(lambda _, box=box, setter=setter: setter(bool(box.value)))


TOUCHED = 0.8
"""Time after the last touch in which a group shows what its user wants, not what is, [s]."""


@dataclass(frozen=True)
class Axis:
    """One slider.

    Attributes:
        label: Shown beside it.
        lower, upper: Its ends, in SI units.
        factor: Shown value by SI value.
        step: In shown units.
        hint: Explains it under the mouse.
        fixed: Whether it shows only.
    """

    label: str
    lower: float
    upper: float
    factor: float
    step: float
    hint: str = ""
    fixed: bool = False

    @property
    def low(self) -> float:
        """Lower end as shown."""
        return self.nearest(self.lower)

    @property
    def high(self) -> float:
        """Upper end as shown."""
        return self.nearest(self.upper)

    def nearest(self, value: float) -> float:
        """Return the shown value nearest to one in SI units: a multiple of the step.

        Rounded to the digits of the step: a page shows all digits that a number has.
        """
        steps = round(self.factor * value / self.step)
        return round(steps * self.step, max(0, math.ceil(-math.log10(self.step)) + 1))


class SliderGroup:
    """Sliders for the entries of one vector.

    A touched slider changes its own entry; the others keep the exact values that were shown
    last, not the rounded values of the sliders.

    Args:
        gui: Where to add the sliders, at the present place of the layout.
        axes: One for each entry.
        send: Called with the whole vector, in SI units, when a user moves a slider.
    """

    def __init__(
        self, gui: viser.GuiApi, axes: Sequence[Axis], send: Callable[[Array], None]
    ) -> None:
        self._axes = tuple(axes)
        self._send = send
        self._touched = -TOUCHED
        self.values = np.array([np.clip(0.0, axis.lower, axis.upper) for axis in axes])
        self.sliders = []
        for i, axis in enumerate(axes):
            slider = gui.add_slider(
                axis.label,
                min=axis.low,
                max=axis.high,
                step=axis.step,
                initial_value=self._rounded(i),
                hint=axis.hint or None,
                disabled=axis.fixed,
            )
            slider.on_update(lambda event, i=i: self._moved(i, event.client is not None))
            self.sliders.append(slider)

    def _rounded(self, i: int) -> float:
        axis = self._axes[i]
        return float(min(max(axis.nearest(float(self.values[i])), axis.low), axis.high))

    def _moved(self, i: int, by_user: bool) -> None:
        # values that we set ourselves are no commands
        if not by_user:
            return
        self._touched = time.monotonic()
        self.values = self.values.copy()
        self.values[i] = float(self.sliders[i].value) / self._axes[i].factor
        self._send(self.values)

    def forget(self) -> None:
        """Follow again at once, e.g. because another control commands the same quantity."""
        self._touched = -TOUCHED

    @property
    def busy(self) -> bool:
        """Whether a user has just moved one of them."""
        return time.monotonic() - self._touched < TOUCHED

    def follow(self, values: Array) -> None:
        """Show values, shape (a,), SI units, unless a user is moving a slider."""
        if self.busy or not np.isfinite(values).all():
            return
        self.values = np.array(values, dtype=float)
        for i, slider in enumerate(self.sliders):
            shown = self._rounded(i)
            if abs(shown - slider.value) > 0.5 * self._axes[i].step:
                slider.value = shown


class History:
    """The last seconds of a few series, oldest first.

    Args:
        width: Number of series.
        capacity: Largest number of rows.
    """

    def __init__(self, width: int, capacity: int = 450) -> None:
        self._rows = np.full((capacity, width + 1), np.nan)
        self._count = 0

    def append(self, time: float, values: Array) -> None:
        """Add a row.

        A time before the last one restarts (the simulation was reset), the same time replaces
        the last row (it is paused).
        """
        rows = self._rows
        if self._count and time < rows[self._count - 1, 0]:
            self._count = 0
        elif self._count and time == rows[self._count - 1, 0]:
            self._count -= 1
        if self._count == len(rows):
            rows[:-1] = rows[1:]
            self._count -= 1
        rows[self._count, 0] = time
        rows[self._count, 1:] = values
        self._count += 1

    def columns(self, window: float) -> tuple[Array, ...]:
        """Return time and series of the last ``window`` seconds."""
        rows = self._rows[: self._count]
        if self._count:
            rows = rows[np.searchsorted(rows[:, 0], rows[-1, 0] - window) :]
        return tuple(np.ascontiguousarray(column) for column in rows.T)


UNFOLDED = 24
"""A legend of more names than this is folded away: it would leave no room for charts."""


def _legend_html(names: Sequence[str], note: str = "") -> str:
    """Return a legend: a coloured dot and a name for each series."""
    items = "".join(
        f'<span style="white-space:nowrap;margin-right:9px">'
        f'<span style="display:inline-block;width:9px;height:9px;border-radius:5px;'
        f'background:{LINE_COLORS[i % len(LINE_COLORS)]};margin-right:3px"></span>'
        f"{escape(name)}</span>"
        for i, name in enumerate(names)
    )
    tail = f'<span style="color:#888">{note}</span>' if note else ""
    if len(names) > UNFOLDED:
        head = f'<summary style="cursor:pointer;color:#555">{len(names)} curves</summary>'
        items = f"<details>{head}{items}</details>"
    return f'<div style="font-size:11px;line-height:1.45;padding:0 10px">{items}{tail}</div>'


PREFIXES = {1e-3: "k", 1.0: "", 1e3: "m", 1e6: "µ", 1e9: "n"}
"""SI prefixes, by the factor from the unit without one."""

PREFIXED = frozenset({"m", "rad", "N", "m/s", "rad/s"})
"""Units that take a prefix; others get a power of ten."""

FINEST_SPAN = 0.01
"""Smallest range of a chart, in its unit: the browser writes three decimals at its ticks."""


def unit_and_factor(unit: str, largest: float, factor: float = 1.0) -> tuple[str, float]:
    """Return the unit in which a quantity is shown, and the factor on its SI values.

    Numbers are shown between about 0.4 and 1000, where three decimals tell ticks apart.

    Args:
        unit: SI unit; empty for a number without one.
        largest: Largest absolute value to show.
        factor: The present one, kept while it will do: a unit that changes all the time cannot be
            read.
    """
    if np.isfinite(largest) and largest > 0.0 and not 0.4 <= largest * factor < 1000.0:
        fitting = [f for f in PREFIXES if largest * f < 1000.0]
        factor = min(
            (f for f in fitting if largest * f >= 0.4), default=max(fitting, default=1e-3)
        )
    if unit in PREFIXED:
        return PREFIXES[factor] + unit, factor
    power = {1e-3: "10³", 1.0: "", 1e3: "10⁻³", 1e6: "10⁻⁶", 1e9: "10⁻⁹"}[factor]
    return " ".join(filter(None, (power, unit))), factor


class LivePlot:
    """One chart with its legend: values as coloured lines, desired values as grey ones.

    Args:
        gui: Where to add it, at the present place of the layout.
        title: Without the unit.
        names: Of the series.
        unit: SI unit of the values; shown with the prefix that fits them.
        with_desired: Whether there is a desired value for each.
        height: In pixels.
    """

    def __init__(
        self,
        gui: viser.GuiApi,
        title: str,
        names: Sequence[str],
        *,
        unit: str = "",
        with_desired: bool = False,
        height: int = 165,
    ) -> None:
        self.names = tuple(names)
        self._title, self._unit = title, unit
        self._shown, self._factor = unit_and_factor(unit, 0.0)
        self._desired = len(names) if with_desired else 0
        self._history = History(len(names) + self._desired)
        series: list[uplot.Series] = [{"label": "time [s]"}]
        # desired first: actual values are drawn over them
        for name in self.names[: self._desired]:
            series.append({"label": f"{name} desired", "stroke": DESIRED, "width": 3.0})
        for i, name in enumerate(self.names):
            color = LINE_COLORS[i % len(LINE_COLORS)]
            series.append({"label": name, "stroke": color, "width": 1.4})
        # not drawn: keeps the range from getting finer than the numbers at the ticks
        series.append({"label": "range", "stroke": "transparent", "width": 0.0})
        axis: uplot.Axis = {
            "stroke": "#555",
            "font": "11px system-ui, sans-serif",
            "grid": {"stroke": "#ececec", "width": 1},
            "ticks": {"stroke": "#d5d5d5", "width": 1, "size": 4},
        }
        # not empty: a page that draws a chart without a time once never finds its scale again
        blank = (np.array([0.0, 1.0]), *(np.full(2, np.nan) for _ in series[1:]))
        self._legend = gui.add_html("")
        self._write_legend()
        self._plot = gui.add_uplot(
            blank,
            tuple(series),
            scales={"x": {"time": False}, "y": {"auto": True}},
            axes=(
                {
                    **axis,
                    "size": 20,
                    "gap": 1,
                    "label": "time [s]",
                    "labelSize": 13,
                    "labelFont": "10px system-ui, sans-serif",
                    "labelGap": -2,
                },
                {**axis, "size": 52, "gap": 3, "space": 18},
            ),
            legend={"show": False},
            cursor={"show": False},
            height=height,
            padding=(6, 14, 0, 0),
        )

    def append(self, time: float, values: Array, desired: Array | None = None) -> None:
        """Add one row of values.

        Args:
            time: [s].
            values: Shape (d,), in the unit of the plot.
            desired: Desired values, same shape; None: a gap in their lines.
        """
        if self._desired:
            grey = np.full(self._desired, np.nan) if desired is None else desired
            values = np.concatenate([grey, values])
        self._history.append(time, values)

    def draw(self, window: float) -> None:
        """Send the last ``window`` seconds to the browser."""
        time, *rows = self._history.columns(window)
        if not time.size:
            return
        values = np.array(rows).reshape(len(rows), -1)
        finite = values[np.isfinite(values)]
        largest = float(np.abs(finite).max()) if finite.size else 0.0
        shown, self._factor = unit_and_factor(self._unit, largest, self._factor)
        if shown != self._shown:
            self._shown = shown
            self._write_legend()
        values = self._factor * values
        extent = np.full(len(time), np.nan)
        if finite.size and len(time) > 1:
            low, high = self._factor * float(finite.min()), self._factor * float(finite.max())
            missing = max(FINEST_SPAN - (high - low), 0.0)
            extent[0], extent[-1] = low - 0.5 * missing, high + 0.5 * missing
        self._plot.data = (time, *values, extent)

    def _write_legend(self) -> None:
        unit = f" [{self._shown}]" if self._shown else ""
        self._legend.content = (
            '<div style="font-weight:600;font-size:12.5px;padding:2px 10px">'
            f"{escape(self._title + unit)}</div>"
            + _legend_html(self.names, "grey: desired" if self._desired else "")
        )

    def remove(self) -> None:
        """Remove chart and legend."""
        self._plot.remove()
        self._legend.remove()
