"""Node ``simulator``: the embedded simulator behind the topics that every CARDS host has.

Modes:

- ``realtime``: one simulated second per second (times `speed`); late steps are caught up.
- ``as_fast_as_possible``: no waiting.
- ``lockstep``: the state of time t is published, and the step to t + dt is done when a command
  with the header stamp t has arrived. The closed loop is then repeatable to the last bit.

In the first two modes time starts with the first accepted command, unless `wait_for_command` is
false: otherwise the arm falls before its controller is there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rclpy.context import Context
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from cards_core.formats.urdf import to_urdf
from cards_core.loop.host import kept_by_reset
from cards_core.loop.model_agreement import ACCEPT
from cards_core.loop.model_identity import identity_of
from cards_core.loop.pacing import Pacer
from cards_core.robot.model import Robot
from cards_core.stamps import NANOSECONDS, end_of
from cards_ros import topics
from cards_ros.health import HostHealth
from cards_ros.host_shell import REPUBLISH_PERIOD, HostShell
from cards_ros.loop import HOT_NICE, NodeLoop, StopFlag, run
from cards_ros.model_topic import ModelTopic
from cards_ros.parameters import Parameters
from cards_sim.build import build_host
from cards_sim.errors import SimulationStoppedError

NODE_NAME = "simulator"

MAX_LAG = 0.01
"""Longest delay that is caught up in real time, [s]: steps that are caught up come faster than the
controller can answer, so after a longer delay time is late rather than the commands stale."""

_WAIT = 0.02  # [s], longest wait of the loop


class SimulatorNode(Node):
    """The simulator's shell: topics, services, pacing.

    Args:
        context: ROS context.
        stop: Ends `run`.
        robot: Replaces the parameter ``model``, for tests.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        host: World, command gate and log.
        mode, paused, pacer: As the names say.
        steps: Done since the last reset.
        failure: Why the world stopped, if it did.
        models: What this and other nodes say of their models.
        health: What is said on ``/diagnostics``.
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
        self.parameters = Parameters(self, self._on_parameters)
        self.host = build_host(self.parameters, robot)
        simulator, value = self.host.simulator, self.parameters
        self.mode: str = value["mode"]
        dt = simulator.dt
        self._stale_after = round(value["command_timeout"] * NANOSECONDS)
        self._duration = end_of(value["duration"])
        self.pacer = Pacer(dt, speed=value["speed"], max_lag=max(MAX_LAG, 2 * dt))
        lockstep = self.mode == "lockstep"
        self._steps_per_state = 1 if lockstep else max(1, round(1 / (value["publish_rate"] * dt)))
        self._steps_per_clock = max(1, round(1 / (value["clock_rate"] * dt)))

        self.paused = False
        self.steps = 0
        self._released = not lockstep and not value["wait_for_command"]
        self._credit = 0  # steps that may be done in spite of the pause
        self.failure: SimulationStoppedError | None = None
        self._finished = False
        self._published = -1.0
        self.models = ModelTopic(self, "host", identity_of(simulator.robot), lambda: value[ACCEPT])
        self.health = HostHealth(self, self.host, self, self.models)
        self._shell = HostShell(
            self, self.host, self.health, models=self.models, description=to_urdf(simulator.robot)
        )
        self._loop = NodeLoop(self, self._shell.topics.subscriptions, self._stop)
        self._make_services()

    def _make_services(self) -> None:
        self.create_service(Trigger, topics.RESET_SERVICE, self._on_reset)
        self.create_service(SetBool, topics.PAUSE_SERVICE, self._on_pause)
        self.create_service(Trigger, topics.STEP_SERVICE, self._on_step)

    # Loop -------------------------------------------------------------------------------------

    def run(self) -> int:
        """Simulate until the stop flag is set or `duration` is over; return the exit code."""
        self.get_logger().info(
            f"{self.host.simulator.robot.name}: {self.mode}, dt {self.host.simulator.dt:g} s"
        )
        self.pacer.start(time.monotonic())
        self._publish_state()
        while not self._stop and not self._finished:
            if self.failure is not None and self._duration > 0:
                return 1  # nobody waits for a reset of a run with an end
            self._receive()
            now = time.monotonic()
            if self._may_step(now):
                self._advance()
            else:
                if now - self._published >= REPUBLISH_PERIOD:
                    self._publish_state()
                self._loop.wait(self._patience(now))
            if self._loop.serve():
                self._housekeeping()
        self._housekeeping()
        return 0

    def _may_step(self, now: float) -> bool:
        if self.failure is not None:
            return False
        if self._credit:
            # a step by hand needs no command, except where time itself is made of commands
            return self._released or self.mode != "lockstep"
        if self.paused or not self._released:
            return False
        return self.mode != "realtime" or self.pacer.remaining(now) <= 0.0

    def _patience(self, now: float) -> float:
        if self.mode == "realtime" and self.running:
            return min(_WAIT, self.pacer.remaining(now))
        return _WAIT

    def _receive(self) -> None:
        lockstep = self.mode == "lockstep"
        for _ in self._shell.obey(lockstep=lockstep, patience=self._stale_after):
            if not self._released:
                self._released = True
                if self.mode == "realtime":
                    self.pacer.resume(time.monotonic())

    def _advance(self) -> None:
        self._credit = 0
        try:
            self.host.advance()
        except SimulationStoppedError as error:
            self.failure = error
            self.get_logger().error(str(error))
            return
        self.steps += 1
        if self.mode == "lockstep":
            self._released = False
        elif self.mode == "realtime":
            self.pacer.done(time.monotonic())
            self.host.behind = self.pacer.behind
        self._finished = 0 < self._duration <= self.host.stamp
        last = self._finished and self.mode != "lockstep"  # no answer to the last is wanted
        due = self.steps % self._steps_per_state == 0 and not self._finished
        if due or last or self.paused:
            self._publish_state()
        if self.steps % self._steps_per_clock == 0:
            self._shell.topics.publish_clock(self.host.stamp)
        self._shell.record()

    def _publish_state(self) -> None:
        self._published = time.monotonic()
        self._shell.publish()

    # Services ---------------------------------------------------------------------------------

    def _on_reset(self, _request: Any, response: Any) -> Any:
        self.health.tell_verdict("until the reset")
        kept = kept_by_reset(self.host.log)
        self.host.reset()
        self.failure = None
        self._credit = 0
        self.steps = 0
        self._released = self.mode != "lockstep" and not self.parameters["wait_for_command"]
        self.pacer.start(time.monotonic())
        self._publish_state()
        response.success = True
        response.message = "back at t = 0; time starts with the next command"
        if self._released:
            response.message = "back at t = 0"
        response.message += kept
        return response

    def _on_pause(self, request: Any, response: Any) -> Any:
        self.paused = bool(request.data)
        self._credit = 0
        if not self.paused:
            self.pacer.resume(time.monotonic())
        response.success = True
        response.message = f"{'paused' if self.paused else 'running'} at t = {self._shell.now} s"
        return response

    def _on_step(self, _request: Any, response: Any) -> Any:
        if not self.paused:
            response.message = "not paused: call sim/pause first"
        elif self.failure is not None:
            response.message = str(self.failure)
        else:
            self._credit = 1
            if self._may_step(time.monotonic()):
                self._advance()
                response.message = f"stepped to t = {self._shell.now} s"
            else:
                response.message = f"steps when the state of t = {self._shell.now} s is answered"
            response.success = self.failure is None
        return response

    def _on_parameters(self, changes: Any) -> None:
        self.host.change(changes)
        if "speed" in changes:
            self.pacer.set_speed(changes["speed"])

    # What `HostHealth` looks at ---------------------------------------------------------------

    @property
    def dt(self) -> float:
        """Time step, [s]."""
        return self.host.simulator.dt

    @property
    def waiting(self) -> bool:
        """Whether time stands still until a command comes."""
        return not self._released and not self.paused and self.failure is None

    @property
    def running(self) -> bool:
        """Whether time advances."""
        return self._released and not self.paused and self.failure is None

    @property
    def wanted_speed(self) -> float:
        """Simulated time per real time that is to be reached; 0: none in particular."""
        return float(self.parameters["speed"]) if self.mode == "realtime" else 0.0

    @property
    def path_failures(self) -> int:
        """Muscle contacts that could not be solved since the last reset."""
        return self.host.simulator.muscles.engine.failures

    def world_values(self) -> Mapping[str, object]:
        """Return what else to show of the world."""
        return {"contacts": len(self.host.simulator.world.contacts)}

    def loop_values(self) -> Mapping[str, object]:
        """Return what else to show of the loop."""
        return {"missed_deadlines": self.pacer.overruns, "dropped_deadlines": self.pacer.dropped}

    # Rest -------------------------------------------------------------------------------------

    def _housekeeping(self) -> None:
        self._shell.refresh()

    def close(self) -> None:
        """Say how it was, write the log and destroy the node."""
        self.health.tell_verdict("until the end")
        self._shell.close()
        self._loop.close()
        self.destroy_node()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``simulator``."""
    return run(SimulatorNode, NODE_NAME, args, nice=HOT_NICE)


if __name__ == "__main__":
    sys.exit(main())
