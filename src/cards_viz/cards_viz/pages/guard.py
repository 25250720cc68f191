"""A viser server that asks `cards_viz.pages.access.Access` about every request.

viser serves page and websocket from one port and asks nobody. It calls
``websockets.asyncio.server.serve``, which has places for what is needed: a function that sees each
request first, and a class of connections, whose messages spectators may not send. viser passes
neither on, so the call is completed while the server starts.
"""

from __future__ import annotations

import contextlib
import http
import io
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import viser
import websockets.asyncio.server
from viser import _messages as messages
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from cards_core.errors import CardsError
from cards_viz.pages.access import PARAMETER, Access, RefusalLog, RefusedError, Role

SPECTATORS_SEND = (
    messages.ViewerCameraMessage,
    messages.LocalStorageGetItemResponseMessage,
)
"""Messages of spectators that are taken: where they look from, and that they have drawn."""

LONGEST = 65_536
"""Longest message of a spectator, bytes."""

LARGEST = 1e9
"""Largest number of a camera: lengths [m], angles [rad], pixels."""

NOBODY_SENDS = (messages.ShareUrlRequest, messages.ShareUrlDisconnect)
"""Messages that open a tunnel to a server of viser's authors, for all the world."""

WIDTH = "width"
"""Parameter of the websocket's address: width of the window, [px]."""

SOFTWARE = "software"
"""Parameter of the websocket's address: there where the page's pictures are computed without a
graphics processor."""

_STARTING = threading.Lock()

SCRIPT = """<script>
(() => {
  const token = new URLSearchParams(location.search).get("%(parameter)s");
  const probe = document.createElement("canvas").getContext("webgl2");
  const about = probe?.getExtension("WEBGL_debug_renderer_info");
  const renderer = about ? probe.getParameter(about.UNMASKED_RENDERER_WEBGL) : "";
  probe?.getExtension("WEBGL_lose_context")?.loseContext();
  const software = /swiftshader|llvmpipe|softpipe|software|basic render/i.test(renderer);
  if (software) {
    const get = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, options) {
      const plain = kind.startsWith("webgl") ? {...options, antialias: false} : options;
      return get.call(this, kind, plain);
    };
    // viser draws a sheet over the whole picture for a background image, even if there is none
    const gl = WebGL2RenderingContext.prototype;
    const {shaderSource, attachShader, useProgram, drawElements} = gl;
    const sheets = new WeakSet();
    let sheet = false;
    gl.shaderSource = function (shader, text) {
      if (/uniform sampler2D depthMap;[^]*uniform bool hasDepth;/.test(text)) sheets.add(shader);
      shaderSource.call(this, shader, text);
    };
    gl.attachShader = function (program, shader) {
      if (sheets.has(shader)) sheets.add(program);
      attachShader.call(this, program, shader);
    };
    gl.useProgram = function (program) {
      sheet = program !== null && sheets.has(program);
      useProgram.call(this, program);
    };
    gl.drawElements = function (...values) {
      if (!sheet) drawElements.apply(this, values);
    };
  }
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (data, ...rest) {
    if (data && data.type === "set_server")
      data = {...data, server: `${data.server}/?%(parameter)s=${encodeURIComponent(token)}` +
        `&%(width)s=${window.innerWidth}` + (software ? "&%(software)s=1" : "")};
    return post.call(this, data, ...rest);
  };
  document.documentElement.dataset.role = "%(role)s";
  // a button that keeps the focus would be pressed again by the space bar, which is a key of ours
  addEventListener("click", event => event.target.closest?.("button")?.blur(), true);
  // viser sends one message of the panels in 50 ms, the last one: a value that is typed just
  // before Enter, or before the first mark of a changed form, would be lost. So forms wait until
  // nothing is on its way, and send the fields that were edited once more
  const settle = 120;
  const edited = new Set();
  const ready = new WeakSet();
  const waiting = new WeakSet();
  let typed = -Infinity;
  let again = false;
  const sleep = time => new Promise(resolve => setTimeout(resolve, time));
  addEventListener("input", event => {
    if (again || !event.target.closest?.("form")) return;
    typed = performance.now();
    edited.add(event.target);
  }, true);
  const settled = async form => {
    await sleep(0);
    for (let rest; (rest = typed + settle - performance.now()) > 0;) await sleep(rest);
    for (const field of [...edited]) {
      if (field.isConnected && !form.contains(field)) continue;
      edited.delete(field);
      if (!field.isConnected) continue;
      field._valueTracker?.setValue(`~${field.value}`);  // else React sees no change
      again = true;
      field.dispatchEvent(new Event("input", {bubbles: true}));
      again = false;
      await sleep(settle);
    }
  };
  const hold = (event, form, go) => {
    if (ready.has(form)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (waiting.has(form)) return;
    waiting.add(form);
    settled(form).then(() => {
      waiting.delete(form);
      ready.add(form);
      if (form.isConnected) go();
      ready.delete(form);
    });
  };
  addEventListener("submit", event => {
    const form = event.target;
    hold(event, form, () => form.requestSubmit());
  }, true);
  addEventListener("click", event => {
    const button = event.target.closest?.("form button:not([hidden])");
    const form = button?.closest("form");
    if (form && [...edited].some(field => form.contains(field)))
      hold(event, form, () => button.click());
  }, true);
  addEventListener("keydown", event => {
    if (event.key === "?" && !event.target.closest?.("input, textarea"))
      document.documentElement.dispatchEvent(new KeyboardEvent("keydown",
        {key: "k", code: "KeyK", ctrlKey: true, metaKey: false, bubbles: true}));
  });
})();
</script>
<style>
[data-role=spectator] input, [data-role=spectator] .mantine-Slider-root,
[data-role=spectator] .mantine-Button-root, [data-role=spectator] .mantine-Checkbox-root {
  pointer-events: none !important; opacity: 0.55;
}
[data-role=spectator] body::after {
  content: "read-only"; position: fixed; left: 50%%; top: 8px; transform: translateX(-50%%);
  font: 600 12px system-ui, sans-serif; color: #fff; background: #495057; border-radius: 4px;
  padding: 3px 10px; z-index: 9999; pointer-events: none;
}
%(style)s
</style>
"""
"""Of the page: the websocket gets the token too, there is neither antialiasing nor a sheet for a
background image where pictures are computed without a graphics processor, a form is submitted when
what was typed has been sent, ``?`` lists the keys (as Ctrl-K does), and the controls of spectators
are grey."""

