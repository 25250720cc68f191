"""Run nodes in threads and talk to them: helpers for the tests of every package with nodes.

with private_domain() as domain, NodeThread(SimulatorNode, domain, mode="lockstep") as simulator:
    probe = Probe(domain)
    ...

Each node has a ROS context of its own, so that several live in one process, and a domain that no
other process on the machine is likely to use.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile

from cards_ros import topics
from cards_ros.diagnostics import Level
from cards_ros.loop import LoopNode, StopFlag
from cards_ros.middleware import RANGE, VARIABLES, use_udp

PATIENCE = 60.0
"""How long a test waits for what must happen, [s]: far longer than it takes."""


@contextmanager
def private_domain() -> Iterator[int]:
    """Set the environment to a domain of this process, on this machine only."""
    before = {name: os.environ.get(name) for name in ("ROS_DOMAIN_ID", *VARIABLES)}
    # 1..101 is the range whose ports are free on every system; 0 is everybody's default
    domain = 1 + os.getpid() % 101
    for name in VARIABLES:
        os.environ.pop(name, None)
    os.environ["ROS_DOMAIN_ID"] = str(domain)
    os.environ[RANGE] = "LOCALHOST"
    use_udp()
    try:
        yield domain
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class NodeThread:
    """A node with a loop, run in a thread; a context manager.

    Args:
        factory: Makes the node, as for `cards_ros.loop.run`.
        domain: ROS domain.
        options: Further keyword arguments of the factory.
        **parameters: Node parameters.

    Attributes:
        node: The node.
        exit_code: What its `run` returned, None before.
    """

    def __init__(
        self,
        factory: Callable[..., LoopNode],
        domain: int,
        options: Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> None:
        self._stop = StopFlag()
        self._context = Context()
        self._context.init(args=[], domain_id=domain)
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.exit_code: int | None = None
        self._error: BaseException | None = None
        self.node: Any
        try:
            self.node = factory(
                self._context, self._stop, parameter_overrides=overrides, **(options or {})
            )
        except BaseException:
            self._context.try_shutdown()
            raise
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.exit_code = self.node.run()
        except BaseException as error:  # shown by stop(), in the test's own thread
            self._error = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the loop, close the node; raises what the loop raised."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(PATIENCE)
        if self._context.ok():
            self.node.close()
            self._context.try_shutdown()
        if self._error is not None:
            raise self._error

    def join(self) -> None:
        """Wait until the loop has ended by itself."""
        self._thread.join(PATIENCE)

    def __exit__(self, *_: object) -> None:
        self.stop()


class Probe:
    """The other side of the topics: keeps what it receives, publishes, calls services."""

    def __init__(self, domain: int, name: str = "probe") -> None:
        self._context = Context()
        self._context.init(args=[], domain_id=domain)
        self.node = Node(name, context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self.received: dict[str, list[Any]] = {}
        self._publishers: dict[str, Any] = {}
        self._clients: dict[str, Any] = {}
        self.listen(DiagnosticArray, topics.DIAGNOSTICS, topics.DIAGNOSTICS_QOS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the graph."""
        self._executor.shutdown()
        self.node.destroy_node()
        self._context.try_shutdown()

    def listen(
        self,
        msg_type: type,
        topic: str,
        qos: QoSProfile = topics.STATE_QOS,
        react: Callable[[Any], None] | None = None,
    ) -> list[Any]:
        """Collect the messages of a topic in the returned list; ``react`` sees each at once.

        Args:
            msg_type: Type of the messages.
            topic: Name of the topic.
            qos: Quality of service.
            react: Called with each message; None: nothing is.
        """
        known = topic in self.received
        messages = self.received.setdefault(topic, [])
        if known and react is None:
            return messages

        def take(message: Any) -> None:
            messages.append(message)
            if react is not None:
                react(message)

        self.node.create_subscription(msg_type, topic, take, qos)
        return messages

    def publish(self, message: Any, topic: str, qos: QoSProfile = topics.COMMAND_QOS) -> None:
        """Publish a message, the first time after a subscriber was found.

        Args:
            message: The message.
            topic: Name of the topic.
            qos: Quality of service of the publisher.

        Raises:
            TimeoutError: Nobody subscribed to the topic.
        """
        if topic not in self._publishers:
            publisher = self.node.create_publisher(type(message), topic, qos)
            self._publishers[topic] = publisher
            self.until(lambda: publisher.get_subscription_count() > 0, f"a reader of {topic}")
        self._publishers[topic].publish(message)

    def call(self, srv_type: Any, name: str, **request: Any) -> Any:
        """Call a service and return the response.

        Args:
            srv_type: Type of the service.
            name: Name of the service.
            request: Fields of the request.

        Raises:
            TimeoutError: No such service, or no answer.
        """
        if name not in self._clients:
            self._clients[name] = self.node.create_client(srv_type, name)
        client = self._clients[name]
        self.until(client.service_is_ready, f"service {name}")
        future = client.call_async(srv_type.Request(**request))
        self.until(future.done, f"answer of {name}")
        return future.result()

    def spin(self, duration: float) -> None:
        """Receive for a time [s]."""
        end = time.monotonic() + duration
        while time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.01)

    def until(self, condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
        """Receive until a condition holds and return its value.

        Args:
            condition: Called again and again; holds when its value is true.
            what: What is waited for, for the message.
            patience: Longest time to wait, [s].

        Raises:
            TimeoutError: It did not within the patience [s].
        """
        end = time.monotonic() + patience
        while not (value := condition()):
            if time.monotonic() > end:
                raise TimeoutError(f"waited {patience:g} s for {what}")
            self._executor.spin_once(timeout_sec=0.01)
        return value

    def status(self, name: str) -> Any:
        """Return the last diagnostic status of a name such as ``simulator: world``, or None."""
        for message in reversed(self.received[topics.DIAGNOSTICS]):
            for status in message.status:
                if status.name == name:
                    return status
        return None

    def until_status(self, name: str, level: Level, text: str = "") -> Any:
        """Wait for a diagnostic status with a level and a text in its message.

        Args:
            name: Name of the status.
            level: Its level.
            text: Part of its message.

        Returns:
            The ``diagnostic_msgs/DiagnosticStatus``.

        Raises:
            TimeoutError: There was none; the message has the last one.
        """

        def found() -> Any:
            for message in self.received[topics.DIAGNOSTICS]:
                for status in message.status:
                    fits = status.name == name and status.level == bytes([level])
                    if fits and text in status.message:
                        return status
            return None

        try:
            return self.until(found, f"{name} {level.name} '{text}'")
        except TimeoutError as error:
            raise TimeoutError(f"{error}; last: {self.status(name)}") from None

    def forget(self) -> None:
        """Drop all messages received so far."""
        for messages in self.received.values():
            messages.clear()


def start_process(
    module: str, parameters: Mapping[str, Any], arguments: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """Start ``module.main`` as a process of its own, in the present domain.

    Args:
        module: Name of the module.
        parameters: ROS parameters by name.
        arguments: Further arguments after ``--ros-args``.
    """
    code = f"import sys; from {module} import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "--ros-args", *arguments]
    for name, value in parameters.items():
        command += ["-p", f"{name}:={value}"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ.copy()
    )


def end_process(process: subprocess.Popen[str]) -> None:
    """Ask a process to end and wait until it has.

    Killed nodes leave the shared memory that they talk through as it was; mending that crashes
    others of the same Fast DDS (2.14) now and then when they close at that moment.
    """
    process.terminate()
    try:
        process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
