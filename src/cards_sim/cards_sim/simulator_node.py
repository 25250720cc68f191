"""Node ``simulator``: the embedded simulator behind the topics that every CARDS host has.

Modes:

- ``realtime``: one simulated second per second (times `speed`); late steps are caught up.
- ``as_fast_as_possible``: not with the clock. Time waits at a published state for those who
  answer states, up to half a second; see `cards_core.loop.answer_watch`.
- ``lockstep``: the state of time t is published, and the step to t + dt is done when a command
  with the header stamp t has arrived. The closed loop is then repeatable to the last bit.
- ``paced``: lockstep that is not faster than real time. Where answers take longer time is slower,
  and the trajectory is that of lockstep all the same.

In the first two modes time starts with the first accepted command, unless `wait_for_command` is
false: otherwise the arm falls before its controller is there.

A world with robots of its own (``two_arms``) has a node ``simulator`` in the namespace of each,
with its topics, diagnostics and log. They share their time: it starts, and in lockstep goes on,
when all of them were commanded; reset, pause and step are for the whole world, whoever is asked.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter
from std_srvs.srv import SetBool, Trigger

from cards_core.errors import CardsError
from cards_core.loop.host import kept_by_reset
from cards_core.robot.model import Robot
from cards_core.stamps import end_of
from cards_ros import topics
from cards_ros.host_shell import REPUBLISH_PERIOD
from cards_ros.loop import HOT_NICE, NodeLoop, StopFlag, run
from cards_ros.parameters import Parameters, passed_on
from cards_sim.build import build_simulation
from cards_sim.errors import SimulationStoppedError
from cards_sim.host import SimulatorHost
from cards_sim.simulated_robot import SimulatedRobot
from cards_sim.time_control import TimeControl
from cards_sim.world_topics import WorldTopics, read_grasped

NODE_NAME = "simulator"

_WAIT = 0.02  # [s], longest wait of the loop


class SimulatorNode(Node):
    """The simulator: loop, services, pacing; its robots have topics on this node or their own.

    Args:
        context: ROS context.
        stop: Ends `run`.
        robot: Replaces the parameter ``model``, for tests.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        world: All robots, which step together.
        robots: Their topics and diagnostics.
        control: When time advances.
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
        self._others: dict[str, Node] = {}  # by namespace
        self.parameters = value = self._store(self)
        simulation = build_simulation(value, self._store_of, robot)
        self.world = simulation.world
        dt = self.world.dt
        self._duration = end_of(value["duration"])
        self._speed: float = value["speed"]
        self.control = TimeControl(
            dt,
            mode=value["mode"],
            speed=value["speed"],
            waits=value["wait_for_command"],
            robots=len(simulation.robots),
        )
        answered = self.control.answered
        self._steps_per_state = 1 if answered else max(1, round(1 / (value["publish_rate"] * dt)))
        self._steps_per_clock = max(1, round(1 / (value["clock_rate"] * dt)))
        self._finished = False
        self._published = -1.0
        self._steps_per_world = max(1, round(1 / (value["world_rate"] * dt)))
        self._world_topics = WorldTopics(
            self, self.world.simulator, lambda: self.parameters["wrench_duration"]
        )
        self.robots = tuple(
            SimulatedRobot(
                self._others.get(item.namespace, self),
                item,
                self.control,
                number,
                world=self._world_topics,
                period=self._steps_per_state * dt,
            )
            for number, item in enumerate(simulation.robots)
        )
        self._first = self.robots[0]
        self._grasped: str = value["grasped"]  # at the start, and after a reset
        self._hold(self._grasped)
        commands = [one for item in self.robots for one in item.shell.topics.subscriptions]
        others = tuple(self._others.values())
        self._loop = NodeLoop(
            self, commands, self._stop, others=others, polls=not self.control.clocked
        )
        for node in (self, *others):
            node.create_service(Trigger, topics.RESET_SERVICE, self._on_reset)
            node.create_service(SetBool, topics.PAUSE_SERVICE, self._on_pause)
            node.create_service(Trigger, topics.STEP_SERVICE, self._on_step)

    def _store(self, node: Node) -> Parameters:
        """Return the parameters of a node, which tells us what was changed."""

        def changed(changes: Mapping[str, Any]) -> None:
            self._on_parameters(node, changes)

        return Parameters(node, changed)

    def _store_of(self, namespace: str, names: Collection[str]) -> Parameters:
        """Make the node of a robot with a namespace of its own; return its parameters."""
        if self.get_namespace() != "/":
            raise CardsError(
                f"namespace {self.get_namespace()} for a world that has robots with namespaces "
                f"of their own, such as {namespace} (expected: none)"
            )
        node = Node(
            NODE_NAME,
            context=self.context,
            namespace=namespace,
            parameter_overrides=passed_on(self, namespace, names),
        )
        self._others[namespace] = node
        return self._store(node)

    @property
    def host(self) -> SimulatorHost:
        """The first robot, mostly the only one."""
        return self._first.host

    @property
    def steps(self) -> int:
        """Steps done since the last reset."""
        return self.control.steps

    # Loop -------------------------------------------------------------------------------------

    def run(self) -> int:
        """Simulate until the stop flag is set or `duration` is over; return the exit code."""
        names = ", ".join(item.host.robot.name for item in self.robots)
        self.get_logger().info(f"{names}: {self.control.mode}, dt {self.world.dt:g} s")
        control = self.control
        control.pacer.start(time.monotonic())
        self._publish_new()
        while not self._stop and not self._finished:
            if control.failure is not None and self._duration > 0:
                return 1  # nobody waits for a reset of a run with an end
            for robot in self.robots:
                robot.receive()
            now = time.monotonic()
            if control.may_step(now):
                self._advance()
            else:
                if now - self._published >= REPUBLISH_PERIOD:
                    self._publish_state()
                    self._world_topics.publish(self.world.stamp)
                self._loop.wait(control.patience(now, _WAIT))
            if self._loop.serve():
                self._housekeeping()
        self._housekeeping()
        return 0

    def _advance(self) -> None:
        control, world = self.control, self.world
        control.stepping()
        try:
            world.advance()
        except SimulationStoppedError as error:
            control.failure = error
            self.get_logger().error(str(error))
            return
        control.done(time.monotonic())
        if control.clocked:
            for robot in self.robots:
                robot.host.behind = control.pacer.behind
        self._finished = 0 < self._duration <= world.stamp
        last = self._finished and not control.answered  # no answer to the last is wanted
        due = control.steps % self._steps_per_state == 0 and not self._finished
        if due or last or control.paused:
            self._publish_new()
        if control.steps % self._steps_per_clock == 0:
            self._first.shell.topics.publish_clock(world.stamp)
        if control.steps % self._steps_per_world == 0 or control.paused:
            self._publish_world(world.stamp)
        for robot in self.robots:
            robot.shell.record()

    def _publish_world(self, stamp: int) -> None:
        self._world_topics.publish(stamp)
        for robot in self.robots:
            robot.contact_forces.publish(stamp)

    def _publish_new(self) -> None:
        """Publish a state for the first time."""
        self._publish_state()
        self.control.published(self.world.stamp, self._published)

    def _publish_state(self) -> None:
        self._published = time.monotonic()
        for robot in self.robots:
            robot.shell.publish()

    # Services ---------------------------------------------------------------------------------

    def _on_reset(self, _request: Any, response: Any) -> Any:
        for robot in self.robots:
            robot.health.tell_verdict("until the reset")
        kept = kept_by_reset(self.host.log)
        self.world.reset()
        self._hold(self._grasped)
        self.set_parameters([RosParameter("grasped", value=self._grasped)])
        self.control.begin(time.monotonic())
        self._publish_new()
        self._publish_world(self.world.stamp)
        response.success = True
        response.message = "back at t = 0; time starts with the next command"
        if self.control.released:
            response.message = "back at t = 0"
        response.message += kept
        return response

    def _on_pause(self, request: Any, response: Any) -> Any:
        paused = bool(request.data)
        self.control.pause(paused, time.monotonic())
        response.success = True
        response.message = f"{'paused' if paused else 'running'} at t = {self._now} s"
        return response

    def _on_step(self, _request: Any, response: Any) -> Any:
        control = self.control
        if not control.paused:
            response.message = "not paused: call sim/pause first"
        elif control.failure is not None:
            response.message = str(control.failure)
        else:
            control.allow_one()
            if control.may_step(time.monotonic()):
                self._advance()
                response.message = f"stepped to t = {self._now} s"
            else:
                response.message = f"steps when the state of t = {self._now} s is answered"
            response.success = control.failure is None
        return response

    @property
    def _now(self) -> str:
        return self._first.shell.now

    def _on_parameters(self, node: Node, changes: Mapping[str, Any]) -> None:
        for robot in self.robots:
            if robot.node is node:
                robot.host.change(changes)
        if "grasped" in changes:
            self._hold(changes["grasped"])
        if "speed" in changes:
            self._set_speed(changes["speed"], node)

    def _hold(self, grasped: str) -> None:
        """Grasp what the parameter ``grasped`` says. Raises `CardsError`."""
        self.world.simulator.hold(read_grasped(grasped))

    def _set_speed(self, speed: float, told: Node) -> None:
        """Set the speed, which is one for all robots of the world."""
        if speed == self._speed:
            return
        self._speed = speed
        self.control.pacer.set_speed(speed)
        for node in (self, *self._others.values()):
            if node is not told:
                node.set_parameters([RosParameter("speed", value=speed)])

    # Rest -------------------------------------------------------------------------------------

    def _housekeeping(self) -> None:
        self._world_topics.refresh()
        for robot in self.robots:
            robot.shell.refresh()
            robot.contact_forces.refresh()

    def close(self) -> None:
        """Say how it was, write the logs and destroy the nodes."""
        for robot in self.robots:
            robot.close()
        self._loop.close()
        for node in (*self._others.values(), self):
            node.destroy_node()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``simulator``."""
    return run(SimulatorNode, NODE_NAME, args, nice=HOT_NICE)


if __name__ == "__main__":
    sys.exit(main())
