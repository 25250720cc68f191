"""Moment arms over the coordinates of a robot, as charts that change while a point is dragged."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import viser
from viser import uplot

from cards_core.editing.live_analysis import LiveResult
from cards_core.robot.model import Tree
from cards_core.typing import Array
from cards_viz.colors import LINE_COLORS, css
from cards_viz.editor.scene import SELECTED

MOST = 6
"""Charts at once: with more coordinates, those about which the selected muscle has an arm."""

MOST_CURVES = 16
"""Curves in a chart; the selected muscle is always one of them."""

NO_ARM = 1e-6
"""Moment arm that counts as none, [m] or [1]."""


class ArmCharts:
    """A chart for each coordinate: the moment arm of every muscle, the selected one in magenta.

    Args:
        gui: Of the page.
        tree: Coordinates of the robot.
        height: Of a chart, [px].
    """

    def __init__(self, gui: viser.GuiApi, tree: Tree, height: int = 118) -> None:
        self._gui, self._tree, self._height = gui, tree, height
        turning = np.zeros(tree.nv, dtype=bool)
        for node in tree.nodes:
            turning[node.v : node.v + node.nv] = node.kind != "prismatic"
        self._turning = turning
        self._folder = gui.add_folder(None)
        self._shown: tuple[tuple[int, ...], int] = ((), 0)
        self._charts: list[tuple[Any, Any]] = []
        self._drawn: tuple[list[int], list[str], int | None] | None = None

    def draw(self, result: LiveResult, selected: str | None) -> None:
        """Show the curves of a result."""
        names = [muscle.name for muscle in result.robot.muscles]
        chosen = names.index(selected) if selected in names else None
        columns = self._columns(result, chosen)
        curves = list(range(len(names)))[:MOST_CURVES]
        if chosen is not None and chosen not in curves:
            curves[-1] = chosen
        if (columns, len(curves)) != self._shown:
            self._build(columns, len(curves))
        order = [i for i in curves if i != chosen]
        order += [] if chosen is None else [chosen]
        for column, (title, chart) in zip(columns, self._charts, strict=True):
            factor, scale = (180.0 / np.pi, 1e3) if self._turning[column] else (1e3, 1.0)
            rows = [scale * result.arms[i, column] for i in order]
            title.content = self._title(result, column, chosen)
            if self._drawn != (order, names, chosen):  # the browser makes a new chart for these
                chart.series = self._series(order, names, chosen)
            chart.data = (factor * result.values[column], *rows, *self._range(rows))
        self._drawn = order, names, chosen

    def _columns(self, result: LiveResult, chosen: int | None) -> tuple[int, ...]:
        count = self._tree.nv
        if count <= MOST:
            return tuple(range(count))
        arms = np.abs(result.arms).max(axis=2)
        size = arms.max(axis=0, initial=0.0) if chosen is None else arms[chosen]
        crossed = [k for k in range(count) if size[k] > NO_ARM]
        return tuple((crossed or list(range(count)))[:MOST])

    def _build(self, columns: tuple[int, ...], curves: int) -> None:
        for title, chart in self._charts:
            title.remove()
            chart.remove()
        self._charts = []
        axis: uplot.Axis = {
            "stroke": "#555",
            "font": "11px system-ui, sans-serif",
            "grid": {"stroke": "#ececec", "width": 1},
            "ticks": {"stroke": "#d5d5d5", "width": 1, "size": 4},
        }
        with self._folder:
            for _ in columns:
                title = self._gui.add_html("")
                blank = (np.array([0.0, 1.0]), *(np.full(2, np.nan) for _ in range(curves + 1)))
                chart = self._gui.add_uplot(
                    blank,
                    self._series(list(range(curves)), [""] * curves, None),
                    scales={"x": {"time": False}, "y": {"auto": True}},
                    axes=({**axis, "size": 20, "gap": 1}, {**axis, "size": 46, "gap": 3}),
                    legend={"show": False},
                    cursor={"show": False},
                    height=self._height,
                    padding=(6, 14, 0, 0),
                )
                self._charts.append((title, chart))
        self._shown, self._drawn = (columns, curves), None

    @staticmethod
    def _series(order: list[int], names: list[str], chosen: int | None) -> Any:
        series: list[uplot.Series] = [{"label": "q"}]
        for i in order:
            color = css(SELECTED) if i == chosen else LINE_COLORS[i % len(LINE_COLORS)]
            series.append(
                {
                    "label": names[i],
                    "stroke": color,
                    "width": 2.6 if i == chosen else 1.0,
                    "points": {"show": False},
                }
            )
        # not drawn: keeps zero in sight
        series.append({"label": "range", "stroke": "transparent", "width": 0.0})
        return tuple(series)

    @staticmethod
    def _range(rows: list[Array]) -> tuple[Array]:
        points = len(rows[0]) if rows else 2
        extent = np.full(points, np.nan)
        extent[0] = 0.0
        return (extent,)

    def _title(self, result: LiveResult, column: int, chosen: int | None) -> str:
        turning = self._turning[column]
        unit, arms, scale = ("°", "mm", 1e3) if turning else ("mm", "1", 1.0)
        here = ""
        if chosen is not None:
            value = scale * float(result.here[chosen, column])
            here = f'<span style="color:{css(SELECTED)}"> {value:z.2f}</span>'
        name = escape(self._tree.velocity_names[column])
        return (
            '<div style="font-size:12px;padding:2px 10px">'
            f"<b>{name}</b> [{unit}]: moment arm [{arms}]{here}</div>"
        )


def summary_html(result: LiveResult, selected: str | None) -> str:
    """Return rank, closure, static equilibrium and tensions as a table."""

    def share(value: float | None) -> str:
        return "-" if value is None else f"{100.0 * value:.1f} %"

    rank = "-" if result.rank is None else "no path" if result.rank < 0 else str(result.rank)
    value = "" if not np.isfinite(result.singular_value) else f"{1e3 * result.singular_value:.3g}"
    rows = [
        ("lowest rank of L", f"{rank} of {result.full_rank}"),
        ("smallest singular value [mm, 1/1000]", value or "-"),
        ("force closure", share(result.closure)),
        ("gravity held within limits", share(result.static)),
        ("load at this pose", result.tension_status.name.lower().replace("_", " ")),
    ]
    cells = "".join(
        f'<tr><td>{label}</td><td style="text-align:right"><b>{text}</b></td></tr>'
        for label, text in rows
    )
    lines = []
    muscles = result.robot.muscles
    top = float(np.nanmax(result.tensions, initial=0.0)) or 1.0
    for i, muscle in enumerate(muscles):
        tension, mark = result.tensions[i], css(SELECTED)
        color = mark if muscle.name == selected else LINE_COLORS[i % len(LINE_COLORS)]
        width = 0.0 if not np.isfinite(tension) else 100.0 * max(float(tension), 0.0) / top
        shown = "-" if not np.isfinite(tension) else f"{tension:.1f}"
        lines.append(
            f'<tr><td style="max-width:110px;overflow:hidden;text-overflow:ellipsis">'
            f"{escape(muscle.name)}</td>"
            f'<td style="text-align:right">{1e3 * result.lengths[i]:.1f}</td>'
            f'<td style="text-align:right">{shown}</td>'
            f'<td style="width:70px"><div style="height:8px;width:{width:.0f}%;'
            f'background:{color}"></div></td></tr>'
        )
    style = "width:100%;font-size:12px;font-variant-numeric:tabular-nums;border-spacing:4px 1px"
    right = '<td style="text-align:right">'
    head = f"<tr><td>muscle</td>{right}length [mm]</td>{right}tension [N]</td><td></td></tr>"
    problem = (
        f'<div style="color:#c23b4b">{escape(result.problem)}</div>' if result.problem else ""
    )
    return (
        f'<div style="padding:0 10px">{problem}<table style="{style}">{cells}</table>'
        f'<table style="{style};margin-top:6px">{head}{"".join(lines)}</table></div>'
    )
