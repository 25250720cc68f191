"""``./cards analyse cable-function``: output, files, errors."""

import json

import numpy as np
import pytest

from cards_bringup.cli import main


@pytest.fixture
def cards(capsys, monkeypatch):
    """Run a command line; returns the exit code and what it printed."""

    def run(*words):
        # the parser of `analyse` looks at the program's arguments for the kind
        monkeypatch.setattr("sys.argv", ["cards", "analyse", "cable-function", *words])
        code = main(["analyse", "cable-function", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_tables(cards):
    code, out, _ = cards(
        "planar_2r", "--samples", "40", "--quiet", "--group", "pair=cable_1,cable_3"
    )
    assert code == 0
    assert "planar_2r: 40 poses" in out
    assert [line for line in out.splitlines() if line.startswith("  pair")]
    assert out.count("  cable_2") == 3


def test_json_and_files(cards, tmp_path):
    folder = tmp_path / "out"
    words = ("planar_2r", "--grid", "joint_1=-1:1:5,joint_2=0.5:1:3", "--out", str(folder))
    code, out, _ = cards(*words, "--json", "--quiet", "--condition", "static")
    assert code == 0
    printed = json.loads(out)
    assert printed["poses"] == 15
    assert list(printed["necessity"]) == ["static"]
    stored = json.loads((folder / "cable_function.json").read_text())
    assert {**stored, "files": printed["files"]} == printed
    assert (folder / "cable_function.png").read_bytes().startswith(b"\x89PNG")
    with np.load(folder / "poses.npz") as poses:
        assert poses["q"].shape == (15, 2)
        assert poses["status_static"].shape == (15, 5)
        assert poses["least_tension"].shape == (15, 4)
        held = poses["status_tensions"] == 0
        assert held.sum() == printed["tensions"]["held"]


def test_options_of_conditions(cards):
    words = ("planar_2r", "--samples", "20", "--json", "--quiet", "--condition", "wrench_feasible")
    code, out, _ = cards(
        *words,
        "--option",
        "wrench_feasible.force_lower=[-1e6]",
        "--option",
        "wrench_feasible.force_upper=[1e6]",
    )
    assert code == 0
    assert json.loads(out)["necessity"]["wrench_feasible"]["feasible"] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--group", "pair"), "--group flexors=biceps"),
        (("--group", "p=cable_9"), "no muscle named 'cable_9'"),
        (("--group", "p=cable_1", "--group", "p=cable_2"), "given twice"),
        (("--condition", "sttic"), "did you mean 'static'"),
        (("--option", "tolerance=1"), "CONDITION.OPTION=VALUE"),
        (("--option", "static.tolerence=1"), "did you mean 'tolerance'"),
        (("--grid", "joint_9=0:1:3"), "joint_9"),
    ],
)
def test_mistakes_have_a_line_of_explanation(cards, words, message):
    code, out, err = cards("planar_2r", *words)
    assert (code, out) == (2, "")
    assert message in err


def test_help_has_examples(cards):
    code, out, _ = cards("--help")
    assert code == 0
    assert "./cards analyse cable-function roboy_arm" in out
