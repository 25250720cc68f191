"""``./cards fit-muscles``: exit codes, files, Ctrl-C and going on, refusals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cards_bringup import cli
from cards_core.analysis.muscle_fit.fit import MuscleFit
from cards_core.formats import load
from cards_core.formats.locate import find_model

SPECIFICATION = """\
format: muscle_fit/1
poses: {grid: {joint_1: [-0.8, 0.8, 3], joint_2: [-0.8, 0.8, 3]}}
points:
  - {muscle: all, box: [0.3, 0, 0.3]}
closure: {margin: %s}
torques:
  - {joint: joint_2, range: [-2, 2]}
moment_arms:
  - {muscle: cable_1, joint: joint_1, at: [-0.5, 0, 0.5], values: 0.35, tolerance: 0.2}
"""

FILES = {
    "closure.png",
    "model.config",
    "model.sdf",
    "moment_arms.png",
    "report.json",
    "report.md",
    "specification.yaml",
    "torques.png",
}


@pytest.fixture
def task(tmp_path):
    """A specification that can be met."""
    file = tmp_path / "fit.yaml"
    file.write_text(SPECIFICATION % 0.01, encoding="utf-8")
    return file


def run(*words):
    return cli.main(["fit-muscles", *map(str, words)])


def names(folder):
    return {item.name for item in folder.iterdir()}


def test_a_fit_writes_robot_report_and_plots(task, tmp_path, capsys):
    out = tmp_path / "out"
    source = Path(find_model("planar_2r"))
    before = source.read_bytes()
    assert run("planar_2r", task, "-o", out, "--json", "--quiet") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["met"]
    assert found["not_met"] == []
    assert names(out) == FILES
    assert source.read_bytes() == before
    robot = load(out)
    moved = {(item["muscle"], item["point"]): item["after"] for item in found["moved"]}
    for muscle in robot.muscles:
        for k, point in enumerate(muscle.via_points, 1):
            assert moved.get((muscle.name, k), point.position.tolist()) == point.position.tolist()
    assert moved
    lines = zip(before.splitlines(), (out / "model.sdf").read_bytes().splitlines(), strict=True)
    assert all(b"<via_point" in a for a, b in lines if a != b)
    report = (out / "report.md").read_text()
    assert "All goals are met." in report
    assert json.loads((out / "report.json").read_text())["goals"] == found["goals"]


def test_what_is_not_met_ends_with_1_and_words(task, tmp_path, capsys):
    task.write_text(SPECIFICATION % 5, encoding="utf-8")
    out = tmp_path / "out"
    words = ("planar_2r", task, "-o", out, "--starts", "2", "--iterations", "5", "--quiet")
    assert run(*words) == 1
    text = capsys.readouterr().out
    assert "not met: force closure: missed by up to" in text
    assert "wanted 5 m, nearest" in text
    assert names(out) == FILES


def test_ctrl_c_keeps_the_best_and_the_fit_goes_on(task, tmp_path, capsys, monkeypatch):
    task.write_text(SPECIFICATION % 0.08, encoding="utf-8")
    words = ("--starts", "3", "--iterations", "6", "--quiet")
    whole, out = tmp_path / "whole", tmp_path / "out"
    code = run("planar_2r", task, "-o", whole, *words)
    real = MuscleFit.run

    def interrupted(self, progress=None):
        count = iter(range(8))

        def told(now):
            progress(now)
            if next(count, None) is None:
                raise KeyboardInterrupt

        return real(self, told)

    monkeypatch.setattr(MuscleFit, "run", interrupted)
    shutil.copytree(Path(find_model("planar_2r")).parent, tmp_path / "robot")
    monkeypatch.chdir(tmp_path)
    assert run("robot/model.sdf", task, "-o", out, *words) == 130
    monkeypatch.chdir("/")  # it goes on from anywhere
    assert f"go on: ./cards fit-muscles --resume {out}" in capsys.readouterr().err
    assert names(out) == {"state.json", "specification.yaml"}
    assert run("planar_2r", task, "-o", out, *words) == 2
    assert "has an unfinished fit (expected: --resume" in capsys.readouterr().err
    monkeypatch.setattr(MuscleFit, "run", real)
    task.unlink()  # the folder knows it
    assert run("--resume", out, "--quiet") == code
    assert names(out) == FILES
    assert (out / "model.sdf").read_bytes() == (whole / "model.sdf").read_bytes()
    assert run("--resume", out, "--quiet") == 2
    assert "has a finished fit" in capsys.readouterr().err


def test_meshes_beside_the_robot_come_with_it(task, tmp_path, monkeypatch):
    robot = tmp_path / "robot"
    shutil.copytree(Path(find_model("planar_2r")).parent, robot)
    (robot / "meshes").mkdir()
    (robot / "meshes/part.stl").write_text("solid part\nendsolid part\n")
    text = (robot / "model.sdf").read_text()
    shape = (
        "<visual name='m'><geometry><mesh><uri>meshes/part.stl</uri></mesh></geometry></visual>"
    )
    (robot / "model.sdf").write_text(text.replace("</link>", f"{shape}</link>", 1))
    monkeypatch.chdir(tmp_path)
    words = ("robot/model.sdf", task, "-o", "out", "--starts", "1", "--iterations", "1")
    assert run(*words, "--quiet") in (0, 1)
    assert (tmp_path / "out/meshes/part.stl").read_bytes() == (
        robot / "meshes/part.stl"
    ).read_bytes()
    (drawn,) = [v for v in load("out").links[0].visuals if v.name == "m"]
    assert drawn.geometry.uri == str(tmp_path / "out/meshes/part.stl")


def test_an_earlier_result_is_replaced_only_if_told(task, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    words = ("planar_2r", task, "-o", out, "--starts", "1", "--iterations", "1", "--quiet")
    assert run(*words) == 2
    assert "is not empty (expected: a new folder, or --force)" in capsys.readouterr().err
    assert names(out) == {"mine.txt"}
    assert run(*words, "--force") in (0, 1)
    assert names(out) == FILES | {"mine.txt"}


def test_the_robots_own_folder_is_not_written_to(task, tmp_path, capsys):
    own = tmp_path / "own"
    shutil.copytree(Path(find_model("planar_2r")).parent, own)
    before = {item.name: item.read_bytes() for item in own.iterdir()}
    words = (own, task, "-o", own, "--force", "--starts", "1", "--quiet")
    assert run(*words) == 2
    assert "has the robot's own file" in capsys.readouterr().err
    assert {item.name: item.read_bytes() for item in own.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no robot (expected: ./cards fit-muscles ROBOT SPEC.yaml"),
        (("planar_2r",), "no specification"),
        (("planar_2r", "missing.yaml"), "missing.yaml"),
        (("planar_9r", "missing.yaml"), "no model or file named 'planar_9r'"),
        (("stewart_gough", "missing.yaml"), "is a robot of rods (expected: a robot with muscles)"),
        (("planar_2r", "--resume", "folder"), "--resume with a robot"),
        (("--resume", "folder", "--seed", "1"), "--resume with --seed"),
        (("--resume", "folder"), "'folder' has no unfinished fit"),
        (("planar_2r", "x.yaml", "-o", "a", "--resume", "b"), "not allowed with argument"),
        (("planar_2r", "x.yaml", "--starts", "0"), "a whole number >= 1"),
    ],
)
def test_mistakes_leave_nothing(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*words, "--json") == 2
    out, err = capsys.readouterr()
    assert message in err
    assert message in json.loads(out)["error"]["message"]
    assert list(tmp_path.iterdir()) == []
