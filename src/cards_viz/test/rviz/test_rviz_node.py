"""Markers over real topics; the host and the controller are played by the test."""

import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from cards_core.spatial import quaternion_matrix
from cards_ros import topics
from cards_ros.testing import NodeThread
from cards_viz.colors import TensionScale
from cards_viz.muscles.scene import Scene
from cards_viz.rviz.node import MARKERS_TOPIC, PATH_TOPIC, MuscleMarkersNode

pytestmark = pytest.mark.ros

TENSIONS = np.array([10.0, 20.0, 40.0, 80.0])


@pytest.fixture
def node(domain, planar_2r):
    with NodeThread(MuscleMarkersNode, domain, {"robot": planar_2r}) as node:
        yield node


def states(robot, q, tensions, stamp=0.0):
    joints = JointState(name=["joint_1", "joint_2"], position=[float(x) for x in q])
    muscles = JointState(
        name=[muscle.name for muscle in robot.muscles], effort=[float(f) for f in tensions]
    )
    for message in (joints, muscles):
        message.header.stamp.sec = int(stamp)
        message.header.stamp.nanosec = round(1e9 * (stamp - int(stamp)))
    return joints, muscles


def send(probe, robot, q, tensions, stamp):
    joints, muscles = states(robot, q, tensions, stamp)
    probe.publish(muscles, topics.MUSCLE_STATES)
    probe.publish(joints, topics.JOINT_STATES)


def by_namespace(message, name):
    return [marker for marker in message.markers if marker.ns == name]


def xyz(points):
    return np.array([(p.x, p.y, p.z) for p in points])


def test_markers_of_a_state(probe, node, planar_2r):
    received = probe.listen(MarkerArray, MARKERS_TOPIC)
    q = np.array([0.4, -0.7])
    # names in another order, as other hosts may send them
    joints, muscles = states(planar_2r, q, TENSIONS, 1.5)
    joints.name.reverse()
    joints.position.reverse()
    muscles.name = muscles.name[2:] + muscles.name[:2]
    muscles.effort = muscles.effort[2:] + muscles.effort[:2]

    def drawn():
        probe.publish(muscles, topics.MUSCLE_STATES)
        probe.publish(joints, topics.JOINT_STATES)
        probe.spin(0.05)
        # the last of the colour scale's growth
        return received and by_namespace(received[-1], "muscles")[3].color.r > 0.9

    probe.until(drawn, "markers")
    message = received[-1]
    scene = Scene(planar_2r, with_shapes=False, backend="numeric")
    scale = TensionScale(0.0, 80.0, 100.0)
    frame = scene.frame(q, TENSIONS, scale.high)
    lines = by_namespace(message, "muscles")
    assert [line.id for line in lines] == [0, 1, 2, 3]
    for index, line in enumerate(lines):
        assert line.type == Marker.LINE_STRIP
        assert line.header.frame_id == "world"
        assert (line.header.stamp.sec, line.header.stamp.nanosec) == (1, 500_000_000)
        np.testing.assert_allclose(xyz(line.points), frame.paths[index], atol=1e-12)
        color = 255 * np.array([line.color.r, line.color.g, line.color.b])
        np.testing.assert_allclose(color, scale.colors(TENSIONS)[index], atol=1e-3)
        assert line.color.a == 1.0
        assert line.scale.x > 0.0
    (spheres,) = by_namespace(message, "via_points")
    assert spheres.type == Marker.SPHERE_LIST
    np.testing.assert_allclose(xyz(spheres.points), frame.points, atol=1e-12)
    arrows = by_namespace(message, "forces")
    assert [arrow.type for arrow in arrows] == [Marker.ARROW] * 4
    for index, arrow in enumerate(arrows):
        np.testing.assert_allclose(xyz(arrow.points), frame.arrows[index], atol=1e-9)


