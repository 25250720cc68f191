"""``./cards demo --simulator gazebo``: the run folder is that of every simulator."""

import json
import os
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.ros
pytest.importorskip("rclpy", reason="rclpy is not installed")

from cards_bringup import cli  # noqa: E402 (after the skip)
from cards_bringup.nodes.plan import gazebo_problem  # noqa: E402

EMBEDDED = """
import os, shlex, sys
from cards_sim.simulator_node import main
given = shlex.split(os.environ['CARDS_GAZEBO_ROS_ARGS'])
sys.exit(main([*given, '-p', 'model:=planar_2r']))
"""
"""The embedded simulator in place of Gazebo: it takes the same parameters, and ends like it."""


@pytest.fixture
def domain(monkeypatch):
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    monkeypatch.setenv("ROS_DOMAIN_ID", "82")


def demo(capsys, *arguments):
    assert cli.main(["demo", *arguments, "--headless", "--mode", "lockstep", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_run_through_the_process_that_starts_gazebo(fake_gazebo, domain, tmp_path, capsys):
    script = tmp_path / "embedded.py"
    script.write_text(EMBEDDED)
    fake_gazebo.simulate(f"unset PYTHONHOME; exec {sys.executable} {script}")
    run = ("planar_2r", "--duration", "0.3")
    there = demo(capsys, *run, "--simulator", "gazebo", "--out", str(tmp_path / "there"))
    assert "<max_step_size>0.001" in fake_gazebo.seen.read_text()
    here = demo(capsys, *run, "--out", str(tmp_path / "here"))
    assert there["simulator"] == "gazebo"
    assert here["simulator"] == "mujoco"
    assert there["joint_error_rms_rad"] == here["joint_error_rms_rad"]
    assert there.keys() == here.keys()
    assert (tmp_path / "there" / "recording.mcap").is_file()


SOLVER = """
import os, shlex, sys, yaml
from cards_rods.node_parameters import parameters
from cards_rods.rod_solver import main
given = shlex.split(os.environ['CARDS_GAZEBO_ROS_ARGS'])
values = yaml.safe_load(open(given[-1]).read())['/**']['ros__parameters']
known = {one.name for one in parameters()}
own = {name: value for name, value in values.items() if name in known}
open(given[-1], 'w').write(yaml.safe_dump({'/**': {'ros__parameters': own}}))
sys.exit(main([*given, '-p', 'model:=planar_3efr']))
"""
"""The solver in place of Gazebo: it has the same topics, and ends like it."""


def test_rods_through_the_process_that_starts_gazebo(fake_gazebo, domain, tmp_path, capsys):
    script = tmp_path / "solver.py"
    script.write_text(SOLVER)
    fake_gazebo.simulate(f"unset PYTHONHOME; exec {sys.executable} {script}")
    out = tmp_path / "run"
    arguments = ["--simulator", "gazebo", "--headless", "--duration", "2", "--mode"]
    arguments += ["as_fast_as_possible", "--physics-engine", "dartsim", "--json", "--out"]
    code = cli.main(["demo", "planar_3efr", *arguments, str(out)])
    summary = json.loads(capsys.readouterr().out)
    assert code == 0, summary
    assert summary["simulator"] == "gazebo"
    assert summary["verdict"] == "ok"
    assert summary["steps"] > 1
    assert "gz-physics-dartsim-plugin" in fake_gazebo.arguments
    text = fake_gazebo.seen.read_text()
    assert "<real_time_factor>0.0</real_time_factor>" in text
    assert "models/planar_3efr/model.sdf" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--simulator", "mujoco"], "expected: gazebo, or without this option"),
        (["--simulator", "gazebo", "--no-ros"], "without --no-ros"),
        (["--simulator", "gazebo", "--mode", "paced"], "realtime or as_fast_as_possible"),
        (["--world", "table"], "--simulator gazebo beside it"),
        (["--mode", "lockstep"], "quasi-static"),
    ],
)
def test_options_of_rods_that_do_not_go_together(capsys, arguments, message):
    assert cli.main(["demo", "planar_3efr", "--headless", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_gazebo_that_fails_ends_the_run(fake_gazebo, domain, tmp_path, capsys):
    fake_gazebo.simulate("echo 'no such engine' >&2; exit 5")
    arguments = ["demo", "planar_2r", "--headless", "--simulator", "gazebo"]
    assert cli.main([*arguments, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "'simulator' ended with exit code 5" in error
    assert "no such engine" in error


def test_gazebo_that_ends_at_once_is_told_with_what_it_said(fake_gazebo, domain, tmp_path, capsys):
    """As it does where a world includes a model that is nowhere."""
    fake_gazebo.simulate("echo 'Unable to find uri[model://nowhere]' >&2; exit 0")
    arguments = ["demo", "planar_2r", "--headless", "--simulator", "gazebo"]
    assert cli.main([*arguments, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "'simulator' ended with exit code 0" in error
    assert "Unable to find uri[model://nowhere]" in error


def test_without_ros_there_is_no_gazebo(capsys):
    assert cli.main(["demo", "planar_2r", "--no-ros", "--simulator", "gazebo"]) == 2
    assert "expected: mujoco" in capsys.readouterr().err


@pytest.mark.gazebo
@pytest.mark.parametrize(("robot", "error"), [("planar_2r", 2e-3), ("roboy_arm", None)])
def test_real_gazebo(domain, tmp_path, capsys, robot, error):
    if reason := gazebo_problem():
        pytest.skip(f"Gazebo: {reason}")
    summary = demo(
        capsys, robot, "--duration", "2", "--simulator", "gazebo", "--out", str(tmp_path / "run")
    )
    assert summary["simulator"] == "gazebo"
    assert summary["sim_time_s"] == pytest.approx(2.0)
    if error is not None:
        assert summary["joint_error_rms_rad"] < error
    else:
        assert summary["op_error_rms_m"] < 2e-3
    assert not [name for name in os.listdir(tmp_path) if name.startswith("cards-world-")]


@pytest.mark.gazebo
@pytest.mark.parametrize("robot", ["planar_3rfr", "spatial_3pfr"])
def test_rods_in_real_gazebo(domain, tmp_path, capsys, robot):
    if reason := gazebo_problem():
        pytest.skip(f"Gazebo: {reason}")
    arguments = ["demo", robot, "--headless", "--duration", "5", "--simulator", "gazebo"]
    arguments += ["--mode", "as_fast_as_possible", "--json", "--out", str(tmp_path / "run")]
    assert cli.main(arguments) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["simulator"] == "gazebo"
    assert summary["time_s"] == pytest.approx(5.0, abs=0.01)
    assert summary["held_steps"] == 0


@pytest.mark.gazebo
def test_muscle_lengths_are_held_in_gazebo_as_in_the_embedded_simulator(domain, tmp_path, capsys):
    """The impedance law and relaxation, while the arms move and rest: nearly the same tensions."""
    if reason := gazebo_problem():
        pytest.skip(f"Gazebo: {reason}")
    norms, temperatures = {}, {}
    for simulator in ("mujoco", "gazebo"):
        folder = tmp_path / simulator
        arguments = ("--duration", "3", "--simulator", simulator, "--out", str(folder))
        demo(capsys, "musashi_like", *arguments)
        with np.load(folder / "simulator.npz") as log:
            rows = np.searchsorted(log["time"], [0.5, 1.0, 1.9, 2.9])
            norms[simulator] = np.linalg.norm(log["tensions"][rows], axis=1)
            columns = [name.endswith("winding_temperature") for name in log["actuator_names"]]
            temperatures[simulator] = log["actuators"][rows][:, columns]
    np.testing.assert_allclose(norms["gazebo"], norms["mujoco"], rtol=0.02)
    np.testing.assert_allclose(temperatures["gazebo"], temperatures["mujoco"], atol=0.1)
    assert temperatures["gazebo"][-1].max() > 25.3
