"""Node ``gazebo_markers``: muscles coloured by tension in Gazebo's GUI, at most 20 times a second.

Beside them the path of the operational frame, and the one that the controller wants, dashed.

It runs beside Gazebo, reads the same topics as every other view, and hands the muscles to the
GUI's service ``/marker_array``. Without a GUI it waits for one. Environment variables that set
Gazebo's network apart (``GZ_PARTITION``, ``GZ_IP``) must be those of the GUI.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.context import Context

from cards_core.robot.model import Robot
from cards_core.spatial import Pose
from cards_ros.loop import DRAWING_NICE, StopFlag, run
from cards_ros.parameters import Parameter
from cards_viz.colors import first_scale
from cards_viz.gazebo.markers import GazeboMarkers, MuscleCylinders, PathLines
from cards_viz.muscles.hand_paths import HandPaths
from cards_viz.muscles.scene import DASH, Scene
from cards_viz.muscles.watcher import MODEL, DrawingNode

NODE_NAME = "gazebo_markers"

PATH_PERIOD = 0.2
"""Minimum time between two messages of the paths, [s]."""

DESIRED_RGB = (0.35, 0.37, 0.40)
ACTUAL_RGB = (0.12, 0.37, 0.66)

LOOK_PERIOD = 1.0
"""Time between two looks for a GUI, [s]."""


def parameters() -> list[Parameter]:
    """Return the node's parameters."""
    return [
        MODEL,
        Parameter("rate", 20.0, "Maximum rate of updates.", "Hz", lower=0.1, upper=20.0),
        Parameter(
            "origin",
            [0.0] * 6,
            "Pose of the robot's world in Gazebo's: x y z roll pitch yaw, as in <pose> of the "
            "<include> that places the model.",
            "m, rad",
            length=6,
        ),
    ]


class GazeboMarkersNode(DrawingNode):
    """See the module; arguments as `DrawingNode`.

    Attributes:
        sent: Number of updates that the GUI took.

    Raises:
        GazeboBindingsError: Gazebo's Python bindings are not there.
    """

    def __init__(
        self,
        context: Context,
        stop: StopFlag,
        *,
        robot: Robot | None = None,
        **node_options: Any,
    ) -> None:
        super().__init__(NODE_NAME, parameters(), context, stop, robot, **node_options)
        space = self.get_namespace().strip("/")
        self._gui = GazeboMarkers("/".join(filter(None, ("cards", space, self.robot.name))))
        self._scene = Scene(self.robot, with_shapes=False)
        origin = self.values["origin"]
        self._origin = Pose.from_xyz_rpy(origin[:3], origin[3:])
        self._cylinders = MuscleCylinders(self._scene, self._origin)
        self._paths = HandPaths(self._scene)
        self._path_sent = -PATH_PERIOD
        self._scale = first_scale(self.robot)
        self._present = False
        self._looked = -LOOK_PERIOD
        self.sent = 0

    def tick(self) -> None:
        """Look at the topics, show what is new if there is a GUI."""
        new = self.watcher.poll()
        appeared = self._look()
        if not self._present or self.watcher.stamp < 0 or not (new or appeared):
            return
        watcher = self.watcher
        if not np.all(np.isfinite(watcher.q)):
            return
        self._scale.include(watcher.tensions)
        frame = self._scene.frame(watcher.q, watcher.tensions, self._scale.high)
        self._paths.follow(watcher, frame)
        cylinders, gone = self._cylinders.update(frame, watcher.tensions, self._scale)
        if self._gui.send(cylinders, gone, self._new_paths(appeared)):
            self.sent += 1
        else:
            # perhaps it was closed; if so the next one knows none of our cylinders
            self._looked = -LOOK_PERIOD
            self._cylinders.forget()

    def _new_paths(self, appeared: bool) -> list[PathLines]:
        """Return the paths if they have grown, or a GUI has appeared; they grow long."""
        now = time.monotonic()
        if not appeared and (not self._paths.changed or now - self._path_sent < PATH_PERIOD):
            return []
        self._path_sent = now
        self._paths.seen()
        dash = DASH * self._scene.size
        lines = self._paths.desired.segments(dash), self._paths.actual.segments()
        # a path that is empty has one segment without length
        lines = tuple(line[np.ptp(line, axis=1).any(axis=1)] for line in lines)
        return [
            PathLines(number, self._origin.apply(line), rgb)
            for number, line, rgb in zip((1, 2), lines, (DESIRED_RGB, ACTUAL_RGB), strict=True)
        ]

    def _look(self) -> bool:
        """Poll for a GUI; return whether one has appeared."""
        now = time.monotonic()
        if now - self._looked < LOOK_PERIOD:
            return False
        self._looked = now
        before, self._present = self._present, self._gui.available()
        if self._present == before:
            return False
        if self._present:
            self.get_logger().info("drawing muscles in Gazebo's GUI")
        else:
            self.get_logger().info("Gazebo's GUI was closed; waiting for another one")
        self._cylinders.forget()
        return self._present

    def close(self) -> None:
        """Remove the markers and destroy the node."""
        if self.sent and self._gui.available():
            self._gui.clear()
        super().close()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``gazebo_markers``."""
    return run(GazeboMarkersNode, NODE_NAME, args, nice=DRAWING_NICE)
