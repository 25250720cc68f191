"""The page of a robot with muscles: the robot in 3-D, live plots and controls.

Snapshots of the run go to the page as `cards_viz.pages.page` describes; commands go the other way
through `MuscleCommands`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import viser

from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_viz.colors import first_scale
from cards_viz.labels import joint_labels
from cards_viz.muscles.bars import MuscleTable
from cards_viz.muscles.interface import MuscleCommands, MuscleSnapshot
from cards_viz.muscles.page_scene import MusclePageScene
from cards_viz.muscles.panels import (
    GainsPanel,
    MusclePanel,
    PlotPanel,
    RunPanel,
    StateTable,
    StatusPanel,
    SwitchPanel,
)
from cards_viz.muscles.pushing import PushPanel, usual_limit
from cards_viz.muscles.scene import Scene, SceneFrame
from cards_viz.muscles.targets import TargetPanel
from cards_viz.muscles.world_scene import WorldScene
from cards_viz.pages.page import Page
from cards_viz.pages.scene import Camera
from cards_viz.pages.states import StatesPanel
from cards_viz.pages.widgets import DrawingPanel, Guard, guarded

PANEL_WIDTH = 370
"""Of the panel on the right, [px]: names of 24 letters and three bars beside them."""


class MusclePage(Page[MuscleSnapshot]):
    """A page that shows one robot.

    Args:
        robot: What to draw.
        commands: What the buttons and sliders do.
        host, port, rate: As of `Page`.
        window: Length of the live plots, [s].
        live: Whether the robot can be commanded; a recording can only be played.
        world: What is around the robot, if anything.

    Attributes:
        scale: Range of the colours.
        scene: What is drawn.

    Raises:
        PortError: No port to listen on.
    """

    updates_ahead = 3  # a page takes all that wait in one picture

    def __init__(
        self,
        robot: Robot,
        commands: MuscleCommands,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        rate: float = 30.0,
        window: float = 10.0,
        live: bool = True,
        world: WorldScene | None = None,
    ) -> None:
        super().__init__(robot.name, host=host, port=port, rate=rate)
        self.robot = robot
        self.scale = first_scale(robot)
        self.scene = Scene(robot)
        self._nodes = MusclePageScene(self.server, self.scene, self.scale, world)
        self._last: MuscleSnapshot | None = None
        self._frame: SceneFrame | None = None
        self._tensions = np.zeros(len(robot.muscles))
        self._build_panels(commands, window, live)
        self._start()

    def _build_panels(self, commands: MuscleCommands, window: float, live: bool) -> None:
        gui, robot = self.server.gui, self.robot
        run = guarded(self.notify)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(PANEL_WIDTH)
        self._status = StatusPanel(gui)
        tabs = gui.add_tab_group()
        with tabs.add_tab("Run", viser.Icon.PLAYER_PLAY):
            self._run_panel = RunPanel(gui, commands, run, live=live)
            self._targets = self._target_panel(commands, run) if live else None
            self._gains = GainsPanel(gui, commands, run)
            self._push = self._push_panel(commands, run) if live else None
            self._switches = SwitchPanel(gui, commands, run)
            self._table = MuscleTable(gui, robot.muscles, self.scale)
        with tabs.add_tab("Muscles", viser.Icon.ADJUSTMENTS):
            self._muscle_panel = MusclePanel(gui, robot.muscles, self.scene.lengths, commands, run)
            self._state_table = StateTable(gui)
        self._states: StatesPanel | None = None
        if live:
            with tabs.add_tab("States", viser.Icon.BOOKMARKS):
                self._states = StatesPanel(gui, commands, run)
        with tabs.add_tab("View", viser.Icon.EYE):
            nodes = self._nodes
            toggles = [
                ("Muscles", True, nodes.set_muscles_visible),
                ("Force arrows", False, nodes.set_arrows_visible),
                ("Wrap surfaces", True, nodes.set_surfaces_visible),
                ("End-effector path", True, nodes.set_path_visible),
                ("Ground", True, nodes.set_grid_visible),
            ]
            if nodes.world is not None:
                toggles.append(("World", True, nodes.set_world_visible))
            DrawingPanel(gui, toggles)
            again = gui.add_button("Clear path", icon=viser.Icon.ERASER, color="gray")
            self._add_camera_button()
        self._plots = PlotPanel(
            gui,
            joint_labels(self.scene.tree),
            [muscle.name for muscle in robot.muscles],
            window,
        )
        self.plot_panel = self._plots.panel
        again.on_click(lambda _: nodes.clear_paths())

    def _target_panel(self, commands: MuscleCommands, run: Guard) -> TargetPanel:
        scene = self.scene
        return TargetPanel(self.server.gui, scene.tree, (scene.lower, scene.upper), commands, run)

    def _push_panel(self, commands: MuscleCommands, run: Guard) -> PushPanel:
        """Let the links be dragged."""
        links = [link.name for link in self.robot.links]

        def pose_of(link: str) -> Array | None:
            frame = self._frame
            return None if frame is None else frame.link_poses[links.index(link)]

        panel = PushPanel(
            self.server.gui, commands, run,
            limit=usual_limit(self.robot), size=self.scene.size, pose_of=pose_of,
        )  # fmt: skip
        for shape, handle in self._nodes.shapes:
            if shape.link is not None:
                panel.attach(handle, links[shape.link])
        return panel

    def camera(self, aspect: float) -> Camera:
        """Return the camera that lets the robot fill a picture of this aspect."""
        return self._nodes.camera(aspect)

    def _make_scene_plain(self, client: viser.ClientHandle) -> None:
        super()._make_scene_plain(client)
        self._nodes.make_plain(client)

    @property
    def size(self) -> float:
        """Extent of the robot, [m]."""
        return self.scene.size

    def set_gains(
        self, kp: Sequence[float], kd: Sequence[float], names: Sequence[str] = ()
    ) -> None:
        """Tell the view the controller's gains; the sliders appear.

        Args:
            kp: Stiffness of the error, [1/s^2], one for each coordinate.
            kd: Damping of the error, [1/s], likewise.
            names: Names of the controlled coordinates.
        """
        self._gains.set_gains(list(kp), list(kd), list(names))

    def _take(self, snapshot: MuscleSnapshot) -> None:
        """Keep what the page shows of a snapshot, now or later."""
        if self._last is not None and snapshot.time < self._last.time:
            self._nodes.actual.clear()
        self._last = snapshot
        self._texts_due = True
        if not np.all(np.isfinite(snapshot.q)):
            return  # nothing to draw, but the status must say so
        self.scale.include(snapshot.tensions)
        self._frame = self.scene.frame(snapshot.q, snapshot.tensions, self.scale.high)
        self._tensions = snapshot.tensions
        self._scene_due = True
        self._nodes.actual.add(self._frame.end_effector)
        self._nodes.desired.add(snapshot.desired_position)
        self._plots.append(snapshot)

    def _draw_scene(self) -> None:
        if self._push is not None:
            self._push.watch(self.pace)
        if self._frame is not None:
            self._nodes.draw(self._frame, self._tensions)
            if self._last is not None:
                self._nodes.draw_world(self._last.bodies)

    def _draw_texts(self) -> None:
        if self._last is None:
            return
        if self._push is not None:
            self._push.set_visible(not self._last.real)
            self._push.draw()
        if self._targets is not None:
            self._targets.draw(self._last)
        self._nodes.draw_paths()
        self._status.draw(self._last)
        self._run_panel.draw(self._last)
        self._switches.draw(self._last)
        self._table.draw(self._last)
        self._muscle_panel.draw(self._last)
        self._state_table.draw(self._last)
        if self._states is not None:
            self._states.draw(self._last.saved, self._last.not_saved)
        self._plots.draw()
