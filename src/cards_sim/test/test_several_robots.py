"""Several robots of one world behind topics: a namespace each, one time."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from rclpy.parameter_client import AsyncParameterClient
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.formats.sdf.world import load_world
from cards_core.muscles.command import command_of
from cards_ros import topics
from cards_ros.diagnostics import Level
from cards_ros.testing import NodeThread
from cards_sim.build import build_world_host
from cards_sim.simulator_node import SimulatorNode

pytestmark = pytest.mark.ros

ARMS = ("left_arm", "right_arm")
MUSCLES = [muscle.name for muscle in load("roboy_arm").muscles]


def two_arms(domain, **parameters):
    return NodeThread(SimulatorNode, domain, world="two_arms", **parameters)


def stamp_of(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def command(probe, arm, tensions, stamp=0):
    message = JointState(name=MUSCLES, effort=[float(x) for x in tensions])
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    probe.publish(message, f"{arm}/{topics.FORCE_COMMAND}")


def answer(probe, arm, tensions_of_step):
    """Answer every state of an arm; what ``tensions_of_step(k)`` has none for is not answered."""
    topic = f"{arm}/{topics.FORCE_COMMAND}"
    publisher = probe.node.create_publisher(JointState, topic, topics.COMMAND_QOS)
    probe._publishers[topic] = publisher

    def react(message):
        tensions = tensions_of_step(round(stamp_of(message) / 1e6))
        if tensions is not None:
            command(probe, arm, tensions, stamp_of(message))

    return probe.listen(JointState, f"{arm}/{topics.JOINT_STATES}", react=react)


def test_lockstep_of_two_arms_is_their_world_to_the_last_bit(domain, probe):
    commands = np.random.default_rng(3).uniform(10.0, 200.0, size=(2, 30, len(MUSCLES)))
    plain = build_world_host(load_world("two_arms"))
    expected = []
    for step in range(30):
        for arm, tensions in zip(ARMS, commands[:, step], strict=True):
            plain.robots[arm].submit(command_of(MUSCLES, tensions))
        plain.step()
        expected.append([plain.robots[arm].state.q for arm in ARMS])
    with two_arms(domain, mode="lockstep") as thread:
        states = [
            answer(probe, arm, lambda k, own=own: own[k] if k < len(own) else None)
            for arm, own in zip(ARMS, commands, strict=True)
        ]
        probe.until(
            lambda: all(got and stamp_of(got[-1]) == 30_000_000 for got in states),
            "the last state of both",
        )
        assert thread.node.steps == 30
    for arm, got in enumerate(states):
        by_step = {round(stamp_of(message) / 1e6): message.position for message in got}
        for step in range(30):
            assert list(by_step[step + 1]) == expected[step][arm].tolist()


def test_lockstep_waits_for_all_robots(domain, probe):
    with two_arms(domain, mode="lockstep") as thread:
        answer(probe, "left_arm", lambda k: np.full(len(MUSCLES), 50.0))
        probe.until_status("right_arm/simulator: commands", Level.WARN, "waiting for the first")
        probe.until(lambda: thread.node.robots[0].host.gate.accepted > 0, "a command")
        probe.spin(0.2)
        assert thread.node.steps == 0
        assert thread.node.robots[1].waiting
        assert not thread.node.robots[0].waiting
        answer(probe, "right_arm", lambda k: np.full(len(MUSCLES), 50.0) if k < 5 else None)
        probe.until(lambda: thread.node.steps == 5, "steps")
        probe.until_status("right_arm/simulator: commands", Level.ERROR, "t = 0.005 s")
        assert probe.status("left_arm/simulator: commands").level == bytes([Level.OK])


def test_an_emergency_stop_is_of_one_robot_and_a_reset_of_all(domain, probe):
    with two_arms(domain, wait_for_command=False, mode="as_fast_as_possible") as thread:
        probe.until(lambda: thread.node.steps > 5, "time")
        assert probe.call(Trigger, "left_arm/simulator/estop").success
        left, right = (robot.host for robot in thread.node.robots)
        assert (left.gate.stopped, right.gate.stopped) == (True, False)
        probe.until_status("left_arm/simulator: commands", Level.ERROR, "emergency stop")
        assert probe.call(SetBool, "right_arm/sim/pause", data=True).success
        probe.until_status("left_arm/simulator: world", Level.WARN, "paused")
        assert probe.call(Trigger, "right_arm/sim/reset").success
        assert (left.stamp, right.stamp) == (0, 0)
        assert not left.gate.stopped
        assert probe.call(Trigger, "sim/step").success
        assert (left.stamp, right.stamp) == (1_000_000, 1_000_000)


def test_every_robot_has_its_log_and_parameters(domain, probe, tmp_path):
    gains = [float(k) for k in range(len(MUSCLES))]
    with two_arms(
        domain,
        wait_for_command=False,
        duration=0.02,
        mode="as_fast_as_possible",
        log_dir=str(tmp_path),
        command_timeout=0.25,
        impedance_stiffness=gains,
    ) as thread:
        thread.join()
        for robot in thread.node.robots:
            assert robot.host.gate.timeout == 0.25
            assert robot.host.gate.impedance.stiffness.tolist() == gains
    for arm in ARMS:
        with np.load(tmp_path / arm / "simulator.npz") as log:
            assert len(log["time"]) == 20
    assert not (tmp_path / "simulator.npz").exists()


def test_the_speed_is_one_for_all(domain, probe):
    with two_arms(domain, wait_for_command=False) as thread:
        remote = AsyncParameterClient(probe.node, "right_arm/simulator")
        probe.until(remote.services_are_ready, "the parameters")
        from rclpy.parameter import Parameter

        done = remote.set_parameters([Parameter("speed", value=0.5)])
        probe.until(done.done, "the answer")
        assert done.result().results[0].successful
        assert thread.node.control.pacer.interval == 0.002
        assert [robot.parameters["speed"] for robot in thread.node.robots] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"impedance_stifness": [1.0]}, "did you mean 'impedance_stiffness'"),
        ({"initial_positions": [0.0]}, "initial_positions"),
    ],
)
def test_parameters_that_no_robot_has_are_refused(domain, parameters, words):
    with pytest.raises(CardsError, match=words):
        two_arms(domain, **parameters)


def test_namespaces_of_robots_cannot_be_moved(domain):
    with pytest.raises(CardsError, match="namespace /x for a world"):
        NodeThread(SimulatorNode, domain, {"namespace": "x"}, world="two_arms")
