"""Rotations given by three Euler angles, interpolated about one fixed axis as CASPR does it.

Between two knots the relative rotation is one turn by Theta <= pi about an axis k that is fixed in
both frames; a scalar profile sigma(t) from 0 to 1 drives the angle::

    R(t) = R_0 exp(hat(k) Theta sigma(t)),   omega = k Theta dsigma/dt   (child axes)

The Euler angles, rates and accelerations follow from R, omega and alpha. A component-wise spline
of the angles is a different motion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cards_core.spatial import axis_rotation, hat, rotation_log
from cards_core.trajectories.base import Reference, Sample, TrajectoryError
from cards_core.trajectories.polynomial import PiecewisePolynomial
from cards_core.trajectories.splines import check_knots, spline
from cards_core.typing import Array, Matrix3

Convention: TypeAlias = Literal["euler_xyz", "fixed_xyz"]
"""Angles (a, b, g): ``R = Rx(a) Ry(b) Rz(g)`` or ``R = Rz(g) Ry(b) Rx(a)``."""

CONVENTIONS: tuple[Convention, ...] = ("euler_xyz", "fixed_xyz")

MIN_COS_B = 1e-3
"""Smallest |cos b| of a path: 0.06 deg from gimbal lock, rates 1000 times the turning rate."""

_TURN = 2.0 * math.pi
_X, _Y, _Z = np.eye(3)


class EulerRotation(Reference):
    """Angles (a, b, g) through knots, each segment one turn about a fixed axis.

    The angles are continuous; they stay on the branch (sign of cos b) of the first knot and are
    not wrapped to +-pi.

    Args:
        times: Knots, shape (k,), strictly increasing from 0, [s].
        angles: a, b, g at the knots, shape (k, 3), [rad].
        profile: Polynomial of size 1 that goes from i to i + 1, and not beyond, between knots i
            and i + 1 (counted from 0); by default the quintic that rests at every knot.
        convention: Meaning of the angles.

    Raises:
        TrajectoryError: A segment comes within `MIN_COS_B` of gimbal lock; two knots are half a
            turn apart (no unique axis); the turn arrives at the next knot's orientation with other
            angles (off by a whole turn); shapes do not fit, times do not increase, a number is not
            finite.
    """

    def __init__(
        self,
        times: npt.ArrayLike,
        angles: npt.ArrayLike,
        profile: PiecewisePolynomial | None = None,
        convention: Convention = "euler_xyz",
    ) -> None:
        knots, points = check_knots(times, angles)
        if points.shape[1] != 3:
            raise TrajectoryError(f"angles have shape {points.shape}, expected ({knots.size}, 3)")
        if np.abs(points).max() > 1e6:
            raise TrajectoryError("angles are larger than 1e6 rad, expected radians")
        if convention not in CONVENTIONS:
            raise TrajectoryError(f"no convention {convention!r}, expected one of {CONVENTIONS}")
        self._profile = profile or spline("quintic", knots, np.arange(knots.size)[:, None])
        super().__init__(3, self._profile.duration, self._profile.breaks)
        self._turns = [
            _Turn(points[i], points[i + 1], convention, i) for i in range(knots.size - 1)
        ]
        self._inner: list[float] = knots[1:-1].tolist()

    def __call__(self, t: float) -> Sample:
        """Return angles, rates and accelerations as fresh arrays of shape (3,)."""
        sigma, rate, acceleration = self._profile.scalar(t)
        i = self._profile.find(self._inner, t)
        angles, rates, accelerations = self._turns[i].at(sigma - i, rate, acceleration)
        return np.array(angles), np.array(rates), np.array(accelerations)


_Triple: TypeAlias = tuple[float, float, float]


class _Turn:
    """One segment: a turn by `angle` about `axis` from the angles `start`.

    The rotation entries that the angles are read from are ``A + B cos(theta) + C sin(theta)``.
    """

    def __init__(self, start: Array, end: Array, convention: Convention, index: int) -> None:
        where = f"from knot {index + 1} {start} to knot {index + 2} {end}"
        self._euler = convention == "euler_xyz"
        first = euler_matrix(start, convention)
        vector = rotation_log(first.T @ euler_matrix(end, convention))
        self.angle = float(np.linalg.norm(vector))
        if self.angle > math.pi - 1e-6:
            raise TrajectoryError(
                f"{where} is half a turn, whose axis is not unique; expected a knot between them"
            )
        self._vector: list[float] = vector.tolist()
        k = hat(vector / self.angle if self.angle > 1e-12 else _X)
        # Rodrigues: R = R0 (E + K^2) - R0 K^2 cos + R0 K sin
        a, b, c = first + first @ k @ k, -first @ k @ k, first @ k
        if not self._euler:
            # Rz(g) Ry(b) Rx(a) is the transpose of Rx(-a) Ry(-b) Rz(-g): read that one instead
            a, b, c = a.T, b.T, c.T
        self._sign = 1.0 if self._euler else -1.0
        entries = ((0, 2), (0, 0), (0, 1), (2, 2), (1, 2))
        self._abc = [(float(a[e]), float(b[e]), float(c[e])) for e in entries]
        self._branch = math.copysign(1.0, math.cos(start[1]))
        self._unwrap(start, where)
        reached = self._angles(self.angle)
        if np.abs(np.array(reached) - end).max() > 1e-6:
            raise TrajectoryError(
                f"{where}: the turn about a fixed axis arrives at {np.array(reached)}; expected "
                "a last knot given by these angles, or a knot between them"
            )

    def _unwrap(self, start: Array, where: str) -> None:
        """Tabulate the continuous angles, close enough to tell a whole turn from none."""
        a, b, c = self._abc[0]
        peak = math.atan2(c, b)
        stations = [0.0, self.angle]
        stations += [p for p in (peak, peak + math.pi, peak - math.pi) if 0.0 < p < self.angle]
        worst = max(stations, key=lambda p: abs(a + b * math.cos(p) + c * math.sin(p)))
        sine = abs(a + b * math.cos(worst) + c * math.sin(worst))
        cos_b = math.sqrt(max(1.0 - sine * sine, 0.0))
        if cos_b < MIN_COS_B:
            at = f", after {worst:.4g} of {self.angle:.4g} rad" if self.angle > 1e-9 else ""
            raise TrajectoryError(
                f"{where} meets gimbal lock (b = +-pi/2{at}), expected |cos b| > {MIN_COS_B:g}"
            )
        # no angle changes by more than 1 / cos b (a, g) or 1 (b) per radian of the turn
        count = 2 + int(2.0 * self.angle / cos_b)
        self._step = max(self.angle / (count - 1), 1e-300)
        theta = np.linspace(0.0, self.angle, count)[:, None]
        coefficients = np.array(self._abc)
        x = (
            coefficients[:, 0]
            + coefficients[:, 1] * np.cos(theta)
            + coefficients[:, 2] * np.sin(theta)
        )
        f = self._branch
        table = np.column_stack(
            [
                self._sign * np.arctan2(-f * x[:, 4], f * x[:, 3]),
                self._sign * np.arctan2(x[:, 0], f * np.hypot(x[:, 1], x[:, 2])),
                self._sign * np.arctan2(-f * x[:, 2], f * x[:, 1]),
            ]
        )
        table = np.unwrap(table, axis=0)
        table += _TURN * np.round((start - table[0]) / _TURN)
        # where no angle comes near +-pi, which is the rule, the table is not needed
        self._principal = bool(np.abs(table).max() < math.pi - 0.5)
        self._table: list[_Triple] = [(row[0], row[1], row[2]) for row in table.tolist()]

    def _angles(self, theta: float) -> _Triple:
        """Return the continuous angles (a, b, g) after a turn by ``theta``."""
        cos, sin = math.cos(theta), math.sin(theta)
        x02, x00, x01, x22, x12 = [a + b * cos + c * sin for a, b, c in self._abc]
        f, sign = self._branch, self._sign
        angles = (
            sign * math.atan2(-f * x12, f * x22),
            sign * math.atan2(x02, f * math.hypot(x00, x01)),
            sign * math.atan2(-f * x01, f * x00),
        )
        if self._principal:
            return angles
        near = self._table[min(max(int(theta / self._step + 0.5), 0), len(self._table) - 1)]
        a, b, g = (x + _TURN * round((y - x) / _TURN) for x, y in zip(angles, near, strict=True))
        return a, b, g

    def at(
        self, fraction: float, rate: float, acceleration: float
    ) -> tuple[_Triple, _Triple, _Triple]:
        """Return angles, rates, accelerations where ``fraction`` of the turn is done."""
        a, b, g = self._angles(self.angle * fraction)
        vx, vy, vz = self._vector
        wx, wy, wz = vx * rate, vy * rate, vz * rate
        ax, ay, az = vx * acceleration, vy * acceleration, vz * acceleration
        cb, sb = math.cos(b), math.sin(b)
        if self._euler:
            # omega = (cb cg ad + sg bd, -cb sg ad + cg bd, sb ad + gd)
            cg, sg = math.cos(g), math.sin(g)
            u = cg * wx - sg * wy
            bd = sg * wx + cg * wy
            ad = u / cb
            gd = wz - sb * ad
            add = (cg * ax - sg * ay - gd * bd + ad * sb * bd) / cb
            bdd = sg * ax + cg * ay + gd * u
            gdd = az - cb * bd * ad - sb * add
        else:
            # omega = (ad - sb gd, ca bd + sa cb gd, -sa bd + ca cb gd)
            ca, sa = math.cos(a), math.sin(a)
            u = sa * wy + ca * wz
            bd = ca * wy - sa * wz
            gd = u / cb
            ad = wx + sb * gd
            gdd = (sa * ay + ca * az + ad * bd + gd * sb * bd) / cb
            bdd = ca * ay - sa * az - ad * u
            add = ax + cb * bd * gd + sb * gdd
        return (a, b, g), (ad, bd, gd), (add, bdd, gdd)


def euler_matrix(angles: Sequence[float] | Array, convention: Convention) -> Matrix3:
    """Return the rotation, child to parent, of the angles (a, b, g) [rad]."""
    a, b, g = (float(x) for x in angles)
    x, y, z = axis_rotation(_X, a), axis_rotation(_Y, b), axis_rotation(_Z, g)
    match convention:
        case "euler_xyz":
            return x @ y @ z
        case "fixed_xyz":
            return z @ y @ x
        case _:
            raise TrajectoryError(f"no convention {convention!r}, expected one of {CONVENTIONS}")
