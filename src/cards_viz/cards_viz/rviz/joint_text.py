"""Joint coordinates as text beside the joints, for RViz.

Angles are in degrees, displacements in millimetres. Ball joints show the angle of their rotation;
free joints have no text: where they are is what the picture shows.
"""

from __future__ import annotations

import math

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from cards_core.robot.elements import Joint
from cards_core.robot.joint_coordinates import joint_slices
from cards_core.robot.model import Tree
from cards_core.typing import Array

NAMESPACE = "joint_angles"

_HEIGHT = 0.03
"""Height of the letters, as a part of the robot's size."""

_LINE = 1.3
"""Distance of two lines of text, in heights."""

_COLOR = (0.16, 0.18, 0.22)

_TURNS = {
    "revolute": (True,),
    "prismatic": (False,),
    "universal": (True, True),
    "planar": (False, False, True),
}
"""Which coordinates of a joint are angles."""


def joint_text(joint: Joint, q: Array) -> str:
    """Return the text of a joint.

    Args:
        joint: Of any kind but fixed and free.
        q: Its coordinates, [rad] or [m].
    """
    if joint.kind == "ball":
        turn = 2.0 * math.atan2(float(np.linalg.norm(q[1:])), abs(float(q[0])))
        return f"{joint.name} {math.degrees(turn):.1f}°"
    values = [
        f"{math.degrees(value):.1f}°" if turns else f"{1e3 * value:.1f} mm"
        for value, turns in zip(q.tolist(), _TURNS[joint.kind], strict=True)
    ]
    return f"{joint.name} {', '.join(values)}"


class JointTexts:
    """The texts of a robot; of joints at one place they stand above each other.

    Args:
        tree: The robot.
        size: Size of the robot, [m].
        home_poses: Link to world at home, shape (n, 4, 4).
        frame: Frame of the markers.
    """

    def __init__(self, tree: Tree, size: float, home_poses: Array, frame: str) -> None:
        robot = tree.robot
        slices = joint_slices(tree)
        index = {link.name: i for i, link in enumerate(robot.links)}
        self._joints = [
            (joint, slices[joint.name][0], index.get(joint.parent))
            for joint in robot.joints
            if joint.kind in _TURNS or joint.kind == "ball"
        ]
        red, green, blue = _COLOR
        self._markers = []
        self._above: list[float] = []
        places: list[Array] = []
        for number, (joint, _, parent) in enumerate(self._joints):
            marker = Marker(ns=NAMESPACE, id=number, action=Marker.ADD)
            marker.type = Marker.TEXT_VIEW_FACING
            marker.header.frame_id = frame
            marker.pose.orientation.w = 1.0
            marker.scale.z = _HEIGHT * size
            marker.color = ColorRGBA(r=red, g=green, b=blue, a=1.0)
            self._markers.append(marker)
            place = _place(joint, parent, home_poses)
            below = sum(float(np.linalg.norm(place - one)) < _HEIGHT * size for one in places)
            places.append(place)
            self._above.append(_LINE * _HEIGHT * size * (1 + below))

    def at(self, q: Array, link_poses: Array, stamp: Time) -> list[Marker]:
        """Return the markers at one instant; changed by the next call.

        Args:
            q: Joint coordinates, shape (nq,).
            link_poses: Link to world, shape (n, 4, 4).
            stamp: Time of the state.
        """
        for marker, above, (joint, part, parent) in zip(
            self._markers, self._above, self._joints, strict=True
        ):
            x, y, z = _place(joint, parent, link_poses).tolist()
            marker.header.stamp = stamp
            marker.pose.position = Point(x=x, y=y, z=z + above)
            marker.text = joint_text(joint, q[part])
        return self._markers


def _place(joint: Joint, parent: int | None, link_poses: Array) -> Array:
    """Return the origin of a joint in the world, shape (3,), [m]; parent None: the world."""
    origin = joint.parent_to_joint.translation
    if parent is None:
        return np.array(origin)
    pose = link_poses[parent]
    return np.asarray(pose[:3, :3] @ origin + pose[:3, 3])
