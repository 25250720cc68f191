"""What the node of every host has: topics, commands, health, and the end of its log.

A node makes one `HostShell` around its `Host`. How time passes is the node's own business: the
embedded simulator steps it, Gazebo and the real robot tell it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rclpy.node import Node
from std_srvs.srv import Trigger

from cards_core.loop.host import Host
from cards_core.loop.model_identity import ModelIdentity
from cards_core.muscles.command import CommandRefusedError, command_of
from cards_core.stamps import seconds
from cards_ros import topics
from cards_ros.host_health import HostHealth, HostView
from cards_ros.host_topics import HostTopics
from cards_ros.model_topic import ModelTopic


class HostShell:
    """Topics, emergency stop and health of a host.

    Args:
        node: The host's node.
        host: The host.
        view: What its health looks at; often the node itself.
        identity: Of the model it moves.
        description: URDF for ``robot_description``; not published if empty.
        accepts: Tells whether commands of nodes with other models are obeyed.

    Attributes:
        host: As given.
        models: What this and other nodes say of their models.
        topics: Publishers and subscriptions.
        health: What is said on ``/diagnostics``.
    """

    def __init__(
        self,
        node: Node,
        host: Host,
        view: HostView,
        *,
        identity: ModelIdentity,
        description: str,
        accepts: Callable[[], bool],
    ) -> None:
        self._node = node
        self.host = host
        # before the topics with states: see `ModelTopic`
        self.models = ModelTopic(node, "host", identity, accepts)
        self.topics = HostTopics(
            node,
            host.robot,
            host.robot.tree,
            host.actuator_names,
            description,
            models=self.models,
        )
        self.health = HostHealth(node, host, view, self.models)
        node.create_service(Trigger, topics.ESTOP_SERVICE, self._on_estop)

    @property
    def now(self) -> str:
        """Time of the present state in words, [s]."""
        return f"{seconds(self.host.stamp):.6g}"

    def publish(self) -> None:
        """Publish the present state."""
        self.topics.publish(self.host.stamp, self.host.state)

    def obey(self, *, lockstep: bool, patience: int) -> Iterator[None]:
        """Take over the commands that have come; yield after each that lets time go on.

        In lockstep muscles and motors are told by messages of their own, and both are the answer.
        After an emergency stop a world that waits for answers goes on at minimum tension.

        Args:
            lockstep: Only answers to the present state count.
            patience: Oldest state that may be answered, [ns].
        """
        host = self.host
        for kind, sample, values in self.topics.answers(
            host.stamp, lockstep=lockstep, patience=patience, refused=self.health.refused
        ):
            if host.gate.stopped:
                if lockstep:
                    yield
                continue
            try:
                host.submit(command_of(sample.names, values, kind))
            except CommandRefusedError as error:
                self.health.refused(str(error))
                continue
            if not (lockstep and host.unanswered):
                yield

    def record(self) -> None:
        """Log the present state; without a log go on: a full disk must not drop the arm."""
        try:
            self.host.record()
        except OSError as error:
            failure = f"log stopped at t = {self.now} s: {error}"
            self.health.log_failure = failure
            self._node.get_logger().error(failure)

    def refresh(self) -> None:
        """Look who listens and report; meant for whenever `NodeLoop.serve` returns True."""
        self.topics.refresh()
        self.health.update()

    def close(self) -> None:
        """Say how it was and write the log."""
        self.health.tell_verdict("until the end")
        try:
            self.host.close()
        except OSError as error:
            self._node.get_logger().error(f"log not written: {error}")

    def _on_estop(self, _request: Any, response: Any) -> Any:
        gate = self.host.gate
        gate.estop()
        self._node.get_logger().warning(f"emergency stop: {gate.at_rest} until sim/reset")
        response.success = True
        response.message = f"{gate.at_rest}; sim/reset releases the stop"
        return response
