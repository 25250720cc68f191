"""States out, commands in, and the log of them: what the bridge does all the time.

Nothing is repeated: when commands stop, the boards' own watchdogs see it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
from rclpy.impl.rcutils_logger import RcutilsLogger

from cards_core.muscles.command import CommandRefusedError
from cards_core.robot.actuators import CommandKind
from cards_core.robot.model import Robot
from cards_core.robot.state import RobotState
from cards_core.stamps import seconds
from cards_core.typing import Array
from cards_hardware.boards.layout import Layout
from cards_hardware.bridge.command_gate import CommandGate
from cards_hardware.bridge.hardware import Hardware, HardwareStatus
from cards_hardware.bridge.hardware_state import HardwareState
from cards_hardware.bridge.health import BridgeHealth
from cards_hardware.bridge.log import BridgeLog
from cards_hardware.bridge.sample_clock import SampleClock
from cards_hardware.errors import HardwareError
from cards_ros.host_topics import HostTopics
from cards_ros.loop import NodeLoop
from cards_ros.messages import JointStateSample

QUANTITIES = ("current", "housing_temperature")
"""What ``muscle_states`` has of every muscle beside length, rate and tension: [A], [degC]."""

WAIT = 0.02
"""Longest wait of the loop, [s]."""


class Traffic:
    """Passes states of the boards to the topics, and commands to the boards.

    Args:
        robot: The robot.
        layout: Its boards.
        hardware: The boards.
        host_topics: Where states go and commands come from.
        loop: Loop of the node.
        gate: Checks commands.
        clock: Stamps samples.
        health: Counts what happens, for the diagnostics.
        patience: Oldest state that a command may answer, [ns].
        log: One row per state; None: no log.
        logger: Logger of the node.
        on_state: Called with every state before it is published.

    Attributes:
        active: Whether commands pass.
        busy: Whether `meanwhile` is at work; then no command passes either.
        log_failure: Why the log stopped, empty if it did not.
    """

    def __init__(
        self,
        robot: Robot,
        layout: Layout,
        hardware: Hardware,
        host_topics: HostTopics,
        loop: NodeLoop,
        *,
        gate: CommandGate,
        clock: SampleClock,
        health: BridgeHealth,
        patience: int,
        log: BridgeLog | None,
        logger: RcutilsLogger,
        on_state: Callable[[HardwareState], None],
    ) -> None:
        self._layout = layout
        self._hardware = hardware
        self._topics = host_topics
        self._loop = loop
        self._gate = gate
        self._clock = clock
        self._health = health
        self._patience = patience
        self._log = log
        self._logger = logger
        self._on_state = on_state
        self.active = False
        self.busy = False
        self.log_failure = ""
        self._present = 0  # stamp of the last state, [ns]
        self._actuators = np.full((len(robot.muscles), len(QUANTITIES)), np.nan)

    def publish(self) -> bool:
        """Publish the newest state, if there is one; tell whether there was."""
        state = self._hardware.take()
        if state is None:
            return False
        self._on_state(state)
        stamp = self._clock.stamp(state.time)
        if not state.complete or stamp is None:
            self._health.skipped()
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
        age = self._clock.age(state.time)
        self._health.published(age)
        self._record(stamp, state, age)
        return True

    def _record(self, stamp: int, state: HardwareState, age: float) -> None:
        if self._log is None:
            return
        try:
            self._log.record(stamp, state, age, active=self.active)
        except OSError as error:
            self.log_failure = f"log stopped: {error}"
            self._logger.error(self.log_failure)
            self._log = None

    def obey(self) -> None:
        """Take the commands that have come; pass them on if the bridge is active."""
        if not self.active or self.busy:
            for _ in self._topics.commands():
                self._health.ignored += 1
            return
        for kind, sample, values in self._topics.answers(
            self._present, lockstep=False, patience=self._patience, refused=self._health.refused
        ):
            self._pass_on(kind, sample, values)

    def _pass_on(self, kind: CommandKind, sample: JointStateSample, values: Array) -> None:
        begin = time.perf_counter()
        try:
            told = self._gate.submit(sample.names, values, kind, time.monotonic())
            self._hardware.command(kind, told)
        except (CommandRefusedError, HardwareError) as error:
            self._health.refused(str(error))
        else:
            self._health.passed_on(time.perf_counter() - begin)

    def refresh(self, status: HardwareStatus) -> None:
        """Update the subscribers, and the values that boards send slowly."""
        self._topics.refresh()
        for layout, board in zip(self._layout.boards, status.boards, strict=True):
            if board.temperatures:
                self._actuators[layout.muscle_rows, 1] = board.temperatures

    def meanwhile(self, work: Callable[[], object]) -> None:
        """Run in a thread what waits for boards; states and the emergency stop go on."""
        error: list[BaseException] = []

        def do() -> None:
            try:
                work()
            except BaseException as reason:
                error.append(reason)
            self._loop.wake()

        thread = threading.Thread(target=do, name="boards", daemon=True)
        busy, self.busy = self.busy, True
        try:
            thread.start()
            while thread.is_alive():
                if not self.publish():
                    self._loop.wait(WAIT)
                self.obey()
                self._loop.serve_urgent()
        finally:
            self.busy = busy
        if error:
            raise error[0]

    def close(self) -> None:
        """Write the log."""
        try:
            if self._log is not None:
                self._log.close()
        except OSError as error:
            self._logger.error(f"log not written: {error}")
