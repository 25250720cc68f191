"""Markers in Gazebo's GUI: the one module here that talks to Gazebo.

The GUI offers the service ``/marker_array``; a server without GUI does not. Its sister ``/marker``
answers nothing, and would keep every caller waiting for the whole timeout.

Never use this inside a simulator's process: a call holds Python's global lock until it is
answered.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from cards_core.errors import CardsError
from cards_ros import gazebo_bindings
from cards_viz.rods import Rod

SERVICE = "/marker_array"

TIMEOUT = 200
"""Longest wait for an answer, [ms]; the GUI answers within a frame of its own."""

LOG = logging.getLogger(__name__)


class GazeboBindingsError(CardsError):
    """Gazebo's Python bindings are not there."""


def _bindings() -> tuple[Any, Any, Any]:
    """Return the classes Node, Marker_V and Boolean. Raises `GazeboBindingsError`."""
    reasons = []
    for names in gazebo_bindings.EVERY:
        try:
            return (
                importlib.import_module(names.transport).Node,
                importlib.import_module(f"{names.msgs}.marker_v_pb2").Marker_V,
                importlib.import_module(f"{names.msgs}.boolean_pb2").Boolean,
            )
        except (ImportError, AttributeError, TypeError) as error:
            # TypeError: messages made for another protobuf
            reasons.append(f"{names.transport}: {error}")
    raise GazeboBindingsError(
        "Gazebo's Python bindings for transport and messages cannot be imported "
        f"({'; '.join(reasons)}) (expected: the packages python3-gz-transport13 and "
        "python3-gz-msgs10 for Gazebo Harmonic, or those of Jetty, and the folder they are in on "
        "PYTHONPATH)"
    )


class GazeboMarkers:
    """Shows rods in Gazebo's GUI.

    Args:
        namespace: Of the markers: keeps those of several robots apart.

    Raises:
        GazeboBindingsError: Gazebo's Python bindings are not there.
    """

    def __init__(self, namespace: str) -> None:
        node, self._markers, self._answer = _bindings()
        self._node = node()
        self._namespace = namespace

    def available(self) -> bool:
        """Tell whether a GUI offers the service, without waiting."""
        return SERVICE in self._node.service_list()

    def send(self, rods: Iterable[Rod], gone: Sequence[int] = ()) -> bool:
        """Show rods and remove those with the numbers ``gone``; return whether the GUI took it."""
        request = self._markers()
        for number in gone:
            marker = request.marker.add(ns=self._namespace, id=number)
            marker.action = marker.DELETE_MARKER
        for rod in rods:
            # number 0 would make a new marker every time
            marker = request.marker.add(ns=self._namespace, id=rod.number)
            marker.action, marker.type = marker.ADD_MODIFY, marker.CYLINDER
            _fill(marker, rod)
        return self._request(request)

    def clear(self) -> bool:
        """Remove all markers of our namespace."""
        request = self._markers()
        marker = request.marker.add(ns=self._namespace)
        marker.action = marker.DELETE_ALL
        return self._request(request)

    def _request(self, request: Any) -> bool:
        try:
            done, answer = self._node.request(
                SERVICE, request, type(request), self._answer, TIMEOUT
            )
        except Exception as error:  # whatever a GUI that just went away makes of it
            LOG.warning("%s: %s", SERVICE, error)
            return False
        return bool(done and answer.data)


def _fill(marker: Any, rod: Rod) -> None:
    position, orientation, scale = marker.pose.position, marker.pose.orientation, marker.scale
    position.x, position.y, position.z = rod.position.tolist()
    orientation.w, orientation.x, orientation.y, orientation.z = rod.quaternion.tolist()
    # the GUI's cylinder has diameter 1 and length 1
    scale.x, scale.y, scale.z = rod.diameter, rod.diameter, rod.length
    for color in (marker.material.ambient, marker.material.diffuse):
        color.r, color.g, color.b = rod.rgb
        color.a = 1.0
    marker.material.lighting = True
