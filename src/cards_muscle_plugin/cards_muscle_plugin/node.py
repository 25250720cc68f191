"""Node ``simulator`` in Gazebo: the topics, services and diagnostics of every CARDS host.

It has no thread and no executor of its own: Gazebo calls `before_step` and `after_step`, commands
are taken directly from their subscriptions, services are answered in between.

Time belongs to Gazebo and advances unless it is told to pause:

- Until the first accepted command the world is paused (``wait_for_command``); a world that was
  started running does one step before the pause is there, after which the joints are put back to
  the start. The first command lets time go on.
- In lockstep, paced or not, `before_step` then waits for the command that answers the last state,
  for at most `ANSWER_TIME`; without an answer the world is paused until one comes, and the step
  that Gazebo had begun is done with the commands there were. This is reported as an error.
- As fast as possible, it waits for those who answer states, up to half a second; see
  `cards_core.loop.answer_watch`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rclpy.context import Context
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from cards_core.errors import CardsError
from cards_core.loop.answer_watch import AnswerWatch
from cards_core.loop.host import (
    ANSWERED_MODES,
    CLOCKED_MODES,
    WATCHED_MODES,
    host_parameters,
    impedance_gains,
    initial_positions,
    kept_by_reset,
)
from cards_core.loop.model_agreement import ACCEPT
from cards_core.loop.model_identity import identity_of
from cards_core.loop.run_log import SIMULATOR_LOG
from cards_core.stamps import NANOSECONDS, end_of, seconds
from cards_muscle_plugin.gazebo_host import GazeboHost
from cards_muscle_plugin.hosted_robot import HostedRobot
from cards_muscle_plugin.ports import ModelPort, StepInfo, WorldPort
from cards_muscle_plugin.simulation_time import Delay, StepCost, TimeGate, pace
from cards_ros import topics
from cards_ros.health import HostHealth
from cards_ros.host_shell import REPUBLISH_PERIOD, HostShell
from cards_ros.loop import NodeLoop, StopFlag, describe
from cards_ros.model_topic import ModelTopic
from cards_ros.parameters import Parameters

NODE_NAME = "simulator"

ANSWER_TIME = 2.0
"""Longest wait for an answer in lockstep, [s] of real time. Gazebo stands still so long, and does
not notice Ctrl-C either."""

_UNREACHABLE = "the world cannot be paused or reset (is gz.transport for Python installed?)"


class SimulatorNode(Node):
    """The host of one robot in Gazebo.

    Args:
        context: ROS context of its own.
        hosted: The robot.
        model: Its model.
        world: Control of time.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        host: Muscles, command gate and log.
        mode: As the parameter.
        steps: Done since the last reset.
        cost: Time spent per step.
        models: What this and other nodes say of their models.
        health: What is said on ``/diagnostics``.
        gone: The model is no longer in the world.
    """

    def __init__(
        self,
        context: Context,
        hosted: HostedRobot,
        model: ModelPort,
        world: WorldPort,
        **node_options: Any,
    ) -> None:
        super().__init__(NODE_NAME, context=context, namespace=hosted.namespace, **node_options)
        self._model, self._world = model, world
        self.parameters = value = Parameters(self, self._on_parameters)
        value.declare(host_parameters())
        value.declare([pace()])
        own = [initial_positions(hosted.tree), *impedance_gains(hosted.robot)]
        value.declare(own)
        value.refuse_others()
        log_dir: str = value["log_dir"]
        self.host = GazeboHost(
            hosted,
            model,
            command_timeout=value["command_timeout"],
            decay_time=value["decay_time"],
            initial_positions=value["initial_positions"],
            # robots of one world have the same parameters
            log_path=Path(log_dir, hosted.namespace, SIMULATOR_LOG) if log_dir else None,
        )
        self.host.change({spec.name: value[spec.name] for spec in own})
        self.mode: str = value["mode"]
        self._lockstep = self.mode in ANSWERED_MODES
        self._watch = AnswerWatch() if self.mode in WATCHED_MODES else None
        self._stale_after = round(value["command_timeout"] * NANOSECONDS)
        self._duration = end_of(value["duration"])
        self._period, self._clock_period = (
            round(NANOSECONDS / value[name]) for name in ("publish_rate", "clock_rate")
        )

        self.steps = 0
        self.cost = StepCost()
        self.gone = False
        self._cost_values: dict[str, object] = {}
        self._cost_time = 0.0
        self._info = StepInfo(0, 0, True)
        self._started = False
        self._gate = TimeGate(world, lockstep=self._lockstep, waits=value["wait_for_command"])
        self._delay = Delay(value["speed"] if self.mode in CLOCKED_MODES else 0.0)
        self._failure: Exception | None = None
        self._late: CardsError | None = None
        self._ended = False
        self._published = 0.0

        identity = identity_of(hosted.robot, complete=bool(hosted.urdf))
        self.models = ModelTopic(self, "host", identity, lambda: value[ACCEPT])
        self.health = HostHealth(self, self.host, self, self.models)
        self._shell = HostShell(
            self, self.host, self.health, models=self.models, description=hosted.urdf
        )
        self._loop = NodeLoop(
            self,
            self._shell.topics.subscriptions,
            StopFlag(),
            polls=self.mode not in CLOCKED_MODES,
        )
        self.create_service(Trigger, topics.RESET_SERVICE, self._on_reset)
        self.create_service(SetBool, topics.PAUSE_SERVICE, self._on_pause)
        self.create_service(Trigger, topics.STEP_SERVICE, self._on_step)
        self.get_logger().info(f"{'::'.join(model.path)} in Gazebo: {self.mode}")
        touching = any(muscle.contact for muscle in hosted.muscle_robot.muscles)
        if touching and hosted.surroundings is None:
            self.get_logger().warning(
                "cables with contact touch nothing but their robot: what is around it is "
                "known where ./cards or a launch file starts Gazebo"
            )

    def _on_parameters(self, changes: Any) -> None:
        self.host.change(changes)

    # Steps ------------------------------------------------------------------------------------

    def before_step(self, info: StepInfo) -> None:
        """Apply the muscles to the step that begins; called while paused, too."""
        self.cost.begin()
        self._info = info
        if info.dt:
            shown = info.dt if self._lockstep else max(info.dt, self._period)
            self.models.states_every(seconds(shown))
        if info.paused:
            self._delay.interrupt()
        if not self._started:
            self._started = True
            self.host.start()
        self._receive()
        if info.paused:
            self._while_paused()
        elif self._failure is None and not self._ended:
            self._begin_step(info)
        if self._loop.serve():
            self._housekeeping()
        self.cost.pause()

    def after_step(self, info: StepInfo) -> None:
        """Publish what the step led to; called while paused, too."""
        to_start = self._gate.to_start
        if info.paused or to_start or self._failure is not None or self._ended:
            self.cost.drop()
            due = time.monotonic() - self._published > REPUBLISH_PERIOD
            if info.paused and due and not to_start and self.host.read(info.time):
                self._publish()
            return
        self.cost.begin()
        self.steps += 1
        if self.host.read(info.time):
            self._end_step(info)
        self.cost.pause()
        self.cost.done()

    def _begin_step(self, info: StepInfo) -> None:
        gate = self._gate
        if not gate.released:
            if not gate.hold(to_start=True):
                gate.released = True
                self.get_logger().warning(
                    f"{_UNREACHABLE}: time runs without waiting for a command"
                )
        elif self._lockstep:
            self._await_answer()
        elif self._watch is not None:
            self._watch_answers(self._watch)
        if self.host.known and not gate.to_start:
            self.host.step(info.dt)

    def _end_step(self, info: StepInfo) -> None:
        now = info.time
        self._ended = 0 < self._duration <= now
        # in lockstep no answer to the last is wanted
        if not self._ended if self._lockstep else self._ended or now % self._period < info.dt:
            self._publish()
            if self._watch is not None:
                self._watch.published(now, self._published)
        if now % self._clock_period < info.dt:
            self._shell.topics.publish_clock(now)
        self.host.behind = self._delay.note(time.monotonic(), info.dt)
        self._shell.record()
        if self._ended:
            self._world.pause(True)
            self._world.stop()

    def _while_paused(self) -> None:
        if self._gate.to_start:
            self._gate.to_start = False
            self.host.put_to_start()
            self._published = 0.0
        if self._failure is None and self._gate.let_go(self.host.stamp):
            self._late = None

    def _await_answer(self) -> None:
        """Wait until the last state is answered. Gazebo waits meanwhile."""
        end = time.monotonic() + ANSWER_TIME
        while not self._gate.ready(self.host.stamp):
            now = time.monotonic()
            if now > end:
                self._late = CardsError(
                    f"no answer to the state of t = {seconds(self.host.stamp):g} s within "
                    f"{ANSWER_TIME:g} s: one step was done without, then the world was paused"
                )
                self.get_logger().error(str(self._late))
                self._gate.hold()
                break
            if now - self._published > REPUBLISH_PERIOD:
                self._publish()
            self._loop.wait(end - now)
            self._receive()
            if self._loop.serve():
                self._housekeeping()
        # waiting is not work
        self.cost.drop()
        self.cost.begin()

    def _watch_answers(self, watch: AnswerWatch) -> None:
        """Wait a while for the answer to the last state, if somebody answers states."""
        waited = False
        while (left := watch.remaining(now := time.monotonic())) > 0.0:
            if self.host.gate.stopped:
                break  # a stopped robot obeys nobody
            waited = True
            if now - self._published > REPUBLISH_PERIOD:
                self._publish()
            self._loop.wait(left)
            self._receive()
            if self._loop.serve():
                self._housekeeping()
        if waited:
            # waiting is not work
            self.cost.drop()
            self.cost.begin()

    # Commands and states ----------------------------------------------------------------------

    def _receive(self) -> None:
        for stamp in self._shell.obey(lockstep=self._lockstep, patience=self._stale_after):
            self._gate.accept(self.host.stamp)
            # muscles and motors have messages of their own, and both are the answer
            if self._watch is not None and not self.host.unanswered:
                self._watch.commanded(stamp)

    def _publish(self) -> None:
        self._published = time.monotonic()
        self._shell.publish()

    # Reset, failure, end ----------------------------------------------------------------------

    def reset(self, info: StepInfo) -> None:
        """Take over that the world was put back to the start."""
        self.health.tell_verdict("until the reset")
        self._info = info
        self.steps = 0
        self._failure = self._late = None
        self._gate.reset()
        if self._watch is not None:
            self._watch.begin()
        self._delay.reset()
        self._published = 0.0
        self._started = True
        self.host.reset()
        self._housekeeping()

    def fail(self, error: Exception) -> None:
        """Release the muscles, pause time and report why; a reset of the world restarts."""
        self._failure = error
        self.get_logger().error(f"{describe(error)}; muscles are slack until sim/reset")
        self._gate.hold()
        self._housekeeping()

    def close(self) -> None:
        """Log verdict and cost of the steps, write the log file, and leave the ROS graph."""
        self.health.tell_verdict("until the end")
        self._shell.close()
        if self.cost.steps:
            self.get_logger().info(
                f"{self.cost.steps} steps; of the last ones the median cost "
                f"{self.cost.microseconds():.0f} us, 99 % less than "
                f"{self.cost.microseconds(99.0):.0f} us"
            )
        self._loop.close()
        self.destroy_node()

    def _housekeeping(self) -> None:
        self.gone = not self._model.exists()
        self._shell.refresh()

    # What `HostHealth` looks at ---------------------------------------------------------------

    @property
    def failure(self) -> Exception | None:
        """Why the muscles stopped pulling, or why time stands still, if it is an error."""
        return self._failure or self._late

    @property
    def paused(self) -> bool:
        """Whether somebody stopped time; not so while it waits for a command."""
        return self._gate.stay or (self._info.paused and not self._gate.held)

    @property
    def dt(self) -> float:
        """Time step, [s]."""
        return self.host.dt

    @property
    def waiting(self) -> bool:
        """Whether time stands still until a command comes."""
        ready = self._gate.ready(self.host.stamp)
        return not ready and not self.paused and self._failure is None

    @property
    def running(self) -> bool:
        """Whether time advances."""
        return not self._info.paused and self._failure is None

    @property
    def wanted_speed(self) -> float:
        """0: the pace is Gazebo's."""
        return 0.0

    @property
    def path_failures(self) -> int:
        """Muscle contacts that could not be solved since the last reset."""
        return self.host.muscles.engine.failures

    def world_values(self) -> Mapping[str, object]:
        """Return what else to show of the world."""
        return {"model": "::".join(self._model.path)}

    def loop_values(self) -> Mapping[str, object]:
        """Return what else to show of the loop."""
        now = time.monotonic()
        if now - self._cost_time > 1.0:
            self._cost_time = now
            self._cost_values = {
                "plugin_us_per_step": self.cost.microseconds(),
                "plugin_us_per_step_p99": self.cost.microseconds(99.0),
            }
            if self._watch is not None:
                self._cost_values["unanswered_states"] = self._watch.unanswered
        return self._cost_values

    # Services ---------------------------------------------------------------------------------

    def _on_reset(self, _request: Any, response: Any) -> Any:
        response.success = self._gate.rewind(paused=self.paused)
        response.message = _UNREACHABLE
        if response.success:
            response.message = "the world goes back to t = 0"
            if self._gate.waits:
                response.message += "; time starts with the next command"
            response.message += kept_by_reset(self.host.log)
        return response

    def _on_pause(self, request: Any, response: Any) -> Any:
        pause = bool(request.data)
        response.success = self._gate.pause(pause)
        response.message = _UNREACHABLE
        if response.success:
            response.message = f"{'paused' if pause else 'running'} at t = {self._shell.now} s"
        return response

    def _on_step(self, _request: Any, response: Any) -> Any:
        if not self.paused:
            response.message = "not paused: call sim/pause first"
        elif self._failure is not None:
            response.message = str(self._failure)
        else:
            response.success = self._world.step()
            response.message = _UNREACHABLE
            if response.success:
                response.message = f"a step from t = {self._shell.now} s"
        return response
