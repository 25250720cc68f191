"""Rotations and rigid transforms.

Conventions: right-handed frames, rotation matrices map child coordinates to parent coordinates,
quaternions are unit, scalar first ``(w, x, y, z)``, roll-pitch-yaw are rotations about the *fixed*
axes x, y, z in that order (``R = Rz(yaw) Ry(pitch) Rx(roll)``, as SDF, URDF and REP-103 have it).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cards_core.typing import Array, Matrix3, Vector3


def hat(v: Sequence[float] | Array) -> Matrix3:
    """Return the matrix of the cross product, ``hat(v) @ w == cross(v, w)``."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def axis_rotation(axis: Sequence[float] | Array, angle: float) -> Matrix3:
    """Rotate by ``angle`` about a unit ``axis`` (Rodrigues).

    ``R = E + sin(angle) K + (1 - cos(angle)) K^2`` with ``K = hat(axis)``.

    Args:
        axis: Unit vector, shape (3,).
        angle: Angle, [rad].
    """
    k = hat(axis)
    return np.eye(3) + math.sin(angle) * k + (1.0 - math.cos(angle)) * (k @ k)


def rotation_z_to(direction: Vector3) -> Matrix3:
    """Return a rotation matrix that takes the z axis to the unit vector ``direction``."""
    x, y, z = direction
    if z < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    k = 1.0 / (1.0 + z)
    return np.array(
        [[1.0 - k * x * x, -k * x * y, x], [-k * x * y, 1.0 - k * y * y, y], [-x, -y, z]]
    )


def rpy_matrix(roll: float, pitch: float, yaw: float) -> Matrix3:
    """Return ``Rz(yaw) Ry(pitch) Rx(roll)``, angles in [rad].

    Args:
        roll: [rad].
        pitch: [rad].
        yaw: [rad].
    """
    cr, sr = math.cos(roll), math.sin(roll)
    cp, sp = math.cos(pitch), math.sin(pitch)
    cy, sy = math.cos(yaw), math.sin(yaw)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def matrix_rpy(rotation: Matrix3) -> Vector3:
    """Return roll, pitch, yaw in [rad] of a rotation; at pitch = +-pi/2 the roll is set to 0."""
    r = np.asarray(rotation)
    cosine = math.hypot(r[0, 0], r[1, 0])
    pitch = math.atan2(-r[2, 0], cosine)
    roll = 0.0 if cosine < 1e-12 else math.atan2(r[2, 1], r[2, 2])
    # near pitch = +-pi/2 the entries that give the roll are mostly rounding, and so would be an
    # independent yaw: R Rx(-roll) = Rz(yaw) Ry(pitch) fits whatever roll was found
    c, s = math.cos(roll), math.sin(roll)
    yaw = math.atan2(s * r[0, 2] - c * r[0, 1], c * r[1, 1] - s * r[1, 2])
    return np.array([roll, pitch, yaw])


def quaternion_matrix(quaternion: Sequence[float] | Array) -> Matrix3:
    """Return the rotation of a quaternion ``(w, x, y, z)``; the quaternion is normalised first."""
    # Python's floats, as in `_shepperd`
    w, x, y, z = np.asarray(quaternion, dtype=float).tolist()
    norm = math.hypot(w, x, y, z) or math.nan
    w, x, y, z = w / norm, x / norm, y / norm, z / norm
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def matrix_quaternion(rotation: Matrix3) -> Array:
    """Return the quaternion ``(w, x, y, z)`` with ``w >= 0`` of a rotation matrix (Shepperd)."""
    return np.array(_shepperd(rotation))


def _shepperd(rotation: Matrix3) -> tuple[float, float, float, float]:
    # Python's floats: arrays of three and four numbers cost ten times as much
    (a, b, c), (d, e, f), (g, h, i) = np.asarray(rotation, dtype=float).tolist()
    squares = (1 + a + e + i, 1 + a - e - i, 1 - a + e - i, 1 - a - e + i)
    most = max(squares)
    k = squares.index(most)
    if k == 0:
        q = (most, h - f, c - g, d - b)
    elif k == 1:
        q = (h - f, most, d + b, c + g)
    elif k == 2:
        q = (c - g, d + b, most, h + f)
    else:
        q = (d - b, c + g, h + f, most)
    scale = 0.5 / math.sqrt(most)
    if q[0] < 0:
        scale = -scale
    return q[0] * scale, q[1] * scale, q[2] * scale, q[3] * scale


