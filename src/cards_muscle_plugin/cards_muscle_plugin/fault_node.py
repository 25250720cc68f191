"""What is left where a robot cannot be hosted: a node that says why on ``/diagnostics``."""

from __future__ import annotations

from rclpy.context import Context
from rclpy.node import Node

from cards_muscle_plugin.ports import StepInfo, WorldPort
from cards_ros.diagnostics import Diagnostics, Level

NODE_NAME = "simulator"


class FaultNode(Node):
    """Stands in for `cards_muscle_plugin.node.SimulatorNode`; the world is paused.

    Args:
        context: ROS context of its own.
        namespace: Of the node.
        robot: Name of the robot.
        error: Why it cannot be hosted.
        world: Control of time.
        name: Of the node.
        missing: What the robot has to do without.

    Attributes:
        gone: Never so: it holds nothing of the model.
    """

    gone = False

    def __init__(
        self,
        context: Context,
        namespace: str,
        robot: str,
        error: Exception,
        world: WorldPort,
        *,
        name: str = NODE_NAME,
        missing: str = "muscles",
    ) -> None:
        super().__init__(name, context=context, namespace=namespace)
        self._world = world
        self._told = False
        self.get_logger().error(f"{robot} has no {missing}: {error}")
        self._diagnostics = Diagnostics(self, robot, ("world",))
        self._diagnostics["world"].report(Level.ERROR, str(error))

    def before_step(self, _info: StepInfo) -> None:
        """Pause the world once, so that it can be inspected, or resumed."""
        if not self._told:
            self._told = True
            self._world.pause(True)
        self._diagnostics.update()

    def after_step(self, _info: StepInfo) -> None:
        """Do nothing."""

    def reset(self, _info: StepInfo) -> None:
        """Do nothing: the description is unchanged."""

    def fail(self, error: Exception) -> None:
        """Nothing can get worse."""
        self.get_logger().error(str(error))

    def close(self) -> None:
        """Leave the ROS graph."""
        self.destroy_node()
