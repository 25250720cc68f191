"""Node ``mrc`` over topics with a robot that is simulated here, on the time of its states."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("mujoco", reason="MuJoCo is not installed")
from sensor_msgs.msg import JointState

from cards_core.formats import load
from cards_core.muscles.command import CommandPart
from cards_core.parameters.declaration import ParameterSet
from cards_core.stamps import nanoseconds
from cards_ros import topics
from cards_ros.controller_node import ControllerNode
from cards_ros.diagnostics import Level
from cards_ros.testing import NodeThread
from cards_sim.build import build_host

pytestmark = pytest.mark.ros

ROBOT = load("musashi_like")
MUSCLES = [muscle.name for muscle in ROBOT.muscles]
JOINTS = list(ROBOT.tree.position_names)
HOME = [-0.35, 0.3, 0.0, -1.05, 0.0] * 2
STEPS = 8
"""Of the simulator, between two states."""


class Robot:
    """A robot whose states are published and answered one by one, 125 in a second."""

    def __init__(self, probe):
        given = {"initial_positions": HOME, "command_timeout": 0.1, "decay_time": 0.5}
        self.host = build_host(ParameterSet(given, "simulator"), ROBOT)
        self.probe = probe
        self.answers = probe.listen(JointState, topics.IMPEDANCE_COMMAND)
        self.tensions = []

    def messages(self, lost):
        state = self.host.state
        joints = JointState(name=JOINTS)
        muscles = JointState(name=MUSCLES)
        for message in (joints, muscles):
            stamp = message.header.stamp
            stamp.sec, stamp.nanosec = divmod(nanoseconds(state.time), 10**9)
        joints.position, joints.velocity = state.q.tolist(), state.qd.tolist()
        muscles.position = state.muscle_lengths.tolist()
        muscles.velocity = state.muscle_rates.tolist()
        muscles.effort = state.tensions.tolist()
        for message, fields in lost:
            for field in fields:
                one = {"joints": joints, "muscles": muscles}[message]
                setattr(one, field, [float("nan")] * len(one.name))
        return joints, muscles

    def run(self, duration, lost=()):
        """Return the tensions of the steps of a time [s], with readings that are lost."""
        end, begin = self.host.state.time + duration, len(self.tensions)
        while self.host.state.time < end - 1e-9:
            answer = self.ask(*self.messages(lost))
            effort, length, rate = (
                np.array(given) for given in (answer.effort, answer.position, answer.velocity)
            )
            part = CommandPart("impedance", tuple(answer.name), effort, length, rate)
            for _ in range(STEPS):
                self.host.submit((part,))
                self.host.step()
                self.tensions.append(self.host.state.tensions)
        return np.array(self.tensions[max(begin - STEPS, 0) :])

    def ask(self, joints, muscles):
        del self.answers[:]
        for _ in range(50):
            self.probe.publish(joints, topics.JOINT_STATES)
            self.probe.publish(muscles, topics.MUSCLE_STATES)
            try:
                return self.probe.until(
                    lambda: next((a for a in self.answers if a.header == joints.header), None),
                    "an answer",
                    patience=0.5,
                )
            except TimeoutError:
                continue
        raise TimeoutError("no answer")


def jump(tensions):
    """Return the maximum change of a tension within 8 ms, [N]."""
    return float(np.abs(tensions[8:] - tensions[:-8]).max())


MRC = partial(ControllerNode, "mrc")
ANGLES = ("joints", ("position", "velocity"))
LENGTHS = ("muscles", ("position", "velocity"))


@pytest.mark.parametrize(
    ("lost", "parameters"),
    [
        ((ANGLES,), {}),
        ((ANGLES, LENGTHS), {}),
        ((ANGLES, LENGTHS), {"joint_angles": "estimated"}),
    ],
)
def test_lost_readings_and_their_return_change_no_tension_by_more_than_5_newtons(
    domain, probe, lost, parameters
):
    with NodeThread(MRC, domain, model="musashi_like", reference="", **parameters):
        robot = Robot(probe)
        robot.run(1.0)
        held = np.linalg.norm(robot.host.state.tensions)
        gone = robot.run(0.8, lost)
        probe.until_status("mrc: control", Level.ERROR)
        assert np.linalg.norm(robot.host.state.tensions) < 0.8 * held
        back = robot.run(1.0)
        probe.until_status("mrc: control", Level.OK)
        assert jump(gone) < 5.0
        assert jump(back) < 5.0


def test_a_node_that_is_started_again_goes_on_with_the_tensions_that_are_there(domain, probe):
    wrong = {"attachment_offset": 0.002, "reference": "", "model": "musashi_like"}
    robot = Robot(probe)
    with NodeThread(MRC, domain, **wrong):
        robot.run(1.5)
    before = np.linalg.norm(robot.host.state.tensions)
    with NodeThread(MRC, domain, **wrong, perturbation_seed=5):
        again = robot.run(1.0)
    assert np.linalg.norm(again[-1]) != pytest.approx(before, rel=0.02)  # of another model
    assert jump(again) < 5.0
