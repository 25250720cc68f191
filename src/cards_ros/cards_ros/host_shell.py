"""What the node of every host has: topics, emergency stop, which commands count, log, health.

A node makes one `HostShell` around its `Host`. How time passes is the node's own business: the
embedded simulator steps it, Gazebo and the real robot tell it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from cards_core.errors import CardsError
from cards_core.loop.host import Host
from cards_core.muscles.command import CommandPart, CommandRefusedError
from cards_core.robot.actuators import CommandKind
from cards_core.robot.model import Robot, Tree
from cards_core.robot.motors import motors_of
from cards_core.robot.state import RobotState
from cards_core.stamps import seconds
from cards_ros import topics
from cards_ros.loop import HotPublisher, HotSubscription
from cards_ros.messages import (
    FIELDS,
    FloatArrayWriter,
    JointStateReader,
    JointStateWriter,
    MuscleStateSlots,
    clock_message,
    command_part,
)
from cards_ros.model_topic import ModelTopic

REPUBLISH_PERIOD = 0.2
"""A state that time does not leave is published again after this time, [s] of real time."""


class StaleCommandError(CardsError):
    """A command of a sender that has not seen the robot for too long."""


def is_answer(answered: int, now: int, *, lockstep: bool, patience: int) -> bool:
    """Tell whether a command counts at this time; otherwise it is to be ignored.

    Args:
        answered: Stamp of the command: that of the state it answers, [ns]; 0: typed by hand.
        now: Stamp of the present state, [ns].
        lockstep: Only the answer to the present state counts.
        patience: Oldest state that may be answered, [ns].

    Raises:
        StaleCommandError: The state that is answered is older than that.
    """
    if lockstep:
        return answered == now  # not e.g. a second answer to a repeated state
    if answered > now:
        return False  # answers a state from before a reset
    if answered and now - answered > patience:
        raise StaleCommandError(
            f"command answers the state of t = {seconds(answered):.6g} s, which is older than "
            "command_timeout"
        )
    return True


class HostTopics:
    """Publishers and command subscriptions of a host.

    Args:
        node: The host's node.
        robot: The robot.
        tree: Lays out q and qd.
        state_names: Actuator states that are published beside the muscles.
        description: URDF for ``robot_description``; not published if empty.
        models: The node's topic ``model``; commands are refused while it says why.

    Attributes:
        subscriptions: Of the commands, to wait for.
    """

    def __init__(
        self,
        node: Node,
        robot: Robot,
        tree: Tree,
        state_names: Sequence[str],
        description: str,
        *,
        models: ModelTopic | None = None,
    ) -> None:
        self._models = models
        self._asked = False
        muscles = [*(muscle.name for muscle in robot.muscles), *state_names]
        self._joints = HotPublisher(node, JointState, topics.JOINT_STATES, topics.STATE_QOS)
        self._muscles = HotPublisher(node, JointState, topics.MUSCLE_STATES, topics.STATE_QOS)
        self._q = HotPublisher(node, Float64MultiArray, topics.POSITIONS, topics.STATE_QOS)
        self._qd = HotPublisher(node, Float64MultiArray, topics.VELOCITIES, topics.STATE_QOS)
        self._clock = HotPublisher(node, Clock, topics.CLOCK, topics.CLOCK_QOS)
        # only robots with motors have efforts; they stand beside the coordinates they act on
        self._motor_slots = tree.velocity_slots[motors_of(tree).rows]
        self._effort = np.zeros(tree.nq)
        fields = FIELDS if self._motor_slots.size else ("position", "velocity")
        self._joint_writer = JointStateWriter(tree.position_names, fields)
        self._muscle_writer = JointStateWriter(muscles)
        self._muscle_slots = MuscleStateSlots(len(robot.muscles), len(muscles))
        self._q_writer = FloatArrayWriter(tree.nq)
        self._qd_writer = FloatArrayWriter(tree.nv)
        # a quaternion has four coordinates and three velocities: the slot of its w stays zero
        self._slots = None if tree.nq == tree.nv else tree.velocity_slots
        self._velocity = np.zeros(tree.nq)
        if description:
            publisher = node.create_publisher(String, topics.ROBOT_DESCRIPTION, topics.LATCHED_QOS)
            publisher.publish(String(data=description))
        taken = {kind for muscle in robot.muscles for kind in muscle.actuator.accepted_commands}
        if self._motor_slots.size:
            taken.add("effort")
        self._commands: list[tuple[CommandKind, HotSubscription]] = [
            (kind, HotSubscription(node, JointState, topic, topics.COMMAND_QOS))
            for kind, topic in topics.COMMAND_TOPICS.items()
            if kind in taken or kind == "force"
        ]
        self.subscriptions = [subscription for _, subscription in self._commands]
        self._reader = JointStateReader()

    def commands(self) -> Iterator[tuple[int, CommandPart]]:
        """Take the commands that have come; yield the stamp [ns] and the content of each."""
        for kind, subscription in self._commands:
            data = subscription.take()
            if data is not None:
                sample = self._reader.read(data)
                yield sample.stamp, command_part(kind, sample)

    def answers(
        self, now: int, *, lockstep: bool, patience: int, refused: Callable[[str], None]
    ) -> Iterator[tuple[int, CommandPart]]:
        """Take the commands that have come; yield stamp and content of those that count.

        What counts: `is_answer`.

        Args:
            now: Stamp of the present state, [ns].
            lockstep: Only answers to the present state count.
            patience: Oldest state that may be answered, [ns].
            refused: Told why a command is too old, or that its sender may have another model.
        """
        for stamp, part in self.commands():
            try:
                counts = is_answer(stamp, now, lockstep=lockstep, patience=patience)
            except StaleCommandError as error:
                refused(str(error))
                continue
            if counts and (refusal := self._refusal()):
                refused(f"command refused: {refusal}")
            elif counts:
                yield stamp, part

    def _refusal(self) -> str:
        """Return why commands are not obeyed, empty if they are."""
        if self._models is None:
            return ""
        if not self._asked:
            self._asked = True
            self._models.take()  # what the sender of the first command said of its model
        return self._models.refusal

    def publish(self, stamp: int, state: RobotState) -> None:
        """Publish a state.

        Args:
            stamp: Its time, [ns].
            state: With muscle lengths, rates, tensions and actuators; with efforts if the robot
                has joint motors.
        """
        velocity = state.qd
        if self._slots is not None:
            self._velocity[self._slots] = state.qd
            velocity = self._velocity
        # controllers first: the others are written while these already compute
        if self._motor_slots.size:
            self._effort[self._motor_slots] = state.efforts
            self._joints.publish(self._joint_writer.write(stamp, state.q, velocity, self._effort))
        else:
            self._joints.publish(self._joint_writer.write(stamp, state.q, velocity))
        if self._muscles.wanted:
            names = ("muscle_lengths", "muscle_rates", "tensions", "actuators")
            fields = self._muscle_slots.fill(*(state.measured(name) for name in names))
            self._muscles.publish(self._muscle_writer.write(stamp, *fields))
        if self._q.wanted:
            self._q.publish(self._q_writer.write(state.q))
        if self._qd.wanted:
            self._qd.publish(self._qd_writer.write(state.qd))

    def publish_clock(self, stamp: int) -> None:
        """Publish the time, [ns], if anybody wants to know."""
        if self._clock.wanted:
            self._clock.publish(clock_message(stamp))

    def refresh(self) -> None:
        """Look who listens; meant to be called whenever `NodeLoop.serve` returns True."""
        if self._models is not None:
            self._models.update()
        for publisher in (self._muscles, self._q, self._qd, self._clock):
            publisher.refresh()


class Health(Protocol):
    """What a host says about itself on ``/diagnostics``.

    Attributes:
        log_failure: Why the log stopped, if it did.
    """

    log_failure: str

    def refused(self, reason: str) -> None:
        """Note that a command was refused."""
        ...

    def update(self) -> None:
        """Look at the host and publish if something changed or a second is over."""
        ...


class HostShell:
    """Topics, emergency stop, log and health of a host.

    Args:
        node: The host's node.
        host: The host.
        health: What is said of it on ``/diagnostics``.
        models: What this and other nodes say of their models; made before the shell, so that
            ``model`` is there before the topics with states.
        description: URDF for ``robot_description``; not published if empty.
        on_estop: Called after an emergency stop; returns what to answer. None: the stop holds
            until ``sim/reset``.

    Attributes:
        host: As given.
        topics: Publishers and subscriptions.
        estop: The service.
    """

    def __init__(
        self,
        node: Node,
        host: Host,
        health: Health,
        *,
        models: ModelTopic,
        description: str,
        on_estop: Callable[[], str] | None = None,
    ) -> None:
        self._node = node
        self.host = host
        self._health = health
        self._after_estop = on_estop or self._held_until_reset
        self.topics = HostTopics(
            node,
            host.robot,
            host.robot.tree,
            host.actuator_names,
            description,
            models=models,
        )
        self.estop = node.create_service(Trigger, topics.ESTOP_SERVICE, self._on_estop)

    @property
    def now(self) -> str:
        """Time of the present state in words, [s]."""
        return f"{seconds(self.host.stamp):.6g}"

    def publish(self) -> None:
        """Publish the present state."""
        self.topics.publish(self.host.stamp, self.host.state)

    def obey(self, *, lockstep: bool, patience: int) -> Iterator[int]:
        """Take over the commands that have come; yield the stamp of each that lets time go on.

        In lockstep muscles and motors are told by messages of their own, and both are the answer.
        After an emergency stop a world that waits for answers goes on at minimum tension.

        Args:
            lockstep: Only answers to the present state count.
            patience: Oldest state that may be answered, [ns].
        """
        host = self.host
        for stamp, part in self.topics.answers(
            host.stamp, lockstep=lockstep, patience=patience, refused=self._health.refused
        ):
            if host.gate.stopped:
                if lockstep:
                    yield stamp
                continue
            try:
                host.submit((part,))
            except CommandRefusedError as error:
                self._health.refused(str(error))
                continue
            if not (lockstep and host.unanswered):
                yield stamp

    def record(self) -> None:
        """Log the present state; without a log go on: a full disk must not drop the arm."""
        try:
            self.host.record()
        except OSError as error:
            failure = f"log stopped: {error}"
            self._health.log_failure = failure
            self._node.get_logger().error(failure)

    def refresh(self) -> None:
        """Look who listens and report; meant for whenever `NodeLoop.serve` returns True."""
        self.topics.refresh()
        self._health.update()

    def close(self) -> None:
        """Write the log."""
        try:
            self.host.close()
        except OSError as error:
            self._node.get_logger().error(f"log not written: {error}")

    def _on_estop(self, _request: Any, response: Any) -> Any:
        self.host.estop()
        response.success = True
        response.message = self._after_estop()
        return response

    def _held_until_reset(self) -> str:
        rest = self.host.gate.at_rest
        self._node.get_logger().warning(f"emergency stop: {rest} until sim/reset")
        return f"{rest}; sim/reset releases the stop"
