"""The bridge's lifecycle, topics and emergency stop, with boards that do what the test says."""

import os
import re
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from fake_hardware import FakeHardware
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter as RosParameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.loop.model_identity import decode
from cards_hardware.boards import layout as layout_module
from cards_hardware.boards.events import BoardEvent
from cards_hardware.bridge import node as bridge_node
from cards_hardware.bridge.node import BridgeNode
from cards_hardware.errors import HardwareError
from cards_hardware.protocol.enums import MuscleFlag, Severity, State
from cards_ros import topics
from cards_ros.diagnostics import Level
from cards_ros.testing import NodeThread, Probe, start_process

pytestmark = pytest.mark.ros

ROBOT = load("planar_2r")
MUSCLES = [muscle.name for muscle in ROBOT.muscles]


def bridge(domain, make=FakeHardware, **parameters):
    value = {"autostart": False, "relax_time": 0.05, "real_time_priority": 0, **parameters}
    return NodeThread(BridgeNode, domain, {"robot": ROBOT, "make": make}, **value)


def change(probe, label):
    request = ChangeState.Request()
    request.transition.label = label
    return probe.call(ChangeState, "hardware/change_state", transition=request.transition).success


def state(probe):
    return probe.call(GetState, "hardware/get_state").current_state.label


def command(tensions, names=MUSCLES, stamp=0):
    message = JointState(name=list(names), effort=[float(x) for x in tensions])
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    return message


