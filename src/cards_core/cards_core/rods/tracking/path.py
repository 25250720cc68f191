"""The straight way between two commands: joints linear, positions linear, rotations geodesic.

    q(f) = q0 + f (q1 - q0)      p(f) = p0 + f (p1 - p0)      R(f) = exp(f log(R1 R0')) R0

cut into steps that are small for every part of the robot (5 mm, 2 degrees).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cards_core.rods.robots.robot import PLATE_COORDINATES, BaseKind, RodRobot
from cards_core.spatial import quaternion_matrix, rotation_exp, rotation_log
from cards_core.typing import Array

STEP_LENGTH = 5e-3
"""Greatest step of a command, [m]."""

STEP_ANGLE = math.radians(2.0)
"""Greatest step of a command, [rad]."""


@dataclass(frozen=True, eq=False)
class Target:
    """What the robot is to do: joints or a pose, and the wrench on the plate.

    Attributes:
        q: Joint coordinates, shape (n,); None for a pose command.
        pose: Plate pose, shape (4, 4); None for a joint command.
        wrench: On the plate about its origin, shape (6,), in ``frame``.
        frame: ``world`` or ``plate``.
    """

    q: Array | None
    pose: Array | None
    wrench: Array
    frame: str = "world"

    @property
    def by_joints(self) -> bool:
        """Whether joints are given and the pose follows."""
        return self.q is not None


def pose_difference(start: Array, end: Array) -> Array:
    """Return the step from one pose to another, shape (6,): [dp, dphi] in world axes."""
    turn = rotation_log(end[:3, :3] @ start[:3, :3].T)
    return np.concatenate([end[:3, 3] - start[:3, 3], turn])


def moved(pose: Array, step: Array) -> Array:
    """Return a pose after a step [dp, dphi] in world axes: ``p + dp, exp(dphi) R``."""
    result = pose.copy()
    result[:3, 3] += step[:3]
    result[:3, :3] = quaternion_matrix(rotation_exp(step[3:])) @ pose[:3, :3]
    return result


@lru_cache(maxsize=16)
def controlled_mask(robot: RodRobot) -> Array:
    """Return 1 for plate coordinates that a pose command prescribes, shape (6,), read-only."""
    mask = np.array([float(name in robot.controlled) for name in PLATE_COORDINATES])
    mask.flags.writeable = False
    return mask


def between(start: Target, end: Target, fraction: float) -> Target:
    """Return the point of the way at a fraction 0..1; both ends must be of one kind."""
    if fraction >= 1.0:
        return end
    wrench = start.wrench + fraction * (end.wrench - start.wrench)
    if end.q is not None:
        assert start.q is not None
        return Target(start.q + fraction * (end.q - start.q), None, wrench, end.frame)
    assert start.pose is not None
    assert end.pose is not None
    step = fraction * pose_difference(start.pose, end.pose)
    return Target(None, moved(start.pose, step), wrench, end.frame)


@dataclass(frozen=True)
class Way:
    """How far it is from one target to another (the wrench not counted).

    Attributes:
        translation: Of the plate, [m]; 0 for joint commands.
        rotation: Of the plate, angle [rad]; 0 for joint commands.
        joints: Largest difference of a joint, [m] or [rad]; 0 for pose commands.
        steps: How many steps of the greatest size that is.
    """

    translation: float
    rotation: float
    joints: float
    steps: float


def way_between(robot: RodRobot, start: Target, end: Target) -> Way:
    """Measure a way; both ends must be of one kind."""
    if end.q is not None:
        assert start.q is not None
        change = np.abs(end.q - start.q)
        steps = float((change / step_sizes(robot)).max(initial=0.0))
        return Way(0.0, 0.0, float(change.max(initial=0.0)), steps)
    assert start.pose is not None
    assert end.pose is not None
    step = pose_difference(start.pose, end.pose) * controlled_mask(robot)
    x, y, z, a, b, c = step.tolist()
    way, turn = math.hypot(x, y, z), math.hypot(a, b, c)
    return Way(way, turn, 0.0, max(way / STEP_LENGTH, turn / STEP_ANGLE))


@lru_cache(maxsize=16)
def step_sizes(robot: RodRobot) -> Array:
    """Return the greatest step of each coordinate of q, shape (n,), [m] or [rad], read-only."""
    turns = [limb.base.kind is BaseKind.REVOLUTE for limb in robot.limbs]
    sizes = np.where(turns, STEP_ANGLE, STEP_LENGTH)
    sizes.flags.writeable = False
    return sizes