STYLE = """
@media (max-width: 576px) {
  #root { height: 54dvh !important; }
  .mantine-Paper-root[style*="width: 20em"] {
    width: 100% !important; height: 46dvh; max-height: 46dvh !important;
  }
  .mantine-Paper-root[style*="width: 20em"] div[style*="width: 20em"] { width: 100% !important; }
}
"""
"""Of phones: the robot has the upper half of the window, the panels the lower one."""

REFUSAL = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>CARDS</title></head>
<body style="font:16px system-ui,sans-serif;max-width:34em;margin:4em auto;padding:0 1em">
<h1 style="font-size:20px">This page needs its link</h1>
<p>Open the whole link that was printed in the terminal, with <code>?token=...</code> at its end.
A program that was started again has another one.</p></body></html>
"""


class GuardedConnection(ServerConnection):
    """A connection that drops what its client may not send.

    Attributes:
        role: Of the client, set when its request has been accepted.
        window: Width of its window, [px], if it said so.
        software: Whether it said that it draws without a graphics processor.
        refusals: Told what was dropped.
    """

    role: Role | None = None
    window: int | None = None
    software: bool = False
    refusals: RefusalLog | None = None

    async def recv(self, decode: bool | None = None) -> Any:
        """Return the next message that the client may send."""
        while True:
            raw = await super().recv(decode)
            if self._may_send(raw):
                return raw

    def _may_send(self, raw: Any) -> bool:
        if not isinstance(raw, bytes):
            return False  # viser has no such messages, and would end the connection
        if self.role is not Role.OPERATOR and len(raw) > LONGEST:
            return self._dropped("a message that is too long")
        try:
            message = messages.Message.deserialize(raw)
        except Exception:  # whatever a stranger sends must not end the connection of others
            return self._dropped("a message that cannot be read")
        if isinstance(message, NOBODY_SENDS):
            return self._dropped("a tunnel for others")
        if isinstance(message, SPECTATORS_SEND) and not _is_sound(message):
            return self._dropped("a message with wrong values")
        if self.role is Role.OPERATOR or isinstance(message, SPECTATORS_SEND):
            return True
        return self._dropped("a command of a spectator")

    def _dropped(self, what: str) -> bool:
        if self.refusals is not None:
            self.refusals.note(what)
        return False


def _is_sound(message: messages.Message) -> bool:
    """Tell whether the fields of a message of `SPECTATORS_SEND` are what they are to be.

    viser only warns, with all that was sent, and what draws would fail with it.
    """
    if isinstance(message, messages.ViewerCameraMessage):
        vectors = (message.position, message.look_at, message.up_direction)
        return (
            _are_numbers(message.wxyz, 4)
            and all(_are_numbers(vector, 3) for vector in vectors)
            and _are_numbers((message.fov, message.near, message.far), 3)
            and _are_numbers((message.image_height, message.image_width), 2)
        )
    assert isinstance(message, messages.LocalStorageGetItemResponseMessage)
    texts = (message.value, message.error)
    return isinstance(message.request_uuid, str) and all(
        text is None or isinstance(text, str) for text in texts
    )


def _are_numbers(values: Any, count: int) -> bool:
    """Tell whether these are so many numbers, finite and of a usual size."""
    return (
        isinstance(values, list | tuple)
        and len(values) == count
        and all(type(value) in (int, float) and abs(value) <= LARGEST for value in values)
    )


def guarded_server(host: str, port: int, label: str, access: Access) -> viser.ViserServer:
    """Start a viser server that answers those alone who have the token.

    Args:
        host: Address to listen on.
        port: Free port.
        label: Title of the page.
        access: Decides.

    Raises:
        CardsError: This version of viser cannot be guarded; nothing is served then.
    """
    # of values of another type, with all that was sent: a spectator could fill the disk
    warnings.filterwarnings("ignore", message=r"\[viser\] ", category=UserWarning)
    refusals = RefusalLog(port)
    with _completed(access, refusals) as called, contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host=host, port=port, label=label, verbose=False)
        if not called:
            server.stop()
            raise CardsError(
                f"viser {viser.__version__} starts its server in an unknown way, which would "
                "let anybody command (expected: the version in requirements/)"
            )
    return server


def window_width(server: viser.ViserServer, client: int) -> int | None:
    """Return the width of a client's window when it connected, [px]; None if it is not known."""
    connection = server._websock_server._live_connections.get(client)
    return connection.window if isinstance(connection, GuardedConnection) else None


