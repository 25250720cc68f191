"""Run the nodes of the real robot on a robot that is simulated behind its boards.

The plan is that of ``sim:=false``: the same nodes with the same parameters; only the port is that
of the emulated board.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cards_bringup.domain import RosDomain
from cards_bringup.hil.diagnostics import Listener, Said
from cards_bringup.plan import Plan, make_plan
from cards_bringup.supervisor import Supervisor
from cards_core.errors import CardsError
from cards_hardware.hil.rig import Rig
from cards_hardware.real_time import HOST_PRIORITY, make_real_time

START_TIMEOUT = 60.0
"""Time [s] in which the first command must reach the drives."""

CONTROLLER_TIMEOUT = 60.0
"""Time [s] in which the controllers must be there: the first time they compile their model."""

STALL_TIMEOUT = 30.0
"""Time [s] that the plant may stand still."""

COMPLAINT_TIME = 3.0
"""An error of the bridge that lasts for longer ends the run, [s]."""

SETTLING_LOOKS = 20
"""How often threads of bridge and controller are still looked for after the first command."""

START_COMPLAINT_TIME = 8.0
"""The same before the first command: boards and nodes need a moment to find each other."""


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
        plan: What was run.
        status: What the plant said last.
        said: What the bridge said last, by aspect.
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
    plan: Plan | None = None
    status: dict[str, Any] = field(default_factory=dict)
    said: dict[str, Said] = field(default_factory=dict)

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
        )
        with RosDomain() as domain:
            if domain.number != domain.wanted:
                note(
                    f"ROS domain {domain.wanted} is used by another run; this one is in "
                    f"ROS_DOMAIN_ID={domain.number}"
                )
            os.environ.update(domain.environment)
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
        with Listener() as listener, Supervisor(self.folder / "logs", environment) as nodes:
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
                # as the run ended: what a board says without its controller is not of the run
                self.said = copy.deepcopy(listener.said)
            # the bridge first: it relaxes and disarms the boards, which a controller that falls
            # silent would make the boards do by themselves, with errors in the log
            nodes.stop(*(s.name for s in plan.nodes if s.role == "host"))
            return wall

    def _await_controllers(self, plan: Plan, nodes: Supervisor, listener: Listener) -> None:
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
        listener: Listener,
        on_time: Callable[[float], None],
        begin: float,
    ) -> None:
        last, moved = 0.0, begin
        settled = SETTLING_LOOKS
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
                self._hurry(nodes)
            if reached is not None and reached != last:
                last, moved = reached, now
                on_time(min(last, self.duration) if self.duration else last)
            if self.duration and last >= self.duration:
                return
            if complaint := listener.complaint(COMPLAINT_TIME if last else START_COMPLAINT_TIME):
                raise CardsError(
                    f"the run stopped after {last:.1f} s, {complaint}; the bridge's output is in "
                    f"{self.folder / 'logs'}"
                )
            if now - moved > (STALL_TIMEOUT if last else START_TIMEOUT):
                what = "the plant stood still" if last else "no command reached the drives"
                raise CardsError(
                    f"{what} for {now - moved:.0f} s; the output of all parts is in "
                    f"{self.folder / 'logs'}"
                )

    def _hurry(self, nodes: Supervisor) -> None:
        """Let bridge and controller run before everything that does not hold up the robot."""
        assert self.plan is not None
        for spec in self.plan.nodes:
            if spec.role in ("host", "controller"):
                make_real_time(nodes.process_ids[spec.name], HOST_PRIORITY)

    def _hosts(self) -> list[Any]:
        assert self.plan is not None
        return [spec for spec in self.plan.nodes if spec.role == "host"]
