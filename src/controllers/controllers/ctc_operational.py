"""Node ``ctc_operational``: computed torque of a frame, e.g. the hand. Follows ``PoseStamped``.

A pose received on ``~/reference``, in the frame ``world``, is approached on a smooth path from the
desired point of the moment, with its velocity, at most at `reference_speed`. Its header stamp is
not used.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.context import Context

from cards_core.errors import CardsError
from cards_core.robot.elements import WORLD
from cards_core.spatial import matrix_quaternion
from cards_core.trajectories import Reference, TrajectoryError
from cards_core.typing import Array
from cards_ros import topics
from cards_ros.loop import HOT_NICE, StopFlag, run
from controllers.controller_node import ControllerNode
from controllers.pose_motion import PoseMotion

NODE_NAME = "ctc_operational"


class CtcOperationalNode(ControllerNode):
    """See the module; arguments as `ControllerNode`."""

    def __init__(self, context: Context, stop: StopFlag, **options: Any) -> None:
        super().__init__(NODE_NAME, context, stop, **options)
        self.create_subscription(PoseStamped, topics.REFERENCE, self._on_pose, topics.COMMAND_QOS)

    def _axes(self) -> list[int]:
        return ["xyz".index(axis) for axis in self.parameters["axes"]]

    def _place(self) -> Array:
        place = self.dynamics.operational(self._q, self._qd, self.parameters["frame"] or None)
        position = place.position[self._axes()]
        if self.parameters["orientation"]:
            return np.concatenate([position, matrix_quaternion(place.rotation)])
        return position

    def _on_pose(self, message: PoseStamped) -> None:
        try:
            self._follow(self._motion_to(message))
        except CardsError as error:
            self.get_logger().error(f"~/reference refused: {error}")

    def _motion_to(self, message: PoseStamped) -> Reference:
        frame = message.header.frame_id
        if frame not in ("", WORLD):
            raise TrajectoryError(f"pose is in frame '{frame}', expected '{WORLD}'")
        p, r = message.pose.position, message.pose.orientation
        target = np.array([p.x, p.y, p.z])[self._axes()]
        rotation = np.array([r.w, r.x, r.y, r.z]) if self.parameters["orientation"] else None
        return PoseMotion(
            self._present(), target, rotation, speed=self.parameters["reference_speed"]
        )


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``ctc_operational``."""
    return run(CtcOperationalNode, NODE_NAME, args, nice=HOT_NICE)


if __name__ == "__main__":
    sys.exit(main())
