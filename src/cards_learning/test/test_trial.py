"""Trials in the simulator: repeatable, what they count, and what becomes of those that fail."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from small_experiments import BROKEN, TEXT, small

from cards_core.control.cpg.files import read_pattern
from cards_core.errors import CardsError
from cards_core.robot.terrain import Blocks, read_terrain
from cards_core.shared_files import find_file
from cards_learning.ensemble import ensemble
from cards_learning.experiment import Run
from cards_learning.folder import provenance
from cards_learning.measures import measure
from cards_learning.trial import Laboratory, TrialResult, failed_trial

GAIT = TEXT.replace("[-0.5, 10]}", "[-0.5, 10], amplitude_gain: [0, 200], phase_gain: [0, 6.28]}")


def values_of(experiment):
    """Return the values of the pattern that comes along."""
    pattern = read_pattern(find_file("tetrahedral", folder="config/patterns", suffix=".yaml"))
    return experiment.space.values(experiment.space.point(pattern))


def random_values(experiment, seed=0):
    return experiment.space.values(experiment.space.random(np.random.default_rng(seed)))


def test_a_trial_is_the_same_to_the_last_bit_whatever_was_before_it():
    experiment = small(GAIT, terrains='["flat:friction=0.5", "hills"]', perturbation="0.01")
    first = Laboratory(experiment)
    a = first.trial(3, values_of(experiment))
    other = Laboratory(experiment)
    other.trial(0, random_values(experiment))
    assert other.trial(3, values_of(experiment)).same_as(a)
    again = TrialResult.of_record(json.loads(json.dumps(a.record())), experiment, "here")
    assert again.same_as(a)
    assert not other.trial(3, random_values(experiment)).same_as(a)


def test_the_shipped_gait_crawls_and_costs():
    experiment = small(GAIT, duration="3.0")
    found = Laboratory(experiment).trial(0, values_of(experiment))
    assert found.state == "done"
    (run,) = found.runs
    assert found.score == run.score == run.measures["distance"] > 0.1
    assert run.measures["speed"] == pytest.approx(run.measures["distance"] / 3.0, rel=1e-9)
    assert run.measures["work_ideal"] > max(0.0, run.measures["work_motor"])
    weight = 6 * 0.761795732978 * 9.81
    cost = run.measures["work_ideal"] / (weight * run.measures["distance"])
    assert run.measures["cost_of_transport_ideal"] == pytest.approx(cost, rel=1e-3)


def test_a_robot_that_does_not_move_gets_nowhere():
    """Without a rhythm it settles; the ground takes work from the cables, they do next to none."""
    experiment = small(GAIT.replace("[0, 300]", "0"), duration="1.0")
    values = random_values(experiment)
    found = Laboratory(experiment).trial(0, values)
    assert found.runs[0].measures["distance"] < 0.02


def test_repetitions_differ_by_their_seeds_and_are_the_same_for_all_trials():
    experiment = small(GAIT, repetitions="2", perturbation="0.05", combine="worst")
    laboratory = Laboratory(experiment)
    found = laboratory.trial(0, values_of(experiment))
    scores = [run.score for run in found.runs]
    assert scores[0] != scores[1]
    assert found.score == min(scores)
    starts = [laboratory._host(run).state.qd for run in experiment.runs]
    again = Laboratory(replace(experiment, trials=99))._host(experiment.runs[1]).state.qd
    assert starts[1].tobytes() == again.tobytes()
    assert np.abs(starts[0]).max() <= 0.05
    assert not np.array_equal(starts[0], starts[1])


def test_random_terrains_take_the_seed_of_the_repetition():
    experiment = small(GAIT, terrains='["blocks:seed={seed}"]', repetitions="2")
    laboratory = Laboratory(experiment)

    def ground(repetition):
        model = laboratory._host(Run("blocks:seed={seed}", None, repetition)).simulator.model
        return model.geom_pos.tobytes()

    assert ground(0) == ground(0) != ground(1)


def test_provenance_names_a_terrain_that_can_be_run():
    experiment = small(GAIT, terrains='["blocks:seed={seed}"]')
    found = Laboratory(experiment).trial(0, values_of(experiment))
    terrain, _ = experiment.draw(experiment.runs[0])
    assert f" on {terrain}: distance" in provenance(experiment, found)
    assert read_terrain(terrain) == Blocks(seed=int(terrain.removeprefix("blocks:seed=")))


def test_medians_and_means():
    experiment = small(GAIT, repetitions="3", perturbation="0.05")
    mean = Laboratory(experiment).trial(0, values_of(experiment))
    median = Laboratory(replace(experiment, combine="median")).trial(0, values_of(experiment))
    scores = sorted(run.score for run in mean.runs)
    assert mean.score == pytest.approx(sum(scores) / 3.0, rel=1e-15)
    assert median.score == scores[1]


def test_oscillators_that_diverge_get_the_score_of_a_failure():
    experiment = small(BROKEN, failure="{score: -7.0}")
    found = Laboratory(experiment).trial(0, random_values(experiment))
    assert (found.state, found.score) == ("diverged", -7.0)
    (run,) = found.runs
    assert "oscillator" in run.reason or "evaluations" in run.reason
    assert all(math.isnan(value) for value in run.measures.values())


def test_physics_that_diverge_get_the_score_of_a_failure():
    experiment = small(GAIT, perturbation="1e8", duration="1.0")
    found = Laboratory(experiment).trial(0, values_of(experiment))
    assert (found.state, found.score) == ("diverged", -1.0)
    assert "simulation stopped" in found.runs[0].reason


def test_a_robot_that_leaves_the_heights_fails_and_its_run_ends():
    experiment = small(GAIT, duration="5.0", failure="{height: [0.5, 1.0]}")
    found = Laboratory(experiment).trial(0, values_of(experiment))
    assert (found.state, found.score) == ("left the heights", -1.0)
    assert "z is 0.1" in found.runs[0].reason


def test_a_goal_counts_by_how_much_nearer_it_is():
    text = GAIT.replace("hidden: 4", "hidden: 4\n  goal_hidden: 4").replace(
        "[0, 300]", "[0, 300], goal_tension: [0, 20]"
    )
    experiment = small(text, goals="[[2, 0], [-2, 0]]", objective="{towards_goal: 1.0}")
    found = Laboratory(experiment).trial(0, random_values(experiment))
    measures = [run.measures for run in found.runs]
    assert found.score == pytest.approx(sum(m["towards_goal"] for m in measures) / 2.0)
    assert all(m["goal_distance"] == pytest.approx(2.0, abs=0.5) for m in measures)


def test_a_link_may_be_the_reference():
    whole = small(GAIT)
    tail = small(GAIT, reference="v5")
    ways = [Laboratory(e).trial(0, values_of(e)).score for e in (whole, tail)]
    assert ways[0] != ways[1]


def test_a_trial_that_was_given_up_has_the_score_of_a_failure():
    experiment = small(GAIT, repetitions="2")
    found = failed_trial(experiment, 4, values_of(experiment), "crashed", "it died")
    assert (found.number, found.state, found.score) == (4, "crashed", -1.0)
    assert len(found.runs) == 2


def test_a_record_of_an_earlier_version_lacks_measures(started):
    record = failed_trial(started, 0, values_of(started), "crashed", "").record()
    del record["runs"][0]["measures"]["nearest"]
    again = TrialResult.of_record(record, started, "here")
    assert math.isnan(again.runs[0].measures["nearest"])


@pytest.fixture
def started():
    """Four runs of the pattern that comes along, on two terrains."""
    text = GAIT.replace("hidden: 4", "hidden: 4\n  start: tetrahedral")
    return small(
        text, terrains='["flat:friction=0.5", "hills"]', repetitions="2", perturbation="0.01"
    )


def test_an_ensemble_is_the_trial_of_the_start_for_any_number_of_processes(started):
    shares = []
    found = ensemble(started, workers=2, progress=shares.append)
    assert found.same_as(Laboratory(started).trial(0, values_of(started)))
    assert shares == [0.25, 0.5, 0.75, 1.0]
    assert len({run.measures["distance"] for run in found.runs}) == 4


def test_an_ensemble_needs_a_pattern():
    with pytest.raises(CardsError, match=r"small.yaml has no start"):
        ensemble(small())


def test_a_goal_on_the_way_is_nearest_between_begin_and_end():
    """The measure looks at the way, not only at its ends."""
    begin, end = np.array([0.0, 0.0]), np.array([2.0, 0.0])
    goal = np.array([1.0, 0.0])
    near = measure(begin, end, duration=1.0, work=(0.0, 0.0), weight=1.0, goal=goal, nearest=0.1)
    assert (near.nearest, near.goal_distance) == (0.1, 1.0)
    ends = measure(begin, end, duration=1.0, work=(0.0, 0.0), weight=1.0, goal=2.0 * goal)
    assert ends.nearest == ends.goal_distance == 0.0
