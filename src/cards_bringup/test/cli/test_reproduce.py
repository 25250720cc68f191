"""``./cards reproduce``: the command line around the experiments."""

import json
import sys

import pytest

from cards_bringup import cli

PACKAGE = """
from cards_bringup.reproduce.experiment import Band, Claim, Experiment, Outcome, Paper

STOP = []

def perform(setup, folder, tell):
    if STOP:
        raise STOP.pop()
    return {"x": setup["x"]}

def make(name, x):
    return Experiment(
        Paper("777", "Of others", "Nobody2000"), name, "an experiment", {"x": x},
        (Claim("x", "x", "Fig. 1", Band(0, 2), published=1.0),),
        perform, lambda runs: Outcome({"x": runs["run"].numbers["x"]}),
    )

GOOD, BAD = make("GOOD", 1.0), make("BAD", 3.0)
"""


@pytest.fixture
def toys(offer, tmp_path, monkeypatch):
    """A package with an experiment that is reproduced and one that is not."""
    entries = {"777.GOOD": "GOOD", "777.BAD": "BAD"}
    offer("toy_experiments", PACKAGE, "cards.experiments", entries)
    monkeypatch.chdir(tmp_path)


def as_json(capsys, *arguments, code=0):
    assert cli.main(["reproduce", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_papers_and_experiments_are_listed(capsys):
    assert cli.main(["reproduce"]) == 0
    out = capsys.readouterr().out
    for text in ("[Trendel2018]", "  000.A ", "  000.B ", "  004.WFC ", "4 runs", "1 run\n"):
        assert text in out
    assert out.count("[Chan]") == 1
    rows = as_json(capsys)["experiments"]
    assert rows[0]["key"] == "000.A"
    assert rows[0]["setup"]["parameters"]["kp"] == [2000.0, 2000.0]


def test_an_experiment_that_cannot_be_loaded_is_listed_with_its_error(toys, capsys, tmp_path):
    file = tmp_path / "packages/toy_experiments.py"
    file.write_text(file.read_text().replace("BAD = make", "LOST = make"))
    rows = {row["key"]: row for row in as_json(capsys, code=2)["experiments"]}
    assert "AttributeError" in rows["777.BAD"]["error"]
    assert rows["777.GOOD"]["title"] == "an experiment"
    assert cli.main(["reproduce"]) == 2
    assert "777.BAD: error: " in capsys.readouterr().out


def test_verdicts_are_exit_codes(toys, capsys, tmp_path):
    found = as_json(capsys, "777.GOOD", "--out", "good")
    assert found["folder"] == "good"
    assert found["experiments"][0]["verdict"] == "reproduced"
    assert cli.main(["reproduce", "777", "--out", "both"]) == 1
    said = capsys.readouterr()
    assert said.out == "report: both/report.html\n"
    assert said.err == (
        "777.BAD: not reproduced (0 of 1 reproduced, 1 not reproduced)\n"
        "777.GOOD: reproduced (1 of 1 reproduced)\n"
    )
    assert (tmp_path / "both/777.GOOD/claims.csv").is_file()


def test_the_default_folder_is_new_each_time(toys, tmp_path):
    for _ in range(2):
        assert cli.main(["reproduce", "777.GOOD"]) == 0
    assert len(list((tmp_path / "runs").glob("reproduce_777_*"))) == 2


def test_resume_goes_on_and_takes_more(toys, capsys):
    as_json(capsys, "777.GOOD", "--out", "a")
    found = as_json(capsys, "--resume", "a")
    assert found["experiments"][0]["runs"][0]["state"] == "kept"
    found = as_json(capsys, "777", "--resume", "a", code=1)
    assert [one["key"] for one in found["experiments"]] == ["777.GOOD", "777.BAD"]
    assert [one["runs"][0]["state"] for one in found["experiments"]] == ["kept", "made"]


def test_ctrl_c_leaves_a_folder_and_says_how_to_go_on(toys, capsys, tmp_path):
    as_json(capsys, "777.GOOD", "--out", "first")
    sys.modules["toy_experiments"].STOP.append(KeyboardInterrupt())
    assert cli.main(["reproduce", "777", "--out", "a"]) == 130
    assert "./cards reproduce --resume a" in capsys.readouterr().err
    found = json.loads((tmp_path / "a/report.json").read_text())
    assert [one["state"] for one in found["experiments"]] == ["interrupted", "not run"]
    assert as_json(capsys, "--resume", "a", code=1)["experiments"][1]["verdict"] == "reproduced"


def test_what_could_not_run(toys, capsys):
    as_json(capsys, "777.GOOD", "--out", "first")
    sys.modules["toy_experiments"].STOP.append(ValueError("broken"))
    found = as_json(capsys, "777.GOOD", "--out", "a", code=2)
    assert found["experiments"][0]["error"].startswith("ValueError: broken")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["005"], "no paper or experiment named '005'"),
        (["000.Q"], "no paper or experiment named '000.Q'"),
        (["--out", "x"], "--out without an experiment"),
        (["000.A", "--out", "full"], "--out full is not an empty folder"),
        (["000.A", "--out", "full/file"], "--out full/file is not an empty folder"),
        (["--resume", "nothing"], "report.json: no such file"),
        (["--resume", "full"], "report.json: no such file"),
        (["000.A", "--out", "x", "--resume", "y"], "not allowed with argument"),
        (["000.A", "--what"], "unrecognized arguments: --what"),
    ],
)
def test_mistakes(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    found = as_json(capsys, *arguments, code=2)
    assert message in found["error"]["message"]
    assert not (tmp_path / "x").exists()
    assert not (tmp_path / "runs").exists()


def test_the_help_has_examples(capsys):
    assert cli.main(["reproduce", "--help"]) == 0
    out = capsys.readouterr().out
    assert "./cards reproduce --resume results" in out
    assert "Exit code: 0 everything was reproduced" in out
