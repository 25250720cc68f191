"""Node ``ctc_joint``: computed torque in joint space. Follows ``trajectory_msgs/JointTrajectory``.

A trajectory received on ``~/reference`` begins at the desired point of the moment, with its
velocity, at the time of the last state; its header stamp is not used.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rclpy.context import Context
from trajectory_msgs.msg import JointTrajectory

from cards_core.errors import CardsError
from cards_core.trajectories import TrajectoryError, TrajectoryPoint, from_joint_trajectory
from cards_core.typing import Array
from cards_ros import topics
from cards_ros.loop import HOT_NICE, StopFlag, run
from controllers.controller_node import ControllerNode

NODE_NAME = "ctc_joint"


class CtcJointNode(ControllerNode):
    """See the module; arguments as `ControllerNode`."""

    def __init__(self, context: Context, stop: StopFlag, **options: Any) -> None:
        super().__init__(NODE_NAME, context, stop, **options)
        self.create_subscription(
            JointTrajectory, topics.REFERENCE, self._on_trajectory, topics.COMMAND_QOS
        )

    def _place(self) -> Array:
        return self._q.copy()

    def _on_trajectory(self, message: JointTrajectory) -> None:
        points = [
            TrajectoryPoint(
                point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec,
                point.positions,
                point.velocities,
                point.accelerations,
            )
            for point in message.points
        ]
        start, velocity, _ = self._present()
        try:
            if velocity.size != start.size:
                raise TrajectoryError(
                    "robots with ball or free joints have no joint trajectories by topic; use a "
                    "reference file"
                )
            reference = from_joint_trajectory(
                message.joint_names,
                points,
                joint_names=self.dynamics.tree.position_names,
                start=start,
                start_velocity=velocity if velocity.size == start.size else None,
            )
            self._follow(reference)
        except CardsError as error:
            self.get_logger().error(f"~/reference refused: {error}")


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``ctc_joint``."""
    return run(CtcJointNode, NODE_NAME, args, nice=HOT_NICE)


if __name__ == "__main__":
    sys.exit(main())
