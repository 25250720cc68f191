"""The node of every controller: states in, commands out, reference, health.

For every ``joint_states`` message the node publishes one ``force_command`` with the same stamp,
and one ``effort_command`` if joints of the robot have motors.
The reference begins with the first state after the controller was enabled, and again when time
goes back (the simulator was reset). A state that comes twice gets the same answer twice and does
not count twice, so a host may repeat a state until it is answered.

While a host says that it moves another model than the controller has, no state is answered; nor
while it says that it obeys no commands, as the real robot before it is armed. The reference would
run away from a robot that does not move.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from cards_core.control.interface import ControlOutput
from cards_core.errors import ParameterError
from cards_core.loop.control_setup import make_control_loop
from cards_core.loop.model_agreement import ACCEPT
from cards_core.loop.model_identity import identity_of
from cards_core.loop.task_tally import MissedStates
from cards_core.loop.verdict import Ending, judge
from cards_core.muscles.command import Command
from cards_core.robot.model import Robot
from cards_core.robot.state import RobotState
from cards_core.stamps import nanoseconds, seconds
from cards_core.trajectories import Reference
from cards_core.typing import Array
from cards_ros import topics
from cards_ros.controller_inputs import MuscleInput, subscribe_forces, subscribe_reference
from cards_ros.diagnostics import tell
from cards_ros.health import ControllerHealth
from cards_ros.loop import HOT_NICE, HotPublisher, HotSubscription, NodeLoop, StopFlag, run
from cards_ros.messages import (
    JointSetError,
    JointStateReader,
    JointStateSample,
    JointStateWriter,
    NameOrder,
    command_fields,
)
from cards_ros.model_topic import ModelTopic
from cards_ros.parameters import Parameters

_WAIT = 0.02  # [s], longest wait of the loop


class ControllerNode(Node):
    """Shell of a controller.

    Args:
        name: Node name, and the controller's kind; see `cards_core.control.registry`.
        context: ROS context.
        stop: Ends `run`.
        robot: Replaces the parameter ``model``, for tests.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        control: Controller, reference and log.
        enabled: Whether states are answered.
        problem: Why states cannot be answered, if so.
        models: What this and other nodes say of their models.
        refusal: Why the models do not allow to command, if so.
        unready: Name of the host that obeys no commands now, if so.
    """

    def __init__(
        self,
        name: str,
        context: Context,
        stop: StopFlag,
        *,
        robot: Robot | None = None,
        **node_options: Any,
    ) -> None:
        super().__init__(name, context=context, **node_options)
        self._stop = stop
        self.parameters = Parameters(self, self._on_parameters)
        self.control = make_control_loop(name, self.parameters, robot)
        self.controller = self.control.controller
        value = self.parameters
        self.enabled: bool = value["autostart"]
        self._missed = MissedStates()
        self.problem = ""
        self.log_failure = ""
        self.refusal = ""
        self.unready = ""
        identity = identity_of(self.control.robot)
        self.models = ModelTopic(self, "controller", identity, lambda: value[ACCEPT])
        self._make_topics()
        self.create_service(SetBool, topics.ENABLE_SERVICE, self._on_enable)
        self.create_service(Trigger, topics.ESTOP_SERVICE, self._on_estop)
        self.create_service(Trigger, topics.RESTART_SERVICE, self._on_restart)
        subscribe_reference(
            self, self.controller, self.parameters, present=self._present, follow=self._follow
        )
        subscribe_forces(self, self.controller, self._forget_answer)
        self.health = ControllerHealth(self, self, self.control.robot.name)

    def _make_topics(self) -> None:
        tree = self.controller.model.dynamics.tree
        self._order = NameOrder(tree.position_names)
        self._slots = None if tree.nq == tree.nv else tree.velocity_slots
        self._state = RobotState(0.0, tree.home.copy(), np.zeros(tree.nv))
        self._reader = JointStateReader()
        self._states = HotSubscription(
            self, JointState, topics.JOINT_STATES, topics.STATE_INPUT_QOS
        )
        self._commands = [
            (
                HotPublisher(
                    self, JointState, topics.COMMAND_TOPICS[part.kind], topics.COMMAND_QOS
                ),
                JointStateWriter(part.names, [name for name, _ in command_fields(part)]),
            )
            for part in self.controller.command
        ]
        self._desired = HotPublisher(self, JointState, topics.DESIRED, topics.STATE_QOS)
        self._error = HotPublisher(self, JointState, topics.ERROR, topics.STATE_QOS)
        names = self.controller.reference_names
        rates = self.controller.error_names
        fields = ("position", "velocity") if len(names) == len(rates) else ("position",)
        self._desired_writer = JointStateWriter(names, fields)
        self._error_writer = JointStateWriter(rates, ("position",))
        self._signals = [
            (
                HotPublisher(self, JointState, f"~/{signal.name}", topics.STATE_QOS),
                JointStateWriter(signal.names, (signal.field,)),
                signal,
            )
            for signal in self.controller.signals
        ]
        self._state_period = nanoseconds(1.0 / self.parameters["state_rate"])
        self._shown = -self._state_period
        self._stamp = -1  # of the last state, [ns]
        self._candidate = -1  # stamp of the last state if that was from the past, [ns]
        self._answered = -1  # of the last answered state, [ns]
        self._last_state = b""
        self._last_answer: list[bytes | JointState] | None = None
        muscles = [muscle.name for muscle in self.control.robot.muscles]
        self._muscles = MuscleInput(self, self.controller.needs, muscles)
        self._waiting: bytes | None = None  # a state whose muscles have not come yet
        more = self._muscles.subscription
        inputs = [self._states, *([more] if more else [])]
        self._loop = NodeLoop(self, inputs, self._stop, polls=True)

    # Loop -------------------------------------------------------------------------------------

    def run(self) -> int:
        """Answer states until the stop flag is set; return the exit code."""
        self.get_logger().info(f"ready; {'enabled' if self.enabled else 'call ~/enable to start'}")
        while not self._stop:
            data = self._states.take() or self._waiting
            self._waiting = None
            if data is not None:
                self._answer(data)
            if data is None or self._waiting is not None:
                self._loop.wait(_WAIT)
            if self._loop.serve():
                self._desired.refresh()
                self._error.refresh()
                for publisher, _, _ in self._signals:
                    publisher.refresh()
                self._compare_models()
                self.health.update()
        return 0

    def _compare_models(self) -> None:
        """Stop commanding while another node has another model; then start again."""
        self.models.update()
        self._await_host()
        refusal = self.models.refusal
        if bool(refusal) != bool(self.refusal):
            self._last_answer = None
            self.control.start(keep_log=True)
            if refusal:
                self.get_logger().error(f"no commands: {refusal}")
                self.models.commanding(False)
            else:
                self.get_logger().info("the models agree: commands are allowed")
        self.refusal = refusal

    def _await_host(self) -> None:
        """Stop commanding while a host obeys no commands; then start again."""
        unready = self.models.unready
        if bool(unready) != bool(self.unready):
            self._last_answer = None
            self.control.start(keep_log=True)
            if unready:
                self.models.commanding(False)
        self.unready = unready

    def _answer(self, data: bytes) -> None:
        begin = time.perf_counter()
        self.health.state_came()
        again = data == self._last_state
        if again and self._last_answer is not None:
            self._send(self._last_answer)  # the first answer was lost
            return
        sample = self._reader.read(data)
        try:
            self._take_over(sample)
            if not self._muscles.read(self._state, sample.stamp):
                self._await_muscles(data, sample.stamp)
                return
            self._judge_gains()
        except (JointSetError, ParameterError) as error:
            self._refuse(str(error))
            return
        self.problem = ""
        if not again and self._is_stray(sample.stamp):
            return
        self._stamp = sample.stamp
        if not self.enabled or not self._may_command():
            return
        if not again:
            self._advance_to(sample.stamp)
        answer = self._written(sample.stamp, self.control.step(self._state))
        duration = 1e6 * (time.perf_counter() - begin)
        self._send(answer)
        self._last_state, self._last_answer = data, answer
        self.health.answered(duration)
        if again:
            return  # only the gains or the reference are new: no new row in the log
        try:
            self.control.record(duration, self.missed)
        except OSError as error:
            self._note_log_failure(error)
        if sample.stamp - self._shown >= self._state_period:
            self._show(sample.stamp)

    def _await_muscles(self, data: bytes, stamp: int) -> None:
        """Buffer a state until its muscles arrive; drop it when a later one is complete."""
        if self._muscles.stamp < stamp:
            self._waiting = data
        elif stamp == 0 or stamp < self._answered:
            # the host was reset: its next muscles are from before those that were seen
            self._muscles.restart()
            self._waiting = data

    def _written(self, stamp: int, command: Command) -> list[bytes | JointState]:
        """Return a command as one message for each of its parts."""
        return [
            writer.write(stamp, *(values for _, values in command_fields(part)))
            for (_, writer), part in zip(self._commands, command, strict=True)
        ]

    def _send(self, messages: list[bytes | JointState]) -> None:
        for (publisher, _), message in zip(self._commands, messages, strict=True):
            publisher.publish(message)

    def _judge_gains(self) -> None:
        """Raise `ParameterError` if the gains are not stable with the period of the states."""
        self._settled = self.models.settled()
        if (period := self.models.period) not in (None, self.controller.period):
            self.controller.set_period(period)

    def _may_command(self) -> bool:
        """Tell whether the models allow to command; wait for those that have not spoken yet."""
        if not self._settled:
            return False
        if self.models.refusal or self.models.unready:
            self._compare_models()
            return False
        self.models.commanding(True)
        return True

    def _is_stray(self, stamp: int) -> bool:
        """Tell whether a state from the past is to be ignored.

        Time that goes back to zero, or goes on from an earlier time, is a host that was reset.
        A single state from the past is not: a replayed or reordered message, or another host.
        """
        if stamp > self._answered:
            self._candidate = -1
            return False
        if stamp == 0 or 0 <= self._candidate < stamp:
            self._candidate = -1
            return False
        self._candidate = stamp
        return True

    # What `ControllerHealth` looks at ---------------------------------------------------------

    @property
    def output(self) -> ControlOutput:
        """How the controller came to its last command."""
        return self.controller.output

    @property
    def reason(self) -> str:
        """Why the controller's last status is what it is, where the status does not say it."""
        return self.controller.reason

    @property
    def native(self) -> str:
        """Whether steps are compiled: ``yes``, or ``no, `` and the reason."""
        return self.controller.native

    @property
    def state_timeout(self) -> float:
        """Real time without states after which that is an error, [s]."""
        return float(self.parameters["state_timeout"])

    @property
    def missed(self) -> int:
        """States that were not answered."""
        return self._missed.count

    def _advance_to(self, stamp: int) -> None:
        """Note the time of a state that is about to be answered for the first time."""
        if stamp <= self._answered:
            # the simulator was reset, or is another one
            self._tell_verdict("until the reset")
            self.control.start()
            self._missed = MissedStates()
            self._shown = -self._state_period
        elif self.control.steps:  # time also passes while the controller is disabled
            self._missed.note(stamp - self._answered)
        self._answered = stamp

    def _take_over(self, sample: JointStateSample) -> None:
        """Copy the state out of a message. Raises `JointSetError`."""
        count = len(sample.names)
        if sample.position.size != count or sample.velocity.size != count:
            raise JointSetError(
                f"joint_states has {sample.position.size} positions and {sample.velocity.size} "
                f"velocities for {count} names (expected: one of each for every name)"
            )
        order = self._order.order(sample.names)
        self._state.time = seconds(sample.stamp)
        self._state.q[:] = sample.position[order]
        velocity = sample.velocity[order]
        self._state.qd[:] = velocity if self._slots is None else velocity[self._slots]

    def _refuse(self, problem: str) -> None:
        if problem != self.problem:
            self.get_logger().error(problem)
        self.problem = problem

    def _show(self, stamp: int) -> None:
        self._shown = stamp
        out = self.controller.output
        if self._desired.wanted:
            values = (out.desired, out.desired_dot)[: len(self._desired_writer.fields)]
            self._desired.publish(self._desired_writer.write(stamp, *values))
        if self._error.wanted:
            self._error.publish(self._error_writer.write(stamp, out.error))
        for publisher, writer, signal in self._signals:
            if publisher.wanted:
                publisher.publish(writer.write(stamp, signal.read()))

    def _note_log_failure(self, error: OSError) -> None:
        """Go on without the log: a full disk is no reason to let the arm fall."""
        self.log_failure = f"log stopped at t = {seconds(self._stamp):g} s: {error}"
        self.get_logger().error(self.log_failure)

    # Reference --------------------------------------------------------------------------------

    def _present(self) -> tuple[Array, Array, Array]:
        """Return y, yd, ydd where a live reference has to take over."""
        out = self.controller.output
        zero = np.zeros_like(out.error)
        if self.control.steps:
            return out.desired.copy(), out.desired_dot.copy(), zero
        return self.controller.place(self._state.q, self._state.qd), zero, zero

    def _follow(self, reference: Reference) -> None:
        """Track a reference that came by topic, beginning with the last state."""
        if self._stamp < 0:
            self.get_logger().warning("reference ignored: no joint_states yet")
            return
        self.control.follow(reference, seconds(self._stamp))
        self._last_answer = None

    def _forget_answer(self) -> None:
        """Answer the last state again if it comes again: what the controller is to do changed."""
        self._last_answer = None

    # Services and parameters ------------------------------------------------------------------

    def _on_enable(self, request: Any, response: Any) -> Any:
        if request.data and self.refusal:
            response.message = f"not enabled: {self.refusal}"
            return response
        if request.data and not self.enabled:
            # times of the log must increase, and they do unless the simulator is reset
            self.control.start(keep_log=True)
        self.enabled = bool(request.data)
        self._last_answer = None
        if not self.enabled:
            self.models.commanding(False)
        response.success = True
        response.message = "enabled" if self.enabled else "disabled: no more commands"
        return response

    def _on_estop(self, _request: Any, response: Any) -> Any:
        self.enabled = False
        self._last_answer = None
        if self._stamp > 0 and not self.refusal and not self.unready:
            # at time zero nothing is pulled yet, and a command would set a waiting world going
            self._send(self._written(self._stamp, self.controller.relaxed))
        self.models.commanding(False)
        efforts = any(part.kind == "effort" for part in self.controller.relaxed)
        sent = "minimum tensions" + (" and no efforts" if efforts else "")
        self.get_logger().warning(f"emergency stop: {sent} sent, disabled")
        response.success = True
        response.message = f"{sent} sent; ~/enable starts again"
        return response

    def _on_restart(self, _request: Any, response: Any) -> Any:
        self.control.start(keep_log=True)
        self._last_answer = None
        response.success = True
        response.message = "the reference begins with the next state"
        return response

    def _on_parameters(self, changes: Mapping[str, Any]) -> None:
        live = {
            spec.name: self.parameters[spec.name] for spec in self.parameters.specs if spec.live
        }
        self.controller.change({**live, **changes})
        self._last_answer = None

    def _tell_verdict(self, part: str) -> None:
        """Write into the node's output how the task went since the last reset."""
        facts = self.control.tally.facts(missed=self.missed)
        if not facts.steps:
            return
        # without a wish of the user's a controller does not end
        verdict = judge(None, facts, Ending(0.0, stopped=True))
        tell(self, f"task {part}", verdict)

    def close(self) -> None:
        """Say how the task went, write the log and destroy the node."""
        self._tell_verdict("until the end")
        try:
            self.control.close()
        except OSError as error:
            self.get_logger().error(f"log not written: {error}")
        self._loop.close()
        self.destroy_node()


def run_controller(kind: str, args: Sequence[str] | None = None) -> int:
    """Run the node of a controller until it is stopped; return the exit code.

    Args:
        kind: Of the controller, see `cards_core.control.registry`; also the name of the node.
        args: ROS arguments; default ``sys.argv``.
    """
    return run(partial(ControllerNode, kind), kind, args, nice=HOT_NICE)
