"""``./cards check``: tables, JSON, files, ranges, exit codes."""

import json

import numpy as np
import pytest

from cards_bringup.cli import main


@pytest.fixture
def check(capsys):
    """Run the command; returns the exit code and what it printed."""

    def run(*words):
        code = main(["check", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_tables(check):
    code, out, _ = check("planar_2r", "--samples", "50", "--quiet", "--static", "1")
    assert code == 1
    assert out.startswith("planar_2r: UNFIT, 50 poses")
    assert "minimum rank of L        2 of 2" in out
    assert "unfit    static: " in out
    assert "worst at joint_1 " in out
    assert "cable_4" in out
    code, out, _ = check("wrap_elbow", "--samples", "50", "--quiet", "--closure", "1")
    assert code == 0
    assert out.startswith("wrap_elbow: fit, 50 poses")


def test_json_and_files(check, tmp_path):
    folder = tmp_path / "out"
    words = ("planar_2r", "--grid", "joint_1=-1:1:5,joint_2=0.5:1:3", "--out", str(folder))
    code, out, _ = check(*words, "--json", "--quiet", "--static=0", "--closure=0")
    assert code == 0
    printed = json.loads(out)
    assert printed["poses"] == 15
    assert printed["fit"]
    stored = json.loads((folder / "check.json").read_text())
    assert {**stored, "files": printed["files"]} == printed
    assert (folder / "check.png").read_bytes().startswith(b"\x89PNG")
    with np.load(folder / "poses.npz") as poses:
        assert poses["q"].shape == (15, 2)
        assert np.mean(poses["status_closure"] == 0) == printed["closure_share"]
        assert poses["singular_value"].min() == printed["rank"]["least_singular_value"]


def test_ranges_in_a_file_are_those_on_the_command_line(check, tmp_path):
    file = tmp_path / "range.yaml"
    file.write_text("joint_1: [-0.5, 0.5]\njoint_2: [0, 1]\n")
    common = ("planar_2r", "--samples", "40", "--seed", "3", "--json", "--quiet")
    by_file = check(*common, "--range", str(file))
    by_text = check(*common, "--range", "joint_1=-0.5:0.5,joint_2=0:1")
    assert by_file == by_text
    assert by_file != check(*common)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no ranges"),
        ("joint_1: 3\n", "'joint_1' has no range"),
        ("joint_1: [1, 2, 3]\n", "'joint_1' has no range"),
        ("joint_1: [1, .nan]\n", "'joint_1' has no range"),
        ("joint_1: [2, 1]\n", "the lower number first"),
        ("elbow: [0, 1]\n", "elbow"),
    ],
)
def test_files_of_ranges_that_are_none(check, tmp_path, text, complaint):
    file = tmp_path / "range.yaml"
    file.write_text(text)
    code, _, err = check("planar_2r", "--range", str(file), "--quiet")
    assert code == 2
    assert complaint in err


def test_what_cannot_be_checked(check):
    assert check("no_such_robot")[0] == 2
    assert check("stewart_gough", "--quiet")[0] == 2
    assert check("planar_2r", "--closure", "1.5")[0] == 2
    assert check("planar_2r", "--range", "nowhere.yaml", "--quiet")[0] == 2
