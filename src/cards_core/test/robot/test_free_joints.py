"""Free bodies taken at once: against one joint at a time, the kinematics, half turns, refusals."""

import numpy as np
import pytest

from cards_core.errors import CardsError
from cards_core.robot.elements import WORLD, Joint, Link
from cards_core.robot.forward_kinematics import forward_kinematics, node_poses
from cards_core.robot.free_joints import FreeJoints
from cards_core.robot.joint_coordinates import joint_position, joint_velocity
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, quaternion_matrix


def random_pose(rng):
    return Pose(quaternion_matrix(rng.normal(size=4)), rng.normal(size=3))


def random_joints(rng, count):
    return [
        Joint(f"j{i}", "free", WORLD, f"b{i}", random_pose(rng), random_pose(rng))
        for i in range(count)
    ]


def matrix(rotation, translation):
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = rotation, translation
    return out


def test_all_at_once_are_what_each_one_is_alone():
    rng = np.random.default_rng(3)
    joints = random_joints(rng, 40)
    poses = np.array(
        [matrix(quaternion_matrix(rng.normal(size=4)), rng.normal(size=3)) for _ in joints]
    )
    twists = rng.normal(size=(40, 6))
    q, qd = FreeJoints(joints).coordinates(poses, twists)
    world, still = np.eye(4), np.zeros(6)
    for row, joint in enumerate(joints):
        assert q[row] == pytest.approx(joint_position(joint, world, poses[row]), abs=1e-12)
        alone = joint_velocity(joint, world, poses[row], still, twists[row])
        assert qd[row] == pytest.approx(alone, abs=1e-12)


def test_forward_kinematics_and_back():
    rng = np.random.default_rng(5)
    joints = random_joints(rng, 6)
    robot = Robot("bodies", tuple(Link(j.child) for j in joints), tuple(joints))
    tree = robot.tree
    q, qd = tree.random(rng, span=1.0), rng.normal(size=tree.nv)
    motion = forward_kinematics(tree, q, qd)
    rotation, position = node_poses(tree, q)
    np.testing.assert_array_equal(rotation, motion.rotation)
    np.testing.assert_array_equal(position, motion.position)
    poses, twists = [], []
    for link in robot.links:
        node, pose = tree.link_node[link.name]
        place = motion.point(node, pose.translation)
        poses.append(matrix(motion.rotation[node] @ pose.rotation, place))
        speed = motion.point_jacobian(node, pose.translation) @ qd
        twists.append([*speed, *motion.angular_velocity[node]])
    found, rates = FreeJoints(joints).coordinates(np.array(poses), np.array(twists))
    expected = q.reshape(6, 7)
    expected[:, 3:] *= np.sign(expected[:, 3:4])
    assert found == pytest.approx(expected, abs=1e-12)
    assert rates == pytest.approx(qd.reshape(6, 6), abs=1e-12)


def test_half_turns_lose_nothing():
    """The trace does not give the quaternion where w = 0."""
    turns = [(0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (0, 0.6, 0, -0.8), (1e-9, 0, 0.6, 0.8)]
    joints = [Joint(f"j{i}", "free", WORLD, f"b{i}") for i in range(len(turns))]
    poses = np.array([matrix(quaternion_matrix(turn), np.zeros(3)) for turn in turns])
    q, _ = FreeJoints(joints).coordinates(poses, np.zeros((len(turns), 6)))
    for found, turn in zip(q[:, 3:], turns, strict=True):
        assert np.linalg.norm(found) == pytest.approx(1.0, abs=1e-15)
        assert abs(found @ np.array(turn)) == pytest.approx(1.0, abs=1e-15)
        assert quaternion_matrix(found) == pytest.approx(quaternion_matrix(turn), abs=1e-14)


def test_none_at_all():
    q, qd = FreeJoints([]).coordinates(np.empty((0, 4, 4)), np.empty((0, 6)))
    assert q.shape == (0, 7)
    assert qd.shape == (0, 6)


@pytest.mark.parametrize(("kind", "parent"), [("ball", WORLD), ("free", "hand")])
def test_other_joints_are_refused(kind, parent):
    with pytest.raises(CardsError, match=f"'grip' is {kind} on '{parent}'"):
        FreeJoints([Joint("grip", kind, parent, "box")])
