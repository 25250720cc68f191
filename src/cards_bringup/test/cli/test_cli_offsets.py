"""``./cards analyse offsets``: a table of readings, what is printed, exit codes."""

import json

import numpy as np
import pytest

from cards_bringup.cli import main
from cards_core.dynamics import make_dynamics
from cards_core.formats import load


@pytest.fixture
def offsets(monkeypatch, capsys):
    def call(*words):
        monkeypatch.setattr("sys.argv", ["cards", "analyse", "offsets", *words])
        code = main(["analyse", "offsets", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def table(tmp_path):
    """Readings of `bm_arm` in twelve poses, muscle k 10 k mm too short."""
    robot, rng = load("bm_arm"), np.random.default_rng(2)
    dynamics = make_dynamics(robot, "numeric")
    q = np.array([robot.tree.home, *(robot.tree.random(rng) for _ in range(11))])
    lengths = np.array([dynamics.update(row, np.zeros(4)).muscle_lengths for row in q])
    readings = lengths - 0.01 * np.arange(6) + 1e-5 * rng.normal(size=lengths.shape)
    file = tmp_path / "readings.csv"
    names = ",".join(muscle.name for muscle in robot.muscles)
    np.savetxt(file, readings, delimiter=",", header=names, comments="")
    return file


def test_offsets_of_a_table(offsets, table):
    code, out, _ = offsets("bm_arm", "--input", str(table), "--noise", "1e-5", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["undetermined"] == []
    assert found["misfit"] < 3.0
    np.testing.assert_allclose(list(found["offsets"].values()), 0.01 * np.arange(6), atol=2e-4)
    code, out, _ = offsets("bm_arm", "--input", str(table), "--noise", "1e-5")
    assert code == 0
    assert "12 poses" in out
    assert "cable_6" in out.replace("cable 6", "cable_6")


def test_what_is_not_told_is_named_and_fails(offsets, table, tmp_path):
    lines = table.read_text().splitlines()
    short = tmp_path / "short.csv"
    short.write_text("\n".join(lines[:2]) + "\n")
    code, out, _ = offsets("bm_arm", "--input", str(short))
    assert code == 1
    assert "not told by these poses: " in out


def test_readings_of_another_robot_do_not_fit(offsets, table, tmp_path):
    rows = np.loadtxt(table, delimiter=",", skiprows=1)
    rows[:, 2] *= 1.1
    other = tmp_path / "other.csv"
    np.savetxt(other, rows, delimiter=",", header=table.read_text().split()[0], comments="")
    code, out, _ = offsets("bm_arm", "--input", str(other))
    assert code == 1
    assert "do not fit the robot" in out


def test_bad_input_is_named(offsets, tmp_path):
    code, _, err = offsets("bm_arm", "--input", str(tmp_path / "none.csv"))
    assert code == 2
    assert "none.csv" in err
