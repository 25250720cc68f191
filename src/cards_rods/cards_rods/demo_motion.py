"""The demo motion: a loop of plate poses, joint commands and pushes that suits any robot of rods.

Four parts of equal length, each of which begins and ends at the start state. With the envelope
e(s) = sin^2(pi s), s in 0..1 being the part's own time, and c and s of 2 turns of 2 pi s:

======== ===================================================================================
circle   plate pose: start + r e (cos, sin, 0.5 sin), r a part of the rods' length
tilt     plate pose: rotation vector e (a cos, a sin, b sin), small angles
joints   joints: start + a e sin(2 pi s 2 + phase of the limb)
push     wrench: force e (cos, sin, -0.5) F while the joints stay; F moves the plate by at most
         a few hundredths of the rods' length, and buckles no rod
======== ===================================================================================

All four are smaller where a robot cannot follow them so far (`DemoMotion.fit`).

The inverse model of a robot with less than six limbs prescribes `RodRobot.controlled` alone, so
what the motion demands of the other coordinates does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cards_core.rods.robots.robot import PLATE_COORDINATES, BaseKind, RodRobot
from cards_core.rods.tracking.tracker import Tracker
from cards_core.spatial import quaternion_matrix, rotation_exp
from cards_core.typing import Array

PARTS = ("circle", "tilt", "joints", "push")
"""Parts of the motion, in turn."""

TURNS = 2.0

RADIUS = 0.05
"""Radius of the circle as a part of the mean length of the rods."""

TILT = 0.08
"""Angle of the tilt, [rad]; about the vertical as much again."""

TRAVEL = 0.01
"""Amplitude of joints that change lengths, as a part of the mean length of the rods."""

ANGLE = 0.05
"""Amplitude of joints that turn, [rad]."""

DEFLECTION = 0.02
"""How far the push would move the plate were it as soft all the way as at the start."""

SCALES = (1.0, 0.7, 0.5, 0.35, 0.25)
"""Sizes that are tried, as parts of what is above."""

SAMPLES = 30
"""Points of each part at which it is tried."""

PATIENCE = 20
"""Steps of the tracker in which a point must be reached."""

LOAD = 0.6
"""Maximum push as a part of the sum of EI/L^2 of all rods, a small part of what buckles them."""


@dataclass(frozen=True)
class MotionTarget:
    """Command of a motion at one instant.

    Attributes:
        kind: Which of the two the robot is told.
        pose: Plate pose, shape (4, 4); that of the start where joints are told.
        q: Joint coordinates, shape (n,); those of the start where a pose is told.
        wrench: External wrench about the plate's origin in world axes, shape (6,).
        part: Name of the part, one of `PARTS`.
    """

    kind: Literal["joints", "pose"]
    pose: Array
    q: Array
    wrench: Array
    part: str


class DemoMotion:
    """See the module.

    Args:
        robot: The robot.
        pose: Plate pose to start from, shape (4, 4).
        q: Joint coordinates to start from, shape (n,).
        stiffness: Of the plate at the start, shape (6, 6), [N/m, N, Nm].
        wrench: External wrench that always acts, shape (6,).
        duration: Of one round, [s].

    Attributes:
        duration: As given.
        scale: Size of the motion, as a part of what the module says.
    """

    def __init__(
        self,
        robot: RodRobot,
        pose: Array,
        q: Array,
        stiffness: Array,
        *,
        wrench: Array | None = None,
        duration: float = 20.0,
    ) -> None:
        self.duration = duration
        self.scale = SCALES[0]
        self._robot = robot
        self._pose, self._q = np.array(pose), np.array(q)
        self._wrench = np.zeros(6) if wrench is None else np.array(wrench)
        self._size = float(np.mean(robot.lengths))
        turning = [limb.base.kind is BaseKind.REVOLUTE for limb in robot.limbs]
        travel = np.where(turning, ANGLE, TRAVEL * self._size)
        room = np.minimum(self._q - robot.q_lower, robot.q_upper - self._q)
        self._travel = np.where(robot.actuated, np.clip(room, 0.0, travel), 0.0)
        self._phase = 2.0 * math.pi * np.arange(robot.n_limbs) / robot.n_limbs
        bending = sum(limb.rod.bending_stiffness / limb.length**2 for limb in robot.limbs)
        self._force = min(DEFLECTION * self._size * _softest(robot, stiffness), LOAD * bending)

    def fit(self, tracker: Tracker, start: Mapping[str, Any]) -> None:
        """Choose the largest of `SCALES` that the robot can follow, at least the smallest.

        Args:
            tracker: Of the robot; it is led through the motion.
            start: The state in which the motion begins, as of `Tracker.save`.
        """
        for self.scale in SCALES:
            if self._followed(tracker, start):
                return

    def _followed(self, tracker: Tracker, start: Mapping[str, Any]) -> bool:
        result = tracker.load(dict(start))
        count = len(PARTS) * SAMPLES
        for time in np.linspace(0.0, self.duration, count, endpoint=False):
            target = self.at(float(time))
            tracker.set_wrench(target.wrench)
            if target.kind == "pose":
                tracker.command_pose(target.pose)
            else:
                tracker.command_joints(target.q)
            for _ in range(PATIENCE):
                result = tracker.step()
                if result.held or result.arrived:
                    break
            if not result.arrived:
                return False
        return True

    def at(self, time: float) -> MotionTarget:
        """Return the command at a time [s]; the motion repeats after `duration`."""
        whole = (time / self.duration) % 1.0 * len(PARTS)
        part, s = PARTS[int(whole)], whole % 1.0
        e = self.scale * math.sin(math.pi * s) ** 2
        angle = 2.0 * math.pi * TURNS * s
        c, d = math.cos(angle), math.sin(angle)
        pose, q, wrench = self._pose.copy(), self._q.copy(), self._wrench.copy()
        flat = self._robot.planar
        if part == "circle":
            way = [c, d, 0.0 if flat else 0.5 * d]
            pose[:3, 3] += RADIUS * self._size * e * np.array(way)
        elif part == "tilt":
            vector = TILT * e * np.array([0.0, 0.0, d] if flat else [c, d, d])
            pose[:3, :3] = quaternion_matrix(rotation_exp(vector)) @ pose[:3, :3]
        elif part == "joints":
            q += e * self._travel * np.sin(angle + self._phase)
        else:
            wrench[:3] += e * self._force * np.array([c, d, 0.0 if flat else -0.5])
        kind: Literal["joints", "pose"] = "pose" if part in ("circle", "tilt") else "joints"
        return MotionTarget(kind, pose, q, wrench, part)


def _softest(robot: RodRobot, stiffness: Array) -> float:
    """Return the minimum force per displacement of the plate in any direction, [N/m], >= 0.

    The plate may turn while it is pushed, so this is less than what the stiffness has in its
    translations: one over the largest eigenvalue of their part of the compliance.
    """
    slots = [PLATE_COORDINATES.index(name) for name in robot.coordinates]
    symmetric = (0.5 * (stiffness + stiffness.T))[np.ix_(slots, slots)]
    if np.linalg.eigvalsh(symmetric)[0] <= 0.0:
        return 0.0
    moves = len([name for name in robot.coordinates if name in "xyz"])
    compliance = np.linalg.inv(symmetric)[:moves, :moves]
    return 1.0 / float(np.linalg.eigvalsh(compliance)[-1])
