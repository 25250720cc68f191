"""Node ``rod_solver``: a robot of rods behind ROS topics.

It is told joints (``~/dgm``), a plate pose (``~/igm``) or a load (``~/wrench``), goes there in
small steps of equilibria, and publishes after each step where joints, plate and rods are, what
they carry, and how far the robot is from collapse. What cannot be done is said, not tried.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.context import Context
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from cards_core.errors import CardsError
from cards_core.parameters.declaration import Parameter
from cards_core.rods.robots.robot import RodRobot
from cards_rods.health import RodHealth
from cards_rods.messages import report_text
from cards_rods.node_parameters import parameters
from cards_rods.node_topics import RodPublishers, RodSubscriptions
from cards_rods.rod_simulation import RodSimulation, make_simulation
from cards_ros import topics
from cards_ros.loop import HOT_NICE, NodeLoop, StopFlag, describe, run
from cards_ros.parameters import Parameters

NODE_NAME = topics.ROD_SOLVER

_SHARE = 0.7
"""Part of a period that solves may take; the rest is for messages."""


class RodSolverNode(Node):
    """See the module.

    Args:
        context: ROS context.
        stop: Ends `run`.
        robot: Replaces the parameter ``model``, for tests.
        tracker: Replaces the robot's tracker, for tests.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        simulation: The robot under command.
    """

    def __init__(
        self,
        context: Context,
        stop: StopFlag,
        *,
        robot: RodRobot | None = None,
        tracker: Any = None,
        **node_options: Any,
    ) -> None:
        super().__init__(NODE_NAME, context=context, **node_options)
        self._stop = stop
        self.parameters = value = Parameters(self)
        value.declare(self._declared())
        value.refuse_others()
        self.simulation: RodSimulation = self._make_simulation(robot, tracker)
        for note in self.simulation.robot.notes:
            self.get_logger().info(note)
        self._period = 1.0 / value["rate"]
        self._draw_period = 1.0 / value["draw_rate"]
        self._inputs = RodSubscriptions(self, self.simulation)
        self._outputs = RodPublishers(self, self.simulation, value["points"])
        self._health = RodHealth(self, self.simulation, self._period)
        self._make_services()
        self._loop = NodeLoop(self, self._inputs.subscriptions, stop)
        self._drawn = 0.0
        self._told = (self.simulation.result.status, "")

    def _declared(self) -> list[Parameter]:
        """Return the parameters."""
        return parameters()

    def _make_simulation(self, robot: RodRobot | None, tracker: Any) -> RodSimulation:
        """Return the robot at its start."""
        return make_simulation(self.parameters, robot, tracker)

    def _make_services(self) -> None:
        simulation = self.simulation
        for topic, act in (
            (topics.SAVE_STATE, self._save),
            (topics.LOAD_STATE, simulation.load),
            (topics.DELETE_STATE, simulation.states.delete),
        ):
            self.create_subscription(String, topic, self._by_name(act), topics.COMMAND_QOS)
        for service, call in (
            (topics.SAVE_STATE, lambda: self._save(self.parameters["state_name"])),
            (topics.LOAD_STATE, lambda: simulation.load(self.parameters["state_name"])),
            (topics.HOME_SERVICE, simulation.home),
            (topics.STOP_SERVICE, simulation.stop),
            (topics.ACCEPT_SERVICE, simulation.accept_branch),
            (topics.RESTORE_SERVICE, simulation.restore),
            (topics.SOLVE_SERVICE, self._solve),
        ):
            self.create_service(Trigger, service, self._answering(call))
        self.create_service(SetBool, topics.PLAY_SERVICE, self._on_play)

    # Loop -------------------------------------------------------------------------------------

    def run(self) -> int:
        """Step until the stop flag is set or ``duration`` is over; return the exit code."""
        simulation = self.simulation
        self.get_logger().info(
            f"{simulation.robot.name}: {simulation.robot.n_limbs} limbs, "
            f"smallest eigenvalue of the stiffness {simulation.result.min_eigenvalue:.4g}"
        )
        begin = due = time.monotonic()
        end = begin + (self.parameters["duration"] or float("inf"))
        if self.parameters["play"]:
            simulation.play(True)
        self._outputs.refresh()
        while not self._stop and due < end:
            self._inputs.take()
            now = time.monotonic()
            if now >= due:
                # a step that comes too late is left out, not caught up
                skipped = int((now - due) / self._period)
                due += (skipped + 1) * self._period
                self._step(now - begin, skipped)
            self._loop.wait(due - time.monotonic())
            if self._loop.serve():
                self._housekeeping()
        self._housekeeping()
        return 0

    def _step(self, elapsed: float, skipped: int) -> None:
        self.simulation.step(elapsed, _SHARE * self._period)
        self._health.stepped(skipped)
        stamp = self.get_clock().now().nanoseconds
        self._outputs.step(stamp, self._health.rate_hz, self._health.skipped)
        if elapsed - self._drawn >= self._draw_period:
            self._drawn = elapsed
            self._outputs.draw(stamp, time.monotonic(), self.parameters["color_by"])

    def _housekeeping(self) -> None:
        now = time.monotonic()
        self._outputs.refresh()
        self._outputs.say(now)
        self._health.update(now)
        self._tell()

    def _tell(self) -> None:
        """Log status and messages of the robot when they change."""
        result = self.simulation.result
        said = (result.status, result.message)
        if result.held and said != self._told:
            self.get_logger().warning(f"{result.status.name}: {result.message}")
        self._told = said

    # Commands ---------------------------------------------------------------------------------

    def _save(self, name: str) -> str:
        return json.dumps(self.simulation.save(name))

    def _solve(self) -> str:
        self.simulation.solve(self.parameters["solve_timeout"])
        return report_text(self.simulation)

    def _by_name(self, act: Callable[[str], object]) -> Callable[[String], None]:
        """Return the callback for a name on a topic."""

        def on_message(message: String) -> None:
            try:
                act(message.data)
            except (CardsError, OSError) as error:
                self.simulation.refuse("state", str(error))

        return on_message

    @staticmethod
    def _answering(call: Callable[[], str | None]) -> Callable[[Any, Any], Any]:
        """Return a service that answers with a text, or with the error as JSON."""

        def on_request(_request: Any, response: Any) -> Any:
            try:
                response.message = call() or "done"
                response.success = True
            except (CardsError, OSError) as error:
                kind = type(error).__name__
                response.message = json.dumps(
                    {"error": {"type": kind, "message": describe(error)}}
                )
            return response

        return on_request

    def _on_play(self, request: Any, response: Any) -> Any:
        self.simulation.play(bool(request.data))
        response.success = True
        response.message = "demo motion" if request.data else "stopped"
        return response

    def close(self) -> None:
        """Write the log and destroy the node."""
        try:
            self.simulation.close()
        except OSError as error:
            self.get_logger().error(f"log not written: {error}")
        self._loop.close()
        self.destroy_node()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``rod_solver``."""
    return run(RodSolverNode, NODE_NAME, args, nice=HOT_NICE)


if __name__ == "__main__":
    sys.exit(main())
