"""Checks of commands to a rod robot, before anything moves: values, limits, reach.

A check of values returns the cleaned value, or a :class:`Finding` that says what is wrong and what
is expected; it never raises, because a slider must not stop a robot. Nothing is clamped: a command
outside the limits is refused, so the robot only does what was commanded.

Poses out of reach are found by geometry alone. A rod of length L holds points within L of its
start; the start of limb i lies on a point, a line or a circle, as its joint has it. A pose is out
of reach for certain if, for some limb,

    min over q in limits of |joint of the plate - start(q)|  >  L (1 + eps) + offsets

The converse is not true: within that distance a pose may still have no equilibrium, which only the
solver can find out.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from cards_core.rods.robots.robot import BaseKind, Limb, RodRobot, base_motion
from cards_core.rods.status import Finding, RodStatus
from cards_core.spatial import quaternion_matrix
from cards_core.typing import Array

WRENCH_FRAMES = ("world", "plate")
"""``world``: a dead load; ``plate``: it turns with the plate (a follower load)."""

LARGEST_COORDINATE = 1e4
"""Maximum coordinate of a command, [m] or [rad]; a greater one is a mistake."""

LARGEST_LOAD = 1e9
"""Maximum component of a wrench, [N] or [N m]."""

ROTATION_TOLERANCE = 1e-3
"""Maximum error of a rotation matrix or of a quaternion's norm that is corrected."""


def checked_joints(robot: RodRobot, q: object) -> Array | Finding:
    """Check joint coordinates.

    Args:
        robot: The robot with its limits.
        q: One value per limb, shape (n,), [m] or [rad]; lengths for extensible limbs.

    Returns:
        A copy of q, or LIMIT, NOT_FINITE, INVALID.
    """
    values = _numbers(q)
    if values is None or values.shape != (robot.n_limbs,):
        shape = "no numbers" if values is None else f"shape {values.shape}"
        return Finding(
            RodStatus.INVALID,
            f"joint command has {shape}; expected {robot.n_limbs} numbers:"
            f" {', '.join(robot.joint_names)}",
        )
    for index in np.flatnonzero(~np.isfinite(values)):
        name = robot.joint_names[index]
        return Finding(
            RodStatus.NOT_FINITE, f"joint command of {name} is {values[index]}", int(index)
        )
    finding = limit_finding(robot, values)
    if finding is None and not np.abs(values).max() <= LARGEST_COORDINATE:
        return _out_of_range("joint command", values)
    return finding or values


def limit_finding(robot: RodRobot, q: Array, tolerance: float = 0.0) -> Finding | None:
    """Return LIMIT for the coordinate that is farthest outside its limits, or None.

    Args:
        robot: The robot.
        q: Joint coordinates, shape (n,), [m] or [rad].
        tolerance: Excess that is accepted, [m] or [rad].
    """
    low, high = robot.q_lower - q, q - robot.q_upper
    for index, limb in enumerate(robot.limbs):
        if limb.base.kind is BaseKind.EXTENSIBLE and q[index] <= 0.0:
            return Finding(
                RodStatus.LIMIT,
                f"limb '{limb.name}': a rod of length {q[index]:.4g} m does not exist;"
                f" lengths go from {limb.base.lower:.4g} to {limb.base.upper:.4g} m",
                index,
                float(max(low[index], -q[index])),
            )
    excess = np.maximum(low, high)
    index = int(np.argmax(excess))
    if not excess[index] > tolerance:
        return None
    limb, side = robot.limbs[index], "below" if low[index] > 0.0 else "above"
    bound = limb.base.lower if side == "below" else limb.base.upper
    return Finding(
        RodStatus.LIMIT,
        f"limb '{limb.name}': {limb.base.joint or 'q'} = {quantity(limb.base.kind, q[index])} is"
        f" {side} its limit of {quantity(limb.base.kind, bound)}",
        index,
        float(excess[index]),
    )


def quantity(kind: BaseKind, value: float) -> str:
    """Return a joint coordinate as text, with its unit."""
    if kind is BaseKind.REVOLUTE:
        return f"{np.degrees(value):.2f} deg"
    return f"{1e3 * value:.2f} mm"


