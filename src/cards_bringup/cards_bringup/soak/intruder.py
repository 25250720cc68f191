"""What strangers do on the topics of a robot; each act is a process of its own.

Acts that must not move the robot send what no host may obey; their stamps are those of the newest
state, so that it is the content alone that is refused. `flood` sends what a host may obey.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from cards_ros.middleware import use_udp

QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)

LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)

GIANT_NAMES = 300_000
"""Names in a giant message: some 10 MB."""

ANSWER_TIME = 5.0
"""How long a service call may take before it is tried again, [s]."""


class Intruder(Node):
    """A stranger that listens to states and sends what it likes.

    Args:
        context: ROS context.
        given: ``muscles``, ``low``, ``high``, ``duration`` [s], ``seed``, ``host``.
    """

    def __init__(self, context: Context, given: dict[str, Any]) -> None:
        super().__init__(
            f"intruder_{given['seed']}", context=context, start_parameter_services=False
        )
        self.executor_ = SingleThreadedExecutor(context=context)
        self.executor_.add_node(self)
        self.muscles: list[str] = given["muscles"]
        self.low, self.high = np.array(given["low"]), np.array(given["high"])
        self.rng = np.random.default_rng(given["seed"])
        self.duration = float(given["duration"])
        self.host = given["host"]
        self.stamp: Any = None
        self.sent = 0

    def listen(self) -> None:
        """Listen to states; not where another type is published under their name."""
        self.create_subscription(JointState, "joint_states", self._on_state, QOS)

    def _on_state(self, message: Any) -> None:
        self.stamp = message.header.stamp

    def spin(self, seconds: float) -> None:
        """Listen for a while, [s]."""
        self.executor_.spin_once(timeout_sec=seconds)

    def connect(self, publisher: Any, patience: float = 10.0) -> None:
        """Wait until somebody listens and a state has come."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if publisher.get_subscription_count() > 0 and self.stamp is not None:
                return
            self.spin(0.05)

    def command(self, tensions: Any, names: Sequence[str] | None = None) -> Any:
        """Return a command that answers the newest state."""
        out = JointState(name=list(self.muscles if names is None else names))
        out.effort = [float(value) for value in tensions]
        if self.stamp is not None:
            out.header.stamp.sec = self.stamp.sec
            out.header.stamp.nanosec = self.stamp.nanosec
        return out

    def commander(self) -> Any:
        """Return a publisher of commands that is connected."""
        self.listen()
        publisher = self.create_publisher(JointState, "force_command", QOS)
        self.connect(publisher)
        return publisher

    def until_the_end(self, act: Callable[[], None], pause: float) -> None:
        """Act again and again for the duration, with pauses [s]."""
        end = time.monotonic() + self.duration
        while time.monotonic() < end:
            act()
            self.sent += 1
            self.spin(pause)

    # Acts -------------------------------------------------------------------------------------

    def flood(self) -> None:
        """Send valid commands as fast as it goes."""
        publisher = self.commander()

        def act() -> None:
            for _ in range(50):
                publisher.publish(self.command(self.rng.uniform(self.low, self.high)))

        self.until_the_end(act, 0.0)

    def not_finite(self) -> None:
        """Send NaN, infinity, tensions beyond the limits, wrong names and numbers of values."""
        publisher = self.commander()
        count = len(self.muscles)

        def act() -> None:
            middle = 0.5 * (self.low + self.high)
            kind, row = int(self.rng.integers(7)), int(self.rng.integers(count))
            names = None
            if kind < 4:
                middle[row] = (np.nan, np.inf, -np.inf, self.high[row] * 1.5 + 1.0)[kind]
            elif kind == 4:
                middle = middle[:-1] if count > 1 else np.append(middle, 1.0)
            elif kind == 5:
                names = ["no_such_muscle", *self.muscles[1:]]
            else:
                names, middle = [self.muscles[0]] * 2, middle[[0, 0]]
            publisher.publish(self.command(middle, names))

        self.until_the_end(act, 0.005)

    def giant(self) -> None:
        """Send a few messages of some 10 MB on topics of commands, states and models."""
        publisher = self.commander()
        model = self.create_publisher(String, "model", LATCHED)
        names = [f"muscle_{number:020d}" for number in range(GIANT_NAMES)]

        def act() -> None:
            publisher.publish(self.command(np.full(GIANT_NAMES, 50.0), names))
            model.publish(String(data="x" * 10_000_000))

        self.until_the_end(act, 1.0)

    def foreign_types(self) -> None:
        """Publish other types under the names of our topics, and subscribe with others."""
        made = [
            self.create_publisher(String, topic, QOS)
            for topic in ("force_command", "joint_states", "muscle_states", "q", "clock")
        ]
        self.create_subscription(JointState, "model", lambda _m: None, QOS)
        self.create_subscription(JointState, "robot_description", lambda _m: None, QOS)

        def act() -> None:
            for publisher in made:
                publisher.publish(String(data="not what you think"))

        self.until_the_end(act, 0.01)

    def clock_step(self) -> None:
        """Send commands whose stamps are those of a clock that was set: hours ahead or behind."""
        publisher = self.commander()
        steps = (-3600, -1, 1, 3600)

        def act() -> None:
            message = self.command(self.high)
            sec = message.header.stamp.sec + int(steps[int(self.rng.integers(4))])
            if sec < 0:  # there is no time before 0
                sec = 2**31 - 1
            message.header.stamp.sec = sec
            publisher.publish(message)

        self.until_the_end(act, 0.005)

    def rearm(self) -> None:
        """Clear and activate a bridge, as a person would who has looked at the robot."""
        self._ask(Trigger, f"{self.host}/clear", Trigger.Request())
        request = ChangeState.Request()
        request.transition.id = Transition.TRANSITION_CONFIGURE
        self._ask(ChangeState, f"{self.host}/change_state", request)
        request.transition.id = Transition.TRANSITION_ACTIVATE
        self._ask(ChangeState, f"{self.host}/change_state", request)

    def _ask(self, kind: Any, name: str, request: Any) -> Any:
        client = self.create_client(kind, name)
        end = time.monotonic() + 20.0
        while not client.service_is_ready() and time.monotonic() < end:
            self.spin(0.05)
        begin = time.monotonic()
        future = client.call_async(request)
        while not future.done() and time.monotonic() - begin < ANSWER_TIME:
            self.spin(0.05)
        took = time.monotonic() - begin
        print(json.dumps({"service": name, "answered": future.done(), "s": round(took, 3)}))
        answer = future.result() if future.done() else None
        self.destroy_client(client)
        return answer


def main(arguments: Sequence[str] | None = None) -> int:
    """Do one act: its name, then JSON with what `Intruder` takes."""
    act, text = sys.argv[1:] if arguments is None else arguments
    use_udp()
    context = Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    node = Intruder(context, json.loads(text))
    getattr(node, act)()
    print(json.dumps({"act": act, "sent": node.sent}), flush=True)
    node.executor_.shutdown()
    node.destroy_node()
    context.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
