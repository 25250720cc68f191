"""What a rod robot cannot reach, told from geometry alone.

A rod of length L holds points within L of its start; the start of limb i lies on a point, a line
or a circle, as its joint has it. A pose is out of reach for certain if, for some limb,

    min over q in limits of |joint of the plate - start(q)|  >  L (1 + eps) + offsets

The reverse is not true: within that distance a pose may still have no equilibrium. Only the solver
can tell then.
"""

from __future__ import annotations

import numpy as np

from cards_core.rods.answer import Finding
from cards_core.rods.commands import quantity
from cards_core.rods.robot import BaseKind, Limb, RodRobot, base_motion
from cards_core.rods.status import RodStatus
from cards_core.typing import Array

STRETCH = 1e-3
"""Relative stretch that a rod is granted."""


def reach_findings(robot: RodRobot, pose: Array, base: Array | None = None) -> tuple[Finding, ...]:
    """Return UNREACHABLE for each limb that cannot span its way, the worst first.

    Args:
        robot: The robot.
        pose: Plate pose in the world, shape (4, 4), all of it commanded.
        base: Pose of the robot in the world, shape (4, 4); default the identity.
    """
    if base is not None:
        pose = np.asarray(np.linalg.solve(base, pose))
    findings = []
    for index, limb in enumerate(robot.limbs):
        way, length = shortest_way(limb, pose)
        missing = way - length * (1.0 + STRETCH)
        if missing > 0.0:
            findings.append(
                Finding(
                    RodStatus.UNREACHABLE,
                    f"limb '{limb.name}' is {1e3 * missing:.1f} mm too short for this pose: the"
                    f" way is {1e3 * way:.1f} mm, the rod at most {1e3 * length:.1f} mm",
                    index,
                    missing,
                )
            )
    return tuple(sorted(findings, key=lambda finding: -finding.missing))


def shortest_way(limb: Limb, pose: Array) -> tuple[float, float]:
    """Return the shortest way that a rod must span at a pose, and its greatest length, [m]."""
    joint = pose @ limb.tip.joint_pose
    free = limb.tip.kind.free
    length = limb.base.upper if limb.base.kind is BaseKind.EXTENSIBLE else limb.length
    if free[3:].any():  # the tip may lie anywhere around the joint's centre
        target = joint[:3, 3]
        length += float(np.linalg.norm(limb.tip.attach[:3, 3]))
    else:
        target = (joint @ limb.tip.attach)[:3, 3]
    slides = joint[:3, :3][:, free[:3]]

    def way(q: float) -> float:
        start = limb.base.joint_pose @ base_motion(limb.base.kind, q) @ limb.base.attach
        d = target - start[:3, 3]
        return float(np.linalg.norm(d - slides @ (slides.T @ d)))

    return min(way(q) for q in _candidates(limb, target)), length


def _candidates(limb: Limb, target: Array) -> list[float]:
    """Coordinates among which is the one that brings the start nearest to a point."""
    low, high = limb.base.lower, limb.base.upper
    if limb.base.kind in (BaseKind.FIXED, BaseKind.EXTENSIBLE):
        return [0.0]
    local = np.linalg.solve(limb.base.joint_pose, np.append(target, 1.0))[:3]
    attach = limb.base.attach[:3, 3]
    if limb.base.kind is BaseKind.PRISMATIC:
        best = float(local[2] - attach[2])
        return [float(np.clip(best, low, high))]
    best = float(np.arctan2(local[1], local[0]) - np.arctan2(attach[1], attach[0]))
    turns = [best + 2.0 * np.pi * k for k in (-1, 0, 1)]
    inside = [turn for turn in turns if low <= turn <= high]
    return inside or [bound for bound in (low, high) if np.isfinite(bound)] or [0.0]


def limit_reach_finding(robot: RodRobot, q: Array, where: str) -> Finding | None:
    """Return UNREACHABLE if coordinates that a pose needs are outside their limits.

    Args:
        robot: The robot.
        q: Coordinates that the pose needs, shape (n,), found without regard to limits.
        where: What needs them, for the message: "the commanded pose".
    """
    excess = np.maximum(robot.q_lower - q, q - robot.q_upper)
    index = int(np.argmax(excess))
    if not excess[index] > 0.0:
        return None
    limb = robot.limbs[index]
    bound = limb.base.upper if q[index] > limb.base.upper else limb.base.lower
    return Finding(
        RodStatus.UNREACHABLE,
        f"limb '{limb.name}' lacks {quantity(limb.base.kind, excess[index])}: {where} needs"
        f" {limb.base.joint or 'q'} = {quantity(limb.base.kind, q[index])}, its limit is"
        f" {quantity(limb.base.kind, bound)}",
        index,
        float(excess[index]),
    )
