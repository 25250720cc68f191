"""Node ``browser_view``: the page of a robot with muscles behind ROS topics.

It draws what any host publishes (simulator, Gazebo, hardware) and commands through services,
parameters and, while no controller runs, ``force_command``. It runs in a process of its own and
looks at the topics 30 times a second.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.context import Context

from cards_core.robot.model import Robot
from cards_ros.loop import DRAWING_NICE, StopFlag, run
from cards_ros.parameters import Parameter
from cards_viz.muscles.interface import MuscleSnapshot
from cards_viz.muscles.page import MusclePage
from cards_viz.muscles.ros_commands import MuscleRosCommands
from cards_viz.muscles.watcher import MODEL, DrawingNode, tracked
from cards_viz.nodes import PORT, WINDOW, PageNode

NODE_NAME = "browser_view"


def parameters() -> list[Parameter]:
    """Return the node's parameters."""
    return [
        MODEL,
        Parameter(
            "host", "127.0.0.1", "Address to listen on; 0.0.0.0 opens the view to the network."
        ),
        PORT,
        Parameter("rate", 30.0, "Greatest rate of updates.", "Hz", lower=1.0, upper=60.0),
        WINDOW,
        Parameter(
            "simulator",
            "simulator",
            "Node name of the simulator, for its e-stop and speed; a real robot is found.",
        ),
    ]


class BrowserViewNode(PageNode, DrawingNode):
    """See the module; arguments as `DrawingNode`.

    Attributes:
        page: The page.
        commands: What its buttons and sliders do.
    """

    page: MusclePage

    def __init__(
        self,
        context: Context,
        stop: StopFlag,
        *,
        robot: Robot | None = None,
        **node_options: Any,
    ) -> None:
        super().__init__(NODE_NAME, parameters(), context, stop, robot, **node_options)
        value = self.values
        self.commands = MuscleRosCommands(
            self, self.robot, self.watcher, simulator=value["simulator"], notify=self.tell
        )
        self._gains_of: str | None = None
        self._asked = 0.0
        self.page = MusclePage(
            self.robot,
            self.commands,
            host=value["host"],
            port=value["port"],
            rate=value["rate"],
            window=value["window"],
        )

    def tick(self) -> None:
        """Look at the topics, carry out commands, show the newest state."""
        new = self.watcher.poll()
        self.commands.update()
        self._follow_gains()
        if self.watcher.stamp >= 0 or new:
            self.page.show(self.snapshot())

    def snapshot(self) -> MuscleSnapshot:
        """Return what there is to show now."""
        watcher = self.watcher
        known: dict[str, Any] = {}
        if watcher.tracking is not None and np.all(np.isfinite(watcher.q)):
            goal = tracked(watcher.tracking, self.page.scene, watcher.q)
            if goal is not None:
                known = vars(goal).copy()
                known["desired_position"] = known.pop("position")
        return MuscleSnapshot(
            watcher.time,
            watcher.q,
            watcher.tensions,
            states=watcher.states,
            controller=watcher.controller,
            paused=watcher.paused,
            stopped=watcher.stopped,
            real=watcher.real_host is not None,
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
            self.page.set_gains(kp, kd, names)

        self.commands.read_gains(name, show)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``browser_view``."""
    return run(BrowserViewNode, NODE_NAME, args, nice=DRAWING_NICE)
