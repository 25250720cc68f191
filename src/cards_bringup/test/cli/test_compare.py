"""``./cards compare`` and ``./cards show``: real runs, tables, JSON, files, errors."""

import json

import pytest

from cards_bringup.cli import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of one robot and one of another."""
    folder = tmp_path_factory.mktemp("runs")
    short = ["--headless", "--no-ros", "--mode", "lockstep", "--duration", "0.3", "--json"]
    heavy = ["--controller-model", "mass_factor=1.5"]
    for name, words in (
        ("a", ["planar_2r", *short]),
        ("b", ["planar_2r", *short, *heavy]),
        ("other", ["wrap_elbow", *short, "--controller", "none"]),
    ):
        main(["demo", *words, "--out", str(folder / name)])
    return folder


def test_tables_files_and_json(runs, tmp_path, capsys):
    capsys.readouterr()
    a, b = str(runs / "a"), str(runs / "b")
    assert main(["compare", a, b, "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("planar_2r: A a (")
    assert "norm of tensions" in out
    assert str(tmp_path / "out" / "comparison.html") in out
    assert (tmp_path / "out" / "overview.png").stat().st_size > 1000
    assert main(["compare", a, b, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    (row,) = [r for r in result["differences"] if r["quantity"] == "norm of tensions"]
    # a model with half as much mass again: other tensions in the same robot
    assert row["rms_difference"] > 0.1
    assert main(["compare", a, a, "--json"]) == 0
    same = json.loads(capsys.readouterr().out)["differences"]
    assert {row["max_difference"] for row in same} == {0.0}


@pytest.mark.parametrize("command", ["compare", "show"])
def test_runs_of_different_robots(runs, capsys, command):
    assert main([command, str(runs / "a"), str(runs / "other")]) == 2
    text = capsys.readouterr().err
    assert "a is a run of planar_2r, other one of wrap_elbow" in text
    assert "expected: two runs of one robot" in text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["compare", "nowhere", "nowhere"], "no such folder"),
        (["show", "no_such_robot"], "no_such_robot"),
        (["show", "."], "no run folder"),
    ],
)
def test_what_is_no_run(tmp_path, monkeypatch, capsys, words, text):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert text in capsys.readouterr().err
