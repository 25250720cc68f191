"""The plugin's node behind real topics, in a simulator of our own."""

import threading
import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from fake_simulator import FakeSimulator
from hybrid_robots import MOTORS, platform_arm
from rclpy.context import Context
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from test_gazebo_host import block_of

from cards_core.formats import load, write_model
from cards_core.loop import answer_watch
from cards_core.loop.model_identity import Announcement, decode, encode, identity_of
from cards_core.muscles.command import command_of
from cards_muscle_plugin import node as node_module
from cards_muscle_plugin.fault_node import FaultNode
from cards_muscle_plugin.hosted_robot import host_robot
from cards_muscle_plugin.node import SimulatorNode
from cards_ros import topics
from cards_ros.diagnostics import Level
from cards_ros.testing import PATIENCE, Probe
from changed_robots import with_mass

pytestmark = pytest.mark.ros

MUSCLES = [muscle.name for muscle in load("planar_2r").muscles]


class World(threading.Thread):
    """A simulator that runs, with the node in it."""

    def __init__(self, domain, *, path=None, model="planar_2r", **parameters):
        super().__init__(daemon=True)
        robot = load(model)
        self.simulator = FakeSimulator(robot, path=path, file=robot.source)
        self.context = Context()
        self.context.init(args=[], domain_id=domain)
        hosted = host_robot(self.simulator, block_of(model))
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.node = SimulatorNode(
            self.context, hosted, self.simulator, self.simulator, parameter_overrides=overrides
        )
        self.steps = 0
        self.error = None
        self._stopping = False

    def run(self):
        try:
            while not self._stopping and not self.simulator.ended:
                self.steps += self.simulator.iterate(self.node)
                time.sleep(1e-3 if self.simulator.paused else 1e-4)
        except Exception as error:
            self.error = error

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._stopping = True
        self.join(PATIENCE)
        self.node.close()
        self.context.try_shutdown()
        if self.error is not None:
            raise self.error


def command(tensions, stamp=0, names=MUSCLES):
    message = JointState(name=list(names), effort=[float(x) for x in tensions])
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    return message


