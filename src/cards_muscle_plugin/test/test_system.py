"""The boundary to Gazebo: nothing gets out, whatever goes wrong inside."""

import os
import subprocess
import sys
from datetime import timedelta
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from fake_simulator import DT, FakeSimulator
from test_gazebo_host import block_of

from cards_core.formats import load
from cards_muscle_plugin import gazebo, system
from cards_muscle_plugin.fault_node import FaultNode
from cards_muscle_plugin.node import SimulatorNode
from cards_ros import gazebo_bindings
from cards_ros.testing import private_domain

pytestmark = pytest.mark.ros


class Element:
    """An SDF element."""

    def __init__(self, text):
        self.text = text

    def to_string(self, _prefix):
        return self.text


class Model(FakeSimulator):
    """Stands in for Gazebo's model and world."""

    world_name = "test"
    slow = ""

    def bind(self, ecm):
        assert ecm == "ecm"


@pytest.fixture(autouse=True)
def domain(monkeypatch):
    monkeypatch.setenv(system.ROS_ARGUMENTS, "--ros-args -p wait_for_command:=false")
    with private_domain() as number:
        yield number


@pytest.fixture
def model(monkeypatch):
    robot = load("planar_2r")
    out = Model(robot, file=robot.source)
    monkeypatch.setattr(system, "bindings", lambda: None)
    monkeypatch.setattr(system, "GazeboModel", lambda _gz, _entity, _ecm: out)
    monkeypatch.setattr(system, "GazeboWorld", lambda _gz, _name: out)
    return out


@pytest.fixture
def plugin():
    out = system.get_system()
    yield out
    out.shutdown()


def info(steps, *, paused=False):
    """What Gazebo says before and after a step."""
    time = timedelta(microseconds=1000 * steps)
    step = timedelta(0) if paused else timedelta(milliseconds=1)
    return SimpleNamespace(sim_time=time, dt=step, paused=paused, iterations=steps)


def run(plugin, model, steps):
    for k in range(1, steps + 1):
        plugin.pre_update(info(k), "ecm")
        model.measured = True
        model.put = {}
        model.last_applied, model.applied = model.applied, []
        plugin.post_update(info(k), "ecm")


def test_times_are_exact():
    found = gazebo.step_info(
        SimpleNamespace(
            sim_time=timedelta(days=30, seconds=5, microseconds=7),
            dt=timedelta(microseconds=250),
            paused=False,
        )
    )
    assert found.time == (30 * 86400 + 5) * 10**9 + 7000
    assert found.dt == 250_000


def test_a_model_is_hosted(plugin, model):
    plugin.configure(1, Element(block_of("planar_2r")), "ecm", None)
    assert isinstance(plugin._node, SimulatorNode)
    run(plugin, model, 3)
    assert {name for name, _ in model.last_applied} == {"link_1", "link_2"}
    assert plugin._node.host.dt == DT * 1e-9


def test_two_instances_share_nothing(model):
    first, second = system.get_system(), system.get_system()
    try:
        first.configure(1, Element(block_of("planar_2r")), "ecm", None)
        second.configure(2, Element(block_of("planar_2r")), "ecm", None)
        first.shutdown()
        run(second, model, 3)
        assert model.last_applied
    finally:
        second.shutdown()


def test_mistakes_in_the_element_leave_a_node_that_tells(plugin, model, capfd):
    text = block_of("planar_2r").replace('link="link_1"', 'link="nowhere"', 1)
    plugin.configure(1, Element(text), "ecm", None)
    assert isinstance(plugin._node, FaultNode)
    run(plugin, model, 3)
    assert model.requests == [("pause", True)]
    assert model.last_applied == []
    out = capfd.readouterr()
    assert "nowhere" in out.out + out.err
    assert "Traceback" not in out.err


def test_an_exception_inside_is_told_and_the_muscles_let_go(plugin, model, monkeypatch, capfd):
    plugin.configure(1, Element(block_of("planar_2r")), "ecm", None)
    run(plugin, model, 3)

    def broken(*_, **__):
        raise ZeroDivisionError("no reason")

    monkeypatch.setattr(plugin._node.host.muscles, "step", broken)
    run(plugin, model, 3)
    assert model.last_applied == []
    assert model.requests == [("pause", True)]  # once: who presses play wants to look
    assert "no reason" in str(plugin._node.failure)
    err = capfd.readouterr().err
    assert "Traceback" in err  # not one of ours: say where
    monkeypatch.undo()
    plugin.reset(info(0, paused=True), "ecm")
    assert plugin._node.failure is None


def test_where_nothing_can_be_made_the_world_is_paused(plugin, model, monkeypatch, capfd):
    monkeypatch.setenv(system.ROS_ARGUMENTS, "--ros-args --no-such-thing x")
    plugin.configure(1, Element(block_of("planar_2r")), "ecm", None)
    run(plugin, model, 2)
    assert model.requests == [("pause", True)]
    assert "cards_muscle_plugin" in capfd.readouterr().err


def test_without_bindings_it_says_so(plugin, monkeypatch, capfd):
    monkeypatch.setattr(gazebo_bindings, "_module", lambda _name: None)
    plugin.configure(1, Element(""), "ecm", None)
    plugin.pre_update(info(1), "ecm")
    plugin.post_update(info(1), "ecm")
    plugin.reset(info(0), "ecm")
    assert "bindings" in capfd.readouterr().err


def test_a_model_that_is_gone_is_let_go(plugin, model):
    plugin.configure(1, Element(block_of("planar_2r")), "ecm", None)
    run(plugin, model, 2)
    model.there = False
    plugin._node._housekeeping()
    plugin.pre_update(info(3), "ecm")
    assert plugin._node is None
    plugin.post_update(info(3), "ecm")


def test_a_reset_that_removes_the_model_is_survived(plugin, model):
    plugin.configure(1, Element(block_of("planar_2r")), "ecm", None)
    model.there = False
    plugin.reset(info(0), "ecm")
    assert plugin._node is None
    plugin.pre_update(info(1), "ecm")


def test_bad_parameters_are_told(plugin, model, monkeypatch):
    monkeypatch.setenv(system.ROS_ARGUMENTS, "--ros-args -p mode:=quick")
    plugin.configure(1, Element(block_of("planar_2r")), "ecm", None)
    assert isinstance(plugin._node, FaultNode)


NEEDS = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"casadi", "scipy", "sympy", "mujoco", "daqp", "osqp"}:
            raise ImportError(f"{name} is not there in Gazebo's Python")

sys.meta_path.insert(0, Blocked())
sys.path.append(sys.argv[1])
from cards_muscle_plugin import system
system.load_rclpy()
from cards_muscle_plugin.hosted_robot import host_robot
from cards_muscle_plugin.gazebo_host import GazeboHost
from cards_muscle_plugin.node import SimulatorNode
from fake_simulator import FakeSimulator
from cards_core.formats import load

robot = load("planar_2r")
simulator = FakeSimulator(robot, file=robot.source)
text = open(robot.source).read()
block = text[text.index("<plugin") : text.index("</plugin>") + len("</plugin>")]
GazeboHost(host_robot(simulator, block), simulator, command_timeout=1.0)
"""


def test_a_compiled_model_needs_numpy_and_rclpy_only(model):
    from cards_muscle_plugin.gazebo_host import GazeboHost
    from cards_muscle_plugin.hosted_robot import host_robot

    hosted = host_robot(model, block_of("planar_2r"))
    GazeboHost(hosted, model, command_timeout=1.0)  # compiles it
    done = subprocess.run(
        [sys.executable, "-c", NEEDS, os.path.dirname(__file__)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
