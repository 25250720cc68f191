"""Node ``rod_view``: the page of a rod robot behind ROS topics.

It draws what the node ``rod_solver`` publishes and commands it through topics and services. It
runs in a process of its own, so that a slow page slows no solve down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rclpy.context import Context

from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import RodRobot
from cards_ros import topics
from cards_ros.loop import DRAWING_NICE, StopFlag, run
from cards_ros.parameters import Parameter
from cards_viz.nodes import PORT, WINDOW, PageNode
from cards_viz.rods.page import RodPage
from cards_viz.rods.ros_commands import RodRosCommands
from cards_viz.rods.watcher import RodWatcher

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
        Parameter("rate", 45.0, "Greatest rate of updates.", "Hz", lower=1.0, upper=120.0),
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
    return run(RodViewNode, NODE_NAME, args, nice=DRAWING_NICE)
