"""What all controller nodes have in common: states in, commands out, reference, health.

For every ``joint_states`` message the node publishes one ``force_command`` with the same stamp,
and one ``effort_command`` if joints of the robot have motors.
The reference begins with the first state after the controller was enabled, and anew when time
goes back (the simulator was reset). A state that comes twice gets the same answer twice and does
not count twice, so a host may repeat a state until it is answered.

While a host says that it moves another model than the controller has, no state is answered; nor
while it says that it obeys no commands, as the real robot before it is armed. The reference would
run away from a robot that does not move.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from cards_core.control import CtcOperational
from cards_core.control.verdict import Ending, judge
from cards_core.muscles.command import Command
from cards_core.robot.model import Robot
from cards_core.trajectories import Reference
from cards_core.typing import Array
from cards_ros import topics
from cards_ros.diagnostics import tell
from cards_ros.loop import HotPublisher, HotSubscription, NodeLoop, StopFlag
from cards_ros.messages import (
    JointSetError,
    JointStateReader,
    JointStateSample,
    JointStateWriter,
    NameOrder,
)
from cards_ros.model_agreement import ACCEPT
from cards_ros.model_identity import identity_of
from cards_ros.model_topic import ModelTopic
from cards_ros.parameters import Parameters
from cards_ros.stamps import nanoseconds, seconds
from controllers.build import build_session, rate_names
from controllers.health import Health
from controllers.missed_states import MissedStates
from controllers.node_parameters import damping

_WAIT = 0.02  # [s], longest wait of the loop


class ControllerNode(Node, ABC):
    """Shell of a controller; a subclass says which one and what it can follow.

    Args:
        name: Node name, and the controller's kind.
        context: ROS context.
        stop: Ends `run`.
        robot: Replaces the parameter ``model``, for tests.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        session: Controller, reference and log.
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
        self.session = build_session(name, self.parameters, robot)
        self.controller = self.session.controller
        self.dynamics = self.controller.dynamics
        robot = self.dynamics.robot
        value = self.parameters
        self.enabled: bool = value["autostart"]
        self._missed = MissedStates()
        self.problem = ""
        self.log_failure = ""
        self.refusal = ""
        self.unready = ""
        identity = identity_of(self.session.robot)
        self.models = ModelTopic(self, "controller", identity, lambda: value[ACCEPT])
        self._make_topics(robot)
        self.create_service(SetBool, topics.ENABLE_SERVICE, self._on_enable)
        self.create_service(Trigger, topics.ESTOP_SERVICE, self._on_estop)
        self.create_service(Trigger, topics.RESTART_SERVICE, self._on_restart)
        self.health = Health(self, robot.name)

    def _make_topics(self, robot: Robot) -> None:
        tree = self.dynamics.tree
        self._order = NameOrder(tree.position_names)
        self._slots = None if tree.nq == tree.nv else tree.velocity_slots
        self._q, self._qd = tree.home.copy(), np.zeros(tree.nv)
        self._reader = JointStateReader()
        self._states = HotSubscription(self, JointState, topics.JOINT_STATES, topics.STATE_QOS)
        self._commands = [
            (
                HotPublisher(
                    self, JointState, topics.COMMAND_TOPICS[part.kind], topics.COMMAND_QOS
                ),
                JointStateWriter(part.names, ("effort",)),
            )
            for part in self.controller.command
        ]
        self._desired = HotPublisher(self, JointState, topics.DESIRED, topics.STATE_QOS)
        self._error = HotPublisher(self, JointState, topics.ERROR, topics.STATE_QOS)
        names = self.controller.reference_names
        rates = rate_names(self.controller.kind, self.parameters, tree)
        fields = ("position", "velocity") if len(names) == len(rates) else ("position",)
        self._desired_writer = JointStateWriter(names, fields)
        self._error_writer = JointStateWriter(rates, ("position",))
        self._state_period = nanoseconds(1.0 / self.parameters["state_rate"])
        self._shown = -self._state_period
        self._stamp = -1  # of the last state, [ns]
        self._candidate = -1  # stamp of the last state if that was from the past, [ns]
        self._answered = -1  # of the last answered state, [ns]
        self._last_state = b""
        self._last_answer: list[bytes | JointState] | None = None
        self._loop = NodeLoop(self, [self._states], self._stop)

    # Loop -------------------------------------------------------------------------------------

    def run(self) -> int:
        """Answer states until the stop flag is set; return the exit code."""
        self.get_logger().info(f"ready; {'enabled' if self.enabled else 'call ~/enable to start'}")
        while not self._stop:
            data = self._states.take()
            if data is None:
                self._loop.wait(_WAIT)
            else:
                self._answer(data)
            if self._loop.serve():
                self._desired.refresh()
                self._error.refresh()
                self._compare_models()
                self.health.update()
        return 0

    def _compare_models(self) -> None:
        """Stop commanding while another node has another model; then begin anew."""
        self.models.update()
        self._await_host()
        refusal = self.models.refusal
        if bool(refusal) != bool(self.refusal):
            self._last_answer = None
            self.session.start(keep_log=True)
            if refusal:
                self.get_logger().error(f"no commands: {refusal}")
                self.models.commanding(False)
            else:
                self.get_logger().info("the models agree: commands are allowed")
        self.refusal = refusal

    def _await_host(self) -> None:
        """Stop commanding while a host obeys no commands; then begin anew."""
        unready = self.models.unready
        if bool(unready) != bool(self.unready):
            self._last_answer = None
            self.session.start(keep_log=True)
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
        except JointSetError as error:
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
        self.session.step(sample.stamp, self._q, self._qd)
        answer = self._written(sample.stamp, self.controller.command)
        duration = 1e6 * (time.perf_counter() - begin)
        self._send(answer)
        self._last_state, self._last_answer = data, answer
        self.health.answered(duration)
        if again:
            return  # only the gains or the reference are new: no new row in the log
        try:
            self.session.record(duration, self.missed)
        except OSError as error:
            self._note_log_failure(error)
        if sample.stamp - self._shown >= self._state_period:
            self._show(sample.stamp)

    def _written(self, stamp: int, command: Command) -> list[bytes | JointState]:
        """Return a command as one message for each of its parts."""
        return [
            writer.write(stamp, part.values)
            for (_, writer), part in zip(self._commands, command, strict=True)
        ]

    def _send(self, messages: list[bytes | JointState]) -> None:
        for (publisher, _), message in zip(self._commands, messages, strict=True):
            publisher.publish(message)

    def _may_command(self) -> bool:
        """Tell whether the models allow to command; wait for those that have not spoken yet."""
        if not self.models.settled():
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

    @property
    def missed(self) -> int:
        """States that came and went without an answer."""
        return self._missed.count

    def _advance_to(self, stamp: int) -> None:
        """Note the time of a state that is about to be answered for the first time."""
        if stamp <= self._answered:
            # the simulator was reset, or is another one
            self._tell_verdict("until the reset")
            self.session.start()
            self._missed = MissedStates()
            self._shown = -self._state_period
        elif self.session.steps:  # time also passes while the controller is disabled
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
        self._q[:] = sample.position[order]
        velocity = sample.velocity[order]
        self._qd[:] = velocity if self._slots is None else velocity[self._slots]

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

    def _note_log_failure(self, error: OSError) -> None:
        """Go on without the log: a full disk is no reason to let the arm fall."""
        self.log_failure = f"log stopped at t = {seconds(self._stamp):g} s: {error}"
        self.get_logger().error(self.log_failure)

    # Reference --------------------------------------------------------------------------------

    def _present(self) -> tuple[Array, Array, Array]:
        """Return y, yd, ydd where a live reference has to take over."""
        out = self.controller.output
        zero = np.zeros_like(out.error)
        if self.session.steps:
            return out.desired.copy(), out.desired_dot.copy(), zero
        return self._place(), zero, zero

    @abstractmethod
    def _place(self) -> Array:
        """Return the y of the last state."""

    def _follow(self, reference: Reference) -> None:
        """Track a reference that came by topic, beginning with the last state."""
        if self._stamp < 0:
            self.get_logger().warning("reference ignored: no joint_states yet")
            return
        self.session.follow(reference, self._stamp)
        self._last_answer = None

    # Services and parameters ------------------------------------------------------------------

    def _on_enable(self, request: Any, response: Any) -> Any:
        if request.data and self.refusal:
            response.message = f"not enabled: {self.refusal}"
            return response
        if request.data and not self.enabled:
            # times of the log must increase, and they do unless the simulator is reset
            self.session.start(keep_log=True)
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
        sent = "minimum tensions" + (" and no efforts" if len(self.controller.motors) else "")
        self.get_logger().warning(f"emergency stop: {sent} sent, disabled")
        response.success = True
        response.message = f"{sent} sent; ~/enable starts again"
        return response

    def _on_restart(self, _request: Any, response: Any) -> Any:
        self.session.start(keep_log=True)
        self._last_answer = None
        response.success = True
        response.message = "the reference begins with the next state"
        return response

    def _on_parameters(self, changes: Mapping[str, Any]) -> None:
        """Apply new gains. Raises `ParameterError`."""

        def pair(stiffness: str, rate: str) -> tuple[Array, Array] | None:
            if stiffness not in changes and rate not in changes:
                return None
            kp = changes.get(stiffness, self.parameters[stiffness])
            return kp, damping(kp, changes.get(rate, self.parameters[rate]))

        gains, posture = pair("kp", "kd"), pair("posture_kp", "posture_kd")
        if gains is not None:
            self.controller.set_gains(*gains)
        if posture is not None and isinstance(self.controller, CtcOperational):
            self.controller.set_posture_gains(*posture)
        self._last_answer = None

    def _tell_verdict(self, part: str) -> None:
        """Write into the node's output how the task went since the last reset."""
        facts = self.session.tally.facts(missed=self.missed)
        if not facts.steps:
            return
        # without a wish of the user's a controller does not end
        verdict = judge(None, facts, Ending(0.0, stopped=True))
        tell(self, f"task {part}", verdict)

    def close(self) -> None:
        """Say how the task went, write the log and destroy the node."""
        self._tell_verdict("until the end")
        try:
            self.session.close()
        except OSError as error:
            self.get_logger().error(f"log not written: {error}")
        self._loop.close()
        self.destroy_node()
