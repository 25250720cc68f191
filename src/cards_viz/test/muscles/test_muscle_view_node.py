"""The view's node against the real simulator and a real controller; no browser needed."""

import time
import urllib.request
from functools import partial

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("mujoco", reason="MuJoCo is not installed")
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Int32, String
from std_srvs.srv import Trigger

from cards_core.errors import UnknownNameError
from cards_core.formats import load
from cards_ros import topics
from cards_ros.diagnostics import Diagnostics, Level
from cards_ros.loop import NodeLoop
from cards_ros.testing import NodeThread, end_process, start_process
from cards_viz.muscles.bars import temperatures_of
from cards_viz.muscles.interface import BarLimits
from cards_viz.muscles.panels import status_html
from cards_viz.muscles.pushing import Push
from cards_viz.muscles.view_node import BrowserViewNode, CommandError, main

pytestmark = pytest.mark.ros

SIMULATOR = {"model": "planar_2r", "mode": "realtime", "initial_positions": "[-0.5, 0.5]"}
CONTROLLER = {
    "model": "planar_2r",
    "reference": "there_and_back",
    "kp": "[2000.0, 2000.0]",
    "kd": 90.0,
}


@pytest.fixture
def processes():
    running = []
    yield running
    for process in running:
        end_process(process)


@pytest.fixture
def view(domain):
    with NodeThread(BrowserViewNode, domain, {"robot": load("planar_2r")}, port=0) as thread:
        told = []
        thread.node.page.notify = told.append
        thread.node.told = told
        yield thread.node


def until(condition, what, patience=20.0):
    end = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {patience} s for {what}"
        time.sleep(0.02)
    return value


def parameter(probe, node, name):
    values = probe.call(GetParameters, f"{node}/get_parameters", names=[name]).values
    return values[0].double_value or list(values[0].double_array_value)


def test_pages_are_counted_and_told_what_becomes_of_the_run(view, probe):
    counts = []
    latched = topics.LATCHED_QOS
    probe.node.create_subscription(Int32, "browser_view/pages", counts.append, latched)
    probe.until(lambda: [one.data for one in counts] == [0], "that the page answers")
    assert "running" in status_html(view.snapshot())
    publisher = probe.node.create_publisher(String, topics.RUN_STATE, latched)
    publisher.publish(String(data="finished: results in <run>"))
    probe.until(lambda: view.snapshot().state, "the state")
    assert "finished: results in &lt;run&gt;" in status_html(view.snapshot())
    assert "running" not in status_html(view.snapshot())


def test_a_controlled_run(view, probe, processes):
    # at a fifth of real time a controller on a busy machine is in time
    processes.append(start_process("cards_sim.simulator_node", {**SIMULATOR, "speed": 0.2}))
    processes.append(start_process("controllers.ctc_joint", CONTROLLER))
    until(lambda: view.watcher.stamp > 0, "states")
    until(lambda: view.watcher.controller == "ctc_joint", "the controller")
    until(lambda: view.snapshot().actual is not None, "desired and error")
    until(lambda: view.snapshot().control_rate, "the control rate")
    until(lambda: view.snapshot().real_time_factor, "the speed")
    shown = view.snapshot()
    assert tuple(shown.names) == ("joint_1", "joint_2")
    assert tuple(shown.units) == ("rad", "rad")
    assert np.abs(shown.error).max() < 0.05
    assert np.abs(shown.desired - shown.actual).max() < 0.1
    assert shown.desired_position.shape == (3,)
    assert (shown.tensions >= 10.0).all()
    assert not shown.paused
    assert not shown.stopped
    until(lambda: view.page.updates > 3, "drawing")
    assert urllib.request.urlopen(view.page.url, timeout=10).status == 200
    # the sliders show the controller's gains
    until(lambda: view._gains_of == "ctc_joint", "the gains")
    sliders = view.page._gains._sliders
    assert [[slider.value for slider in group] for group in sliders] == [[2000.0], [90.0]]

    view.commands.set_gains([1000.0], [60.0])
    until(lambda: parameter(probe, "ctc_joint", "kp") == [1000.0, 1000.0], "kp")
    assert parameter(probe, "ctc_joint", "kd") == 60.0
    view.commands.set_gains([-5.0], [60.0])
    until(lambda: any("kp" in text and "-5" in text for text in view.told), "a refusal")
    view.commands.set_speed(0.5)
    until(lambda: parameter(probe, "simulator", "speed") == 0.5, "speed")

    view.commands.pause(True)
    until(lambda: view.snapshot().paused, "pause")
    time.sleep(0.3)  # states are looked at less often than diagnostics come
    before = view.watcher.stamp
    view.commands.step()
    until(lambda: view.watcher.stamp > before, "a step")
    time.sleep(0.3)
    assert view.watcher.stamp == before + 1_000_000
    view.commands.pause(False)
    until(lambda: not view.snapshot().paused, "continuation")

    with pytest.raises(CommandError, match="ctc_joint commands the muscles"):
        view.commands.set_command("cable_1", "force", 50.0)
    with pytest.raises(UnknownNameError, match="cable_1"):
        view.commands.set_command("cable_11", "force", 50.0)

    view.commands.estop(True)
    until(lambda: view.snapshot().stopped, "the emergency stop")
    until(lambda: view.snapshot().controller is None, "the controller to be disabled")
    until(lambda: np.array_equal(view.watcher.tensions, np.full(4, 10.0)), "minimum tensions")
    before = view.watcher.stamp
    view.commands.estop(False)
    until(lambda: view.watcher.stamp < before, "the reset")
    until(lambda: not view.snapshot().stopped, "the release")
    until(lambda: view.snapshot().controller == "ctc_joint", "the controller")
    stamp = view.watcher.stamp
    until(lambda: view.watcher.stamp > stamp + 100_000_000, "time to go on")

    # a controller that dies no longer commands, and is no longer waited for
    controller = processes.pop()
    controller.kill()
    controller.communicate()
    until(lambda: view.snapshot().controller is None, "the controller to be missed", 30.0)
    until(lambda: "no valid command" in view.snapshot().message, "the trouble to be shown")


