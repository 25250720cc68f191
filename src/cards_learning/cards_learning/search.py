"""Searches for the best point of a unit cube, generation by generation.

A search asks for the points of a generation and is told their scores, more is better. What it
asks for depends on the seed and on what it was told, on nothing else: a run that is repeated from
its records asks for the same points to the last bit.

Sources: Monte Carlo, Gaussian and evolution as in [Mirletz2016]_ (section 4.1, appendix A.1) and
[NTRT]_; CMA-ES [Hansen2016]_ by the library ``cma``.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cards_core.checks import check_choice
from cards_core.errors import ParameterError
from cards_core.parameters.declaration import parameter, parameters_of
from cards_core.typing import Array
from cards_learning.parameter_space import ParameterSpace


@dataclass(frozen=True)
class Settings(ABC):
    """Settings of an algorithm; its fields are the keys in an experiment.

    Raises:
        ParameterError: They contradict each other.
    """

    kind: ClassVar[str]
    summary: ClassVar[str]
    adaptive: ClassVar[bool] = True
    """Whether the points of a generation depend on the scores of those before."""

    @abstractmethod
    def search(self, space: ParameterSpace, seed: int, start: Array | None) -> Search:
        """Return a search at its begin.

        Args:
            space: Where to search.
            seed: Of all random numbers.
            start: A point to begin at, if there is one.
        """


class Search(ABC):
    """A search under way.

    Args:
        space: Where to search.
        seed: Of all random numbers.

    Attributes:
        generation: Number of generations that were told.
        asked: Number of points of these.
    """

    def __init__(self, space: ParameterSpace, seed: int) -> None:
        self.space = space
        self.seed = seed
        self.generation = self.asked = 0

    @abstractmethod
    def ask(self) -> Array:
        """Return the points of the next generation, shape (n, d)."""

    def tell(self, points: Array, scores: Array) -> None:
        """Take the scores of all points that were asked for.

        Args:
            points: As asked for, shape (n, d).
            scores: Shape (n,), finite; more is better.
        """
        self._learn(points, scores)
        self.generation += 1
        self.asked += len(points)

    @abstractmethod
    def _learn(self, points: Array, scores: Array) -> None:
        """Take the scores of a generation."""

    def random(self) -> np.random.Generator:
        """Return the random numbers of the next generation."""
        return np.random.default_rng([self.seed, self.generation])


# Monte Carlo -------------------------------------------------------------------------------------


BATCH = 1000
"""Points of a generation where generations mean nothing: many, so that no worker waits for one."""


@dataclass(frozen=True)
class MonteCarlo(Settings):
    """Random points, each from the seed and the number of its trial alone."""

    kind = "monte_carlo"
    summary = "random points, each independent of all others"
    adaptive = False

    def search(self, space: ParameterSpace, seed: int, start: Array | None) -> Search:
        """See `Settings`; the first point is the start."""
        return _MonteCarloSearch(space, seed, start)


class _MonteCarloSearch(Search):
    def __init__(self, space: ParameterSpace, seed: int, start: Array | None) -> None:
        super().__init__(space, seed)
        self._start = start

    def ask(self) -> Array:
        return np.array([self._point(self.asked + i) for i in range(BATCH)])

    def _point(self, number: int) -> Array:
        if number == 0 and self._start is not None:
            return self._start
        return self.space.random(np.random.default_rng([self.seed, number]))

    def _learn(self, points: Array, scores: Array) -> None:
        pass


# Gaussian ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gaussian(Settings):
    """Steps from the best point so far: x = x_best + sigma N(0, 1), within the cube."""

    kind = "gaussian"
    summary = "normally distributed steps from the best point so far"

    deviation: float = parameter(0.005, "sigma, as a share of each range", above=0.0, upper=1.0)
    population: int = parameter(10, "points of a generation", lower=1)
    initial: int = parameter(50, "random points at first, without a start", lower=1)

    def search(self, space: ParameterSpace, seed: int, start: Array | None) -> Search:
        """See `Settings`."""
        return _GaussianSearch(space, seed, start, self)


class _GaussianSearch(Search):
    def __init__(
        self, space: ParameterSpace, seed: int, start: Array | None, settings: Gaussian
    ) -> None:
        super().__init__(space, seed)
        self._settings = settings
        self._best = start
        self._score = -math.inf

    def ask(self) -> Array:
        rng, s = self.random(), self._settings
        if self._best is None:
            return np.array([self.space.random(rng) for _ in range(s.initial)])
        steps = rng.normal(0.0, s.deviation, (s.population, self._best.size))
        if self.generation == 0:
            steps[0] = 0.0  # the start itself
        out: Array = np.clip(self._best + steps, 0.0, 1.0)
        return out

    def _learn(self, points: Array, scores: Array) -> None:
        best = int(np.argmax(scores))
        if scores[best] > self._score:
            self._best, self._score = points[best].copy(), float(scores[best])


# Evolution ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evolution(Settings):
    """Elites stay, the best are mutated, others have children by one-point crossover.

    The defaults are those of the last step of [Mirletz2016]_ (appendix A.1).
    """

    kind = "evolution"
    summary = "elites, mutants of the best, children by one-point crossover"

    population: int = parameter(50, "elites, mutants and children together", lower=3)
    mutants: int = parameter(15, "mutants of a generation, of as many of the best", lower=0)
    children: int = parameter(10, "children of a generation", lower=0)
    mutation_chance: float = parameter(0.5, "of every value of a mutant", lower=0.0, upper=1.0)
    deviation: float = parameter(
        0.01, "standard deviation of a mutation, as a share of the range", lower=0.0, upper=1.0
    )
    child_mutation_chance: float = parameter(
        0.5, "that a child is mutated as well", lower=0.0, upper=1.0
    )
    defects: bool = parameter(
        False, "reproduce three defects of the toolkit, see docs/learning.md"
    )

    def __post_init__(self) -> None:
        new, elites = self.mutants + self.children, self.population - self.mutants - self.children
        if new < 1 or elites < 2 or elites < 1 + (self.mutants > 0):
            raise ParameterError(
                f"population {self.population} with {self.mutants} mutants and {self.children} "
                "children (expected: at least one of these, and room for two elites)"
            )

    def search(self, space: ParameterSpace, seed: int, start: Array | None) -> Search:
        """See `Settings`; the first generation is the start with its mutants, or random."""
        return _EvolutionSearch(space, seed, start, self)


class _EvolutionSearch(Search):
    def __init__(
        self, space: ParameterSpace, seed: int, start: Array | None, settings: Evolution
    ) -> None:
        super().__init__(space, seed)
        self._settings = settings
        self._start = start
        self._points = np.zeros((0, len(space.genes)))
        self._scores = np.zeros(0)
        self._replaced = np.array([gene.replaced for gene in space.genes], dtype=bool)
        first = np.array([gene.first for gene in space.genes]).reshape(-1, 2)
        self._first = (first - space.low[:, None]) / space.span[:, None]

    def ask(self) -> Array:
        rng, s = self.random(), self._settings
        if not len(self._points):
            if self._start is None:
                return np.array([self.space.random(rng) for _ in range(s.population)])
            others = [self._mutated(self._start, rng) for _ in range(s.population - 1)]
            return np.array([self._start, *others])
        mutants = [
            self._mutated(self._points[i % len(self._points)], rng) for i in range(s.mutants)
        ]
        children = [self._child(rng) for _ in range(s.children)]
        return np.array([*mutants, *children])

    def _learn(self, points: Array, scores: Array) -> None:
        s = self._settings
        # the best first; of equals the older one
        everything = np.concatenate((self._scores, scores))
        order = np.argsort(-everything, kind="stable")
        kept = order[: s.population - s.mutants - s.children]
        self._points = np.concatenate((self._points, points))[kept]
        self._scores = everything[kept]

    def _mutated(self, point: Array, rng: np.random.Generator, *, child: bool = False) -> Array:
        """Return a point with some values changed."""
        s = self._settings
        drawn, steps = rng.random(point.size), rng.normal(0.0, s.deviation, point.size)
        fresh = rng.uniform(self._first[:, 0], self._first[:, 1])
        hit = drawn > s.mutation_chance if s.defects else drawn < s.mutation_chance
        out = np.where(hit, point + steps, point)
        if child and s.defects:
            out = np.where(hit & self._replaced, fresh, out)
        clipped: Array = np.clip(out, 0.0, 1.0)
        return clipped

    def _child(self, rng: np.random.Generator) -> Array:
        s = self._settings
        mother = self._parent(rng)
        father = self._parent(rng)
        cut = int(rng.integers(0, mother.size + 1))
        child = np.concatenate((mother[:cut], father[cut:]))
        drawn = rng.random()
        mutate = drawn > s.child_mutation_chance if s.defects else drawn < s.child_mutation_chance
        return self._mutated(child, rng, child=True) if mutate else child

    def _parent(self, rng: np.random.Generator) -> Array:
        """Return a point of the elites by roulette on the score above the worst."""
        above = self._scores - self._scores.min()
        total = float(above.sum())
        drawn = rng.random() * total
        if total <= 0.0:
            return self._points[int(rng.integers(len(self._points)))]
        sums = np.cumsum(above)
        # compared the wrong way round, it stops at the first member whose sum is below the draw
        found = np.flatnonzero(sums < drawn if self._settings.defects else sums > drawn)
        return self._points[int(found[0]) if found.size else 0]


# CMA-ES ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cma(Settings):
    """Covariance matrix adaptation evolution strategy, by the library ``cma``."""

    kind = "cma"
    summary = "covariance matrix adaptation evolution strategy"

    deviation: float = parameter(0.2, "sigma at first, as a share of the ranges", above=0.0)
    population: int | None = parameter(
        None, "points of a generation; without it 4 + floor(3 ln d) for d values", lower=2
    )
    diagonal: bool = parameter(False, "variances only: less to learn where there are many values")

    def search(self, space: ParameterSpace, seed: int, start: Array | None) -> Search:
        """See `Settings`; without a start it begins in the middle of all first ranges.

        Raises:
            ParameterError: The library is not installed, or there is one value only.
        """
        return _CmaSearch(space, seed, start, self)


class _CmaSearch(Search):
    def __init__(
        self, space: ParameterSpace, seed: int, start: Array | None, settings: Cma
    ) -> None:
        super().__init__(space, seed)
        size = len(space.genes)
        if size < 2:
            raise ParameterError(
                f"algorithm cma with {size} value to learn (expected: at least two)"
            )
        try:
            import cma
        except ImportError as error:
            raise ParameterError(
                f"algorithm cma needs the Python package cma: {error} (expected: ./cards setup, "
                "or pip install cma)"
            ) from None
        if start is None:
            first = np.array([gene.first for gene in space.genes])
            start = (first.mean(axis=1) - space.low) / space.span
        options: dict[str, Any] = {
            "bounds": [0.0, 1.0],
            "seed": math.nan,  # NumPy's own generator is left alone
            "randn": self._normal,
            "verbose": -9,
            "verb_log": 0,
            "CMA_diagonal": settings.diagonal,
        }
        if settings.population is not None:
            options["popsize"] = settings.population
        self._rng = np.random.default_rng([seed, 0])
        # the start is moved inside, the library wants no point on the bound
        self._strategy = cma.CMAEvolutionStrategy(
            np.clip(start, 1e-3, 1.0 - 1e-3).tolist(), settings.deviation, options
        )

    def _normal(self, *shape: int) -> Array:
        return self._rng.standard_normal(shape)

    def ask(self) -> Array:
        self._rng = self.random()
        return np.array(self._strategy.ask())

    def _learn(self, points: Array, scores: Array) -> None:
        self._strategy.tell(list(points), (-scores).tolist())


ALGORITHMS: dict[str, type[Settings]] = {
    kind.kind: kind for kind in (Evolution, MonteCarlo, Gaussian, Cma)
}
"""By the names that experiments use."""


def algorithm(kind: str, **values: Any) -> Settings:
    """Return an algorithm with some settings.

    Raises:
        UnknownNameError: No such algorithm or setting.
        ParameterError: A value does not fit.
    """
    check_choice(kind, "algorithm", ALGORITHMS)
    checked = {name: setting(kind, name, value) for name, value in values.items()}
    return ALGORITHMS[kind](**checked)


def setting(kind: str, name: str, value: Any) -> Any:
    """Return the value of a setting of an algorithm, checked.

    Args:
        kind: Name of the algorithm.
        name: Name of the setting.
        value: Its value, as read from YAML.

    Raises:
        UnknownNameError: There is no such setting.
        ParameterError: The value does not fit.
    """
    specs = {spec.name: spec for spec in parameters_of(ALGORITHMS[kind])}
    check_choice(name, f"setting of algorithm {kind}", specs)
    # numbers of YAML are floats
    whole = specs[name].kind is int and isinstance(value, float) and value == int(value)
    return specs[name].check(int(value) if whole else value)


def settings_of(algorithm: Settings) -> dict[str, Any]:
    """Return kind and settings of an algorithm, as an experiment has them."""
    return {"kind": algorithm.kind, **dataclasses.asdict(algorithm)}
