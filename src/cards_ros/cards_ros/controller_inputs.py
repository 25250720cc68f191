"""What a controller node hears beside ``joint_states``: muscles, live references, forces.

A host publishes ``joint_states`` first and ``muscle_states`` of the same instant, with the same
stamp, after it. A state of a controller that needs both is answered when both are there.

Messages on ``~/reference`` become functions of time:

================ ===================================== ==========================================
space            message                               what is tracked
================ ===================================== ==========================================
``joint``        ``trajectory_msgs/JointTrajectory``   begins at the desired point of the moment,
                                                       with its velocity, at the last state's time
``operational``  ``geometry_msgs/PoseStamped`` in      a smooth motion there from the desired point
                 ``world``                             of the moment, at most at `reference_speed`
================ ===================================== ==========================================

The stamps of references are not used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from cards_core.checks import check_choice
from cards_core.control.interface import Controller
from cards_core.errors import CardsError
from cards_core.muscles.actuators.thermal import MotorTemperatures
from cards_core.parameters.declaration import ParameterStore
from cards_core.robot.elements import WORLD
from cards_core.robot.state import RobotState
from cards_core.trajectories import (
    Reference,
    TrajectoryError,
    TrajectoryPoint,
    from_joint_trajectory,
)
from cards_core.trajectories.base import Sample
from cards_core.trajectories.live import PoseMotion
from cards_ros import topics
from cards_ros.loop import HotSubscription
from cards_ros.messages import JointSetError, JointStateReader, MuscleStateNames

FIELDS = {"muscle_lengths": "position", "muscle_rates": "velocity", "tensions": "effort"}
"""Quantities of `RobotState` that ``muscle_states`` has, and the fields they are in; temperatures
are taken from the actuator states, where there are any."""


class MuscleInput:
    """The newest ``muscle_states``.

    Args:
        node: The controller's node.
        needs: Quantities of `RobotState` that the controller needs beside time, q and qd.
        muscles: Names of the robot's muscles.

    Attributes:
        subscription: To wait for; None if nothing is needed.
        stamp: Of the newest message, [ns]; -1 before the first.

    Raises:
        UnknownNameError: A quantity is needed that no host publishes.
    """

    def __init__(self, node: Node, needs: Iterable[str], muscles: Sequence[str]) -> None:
        self._needs = tuple(needs)
        for name in self._needs:
            check_choice(name, "quantity that hosts publish", FIELDS)
        self.subscription: HotSubscription | None = None
        if self._needs:
            self.subscription = HotSubscription(
                node, JointState, topics.MUSCLE_STATES, topics.STATE_INPUT_QOS
            )
        self._names = MuscleStateNames(muscles)
        self._muscles = tuple(muscles)
        self._states: tuple[tuple[str, int], ...] | None = None
        self._temperatures = MotorTemperatures(muscles, ())
        self._places: list[int] = []
        self._reader = JointStateReader()
        self.stamp = -1

    def read(self, state: RobotState, stamp: int) -> bool:
        """Take over the newest message; tell whether it is of the wanted instant.

        Args:
            state: Gets the quantities.
            stamp: Of the state, [ns].

        Raises:
            JointSetError: The message does not fit the robot.
        """
        if self.subscription is None:
            return True
        while self.stamp < stamp and (data := self.subscription.take()) is not None:
            sample = self._reader.read(data)
            places, states = self._names.places(sample.names)
            if states is not self._states:
                self._states = states
                names = [name for name, _ in states]
                self._temperatures = MotorTemperatures(self._muscles, names)
                self._places = [place for _, place in states]
            for name in self._needs:
                values = getattr(sample, FIELDS[name])
                if values.size != len(sample.names):
                    raise JointSetError(
                        f"muscle_states has {values.size} entries in {FIELDS[name]} for "
                        f"{len(sample.names)} names (expected: one for every name)"
                    )
                setattr(state, name, values[places])
            state.temperatures = self._temperatures.among(sample.position[self._places])
            self.stamp = sample.stamp
        return self.stamp == stamp

    def restart(self) -> None:
        """Forget the last message: time went back."""
        self.stamp = -1


Present = Callable[[], Sample]
"""Returns y, yd, ydd where a live reference has to take over."""


def _motion_in_joints(
    message: JointTrajectory, controller: Controller, present: Present, _: ParameterStore
) -> Reference:
    points = [
        TrajectoryPoint(
            point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec,
            point.positions,
            point.velocities,
            point.accelerations,
        )
        for point in message.points
    ]
    start, velocity, _acceleration = present()
    if velocity.size != start.size:
        raise TrajectoryError(
            "robots with ball or free joints have no joint trajectories by topic; use a "
            "reference file"
        )
    return from_joint_trajectory(
        message.joint_names,
        points,
        joint_names=controller.reference_names,
        start=start,
        start_velocity=velocity,
    )


def _motion_to_pose(
    message: PoseStamped, controller: Controller, present: Present, parameters: ParameterStore
) -> Reference:
    frame = message.header.frame_id
    if frame not in ("", WORLD):
        raise TrajectoryError(f"pose is in frame '{frame}', expected '{WORLD}'")
    position, rotation = message.pose.position, message.pose.orientation
    axes = [name for name in controller.reference_names if name in ("x", "y", "z")]
    target = np.array([getattr(position, axis) for axis in axes])
    quaternion = None
    if len(axes) < len(controller.reference_names):
        quaternion = np.array([rotation.w, rotation.x, rotation.y, rotation.z])
    return PoseMotion(present(), target, quaternion, speed=parameters["reference_speed"])


_READERS = {
    "joint": (JointTrajectory, _motion_in_joints),
    "operational": (PoseStamped, _motion_to_pose),
}
"""Space of the references to the message of ``~/reference`` and its reader."""


def subscribe_reference(
    node: Node,
    controller: Controller,
    parameters: ParameterStore,
    *,
    present: Present,
    follow: Callable[[Reference], None],
) -> None:
    """Subscribe a node to the references of its controller.

    Args:
        node: The node.
        controller: Its controller.
        parameters: Of the node.
        present: Returns where a reference has to take over.
        follow: Called with each reference that can be tracked; others are logged as errors.

    Raises:
        UnknownNameError: The controller has references in a space without messages.
    """
    check_choice(controller.space, "space of references", _READERS)
    message_type, read = _READERS[controller.space]

    def on_message(message: JointTrajectory | PoseStamped) -> None:
        try:
            follow(read(message, controller, present, parameters))
        except CardsError as error:
            node.get_logger().error(f"~/reference refused: {error}")

    node.create_subscription(message_type, topics.REFERENCE, on_message, topics.COMMAND_QOS)


def subscribe_forces(node: Node, controller: Controller, taken: Callable[[], None]) -> None:
    """Subscribe a node to contact forces and external wrenches, if its controller takes any.

    A wrench on a link is answered by minus this, see `Controller.set_contact_force`.

    Args:
        node: The node.
        controller: Its controller.
        taken: Called after each force that was taken over; others are logged as errors.
    """
    if controller.contact_forces is None:
        return
    for frame in controller.model.robot.frames:
        # the first force on a frame builds code for it, which takes longer than boards wait
        controller.set_contact_force(frame.name, (0.0, 0.0, 0.0))

    def take(message: WrenchStamped, topic: str, sign: float) -> None:
        force, moment = (
            [sign * part.x, sign * part.y, sign * part.z]
            for part in (message.wrench.force, message.wrench.torque)
        )
        try:
            controller.set_contact_force(message.header.frame_id, force, moment=moment)
        except CardsError as error:
            node.get_logger().error(f"{topic} refused: {error}")
            return
        taken()

    for topic, sign in ((topics.HAND_FORCE, 1.0), (topics.EXTERNAL_WRENCH, -1.0)):
        on_message = functools.partial(take, topic=topic, sign=sign)
        node.create_subscription(WrenchStamped, topic, on_message, topics.WRENCH_QOS)
