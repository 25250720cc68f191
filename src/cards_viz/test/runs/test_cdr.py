"""The encoding is checked against two independent ones: ROS 2 itself and mcap-ros2-support."""

import numpy as np
import pytest
from mcap.records import Schema
from mcap_ros2.decoder import DecoderFactory

from cards_viz.runs import cdr

pytestmark = pytest.mark.serial


def decode(type_name: str, data: bytes):
    """Decode with the message definition that the recording carries."""
    text = cdr.DEFINITIONS[type_name].encode()
    schema = Schema(id=1, name=type_name, encoding="ros2msg", data=text)
    decoder = DecoderFactory().decoder_for("cdr", schema)
    assert decoder is not None
    return decoder(data)


STAMPS = np.array([0, 1, 999_999_999, 1_000_000_000, 123_456_789_012], dtype=np.int64)
NAME_SETS = [["a"], ["ab", "abc", "abcd", "é"], [f"motor{i}" for i in range(11)], []]


@pytest.mark.parametrize("names", NAME_SETS)
@pytest.mark.parametrize(
    "fields", [("position",), ("effort",), ("position", "velocity", "effort")]
)
def test_joint_states_as_mcap_reads_them(names, fields):
    rng = np.random.default_rng(1)
    values = {field: rng.normal(size=(5, len(names))) for field in fields}
    messages = cdr.joint_states(STAMPS, names, **values, frame_id="base")
    for row, stamp in enumerate(STAMPS):
        message = decode("sensor_msgs/msg/JointState", messages[row].tobytes())
        assert (message.header.stamp.sec, message.header.stamp.nanosec) == divmod(stamp, 10**9)
        assert message.header.frame_id == "base"
        assert list(message.name) == names
        for field in ("position", "velocity", "effort"):
            expected = values[field][row].tolist() if field in values else []
            assert list(getattr(message, field)) == expected


@pytest.mark.ros
@pytest.mark.parametrize("names", NAME_SETS)
def test_joint_states_as_ros_reads_them(names):
    serialization = pytest.importorskip("rclpy.serialization", reason="needs rclpy")
    from sensor_msgs.msg import JointState

    rng = np.random.default_rng(2)
    position, effort = rng.normal(size=(2, 5, len(names)))
    messages = cdr.joint_states(STAMPS, names, position=position, effort=effort)
    for row, stamp in enumerate(STAMPS):
        data = messages[row].tobytes()
        message = serialization.deserialize_message(data, JointState)
        assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == stamp
        assert message.name == names
        assert list(message.position) == position[row].tolist()
        assert list(message.velocity) == []
        assert list(message.effort) == effort[row].tolist()


@pytest.mark.parametrize("size", [0, 1, 4])
def test_float64_arrays(size):
    values = np.random.default_rng(3).normal(size=(3, size))
    messages = cdr.float64_arrays(values)
    for row in range(3):
        message = decode("std_msgs/msg/Float64MultiArray", messages[row].tobytes())
        assert list(message.data) == values[row].tolist()
        assert message.layout.data_offset == 0
        assert list(message.layout.dim) == []


@pytest.mark.ros
def test_float64_arrays_and_strings_as_ros_reads_them():
    serialization = pytest.importorskip("rclpy.serialization", reason="needs rclpy")
    from std_msgs.msg import Float64MultiArray, String

    values = np.random.default_rng(3).normal(size=(3, 4))
    data = cdr.float64_arrays(values)[2].tobytes()
    assert list(serialization.deserialize_message(data, Float64MultiArray).data) == list(values[2])
    data = cdr.string_message("<sdf>µ</sdf>")[0].tobytes()
    assert serialization.deserialize_message(data, String).data == "<sdf>µ</sdf>"


def test_not_finite_values_survive():
    messages = cdr.joint_states(STAMPS[:1], ["a", "b"], effort=np.array([[np.nan, np.inf]]))
    effort = decode("sensor_msgs/msg/JointState", messages[0].tobytes()).effort
    assert np.isnan(effort[0])
    assert np.isposinf(effort[1])
