"""The page of a rod robot: plate and rods in 3-D, sliders, gizmo, status, plots.

The solver runs in another process and is heard through topics (`cards_viz.rods.view_node`);
nothing is solved here. Snapshots go to the page as `cards_viz.pages.page` describes; commands go
the other way through `RodCommands`.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import viser

from cards_core.rods.robots.robot import BaseKind, RodRobot
from cards_viz.pages.page import Page
from cards_viz.pages.scene import Camera
from cards_viz.pages.states import StatesPanel
from cards_viz.pages.widgets import DrawingPanel, LivePlot, guarded
from cards_viz.rods.interface import RodCommands, RodSnapshot
from cards_viz.rods.page_scene import RodPageScene
from cards_viz.rods.panels import (
    JointPanel,
    PosePanel,
    RunPanel,
    WrenchPanel,
    legend_html,
    status_html,
)
from cards_viz.rods.tubes import QUANTITIES, RodColors

TEXT_PERIOD = 0.2
"""Minimum time between two updates of texts and sliders, [s]."""

PLOT_PERIOD = 0.5
"""Minimum time between two updates of the plots, the costliest part for a browser, [s]."""

POINT_PERIOD = 0.05
"""Minimum time between two points of the plots, [s]: more could not be told apart."""


class RodPage(Page[RodSnapshot]):
    """A page that shows and moves one rod robot.

    Args:
        robot: What to draw; names, limits and home of its joints.
        commands: What sliders and buttons do.
        host, port, rate: As of `Page`.
        window: Length of the live plots, [s].

    Attributes:
        colors: What the colours of the rods mean.

    Raises:
        PortError: No port to listen on.
    """

    text_period = TEXT_PERIOD
    updates_ahead = 3  # a hand on a slider sees each of them

    def __init__(
        self,
        robot: RodRobot,
        commands: RodCommands,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        rate: float = 45.0,
        window: float = 10.0,
    ) -> None:
        super().__init__(robot.name, host=host, port=port, rate=rate)
        self.robot = robot
        self.colors = RodColors(robot)
        self._nodes = RodPageScene(self.server, robot, self.colors)
        self._window = window
        self._turning = frozenset(
            limb.name for limb in robot.limbs if limb.base.kind is BaseKind.REVOLUTE
        )
        self._last: RodSnapshot | None = None
        self._drawn: RodSnapshot | None = None
        self._plotted = self._begin = 0.0
        self._noted = -POINT_PERIOD
        self._dragged = threading.Event()
        self._build_panels(commands)
        self._build_plots()
        self._connect_gizmo()
        self._start()

    # Panels -----------------------------------------------------------------------------------

    def _build_panels(self, commands: RodCommands) -> None:
        gui, robot = self.server.gui, self.robot
        run = guarded(self.notify)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(340)
        self._status = gui.add_html("")
        self._legend = gui.add_html("")
        tabs = gui.add_tab_group()
        with tabs.add_tab("Move", viser.Icon.ADJUSTMENTS):
            self._run_panel = RunPanel(gui, commands, run)
            with gui.add_folder("Joints"):
                self._joints = JointPanel(gui, robot, commands, run)
            with gui.add_folder("Plate"):
                self._pose = PosePanel(gui, robot, commands, run)
        with tabs.add_tab("Load", viser.Icon.WEIGHT):
            gui.add_markdown("_Force and moment on the plate, about its origin._")
            self._wrench = WrenchPanel(gui, robot, commands, run)
        with tabs.add_tab("States", viser.Icon.BOOKMARKS):
            self._states = StatesPanel(gui, commands, run)
        with tabs.add_tab("View", viser.Icon.EYE):
            self._view_panel(gui)

    def _view_panel(self, gui: viser.GuiApi) -> None:
        nodes = self._nodes
        titles = {quantity.title: name for name, quantity in QUANTITIES.items()}
        choice = gui.add_dropdown(
            "colour by", tuple(titles), initial_value=self.colors.quantity.title
        )
        again = gui.add_button("Fit colour scale", icon=viser.Icon.PALETTE, color="gray")
        DrawingPanel(
            gui,
            [
                ("Drag handles", True, nodes.set_gizmo_visible),
                ("Way of collapse", True, nodes.set_collapse_visible),
                ("True thickness of rods", False, nodes.set_true_thickness),
                ("Shadows", False, nodes.set_shadows),
                ("Ground", True, nodes.set_ground_visible),
            ],
        )
        self._add_camera_button()

        def choose() -> None:
            self.colors.chosen = titles[choice.value]
            self._again()

        def fit() -> None:
            self.colors.reset()
            self._again()

        choice.on_update(lambda _: choose())
        again.on_click(lambda _: fit())

    def _again(self) -> None:
        """Draw the last snapshot once more: its colours mean something else now."""
        if self._last is not None:
            self.show(self._last)

    def _build_plots(self) -> None:
        gui, robot = self.server.gui, self.robot
        self.plot_panel = panel = gui.add_panel()
        tab = panel.add_tab("Plots", viser.Icon.CHART_LINE)
        panel.dock_left()
        panel.set_width(330)
        driven = [limb for limb in robot.limbs if limb.base.kind is not BaseKind.FIXED]
        turns = [limb.base.kind is BaseKind.REVOLUTE for limb in driven]
        title = {True: "Joints [°]", False: "Joints [mm]"}.get(turns[0] if turns else False)
        if len(set(turns)) > 1:
            title = "Joints [mm, °]"
        self._factors = np.where(turns, 180.0 / np.pi, 1e3)
        names = [limb.name for limb in robot.limbs]
        with tab:
            self._charts = {
                "eigenvalue": LivePlot(
                    gui, "Stiffness, smallest eigenvalue [N/m, Nm]", ["eigenvalue"], height=140
                ),
                "joints": LivePlot(
                    gui, title or "", [limb.base.joint or limb.name for limb in driven], height=150
                ),
                "curvature": LivePlot(gui, "Largest curvature", names, unit="1/m", height=150),
            }

    def _connect_gizmo(self) -> None:
        async def dragged(event: Any) -> None:
            # in the order of the phases; what it does takes microseconds
            if event.phase == "end":
                self._dragged.clear()
                return
            self._dragged.set()
            if event.phase == "update":
                self._pose.drag(self._nodes.gizmo_pose())

        self._nodes.gizmo.on_update(dragged)

    # Drawing ----------------------------------------------------------------------------------

    def camera(self, aspect: float) -> Camera:
        """Return the camera that lets the robot fill a picture of this aspect."""
        return self._nodes.camera(aspect)

    def _make_scene_plain(self, client: viser.ClientHandle) -> None:
        """Do nothing: the scene is plain in all pages, and all have shadows or none."""

    @property
    def size(self) -> float:
        """Extent of the robot, as drawn."""
        return self._nodes.size

    def _take(self, snapshot: RodSnapshot) -> None:
        """Keep what the page shows of a snapshot, now or later."""
        if not self._begin:
            self._begin = snapshot.time
        self._last = snapshot
        self._texts_due = True
        if not snapshot.finite:
            return  # nothing to draw, but the status must say so
        self._drawn = snapshot
        self._scene_due = True
        t = snapshot.time - self._begin
        if 0.0 <= t - self._noted < POINT_PERIOD:
            return
        self._noted = t
        self._charts["eigenvalue"].append(t, np.array([snapshot.eigenvalue]))
        self._charts["joints"].append(t, self._factors * snapshot.q[self.robot.actuated])
        curvature = snapshot.lines[:, :, QUANTITIES["curvature"].column].max(axis=1)
        self._charts["curvature"].append(t, curvature)

    def _draw_scene(self) -> None:
        snapshot = self._drawn
        if snapshot is not None:
            self._nodes.draw(snapshot)
            if not self._dragged.is_set():
                self._pose.follow(snapshot)
                groups = (self._joints.group, self._pose.group, self._wrench.group)
                self._nodes.use_gizmo(not (snapshot.playing or any(g.busy for g in groups)))
                self._nodes.place_gizmo(self._pose.target)

    def _draw_texts(self) -> None:
        snapshot = self._last
        if snapshot is None:
            return
        self._status.content = status_html(snapshot, self._turning)
        if snapshot.finite:
            self._legend.content = legend_html(self.colors, snapshot)
            self._joints.draw(snapshot)
            self._pose.draw()
        self._wrench.draw(snapshot)
        self._run_panel.draw(snapshot)
        self._states.draw(snapshot.states)
        if snapshot.time - self._plotted >= PLOT_PERIOD or snapshot.time < self._plotted:
            self._plotted = snapshot.time
            for chart in self._charts.values():
                chart.draw(self._window)
