"""Real and simulated measurements of rods, and each rod as a function of the wrench at its base.

Base joint and load are known, so the wrench w = (n, m) at the start decides the whole rod. The
derivative of a section's state (p, phi, n, m) by w is the product of the exact derivatives of the
pieces before it; it starts with ``d(p, phi)/dw = 0, d(n, m)/dw = I``.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass

import numpy as np

from cards_core.checks import finite_number
from cards_core.errors import CardsError
from cards_core.rods.native_library import rod_library
from cards_core.rods.robots.robot import RodRobot, rod_lengths, rod_starts
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.typing import Array

STEPS = 6
"""Steps of order 8 along a whole rod, at least."""


@dataclass(frozen=True, eq=False)
class LimbCurve:
    """Sections of a rod.

    Attributes:
        s: Arc lengths of the unstrained rod, shape (k,), [m].
        states: p, R by rows, n, m, world axes, shape (k, 18).
        by_wrench: Derivatives of (p, phi, n, m) by the wrench at the start, shape (k, 12, 6).
        tip: State of the tip, shape (18,).
        tip_by_wrench: Its derivative, shape (12, 6).
    """

    s: Array
    states: Array
    by_wrench: Array
    tip: Array
    tip_by_wrench: Array

    @property
    def points(self) -> Array:
        """Positions, shape (k, 3), [m]."""
        return self.states[:, :3]

    @property
    def tangents(self) -> Array:
        """Unit vectors along the sections' normals d3, shape (k, 3)."""
        return self.states[:, [5, 8, 11]]


class Limbs:
    """The rods of a robot at given joints.

    Args:
        solver: Of the robot; gives its place in the world and the gravity.
        q: Joint coordinates, shape (n,).
    """

    def __init__(self, solver: RodRobotSolver, q: Array) -> None:
        robot = solver.robot
        self.robot, self.q = robot, np.asarray(q, dtype=float)
        self.lengths = rod_lengths(robot, q)
        self.starts = solver.base @ rod_starts(robot, q)
        self._natives = [limb.native(solver.gravity) for limb in robot.limbs]

    def curve(self, limb: int, wrench: Array, s: Array) -> LimbCurve:
        """Integrate a rod.

        Args:
            limb: Its index.
            wrench: n, m at the start, world axes, shape (6,).
            s: Rising arc lengths within the rod, shape (k,), [m].
        """
        length, start = float(self.lengths[limb]), self.starts[limb]
        state = np.concatenate([start[:3, 3], start[:3, :3].ravel(), wrench])
        derivative = np.vstack([np.zeros((6, 6)), np.eye(6)])
        states, by_wrench = np.empty((len(s) + 1, 18)), np.empty((len(s) + 1, 12, 6))
        matrix, here = np.empty((12, 12)), 0.0
        rod, transfer = ctypes.byref(self._natives[limb]), rod_library().rod_transfer
        for k, until in enumerate((*s, length)):
            step = float(until) - here
            if step > 0.0:
                transfer(
                    rod,
                    ctypes.c_double(step),
                    max(1, math.ceil(STEPS * step / length)),
                    ctypes.c_void_p(state.ctypes.data),
                    ctypes.c_void_p(matrix.ctypes.data),
                )
                derivative = matrix @ derivative
            states[k], by_wrench[k], here = state, derivative, float(until)
        return LimbCurve(np.asarray(s), states[:-1], by_wrench[:-1], states[-1], by_wrench[-1])

    def feet(self, limb: int, wrench: Array, points: Array, near: Array | None) -> Array:
        """Return the arc lengths at which a rod comes nearest to points, shape (k,), [m].

        Args:
            limb: Its index.
            wrench: At its start, shape (6,).
            points: Shape (k, 3).
            near: Arc lengths to start from, or None.
        """
        length = float(self.lengths[limb])
        if near is None:
            dense = self.curve(limb, wrench, np.linspace(0.0, length, 40))
            distance = np.linalg.norm(points[:, None] - dense.points, axis=2)
            near = dense.s[distance.argmin(axis=1)]
        for _ in range(2):
            order = np.argsort(near)
            curve = self.curve(limb, wrench, near[order])
            along = np.einsum("ki,ki->k", points[order] - curve.points, curve.tangents)
            moved = near.copy()
            moved[order] = np.clip(curve.s + along, 0.0, length)
            near = moved
        return near


class MeasurementError(CardsError):
    """Measurements that cannot be used; the message says why."""


@dataclass(frozen=True, eq=False)
class ShapeMeasurement:
    """Points on the centre line of one rod.

    Attributes:
        limb: Index of the limb.
        points: Shape (k, 3), in the world, [m].
        s: Arc lengths of the points from the rod's start, shape (k,), [m]; None if it is not
            known where on the rod a point lies (a camera without markers).
        sigma: Standard deviation of each coordinate, [m].
    """

    limb: int
    points: Array
    sigma: float
    s: Array | None = None


