"""Which commands count, and that the topics of a host are complete."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from cards_core.formats import load
from cards_core.loop.host import open_host_log
from cards_core.robot.actuators import Cable
from cards_core.robot.state import RobotState
from cards_ros import topics
from cards_ros.host_shell import HostTopics, StaleCommandError, is_answer
from cards_ros.testing import Probe, private_domain

pytestmark = pytest.mark.ros


@pytest.mark.parametrize(
    ("answered", "now", "counts"),
    [(0, 0, True), (0, 900, True), (500, 500, True), (450, 500, True), (501, 500, False)],
)
def test_answers_while_time_runs(answered, now, counts):
    assert is_answer(answered, now, lockstep=False, patience=100) is counts


def test_a_sender_that_has_not_seen_the_robot_for_long_is_named():
    with pytest.raises(StaleCommandError, match=r"t = 4e-07 s.*older than command_timeout"):
        is_answer(400, 501, lockstep=False, patience=100)


@pytest.mark.parametrize(("answered", "counts"), [(500, True), (0, False), (400, False)])
def test_answers_in_lockstep(answered, counts):
    assert is_answer(answered, 500, lockstep=True, patience=10) is counts


def test_states_go_out_and_commands_come_in():
    robot = load("planar_2r")
    # elastic cables take lengths, too
    elastic = (replace(muscle, actuator=Cable(stiffness=1e4)) for muscle in robot.muscles)
    robot = replace(robot, muscles=tuple(elastic))
    muscles = [muscle.name for muscle in robot.muscles]
    with private_domain() as domain, Probe(domain) as probe:
        context = Context()
        context.init(args=[], domain_id=domain)
        node = Node("host", context=context)
        host = HostTopics(node, robot, robot.tree, ["cable_1/state"], "<robot/>")
        received = {
            topic: probe.listen(kind, topic)
            for kind, topic in (
                (JointState, topics.JOINT_STATES),
                (JointState, topics.MUSCLE_STATES),
                (Float64MultiArray, topics.POSITIONS),
                (Float64MultiArray, topics.VELOCITIES),
            )
        }
        text = probe.listen(String, topics.ROBOT_DESCRIPTION, topics.LATCHED_QOS)

        def published():
            host.refresh()
            lengths, rates, tensions = np.arange(12.0).reshape(3, 4)
            host.publish(
                3_000_000_007,
                RobotState(
                    3.000000007,
                    np.array([0.1, 0.2]),
                    np.array([0.3, 0.4]),
                    muscle_lengths=lengths,
                    muscle_rates=rates,
                    tensions=tensions,
                    actuators=np.array([0.9]),
                ),
            )
            return all(received.values()) and text

        probe.until(published, "a message of each")
        joints, states = received[topics.JOINT_STATES][-1], received[topics.MUSCLE_STATES][-1]
        assert (joints.header.stamp.sec, joints.header.stamp.nanosec) == (3, 7)
        assert list(joints.position) == [0.1, 0.2]
        assert list(joints.velocity) == [0.3, 0.4]
        assert list(states.name) == [*muscles, "cable_1/state"]
        assert list(states.position) == [0.0, 1.0, 2.0, 3.0, 0.9]
        assert list(states.effort) == [8.0, 9.0, 10.0, 11.0, 0.0]
        assert list(received[topics.VELOCITIES][-1].data) == [0.3, 0.4]

        sent = JointState(name=["cable_1"], effort=[5.0], position=[0.7])
        probe.publish(sent, topics.FORCE_COMMAND)
        probe.publish(sent, topics.LENGTH_COMMAND)
        found = {}

        def taken():
            for _, part in host.commands():
                found[part.kind] = (list(part.names), part.values.tolist())
            return len(found) == 2

        probe.until(taken, "both commands")
        # a length is where a JointState has positions
        assert found == {"force": (["cable_1"], [5.0]), "length": (["cable_1"], [0.7])}
        node.destroy_node()
        context.try_shutdown()


def test_the_log_names_its_columns(tmp_path):
    robot = load("planar_2r")
    log = open_host_log(tmp_path / "log.npz", robot, robot.tree, ["cable_1/state"])
    muscles = (np.ones(4), np.ones(4), np.ones(4), np.ones(1))
    log.append(0.5, np.ones(2), np.ones(2), *muscles, np.zeros(0), 0.0, 0.0, 0.0, 0.0)
    log.close()
    with np.load(tmp_path / "log.npz") as data:
        assert data["actuators"].shape == (1, 1)
        assert data["position_names"].tolist() == ["joint_1", "joint_2"]
        assert data["actuator_names"].tolist() == ["cable_1/state"]
        assert (data["efforts"].shape, data["motor_names"].size) == ((1, 0), 0)
