"""The bodies between rods and plate: hinges, sliders and balls that turn with the rods' ends.

They weigh little and nothing depends on where they stand; they are moved to be seen.
"""

from __future__ import annotations

import math

import numpy as np

from cards_core.rods.robots.robot import RodRobot, TipKind
from cards_core.typing import Array, Vector3
from cards_muscle_plugin.ports import JointPort
from cards_rod_plugin.ports import RodModelPort

KINDS = (TipKind.REVOLUTE, TipKind.PRISMATIC, TipKind.SPHERICAL)
"""Joints that are moved; bodies at others stay as the physics has them."""

_ALONG = 1e-3  # of a unit vector: a tangent so near the axis shows no angle


class TipJoints:
    """Moves the plate's joints to where the rods' ends are.

    Args:
        robot: The robot.
    """

    def __init__(self, robot: RodRobot) -> None:
        self._limbs = robot.limbs
        self._ports: list[tuple[int, JointPort]] = []

    def start(self, model: RodModelPort) -> None:
        """Look up the joints; those that the simulator does not have are left out."""
        self._ports = []
        for i, limb in enumerate(self._limbs):
            if limb.tip.joint and limb.tip.kind in KINDS:
                port = model.joint(limb.tip.joint)
                if port is not None:
                    self._ports.append((i, port))

    def put(self, pose: Array, lines: Array) -> None:
        """Move them.

        Args:
            pose: Of the plate, shape (4, 4).
            lines: Centre lines, shape (n, points, 3), in the same axes, [m].
        """
        for i, port in self._ports:
            tip, line = self._limbs[i].tip, lines[i]
            joint = pose @ tip.joint_pose
            turn = joint[:3, :3]
            tangent = 3.0 * line[-1] - 4.0 * line[-2] + line[-3]
            tangent = turn.T @ (tangent / max(float(np.linalg.norm(tangent)), 1e-12))
            place = turn.T @ (line[-1] - joint[:3, 3])
            port.put(coordinates(tip.kind, tip.attach, place, tangent))


def coordinates(kind: TipKind, attach: Array, place: Vector3, tangent: Vector3) -> list[float]:
    """Return the coordinates of a joint of `KINDS`, of a ball joint as a rotation vector.

    What turns about the tangent itself cannot be seen in a centre line and is left out.

    Args:
        kind: Of the joint.
        attach: Rod tip in the joint frame at zero, shape (4, 4).
        place: Of the rod's end in the joint frame, shape (3,), [m].
        tangent: Unit vector of the rod at its end in the joint frame, shape (3,).
    """
    rest = attach[:3, 2]
    if kind is TipKind.PRISMATIC:
        return [float(place[2] - attach[2, 3])]
    if kind is TipKind.REVOLUTE:
        cross = float(rest[0] * tangent[1] - rest[1] * tangent[0])
        dot = float(rest[:2] @ tangent[:2])
        return [math.atan2(cross, dot) if math.hypot(cross, dot) > _ALONG else 0.0]
    axis = np.cross(rest, tangent)
    sine, cosine = float(np.linalg.norm(axis)), float(rest @ tangent)
    if sine < 1e-9:
        return [0.0, 0.0, 0.0]
    return list((math.atan2(sine, cosine) / sine * axis).tolist())
