"""The folder of a run: its experiment, what is known so far, and the results.

    experiment.yaml   the experiment with all defaults, as it is run
    journal.jsonl     finished trials, a line each, in the order in which they came; until the end
    trials.parquet    all trials in order, a row each
    best.yaml         the best pattern, with where it comes from
    demo.yaml         parameters for ./cards demo that name it

The results depend on the experiment alone: not on workers, interruptions or the time of day.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import cards_core
from cards_core.checks import brief
from cards_core.control.cpg.parameters import write_parameters
from cards_core.errors import CardsError, DescriptionError
from cards_core.files import locked, writing_together
from cards_core.foreign_files import parse_json, read_bytes, read_text
from cards_core.shared_files import shared_folder
from cards_learning.experiment import Experiment, parse_experiment, read_experiment
from cards_learning.measures import NAMES
from cards_learning.trial import TrialResult

EXPERIMENT = "experiment.yaml"
JOURNAL = "journal.jsonl"
TRIALS = "trials.parquet"
BEST = "best.yaml"
DEMO = "demo.yaml"

LOCK = ".lock"

MOST_BYTES = 1_000_000_000
"""Largest file with trials, [bytes]."""


def chosen_experiment(
    what: str | None,
    folder: Path | None = None,
    *,
    algorithm: str | None = None,
    trials: int | None = None,
    seed: int | None = None,
) -> Experiment:
    """Return the experiment that is to be run, or gone on with.

    Args:
        what: A robot with an experiment in config/learning, or the path of an experiment (YAML);
            None with a folder.
        folder: Folder of the run to resume; its algorithm and seed cannot change. None: a new run.
        algorithm: Name of another algorithm, with its default settings.
        trials: Another number of trials.
        seed: Another seed.

    Raises:
        CardsError: Not one of experiment and folder, a folder with another algorithm or seed, or
            an experiment with mistakes.
    """
    if folder is None:
        if what is None:
            raise CardsError(
                "no experiment (expected: a robot, the file of an experiment, or a run to resume)"
            )
        return read_experiment(what).with_changes(kind=algorithm, trials=trials, seed=seed)
    if what is not None or algorithm is not None or seed is not None:
        raise CardsError(
            "a run is resumed with an experiment, an algorithm or a seed (expected: those of the "
            "folder; only the number of trials may change)"
        )
    return RunFolder(folder).experiment().with_changes(trials=trials)


class RunFolder:
    """A folder with a run.

    Args:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, experiment: Experiment) -> None:
        """Begin a run in a folder that is new or empty.

        Raises:
            CardsError: There is something in it.
            OSError: It cannot be written.
        """
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise CardsError(
                f"{self.path} is not an empty folder (expected: a new or empty one, or --resume)"
            )
        self.change(experiment)

    def change(self, experiment: Experiment) -> None:
        """Write the experiment, with another number of trials perhaps."""
        self.path.mkdir(parents=True, exist_ok=True)
        with writing_together(self.path) as work:
            text = f"# {experiment.source}\n{experiment.text()}"
            (work / EXPERIMENT).write_text(text, encoding="utf-8")

    def experiment(self) -> Experiment:
        """Read the experiment.

        Raises:
            CardsError: There is none, or it was damaged.
        """
        file = self.path / EXPERIMENT
        if not file.is_file():
            raise CardsError(
                f"{self.path} has no {EXPERIMENT} (expected: a folder that ./cards learn has made)"
            )
        text = read_text(file)
        source = text.partition("\n")[0].removeprefix("# ")
        made = parse_experiment(text, str(file))
        return replace(made, source=source)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out of the folder. Raises `CardsError` if one is in it."""
        refusal = f"another ./cards learn works in {self.path} (expected: one at a time)"
        with locked(self.path / LOCK, refusal):
            yield

    # Trials -------------------------------------------------------------------------------------

    def trials(self, experiment: Experiment) -> dict[int, TrialResult]:
        """Return the trials that are known, by number.

        A line that is no trial, cut short by a full disk or a loss of power or damaged, is passed
        over: its trial is run again.

        Raises:
            CardsError: They are of another experiment, or cannot be read.
        """
        known = self._table(experiment)
        file = self.path / JOURNAL
        if not file.exists():
            return known
        for line in read_bytes(file, most=MOST_BYTES).splitlines():
            try:
                record = parse_json(line, str(file))
                if isinstance(record, dict) and "identity" in record:
                    identity = record["identity"]
                else:
                    result = TrialResult.of_record(record, experiment, str(file))
                    known[result.number] = result
                    continue
            except DescriptionError:
                continue
            self._check(identity, experiment, file)
        return known

    def _check(self, identity: object, experiment: Experiment, file: Path) -> None:
        if identity != experiment.identity:
            raise CardsError(
                f"{file} has trials of another experiment or start (expected: those of "
                f"{self.path / EXPERIMENT}; use another folder)"
            )

    def _table(self, experiment: Experiment) -> dict[int, TrialResult]:
        file = self.path / TRIALS
        if not file.exists():
            return {}
        import pyarrow.parquet

        data = read_bytes(file, most=MOST_BYTES)
        try:
            # not of a Python file: a thread of Arrow that reads one as Python ends aborts it
            source = pyarrow.BufferReader(data)
            table = pyarrow.parquet.read_table(source, columns=["record"], use_threads=False)
            texts = table.column("record").to_pylist()
        except (OSError, ValueError, LookupError, pyarrow.ArrowException) as error:
            raise CardsError(f"{file}: {brief(error)} (expected: a Parquet file)") from None
        identity = (table.schema.metadata or {}).get(b"identity", b"")
        self._check(identity.decode("utf-8", "replace"), experiment, file)
        found = {}
        for text in texts:
            record = parse_json(text if isinstance(text, str) else "", str(file))
            result = TrialResult.of_record(record, experiment, str(file))
            found[result.number] = result
        return found

    @contextmanager
    def journal(self, experiment: Experiment) -> Iterator[Journal]:
        """Open the journal to add trials to it."""
        file = self.path / JOURNAL
        whole = not file.is_file() or file.read_bytes()[-1:] in (b"", b"\n")
        with file.open("a", encoding="utf-8") as stream:
            if not whole:
                stream.write("\n")
            stream.write(json.dumps({"identity": experiment.identity}) + "\n")
            yield Journal(stream)

    # Results ------------------------------------------------------------------------------------

    def finish(self, experiment: Experiment, trials: Sequence[TrialResult]) -> None:
        """Write the results; the journal is in them and goes.

        Args:
            experiment: Of the trials.
            trials: All of them, in order.
        """
        best = best_of(trials)
        with writing_together(self.path) as work:
            (work / TRIALS).write_bytes(parquet(experiment, trials))
            pattern = experiment.space.pattern(np.array(best.values))
            write_parameters(pattern, work / BEST)
            text = provenance(experiment, best) + (work / BEST).read_text(encoding="utf-8")
            (work / BEST).write_text(text, encoding="utf-8")
            demo = demo_parameters(experiment, (self.path / BEST).resolve())
            (work / DEMO).write_text(demo, encoding="utf-8")
        (self.path / JOURNAL).unlink(missing_ok=True)


class Journal:
    """Trials as they come, each on the disk before the next."""

    def __init__(self, stream: io.TextIOBase | Any) -> None:
        self._stream = stream

    def add(self, result: TrialResult) -> None:
        """Add a trial. Raises `OSError` where the disk is full."""
        self._stream.write(json.dumps(result.record()) + "\n")
        self._stream.flush()


def best_of(trials: Sequence[TrialResult]) -> TrialResult:
    """Return the best trial; of equals the first."""
    return max(trials, key=lambda trial: (trial.score, -trial.number))


def parquet(experiment: Experiment, trials: Sequence[TrialResult]) -> bytes:
    """Return trials as a Parquet file: number, score, state, measures, parameters.

    Measures are the means over the runs of a trial. The column ``record`` has a trial whole, with
    its runs, as JSON.
    """
    import pyarrow
    import pyarrow.parquet

    columns: dict[str, Any] = {
        "trial": pyarrow.array([trial.number for trial in trials], pyarrow.int64()),
        "score": pyarrow.array([trial.score for trial in trials], pyarrow.float64()),
        "state": pyarrow.array([trial.state for trial in trials], pyarrow.string()),
    }
    for name in NAMES:
        means = [float(np.mean([run.measures[name] for run in trial.runs])) for trial in trials]
        columns[name] = pyarrow.array(means, pyarrow.float64())
    values = np.array([trial.values for trial in trials]).reshape(len(trials), -1)
    for column, name in enumerate(experiment.space.names):
        columns[f"parameter/{name}"] = pyarrow.array(values[:, column], pyarrow.float64())
    records = [json.dumps(trial.record()) for trial in trials]
    columns["record"] = pyarrow.array(records, pyarrow.string())
    metadata = {
        "experiment": experiment.text(),
        "source": experiment.source,
        "identity": experiment.identity,
        "cards_version": cards_core.__version__,
    }
    table = pyarrow.table(columns).replace_schema_metadata(metadata)
    stream = io.BytesIO()
    pyarrow.parquet.write_table(table, stream, compression="zstd")
    return stream.getvalue()


def provenance(experiment: Experiment, best: TrialResult) -> str:
    """Return where a pattern comes from, as comments of YAML."""
    first = best.runs[0].measures
    shown = ", ".join(f"{k} {v:.4g}" for k, v in first.items() if np.isfinite(v))
    lines = [
        f"learned by CARDS {cards_core.__version__} with {experiment.source}",
        f"robot: {experiment.robot}",
        f"algorithm: {experiment.algorithm.kind}, {experiment.trials} trials, "
        f"seed: {experiment.seed}",
        f"trial: {best.number}, score: {best.score!r} ({best.state})",
        f"first of {len(best.runs)} runs, {experiment.duration:g} s on "
        f"{experiment.draw(experiment.runs[0])[0]}: {shown}",
    ]
    return "".join(f"# {line}\n" for line in lines)


def demo_parameters(experiment: Experiment, pattern: Path) -> str:
    """Return a parameter file for ``./cards demo ROBOT --controller cpg --params-file``.

    It is that of the robot in ``config``, if there is one, with the pattern named in it.
    """
    file = shared_folder() / "config" / f"{experiment.robot}.yaml"
    data: dict[str, Any] = {}
    if "/" not in experiment.robot and file.is_file():
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    common: Mapping[str, Any] = {"ros__parameters": {"model": experiment.robot}}
    data.setdefault("/**", common)
    settings = data.setdefault("cpg", {}).setdefault("ros__parameters", {"backend": "numeric"})
    settings["file"] = str(pattern)
    if experiment.muscles != ("*",):
        settings["muscles"] = list(experiment.muscles)
    if experiment.goals:
        settings["goal"] = list(experiment.goals[0])
    head = f"# ./cards demo {experiment.robot} --controller cpg --params-file FILE\n"
    return head + yaml.safe_dump(data, sort_keys=False)
