"""Node ``muscle_markers``: what RViz cannot know from a URDF, at most 30 times a second.

``muscle_markers`` holds the muscles coloured by tension, their via points, the forces on the
links, the surfaces that muscles wrap over, the joint angles as text, and the world around the
robot;
``end_effector_path`` where the operational frame has been and where the controller wanted it.
Nothing is computed without subscribers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Quaternion, Vector3
from rclpy.context import Context
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from cards_core.robot.elements import Box, Cylinder, Ellipsoid, Sphere
from cards_core.robot.model import Robot
from cards_core.spatial import matrix_quaternion
from cards_core.stamps import NANOSECONDS
from cards_core.typing import Array
from cards_ros import topics
from cards_ros.loop import DRAWING_NICE, StopFlag, run
from cards_ros.parameters import Parameter
from cards_viz.colors import TensionScale, first_scale
from cards_viz.muscles.hand_paths import HandPaths
from cards_viz.muscles.scene import DASH, Scene, SceneFrame, Shape, Trail, without_repeats
from cards_viz.muscles.watcher import MODEL, TERRAIN, WORLD, DrawingNode
from cards_viz.muscles.world_watcher import watch_world
from cards_viz.rviz.joint_text import JointTexts

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


class ShapeMarkers:
    """Rigid bodies as markers.

    Args:
        namespace: Of the markers; their ids count the shapes.
        shapes: What is drawn.
    """

    def __init__(self, namespace: str, shapes: Sequence[Shape]) -> None:
        self._namespace = namespace
        self._shapes = tuple(shapes)
        self._markers = [self._make(i, shape) for i, shape in enumerate(self._shapes)]

    def _make(self, index: int, shape: Shape) -> Marker:
        marker = _marker(self._namespace, index, Marker.SPHERE, Time(), shape.rgba[:3])
        marker.color.a = shape.rgba[3]
        match shape.geometry:
            case Sphere(radius):
                size = (2.0 * radius,) * 3
            case Ellipsoid(radii):
                size = tuple(2.0 * np.asarray(radii))
            case Cylinder(radius, length):
                marker.type = Marker.CYLINDER
                size = (2.0 * radius, 2.0 * radius, length)
            case Box(extent):
                marker.type = Marker.CUBE
                size = tuple(extent)
            case _:
                marker.type = Marker.TRIANGLE_LIST
                size = (1.0, 1.0, 1.0)
                marker.points = _points(shape.vertices[shape.faces].reshape(-1, 3))
        marker.scale = Vector3(**dict(zip("xyz", map(float, size), strict=True)))
        return marker

    def at(self, poses: Sequence[Array | None] | Array, stamp: Time) -> list[Marker]:
        """Return the markers at one instant; changed by the next call.

        Args:
            poses: Of the links that the shapes belong to, shape (4, 4); those of links whose
                pose is not known are left out.
            stamp: Time of the state.
        """
        drawn = []
        for marker, shape in zip(self._markers, self._shapes, strict=True):
            link = np.eye(4) if shape.link is None else poses[shape.link]
            if link is None:
                continue
            x, y, z = link[:3, :3] @ shape.pose.translation + link[:3, 3]
            marker.header.stamp = stamp
            marker.pose.position = Point(x=float(x), y=float(y), z=float(z))
            w, x, y, z = matrix_quaternion(link[:3, :3] @ shape.pose.rotation)
            marker.pose.orientation = Quaternion(w=float(w), x=float(x), y=float(y), z=float(z))
            drawn.append(marker)
        return drawn


def path_markers(scene: Scene, desired: Trail, actual: Trail, *, stamp: Time) -> MarkerArray:
    """Return the desired path, dashed, and the actual one as LINE_LIST markers.

    Args:
        scene: Scene of the robot, for line widths, [m].
        desired: Desired path, world frame, [m].
        actual: Actual path, likewise.
        stamp: Time of the markers.
    """
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


NODE_NAME = "muscle_markers"
MARKERS_TOPIC = "muscle_markers"
PATH_TOPIC = "end_effector_path"

PATH_PERIOD = 0.2
"""Minimum time between two messages of the path, which grows long, [s]."""


def parameters() -> list[Parameter]:
    """Return the node's parameters."""
    return [
        MODEL,
        WORLD,
        TERRAIN,
        Parameter("rate", 30.0, "Maximum rate of messages.", "Hz", lower=0.1, upper=30.0),
        Parameter("forces", True, "Draw the forces on the links as arrows.", live=True),
        Parameter(
            "joint_angles", True, "Write the joint coordinates beside the joints.", live=True
        ),
    ]


