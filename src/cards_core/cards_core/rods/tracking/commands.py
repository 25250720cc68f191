"""Checks of commands to a rod robot, before anything moves.

A check returns the cleaned value, or a :class:`Finding` that says what is wrong and what is
expected; it never raises, because a slider must not stop a robot. Nothing is clamped: a command
outside the limits is refused, so the robot only does what was commanded.
"""

from __future__ import annotations

import math

import numpy as np

from cards_core.rods.robots.robot import BaseKind, RodRobot
from cards_core.rods.status import Finding, RodStatus
from cards_core.spatial import quaternion_matrix
from cards_core.typing import Array

WRENCH_FRAMES = ("world", "plate")
"""``world``: a dead load; ``plate``: it turns with the plate (a follower load)."""

LARGEST_COORDINATE = 1e4
"""Greatest coordinate of a command, [m] or [rad]; a greater one is a mistake."""

LARGEST_LOAD = 1e9
"""Greatest component of a wrench, [N] or [N m]."""

ROTATION_TOLERANCE = 1e-3
"""Greatest error of a rotation matrix or of a quaternion's norm that is corrected."""


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
    """Return LIMIT for the coordinate that is farthest outside its limits, or None."""
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
    """Return the greatest entry of ``R'R - I``, and the determinant: at 1 kHz, so by floats."""
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
    """Return the nearest rotation; ``error`` is the greatest entry of ``R'R - I``."""
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
