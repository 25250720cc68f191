"""Draws the rods in Gazebo's window, from inside the simulator, without ever waiting for it.

A request from here to another process would hold the simulator until it is answered. Ours have a
timeout of zero: they are sent, and nobody waits. Without a window, nothing is sent at all.

The lines are one ``gz.msgs.Marker_V``, written as bytes: Gazebo's Python may lack protobuf, and
filling 300 points through it takes 1 ms, as long as a step of the simulator. The number of points
never changes: the message is laid out once, and then only coordinates are overwritten (20 us).

Fields (number, wire type): Marker_V.marker (2, bytes); Marker.action (2, 0: add or modify),
ns (3, text), id (4, number), type (6, 3: LINE_STRIP), material (10, bytes), point (11, bytes);
Vector3d x, y, z (2, 3, 4, double); Material ambient, diffuse, emissive (5, 6, 8, bytes);
Color r, g, b, a (2 .. 5, float).
"""

from __future__ import annotations

import struct
from typing import Any, Protocol

import numpy as np

from cards_core.typing import Array

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
        """Send a request.

        Args:
            service: Name of the service.
            request: Serialised request.
            request_type: Name of its message type.
            response_type: Name of the response's message type.
            timeout: Of the answer, [ms].

        Returns:
            Whether the request was answered, and the serialised response.
        """
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
            self._send(clear_message(self._namespace))

    def _send(self, message: bytes) -> None:
        assert self._requests is not None
        self._requests.request_raw(SERVICE, message, "gz.msgs.Marker_V", "gz.msgs.Boolean", 0)


LINE_STRIP = 3

DELETE_ALL = 2

_POINT = np.dtype(
    {
        "names": ["head", "x", "ky", "y", "kz", "z"],
        "formats": [("u1", 3), "<f8", "u1", "<f8", "u1", "<f8"],
        "offsets": [0, 3, 11, 12, 20, 21],
        "itemsize": 29,
    }
)
"""A point in a marker: field 11, 27 bytes, then three doubles with a key before each."""


class LineMarkers:
    """The message of several lines.

    Args:
        namespace: Of the markers: keeps those of several robots apart.
        lines: How many.
        points: Of each.
        rgb: Colour, red green blue in 0..1.
    """

    def __init__(
        self, namespace: str, lines: int, points: int, rgb: tuple[float, float, float]
    ) -> None:
        color = b"".join(
            bytes([8 * field + 5]) + struct.pack("<f", value)
            for field, value in enumerate((*rgb, 1.0), 2)
        )
        # emissive too: lines have no sides that light could fall on
        material = _bytes(5, color) + _bytes(6, color) + _bytes(8, color)
        blank = np.zeros(points, _POINT)
        blank["head"] = (0x5A, 27, 0x11)
        blank["ky"], blank["kz"] = 0x19, 0x21
        out = bytearray()
        places = []
        for number in range(1, lines + 1):  # number 0 would make a new marker every time
            head = _bytes(3, namespace.encode()) + _number(4, number) + _number(6, LINE_STRIP)
            marker = head + _bytes(10, material) + blank.tobytes()
            out += _bytes(2, marker)
            places.append(len(out) - blank.nbytes)
        self._buffer = out
        self._views = [np.frombuffer(out, _POINT, points, place) for place in places]

    def bytes(self, lines: Array) -> bytes:
        """Return the message for centre lines, shape (lines, points, 3), in the world, [m]."""
        for view, line in zip(self._views, lines, strict=True):
            view["x"], view["y"], view["z"] = line.T
        return bytes(self._buffer)


def clear_message(namespace: str) -> bytes:
    """Return the message that removes all markers of a namespace."""
    return _bytes(2, _number(2, DELETE_ALL) + _bytes(3, namespace.encode()))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(8 * field) + _varint(value)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(8 * field + 2) + _varint(len(content)) + content