@dataclass(frozen=True, eq=False)
class BaseMeasurement:
    """Wrenches at the starts of all rods, as a force sensor under each base measures them.

    Attributes:
        wrenches: n, m that the rod exerts on its base, about the rod's start, world axes, shape
            (n, 6), [N], [N m].
        covariance: Of one of them, shape (6, 6), or of each, shape (n, 6, 6).
    """

    wrenches: Array
    covariance: Array

    @staticmethod
    def of(wrenches: Array, sigma_force: float, sigma_moment: float) -> BaseMeasurement:
        """Return wrenches with independent noise of every component, [N] and [N m].

        Args:
            wrenches: Shape (n, 6), [N] and [N m].
            sigma_force: Standard deviation of a force component, [N].
            sigma_moment: Standard deviation of a moment component, [N m].

        Raises:
            MeasurementError: A standard deviation that is not finite and > 0.
        """
        sigma_force = finite_number(
            sigma_force, "noise of forces [N]", above=0.0, error=MeasurementError
        )
        sigma_moment = finite_number(
            sigma_moment, "noise of moments [N m]", above=0.0, error=MeasurementError
        )
        return BaseMeasurement(
            np.asarray(wrenches, dtype=float),
            np.diag(np.repeat([sigma_force**2, sigma_moment**2], 3)),
        )


def check_shapes(robot: RodRobot, shapes: tuple[ShapeMeasurement, ...], lengths: Array) -> None:
    """Refuse invalid measurements.

    Args:
        robot: The robot.
        shapes: The measurements.
        lengths: Of the rods, shape (n,), [m].

    Raises:
        MeasurementError: Of which limb, what is wrong, and what would be right.
    """
    for shape in shapes:
        if not 0 <= shape.limb < robot.n_limbs:
            raise MeasurementError(f"limb {shape.limb} (expected: 0..{robot.n_limbs - 1})")
        name, points = robot.limbs[shape.limb].name, np.asarray(shape.points)
        if points.ndim != 2 or points.shape[1:] != (3,) or not np.isfinite(points).all():
            raise MeasurementError(
                f"limb '{name}': points of shape {points.shape} (expected: finite numbers (k, 3))"
            )
        if not shape.sigma > 0.0:
            raise MeasurementError(
                f"limb '{name}': noise of {shape.sigma} m (expected: a standard deviation > 0)"
            )
        if shape.s is None:
            continue
        length = float(lengths[shape.limb])
        s = np.asarray(shape.s)
        if s.shape != (len(points),) or not np.isfinite(s).all():
            raise MeasurementError(
                f"limb '{name}': {s.size} arc lengths for {len(points)} points (expected: one "
                "each)"
            )
        if s.size and (s.min() < -1e-9 or s.max() > length + 1e-9):
            raise MeasurementError(
                f"limb '{name}': arc lengths {s.min():.4g} .. {s.max():.4g} m (expected: within "
                f"the rod, 0 .. {length:.4g} m)"
            )


def check_bases(robot: RodRobot, bases: BaseMeasurement) -> Array:
    """Return the covariances of the wrenches, shape (n, 6, 6).

    Raises:
        MeasurementError: Wrong shapes, numbers that are not finite, or no covariance.
    """
    n = robot.n_limbs
    if np.shape(bases.wrenches) != (n, 6) or not np.isfinite(bases.wrenches).all():
        raise MeasurementError(
            f"base wrenches of shape {np.shape(bases.wrenches)} (expected: finite numbers of "
            f"shape ({n}, 6))"
        )
    covariance = np.asarray(bases.covariance, dtype=float)
    if covariance.shape not in ((6, 6), (n, 6, 6)) or not np.isfinite(covariance).all():
        raise MeasurementError(
            f"covariance of shape {covariance.shape} (expected: (6, 6) or ({n}, 6, 6))"
        )
    if np.linalg.eigvalsh(covariance).min() <= 0.0:
        raise MeasurementError("a covariance that is not positive definite (expected: noise > 0)")
    return np.broadcast_to(covariance, (n, 6, 6))


def simulated_shapes(
    solver: RodRobotSolver,
    solution: Solution,
    points: int,
    sigma: float,
    rng: np.random.Generator,
    *,
    markers: bool = True,
) -> tuple[ShapeMeasurement, ...]:
    """Return noisy points on all rods.

    Args:
        solver: Of the robot.
        solution: Its state.
        points: Per rod, at equal distances, the last at the tip.
        sigma: Standard deviation of the noise of each coordinate, [m].
        rng: Source of the noise.
        markers: Whether the arc lengths of the points are told.

    Raises:
        MeasurementError: ``sigma`` is not finite and > 0, or there are no points.
    """
    finite_number(points, "points per rod", at_least=1.0, error=MeasurementError)
    sigma = finite_number(sigma, "noise of points [m]", above=0.0, error=MeasurementError)
    limbs, out = Limbs(solver, solution.q), []
    for i in range(solver.robot.n_limbs):
        s = np.linspace(0.0, float(limbs.lengths[i]), points + 1)[1:]
        exact = limbs.curve(i, solution.base_wrenches[i], s).points
        noisy = exact + sigma * rng.standard_normal(exact.shape)
        out.append(ShapeMeasurement(i, noisy, sigma, s if markers else None))
    return tuple(out)


def simulated_bases(
    solution: Solution, sigma_force: float, sigma_moment: float, rng: np.random.Generator
) -> BaseMeasurement:
    """Return noisy wrenches at the bases; noise in [N] and [N m] of every component.

    Args:
        solution: The equilibrium.
        sigma_force: Standard deviation of a force component, [N].
        sigma_moment: Standard deviation of a moment component, [N m].
        rng: Source of the noise.
    """
    noise = rng.standard_normal(solution.base_wrenches.shape)
    scale = np.repeat([sigma_force, sigma_moment], 3)
    return BaseMeasurement.of(solution.base_wrenches + noise * scale, sigma_force, sigma_moment)
