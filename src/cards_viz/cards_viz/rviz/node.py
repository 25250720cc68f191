"""Node ``muscle_markers``: what RViz cannot know from a URDF, at most 30 times a second.

``muscle_markers`` holds the muscles coloured by tension, their via points, the forces on the links
and the surfaces that muscles wrap over; ``end_effector_path`` where the operational frame has been
and where the controller wanted it. Nothing is computed while nobody subscribes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.context import Context
from visualization_msgs.msg import MarkerArray

from cards_core.robot.model import Robot
from cards_core.stamps import NANOSECONDS
from cards_ros import topics
from cards_ros.loop import DRAWING_NICE, StopFlag, run
from cards_ros.parameters import Parameter
from cards_viz.colors import first_scale
from cards_viz.muscles.scene import SPACING, Scene, Trail
from cards_viz.muscles.watcher import MODEL, DrawingNode, tracked
from cards_viz.rviz.markers import SurfaceMarkers, muscle_markers, path_markers

NODE_NAME = "muscle_markers"
MARKERS_TOPIC = "muscle_markers"
PATH_TOPIC = "end_effector_path"

PATH_PERIOD = 0.2
"""Least time between two messages of the path, which grows long, [s]."""


def parameters() -> list[Parameter]:
    """Return the node's parameters."""
    return [
        MODEL,
        Parameter("rate", 30.0, "Greatest rate of messages.", "Hz", lower=0.1, upper=30.0),
        Parameter("forces", True, "Draw the forces on the links as arrows.", live=True),
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
        self._surfaces = SurfaceMarkers(self._scene)
        self._desired = Trail(SPACING * self._scene.size)
        self._actual = Trail(SPACING * self._scene.size)
        self._stamp = -1
        self._path_sent = 0.0
        self._path_readers = 0
        self._markers = self.create_publisher(MarkerArray, MARKERS_TOPIC, topics.STATE_QOS)
        self._path = self.create_publisher(MarkerArray, PATH_TOPIC, topics.STATE_QOS)

    def tick(self) -> None:
        """Look at the topics and publish what is new."""
        watcher = self.watcher
        new = watcher.poll()
        if watcher.stamp < 0:
            return
        sec, nanosec = divmod(watcher.stamp, NANOSECONDS)
        stamp = Time(sec=sec, nanosec=nanosec)
        if new and np.all(np.isfinite(watcher.q)):
            self._draw(stamp)
        self._publish_path(stamp)

    def _draw(self, stamp: Time) -> None:
        watcher = self.watcher
        if watcher.stamp < self._stamp:
            # the simulator was reset: another run, another path
            self._desired.clear()
            self._actual.clear()
        self._stamp = watcher.stamp
        self._scale.include(watcher.tensions)
        frame = self._scene.frame(watcher.q, watcher.tensions, self._scale.high)
        self._actual.add(frame.end_effector)
        if watcher.tracking is not None:
            goal = tracked(watcher.tracking, self._scene, watcher.q)
            self._desired.add(None if goal is None else goal.position)
        if self._markers.get_subscription_count():
            markers = muscle_markers(
                self._scene,
                frame,
                watcher.tensions,
                self._scale,
                stamp=stamp,
                with_forces=self.values["forces"],
            )
            markers.markers.extend(self._surfaces.at(frame, stamp))
            self._markers.publish(markers)

    def _publish_path(self, stamp: Time) -> None:
        """Publish the path when it has grown or somebody new wants it."""
        readers = self._path.get_subscription_count()
        now = time.monotonic()
        changed = self._actual.changed or self._desired.changed or readers > self._path_readers
        if readers and changed and now - self._path_sent >= PATH_PERIOD:
            self._actual.changed = self._desired.changed = False
            self._path_sent = now
            self._path_readers = readers
            self._path.publish(path_markers(self._scene, self._desired, self._actual, stamp=stamp))
        self._path_readers = min(self._path_readers, readers)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``muscle_markers``."""
    return run(MuscleMarkersNode, NODE_NAME, args, nice=DRAWING_NICE)
