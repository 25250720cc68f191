"""What the demos promise, on the models as shipped."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.serial

KEYS = [
    "robot",
    "controller",
    "mode",
    "sim_time_s",
    "wall_time_s",
    "joint_error_max_rad",
    "joint_error_rms_rad",
    "joint_error_max_m",
    "joint_error_rms_m",
    "op_error_rms_m",
    "op_error_max_m",
    "tension_min_N",
    "tension_max_N",
    "qp_infeasible_steps",
    "control_rate_hz",
    "loop_p50_us",
    "loop_p99_us",
    "missed_deadlines",
    "trajectory_sha256",
    "verdict",
    "failures",
    "warnings",
]

needs_ros = pytest.mark.skipif(find_spec("rclpy") is None, reason="rclpy is not installed")

# CASPR's RoboyLeftArm, to compute the hand's position without any of our code
AXES = (
    (0.05101, -0.9984, 0.02231),
    (-0.9157, -0.03784, 0.4001),
    (-0.3986, -0.04084, -0.9162),
    (0.9171, -0.01288, -0.3984),
)
OFFSETS = (
    (0.2926, 0.007368, 0.5479),
    (0.0, 0.0, 0.0),
    (-0.005238, -0.0005333, -0.01189),
    (-0.1399, -0.01744, -0.277),
)
HAND = (-0.15492, -0.254225, -0.386772)
LIMITS = ((1.2, 1.7), (-3.142, 3.142), (-0.5, 0.5), (-1.57, 0.0))


def hand_position(q):
    rotation, position = np.eye(3), np.zeros(3)
    for axis, offset, angle in zip(AXES, OFFSETS, q, strict=True):
        position = position + rotation @ offset
        x, y, z = np.array(axis) / np.linalg.norm(axis)
        k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        rotation = rotation @ (np.eye(3) + math.sin(angle) * k + (1 - math.cos(angle)) * k @ k)
    return position + rotation @ HAND


@pytest.fixture(scope="module")
def planar(demo, tmp_path_factory):
    return demo(tmp_path_factory.mktemp("planar"), "planar_2r", "--mode", "lockstep", "--no-ros")


@pytest.fixture(scope="module")
def flower_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("flower")


@pytest.fixture(scope="module")
def flower(demo, flower_folder):
    return demo(flower_folder, "roboy_arm", "--mode", "lockstep", "--no-ros")


def test_planar_arm_tracks_the_papers_trajectory(planar):
    assert planar["sim_time_s"] == pytest.approx(8.0)
    assert planar["joint_error_max_rad"] < 1e-3
    assert planar["tension_min_N"] >= 10.0
    assert planar["tension_max_N"] <= 100.0
    assert planar["qp_infeasible_steps"] == 0


def test_summary_has_the_keys_that_others_rely_on(planar):
    assert [key for key in KEYS if key not in planar] == []


def test_roboy_arm_draws_the_flower(flower):
    assert flower["sim_time_s"] == pytest.approx(30.0)
    assert flower["op_error_rms_m"] <= 1e-3
    assert flower["op_error_max_m"] <= 3e-3
    assert flower["qp_infeasible_steps"] == 0


@pytest.mark.parametrize(
    ("robot", "limit", "states"),
    [
        ("wrap_elbow", 0.02, {"biceps/activation", "triceps/fiber_length"}),
        ("antagonist_joint", 0.01, {"left/pressure", "right/pressure"}),
    ],
)
def test_muscles_with_a_will_of_their_own_are_driven_by_tensions(
    demo, tmp_path, robot, limit, states
):
    """Hill and pneumatic muscles find excitation and pressure themselves, with their delay."""
    summary = demo(tmp_path, robot, "--mode", "lockstep", "--no-ros")
    assert summary["joint_error_rms_rad"] <= limit
    log = np.load(tmp_path / "simulator.npz")
    assert states <= set(log["actuator_names"])
    assert np.count_nonzero(np.ptp(log["actuators"], axis=0)) >= 2
    assert np.ptp(log["q"], axis=0).max() > 0.9


def test_the_flower_is_really_there(flower, flower_folder):
    """The drawing, from the logged joint angles by kinematics that are not ours."""
    log = np.load(flower_folder / "simulator.npz")
    points = np.array([hand_position(q) for q in log["q"][::20]])
    centred = points - np.array([0.45, -0.45, 0.45])
    assert np.abs(centred[:, 1]).max() < 3e-3
    radius = np.hypot(centred[:, 0], centred[:, 2])
    assert radius.max() == pytest.approx(0.15, abs=3e-3)
    # every point lies on r = 0.15 |cos 5 phi| turned by a constant angle
    angle = np.arctan2(centred[:, 2], centred[:, 0])
    outside = radius > 0.03
    turns = np.linspace(0.0, np.pi / 5, 721)
    misfit = [
        np.abs(0.15 * np.abs(np.cos(5.0 * (angle[outside] - t))) - radius[outside]).max()
        for t in turns
    ]
    assert min(misfit) < 3e-3
    tips = (radius[1:-1] > radius[:-2]) & (radius[1:-1] >= radius[2:]) & (radius[1:-1] > 0.14)
    assert np.count_nonzero(tips) == 5
    for column, (low, high) in zip(log["q"].T, LIMITS, strict=True):
        assert low <= column.min()
        assert column.max() <= high


def test_run_folder_is_complete(flower, flower_folder):
    names = {path.name for path in flower_folder.iterdir()}
    assert {"summary.json", "recording.mcap", "tracking.png", "tensions.png"} <= names


def test_a_wrong_model_is_survived(demo, tmp_path):
    wrong = "mass_factor=1.1,attachment_offset=0.002"
    summary = demo(
        tmp_path, "roboy_arm", "--mode", "lockstep", "--no-ros", "--controller-model", wrong
    )
    assert summary["op_error_max_m"] < 0.01
    assert summary["controller_model"] == {"mass_factor": 1.1, "attachment_offset": 0.002}


@pytest.mark.parametrize("robot", ["bm_arm", "ipanema_1"])
def test_every_other_robot_does_its_task(demo, tmp_path, robot):
    """Those above and these are all robots with muscles that `./cards demo` has."""
    summary = demo(tmp_path, robot, "--mode", "lockstep", "--no-ros")
    assert summary["verdict"] == "ok"
    assert summary["failures"] == summary["warnings"] == []


@pytest.mark.parametrize(
    "transport", [("--no-ros",), pytest.param((), marks=[needs_ros, pytest.mark.ros])]
)
def test_a_task_that_the_muscles_cannot_do_is_a_failed_run(cards, tmp_path, transport):
    """In lockstep, so that it fails on any machine and for this reason alone."""
    weak = tmp_path / "weak.yaml"
    weak.write_text(
        "/**: {ros__parameters: {model: planar_2r}}\n"
        "ctc_joint: {ros__parameters: {reference: there_and_back, kp: 400.0, kd: 40.0, "
        "tension_max: [10.5, 10.5, 10.5, 10.5]}}\n"
    )
    out = tmp_path / "run"
    arguments = ("--headless", "--mode", "lockstep", "--duration", "1.5", "--out", str(out))
    result = cards("demo", "planar_2r", "--params-file", str(weak), *arguments, *transport)
    assert result.returncode == 1, result.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert summary["verdict"] == "failed"
    assert any("no tensions within their limits" in text for text in summary["failures"])
    assert any("RMS error" in text for text in summary["failures"])
    assert "FAILED: no tensions within their limits" in result.stdout


def answers(address):
    """Wait until a page answers: the replay takes its place from the page of the run."""
    for _ in range(300):
        try:
            return urllib.request.urlopen(address, timeout=30).status == 200
        except urllib.error.URLError:
            time.sleep(0.1)
    return False


@needs_ros
@pytest.mark.ros
@pytest.mark.parametrize("wait", [True, False])
def test_a_run_with_a_page_waits_for_it_and_stays_to_replay_what_was_recorded(
    cards, tmp_path, wait
):
    pytest.importorskip("viser", reason="viser is not installed")
    out = tmp_path / "run"
    command = [sys.executable, "-m", "cards_bringup", "demo", "planar_2r", "--duration", "0.5"]
    command += ["--out", str(out), *([] if wait else ["--no-wait"])]
    run = subprocess.Popen(
        command, env=cards.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        told = []
        for line in run.stderr:
            told.append(line)
            if line.startswith("finished: results in"):
                break
        said = "".join(told)
        (address,) = [word for word in said.split() if word.startswith("http://")]
        assert ("the run begins when the page is open" in said) == wait
        assert any(line.startswith("finished: results in") for line in told) == wait
        if wait:
            # told once the page answered, and there until Ctrl-C
            assert answers(address)
            assert run.poll() is None
            run.send_signal(signal.SIGINT)
        stdout, _ = run.communicate(timeout=120)
    finally:
        run.kill()
    assert run.returncode == 0, said
    assert "OK" in stdout
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["verdict"], summary["sim_time_s"]) == ("ok", pytest.approx(0.5))


@needs_ros
@pytest.mark.ros
def test_answers_that_come_too_late_in_real_time_fail_the_run_and_paced_they_cannot(
    cards, tmp_path
):
    """A clock that is a hundred times too fast: no machine answers in time."""
    file = tmp_path / "fast.yaml"
    file.write_text(
        "/**: {ros__parameters: {model: planar_2r}}\n"
        "simulator: {ros__parameters: {speed: 100.0}}\n"
        "ctc_joint: {ros__parameters: {reference: there_and_back}}\n"
    )
    arguments = ("demo", "planar_2r", "--headless", "--duration", "1", "--params-file", str(file))
    late = cards(*arguments, "--mode", "realtime", "--out", str(tmp_path / "late"))
    assert late.returncode == 1, late.stderr
    summary = json.loads((tmp_path / "late" / "summary.json").read_text())
    assert summary["verdict"] == "failed"
    late_answers = [text for text in summary["failures"] if text.startswith("missed deadlines: ")]
    assert late_answers or any("slower than real time" in text for text in summary["failures"])
    assert summary["failures"][0] in late.stdout

    paced = cards(*arguments, "--out", str(tmp_path / "paced"))
    assert paced.returncode == 0, paced.stderr
    summary = json.loads((tmp_path / "paced" / "summary.json").read_text())
    assert (summary["mode"], summary["verdict"], summary["failures"]) == ("paced", "ok", [])
    assert summary["missed_deadlines"] == 0
    assert any("slower than real time" in text for text in summary["warnings"])
    assert "slower than real time" in paced.stdout


def is_node(process, name, out):
    try:
        line = (process / "cmdline").read_bytes().decode()
    except OSError:
        return False  # gone
    return f"__node:={name}\0" in line and str(out) in line


@needs_ros
@pytest.mark.ros
@pytest.mark.parametrize("victim", ["simulator", "ctc_joint"])
def test_what_a_killed_process_had_recorded_is_not_lost(cards, tmp_path, victim):
    out = tmp_path / "run"
    command = [sys.executable, "-m", "cards_bringup", "demo", "planar_2r", "--headless"]
    command += ["--mode", "lockstep", "--duration", "3600", "--out", str(out)]
    run = subprocess.Popen(command, env=cards.environment, stderr=subprocess.PIPE, text=True)
    assert any("s simulated" in line for line in run.stderr), "it ended before time went on"
    (pid,) = (
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and is_node(entry, victim, out)
    )
    os.kill(pid, signal.SIGKILL)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 1, errors
    summary = json.loads((out / "summary.json").read_text())
    assert f"'{victim}' ended with signal SIGKILL" in summary["failures"][0]
    assert summary["sim_time_s"] > 0.1
    assert (out / "recording.mcap").exists()
    assert not list(out.glob(".*.rows"))


@needs_ros
@pytest.mark.ros
def test_topics_do_not_change_the_trajectory(demo, tmp_path):
    """Twice over ROS topics and once in one process: equal to the last bit."""
    short = ("planar_2r", "--mode", "lockstep", "--duration", "1.5")
    runs = [demo(tmp_path / name, *short) for name in ("first", "second")]
    runs.append(demo(tmp_path / "third", *short, "--no-ros"))
    assert len({run["trajectory_sha256"] for run in runs}) == 1
    assert [run["sim_time_s"] for run in runs] == pytest.approx([1.5] * 3)


@needs_ros
@pytest.mark.ros
def test_ctrl_c_keeps_what_was_simulated_and_leaves_no_process(cards, tmp_path):
    command = [sys.executable, "-m", "cards_bringup", "demo", "planar_2r", "--headless"]
    command += ["--mode", "lockstep", "--duration", "3600", "--out", str(tmp_path / "run")]
    run = subprocess.Popen(command, env=cards.environment, stderr=subprocess.PIPE, text=True)
    assert any("s simulated" in line for line in run.stderr), "it ended before time went on"
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 130, errors
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["verdict"] == "stopped"
    assert summary["failures"] == []
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in left.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no_such_robot",), "no_such_robot"),
        (("planar_2r", "--controller", "pid"), "pid"),
        (("planar_2r", "--duration", "-1"), "--duration"),
        (("planar_2r", "--controller-model", "mass=2"), "mass_factor"),
        (("planar_2r", "--reference", "spiral", "--no-ros"), "there_and_back"),
        (("planar_2r", "--reference", "spiral", "--duration", "1"), "there_and_back, wiggle"),
        (("planar_2r", "--reference", "spiral", "--controller", "ctc_operational"), "spiral"),
        (("planar_2r", "--port", "80000"), "expected: a whole number >= 0 and <= 65535"),
        (("planar_2r", "--world", "two_arms"), "robots of its own, left_arm, right_arm"),
        (("planar_2r", "--world", "moon"), "two_arms"),
        (("two_arms", "--world", "table"), "a world with left_arm, right_arm"),
        (("two_arms", "--hil"), "several robots"),
        (("two_arms", "--video", "arms.mp4"), "./cards video OUT/ROBOT"),
        (("planar_2r", "--video", "arm.txt"), ".mp4, .webm, .gif"),
        (("planar_2r", "--video", "nowhere/arm.gif"), "no folder nowhere"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(cards, tmp_path, arguments, message):
    out = tmp_path / "run"
    result = cards("demo", *arguments, "--headless", "--out", str(out))
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) in ([], ["run"])


def test_a_finished_run_is_not_overwritten(cards, planar, flower_folder):
    result = cards("demo", "planar_2r", "--headless", "--no-ros", "--out", str(flower_folder))
    assert result.returncode == 2
    assert "holds a run already" in result.stderr


@pytest.mark.parametrize(
    "left", ["simulator.npz", "controller.npz", "summary.json", ".simulator.npz.7.1.rows"]
)
def test_parts_of_an_old_run_are_not_taken_for_a_new_one(cards, tmp_path, left):
    (tmp_path / left).write_bytes(b"old")
    result = cards("demo", "planar_2r", "--headless", "--no-ros", "--out", str(tmp_path))
    assert result.returncode == 2
    assert f"holds a run already: {left}" in result.stderr


def test_a_folder_that_cannot_be_made_is_told(cards, tmp_path):
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "run")
    result = cards("demo", "planar_2r", "--headless", "--no-ros", "--out", out)
    assert result.returncode == 2
    assert "cannot be written" in result.stderr
    assert "Traceback" not in result.stderr


def hashes(summary):
    return {name: one["trajectory_sha256"] for name, one in summary["robots"].items()}


@needs_ros
@pytest.mark.ros
def test_two_arms_of_one_world_are_repeatable_with_ros_and_without(demo, tmp_path):
    options = ("two_arms", "--mode", "lockstep", "--duration", "0.3")
    alone = demo(tmp_path / "alone", *options, "--no-ros")
    topics = demo(tmp_path / "topics", *options)
    assert list(alone["robots"]) == ["left_arm", "right_arm"]
    assert hashes(alone) == hashes(topics)
    assert topics["verdict"] == "ok"
    for arm in alone["robots"]:
        folder = tmp_path / "topics" / arm
        assert json.loads((folder / "summary.json").read_text()) == topics["robots"][arm]
        for name in ("simulator.npz", "controller.npz", "recording.mcap", "tensions.png"):
            assert (folder / name).stat().st_size > 0


def test_a_run_of_several_robots_has_failed_if_one_has(cards, tmp_path):
    """The right controller loses its muscles: a model error that no tension makes good."""
    file = tmp_path / "weak.yaml"
    shared = "model: roboy_arm"
    file.write_text(
        f"/**: {{ros__parameters: {{{shared}, reference: flower}}}}\n"
        "right_arm/ctc_operational: {ros__parameters: {tension_max: " + str([12.0] * 11) + "}}\n"
    )
    out = tmp_path / "run"
    result = cards(
        "demo", "two_arms", "--headless", "--no-ros", "--duration", "0.5", "--params-file",
        str(file), "--out", str(out),
    )  # fmt: skip
    summary = json.loads((out / "summary.json").read_text())
    assert result.returncode == 1, result.stderr
    assert summary["verdict"] == "failed"
    assert summary["robots"]["left_arm"]["verdict"] == "ok"
    assert all(text.startswith("right_arm: ") for text in summary["failures"])


@needs_ros
@pytest.mark.ros
def test_without_a_controller_the_arm_falls(demo, tmp_path):
    options = ("--controller", "none", "--duration", "0.3", "--mode", "as_fast_as_possible")
    summary = demo(tmp_path, "planar_2r", *options)
    assert summary["sim_time_s"] == pytest.approx(0.3)
    assert summary["tension_max_N"] == summary["tension_min_N"] == 10.0


@needs_ros
@pytest.mark.ros
def test_diverging_physics_end_the_run_with_the_reason(cards, tmp_path):
    parameters = tmp_path / "wild.yaml"
    parameters.write_text(
        "simulator: {ros__parameters: {dt: 0.1}}\n"
        "springs: {ros__parameters: {stiffness: 1000000.0}}\n"
    )
    springs = Path(__file__).resolve().parents[1] / "examples" / "springs.py"
    arguments = ("--headless", "--mode", "lockstep", "--params-file", str(parameters))
    arguments += ("--controller", str(springs), "--duration", "8")
    for transport in ((), ("--no-ros",)):
        out = str(tmp_path / ("topics" if not transport else "process"))
        result = cards("demo", "planar_2r", *arguments, *transport, "--out", out)
        assert result.returncode == 1
        assert "smaller time step" in result.stderr
        summary = json.loads((tmp_path / out / "summary.json").read_text())
        assert summary["verdict"] == "failed"
        assert "FAILED" in result.stdout


@pytest.mark.parametrize("transport", [(), ("--no-ros",)])
def test_gains_that_no_period_allows_end_a_demo_before_it_begins(cards, tmp_path, transport):
    parameters = tmp_path / "wild.yaml"
    parameters.write_text(
        "simulator: {ros__parameters: {dt: 0.1}}\n"
        "ctc_joint: {ros__parameters: {reference: there_and_back, kp: 2000.0, kd: 90.0}}\n"
    )
    arguments = ("--headless", "--params-file", str(parameters), "--out", str(tmp_path / "run"))
    result = cards("demo", "planar_2r", *arguments, *transport)
    assert result.returncode == 2
    assert "expected a kp below 25, for a control period of 100 ms" in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "transport", [("--no-ros",), pytest.param((), marks=[needs_ros, pytest.mark.ros])]
)
def test_a_controller_from_a_file(demo, tmp_path, transport):
    file = Path(__file__).resolve().parents[1] / "examples" / "springs.py"
    options = ("--mode", "lockstep", "--controller", str(file), "--duration", "0.5")
    summary = demo(tmp_path, "planar_2r", *options, *transport)
    assert summary["controller"] == "springs"
    assert summary["sim_time_s"] == pytest.approx(0.5)
    with np.load(tmp_path / "simulator.npz") as log:
        assert np.ptp(log["tensions"]) > 1.0


def test_a_film_of_the_run(cards, tmp_path):
    film, out = tmp_path / "arm.gif", tmp_path / "run"
    arguments = ("--headless", "--no-ros", "--duration", "0.3", "--video", str(film))
    result = cards("demo", "planar_2r", *arguments, "--out", str(out))
    assert (out / "summary.json").is_file()
    if "pictures cannot be drawn here" in result.stderr:
        assert result.returncode == 2
        pytest.skip(result.stderr)
    assert result.returncode == 0, result.stderr
    assert "arm.gif: 9 pictures" in result.stdout + result.stderr
    with Image.open(film) as pictures:
        assert pictures.n_frames == 9


@pytest.mark.parametrize("robot", ["planar_2r", "prism_3"])
def test_the_recording_has_the_poses_of_all_links(demo, tmp_path, robot):
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    from cards_core.dynamics import make_dynamics
    from cards_core.formats import load
    from cards_core.spatial import quaternion_matrix

    demo(tmp_path, robot, "--mode", "lockstep", "--no-ros", "--duration", "0.3")
    with np.load(tmp_path / "simulator.npz") as log:
        rows = {round(1e9 * time): q for time, q in zip(log["time"], log["q"], strict=True)}
    dynamics = make_dynamics(load(robot))
    count, markers = 0, 0
    with open(tmp_path / "recording.mcap", "rb") as stream:
        reader = make_reader(stream, decoder_factories=[DecoderFactory()])
        for _, channel, message, decoded in reader.iter_decoded_messages():
            markers += channel.topic == "/muscle_markers"
            if channel.topic != "/tf":
                continue
            count += 1
            poses = dynamics.link_poses(rows[message.log_time])
            for one, pose in zip(decoded.transforms, poses, strict=True):
                t, r = one.transform.translation, one.transform.rotation
                np.testing.assert_allclose([t.x, t.y, t.z], pose[:3, 3], atol=1e-9)
                turn = quaternion_matrix([r.w, r.x, r.y, r.z])
                np.testing.assert_allclose(turn, pose[:3, :3], atol=1e-9)
    assert count == markers >= 9
