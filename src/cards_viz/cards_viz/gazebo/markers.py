"""Shows muscles in Gazebo's GUI; the only module of the package that talks to Gazebo.

Lines in the GUI are too thin to show colours, so muscles are drawn as cylinders; the path of the
hand is lines.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cards_core.errors import CardsError
from cards_core.spatial import Pose, matrix_quaternion, rotation_z_to
from cards_core.typing import Array, Vector3
from cards_ros import gazebo_bindings
from cards_viz.colors import TensionScale
from cards_viz.muscles.scene import APART, Scene, SceneFrame


@dataclass(frozen=True, eq=False)
class Cylinder:
    """A cylinder along the z axis of its frame.

    Attributes:
        number: From 1.
        position: Centre, shape (3,), [m].
        quaternion: Orientation (w, x, y, z), shape (4,).
        length: [m].
        diameter: [m].
        rgb: Colour, each 0..1.
    """

    number: int
    position: Vector3
    quaternion: Array
    length: float
    diameter: float
    rgb: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class PathLines:
    """A path as separate lines.

    Attributes:
        number: From 1.
        segments: Begin and end of each line, shape (k, 2, 3), [m].
        rgb: Colour, each 0..1.
    """

    number: int
    segments: Array
    rgb: tuple[float, float, float]


class MuscleCylinders:
    """Turns the frames of a scene into cylinders.

    A cylinder lies between two neighbouring points of a drawn muscle. Its number stays with the
    place in the muscle, so that a viewer can move what it already shows.

    Args:
        scene: Geometry of the robot.
        origin: Pose of the robot's world in the viewer's.
    """

    def __init__(self, scene: Scene, origin: Pose | None = None) -> None:
        self._scene = scene
        self._origin = Pose() if origin is None else origin
        self._shown: frozenset[int] = frozenset()

    def forget(self) -> None:
        """Assume that nothing is shown yet, because the viewer is a new one."""
        self._shown = frozenset()

    def update(
        self, frame: SceneFrame, tensions: Array, scale: TensionScale
    ) -> tuple[list[Cylinder], list[int]]:
        """Return what to show now, and the numbers of shown cylinders that have to go.

        Those without length have none: where a muscle passes a surface without touching it.

        Args:
            frame: Of the moment to draw.
            tensions: Shape (m,), [N].
            scale: Range of the colours.
        """
        origin = self._origin
        start, end = origin.apply(frame.segments[:, 0]), origin.apply(frame.segments[:, 1])
        along = end - start
        lengths = np.linalg.norm(along, axis=1)
        rgb = (scale.colors(tensions) / 255.0)[self._scene.segment_muscle]
        cylinders = [
            Cylinder(
                i + 1,
                0.5 * (start[i] + end[i]),
                matrix_quaternion(rotation_z_to(along[i] / lengths[i])),
                float(lengths[i]),
                2.2 * self._scene.radius,
                tuple(rgb[i].tolist()),
            )
            for i in np.flatnonzero(lengths > APART).tolist()
        ]
        now = frozenset(cylinder.number for cylinder in cylinders)
        gone = sorted(self._shown - now)
        self._shown = now
        return cylinders, gone


SERVICE = "/marker_array"

TIMEOUT = 200
"""Longest wait for an answer, [ms]; the GUI answers within a frame of its own."""

LOG = logging.getLogger(__name__)


class GazeboBindingsError(CardsError):
    """Gazebo's Python bindings cannot be imported."""


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
    """Shows cylinders in Gazebo's GUI.

    The GUI offers the service ``/marker_array``; a server without GUI does not. The
    similar service ``/marker`` never answers: every call would wait for the whole timeout.

    Never use this inside a simulator's process: a call holds Python's global lock until it is
    answered.

    Args:
        namespace: Of the markers: keeps those of several robots apart.

    Raises:
        GazeboBindingsError: Gazebo's Python bindings are not there.
    """

    def __init__(self, namespace: str) -> None:
        node, self._markers, self._answer = _bindings()
        self._node = node()
        self._namespace = namespace
        self._path_namespace = f"{namespace}/path"

    def available(self) -> bool:
        """Tell whether a GUI offers the service.

        The first call of a process waits for Gazebo's discovery, up to 2 s; later ones do not.
        """
        return SERVICE in self._node.service_list()

    def send(
        self,
        cylinders: Iterable[Cylinder],
        gone: Sequence[int] = (),
        paths: Iterable[PathLines] = (),
    ) -> bool:
        """Show cylinders and paths, remove cylinders; return whether the GUI took it.

        Args:
            cylinders: To show.
            gone: Numbers of those to remove.
            paths: To show in place of what they were; paths that are left out stay.
        """
        request = self._markers()
        for number in gone:
            marker = request.marker.add(ns=self._namespace, id=number)
            marker.action = marker.DELETE_MARKER
        for cylinder in cylinders:
            # number 0 would make a new marker every time
            marker = request.marker.add(ns=self._namespace, id=cylinder.number)
            marker.action, marker.type = marker.ADD_MODIFY, marker.CYLINDER
            _fill(marker, cylinder)
        for path in paths:
            marker = request.marker.add(ns=self._path_namespace, id=path.number)
            if len(path.segments):
                marker.action, marker.type = marker.ADD_MODIFY, marker.LINE_LIST
                _fill_lines(marker, path)
            else:
                marker.action = marker.DELETE_MARKER
        return self._request(request)

    def clear(self) -> bool:
        """Remove all our markers."""
        request = self._markers()
        for namespace in (self._namespace, self._path_namespace):
            marker = request.marker.add(ns=namespace)
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


def _fill(marker: Any, cylinder: Cylinder) -> None:
    position, orientation, scale = marker.pose.position, marker.pose.orientation, marker.scale
    position.x, position.y, position.z = cylinder.position.tolist()
    orientation.w, orientation.x, orientation.y, orientation.z = cylinder.quaternion.tolist()
    # the GUI's cylinder has diameter 1 and length 1
    scale.x, scale.y, scale.z = cylinder.diameter, cylinder.diameter, cylinder.length
    _paint(marker, cylinder.rgb)
    marker.material.lighting = True


def _fill_lines(marker: Any, path: PathLines) -> None:
    marker.pose.orientation.w = 1.0
    for x, y, z in path.segments.reshape(-1, 3).tolist():
        marker.point.add(x=x, y=y, z=z)
    _paint(marker, path.rgb)


def _paint(marker: Any, rgb: tuple[float, float, float]) -> None:
    for color in (marker.material.ambient, marker.material.diffuse):
        color.r, color.g, color.b = rgb
        color.a = 1.0
