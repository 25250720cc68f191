"""The snapshot that a monitor takes from topics, with a host that says known things."""

from __future__ import annotations

import threading
import time

import pytest

pytest.importorskip("rclpy")

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_hardware.monitor.topic_monitor import TopicMonitor
from cards_ros import topics
from cards_ros.testing import Probe, private_domain

pytestmark = pytest.mark.serial


@pytest.fixture
def domain():
    with private_domain() as number:
        yield number


@pytest.fixture
def monitor(domain):
    context = Context()
    context.init(args=[], domain_id=domain)
    made = TopicMonitor(Node("monitor", context=context), load("planar_2r"))
    yield made
    made.close()
    context.try_shutdown()


def status(name, level, message, **values):
    pairs = [KeyValue(key=key.replace("__", " "), value=value) for key, value in values.items()]
    return DiagnosticStatus(
        level=bytes([level]), name=name, message=message, hardware_id="x", values=pairs
    )


def test_muscles_joints_boards_and_events(domain, monitor):
    assert "is a host running?" in monitor.snapshot().problem
    muscles = [muscle.name for muscle in load("planar_2r").muscles]
    names = [*muscles, f"{muscles[1]}/current", f"{muscles[1]}/housing_temperature"]
    lengths = [*np.linspace(0.1, 0.4, 4), 1.5, 42.0]
    board = {
        "state": "ACTIVE",
        "port": "/dev/x",
        "faults": "vbus low, sensor",
        "vbus": "17.5",
        "state_rate_hz": "499.5",
        "state_age_ms": "2.5",
        "command_latency_p99_ms": "4",
        "crc_errors": "3",
        "resets": "0",
        "refused_stale": "7",
        "simulated": "True",
        f"muscle__{muscles[2]}": "slack, relaxed",
        f"muscle__{muscles[3]}": "tension limited",
    }
    with Probe(domain) as host:

        def found():
            host.publish(
                JointState(name=names, position=lengths, velocity=[0.0] * 6, effort=[5.0] * 6),
                topics.MUSCLE_STATES,
            )
            host.publish(
                JointState(name=["joint_1", "joint_2"], position=[0.1, 0.2], velocity=[1.0, 2.0]),
                topics.JOINT_STATES,
            )
            host.publish(
                DiagnosticArray(
                    status=[
                        status("hardware: boards", 0, "active", lifecycle="active"),
                        status("hardware: board arm", 2, "FAULT: vbus low", **board),
                    ]
                ),
                topics.DIAGNOSTICS,
                topics.DIAGNOSTICS_QOS,
            )
            snapshot = monitor.snapshot()
            return snapshot if snapshot.muscles and snapshot.joints and snapshot.boards else None

        snapshot = host.until(found, "a snapshot")
    assert not snapshot.problem
    assert [row.name for row in snapshot.muscles] == muscles
    assert np.allclose([row.length for row in snapshot.muscles], lengths[:4])
    assert snapshot.muscles[1].current == 1.5
    assert snapshot.muscles[1].housing == 42.0
    assert np.isnan(snapshot.muscles[0].housing)
    assert snapshot.muscles[2].flags == ("slack", "relaxed")
    assert snapshot.muscles[2].serious
    assert not snapshot.muscles[3].serious
    assert snapshot.muscles[0].tension_limit == load("planar_2r").muscles[0].tension_max
    assert [row.position for row in snapshot.joints] == [0.1, 0.2]
    lifecycle, arm = snapshot.boards
    assert (lifecycle.name, lifecycle.state) == ("hardware", "active")
    assert (arm.name, arm.state, arm.vbus) == ("arm", "ACTIVE", 17.5)
    assert arm.faults == ("vbus low", "sensor")
    assert arm.counters == {"damaged": 3, "refused: stale": 7}
    assert arm.simulated
    assert abs(arm.latency_p99 - 0.004) < 1e-12
    assert any("FAULT: vbus low" in text for _, _, text in snapshot.events)


def test_emergency_stop_calls_every_service_of_the_namespace(domain, monitor):
    with pytest.raises(CardsError, match="USE THE STOP BUTTON"):
        monitor.estop()
    called = []

    def answer(_request, response):
        called.append(True)
        response.success = True
        return response

    with Probe(domain, "hardware") as host:
        host.node.create_service(Trigger, "~/estop", answer)
        stop = threading.Event()

        def serve():
            while not stop.is_set():
                host.spin(0.05)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            end = time.monotonic() + 20.0
            text = ""
            while not text:
                try:
                    text = monitor.estop()
                except CardsError:  # not discovered yet
                    assert time.monotonic() < end
                    time.sleep(0.1)
        finally:
            stop.set()
            thread.join()
    assert called
    assert text == "emergency stop: /hardware/estop"
