"""The node ``hardware`` with the firmware itself: host build, plant, a cable to pull."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("serial", reason="pyserial is not installed")
from lifecycle_msgs.srv import ChangeState, GetState
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from cards_core.formats import load
from cards_hardware.bridge import node as bridge_node
from cards_hardware.bridge.node import BridgeNode
from cards_hardware.hil.relay import Relay
from cards_hardware.hil.rig import Rig
from cards_hardware.protocol.codec import unpack
from cards_hardware.protocol.enums import Request, State
from cards_ros import topics
from cards_ros.diagnostics import Level
from cards_ros.testing import NodeThread

pytestmark = pytest.mark.ros

ROBOT = load("roboy_arm")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A board that runs the host build of the firmware, behind a cable."""
    folder = tmp_path_factory.mktemp("bench")
    with (
        Rig("roboy_arm", folder, firmware="host") as rig,
        Relay(rig.ports[0], folder / "ttyACM0") as relay,
    ):
        yield SimpleNamespace(rig=rig, relay=relay)


@pytest.fixture
def bridge(bench, domain):
    """The node, inactive."""
    bench.relay.plug()
    bench.relay.forget()
    parameters = {"port": str(bench.relay.link), "autostart": False, "relax_time": 0.1}
    parameters["real_time_priority"] = 0  # this process is the tests
    with NodeThread(BridgeNode, domain, {"robot": ROBOT}, **parameters) as thread:
        yield thread


def change(probe, label):
    request = ChangeState.Request()
    request.transition.label = label
    return probe.call(ChangeState, "hardware/change_state", transition=request.transition).success


def activate(probe, bridge):
    """Arm the board once the arm, which was let go, hangs: not with a muscle that it pulls at."""

    def hangs():
        sample = bridge.node.hardware.boards[0].sample
        return sample is not None and np.abs(sample.muscles[2]).max() < 30.0

    probe.until(hangs, "muscles at rest")
    return change(probe, "activate")


def lifecycle(probe):
    return probe.call(GetState, "hardware/get_state").current_state.label


def requests(bench):
    """Return what the board was asked for, in order."""
    heard = bench.relay.frames("STATE_REQUEST", "to_board")
    return [int(unpack(item.frame)["request"]) for item in heard]


def state_of(thread):
    return thread.node.hardware.status().boards[0].state


def test_states_commands_and_an_end_in_order(bench, bridge, probe):
    states = probe.listen(JointState, topics.JOINT_STATES)
    assert change(probe, "configure")
    probe.until(lambda: len(states) > 50, "states")
    stamps = [message.header.stamp for message in states]
    times = [stamp.sec * 10**9 + stamp.nanosec for stamp in stamps]
    assert sorted(set(times)) == times
    assert len(states[-1].name) == 4
    assert activate(probe, bridge)
    assert state_of(bridge) == State.ARMED
    names = [muscle.name for muscle in ROBOT.muscles]
    probe.publish(JointState(name=names, effort=[50.0] * len(names)), topics.FORCE_COMMAND)
    probe.until(lambda: bench.relay.frames("CMD_TENSION", "to_board"), "the command")
    (command,) = bench.relay.frames("CMD_TENSION", "to_board")
    assert list(unpack(command.frame)["tension"]) == pytest.approx([50.0] * len(names))
    # one command and silence: the board lets go, and the node sees it
    probe.until_status("hardware: boards", Level.ERROR, "inactive: ")
    assert lifecycle(probe) == "inactive"
    assert len(bench.relay.frames("CMD_TENSION", "to_board")) == 1
    probe.until(lambda: state_of(bridge) == State.DISARMED, "the drives off", patience=40.0)
    bench.relay.forget()
    assert activate(probe, bridge)
    bridge.stop()
    asked = requests(bench)
    assert asked[0] == Request.ARM
    assert asked[1] == Request.RELAX
    assert set(asked[2:]) == {Request.DISARM}


def test_a_pulled_cable_and_an_emergency_stop_that_waits_for_it(bench, bridge, probe, monkeypatch):
    monkeypatch.setattr(bridge_node, "GRACE", 0.1)
    assert change(probe, "configure")
    assert activate(probe, bridge)
    bench.relay.unplug()
    probe.until(lambda: not bridge.node.active, "the loss")
    probe.until_status("hardware: board arm", Level.ERROR)
    answer = probe.call(Trigger, "hardware/estop")
    assert "remembered for board arm" in answer.message
    bench.relay.forget()
    bench.relay.plug()
    probe.until(lambda: state_of(bridge) == State.ESTOP, "the stop to be delivered")
    assert Request.ARM not in requests(bench)
    assert lifecycle(probe) == "inactive"
    assert not change(probe, "activate")
    answer = probe.call(Trigger, "hardware/clear")
    assert answer.success, answer.message
    assert activate(probe, bridge)
    probe.until_status("hardware: boards", Level.OK, "active")


def test_an_emergency_stop_without_a_session_finds_its_way(bench, bridge, probe, monkeypatch):
    monkeypatch.setattr(bridge_node, "RETRY_PERIOD", 0.1)
    bench.relay.unplug()
    assert "remembered" in probe.call(Trigger, "hardware/estop").message
    assert lifecycle(probe) == "unconfigured"
    bench.relay.plug()
    probe.until(lambda: bench.relay.frames("ESTOP", "to_board"), "the stop to be delivered")
    assert lifecycle(probe) == "unconfigured"
    assert change(probe, "configure")
    probe.until(lambda: state_of(bridge) == State.ESTOP, "the state of the board")
    assert not change(probe, "activate")
    assert probe.call(Trigger, "hardware/clear").success
    assert activate(probe, bridge)
