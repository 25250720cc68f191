"""States out, commands in, and the log of them: what the bridge does all the time.

Nothing is repeated: when commands stop, the boards' own watchdogs see it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.context import Context
from rclpy.lifecycle import LifecycleNode
from std_srvs.srv import Trigger

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.formats.urdf import to_urdf
from cards_core.loop.model_agreement import ACCEPT
from cards_core.loop.model_identity import identity_of
from cards_core.muscles.command import CommandRefusedError
from cards_core.robot.actuators import CommandKind
from cards_core.robot.model import Robot
from cards_core.robot.state import RobotState
from cards_core.stamps import NANOSECONDS, seconds
from cards_core.typing import Array
from cards_hardware.board_layout import read_layout
from cards_hardware.bridge_health import BridgeHealth
from cards_hardware.bridge_log import open_log
from cards_hardware.command_gate import CommandGate
from cards_hardware.errors import HardwareError
from cards_hardware.hardware import Hardware, HardwareStatus
from cards_hardware.hardware_states import HardwareState
from cards_hardware.node_parameters import parameters
from cards_hardware.sample_clock import SampleClock
from cards_ros import topics
from cards_ros.host_topics import HostTopics
from cards_ros.loop import NodeLoop, StopFlag
from cards_ros.messages import JointStateSample
from cards_ros.model_topic import ModelTopic
from cards_ros.parameters import Parameters

QUANTITIES = ("current", "housing_temperature")
"""What ``muscle_states`` has of every muscle beside length, rate and tension: [A], [degC]."""

WAIT = 0.02
"""Longest wait of the loop, [s]."""

MakeHardware = Callable[..., Hardware]
"""Called with robot, layout, ``on_state`` and ``on_event``; tests have their own."""


class BridgeTraffic(LifecycleNode):
    """Topics of the real robot. Base of `BridgeNode`, which decides when commands pass.

    Args:
        name: Of the node.
        context: ROS context.
        stop: Ends waits.
        robot: Replaces the parameter ``model``.
        make: Makes the boards' side.
        **node_options: Passed to `rclpy.node.Node`.
    """

    def __init__(
        self,
        name: str,
        context: Context,
        stop: StopFlag,
        *,
        robot: Robot | None,
        make: MakeHardware,
        **node_options: Any,
    ) -> None:
        super().__init__(name, context=context, **node_options)
        if self.get_parameter("use_sim_time").value:
            raise CardsError("parameter 'use_sim_time' is True (expected: False, a real robot)")
        value = self.parameters = Parameters(self)
        value.declare(parameters())
        value.refuse_others()
        robot = robot or load(value["model"])
        layout = self._layout = read_layout(
            value["boards"] or robot.name,
            robot,
            port=value["port"],
            baudrate=value["baudrate"],
            namespace=value["part"],
        )
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.gate = CommandGate(layout.limited(robot), value["command_timeout"])
        self.clock = SampleClock()
        self.active = False
        self.log_failure = ""
        self._busy = False
        self._make_topics(robot, stop)
        self.hardware = make(robot, layout, on_state=self._loop.wake, on_event=self._events.put)
        self.health = BridgeHealth(self, robot, layout)
        self._log = open_log(value["log_dir"], robot, self._tree)

    def _make_topics(self, robot: Robot, stop: StopFlag) -> None:
        value = self.parameters
        self._patience = round(value["command_timeout"] * NANOSECONDS)
        self._tree = robot.tree
        self._present = 0  # stamp of the last state, [ns]
        names = [muscle.name for muscle in robot.muscles]
        states = [f"{m}/{quantity}" for m in names for quantity in QUANTITIES]
        self._actuators = np.full((len(names), 2), np.nan)
        self.models = ModelTopic(
            self, "host", identity_of(robot), lambda: value[ACCEPT], ready=False
        )
        self._topics = HostTopics(
            self, robot, self._tree, states, to_urdf(robot), models=self.models
        )
        estop = self.create_service(Trigger, topics.ESTOP_SERVICE, self._on_estop)
        self._loop = NodeLoop(self, self._topics.subscriptions, stop, urgent=[estop])

    # What the node does -----------------------------------------------------------------------

    def _look(self, state: HardwareState) -> None:
        """Look at a state before it is published."""
        raise NotImplementedError

    def _on_estop(self, request: Any, response: Any) -> Any:
        """Answer the service ``estop``."""
        raise NotImplementedError

    # States and commands ----------------------------------------------------------------------

    def _publish(self) -> bool:
        """Publish the newest state, if there is one; tell whether there was."""
        state = self.hardware.take()
        if state is None:
            return False
        self._look(state)
        stamp = self.clock.stamp(state.time)
        if not state.complete or stamp is None:
            self.health.skipped()
            return True
        self._present = stamp
        self._actuators[:, 0] = state.currents
        self._topics.publish(
            stamp,
            RobotState(
                seconds(stamp),
                state.q,
                state.qd,
                muscle_lengths=state.lengths,
                muscle_rates=state.rates,
                tensions=state.tensions,
                actuators=self._actuators.ravel(),
            ),
        )
        age = self.clock.age(state.time)
        self.health.published(age)
        self._record(stamp, state, age)
        return True

    def _record(self, stamp: int, state: HardwareState, age: float) -> None:
        if self._log is None:
            return
        try:
            self._log.record(stamp, state, age, active=self.active)
        except OSError as error:
            self.log_failure = f"log stopped: {error}"
            self.get_logger().error(self.log_failure)
            self._log = None

    def _obey(self) -> None:
        """Take the commands that have come; pass them on if the node is active."""
        if not self.active or self._busy:
            for _ in self._topics.commands():
                self.health.ignored += 1
            return
        for kind, sample, values in self._topics.answers(
            self._present, lockstep=False, patience=self._patience, refused=self.health.refused
        ):
            self._pass_on(kind, sample, values)

    def _pass_on(self, kind: CommandKind, sample: JointStateSample, values: Array) -> None:
        begin = time.perf_counter()
        try:
            told = self.gate.submit(sample.names, values, kind, time.monotonic())
            self.hardware.command(kind, told)
        except (CommandRefusedError, HardwareError) as error:
            self.health.refused(str(error))
        else:
            self.health.passed_on(time.perf_counter() - begin)

    def _refresh(self, status: HardwareStatus) -> None:
        """Look who listens, and take over what the boards tell now and then."""
        self._topics.refresh()
        for layout, board in zip(self._layout.boards, status.boards, strict=True):
            if board.temperatures:
                self._actuators[layout.muscle_rows, 1] = board.temperatures

    def _meanwhile(self, work: Callable[[], object]) -> None:
        """Do in a thread what waits for boards; states and the emergency stop go on."""
        error: list[BaseException] = []

        def do() -> None:
            try:
                work()
            except BaseException as reason:
                error.append(reason)
            self._loop.wake()

        thread = threading.Thread(target=do, name="boards", daemon=True)
        busy, self._busy = self._busy, True
        try:
            thread.start()
            while thread.is_alive():
                if not self._publish():
                    self._loop.wait(WAIT)
                self._obey()
                self._loop.serve_urgent()
        finally:
            self._busy = busy
        if error:
            raise error[0]

    def close(self) -> None:
        """Close the ports, write the log and destroy the node."""
        self.hardware.close()
        try:
            if self._log is not None:
                self._log.close()
        except OSError as error:
            self.get_logger().error(f"log not written: {error}")
        self._loop.close()
        self.destroy_node()
        # rclpy leaves it to the garbage collector, and until then its services are still announced
        self._state_machine.destroy_when_not_in_use()
