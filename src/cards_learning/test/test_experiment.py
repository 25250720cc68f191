"""Experiments from YAML: all of config/learning, and every error with its line."""

from pathlib import Path

import pytest
from small_experiments import TEXT, small

from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.shared_files import shared_folder
from cards_learning.experiment import FOLDER, Run, parse_experiment, read_experiment

READY = sorted((shared_folder() / FOLDER).glob("*.yaml"))


@pytest.mark.parametrize("file", READY, ids=lambda file: file.stem)
def test_ready_experiments_are_read_and_written_back(file):
    experiment = read_experiment(file.stem)
    again = parse_experiment(experiment.text(), experiment.source)
    assert again == experiment
    assert again.identity == experiment.identity
    assert experiment.robot in file.stem


def test_there_are_some():
    assert {file.stem for file in READY} >= {"tetrahedral_6", "tetrahedral_6_goal", "tetraspine"}


def test_runs_are_all_combinations():
    made = small(
        TEXT.replace("hidden: 4", "hidden: 4\n  goal_hidden: 2").replace(
            "[0, 300]", "[0, 300], goal_tension: 5"
        ),
        goals="[[1, 0], [0, 1]]",
        repetitions="3",
        terrains='["flat", "blocks:seed={seed}"]',
    )
    runs = made.runs
    assert len(runs) == len(set(runs)) == 2 * 2 * 3
    assert runs[-1] == Run("blocks:seed={seed}", (0.0, 1.0), 2)


def test_identity_is_of_all_but_the_number_of_trials():
    first = small()
    assert first.identity == small(trials="500").identity
    assert first.identity != small(seed="2").identity
    assert first.identity != small(duration="0.4").identity
    assert first.identity != first.with_changes(kind="gaussian").identity
    assert first.with_changes(kind="evolution").identity == first.identity


ERRORS = {
    "a key": ("seed: 1", "sed: 1", 14, "did you mean 'seed'"),
    "a nested key": ("hidden: 4", "hiden: 4", 9, "did you mean 'hidden'"),
    "format": ("learning/1", "learning/2", 1, "learning/1"),
    "robot": ("tetrahedral_6", "tetrahedral_7", 2, "did you mean"),
    "terrain": ('"flat:friction=0.5"', '"sea"', 3, "no terrain named 'sea'.*hills"),
    "terrain's value": ("friction=0.5", "friction=-1", 3, "friction"),
    "duration": ("0.3", "0", 4, "0.1"),
    "time step": ("duration: 0.3", "duration: 0.3\ntime_step: 0.0033", 5, "over a whole number"),
    "muscles at a joint": ("per_joint: 8", "per_joint: 7", 8, "40 cables with 7 at every joint"),
    "parameter": ("frequency: [", "frequenzy: [", 10, "did you mean 'frequency'"),
    "a range upside down": ("[0, 30]", "[30, 0]", 10, "the lower value first"),
    "a negative amplitude": ("[0, 300]", "[-1, 300]", 10, "values >= 0"),
    "too much tension": ("[0, 30]", "[0, 30], tension: [0, 71]", 10, "at most 70 N"),
    "a seed that would be rounded": ("seed: 1", "seed: 9.1e15", 14, " 0 .. 9007199254740992"),
    "too many muscles": ("per_joint: 8", "per_joint: 1e15", 8, "a whole number 1 .. 100"),
    "algorithm": ("evolution", "annealing", 11, "one of evolution"),
    "setting": ("mutants: 2", "mutant: 2", 11, "did you mean 'mutants'"),
    "setting's value": ("population: 6", "population: 0", 11, "population"),
    "measure": ("distance: 1.0", "distanz: 1.0", 12, "did you mean 'distance'"),
    "no weight": ("distance: 1.0", "distance: 0.0", 12, "a weight other than zero"),
    "goal": ("distance: 1.0", "towards_goal: 1.0", 12, "needs a goal"),
    "trials": ("trials: 11", "trials: 0", 13, ">= 1"),
    "network": ("oscillators: feedback", "oscillators: open_loop", 9, "oscillators: feedback"),
    "goal network": ("hidden: 4", "hidden: 4\n  goal_hidden: 3", 5, "go together"),
    "start": ("hidden: 4", "hidden: 4\n  start: nothing", 10, "no file in"),
    "start of other networks": (
        "hidden: 4", "hidden: 5\n  start: tetrahedral", 10, "5 hidden neurons"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_file_line_and_what_would_be_right(name):
    before, after, line, words = ERRORS[name]
    assert TEXT.count(before) >= 1
    with pytest.raises(DescriptionError, match=rf"(?s)^mine\.yaml:\d+: .*{words}") as error:
        parse_experiment(TEXT.replace(before, after, 1), "mine.yaml")
    assert error.value.line == line


def test_no_such_experiment_lists_those_there_are():
    with pytest.raises(UnknownNameError, match="tetrahedral_6"):
        read_experiment("tetrahedral_66")


def test_paths_mean_the_same_from_everywhere(tmp_path, monkeypatch):
    pattern = shared_folder() / "config/patterns/tetrahedral.yaml"
    (tmp_path / "mine.yaml").write_bytes(pattern.read_bytes())
    monkeypatch.chdir(tmp_path)
    ranges = "amplitude: [0, 300], amplitude_gain: [0, 200], phase_gain: [0, 6.28]"
    text = TEXT.replace("amplitude: [0, 300]", ranges)
    made = small(text.replace("hidden: 4", "hidden: 4\n  start: mine.yaml"))
    monkeypatch.chdir(Path("/"))
    assert made.start_point().shape == (len(made.space.genes),)
    assert parse_experiment(made.text(), made.source) == made


def test_a_changed_start_is_another_experiment(tmp_path):
    pattern = (shared_folder() / "config/patterns/tetrahedral.yaml").read_text(encoding="utf-8")
    file = tmp_path / "mine.yaml"
    file.write_text(pattern, encoding="utf-8")
    made = small(TEXT.replace("hidden: 4", f"hidden: 4\n  start: {file}"))
    before = made.identity
    file.write_text(pattern.replace('"frequency": 8.3', '"frequency": 9.3'), encoding="utf-8")
    assert made.identity != before
    file.unlink()
    with pytest.raises(CardsError, match="no file in"):
        _ = made.identity
