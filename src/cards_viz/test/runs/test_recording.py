"""The encoding is checked against two independent ones: ROS 2 itself and mcap-ros2-support."""

from dataclasses import replace

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.records import Schema
from mcap_ros2.decoder import DecoderFactory

from cards_viz.runs import recording
from cards_viz.runs.log import ControllerLog, SimulatorLog


def decode(type_name: str, data: bytes):
    """Decode with the message definition that the recording carries."""
    text = recording.DEFINITIONS[type_name].encode()
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
    messages = recording.joint_states(STAMPS, names, **values, frame_id="base")
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
    messages = recording.joint_states(STAMPS, names, position=position, effort=effort)
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
    messages = recording.float64_arrays(values)
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
    data = recording.float64_arrays(values)[2].tobytes()
    assert list(serialization.deserialize_message(data, Float64MultiArray).data) == list(values[2])
    data = recording.string_message("<sdf>µ</sdf>")[0].tobytes()
    assert serialization.deserialize_message(data, String).data == "<sdf>µ</sdf>"


def test_not_finite_values_survive():
    messages = recording.joint_states(STAMPS[:1], ["a", "b"], effort=np.array([[np.nan, np.inf]]))
    effort = decode("sensor_msgs/msg/JointState", messages[0].tobytes()).effort
    assert np.isnan(effort[0])
    assert np.isposinf(effort[1])


NAMES = recording.Names(
    ["joint_1", "joint_2"],
    [0, 1],
    ["cable_1", "cable_2", "cable_3", "cable_4"],
    ["joint_1", "joint_2"],
    ["joint_1", "joint_2"],
    "ctc_joint",
)


@pytest.fixture
def run(planar_2r, run_arrays):
    simulator, controller = run_arrays(planar_2r, steps=50)
    return SimulatorLog.from_arrays(simulator), ControllerLog.from_arrays(controller)


def read(path):
    """Messages by topic: (log time, type, decoded message, raw bytes)."""
    found = {}
    with open(path, "rb") as stream:
        reader = make_reader(stream, decoder_factories=[DecoderFactory()])
        times = []
        for schema, channel, message, decoded in reader.iter_decoded_messages():
            times.append(message.log_time)
            entry = (message.log_time, schema.name, decoded, message.data)
            found.setdefault(channel.topic, []).append(entry)
        assert times == sorted(times)
        header = reader.get_header()
    return found, header


def test_all_topics_with_all_values(tmp_path, run):
    simulator, controller = run
    path = tmp_path / "recording.mcap"
    recording.write_mcap(path, recording.channels(simulator, controller, NAMES, "<sdf/>"))
    topics, header = read(path)
    assert header.profile == "ros2"
    assert set(topics) == {
        "/joint_states",
        "/muscle_states",
        "/q",
        "/q_dot",
        "/force_command",
        "/ctc_joint/desired",
        "/ctc_joint/error",
        "/robot_description",
    }
    joints = topics["/joint_states"]
    assert [entry[0] for entry in joints] == np.rint(simulator.time * 1e9).astype(int).tolist()
    np.testing.assert_array_equal([list(e[2].position) for e in joints], simulator.q)
    np.testing.assert_array_equal([list(e[2].velocity) for e in joints], simulator.qd)
    assert list(joints[0][2].name) == ["joint_1", "joint_2"]
    muscles = topics["/muscle_states"]
    np.testing.assert_array_equal([list(e[2].position) for e in muscles], simulator.muscle_lengths)
    np.testing.assert_array_equal([list(e[2].velocity) for e in muscles], simulator.muscle_rates)
    np.testing.assert_array_equal([list(e[2].effort) for e in muscles], simulator.tensions)
    np.testing.assert_array_equal([list(e[2].data) for e in topics["/q"]], simulator.q)
    np.testing.assert_array_equal([list(e[2].data) for e in topics["/q_dot"]], simulator.qd)
    commands = topics["/force_command"]
    np.testing.assert_array_equal([list(e[2].effort) for e in commands], controller.tensions)
    desired = topics["/ctc_joint/desired"]
    np.testing.assert_array_equal([list(e[2].position) for e in desired], controller.desired)
    np.testing.assert_array_equal([list(e[2].velocity) for e in desired], controller.desired_dot)
    error = topics["/ctc_joint/error"]
    np.testing.assert_array_equal([list(e[2].position) for e in error], controller.error)
    assert topics["/robot_description"][0][2].data == "<sdf/>"