def test_commands_by_hand(view, probe, processes):
    processes.append(start_process("cards_sim.simulator_node", SIMULATOR))
    until(lambda: view.watcher.stamp == 0, "the first state")
    assert view.snapshot().controller is None
    view.commands.set_command("cable_2", "force", 35.0)
    until(lambda: view.watcher.stamp > 300_000_000, "time to start with the first command")
    until(lambda: view.watcher.tensions.tolist() == [10.0, 35.0, 10.0, 10.0], "the tensions")
    # the watchdog of 0.1 s is satisfied although nobody moves the slider any more
    time.sleep(0.5)
    assert view.watcher.tensions.tolist() == [10.0, 35.0, 10.0, 10.0]
    view.commands.set_command("cable_1", "force", 20.0)
    until(lambda: view.watcher.tensions.tolist() == [20.0, 35.0, 10.0, 10.0], "both tensions")
    view.commands.reset()
    until(lambda: view.watcher.stamp == 0, "the reset")
    time.sleep(0.3)
    # nothing moves until a slider does
    assert view.watcher.stamp == 0
    view.commands.set_command("cable_1", "force", 20.0)
    until(lambda: view.watcher.stamp > 0, "time to go on")
    # somebody else takes over
    command = JointState(name=["cable_1"], effort=[30.0])
    probe.publish(command, topics.FORCE_COMMAND)
    until(lambda: view.snapshot().controller == "probe", "the other controller")
    with pytest.raises(CommandError, match="probe commands"):
        view.commands.set_command("cable_1", "force", 20.0)


def test_a_push_goes_to_the_simulator_and_ends(view, processes):
    processes.append(start_process("cards_sim.simulator_node", SIMULATOR))
    until(lambda: view.watcher.stamp == 0, "the first state")
    view.commands.set_command("cable_1", "force", 10.0)
    until(lambda: view.watcher.stamp > 0, "time to go on")
    link = view.robot.links[-1].name
    place = len(view.robot.links) - 1

    def pose():
        return view.page.scene.link_poses(view.watcher.q)[place]

    def across():
        """The way that a point of the link has gone along x, [m]."""
        return float((pose()[:3, :3] @ point + pose()[:3, 3])[0])

    point = np.array([0.0, 0.0, 0.5])
    before = across()
    far = pose()[:3, :3] @ point + pose()[:3, 3] + [5.0, 0.0, 0.0]
    view.commands.push(Push(link, point, far, 50.0, 0.5))
    until(lambda: across() > before + 0.05, "the link to move")
    view.commands.push(None)
    until(lambda: view.commands._push is None, "the end")


def test_a_push_that_nobody_takes_is_told(view):
    told = []
    view.commands._notify = told.append
    view.watcher.q[:] = 0.0
    view.commands.push(Push(view.robot.links[-1].name, np.zeros(3), np.ones(3), 5.0, 0.5))
    until(lambda: told, "a message")
    assert "takes no wrenches" in told[0]
    assert view.commands._push is None


