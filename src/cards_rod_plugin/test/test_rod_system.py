"""The boundary to Gazebo and the node behind it: nothing gets out, whatever goes wrong inside."""

import json
import time
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from fake_world import FakeWorld
from geometry_msgs.msg import PoseStamped
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from cards_muscle_plugin import system as boundary
from cards_muscle_plugin.fault_node import FaultNode
from cards_rod_plugin import system
from cards_rod_plugin.node import RodGazeboNode
from cards_ros import topics
from cards_ros.diagnostics import Level
from cards_ros.testing import PATIENCE

pytestmark = pytest.mark.ros

DGM, IGM, STATE, STATUS = (
    f"{topics.ROD_SOLVER}/{name}" for name in ("dgm", "igm", "state", "status")
)


class Simulator:
    """The plugin in a fake world."""

    def __init__(self, monkeypatch, domain):
        self.monkeypatch = monkeypatch
        monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
        monkeypatch.setattr(boundary, "bindings", lambda: None)
        monkeypatch.setattr(system, "bindings", lambda: None)
        self.plugin = system.get_system()
        self.steps = 0

    def open(self, robot="stewart_gough", block="", arguments="", **options):
        self.world = world = FakeWorld(robot, **options)
        self.monkeypatch.setenv(boundary.ROS_ARGUMENTS, f"--ros-args {arguments}")
        self.monkeypatch.setattr(boundary, "GazeboModel", lambda *_: world)
        self.monkeypatch.setattr(boundary, "GazeboWorld", lambda *_: world)
        self.plugin.configure(1, SimpleNamespace(to_string=lambda _: block), "ecm", None)
        return world

    @property
    def node(self):
        return self.plugin._node

    def info(self, *, paused=False):
        return SimpleNamespace(
            sim_time=timedelta(milliseconds=self.steps),
            dt=timedelta(0) if paused else timedelta(milliseconds=1),
            paused=paused,
            iterations=self.steps,
        )

    def run(self, steps=1, *, paused=False):
        for _ in range(steps):
            self.steps += 0 if paused else 1
            self.plugin.pre_update(self.info(paused=paused), "ecm")
            if not paused:
                self.world.advance(1e-3)
            self.plugin.post_update(self.info(paused=paused), "ecm")

    def until(self, probe, condition, what):
        """Run the world and listen until something is so."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"no {what}"
            self.run(5)
            probe.spin(0.002)


@pytest.fixture
def simulator(monkeypatch, domain):
    out = Simulator(monkeypatch, domain)
    yield out
    out.plugin.shutdown()


def position(message, name):
    return message.position[list(message.name).index(name)]


def test_commands_by_topic_states_in_simulated_time(simulator, probe):
    world = simulator.open("stewart_6efr", arguments="-p rate:=100.0")
    assert isinstance(simulator.node, RodGazeboNode)
    joints = probe.listen(JointState, topics.JOINT_STATES)
    states = probe.listen(JointState, STATE)
    said = probe.listen(String, STATUS, qos=topics.LATCHED_QOS)
    clock = probe.listen(Clock, topics.CLOCK, qos=topics.CLOCK_QOS)
    simulator.until(probe, lambda: joints and states and said and clock, "first messages")
    stamp = joints[-1].header.stamp
    assert (stamp.sec * 10**9 + stamp.nanosec) % 10_000_000 == 0
    names = list(joints[-1].name)

    wanted = joints[-1].position[0] + 0.02
    probe.publish(JointState(name=[names[0]], position=[wanted]), DGM)
    simulator.until(
        probe, lambda: abs(position(states[-1], f"q/{names[0]}") - wanted) < 1e-9, "arrival"
    )
    simulator.run(2)
    assert simulator.node.host.lag < 1e-9
    assert np.abs(world.pose[:3, 3] - world.robot.home_pose[:3, 3]).max() > 1e-3

    pose = PoseStamped()
    pose.header.frame_id = "kitchen"
    probe.publish(pose, IGM)
    simulator.until(probe, lambda: "kitchen" in said[-1].data, "refusal")
    assert "world" in json.loads(said[-1].data)["refused"]
    # as everywhere, the service answers while the world runs
    future = probe.node.create_client(Trigger, f"{topics.ROD_SOLVER}/home").call_async(
        Trigger.Request()
    )
    simulator.until(probe, future.done, "answer")
    assert future.result().success


def test_a_plate_that_flies_away_is_let_go_and_a_reset_starts_anew(simulator, probe, capfd):
    world = simulator.open(arguments="-p coupling:=dynamic")
    simulator.run(5)
    world.pose[:3, 3] += 5.0
    simulator.run(5)
    assert "do not follow" in str(simulator.node.failure)
    assert world.requests == [("pause", True)]  # once
    assert "Traceback" not in capfd.readouterr().err
    simulator.until(
        probe,
        lambda: (
            (status := probe.status("rod_solver: world")) is not None
            and status.level == bytes([Level.ERROR])
        ),
        "diagnostics",
    )
    assert "do not follow" in probe.status("rod_solver: world").message
    world.home()
    simulator.plugin.reset(simulator.info(paused=True), "ecm")
    simulator.run(5)
    assert simulator.node.failure is None
    assert world.pose == pytest.approx(world.robot.plate.pose, abs=1e-5)


def test_an_exception_inside_is_told_with_its_place(simulator, capfd):
    world = simulator.open()
    simulator.run(3)

    def broken(*_):
        raise ZeroDivisionError("no reason")

    simulator.node.host.step = broken
    simulator.run(3)
    assert world.requests == [("pause", True)]
    assert "no reason" in str(simulator.node.failure)
    assert "Traceback" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "block", "words"),
    [
        ("-p coupling:=loose", "", "coupling"),
        ("-p base_joints:=world", "", "change their lengths"),
        ("", "<plugin><rods>gone.yaml</rods></plugin>", "gone.yaml"),
    ],
)
def test_mistakes_leave_a_node_that_tells(simulator, capfd, arguments, block, words):
    world = simulator.open("stewart_6efr", block, arguments)
    assert isinstance(simulator.node, FaultNode)
    assert simulator.node.get_name() == topics.ROD_SOLVER
    simulator.run(3)
    assert world.requests == [("pause", True)]
    out = capfd.readouterr()
    assert words in out.out + out.err
    assert "has no rods" in out.out + out.err


def test_paused_worlds_are_not_moved_and_models_that_are_gone_are_let_go(simulator):
    world = simulator.open(path=("left",))
    assert simulator.node.get_namespace() == "/left"
    simulator.run(3)
    moves = world.moves
    simulator.run(5, paused=True)
    assert world.moves == moves
    world.there = False
    simulator.node._housekeeping()
    simulator.run(1)
    assert simulator.node is None
    simulator.run(1)


def test_the_run_ends_by_itself_and_tells_its_cost(simulator, capfd):
    world = simulator.open(arguments="-p duration:=0.01 -p play:=true")
    simulator.run(20)
    assert world.requests == [("pause", True), ("stop",)]
    simulator.plugin.shutdown()
    out = capfd.readouterr()
    assert "20 steps" in out.out + out.err
    assert "median cost" in out.out + out.err
