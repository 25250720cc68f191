"""Node ``rod_solver`` in Gazebo: topics and services are those of the node of that name.

It has no loop of its own: Gazebo calls `before_step` and `after_step`. Time is simulated time, a
step of the robot is one of the world. An exception ends in `fail`: the plate is let go, the world
paused, and a reset of the world restarts.
"""

from __future__ import annotations

import time
from typing import Any

from rclpy.context import Context
from rosgraph_msgs.msg import Clock

from cards_core.parameters.declaration import Parameter
from cards_core.rods.robots.robot import RodRobot
from cards_core.stamps import NANOSECONDS, end_of, seconds
from cards_muscle_plugin.ports import StepInfo, WorldPort
from cards_muscle_plugin.simulation_time import StepCost
from cards_rod_plugin.centre_lines import CentreLines, Requests
from cards_rod_plugin.hosted_rods import HostedRods
from cards_rod_plugin.node_parameters import parameters
from cards_rod_plugin.plate_coupling import CoupledRodSimulation
from cards_rod_plugin.ports import RodModelPort
from cards_rod_plugin.rod_host import HostOptions, RodHost
from cards_rods.rod_simulation import RodSimulation, make_simulation
from cards_rods.rod_solver import RodSolverNode
from cards_ros import topics
from cards_ros.diagnostics import Diagnostics, Level
from cards_ros.loop import HotPublisher, StopFlag, describe
from cards_ros.messages import clock_message

LAG = 1e-3
"""Distance of a plate from where it is put, [m], from which on something is in its way."""

_SHARE = 0.5
"""Part of a step after which no further solve is begun."""

_COST_PERIOD = 1.0  # [s] between two looks at what steps cost


