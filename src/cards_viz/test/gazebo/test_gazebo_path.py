"""The path of the hand in Gazebo's GUI, with a transport that only writes down."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from sensor_msgs.msg import JointState

from cards_core.spatial import Pose
from cards_ros import topics
from cards_ros.testing import NodeThread
from cards_viz.gazebo import markers
from cards_viz.muscles.scene import Scene

pytestmark = pytest.mark.ros


class List(list):
    """A repeated field of a protobuf message."""

    def __init__(self, make):
        super().__init__()
        self._make = make

    def add(self, **values):
        item = self._make()
        for name, value in values.items():
            setattr(item, name, value)
        self.append(item)
        return item


def marker():
    space = SimpleNamespace
    return space(
        ADD_MODIFY=0, DELETE_MARKER=1, DELETE_ALL=2, CYLINDER=3, LINE_LIST=4, id=0,
        pose=space(position=space(), orientation=space()), scale=space(), point=List(space),
        material=space(ambient=space(), diffuse=space()),
    )  # fmt: skip


class Request:
    def __init__(self):
        self.marker = List(marker)


class Transport:
    """A node of gz-transport beside a GUI."""

    def __init__(self):
        self.requests = []

    def service_list(self):
        return [markers.SERVICE]

    def request(self, service, request, *_):
        assert service == markers.SERVICE
        self.requests.append(request)
        return True, SimpleNamespace(data=True)


@pytest.fixture
def transport(monkeypatch):
    node = Transport()
    monkeypatch.setattr(markers, "_bindings", lambda: (lambda: node, Request, object))
    return node


def points(found):
    return np.array([(p.x, p.y, p.z) for p in found.point]).reshape(-1, 2, 3)


def test_hand_leaves_a_path(domain, transport, planar_2r, probe):
    from cards_viz.gazebo.node import GazeboMarkersNode

    scene = Scene(planar_2r, with_shapes=False, backend="numeric")
    origin = Pose.from_xyz_rpy([1.0, -2.0, 0.5], [0.0, 0.0, 0.7])
    parameters = {"origin": [1.0, -2.0, 0.5, 0.0, 0.0, 0.7]}
    sent = 0
    with NodeThread(GazeboMarkersNode, domain, {"robot": planar_2r}, **parameters):

        def drawn():
            nonlocal sent
            sent += 1
            q = [0.4, -0.7 + 0.02 * min(sent, 40)]
            muscles = JointState(name=[m.name for m in planar_2r.muscles], effort=[20.0] * 4)
            joints = JointState(name=["joint_1", "joint_2"], position=q)
            for message in (muscles, joints):
                message.header.stamp.sec = sent
            probe.publish(muscles, topics.MUSCLE_STATES)
            probe.publish(joints, topics.JOINT_STATES)
            probe.spin(0.05)
            return sent > 60 and len(transport.requests) > 3

        probe.until(drawn, "requests")
    found = [m for request in transport.requests for m in request.marker]
    paths = [m for m in found if m.ns == "cards/planar_2r/path" and m.id == 2 and len(m.point)]
    lines = points(paths[-1])
    assert paths[-1].type == paths[-1].LINE_LIST
    assert len(lines) > 3
    # a circle about the second joint, moved to where the model stands
    tip = [scene.frame(np.array([0.4, q]), np.zeros(4), 1.0).end_effector for q in (-0.7, 0.1)]
    ends = origin.apply(np.array(tip))
    far = np.linalg.norm(lines[:, :, None] - ends, axis=-1).min(axis=(0, 1))
    assert far.max() < 0.1 * np.linalg.norm(ends[1] - ends[0])
    np.testing.assert_allclose(lines[1:, 0], lines[:-1, 1], atol=1e-12)
    # nobody wants the hand anywhere: that path is empty, and removed
    wanted = [m for m in found if m.ns == "cards/planar_2r/path" and m.id == 1]
    assert {m.action for m in wanted if not hasattr(m, "type")} == {1}
    # at the end all is removed
    assert {m.ns for m in transport.requests[-1].marker if m.action == 2} == {
        "cards/planar_2r", "cards/planar_2r/path",
    }  # fmt: skip
