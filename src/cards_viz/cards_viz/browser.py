"""The browser view: a page with the robot, live plots and controls, served by viser.

The view runs in threads of its own. A host hands snapshots over (`BrowserView.show`, a few
microseconds, never waiting for the browser); a drawing thread sends the newest at most 30 times a
second, less often to a page that cannot keep up. Commands go the other way through `ViewCommands`.
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import viser

from cards_core.description.model import Robot
from cards_core.errors import CardsError
from cards_core.typing import Array
from cards_viz.browser_scene import BrowserScene
from cards_viz.client_pace import ClientPace
from cards_viz.commands import ViewCommands
from cards_viz.live_plots import PlotPanel
from cards_viz.panels import (
    DrawingPanel,
    GainsPanel,
    MusclePanel,
    RunPanel,
    StatusPanel,
    guarded,
)
from cards_viz.scene import Scene, SceneFrame
from cards_viz.snapshot import Snapshot, SnapshotBox
from cards_viz.state_table import StateTable
from cards_viz.tracked import first_scale

LOG = logging.getLogger(__name__)

PORTS_TRIED = 20
"""How many ports from the wanted one upwards are tried."""


TEXT_PERIOD = 0.1
"""Least time between two updates of texts, charts and paths, costly for the browser, [s]."""

UNWATCHED_PERIOD = 0.5
"""Time between two updates while no page is open, [s]."""


FIT_PERIOD = 0.5
"""Time between two looks at the shapes of the pages' pictures, [s]."""


class PortError(CardsError):
    """No free port, or an address that this machine does not have."""


def free_port(host: str, port: int) -> int:
    """Return ``port`` or the next free one.

    Args:
        host: Address to bind.
        port: Wanted port; 0 leaves the choice to the system.

    Raises:
        PortError: None of `PORTS_TRIED` ports is free, or ``host`` is no address of ours.
    """
    if not 0 <= port <= 65535:
        raise PortError(f"port {port} does not exist (expected: 0 to 65535)")
    candidates = [0] if port == 0 else range(port, min(port + PORTS_TRIED, 65536))
    for candidate in candidates:
        try:
            info = socket.getaddrinfo(host, candidate, type=socket.SOCK_STREAM)[0]
            with socket.socket(info[0], info[1]) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(info[4])
                return int(probe.getsockname()[1])
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise PortError(
                    f"cannot listen on host '{host}': {error} (expected: an address of this "
                    "machine, e.g. 127.0.0.1)"
                ) from error
    last = candidates[-1]
    raise PortError(f"ports {port} to {last} of {host} are all in use (expected: a free port)")


def _quiet() -> contextlib.redirect_stdout[io.StringIO]:
    """Keep viser from printing: where the view is, is for its host to say."""
    return contextlib.redirect_stdout(io.StringIO())