def test_commands_by_hand_leave_muscles_with_a_state_alone(domain, probe, wrap_arm):
    """Only ideal cables are held where they are; ligaments take nothing."""
    received = probe.listen(JointState, topics.FORCE_COMMAND, topics.COMMAND_QOS)
    with NodeThread(BrowserViewNode, domain, {"robot": wrap_arm}, port=0) as thread:
        node = thread.node
        names = [muscle.name for muscle in wrap_arm.muscles] + ["ring/pressure"]
        position, effort = [0.3, 0.5, 0.6, 0.5, 2e5], [20.0, 700.0, 40.0, 50.0, 0.0]
        joints = JointState(name=["shoulder", "elbow"], position=[0.1, 0.2])
        joints.header.stamp.sec = 1

        def seen():
            message = JointState(name=names, position=position, effort=effort)
            probe.publish(message, topics.MUSCLE_STATES)
            probe.publish(joints, topics.JOINT_STATES)
            probe.spin(0.05)
            return node.snapshot().states

        assert probe.until(seen, "states") == {"ring/pressure": 2e5}
        with pytest.raises(CommandError, match="'belly' not set: a ligament takes no commands"):
            node.commands.set_command("belly", "force", 30.0)
        node.commands.set_command("extensor", "force", 30.0)
        probe.until(lambda: received, "a command")
        # the flexor's 700 N are above its limit
        assert list(received[-1].name) == ["flexor", "extensor"]
        assert list(received[-1].effort) == [500.0, 30.0]
        node.commands.set_command("ring", "force", 60.0)
        probe.until(lambda: len(received[-1].name) == 3, "another command")
        assert dict(zip(received[-1].name, received[-1].effort, strict=True)) == {
            "flexor": 500.0,
            "extensor": 30.0,
            "ring": 60.0,
        }


def test_commands_that_nobody_hears(view):
    view.commands.pause(True)
    view.commands.estop(True)
    view.commands.set_speed(2.0)
    view.commands.set_gains([1.0], [1.0])
    until(lambda: len(view.told) == 4, "four complaints")
    assert set(view.told) == {
        "parameters of simulator cannot be set: is the node running?",
        "gains not set: no controller publishes commands",
        "service sim/pause is not there: is its node running?",
        "service simulator/estop is not there: is its node running?",
    }


class RealRobot(Node):
    """What the page sees of the node ``hardware``."""

    def __init__(self, context, stop, **options):
        super().__init__("hardware", context=context, **options)
        self.stop = stop
        self.loop = NodeLoop(self, [], stop)
        self.states = self.create_publisher(JointState, topics.JOINT_STATES, topics.STATE_QOS)
        self.diagnostics = Diagnostics(self, "robot", ("boards", "commands"))
        self.calls = []
        for name in (topics.ESTOP_SERVICE, topics.CLEAR_SERVICE):
            self.create_service(Trigger, name, partial(self.answer, name))

    def answer(self, name, _request, response):
        self.calls.append(name)
        if name == topics.ESTOP_SERVICE:
            self.diagnostics["boards"].report(Level.ERROR, "emergency stop: safe tensions")
        else:
            self.diagnostics["boards"].report(Level.WARN, "inactive: commands are not obeyed")
        response.success = True
        return response

    def run(self):
        while not self.stop:
            self.loop.wait(0.02)
            if self.loop.serve():
                joints = JointState(name=["joint_1", "joint_2"], position=[0.3, 0.4])
                joints.header.stamp = self.get_clock().now().to_msg()
                self.states.publish(joints)
                self.diagnostics.update()
        return 0

    def close(self):
        self.loop.close()
        self.destroy_node()


