"""Node ``browser_view``: the browser view of a robot behind ROS topics.

Draws what any host publishes (simulator, Gazebo, hardware) and commands through services,
parameters and, while no controller runs, ``force_command``. It runs in a process of its own and
looks at the topics 30 times a second.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from cards_core.description import load
from cards_core.description.model import Robot
from cards_core.kinematics.tree import Tree
from cards_ros.loop import DRAWING_NICE, StopFlag, run
from cards_ros.parameters import Parameter, Parameters
from cards_viz.browser import BrowserView
from cards_viz.robot_watcher import RobotWatcher
from cards_viz.ros_commands import RosCommands
from cards_viz.snapshot import Snapshot
from cards_viz.tracked import tracked

NODE_NAME = "browser_view"


def parameters() -> list[Parameter]:
    """Return the node's parameters."""
    return [
        Parameter("model", "roboy_arm", "Robot: name of a folder in models/, or path of an SDF."),
        Parameter(
            "host", "127.0.0.1", "Address to listen on; 0.0.0.0 opens the view to the network."
        ),
        Parameter("port", 8080, "Port; if it is in use the next free one.", lower=0, upper=65535),
        Parameter("rate", 30.0, "Greatest rate of updates.", "Hz", lower=1.0, upper=60.0),
        Parameter("window", 10.0, "Length of the live plots.", "s", lower=1.0, upper=60.0),
        Parameter("simulator", "simulator", "Node name of the host, for its e-stop and speed."),
    ]


class BrowserViewNode(Node):
    """See the module.

    Args:
        context: ROS context.
        stop: Ends `run`.
        robot: Replaces the parameter ``model``, for tests.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        view: The page.
        watcher: What is known of the robot.
    """

    def __init__(
        self,
        context: Context,
        stop: StopFlag,
        *,
        robot: Robot | None = None,
        **node_options: Any,
    ) -> None:
        super().__init__(NODE_NAME, context=context, **node_options)
        self._stop = stop
        value = Parameters(self)
        value.declare(parameters())
        robot = robot or load(value["model"])
        self._period = 1.0 / value["rate"]
        self.watcher = RobotWatcher(self, robot, Tree(robot))
        self.commands = RosCommands(
            self, robot, self.watcher, simulator=value["simulator"], notify=self._tell
        )
        # the view last: a page may be open, and command, before this constructor ends
        self.view = BrowserView(
            robot,
            self.commands,
            host=value["host"],
            port=value["port"],
            rate=value["rate"],
            window=value["window"],
        )
        self._gains_of: str | None = None
        self._asked = 0.0
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self)

    def _tell(self, text: str) -> None:
        self.get_logger().warning(text)
        self.view.notify(text)

    def run(self) -> int:
        """Draw until the stop flag is set; return the exit code."""
        self.get_logger().info(f"open {self.view.url}")
        due = time.monotonic()
        while not self._stop and self.context.ok():
            now = time.monotonic()
            if now >= due:
                due = max(due + self._period, now)
                self.tick()
            self._executor.spin_once(timeout_sec=max(0.0, min(due - time.monotonic(), 0.02)))
        return 0

    def tick(self) -> None:
        """Look at the topics, carry out commands, show the newest state."""
        new = self.watcher.poll()
        self.commands.update()
        self._follow_gains()
        if self.watcher.stamp >= 0 or new:
            self.view.show(self.snapshot())

    def snapshot(self) -> Snapshot:
        """Return what there is to show now."""
        watcher = self.watcher
        known: dict[str, Any] = {}
        if watcher.tracking is not None and np.all(np.isfinite(watcher.q)):
            goal = tracked(watcher.tracking, self.view.scene, watcher.q)
            if goal is not None:
                known = vars(goal).copy()
                known["desired_position"] = known.pop("position")
        return Snapshot(
            watcher.time,
            watcher.q,
            watcher.tensions,
            controller=watcher.controller,
            paused=watcher.paused,
            stopped=watcher.stopped,
            real_time_factor=watcher.real_time_factor,
            control_rate=watcher.control_rate,
            message=watcher.trouble,
            **known,
        )

    def _follow_gains(self) -> None:
        """Show the gains of the controller, once per controller."""
        name = self.watcher.known_controller
        if name is None or name == self._gains_of or time.monotonic() - self._asked < 0.5:
            return
        self._asked = time.monotonic()

        def show(kp: list[float], kd: list[float]) -> None:
            self._gains_of = name
            tracking = self.watcher.tracking
            names = () if tracking is None else tracking.labels.error_names
            if len(names) != len(kp):
                names = tuple(str(i + 1) for i in range(len(kp)))
            self.view.set_gains(kp, kd, names)

        self.commands.read_gains(name, show)

    def close(self) -> None:
        """Close the page and destroy the node."""
        self.view.stop()
        self._executor.shutdown()
        self.destroy_node()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``browser_view``."""
    return run(BrowserViewNode, NODE_NAME, args, nice=DRAWING_NICE)
