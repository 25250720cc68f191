"""Makes the runs of experiments in a folder, and keeps its report up to date.

    FOLDER/report.html, report.md, report.json
    FOLDER/000.A/RUN/            what the run left, and ``run.json`` when it is finished
    FOLDER/000.A/claims.csv      and other tables
    FOLDER/000.A/tracking.png    and other plots

A run is made again unless its ``run.json`` says that it was made with the same set-up: the same
data, robot and version of CARDS. Values, plots and verdicts are made again in any case. The report
is complete at any moment; what is interrupted or could not run is in it as such.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from cards_bringup.benchmarks.timing import machine
from cards_bringup.reproduce import report
from cards_bringup.reproduce.experiment import Experiment, FinishedRun, Outcome, Tell, judge
from cards_bringup.reproduce.report import PlotFile, Result, RunEntry
from cards_core import __version__
from cards_core.control.cpg.files import pattern_file
from cards_core.errors import CardsError, DescriptionError
from cards_core.files import inside, locked, making, replacing, write_atomically, writing_together
from cards_core.foreign_files import read_json
from cards_core.formats import load
from cards_core.loop.model_identity import identity_of
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.typing import Array
from cards_viz.plots.drawing import save

RUN_FILE = "run.json"
"""In the folder of a run: what it was made with, and its numbers; written last."""

ERROR_FILE = "error.txt"
"""In the folder of an experiment: the traceback of what kept it from running."""

LOCK_FILE = ".running"

Progress = Callable[[str], AbstractContextManager[Tell]]
"""Shows how a run proceeds: given its title, a context in which it is told the share done."""


@contextlib.contextmanager
def silent(title: str) -> Iterator[Tell]:
    """Show nothing."""
    yield lambda share: None


@dataclass
class Reproduction:
    """Experiments and the folder of their results.

    Attributes:
        folder: Where everything goes.
        experiments: What to run.
        progress: Shows how each run proceeds.
        say: Told in one line what happens.
        results: One for each experiment, in this order.
    """

    folder: Path
    experiments: Sequence[Experiment]
    progress: Progress = silent
    say: Callable[[str], None] = lambda text: None
    results: list[Result] = field(default_factory=list)

    def run(self) -> dict[str, Any]:
        """Run all experiments that are not finished in the folder; return ``report.json``.

        Raises:
            CardsError: Another process uses the folder.
            KeyboardInterrupt: After the report was written.
            OSError: The folder cannot be written.
        """
        refusal = (
            f"{self.folder} is in use by another ./cards reproduce (expected: a folder of its own)"
        )
        with making(self.folder), locked(self.folder / LOCK_FILE, refusal):
            self.results = [Result(one) for one in self.experiments]
            self._write()
            for result in self.results:
                result.state = "interrupted"  # until it has another end
                try:
                    self._experiment(result)
                finally:
                    self._write()
                self.say(report.line(result))
            return report.content(self.results)

    def _experiment(self, result: Result) -> None:
        one = result.experiment
        place = inside(self.folder, one.key)
        place.mkdir(exist_ok=True)
        (place / ERROR_FILE).unlink(missing_ok=True)
        try:
            if missing := one.missing():
                result.skip(missing)
                return
            finished = {}
            for name in one.runs:
                finished[name] = self._run(result, place, name)
            self._finish(result, place, one.evaluate(finished))
        except CardsError as error:
            result.fail(str(error))
        except Exception as error:  # of whatever package: the others can still run
            result.fail(f"{type(error).__name__}: {error} (see {one.key}/{ERROR_FILE})")
            write_atomically(place / ERROR_FILE, traceback.format_exc())

    def _run(self, result: Result, place: Path, name: str) -> FinishedRun:
        one = result.experiment
        setup = one.setup_of(name)
        mark = fingerprint(one.key, name, setup)
        folder = inside(place, name)
        entry = RunEntry(name, setup, f"{one.key}/{name}")
        result.runs.append(entry)
        if (old := _finished(folder, mark)) is not None:
            entry.state, entry.wall_time = "kept", old["wall_time_s"]
            entry.machine = old["machine"]
            return FinishedRun(name, setup, folder, old["numbers"])
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        title = one.key if len(one.runs) == 1 else f"{one.key} {name}"
        begin = time.perf_counter()
        with self.progress(title) as tell:
            numbers = dict(one.perform(setup, folder, tell))
        entry.wall_time = time.perf_counter() - begin
        entry.machine = machine()
        data = {
            "experiment": one.key,
            "run": name,
            "fingerprint": mark,
            "setup": setup,
            "numbers": numbers,
            "wall_time_s": entry.wall_time,
            "finished": datetime.now().isoformat(timespec="seconds"),
            "cards_version": __version__,
            "machine": entry.machine,
        }
        write_atomically(folder / RUN_FILE, json.dumps(data, indent=2) + "\n")
        entry.state = "made"
        return FinishedRun(name, setup, folder, numbers)

    def _finish(self, result: Result, place: Path, outcome: Outcome) -> None:
        """Judge the values, and write tables and plots."""
        one = result.experiment
        result.judgements = judge(one.claims, outcome.values)
        for name, columns in outcome.tables.items():
            _write_csv(inside(place, f"{name}.csv"), columns)
            result.tables.append(f"{one.key}/{name}.csv")
        _write_csv(place / "claims.csv", report.claim_columns(result.judgements))
        result.tables.append(f"{one.key}/claims.csv")
        for name, plot in outcome.plots.items():
            file = inside(place, f"{name}.png")
            with writing_together(file.parent) as work:
                save(plot.figure, work / file.name)
            result.plots.append(PlotFile(file, f"{one.key}/{name}.png", plot.caption))
        result.state = "done"

    def _write(self) -> None:
        text = json.dumps(report.content(self.results), indent=2, allow_nan=False)
        write_atomically(self.folder / report.JSON, text + "\n")
        write_atomically(self.folder / report.MARKDOWN, report.markdown(self.results))
        write_atomically(self.folder / report.HTML, report.html(self.results))


def asked_in(folder: Path) -> list[str]:
    """Return the keys of the experiments of a folder that is to be resumed.

    Raises:
        CardsError: The folder has no report of experiments.
    """
    file = folder / report.JSON
    expected = "the report of an earlier ./cards reproduce"
    try:
        return [str(one["key"]) for one in read_json(file, expected)["experiments"]]
    except DescriptionError as error:
        raise CardsError(f"--resume {folder}: {error}") from None
    except (KeyError, TypeError) as error:
        raise CardsError(
            f"--resume {folder}: {report.JSON} cannot be read: {type(error).__name__}: {error} "
            f"(expected: {expected})"
        ) from None


def fingerprint(key: str, run: str, setup: Mapping[str, Any]) -> str:
    """Return what changes whenever a run has to be made again.

    Args:
        key: Of the experiment.
        run: Name of the run.
        setup: Its set-up; of its ``robot`` and its robot of ``rods`` the descriptions count and
            of its ``pattern`` the file, not only the name.

    Raises:
        CardsError: The robot cannot be read, or the set-up is no data for JSON.
    """
    data: dict[str, Any] = {"key": key, "run": run, "setup": setup, "version": __version__}
    if "robot" in setup:
        robot = load(setup["robot"])
        # limits of free joints are infinite, which JSON has no number for
        data["robot"] = json.dumps(asdict(identity_of(robot)), sort_keys=True)
        if robot.source is not None:  # has parameters of actuators, too
            data["description"] = hashlib.sha256(Path(robot.source).read_bytes()).hexdigest()
    if "rods" in setup:
        rods = read_rod_robot(setup["rods"])
        files = [Path(file) for file in (rods.source, rods.rods_source) if file is not None]
        data["rods"] = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    if "pattern" in setup:
        content = pattern_file(setup["pattern"]).read_bytes()
        data["pattern"] = hashlib.sha256(content).hexdigest()
    try:
        text = json.dumps(data, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CardsError(f"set-up of {key}: {error} (expected: data for JSON)") from None
    return hashlib.sha256(text.encode()).hexdigest()


def _finished(folder: Path, mark: str) -> dict[str, Any] | None:
    """Return ``run.json`` of a run that need not be made again; None if it has to be."""
    try:
        found = read_json(folder / RUN_FILE)
    except CardsError:
        return None
    complete = isinstance(found, dict) and {"numbers", "wall_time_s", "machine"} <= found.keys()
    return found if complete and found.get("fingerprint") == mark else None


def _write_csv(path: Path, columns: Mapping[str, Array | Sequence[Any]]) -> None:
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
