"""Learn a gait from Python, as ``./cards learn`` does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cards_core.checks import check_count
from cards_core.cores import available_cores
from cards_learning.folder import chosen_experiment
from cards_learning.run import Outcome
from cards_learning.run import learn as run_experiment
from cards_learning.trial import TrialResult

Progress = Callable[[int, int, TrialResult], None]


def learn(
    experiment: str | Path | None = None,
    *,
    out: str | Path,
    algorithm: str | None = None,
    trials: int | None = None,
    seed: int | None = None,
    workers: int | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Try patterns of the pattern generator in the simulator and keep the best.

    Trials run in processes of their own, which import the caller's file: call this below
    ``if __name__ == "__main__":``. Results are the same to the last bit for any number of workers
    and interruptions.

    Args:
        experiment: A robot with an experiment in config/learning, or the path of an experiment
            (YAML); None with ``resume``.
        out: Folder for experiment, trials (Parquet) and the best pattern; new or empty, or with
            ``resume`` that of an earlier run.
        algorithm: ``monte_carlo``, ``gaussian``, ``evolution`` or ``cma``, with its default
            settings; None: the experiment's.
        trials: How many; None: the experiment's.
        seed: Of all random numbers; None: the experiment's.
        workers: Processes; None: one per core.
        resume: Continue the run in ``out``.
        progress: Called after every trial with trials done, of how many, and the best so far.

    Returns:
        All trials and the best; ``out/best.yaml`` is its pattern.

    Raises:
        CardsError: The experiment has mistakes, the folder does not fit, or a trial cannot be
            run. Finished trials are kept.
    """
    counts = (("workers", workers, 1), ("trials", trials, 1), ("seed", seed, 0))
    for name, number, lowest in counts:
        if number is not None:
            check_count(number, name, at_least=lowest)
    folder = Path(out)
    return run_experiment(
        chosen_experiment(
            None if experiment is None else str(experiment),
            folder if resume else None,
            algorithm=algorithm,
            trials=trials,
            seed=seed,
        ),
        folder,
        workers=workers or available_cores(),
        resume=resume,
        progress=progress,
    )
