"""Folders of experiments: complete at any moment, and continued where they ended."""

import contextlib
import csv
import json
import shutil

import pytest

from cards_bringup.reproduce import runner
from cards_bringup.reproduce.experiment import Outcome
from cards_bringup.reproduce.runner import Reproduction, asked_in, fingerprint
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode
from cards_core.files import locked


def report_of(folder):
    return json.loads((folder / "report.json").read_text())


def states(folder):
    return {one["key"]: one["state"] for one in report_of(folder)["experiments"]}


def run_states(folder, number=0):
    return {r["name"]: r["state"] for r in report_of(folder)["experiments"][number]["runs"]}


def test_a_folder_of_one_experiment(toy, tmp_path):
    told, said = [], []

    @contextlib.contextmanager
    def progress(title):
        yield lambda share: told.append((title, share))

    folder = tmp_path / "new" / "results"
    found = Reproduction(folder, [toy.experiment()], progress, said.append).run()
    assert toy.made == ["with", "without"]
    assert told == [
        ("900.A with", 0.5),
        ("900.A with", 1.0),
        ("900.A without", 0.5),
        ("900.A without", 1.0),
    ]
    assert said == ["900.A: differs (1 of 2 reproduced, 1 different for a known reason)"]
    assert found == report_of(folder)
    assert found["exit_code"] == ExitCode.DONE
    (one,) = found["experiments"]
    assert one["verdict"] == "differs"
    ratio, load = one["claims"]
    assert (ratio["published"], ratio["ours"], ratio["verdict"]) == (0.5, 0.5, "reproduced")
    assert ratio["accepted"] == pytest.approx([0.45, 0.55])
    assert load["accepted"] == [None, 5.0]
    assert (load["statement"], load["ours"], load["unit"]) == ("hardly any", 10.0, "N")
    assert (load["verdict"], load["reason"]) == ("differs", "our weight is heavier")
    assert one["runs"][0]["setup"]["gains"] == {"k": 1.0, "d": 1.0}
    for name in (*one["tables"], *(plot["file"] for plot in one["plots"]), "report.html"):
        assert (folder / name).stat().st_size > 0
    assert (folder / "900.A/with/log.txt").read_text() == "half"
    rows = list(csv.DictReader((folder / "900.A/loads.csv").open()))
    assert rows == [{"run": "with", "load [N]": "10.0"}, {"run": "without", "load [N]": "20.0"}]
    rows = list(csv.DictReader((folder / "900.A/claims.csv").open()))
    assert [row["verdict"] for row in rows] == ["reproduced", "differs"]
    hidden = [path.name for path in folder.rglob(".*")]
    assert hidden == []


def test_finished_runs_are_kept(toy, tmp_path):
    first = Reproduction(tmp_path, [toy.experiment()]).run()
    second = Reproduction(tmp_path, [toy.experiment()]).run()
    assert toy.made == ["with", "without"]
    assert run_states(tmp_path) == {"with": "kept", "without": "kept"}
    for report in (first, second):
        for run in report["experiments"][0]["runs"]:
            del run["state"]
    assert first == second


def test_a_changed_set_up_is_run_again_and_nothing_else(toy, tmp_path):
    Reproduction(tmp_path, [toy.experiment()]).run()
    (tmp_path / "900.A/with/of_the_old_run").touch()
    runs = dict(toy.experiment().runs)
    runs["with"] = {"name": "with", "gains": {"k": 1.5}}
    Reproduction(tmp_path, [toy.experiment(runs=runs)]).run()
    assert toy.made == ["with", "without", "with"]
    assert run_states(tmp_path) == {"with": "made", "without": "kept"}
    assert not (tmp_path / "900.A/with/of_the_old_run").exists()
    (one,) = report_of(tmp_path)["experiments"]
    assert one["claims"][0]["ours"] == 0.75
    assert one["verdict"] == "not reproduced"
    assert report_of(tmp_path)["exit_code"] == ExitCode.FAILED


def test_verdicts_are_passed_anew_without_running(toy, tmp_path):
    Reproduction(tmp_path, [toy.experiment()]).run()
    claims = toy.experiment().claims[:1]
    found = Reproduction(tmp_path, [toy.experiment(claims=claims)]).run()
    assert len(toy.made) == 2
    assert found["experiments"][0]["verdict"] == "reproduced"


def test_what_lacks_data_is_skipped_and_the_others_run(toy, tmp_path):
    said, lacking = [], ["no <data> here"]
    both = [toy.experiment(missing=lambda: lacking[0]), toy.experiment("B")]
    found = Reproduction(tmp_path, both, say=said.append).run()
    assert toy.made == ["with", "without"]
    assert states(tmp_path) == {"900.A": "skipped", "900.B": "done"}
    assert found["experiments"][0]["error"] == "no <data> here"
    assert found["exit_code"] == ExitCode.DONE
    assert said[0] == "900.A: skipped (no <data> here)"
    assert "no &lt;data&gt; here" in (tmp_path / "report.html").read_text()
    assert "**skipped**: no <data> here" in (tmp_path / "report.md").read_text()
    # once they are there it runs
    lacking[0] = ""
    Reproduction(tmp_path, both).run()
    assert states(tmp_path) == {"900.A": "done", "900.B": "done"}


