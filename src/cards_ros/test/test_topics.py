"""Quality of service of the topics."""

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from cards_ros import topics

pytestmark = pytest.mark.ros


def test_only_the_newest_state_is_kept_and_nothing_reliable_is_lost():
    profiles = {k: v for k, v in vars(topics).items() if isinstance(v, QoSProfile)}
    reliable = {k for k, v in profiles.items() if v.reliability == ReliabilityPolicy.RELIABLE}
    latched = {k for k, v in profiles.items() if v.durability == DurabilityPolicy.TRANSIENT_LOCAL}
    readers = {"STATE_QOS", "LATCHED_QOS", "DIAGNOSTICS_QOS", "MODEL_QOS"}
    assert reliable == {*readers, "COMMAND_QOS", "WRENCH_QOS"}
    assert latched == {"LATCHED_QOS", "MODEL_QOS"}
    # read from more than one writer, compared with another topic, or for several bodies
    several = {"DIAGNOSTICS_QOS", "MODEL_QOS", "RECENT_QOS", "WRENCH_QOS"}
    assert {v.depth for k, v in profiles.items() if k not in several} == {1}
