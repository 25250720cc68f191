"""Run the nodes of the real robot on a robot that is simulated behind its boards.

The plan is that of ``sim:=false``: the same nodes with the same parameters; only the port is that
of the emulated board.
"""

from __future__ import annotations

import copy
import importlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cards_bringup.nodes.plan import Plan, make_plan
from cards_bringup.nodes.ros_network import RosDomain, RosListener
from cards_bringup.nodes.supervisor import Supervisor
from cards_core.errors import CardsError
from cards_hardware.hil.rig import Rig
from cards_hardware.real_time import HOST_PRIORITY, make_real_time

START_TIMEOUT = 60.0
"""Time [s] in which the first command must reach the drives."""

CONTROLLER_TIMEOUT = 60.0
"""Time [s] in which the controllers must be there: the first time they compile their model."""

STALL_TIMEOUT = 30.0
"""Time [s] that the plant may stand still."""

ERROR_TIME = 3.0
"""An error of the bridge that lasts for longer ends the run, [s]."""

START_ERROR_TIME = 8.0
"""The same before the first command: boards and nodes have to discover each other."""

PRIORITY_UPDATES = 20
"""How often priorities of new threads are still set after the first command."""


ERROR_LEVEL = 2
"""Level of an error, see `cards_ros.diagnostics.Level`; `bytes` in the message."""


@dataclass
class BridgeStatus:
    """The last status of one aspect.

    Attributes:
        level: 0 OK, 1 WARN, 2 ERROR, 3 STALE.
        message: In words.
        values: The newest of every value that was ever reported.
        since: When this level began, monotonic [s].
    """

    level: int = 0
    message: str = ""
    values: dict[str, str] = field(default_factory=dict)
    since: float = 0.0


class DiagnosticsListener(RosListener):
    """Keeps the newest status of every aspect of the bridge. Context manager.

    Attributes:
        statuses: Aspect, e.g. ``boards`` or ``board arm``, to its last status.
    """

    def __init__(self) -> None:
        self.statuses: dict[str, BridgeStatus] = {}

    def _subscribe(self) -> None:
        from cards_ros import topics

        message = importlib.import_module("diagnostic_msgs.msg").DiagnosticArray
        self._node.create_subscription(
            message, topics.DIAGNOSTICS, self._on_diagnostics, topics.DIAGNOSTICS_QOS
        )

    def wait(self, seconds: float) -> None:
        """Listen for a while."""
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0.0:
            self._spin(rest)

    def listeners(self, topic: str) -> set[str]:
        """Return the names of the nodes that subscribe to a topic."""
        return {info.node_name for info in self._node.get_subscriptions_info_by_topic(topic)}

    def _on_diagnostics(self, message: Any) -> None:
        for update in message.status:
            # "hardware: board arm", or with the namespace in front
            node, _, aspect = update.name.partition(": ")
            if node.rpartition("/")[2] != "hardware":
                continue
            status = self.statuses.setdefault(aspect, BridgeStatus())
            level = int.from_bytes(update.level, "little")
            if level != status.level or not status.since:
                status.since = time.monotonic()
            status.level, status.message = level, update.message
            status.values.update({item.key: item.value for item in update.values})

    def lasting_error(self, patience: float) -> str:
        """Return the first error that has stood for so long [s], empty if there is none."""
        now = time.monotonic()
        for aspect, status in self.statuses.items():
            if status.level >= ERROR_LEVEL and now - status.since > patience:
                return f"{aspect}: {status.message}"
        return ""


