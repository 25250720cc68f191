"""Node ``joint_estimator`` beside a simulator: the pose that it finds, and why it finds none."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("mujoco", reason="MuJoCo is not installed")
from sensor_msgs.msg import JointState

from cards_core.formats import load
from cards_ros.diagnostics import Level
from cards_ros.testing import Probe, end_process, start_process

pytestmark = pytest.mark.ros


@pytest.fixture
def start():
    running = []

    def begin(module, parameters):
        running.append(start_process(module, parameters))
        return running[-1]

    yield begin
    for process in running:
        end_process(process)


def stamp_of(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def test_the_pose_of_a_moving_robot_is_found_from_lengths(domain, start):
    """Within half a degree of what the simulator says for the same instants."""
    model = {"model": "roboy_arm"}
    start("controllers.joint_estimator", model | {"rate": 0.0})
    with Probe(domain) as probe:
        truth = probe.listen(JointState, "joint_states")
        found = probe.listen(JointState, "joint_estimator/joint_states")
        start("cards_sim.simulator_node", model | {"mode": "lockstep"})
        probe.until_status("joint_estimator: estimate", Level.OK)
        start("controllers.ctc_joint", model)

        def pairs():
            exact = {stamp_of(message): message.position for message in truth}
            return [(m, exact[stamp_of(m)]) for m in found if stamp_of(m) in exact]

        probe.until(lambda: len(pairs()) > 50 and stamp_of(found[-1]) > 5e8, "estimates")
        both = pairs()
        assert list(both[0][0].name) == list(truth[0].name)
        errors = [np.subtract(m.position, exact) for m, exact in both]
        assert np.abs(errors).max() < np.radians(0.5)


def test_lengths_of_another_place_and_lost_ones_are_said(domain, start):
    robot = load("planar_2r")
    names = [muscle.name for muscle in robot.muscles]
    start("controllers.joint_estimator", {"model": "planar_2r"})
    with Probe(domain) as probe:
        muscles = probe.node.create_publisher(JointState, "muscle_states", 1)
        probe.until_status("joint_estimator: states", Level.WARN, "waiting for muscle_states")
        message = JointState(name=names, position=[9.0, 0.1, 0.1, 7.0])
        probe.until(lambda: muscles.get_subscription_count() > 0, "the node")
        for k in range(5):
            message.header.stamp.sec = k
            muscles.publish(message)
            probe.spin(0.05)
        probe.until_status("joint_estimator: estimate", Level.ERROR, "no pose of planar_2r")
        probe.until_status("joint_estimator: states", Level.ERROR, "no muscle_states for 0.5 s")
