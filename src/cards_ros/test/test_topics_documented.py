"""The names in docs/ros_interface.md are those in the code."""

from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from cards_ros import topics

pytestmark = pytest.mark.ros
PAGE = Path(__file__).parents[3] / "docs" / "ros_interface.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="docs/ros_interface.md is not here")
def test_all_topics_and_services_are_in_the_documentation():
    text = PAGE.read_text()
    names = [v for k, v in vars(topics).items() if k.isupper() and isinstance(v, str)]
    assert len(names) > 10
    for name in names:
        options = [
            name.replace("~/", f"{node}/")
            for node in ("<controller>", "<node>", "hardware", "browser_view", topics.ROD_SOLVER)
        ]
        assert any(f"`{option}`" in text for option in [name, *options]), name


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
