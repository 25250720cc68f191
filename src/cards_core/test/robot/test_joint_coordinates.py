"""Forward kinematics there and back, for every kind of joint."""

import numpy as np
import pytest

from cards_core.robot.elements import WORLD, Joint, JointAxis, Link
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_core.robot.joint_coordinates import joint_position, joint_slices, joint_velocity
from cards_core.robot.model import Robot, Tree
from random_robots import KINDS, random_robot


def motion_of_links(tree, q, qd):
    """Poses and twists of all links by the reference recursion."""
    motion = forward_kinematics(tree, q, qd)
    poses, twists = [], []
    for link in tree.robot.links:
        node, pose = tree.link_node[link.name]
        matrix = np.eye(4)
        matrix[:3, :3] = motion.rotation[node] @ pose.rotation
        matrix[:3, 3] = motion.point(node, pose.translation)
        poses.append(matrix)
        linear = motion.point_jacobian(node, pose.translation) @ qd
        twists.append([*linear, *motion.angular_velocity[node]])
    return np.array(poses), np.array(twists)


def coordinates_of_links(tree, poses, twists):
    row = {link.name: index for index, link in enumerate(tree.robot.links)} | {WORLD: -1}
    poses = [*poses, np.eye(4)]
    twists = [*twists, np.zeros(6)]
    slices = joint_slices(tree)
    q, qd = np.zeros(tree.nq), np.zeros(tree.nv)
    for joint in tree.robot.joints:
        if joint.name in slices:
            where_q, where_v = slices[joint.name]
            a, b = row[joint.parent], row[joint.child]
            q[where_q] = joint_position(joint, poses[a], poses[b])
            qd[where_v] = joint_velocity(joint, poses[a], poses[b], twists[a], twists[b])
    return q, qd


@pytest.mark.parametrize("seed", range(30))
def test_there_and_back(seed):
    tree = random_robot(seed).tree
    rng = np.random.default_rng(seed)
    for _ in range(5):
        q = tree.random(rng, span=3.0)
        qd = rng.normal(size=tree.nv)
        poses, twists = motion_of_links(tree, q, qd)
        found, velocity = coordinates_of_links(tree, poses, twists)
        # a quaternion and its negative are the same rotation: compare in the tangent space
        assert np.abs(tree.difference(found, q)).max() < 1e-9
        assert np.abs(velocity - qd).max() < 1e-9


def test_every_kind_is_among_them():
    found = {joint.kind for seed in range(30) for joint in random_robot(seed).joints}
    assert found == set(KINDS)


def universal(q):
    axes = (JointAxis(np.array([0.0, 0.0, 1.0])), JointAxis(np.array([0.0, 0.6, 0.8])))
    joint = Joint("joint", "universal", "world", "link", axes=axes)
    tree = Tree(Robot("robot", (Link("link"),), (joint,)))
    qd = np.array([0.3, -0.7])
    poses, twists = motion_of_links(tree, np.array(q), qd)
    return *coordinates_of_links(tree, poses, twists), qd


@pytest.mark.parametrize("q", [[0.4, -1.1], [3.1, 3.0], [-2.0, 1.0]])
def test_universal_joint_with_axes_that_are_not_at_right_angles(q):
    position, velocity, qd = universal(q)
    assert position == pytest.approx(q, abs=1e-12)
    assert velocity == pytest.approx(qd, abs=1e-12)


def test_half_a_turn_has_an_angle():
    joint = Joint("joint", "revolute", "world", "link", axes=(JointAxis(np.array([0, 0, 1.0])),))
    robot = Robot("robot", (Link("link"),), (joint,))
    pose = np.diag([-1.0, -1.0, 1.0, 1.0])[None]
    q, _ = coordinates_of_links(robot.tree, pose, np.zeros((1, 6)))
    assert abs(q[0]) == pytest.approx(np.pi)
