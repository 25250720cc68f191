"""``./cards export controller``: files, report, refusals."""

from __future__ import annotations

import json

import pytest

from cards_bringup import cli


@pytest.mark.parametrize("options", [[], ["--controller", "ctc_joint", "--precision", "single"]])
def test_writes_a_library_and_reports(tmp_path, capsys, options):
    folder = tmp_path / "control"
    line = ["export", "controller", "planar_2r", "-o", str(folder), "--json", *options]
    assert cli.main(line) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert sorted(file.name for file in folder.iterdir()) == report["files"]
    assert report["controller"] == (options[1] if options else "ctc_operational")
    assert report["precision"] == (options[3] if options else "double")
    assert report["muscles"] == 4
    assert set(report["stm32f405"]) in ({"not_measured"}, {"flash", "ram", "stack", "fits"})
    assert f"wrote {folder} (" in err
    assert "STM32F405" in err
    first = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert cli.main(line) == 2
    assert "exists already (expected: another folder, or --force)" in capsys.readouterr().err
    assert cli.main([*line, "--force", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert first == {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["planar_2r"], "several files (expected: -o and a folder)"),
        (["planar_2r", "-o", "x", "--controller", "mrc"], "has no stiffness to be held by"),
        (
            ["tetraspine", "-o", "x", "--controller", "mrc"],
            "ball joints or free links, which the C form of controller 'mrc' does not know",
        ),
        (["planar_2r", "-o", "x", "--controller", "ctc"], "ctc_joint"),
        (["wrap_elbow", "-o", "x"], "has muscles that take no tension"),
        (["planar_2r", "-o", "x", "--params-file", "none.yaml"], "none.yaml"),
        (["nobody", "-o", "x"], "nobody"),
    ],
)
def test_refusals_name_what_would_be_right(tmp_path, monkeypatch, capsys, options, reason):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["export", "controller", *options]) == 2
    assert reason in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_options_of_controllers_are_refused_elsewhere(capsys):
    assert cli.main(["export", "sdf", "planar_2r", "--precision", "single"]) == 2
    assert "--precision with 'sdf' (expected: with 'controller' only)" in capsys.readouterr().err
