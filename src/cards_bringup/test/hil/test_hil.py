"""Hardware in the loop without running it: options, logs into one time, statistics."""

from __future__ import annotations

import argparse
import json
import types

import numpy as np
import pytest

from cards_bringup.bootstrap.process import ended_by_signals
from cards_bringup.hil import options, results
from cards_bringup.hil.run import BridgeStatus, DiagnosticsListener
from cards_bringup.nodes.plan import make_plan
from cards_core.errors import CardsError
from cards_hardware.protocol.enums import State

pytestmark = pytest.mark.serial

ROBOT = "planar_2r"
START = 1_790_000_000.0  # [s], of the wall clock


def here(*tools):
    return lambda tool: f"/usr/bin/{tool}" if tool in tools else None


QEMU = ("arm-none-eabi-gcc", "qemu-system-arm", "make")


@pytest.mark.parametrize(
    ("tools", "wanted", "chosen", "notes"),
    [
        ((*QEMU, "gcc"), None, "stm32f405", 0),
        (("gcc", "make"), None, "host", 1),
        ((*QEMU, "gcc"), "host", "host", 0),
        (QEMU, "stm32f405", "stm32f405", 0),
    ],
)
def test_the_flashed_binary_is_preferred(monkeypatch, tools, wanted, chosen, notes):
    monkeypatch.setattr(options.shutil, "which", here(*tools))
    said = []
    assert options.choose_firmware(wanted, said.append) == chosen
    assert len(said) == notes
    assert all("arm-none-eabi-gcc" in text for text in said)


@pytest.mark.parametrize(
    ("tools", "wanted", "message"),
    [
        (("gcc", "make"), "stm32f405", "arm-none-eabi-gcc, qemu-system-arm"),
        (("make",), "host", "--firmware host needs gcc"),
        ((), None, "--hil needs a compiler"),
    ],
)
def test_missing_tools_are_named_with_their_packages(monkeypatch, tools, wanted, message):
    monkeypatch.setattr(options.shutil, "which", here(*tools))
    with pytest.raises(CardsError, match=message) as caught:
        options.choose_firmware(wanted, lambda _note: None)
    assert "expected: " in str(caught.value)


@pytest.mark.parametrize("module", ["rclpy", "serial"])
def test_missing_packages_are_named(monkeypatch, module):
    find = options.importlib.util.find_spec
    monkeypatch.setattr(
        options.importlib.util, "find_spec", lambda name: None if name == module else find(name)
    )
    args = argparse.Namespace(
        hil=True, firmware=None, simulator="mujoco", mode="realtime", world=None, no_ros=False,
        controller=None, boards=None, terrain=None,
    )  # fmt: skip
    with pytest.raises(CardsError, match=f"--hil needs {'py' * (module == 'serial')}{module}"):
        options.firmware(args, lambda _note: None)


# Logs -------------------------------------------------------------------------------------------


