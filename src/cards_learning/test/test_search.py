"""Searches: repeatable, within the cube, better than chance; the defects of the toolkit."""

import re
from pathlib import Path

import numpy as np
import pytest
from small_experiments import small

from cards_core.errors import ParameterError, UnknownNameError
from cards_core.parameters.declaration import parameters_of
from cards_learning.parameter_space import ParameterSpace
from cards_learning.search import ALGORITHMS, algorithm

SPACE = ParameterSpace(
    "open_loop",
    {"frequency": (0.0, 4.0), "amplitude": (0.0, 20.0), "coupling_phase": (-3.0, 3.0)},
    0.01,
    per_joint=2,
)
TARGET = np.linspace(0.2, 0.8, len(SPACE.genes))


def score(points):
    return -np.sum((points - TARGET) ** 2, axis=1)


def run(kind, generations, *, seed=1, start=None, space=SPACE, **settings):
    search = algorithm(kind, **settings).search(space, seed, start)
    found = []
    for _ in range(generations):
        points = search.ask()
        assert ((points >= 0.0) & (points <= 1.0)).all()
        found.append(points)
        search.tell(points, score(points))
    return found


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(kind):
    first = b"".join(points.tobytes() for points in run(kind, 5))
    np.random.seed(7)  # noqa: NPY002 - what others do with NumPy's generator does not matter
    assert first == b"".join(points.tobytes() for points in run(kind, 5))
    assert first != b"".join(points.tobytes() for points in run(kind, 5, seed=2))


@pytest.mark.parametrize("kind", ["evolution", "gaussian", "cma"])
def test_they_come_nearer_to_the_best_point_than_chance(kind):
    settings = {"evolution": {"deviation": 0.05}, "gaussian": {"deviation": 0.05}, "cma": {}}
    found = np.concatenate(run(kind, 60, **settings[kind]))
    random = np.concatenate(run("monte_carlo", 1))[: len(found)]
    assert score(found).max() > 0.25 * score(random).max()


def test_cma_finds_the_best_point():
    assert score(run("cma", 150)[-1]).max() > -1e-6


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_a_start_is_where_they_begin(kind):
    points = run(kind, 1, start=TARGET)[0]
    away = np.abs(points - TARGET).max(axis=1)
    if kind == "cma":
        assert np.linalg.norm(points.mean(axis=0) - TARGET) < 0.5
    else:
        assert away[0] == 0.0
        assert len(points) == 1 or away[1:].min() > 0.0


def test_trials_of_monte_carlo_are_independent():
    """The same trial whatever was before it, so that it can be run alone."""
    points = np.concatenate(run("monte_carlo", 2))
    alone = SPACE.random(np.random.default_rng([1, 1100]))
    assert points[1100].tobytes() == alone.tobytes()


def test_evolution_keeps_the_best_and_asks_for_new_ones_only():
    found = run("evolution", 4, population=10, mutants=3, children=2)
    assert [len(points) for points in found] == [10, 5, 5, 5]
    everything = np.concatenate(found)
    assert len(np.unique(everything, axis=0)) > 20


def test_mutation_chance_is_the_chance_of_a_mutation():
    def share(defects):
        start = np.full(len(SPACE.genes), 0.5)
        points = run(
            "evolution", 1, start=start, population=400, mutation_chance=0.1, defects=defects
        )[0]
        return float(np.mean(points[1:] != 0.5))

    assert share(False) == pytest.approx(0.1, abs=0.02)
    assert share(True) == pytest.approx(0.9, abs=0.02)  # the gate of the toolkit is inverted


def parents(defects):
    """Return how often each of three elites is chosen, of scores 0, 1 and 3."""
    settings = algorithm("evolution", population=5, mutants=1, children=1, defects=defects)
    search = settings.search(SPACE, 1, None)
    points = np.arange(3.0)[:, None] * np.full(len(SPACE.genes), 0.1)
    search._points, search._scores = points[::-1], np.array([3.0, 1.0, 0.0])
    rng = np.random.default_rng(0)
    drawn = [round(10.0 * search._parent(rng)[0]) for _ in range(4000)]
    return np.bincount(drawn, minlength=3) / 4000.0


def test_the_roulette_follows_the_score_above_the_worst():
    np.testing.assert_allclose(parents(False), [0.0, 0.25, 0.75], atol=0.03)


def test_the_roulette_of_the_toolkit_takes_the_first():
    assert parents(True)[2] == 1.0


def test_children_of_the_toolkit_lose_weights_to_the_output():
    space = small().space
    search = algorithm("evolution", defects=True, deviation=0.0).search(space, 1, None)
    start = np.full(len(space.genes), 0.5)
    changed = search._mutated(start, np.random.default_rng(0), child=True) != start
    output = np.array([name.startswith("feedback.output") for name in space.names])
    assert changed[output].any()
    assert not changed[~output].any()
    mended = algorithm("evolution", deviation=0.0).search(space, 1, None)
    np.testing.assert_array_equal(
        mended._mutated(start, np.random.default_rng(0), child=True), start
    )


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(UnknownNameError, match="algorithm"):
        algorithm("annealing")
    with pytest.raises(UnknownNameError, match="deviaton"):
        algorithm("gaussian", deviaton=0.1)
    with pytest.raises(ParameterError, match="deviation"):
        algorithm("gaussian", deviation=-0.1)
    with pytest.raises(ParameterError, match="two elites"):
        algorithm("evolution", population=10, mutants=6, children=3)
    one = ParameterSpace("open_loop", {"frequency": (0.0, 1.0)}, 0.01, per_joint=2)
    with pytest.raises(ParameterError, match="at least two"):
        algorithm("cma").search(one, 1, None)


def test_the_page_has_all_settings_with_their_defaults():
    page = (Path(__file__).parents[3] / "docs" / "learning.md").read_text(encoding="utf-8")
    rows = {
        kind: row
        for kind in ALGORITHMS
        for row in page.splitlines()
        if row.startswith(f"| `{kind}`")
    }
    assert rows.keys() == ALGORITHMS.keys()
    for kind, cls in ALGORITHMS.items():
        for spec in parameters_of(cls):
            default = "4 + floor(3 ln d)" if spec.default is None else str(spec.default).lower()
            pattern = rf"`{spec.name}`[^`(]*\({re.escape(default)}\)"
            assert re.search(pattern, rows[kind]), (kind, spec.name)
