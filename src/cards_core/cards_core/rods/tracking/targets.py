"""Targets of a rod robot, the straight line between two of them, and the steps along it.

Joints and positions are interpolated linearly, rotations along a geodesic,

    q(f) = q0 + f (q1 - q0)      p(f) = p0 + f (p1 - p0)      R(f) = exp(f log(R1 R0')) R0

in steps that are small for every part of the robot (5 mm, 2 degrees). A refused step is halved.
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
"""Maximum step of a command, [m]."""

STEP_ANGLE = math.radians(2.0)
"""Maximum step of a command, [rad]."""


@dataclass(frozen=True, eq=False)
class Target:
    """Commanded joints or pose, and the wrench on the plate.

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


def interpolate(start: Target, end: Target, fraction: float) -> Target:
    """Return the target at a fraction 0..1 of the line; both ends must be of one kind.

    Args:
        start: Target at fraction 0.
        end: Target at fraction 1.
        fraction: 0..1 [1].
    """
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
class TargetDistance:
    """Distance from one target to another (without the wrench).

    Attributes:
        translation: Of the plate, [m]; 0 for joint commands.
        rotation: Of the plate, angle [rad]; 0 for joint commands.
        joints: Largest difference of a joint, [m] or [rad]; 0 for pose commands.
        steps: The same in steps of the maximum size.
    """

    translation: float
    rotation: float
    joints: float
    steps: float


def target_distance(robot: RodRobot, start: Target, end: Target) -> TargetDistance:
    """Measure a distance; both ends must be of one kind.

    Args:
        robot: The robot.
        start: First target.
        end: Second target.
    """
    if end.q is not None:
        assert start.q is not None
        change = np.abs(end.q - start.q)
        steps = float((change / step_sizes(robot)).max(initial=0.0))
        return TargetDistance(0.0, 0.0, float(change.max(initial=0.0)), steps)
    assert start.pose is not None
    assert end.pose is not None
    step = pose_difference(start.pose, end.pose) * controlled_mask(robot)
    x, y, z, a, b, c = step.tolist()
    way, turn = math.hypot(x, y, z), math.hypot(a, b, c)
    return TargetDistance(way, turn, 0.0, max(way / STEP_LENGTH, turn / STEP_ANGLE))


@lru_cache(maxsize=16)
def step_sizes(robot: RodRobot) -> Array:
    """Return the maximum step of each coordinate of q, shape (n,), [m] or [rad], read-only."""
    turns = [limb.base.kind is BaseKind.REVOLUTE for limb in robot.limbs]
    sizes = np.where(turns, STEP_ANGLE, STEP_LENGTH)
    sizes.flags.writeable = False
    return sizes


@dataclass(frozen=True)
class Remaining:
    """How far the state is from its target.

    Attributes:
        translation: Of the plate, [m]; 0 for joint commands.
        rotation: Of the plate, angle [rad]; 0 for joint commands.
        joints: Largest difference of a joint, [m] or [rad]; 0 for pose commands.
        fraction: Part of the present command that is left, 0 (arrived) .. 1.
    """

    translation: float = 0.0
    rotation: float = 0.0
    joints: float = 0.0
    fraction: float = 0.0

    @property
    def arrived(self) -> bool:
        """Whether nothing remains."""
        return self.fraction <= 0.0


MOST_LOAD_STEPS = 200.0
"""Maximum number of steps for a change of load: near singular poses the estimate is huge."""


def load_steps(stiffness: Array, load: Array) -> float:
    """Return the number of steps for a change of the wrench on the plate.

    It follows from the displacement of the plate at its present stiffness.

    Args:
        stiffness: Of the plate, shape (6, 6).
        load: Change of the wrench, shape (6,).
    """
    give = np.linalg.lstsq(stiffness, load, rcond=None)[0]
    way = np.linalg.norm(give[:3]) / STEP_LENGTH + np.linalg.norm(give[3:]) / STEP_ANGLE
    return max(min(float(way), MOST_LOAD_STEPS), 1.0)


class StepLengthControl:
    """Progress of a command, and the length of its next step.

    Args:
        origin, target: Ends of the line, of one kind.
        distance: Between them.
        steps: Number of steps; 0 if the target is reached already.
        halvings: How often a step may be halved.
        cautious: Begin with the shortest step.

    Attributes:
        origin, target: As given.
        fraction: Part of the line that has been covered, 0..1.
        full: Longest step, as a part of the line.
    """

    def __init__(
        self,
        origin: Target,
        target: Target,
        distance: TargetDistance,
        steps: float,
        halvings: int,
        *,
        cautious: bool = False,
    ) -> None:
        self.origin, self.target = origin, target
        self._distance = distance
        self.fraction = 0.0 if steps > 0.0 else 1.0
        self.full = 1.0 / max(math.ceil(steps), 1)
        least = 0.5**halvings
        self._least = min(self.full, least / max(steps, least))
        self._step = self._least if cautious else self.full

    @property
    def arrived(self) -> bool:
        """Whether the end has been reached."""
        return self.fraction >= 1.0

    @property
    def remaining(self) -> Remaining:
        """The distance that is left."""
        if self.arrived:
            return Remaining()
        left, whole = 1.0 - self.fraction, self._distance
        return Remaining(
            left * whole.translation, left * whole.rotation, left * whole.joints, left
        )

    def next(self) -> tuple[float, Target]:
        """Return the fraction and the target of the next step."""
        fraction = min(1.0, self.fraction + self._step)
        if 1.0 - fraction < 1e-9:
            fraction = 1.0
        return fraction, interpolate(self.origin, self.target, fraction)

    def accept(self, fraction: float) -> None:
        """Record an accepted step; the next one may be longer."""
        self.fraction = fraction
        self._step = min(self.full, 2.0 * self._step)

    def halve(self) -> bool:
        """Shorten the next step; returns False if there is no shorter one."""
        if self._step <= self._least:
            return False
        self._step = max(self._least, 0.5 * self._step)
        return True
