"""One trial: a pattern in all runs of an experiment, in the embedded simulator.

What a trial gives depends on the experiment, its number's pattern and nothing else: it begins with
a world of its own, and its random numbers come from the seed and the number of the repetition.
All patterns meet the same disturbances and the same random terrains.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from cards_core.checks import listed
from cards_core.control import ControlModel, ControlStatus, make_controller
from cards_core.control.cpg.parameters import PatternParameters
from cards_core.errors import DescriptionError
from cards_core.foreign_files import typed
from cards_core.formats import load
from cards_core.muscles.command import CommandRefusedError
from cards_core.parameters.declaration import ParameterSet
from cards_core.spatial import placed
from cards_core.typing import Array
from cards_learning.experiment import CONTROL_PERIOD, WHOLE, Experiment, Run
from cards_learning.measures import NAMES, Work, measure, objective
from cards_sim.build import build_host
from cards_sim.errors import SimulationStoppedError
from cards_sim.host import SimulatorHost, state_row

LOOK_PERIOD = 0.1
"""How often the height is looked at, [s]."""

STATES = ("done", "left the heights", "diverged", "crashed")
"""What may become of a run; of a trial the last of its runs' states in this order."""


_COMBINE: dict[str, Callable[[list[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "worst": min,
}


@dataclass(frozen=True)
class RunResult:
    """What a run gave.

    Attributes:
        state: One of `STATES`.
        score: What it is worth.
        measures: By name, of what was done until it ended; NaN where it diverged.
        reason: Why it failed.
    """

    state: str
    score: float
    measures: dict[str, float]
    reason: str = ""


@dataclass(frozen=True)
class TrialResult:
    """What a trial gave.

    Attributes:
        number: From 0.
        values: Of the parameters, shape (d,).
        score: What it is worth.
        state: One of `STATES`.
        runs: One by one.
    """

    number: int
    values: tuple[float, ...]
    score: float
    state: str
    runs: tuple[RunResult, ...]

    def record(self) -> dict[str, Any]:
        """Return it as data of JSON, in which floats keep every bit."""
        return asdict(self)

    def same_as(self, other: TrialResult) -> bool:
        """Tell whether two results are the same to the last bit."""
        # a NaN is no other than another one here
        return repr(self.record()) == repr(other.record())

    @classmethod
    def of_record(cls, data: Any, experiment: Experiment, source: str) -> TrialResult:
        """Return what `record` gave; measures that an earlier version did not have are NaN.

        Args:
            data: What it gave.
            experiment: The experiment.
            source: Where it was kept, for messages.

        Raises:
            DescriptionError: It is no trial of this experiment.
        """
        expected = "a trial of this experiment"
        found = typed(data, cls, source, expected)
        sizes = (len(found.values), len(found.runs))
        states = {found.state, *(run.state for run in found.runs)}
        if (
            found.number < 0
            or sizes != (len(experiment.space.names), len(experiment.runs))
            or not states <= set(STATES)
        ):
            raise DescriptionError(
                f"trial {found.number} has {sizes[0]} values, {sizes[1]} runs and the states "
                f"{listed(sorted(states))}",
                source=source,
                expected=expected,
            )
        runs = (replace(run, measures=_unknown() | run.measures) for run in found.runs)
        return replace(found, runs=tuple(runs))


def failed_trial(
    experiment: Experiment, number: int, values: Array, state: str, reason: str
) -> TrialResult:
    """Return the result of a trial of which nothing is known but that it failed.

    Args:
        experiment: The experiment.
        number: Of the trial, from 0.
        values: Of the parameters, shape (d,).
        state: One of `STATES`.
        reason: Why it failed.
    """
    run = RunResult(state, experiment.failure_score, _unknown(), reason)
    runs = (run,) * len(experiment.runs)
    return TrialResult(number, tuple(values.tolist()), experiment.failure_score, state, runs)


def combined(
    experiment: Experiment, number: int, values: Array, runs: Sequence[RunResult]
) -> TrialResult:
    """Return the result of a trial from those of its runs.

    Args:
        experiment: The experiment, which says how scores are combined.
        number: Of the trial, from 0.
        values: Of the parameters, shape (d,).
        runs: Results of its runs.
    """
    score = float(_COMBINE[experiment.combine]([run.score for run in runs]))
    state = max((run.state for run in runs), key=STATES.index)
    return TrialResult(number, tuple(values.tolist()), score, state, tuple(runs))


class Laboratory:
    """Runs trials of an experiment; keeps what all of them share.

    Raises:
        CardsError: The robot cannot be loaded or simulated.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self._robot = load(experiment.robot)
        # the goal asks where links are; nothing of the dynamics is compiled for that
        self._model = ControlModel(self._robot, "numeric")
        links = self._robot.links
        self._masses = np.array([link.inertia.mass for link in links])
        self._centres = np.array([link.inertia.com for link in links])
        self._weights = self._masses / self._masses.sum()
        if experiment.reference != WHOLE:
            names = [link.name for link in links]
            self._weights = np.zeros(len(links))
            self._weights[names.index(experiment.reference)] = 1.0

    def trial(self, number: int, values: Array) -> TrialResult:
        """Run a trial.

        Args:
            number: Of the trial.
            values: Of the parameters, shape (d,).

        Raises:
            CardsError: The pattern does not fit the robot.
        """
        pattern = self.experiment.space.pattern(values)
        runs = [self._run(pattern, run) for run in self.experiment.runs]
        return combined(self.experiment, number, values, runs)

    def single_run(self, number: int, values: Array) -> TrialResult:
        """Return a trial of one run only, that of this number in `Experiment.runs`.

        Raises:
            CardsError: The pattern does not fit the robot.
        """
        experiment = self.experiment
        run = self._run(experiment.space.pattern(values), experiment.runs[number])
        return combined(experiment, number, values, [run])

    def _run(self, pattern: PatternParameters, run: Run) -> RunResult:
        experiment = self.experiment
        try:
            host = self._host(run)
            begin = self._place(host)
            work = Work(self._robot.muscles, host.simulator.muscles.state_names)
            nearest, failure = self._crawl(pattern, run, host, work)
        except (SimulationStoppedError, CommandRefusedError, _DivergedError) as error:
            return RunResult("diverged", experiment.failure_score, _unknown(), str(error))
        gravity = host.simulator.model.opt.gravity
        measures = measure(
            begin,
            self._place(host),
            duration=host.state.time,
            work=(work.ideal, work.motor),
            weight=float(self._masses.sum() * np.linalg.norm(gravity)),
            goal=None if run.goal is None else np.array(run.goal),
            nearest=nearest,
        )
        if not measures.finite:
            reason = "a measure is not finite"
            return RunResult("diverged", experiment.failure_score, _unknown(), reason)
        score = experiment.failure_score
        if not failure:
            score = objective(measures, experiment.objective)
        state = "left the heights" if failure else "done"
        return RunResult(state, score, asdict(measures), failure)

    def _crawl(
        self, pattern: PatternParameters, run: Run, host: SimulatorHost, work: Work
    ) -> tuple[float, str]:
        """Let the pattern lead the robot for the duration, and add up its work.

        Returns:
            Least planar distance from the goal, [m], infinite without one. Why it ended early;
            empty: it did not.

        Raises:
            SimulationStoppedError: The physics diverged.
            _DivergedError: The oscillators did.
        """
        experiment, simulator = self.experiment, host.simulator
        controller = make_controller(
            "cpg",
            self._model,
            pattern=pattern,
            muscles=experiment.muscles,
            goal=() if run.goal is None else run.goal,
        )
        steps = max(1, round(CONTROL_PERIOD / experiment.time_step))
        look = max(1, round(LOOK_PERIOD / CONTROL_PERIOD))
        ends = np.cumsum(simulator.row_parts)[:-1]
        rows = np.empty((steps + 1, simulator.row_size))
        rows[0] = state_row(host.state)
        nearest = math.inf
        for turn in range(max(1, round(experiment.duration / (steps * experiment.time_step)))):
            host.submit(controller.step(host.state))
            if controller.output.status is not ControlStatus.OK:
                raise _DivergedError(controller.reason)
            host.steps(steps, rows[1:])
            _, _, lengths, _, tensions, states = np.split(rows, ends, axis=1)
            work.add(lengths, tensions, states)
            rows[0] = rows[-1]
            if turn % look != look - 1:
                continue
            place = self._place(host)
            if run.goal is not None:
                nearest = min(nearest, math.hypot(*(place[:2] - run.goal)))
            low, high = experiment.height or (-math.inf, math.inf)
            if not low <= place[2] <= high:
                return nearest, f"z is {place[2]:.4g} m"
        return nearest, ""

    def _host(self, run: Run) -> SimulatorHost:
        """Return the robot at time zero on the terrain of a run."""
        experiment = self.experiment
        terrain, rng = experiment.draw(run)
        host = build_host(
            ParameterSet(
                {"terrain": terrain, "dt": experiment.time_step, "command_timeout": 0.2},
                "simulator",
            ),
            self._robot,
        )
        if experiment.perturbation:
            size = self._robot.tree.nv
            limit = experiment.perturbation
            host.simulator.begin_at(host.state.q, rng.uniform(-limit, limit, size))
            host.reset()
        return host

    def _place(self, host: SimulatorHost) -> Array:
        """Return where the reference is, shape (3,), [m]."""
        poses = host.simulator.link_poses()
        out: Array = self._weights @ placed(poses, self._centres)
        return out


class _DivergedError(Exception):
    """The oscillators diverged."""


def _unknown() -> dict[str, float]:
    return dict.fromkeys(NAMES, float("nan"))
