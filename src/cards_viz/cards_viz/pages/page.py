"""What all pages share: a viser server, a camera that fits, updates at the page's pace.

A page runs in threads of its own. A host hands snapshots over (`Page.show`, a few microseconds,
never waiting for a browser); a drawing thread sends the newest at most ``rate`` times a second,
less often to a page that cannot keep up (`ClientPace`).
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Self, TypeVar

import numpy as np
import viser
from websockets.exceptions import InvalidMessage

from cards_core.checks import check_kind
from cards_core.errors import CardsError
from cards_viz.pages.access import Access, page_url, spectator_token, token
from cards_viz.pages.guard import draws_in_software, guarded_server, minimize, window_width
from cards_viz.pages.ports import is_kept, is_reserved, reserve
from cards_viz.pages.scene import Camera, light_plainly

LOG = logging.getLogger(__name__)

PORTS_TRIED = 20
"""How many ports from the wanted one upwards are tried."""

TEXT_PERIOD = 0.1
"""Minimum time between two updates of texts, charts and paths, costly for the browser, [s]."""

SLOW_TEXT_PERIOD = 0.25
"""The same while a page is open that computes its pictures without a graphics processor, [s]."""

UNWATCHED_PERIOD = 0.5
"""Time between two updates while no page is open, [s]."""

FIRST_ASPECT = 1.2
"""Aspect of the picture that the camera of a page is for, before the page says its own."""

FIT_PERIOD = 0.5
"""Time between two looks at the shapes of the pages' pictures, [s]."""

WIDE = 1400
"""Width of windows from which on plots and panels stand beside the robot, [px]."""

ShownT = TypeVar("ShownT")
"""What is handed over: a snapshot of the robot."""


class PortError(CardsError):
    """No free port, or an address that this machine does not have."""


def reserved_port(host: str, port: int) -> int:
    """Return ``port`` or the next free one, kept for this process and its children.

    Arguments and errors as `free_port`.
    """
    for _ in range(PORTS_TRIED):
        found = free_port(host, port)
        if reserve(found):
            return found
        port = min(found + 1, 65535) if port else 0
    raise PortError(f"port {found} of {host} is in use (expected: a free port)")


def free_port(host: str, port: int) -> int:
    """Return ``port`` or the next free one that no other demo has reserved.

    Args:
        host: Address to bind.
        port: Wanted port; 0 leaves the choice to the system.

    Raises:
        PortError: None of `PORTS_TRIED` ports is free, or ``host`` is not an address of this
            machine.
    """
    check_kind(port, int, "the port", "0 to 65535", error=PortError)
    if not 0 <= port <= 65535:
        raise PortError(f"port {port} does not exist (expected: 0 to 65535)")
    candidates = [0] if port == 0 else range(port, min(port + PORTS_TRIED, 65536))
    for candidate in candidates:
        if is_reserved(candidate):
            continue
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


