"""``/tf`` and ``/muscle_markers`` of a recording, read by independent decoders."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.muscles.engine import MuscleEngine
from cards_core.spatial import quaternion_matrix
from cards_viz.colors import first_scale
from cards_viz.runs import recording
from cards_viz.runs.log import SimulatorLog
from cards_viz.runs.recorded_scene import MOST_FRAMES, RATE, drawn_rows, scene_channels


def log_of(robot, run_arrays, steps=200):
    arrays, _ = run_arrays(robot, steps=steps)
    return SimulatorLog.from_arrays(arrays)


def read(path):
    found = {}
    with open(path, "rb") as stream:
        for _, channel, message, decoded in make_reader(
            stream, decoder_factories=[DecoderFactory()]
        ).iter_decoded_messages():
            found.setdefault(channel.topic, []).append((message.log_time, decoded, message.data))
    return found


def pose_of(transform):
    t, r = transform.translation, transform.rotation
    pose = np.eye(4)
    pose[:3, 3] = t.x, t.y, t.z
    pose[:3, :3] = quaternion_matrix([r.w, r.x, r.y, r.z])
    return pose


def row_of(log, stamp):
    rows = np.flatnonzero(recording.nanoseconds(log.time) == stamp)
    assert len(rows) == 1
    return rows[0]


@pytest.mark.parametrize("name", ["planar_2r", "roboy_arm", "ipanema_1"])
def test_poses_are_those_of_the_logged_states(name, tmp_path, run_arrays):
    robot = load(name)
    log = log_of(robot, run_arrays)
    recording.write_mcap(tmp_path / "a.mcap", scene_channels(robot, log))
    messages = read(tmp_path / "a.mcap")["/tf"]
    assert len(messages) >= 2
    dynamics = make_dynamics(robot)  # generated code; the recording is by NumPy
    for stamp, message, _ in messages:
        row = row_of(log, stamp)
        assert [one.child_frame_id for one in message.transforms] == [
            link.name for link in robot.links
        ]
        expected = dynamics.link_poses(log.q[row])
        for one, pose in zip(message.transforms, expected, strict=True):
            assert one.header.frame_id == "world"
            assert one.header.stamp.sec * 10**9 + one.header.stamp.nanosec == stamp
            np.testing.assert_allclose(pose_of(one.transform), pose, atol=1e-9)


def test_planar_poses_in_closed_form(tmp_path, run_arrays):
    robot = load("planar_2r")
    log = log_of(robot, run_arrays)
    recording.write_mcap(tmp_path / "a.mcap", scene_channels(robot, log))
    for stamp, message, _ in read(tmp_path / "a.mcap")["/tf"]:
        first, both = np.cumsum(log.q[row_of(log, stamp)])
        found = {one.child_frame_id: pose_of(one.transform) for one in message.transforms}
        np.testing.assert_allclose(found["base"], np.eye(4), atol=1e-12)
        elbow = [np.sin(first), 0.0, np.cos(first)]
        np.testing.assert_allclose(found["link_1"][:3, 3], 0.0, atol=1e-9)
        np.testing.assert_allclose(found["link_1"][:3, 2], elbow, atol=1e-9)
        np.testing.assert_allclose(found["link_2"][:3, 3], elbow, atol=1e-9)
        tip = [np.sin(both), 0.0, np.cos(both)]
        np.testing.assert_allclose(found["link_2"][:3, 2], tip, atol=1e-9)


@pytest.mark.parametrize("name", ["planar_2r", "wrap_elbow"])
def test_markers_are_the_muscles_at_the_logged_states(name, tmp_path, run_arrays):
    robot = load(name)
    log = log_of(robot, run_arrays)
    recording.write_mcap(tmp_path / "a.mcap", scene_channels(robot, log))
    messages = read(tmp_path / "a.mcap")["/muscle_markers"]
    dynamics, engine = make_dynamics(robot), MuscleEngine(robot)
    scale = first_scale(robot)
    scale.include(log.tensions)
    for stamp, message, _ in messages:
        row = row_of(log, stamp)
        lines, points = message.markers
        assert (lines.ns, lines.type, points.ns, points.type) == ("muscles", 5, "via_points", 7)
        for marker in message.markers:
            assert marker.header.frame_id == "world"
            assert marker.header.stamp.sec * 10**9 + marker.header.stamp.nanosec == stamp
            assert marker.pose.orientation.w == 1.0
            assert min(marker.scale.x, marker.color.a) > 0.0
        ends = np.array([[p.x, p.y, p.z] for p in lines.points]).reshape(-1, 2, 3)
        paths = engine.path_points(np.array(dynamics.link_poses(log.q[row])))
        expected = [pair for path in paths for pair in pairwise(path)]
        np.testing.assert_allclose(ends, expected, atol=1e-9)
        muscle = np.repeat(np.arange(len(paths)), [len(path) - 1 for path in paths])
        rgb = scale.colors(log.tensions[row])[np.repeat(muscle, 2)] / 255.0
        colors = np.array([[c.r, c.g, c.b, c.a] for c in lines.colors])
        np.testing.assert_allclose(colors[:, :3], rgb, atol=1e-6)
        assert (colors[:, 3] == 1.0).all()
        assert not points.colors


@pytest.mark.ros
def test_ros_itself_reads_the_markers(tmp_path, planar_2r, run_arrays):
    serialization = pytest.importorskip("rclpy.serialization", reason="needs rclpy")
    from visualization_msgs.msg import MarkerArray

    log = log_of(planar_2r, run_arrays)
    recording.write_mcap(tmp_path / "a.mcap", scene_channels(planar_2r, log))
    for _, decoded, data in read(tmp_path / "a.mcap")["/muscle_markers"]:
        message = serialization.deserialize_message(data, MarkerArray)
        again = serialization.serialize_message(message)
        assert len(again) == len(data)  # what is between is not defined where it is padding
        assert serialization.deserialize_message(again, MarkerArray) == message
        for mine, theirs in zip(decoded.markers, message.markers, strict=True):
            assert [p.x for p in mine.points] == [p.x for p in theirs.points]
            assert mine.scale.x == theirs.scale.x
            assert theirs.mesh_file.filename == ""


def test_states_that_are_not_finite_are_left_out(planar_2r, run_arrays):
    log = log_of(planar_2r, run_arrays)
    q = log.q.copy()
    q[100:] = np.nan
    tf, markers = scene_channels(planar_2r, replace(log, q=q))
    assert 0 < len(tf.stamps) == len(markers.stamps) < 101
    assert tf.stamps.max() < 100_000_000
    assert scene_channels(planar_2r, replace(log, q=np.full_like(q, np.nan))) == []


def test_rows_that_are_drawn():
    time = 0.001 * np.arange(1, 3002)
    good = np.ones(len(time), dtype=bool)
    rows = drawn_rows(time, good)
    assert rows[0] == 0
    assert len(rows) == 3.0 * RATE + 1
    assert np.diff(time[rows]).min() >= 1.0 / RATE - 0.0011
    slow = np.arange(0.0, 3.0, 0.1)
    np.testing.assert_array_equal(drawn_rows(slow, good[: len(slow)]), np.arange(len(slow)))
    long = np.arange(0.0, 1000.0, 0.01)
    assert len(drawn_rows(long, np.ones(len(long), dtype=bool))) <= MOST_FRAMES + 1
