"""Simulator and controller as nodes, with a page or without, and what may happen to them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.nodes.node_list import NodeSpec
from cards_bringup.nodes.plan import Plan as NodePlan
from cards_bringup.nodes.plan import make_plan
from cards_bringup.nodes.ros_network import RosDomain
from cards_bringup.soak import page_faults
from cards_bringup.soak.judge import Seen, judge_topics, missing_rows
from cards_bringup.soak.observer import read_seen
from cards_bringup.soak.plan import Episode, Fault, Plan
from cards_bringup.soak.processes import (
    Life,
    Processes,
    free_port,
    listening,
    python,
)
from cards_bringup.soak.records import SkippedError, System
from cards_bringup.soak.small_disk import SmallDisk
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.formats.locate import find_model
from cards_core.loop.run_log import ROWS_PER_WRITE, SIMULATOR_LOG, recover
from cards_core.typing import Array
from cards_ros.topics import COMMAND_QOS, MODEL_QOS

START_TIME = 300.0
"""In which the first commands must come, [s]: the first time the model is compiled."""

RECOVERY_TIME = 240.0
"""In which the robot must be commanded again after a fault is over, [s] of a busy machine."""

PUBLISH_RATE = 250.0
"""Of the states, [Hz]: so that observing costs little."""

DT = 1e-3
TIMEOUT = 0.1
"""Parameters ``dt`` and ``command_timeout`` of the simulator, [s]."""

AT_LEAST = 0.5
"""A controller that is away so long must have been noticed, [s]."""

GIANT_COST = 11.0 * (MODEL_QOS.depth + COMMAND_QOS.depth + 4)
"""Of giant messages, once, [MB]: a reader keeps room for as many as its history holds, 10 MB each
with what belongs to them; four are under way or being read."""

FORTH = 10
"""Commands that show that the controller is back."""


class RosSystem(System):
    """Simulator, controller and, as the system ``page``, the browser view."""

    def __init__(self, plan: Plan, episode: Episode, folder: Path, mark: str) -> None:
        super().__init__(plan, episode, folder, mark)
        robot = load(plan.robot)
        self.muscles = [muscle.name for muscle in robot.muscles]
        self.low: Array = np.array([muscle.tension_min for muscle in robot.muscles])
        self.high: Array = np.array([muscle.tension_max for muscle in robot.muscles])
        self.token = secrets.token_urlsafe(24)
        self.port = 0
        self._domain: RosDomain | None = None
        self._disk: SmallDisk | None = None
        self._log_lives: list[tuple[Life, Path | None, bool]] = []
        self._full_at: list[tuple[float, float]] = []  # wall, stamp
        self._nodes: NodePlan
        self._observer: Life
        self._model = Path()

    # Start ------------------------------------------------------------------------------------

    @property
    def logs(self) -> Path:
        """Folder of the nodes' logs."""
        return self.folder / "logs"

    def arguments(self) -> dict[str, str]:
        """Return launch arguments."""
        page = "true" if self.episode.system == "page" else "false"
        return {"simulator": "mujoco", "mode": "realtime", "rviz": "false", "view": page}

    def parameters(self, role: str) -> dict[str, Any]:
        """Return parameters of the node of a role beyond those of the robot's file."""
        model = {"model": str(self._model)}
        if role == "host":
            return {
                **model,
                "log_dir": str(self.logs),
                "publish_rate": PUBLISH_RATE,
                "dt": DT,
                "command_timeout": TIMEOUT,
            }
        if role == "controller":
            return {**model, "log_dir": str(self.logs), "repeat_reference": True}
        return {**model, "port": self.port}

    def start(self) -> None:
        """Start all nodes; wait for the first commands."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._model = self._copy_of_the_model()
        self._domain = RosDomain()
        self.port = free_port()
        environment = {**self._domain.environment, "CARDS_TOKEN": self.token}
        self.processes = Processes(self.folder / "output", environment, self.mark)
        if any(fault.kind == "disk_full" for fault in self.episode.faults):
            self._disk = SmallDisk(self.logs)
        self.logs.mkdir(exist_ok=True)
        self.before_nodes()
        self._nodes = make_plan(self.arguments(), self.plan.robot)
        given = {**self.stranger(), "out": str(self.folder / "seen.npz")}
        self._observer = self.processes.start(
            "observer", python("cards_bringup.soak.observer", json.dumps(given))
        )
        self.until(lambda: bool(self.heard()), "the observer", START_TIME)
        for name in self.names():
            self.start_node(name)
        self.first_commands()

    def first_commands(self) -> None:
        """Wait for them. Raises `CardsError` if none come."""
        self.until(self.commanded, "the first commands", START_TIME)

    def before_nodes(self) -> None:
        """Start what nodes need."""

    def names(self) -> list[str]:
        """Return the nodes in the order in which they are started: `TARGETS` of the system."""
        names = ["controller", "simulator"]
        return [*names, "view"] if self.episode.system == "page" else names

    def stranger(self) -> dict[str, Any]:
        """Return what observers and intruders have to know."""
        return {
            "muscles": self.muscles,
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "duration": 0.0,
            "seed": 0,
            "host": "simulator",
        }

    def _copy_of_the_model(self) -> Path:
        """Copy the robot's folder, so that its files can change under way."""
        source = Path(find_model(self.plan.robot))
        place = self.folder / "model" / source.parent.name
        shutil.copytree(source.parent, place, dirs_exist_ok=True)
        return place / source.name

    def spec(self, name: str) -> NodeSpec:
        """Return the node of a name in `TARGETS`."""
        role = {"controller": "controller", "view": "view"}.get(name, "host")
        return next(node for node in self._nodes.nodes if node.role == role)

    def start_node(self, name: str) -> Life:
        """Start a node."""
        return self.processes.start(name, self.command(name))

    def command(self, name: str, **more: Any) -> list[str]:
        """Return the command line of a node, with parameters beyond the usual ones."""
        spec = self.spec(name)
        given = {**self._nodes.parameters(spec), **self.parameters(spec.role), **more}
        return spec.command(self._nodes.parameter_file, given)

    # What is heard ----------------------------------------------------------------------------

    def heard(self) -> dict[str, Any]:
        """Return what the observer said last: numbers of states and commands, newest stamps."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            with self._observer.log.open("rb") as file:
                file.seek(max(0, self._observer.log.stat().st_size - 400))
                lines = file.read().decode(errors="replace").splitlines()
            for line in reversed(lines):
                if line.startswith("{") and line.endswith("}"):
                    found: dict[str, Any] = json.loads(line)
                    return found
        return {}

    def commanded(self) -> bool:
        """Tell whether commands came."""
        return int(self.heard().get("commands", 0)) >= FORTH

    def until(self, condition: Callable[[], bool], what: str, patience: float) -> None:
        """Wait, watching.

        Args:
            condition: What is waited for.
            what: In words.
            patience: [s].

        Raises:
            CardsError: It does not come.
        """
        end = time.monotonic() + patience
        while not condition():
            self.watch()
            if time.monotonic() > end:
                tails = "; ".join(f"{x.name}: {x.tail}" for x in self.processes.lives)
                raise CardsError(f"{what} did not come in {patience:g} s; {tails}")
            time.sleep(0.1)

    def recover(self) -> None:
        """Wait until commands answer new states."""
        before = self.heard()

        def forth() -> bool:
            now = self.heard()
            return (
                now.get("commands", 0) >= before.get("commands", 0) + FORTH
                and now.get("states", 0) > before.get("states", 0)
                and abs(now.get("command_t", -9.0) - now.get("t", 9.0)) < 1.0
            )

        try:
            self.until(forth, "a command", RECOVERY_TIME)
            if self.episode.system == "page":
                self.until(lambda: listening(self.port), "the page", RECOVERY_TIME)
        except CardsError as error:
            self.violate("commanded again after a fault", str(error))

    # Faults -----------------------------------------------------------------------------------

    def apply(self, fault: Fault) -> str:
        """Make a fault and undo it; return what was seen."""
        return str(getattr(self, f"_{fault.kind}")(fault))

    def running(self, name: str) -> Life:
        """Return a running node. Raises `SkippedError`: it has ended."""
        life = self.processes.life(name)
        if life is None:
            raise SkippedError(f"{name} does not run")
        return life

    def _kill(self, fault: Fault) -> str:
        life = self.running(fault.target)
        self.processes.kill(life)
        self.harvest(life)
        self.sleep(fault.duration)
        self.start_node(fault.target)
        return ""

    def _stop(self, fault: Fault) -> str:
        self.processes.freeze(self.running(fault.target), fault.duration)
        return ""

    def _act(self, fault: Fault) -> str:
        """Let an intruder act."""
        given = {**self.stranger(), "duration": fault.duration, "seed": fault.seed}
        words = python("cards_bringup.soak.intruder", fault.kind, json.dumps(given))
        return self.finished("intruder", words, fault.duration + 60.0)

    _flood = _not_finite = _giant = _foreign_types = _clock_step = _act

    def finished(
        self, name: str, words: Sequence[str], patience: float, codes: Sequence[int] = (0,)
    ) -> str:
        """Run a process to its end; return the last line that it said.

        Args:
            name: What it is called.
            words: Program and arguments.
            patience: In which it must end, [s].
            codes: Right exit codes.
        """
        life = self.processes.start(name, words)
        life.expected = tuple(codes)
        end = time.monotonic() + patience
        while life.process.poll() is None:
            self.watch()
            if time.monotonic() > end:
                life.expected = (-9,)
                self.processes.kill(life)
                self.violate("exit codes", f"{name} did not end in {patience:.0f} s")
            time.sleep(0.1)
        self.watch()
        lines = life.log.read_text(errors="replace").splitlines()
        return lines[-1][:300] if lines else ""

    def _disk_full(self, fault: Fault) -> str:
        if self._disk is None or not self._disk.mounted:
            raise SkippedError(self._disk.problem if self._disk else "no small disk")
        stamp = float(self.heard().get("t", 0.0))
        self._full_at.append((time.monotonic(), stamp))
        size = self._disk.fill()
        self.sleep(fault.duration)
        self._disk.free()
        return f"{size / 1e6:.0f} MB filled it"

    def _read_only(self, fault: Fault) -> str:
        if os.geteuid() == 0:
            folder = Path("/proc/soak")  # root may write every folder that anybody may
        else:
            folder = self.folder / "read_only"
            folder.mkdir(exist_ok=True)
            folder.chmod(0o555)
        words = [*self.command("simulator", log_dir=str(folder)), "-r", "__ns:=/read_only"]
        words = [word.replace("simulator:log_dir", "log_dir") for word in words]
        return self.finished("read_only", words, 60.0, (2,))

    def _model_changed(self, fault: Fault) -> str:
        life = self.running("controller")
        before = self._model.read_text(encoding="utf-8")
        changed = re.sub(
            r"<mass>([^<]+)</mass>", lambda m: f"<mass>{float(m[1]) * 1.1:.6g}</mass>", before
        )
        if changed == before:
            raise SkippedError("the model has no mass in its file")
        self._model.write_text(changed, encoding="utf-8")
        try:
            self.sleep(fault.duration)  # who runs has its model
            self.processes.end(life)
            other = self.start_node("controller")
            self.until(
                lambda: b"another model" in other.log.read_bytes(), "a refusal", RECOVERY_TIME
            )
            count = self.heard().get("commands", 0)
            self.sleep(1.0)
            sent = self.heard().get("commands", 0) - count
            self.processes.end(other)
        except CardsError as error:
            self.violate("only the host's model", str(error))
            return ""
        finally:
            self._model.write_text(before, encoding="utf-8")
            last = self.processes.life("controller")
            if last is not None:
                self.processes.end(last)
            self.start_node("controller")
        if sent:
            self.violate(
                "only the host's model",
                f"a controller with another model sent {sent} commands (expected: 0)",
            )
        return "a controller with the changed model sent no commands"

    def _second_controller(self, fault: Fault) -> str:
        name = self.spec("controller").name
        folder = self.folder / "second"
        folder.mkdir(exist_ok=True)
        words = self.command("controller", log_dir=str(folder))
        words = [word.replace(f"__node:={name}", "__node:=second") for word in words]
        words = [re.sub(rf"^{name}:", "second:", word) for word in words]
        life = self.processes.start("second", words)
        end = time.monotonic() + 30.0
        while b"ready" not in life.log.read_bytes() and time.monotonic() < end:
            self.sleep(0.2)
        self.sleep(fault.duration)
        self.processes.end(life)
        return life.tail[-200:]

    def _page_reload(self, fault: Fault) -> str:
        self.running("view")
        if not listening(self.port):
            raise SkippedError("the page is not there yet")
        seen = page_faults.reload(self.port, self.token, fault.duration, fault.seed)
        if "200" not in seen:
            self.violate("the page answers", f"{seen} (expected: status 200)")
        return str(seen)

    def _foreign_page(self, fault: Fault) -> str:
        self.running("view")
        if not listening(self.port):
            raise SkippedError("the page is not there yet")
        seen, let_in = page_faults.intrude(self.port, self.token, fault.duration)
        for what in let_in:
            self.violate("nobody is let in", f"{what} (expected: 403)")
        return str(seen)

    # End --------------------------------------------------------------------------------------

    def harvest(self, life: Life) -> None:
        """Take the log of a node that ended out of the way of the next one."""
        if life.name != "simulator":
            return
        path = None
        closed = life.process.returncode == 0
        try:
            recover(self.logs)
        except OSError as error:
            self.violate("no lost rows", f"the log of {life.name} cannot be recovered: {error}")
        made = self.logs / SIMULATOR_LOG
        if made.exists():
            path = self.folder / f"simulator_{len(self._log_lives) + 1}.npz"
            shutil.move(made, path)
        self._log_lives.append((life, path, closed))

    def finish(self) -> None:
        """End all nodes in order, judge everything."""
        for name in ("view", "controller", "simulator", "hardware"):
            life = self.processes.life(name)
            if life is not None:
                self.processes.end(life)
                self.harvest(life)
        self.processes.end(self._observer)
        self.judge()
        if self.port and listening(self.port):
            self.violate("no open ports", f"port {self.port} is still open")
        self.account()

    def judge(self) -> None:
        """Judge what the observer saw."""
        seen = read_seen(self.folder / "seen.npz")
        found = judge_topics(seen, self.low, self.high, timeout=TIMEOUT, period=1.0 / PUBLISH_RATE)
        self.violations += found.violations
        self.assign(found.releases)
        self._check_releases(found.at_rest)
        self._check_logs(seen)
        self.facts.update(
            states=len(seen.state_stamp),
            commands=len(seen.command_stamp),
            refusable=int((~seen.command_valid).sum()),
            releases=len(found.releases),
            lives=len(seen.lives()),
        )

    def _check_releases(self, at_rest: Array) -> None:
        """Check that muscles were let go while there was no controller.

        How long after the last command is not known, `FaultRecord.to_safe` then, where the next
        controller's first commands may have been missed.
        """
        for record in self.records:
            fault = record.fault
            silent = fault.kind in ("kill", "stop") and fault.target == "controller"
            if not silent or fault.duration <= AT_LEAST or record.to_safe is not None:
                continue
            end = record.end + (record.recovered or 0.0)
            if not np.any((at_rest >= record.begin) & (at_rest <= end)):
                self.violate(
                    "safe state",
                    f"{fault.kind} of the controller for {fault.duration:.2f} s: muscles were "
                    "never seen at their minimum",
                )

    def _check_logs(self, seen: Seen) -> None:
        for life, path, closed in self._log_lives:
            end = life.end or np.inf
            mine = (seen.state_wall >= life.begin) & (seen.state_wall <= end + 1.0)
            if not mine.any():
                continue
            until = float(seen.state_stamp[mine][-1])
            block = 1 if closed else ROWS_PER_WRITE
            full = [stamp for wall, stamp in self._full_at if life.begin <= wall <= end]
            if full:
                until, block = min(until, full[0]), ROWS_PER_WRITE
            if path is None:
                if round(until / DT) > ROWS_PER_WRITE:
                    self.violate("no lost rows", f"no log of {until:.2f} s of the simulator")
                continue
            with np.load(path) as log:
                problem = missing_rows(log["time"], DT, until, block)
            if problem:
                self.violate("no lost rows", problem)

    def account(self) -> None:
        """Judge what is left of processes."""
        giant = any(record.fault.kind == "giant" for record in self.records)
        growth = self.plan.memory_growth + (GIANT_COST if giant else 0.0)
        self.violations += self.processes.after_the_end(growth)
        killed = any(life.process.returncode == -9 for life in self.processes.lives)
        left = self.processes.left_shared_memory()
        if left and not killed:
            self.violate("no shared memory left", ", ".join(left))
        for name in left:
            with contextlib.suppress(OSError):
                Path("/dev/shm", name).unlink()
        self.facts["shared memory left by killed nodes"] = len(left) if killed else 0
        peak: dict[str, float] = {}
        for life in self.processes.lives:
            if life.memory and life.name in ("simulator", "controller", "view", "hardware"):
                peak[life.name] = max(peak.get(life.name, 0.0), *(m for _, m in life.memory))
        self.facts["largest memory, MB"] = {name: round(value) for name, value in peak.items()}

    def abort(self) -> None:
        """End what still runs, at once."""
        if hasattr(self, "processes"):
            self.processes.stop()
        if self._disk is not None:
            self._disk.close()
        if self._domain is not None:
            self._domain.__exit__(None, None, None)
            self._domain = None
