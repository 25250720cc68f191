"""``./cards import`` and ``export``: files, errors and progress."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cards_bringup import cli
from cards_core.formats import load, to_sdf
from cards_core.robot.actuators import Cable


def test_writes_each_format(tmp_path, capsys):
    for kind, mark in (
        ("latex", r"\begin{document}"),
        ("markdown", "# Equations of planar_2r"),
        ("python", "def mass_matrix(q):"),
        ("mjcf", '<general name="cable_1" tendon="cable_1" gear="-1"'),
        ("urdf", '<robot name="planar_2r">'),
        ("sdf", '<model name="planar_2r">'),
    ):
        file = tmp_path / ("arm.xml" if kind == "mjcf" else kind)
        assert cli.main(["export", kind, "planar_2r", "-o", str(file)]) == 0
        assert mark in file.read_text()
        out, err = capsys.readouterr()
        assert out == ""
        assert f"wrote {file}" in err


def test_says_what_the_other_program_cannot_do(capsys):
    assert cli.main(["export", "mjcf", "antagonist_joint"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("<mujoco")
    assert "note: left: 'wheel' as an endless cylinder: the same in 50 poses" in err
    assert cli.main(["export", "urdf", "planar_2r"]) == 0
    assert "note: 4 muscles left out" in capsys.readouterr().err
    assert cli.main(["export", "urdf", "roboy_arm"]) == 0
    err = capsys.readouterr().err
    assert "note: 1 frame left out: URDF has none" in err
    assert "note: home left out: robots in URDF begin at zero" in err
    assert "gravity" not in err
    assert cli.main(["export", "mjcf", "planar_2r", "-o", "nowhere/arm.xml"]) == 2
    assert "cannot write 'nowhere/arm.xml'" in capsys.readouterr().err


def test_says_that_gravity_and_stiffness_are_left_out(tmp_path, capsys):
    robot = load("planar_2r")
    cable = replace(robot.muscles[0], actuator=Cable(stiffness=500.0))
    robot = replace(robot, muscles=(cable, *robot.muscles[1:]), gravity=np.array([1.0, 2.0, -8.0]))
    file = tmp_path / "tilted.sdf"
    file.write_text(to_sdf(robot))
    assert cli.main(["export", "urdf", str(file)]) == 0
    said = "note: gravity 1 2 -8 m/s^2 left out: robots in URDF get 0 0 -9.81"
    assert said in capsys.readouterr().err
    assert cli.main(["export", "mjcf", str(file)]) == 0
    said = f"note: {cable.name}: its elastic cable becomes an ideal source of tension"
    assert said in capsys.readouterr().err


def test_prints_without_a_file(capsys):
    line = ["export", "markdown", "planar_xy", "--quantities", "M", "--parameters", "symbols"]
    assert cli.main([*line, "--simplify", "full", "--time-limit", "60", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert "## Mass matrix" in out
    assert "## Gravity" not in out
    assert "m_{1}" in out
    assert err == ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["antagonist_joint"], "muscle 'right' (and 1 more) wraps over a surface"),
        (["planar_2r", "--limit", "1"], "predicted size"),
        (["planar_2r", "--quantities", "M,Q"], "no quantity named 'Q'"),
        (["no_such_robot"], "no model or file named 'no_such_robot'"),
        (["planar_2r", "--quantities", "M", "-o", "no/such/folder/x"], "cannot write"),
    ],
)
def test_errors_say_what_would_be_right(line, message, capsys):
    assert cli.main(["export", "latex", *line]) == 2
    assert message in capsys.readouterr().err


def test_limit_must_be_positive(capsys):
    assert cli.main(["export", "latex", "planar_2r", "--limit", "0"]) == 2
    assert "argument --limit: '0' (expected: a number > 0)" in capsys.readouterr().err


def test_import_passes_everything_on(monkeypatch):
    import cards_core.formats.caspr.cli as caspr

    seen = []
    monkeypatch.setattr(caspr, "main", lambda rest: seen.append(rest) or 5)
    assert cli.main(["import", "caspr", "some folder", "-o", "out", "--json"]) == 5
    assert cli.main(["import", "caspr", "--help"]) == 5
    assert seen == [["some folder", "-o", "out", "--json"], ["--help"]]


def test_a_folder_for_caspr(tmp_path, capsys):
    line = ["export", "caspr", "planar_2r", "-o", str(tmp_path / "out")]
    assert cli.main(line) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "note: link 'base': 5 kg left out" in err
    assert f"wrote {tmp_path}/out/planar_2r and {tmp_path}/out/planar_2r_list.csv" in err
    assert cli.main(["import", "caspr", str(tmp_path / "out" / "planar_2r"), "--quiet"]) == 0
    capsys.readouterr()
    assert cli.main(line) == 2
    assert "exists already" in capsys.readouterr().err
    assert cli.main([*line, "--force", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_what_caspr_cannot_have_leaves_nothing(tmp_path, capsys):
    assert cli.main(["export", "caspr", "wrap_elbow", "-o", str(tmp_path / "out")]) == 2
    assert "muscle 'biceps': wraps over 'trochlea'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert cli.main(["export", "caspr", "planar_2r"]) == 2
    assert "expected: -o and a folder" in capsys.readouterr().err
