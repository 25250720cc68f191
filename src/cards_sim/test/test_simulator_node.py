"""The simulator behind real topics: commands, refusals, watchdog, services, failures."""

import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hybrid_robots import MOTORS, platform_arm

pytest.importorskip("rclpy", reason="rclpy is not installed")
from rclpy.exceptions import InvalidParameterValueException
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.loop import answer_watch
from cards_core.muscles.command import CommandPart
from cards_core.parameters.declaration import ParameterSet
from cards_ros import topics
from cards_ros.diagnostics import Level
from cards_ros.host_shell import REPUBLISH_PERIOD
from cards_ros.testing import PATIENCE, NodeThread
from cards_sim.build import build_host
from cards_sim.simulator import Simulator
from cards_sim.simulator_node import SimulatorNode

pytestmark = pytest.mark.ros

MUSCLES = [muscle.name for muscle in load("planar_2r").muscles]
MINIMUM = 10.0


def simulator(domain, **parameters):
    return NodeThread(SimulatorNode, domain, model="planar_2r", **parameters)


def command(tensions, stamp=0, names=MUSCLES):
    message = JointState(name=list(names), effort=[float(x) for x in tensions])
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    return message


def stamp_of(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def answer_with(probe, tensions_of_step):
    """Answer every state of a lockstep simulator; ``tensions_of_step(k)`` may be None."""

    def react(message):
        tensions = tensions_of_step(round(stamp_of(message) / 1e6))
        if tensions is not None:
            probe.publish(command(tensions, stamp_of(message)), topics.FORCE_COMMAND)

    # the publisher first: it must not be made inside of a callback
    publisher = probe.node.create_publisher(JointState, topics.FORCE_COMMAND, topics.COMMAND_QOS)
    probe._publishers[topics.FORCE_COMMAND] = publisher
    return probe.listen(JointState, topics.JOINT_STATES, react=react)


@pytest.mark.parametrize("mode", ["lockstep", "as_fast_as_possible"])
def test_time_made_of_answers_is_the_simulator_to_the_last_bit(domain, probe, monkeypatch, mode):
    """As fast as possible, too, if only answers come in time; 60 s are time enough here."""
    monkeypatch.setattr(answer_watch, "PATIENCE", PATIENCE)
    commands = np.random.default_rng(2).uniform(10.0, 100.0, size=(60, 4))
    plain = Simulator(load("planar_2r"))
    expected = [plain.state]
    for tensions in commands:
        plain.step(tensions)
        expected.append(plain.state)
    with simulator(domain, mode=mode) as thread:
        muscles = probe.listen(JointState, topics.MUSCLE_STATES)
        states = answer_with(probe, lambda k: commands[k] if k < 60 else None)
        probe.until(lambda: states and stamp_of(states[-1]) == 60_000_000, "60 steps")
        assert thread.node.steps == 60
        probe.until(lambda: muscles and stamp_of(muscles[-1]) == 60_000_000, "muscle states")
    for message in states:
        state = expected[stamp_of(message) // 1_000_000]
        assert message.name == ["joint_1", "joint_2"]
        assert np.array(message.position).tobytes() == state.q.tobytes()
        assert np.array(message.velocity).tobytes() == state.qd.tobytes()
    for message in muscles:
        state = expected[stamp_of(message) // 1_000_000]
        assert message.name == MUSCLES
        assert np.array(message.position).tobytes() == state.muscle_lengths.tobytes()
        assert np.array(message.velocity).tobytes() == state.muscle_rates.tobytes()
        assert np.array(message.effort).tobytes() == state.tensions.tobytes()


def test_a_tensegrity_in_lockstep_is_the_simulator_to_the_last_bit(domain, probe):
    """Set-points of the impedance law, on terrain."""
    robot, steps = load("tetraspine_hardware"), 60
    names = tuple(muscle.name for muscle in robot.muscles)
    rates = np.random.default_rng(4).uniform(-0.05, 0.05, (steps, len(names)))
    tension, length = np.full(len(names), 10.0), np.full(len(names), 0.2)
    terrain = "blocks:count=500,friction=0.5"
    plain = build_host(ParameterSet({"terrain": terrain}, "simulator"), robot)
    expected = [plain.state.q.tobytes()]
    for row in rates:
        plain.submit((CommandPart("impedance", names, tension, length, row),))
        plain.step()
        expected.append(plain.state.q.tobytes())
    publisher = probe.node.create_publisher(
        JointState, topics.IMPEDANCE_COMMAND, topics.COMMAND_QOS
    )
    probe._publishers[topics.IMPEDANCE_COMMAND] = publisher

    def react(message):
        if (k := round(stamp_of(message) / 1e6)) < steps:
            answer = JointState(
                name=list(names), position=length, velocity=rates[k], effort=tension
            )
            answer.header.stamp = message.header.stamp
            probe.publish(answer, topics.IMPEDANCE_COMMAND)

    given = {"model": robot.name, "mode": "lockstep", "terrain": terrain}
    with NodeThread(SimulatorNode, domain, **given):
        states = probe.listen(JointState, topics.JOINT_STATES, react=react)
        probe.until(lambda: states and stamp_of(states[-1]) == 60_000_000, "60 steps")
    for message in states:
        assert np.array(message.position).tobytes() == expected[stamp_of(message) // 1_000_000]


def test_lockstep_waits_repeats_and_ignores_other_stamps(domain, probe):
    with simulator(domain, mode="lockstep") as thread:
        states = probe.listen(JointState, topics.JOINT_STATES)
        probe.until(lambda: len(states) >= 3, "the first state three times")
        assert {stamp_of(m) for m in states} == {0}
        probe.publish(command([50.0] * 4, stamp=5_000_000), topics.FORCE_COMMAND)
        probe.spin(2 * REPUBLISH_PERIOD)
        assert thread.node.steps == 0
        probe.publish(command([50.0] * 4, stamp=0), topics.FORCE_COMMAND)
        probe.until(lambda: stamp_of(states[-1]) == 1_000_000, "a step")
        probe.publish(command([60.0] * 4, stamp=0), topics.FORCE_COMMAND)  # a late answer
        probe.until_status(
            "simulator: commands", Level.ERROR, "no answer to the state of t = 0.001"
        )
        assert thread.node.steps == 1


def test_a_stopped_robot_sinks_in_paced_time_though_nobody_answers(domain, probe):
    with simulator(domain, mode="paced") as thread:
        states = probe.listen(JointState, topics.JOINT_STATES)
        probe.until(lambda: states, "the first state")
        probe.publish(command([50.0] * 4, stamp=0), topics.FORCE_COMMAND)
        probe.until(lambda: stamp_of(states[-1]) == 1_000_000, "a step")
        probe.spin(2 * REPUBLISH_PERIOD)
        assert thread.node.steps == 1  # as in lockstep
        probe.call(Trigger, "simulator/estop")
        probe.until(lambda: thread.node.steps > 10, "more steps")
        assert thread.node.host.state.tensions.tolist() == [MINIMUM] * 4


def test_a_hybrid_robot_in_lockstep_waits_for_muscles_and_motors(domain, probe):
    robot = platform_arm()
    ropes = [muscle.name for muscle in robot.muscles]
    plain = Simulator(robot)
    plain.step(np.array([50.0] * 4 + [3.0, -1.0]))
    with NodeThread(SimulatorNode, domain, {"robot": robot}, mode="lockstep") as thread:
        states = probe.listen(JointState, topics.JOINT_STATES)
        probe.until(lambda: states, "the first state")
        assert states[0].name == ["x", "z", "turn", *MOTORS]
        assert list(states[0].effort) == [0.0] * 5
        probe.publish(command([50.0] * 4, names=ropes), topics.FORCE_COMMAND)
        probe.until_status(
            "simulator: commands", Level.ERROR, "the world waits for a command for the motors"
        )
        assert thread.node.steps == 0
        for efforts, words in (
            ([3.0, -5.5], "effort of motor 'elbow' is -5.5 Nm or N, expected -5 .. 5 Nm or N"),
            ([3.0, math.nan], "is nan"),
        ):
            probe.forget()
            probe.publish(command(efforts, names=MOTORS), topics.EFFORT_COMMAND)
            probe.until_status("simulator: commands", Level.WARN, words)
        assert thread.node.steps == 0
        probe.publish(command([-1.0, 3.0], names=MOTORS[::-1]), topics.EFFORT_COMMAND)
        probe.until(lambda: states and stamp_of(states[-1]) == 1_000_000, "a step")
    assert np.array(states[-1].position).tobytes() == plain.state.q.tobytes()
    assert np.array(states[-1].velocity).tobytes() == plain.state.qd.tobytes()
    assert list(states[-1].effort) == [0.0, 0.0, 0.0, 3.0, -1.0]


def test_watchdog_and_emergency_stop_take_the_efforts_away(domain, probe):
    robot = platform_arm()
    options = {"mode": "realtime", "command_timeout": 0.05}
    with NodeThread(SimulatorNode, domain, {"robot": robot}, **options) as thread:
        host = thread.node.host
        probe.until_status("simulator: commands", Level.WARN, "waiting for the first command")
        probe.publish(command([3.0, -1.0], names=MOTORS), topics.EFFORT_COMMAND)
        words = "no valid command for 0.05 s: shoulder, elbow without effort"
        probe.until_status("simulator: commands", Level.ERROR, words)
        probe.until(lambda: host.state.efforts.tolist() == [0.0, 0.0], "no effort")
        answer = probe.call(Trigger, "simulator/estop")
        assert answer.message.startswith("tensions at their minimum, motors without effort;")
        probe.publish(command([3.0, -1.0], names=MOTORS), topics.EFFORT_COMMAND)
        words = "emergency stop: tensions at their minimum, motors without effort until sim/reset"
        probe.until_status("simulator: commands", Level.ERROR, words)
        before = host.stamp
        probe.until(lambda: host.stamp > before + 5_000_000, "some steps")
        assert host.state.efforts.tolist() == [0.0, 0.0]


REFUSED = [
    (command([50.0], names=["biceps"]), "no muscle named 'biceps'"),
    (command([math.nan, 50, 50, 50]), "is nan N"),
    (command([50, math.inf, 50, 50]), "is inf N"),
    (command([50, 50, 100.001, 50]), "is 100.001 N, expected 10 .. 100 N"),
    (command([50, 50, 50, 9.999]), "is 9.999 N, expected 10 .. 100 N"),
    (command([-50, 50, 50, 50]), "is -50 N"),
    (command([], names=[]), "no muscle is named"),
    (command([50.0] * 3), "3 values for 4 names"),
    (command([50.0] * 5), "5 values for 4 names"),
    (JointState(name=MUSCLES, position=[50.0] * 4), "0 values for 4 names"),
    (command([50.0, 50.0], names=[MUSCLES[0]] * 2), "more than once"),
]


def test_refused_commands_are_reported_and_nothing_is_applied(domain, probe):
    with simulator(domain, mode="realtime", command_timeout=3600.0) as thread:
        host = thread.node.host
        probe.until_status("simulator: commands", Level.WARN, "waiting for the first command")
        for number, (message, words) in enumerate(REFUSED, start=1):
            probe.forget()
            probe.publish(message, topics.FORCE_COMMAND)
            status = probe.until_status("simulator: commands", Level.WARN, words)
            assert {v.key: v.value for v in status.values}["refused"] == str(number)
            assert host.stamp == 0  # time still waits for a command
            assert np.array_equal(host.gate.values(0.0), [MINIMUM] * 4)
        # a part of the muscles is a valid command, and starts time
        probe.publish(command([40.0, 30.0], names=[MUSCLES[2], MUSCLES[0]]), topics.FORCE_COMMAND)
        probe.until(lambda: host.stamp > 5_000_000, "time")
        assert host.state.tensions.tolist() == [30.0, MINIMUM, 40.0, MINIMUM]
        # and a refused one leaves all that as it is
        probe.publish(command([90.0, math.nan], names=MUSCLES[:2]), topics.FORCE_COMMAND)
        probe.until(lambda: host.gate.refused == len(REFUSED) + 1, "the refusal")
        before = host.stamp
        probe.until(lambda: host.stamp > before + 5_000_000, "some steps")
        assert host.state.tensions.tolist() == [30.0, MINIMUM, 40.0, MINIMUM]


def test_watchdog_relaxes_the_muscles_and_says_so(domain, probe, tmp_path):
    with simulator(domain, mode="realtime", command_timeout=0.05, log_dir=str(tmp_path)) as thread:
        probe.publish(command([80.0] * 4), topics.FORCE_COMMAND)
        status = probe.until_status("simulator: commands", Level.ERROR, "no valid command for")
        assert MUSCLES[0] in status.message
        host = thread.node.host
        assert host.state.tensions.tolist() == [MINIMUM] * 4
        probe.forget()
        probe.publish(command([70.0] * 4), topics.FORCE_COMMAND)  # it recovers by itself
        probe.until_status("simulator: commands", Level.OK)
    with np.load(tmp_path / "simulator.npz") as log:
        first = log["tensions"].max(axis=1) > MINIMUM
        until = int(np.argmin(first))  # first step at minimum tension
        assert until > 0
        assert log["time"][until - 1] <= 0.05 + 1e-3 + 1e-9


def test_pause_step_and_reset(domain, probe):
    start = [-0.4, 0.3]
    parameters = {"wait_for_command": False, "initial_positions": start}
    with simulator(domain, mode="realtime", **parameters) as thread:
        node = thread.node
        assert not probe.call(Trigger, topics.STEP_SERVICE).success  # not paused
        answer = probe.call(SetBool, topics.PAUSE_SERVICE, data=True)
        assert answer.success
        assert "paused" in answer.message
        steps = node.steps
        assert steps > 0
        states = probe.listen(JointState, topics.JOINT_STATES)
        probe.until(lambda: len(states) >= 2, "the state, repeated")
        assert node.steps == steps
        for k in (1, 2):
            assert probe.call(Trigger, topics.STEP_SERVICE).success
            assert node.steps == steps + k
        probe.until_status("simulator: world", Level.WARN, "paused")
        probe.call(SetBool, topics.PAUSE_SERVICE, data=False)
        probe.until(lambda: node.steps > steps + 20, "time going on")
        probe.call(SetBool, topics.PAUSE_SERVICE, data=True)
        assert probe.call(Trigger, topics.RESET_SERVICE).success
        assert node.steps == 0
        assert node.host.stamp == 0
        assert node.host.state.q.tolist() == start


def test_pause_and_step_in_lockstep(domain, probe):
    with simulator(domain, mode="lockstep") as thread:
        node = thread.node
        states = answer_with(probe, lambda k: [50.0] * 4)
        probe.until(lambda: node.steps > 20, "some steps")
        probe.call(SetBool, topics.PAUSE_SERVICE, data=True)
        probe.spin(0.1)
        steps = node.steps
        assert probe.call(Trigger, topics.STEP_SERVICE).success
        probe.until(lambda: stamp_of(states[-1]) == (steps + 1) * 1_000_000, "the next state")
        probe.spin(0.1)
        assert node.steps == steps + 1
        probe.call(SetBool, topics.PAUSE_SERVICE, data=False)
        probe.until(lambda: node.steps > steps + 20, "time going on")


def test_emergency_stop_holds_until_reset(domain, probe):
    with simulator(domain, mode="realtime", command_timeout=3600.0) as thread:
        host = thread.node.host
        probe.publish(command([80.0] * 4), topics.FORCE_COMMAND)
        probe.until(lambda: host.state.tensions.tolist() == [80.0] * 4, "tension")
        assert probe.call(Trigger, "simulator/estop").success
        probe.until_status("simulator: commands", Level.ERROR, "emergency stop")
        probe.publish(command([80.0] * 4), topics.FORCE_COMMAND)
        before = host.stamp
        probe.until(lambda: host.stamp > before + 20_000_000, "time goes on")
        assert host.state.tensions.tolist() == [MINIMUM] * 4
        probe.call(Trigger, topics.RESET_SERVICE)
        assert host.stamp == 0
        probe.publish(command([80.0] * 4, stamp=7_000_000_000), topics.FORCE_COMMAND)
        probe.spin(0.1)
        assert host.stamp == 0  # that one answered a state from before the reset
        probe.publish(command([80.0] * 4), topics.FORCE_COMMAND)
        probe.until(lambda: host.stamp > 5_000_000, "time")
        assert host.state.tensions.tolist() == [80.0] * 4


def test_diverging_physics_stop_the_world_but_not_the_node(domain, probe):
    with simulator(domain, mode="realtime", wait_for_command=False) as thread:
        node = thread.node
        probe.until(lambda: node.steps > 10, "some steps")
        probe.call(SetBool, topics.PAUSE_SERVICE, data=True)
        step = node.steps + 1
        node.host.simulator.data.qvel[1] = math.nan
        answer = probe.call(Trigger, topics.STEP_SERVICE)
        status = probe.until_status("simulator: world", Level.ERROR, f"stopped in step {step}")
        assert "joint 'joint_2'" in status.message
        assert "body" in status.message
        assert not answer.success
        probe.call(SetBool, topics.PAUSE_SERVICE, data=False)
        probe.spin(0.1)
        assert node.steps == step - 1
        assert probe.call(Trigger, topics.RESET_SERVICE).success
        probe.until(lambda: node.steps > 10, "a new start")
        probe.forget()
        probe.until_status("simulator: world", Level.OK, "running")


def test_as_fast_as_possible_goes_on_and_counts_when_answers_stay_away(domain, probe, monkeypatch):
    monkeypatch.setattr(answer_watch, "PATIENCE", 0.05)
    with simulator(domain, mode="as_fast_as_possible", command_timeout=1.0) as thread:
        answer_with(probe, lambda k: [50.0] * 4 if k < 20 else None)
        probe.until(lambda: thread.node.steps > 500, "time without answers")
        status = probe.until_status("simulator: loop", Level.OK)
        assert "unanswered_states" in {value.key for value in status.values}
        assert thread.node.control.watches[0].unanswered >= 1


def test_other_topics(domain, probe):
    with simulator(domain, mode="realtime", wait_for_command=False) as thread:
        q = probe.listen(Float64MultiArray, topics.POSITIONS)
        q_dot = probe.listen(Float64MultiArray, topics.VELOCITIES)
        clock = probe.listen(Clock, topics.CLOCK, topics.CLOCK_QOS)
        text = probe.listen(String, topics.ROBOT_DESCRIPTION, topics.LATCHED_QOS)
        probe.until(lambda: q and q_dot and len(clock) > 2 and text, "a message of each")
        assert len(q[-1].data) == len(q_dot[-1].data) == 2
        # 100 Hz of simulated time
        assert all(m.clock.nanosec % 10_000_000 == 0 for m in clock)
        robot = ET.fromstring(text[0].data)
        assert {joint.get("name") for joint in robot.iter("joint")} >= {"joint_1", "joint_2"}
        status = probe.until_status("simulator: loop", Level.OK)
        assert {v.key for v in status.values} >= {"missed_deadlines"}
        assert thread.node.steps > 0


def test_the_node_ends_after_its_duration_and_writes_the_log(domain, tmp_path):
    parameters = {"mode": "as_fast_as_possible", "wait_for_command": False}
    with simulator(domain, duration=0.25, log_dir=str(tmp_path), **parameters) as thread:
        thread.join()
        assert thread.exit_code == 0
        assert thread.node.host.stamp == 250_000_000
    with np.load(tmp_path / "simulator.npz") as log:
        assert log["time"].size == 250
        assert log["time"][-1] == 0.25


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"initial_positions": [0.1]}, ["initial_positions", "1 values", "2 numbers", "joint_1"]),
        ({"mode": "quick"}, ["mode", "realtime or as_fast_as_possible or lockstep or paced"]),
        ({"model": "nobody"}, ["nobody", "planar_2r"]),
        ({"dt": 0.0}, ["dt"]),
        ({"command_timeout": -1.0}, ["command_timeout"]),
        ({"duration": math.nan}, ["duration"]),
    ],
)
def test_bad_parameters_are_refused(domain, parameters, words):
    with pytest.raises((CardsError, InvalidParameterValueException)) as caught:
        NodeThread(SimulatorNode, domain, **({"model": "planar_2r"} | parameters))
    for word in words:
        assert word in str(caught.value)
