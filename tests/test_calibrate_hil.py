"""``./cards calibrate`` and ``./cards monitor`` in front of firmware, sensors and a robot.

The plant knows the true zero points of its load cells, encoders and joint sensors.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml

from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_hardware.boards.board import Board
from cards_hardware.bridge.hardware import Hardware
from cards_hardware.hil.rig import Rig
from cards_hardware.protocol.enums import ParameterId, State

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)"),
]

ROBOT = "roboy_arm"
ZEROS = (ParameterId.LOAD_ZERO, ParameterId.LENGTH_OFFSET, ParameterId.JOINT_ZERO)


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    with Rig(ROBOT, tmp_path_factory.mktemp("rig"), firmware="host") as running:
        yield running


def read(rig, parameter, count):
    (layout,) = rig.layout.boards
    board = Board.direct(layout.port, layout.baudrate)
    board.open()
    try:
        return np.array([board.get_parameter(parameter, i) for i in range(count)])
    finally:
        board.close()


def forget(rig):
    """Set all zero points to zero, as on a board that was never calibrated."""
    (layout,) = rig.layout.boards
    board = Board.direct(layout.port, layout.baudrate)
    board.open()
    counts = (len(layout.muscles), len(layout.muscles), len(layout.position_rows))
    for parameter, count in zip(ZEROS, counts, strict=True):
        for i in range(count):
            board.set_parameter(parameter, i, 0)
    board.save_parameters()
    board.close()


def monitored(cards, rig):
    done = cards("monitor", ROBOT, "--port", rig.port, "--once", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_calibration_finds_the_true_zero_points_and_keeps_them(rig, cards, tmp_path):
    (layout,) = rig.layout.boards
    m, j = len(layout.muscles), len(layout.position_rows)
    forget(rig)
    robot = load(ROBOT)
    dynamics = make_dynamics(robot)
    home = dynamics.tree.home
    lengths = dynamics.update(home, np.zeros(dynamics.tree.nv)).muscle_lengths[layout.muscle_rows]
    before = monitored(cards, rig)
    measured = np.array([row["length"] for row in before["muscles"]])
    assert np.abs(measured - lengths).max() > 0.01

    out = tmp_path / "report.yaml"
    command = ("calibrate", ROBOT, "--port", rig.port, "--yes", "--json", "--out", str(out))
    done = cards(*command, "--check-seconds", "1")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert list(report["steps"]) == ["tension", "length", "joints", "check"]
    assert len(report["unchecked"]) == m  # nobody moved the arm
    assert not report["saved"]
    assert done.returncode == 1
    assert not read(rig, ParameterId.LENGTH_OFFSET, m).any()

    done = cards(*command, "--steps", "tension,length,joints")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert report["problems"] == []
    assert report["ok"]
    assert done.returncode == 0
    assert report["saved"]
    assert list(report["steps"]) == ["tension", "length", "joints"]
    assert len(report["boards"]["arm"]["uid"]) == 16

    # power on again: what counts is what flash has
    rig.emulators[0].reset()
    _, calibration = rig.units()
    truth = calibration.of(list(layout.muscle_rows), list(layout.position_rows))
    # the mean of 0.3 N of noise over a second is known to a third of a count of 0.05 N
    assert np.abs(read(rig, ParameterId.LOAD_ZERO, m) - truth.load_zero).max() <= 1
    after = monitored(cards, rig)
    assert after["boards"][0]["state"] == State.DISARMED.name
    found = np.array([row["length"] for row in after["muscles"]])
    # encoder counts of 0.35 um, lengths on the wire in 1 um
    assert np.abs(found - lengths).max() <= 2e-6
    angles = np.array([row["position"] for row in after["joints"]])
    assert np.abs(angles - home[layout.position_rows]).max() <= 12e-6  # two counts of 6 urad
    assert all(abs(row["tension"]) < 2.0 for row in after["muscles"])
    assert len(angles) == j


@pytest.mark.usefixtures("hangup")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_calibration_that_is_killed_leaves_no_zero_points_behind(rig, cards, tmp_path, number):
    (layout,) = rig.layout.boards
    m = len(layout.muscles)
    before = [read(rig, parameter, m) for parameter in ZEROS[:2]]
    out = tmp_path / "report.yaml"
    # a pose that is wrong on purpose, killed in the last step
    command = [
        sys.executable,
        "-m",
        "cards_bringup",
        "calibrate",
        ROBOT,
        "--port",
        rig.port,
        "--yes",
        "--check-seconds",
        "60",
    ]
    command += ["--steps", "length,joints,check", "--q", "0.3,0.3,0.3,0.9", "--out", str(out)]
    said = tmp_path / "said.txt"
    with said.open("wb") as to:
        process = subprocess.Popen(
            command,
            env=cards.environment,
            stdout=to,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        end = time.monotonic() + 120.0
        while b"4  Check" not in said.read_bytes():
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < end, said.read_text()
            time.sleep(0.1)
        os.killpg(process.pid, number)
        assert process.wait(30.0) == (-number if number == signal.SIGKILL else 130)
    finally:
        if process.poll() is None:
            process.kill()
    if number != signal.SIGKILL:
        report = yaml.safe_load(out.read_text())
        assert report["aborted"] == "by hand"
        assert not report["saved"]
    # what the bridge does: it connects, loads limits, arms
    hardware = Hardware(load(ROBOT), rig.layout, reconnect=False)
    try:
        hardware.open()
        for parameter, values in zip(ZEROS[:2], before, strict=True):
            found = [hardware.boards[0].get_parameter(parameter, i) for i in range(m)]
            assert found == values.tolist()
        hardware.arm()
        hardware.disarm()
    finally:
        hardware.close()


def test_monitor_shows_every_muscle_and_never_arms(rig, cards):
    seen = monitored(cards, rig)
    assert [row["name"] for row in seen["muscles"]] == list(rig.layout.boards[0].muscles)
    assert all(row["length"] is not None and row["housing"] is not None for row in seen["muscles"])
    (board,) = seen["boards"]
    assert board["connected"]
    assert board["simulated"]
    assert board["state"] == State.DISARMED.name
    assert board["state_rate"] > 100.0
    # a board by itself, without a robot
    done = cards("monitor", "--port", rig.port, "--once", "--json")
    assert done.returncode == 0, done.stderr
    bare = json.loads(done.stdout)
    assert len(bare["muscles"]) == 11
    assert bare["muscles"][0]["name"] == "muscle 0"
    # and as text, narrow and without colours
    text = cards("monitor", ROBOT, "--port", rig.port, "--once").stdout
    for word in ("motor10", "elbow", "DISARMED", "simulated"):
        assert word in text


def test_monitor_says_that_nobody_is_there(cards, tmp_path):
    done = cards("monitor", "--port", str(tmp_path / "nothing"), "--once", "--json")
    assert done.returncode == 2
    assert "does not exist" in json.loads(done.stdout)["error"]["message"]
