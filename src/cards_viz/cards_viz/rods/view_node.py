"""Node ``rod_view``: the page of a rod robot behind ROS topics.

It draws what the node ``rod_solver`` publishes and commands it through topics and services. It
runs in a process of its own, so that a slow page slows no solve down.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import RodRobot
from cards_core.spatial import matrix_quaternion
from cards_core.typing import Array
from cards_ros import topics
from cards_ros.loop import StopFlag, run
from cards_ros.parameters import Parameter
from cards_viz.nodes import PORT, WINDOW, PageNode
from cards_viz.rods.page import RodPage
from cards_viz.rods.watcher import RodWatcher

PATIENCE = 2.0
"""Time for a service or a subscriber to appear before a command is given up, [s]."""


class RodRosCommands:
    """Fulfils `cards_viz.rods.interface.RodCommands`.

    Its methods may be called from any thread: they queue the command, and `update`, called by
    the thread that spins the node, sends it. Only the newest command of joints, of pose and of
    load is kept: a slider moves faster than messages need to be sent.

    Args:
        node: Node to act through.
        robot: The robot.
        solver: Name of the solver's node.
        notify: Called with the text of what went wrong.
    """

    def __init__(
        self, node: Node, robot: RodRobot, solver: str, notify: Callable[[str], None]
    ) -> None:
        self._node = node
        self._solver = solver
        self._notify = notify
        self._names = list(robot.joint_names)
        self._lock = threading.Lock()
        self._newest: dict[str, tuple[Any, Any, float]] = {}  # by topic: publisher, message, until
        self._waiting: list[tuple[float, str, Callable[[], bool]]] = []
        self._publishers = {
            topic: node.create_publisher(kind, topic.replace("~", solver), topics.COMMAND_QOS)
            for topic, kind in (
                (topics.ROD_JOINT_COMMAND, JointState),
                (topics.ROD_POSE_COMMAND, PoseStamped),
                (topics.ROD_WRENCH, WrenchStamped),
                (topics.SAVE_STATE, String),
                (topics.LOAD_STATE, String),
                (topics.DELETE_STATE, String),
            )
        }
        self._services = {
            service: node.create_client(kind, service.replace("~", solver))
            for service, kind in (
                (topics.HOME_SERVICE, Trigger),
                (topics.STOP_SERVICE, Trigger),
                (topics.RESTORE_SERVICE, Trigger),
                (topics.ACCEPT_SERVICE, Trigger),
                (topics.PLAY_SERVICE, SetBool),
            )
        }

    # Protocol, any thread ---------------------------------------------------------------------

    def joints(self, q: Array) -> None:
        """Publish ``~/dgm``."""
        message = JointState(name=self._names, position=np.asarray(q, dtype=float).tolist())
        self._leave(topics.ROD_JOINT_COMMAND, message, instead_of=topics.ROD_POSE_COMMAND)

    def pose(self, pose: Array) -> None:
        """Publish ``~/igm``."""
        message = PoseStamped()
        message.header.frame_id = "world"
        point, turn = message.pose.position, message.pose.orientation
        point.x, point.y, point.z = (float(x) for x in pose[:3, 3])
        turn.w, turn.x, turn.y, turn.z = (float(x) for x in matrix_quaternion(pose[:3, :3]))
        self._leave(topics.ROD_POSE_COMMAND, message, instead_of=topics.ROD_JOINT_COMMAND)

    def wrench(self, wrench: Array, frame: str) -> None:
        """Publish ``~/wrench``."""
        message = WrenchStamped()
        message.header.frame_id = frame
        force, torque = message.wrench.force, message.wrench.torque
        force.x, force.y, force.z, torque.x, torque.y, torque.z = (float(x) for x in wrench)
        self._leave(topics.ROD_WRENCH, message)

    def home(self) -> None:
        """Call ``~/home``."""
        self._call(topics.HOME_SERVICE, Trigger.Request())

    def hold(self) -> None:
        """Call ``~/stop``."""
        self._call(topics.STOP_SERVICE, Trigger.Request())

    def restore(self) -> None:
        """Call ``~/restore``."""
        self._call(topics.RESTORE_SERVICE, Trigger.Request())

    def accept(self) -> None:
        """Call ``~/accept_branch``."""
        self._call(topics.ACCEPT_SERVICE, Trigger.Request())

    def play(self, on: bool) -> None:
        """Call ``~/play``."""
        self._call(topics.PLAY_SERVICE, SetBool.Request(data=on))

    def save(self, name: str) -> None:
        """Publish ``~/save_state``."""
        self._say(topics.SAVE_STATE, name)

    def load(self, name: str) -> None:
        """Publish ``~/load_state``."""
        self._say(topics.LOAD_STATE, name)

    def delete(self, name: str) -> None:
        """Publish ``~/delete_state``."""
        self._say(topics.DELETE_STATE, name)

    # Queues -----------------------------------------------------------------------------------

    def _leave(self, topic: str, message: Any, instead_of: str = "") -> None:
        with self._lock:
            self._newest.pop(instead_of, None)
            # how long it may wait for a reader counts from the first message that waits
            end = self._newest[topic][2] if topic in self._newest else time.monotonic() + PATIENCE
            self._newest[topic] = (self._publishers[topic], message, end)

    def _say(self, topic: str, text: str) -> None:
        publisher = self._publishers[topic]

        def attempt() -> bool:
            if publisher.get_subscription_count() == 0:
                return False
            publisher.publish(String(data=text))
            return True

        self._later(topic, attempt)

    def _call(self, service: str, request: Any) -> None:
        client = self._services[service]

        def attempt() -> bool:
            if not client.service_is_ready():
                return False
            future = client.call_async(request)
            future.add_done_callback(lambda done: self._answered(service, done))
            return True

        # a motion that was asked for before must not undo what the service does
        with self._lock:
            for topic in (topics.ROD_JOINT_COMMAND, topics.ROD_POSE_COMMAND):
                self._newest.pop(topic, None)
        self._later(service, attempt)

    def _later(self, name: str, attempt: Callable[[], bool]) -> None:
        with self._lock:
            self._waiting.append((time.monotonic() + PATIENCE, name, attempt))

    def _answered(self, service: str, future: Any) -> None:
        if future.exception() is not None:
            self._notify(f"{service}: {future.exception()}")
        elif not future.result().success:
            self._notify(f"{service}: {future.result().message}")

    # Spinning thread --------------------------------------------------------------------------

    def update(self) -> None:
        """Publish pending messages, call pending services, and drop those that are too late."""
        now = time.monotonic()
        with self._lock:
            found = {
                topic: publisher.get_subscription_count() > 0
                for topic, (publisher, _, _) in self._newest.items()
            }
            newest = [self._newest.pop(topic) for topic in found if found[topic]]
            late = [topic for topic, (_, _, end) in self._newest.items() if now >= end]
            for topic in late:
                del self._newest[topic]
            waiting, self._waiting = self._waiting, []
        for publisher, message, _ in newest:
            publisher.publish(message)
        for topic in late:
            self._complain(topic)
        for deadline, name, attempt in waiting:
            if attempt():
                continue
            if now < deadline:
                with self._lock:
                    self._waiting.append((deadline, name, attempt))
            else:
                self._complain(name)

    def _complain(self, name: str) -> None:
        self._notify(f"{name.replace('~', self._solver)} is not there: does {self._solver} run?")


NODE_NAME = "rod_view"


def parameters() -> list[Parameter]:
    """Return the node's parameters."""
    return [
        Parameter(
            "model",
            "stewart_gough",
            "Robot of rods: name of a folder in models/, or path of an SDF.",
        ),
        Parameter(
            "host", "127.0.0.1", "Address to listen on; 0.0.0.0 opens the page to the network."
        ),
        PORT,
        Parameter("rate", 45.0, "Maximum rate of updates.", "Hz", lower=1.0, upper=120.0),
        WINDOW,
        Parameter("solver", topics.ROD_SOLVER, "Node name of the solver."),
    ]


