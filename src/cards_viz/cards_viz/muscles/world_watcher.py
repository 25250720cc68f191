"""Where the bodies of the world around a robot are, from topics."""

from __future__ import annotations

import numpy as np
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import MultiDOFJointState

from cards_core.errors import CardsError
from cards_core.formats.sdf.world import load_world
from cards_core.robot.model import Robot
from cards_core.robot.terrain import read_terrain
from cards_core.robot.terrain_place import on_terrain
from cards_core.spatial import Pose, quaternion_matrix
from cards_core.typing import Array
from cards_ros import topics
from cards_ros.loop import HotSubscription
from cards_ros.messages import JointSetError, NameOrder
from cards_viz.muscles.watcher import PolledStates
from cards_viz.muscles.world_scene import OtherRobot, WorldScene


class WorldWatcher:
    """Follows ``object_states`` and the joints of the other robots.

    Args:
        node: Node to subscribe with, in the namespace of the robot that is drawn.
        scene: The world.

    Attributes:
        poses: Of the bodies that have been heard of, by name, in the axes of the robot that is
            drawn, shape (4, 4).
    """

    def __init__(self, node: Node, scene: WorldScene) -> None:
        self._scene = scene
        # the world of robots with namespaces has none
        root = "/" if scene.namespace else ""
        self._objects = HotSubscription(
            node, MultiDOFJointState, f"{root}{topics.OBJECT_STATES}", topics.DRAWING_QOS
        )
        self._robots = [_Followed(node, robot) for robot in scene.robots]
        self.poses: dict[str, Array] = {}

    def poll(self) -> None:
        """Take what has come."""
        newest = None
        while (data := self._objects.take()) is not None:
            newest = data
        if newest is not None:
            message = deserialize_message(newest, MultiDOFJointState)
            for name, transform in zip(message.joint_names, message.transforms, strict=False):
                p, r = transform.translation, transform.rotation
                pose = Pose(quaternion_matrix([r.w, r.x, r.y, r.z]), np.array([p.x, p.y, p.z]))
                self.poses[name] = self._scene.in_robot_axes(pose)
        for robot in self._robots:
            self.poses |= robot.poll()


class _Followed:
    """Another robot and its newest joint states."""

    def __init__(self, node: Node, robot: OtherRobot) -> None:
        self._robot = robot
        prefix = f"/{robot.namespace}" if robot.namespace else ""
        self._joints = PolledStates(node, f"{prefix}/{topics.JOINT_STATES}")
        self._order = NameOrder(robot.scene.tree.position_names)

    def poll(self) -> dict[str, Array]:
        sample = self._joints.take()
        if sample is None or sample.position.size != len(sample.names):
            return {}
        try:
            q = sample.position[self._order.order(sample.names)]
        except JointSetError:
            return {}  # another robot than that of the world's file; its own view says so
        return self._robot.poses(q) if np.all(np.isfinite(q)) else {}


def watch_world(
    node: Node, robot: Robot, world: str, terrain: str
) -> tuple[WorldScene, WorldWatcher] | None:
    """Return the geometry of the world around a node's robot, and its motion.

    Args:
        node: In the namespace of the robot.
        robot: The robot.
        world: Name of a file in ``worlds/`` or path; empty for none.
        terrain: What it stands on, see `cards_core.robot.terrain`; empty for nothing.

    Returns:
        None without a world, or, with a warning, for one that cannot be read: the robot is drawn
        all the same, e.g. in a world that only Gazebo reads.
    """
    if not world and not terrain:
        return None
    try:
        around = load_world(world) if world else None
        if terrain:
            around = on_terrain(read_terrain(terrain), robot, around)
        assert around is not None
        scene = WorldScene(around, node.get_namespace().strip("/"))
    except CardsError as error:
        node.get_logger().warning(f"the world is not drawn: {error}")
        return None
    return scene, WorldWatcher(node, scene)