def stamp_of(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def service(probe, name):
    return probe.call(Trigger, f"hardware/{name}")


# Lifecycle ------------------------------------------------------------------------------------


def test_from_unconfigured_to_active_and_back(domain, probe):
    with bridge(domain) as thread:
        fake = thread.node.hardware
        states = probe.listen(JointState, topics.JOINT_STATES)
        muscles = probe.listen(JointState, topics.MUSCLE_STATES)
        assert state(probe) == "unconfigured"
        probe.until_status("hardware: boards", Level.WARN, "unconfigured: commands are not obeyed")
        probe.spin(0.2)
        assert not states
        assert fake.calls == []
        assert change(probe, "configure")
        assert state(probe) == "inactive"
        probe.until(lambda: len(states) > 20 and muscles, "states")
        # no commands in inactive, and none of them later either
        probe.publish(command([50.0] * 4), topics.FORCE_COMMAND)
        probe.until(lambda: thread.node.health.ignored == 1, "the command to come")
        assert fake.calls == ["open"]
        assert change(probe, "activate")
        assert state(probe) == "active"
        probe.until_status("hardware: commands", Level.WARN, "waiting for the first command")
        assert fake.commands == []
        probe.publish(command([20.0, 30.0, 40.0, 50.0]), topics.FORCE_COMMAND)
        probe.until(lambda: fake.commands, "the command")
        assert change(probe, "deactivate")
        assert fake.calls == ["open", "arm", "relax", "disarm"]
        assert change(probe, "cleanup")
        assert state(probe) == "unconfigured"
        assert fake.calls[-1] == "close"
        assert len(fake.commands) == 1
        count = len(states)
        probe.spin(0.1)
        assert len(states) == count
    assert states[-1].name == ["joint_1", "joint_2"]
    assert muscles[-1].name[:5] == [*MUSCLES, f"{MUSCLES[0]}/current"]
    assert np.allclose(muscles[-1].position[:4], fake.lengths)
    values = dict(zip(muscles[-1].name, muscles[-1].position, strict=True))
    assert values[f"{MUSCLES[3]}/current"] == 0.5
    assert values[f"{MUSCLES[3]}/housing_temperature"] == 30.0
    ((kind, values),) = fake.commands
    assert (kind, values.tolist()) == ("force", [20.0, 30.0, 40.0, 50.0])


def test_autostart_goes_to_active_once(domain, probe):
    with bridge(domain, autostart=True) as thread:
        fake = thread.node.hardware
        probe.until(lambda: thread.node.active, "activation")
        fake.state = State.FAULT
        probe.until(lambda: not thread.node.active, "the loss")
        fake.state = State.DISARMED
        probe.spin(0.3)
        assert state(probe) == "inactive"
        assert fake.calls.count("arm") == 1
        assert change(probe, "activate")
        assert fake.calls.count("arm") == 2


@pytest.mark.parametrize(("method", "where"), [("open", "unconfigured"), ("arm", "inactive")])
def test_what_cannot_be_started_stays_where_it_is_and_says_why(domain, probe, method, where):
    problem = "board 'b' at /dev/x: no answer to HELLO"

    def make(*args, **kwargs):
        fake = FakeHardware(*args, **kwargs)
        fake.fail[method] = problem
        return fake

    with bridge(domain, make, autostart=True) as thread:
        probe.until_status("hardware: boards", Level.ERROR, f"{where}: {problem}")
        assert state(probe) == where
        del thread.node.hardware.fail[method]
        if where == "unconfigured":
            assert change(probe, "configure")
        assert change(probe, "activate")
        probe.until_status("hardware: boards", Level.OK, "active")


def test_a_transition_that_is_not_possible_is_answered(domain, probe):
    with bridge(domain):
        assert not change(probe, "activate")
        assert not change(probe, "no_such_transition")
        assert state(probe) == "unconfigured"


def test_shutdown_disarms_and_ends_the_node(domain, probe):
    with bridge(domain, autostart=True) as thread:
        probe.until(lambda: thread.node.active, "activation")
        assert change(probe, "shutdown")
        thread.join()
        assert thread.exit_code == 0
        assert thread.node.hardware.calls[:4] == ["open", "arm", "relax", "disarm"]
        assert "close" in thread.node.hardware.calls


def test_the_end_relaxes_then_disarms_then_closes(domain, probe):
    with bridge(domain, autostart=True, relax_time=0.2) as thread:
        fake = thread.node.hardware
        probe.until(lambda: thread.node.active, "activation")
    assert fake.calls == ["open", "arm", "relax", "disarm", "close"]
    assert fake.state == State.DISARMED


# Losses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [State.RELAX, State.DISARMED, State.FAULT, State.ESTOP, "line"])
def test_a_loss_makes_it_inactive_and_only_a_hand_arms_again(domain, probe, monkeypatch, lost):
    monkeypatch.setattr(bridge_node, "GRACE", 0.2)
    with bridge(domain, autostart=True) as thread:
        node, fake = thread.node, thread.node.hardware
        probe.until(lambda: node.active, "activation")
        probe.publish(command([50.0] * 4), topics.FORCE_COMMAND)
        probe.until(lambda: fake.commands, "the command")
        fake.fail["disarm"] = "refused"  # as in FAULT
        if lost == "line":
            fake.lost = fake.layout.boards[0].name
        else:
            fake.state = lost
        probe.until(lambda: not node.active, "the loss")
        assert state(probe) == "inactive"
        words = "is lost" if lost == "line" else lost.name
        if lost == State.ESTOP:
            words = "emergency stop of a board"
        probe.until_status("hardware: boards", Level.ERROR, words)
        # the boards' own stages are not disturbed, and at their end nothing is armed
        assert fake.calls[:2] == ["open", "arm"]
        assert "relax" not in fake.calls
        probe.until(lambda: "disarm" in fake.calls, "the drives off")
        probe.spin(0.1)
        assert node.reason != "refused"  # why it began, not what came of that
        assert node.reason
        fake.fail.clear()
        count = len(fake.commands)
        fake.lost = ""
        fake.state = State.DISARMED
        for _ in range(5):
            probe.publish(command([60.0] * 4), topics.FORCE_COMMAND)
            probe.spin(0.05)
        assert len(fake.commands) == count
        assert fake.calls.count("arm") == 1
        assert change(probe, "activate")
        # nothing from before comes through
        probe.spin(0.1)
        assert len(fake.commands) == count
        probe.publish(command([70.0] * 4), topics.FORCE_COMMAND)
        probe.until(lambda: len(fake.commands) == count + 1, "a new command")
        assert fake.commands[-1][1].tolist() == [70.0] * 4


def test_hold_is_no_loss(domain, probe):
    with bridge(domain, autostart=True) as thread:
        probe.until(lambda: thread.node.active, "activation")
        thread.node.hardware.state = State.HOLD
        name = f"hardware: board {thread.node.hardware.layout.boards[0].name}"
        probe.until_status(name, Level.WARN, "HOLD")
        assert thread.node.active


# Commands -------------------------------------------------------------------------------------


def test_a_command_is_sent_once_and_never_repeated(domain, probe):
    with bridge(domain, autostart=True, command_timeout=0.05) as thread:
        fake = thread.node.hardware
        probe.until(lambda: thread.node.active, "activation")
        probe.publish(command([50.0] * 4), topics.FORCE_COMMAND)
        probe.until_status("hardware: commands", Level.ERROR, "no valid command for 0.05 s")
        probe.spin(0.2)
        assert len(fake.commands) == 1


REFUSED = [
    (command([50.0], names=["biceps"]), "no muscle named 'biceps'"),
    (command([np.nan, 50, 50, 50]), "is nan N"),
    (command([50, 50, 1e6, 50]), "is 1e+06 N"),
    (command([50.0] * 3), "3 values for 4 names"),
]


def test_refused_commands_do_not_reach_the_boards(domain, probe):
    with bridge(domain, autostart=True) as thread:
        probe.until(lambda: thread.node.active, "activation")
        for message, words in REFUSED:
            probe.forget()
            probe.publish(message, topics.FORCE_COMMAND)
            probe.until_status("hardware: commands", Level.WARN, words)
        assert thread.node.hardware.commands == []


# Gains of the impedance law --------------------------------------------------------------------


def set_gains(probe, name, values):
    parameter = RosParameter(name, value=[float(value) for value in values])
    request = SetParameters.Request(parameters=[parameter.to_parameter_msg()])
    reply = probe.call(SetParameters, "hardware/set_parameters", parameters=request.parameters)
    return reply.results[0]


def test_gains_are_tuned_while_commands_pass(domain, probe):
    with bridge(domain, autostart=True, impedance_stiffness=[1e3, 2e3, 3e3, 4e3]) as thread:
        fake = thread.node.hardware
        probe.until(lambda: thread.node.active, "activation")
        given = fake.gains[0]
        assert list(given) == ["stiffness"]  # the others are those that the boards have
        assert given["stiffness"].tolist() == [1e3, 2e3, 3e3, 4e3]
        floors = thread.node.parameters["impedance_tension_floor"].tolist()
        assert floors == [muscle.tension_min for muscle in ROBOT.muscles]
        # commands go on although a board takes its time
        fake.hold["change_impedance"] = threading.Event()
        results = []

        def tune():
            results.append(set_gains(other, "impedance_stiffness", [5e3, 6e3, 7e3, 8e3]))

        with Probe(domain) as other:
            tuning = threading.Thread(target=tune)
            tuning.start()
            probe.until(lambda: fake.calls.count("change_impedance") == 2, "the change")
            before = len(fake.commands)
            probe.publish(command([20.0, 30.0, 40.0, 50.0]), topics.FORCE_COMMAND)
            probe.until(lambda: len(fake.commands) > before, "a command meanwhile")
            fake.hold.pop("change_impedance").set()
            tuning.join()
        assert results[0].successful
        assert fake.gains[-1]["stiffness"].tolist() == [5e3, 6e3, 7e3, 8e3]
        assert thread.node.parameters["impedance_stiffness"].tolist() == [5e3, 6e3, 7e3, 8e3]
        fake.fail["change_impedance"] = "no gain changed: board 'arm': lost"
        for values, words in (
            ([1.0] * 4, "no gain changed: board 'arm': lost"),
            ([1.0] * 3, "expected: 4 numbers"),
            ([1.0, 1.0, -1.0, 1.0], "expected: finite, 0"),
        ):
            result = set_gains(probe, "impedance_stiffness", values)
            assert not result.successful
            assert words in result.reason
        assert thread.node.active
        assert thread.node.parameters["impedance_stiffness"].tolist() == [5e3, 6e3, 7e3, 8e3]


def test_gains_that_would_shake_the_robot_are_reported(domain, probe, monkeypatch):
    lines = []
    with bridge(domain) as thread:
        monkeypatch.setattr(
            type(thread.node.get_logger()), "warning", lambda _self, text: lines.append(text)
        )
        assert set_gains(probe, "impedance_stiffness", [10.0] * 4).successful
        assert not lines
        assert set_gains(probe, "impedance_stiffness", [6e4] * 4).successful
        # so much is not only a matter of friction
        result = set_gains(probe, "impedance_stiffness", [1e7] * 4)
        assert not result.successful
        assert "make the robot swing up at home" in result.reason
        assert thread.node.parameters["impedance_stiffness"].tolist() == [6e4] * 4
    (line,) = lines
    assert "K 60000 N/m and B 0 N s/m let it swing" in line


def test_the_dynamics_are_made_once(domain, monkeypatch):
    made = []
    monkeypatch.setattr(
        bridge_node, "make_dynamics", lambda robot: made.append(robot) or make_dynamics(robot)
    )
    monkeypatch.setattr(layout_module, "make_dynamics", lambda _robot: pytest.fail("once more"))
    with bridge(domain, impedance_stiffness=[1e3] * 4):
        pass
    assert made == [ROBOT]


def test_stamps_are_the_times_of_the_samples(domain, probe):
    with bridge(domain) as thread:
        fake = thread.node.hardware
        states = probe.listen(JointState, topics.JOINT_STATES)
        assert change(probe, "configure")
        probe.until(lambda: states, "states")
        fake.lost = "all"  # no more states but those of this test
        probe.spin(0.1)
        states.clear()
        then = time.monotonic()
        offset = time.time() - time.monotonic()
        for late in (0.010, 0.014, 0.013, 0.016):  # the third is from before the second
            fake.tick(then + late)
            probe.spin(0.05)
        fake.tick(then + 0.020, complete=False)
        probe.spin(0.05)
        got = [stamp_of(message) * 1e-9 - then - offset for message in states]
        assert np.allclose(got, [0.010, 0.014, 0.016], atol=2e-3)
        assert np.allclose(np.diff(got), [0.004, 0.002], atol=1e-6)


def test_controllers_hear_when_the_robot_is_ready(domain, probe):
    said = probe.listen(String, topics.MODEL, topics.MODEL_QOS)
    with bridge(domain) as thread:
        probe.until(lambda: said, "the model")
        first = decode(said[-1].data)
        assert (first.role, first.ready, first.node) == ("host", False, "/hardware")
        assert change(probe, "configure")
        assert change(probe, "activate")
        probe.until(lambda: decode(said[-1].data).ready, "readiness")
        thread.node.hardware.state = State.FAULT
        probe.until(lambda: not decode(said[-1].data).ready, "the loss")


# Emergency stop -------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["unconfigured", "inactive", "active", "line lost"])
def test_estop_works_in_every_state(domain, probe, monkeypatch, where):
    monkeypatch.setattr(bridge_node, "RETRY_PERIOD", 0.1)
    monkeypatch.setattr(bridge_node, "GRACE", 0.1)
    with bridge(domain) as thread:
        fake = thread.node.hardware
        if where != "unconfigured":
            assert change(probe, "configure")
        if where in ("active", "line lost"):
            assert change(probe, "activate")
        if where == "line lost":
            fake.lost = fake.layout.boards[0].name
            probe.until(lambda: not thread.node.active, "the loss")
        if where == "unconfigured":
            fake.fail["open"] = "no such port"
        answer = service(probe, "estop")
        assert answer.success
        assert "estop" in fake.calls
        probe.until_status("hardware: boards", Level.ERROR, "emergency stop")
        probe.until_status("hardware: commands", Level.ERROR, "emergency stop")
        if where == "active":
            probe.spin(0.3)
            assert "disarm" not in fake.calls  # a stopped arm is held, not dropped
        if where in ("unconfigured", "line lost"):
            assert "remembered" in answer.message
            assert fake.pending_stop
        if where == "unconfigured":
            # neither a clear nor a configuration that fails takes it back
            fake.fail["clear"] = "not open"
            assert not service(probe, "clear").success
            assert not change(probe, "configure")
            # it finds its way as soon as there is one
            fake.fail.clear()
            probe.until(lambda: fake.state == State.ESTOP, "the stop to be delivered")
            probe.until(lambda: fake.calls[-1] == "close", "the port to be closed")
            assert state(probe) == "unconfigured"
            assert change(probe, "configure")
        fake.lost = ""
        assert state(probe) == "inactive"
        assert not change(probe, "activate")
        probe.until_status("hardware: boards", Level.ERROR, "emergency stop")
        assert "relax" not in fake.calls
        assert service(probe, "clear").success
        assert change(probe, "activate")
        probe.until_status("hardware: boards", Level.OK, "active")


@pytest.mark.parametrize("method", ["open", "arm", "relax", "clear"])
def test_estop_works_while_the_boards_are_waited_for(domain, probe, method):
    gate = threading.Event()
    with bridge(domain) as thread:
        fake = thread.node.hardware
        fake.hold[method] = gate
        steps = {"open": ["configure"], "arm": ["configure", "activate"]}.get(
            method, ["configure", "activate", "deactivate"]
        )
        if method == "clear":
            steps = ["configure"]
        client = probe.node.create_client(ChangeState, "hardware/change_state")
        probe.until(client.service_is_ready, "the service")
        for label in steps:
            request = ChangeState.Request()
            request.transition.label = label
            future = client.call_async(request)
            if label != steps[-1] or method == "clear":
                probe.until(future.done, label)
        if method == "clear":
            clear = probe.node.create_client(Trigger, "hardware/clear")
            probe.until(clear.service_is_ready, "the service")
            future = clear.call_async(Trigger.Request())
        probe.until(lambda: method in fake.calls, "the call")
        assert service(probe, "estop").success  # answered although the other is not
        assert not future.done()
        gate.set()
        probe.until(future.done, "the other")
        assert not thread.node.active
        if method == "arm":
            assert not future.result().success
        if method == "relax":
            assert "disarm" not in fake.calls  # safe tension holds the arm


def test_a_refused_clear_says_why(domain, probe):
    with bridge(domain) as thread:
        assert change(probe, "configure")
        service(probe, "estop")
        thread.node.hardware.fail["clear"] = "board 'b' at /dev/x: emergency line is open"
        answer = service(probe, "clear")
        assert (answer.success, answer.message) == (
            False,
            "board 'b' at /dev/x: emergency line is open",
        )
        assert not change(probe, "activate")


# Health ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("priority", "lines_priority"), [(0, 0), (7, 8), (40, 41), (99, 99)])
def test_priority_is_asked_for_when_the_boards_are_there(
    domain, probe, monkeypatch, priority, lines_priority
):
    asked = []
    monkeypatch.setattr(bridge_node, "make_real_time", lambda *args: asked.append(args) or "fifo")
    with bridge(domain, real_time_priority=priority) as thread:
        assert asked == []
        assert change(probe, "configure")
        lines = thread.node.hardware.lines
        assert asked == ([(os.getpid(), priority)] if priority else [])
        assert lines.priority == lines_priority


def test_boards_are_reported_one_by_one(domain, probe):
    with bridge(domain) as thread:
        fake = thread.node.hardware
        name = f"hardware: board {fake.layout.boards[0].name}"
        assert change(probe, "configure")
        status = probe.until_status(name, Level.OK, "DISARMED")
        values = {item.key: item.value for item in status.values}
        assert values["vbus"] == "24"
        assert values["hottest"] == f"{MUSCLES[0]} 30.0 degC"
        assert values["state"] == "DISARMED"
        fake.changes = {"muscle_flags": (MuscleFlag.SLACK, MuscleFlag(0))}
        probe.until_status(name, Level.WARN, f"{MUSCLES[0]}: slack")
        fake.changes = {"refused": {"range": 3}}
        status = probe.until_status(name, Level.WARN, "frames refused: range")
        assert {item.key: item.value for item in status.values}["refused_range"] == "3"
        status = probe.until(
            lambda: (
                probe.status("hardware: loop")
                if any(v.key == "state_age_p99_ms" for v in probe.status("hardware: loop").values)
                else None
            ),
            "the loop's numbers",
        )
        values = {item.key: float(item.value) for item in status.values}
        assert values["state_rate_hz"] > 50.0
        assert values["state_age_p50_ms"] >= 0.0


PAGE = Path(__file__).parents[4] / "docs" / "ros_interface.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="docs/ros_interface.md is not here")
def test_the_documentation_has_every_status_value_service_and_state(domain, probe):
    text = PAGE.read_text().split("## Node `hardware`")[1].split("\n## ")[0]
    with bridge(domain) as thread:
        name = thread.node.hardware.layout.boards[0].name
        assert change(probe, "configure")
        probe.until_status(f"hardware: board {name}", Level.OK)
        probe.until(lambda: probe.status("hardware: loop").values, "the loop's values")
        for status in probe.received[topics.DIAGNOSTICS][-1].status:
            assert f"`{status.name.replace(f'board {name}', 'board <name>')}`" in text
            if status.name.endswith((name, "loop")):
                for item in status.values:
                    short = item.key.replace("_p99", "_p50")
                    assert item.key in STATIC or f"`{short}`" in text, item.key
        services = {service.srv_name.split("/")[-1] for service in thread.node.services}
        assert {"estop", "clear", "change_state", "get_state"} <= services
        for service in ("estop", "clear", "change_state", "get_state"):
            assert f"`hardware/{service}`" in text
        states = {label for _, label in thread.node._state_machine.available_states}
        for label in ("unconfigured", "inactive", "active"):
            assert label in states
            assert f"| {label} |" in text
        moves = {item[1] for item in thread.node._state_machine.transition_graph}
        for label in ("configure", "activate", "deactivate", "cleanup", "shutdown"):
            assert any(label in move for move in moves)
            assert f"`{label}`" in text
    stated = re.search(r"still armed ([\d.]+) s later", text)
    assert float(stated[1]) == bridge_node.GRACE


STATIC = ("port", "node", "firmware", "simulated")  # say themselves what they are


def test_the_same_event_is_not_logged_over_and_over(domain):
    with bridge(domain) as thread:
        health = thread.node.health
        lines = []
        health._node = SimpleNamespace(
            get_logger=lambda: SimpleNamespace(
                error=lines.append, warning=lines.append, debug=lines.append
            )
        )
        for muscle in ("a", "a", "b"):
            health.event(BoardEvent(0.0, "arm", Severity.WARN, "slack", 12, muscle))
        for _ in range(2):
            health.event(BoardEvent(0.0, "arm", Severity.ERROR, "session lost"))
        assert lines == [
            "board arm, muscle a: slack",
            "board arm, muscle b: slack",
            "board arm: session lost",
            "board arm: session lost",
        ]


def test_the_log_has_a_row_for_each_state(domain, probe, tmp_path):
    with bridge(domain, log_dir=str(tmp_path)) as thread:
        states = probe.listen(JointState, topics.JOINT_STATES)
        assert change(probe, "configure")
        probe.until(lambda: states, "a state while it is inactive")
        assert change(probe, "activate")
        probe.until(lambda: len(states) > 30, "states")
        assert thread.node.active
    with np.load(tmp_path / "hardware.npz") as log:
        assert log["q"].shape == (len(log["time"]), 2)
        assert np.all(np.diff(log["time"]) > 0.0)
        assert set(log["active"]) == {0.0, 1.0}
        assert set(log["board_state"]) >= {float(State.DISARMED), float(State.ARMED)}
        assert log["muscle_names"].tolist() == MUSCLES
        assert np.all(log["age"] >= 0.0)


# Start and end of the process -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"model": "no_such_robot"}, "no_such_robot"),
        ({"model": "planar_2r", "boards": "no_such_file"}, "no_such_file"),
        ({"model": "planar_2r", "baudrate": 5}, "baudrate"),
        ({"model": "planar_2r", "use_sim_time": "true"}, "use_sim_time"),
    ],
)
def test_bad_parameters_end_it_with_one_line(domain, parameters, words):
    process = start_process("cards_hardware.bridge.node", parameters)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 2, out
    assert words in out
    assert "Traceback" not in out


