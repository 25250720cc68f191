"""The fast messages must be the messages that ROS itself writes and reads."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("rclpy", reason="rclpy is not installed")
from rclpy.serialization import deserialize_message, serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from cards_core.errors import ShapeError
from cards_core.muscles.command import CommandPart
from cards_ros.messages import (
    FIELDS,
    FloatArrayWriter,
    JointSetError,
    JointStateReader,
    JointStateWriter,
    MuscleStateNames,
    NameOrder,
    clock_message,
    command_fields,
    command_part,
)

pytestmark = pytest.mark.ros

NAMES = st.lists(st.text(max_size=12).filter(lambda t: "\0" not in t), max_size=9, unique=True)
SOME_FIELDS = st.sets(st.sampled_from(FIELDS))
STAMPS = st.integers(0, 2**31 * 10**9 - 10)


def surrogate_free(names):
    return [name.encode(errors="ignore").decode() for name in names]


def joint_state(names, fields, stamp, seed):
    rng = np.random.default_rng(seed)
    message = JointState(name=list(names))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    for field in fields:
        values = rng.normal(size=len(names)) * 10.0 ** rng.integers(-300, 300, size=len(names))
        setattr(message, field, values.tolist())
    return message


@settings(max_examples=150, deadline=None)
@given(NAMES, SOME_FIELDS, STAMPS, st.integers(0, 2**32 - 1))
def test_written_messages_are_read_by_ros(names, fields, stamp, seed):
    names = surrogate_free(names)
    wanted = joint_state(names, fields, stamp, seed)
    writer = JointStateWriter(names, fields)
    values = [np.array(getattr(wanted, field)) for field in FIELDS if field in fields]
    for _ in range(2):
        data = writer.write(stamp, *values)
        assert isinstance(data, bytes)
        assert deserialize_message(data, JointState) == wanted


@settings(max_examples=150, deadline=None)
@given(NAMES, SOME_FIELDS, STAMPS, st.integers(0, 2**32 - 1))
def test_messages_of_ros_are_read(names, fields, stamp, seed):
    names = surrogate_free(names)
    reader = JointStateReader()
    for turn in range(3):  # parsed as an object, then by its layout
        message = joint_state(names, fields, stamp + turn, seed + turn)
        sample = reader.read(serialize_message(message))
        assert sample.names == tuple(names)
        assert sample.stamp == stamp + turn
        for field in FIELDS:
            got = np.asarray(getattr(sample, field))
            assert got.tobytes() == np.array(getattr(message, field)).tobytes()


def test_messages_with_fields_of_unequal_length_are_read():
    message = JointState(name=["a", "b", "c"], position=[1.0], effort=[2.0, 3.0, 4.0, 5.0])
    reader = JointStateReader()
    for _ in range(2):
        sample = reader.read(serialize_message(message))
        assert sample.position.tolist() == [1.0]
        assert sample.velocity.tolist() == []
        assert sample.effort.tolist() == [2.0, 3.0, 4.0, 5.0]


def test_same_size_but_other_content_is_not_confused():
    reader = JointStateReader()
    first = JointStateWriter(("ab", "cd"), ("position", "velocity"))
    second = JointStateWriter(("ab", "ce"), ("position", "velocity"))
    third = JointStateWriter(("ab", "cd"), ("velocity", "effort"))
    one, two = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    for _ in range(3):
        for writer, names, fields in (
            (first, ("ab", "cd"), ("position", "velocity")),
            (second, ("ab", "ce"), ("position", "velocity")),
            (third, ("ab", "cd"), ("velocity", "effort")),
        ):
            sample = reader.read(writer.write(7, one, two))
            assert sample.names == names
            for field in FIELDS:
                expected = dict(zip(fields, (one, two), strict=True)).get(field, np.empty(0))
                assert np.array_equal(getattr(sample, field), expected)


def test_padding_of_other_writers_may_hold_anything():
    writer = JointStateWriter(("a", "bcdef"), ("effort",))
    data = bytearray(writer.write(5, np.array([1.5, -2.5])))
    reader = JointStateReader()
    reader.read(bytes(data))
    assert data[30:32] == b"\0\0"  # behind the name "a" and its end
    data[30:32] = b"\xaa\xbb"
    sample = reader.read(bytes(data))
    assert sample.names == ("a", "bcdef")
    assert sample.effort.tolist() == [1.5, -2.5]


def test_the_names_stay_the_same_object():
    writer, reader = JointStateWriter(("a", "b")), JointStateReader()
    values = [np.zeros(2)] * 3
    reader.read(writer.write(1, *values))
    first = reader.read(writer.write(2, *values)).names
    assert reader.read(writer.write(3, *values)).names is first


def test_not_a_number_and_infinity_pass_through():
    writer, reader = JointStateWriter(("a", "b", "c"), ("effort",)), JointStateReader()
    odd = np.array([np.nan, -np.inf, -0.0])
    for _ in range(2):
        assert reader.read(writer.write(0, odd)).effort.tobytes() == odd.tobytes()


def test_messages_are_written_as_objects_where_the_layout_is_unknown():
    writer = JointStateWriter(("a", "b"), ("position",))
    fast = writer.write(3_000_000_001, np.array([1.0, 2.0]))
    writer.packed = False
    slow = writer.write(3_000_000_001, np.array([1.0, 2.0]))
    assert isinstance(slow, JointState)
    assert deserialize_message(fast, JointState) == slow


def test_the_number_of_arrays_is_checked():
    with pytest.raises(ShapeError, match="effort"):
        JointStateWriter(("a",), ("effort",)).write(0)


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_float_arrays(size):
    writer = FloatArrayWriter(size)
    assert writer.packed
    values = np.random.default_rng(size).normal(size=size)
    message = deserialize_message(writer.write(values), Float64MultiArray)
    assert np.array_equal(message.data, values)
    assert list(message.layout.dim) == []


def test_clock():
    message = deserialize_message(clock_message(12_345_678_901), Clock)
    assert (message.clock.sec, message.clock.nanosec) == (12, 345_678_901)
    assert serialize_message(message)[4:12] == struct.pack("<iI", 12, 345_678_901)


def test_order_of_names():
    order = NameOrder(("a", "b", "c"))
    values = np.array([1.0, 2.0, 3.0])
    assert values[order.order(("a", "b", "c"))].tolist() == [1.0, 2.0, 3.0]
    assert values[order.order(("c", "a", "b"))].tolist() == [2.0, 3.0, 1.0]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("a", "b"), ["no value for c"]),
        (("a", "b", "d"), ["no value for c", "unknown: d"]),
        (("a", "b", "c", "d"), ["unknown: d"]),
        (("a", "b", "c", "a"), ["more than once: a"]),
        ((), ["no value for a, b, c"]),
    ],
)
def test_other_names_are_refused(names, words):
    order = NameOrder(("a", "b", "c"))
    for _ in range(2):
        with pytest.raises(JointSetError) as caught:
            order.order(names)
        for word in [*words, "expected: a, b, c"]:
            assert word in str(caught.value)


def test_muscles_and_states_of_a_message():
    reader = MuscleStateNames(["a", "b", "b/x"])
    places, states = reader.places(("a", "b", "b/x"))
    assert (places.tolist(), states) == ([0, 1, 2], ())
    # another order, states in between; a muscle's own name counts first
    names = ("b/x", "b", "a/activation", "a", "b/x/activation")
    for _ in range(2):
        places, states = reader.places(names)
        assert places.tolist() == [3, 1, 0]
        assert states == (("a/activation", 2), ("b/x/activation", 4))
    for wrong, text in (
        (("a", "b"), "no value for b/x"),
        (("a", "b", "b/x", "c"), "unknown: c"),
        (("a", "b", "b/x", "c/activation"), "unknown: c/activation"),
        (("a", "a", "b", "b/x"), "more than once: a"),
    ):
        with pytest.raises(JointSetError, match=text):
            reader.places(wrong)
        assert reader.places(names)[0].tolist() == [3, 1, 0]


def test_set_points_of_the_impedance_law_travel_in_one_message():
    names = ("a", "b")
    part = CommandPart(
        "impedance", names, np.array([1.0, 2.0]), np.array([0.3, np.nan]), np.array([0.0, 0.1])
    )
    fields = command_fields(part)
    assert [name for name, _ in fields] == ["position", "velocity", "effort"]
    writer = JointStateWriter(names, [name for name, _ in fields])
    message = writer.write(5, *(values for _, values in fields))
    data = message if isinstance(message, bytes) else serialize_message(message)
    again = command_part("impedance", JointStateReader().read(data))
    assert again.values.tolist() == [1.0, 2.0]
    assert again.rest_lengths[0] == 0.3
    assert np.isnan(again.rest_lengths[1])
    assert again.rest_rates.tolist() == [0.0, 0.1]
    # what is left out is kept by the host
    short = CommandPart("impedance", names, np.array([1.0, 2.0]))
    assert [name for name, _ in command_fields(short)] == ["effort"]
    length = CommandPart("length", names, np.array([0.3, 0.4]))
    assert [name for name, _ in command_fields(length)] == ["position"]


def test_long_lists_of_names_are_cut():
    order = NameOrder([f"joint_{i}" for i in range(30)])
    text = r"joint_7 and 22 more; unknown: other .expected: joint_0"
    with pytest.raises(JointSetError, match=text):
        order.order(("other",))