def checked_pose(robot: RodRobot, pose: object, base: Array | None = None) -> Array | Finding:
    """Check a plate pose.

    Args:
        robot: The robot.
        pose: In the world, shape (4, 4).
        base: Pose of the robot in the world, shape (4, 4); default the identity.

    Returns:
        A copy whose rotation is exactly orthogonal, or NOT_FINITE, INVALID. For a planar robot, a
        pose outside the plane is INVALID.
    """
    matrix = _numbers(pose)
    if matrix is None or matrix.shape != (4, 4):
        return Finding(RodStatus.INVALID, "plate pose: expected a homogeneous matrix, 4 x 4")
    greatest = float(np.abs(matrix).max())  # NaN where there is one
    if not math.isfinite(greatest):
        return Finding(RodStatus.NOT_FINITE, "plate pose: has NaN or infinity")
    if not greatest <= LARGEST_COORDINATE:
        return _out_of_range("plate pose", matrix)
    rotation = matrix[:3, :3]
    error, determinant = _error_of_rotation(rotation)
    if error > 2 * ROTATION_TOLERANCE or determinant < 0.0:
        return Finding(
            RodStatus.INVALID,
            f"plate pose: the 3 x 3 part is no rotation (R'R differs from the identity by"
            f" {error:.2g}, determinant {determinant:.3g})",
        )
    a, b, c, d = matrix[3].tolist()
    if max(abs(a), abs(b), abs(c), abs(d - 1.0)) > ROTATION_TOLERANCE:
        return Finding(RodStatus.INVALID, "plate pose: the last row must be 0 0 0 1")
    matrix[3] = 0.0, 0.0, 0.0, 1.0
    matrix[:3, :3] = _orthogonal(rotation, error)
    if robot.planar:
        home = robot.home_pose
        local: Array = matrix
        if base is not None:
            local = np.asarray(np.linalg.inv(base) @ matrix)
        lift = abs(float(local[2, 3] - home[2, 3]))
        tilt = float(np.linalg.norm(local[:3, 2] - home[:3, 2]))
        if max(lift, tilt) > ROTATION_TOLERANCE:
            return Finding(
                RodStatus.INVALID,
                f"plate pose: leaves the plane of this planar robot (by {lift:.3g} m and"
                f" {np.degrees(tilt):.3g} deg); only x, y and the turn about z may change",
            )
    return matrix


def _error_of_rotation(rotation: Array) -> tuple[float, float]:
    """Return the largest entry of ``R'R - I``, and the determinant: at 1 kHz, so by floats."""
    (a, b, c), (d, e, f), (g, h, i) = rotation.tolist()
    error = max(
        abs(a * a + d * d + g * g - 1.0),
        abs(b * b + e * e + h * h - 1.0),
        abs(c * c + f * f + i * i - 1.0),
        abs(a * b + d * e + g * h),
        abs(a * c + d * f + g * i),
        abs(b * c + e * f + h * i),
    )
    return error, a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def _orthogonal(rotation: Array, error: float) -> Array:
    """Return the nearest rotation; ``error`` is the largest entry of ``R'R - I``."""
    if error < 1e-15:
        return rotation
    if error < 1e-8:  # one step of Newton's method for the polar factor squares it
        return np.asarray(1.5 * rotation - 0.5 * rotation @ (rotation.T @ rotation))
    u, _, vt = np.linalg.svd(rotation)
    return np.asarray(u @ vt)


def pose_from(position: object, quaternion: object) -> Array | Finding:
    """Make a pose of a position [m] and a quaternion (w, x, y, z).

    Returns:
        Shape (4, 4); or NOT_FINITE, or INVALID for a quaternion that is not of unit length within
        a thousandth (zero above all).
    """
    place, turn = _numbers(position), _numbers(quaternion)
    if place is None or turn is None or place.shape != (3,) or turn.shape != (4,):
        return Finding(RodStatus.INVALID, "plate pose: expected 3 + 4 numbers (w, x, y, z)")
    if not (np.isfinite(place).all() and np.isfinite(turn).all()):
        return Finding(RodStatus.NOT_FINITE, "plate pose: has NaN or infinity")
    norm = float(np.linalg.norm(turn))
    if abs(norm - 1.0) > ROTATION_TOLERANCE:
        return Finding(
            RodStatus.INVALID,
            f"plate pose: the quaternion (w, x, y, z) = {np.round(turn, 4).tolist()} has norm"
            f" {norm:.4g}; expected 1",
        )
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = quaternion_matrix(turn), place
    return pose


def checked_wrench(wrench: object, frame: str) -> Array | Finding:
    """Check a wrench on the plate, shape (6,), and the name of its frame."""
    if frame not in WRENCH_FRAMES:
        return Finding(
            RodStatus.INVALID,
            f"wrench: unknown frame '{frame}'; expected one of {', '.join(WRENCH_FRAMES)}",
        )
    values = _numbers(wrench)
    if values is None or values.shape != (6,):
        return Finding(RodStatus.INVALID, "wrench: expected 6 numbers, force and moment")
    if not np.isfinite(values).all():
        return Finding(RodStatus.NOT_FINITE, "wrench: has NaN or infinity")
    if not np.abs(values).max() <= LARGEST_LOAD:
        return _out_of_range("wrench", values, LARGEST_LOAD)
    return values


def _out_of_range(what: str, values: Array, most: float = LARGEST_COORDINATE) -> Finding:
    """Return INVALID for a number beyond any robot, before anything overflows."""
    return Finding(
        RodStatus.INVALID,
        f"{what}: has the number {np.abs(values).max():.3g}; expected none beyond {most:g}"
        " (SI units, rad)",
    )


def _numbers(value: object) -> Array | None:
    """Return a float copy, or None if that is impossible."""
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        return None


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
    length *= limb.rod.free_stretch
    if limb.tip.kind.free[3:].any():  # the tip may lie anywhere around the joint's centre
        return joint[:3, 3], length + float(np.linalg.norm(limb.tip.attach[:3, 3]))
    return (joint @ limb.tip.attach)[:3, 3], length


def shortest_span(limb: Limb, pose: Array) -> tuple[float, float]:
    """Return the shortest span of a rod at a pose, and its maximum length, [m]."""
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