class _PlainRefusals(logging.Filter):
    """Passes on that a request was refused which no browser makes, without a traceback.

    The server of the page answers GET alone. HEAD, TLS or a scan of the ports would each leave a
    traceback in the log of the node.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Make a line of information of it."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, InvalidMessage):
            reason = error.__cause__ or error
            record.msg, record.args = "a request was not understood: %s", (reason,)
            record.exc_info = record.exc_text = None
            record.levelno, record.levelname = logging.INFO, "INFO"
        return True


logging.getLogger("websockets.server").addFilter(_PlainRefusals())


def _quiet() -> contextlib.redirect_stdout[io.StringIO]:
    """Keep viser from printing: the host prints the address of the page."""
    return contextlib.redirect_stdout(io.StringIO())


class Page(ABC, Generic[ShownT]):
    """A page in the browser that is kept up to date.

    Subclasses build the scene and the panels in their constructor, then call `_start`.

    Args:
        label: Title of the page.
        host: Address to listen on; the default is reachable from this machine only.
        port: Wanted port; a busy one is replaced by the next free one, with a log message.
        rate: Largest number of updates a second.

    Attributes:
        url: Address of the page, with the token of those who may command; of spectators if
            this process is `cards_viz.pages.access.read_only`.
        spectator_url: The same for those who may look on.
        port: Its port.
        server: The viser server, to add things of your own.
        updates: Number of updates sent so far.
        pace: How fast the open pages can take updates; the page slows down to it.
        updates_ahead: Updates that may wait in a page that does not keep up.
        plot_panel: The panel that is minimized in narrow windows, if there is one.
        text_period: Minimum time between two updates of what is costly for the browser, [s].

    Raises:
        PortError: No port to listen on.
    """

    text_period = TEXT_PERIOD
    updates_ahead = 1
    plot_panel: viser.PanelHandle | None = None

    def __init__(self, label: str, *, host: str, port: int, rate: float) -> None:
        self.updates = 0
        self._period = 1.0 / rate
        self._box: SnapshotBox[ShownT] = SnapshotBox()
        self._stop = threading.Event()
        chosen = free_port(host, port)
        if port not in (0, chosen):
            if is_kept(port):
                # who took it may have got the token from a browser, and would command this page
                raise PortError(
                    f"port {port} of {host} was kept for this page, whose link has been told, and "
                    "another program has taken it (expected: start again, with another --port)"
                )
            LOG.warning("port %d is in use: the view is on port %d instead", port, chosen)
        access = Access(host, token())
        self.server = guarded_server(host, chosen, label, access)
        self.port = self.server.get_port()
        self.url = page_url(host, self.port)
        self.spectator_url = page_url(host, self.port, spectator_token(access.token))
        self.server.gui.configure_theme(
            show_logo=False, show_share_button=False, brand_color=(31, 95, 168)
        )
        self._fitted: dict[int, float] = {}  # aspect of each page's picture, when fitted
        self._fit_checked = 0.0
        self._seen = 0
        self._scene_due = self._texts_due = False
        self._send_at = self._texts_sent = 0.0

    # What a page is ---------------------------------------------------------------------------

    @abstractmethod
    def camera(self, aspect: float) -> Camera:
        """Return the camera that lets the robot fill a picture of this aspect."""

    @property
    @abstractmethod
    def size(self) -> float:
        """Extent of what is drawn, in units of the page."""

    @abstractmethod
    def _take(self, snapshot: ShownT) -> None:
        """Keep what the page shows of a snapshot; set ``_scene_due`` and ``_texts_due``."""

    @abstractmethod
    def _draw_scene(self) -> None:
        """Send what moves."""

    @abstractmethod
    def _draw_texts(self) -> None:
        """Send texts, charts and whatever else is costly for a browser."""

    # Camera -----------------------------------------------------------------------------------

    def _start(self) -> None:
        """Place the cameras of the pages to come and start to draw."""
        camera = self.camera(FIRST_ASPECT)
        start = self.server.initial_camera
        start.position, start.look_at, start.fov = camera.position, camera.look_at, camera.fov
        start.near = 0.01 * self.size
        self.server.on_client_connect(self._place_client_camera)
        self.server.on_client_connect(self._make_room)
        self.server.on_client_connect(self._make_plain)
        self.pace = ClientPace(self.server, self.updates_ahead)
        self._thread = threading.Thread(target=self._run, name="page", daemon=True)
        self._thread.start()

    def _make_room(self, client: viser.ClientHandle) -> None:
        """Minimize the plots where they would leave too little to the robot."""
        width = window_width(self.server, client.client_id)
        if self.plot_panel is not None and width is not None and width < WIDE:
            minimize(client, self.plot_panel)

    def _make_plain(self, client: viser.ClientHandle) -> None:
        """Draw what is cheap in a page that computes its pictures."""
        if draws_in_software(self.server, client.client_id):
            self._make_scene_plain(client)

    def _make_scene_plain(self, client: viser.ClientHandle) -> None:
        """Replace what takes long to compute."""
        light_plainly(client.scene)

    @property
    def in_software(self) -> bool:
        """Whether an open page computes its pictures without a graphics processor."""
        return any(draws_in_software(self.server, number) for number in self.server.get_clients())

    @property
    def texts_every(self) -> float:
        """Minimum time between two updates of texts and charts in the pages now open, [s]."""
        return max(self.text_period, SLOW_TEXT_PERIOD if self.in_software else 0.0)

    def _add_camera_button(self) -> None:
        """Add a button that fits the robot into the picture, at the current layout position."""
        button = self.server.gui.add_button("Reset camera", icon=viser.Icon.CAMERA, color="gray")
        button.on_click(lambda event: self._place_client_camera(event.client))

    def _fit_cameras(self, now: float) -> None:
        """Fit the robot again into pictures that have changed their shape.

        The docked panels take their place after a page has connected, and windows are resized.
        Who has moved the camera keeps it. A page that comes back, from another server at this
        address, goes to its first camera after it was told the fitting one.
        """
        if now - self._fit_checked < FIT_PERIOD:
            return
        self._fit_checked = now
        for number, client in self.server.get_clients().items():
            camera, fitted = client.camera, self._fitted.get(number)
            if fitted is None:
                continue
            shape = camera.image_width / max(camera.image_height, 1)

            def at(aspect: float, camera: viser.CameraHandle = camera) -> bool:
                away = np.linalg.norm(camera.position - self.camera(aspect).position)
                return bool(away < 0.01 * self.size)

            if (abs(shape / fitted - 1.0) > 0.03 and at(fitted)) or (
                at(FIRST_ASPECT) and not at(shape)
            ):
                self._place_client_camera(client)

    def _place_client_camera(self, client: viser.ClientHandle | None) -> None:
        """Fit the robot into the picture of a page."""
        if client is None:
            return
        width, height = client.camera.image_width, client.camera.image_height
        aspect = width / height if width and height else FIRST_ASPECT
        self._fitted[client.client_id] = aspect
        camera = self.camera(aspect)
        with client.atomic():
            client.camera.fov = camera.fov
            client.camera.position = camera.position
            client.camera.look_at = camera.look_at
            client.camera.up_direction = (0.0, 0.0, 1.0)

    # Use --------------------------------------------------------------------------------------

    def show(self, snapshot: ShownT) -> None:
        """Hand over a snapshot; returns at once. Only the newest is drawn."""
        self._box.put(snapshot)

    def notify(self, text: str) -> None:
        """Show a message in every open page."""
        for client in self.server.get_clients().values():
            client.add_notification("Not done", text, auto_close_seconds=8.0, color="red")

    def say(self, text: str) -> None:
        """Show a piece of good news in every open page."""
        for client in self.server.get_clients().values():
            client.add_notification("Done", text, auto_close_seconds=10.0, color="green")

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def settled(self) -> bool:
        """Whether the last snapshot has been sent completely."""
        return self._box.get()[0] == self._seen and not (self._scene_due or self._texts_due)

    @property
    def watching(self) -> int:
        """Number of open pages that have drawn what they were sent first."""
        return self.pace.answering

    # Drawing thread ---------------------------------------------------------------------------

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

    def _send(self, now: float) -> None:
        """Send what is due, unless the pages are still busy with the last update."""
        if now < self._send_at or not (self._scene_due or self._texts_due):
            return
        texts = self._texts_due and now - self._texts_sent >= self.texts_every
        if not (self._scene_due or texts):
            return
        with self.server.atomic():
            if self._scene_due:
                self._draw_scene()
            if texts:
                self._draw_texts()
        self._scene_due = False
        if texts:
            self._texts_due, self._texts_sent = False, now
        # with nobody watching it is enough that a new page finds something recent
        watched = bool(self.server.get_clients())
        self._send_at = now + (self.pace.interval() if watched else UNWATCHED_PERIOD)
        self.updates += 1


class SnapshotBox(Generic[ShownT]):
    """Latest-value hand-over between threads: `put` never waits for a reader that draws."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._value: ShownT | None = None
        self._count = 0

    def put(self, snapshot: ShownT) -> None:
        """Replace the snapshot (a reference is stored, nothing copied)."""
        with self._lock:
            self._value = snapshot
            self._count += 1

    def get(self) -> tuple[int, ShownT | None]:
        """Return how many snapshots there have been, and the last one."""
        with self._lock:
            return self._count, self._value


