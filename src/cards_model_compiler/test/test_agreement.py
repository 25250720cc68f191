"""Simulator, controllers and compiler must have one model: real nodes, real topics."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from functools import partial

from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool

from cards_core.formats import load
from cards_core.loop.model_identity import Announcement, decode, encode, identity_of
from cards_ros import topics
from cards_ros.controller_node import ControllerNode
from cards_ros.diagnostics import Level
from cards_ros.testing import NodeThread, Probe
from cards_sim.simulator_node import SimulatorNode
from changed_robots import with_limits, with_mass, with_muscle

pytestmark = pytest.mark.ros

ROBOT = load("planar_2r")
HEAVY = with_mass(ROBOT, 1.5)
SAME = identity_of(ROBOT)
MUSCLES = [muscle.name for muscle in ROBOT.muscles]


def simulator(domain, robot=ROBOT, *, namespace="", **parameters):
    options = {"robot": robot, "namespace": namespace}
    return NodeThread(SimulatorNode, domain, options, **{"mode": "lockstep", **parameters})


def controller(domain, robot=ROBOT, *, namespace="", **parameters):
    options = {"robot": robot, "namespace": namespace}
    return NodeThread(partial(ControllerNode, "ctc_joint"), domain, options, **parameters)


def steps(thread, count=10):
    return lambda: thread.node.steps >= count


def announce(probe, role, robot, *, instance="x", name="", commands=False, topic=topics.MODEL):
    said = Announcement(name or f"/{role}", instance, role, identity_of(robot), commands)
    probe.publish(String(data=encode(said)), topic, topics.LATCHED_QOS)


def set_live(probe, node, name, value):
    request = [Parameter(name, value=value).to_parameter_msg()]
    answer = probe.call(SetParameters, f"{node}/set_parameters", parameters=request)
    assert answer.results[0].successful, answer.results[0].reason


def test_the_same_model_is_commanded_and_all_say_which(domain, probe):
    heard = probe.listen(String, topics.MODEL, topics.MODEL_QOS)
    # the controller first: the topic keeps its last sample only, and this one is soon another
    with controller(domain):
        probe.until(lambda: heard, "the model of a controller that has no host")
        assert not decode(heard[0].data).commands
        with simulator(domain) as host:
            probe.until(steps(host), "ten steps")
            for name in ("simulator: model", "ctc_joint: model"):
                status = probe.until_status(name, Level.OK)
                assert {v.key: v.value for v in status.values}["hash"] == SAME.hash
            with Probe(domain, "late") as late:
                again = late.listen(String, topics.MODEL, topics.MODEL_QOS)
                late.until(lambda: len(again) == 2, "both models, though late")
    said = {decode(m.data).node: decode(m.data) for m in again}
    assert set(said) == {"/simulator", "/ctc_joint"}
    assert all(one.model == SAME for one in said.values())
    assert (said["/simulator"].role, said["/ctc_joint"].role) == ("host", "controller")
    assert said["/ctc_joint"].commands


@pytest.mark.parametrize(
    ("robot", "words"),
    [
        (HEAVY, ["equations (masses", f"hash {SAME.hash} here", identity_of(HEAVY).hash]),
        (with_limits(ROBOT, -1.0, 1.0), ["joint limits: joint_2", "-1.0 .. 1.0 there"]),
        (
            with_muscle(ROBOT, tension_max=90.0),
            ["tension limits [N]: cable_1 10.0 .. 100.0 here, 10.0 .. 90.0 there"],
        ),
        (replace(ROBOT, muscles=ROBOT.muscles[1:]), ["muscles: cable_1 only here"]),
    ],
)
def test_a_controller_does_not_command_another_model(domain, probe, robot, words):
    commands = probe.listen(JointState, topics.FORCE_COMMAND)
    with simulator(domain, robot) as host, controller(domain) as thread:
        status = probe.until_status("ctc_joint: model", Level.ERROR, "no commands: host /simulat")
        for word in words:
            assert word in status.message
        assert "start all with the same model, or set accept_other_model" in status.message
        probe.until_status("ctc_joint: control", Level.WARN, "another node has another model")
        refused = probe.call(SetBool, "ctc_joint/enable", data=True)
        assert not refused.success
        assert refused.message.startswith("not enabled: host /simulator has another model")
        probe.spin(0.3)
        assert commands == []
        assert host.node.steps == 0
        assert thread.node.control.steps == 0
        # the simulator is the authority, and nobody commands it: a remark
        probe.until_status("simulator: model", Level.WARN, "controller /ctc_joint has another")


def test_a_controller_that_runs_stops_and_goes_on_from_where_it_is(domain, probe):
    with simulator(domain) as host, controller(domain) as thread:
        probe.until(steps(host), "ten steps")
        with Probe(domain, "other") as other:
            announce(other, "host", HEAVY)
            probe.until_status("ctc_joint: model", Level.ERROR, "host /host has another model")
            probe.until_status("simulator: model", Level.ERROR, "host /host has another model")
            heard = probe.listen(String, topics.MODEL, topics.MODEL_QOS)
            probe.until(
                lambda: any(
                    decode(m.data).node == "/ctc_joint" and not decode(m.data).commands
                    for m in heard
                ),
                "the controller to say that it does not command",
            )
            stopped = host.node.steps
            probe.spin(0.3)
            assert host.node.steps == stopped
            assert thread.node.control.steps == 0
        probe.forget()
        # the other host is gone
        probe.until(lambda: host.node.steps > stopped + 10, "more steps")
        probe.until_status("ctc_joint: model", Level.OK)
        assert thread.node.control.steps > 0


def test_other_models_are_accepted_if_both_sides_are_told_so(domain, probe):
    with simulator(domain, HEAVY) as host, controller(domain) as thread:
        probe.until_status("ctc_joint: model", Level.ERROR, "no commands")
        set_live(probe, "ctc_joint", "accept_other_model", True)
        words = "controller /ctc_joint has another model 'planar_2r'"
        probe.until_status("simulator: model", Level.ERROR, f"no commands: {words}")
        assert host.node.steps == 0
        set_live(probe, "simulator", "accept_other_model", True)
        probe.until(steps(host), "ten steps")
        for name in ("ctc_joint: model", "simulator: model"):
            probe.until_status(name, Level.WARN, "has another model")
        set_live(probe, "ctc_joint", "accept_other_model", False)
        probe.until_status("ctc_joint: model", Level.ERROR, "no commands")
        stopped = host.node.steps
        probe.spin(0.3)
        assert host.node.steps <= stopped + 1
        assert thread.node.control.steps == 0


def test_model_errors_on_purpose_are_no_other_model(domain, probe):
    with simulator(domain) as host, controller(domain, mass_factor=1.3, attachment_offset=0.001):
        probe.until(steps(host), "ten steps")
        probe.until_status("ctc_joint: model", Level.OK)


def test_a_simulator_refuses_commands_of_a_controller_with_another_model(domain, probe):
    message = JointState(name=MUSCLES, effort=[50.0] * 4)
    with simulator(domain) as host:
        probe.until_status("simulator: model", Level.OK)
        announce(probe, "controller", HEAVY, name="/mine", commands=True)
        probe.until_status("simulator: model", Level.ERROR, "controller /mine has another model")
        probe.publish(message, topics.FORCE_COMMAND)
        probe.spin(0.3)
        assert host.node.steps == 0
        announce(probe, "controller", HEAVY, name="/mine", commands=False)
        probe.until_status("simulator: model", Level.WARN, "controller /mine has another model")
        probe.publish(message, topics.FORCE_COMMAND)
        probe.until(steps(host, 1), "a step")


def test_a_compiler_with_another_model_is_a_remark_where_there_is_a_host(domain, probe):
    with simulator(domain) as host, controller(domain):
        probe.until(steps(host), "ten steps")
        announce(probe, "compiler", HEAVY)
        for name in ("simulator: model", "ctc_joint: model"):
            probe.until_status(name, Level.WARN, "compiler /compiler has another model")
        now = host.node.steps
        probe.until(steps(host, now + 10), "more steps")


def test_a_compiler_counts_where_no_host_has_spoken(domain, probe):
    with Probe(domain, "other") as other, controller(domain) as thread:
        announce(other, "compiler", HEAVY)
        probe.until_status("ctc_joint: model", Level.ERROR, "compiler /compiler has another model")
        state = JointState(name=["joint_1", "joint_2"], position=[0.1, 0.2], velocity=[0.0, 0.0])
        commands = probe.listen(JointState, topics.FORCE_COMMAND)
        for _ in range(3):  # the first may come before the controller has found its sender
            probe.publish(state, topics.JOINT_STATES)
            probe.spin(0.1)
        assert commands == []
        assert thread.node.control.steps == 0
        announce(other, "compiler", ROBOT)
        probe.until_status("ctc_joint: model", Level.OK)

        def answered():
            probe.publish(state, topics.JOINT_STATES)
            return commands

        probe.until(answered, "a command")


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 1}'])
def test_what_is_not_understood_is_an_error_on_diagnostics_and_nothing_else(domain, probe, text):
    with simulator(domain) as host, controller(domain):
        probe.publish(String(data=text), topics.MODEL, topics.LATCHED_QOS)
        for name in ("simulator: model", "ctc_joint: model"):
            probe.until_status(name, Level.ERROR, "a message on the topic 'model' is not underst")
        now = host.node.steps
        probe.until(steps(host, now + 10), "steps all the same")


def test_robots_in_namespaces_do_not_disturb_each_other(domain, probe):
    with (
        simulator(domain, namespace="left") as left,
        simulator(domain, HEAVY, namespace="right") as right,
        controller(domain, namespace="left"),
        controller(domain, HEAVY, namespace="right"),
        simulator(domain, HEAVY, namespace="wrong") as wrong,
        controller(domain, namespace="wrong") as confused,
    ):
        probe.until(steps(left), "steps of the left one")
        probe.until(steps(right), "steps of the right one")
        probe.until(lambda: confused.node.refusal, "a refusal")
        assert "host /wrong/simulator has another model" in confused.node.refusal
        assert wrong.node.steps == 0
        for host in (left, right):
            assert host.node.robots[0].models.refusal == ""


def test_the_comparison_changes_nothing_in_lockstep(domain, tmp_path):
    """All rows of the log to the last bit, with and without others that say the same."""
    logs = []
    for company in (False, True):
        folder = tmp_path / str(company)
        with (
            Probe(domain, "company") as friend,
            simulator(domain, duration=0.05, log_dir=str(folder)) as host,
            controller(domain, kp=900.0),
        ):
            if company:
                announce(friend, "compiler", ROBOT)
            friend.until(lambda host=host: host.exit_code is not None, "the end")
        with np.load(folder / "simulator.npz") as log:
            logs.append({name: log[name] for name in log.files})
    assert len(logs[0]["time"]) == 50
    for name, values in logs[0].items():
        assert values.tobytes() == logs[1][name].tobytes(), name