class BrowserView:
    """A page that shows one robot.

    Args:
        robot: What to draw.
        commands: What the buttons and sliders do.
        host: Address to listen on; the default is reachable from this machine only.
        port: Wanted port; a busy one is replaced by the next free one, with a log message.
        rate: Largest number of updates a second.
        window: Length of the live plots, [s].

    Attributes:
        url: Address of the page.
        server: The viser server, to add things of one's own.
        updates: Number of updates sent so far.
        pace: How fast the open pages can take updates; the view slows down to it.

    Raises:
        PortError: No port to listen on.
    """

    def __init__(
        self,
        robot: Robot,
        commands: ViewCommands,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        rate: float = 30.0,
        window: float = 10.0,
    ) -> None:
        self.robot = robot
        self.updates = 0
        self._period = 1.0 / rate
        self._box = SnapshotBox()
        self._stop = threading.Event()
        chosen = free_port(host, port)
        if port not in (0, chosen):
            LOG.warning("port %d is in use: the view is on port %d instead", port, chosen)
        with _quiet():
            self.server = viser.ViserServer(
                host=host, port=chosen, label=robot.name, verbose=False
            )
        self.url = f"http://{host}:{self.server.get_port()}"
        self.server.gui.configure_theme(
            show_logo=False, show_share_button=False, brand_color=(31, 95, 168)
        )
        self.scale = first_scale(robot)
        self.scene = Scene(robot)
        self._nodes = BrowserScene(self.server, self.scene, self.scale)
        self._fitted: dict[int, float] = {}  # aspect of each page's picture, when fitted
        self._fit_checked = 0.0
        self._build_panels(commands, window)
        self._place_camera()
        self.pace = ClientPace(self.server)
        self._seen = 0
        self._last: Snapshot | None = None
        self._frame: SceneFrame | None = None
        self._tensions = np.zeros(len(robot.muscles))
        self._scene_due = self._texts_due = False
        self._send_at = self._texts_sent = 0.0
        self._thread = threading.Thread(target=self._run, name="browser_view", daemon=True)
        self._thread.start()

    def _build_panels(self, commands: ViewCommands, window: float) -> None:
        gui, robot = self.server.gui, self.robot
        run = guarded(self.notify)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(330)
        self._status = StatusPanel(gui, robot.muscles, self.scale)
        tabs = gui.add_tab_group()
        with tabs.add_tab("Run", viser.Icon.PLAYER_PLAY):
            self._run_panel = RunPanel(gui, commands, run)
            self._gains = GainsPanel(gui, commands, run)
            self._status.add_bars()
        with tabs.add_tab("Muscles", viser.Icon.ADJUSTMENTS):
            self._muscle_panel = MusclePanel(gui, robot.muscles, commands, run)
            self._state_table = StateTable(gui)
        with tabs.add_tab("View", viser.Icon.EYE):
            nodes = self._nodes
            toggles = [
                ("Muscles", True, nodes.set_muscles_visible),
                ("Force arrows", False, nodes.set_arrows_visible),
                ("Wrap surfaces", True, nodes.set_surfaces_visible),
                ("End-effector path", True, nodes.set_path_visible),
                ("Ground", True, nodes.set_grid_visible),
            ]
            DrawingPanel(gui, toggles)
            again = gui.add_button("Clear path", icon=viser.Icon.ERASER, color="gray")
            home = gui.add_button("Reset camera", icon=viser.Icon.CAMERA, color="gray")
        self._plots = PlotPanel(
            gui,
            self.scene.tree.position_names,
            [muscle.name for muscle in robot.muscles],
            window,
        )

        again.on_click(lambda _: nodes.clear_paths())
        home.on_click(lambda event: self._place_client_camera(event.client))

    def _place_camera(self) -> None:
        camera = self._nodes.camera(1.2)
        start = self.server.initial_camera
        start.position, start.look_at, start.fov = camera.position, camera.look_at, camera.fov
        start.near = 0.01 * self.scene.size
        self.server.on_client_connect(self._place_client_camera)

    def _fit_cameras(self, now: float) -> None:
        """Fit the robot again into pictures that have changed their shape.

        The docked panels take their place after a page has connected, and windows are resized.
        Who has moved the camera keeps it.
        """
        if now - self._fit_checked < FIT_PERIOD:
            return
        self._fit_checked = now
        for number, client in self.server.get_clients().items():
            camera, fitted = client.camera, self._fitted.get(number)
            if fitted is None:
                continue
            shape = camera.image_width / max(camera.image_height, 1)
            away = np.linalg.norm(camera.position - self._nodes.camera(fitted).position)
            if abs(shape / fitted - 1.0) > 0.03 and away < 0.01 * self.scene.size:
                self._place_client_camera(client)

    def _place_client_camera(self, client: viser.ClientHandle | None) -> None:
        """Fit the robot into the picture of a page."""
        if client is None:
            return
        width, height = client.camera.image_width, client.camera.image_height
        aspect = width / height if width and height else 1.2
        self._fitted[client.client_id] = aspect
        camera = self._nodes.camera(aspect)
        with client.atomic():
            client.camera.fov = camera.fov
            client.camera.position = camera.position
            client.camera.look_at = camera.look_at
            client.camera.up_direction = (0.0, 0.0, 1.0)

    def show(self, snapshot: Snapshot) -> None:
        """Hand over a snapshot; returns at once. Only the newest is drawn."""
        self._box.put(snapshot)

    def set_gains(
        self, kp: Sequence[float], kd: Sequence[float], names: Sequence[str] = ()
    ) -> None:
        """Tell the view the controller's gains; the sliders appear."""
        self._gains.set_gains(list(kp), list(kd), list(names))

    def set_reference_path(self, positions: Array) -> None:
        """Draw a desired end-effector path known in advance, shape (k, 3), [m]."""
        self._nodes.desired.clear()
        for position in np.asarray(positions, dtype=float):
            self._nodes.desired.add(position)

    def notify(self, text: str) -> None:
        """Show a message in every open page."""
        for client in self.server.get_clients().values():
            client.add_notification("Not done", text, auto_close_seconds=8.0, color="red")

    def wait(self, running: Callable[[], bool] = lambda: True) -> None:
        """Block until `stop` is called or ``running()`` is false."""
        while running() and not self._stop.wait(0.2):
            pass

    def stop(self) -> None:
        """Close the page and free the port."""
        if not self._stop.is_set():
            self._stop.set()
            self.pace.stop()
            self._thread.join(timeout=5.0)
            with _quiet():
                self.server.stop()

    def __enter__(self) -> BrowserView:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def settled(self) -> bool:
        """Whether the last snapshot has been sent completely."""
        return self._box.get()[0] == self._seen and not (self._scene_due or self._texts_due)

    def _run(self) -> None:
        """Take the newest snapshot ``rate`` times a second; send as often as the pages can."""
        while not self._stop.is_set():
            begin = time.monotonic()
            count, snapshot = self._box.get()
            try:
                if snapshot is not None and count != self._seen:
                    self._take(snapshot)
                    self._seen = count
                self._send(begin)
                self._fit_cameras(begin)
            except Exception:  # one odd snapshot must not end the view
                self._seen = count
                self._scene_due = self._texts_due = False
                LOG.exception("cannot draw %s", snapshot)
            self._stop.wait(max(0.0, self._period - (time.monotonic() - begin)))

    def _take(self, snapshot: Snapshot) -> None:
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

    def _send(self, now: float) -> None:
        """Send what is due, unless the pages are still busy with the last update."""
        texts = self._texts_due and now - self._texts_sent >= TEXT_PERIOD
        if now < self._send_at or not (self._scene_due or texts):
            return
        with self.server.atomic():
            if self._scene_due and self._frame is not None:
                self._nodes.draw(self._frame, self._tensions)
            if texts and self._last is not None:
                self._nodes.draw_paths()
                self._status.draw(self._last)
                self._run_panel.draw(self._last)
                self._muscle_panel.draw(self._last)
                self._state_table.draw(self._last)
                self._plots.draw()
        self._scene_due = False
        if texts:
            self._texts_due, self._texts_sent = False, now
        # with nobody watching it is enough that a new page finds something recent
        watched = bool(self.server.get_clients())
        self._send_at = now + (self.pace.interval() if watched else UNWATCHED_PERIOD)
        self.updates += 1
