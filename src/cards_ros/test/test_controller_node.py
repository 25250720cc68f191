"""Controller nodes behind real topics: answers, references, services, parameters, failures."""

import itertools
import math
import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from functools import partial

from geometry_msgs.msg import PoseStamped
from rcl_interfaces.srv import SetParameters
from rclpy.exceptions import InvalidParameterValueException
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from cards_core.control import make_controller
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.loop.model_identity import identity_of
from cards_core.robot.state import RobotState
from cards_ros import topics
from cards_ros.controller_node import ControllerNode
from cards_ros.diagnostics import Level
from cards_ros.model_topic import ModelTopic
from cards_ros.testing import NodeThread

pytestmark = pytest.mark.ros

ROBOT = load("planar_2r")
MUSCLES = [muscle.name for muscle in ROBOT.muscles]
JOINTS = ["joint_1", "joint_2"]
START = (-0.5, 0.5)
STEP = 1_000_000


JOINT = partial(ControllerNode, "ctc_joint")
OPERATIONAL = partial(ControllerNode, "ctc_operational")


def joint_node(domain, **parameters):
    return NodeThread(
        partial(ControllerNode, "ctc_joint"), domain, model="planar_2r", **parameters
    )


def stamp_of(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def state(k, q=START, qd=(0.0, 0.0), names=JOINTS):
    message = JointState(name=list(names), position=list(q), velocity=list(qd))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(k * STEP, 10**9)
    return message


def ask(probe, message):
    """Publish a state until it is answered, and return the answer."""
    answers = probe.listen(JointState, topics.FORCE_COMMAND)
    del answers[:]
    for _ in range(50):
        probe.publish(message, topics.JOINT_STATES)
        try:
            return probe.until(
                lambda: next((a for a in answers if a.header == message.header), None),
                "an answer",
                patience=0.5,
            )
        except TimeoutError:
            continue
    raise TimeoutError(f"no answer to {message}")


def tell(probe, node, message):
    """Publish a state until the node has read it: more often could leave some behind it."""
    stamp, sent = stamp_of(message), [-math.inf]

    def read():
        if time.monotonic() - sent[-1] > 1.0:
            probe.publish(message, topics.JOINT_STATES)
            sent.append(time.monotonic())
        return node._stamp == stamp

    probe.until(read, "the state")


def test_answers_are_those_of_the_controller(domain, probe):
    reference_node = {"reference": "there_and_back", "kp": 2000, "kd": [90.0, 80.0]}
    controller = make_controller("ctc_joint", ROBOT, kp=2000.0, kd=[90.0, 80.0])
    with joint_node(domain, **reference_node) as thread:
        reference = thread.node.control.reference
        assert reference.duration == 8.0
        controller.set_reference(reference, start=0.002)
        rng = np.random.default_rng(3)
        for k in (2, 3, 4, 1000):
            q, qd = START + 0.01 * rng.normal(size=2) * (k > 2), rng.normal(size=2) * (k > 2)
            answer = ask(probe, state(k, q, qd))
            controller.step(RobotState(k * STEP / 1e9, q, qd))
            expected = controller.output
            assert answer.name == MUSCLES
            assert np.array(answer.effort).tobytes() == expected.tensions.tobytes()
        # in another order of joints it is the same state
        thread.node._last_answer = None
        answer = ask(probe, state(1001, q[::-1], qd[::-1], JOINTS[::-1]))
        controller.step(RobotState(1.001, q, qd))
        expected = controller.output
        assert np.array(answer.effort).tobytes() == expected.tensions.tobytes()


def test_a_state_that_comes_twice_gets_the_same_answer_and_counts_once(domain, probe, tmp_path):
    with joint_node(domain, log_dir=str(tmp_path)) as thread:
        first = ask(probe, state(5))
        steps = thread.node.control.steps
        assert ask(probe, state(5)) == first
        assert thread.node.control.steps == steps == 1
        ask(probe, state(6, (-0.4, 0.5)))
        assert thread.node.control.steps == 2
        ask(probe, state(0))  # time went back: a reset
        assert thread.node.control.steps == 1
    with np.load(tmp_path / "controller.npz") as log:
        assert log["time"].tolist() == [0.0]


def test_skipped_states_are_missed_deadlines(domain, probe):
    with joint_node(domain) as thread:
        for k, missed in ((0, 0), (1, 0), (2, 0), (5, 2), (6, 2), (8, 3)):
            ask(probe, state(k))
            assert thread.node.missed == missed


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (state(1, (0.1,), (0.0,), ["joint_1"]), "no value for joint_2"),
        (state(1, (0.1,) * 3, (0.0,) * 3, [*JOINTS, "tail"]), "unknown: tail"),
        (state(1, (0.1,) * 2, (0.0,) * 2, ["joint_1", "joint_1"]), "more than once: joint_1"),
        (state(1, (0.1,) * 2, ()), "0 velocities for 2 names"),
        (state(1, (0.1,), (0.0,) * 2), "1 positions"),
    ],
)
def test_states_of_other_joints_are_an_error_and_not_answered(domain, probe, message, words):
    with joint_node(domain) as thread:
        ask(probe, state(0))
        answers = probe.received[topics.FORCE_COMMAND]
        del answers[:]
        probe.publish(message, topics.JOINT_STATES)
        status = probe.until_status("ctc_joint: states", Level.ERROR, words)
        assert "joint" in status.message
        probe.spin(0.05)
        assert answers == []
        ask(probe, state(2))  # it goes on with the next good one
        assert thread.node.problem == ""