def stamp_of(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def answer(probe, tensions_of, seen=None):
    """Answer every state with its stamp, unless ``tensions_of`` gives None."""

    def react(message):
        if seen is not None:
            seen.append(message)
        tensions = tensions_of(stamp_of(message))
        if tensions is not None:
            probe.publish(command(tensions, stamp_of(message)), topics.FORCE_COMMAND)

    publisher = probe.node.create_publisher(JointState, topics.FORCE_COMMAND, topics.COMMAND_QOS)
    probe._publishers[topics.FORCE_COMMAND] = publisher
    return probe.listen(JointState, topics.JOINT_STATES, react=react)


def test_time_waits_for_the_first_command_at_home(domain, probe):
    with World(domain) as world:
        states = probe.listen(JointState, topics.JOINT_STATES)
        probe.until(lambda: len(states) >= 3, "the state, repeated")
        # a world that was started running does one step before the pause is there
        assert {stamp_of(m) for m in states} == {1_000_000}
        assert list(states[-1].name) == ["joint_1", "joint_2"]
        assert list(states[-1].position) == [-0.5, 0.5]
        assert list(states[-1].velocity) == [0.0, 0.0]
        assert world.steps == 1
        probe.until_status("simulator: world", Level.OK, "waiting for a command")
        probe.until_status("simulator: commands", Level.WARN, "waiting for the first command")
        probe.publish(command([60.0] * 4), topics.FORCE_COMMAND)
        probe.until(lambda: world.steps > 20, "time")
        assert world.node.host.tensions.max() == 60.0
        # without further commands the muscles relax, and it is said
        probe.until_status("simulator: commands", Level.ERROR, "no valid command for 0.1 s")
        assert world.node.host.tensions.tolist() == [10.0] * 4


def test_without_waiting_time_runs(domain, probe):
    with World(domain, wait_for_command=False) as world:
        muscles = probe.listen(JointState, topics.MUSCLE_STATES)
        clock = probe.listen(Clock, topics.CLOCK, topics.CLOCK_QOS)
        text = probe.listen(String, topics.ROBOT_DESCRIPTION, topics.LATCHED_QOS)
        probe.until(lambda: muscles and len(clock) > 2 and text, "a message of each")
        assert list(muscles[-1].name) == MUSCLES
        assert list(muscles[-1].effort) == [10.0] * 4
        assert all(m.clock.nanosec % 10_000_000 == 0 for m in clock)
        assert world.node.steps > 20
        status = probe.until_status("simulator: loop", Level.OK)
        assert {v.key for v in status.values} >= {"plugin_us_per_step"}


def test_it_says_which_model_it_moves(domain, probe):
    with World(domain, path=("left",)) as world:
        heard = probe.listen(String, f"left/{topics.MODEL}", topics.MODEL_QOS)
        probe.until(lambda: heard, "the model")
        said = decode(heard[0].data)
        assert (said.node, said.role) == ("/left/simulator", "host")
        assert said.model == identity_of(load("planar_2r"))
        assert world.node.models.refusal == ""


def test_commands_of_a_controller_with_another_model_are_refused(domain, probe):
    other = identity_of(with_mass(load("planar_2r"), 2.0))
    with World(domain) as world:
        for commands, level in ((True, Level.ERROR), (False, Level.WARN)):
            said = Announcement("/mine", "a", "controller", other, commands)
            probe.publish(String(data=encode(said)), topics.MODEL, topics.LATCHED_QOS)
            words = "controller /mine has another model 'planar_2r': equations (masses"
            probe.until_status("simulator: model", level, words)
            probe.publish(command([60.0] * 4), topics.FORCE_COMMAND)
            probe.spin(0.2)
            assert (world.node.host.gate.accepted > 0) is not commands


def answered_run(domain, probe, commands, mode):
    states = []
    with World(domain, mode=mode) as world:
        first = 1_000_000
        last = first + len(commands) * 1_000_000

        def tensions_of(stamp):
            index = (stamp - first) // 1_000_000
            return commands[index] if index < len(commands) else None

        answer(probe, tensions_of, states)
        probe.until(lambda: states and stamp_of(states[-1]) == last, "all steps")
        assert world.steps == 1 + len(commands)
        assert world.node.failure is None
    return {stamp_of(m): (tuple(m.position), tuple(m.velocity)) for m in states}


def test_lockstep_repeats_to_the_last_bit(domain, monkeypatch):
    """So does as fast as possible, if no answer takes longer than it waits."""
    monkeypatch.setattr(answer_watch, "PATIENCE", 5.0)
    commands = np.random.default_rng(5).uniform(10.0, 100.0, size=(50, 4))
    runs = []
    for mode in ("lockstep", "lockstep", "as_fast_as_possible"):
        with Probe(domain) as probe:
            runs.append(answered_run(domain, probe, commands, mode))
    assert len(runs[0]) == 51
    assert runs[0] == runs[1]
    assert runs[0] == runs[2]
    # every step had the command that answered the state before it
    robot = load("planar_2r")
    plain = FakeSimulator(robot, file=robot.source)
    hosted = host_robot(plain, block_of("planar_2r"))
    from test_gazebo_host import Turn

    from cards_muscle_plugin.gazebo_host import GazeboHost

    host = GazeboHost(hosted, plain, command_timeout=1.0)
    turn = Turn(host)
    plain.paused, plain.time = True, 1_000_000
    plain.iterate(turn)
    plain.paused = False
    for tensions in commands:
        host.submit(command_of(MUSCLES, tensions))
        plain.iterate(turn)
        assert runs[0][plain.time] == (tuple(host.q), tuple(host.qd))


def test_a_hybrid_robot_in_lockstep_waits_for_muscles_and_motors(domain, probe, tmp_path):
    robot = platform_arm()
    model = write_model(robot, tmp_path / robot.name)
    ropes = [muscle.name for muscle in robot.muscles]
    with World(domain, model=model, mode="lockstep") as world:
        states = probe.listen(JointState, topics.JOINT_STATES)
        probe.until(lambda: states, "the first state")
        stamp = stamp_of(states[-1])
        before = world.node.steps
        probe.publish(command([50.0] * 4, stamp, names=ropes), topics.FORCE_COMMAND)
        words = "the world waits for a command for the motors"
        probe.until_status("simulator: commands", Level.ERROR, words)
        assert world.node.steps == before
        probe.publish(command([3.0, -1.0], stamp, names=MOTORS), topics.EFFORT_COMMAND)
        probe.until(lambda: stamp_of(states[-1]) > stamp, "a step")
        probe.until(lambda: list(states[-1].effort) == [0.0, 0.0, 0.0, 3.0, -1.0], "the efforts")
        answer = probe.call(Trigger, "simulator/estop")
        assert answer.message.startswith("tensions at their minimum, motors without effort;")


def test_lockstep_without_answer_pauses_and_goes_on_when_one_comes(domain, probe, monkeypatch):
    monkeypatch.setattr(node_module, "ANSWER_TIME", 0.3)
    with World(domain, mode="lockstep") as world:
        limit = [20_000_000]
        states = answer(probe, lambda stamp: [50.0] * 4 if stamp < limit[0] else None)
        status = probe.until_status("simulator: world", Level.ERROR, "no answer to the state")
        assert "t = 0.02 s" in status.message
        probe.until(lambda: world.simulator.paused, "the pause")
        probe.spin(0.3)
        assert world.steps == 21  # the step that had begun was done
        limit[0] = 40_000_000
        probe.until(lambda: states and stamp_of(states[-1]) >= 40_000_000, "time going on")
        probe.forget()
        assert world.node.host.tensions.tolist() == [50.0] * 4


def test_refusals_are_reported_and_nothing_is_applied(domain, probe):
    with World(domain, command_timeout=3600.0) as world:
        probe.until(lambda: world.node.host.known and world.simulator.paused, "the start")
        for names, tensions, words in (
            (["biceps"], [50.0], "no muscle named 'biceps'"),
            (MUSCLES, [float("nan"), 50, 50, 50], "is nan N"),
            (MUSCLES, [50.0] * 3, "3 values for 4 names"),
        ):
            probe.forget()
            probe.publish(command(tensions, names=names), topics.FORCE_COMMAND)
            probe.until_status("simulator: commands", Level.WARN, words)
        assert world.steps == 1
        assert world.node.host.gate.refused == 3


def test_pause_step_and_reset(domain, probe):
    with World(domain, wait_for_command=False, command_timeout=3600.0) as world:
        probe.until(lambda: world.steps > 10, "some steps")
        assert not probe.call(Trigger, topics.STEP_SERVICE).success
        assert probe.call(SetBool, topics.PAUSE_SERVICE, data=True).success
        probe.until(lambda: world.simulator.paused, "the pause")
        probe.until_status("simulator: world", Level.WARN, "paused")
        steps = world.node.steps
        assert probe.call(Trigger, topics.STEP_SERVICE).success
        probe.until(lambda: world.node.steps == steps + 1, "one step")
        probe.spin(0.1)
        assert world.node.steps == steps + 1
        assert probe.call(SetBool, topics.PAUSE_SERVICE, data=False).success
        probe.until(lambda: world.node.steps > steps + 10, "time going on")
        before = world.node.host.stamp
        assert probe.call(Trigger, topics.RESET_SERVICE).success
        probe.until(lambda: world.node.host.stamp < before, "time zero")
        probe.until(lambda: world.node.steps > 10, "a new start")


def test_reset_waits_for_a_command_again(domain, probe):
    with World(domain) as world:
        probe.publish(command([70.0] * 4), topics.FORCE_COMMAND)
        probe.until(lambda: world.steps > 20, "time")
        assert probe.call(Trigger, "simulator/estop").success
        probe.until_status("simulator: commands", Level.ERROR, "emergency stop")
        assert probe.call(Trigger, topics.RESET_SERVICE).success
        probe.until(lambda: world.simulator.time == 0, "time zero")
        states = probe.listen(JointState, topics.JOINT_STATES)
        probe.forget()
        probe.until(lambda: len(states) > 2, "the state, repeated")
        assert {stamp_of(m) for m in states} == {0}  # not one step was done
        assert list(states[-1].position) == [-0.5, 0.5]
        probe.publish(command([70.0] * 4), topics.FORCE_COMMAND)
        probe.until(lambda: world.simulator.time > 10_000_000, "time")
        assert world.node.host.tensions.max() == 70.0


def test_a_failure_lets_go_pauses_and_is_over_after_a_reset(domain, probe):
    with World(domain, wait_for_command=False) as world:
        probe.until(lambda: world.steps > 10, "some steps")
        world.node.fail(RuntimeError("something broke"))
        probe.until_status("simulator: world", Level.ERROR, "something broke")
        probe.until(lambda: world.simulator.paused, "the pause")
        world.simulator.paused = False  # somebody presses play
        steps = world.steps
        probe.until(lambda: world.steps > steps + 10, "time going on")
        assert world.simulator.last_applied == []
        world.simulator.paused = True
        assert probe.call(Trigger, topics.RESET_SERVICE).success
        probe.until(lambda: world.simulator.last_applied != [], "muscles that pull")
        assert world.node.failure is None


def test_a_world_that_cannot_be_paused_runs_and_says_so(domain, probe):
    world = World(domain)
    world.simulator.reachable = False
    with world:
        probe.until(lambda: world.steps > 10, "time")
        answer = probe.call(SetBool, topics.PAUSE_SERVICE, data=True)
        assert not answer.success
        assert "gz.transport" in answer.message


def test_the_run_ends_after_its_duration_and_writes_the_log(domain, tmp_path):
    parameters = {"wait_for_command": False, "duration": 0.25, "log_dir": str(tmp_path)}
    with World(domain, **parameters) as world:
        world.join(PATIENCE)
        assert world.simulator.ended
    with np.load(tmp_path / "simulator.npz") as log:
        assert log["time"].size == 250
        assert log["time"][-1] == 0.25


def test_another_name_in_the_world_is_the_namespace(domain, probe):
    with World(domain, path=("left",), wait_for_command=False):
        states = probe.listen(JointState, "left/joint_states")
        probe.until(lambda: states, "a state")


def test_a_fault_is_told_for_as_long_as_the_world_lives(domain, probe):
    robot = load("planar_2r")
    simulator = FakeSimulator(robot)
    context = Context()
    context.init(args=[], domain_id=domain)
    node = FaultNode(context, "", "planar_2r", ValueError("no link named 'x'"), simulator)
    try:
        end = time.monotonic() + PATIENCE
        while not probe.received[topics.DIAGNOSTICS] and time.monotonic() < end:
            simulator.iterate(node)
            probe.spin(0.01)
        status = probe.until_status("simulator: world", Level.ERROR, "no link named 'x'")
        assert status.hardware_id == "planar_2r"
        assert simulator.paused
        simulator.paused = False
        simulator.iterate(node, 5)
        assert not simulator.paused
    finally:
        node.close()
        context.try_shutdown()