@dataclass
class HilRun:
    """What to run.

    Attributes:
        given: Launch arguments beside ``sim`` and ``port``.
        robot: Robot, as of the node list.
        model: Its model.
        overrides: Node name to parameters beyond the plan's.
        duration: Time after the first command, [s]; 0: until Ctrl-C.
        folder: Run folder.
        firmware: See `cards_bringup.hil.options.FIRMWARES`.
        log_every: Only every so many ticks of the plant are logged.
        boards: Layout file (``.boards.yaml``) other than the robot's own.
        world: World of objects that the robot is in; empty: none.
        plan: What was run.
        status: Last status of the plant.
        bridge: Last status of every aspect of the bridge.
    """

    given: Mapping[str, str]
    robot: str
    model: str
    overrides: Mapping[str, Mapping[str, Any]]
    duration: float
    folder: Path
    firmware: str
    log_every: int = 1
    boards: str = ""
    world: str = ""
    plan: Plan | None = None
    status: dict[str, Any] = field(default_factory=dict)
    bridge: dict[str, BridgeStatus] = field(default_factory=dict)

    def run(
        self,
        on_time: Callable[[float], None],
        note: Callable[[str], None],
        on_ready: Callable[[Rig, Supervisor], None] | None = None,
    ) -> float:
        """Start everything, wait for the end of the run, stop everything.

        Args:
            on_time: Called with the plant's time since the first command [s], a few times a
                second.
            note: Told what else the user should know.
            on_ready: Called once when all runs.

        Returns:
            Wall time from the start of the nodes to the end, [s].

        Raises:
            ProcessFailedError: A node ended with an error.
            CardsError: A part does not start, or the robot does not move.
        """
        rig = Rig(
            self.model,
            self.folder / "boards",
            firmware=self.firmware,
            boards=self.boards,
            say=note,
            log_dir=str(self.folder.resolve()),
            duration=self.duration,
            log_every=self.log_every,
            world=self.world,
        )
        with RosDomain() as domain:
            domain.join(note)
            try:
                with rig:
                    self.plan = make_plan(
                        {**self.given, "sim": "false", "port": rig.port}, self.robot
                    )
                    return self._run(rig, self.plan, on_time, on_ready)
            finally:
                self.status = rig.last_status

    def _run(
        self,
        rig: Rig,
        plan: Plan,
        on_time: Callable[[float], None],
        on_ready: Callable[[Rig, Supervisor], None] | None,
    ) -> float:
        environment = {**os.environ, **plan.environment()}
        with (
            DiagnosticsListener() as listener,
            Supervisor(self.folder / "logs", environment) as nodes,
        ):
            begin = time.monotonic()
            for spec in sorted(plan.nodes, key=lambda one: one.role == "host"):
                if spec.role == "tool":
                    continue
                if spec.role == "host":
                    self._await_controllers(plan, nodes, listener)
                parameters = {**plan.parameters(spec), **self.overrides.get(spec.name, {})}
                if spec.role == "host" and self.boards:
                    parameters["boards"] = self.boards
                command = spec.command(plan.parameter_file, parameters)
                essential = spec.role in ("host", "controller")
                nodes.start(spec.name, command, essential=essential)
            if on_ready is not None:
                on_ready(rig, nodes)
            try:
                self._wait(rig, nodes, listener, on_time, begin)
                wall = time.monotonic() - begin
            finally:
                # before the nodes stop: what boards report without a controller is not of interest
                self.bridge = copy.deepcopy(listener.statuses)
            # the bridge first: it relaxes and disarms the boards, which a controller that falls
            # silent would make the boards do by themselves, with errors in the log
            nodes.stop(*(s.name for s in plan.nodes if s.role == "host"))
            return wall

    def _await_controllers(
        self, plan: Plan, nodes: Supervisor, listener: DiagnosticsListener
    ) -> None:
        """Wait until the controllers listen: the bridge arms, and then commands are due."""
        from cards_ros import topics

        wanted = {spec.name for spec in plan.nodes if spec.role == "controller"}
        end = time.monotonic() + CONTROLLER_TIMEOUT
        while not wanted <= listener.listeners(topics.JOINT_STATES):
            nodes.poll()
            if time.monotonic() > end:
                raise CardsError(
                    f"{', '.join(sorted(wanted))} did not start in {CONTROLLER_TIMEOUT:.0f} s; "
                    f"the output is in {self.folder / 'logs'}"
                )
            listener.wait(0.05)

    def _wait(
        self,
        rig: Rig,
        nodes: Supervisor,
        listener: DiagnosticsListener,
        on_time: Callable[[float], None],
        begin: float,
    ) -> None:
        last, moved = 0.0, begin
        settled = PRIORITY_UPDATES
        while True:
            ended = nodes.poll()
            if hosts := [spec.name for spec in self._hosts() if spec.name in ended]:
                raise CardsError(f"'{hosts[0]}' ended; its output is in {self.folder / 'logs'}")
            rig.check()
            listener.wait(0.1)
            now = time.monotonic()
            reached = rig.status().get("commanded_s")
            if settled:
                settled -= reached is not None
                self._raise_priorities(nodes)
            if reached is not None and reached != last:
                last, moved = reached, now
                on_time(min(last, self.duration) if self.duration else last)
            if self.duration and last >= self.duration:
                return
            if error := listener.lasting_error(ERROR_TIME if last else START_ERROR_TIME):
                raise CardsError(
                    f"the run stopped after {last:.1f} s, {error}; the bridge's output is in "
                    f"{self.folder / 'logs'}"
                )
            if now - moved > (STALL_TIMEOUT if last else START_TIMEOUT):
                what = "the plant stood still" if last else "no command reached the drives"
                raise CardsError(
                    f"{what} for {now - moved:.0f} s; the output of all parts is in "
                    f"{self.folder / 'logs'}"
                )

    def _raise_priorities(self, nodes: Supervisor) -> None:
        """Give bridge and controller priority over processes that the robot does not depend on."""
        assert self.plan is not None
        for spec in self.plan.nodes:
            if spec.role in ("host", "controller"):
                make_real_time(nodes.process_ids[spec.name], HOST_PRIORITY)

    def _hosts(self) -> list[Any]:
        assert self.plan is not None
        return [spec for spec in self.plan.nodes if spec.role == "host"]
