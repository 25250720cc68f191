"""Draws the rods in Gazebo's window, from inside the simulator, without ever waiting for it.

A request from here to another process would hold the simulator until it is answered. Ours have a
timeout of zero: they are sent, and nobody waits. Without a window, nothing is sent at all.
"""

from __future__ import annotations

from typing import Any, Protocol

from cards_core.typing import Array
from cards_rod_plugin.marker_bytes import LineMarkers, clear

SERVICE = "/marker_array"
"""Offered by the window, not by the server."""

COLOR = (0.75, 0.14, 0.12)

LOOK_PERIOD = 1.0
"""How often it is looked for a window, [s]."""


class Requests(Protocol):
    """What is used of a node of gz-transport."""

    def service_list(self) -> list[str]:
        """Return the services that are known."""
        ...

    def request_raw(
        self, service: str, request: bytes, request_type: str, response_type: str, timeout: int
    ) -> Any:
        """Send a request."""
        ...


class CentreLines:
    """Lines in Gazebo's window.

    Args:
        requests: Node of gz-transport; None: nothing is drawn.
        namespace: Of the markers.
        lines, points: How many.
    """

    def __init__(self, requests: Requests | None, namespace: str, lines: int, points: int) -> None:
        self._requests = requests
        self._namespace = namespace
        self._message = LineMarkers(namespace, lines, points, COLOR)
        self._looked = -LOOK_PERIOD
        self.window = False

    def look(self, now: float) -> None:
        """Look now and then whether there is a window.

        Args:
            now: Time by a steady clock, [s].
        """
        if self._requests is not None and now - self._looked >= LOOK_PERIOD:
            self._looked = now
            self.window = SERVICE in self._requests.service_list()

    def draw(self, lines: Array) -> None:
        """Show centre lines, shape (lines, points, 3), in the world, [m]."""
        if self.window:
            self._send(self._message.bytes(lines))

    def close(self) -> None:
        """Remove them."""
        if self.window:
            self._send(clear(self._namespace))

    def _send(self, message: bytes) -> None:
        assert self._requests is not None
        self._requests.request_raw(SERVICE, message, "gz.msgs.Marker_V", "gz.msgs.Boolean", 0)
