"""docs/two_computers.md with two network namespaces in place of computers, and a virtual cable."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from cards_ros.middleware import VARIABLES

pytestmark = [pytest.mark.serial, pytest.mark.ros]

STEPS = 300


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=False, timeout=30)


@pytest.fixture
def computers():
    """Two namespaces, each with one end of a cable; skipped where nobody may make them."""
    if shutil.which("ip") is None:
        pytest.skip("no program ip (iproute2)")
    mark = os.getpid() % 100000
    names = [f"cards_{mark}_{end}" for end in "ab"]
    ends = [f"cv{mark}{end}" for end in "ab"]
    try:
        for name in names:
            made = ip("netns", "add", name)
            if made.returncode:
                pytest.skip(f"no network namespaces here: {made.stderr.strip()}")
        peer = ("peer", "name", ends[1], "netns", names[1])
        made = ip("link", "add", ends[0], "netns", names[0], "type", "veth", *peer)
        if made.returncode:
            pytest.skip(f"no virtual cables here: {made.stderr.strip()}")
        for number, (name, end) in enumerate(zip(names, ends, strict=True), 1):
            for words in (
                ("addr", "add", f"10.231.7.{number}/24", "dev", end),
                ("link", "set", "lo", "up"),
                ("link", "set", end, "up"),
                ("route", "add", "224.0.0.0/4", "dev", end),
            ):
                done = ip("-n", name, *words)
                assert done.returncode == 0, done.stderr
        yield list(zip(names, ends, strict=True))
    finally:
        for name in names:
            ip("netns", "del", name)


def start(computer, module, domain, discovery="SUBNET", **parameters):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "ROS_DOMAIN_ID": str(domain),
    }
    # of which nothing is to count here; the nodes choose UDP, also without shared memory, which
    # computers do not have in common but namespaces do
    for name in ("ROS_STATIC_PEERS", *VARIABLES):
        environment.pop(name, None)
    environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] = discovery
    given = [word for item in parameters.items() for word in ("-p", "{}:={}".format(*item))]
    return subprocess.Popen(
        ["ip", "netns", "exec", computer[0], sys.executable, "-m", module, "--ros-args", *given],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def packets(computer):
    """Packets that came in over the cable."""
    shown = json.loads(ip("-n", computer[0], "-j", "-s", "link", "show", computer[1]).stdout)
    return shown[0]["stats64"]["rx"]["packets"]


@pytest.mark.parametrize("discovery", ["SUBNET", "LOCALHOST"])
def test_where_the_controller_may_be(computers, discovery, tmp_path):
    """Lockstep over the cable, where every message goes, or on one computer that keeps all."""
    robot, far = computers
    desk = far if discovery == "SUBNET" else robot
    domain = 1 + os.getpid() % 101
    common = {"model": "planar_2r", "log_dir": tmp_path}
    controller = start(
        desk,
        "controllers.ctc_joint",
        domain,
        discovery,
        **common,
        reference="there_and_back",
        kp="[2000.0, 2000.0]",
        kd="[90.0, 90.0]",
    )
    try:
        simulator = start(
            robot,
            "cards_sim.simulator_node",
            domain,
            discovery,
            **common,
            mode="lockstep",
            duration=1e-3 * STEPS,
            initial_positions="[-0.5, 0.5]",
        )
        try:
            out, _ = simulator.communicate(timeout=180)
            maps = Path(f"/proc/{controller.pid}/maps").read_text()
        finally:
            with contextlib.suppress(ProcessLookupError):
                simulator.kill()
        assert simulator.returncode == 0, out
        if discovery == "SUBNET":
            assert packets(robot) > STEPS  # commands
            assert packets(far) > STEPS  # states
        else:
            assert packets(far) < 50  # what the kernel says of the cable
            assert "/dev/shm/fastrtps" not in maps
        controller.send_signal(signal.SIGINT)
        out, _ = controller.communicate(timeout=60)
        assert controller.returncode == 0, out
    finally:
        with contextlib.suppress(ProcessLookupError):
            controller.kill()
    with np.load(tmp_path / "simulator.npz") as log:
        assert len(log["time"]) == STEPS
    with np.load(tmp_path / "controller.npz") as log:
        assert np.abs(log["error"]).max() < 1e-3
