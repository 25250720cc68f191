"""Poses that a rod robot cannot reach, by geometry alone.

A rod of length L holds points within L of its start; the start of limb i lies on a point, a line
or a circle, as its joint has it. A pose is out of reach for certain if, for some limb,

    min over q in limits of |joint of the plate - start(q)|  >  L (1 + eps) + offsets

The converse is not true: within that distance a pose may still have no equilibrium, which only the
solver can find out.
"""

from __future__ import annotations

import functools

import numpy as np

from cards_core.rods.robots.robot import BaseKind, Limb, RodRobot, base_motion
from cards_core.rods.status import Finding, RodStatus
from cards_core.rods.tracking.commands import quantity
from cards_core.typing import Array

STRETCH = 1e-3
"""Relative stretch of a rod that is allowed for."""


def reach_findings(robot: RodRobot, pose: Array, base: Array | None = None) -> tuple[Finding, ...]:
    """Return UNREACHABLE for each limb that is too short for its span, the worst first.

    Args:
        robot: The robot.
        pose: Plate pose in the world, shape (4, 4), all of it commanded.
        base: Pose of the robot in the world, shape (4, 4); default the identity.
    """
    if base is not None:
        turn, there = base[:3, :3].T, pose
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = turn @ there[:3, :3], turn @ (there[:3, 3] - base[:3, 3])
    findings = []
    for index in _candidate_limbs(robot, pose):
        limb = robot.limbs[index]
        way, length = shortest_span(limb, pose)
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


def _candidate_limbs(robot: RodRobot, pose: Array) -> list[int]:
    """Return the limbs that may be too short at a pose: quick, for commands at 1 kHz.

    The others are long enough from one of their starts, so also from the nearest.
    """
    starts, targets, spans = _spans(robot)
    ways = targets @ pose[:3, :3].T + pose[:3, 3] - starts
    return [int(i) for i in np.flatnonzero(np.einsum("ij,ij->i", ways, ways) > spans**2)]


@functools.lru_cache(maxsize=16)
def _spans(robot: RodRobot) -> tuple[Array, Array, Array]:
    """Return a start of each rod, the end of its span in the plate (n, 3), and its length (n,)."""
    starts, targets, spans = [], [], []
    for limb, q in zip(robot.limbs, robot.home_q, strict=True):
        starts.append(limb.base.joint_pose @ base_motion(limb.base.kind, q) @ limb.base.attach)
        end, length = _end_of_span(limb, limb.tip.joint_pose)
        targets.append(end)
        spans.append(length * (1.0 + STRETCH))
    return np.array(starts)[:, :3, 3], np.array(targets), np.array(spans)


def _end_of_span(limb: Limb, joint: Array) -> tuple[Array, float]:
    """Return the point that a rod must reach, where its plate joint is, and its length, [m]."""
    length = limb.base.upper if limb.base.kind is BaseKind.EXTENSIBLE else limb.length
    if limb.tip.kind.free[3:].any():  # the tip may lie anywhere around the joint's centre
        return joint[:3, 3], length + float(np.linalg.norm(limb.tip.attach[:3, 3]))
    return (joint @ limb.tip.attach)[:3, 3], length


def shortest_span(limb: Limb, pose: Array) -> tuple[float, float]:
    """Return the shortest span of a rod at a pose, and its greatest length, [m]."""
    joint = pose @ limb.tip.joint_pose
    target, length = _end_of_span(limb, joint)
    slides = joint[:3, :3][:, limb.tip.kind.free[:3]]

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