class RodViewNode(PageNode):
    """See the module.

    Args:
        context: ROS context.
        stop: Ends `run`.
        robot: Replaces the parameter ``model``, for tests.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        robot: What is drawn.
        watcher: What is known of it.
        commands: What sliders and buttons do.
        page: The page.
    """

    page: RodPage

    def __init__(
        self,
        context: Context,
        stop: StopFlag,
        *,
        robot: RodRobot | None = None,
        **node_options: Any,
    ) -> None:
        super().__init__(NODE_NAME, parameters(), context, stop, **node_options)
        value = self.values
        self.robot = robot or read_rod_robot(value["model"])
        self.watcher = RodWatcher(self, self.robot, value["solver"])
        self.commands = RodRosCommands(self, self.robot, value["solver"], self.tell)
        self._alive = True
        self.page = RodPage(
            self.robot,
            self.commands,
            host=value["host"],
            port=value["port"],
            rate=value["rate"],
            window=value["window"],
        )

    def tick(self) -> None:
        """Look at the topics, send commands, show the newest state."""
        new = self.watcher.poll()
        self.commands.update()
        if not self.watcher.known:
            return
        snapshot = self.watcher.snapshot()
        # without news only that there is none is news
        if new or snapshot.alive != self._alive:
            self._alive = snapshot.alive
            self.page.show(snapshot)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``rod_view``."""
    return run(RodViewNode, NODE_NAME, args)