class MuscleMarkersNode(DrawingNode):
    """See the module; arguments as `DrawingNode`."""

    def __init__(
        self,
        context: Context,
        stop: StopFlag,
        *,
        robot: Robot | None = None,
        **node_options: Any,
    ) -> None:
        super().__init__(NODE_NAME, parameters(), context, stop, robot, **node_options)
        self._scene = Scene(self.robot, with_shapes=False)
        self._scale = first_scale(self.robot)
        home = self._scene.link_poses(self._scene.tree.home)
        self._texts = JointTexts(self._scene.tree, self._scene.size, home, FRAME)
        self._surfaces = ShapeMarkers("wrap_surfaces", self._scene.surfaces)
        self._world = watch_world(self, self.robot, self.values["world"], self.values["terrain"])
        if self._world is not None:
            around = self._world[0]
            self._bodies = ShapeMarkers("world", (*around.fixed, *around.moving))
        self._paths = HandPaths(self._scene)
        self._path_sent = 0.0
        self._path_readers = 0
        self._markers = self.create_publisher(MarkerArray, MARKERS_TOPIC, topics.STATE_QOS)
        self._path = self.create_publisher(MarkerArray, PATH_TOPIC, topics.STATE_QOS)

    def tick(self) -> None:
        """Look at the topics and publish what is new."""
        watcher = self.watcher
        new = watcher.poll()
        if self._world is not None:
            self._world[1].poll()
        if watcher.stamp < 0:
            return
        sec, nanosec = divmod(watcher.stamp, NANOSECONDS)
        stamp = Time(sec=sec, nanosec=nanosec)
        if new and np.all(np.isfinite(watcher.q)):
            self._draw(stamp)
        self._publish_path(stamp)

    def _draw(self, stamp: Time) -> None:
        watcher = self.watcher
        self._scale.include(watcher.tensions)
        frame = self._scene.frame(watcher.q, watcher.tensions, self._scale.high)
        self._paths.follow(watcher, frame)
        if self._markers.get_subscription_count():
            markers = muscle_markers(
                self._scene,
                frame,
                watcher.tensions,
                self._scale,
                stamp=stamp,
                with_forces=self.values["forces"],
            )
            markers.markers.extend(self._surfaces.at(frame.link_poses, stamp))
            if self.values["joint_angles"]:
                markers.markers.extend(self._texts.at(watcher.q, frame.link_poses, stamp))
            if self._world is not None:
                scene, motion = self._world
                markers.markers.extend(self._bodies.at(scene.poses(motion.poses), stamp))
            self._markers.publish(markers)

    def _publish_path(self, stamp: Time) -> None:
        """Publish the path when it has grown or somebody new wants it."""
        readers = self._path.get_subscription_count()
        now = time.monotonic()
        paths = self._paths
        changed = paths.changed or readers > self._path_readers
        if readers and changed and now - self._path_sent >= PATH_PERIOD:
            paths.seen()
            self._path_sent = now
            self._path_readers = readers
            self._path.publish(path_markers(self._scene, paths.desired, paths.actual, stamp=stamp))
        self._path_readers = min(self._path_readers, readers)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``muscle_markers``."""
    return run(MuscleMarkersNode, NODE_NAME, args, nice=DRAWING_NICE)
