"""RViz markers of a robot's muscles and of the path of its end effector."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Quaternion, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from cards_core.robot.elements import Cylinder, Ellipsoid, Sphere
from cards_core.spatial import matrix_quaternion
from cards_core.typing import Array
from cards_viz.colors import TensionScale
from cards_viz.muscles.scene import DASH, Scene, SceneFrame, Shape, Trail, without_repeats

FRAME = "world"
"""Frame of all markers."""

POINT_COLOR = (0.28, 0.30, 0.33)
ARROW_COLOR = (0.08, 0.59, 0.35)
DESIRED_COLOR = (0.35, 0.37, 0.40)
ACTUAL_COLOR = (0.12, 0.37, 0.66)


def muscle_markers(
    scene: Scene,
    frame: SceneFrame,
    tensions: Array,
    scale: TensionScale,
    *,
    stamp: Time,
    with_forces: bool = True,
) -> MarkerArray:
    """Return muscles as lines coloured by tension, their via points and the forces on the links.

    Namespaces and ids: ``muscles`` (LINE_STRIP, id = index of the muscle), ``via_points``
    (SPHERE_LIST, id 0), ``forces`` (ARROW, id = index of the arrow).

    Args:
        scene: Geometry of the robot.
        frame: Of the moment to draw.
        tensions: Shape (m,), [N].
        scale: Range of the colours.
        stamp: Time of the state.
        with_forces: Whether to draw the arrows.
    """
    out = MarkerArray()
    radius = scene.radius
    rgb = scale.colors(tensions) / 255.0
    for index, path in enumerate(frame.paths):
        marker = _marker("muscles", index, Marker.LINE_STRIP, stamp, rgb[index])
        marker.scale.x = 2.2 * radius
        # the line would be pinched where points repeat
        marker.points = _points(without_repeats(path))
        out.markers.append(marker)
    if len(frame.points):
        marker = _marker("via_points", 0, Marker.SPHERE_LIST, stamp, POINT_COLOR)
        size = 3.8 * radius
        marker.scale = Vector3(x=size, y=size, z=size)
        marker.points = _points(frame.points)
        out.markers.append(marker)
    for index, arrow in enumerate(frame.arrows):
        marker = _marker("forces", index, Marker.ARROW, stamp, ARROW_COLOR)
        length = float(np.linalg.norm(arrow[1] - arrow[0]))
        if with_forces and length > 1e-6:
            # shaft diameter, head diameter, head length
            marker.scale = Vector3(x=2.4 * radius, y=5.6 * radius, z=min(6.5 * radius, length))
            marker.points = _points(arrow)
        else:
            marker.action = Marker.DELETE
        out.markers.append(marker)
    return out


class SurfaceMarkers:
    """Wrap surfaces as translucent bodies: namespace ``wrap_surfaces``, id = index.

    Args:
        scene: Geometry of the robot.
    """

    def __init__(self, scene: Scene) -> None:
        self._shapes = scene.surfaces
        self._markers = [self._make(i, shape) for i, shape in enumerate(self._shapes)]

    @staticmethod
    def _make(index: int, shape: Shape) -> Marker:
        marker = _marker("wrap_surfaces", index, Marker.SPHERE, Time(), shape.rgba[:3])
        marker.color.a = shape.rgba[3]
        match shape.geometry:
            case Sphere(radius):
                size = (2.0 * radius,) * 3
            case Ellipsoid(radii):
                size = tuple(2.0 * np.asarray(radii))
            case Cylinder(radius, length):
                marker.type = Marker.CYLINDER
                size = (2.0 * radius, 2.0 * radius, length)
            case _:
                marker.type = Marker.TRIANGLE_LIST
                size = (1.0, 1.0, 1.0)
                marker.points = _points(shape.vertices[shape.faces].reshape(-1, 3))
        marker.scale = Vector3(**dict(zip("xyz", map(float, size), strict=True)))
        return marker

    def at(self, frame: SceneFrame, stamp: Time) -> list[Marker]:
        """Return the markers at one instant; changed by the next call."""
        for marker, shape in zip(self._markers, self._shapes, strict=True):
            link = shape.link_pose(frame.link_poses)
            x, y, z = link[:3, :3] @ shape.pose.translation + link[:3, 3]
            marker.header.stamp = stamp
            marker.pose.position = Point(x=float(x), y=float(y), z=float(z))
            w, x, y, z = matrix_quaternion(link[:3, :3] @ shape.pose.rotation)
            marker.pose.orientation = Quaternion(w=float(w), x=float(x), y=float(y), z=float(z))
        return self._markers


def path_markers(scene: Scene, desired: Trail, actual: Trail, *, stamp: Time) -> MarkerArray:
    """Return the desired path, dashed, and the actual one as LINE_LIST markers."""
    out = MarkerArray()
    for name, trail, color, width, dash in (
        ("desired", desired, DESIRED_COLOR, 1.7, DASH * scene.size),
        ("actual", actual, ACTUAL_COLOR, 1.0, 0.0),
    ):
        marker = _marker(name, 0, Marker.LINE_LIST, stamp, color)
        marker.scale.x = width * scene.radius
        marker.points = _points(trail.segments(dash).reshape(-1, 3))
        out.markers.append(marker)
    return out


def _marker(namespace: str, index: int, kind: int, stamp: Time, color: Iterable[float]) -> Marker:
    marker = Marker(ns=namespace, id=index, type=kind, action=Marker.ADD)
    marker.header.frame_id = FRAME
    marker.header.stamp = stamp
    marker.pose.orientation.w = 1.0
    red, green, blue = (float(c) for c in color)
    marker.color = ColorRGBA(r=red, g=green, b=blue, a=1.0)
    return marker


def _points(positions: Array) -> list[Point]:
    return [Point(x=x, y=y, z=z) for x, y, z in np.asarray(positions, dtype=float).tolist()]