def draws_in_software(server: viser.ViserServer, client: int) -> bool:
    """Tell whether a client computes its pictures without a graphics processor."""
    connection = server._websock_server._live_connections.get(client)
    return isinstance(connection, GuardedConnection) and connection.software


def minimize(client: viser.ClientHandle, panel: viser.PanelHandle) -> None:
    """Minimize a panel in one page alone: `viser.PanelHandle.minimize` does it in all."""
    gui = panel._placement_gui_api
    message = messages.GuiSetPanelCollapsedMessage(
        panel._placement_uuid, True, gui._next_layout_counter(), gui._layout_run_id
    )
    client.gui._websock_interface.queue_message(message)


@contextlib.contextmanager
def _completed(access: Access, refusals: RefusalLog) -> Iterator[list[bool]]:
    """Complete calls of ``websockets.asyncio.server.serve``; the list is empty without one."""
    plain = websockets.asyncio.server.serve
    called: list[bool] = []

    def serve(*args: Any, process_request: Any = None, **options: Any) -> Any:
        called.append(True)
        return plain(
            *args,
            process_request=_asking(access, refusals, process_request),
            create_connection=GuardedConnection,
            **options,
        )

    with _STARTING:  # two servers that start at once would complete each other's call
        # for the call within this block alone; its type is that of the function, not of a copy
        websockets.asyncio.server.serve = serve  # type: ignore[assignment,misc]
        try:
            yield called
        finally:
            websockets.asyncio.server.serve = plain  # type: ignore[misc]


def _asking(
    access: Access,
    refusals: RefusalLog,
    answer: Callable[[ServerConnection, Request], Response | None],
) -> Callable[[ServerConnection, Request], Response | None]:
    """Return what answers requests that `access` lets pass."""

    def process(connection: ServerConnection, request: Request) -> Response | None:
        headers = request.headers
        opens_socket = headers.get("Upgrade", "").lower() == "websocket"
        try:
            # several headers of one name: which one counts would be a matter of taste
            names = ("Host", "Origin")
            host, origin = (_only(headers.get_all(name), name) for name in names)
            role = access.role(request.path, host, origin, socket=opens_socket)
        except RefusedError as refused:
            refusals.note(str(refused))
            return _response(http.HTTPStatus.FORBIDDEN, REFUSAL)
        if opens_socket:
            assert isinstance(connection, GuardedConnection)
            connection.role, connection.refusals = role, refusals
            query = parse_qs(urlsplit(request.path).query)
            width = query.get(WIDTH, [""])[0]
            connection.window = int(width) if re.fullmatch("[0-9]{1,5}", width) else None
            connection.software = SOFTWARE in query
            return answer(connection, request)
        for name in ("Accept-Encoding", "Range"):  # plain text, to be completed
            if name in headers:
                del headers[name]
        found = answer(connection, request)
        if found is None or found.status_code != http.HTTPStatus.OK:
            return found
        text = found.body.decode()
        script = SCRIPT % {
            "parameter": PARAMETER, "width": WIDTH, "software": SOFTWARE, "role": role.value,
            "style": STYLE,
        }  # fmt: skip
        return _response(http.HTTPStatus.OK, text.replace("<head>", f"<head>{script}", 1))

    return process


def _only(values: list[str], name: str) -> str | None:
    if len(values) > 1:
        raise RefusedError(f"several headers {name}")
    return values[0] if values else None


def _response(status: http.HTTPStatus, text: str) -> Response:
    body = text.encode()
    headers = Headers(
        {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
    )
    return Response(status.value, status.phrase, headers, body)
