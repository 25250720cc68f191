"""One pattern in many runs that differ by random numbers.

Single distances of robots that crawl are chaotic; what holds is the median of an ensemble.
"""

from __future__ import annotations

from collections.abc import Callable

from cards_core.errors import CardsError
from cards_learning.experiment import Experiment
from cards_learning.trial import RunResult, TrialResult, combined
from cards_learning.workers import Processes


def ensemble(
    experiment: Experiment, *, workers: int = 1, progress: Callable[[float], None] | None = None
) -> TrialResult:
    """Try the pattern that an experiment starts with, its runs shared by several processes.

    Args:
        experiment: With a ``start``; how many ``repetitions``, their ``perturbation`` and what
            they run on.
        workers: Processes.
        progress: Told the share that is done, from 0 to 1.

    Returns:
        What `Laboratory.trial` gives for the start, to the last bit, for any number of processes.

    Raises:
        CardsError: There is no pattern to start with, or it does not fit the robot.
    """
    point = experiment.start_point()
    if point is None:
        raise CardsError(
            f"{experiment.source} has no start (expected: controller.start, a pattern)"
        )
    values = experiment.space.values(point)
    count = len(experiment.runs)
    found: dict[int, RunResult] = {}
    with Processes(experiment, min(workers, count), single=True) as processes:
        for result in processes.run((number, values) for number in range(count)):
            found[result.number] = result.runs[0]
            if progress is not None:
                progress(len(found) / count)
    return combined(experiment, 0, values, [found[number] for number in range(count)])
