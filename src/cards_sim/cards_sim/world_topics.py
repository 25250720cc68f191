"""Topics of the world of the embedded simulator: objects, contacts, wrenches from outside.

`sensor_msgs/MultiDOFJointState` is the standard message that has names, poses, velocities and
wrenches side by side; it serves for bodies and for contacts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import Quaternion, Transform, Twist, Vector3, Wrench, WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import MultiDOFJointState

from cards_core.errors import CardsError
from cards_core.robot.elements import WORLD
from cards_core.spatial import Pose, matrix_quaternion, rotation_z_to
from cards_core.stamps import NANOSECONDS
from cards_core.typing import Array
from cards_ros import topics
from cards_ros.loop import HotPublisher
from cards_sim.simulator import Simulator
from cards_sim.world_simulator import Contact, WorldSimulator

PAIR = "/"
"""Between the names of two bodies; names have none in them."""


class WorldTopics:
    """Publishes what happens in a world, and pushes bodies as it is told.

    Nothing is computed without subscribers.

    Args:
        node: The node.
        world: The world.
        duration: Returns how long a wrench acts, [s].

    Attributes:
        refusal: Why the last wrench was refused; empty after one that was accepted.
    """

    def __init__(self, node: Node, world: WorldSimulator, duration: Callable[[], float]) -> None:
        self._world = world
        self._duration = duration
        self._logger = node.get_logger()
        self.refusal = ""
        moving = {
            model.prefixed(link) for model in world.world.objects for link in model.moving_links()
        }
        self._bodies = [name for name in world.object_poses() if name in moving]
        self._objects = HotPublisher(
            node, MultiDOFJointState, topics.OBJECT_STATES, topics.STATE_QOS
        )
        self._contacts = HotPublisher(node, MultiDOFJointState, topics.CONTACTS, topics.STATE_QOS)
        node.create_subscription(
            WrenchStamped, topics.APPLY_WRENCH, self._on_wrench, topics.WRENCH_QOS
        )

    def refresh(self) -> None:
        """Look who listens; meant for whenever `NodeLoop.serve` returns True."""
        self._objects.refresh()
        self._contacts.refresh()

    def publish(self, stamp: int) -> None:
        """Publish the present state of the world, for those who listen.

        Args:
            stamp: Its time, [ns].
        """
        if self._objects.wanted:
            self._objects.publish(self._object_states(stamp))
        if self._contacts.wanted:
            self._contacts.publish(contact_message(stamp, self._world.contacts))

    def _object_states(self, stamp: int) -> MultiDOFJointState:
        world, message = self._world, _message(stamp, self._bodies)
        for name in self._bodies:
            velocity = world.velocity(name)
            message.transforms.append(_transform(world.pose(name)))
            message.twist.append(
                Twist(linear=_vector(velocity[:3]), angular=_vector(velocity[3:]))
            )
            message.wrench.append(Wrench(force=_vector(world.contact_force(name))))
        return message

    def _on_wrench(self, message: Any) -> None:
        body = message.header.frame_id
        force, torque = _array(message.wrench.force), _array(message.wrench.torque)
        try:
            if not body:
                raise CardsError("frame_id is empty (expected: the body to push)")
            self._world.apply_wrench(
                body,
                force,
                torque,
                duration=self._duration(),
                point=(0.0, 0.0, 0.0),
            )
        except CardsError as error:
            self.refusal = f"{topics.APPLY_WRENCH} refused: {error}"
            self._logger.error(self.refusal)
        else:
            self.refusal = ""


class ContactForceTopic:
    """Publishes what touches the links of one robot.

    A message for each link that is touched, all at one time, and one of zeros for a link that is
    so no more: what a controller has as ``external_wrench``.

    Args:
        node: Of the robot.
        simulator: The robot.
    """

    def __init__(self, node: Node, simulator: Simulator) -> None:
        self._simulator = simulator
        self._touched: set[str] = set()
        self._forces = HotPublisher(node, WrenchStamped, topics.CONTACT_FORCES, topics.WRENCH_QOS)

    def refresh(self) -> None:
        """Look who listens; meant for whenever `NodeLoop.serve` returns True."""
        self._forces.refresh()

    def publish(self, stamp: int) -> None:
        """Publish the forces of the step that led to the present state, for those who listen.

        Args:
            stamp: Its time, [ns].
        """
        if not self._forces.wanted:
            return
        found = self._simulator.contact_wrenches()
        for link in sorted(self._touched - set(found)):
            self._forces.publish(_wrench_message(stamp, link, np.zeros(6)))
        for link, wrench in found.items():
            self._forces.publish(_wrench_message(stamp, link, wrench))
        self._touched = set(found)


def _wrench_message(stamp: int, link: str, wrench: Array) -> WrenchStamped:
    message = WrenchStamped()
    message.header.frame_id = link
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, NANOSECONDS)
    message.wrench = Wrench(force=_vector(wrench[:3]), torque=_vector(wrench[3:]))
    return message


def contact_message(stamp: int, contacts: tuple[Contact, ...]) -> MultiDOFJointState:
    """Return contacts as a message.

    Each has the name ``first/second``, the contact's frame (origin the point, z the normal from
    the first body to the second) and the force on the second body, in world axes.
    """
    message = _message(stamp, [PAIR.join(contact.bodies) for contact in contacts])
    for contact in contacts:
        frame = Pose(rotation_z_to(contact.normal), contact.position)
        message.transforms.append(_transform(frame))
        message.wrench.append(Wrench(force=_vector(contact.force)))
    return message


def grasped_text(pairs: tuple[tuple[str, str], ...]) -> str:
    """Return pairs as the parameter ``grasped`` has them."""
    return ", ".join(PAIR.join(pair) for pair in pairs)


def read_grasped(text: str) -> list[tuple[str, str]]:
    """Read the parameter ``grasped``.

    Raises:
        CardsError: It is no list of pairs.
    """
    pairs = []
    for part in (part.strip() for part in text.split(",") if text.strip()):
        link, separator, body = part.partition(PAIR)
        if not (link and separator and body):
            raise CardsError(f"grasped: '{part}' (expected: LINK{PAIR}BODY, e.g. arm::hand/box)")
        pairs.append((link, body))
    return pairs


def _message(stamp: int, names: list[str]) -> MultiDOFJointState:
    message = MultiDOFJointState(joint_names=names)
    message.header.frame_id = WORLD
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, NANOSECONDS)
    return message


def _transform(pose: Pose) -> Transform:
    w, x, y, z = matrix_quaternion(pose.rotation).tolist()
    return Transform(
        translation=_vector(pose.translation), rotation=Quaternion(w=w, x=x, y=y, z=z)
    )


def _vector(values: Array) -> Vector3:
    x, y, z = values.tolist()
    return Vector3(x=x, y=y, z=z)


def _array(vector: Any) -> tuple[float, float, float]:
    return (vector.x, vector.y, vector.z)
