"""Node ``gazebo_markers``: muscles coloured by tension in Gazebo's GUI, at most 20 times a second.

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
from cards_viz.gazebo.markers import GazeboMarkers, MuscleCylinders
from cards_viz.muscles.scene import Scene
from cards_viz.muscles.watcher import MODEL, DrawingNode

NODE_NAME = "gazebo_markers"

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
        self._cylinders = MuscleCylinders(self._scene, Pose.from_xyz_rpy(origin[:3], origin[3:]))
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
        if self._gui.send(*self._cylinders.update(frame, watcher.tensions, self._scale)):
            self.sent += 1
        else:
            # perhaps it was closed; if so the next one knows none of our cylinders
            self._looked = -LOOK_PERIOD
            self._cylinders.forget()

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
