"""Bodies of a world over real topics, and their markers in RViz."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from geometry_msgs.msg import Quaternion, Transform, Vector3
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import JointState, MultiDOFJointState
from visualization_msgs.msg import Marker, MarkerArray

from cards_core.formats import load
from cards_ros import topics
from cards_ros.testing import NodeThread
from cards_viz.muscles.world_watcher import watch_world
from cards_viz.rviz.node import MARKERS_TOPIC, MuscleMarkersNode

pytestmark = pytest.mark.ros


@pytest.fixture
def node(domain):
    context = Context()
    context.init(args=[], domain_id=domain)
    node = Node("view", context=context, namespace="left_arm")
    yield node
    node.destroy_node()
    context.try_shutdown()


def box_at(x, y, z):
    half = float(np.sqrt(0.5))
    turned = Transform(
        translation=Vector3(x=x, y=y, z=z), rotation=Quaternion(w=half, x=0.0, y=0.0, z=half)
    )
    return MultiDOFJointState(joint_names=["box::link"], transforms=[turned])


def test_bodies_are_in_the_axes_of_the_robot(node, probe):
    """The left arm stands at y = 0.6; topics of the world have no namespace."""
    robot = load("roboy_arm")
    scene, watcher = watch_world(node, robot, "two_arms", "")
    q = np.array([1.4, 0.3, -0.2, -0.7])

    def known():
        probe.publish(box_at(1.0, 2.0, 3.0), topics.OBJECT_STATES)
        message = JointState(name=list(robot.tree.position_names), position=q.tolist())
        probe.publish(message, "right_arm/joint_states")
        probe.spin(0.02)
        watcher.poll()
        return {"box::link", "right_arm::lower_arm"} <= watcher.poses.keys()

    probe.until(known, "poses")
    box = watcher.poses["box::link"]
    np.testing.assert_allclose(box[:3, 3], [1.0, 1.4, 3.0], atol=1e-12)
    np.testing.assert_allclose(box[:3, 0], [0.0, 1.0, 0.0], atol=1e-12)
    expected = scene.robots[0].poses(q)["right_arm::lower_arm"]
    np.testing.assert_allclose(watcher.poses["right_arm::lower_arm"], expected)


def test_a_world_that_cannot_be_read_is_not_drawn(node, tmp_path):
    file = tmp_path / "w.sdf"
    file.write_text('<sdf version="1.11"><world name="w"><model/></world></sdf>')
    robot = load("roboy_arm")
    assert watch_world(node, robot, str(file), "") is None
    assert watch_world(node, robot, "", "dunes") is None
    assert watch_world(node, robot, "", "") is None


def test_markers_of_a_world(domain, probe):
    """What moves is drawn when it is known where it is."""
    robot = load("planar_2r")
    received = probe.listen(MarkerArray, MARKERS_TOPIC)
    with NodeThread(MuscleMarkersNode, domain, {"robot": robot}, world="table"):
        stamp = 0

        def drawn(count):
            nonlocal stamp
            stamp += 1
            joints = JointState(name=["joint_1", "joint_2"], position=[0.1, 0.2])
            joints.header.stamp.sec = stamp
            probe.publish(joints, topics.JOINT_STATES)
            probe.spin(0.05)
            around = [m for m in received[-1].markers if m.ns == "world"] if received else []
            return around if len(around) == count else None

        fixed = probe.until(lambda: drawn(6), "desk, legs and shelf")
        assert {marker.type for marker in fixed} == {Marker.CUBE}
        top = max(fixed, key=lambda marker: marker.scale.x)
        assert (top.scale.x, top.scale.y, top.scale.z) == (1.2, 1.2, 0.04)
        assert (top.pose.position.x, top.pose.position.z) == (0.3, -0.02)
        probe.publish(box_at(0.5, 0.0, 1.0), topics.OBJECT_STATES)
        around = probe.until(lambda: drawn(11), "the box")
        (body,) = [m for m in around if (m.scale.x, m.scale.z) == (0.1, 0.06)]
        # its centre is 3 cm above the origin of the box
        assert body.pose.position.x == pytest.approx(0.5)
        assert body.pose.position.z == pytest.approx(1.03)
