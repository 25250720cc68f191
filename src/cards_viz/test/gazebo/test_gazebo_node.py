"""Markers for Gazebo's GUI: over the real transport, to a service that the test plays."""

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from sensor_msgs.msg import JointState

from cards_ros import gazebo_bindings, topics
from cards_ros.gazebo_bindings import Names
from cards_ros.testing import NodeThread, Probe
from cards_viz.colors import TensionScale
from cards_viz.gazebo import markers
from cards_viz.gazebo.markers import GazeboBindingsError, GazeboMarkers
from cards_viz.muscles.scene import Scene

pytestmark = pytest.mark.ros

TENSIONS = np.array([10.0, 20.0, 40.0, 80.0])


def test_missing_bindings_are_told(domain, monkeypatch, capfd):
    from cards_viz.gazebo.node import main

    names = Names("no_gz.sim", "no_gz.math", "no_gz.transport", "no_gz.msgs", "no_sdformat")
    monkeypatch.setattr(gazebo_bindings, "EVERY", (names,))
    with pytest.raises(GazeboBindingsError, match=r"no_gz.*python3-gz-transport13"):
        GazeboMarkers("ns")
    assert main(["--ros-args", "-p", "model:=planar_2r"]) == 2
    output = "".join(capfd.readouterr())
    assert "Gazebo's Python bindings for transport and messages cannot be imported" in output
    assert "Traceback" not in output


# Over the real transport ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def messages():
    """The type of the requests."""
    try:
        return markers._bindings()[1]
    except GazeboBindingsError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def service_program(tmp_path_factory, messages):
    """`marker_service.cc`, compiled: the bindings can call services but not offer them."""
    compiler = shutil.which("c++")
    answers = []
    if compiler and shutil.which("pkg-config"):
        # of Harmonic, then of releases whose packages have no number in their names
        answers = [
            subprocess.run(
                ["pkg-config", "--cflags", "--libs", name],
                capture_output=True,
                text=True,
                check=False,
            )
            for name in ("gz-transport13", "gz-transport")
        ]
    answer = next((answer for answer in answers if not answer.returncode), None)
    if answer is None:
        pytest.skip("needs a C++ compiler and the development files of gz-transport (pkg-config)")
    program = tmp_path_factory.mktemp("service") / "marker_service"
    source = Path(__file__).with_name("marker_service.cc")
    subprocess.run(
        [compiler, "-std=c++17", str(source), "-o", str(program), *answer.stdout.split()],
        check=True,
    )
    return program


class Gui:
    """The service and what it was asked."""

    def __init__(self, program, messages):
        self.requests = []
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout.readline() == "ready\n"
        self._messages = messages
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self._process.stdout:
            self.requests.append(self._messages.FromString(bytes.fromhex(line)))

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._thread.join(timeout=10)


@pytest.fixture
def gui(service_program, messages):
    gui = Gui(service_program, messages)
    yield gui
    gui.close()


@pytest.fixture(scope="module", autouse=True)
def own_partition():
    """Gazebo's network of this test; read when the first node of the process is made."""
    before = os.environ.get("GZ_PARTITION")
    os.environ["GZ_PARTITION"] = f"cards_test_{os.getpid()}"
    yield
    if before is None:
        del os.environ["GZ_PARTITION"]
    else:
        os.environ["GZ_PARTITION"] = before


def until(condition, what, patience=20.0):
    end = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {patience} s for {what}"
        time.sleep(0.02)
    return value


def vector(v):
    return np.array([v.x, v.y, v.z])


def send_states(probe, robot, q, stamp):
    joints = JointState(name=["joint_1", "joint_2"], position=[float(x) for x in q])
    muscles = JointState(name=[m.name for m in robot.muscles], effort=TENSIONS.tolist())
    for message in (joints, muscles):
        message.header.stamp.sec = stamp
    probe.publish(muscles, topics.MUSCLE_STATES)
    probe.publish(joints, topics.JOINT_STATES)


@pytest.mark.gazebo
def test_muscles_arrive_at_the_service(domain, planar_2r, service_program, messages, gui):
    from cards_viz.gazebo.node import GazeboMarkersNode

    q = np.array([0.4, -0.7])
    begin = time.monotonic()
    parameters = {"origin": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]}
    with (
        NodeThread(GazeboMarkersNode, domain, {"robot": planar_2r}, **parameters) as thread,
        Probe(domain) as probe,
    ):
        stamp = 0

        def drawn():
            nonlocal stamp
            stamp += 1
            send_states(probe, planar_2r, q, stamp)
            probe.spin(0.02)
            return len(gui.requests) > 3

        probe.until(drawn, "requests")
        assert len(gui.requests) <= 20.0 * (time.monotonic() - begin) + 1
        request = gui.requests[-1]
        # a request without a path: the hand rests
        scene = Scene(planar_2r, with_shapes=False, backend="numeric")
        frame = scene.frame(q, TENSIONS, 80.0)
        assert [marker.id for marker in request.marker] == [1, 2, 3, 4]
        for marker, path in zip(request.marker, frame.paths, strict=True):
            assert (marker.action, marker.type) == (marker.ADD_MODIFY, marker.CYLINDER)
            assert marker.ns == "cards/planar_2r"
            middle = path.mean(axis=0) + np.array([1.0, 0.0, 0.0])
            np.testing.assert_allclose(vector(marker.pose.position), middle, atol=1e-12)
            assert marker.scale.z == pytest.approx(np.linalg.norm(path[1] - path[0]))
            assert marker.scale.x == marker.scale.y > 0.0
        rgb = [(c.r, c.g, c.b) for c in (marker.material.diffuse for marker in request.marker)]
        expected = TensionScale(0.0, 80.0).colors(TENSIONS) / 255.0
        np.testing.assert_allclose(rgb, expected, atol=1e-6)
        # the GUI is closed and opened again: the node notices both
        gui.close()

        def alone():
            drawn()
            return not thread.node._present

        probe.until(alone, "the end of the GUI")
        again = Gui(service_program, messages)
        try:

            def back():
                drawn()
                return again.requests

            probe.until(back, "requests to the new GUI")
            last = again.requests
        finally:
            thread.stop()
            until(lambda: last[-1].marker[0].action == messages().marker.add().DELETE_ALL, "clear")
            again.close()
    assert last[-1].marker[0].ns == "cards/planar_2r"


@pytest.mark.gazebo
def test_without_a_gui_nothing_waits(domain, messages, planar_2r):
    markers = GazeboMarkers("cards/test")
    assert not markers.available()  # the first call of a process waits for the discovery
    begin = time.monotonic()
    assert not markers.available()
    assert time.monotonic() - begin < 0.1
    # a request that nobody answers ends
    assert markers.send([]) is False


@pytest.mark.gazebo
def test_ros_and_gazebo_in_one_process(domain, messages):
    """Both bring libraries of their own; they must not clash, whichever is loaded first."""
    code = """
from cards_viz.gazebo import markers
from cards_viz.gazebo.node import GazeboMarkersNode
from cards_ros.loop import StopFlag
from rclpy.context import Context
context = Context(); context.init(args=["--ros-args", "-p", "model:=planar_2r"])
node = GazeboMarkersNode(context, StopFlag())
node.tick(); node.close(); context.try_shutdown()
print("fine")
"""
    for first in ("import rclpy", "from cards_viz.gazebo import markers; markers._bindings()"):
        answer = subprocess.run(
            [sys.executable, "-c", first + code],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert answer.stdout.endswith("fine\n"), answer.stderr