def plant_logs(folder, seconds=2.0):
    """A plant that runs 1 % slow, and a controller that saw it 1 mrad off."""
    time = 1e-3 * np.arange(1, round(seconds * 1e3))
    wall = START + 1.01 * time
    q = np.column_stack([np.sin(time), np.cos(time)])
    qd = np.column_stack([np.cos(time), -np.sin(time)])
    zero = np.zeros((len(time), 4))
    np.savez(
        folder / "simulator.npz", time=time, q=q, qd=qd, muscle_lengths=zero, muscle_rates=zero,
        tensions=zero + 20.0, actuators=np.zeros((len(time), 0)), actuator_names=np.array([], str),
    )  # fmt: skip
    latency = np.full(len(time), np.nan)
    latency[::2] = 1e-3
    source = np.repeat(np.arange(1.0, len(time) // 2 + 2), 2)[: len(time)]
    np.savez(
        folder / "hil.npz", time=time, monotonic=wall - START, wall=wall, device=time,
        source=source, enabled=np.ones(len(time)), latency=latency,
    )  # fmt: skip
    stamps = START + np.arange(-0.1, 1.01 * seconds + 0.1, 2e-3)
    true_time = (stamps - START) / 1.01
    actual = np.column_stack([np.sin(true_time), np.cos(true_time)]) + 1e-3
    desired = actual + np.array([2e-3, -1e-3])
    rows = len(stamps)
    np.savez(
        folder / "controller.npz", time=stamps, desired=desired, desired_dot=desired,
        actual=actual, error=desired - actual, tensions=np.zeros((rows, 4)),
        status=np.zeros(rows), residual=np.zeros(rows), loop_us=np.full(rows, 50.0),
        missed_deadlines=np.zeros(rows), reference_names=np.array(["joint_1", "joint_2"]),
    )  # fmt: skip
    np.savez(
        folder / "hardware.npz", time=stamps[::2], age=np.full(len(stamps[::2]), 3e-3),
        active=np.ones(len(stamps[::2])), board_state=np.full(len(stamps[::2]), State.ACTIVE),
    )  # fmt: skip


@pytest.fixture
def plan():
    given = {"sim": "false", "port": "/dev/null", "rviz": "false", "headless": "true"}
    return make_plan(given, ROBOT)


def test_the_error_is_that_of_the_truth_in_the_plant_s_time(tmp_path, plan):
    plant_logs(tmp_path)
    found = results.align(tmp_path, plan, {})
    log = np.load(tmp_path / "controller.npz")
    assert found.rows == len(log["time"])
    assert 950 < found.rows <= 1010
    assert log["time"] == pytest.approx((log["stamp"] - START) / 1.01, abs=1e-6)
    assert log["actual"][:, 0] == pytest.approx(np.sin(log["time"]), abs=1e-6)
    assert log["measured"] - log["actual"] == pytest.approx(
        1e-3 * np.ones_like(log["actual"]), abs=1e-6
    )
    assert log["error"][:, 0] == pytest.approx(3e-3 * np.ones(found.rows), abs=1e-6)
    assert log["error"][:, 1] == pytest.approx(np.zeros(found.rows), abs=1e-6)
    assert found.measured_rms == pytest.approx(np.hypot(2e-3, 1e-3))
    assert log["reference_names"].tolist() == ["joint_1", "joint_2"]


def board_states(folder, **states):
    """Let boards be in other states: name of the state to the first and last row."""
    with np.load(folder / "hardware.npz") as log:
        arrays = dict(log)
    for name, (first, last) in states.items():
        arrays["board_state"][first:last] = State[name]
    np.savez(folder / "hardware.npz", **arrays)


@pytest.mark.parametrize(
    ("states", "stopped", "failures", "warnings"),
    [
        ({}, False, [], []),
        ({"HOLD": (100, 102)}, False, [], ["a board waited for a command in 0.40%"]),
        ({"RELAX": (100, 150)}, False, ["a board let its muscles go at t = 0."], []),
        ({"ESTOP": (400, None)}, False, ["(ESTOP)"], []),
        # at the end of a run that the user ends the boards relax as they should
        ({"RELAX": (400, None)}, True, [], []),
        ({"FAULT": (100, 150)}, True, ["(FAULT)"], []),
    ],
)
def test_what_boards_did_is_part_of_the_verdict(tmp_path, states, stopped, failures, warnings):
    plant_logs(tmp_path)
    board_states(tmp_path, **states)
    hil = {"muscles_out": {}, "speed": 0.99, "refused": {}}
    found = results.findings(tmp_path, hil, stopped=stopped)
    for texts, parts in ((found["failures"], failures), (found["warnings"], warnings)):
        assert len(texts) == len(parts)
        assert all(part in text for part, text in zip(parts, texts, strict=True))


def test_muscles_taken_out_and_a_slow_machine_are_part_of_the_verdict(tmp_path):
    plant_logs(tmp_path)
    hil = {"muscles_out": {"triceps": "slack"}, "speed": 0.9, "refused": {"stale": 3}}
    found = results.findings(tmp_path, hil, stopped=False)
    assert found["failures"] == ["muscle triceps was taken out by its board: slack"]
    assert found["warnings"] == [
        "slower than real time: 0.9 times",
        "3 frames were refused by boards",
    ]


def test_extras_count_and_measure(tmp_path, plan):
    plant_logs(tmp_path)
    alignment = results.align(tmp_path, plan, {})
    values = {
        "crc_errors": "2",
        "lost_frames": "1",
        "rx_ok": "700",
        "refused_stale": "3",
        "refused_range": "1",
        "tick_late": "4",
        "tick_max_us": "1700.5",
        "state": "ACTIVE",
        "muscle biceps": "rate limited",
        "muscle triceps": "slack, relaxed",
    }
    said = {"board arm": BridgeStatus(0, "ok", values), "loop": BridgeStatus()}
    status = {"wall_s": 4.0, "cpu_s": 0.6, "ticks": 2000, "ticks_skipped": 1}
    found = results.extras(tmp_path, "host", status, said, alignment)
    json.dumps(found)
    assert found["state_rate_hz"] == pytest.approx(250.0, abs=0.5)
    assert found["command_to_tension_ms"]["p99"] == pytest.approx(1.0)
    assert found["commands"] == 1000
    assert found["refused"] == {"stale": 3, "range": 1}
    assert (found["crc_errors"], found["lost_frames"], found["frames"]) == (2, 1, 700)
    assert found["tick_max_us"] == pytest.approx(1700.5)
    assert found["plant_load"] == pytest.approx(0.15)
    assert found["speed"] == pytest.approx(1 / 1.01, abs=1e-4)
    text = "\n".join(results.lines(found))
    assert "command to tension, 99 %" in text
    assert found["muscles_out"] == {"triceps": "slack, relaxed"}
    assert "muscle triceps was taken out by its board: slack, relaxed" in text
    assert "biceps" not in text
    results.plot(tmp_path)
    assert (tmp_path / "latency.png").stat().st_size > 10_000


def test_a_run_without_a_command_is_told(tmp_path, plan):
    plant_logs(tmp_path, seconds=0.002)
    with pytest.raises(CardsError, match="no command reached the drives"):
        results.align(tmp_path, plan, {})
    (tmp_path / "hil.npz").unlink()
    with pytest.raises(CardsError, match=r"hil\.npz: no such file"):
        results.align(tmp_path, plan, {})


# Statistics -------------------------------------------------------------------------------------


def test_only_errors_that_last_are_complaints(monkeypatch):
    listener = DiagnosticsListener()
    now = [100.0]
    monkeypatch.setattr("cards_bringup.hil.run.time.monotonic", lambda: now[0])
    listener.statuses = {
        "loop": BridgeStatus(1, "states are late", since=1.0),
        "boards": BridgeStatus(2, "inactive: RELAX", since=99.0),
    }
    assert listener.lasting_error(3.0) == ""
    now[0] = 102.5
    assert listener.lasting_error(3.0) == "boards: inactive: RELAX"


def test_ctrl_c_inside_ros_counts_when_ros_is_done():
    """Inside rclpy's conversions it would become a RuntimeError, and the run a crash."""
    program = (
        "import signal\n"
        "done = []\n"
        "def spin_once(timeout_sec):\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    done.append(timeout_sec)\n"
    )
    executor = types.ModuleType("rclpy.executors")
    exec(program, vars(executor))
    guest = DiagnosticsListener()
    guest._executor = executor
    with ended_by_signals(once=False), pytest.raises(KeyboardInterrupt):
        guest._spin(0.1)
    assert executor.done == [0.1]
