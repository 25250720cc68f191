"""The page of two runs: both robots side by side at the same time, bars and plots of both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import viser

from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_viz.colors import LINE_COLORS, first_scale
from cards_viz.muscles.bars import MuscleTable, temperatures_of
from cards_viz.muscles.interface import MuscleCommands, MuscleSnapshot
from cards_viz.muscles.page_scene import MusclePageScene
from cards_viz.muscles.panels import RunPanel, run_line_html
from cards_viz.muscles.scene import Scene, SceneFrame
from cards_viz.pages.page import Page
from cards_viz.pages.scene import Camera, frame_points
from cards_viz.pages.widgets import DrawingPanel, LivePlot, guarded

Pair = tuple[MuscleSnapshot, MuscleSnapshot]
"""Snapshots of both runs at one time."""

GAP = 0.15
"""Free space between the robots, relative to the size of one."""

PANEL_WIDTH, PLOTS_WIDTH = 370, 330  # [px]


class ComparisonPage(Page[Pair]):
    """A page that shows two runs of robots with the same muscles.

    Args:
        robots: Of the runs.
        labels: What the runs are called.
        commands: What the buttons do.
        host, port, rate: As of `Page`.
        window: Length of the plots, [s].

    Raises:
        PortError: No port to listen on.
    """

    def __init__(
        self,
        robots: tuple[Robot, Robot],
        labels: tuple[str, str],
        commands: MuscleCommands,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        rate: float = 30.0,
        window: float = 15.0,
    ) -> None:
        super().__init__(f"{labels[0]} and {labels[1]}", host=host, port=port, rate=rate)
        self.labels = labels
        self.scale = first_scale(robots[0])
        self.scenes = tuple(Scene(robot) for robot in robots)
        width = max(scene.upper[0] - scene.lower[0] for scene in self.scenes)
        step = float(width) + GAP * max(scene.size for scene in self.scenes)
        self._offset = np.array([step, 0.0, 0.0])
        self._nodes = (
            MusclePageScene(self.server, self.scenes[0], self.scale),
            MusclePageScene(
                self.server, self.scenes[1], self.scale, root="/second", offset=self._offset
            ),
        )
        self._nodes[1].set_grid_visible(False)
        self._add_names()
        self._pair: Pair | None = None
        self._frames: list[SceneFrame | None] = [None, None]
        self._window = window
        self._build_panels(robots[0], commands)
        self._start()

    def _add_names(self) -> None:
        for scene, label, at in zip(
            self.scenes, self.labels, (np.zeros(3), self._offset), strict=True
        ):
            place = at + np.array([*(0.5 * (scene.lower + scene.upper))[:2], scene.upper[2]])
            place[2] += 0.06 * scene.size
            self.server.scene.add_label(f"/names/{label}", label, position=place)

    def _build_panels(self, robot: Robot, commands: MuscleCommands) -> None:
        gui = self.server.gui
        run = guarded(self.notify)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(PANEL_WIDTH)
        self._status = [gui.add_html("") for _ in self.labels]
        tabs = gui.add_tab_group()
        with tabs.add_tab("Muscles", viser.Icon.ADJUSTMENTS):
            self._table = MuscleTable(gui, robot.muscles, self.scale, self.labels)
        with tabs.add_tab("Run", viser.Icon.PLAYER_PLAY):
            self._run_panel = RunPanel(gui, commands, run, live=False)
        with tabs.add_tab("View", viser.Icon.EYE):
            DrawingPanel(
                gui,
                [
                    ("Muscles", True, self._each("set_muscles_visible")),
                    ("Force arrows", False, self._each("set_arrows_visible")),
                    ("Wrap surfaces", True, self._each("set_surfaces_visible")),
                    ("End-effector path", True, self._each("set_path_visible")),
                    ("Ground", True, self._nodes[0].set_grid_visible),
                ],
            )
            self._add_camera_button()
        self.plot_panel = panel = gui.add_panel()
        self._charts: dict[str, LivePlot] = {}
        self._tab = panel.add_tab("Plots", viser.Icon.CHART_LINE)
        panel.dock_left()
        panel.set_width(PLOTS_WIDTH)

    def _each(self, name: str) -> object:
        def call(visible: bool) -> None:
            for nodes in self._nodes:
                getattr(nodes, name)(visible)

        return call

    def camera(self, aspect: float) -> Camera:
        """Return the camera that lets both robots fill a picture of this aspect."""
        first, second = (scene.outline for scene in self.scenes)
        points = np.concatenate([first, second + self._offset])
        return frame_points(points, aspect=aspect, direction=np.array([0.12, -1.0, 0.25]))

    def _make_scene_plain(self, client: viser.ClientHandle) -> None:
        super()._make_scene_plain(client)
        for nodes in self._nodes:
            nodes.make_plain(client)

    @property
    def size(self) -> float:
        """Extent of both robots, [m]."""
        return self.scenes[0].size + float(self._offset[0])

    def _take(self, snapshot: Pair) -> None:
        """Keep what the page shows of a pair, now or later."""
        if self._pair is not None and snapshot[0].time < self._pair[0].time:
            for nodes in self._nodes:
                nodes.clear_paths()
        self._pair = snapshot
        self._texts_due = True
        for i, (one, scene, nodes) in enumerate(
            zip(snapshot, self.scenes, self._nodes, strict=True)
        ):
            if not np.all(np.isfinite(one.q)):
                continue
            self.scale.include(one.tensions)
            self._frames[i] = frame = scene.frame(one.q, one.tensions, self.scale.high)
            nodes.actual.add(frame.end_effector)
            nodes.desired.add(one.desired_position)
        self._scene_due = True
        self._append(snapshot)

    def _append(self, pair: Pair) -> None:
        time = max(one.time for one in pair)
        for name, values in curves(pair).items():
            if name not in self._charts:
                with self._tab:
                    self._charts[name] = LivePlot(self.server.gui, name, self.labels, height=118)
            self._charts[name].append(time, values)

    def _draw_scene(self) -> None:
        if self._pair is None:
            return
        for one, nodes, frame in zip(self._pair, self._nodes, self._frames, strict=True):
            if frame is not None:
                nodes.draw(frame, one.tensions)

    def _draw_texts(self) -> None:
        if self._pair is None:
            return
        for i, (nodes, one) in enumerate(zip(self._nodes, self._pair, strict=True)):
            nodes.draw_paths()
            self._status[i].content = run_line_html(one, self.labels[i], LINE_COLORS[i])
        self._run_panel.draw(self._pair[0])
        self._table.draw(*self._pair)
        for chart in self._charts.values():
            chart.draw(self._window)


def curves(pair: Pair) -> dict[str, Array]:
    """Return title to one value of each run, shape (2,): what the page plots.

    NaN where a run does not have what the other has.
    """
    out = {"Norm of tensions [N]": _of([float(np.linalg.norm(one.tensions)) for one in pair])}
    released = [None if one.released is None else 1e3 * _mean(one.released) for one in pair]
    temperatures = [_hottest(one) for one in pair]
    errors = [one.errors() for one in pair]
    for title, values in (
        ("Mean released length [mm]", released),
        ("Hottest motor [°C]", temperatures),
        *(
            (f"Norm of {what} errors [m{unit}]", [_milli_norm(each.get(unit)) for each in errors])
            for what, unit in (("position", "m"), ("angle", "rad"))
        ),
    ):
        if any(value is not None for value in values):
            out[title] = _of(values)
    return out


def _milli_norm(values: Array | None) -> float | None:
    return None if values is None else 1e3 * float(np.linalg.norm(values))


def _of(values: Sequence[float | None]) -> Array:
    return np.array([np.nan if value is None else value for value in values])


def _mean(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else float("nan")


def _hottest(one: MuscleSnapshot) -> float | None:
    muscles = list(dict.fromkeys(name.rpartition("/")[0] for name in one.states))
    values = temperatures_of(muscles, one.states)
    if values is None or not np.isfinite(values).any():
        return None
    return float(np.nanmax(values))
