"""Experiments of learned gaits: ensembles, how they are judged, and that they run."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from nasa_structures import NASA, needs_nasa_data

from cards_bringup.reproduce.experiment import FinishedRun, judge
from cards_bringup.reproduce.gait_run import OSCILLATIONS, Ensemble, gait_run, switch_run
from cards_bringup.reproduce.registry import OWN
from cards_bringup.reproduce.runner import Reproduction, fingerprint
from cards_bringup.reproduce.tensegrity_toolkit import (
    NAME,
    PATTERN,
    spine_with_rotors,
    toolkit_run,
)
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode

TETRAHEDRAL = {"pattern": "tetrahedral", "duration": 0.3, "repetitions": 3}


def made(key, name, distances, **measures):
    """A run that was never simulated: its distances, [m]."""
    setup = OWN[key].setup_of(name)
    goals = setup["goals"] or [None]
    runs = [
        {
            "goal": goals[i % len(goals)],
            "repetition": i,
            "state": "done",
            "distance": d,
            "speed": d / setup["duration"],
            "goal_distance": math.nan,
            "nearest": math.nan,
            "cost_of_transport_ideal": 2.0,
            "cost_of_transport_motor": 1.0,
            **{name: values[i] for name, values in measures.items()},
        }
        for i, d in enumerate(distances)
    ]
    return FinishedRun(name, setup, None, {"runs": runs})


def judged(key, runs):
    one = OWN[key]
    outcome = one.evaluate(runs)
    return outcome.values, {j.claim.value: j.verdict for j in judge(one.claims, outcome.values)}


def test_the_toolkits_gait_is_judged_by_its_table():
    """The published distances themselves are reproduced; no gain on hills is not."""
    table = {"flat_feedback": 4.871, "flat_alone": 4.928, "hills_feedback": 1.053}
    table |= {"hills_alone": 0.304, "blocks_feedback": 1.6, "blocks_alone": 0.1}
    runs = {name: made("003.TOOLKIT", name, [d] * 3) for name, d in table.items()}
    values, verdicts = judged("003.TOOLKIT", runs)
    assert values["hills_ratio"] == pytest.approx(105.3 / 30.4)
    assert set(verdicts.values()) == {"reproduced"}
    runs["hills_feedback"] = made("003.TOOLKIT", "hills_feedback", [0.304] * 3)
    assert judged("003.TOOLKIT", runs)[1]["hills_ratio"] == "not reproduced"


def test_the_toolkits_spine_has_rotors_and_the_rate_of_the_winch(tmp_path):
    from cards_core.formats import load

    robot = load(spine_with_rotors(tmp_path / NAME))
    plain = load("tetrahedral_6")
    assert robot.tree.position_names == plain.tree.position_names
    for ours, theirs in zip(robot.muscles, plain.muscles, strict=True):
        assert ours.actuator.motor is not None
        assert ours.control.rate == "winch"
        assert ours.contact
        assert theirs.contact
        for a, b in zip(ours.path, theirs.path, strict=True):
            assert a.link == b.link
            assert np.array_equal(a.position, b.position)


def test_without_the_toolkit_its_gait_is_skipped(tmp_path, monkeypatch):
    monkeypatch.delenv("CARDS_NTRT", raising=False)
    assert "CARDS_NTRT" in OWN["003.TOOLKIT"].missing()
    with pytest.raises(CardsError, match=PATTERN):
        toolkit_run(OWN["003.TOOLKIT"].setup_of("flat_alone"), tmp_path, lambda _: None)


@needs_nasa_data
def test_the_toolkits_gait_walks(tmp_path, monkeypatch):
    """8 cm/s on flat ground in the toolkit; here within a fifth after two seconds of start."""
    monkeypatch.setenv("CARDS_NTRT", str(NASA))
    setup = {**OWN["003.TOOLKIT"].setup_of("flat_feedback"), "repetitions": 1, "duration": 8.0}
    (run,) = toolkit_run(setup, tmp_path, lambda _: None)["runs"]
    assert run["state"] == "done"
    assert run["distance"] / 8.0 == pytest.approx(0.08, rel=0.2)


def test_feedback_is_judged_by_medians():
    runs = {
        name: made("003.FEEDBACK", name, distances)
        for name, distances in {
            "flat_feedback": [4.9, 4.8, 5.0],
            "flat_alone": [4.9, 4.95, 0.1],
            "hills_feedback": [0.2, 1.2, 3.0],
            "hills_alone": [0.3, 0.31, math.nan],
        }.items()
    }
    values, verdicts = judged("003.FEEDBACK", runs)
    assert values["flat_feedback"] == pytest.approx(490.0 / 60.0)
    assert values["flat_ratio"] == pytest.approx(1.0)
    assert values["hills_alone"] == pytest.approx(
        30.0 / 60.0
    )  # the run that diverged has no distance
    assert values["hills_ratio"] == pytest.approx(4.0)
    assert set(verdicts.values()) == {"reproduced"}
    slow = {name: made("003.FEEDBACK", name, [0.01] * 3) for name in runs}
    assert "not reproduced" in judged("003.FEEDBACK", slow)[1].values()


def test_what_feedback_changes_is_seen_after_the_switch(tmp_path):
    setup = OWN["003.SWITCH"].setup_of("run")
    time = np.arange(0.02, setup["duration"], 0.02)
    on = time > setup["switch"]
    rate, amplitude = np.where(on, 8.0, 10.0), np.where(on, 15.0, 12.0)
    theta = np.cumsum(rate) * 0.02
    state = np.stack([theta, amplitude, rate], axis=1)[:, None, :].repeat(3, axis=1)
    place = np.stack([0.05 * time, 0.0 * time, 0.1 + 0.0 * time], axis=1)
    np.savez(tmp_path / OSCILLATIONS, time=time, place=place, oscillators=state)
    run = FinishedRun("run", setup, tmp_path, {})
    values, verdicts = judged("003.SWITCH", {"run": run})
    assert values["frequency"] == pytest.approx(0.8, rel=1e-3)  # one row at the switch
    assert values["amplitude"] == pytest.approx(1.25)
    assert set(verdicts.values()) == {"reproduced"}


def test_feedback_is_off_until_it_is_switched_on(tmp_path):
    setup = OWN["003.SWITCH"].setup_of("run")
    setup = {**setup, "terrain": "flat:friction=0.5", "duration": 0.6, "switch": 0.3}
    assert switch_run(setup, tmp_path, lambda _: None) == {}
    data = np.load(tmp_path / OSCILLATIONS)
    amplitude = data["oscillators"][:, :, 1]
    before = data["time"] <= 0.3
    np.testing.assert_allclose(amplitude[before], amplitude[0, 0], rtol=1e-12)
    assert np.ptp(amplitude[~before], axis=0).min() > 0.0
    assert np.diff(data["time"]) == pytest.approx(setup["row_period"], abs=1e-9)


def test_slopes_are_judged_by_goals_and_by_the_way_uphill():
    runs = {
        "2_degrees": made(
            "003.SLOPES",
            "2_degrees",
            [3.0] * 4,
            nearest=[0.1, 0.5, 0.4, 1.0],
            towards_goal=[3.0] * 4,
        ),
        "7.5_degrees": made(
            "003.SLOPES",
            "7.5_degrees",
            [0.5] * 4,
            nearest=[3.0] * 4,
            towards_goal=[0.0, 0.2, 0.3, math.nan],
        ),
    }
    values, verdicts = judged("003.SLOPES", runs)
    assert values == {"goal": 1.0, "climb": pytest.approx(10.0)}
    assert set(verdicts.values()) == {"reproduced"}


def test_fields_that_are_left_are_counted_per_twenty():
    runs = {
        "feedback": made("003.BLOCKS", "feedback", [1.6, 1.7, 1.4, 2.0]),
        "alone": made("003.BLOCKS", "alone", [1.0, 1.8, 0.4, 0.0]),
    }
    values, verdicts = judged("003.BLOCKS", runs)
    assert values == {"escapes": 15.0, "escapes_alone": 5.0, "wins": 15.0}
    assert verdicts["wins"] == "reproduced"
    assert verdicts["escapes"] != "reproduced"


def test_goals_count_when_they_were_passed():
    nearest = {"flat": [0.1, 0.19, 0.2, 0.0, 2.0, 3.0], "hills": [1.0] * 6, "blocks": [0.1] * 12}
    runs = {
        name: made("003.GOAL", name, [3.0] * len(near), nearest=near)
        for name, near in nearest.items()
    }
    values, verdicts = judged("003.GOAL", runs)
    assert (values["flat"], values["hills"], values["blocks"]) == (4.0, 0.0, 12.0)
    assert set(verdicts.values()) == {"reproduced"}


def test_every_structure_is_held_to_its_own_speed_and_cost():
    runs = {name: made("003.GAITS", name, [3.0] * 5) for name in OWN["003.GAITS"].runs}
    values, verdicts = judged("003.GAITS", runs)
    assert values["speed_tetraspine"] == pytest.approx(10.0)
    assert verdicts["speed_tetraspine"] == verdicts["cot_tetrahedral_12"] == "reproduced"


def test_random_patterns_are_counted():
    setup = OWN["003.RANDOM"].setup_of("run")
    run = FinishedRun("run", setup, None, {"distances": [0.0] * 98 + [1.0, 1.6]})
    values, verdicts = judged("003.RANDOM", {"run": run})
    assert values["short"] == pytest.approx(98.0)
    assert values["useful"] == pytest.approx(10.0)
    assert set(verdicts.values()) == {"reproduced"}


def test_an_ensemble_runs_and_is_kept(tmp_path):
    one = OWN["003.BLOCKS"]
    short = replace(one, setup={**one.setup, **TETRAHEDRAL})
    first = Reproduction(tmp_path, [short]).run()
    assert first["exit_code"] in (ExitCode.DONE, ExitCode.FAILED)
    assert first["experiments"][0]["error"] is None
    again = Reproduction(tmp_path, [short]).run()
    assert {run["state"] for run in again["experiments"][0]["runs"]} == {"kept"}
    numbers = json.loads((tmp_path / "003.BLOCKS/feedback/run.json").read_text())["numbers"]
    assert [run["state"] for run in numbers["runs"]] == ["done"] * 3
    assert len({run["distance"] for run in numbers["runs"]}) == 3


def test_feedback_and_its_absence_are_other_runs_of_the_same_pattern(tmp_path):
    setup = {**OWN["003.FEEDBACK"].setup, **TETRAHEDRAL, "duration": 1.0, "repetitions": 1}
    shares = []
    found = [
        gait_run({**setup, "feedback": on}, tmp_path, shares.append)["runs"][0]["distance"]
        for on in (True, False)
    ]
    assert found[0] != found[1]
    assert shares == [1.0, 1.0]


def test_another_pattern_of_the_same_name_is_another_run(tmp_path):
    setup = OWN["003.BLOCKS"].setup_of("feedback")
    pattern = tmp_path / "mine.yaml"
    marks = []
    for text in ("a: 1", "a: 2"):
        pattern.write_text(text)
        marks.append(fingerprint("003.BLOCKS", "feedback", {**setup, "pattern": str(pattern)}))
    assert marks[0] != marks[1]


def test_quick_runs_are_fewer():
    for key in ("003.FEEDBACK", "003.BLOCKS", "003.GAITS", "003.GOAL"):
        one = OWN[key]
        quick, whole = one.shortened().setup, one.setup
        assert quick["repetitions"] * quick["duration"] * (len(quick["goals"]) or 1) < whole[
            "repetitions"
        ] * whole["duration"] * (len(whole["goals"]) or 1)
    assert OWN["000.A"].shortened() == OWN["000.A"]


def test_the_spread_of_an_ensemble():
    run = made("003.BLOCKS", "feedback", [0.0, 1.0, 2.0, 3.0, math.nan])
    row = Ensemble.of(run).row("distance", 100.0)
    assert list(row.values()) == pytest.approx([0.0, 0.0, 100.0, 200.0, 300.0])
    assert np.isnan(Ensemble.of(run).of_measure("distance")[-1])
