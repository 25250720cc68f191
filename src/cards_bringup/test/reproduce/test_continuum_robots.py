"""The experiments on robots of rods."""

from dataclasses import replace

import numpy as np
import pytest

from cards_bringup.reproduce import continuum_robots
from cards_bringup.reproduce.experiment import FinishedRun, judge
from cards_bringup.reproduce.registry import OWN
from cards_bringup.reproduce.runner import fingerprint
from cards_core.formats.locate import known_models


def made(key, folder, **changes):
    """Make all runs of an experiment."""
    one = OWN[key]
    runs = {}
    for name in one.runs:
        (folder / name).mkdir()
        setup = one.setup_of(name) | changes
        numbers = one.perform(setup, folder / name, lambda share: None)
        runs[name] = FinishedRun(name, setup, folder / name, numbers)
    return one, runs


def verdicts(one, runs):
    return {j.claim.value: j.verdict for j in judge(one.claims, one.evaluate(runs).values)}


@pytest.mark.parametrize("key", ["001.LENGTHS", "001.SIMULATOR", "001.ROBOTS"])
def test_reproduced(key, tmp_path):
    one, runs = made(key, tmp_path)
    found = verdicts(one, runs)
    assert {value for value, verdict in found.items() if verdict != "reproduced"} == set()


def test_lengths_off_by_more_than_the_paper_says_are_told(tmp_path):
    one, runs = made("001.LENGTHS", tmp_path)
    runs["turned"].numbers["solutions"][0]["q"][2] += 1.1e-4
    found = verdicts(one, runs)
    bad = [value for value, verdict in found.items() if verdict != "reproduced"]
    assert bad == ["turned.length_3", "turned.difference"]


def test_no_solution_is_no_value(tmp_path):
    one, runs = made("001.SIMULATOR", tmp_path)
    runs["stored"].numbers["solutions"][0]["converged"] = False
    found = verdicts(one, runs)
    assert found["stored.q_1150"] == found["stored.force_z"] == "not reproduced"
    assert found["stored.q_1400"] == "reproduced"


def test_the_path_is_followed(tmp_path):
    one, runs = made("001.PATH", tmp_path, laps=1)
    found = verdicts(one, runs)
    found.pop("rate_hz")  # of a machine that may be busy
    assert set(found.values()) == {"reproduced"}
    lengths = one.evaluate(runs).tables["lengths"]
    assert len(lengths["way [mm]"]) == 101
    slow = {"run": replace(runs["run"], numbers={**runs["run"].numbers, "rate_hz": 4000.0})}
    assert verdicts(one, slow)["rate_hz"] == "not reproduced"


def test_poses_turn_about_x_then_y_then_z():
    pose = continuum_robots.pose_of([1.0, 2.0, 3.0, 0.3, 0.2, 0.1])
    c, s = np.cos, np.sin
    assert pose[0, 2] == pytest.approx(s(0.2))
    assert pose[1, 2] == pytest.approx(-s(0.3) * c(0.2))
    assert pose[0, 1] == pytest.approx(-c(0.2) * s(0.1))
    np.testing.assert_array_equal(pose[:3, 3], [1.0, 2.0, 3.0])


def test_all_shipped_robots_of_the_paper_are_there():
    ours = {"stewart_gough_6rfs", "stewart_gough_till"}  # without a description in the paper
    assert set(continuum_robots.ROBOTS) | ours == set(known_models(rods=True))


def test_a_run_is_made_again_when_the_rods_change(tmp_path, monkeypatch):
    setup = OWN["001.ROBOTS"].setup_of("planar_3efr")
    before = fingerprint("001.ROBOTS", "planar_3efr", setup)
    found = continuum_robots.read_rod_robot("planar_3efr")
    other = tmp_path / "rods.yaml"
    other.write_text("changed")
    changed = replace(found, rods_source=str(other))
    monkeypatch.setattr("cards_bringup.reproduce.runner.read_rod_robot", lambda name: changed)
    assert fingerprint("001.ROBOTS", "planar_3efr", setup) != before
