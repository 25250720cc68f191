"""``./cards new``."""

import json

import pytest

from cards_bringup.cli import main

FILES = {"README.md", "model.config", "model.sdf", "parameters.yaml", "trajectories.yaml"}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_new_robot_moves_at_once(here, capsys):
    assert main(["new", "my_robot"]) == 0
    said = capsys.readouterr().out
    assert "./cards demo my_robot" in said
    assert "README.md" in said
    assert {file.name for file in (here / "my_robot").iterdir()} == FILES
    for file in (here / "my_robot").iterdir():
        assert "NAME" not in file.read_text()
    command = ["demo", "my_robot", "--headless", "--no-ros", "--mode", "as_fast_as_possible"]
    assert main([*command, "--out", "run", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["robot"] == "my_robot"
    assert summary["verdict"] == "ok"
    assert summary["sim_time_s"] == pytest.approx(6.0)  # all of its trajectory
    assert summary["joint_error_max_rad"] < 1e-3
    assert main(["check", "my_robot", "--samples", "20", "--quiet"]) == 0


def test_it_goes_where_it_is_asked_to(here, capsys):
    assert main(["new", "crane", "-o", "robots/mine"]) == 0
    assert "./cards demo robots/mine/crane" in capsys.readouterr().out
    assert (here / "robots" / "mine" / "crane" / "model.sdf").is_file()


def test_nothing_is_overwritten(here, capsys):
    folder = here / "my_robot"
    folder.mkdir()
    assert main(["new", "my_robot"]) == 2
    assert "nothing is overwritten" in capsys.readouterr().err
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("roboy_arm", "there is a robot"),
        ("a/b", "not a valid robot name"),
        ("2r", "not a valid robot name"),
        ("..", "not a valid robot name"),
    ],
)
def test_names_that_are_none_are_refused(here, capsys, name, words):
    assert main(["new", name]) == 2
    assert words in capsys.readouterr().err
    assert not list(here.iterdir())