def quaternion_product(a: Sequence[float] | Array, b: Sequence[float] | Array) -> Array:
    """Return the Hamilton product ``a * b`` of two quaternions ``(w, x, y, z)``."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return np.array(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ]
    )


def rotation_exp(vector: Sequence[float] | Array) -> Array:
    """Return the quaternion of the rotation vector ``vector`` [rad]."""
    x, y, z = np.asarray(vector, dtype=float).tolist()
    angle = math.hypot(x, y, z)
    # sin(a/2)/a has the limit 1/2; the series keeps all digits for tiny rotations
    scale = 0.5 - angle * angle / 48.0 if angle < 1e-4 else math.sin(angle / 2) / angle
    return np.array([math.cos(angle / 2), scale * x, scale * y, scale * z])


def quaternion_log(quaternion: Sequence[float] | Array) -> Vector3:
    """Return the rotation vector [rad], norm <= pi, of a unit quaternion ``(w, x, y, z)``."""
    w, x, y, z = (float(value) for value in quaternion)
    if w < 0:
        w, x, y, z = -w, -x, -y, -z
    norm = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 / w if norm < 1e-12 else 2.0 * math.atan2(norm, w) / norm
    return np.array([scale * x, scale * y, scale * z])


def rotation_log(rotation: Matrix3) -> Vector3:
    """Return the rotation vector [rad], norm <= pi, of a rotation matrix."""
    return quaternion_log(_shepperd(rotation))


def _identity3() -> Matrix3:
    return np.eye(3)


def _zero3() -> Vector3:
    return np.zeros(3)


def placed(poses: Array, points: Array) -> Array:
    """Return where points are that are fixed to frames, one each, shape (n, 3), [m].

    Args:
        poses: Of the frames, shape (n, 4, 4).
        points: In the frames, shape (n, 3), [m].
    """
    out: Array = (poses[:, :3, :3] @ points[:, :, None])[:, :, 0] + poses[:, :3, 3]
    return out


@dataclass(frozen=True, eq=False)
class Pose:
    """Rigid transform: maps coordinates of the child frame to the parent frame.

    Attributes:
        rotation: Rotation child to parent, shape (3, 3).
        translation: Origin of the child in parent coordinates, shape (3,), [m].
    """

    rotation: Matrix3 = field(default_factory=_identity3)
    translation: Vector3 = field(default_factory=_zero3)

    @classmethod
    def from_xyz_rpy(
        cls, xyz: Sequence[float] | Array, rpy: Sequence[float] | Array = (0.0, 0.0, 0.0)
    ) -> Pose:
        """Build a pose from a position [m] and fixed-axis roll, pitch, yaw [rad]."""
        return cls(rpy_matrix(*(float(a) for a in rpy)), np.array(xyz, dtype=float))

    def __matmul__(self, other: Pose) -> Pose:
        """Compose: ``(A_to_world @ B_to_A)`` is B to world."""
        return Pose(
            self.rotation @ other.rotation, self.rotation @ other.translation + self.translation
        )

    def inverse(self) -> Pose:
        """Return the transform from parent to child coordinates."""
        return Pose(self.rotation.T, -self.rotation.T @ self.translation)

    def apply(self, point: Sequence[float] | Array) -> Vector3:
        """Return the parent coordinates of ``point``, shape (3,) or (k, 3), [m]."""
        out: Vector3 = np.asarray(point, dtype=float) @ self.rotation.T + self.translation
        return out

    @property
    def is_identity(self) -> bool:
        """Whether the transform moves nothing, to the last digit."""
        return not self.translation.any() and bool(np.array_equal(self.rotation, np.eye(3)))

    @property
    def rpy(self) -> Vector3:
        """Fixed-axis roll, pitch, yaw, [rad]."""
        return matrix_rpy(self.rotation)

    @property
    def matrix(self) -> Array:
        """Homogeneous matrix, shape (4, 4)."""
        out = np.eye(4)
        out[:3, :3] = self.rotation
        out[:3, 3] = self.translation
        return out
