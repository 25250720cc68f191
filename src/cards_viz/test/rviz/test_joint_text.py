"""Joint coordinates as text: what they say, and where."""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from builtin_interfaces.msg import Time

from cards_core.formats import load
from cards_viz.muscles.scene import Scene
from cards_viz.rviz.joint_text import JointTexts

pytestmark = pytest.mark.ros


def texts_of(robot, q):
    scene = Scene(robot, with_shapes=False, backend="numeric")
    home = scene.link_poses(scene.tree.home)
    poses = scene.link_poses(q)
    markers = JointTexts(scene.tree, scene.size, home, "world").at(q, poses, Time(sec=3))
    return scene, markers


def place(marker):
    position = marker.pose.position
    return np.array([position.x, position.y, position.z])


def test_angles_stand_above_the_joints(planar_2r):
    scene, markers = texts_of(planar_2r, np.array([0.4, -0.7]))
    names = [joint.name for joint in planar_2r.joints if joint.kind == "revolute"]
    values = (math.degrees(0.4), math.degrees(-0.7))
    assert [m.text for m in markers] == [
        f"{name} {value:.1f}°" for name, value in zip(names, values, strict=True)
    ]
    assert {m.header.stamp.sec for m in markers} == {3}
    assert len({(m.ns, m.id) for m in markers}) == 2
    # a revolute joint's origin does not move with its own angle: the first is where it is at home
    first, second = map(place, markers)
    length = np.linalg.norm(second - first)
    _, at_home = texts_of(planar_2r, np.zeros(2))
    there = [place(marker) for marker in at_home]
    assert np.linalg.norm(there[1] - there[0]) == pytest.approx(length, abs=1e-12)
    np.testing.assert_allclose(first, there[0], atol=1e-12)
    assert np.linalg.norm(second - there[1]) == pytest.approx(2 * length * math.sin(0.2), abs=1e-9)
    assert all(m.scale.z == pytest.approx(0.03 * scene.size) for m in markers)


def test_displacements_are_in_millimetres():
    _, markers = texts_of(load("planar_xy"), np.array([0.3, 0.5, 0.1]))
    assert [m.text.split(" ", 1)[1] for m in markers] == ["300.0 mm", "500.0 mm", "5.7°"]


def test_joints_at_one_place_stand_above_each_other():
    _, markers = texts_of(load("spherical_2s"), np.zeros(6))
    places = np.array([place(marker) for marker in markers])
    steps = np.diff(places[:3], axis=0)
    np.testing.assert_allclose(steps[:, :2], 0.0, atol=1e-12)
    assert steps[:, 2].min() > markers[0].scale.z  # no text covers another


def test_free_bodies_have_none():
    robot = load("prism_3")
    scene = Scene(robot, with_shapes=False, backend="numeric")
    assert texts_of(robot, scene.tree.home)[1] == []
