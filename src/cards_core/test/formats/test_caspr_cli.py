"""The command line of the importer."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from caspr_samples import PENDULUM, minimal

from cards_core.formats import load
from cards_core.formats.caspr.cli import main


@pytest.fixture
def folder(tmp_path):
    return str(minimal(tmp_path / "in"))


def test_check_only(folder, tmp_path, capsys):
    assert main([folder]) == 0
    out = capsys.readouterr().out
    assert "robot: 1 links, 1 coordinates, 2 muscles" in out
    assert "nothing written" in out
    assert [item.name for item in tmp_path.iterdir()] == ["in"]


def test_write(folder, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main([folder, "-o", out]) == 0
    assert load(tmp_path / "out" / "robot").name == "robot"
    assert main([folder, "-o", out]) == 2
    assert "--force" in capsys.readouterr().err
    assert main([folder, "-o", out, "--force", "--quiet"]) == 0


def test_json(folder, tmp_path, capsys):
    assert main([folder, "-o", str(tmp_path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["name"] == "robot"
    assert data["output"] == str(tmp_path / "robot")


def test_error_names_the_place(tmp_path, capsys):
    broken = minimal(tmp_path, bodies=PENDULUM.replace("<mass>2", "<mass>heavy"))
    assert main([str(broken)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert "robot_bodies.xml:8" in captured.err
    assert "Traceback" not in captured.err
    assert main([str(broken), "--json"]) == 2
    assert "'heavy' is not a number" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_list(tmp_path, capsys):
    minimal(tmp_path / "a" / "arm")
    (tmp_path / "a_list.csv").write_text("Gone,/gone/,g_bodies.xml,g_cables.xml,,\n")
    assert main([str(tmp_path), "--list"]) == 0
    out = capsys.readouterr().out
    assert "1 robots, 1 named in a list without their files" in out
    assert "no such folder" in out
    assert main([str(tmp_path), "--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["folder"] is None for row in rows] == [True, False]


def test_cable_set_and_model(folder, capsys):
    assert main([folder, "--cable-set", "nope"]) == 2
    assert "Known: main" in capsys.readouterr().err
    assert main([folder, "--model", "nope"]) == 2
    assert "Known: robot" in capsys.readouterr().err
    assert main([folder, "--cable-set", "main", "--model", "robot", "--samples", "0"]) == 0


@pytest.mark.parametrize(
    "arguments", [[], ["--samples", "x", "f"], ["--samples", "1", "f"], ["-x"], ["-o", "", "f"]]
)
def test_wrong_usage(arguments):
    with pytest.raises(SystemExit) as info:
        main(arguments)
    assert info.value.code == 2


def test_help(capsys):
    with pytest.raises(SystemExit) as info:
        main(["--help"])
    assert info.value.code == 0
    text = capsys.readouterr().out
    assert "./cards import caspr" in text
    assert "--cable-set" in text


def test_as_a_program(folder):
    program = "import sys; from cards_core.formats.caspr.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, folder]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "nothing written" in done.stdout
