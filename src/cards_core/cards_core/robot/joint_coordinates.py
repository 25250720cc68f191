"""Joint coordinates and velocities from the motion of the links: inverse of forward kinematics.

For hosts that know where links are rather than how joints stand (Gazebo's ball joints and free
bodies, motion capture). Per joint, with the joint frame as in `cards_core.robot.Joint`,

    motion(q) = (T_world_parent parent_to_joint)^-1  T_world_child joint_to_child^-1

is solved for q, and the relative velocity of the two frames for the joint's velocity. Angles are
within (-pi, pi]: turns are not counted.

Source: [Siciliano2009]_ chapters 2 and 3.
"""

from __future__ import annotations

import math

import numpy as np

from cards_core.errors import UnknownNameError
from cards_core.robot.elements import AXES_PER_KIND, Joint
from cards_core.robot.model import Tree
from cards_core.spatial import Pose, axis_rotation, matrix_quaternion
from cards_core.typing import Array, Matrix3, Vector3

# kind: suffix of the first name in q and in qd, number of coordinates and of velocities
_LAYOUT = {
    "revolute": ("", "", 1, 1),
    "prismatic": ("", "", 1, 1),
    "universal": ("_1", "_1", 2, 2),
    "planar": ("_1", "_1", 3, 3),
    "ball": (".w", ".x", 4, 3),
    "free": ("_x", "_x", 7, 6),
}


def joint_position(joint: Joint, parent_pose: Array, child_pose: Array) -> Array:
    """Return the coordinates of one joint, laid out as in the table of `Joint`.

    Args:
        joint: The joint.
        parent_pose: Link-to-world matrix of its parent, shape (4, 4).
        child_pose: The same of its child.

    Raises:
        UnknownNameError: A joint of an unknown kind.
    """
    rotation, position = _relative(joint, parent_pose, child_pose)
    axes = [axis.axis / np.linalg.norm(axis.axis) for axis in joint.axes]
    match joint.kind:
        case "revolute":
            return np.array([_angle(rotation, axes[0])])
        case "prismatic":
            return np.array([axes[0] @ position])
        case "universal":
            return np.array(_universal_angles(rotation, axes))
        case "planar":
            plane = np.column_stack(axes[:2])
            slide = np.linalg.lstsq(plane, position, rcond=None)[0]
            return np.array([*slide, _angle(rotation, axes[2])])
        case "ball":
            return matrix_quaternion(rotation)
        case "free":
            return np.concatenate([position, matrix_quaternion(rotation)])
        case "fixed":
            return np.empty(0)
        case _:
            raise UnknownNameError("joint kind", joint.kind, AXES_PER_KIND)


def joint_velocity(
    joint: Joint, parent_pose: Array, child_pose: Array, parent_twist: Array, child_twist: Array
) -> Array:
    """Return the velocities of one joint, laid out as in the table of `Joint`.

    Args:
        joint: The joint.
        parent_pose: Link-to-world matrix of its parent, shape (4, 4).
        child_pose: The same of its child.
        parent_twist: World velocity of the origin of its parent, then angular velocity in world
            axes, shape (6,), [m/s] and [rad/s].
        child_twist: The same of its child.

    Raises:
        UnknownNameError: A joint of an unknown kind.
    """
    rotation, _ = _relative(joint, parent_pose, child_pose)
    base = parent_pose[:3, :3] @ joint.parent_to_joint.rotation
    origin = child_pose[:3, 3] + child_pose[:3, :3] @ joint.joint_to_child.inverse().translation
    # of the moving joint frame, seen from the parent, in axes of the joint frame at q = 0
    spin = base.T @ (child_twist[3:] - parent_twist[3:])
    velocity = child_twist[:3] + np.cross(child_twist[3:], origin - child_pose[:3, 3])
    velocity = velocity - parent_twist[:3]
    velocity -= np.cross(parent_twist[3:], origin - parent_pose[:3, 3])
    slide = base.T @ velocity
    axes = [axis.axis / np.linalg.norm(axis.axis) for axis in joint.axes]
    match joint.kind:
        case "revolute":
            return np.array([axes[0] @ spin])
        case "prismatic":
            return np.array([axes[0] @ slide])
        case "universal":
            first = _universal_angles(rotation, axes)[0]
            moved = axis_rotation(axes[0], first) @ axes[1]
            jacobian = np.column_stack([axes[0], moved])
            return np.asarray(np.linalg.lstsq(jacobian, spin, rcond=None)[0])
        case "planar":
            plane = np.column_stack(axes[:2])
            linear = np.linalg.lstsq(plane, slide, rcond=None)[0]
            return np.array([*linear, axes[2] @ spin])
        case "ball":
            return np.asarray(rotation.T @ spin)
        case "free":
            return np.concatenate([slide, rotation.T @ spin])
        case "fixed":
            return np.empty(0)
        case _:
            raise UnknownNameError("joint kind", joint.kind, AXES_PER_KIND)


def joint_slices(tree: Tree) -> dict[str, tuple[slice, slice]]:
    """Return where the coordinates of each joint are in q, and its velocities in qd, by name.

    Fixed joints have none and are not listed.
    """
    positions = {name: index for index, name in enumerate(tree.position_names)}
    velocities = {name: index for index, name in enumerate(tree.velocity_names)}
    out = {}
    for joint in tree.robot.joints:
        if joint.kind == "fixed":
            continue
        first_q, first_v, nq, nv = _LAYOUT[joint.kind]
        q, v = positions[joint.name + first_q], velocities[joint.name + first_v]
        out[joint.name] = (slice(q, q + nq), slice(v, v + nv))
    return out


def _relative(joint: Joint, parent_pose: Array, child_pose: Array) -> tuple[Matrix3, Vector3]:
    """Rotation and translation of ``motion(q)``."""
    base = _pose(parent_pose) @ joint.parent_to_joint
    frame = _pose(child_pose) @ joint.joint_to_child.inverse()
    motion = base.inverse() @ frame
    return motion.rotation, motion.translation


def _pose(matrix: Array) -> Pose:
    return Pose(matrix[:3, :3], matrix[:3, 3])


def _angle(rotation: Matrix3, axis: Vector3) -> float:
    """Angle of a rotation about a unit axis.

    ``R - R^T = 2 sin(angle) hat(axis)``, ``trace(R) = 1 + 2 cos(angle)``.
    """
    skew = 0.5 * np.array(
        [
            rotation[2, 1] - rotation[1, 2],
            rotation[0, 2] - rotation[2, 0],
            rotation[1, 0] - rotation[0, 1],
        ]
    )
    return math.atan2(float(axis @ skew), 0.5 * (float(np.trace(rotation)) - 1.0))


def _universal_angles(rotation: Matrix3, axes: list[Vector3]) -> tuple[float, float]:
    """Angles of ``R = R(axis_1, first) R(axis_2, second)``.

    The second factor leaves axis_2 as it is, so the first is what brings axis_2 to R axis_2.
    """
    first_axis, second_axis = axes
    moved = rotation @ second_axis
    sine = first_axis @ np.cross(second_axis, moved)
    # parts across the first axis
    cosine = second_axis @ moved - (first_axis @ second_axis) * (first_axis @ moved)
    first = math.atan2(float(sine), float(cosine))
    # and seen from the other side the second brings axis_1 back
    back = rotation.T @ first_axis
    sine = second_axis @ np.cross(back, first_axis)
    cosine = first_axis @ back - (first_axis @ second_axis) * (second_axis @ back)
    return first, math.atan2(float(sine), float(cosine))
