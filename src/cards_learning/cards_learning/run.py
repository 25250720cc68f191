"""A run from its first trial, or from where it was left, to its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cards_core.errors import CardsError
from cards_core.typing import Array
from cards_learning.experiment import Experiment
from cards_learning.folder import RunFolder, best_of
from cards_learning.search import Search
from cards_learning.trial import Laboratory, TrialResult
from cards_learning.workers import Dask, Processes, Task

Progress = Callable[[int, int, TrialResult], None]
"""Called with trials done, of how many, and the best so far."""


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
        folder: Where everything is.
        experiment: What was run.
        trials: All of them, in order.
        best: The best of them.
        made: How many were run this time, not read from the folder.
        crashes: How often a worker died this time.
    """

    folder: Path
    experiment: Experiment
    trials: tuple[TrialResult, ...]
    best: TrialResult
    made: int
    crashes: int

    @property
    def states(self) -> dict[str, int]:
        """How many trials came to which state."""
        found: dict[str, int] = {}
        for trial in self.trials:
            found[trial.state] = found.get(trial.state, 0) + 1
        return dict(sorted(found.items()))


def learn(
    experiment: Experiment,
    folder: Path,
    *,
    workers: int = 1,
    dask: str | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Run all trials that are not in the folder yet, and write the results.

    The results are the same to the last bit for any number of workers, and after any number of
    interruptions.

    Args:
        experiment: What to run.
        folder: New or empty, or with the same experiment where it is resumed.
        workers: Processes of this machine, or of a local Dask cluster.
        dask: Address of a Dask scheduler, or ``local``.
        resume: Go on in the folder; the number of trials may be another.
        progress: Told after every trial.

    Raises:
        CardsError: The folder does not fit, or a trial cannot be run. What was done is kept.
        KeyboardInterrupt: Likewise.
    """
    search = experiment.algorithm.search(
        experiment.space, experiment.seed, experiment.start_point()
    )
    store = RunFolder(folder)
    if not resume:
        store.create(experiment)
    elif store.experiment().identity != experiment.identity:
        raise CardsError(
            f"{folder} holds another experiment (expected: the same, but for the number of trials)"
        )
    with store.locked():
        known = store.trials(experiment)
        if known and max(known) >= experiment.trials:
            raise CardsError(
                f"{experiment.trials} trials, of which {folder} has trial {max(known)} already "
                f"(expected: at least {max(known) + 1})"
            )
        begin = len(known)
        # processes start with the first trial that is missing, a cluster is asked at once
        elsewhere = dask if begin < experiment.trials else None
        made = (
            Dask(experiment, elsewhere, workers) if elsewhere else Processes(experiment, workers)
        )
        with made:
            store.change(experiment)  # not before the cluster has answered
            with store.journal(experiment) as journal:
                done = _run(
                    experiment, search, known, workers=made, add=journal.add, progress=progress
                )
        store.finish(experiment, done)
    return Outcome(
        folder, experiment, tuple(done), best_of(done), len(known) - begin, made.crashes
    )


def _run(
    experiment: Experiment,
    search: Search,
    known: dict[int, TrialResult],
    *,
    workers: Processes | Dask,
    add: Callable[[TrialResult], None],
    progress: Progress | None,
) -> list[TrialResult]:
    done: list[TrialResult] = []
    best = best_of(list(known.values())) if known else None
    while len(done) < experiment.trials:
        points = search.ask()
        numbers = range(len(done), min(len(done) + len(points), experiment.trials))
        values = [experiment.space.values(point) for point in points]
        missing: list[Task] = []
        for number, value in zip(numbers, values, strict=False):
            if number in known:
                _check_values(known[number], value)
            else:
                missing.append((number, value))
        for result in workers.run(missing) if missing else ():
            add(result)
            known[result.number] = result
            best = best_of([result] if best is None else [best, result])
            if progress is not None:
                progress(len(known), experiment.trials, best)
        generation = [known[number] for number in numbers]
        best = best_of(generation if best is None else [best, *generation])
        done += generation
        if len(generation) == len(points):
            search.tell(points, np.array([trial.score for trial in generation]))
    return done


def _check_values(known: TrialResult, values: Array) -> None:
    if known.values != tuple(values.tolist()):
        raise CardsError(
            f"trial {known.number} of the folder has other parameters than the search gives now "
            "(expected: the same to the last bit; another version of CARDS, cma or NumPy, or "
            "another kind of processor?)"
        )


def repeat(experiment: Experiment, number: int, known: TrialResult | None) -> TrialResult:
    """Run one trial again.

    Args:
        experiment: What it is of.
        number: Of the trial.
        known: What it gave, if it was run before.

    Raises:
        CardsError: Its parameters depend on trials that are not known.
    """
    values = _independent(experiment, number) if known is None else np.array(known.values)
    return Laboratory(experiment).trial(number, values)


def _independent(experiment: Experiment, number: int) -> Array:
    """Return the parameters of a trial that do not depend on other trials."""
    if number >= experiment.trials:
        raise CardsError(
            f"trial {number} of {experiment.trials} (expected: 0 to {experiment.trials - 1})"
        )
    search = experiment.algorithm.search(
        experiment.space, experiment.seed, experiment.start_point()
    )
    points = search.ask()
    while search.asked + len(points) <= number and not experiment.algorithm.adaptive:
        search.tell(points, np.zeros(len(points)))
        points = search.ask()
    place = number - search.asked
    if place >= len(points):
        raise CardsError(
            f"trial {number} depends on the trials before it (expected: the folder of a run that "
            f"has it, or a trial of the first generation, 0 to {len(points) - 1})"
        )
    return experiment.space.values(points[place])
