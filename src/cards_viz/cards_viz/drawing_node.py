"""What the nodes that draw a robot have in common: parameters, a watcher, a steady loop."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from cards_core.formats import load
from cards_core.robot.model import Robot
from cards_ros.loop import StopFlag
from cards_ros.parameters import Parameter, Parameters
from cards_viz.robot_watcher import RobotWatcher

MODEL = Parameter("model", "roboy_arm", "Robot: name of a folder in models/, or path of an SDF.")
"""The parameter that every drawing node has."""

_PATIENCE = 0.02  # [s], longest wait for other topics: bounds how late a signal is noticed


class PacedNode(Node, ABC):
    """A node that looks at topics ``rate`` times a second and serves the others in between.

    Subclasses state their parameters, among them ``rate``, and write `tick`.

    Args:
        name: Node name.
        parameters: To declare.
        context: ROS context.
        stop: Ends `run`.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        values: The parameters.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[Parameter],
        context: Context,
        stop: StopFlag,
        **node_options: Any,
    ) -> None:
        super().__init__(name, context=context, **node_options)
        self._stop = stop
        self.values = Parameters(self)
        self.values.declare(parameters)
        self.values.refuse_others()
        self._period = 1.0 / self.values["rate"]
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self)

    @abstractmethod
    def tick(self) -> None:
        """Look at the topics and draw what is new."""

    def run(self) -> int:
        """Draw until the stop flag is set; return the exit code."""
        due = time.monotonic()
        while not self._stop and self.context.ok():
            now = time.monotonic()
            if now >= due:
                due = max(due + self._period, now)
                self.tick()
            wait = min(due - time.monotonic(), _PATIENCE)
            self._executor.spin_once(timeout_sec=max(0.0, wait))
        return 0

    def close(self) -> None:
        """Destroy the node."""
        self._executor.shutdown()
        self.destroy_node()


class DrawingNode(PacedNode):
    """A `PacedNode` that draws a robot with muscles; it has the parameter ``model`` too.

    Args:
        name, parameters, context, stop: As of `PacedNode`.
        robot: Replaces the parameter ``model``, for tests.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        robot: What is drawn.
        watcher: What is known of the robot.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[Parameter],
        context: Context,
        stop: StopFlag,
        robot: Robot | None,
        **node_options: Any,
    ) -> None:
        super().__init__(name, parameters, context, stop, **node_options)
        self.robot = robot or load(self.values["model"])
        self.watcher = RobotWatcher(self, self.robot, self.robot.tree)