def test_a_state_that_is_not_finite_gives_minimum_tensions(domain, probe):
    with joint_node(domain):
        answer = ask(probe, state(0, (math.nan, 0.0)))
        assert answer.effort.tolist() == [10.0] * 4
        probe.until_status("ctc_joint: control", Level.ERROR, "not finite")


def test_diagnostics_say_whether_steps_are_compiled(domain, probe):
    def told():
        status = probe.status("ctc_joint: control")
        values = {} if status is None else {item.key: item.value for item in status.values}
        return values.get("native") == "yes"

    with joint_node(domain):
        ask(probe, state(0))
        probe.until(told, "native: yes")


def test_missing_states_are_reported(domain, probe):
    with joint_node(domain, state_timeout=0.2):
        probe.until_status("ctc_joint: states", Level.WARN, "waiting for joint_states")
        ask(probe, state(0))
        probe.until_status("ctc_joint: states", Level.ERROR, "no joint_states for 0.2 s")
        probe.forget()
        ask(probe, state(1))
        probe.until_status("ctc_joint: states", Level.OK)


def test_enable_estop_and_restart(domain, probe):
    with joint_node(domain, autostart=False, reference="there_and_back") as thread:
        node = thread.node
        answers = probe.listen(JointState, topics.FORCE_COMMAND)
        tell(probe, node, state(0))
        probe.until_status("ctc_joint: control", Level.WARN, "disabled")
        assert answers == []
        assert probe.call(SetBool, "ctc_joint/enable", data=True).success
        ask(probe, state(500))
        assert node.controller.output.desired.tolist() == list(START)  # begins now
        ask(probe, state(2500))
        moved = node.controller.output.desired.copy()
        assert np.abs(moved - START).max() > 0.1
        assert probe.call(Trigger, "ctc_joint/restart").success
        ask(probe, state(2501))
        assert node.controller.output.desired.tolist() == list(START)
        del answers[:]
        assert probe.call(Trigger, "ctc_joint/estop").success
        probe.until(lambda: answers, "the last command")
        assert answers[-1].effort.tolist() == [10.0] * 4
        assert stamp_of(answers[-1]) == 2501 * STEP
        probe.publish(state(2502), topics.JOINT_STATES)
        probe.spin(0.1)
        assert len(answers) == 1


