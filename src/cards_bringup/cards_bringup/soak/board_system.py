"""Emulated boards, bridge and controller, and what may happen to them and to the line between."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from typing import Any

import numpy as np

from cards_bringup.soak.judge import (
    BoardSample,
    Violation,
    command_within_limits,
    judge_board,
)
from cards_bringup.soak.plan import Episode, Fault, Plan
from cards_bringup.soak.processes import python
from cards_bringup.soak.ros_system import AT_LEAST, FORTH, RECOVERY_TIME, RosSystem
from cards_core.errors import CardsError
from cards_hardware.errors import HardwareError, ProtocolError
from cards_hardware.hil.relay import Relay
from cards_hardware.hil.rig import Rig
from cards_hardware.protocol.codec import unpack
from cards_hardware.protocol.enums import State
from cards_hardware.real_time import HOST_PRIORITY, make_real_time

BYTE_ERRORS = 1e-4
"""Share of bytes that are changed, lost or doubled."""

REARM_TRIES = 6

ACTIVE_TIME = 3.0
"""In which a robot that nothing has stopped is commanded again by itself, [s]."""

FIRST_TIME = 30.0
"""In which the first commands come, if the board answers, [s]."""

DRAIN_PERIOD = 0.1
"""[s]"""


class BoardSystem(RosSystem):
    """The bridge of ``sim:=false``, on the first of the robot's boards through a relay."""

    def __init__(self, plan: Plan, episode: Episode, folder: Any, mark: str) -> None:
        super().__init__(plan, episode, folder, mark)
        self._stack = contextlib.ExitStack()
        self._samples: list[BoardSample] = []
        self._bad_commands: list[Violation] = []
        self._drained = threading.Event()
        self._drainer = threading.Thread(target=self._drain_all, daemon=True)
        self._relay: Relay
        self._rig: Rig
        self._services: list[str] = []

    def arguments(self) -> dict[str, str]:
        """Return launch arguments."""
        return {"sim": "false", "port": str(self._relay.link), "rviz": "false"}

    def parameters(self, role: str) -> dict[str, Any]:
        """Return parameters of the node of a role beyond those of the robot's file."""
        out = super().parameters(role)
        if role == "host":
            for name in ("publish_rate", "dt", "command_timeout"):
                out.pop(name)
        return out

    def stranger(self) -> dict[str, Any]:
        """Return what observers and intruders have to know."""
        return {**super().stranger(), "host": "hardware"}

    def names(self) -> list[str]:
        """Return the nodes in the order in which they are started."""
        return ["controller", "hardware"]

    def before_nodes(self) -> None:
        """Start boards and relay."""
        self._rig = self._stack.enter_context(
            Rig(
                self.plan.robot,
                self.folder / "boards",
                firmware=self.plan.firmware,
                stand_time=1e6,
            )
        )
        self._relay = self._stack.enter_context(
            Relay(self._rig.ports[0], self.folder / "port", seed=self.episode.number)
        )
        self._drainer.start()

    def start_node(self, name: str) -> Any:
        """Start a node with the priority of a computer that does nothing else."""
        life = super().start_node(name)
        if name == "hardware":
            controller = self.processes.life("controller")
            if controller is not None:
                make_real_time(controller.process.pid, HOST_PRIORITY)
        return life

    # The line ---------------------------------------------------------------------------------

    def _drain_all(self) -> None:
        while not self._drained.wait(DRAIN_PERIOD):
            self._drain()

    def _drain(self) -> None:
        for item in self._relay.drain():
            wanted = {"to_host": "STATE_FAST", "to_board": "CMD_TENSION"}[item.direction]
            if item.frame.name != wanted:
                continue
            try:
                values = unpack(item.frame)
            except ProtocolError:
                continue
            if item.direction == "to_board":
                mask = int(values["mask"])
                high = self.high[[row for row in range(len(self.high)) if mask >> row & 1]]
                tensions = np.array(values["tension"])
                self._bad_commands += command_within_limits(item.time, tensions, high)
                continue
            self._samples.append(
                BoardSample(
                    item.time,
                    item.frame.t_us,
                    State(values["state"]).name,
                    int(values["cmd_t_us"]),
                    np.array(values["tension"]),
                )
            )

    def commanded(self) -> bool:
        """Tell whether commands have reached the board."""
        return super().commanded() and self._active_since(0.0)

    # Faults -----------------------------------------------------------------------------------

    def _unplug(self, fault: Fault) -> str:
        self._relay.unplug()
        self.sleep(fault.duration)
        self._relay.plug()
        return ""

    def _board_reset(self, fault: Fault) -> str:
        self._rig.emulators[0].reset()
        return ""

    def _byte_errors(self, fault: Fault) -> str:
        self._relay.error_rate = BYTE_ERRORS
        self.sleep(fault.duration)
        self._relay.error_rate = 0.0
        return f"{BYTE_ERRORS:g} of all bytes"

    def recover(self) -> None:
        """Wait until the board is commanded, and arm it by hand where it must not do so itself.

        On a busy machine it may relax again at once, as it must.
        """
        begin = time.monotonic()
        end = begin + RECOVERY_TIME
        for _ in range(REARM_TRIES):
            waited = time.monotonic() + ACTIVE_TIME
            while time.monotonic() < waited:
                self.watch()
                if self._active_since(begin):
                    return
                time.sleep(0.1)
            self._rearm()
            if time.monotonic() > end:
                break
        tails = "; ".join(f"{x.name}: {x.tail}" for x in self.processes.lives[-4:])
        state = self._samples[-1].state if self._samples else "silent"
        self.violate("commanded again after a fault", f"the board is {state}; {tails}")

    def _rearm(self) -> None:
        """Configure and activate the bridge, as a person does who has looked at the robot."""
        given = {**self.stranger(), "seed": len(self._services)}
        words = python("cards_bringup.soak.intruder", "rearm", json.dumps(given))
        self.finished("hand", words, RECOVERY_TIME)
        said = self.processes.lives[-1].log.read_text(errors="replace").splitlines()
        self._services += [line for line in said if "service" in line]

    def first_commands(self) -> None:
        """Wait for them; a bridge whose board did not answer a busy machine is asked again."""
        for _ in range(REARM_TRIES):
            try:
                self.until(self.commanded, "the first commands", FIRST_TIME)
            except CardsError:
                self._rearm()
            else:
                return
        super().first_commands()

    def _active_since(self, begin: float) -> bool:
        """Tell whether the board has obeyed some commands since a time, [s]."""
        commands = {
            s.command for s in self._samples[-3000:] if s.wall > begin and s.state == "ACTIVE"
        }
        return len(commands) >= FORTH

    # End --------------------------------------------------------------------------------------

    def judge(self) -> None:
        """Judge what the line has shown."""
        self._drained.set()
        self._drainer.join()
        self._drain()
        found = judge_board(self._samples, self.high)
        self.violations += [*self._bad_commands[:10], *found.violations]
        self.assign(found.releases)
        for record in self.records:
            fault = record.fault
            silent = fault.kind == "kill" or fault.kind in ("stop", "unplug")
            gone = any(
                s.state not in ("ACTIVE", "HOLD") for s in self._samples if record.covers(s.wall)
            )
            if silent and fault.duration > AT_LEAST and not gone:
                self.violate("safe state", f"{fault.kind} {fault.target}: the board went on")
        answers = [json.loads(line) for line in self._services]
        late = [a for a in answers if not a["answered"]]
        self.facts.update(
            samples=len(self._samples),
            releases=len(found.releases),
            services=len(answers),
            unanswered=len(late),
        )
        if answers:
            self.facts["slowest answer, s"] = max(a["s"] for a in answers)

    def abort(self) -> None:
        """End what still runs, at once."""
        super().abort()
        self._drained.set()
        with contextlib.suppress(CardsError, HardwareError, OSError):
            self._stack.close()
