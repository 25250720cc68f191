"""No command writes over a file that is there, unless it is told to."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from cards_bringup import cli

STRUCTURE = Path(__file__).resolve().parents[4] / "models" / "tetrahedral_6" / "structure.yaml"

COMMANDS = {
    "sdf": (["export", "sdf", "planar_2r", "-o", "arm.sdf"], "arm.sdf"),
    "urdf": (["export", "urdf", "planar_2r", "-o", "arm.urdf"], "arm.urdf"),
    "markdown": (["export", "markdown", "planar_2r", "--quantities", "M", "-o", "m.md"], "m.md"),
    "caspr": (
        ["export", "caspr", "planar_2r", "-o", "out"], "out/planar_2r/planar_2r_bodies.xml",
    ),
    "layout": (["layout", "planar_2r", "-o", "out"], "out/planar_2r.foxglove.json"),
    "build": (["build", str(STRUCTURE), "-o", "out"], "out/model.sdf"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_is_replaced_only_if_told(name, tmp_path, monkeypatch, capsys):
    line, written = COMMANDS[name]
    monkeypatch.chdir(tmp_path)
    file = Path(written)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")
    assert cli.main(line) == 2
    message = capsys.readouterr().err
    assert f"{file} exists already (expected: another name, or --force)" in message
    assert [path for path in Path().rglob("*") if path.is_file()] == [file]
    assert file.read_text() == "mine"
    assert cli.main([*line, "--force"]) == 0
    assert file.read_text() != "mine"


@pytest.mark.parametrize(
    "line",
    [
        ["export", "sdf", "planar_2r", "-o"],
        ["export", "latex", "planar_2r", "-o"],
        ["video", "no_run", "-o"],
        ["edit", "planar_2r", "-o"],
    ],
)
def test_files_and_folders_are_refused_before_any_work(line, tmp_path, capsys):
    file = tmp_path / "mine"
    file.write_text("mine")
    assert cli.main([*line, str(file)]) == 2
    assert "mine exists already" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert cli.main([*line, str(tmp_path), "--force"]) == 2
    assert "is a folder (expected: the name of a file)" in capsys.readouterr().err


def test_a_device_is_written_to(capfd):
    assert cli.main(["export", "sdf", "planar_2r", "-o", "/dev/stdout", "--quiet"]) == 0
    assert "<sdf" in capfd.readouterr().out


def test_every_command_with_an_output_has_force():
    with_output, without_force = set(), set()
    for name, (module, _) in cli.COMMANDS.items():
        if module is None:
            continue
        (subparsers,) = [
            action
            for action in cli.make_parser(name)._actions
            if isinstance(action, argparse._SubParsersAction)
        ]
        for parser in subparsers.choices.values():
            options = {text for action in parser._actions for text in action.option_strings}
            if "-o" in options:
                with_output.add(name)
            if "-o" in options and "--force" not in options:
                without_force.add(name)
    assert with_output >= {"export", "edit", "video", "layout", "build", "fit-muscles"}
    # a new robot and a campaign replace nothing; a site replaces an older site, and nothing else
    assert without_force == {"new", "docs", "soak"}
