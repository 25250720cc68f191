"""Live plots of the browser view: coordinates, tracking error, tensions over the last seconds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import viser
from viser import uplot

from cards_core.typing import Array
from cards_viz.line_colors import DESIRED, LINE_COLORS
from cards_viz.snapshot import Snapshot


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

        A time before the last one starts anew (the simulation was reset), the same time replaces
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


def legend_html(names: Sequence[str], note: str = "") -> str:
    """Return a one-line legend: a coloured dot and a name for each series."""
    items = "".join(
        f'<span style="white-space:nowrap;margin-right:9px">'
        f'<span style="display:inline-block;width:9px;height:9px;border-radius:5px;'
        f'background:{LINE_COLORS[i % len(LINE_COLORS)]};margin-right:3px"></span>{name}</span>'
        for i, name in enumerate(names)
    )
    tail = f'<span style="color:#888">{note}</span>' if note else ""
    return f'<div style="font-size:11px;line-height:1.45;padding:0 10px">{items}{tail}</div>'


class LivePlot:
    """One chart with its legend; ``names`` solid, their first ``dashed`` also as grey lines."""

    def __init__(
        self,
        gui: viser.GuiApi,
        title: str,
        names: Sequence[str],
        *,
        with_desired: bool = False,
        height: int = 155,
    ) -> None:
        self.names = tuple(names)
        self._desired = len(names) if with_desired else 0
        self._history = History(len(names) + self._desired)
        series: list[uplot.Series] = [{"label": "time [s]"}]
        # desired first: actual values are drawn over them
        for name in self.names[: self._desired]:
            series.append({"label": f"{name} desired", "stroke": DESIRED, "width": 3.0})
        for i, name in enumerate(self.names):
            color = LINE_COLORS[i % len(LINE_COLORS)]
            series.append({"label": name, "stroke": color, "width": 1.4})
        axis: uplot.Axis = {
            "stroke": "#555",
            "font": "11px system-ui, sans-serif",
            "grid": {"stroke": "#ececec", "width": 1},
            "ticks": {"stroke": "#d5d5d5", "width": 1, "size": 4},
        }
        # not empty: a page that draws a chart without a time once never finds its scale again
        blank = (np.array([0.0, 1.0]), *(np.full(2, np.nan) for _ in series[1:]))
        self._legend = gui.add_html(
            f'<div style="font-weight:600;font-size:12.5px;padding:2px 10px">{title}</div>'
            + legend_html(self.names, "grey: desired" if with_desired else "")
        )
        self._plot = gui.add_uplot(
            blank,
            tuple(series),
            scales={"x": {"time": False}, "y": {"auto": True}},
            axes=({**axis, "size": 22, "gap": 1}, {**axis, "size": 52, "gap": 3, "space": 18}),
            legend={"show": False},
            cursor={"show": False},
            height=height,
            padding=(6, 14, 0, 0),
        )

    def append(self, time: float, values: Array, desired: Array | None = None) -> None:
        """Add one row of values, shape (d,), and of desired values, shape (d,)."""
        if self._desired:
            grey = np.full(self._desired, np.nan) if desired is None else desired
            values = np.concatenate([grey, values])
        self._history.append(time, values)

    def draw(self, window: float) -> None:
        """Send the last ``window`` seconds to the browser."""
        columns = self._history.columns(window)
        if columns[0].size:
            self._plot.data = columns

    def remove(self) -> None:
        """Remove chart and legend."""
        self._plot.remove()
        self._legend.remove()


class PlotPanel:
    """Charts of a robot; rebuilt when a controller with other coordinates takes over."""

    def __init__(
        self, gui: viser.GuiApi, joints: Sequence[str], muscles: Sequence[str], window: float
    ) -> None:
        self.window = window
        self._gui = gui
        self._joints = tuple(joints)
        self._muscles = tuple(muscles)
        self._panel = gui.add_panel()
        self._tab = self._panel.add_tab("Plots", viser.Icon.CHART_LINE)
        self._key: tuple[str, ...] | None = None
        self._charts: dict[str, LivePlot] = {}
        self._panel.dock_left()
        self._panel.set_width(390)

    def _build(self, names: Sequence[str], units: Sequence[str]) -> None:
        for chart in self._charts.values():
            chart.remove()
        unit = f" [{units[0]}]" if len(set(units)) == 1 else ""
        small = {"rad": "mrad", "m": "mm"}.get(units[0], "") if len(set(units)) == 1 else ""
        with self._tab:
            self._charts = {}
            if names:
                title = "Position" if unit == " [m]" else "Joints"
                self._charts["tracking"] = LivePlot(
                    self._gui, title + unit, names, with_desired=True
                )
                title = f"Tracking error [{small}]" if small else "Tracking error"
                self._charts["error"] = LivePlot(self._gui, title, names, height=115)
            if tuple(names) != self._joints:
                self._charts["joints"] = LivePlot(
                    self._gui, "Joint coordinates", self._joints, height=140
                )
            if self._muscles:
                self._charts["tension"] = LivePlot(self._gui, "Tension [N]", self._muscles)
        self._scale = 1e3 if small else 1.0

    def append(self, snapshot: Snapshot) -> None:
        """Add the values of a snapshot."""
        names = tuple(snapshot.names) if snapshot.actual is not None else ()
        if names != self._key:
            self._build(names, tuple(snapshot.units) if names else ())
            self._key = names
        t = snapshot.time
        if names and snapshot.actual is not None:
            self._charts["tracking"].append(t, snapshot.actual, snapshot.desired)
            error = snapshot.error
            if error is None or len(error) != len(names):
                error = np.full(len(names), np.nan)
            self._charts["error"].append(t, self._scale * error)
        if "joints" in self._charts:
            self._charts["joints"].append(t, snapshot.q)
        if "tension" in self._charts:
            self._charts["tension"].append(t, snapshot.tensions)

    def draw(self) -> None:
        """Send all charts to the browser."""
        for chart in self._charts.values():
            chart.draw(self.window)
