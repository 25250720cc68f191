"""Subscriptions of the node ``rod_solver``: commands, handed to the session."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from cards_rods.session import RodSession
from cards_ros import topics
from cards_ros.loop import HotSubscription
from cards_ros.messages import JointStateReader

WORLD = ("", "world")
"""Frames of poses and of loads that keep their direction."""


class RodSubscriptions:
    """Subscriptions of joint commands, plate poses and loads.

    Args:
        node: The node.
        session: The robot.

    Attributes:
        subscriptions: To wait for.
    """

    def __init__(self, node: Node, session: RodSession) -> None:
        self._session = session
        self._joints = HotSubscription(
            node, JointState, topics.ROD_JOINT_COMMAND, topics.COMMAND_QOS
        )
        self._pose = HotSubscription(
            node, PoseStamped, topics.ROD_POSE_COMMAND, topics.COMMAND_QOS
        )
        self._wrench = HotSubscription(node, WrenchStamped, topics.ROD_WRENCH, topics.COMMAND_QOS)
        self.subscriptions = (self._joints, self._pose, self._wrench)
        self._reader = JointStateReader()
        plate = session.robot.plate.link
        self._pose_frames = (*WORLD, session.robot.name)
        self._plate_frames = tuple(dict.fromkeys(("plate", plate)))

    def take(self) -> int:
        """Carry out the received commands; return their number."""
        count = 0
        # loads first, so that a pose that came with one is solved under it
        for hot, act in (
            (self._wrench, self._on_wrench),
            (self._joints, self._on_joints),
            (self._pose, self._on_pose),
        ):
            while (data := hot.take()) is not None:
                act(data)
                count += 1
        return count

    def _on_joints(self, data: bytes) -> None:
        sample = self._reader.read(data)
        self._session.command_joints(sample.names, sample.position)

    def _on_pose(self, data: bytes) -> None:
        message: Any = deserialize_message(data, PoseStamped)
        frame = message.header.frame_id
        if frame not in self._pose_frames:
            self._session.refuse("igm", _wrong_frame(frame, self._pose_frames[1:]))
            return
        point, turn = message.pose.position, message.pose.orientation
        self._session.command_pose((point.x, point.y, point.z), (turn.w, turn.x, turn.y, turn.z))

    def _on_wrench(self, data: bytes) -> None:
        message: Any = deserialize_message(data, WrenchStamped)
        frame = message.header.frame_id
        if frame not in WORLD and frame not in self._plate_frames:
            self._session.refuse("wrench", _wrong_frame(frame, ("world", *self._plate_frames)))
            return
        force, torque = message.wrench.force, message.wrench.torque
        self._session.set_wrench(
            (force.x, force.y, force.z, torque.x, torque.y, torque.z),
            "world" if frame in WORLD else "plate",
        )


def _wrong_frame(frame: str, known: tuple[str, ...]) -> str:
    return f"frame_id '{frame}' (expected: {', '.join(known)})"
