"""Measurements as a robot would give them: an equilibrium, looked at with noise."""

from __future__ import annotations

import numpy as np

from cards_core.checks import finite_number
from cards_core.rods.analysis.limb_curve import Limbs
from cards_core.rods.analysis.measurements import (
    BaseMeasurement,
    MeasurementError,
    ShapeMeasurement,
)
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver


def measured_shapes(
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


def measured_bases(
    solution: Solution, sigma_force: float, sigma_moment: float, rng: np.random.Generator
) -> BaseMeasurement:
    """Return noisy wrenches at the bases; noise in [N] and [N m] of every component."""
    noise = rng.standard_normal(solution.base_wrenches.shape)
    scale = np.repeat([sigma_force, sigma_moment], 3)
    return BaseMeasurement.of(solution.base_wrenches + noise * scale, sigma_force, sigma_moment)