def test_actuator_states_follow_the_muscles(tmp_path, planar_2r, run_arrays):
    arrays, _ = run_arrays(planar_2r, steps=20)
    states = np.random.default_rng(3).random((21, 2))
    arrays |= {"actuators": states, "actuator_names": np.array(["cable_2/x", "cable_4/x"])}
    log = SimulatorLog.from_arrays(arrays)
    recording.write_mcap(tmp_path / "a", recording.channels(log, None, NAMES))
    messages = [entry[2] for entry in read(tmp_path / "a")[0]["/muscle_states"]]
    assert list(messages[3].name) == [*NAMES.muscles, "cable_2/x", "cable_4/x"]
    np.testing.assert_array_equal(
        [list(m.position) for m in messages], np.hstack([log.muscle_lengths, states])
    )
    for field, values in (("velocity", log.muscle_rates), ("effort", log.tensions)):
        found = np.array([list(getattr(m, field)) for m in messages])
        np.testing.assert_array_equal(found[:, :4], values)
        np.testing.assert_array_equal(found[:, 4:], 0.0)


def test_what_ros2_bag_needs_of_a_file(tmp_path, run):
    """Its reader takes counts, times and types from the summary at the end of the file."""
    path = tmp_path / "recording.mcap"
    recording.write_mcap(path, recording.channels(*run, NAMES), {"robot": "planar_2r"})
    with open(path, "rb") as stream:
        reader = make_reader(stream)
        summary = reader.get_summary()
        (metadata,) = reader.iter_metadata()
    assert summary.statistics.message_count == 4 * 51 + 3 * 50
    assert summary.statistics.message_start_time == 0
    assert summary.statistics.message_end_time == 50_000_000
    assert {channel.message_encoding for channel in summary.channels.values()} == {"cdr"}
    assert {schema.encoding for schema in summary.schemas.values()} == {"ros2msg"}
    used = {channel.schema_id for channel in summary.channels.values()}
    assert used <= set(summary.schemas)
    assert summary.chunk_indexes
    assert (metadata.name, metadata.metadata) == ("cards", {"robot": "planar_2r"})


@pytest.mark.ros
def test_ros_itself_reads_the_messages(tmp_path, run):
    serialization = pytest.importorskip("rclpy.serialization", reason="needs rclpy")
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    types = {
        "sensor_msgs/msg/JointState": JointState,
        "std_msgs/msg/Float64MultiArray": Float64MultiArray,
    }
    path = tmp_path / "recording.mcap"
    recording.write_mcap(path, recording.channels(*run, NAMES))
    topics, _ = read(path)
    count = 0
    for entries in topics.values():
        for stamp, type_name, _, data in entries:
            message = serialization.deserialize_message(data, types[type_name])
            count += 1
            if type_name == "sensor_msgs/msg/JointState":
                assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == stamp
    assert count == 4 * 51 + 3 * 50


def test_same_run_gives_the_same_bytes(tmp_path, run):
    for name in "ab":
        recording.write_mcap(tmp_path / name, recording.channels(*run, NAMES), {"robot": "r"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_messages_are_serialised_in_blocks(tmp_path, run, monkeypatch):
    """Each block once, and the same bytes: a recording takes no more memory for a longer run."""
    series = recording.channels(*run, NAMES, "<sdf/>")
    recording.write_mcap(tmp_path / "whole", series)
    monkeypatch.setattr(recording, "BLOCK", 7)
    asked = []

    def noted(item):
        def serialise(rows):
            asked.append((item.topic, rows.start, rows.stop))
            return item.messages(rows)

        return replace(item, messages=serialise)

    recording.write_mcap(tmp_path / "blocks", [noted(item) for item in series])
    assert (tmp_path / "blocks").read_bytes() == (tmp_path / "whole").read_bytes()
    expected = [
        (item.topic, first, first + 7)
        for item in series
        for first in range(0, len(item.stamps), 7)
    ]
    assert sorted(asked) == sorted(expected)


def test_velocities_sit_beside_the_right_coordinate(tmp_path, run):
    simulator, _ = run
    ball = replace(
        simulator,
        q=np.tile([1.0, 0.0, 0.0, 0.0], (51, 1)),
        qd=np.tile([0.1, 0.2, 0.3], (51, 1)),
    )
    names = recording.Names(["b.w", "b.x", "b.y", "b.z"], [1, 2, 3], NAMES.muscles)
    recording.write_mcap(tmp_path / "a", recording.channels(ball, None, names))
    topics, _ = read(tmp_path / "a")
    message = topics["/joint_states"][7][2]
    assert dict(zip(message.name, message.velocity, strict=True)) == {
        "b.w": 0.0,
        "b.x": 0.1,
        "b.y": 0.2,
        "b.z": 0.3,
    }
    assert set(topics) == {"/joint_states", "/muscle_states", "/q", "/q_dot"}
