"""A whole run in one process, ``./cards demo --no-ros``, and what may happen to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.soak.judge import missing_rows
from cards_bringup.soak.plan import Episode, Fault, Plan
from cards_bringup.soak.processes import Life, Processes, python
from cards_bringup.soak.records import SkippedError, System
from cards_bringup.soak.small_disk import SmallDisk
from cards_core.errors import CardsError
from cards_core.files import is_part
from cards_core.formats.locate import find_model
from cards_core.loop.run_log import SIMULATOR_LOG, recover

RUN_TIME = 180.0
"""In which a run must end, [s] of a busy machine."""

DURATION = 4.0
"""Of a run, [s] of the robot's time."""

BEGIN_TIME = 60.0
"""In which its first rows must be there, [s]."""


class ProcessSystem(System):
    """Runs in lockstep: what is not killed gives the same motion to the last bit."""

    def __init__(self, plan: Plan, episode: Episode, folder: Path, mark: str) -> None:
        super().__init__(plan, episode, folder, mark)
        self._disk: SmallDisk | None = None
        self._runs = 0
        self._right = ""
        self._model = Path()

    def start(self) -> None:
        """Make an undisturbed run, with which the others are compared."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.processes = Processes(self.folder / "output", {}, self.mark)
        source = Path(find_model(self.plan.robot))
        place = self.folder / "model" / source.parent.name
        shutil.copytree(source.parent, place, dirs_exist_ok=True)
        self._model = place / source.name
        life, out = self._begin(self.folder)
        code = self._wait(life)
        if code != 0:
            raise CardsError(f"./cards demo ended with code {code}: {life.tail}")
        self._right = self._summary(out)["trajectory_sha256"]

    def _begin(
        self, folder: Path, mode: str = "lockstep", duration: float = DURATION
    ) -> tuple[Life, Path]:
        self._runs += 1
        out = folder / f"run_{self._runs}"
        words = python("cards_bringup", "demo", str(self._model), "--no-ros", "--headless")
        words += ["--mode", mode, "--duration", f"{duration:g}", "--out", str(out)]
        life = self.processes.start("demo", words)
        life.expected = (0, 1, 2, 130, -9)  # judged by those who know which one
        return life, out

    def _wait(self, life: Life) -> int:
        end = time.monotonic() + RUN_TIME
        while life.process.poll() is None:
            self.watch()
            if time.monotonic() > end:
                self.violate("exit codes", f"a run did not end in {RUN_TIME:g} s: {life.tail}")
                self.processes.kill(life)
            time.sleep(0.05)
        life.end = life.end or time.monotonic()
        return int(life.process.returncode)

    def _moving(self, life: Life, out: Path) -> bool:
        """Wait until rows are written; False if the run has ended before."""
        end = time.monotonic() + BEGIN_TIME
        while time.monotonic() < end and life.process.poll() is None:
            files = list(out.glob(f".{SIMULATOR_LOG}.*.rows")) if out.exists() else []
            if files and files[0].stat().st_size > 20_000:
                return True
            time.sleep(0.01)
        return False

    @staticmethod
    def _summary(out: Path) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
        return found

    def apply(self, fault: Fault) -> str:
        """Make a fault and undo it; return what was seen."""
        return str(getattr(self, f"_{fault.kind}")(fault))

    def recover(self) -> None:
        """Do nothing: the next fault has a run of its own."""

    def _check(self, what: str, code: int, right: tuple[int, ...], life: Life) -> None:
        if code not in right:
            self.violate(
                "exit codes", f"{what}: code {code} (expected: {right}); output: {life.tail}"
            )

    def _same(self, what: str, out: Path) -> None:
        found = self._summary(out)["trajectory_sha256"]
        if found != self._right:
            self.violate("the same motion", f"{what}: {found} (expected: {self._right})")

    def _no_parts(self, what: str, out: Path) -> None:
        parts = [p.name for p in out.rglob("*") if is_part(p.name)] if out.exists() else []
        if parts:
            self.violate("files whole or not there", f"{what}: {', '.join(parts)}")

    def _kill(self, fault: Fault) -> str:
        life, out = self._begin(self.folder, "paced")
        if not self._moving(life, out):
            raise SkippedError("the run had ended")
        self.sleep(min(fault.duration, 2.0))
        self.processes.kill(life)
        size = sum(p.stat().st_size for p in out.glob(f".{SIMULATOR_LOG}.*.rows"))
        recover(out)
        with np.load(out / SIMULATOR_LOG) as log:
            times = log["time"]
            problem = missing_rows(times, float(times[1] - times[0]), 0.0, 1)
            row = sum(log[name].nbytes for name in log.files if len(log[name]) == len(times))
        if problem:
            self.violate("no lost rows", f"after a kill: {problem}")
        # what had been written is there, but for the header and a row that is not whole
        if row < size - 20_000:
            self.violate("no lost rows", f"{row} bytes of {size} that had been written")
        return f"{len(times)} rows recovered"

    def _stop(self, fault: Fault) -> str:
        life, out = self._begin(self.folder)
        self._moving(life, out)
        self.processes.freeze(life, fault.duration)
        code = self._wait(life)
        self._check("a run that was stopped for a time", code, (0,), life)
        if code == 0:
            self._same("a run that was stopped for a time", out)
        return ""

    def _interrupt(self, fault: Fault) -> str:
        life, out = self._begin(self.folder, "paced")
        moving = self._moving(life, out)
        self.sleep(0.2)
        life.process.send_signal(signal.SIGINT)
        code = self._wait(life)
        if moving and code != 0:  # 0: it had ended by itself
            self._check("Ctrl-C", code, (130,), life)
            if self._summary(out)["verdict"] != "stopped":
                self.violate("exit codes", f"verdict {self._summary(out)['verdict']}")
        self._no_parts("Ctrl-C", out)
        return f"code {code}"

    def _disk_full(self, fault: Fault) -> str:
        if self._disk is None:
            self._disk = SmallDisk(self.folder / "disk")
        if not self._disk.mounted:
            raise SkippedError(self._disk.problem)
        life, out = self._begin(self._disk.folder, "paced")
        self._moving(life, out)
        self._disk.fill()
        code = self._wait(life)
        self._disk.free()
        self._check("a full disk", code, (1, 2), life)
        self._no_parts("a full disk", out)
        if "Traceback" in life.log.read_text(errors="replace"):
            self.violate("exit codes", f"a traceback at a full disk: {life.tail}")
        for item in self._disk.folder.iterdir():
            shutil.rmtree(item, ignore_errors=True)
        return f"code {code}: {life.tail[-200:]}"

    def _read_only(self, fault: Fault) -> str:
        folder = Path("/proc/soak")
        if os.geteuid() != 0:
            folder = self.folder / "read_only"
            folder.mkdir(exist_ok=True)
            folder.chmod(0o555)
        life, _out = self._begin(folder)
        self._check("a folder that cannot be written", self._wait(life), (2,), life)
        return life.tail[-200:]

    def _model_changed(self, fault: Fault) -> str:
        """Break the model's file while it runs: who has read it goes on."""
        before = self._model.read_text(encoding="utf-8")
        life, out = self._begin(self.folder)
        moving = self._moving(life, out)
        try:
            self._model.write_text(
                re.sub(r"<mass>[^<]+</mass>", "<mass>-1</mass>", before), encoding="utf-8"
            )
            code = self._wait(life)
            if moving:
                self._check("a model that changed under way", code, (0,), life)
                if code == 0:
                    self._same("a model that changed under way", out)
            again, _out = self._begin(self.folder, duration=1.0)
            self._check("a model with a negative mass", self._wait(again), (2,), again)
        finally:
            self._model.write_text(before, encoding="utf-8")
        return f"code {code}"

    def finish(self) -> None:
        """Judge what processes leave."""
        self.violations += self.processes.after_the_end(self.plan.memory_growth)
        self.facts["runs"] = self._runs

    def abort(self) -> None:
        """End what still runs, at once."""
        if hasattr(self, "processes"):
            self.processes.stop()
        if self._disk is not None:
            self._disk.close()