PROMPT = 0.1
"""An answer within this time shows a page that keeps up, [s]."""

SLOWEST = 2.0
"""Longest time between two updates, however slow a page is, [s]."""

_PAUSE = 0.2  # [s], between an answer and the next question
_TIMEOUT = 10.0  # [s]


class ClientPace:
    """Measures the answer times of all pages of a server: how fast they can take updates.

    A page that renders in software manages a frame or two a second. More updates only pile up
    there: its buttons, the emergency stop among them, answer seconds late, and it takes the
    processor away from the control loop. So a short question is sent to every page again and
    again, behind the updates; the time to its answer is the time that the page needs to work off
    what it was sent.

    A page that needs the time T for an update and has k of them waiting answers after k T. With
    an interval of ``answer / ahead`` it therefore always has ``ahead`` updates to work on.

    Args:
        server: The server.
        ahead: Updates that may wait in a page that does not keep up.
    """

    def __init__(self, server: viser.ViserServer, ahead: int = 1) -> None:
        self._server = server
        self._ahead = ahead
        self._lock = threading.Lock()
        self._asked: dict[int, float] = {}
        self._answers: dict[int, float] = {}
        self._stopped = threading.Event()
        server.on_client_connect(self._start)

    def interval(self) -> float:
        """Return the minimum time between two updates that the slowest page needs, [s]."""
        now = time.monotonic()
        with self._lock:
            answers = list(self._answers.values())
            # who has not answered for longer than last time is at least as slow as that
            answers += [now - asked for asked in self._asked.values()]
        slowest = max(answers, default=0.0)
        return 0.0 if slowest <= PROMPT else min(slowest / self._ahead, SLOWEST)

    @property
    def answering(self) -> int:
        """Number of pages that have answered, and so worked off all that was sent before."""
        with self._lock:
            return len(self._answers)

    def waiting(self, client: int) -> bool:
        """Tell whether a page has not answered yet, or is gone."""
        with self._lock:
            return client in self._asked or client not in self._answers

    def stop(self) -> None:
        """Stop asking."""
        self._stopped.set()

    def _start(self, client: viser.ClientHandle) -> None:
        threading.Thread(
            target=self._follow, args=(client,), name="client_pace", daemon=True
        ).start()

    def _follow(self, client: viser.ClientHandle) -> None:
        number = client.client_id
        while not self._stopped.wait(_PAUSE) and number in self._server.get_clients():
            begin = time.monotonic()
            with self._lock:
                self._asked[number] = begin
            # a page that may not use its storage answers too; one that left is looked up above
            with contextlib.suppress(RuntimeError, TimeoutError):
                client.local_storage.get_item("cards_pace", timeout=_TIMEOUT)
            with self._lock:
                del self._asked[number]
                self._answers[number] = time.monotonic() - begin
        with self._lock:
            self._answers.pop(number, None)