class RodGazeboNode(RodSolverNode):
    """The robot of one model in Gazebo.

    Args:
        context: ROS context of its own.
        hosted: The robot.
        model: Its model.
        world: Control of time.
        requests: Node of gz-transport for the lines in Gazebo's window; None: no lines.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        host: What acts on the world.
        cost: Time spent per step.
        failure: Why the plate was let go, if it was.
        gone: The model is no longer in the world.
        steps: Done since the last reset.
    """

    simulation: CoupledRodSimulation

    def __init__(
        self,
        context: Context,
        hosted: HostedRods,
        model: RodModelPort,
        world: WorldPort,
        requests: Requests | None = None,
        **node_options: Any,
    ) -> None:
        self._hosted = hosted
        super().__init__(
            context, StopFlag(), robot=hosted.robot, namespace=hosted.namespace, **node_options
        )
        value = self.parameters
        self._model, self._world = model, world
        options = (value[name] for name in ("coupling", "base_joints", "joint_speed", "theta"))
        self.host = RodHost(hosted, self.simulation, model, HostOptions(*options))
        self.cost = StepCost()
        self.failure: Exception | None = None
        self.gone = False
        self.steps = 0
        self._started = False
        self._ended = False
        self._publish_period, self._time_period = (
            round(NANOSECONDS / value[name]) for name in ("rate", "clock_rate")
        )
        self._duration = end_of(value["duration"])
        self._time = HotPublisher(self, Clock, topics.CLOCK, topics.CLOCK_QOS)
        path = "::".join(model.path)
        lines = hosted.robot.n_limbs
        self._lines = CentreLines(requests, f"rods/{path}", lines, value["points"])
        self._status = Diagnostics(self, hosted.robot.name, ("world",))
        self._drawn_at = self._costed = -1.0
        self._begun = time.monotonic()
        for note in hosted.notes:
            self.get_logger().warning(note)
        self.get_logger().info(
            f"{path} in Gazebo: {value['coupling']}, {hosted.robot.n_limbs} rods, smallest "
            f"eigenvalue of the stiffness {self.simulation.result.min_eigenvalue:.4g}"
        )
        if value["play"]:
            self.simulation.play(True)

    def _declared(self) -> list[Parameter]:
        return parameters()

    def _make_simulation(self, robot: RodRobot | None, tracker: Any) -> RodSimulation:
        return make_simulation(
            self.parameters,
            robot,
            tracker,
            kind=CoupledRodSimulation,
            namespace=self._hosted.namespace,
        )

    def run(self) -> int:
        """Gazebo has the loop."""
        raise NotImplementedError("Gazebo calls before_step and after_step")

    # Steps ------------------------------------------------------------------------------------

    def before_step(self, info: StepInfo) -> None:
        """Act on the step that begins; called while paused, too."""
        self.cost.begin()
        if not self._started:
            self._started = True
            self.host.start()
        self._inputs.take()
        if not info.paused and self.failure is None and not self._ended:
            self._advance(info)
        self._draw(info.time)
        if self._loop.serve():
            self._housekeeping()
        self.cost.pause()

    def after_step(self, info: StepInfo) -> None:
        """Count the step; called while paused, too."""
        if info.paused or self.failure is not None:
            self.cost.drop()
            return
        self.cost.done()
        self.steps += 1

    def _advance(self, info: StepInfo) -> None:
        dt = seconds(info.dt)
        stamp = info.time
        self.host.step(seconds(stamp), dt, _SHARE * dt)
        self._health.stepped(0)
        if stamp % self._publish_period < info.dt:
            self._outputs.step(stamp, self._health.rate_hz, 0)
        if info.time % self._time_period < info.dt and self._time.wanted:
            self._time.publish(clock_message(info.time))
        if 0 < self._duration <= info.time:
            self._ended = True
            self._world.pause(True)
            self._world.stop()

    def _draw(self, stamp: int) -> None:
        """Draw at the drawing rate in real time, whatever the pace of simulated time."""
        now = time.monotonic()
        if now - self._drawn_at < self._draw_period:
            return
        self._drawn_at = now
        self._outputs.draw(stamp, now, self.parameters["color_by"])
        lines = self._outputs.shapes().positions
        self.host.draw(lines)
        self._lines.look(now)
        base = self._hosted.base
        self._lines.draw(lines @ base[:3, :3].T + base[:3, 3])

    def _housekeeping(self) -> None:
        super()._housekeeping()
        self.gone = not self._model.exists()
        self._time.refresh()
        status = self._status["world"]
        status.values.update(steps=self.steps, plate_lag=self.host.lag)
        if (now := time.monotonic()) - self._costed > _COST_PERIOD:
            self._costed = now
            status.values.update(
                plugin_us_per_step=round(self.cost.microseconds(), 1),
                plugin_us_per_step_p99=round(self.cost.microseconds(99.0), 1),
            )
        if self.failure is not None:
            status.report(Level.ERROR, describe(self.failure))
        elif self.host.lag > LAG:
            status.report(
                Level.WARN,
                f"the plate is {1e3 * self.host.lag:.1f} mm from where it is put: something is in "
                "its way",
            )
        else:
            status.ok()
        self._status.update()

    # Reset, failure, end ----------------------------------------------------------------------

    def reset(self, info: StepInfo) -> None:
        """Follow a reset of the world to its start."""
        self.steps = 0
        self.failure = None
        self._ended = False
        self._started = True
        self.simulation.show(None)
        self.simulation.home()
        if self.parameters["play"]:
            self.simulation.play(True)
        self.host.start()
        self._housekeeping()

    def fail(self, error: Exception) -> None:
        """Let the plate go, stop time, and say why; a reset of the world restarts."""
        self.failure = error
        self.get_logger().error(
            f"{describe(error)}; the plate is released until the world is reset"
        )
        self._world.pause(True)
        self._housekeeping()

    def close(self) -> None:
        """Write the log, report what the steps cost, and leave the ROS graph."""
        if self.cost.steps:
            elapsed = time.monotonic() - self._begun
            self.get_logger().info(
                f"{self.cost.steps} steps in {elapsed:.1f} s; of the last ones the median cost "
                f"{self.cost.microseconds():.0f} us, 99 % less than "
                f"{self.cost.microseconds(99.0):.0f} us"
            )
        self._lines.close()
        super().close()
