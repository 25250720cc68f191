"""The search: from where the robot is, then from random places, until all goals are met.

From each start the sum of squares is minimised first. Where that leaves some moment arms beyond
their tolerances, what is beyond is minimised next, which spends the room within the others.

What does not depend on each other is searched for apart: the moment arms of one muscle are one
small problem, while torques and force closure bind together all muscles that take a tension. A
local minimum of one muscle is then left without giving up what was found for the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.analysis.muscle_fit.problem import FitProblem, surfaces_of
from cards_core.analysis.muscle_fit.result import FitResult, make_result
from cards_core.analysis.muscle_fit.solver import Iterate, minimise
from cards_core.analysis.muscle_fit.specification import (
    ArmGoal,
    FitSpecification,
    Goal,
    PathGoal,
)
from cards_core.analysis.muscle_fit.variables import FitVariables
from cards_core.checks import check_count
from cards_core.errors import CardsError
from cards_core.paths.layout import robot_hash
from cards_core.typing import Array

STARTS = 16
"""Default number of starts."""

ITERATIONS = 60
"""Default number of steps from each start."""

UNSEEN = 1e-9
"""Singular value of a Jacobian, relative to the largest, of a direction that changes nothing."""

STAGES = 2
"""Minimisations from each start: of squares, and of what is beyond the tolerances."""

SLACK = 0.95
"""Ratio of arms and lengths that costs nothing where least squares have not met all tolerances."""

NEAR = 0.3
"""Standard deviation of steps from the best, relative to the bounds."""

STATE_FORMAT = "muscle_fit_state/1"


@dataclass(frozen=True)
class FitProgress:
    """How far a fit is.

    Attributes:
        done: Steps so far; those that a start did not need count too.
        total: Steps of all starts.
        miss: Largest miss of the best so far, in tolerances: at most 1 where all goals are met.
    """

    done: int
    total: int
    miss: float


class MuscleFit:
    """A fit that can be stopped at any time and goes on from its state.

    Start 0 is the robot as it is; the others are drawn within the bounds and about the best so
    far, each from the seed and its own number. None is made once the goals are met. The result
    depends neither on interruptions nor on time.

    Args:
        specification: What may move and what is wanted.
        starts: How many starts at most.
        iterations: Most steps from each.
        seed: Of the random starts.

    Attributes:
        specification: As given.

    Raises:
        CardsError: A number is no whole number, or less than 1 (the seed: 0).
    """

    def __init__(
        self,
        specification: FitSpecification,
        *,
        starts: int = STARTS,
        iterations: int = ITERATIONS,
        seed: int = 0,
    ) -> None:
        check_count(starts, "starts")
        check_count(iterations, "iterations")
        check_count(seed, "seed", at_least=0)
        self.specification = specification
        self._settings = {"starts": starts, "iterations": iterations, "seed": seed}
        self._problem = FitProblem(specification)
        self._searches = [
            _Search(FitProblem(part, self._problem.motion), indices)
            for part, indices in independent_parts(specification)
        ]

    def run(self, progress: Callable[[FitProgress], None] | None = None) -> FitResult:
        """Search to the end and return the best that was found.

        Whatever stops it, Ctrl-C say, leaves the best so far: `result` and `state` have it, and
        the next call goes on.

        Args:
            progress: Called after every step.
        """
        starts, iterations, seed = self._settings.values()

        def told() -> None:
            if progress is not None:
                progress(self._progress())

        for search in self._searches:
            search.run(starts, iterations, seed, told)
        return self.result()

    def _progress(self) -> FitProgress:
        starts, iterations, _ = self._settings.values()
        done = sum(search.done(starts, iterations) for search in self._searches)
        miss = max(search.miss for search in self._searches)
        total = STAGES * starts * iterations * len(self._searches)
        return FitProgress(done, total, miss)

    def result(self) -> FitResult:
        """Return the best so far; before `run`, the robot as it is."""
        y = self.specification.variables.start.copy()
        for search in self._searches:
            y[search.indices] = search.best[2]
        starts = max((search.starts for search in self._searches), default=0)
        return make_result(self._problem, y, starts)

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs, as plain data."""
        return {
            "format": STATE_FORMAT,
            "robot": robot_hash(self.specification.robot.tree),
            **self._settings,
            "searches": [search.state() for search in self._searches],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state, with the starts, iterations and seed of then.

        Args:
            state: From `state` of a fit with the same specification.

        Raises:
            CardsError: It is of another robot or specification, or no such state.
        """
        if not isinstance(state, dict) or state.get("format") != STATE_FORMAT:
            raise _no_state(f"is not of the format {STATE_FORMAT}")
        if state.get("robot") != robot_hash(self.specification.robot.tree):
            raise CardsError(
                f"the state is of another robot than {self.specification.robot.name} as it is now "
                "(expected: the robot unchanged since the fit began, or a new fit)"
            )
        for name, least in (("starts", 1), ("iterations", 1), ("seed", 0)):
            value = state.get(name)
            if type(value) is not int or value < least:
                raise _no_state(f"has {name} {value!r}")
        parts = state.get("searches")
        if not isinstance(parts, list) or len(parts) != len(self._searches):
            raise _no_state("is of another specification")
        for search, part in zip(self._searches, parts, strict=True):
            search.restore(part)
        self._settings = {name: state[name] for name in self._settings}


def independent_parts(
    specification: FitSpecification,
) -> list[tuple[FitSpecification, npt.NDArray[np.intp]]]:
    """Return parts of a fit that have no variable in common, with the entries of y of each.

    Two muscles belong together where a torque or force closure asks for both, where a point of
    one is the image of one of the other, or where a radius is that of a surface of both. Goals
    that nothing can change, and variables that no goal sees, are in no part.
    """
    robot, variables = specification.robot, specification.variables
    group = list(range(len(robot.muscles)))

    def join(muscles: list[int]) -> None:
        for other in muscles[1:]:
            old, new = group[other], group[muscles[0]]
            group[:] = [new if g == old else g for g in group]

    takes = [i for i, muscle in enumerate(robot.muscles) if muscle.takes_tension]
    if any(not isinstance(goal, PathGoal) for goal in specification.goals):
        join(takes)
    for point in variables.points:
        if point.mirror is not None:
            join([point.at.muscle, point.mirror.muscle])
    wrapping = {
        radius.surface: [
            i for i, muscle in enumerate(robot.muscles) if radius.surface in surfaces_of(muscle)
        ]
        for radius in variables.radii
    }
    for muscles in wrapping.values():
        join(muscles)

    def group_of(goal: Goal) -> int:
        return group[goal.muscle if isinstance(goal, PathGoal) else takes[0]]

    out = []
    for number in dict.fromkeys(group_of(goal) for goal in specification.goals):
        points = [k for k, p in enumerate(variables.points) if group[p.at.muscle] == number]
        radii = [
            k
            for k, radius in enumerate(variables.radii)
            if any(group[i] == number for i in wrapping[radius.surface])
        ]
        if not points and not radii:
            continue
        part = replace(
            specification,
            variables=FitVariables(
                robot,
                tuple(variables.points[k] for k in points),
                tuple(variables.radii[k] for k in radii),
            ),
            goals=tuple(goal for goal in specification.goals if group_of(goal) == number),
        )
        entries = [3 * k + axis for k in points for axis in range(3)]
        entries += [3 * len(variables.points) + k for k in radii]
        out.append((part, np.array(entries, dtype=np.intp)))
    return out


class _Search:
    """The search of one part.

    Args:
        problem: Its goals.
        indices: Its entries of y of the whole.

    Attributes:
        best: Largest miss in tolerances, cost and y of the best so far.
        starts: Number of starts that were begun.
    """

    def __init__(self, problem: FitProblem, indices: npt.NDArray[np.intp]) -> None:
        self._problem, self.indices = problem, indices
        start = problem.specification.variables.start
        r = problem.residuals(start)
        self.best = problem.largest_miss(start), 0.5 * float(r @ r), start
        self.starts = 0
        self._here: Iterate | None = None  # where the present start is
        self._stage = 0
        self._ended = False

    @property
    def miss(self) -> float:
        """Largest miss of the best so far, in tolerances."""
        return self.best[0]

    def done(self, starts: int, iterations: int) -> int:
        """Return how many steps are done, those that are not needed any more among them."""
        if self._ended:
            return STAGES * starts * iterations
        if self._here is None:
            return STAGES * self.starts * iterations
        before = STAGES * (self.starts - 1) + self._stage
        return before * iterations + self._here.iteration

    def run(self, starts: int, iterations: int, seed: int, told: Callable[[], None]) -> None:
        """Search until the goals are met or all starts are made.

        Args:
            starts: How many.
            iterations: Most steps from each.
            seed: Of the random ones.
            told: Called after every step.
        """
        problem = self._problem

        def step(now: Iterate) -> None:
            self._here = now
            self._keep(now)
            told()

        while not self._ended:
            if self._here is None:
                begin = self._begin(self.starts, np.random.default_rng([seed, self.starts]))
                self.starts += 1
                self._stage = 0
                self._here = Iterate(begin, math.inf, 0)
            slack = SLACK if self._stage else 0.0
            minimise(
                problem.specification.variables,
                partial(problem.residuals, slack=slack),
                partial(problem.linearise, slack=slack),
                self._here,
                iterations=iterations,
                told=step,
            )
            if self._stage == 0 and self._may_gain(self._here.y):
                self._stage = 1
                self._here = Iterate(self._here.y, math.inf, 0)
                continue
            self._here = None
            self._ended = self.miss <= 1.0 or self.starts >= starts
            told()

    def _may_gain(self, y: Array) -> bool:
        """Whether moment arms or lengths are beyond their tolerances."""
        goals = self._problem.specification.goals
        paths = any(isinstance(goal, PathGoal) for goal in goals)
        return paths and self._problem.largest_miss(y) > 1.0

    def _begin(self, number: int, rng: np.random.Generator) -> Array:
        """Return where a start begins.

        Moment arms often have twins: about a ball joint, a point nearer to the centre and the
        other one farther away in proportion give the same length but for the sum of their squared
        distances. They lie along the direction in which arms change least, so every second start
        goes there from the best so far; for torques and margins it goes anywhere near the best.
        """
        variables = self._problem.specification.variables
        if number == 0:
            return variables.start
        if number % 2:
            return variables.random(rng)
        best = self.best[2]
        if all(isinstance(goal, ArmGoal) for goal in self._problem.specification.goals):
            _, values, directions = np.linalg.svd(self._problem.linearise(best)[1])
            seen = int(np.count_nonzero(values > UNSEEN * values.max(initial=0.0)))
            step = directions[max(seen - 1, 0)] * rng.uniform(0.2, 2.0) * rng.choice([-1.0, 1.0])
        else:
            step = rng.normal(scale=NEAR, size=variables.size)
        return variables.nearest(best + step)

    def _keep(self, now: Iterate) -> None:
        """Keep what is better: what meets all goals before what does not, then the lower cost."""
        miss = self._problem.largest_miss(now.y)
        cost = now.cost
        if self._stage:
            r = self._problem.residuals(now.y)
            cost = 0.5 * float(r @ r)
        if (miss > 1.0, cost) < (self.miss > 1.0, self.best[1]):
            self.best = miss, cost, now.y.copy()

    def state(self) -> dict[str, Any]:
        """Return everything that `restore` needs, as plain data."""
        here = self._here
        return {
            "best": [self.best[0], self.best[1], self.best[2].tolist()],
            "starts": self.starts,
            "stage": self._stage,
            "ended": self._ended,
            "here": None
            if here is None
            else [here.y.tolist(), here.iteration, here.damping, here.idle],
        }

    def restore(self, state: Any) -> None:
        """Go on from a state. Raises `CardsError` for one that is none."""
        try:
            miss, cost, best = state["best"]
            y = np.array(best, dtype=float)
            here = None
            if state["here"] is not None:
                place, iteration, damping, idle = state["here"]
                here = Iterate(
                    np.array(place, dtype=float),
                    math.inf,
                    int(iteration),
                    float(damping),
                    int(idle),
                )
            self.starts, self._ended = int(state["starts"]), bool(state["ended"])
            self._stage = int(state["stage"])
            self.best = float(miss), float(cost), y
        except (TypeError, ValueError, KeyError):
            raise _no_state("has a part that is none") from None
        for one in (y, *([] if here is None else [here.y])):
            if one.shape != self.indices.shape or not np.isfinite(one).all():
                raise _no_state("is of another specification")
        self._here = here


def _no_state(problem: str) -> CardsError:
    return CardsError(f"the state of the fit {problem} (expected: one that a fit has saved)")
