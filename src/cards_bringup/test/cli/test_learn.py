"""``./cards learn``: the command line around runs, and its report."""

import json

import pytest
from small_experiments import BROKEN, TEXT

from cards_bringup import cli
from cards_core.control.cpg.parameters import read_parameters
from cards_core.parameters.parameter_file import load_parameters
from cards_learning.folder import JOURNAL


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    """A small experiment in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(TEXT, encoding="utf-8")
    return "mine.yaml"


def as_json(capsys, *arguments, code=0):
    assert cli.main(["learn", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_run_its_trials_its_report_and_more_trials(experiment, capsys, tmp_path):
    found = as_json(capsys, experiment, "--trials", "7", "--workers", "2", "--out", "run")
    assert (found["folder"], found["report"]) == ("run", "run/report.html")
    assert (found["trials"], found["made"], found["states"]) == (7, 7, {"done": 7})
    best = found["best"]
    assert best["score"] == best["measures"][0]["distance"]
    assert best["measures"][0]["towards_goal"] is None

    again = as_json(capsys, "--resume", "run", "--trial", str(best["trial"]))
    assert again["same"] is True
    assert again["score"] == best["score"]

    more = as_json(capsys, "--resume", "run", "--trials", "9", "--workers", "1")
    assert (more["trials"], more["made"]) == (9, 2)

    assert cli.main(["learn", "report", "run"]) == 0
    assert "report: run/report.html" in capsys.readouterr().out
    page = (tmp_path / "run/report.html").read_text(encoding="utf-8")
    assert page.count('src="data:image/png;base64,') == 4
    assert "9 of 9 trials (9 done), seed 1" in page
    assert "CARDS: Learning of tetrahedral_6" in page

    read_parameters(tmp_path / "run/best.yaml")
    told = load_parameters(tmp_path / "run/demo.yaml", "cpg")
    assert told["file"] == str(tmp_path / "run/best.yaml")


def test_it_says_how_to_go_on_and_what_was_found(experiment, capsys):
    assert cli.main(["learn", experiment, "--trials", "6", "--workers", "1", "--out", "run"]) == 0
    out = capsys.readouterr().out
    assert "6 trials (6 done)" in out
    assert "./cards demo tetrahedral_6 --controller cpg" in out
    assert "report: run/report.html" in out


def test_the_report_is_there_while_trials_are_missing(experiment, capsys, monkeypatch, tmp_path):
    from cards_bringup.progress import BestProgress

    page = tmp_path / "run/report.html"
    seen = []

    def look(self, done, total, best):
        if page.exists():
            seen.append(page.read_text(encoding="utf-8"))

    monkeypatch.setattr(BestProgress, "update", look)
    assert cli.main(["learn", experiment, "--trials", "7", "--workers", "1", "--out", "run"]) == 0
    assert 'http-equiv="refresh" content="20"' in seen[0]
    assert "1 of 7 trials" in seen[0]
    assert f"scores in the browser: {page.as_uri()}" in capsys.readouterr().err
    finished = page.read_text(encoding="utf-8")
    assert "7 of 7 trials" in finished
    assert "refresh" not in finished


def test_a_report_that_cannot_be_drawn_does_not_end_the_run(
    experiment, capsys, monkeypatch, tmp_path
):
    from cards_bringup.learning import report

    monkeypatch.setattr(report, "save", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    code = cli.main(["learn", experiment, "--trials", "6", "--workers", "1", "--out", "run"])
    assert (tmp_path / "run/best.yaml").is_file()
    assert code == 2
    assert "no space" in capsys.readouterr().err


def test_another_algorithm_and_seed(experiment, capsys):
    first = ("--algorithm", "monte_carlo", "--trial", "2")
    found = as_json(capsys, experiment, *first)
    assert found["same"] is None
    assert found["values"] != as_json(capsys, experiment, *first, "--seed", "2")["values"]
    assert found["values"] == as_json(capsys, experiment, *first)["values"]


def test_ctrl_c_leaves_what_can_be_resumed_and_reported(experiment, capsys, monkeypatch, tmp_path):
    from cards_bringup.progress import BestProgress

    def stop(self, done, total, best):
        if done == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(BestProgress, "update", stop)
    arguments = ["learn", experiment, "--workers", "2", "--out", "run"]
    assert cli.main(arguments) == 130
    assert "go on: ./cards learn --resume run" in capsys.readouterr().err
    assert (tmp_path / "run" / JOURNAL).is_file()
    assert cli.main(["learn", "report", "run"]) == 0
    assert "3 of 11 trials" in (tmp_path / "run/report.html").read_text(encoding="utf-8")


def test_a_run_in_which_every_trial_failed_is_none(experiment, capsys, tmp_path):
    (tmp_path / "mine.yaml").write_text(BROKEN, encoding="utf-8")
    found = as_json(capsys, experiment, "--trials", "2", "--workers", "1", "--out", "run", code=1)
    assert found["states"] == {"diverged": 2}
    assert cli.main(["learn", "report", "run"]) == 0  # plots of nothing


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no experiment"),
        (["a", "b"], "several experiments, a, b"),
        (["mine.yaml", "--resume", "run"], "those of the folder"),
        (["nothing"], "tetrahedral_6"),
        (["--resume", "nowhere"], "has no experiment.yaml"),
        (["--resume", "nowhere", "--seed", "2"], "those of the folder"),
        (["--resume", "nowhere", "--algorithm", "cma"], "those of the folder"),
        (["mine.yaml", "--trial", "99"], "0 to 10"),
        (["mine.yaml", "--trial", "9"], "depends on the trials before it"),
        (["mine.yaml", "--trial", "0", "--dask", "local"], "runs one trial here"),
        (["mine.yaml", "--dask", "tcp://127.0.0.1:9"], "no Dask scheduler"),
        (["report"], "report FOLDER"),
        (["report", "nowhere"], "has no experiment.yaml"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(arguments, words, experiment, capsys):
    assert cli.main(["learn", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_unknown_terrains_are_named_with_their_line(experiment, capsys, tmp_path):
    (tmp_path / "mine.yaml").write_text(TEXT.replace("flat:", "sea:"), encoding="utf-8")
    assert cli.main(["learn", experiment]) == 2
    assert "mine.yaml:3: terrains[0]: no terrain named 'sea'" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
