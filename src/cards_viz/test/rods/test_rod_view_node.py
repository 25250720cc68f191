"""The node of the page against the real solver's node; no browser needed."""

import time
import urllib.request

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from sensor_msgs.msg import PointCloud2, PointField

from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.status import RodStatus
from cards_ros.testing import NodeThread, end_process, private_domain, start_process
from cards_viz.rods.view_node import RodViewNode, main
from cards_viz.rods.watcher import COLUMNS, RodMessageError, lines_of

pytestmark = pytest.mark.ros

MODEL = "stewart_6pfs"


@pytest.fixture(scope="module")
def robot():
    return read_rod_robot(MODEL)


def until(condition, what, patience=30.0):
    end = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {patience} s for {what}"
        time.sleep(0.02)
    return value


def test_the_page_moves_the_solver(robot):
    with (
        private_domain() as domain,
        NodeThread(RodViewNode, domain, {"robot": robot}, port=0) as thread,
    ):
        node = thread.node
        told = []
        node.page.notify = told.append
        # without a solver a button says so, and nothing waits for it
        node.commands.home()
        until(lambda: any("does rod_solver run?" in text for text in told), "the complaint")
        solver = start_process("cards_rods.rod_solver", {"model": MODEL})
        try:
            run_through(node, robot)
        finally:
            end_process(solver)
        until(lambda: not node.watcher.snapshot().alive, "the silence to be noticed")
        until(lambda: "Waiting for the node" in node.page._status.content, "the words")


def run_through(node, robot):
    watcher, commands = node.watcher, node.commands
    until(lambda: watcher.known, "states and shapes")
    now = watcher.snapshot
    until(lambda: now().finite and now().alive, "a state")
    start = now()
    assert start.lines.shape == (6, 51, 6)
    assert start.pose == pytest.approx(robot.home_pose, abs=1e-6)
    assert start.margin == pytest.approx(1.0)
    assert urllib.request.urlopen(node.page.url, timeout=10).status == 200
    until(lambda: node.page.updates > 0, "drawing")

    # joints: the rods of the shapes end where joints and plate say, in one frame
    commands.joints(start.q + 0.02)
    until(lambda: np.abs(now().q - start.q - 0.02).max() < 1e-9, "the joints")
    moved = now()
    assert moved.mode == "dgm"
    assert moved.pose[2, 3] == pytest.approx(start.pose[2, 3] + 0.02, abs=1e-5)
    until(lambda: now().lines[:, 0, 2] == pytest.approx(start.lines[:, 0, 2] + 0.02), "the rods")

    commands.save("up")
    until(lambda: now().states == ("up",), "the saved state")

    # a plate pose beyond the slides: what lacks is named, with its length
    pose = robot.home_pose
    pose[2, 3] += 0.5
    commands.pose(pose)
    until(lambda: now().status is RodStatus.UNREACHABLE and now().limb, "the limit")
    stuck = now()
    assert stuck.mode == "igm"
    assert 0.0 < stuck.missing < 0.5
    assert stuck.limb in stuck.message
    assert stuck.limb in stuck.limbs

    commands.load("up")
    until(lambda: np.abs(now().q - start.q - 0.02).max() < 1e-6, "the saved joints")
    commands.delete("up")
    until(lambda: now().states == (), "it to be gone")

    commands.wrench(np.array([0.05, 0.0, -0.1, 0.0, 0.0, 0.0]), "world")
    until(lambda: now().values["external/fz"] == pytest.approx(-0.1), "the load")
    commands.play(True)
    until(lambda: now().playing, "the motion")
    commands.play(False)
    until(lambda: not now().playing, "its end")
    commands.home()
    until(lambda: now().pose[:3, 3] == pytest.approx(robot.home_pose[:3, 3], abs=1e-3), "home")


def test_shapes_of_another_robot_are_refused(robot):
    message = PointCloud2(height=3, width=4)
    message.fields = [PointField(name=name) for name in COLUMNS]
    with pytest.raises(RodMessageError, match=r"3 rods.*expected: 6 rods"):
        lines_of(message, robot)
    data = np.arange(6 * 4 * 6, dtype=float)
    for order, big in (("<f8", False), (">f8", True)):
        message = PointCloud2(height=6, width=4, is_bigendian=big)
        message.fields = [PointField(name=name) for name in COLUMNS]
        message.data = list(data.astype(order).tobytes())
        assert lines_of(message, robot) == pytest.approx(data.reshape(6, 4, 6))


def test_an_unknown_robot_is_named(capfd):
    assert main(["--ros-args", "-p", "model:=stewart_goff"]) == 2
    assert "stewart_gough" in capfd.readouterr().err