def test_wrapped_muscles_and_their_surfaces(probe, domain, wrap_arm):
    """Actuator states in ``muscle_states`` do not disturb."""
    q = np.array([0.3, -1.2])
    tensions = np.array([20.0, 35.0, 50.0, 80.0])
    muscles = [muscle.name for muscle in wrap_arm.muscles]
    names = [*muscles, "extensor/activation", "ring/pressure"]
    values = [0.1, 0.2, 0.3, 0.4, 0.7, 2e5]
    with NodeThread(MuscleMarkersNode, domain, {"robot": wrap_arm}) as thread:
        received = probe.listen(MarkerArray, MARKERS_TOPIC)

        def drawn():
            message = JointState(name=names, position=values, effort=[*tensions, 0.0, 0.0])
            probe.publish(message, topics.MUSCLE_STATES)
            joints = JointState(name=["shoulder", "elbow"], position=q.tolist())
            joints.header.stamp.sec = 1
            probe.publish(joints, topics.JOINT_STATES)
            probe.spin(0.05)
            return received and by_namespace(received[-1], "muscles")[3].color.r > 0.9

        probe.until(drawn, "markers")
        watcher = thread.node.watcher
        assert watcher.tensions.tolist() == tensions.tolist()
        assert watcher.states == {"extensor/activation": 0.7, "ring/pressure": 2e5}
    scene = Scene(wrap_arm, with_shapes=False, backend="numeric")
    frame = scene.frame(q, tensions, 80.0)
    for line, path in zip(by_namespace(received[-1], "muscles"), frame.paths, strict=True):
        points = xyz(line.points)
        steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
        assert steps.min() > 1e-9
        assert steps.sum() == pytest.approx(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
    (spheres,) = by_namespace(received[-1], "via_points")
    np.testing.assert_allclose(xyz(spheres.points), frame.points, atol=1e-9)
    surfaces = by_namespace(received[-1], "wrap_surfaces")
    assert [s.type for s in surfaces] == [
        Marker.CYLINDER,
        Marker.SPHERE,
        Marker.SPHERE,
        Marker.TRIANGLE_LIST,
        Marker.SPHERE,
    ]
    for marker, shape in zip(surfaces, scene.surfaces, strict=True):
        assert (marker.header.frame_id, marker.header.stamp.sec) == ("world", 1)
        assert 0.0 < marker.color.a < 1.0
        link = shape.link_pose(frame.link_poses)
        place = link[:3, :3] @ shape.pose.translation + link[:3, 3]
        np.testing.assert_allclose(xyz([marker.pose.position])[0], place, atol=1e-9)
        o = marker.pose.orientation
        turn = link[:3, :3] @ shape.pose.rotation
        np.testing.assert_allclose(quaternion_matrix((o.w, o.x, o.y, o.z)), turn, atol=1e-9)
        if marker.type != Marker.TRIANGLE_LIST:
            # of each shape the box around it
            size = np.ptp(shape.vertices, axis=0)
            found = (marker.scale.x, marker.scale.y, marker.scale.z)
            np.testing.assert_allclose(found, size, rtol=0.02)
        else:
            corners = shape.vertices[shape.faces].reshape(-1, 3)
            np.testing.assert_allclose(xyz(marker.points), corners)


def test_arrows_can_be_switched_off(probe, node, planar_2r):
    node.node.set_parameters([node.node.get_parameter("forces").__class__("forces", value=False)])
    received = probe.listen(MarkerArray, MARKERS_TOPIC)

    def drawn():
        send(probe, planar_2r, np.zeros(2), TENSIONS, 1.0)
        probe.spin(0.05)
        return received

    probe.until(drawn, "markers")
    assert {arrow.action for arrow in by_namespace(received[-1], "forces")} == {Marker.DELETE}


def test_at_most_thirty_a_second(probe, node, planar_2r):
    received = probe.listen(MarkerArray, MARKERS_TOPIC)
    begin, k = time.monotonic(), 0
    while time.monotonic() - begin < 1.5:
        k += 1
        send(probe, planar_2r, np.zeros(2), TENSIONS, 1e-3 * k)
        probe.spin(0.004)
    duration = time.monotonic() - begin
    print(f"\n{k / duration:.0f} states/s, {len(received) / duration:.1f} markers/s")
    assert 1 <= len(received) <= 30.0 * duration + 1


def test_path_of_the_end_effector_and_of_the_reference(probe, node, planar_2r):
    """The test is the controller: it publishes force_command, desired and error."""
    received = probe.listen(MarkerArray, PATH_TOPIC)
    scene = Scene(planar_2r, backend="numeric")
    publisher = probe.node.create_publisher(JointState, topics.FORCE_COMMAND, topics.COMMAND_QOS)
    angles = np.linspace(0.0, 1.0, 15)
    for k, angle in enumerate(angles):
        q = np.array([angle, 0.0])
        send(probe, planar_2r, q, TENSIONS, 0.1 * (k + 1))
        desired, _ = states(planar_2r, q + 0.1, TENSIONS, 0.1 * (k + 1))
        probe.publish(desired, "probe/desired")
        error = JointState(name=["joint_1", "joint_2"], position=[0.1, 0.1])
        probe.publish(error, "probe/error")
        probe.spin(0.08)

    def ends(name):
        if not received:
            return False
        (marker,) = by_namespace(received[-1], name)
        assert marker.type == Marker.LINE_LIST
        return xyz(marker.points) if len(marker.points) > 10 else False

    def near(name, q):
        points = ends(name)
        if points is False:
            return False
        goal = scene.end_effector(scene.link_poses(q))
        return np.linalg.norm(points - goal, axis=1).min() < 0.1

    probe.until(lambda: near("actual", np.array([1.0, 0.0])), "the actual path")
    probe.until(lambda: near("desired", np.array([1.0, 0.1])), "the desired path")
    # all points lie on the circle of the tip
    points = ends("actual")
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 2.0, atol=1e-9)
    # time goes back: another run, another path
    received.clear()

    def cleared():
        send(probe, planar_2r, np.zeros(2), TENSIONS, 0.0)
        probe.spin(0.1)
        return received and len(by_namespace(received[-1], "actual")[0].points) == 2

    probe.until(cleared, "an empty path")
    probe.node.destroy_publisher(publisher)


def test_messages_of_another_robot_and_nan_are_survived(probe, node, planar_2r):
    received = probe.listen(MarkerArray, MARKERS_TOPIC)
    stranger = JointState(name=["neck"], position=[1.0])
    probe.publish(stranger, topics.JOINT_STATES)
    probe.spin(0.1)
    send(probe, planar_2r, np.array([np.nan, 0.0]), TENSIONS, 1.0)
    probe.spin(0.2)
    assert received == []

    def drawn():
        send(probe, planar_2r, np.zeros(2), np.full(4, np.nan), 2.0)
        probe.spin(0.05)
        return received

    probe.until(drawn, "markers")
    (line, *_) = by_namespace(received[-1], "muscles")
    assert line.color.r == pytest.approx(128 / 255)
