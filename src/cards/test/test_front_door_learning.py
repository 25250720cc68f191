"""`cards.learn`: the same run as ``./cards learn``, and answers to calls that make no sense."""

import pytest

import cards
from cards_core.errors import CardsError

TEXT = """\
format: learning/1
robot: tetrahedral_6
terrains: [flat]
duration: 0.1
controller:
  kind: cpg
  oscillators: open_loop
  per_joint: 8
  parameters: {frequency: [0, 30], amplitude: [0, 10], convergence: 1.0}
algorithm: {kind: monte_carlo}
objective: {distance: 1.0}
trials: 3
"""


@pytest.fixture
def experiment(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT, encoding="utf-8")
    return file


def test_a_run_and_more_trials_of_it(experiment, tmp_path):
    told = []
    found = cards.learn(
        experiment, out=tmp_path / "run", workers=1, progress=lambda n, of, _: told.append((n, of))
    )
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert [trial.number for trial in found.trials] == [0, 1, 2]
    assert found.best.score == max(trial.score for trial in found.trials)
    assert (tmp_path / "run/best.yaml").is_file()
    more = cards.learn(out=tmp_path / "run", resume=True, trials=4, workers=1)
    assert (len(more.trials), more.made) == (4, 1)
    assert all(a.same_as(b) for a, b in zip(more.trials, found.trials, strict=False))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "no experiment"),
        ({"experiment": "nothing_of_this_name"}, "nothing_of_this_name"),
        ({"workers": 0}, "workers is 0"),
        ({"trials": 1.5}, "trials is 1.5"),
        ({"seed": -1}, "seed is -1"),
        ({"resume": True, "seed": 2}, "those of the folder"),
        ({"resume": True, "algorithm": "cma"}, "those of the folder"),
        ({"resume": True, "experiment": "tetrahedral_6"}, "those of the folder"),
        ({"resume": True}, "has no experiment.yaml"),
    ],
)
def test_mistakes(arguments, message, tmp_path):
    with pytest.raises(CardsError, match=message):
        cards.learn(out=tmp_path / "run", **arguments)


def test_an_unknown_algorithm(experiment, tmp_path):
    with pytest.raises(CardsError, match="annealing"):
        cards.learn(experiment, out=tmp_path / "run", algorithm="annealing")
