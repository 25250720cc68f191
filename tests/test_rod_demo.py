"""``./cards demo`` of robots of rods."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from cards_bringup.cli import main

pytestmark = pytest.mark.serial

PLOTS = ("plate", "joints", "stability", "step_time", "shapes")

needs_ros = pytest.mark.skipif(find_spec("rclpy") is None, reason="rclpy is not installed")


def check(summary, folder, robot):
    assert summary == json.loads((folder / "summary.json").read_text())
    assert summary["robot"] == robot
    assert summary["held_steps"] == 0
    assert summary["residual_max"] <= 1e-6
    assert summary["position_error_max_m"] < 0.005  # one step behind a command, at most
    assert 0.0 < summary["margin_min"] <= 1.0 + 1e-9
    assert {path.stem for path in folder.glob("*.png")} == set(PLOTS)
    with np.load(folder / "rod_solver.npz") as log:
        for name in log.files:
            if name not in ("joint_names", "position_error", "rotation_error"):
                assert np.isfinite(log[name]).all(), name


def test_without_ros_the_motion_is_the_same_every_time(tmp_path, capsys):
    from cards_core.rods.robots.reader import read_rod_robot
    from cards_rods.rod_simulation import RodSimulation

    command = ["demo", "planar_3rfr", "--headless", "--no-ros", "--duration", "1.5", "--json"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    summary = json.loads(capsys.readouterr().out)
    check(summary, tmp_path / "run", "planar_3rfr")
    assert summary["steps"] == 301
    assert summary["position_error_max_m"] < 1e-6
    simulation = RodSimulation(read_rod_robot("planar_3rfr"), motion_duration=1.5)
    simulation.play(True)
    with np.load(tmp_path / "run" / "rod_solver.npz") as log:
        for time, q, pose in zip(log["time"], log["q"], log["pose"], strict=True):
            simulation.step(float(time))
            np.testing.assert_array_equal(simulation.solution.q, q)
            np.testing.assert_array_equal(simulation.solution.pose.ravel(), pose)


@pytest.mark.ros
@needs_ros
def test_with_ros_the_node_goes_through_the_motion_and_leaves_a_folder(tmp_path):
    out = tmp_path / "run"
    command = ["demo", "stewart_gough", "--headless", "--duration", "2", "--json"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "cards_bringup", *command, "--out", str(out)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    check(summary, out, "stewart_gough")
    assert summary["transport"] == "ROS topics"
    assert summary["time_s"] == pytest.approx(2.0, abs=0.2)
    assert "stewart_gough: 6 limbs" in (out / "logs" / "rod_solver.log").read_text()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--mode", "lockstep"], "no simulated time"),
        (["--controller", "ctc_joint"], "--controller is for robots with muscles"),
        (["--hil"], "--hil is for robots with muscles"),
        (["--duration", "-1"], "expected: a finite number >= 0"),
        (
            ["--simulator", "mujoco"],
            "--simulator mujoco: stewart_gough has rods, which MuJoCo does not solve",
        ),
        (["--simulator", "gazebo"], "simulator:=gazebo"),
    ],
)
def test_options_of_muscles_are_refused(options, text, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["demo", "stewart_gough", *options, "--out", str(out)]) == 2
    assert text in capsys.readouterr().err
    assert not out.exists()


def test_a_folder_with_a_run_in_it_is_left_alone(tmp_path, capsys):
    (tmp_path / "rod_solver.npz").touch()
    assert main(["demo", "planar_3rfr", "--headless", "--no-ros", "--out", str(tmp_path)]) == 2
    assert "holds a run already" in capsys.readouterr().err