def test_no_port_then_ctrl_c(domain, probe, tmp_path):
    parameters = {"model": "planar_2r", "port": str(tmp_path / "no_port")}
    process = start_process("cards_hardware.bridge.node", parameters)
    probe.until_status("hardware: boards", Level.ERROR, "no_port")
    assert state(probe) == "unconfigured"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 0, out
    assert "Traceback" not in out
    assert out.count("does not exist") == 1


def test_the_errors_are_ours():
    assert issubclass(HardwareError, CardsError)


# Stamps of commands ------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [600.0, 0.05])
def test_a_command_answers_a_state_that_is_no_older_than_the_timeout(domain, probe, timeout):
    """Controllers stamp commands with the state that they used, which is never the newest."""
    with bridge(domain, autostart=True, command_timeout=timeout) as thread:
        states = probe.listen(JointState, topics.JOINT_STATES)
        probe.until(lambda: thread.node.active, "activation")
        probe.until(lambda: states, "a state")
        old = stamp_of(states[0])
        probe.until(lambda: stamp_of(states[-1]) > old + 200_000_000, "later states")
        probe.publish(command([50.0] * 4, stamp=old), topics.FORCE_COMMAND)
        if timeout > 1.0:
            probe.until(lambda: thread.node.hardware.commands, "the command")
        else:
            probe.until_status("hardware: commands", Level.WARN, "command refused")
            assert thread.node.hardware.commands == []
