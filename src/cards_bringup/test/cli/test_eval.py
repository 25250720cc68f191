"""What `cards eval` prints of robots with muscles that wrap and that take no command."""

import json

import numpy as np
import pytest
from hybrid_robots import MOTORS, platform_arm

from cards_bringup.cli import main
from cards_bringup.cli.eval import evaluate
from cards_core.formats import write_model
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths


@pytest.fixture(scope="module")
def results():
    state = np.array([0.8]), np.array([1.5]), np.array([2.0])
    return [evaluate("wrap_elbow", *state, backend=name) for name in ("compiled", "numeric")]


@pytest.mark.parametrize("key", ["l", "ld", "L", "M", "C", "G", "needed_joint_force"])
def test_backends_agree(results, key):
    """Also where rates of L are found by evaluating the model beside q."""
    compiled, numeric = results
    np.testing.assert_allclose(compiled[key], numeric[key], rtol=1e-9, atol=1e-10)


def test_only_muscles_that_can_be_told_a_tension_get_one(results):
    result = results[0]
    tensions = dict(zip(result["muscle_names"], result["tensions"], strict=True))
    assert tensions["capsule"] == pytest.approx(0.0, abs=1e-9)
    assert result["tensions_feasible"]
    needed = -np.asarray(result["L"]).T @ result["tensions"]
    np.testing.assert_allclose(needed, result["needed_joint_force"], atol=1e-6)


def test_motors_carry_what_the_muscles_do_not(tmp_path):
    file = write_model(platform_arm(), tmp_path / "platform_arm")
    q, still = platform_arm().home, np.zeros(5)
    q = np.array([0.0, 0.0, 0.0, *q["shoulder"], *q["elbow"]])
    result = evaluate(str(file), q, still, still, backend="numeric")
    assert result["tensions_feasible"]
    assert result["motor_names"] == MOTORS
    made = -np.asarray(result["L"]).T @ result["tensions"]
    made[3:] += result["efforts"]
    np.testing.assert_allclose(made, result["G"], atol=1e-6)
    weak = write_model(platform_arm((0.5, 5.0)), tmp_path / "weak")
    assert not evaluate(str(weak), q, still, still, backend="numeric")["tensions_feasible"]


def test_only_joints_with_motors_are_listed_as_such(tmp_path, capsys):
    file = write_model(platform_arm(), tmp_path / "platform_arm")
    assert main(["analyse", "id", str(file)]) == 0
    _, _, listed = capsys.readouterr().out.partition("joint motors")
    lines = listed.partition("\n\n")[0].splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(MOTORS)


@pytest.mark.parametrize("words", [["eval", "wrap_elbow"], ["analyse", "ik", "wrap_elbow"]])
def test_a_path_that_is_not_found_is_named(words, monkeypatch, capsys):
    """By each command alike, and no number is given for it."""
    monkeypatch.setattr(GeodesicPaths, "lost_muscles", np.array([False, True, False]))
    assert main([*words, "--q=1.0"]) == 1
    assert "PATH_NOT_FOUND" in (out := capsys.readouterr().out)
    assert "triceps" in out
    assert main([*words, "--q=1.0", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["path_not_found"] == ["triceps"]
    assert [x is None for x in np.ravel(found["l"])] == [False, True, False]