def test_a_host_that_is_not_ready_gets_no_commands_and_the_reference_waits(domain, probe):
    """The real robot publishes states before it is armed."""
    host = ModelTopic(probe.node, "host", identity_of(ROBOT), ready=False)
    with joint_node(domain, reference="there_and_back") as thread:
        node = thread.node
        answers = probe.listen(JointState, topics.FORCE_COMMAND)
        probe.until_status("ctc_joint: control", Level.WARN, "waiting until /probe is active")
        tell(probe, node, state(1))
        assert probe.call(Trigger, "ctc_joint/estop").success  # has nobody to command
        assert probe.call(SetBool, "ctc_joint/enable", data=True).success
        tell(probe, node, state(2000))
        assert answers == []
        host.ready(True)
        probe.until(lambda: not node.unready, "readiness")
        ask(probe, state(5000))
        assert node.controller.output.desired.tolist() == list(START)  # begins now
        ask(probe, state(7000))
        assert np.abs(node.controller.output.desired - START).max() > 0.1
        host.ready(False)
        probe.until(lambda: node.unready, "the loss")
        del answers[:]
        tell(probe, node, state(7001))
        assert answers == []
        host.ready(True)
        probe.until(lambda: not node.unready, "readiness")
        ask(probe, state(9000))
        assert node.controller.output.desired.tolist() == list(START)


def test_gains_change_while_running_and_wrong_ones_are_refused(domain, probe):
    with joint_node(domain, kp=[100.0, 100.0]) as thread:

        def put(name, value):
            parameter = Parameter(name, value=value).to_parameter_msg()
            answer = probe.call(SetParameters, "ctc_joint/set_parameters", parameters=[parameter])
            return answer.results[0]

        ask(probe, state(0))
        assert thread.node.controller.gains.kd.tolist() == [20.0, 20.0]  # critical
        assert put("kp", [400.0, 900.0]).successful
        assert thread.node.controller.gains.kp.tolist() == [400.0, 900.0]
        assert thread.node.controller.gains.kd.tolist() == [40.0, 60.0]
        assert put("kd", [1.0, 2.0]).successful
        assert thread.node.controller.gains.kd.tolist() == [1.0, 2.0]
        result = put("kp", [1.0, 2.0, 3.0])
        assert not result.successful
        assert "2 numbers, one for each of joint_1, joint_2" in result.reason
        assert not put("kp", [-5.0, 1.0]).successful
        assert not put("solver", "osqp").successful
        assert thread.node.controller.gains.kp.tolist() == [400.0, 900.0]


def announce(probe, robot=ROBOT, period=1e-3):
    """Say as a host which model there is, and how often states come."""
    host = ModelTopic(probe.node, "host", identity_of(robot))
    host.states_every(period)
    return host


@pytest.mark.parametrize("name", ["kp", "kd"])
def test_gains_that_the_period_of_the_host_does_not_allow_are_refused(domain, probe, name):
    announce(probe)
    with joint_node(domain, kp=[2000.0, 2000.0], kd=[90.0, 90.0]) as thread:
        node = thread.node

        def put(**values):
            wanted = [Parameter(n, value=v).to_parameter_msg() for n, v in values.items()]
            answer = probe.call(SetParameters, "ctc_joint/set_parameters", parameters=wanted)
            return answer.results

        first = ask(probe, state(0))
        assert node.controller.period == 1e-3
        beyond = 3e5 if name == "kp" else 1001.0
        for value in (1e308, 1e12, beyond, math.inf, math.nan):
            (result,) = put(**{name: [value, value]})
            assert not result.successful
            assert name in result.reason
        assert "period of 1 ms" in put(**{name: [beyond] * 2})[0].reason
        assert node.controller.gains.kp.tolist() == [2000.0, 2000.0]
        assert node.controller.gains.kd.tolist() == [90.0, 90.0]
        assert node.parameters["kp"].tolist() == [2000.0, 2000.0]
        assert node.parameters["kd"].tolist() == [90.0, 90.0]
        assert list(ask(probe, state(0)).effort) == list(first.effort)
        # one at a time, in the order in which each pair is stable
        assert [r.successful for r in put(kp=[1e5, 1e5], kd=[600.0, 600.0])] == [False, True]
        assert [r.successful for r in put(kp=[1e5, 1e5])] == [True]