def test_a_real_robot_is_stopped_and_cleared_but_not_paused(domain, view):
    panel = view.page._run_panel
    assert panel._pause.visible
    with NodeThread(RealRobot, domain) as thread:
        robot = thread.node
        until(lambda: view.snapshot().real, "the robot to be known")
        until(lambda: not panel._pause.visible, "the page to know it")
        hidden = (panel._step, panel._reset, panel.speed)
        assert [control.visible for control in hidden] == [False] * 3
        assert panel._estop.visible
        assert "Real robot" in panel._estop.hint
        assert "REAL ROBOT" in status_html(view.snapshot())
        for command in (
            lambda: view.commands.pause(True),
            view.commands.step,
            view.commands.reset,
            lambda: view.commands.set_speed(2.0),
        ):
            with pytest.raises(CommandError, match=r"a real robot \(hardware\) cannot be"):
                command()
        view.commands.estop(True)
        until(lambda: view.snapshot().stopped, "the emergency stop")
        assert "EMERGENCY STOP · REAL ROBOT" in status_html(view.snapshot())
        view.commands.estop(False)
        until(lambda: not view.snapshot().stopped, "the release")
        assert robot.calls == [topics.ESTOP_SERVICE, topics.CLEAR_SERVICE]
        assert view.told == []
    assert view.snapshot().real  # a robot that fell silent is still the one to stop


def test_operational_controller(view, probe):
    """Played by the test: x and z are controlled, y is where it is."""
    joints = JointState(name=["joint_1", "joint_2"], position=[0.3, 0.4])
    desired = JointState(name=["x", "z"], position=[0.5, 1.5])
    error = JointState(name=["x", "z"], position=[0.01, -0.02])
    publisher = probe.node.create_publisher(JointState, topics.FORCE_COMMAND, topics.COMMAND_QOS)

    def known():
        probe.publish(joints, topics.JOINT_STATES)
        probe.publish(desired, "probe/desired")
        probe.publish(error, "probe/error")
        probe.spin(0.05)
        return view.snapshot().actual is not None

    probe.until(known, "the tracked position")
    shown = view.snapshot()
    assert tuple(shown.names) == ("x", "z")
    assert tuple(shown.units) == ("m", "m")
    np.testing.assert_allclose(shown.actual, [0.49, 1.52])
    np.testing.assert_allclose(shown.desired_position, [0.5, 0.0, 1.5], atol=1e-12)
    probe.node.destroy_publisher(publisher)
    until(lambda: view.snapshot().controller is None, "the controller to be gone")
    assert view.snapshot().actual is None


def test_relaxation_is_shown_and_switched(domain, probe, processes):
    robot = load("musashi_like")
    model = {"model": robot.name}
    with NodeThread(BrowserViewNode, domain, {"robot": robot}, port=0) as thread:
        view = thread.node
        told = []
        view.page.notify = told.append
        processes.append(
            start_process("cards_sim.simulator_node", {**model, "mode": "realtime", "speed": 0.5})
        )
        processes.append(start_process("controllers.mrc", {**model, "dl_max": 0.003}))

        def switches():
            return {switch.name: switch.on for switch in view.snapshot().switches}

        # no reference: the robot is held where it is, and muscles are released at rest
        until(lambda: view.snapshot().released is not None, "the released lengths", 60.0)
        until(lambda: view.snapshot().released.max() > 1e-4, "a release", 60.0)
        names = [muscle.name for muscle in robot.muscles]
        # topics come one by one
        until(
            lambda: temperatures_of(names, view.snapshot().states) is not None,
            "temperatures",
            60.0,
        )
        shown = view.snapshot()
        assert shown.necessary.shape == (20,)
        assert (shown.necessary > 29.9).all()
        assert temperatures_of(names, shown.states).shape == (20,)
        until(switches, "the parameters")
        # not those that are fixed at the start, nor those that are about the node
        assert switches() == {"relaxation": True, "learning": False}
        assert view.snapshot().limits == BarLimits(released=0.003)
        view.commands.set_switch("relaxation", False)
        until(lambda: not switches()["relaxation"], "the switch to follow")
        until(lambda: view.snapshot().released.max() == 0.0, "the withdrawal", 60.0)
        # what the controller refuses is told, and the switch stays
        view.commands.set_switch("learning", True)
        until(lambda: any("body image" in text for text in told), "a refusal")
        assert switches() == {"relaxation": False, "learning": False}
        # others may switch it, too
        on = Parameter("relaxation", value=True).to_parameter_msg()
        probe.call(SetParameters, "mrc/set_parameters", parameters=[on])
        until(lambda: switches()["relaxation"], "the switch to follow")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["model:=no_such_robot"], "no_such_robot"),
        (["model:=planar_2r", "-p", "port:=70000"], "port"),
        (["model:=planar_2r", "-p", "host:=203.0.113.1"], "cannot listen on host '203.0.113.1'"),
    ],
)
def test_bad_parameters_end_with_a_message(domain, capfd, arguments, text):
    assert main(["--ros-args", "-p", *arguments]) == 2
    output = "".join(capfd.readouterr())
    assert text in output
    assert "Traceback" not in output