def test_a_robot_of_free_bodies_has_a_fingerprint(toy):
    """Limits of free joints are infinite, which JSON has no number for."""
    marks = {fingerprint("900.A", "with", {"robot": name}) for name in ("tetraspine", "prism_3")}
    assert len(marks) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", '{"fingerprint": "x"}'])
def test_a_damaged_run_is_made_again(toy, tmp_path, text):
    Reproduction(tmp_path, [toy.experiment()]).run()
    (tmp_path / "900.A/with/run.json").write_text(text)
    Reproduction(tmp_path, [toy.experiment()]).run()
    assert toy.made == ["with", "without", "with"]


def test_an_interrupt_leaves_a_report_to_go_on_with(toy, tmp_path):
    toy.broken["without"] = KeyboardInterrupt()
    both = [toy.experiment(), toy.experiment("B")]
    with pytest.raises(KeyboardInterrupt):
        Reproduction(tmp_path, both).run()
    assert states(tmp_path) == {"900.A": "interrupted", "900.B": "not run"}
    assert run_states(tmp_path) == {"with": "made", "without": "not finished"}
    assert report_of(tmp_path)["exit_code"] == ExitCode.INTERRUPTED
    assert "interrupted" in (tmp_path / "report.html").read_text()
    assert asked_in(tmp_path) == ["900.A", "900.B"]
    toy.broken.clear()
    Reproduction(tmp_path, both).run()
    assert toy.made == ["with", "without", "with", "without"]
    assert states(tmp_path) == {"900.A": "done", "900.B": "done"}


@pytest.mark.parametrize(
    ("error", "message", "traced"),
    [
        (CardsError("no such robot"), "no such robot", False),
        (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero (see 900.A/error.txt)", True),
    ],
)
def test_what_cannot_run_does_not_keep_others_from_it(toy, tmp_path, error, message, traced):
    toy.broken["with"] = error
    other = toy.experiment("B", runs={"with": {"name": "x"}, "without": {"name": "y"}})
    found = Reproduction(tmp_path, [toy.experiment(), other]).run()
    assert states(tmp_path) == {"900.A": "could not run", "900.B": "done"}
    assert found["experiments"][0]["error"] == message
    assert found["exit_code"] == ExitCode.ERROR
    file = tmp_path / "900.A/error.txt"
    assert file.exists() == traced
    if traced:
        assert "ZeroDivisionError" in file.read_text()
    toy.broken.clear()
    Reproduction(tmp_path, [toy.experiment()]).run()
    assert not file.exists()


def test_values_that_are_missing_or_no_numbers(toy, tmp_path):
    one = toy.experiment(evaluate=lambda runs: Outcome({"ratio": 1.0}))
    found = Reproduction(tmp_path / "a", [one]).run()
    assert found["experiments"][0]["error"].startswith("there is no value 'with'")
    one = toy.experiment(evaluate=lambda runs: Outcome({"ratio": float("nan"), "with": 1.0}))
    found = Reproduction(tmp_path / "b", [one]).run()
    claim = found["experiments"][0]["claims"][0]
    assert (claim["ours"], claim["verdict"]) == (None, "not reproduced")


def test_a_folder_has_one_user(toy, tmp_path):
    with (
        locked(tmp_path / runner.LOCK_FILE, ""),
        pytest.raises(CardsError, match="in use by another"),
    ):
        Reproduction(tmp_path, [toy.experiment()]).run()


def test_what_a_fingerprint_depends_on(tmp_path, monkeypatch):
    setup = {"robot": "planar_2r", "gains": [1.0, 2.0]}
    mark = fingerprint("900.A", "run", setup)
    assert mark == fingerprint("900.A", "run", {"gains": [1.0, 2.0], "robot": "planar_2r"})
    others = {
        fingerprint("900.B", "run", setup),
        fingerprint("900.A", "other", setup),
        fingerprint("900.A", "run", {**setup, "gains": [1.0, 2.5]}),
        fingerprint("900.A", "run", {**setup, "robot": "roboy_arm"}),
    }
    monkeypatch.setattr(runner, "__version__", "999.0")
    others.add(fingerprint("900.A", "run", setup))
    assert len(others - {mark}) == 5


def test_a_robot_whose_description_changes_is_another_one(tmp_path):
    file = tmp_path / "arm.sdf"
    shutil.copy(runner.load("planar_2r").source, file)
    setup = {"robot": str(file)}
    mark = fingerprint("900.A", "run", setup)
    file.write_text(file.read_text().replace("<mass>0.1</mass>", "<mass>0.2</mass>"))
    assert fingerprint("900.A", "run", setup) != mark


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_a_set_up_is_data(value):
    with pytest.raises(CardsError, match=r"expected: data for JSON"):
        fingerprint("900.A", "run", {"value": value})


@pytest.mark.parametrize("text", [None, "{", "[]", "{}", '{"experiments": [1]}'])
def test_only_folders_of_reproductions_are_resumed(tmp_path, text):
    if text is not None:
        (tmp_path / "report.json").write_text(text)
    with pytest.raises(CardsError, match=r"--resume .*expected: "):
        asked_in(tmp_path)