def test_no_state_is_answered_with_gains_that_the_period_does_not_allow(domain, probe):
    host = announce(probe)
    answers = probe.listen(JointState, topics.FORCE_COMMAND)
    with joint_node(domain, kp=[1e8, 1e8]) as thread:
        node, stamps = thread.node, itertools.count()

        def refused(reason):
            # again and again: what is sent before the node is found by the network is lost
            def told():
                probe.publish(state(next(stamps)), topics.JOINT_STATES)
                return reason in node.problem

            probe.until(told, "the reason")

        refused("period of 1 ms")
        assert "kp 1e+08" in node.problem
        assert not answers
        assert not node.control.steps
        parameter = Parameter("kp", value=[400.0, 400.0]).to_parameter_msg()
        answer = probe.call(SetParameters, "ctc_joint/set_parameters", parameters=[parameter])
        assert answer.results[0].successful
        ask(probe, state(next(stamps)))
        assert not node.problem
        assert node.controller.period == 1e-3
        host.states_every(0.05)  # the host steps ten times slower
        probe.until(lambda: node.models.period == 0.05, "the new period")
        refused("period of 50 ms")
        del answers[:]
        refused("period of 50 ms")
        assert not answers


def test_new_gains_answer_the_same_state_anew_but_do_not_begin_anew(domain, probe, tmp_path):
    parameters = {"reference": "there_and_back", "kp": 100.0, "log_dir": str(tmp_path)}
    with joint_node(domain, **parameters) as thread:
        node = thread.node
        ask(probe, state(0))
        first = ask(probe, state(1500))  # far from the reference by now
        desired = node.controller.output.desired.copy()
        node.set_parameters([Parameter("kp", value=50.0)])
        second = ask(probe, state(1500))
        assert second.effort != first.effort
        assert np.array_equal(node.controller.output.desired, desired)
        # disabled and enabled in between: the reference begins, the log goes on
        probe.call(SetBool, "ctc_joint/enable", data=False)
        probe.call(SetBool, "ctc_joint/enable", data=True)
        ask(probe, state(1500))
        assert node.controller.output.desired.tolist() == list(START)
        ask(probe, state(1501))
    with np.load(tmp_path / "controller.npz") as log:
        assert log["time"].tolist() == [0.0, 1.5, 1.501]


def test_desired_and_error_are_published(domain, probe):
    with joint_node(domain, state_rate=500.0) as thread:
        desired = probe.listen(JointState, "ctc_joint/desired")
        error = probe.listen(JointState, "ctc_joint/error")
        node = thread.node
        probe.until(lambda: node._desired.wanted and node._error.wanted, "discovery")
        for k in range(7):
            ask(probe, state(k, (-0.5, 0.4)))
        probe.until(lambda: len(desired) >= 1 and len(error) >= 1, "both")
        assert desired[-1].name == JOINTS
        assert desired[-1].position.tolist() == [-0.5, 0.4]
        assert desired[-1].velocity.tolist() == [0.0, 0.0]
        assert error[-1].name == JOINTS
        assert all(stamp_of(m) % (2 * STEP) == 0 for m in desired)


