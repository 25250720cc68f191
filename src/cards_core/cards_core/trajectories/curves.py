"""Closed plane curves drawn from rest to rest: the rose ("flower") and the circle.

The curve is ``y = centre + x1(theta) u + x2(theta) v`` with orthonormal u, v. The angle runs from
``theta_0`` to ``theta_0 + sweep`` along the minimum-jerk time law
``sigma(s) = 10 s^3 - 15 s^4 + 6 s^5``, ``s = t / duration``, so that the motion starts and ends at
rest; the derivatives follow from the chain rule and are exact.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from cards_core.trajectories.base import (
    Reference,
    Sample,
    TrajectoryError,
    check_duration,
    check_number,
    check_vector,
)
from cards_core.typing import Array

MAX_PETALS = 1000
"""Most petals (and rounds) that are accepted: a guard against slips of the keyboard."""

Local = tuple[float, float, float, float, float, float]
"""x1, x2, their first and their second derivatives with respect to the angle."""


class PlaneCurve(Reference):
    """A plane curve with minimum-jerk timing; subclasses give its shape.

    Args:
        centre: Shape (n,), n >= 2, [m].
        duration: [s], > 0.
        axes: The two directions u, v in the plane, shape (n,) each, perpendicular; they are
            scaled to unit length.
        normal: Instead of `axes`, for n = 3: normal of the plane, shape (3,). Then u is the
            world axis nearest to the plane, projected onto it (x before y before z), and
            ``v = normal x u``.
        start_angle: theta_0, [rad].
        sweep: Angle covered, [rad].

    Attributes:
        centre, u, v, start_angle, sweep: As given, u and v of unit length.

    Raises:
        TrajectoryError: The plane is not well defined or a number is not acceptable.
    """

    def __init__(
        self,
        centre: Sequence[float] | Array,
        duration: float,
        *,
        axes: tuple[Sequence[float] | Array, Sequence[float] | Array] | None,
        normal: Sequence[float] | Array | None,
        start_angle: float,
        sweep: float,
    ) -> None:
        self.centre = check_vector(centre, "centre")
        if self.centre.size < 2:
            raise TrajectoryError("centre has 1 coordinate, expected at least 2")
        length = check_duration(duration)
        super().__init__(self.centre.size, length, (0.0, length))
        self.u, self.v = plane_axes(self.centre.size, axes, normal)
        self.start_angle = start_angle
        self.sweep = sweep
        self._rate = 1.0 / length
        n = self.size
        # (1, x1, x2, x1', x2', x1'', x2'') times this matrix is y, yd, ydd side by side
        self._matrix = np.zeros((7, 3 * n))
        self._matrix[0, :n] = self.centre
        for k in range(3):
            self._matrix[2 * k + 1, k * n : (k + 1) * n] = self.u
            self._matrix[2 * k + 2, k * n : (k + 1) * n] = self.v

    @abstractmethod
    def _local(self, theta: float) -> Local:
        """Return the shape at angle ``theta`` [rad]."""

    def angle(self, t: float) -> tuple[float, float, float]:
        """Return theta [rad] and its first two time derivatives, at rest beyond both ends."""
        # exactly 0 and 1 at the ends, so that the derivatives there are exactly zero
        s = 0.0 if t <= 0.0 else 1.0 if t >= self.duration else t * self._rate
        rate = self.sweep * self._rate
        rest = s * (1.0 - s)
        return (
            self.start_angle + self.sweep * s * s * s * (10.0 + s * (6.0 * s - 15.0)),
            30.0 * rate * rest * rest,
            60.0 * rate * self._rate * rest * (1.0 - 2.0 * s),
        )

    def __call__(self, t: float) -> Sample:
        """Return y, yd, ydd as fresh arrays of shape (size,)."""
        n = self.size
        theta, w, alpha = self.angle(t)
        x1, x2, d1, d2, dd1, dd2 = self._local(theta)
        w2 = w * w
        out = np.array(
            (1.0, x1, x2, d1 * w, d2 * w, dd1 * w2 + d1 * alpha, dd2 * w2 + d2 * alpha)
        ).dot(self._matrix)
        return out[:n], out[n : 2 * n], out[2 * n :]


class Flower(PlaneCurve):
    """Rose curve ``r = amplitude cos(k theta)`` [Lawrence1972]_, from the centre to the centre.

    The rose has k petals if k is odd, drawn while theta runs through pi, and 2 k petals if k is
    even, drawn while it runs through 2 pi. The number of petals therefore is odd or a multiple
    of four. theta starts at ``-pi / (2 k)``, where r = 0, so ``y(0) = y(duration) = centre``, and
    the tip of the first petal lies on the axis u (turned by `angle` towards v).

    Args:
        centre: Shape (n,), [m].
        amplitude: Length of a petal, [m], > 0.
        duration: [s], > 0.
        petals: Number of petals.
        axes, normal: The plane, see `PlaneCurve`.
        angle: Turns the whole figure from u towards v, [rad].
        repeats: How many times the figure is drawn.

    Attributes:
        petals, amplitude: As given.
        k: Of the equation.
        turn: The angle as given, [rad].

    Raises:
        TrajectoryError: No such rose, or as `PlaneCurve`.
    """

    def __init__(
        self,
        centre: Sequence[float] | Array,
        amplitude: float,
        duration: float,
        *,
        petals: int = 5,
        axes: tuple[Sequence[float] | Array, Sequence[float] | Array] | None = None,
        normal: Sequence[float] | Array | None = None,
        angle: float = 0.0,
        repeats: int = 1,
    ) -> None:
        self.petals = _count(petals, "petals")
        if self.petals % 2 == 0 and self.petals % 4 != 0:
            raise TrajectoryError(
                f"petals is {petals}, expected an odd number or a multiple of 4: "
                "no rose r = A cos(k theta) with a whole k has another number"
            )
        odd = self.petals % 2 == 1
        self.k = self.petals if odd else self.petals // 2
        self.amplitude = _positive(amplitude, "amplitude")
        self.turn = check_number(angle, "angle")
        sweep = (math.pi if odd else 2.0 * math.pi) * _count(repeats, "repeats")
        super().__init__(
            centre,
            duration,
            axes=axes,
            normal=normal,
            start_angle=-0.5 * math.pi / self.k,
            sweep=sweep,
        )

    def _local(self, theta: float) -> Local:
        k = self.k
        r = self.amplitude * math.cos(k * theta)
        dr = -self.amplitude * k * math.sin(k * theta)
        ddr = -k * k * r
        c, s = math.cos(theta + self.turn), math.sin(theta + self.turn)
        return (
            r * c,
            r * s,
            dr * c - r * s,
            dr * s + r * c,
            (ddr - r) * c - 2.0 * dr * s,
            (ddr - r) * s + 2.0 * dr * c,
        )


class Circle(PlaneCurve):
    """Circle ``y = centre + radius (cos(theta) u + sin(theta) v)`` from rest to rest.

    Args:
        centre: Shape (n,), [m].
        radius: [m], > 0.
        duration: [s], > 0.
        revolutions: Number of turns from u towards v; need not be whole, negative turns the other
            way.
        axes, normal: The plane, see `PlaneCurve`.
        angle: theta at the start, [rad].

    Raises:
        TrajectoryError: As `PlaneCurve`.
    """

    def __init__(
        self,
        centre: Sequence[float] | Array,
        radius: float,
        duration: float,
        *,
        revolutions: float = 1.0,
        axes: tuple[Sequence[float] | Array, Sequence[float] | Array] | None = None,
        normal: Sequence[float] | Array | None = None,
        angle: float = 0.0,
    ) -> None:
        self.radius = _positive(radius, "radius")
        turns = check_number(revolutions, "revolutions")
        if turns == 0.0 or abs(turns) > MAX_PETALS:
            raise TrajectoryError(
                f"revolutions is {turns:g}, expected a number between -{MAX_PETALS} and "
                f"{MAX_PETALS} that is not 0"
            )
        super().__init__(
            centre,
            duration,
            axes=axes,
            normal=normal,
            start_angle=check_number(angle, "angle"),
            sweep=2.0 * math.pi * turns,
        )

    def _local(self, theta: float) -> Local:
        c, s = self.radius * math.cos(theta), self.radius * math.sin(theta)
        return c, s, -s, c, -c, -s


def plane_axes(
    size: int,
    axes: tuple[Sequence[float] | Array, Sequence[float] | Array] | None,
    normal: Sequence[float] | Array | None,
) -> tuple[Array, Array]:
    """Return orthonormal axes u, v, shape (size,), from two axes or a normal (see `PlaneCurve`).

    With neither, u and v are the first two coordinate axes if size is 2.

    Raises:
        TrajectoryError: Neither or both given, a zero vector, or axes that are not perpendicular.
    """
    if axes is not None and normal is not None:
        raise TrajectoryError("both axes and normal are given, expected one of them")
    if axes is not None:
        u = _unit(check_vector(axes[0], "first axis", size), "first axis")
        v = _unit(check_vector(axes[1], "second axis", size), "second axis")
        if abs(float(u @ v)) > 1e-6:
            raise TrajectoryError(f"axes {u} and {v} are not perpendicular")
        # what is left of the product is rounding in the file
        return u, _unit(v - (u @ v) * u, "second axis")
    if normal is not None:
        if size != 3:
            raise TrajectoryError(f"normal given for {size} coordinates, expected axes")
        n = _unit(check_vector(normal, "normal", 3), "normal")
        k = int(np.argmin(np.abs(n).round(9)))
        u = _unit(np.eye(3)[k] - n[k] * n, "normal")
        return u, np.cross(n, u)
    if size == 2:
        return np.array([1.0, 0.0]), np.array([0.0, 1.0])
    raise TrajectoryError("the plane is not given, expected axes or normal")


def _unit(vector: Array, what: str) -> Array:
    norm = float(np.linalg.norm(vector))
    if not 1e-9 < norm < math.inf:
        raise TrajectoryError(f"{what} is {vector}, expected a vector that is not zero")
    return vector / norm


def _count(value: int, what: str) -> int:
    number = check_number(value, what)
    if number != int(number) or not 1 <= number <= MAX_PETALS:
        raise TrajectoryError(f"{what} is {value}, expected a whole number from 1 to {MAX_PETALS}")
    return int(number)


def _positive(value: float, what: str) -> float:
    number = check_number(value, what)
    if not 0.0 < number < 1e9:
        raise TrajectoryError(f"{what} is {number:g}, expected a number > 0")
    return number