def test_a_joint_trajectory_is_followed(domain, probe):
    with joint_node(domain) as thread:
        node = thread.node
        ask(probe, state(0))
        message = JointTrajectory(joint_names=JOINTS[::-1])
        point = JointTrajectoryPoint(positions=[1.0, 0.5], velocities=[0.0, 0.0])
        point.time_from_start.sec = 2
        message.points.append(point)
        probe.publish(message, "ctc_joint/reference")
        probe.until(lambda: node.controller._reference.duration == 2.0, "the reference")
        ask(probe, state(1000))
        assert np.allclose(node.controller.output.desired, [0.0, 0.75])  # half way
        ask(probe, state(2500))
        assert np.allclose(node.controller.output.desired, [0.5, 1.0])
        # a wrong one changes nothing
        message.joint_names = ["joint_1", "tail"]
        probe.publish(message, "ctc_joint/reference")
        probe.spin(0.1)
        ask(probe, state(2501))
        assert np.allclose(node.controller.output.desired, [0.5, 1.0])


def test_a_pose_is_approached(domain, probe):
    parameters = {"axes": "xz", "reference_speed": 0.5, "model": "planar_2r"}
    with NodeThread(OPERATIONAL, domain, **parameters) as thread:
        node = thread.node
        ask(probe, state(0))
        start = node.controller.output.actual.copy()
        assert node.controller.output.error.size == 2
        pose = PoseStamped()
        pose.header.frame_id = "world"
        pose.pose.position.x = start[0] + 0.1
        pose.pose.position.y = 7.0  # not controlled
        pose.pose.position.z = start[1]
        probe.publish(pose, "ctc_operational/reference")
        probe.until(lambda: node.controller._reference.duration > 0.0, "the reference")
        assert node.controller._reference.duration == pytest.approx(15 / 8 * 0.1 / 0.5)
        ask(probe, state(1000))
        assert np.allclose(node.controller.output.desired, start + np.array([0.1, 0.0]))
        pose.header.frame_id = "table"
        pose.pose.position.x = 9.0
        probe.publish(pose, "ctc_operational/reference")
        probe.spin(0.1)
        ask(probe, state(1001))
        assert np.allclose(node.controller.output.desired, start + np.array([0.1, 0.0]))


def test_other_models_can_be_tried_out(domain):
    with joint_node(domain, mass_factor=1.1, attachment_offset=0.002) as thread:
        masses = [link.inertia.mass for link in thread.node.controller.model.robot.links]
    assert np.allclose(masses, [1.1 * link.inertia.mass for link in ROBOT.links])


@pytest.mark.parametrize(
    ("node", "parameters", "words"),
    [
        (
            partial(ControllerNode, "ctc_joint"),
            {"kp": [1.0]},
            ["kp", "1 values", "2 numbers", "joint_1, joint_2"],
        ),
        (
            partial(ControllerNode, "ctc_joint"),
            {"force_weight": [1.0] * 3},
            ["force_weight", "4 numbers", MUSCLES[0]],
        ),
        (JOINT, {"solver": "magic"}, ["solver", "daqp or osqp"]),
        (
            partial(ControllerNode, "ctc_joint"),
            {"reference": "nothing"},
            ["nothing", "there_and_back"],
        ),
        (JOINT, {"tension_max": 200.0}, ["tension_max", "200"]),
        (JOINT, {"kd": [-0.5, 1.0, 1.0]}, ["kd", "3 values"]),
        (OPERATIONAL, {"axes": "xw"}, ["axes"]),
        (OPERATIONAL, {"frame": "tail"}, ["tail"]),
        (OPERATIONAL, {"posture": [0.0]}, ["posture", "2 numbers"]),
        (
            partial(ControllerNode, "ctc_operational"),
            {"reference": "there_and_back"},
            ["operational space"],
        ),
    ],
)
def test_bad_parameters_are_refused(domain, node, parameters, words):
    with pytest.raises((CardsError, InvalidParameterValueException)) as caught:
        NodeThread(node, domain, **({"model": "planar_2r"} | parameters))
    for word in words:
        assert word in str(caught.value)
