"""Newton's method on the equations of one rod; a homotopy and a relaxation where it fails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.rods.shooting import ShootingProblem, solve_band
from cards_core.typing import Array

LARGEST_TURN = 0.7
"""Largest rotation of a section in one step, [rad]."""

LARGEST_SHIFT = 0.3
"""Largest move of a section in one step, in lengths of the rod."""

SMALLEST_PART = 1.0 / 64.0
"""Smallest part of a step that is tried before Newton's method gives up."""

START_DRAG = 100.0
"""Drag to begin a relaxation with, in EI/L; the first bending modes have eigenvalues like it."""

NEUTRAL_DRAG = 1.0
"""Drag of Newton's method over the scaled residual, in EI/L."""

FLOOR = 1e-7
"""Scaled residual that is good enough where Newton's method gets no further: a rod that can move
without force is moved by rounding."""

CALM = 1.0
"""Scaled residual below which the drag of a relaxation falls with the residual."""

CREEP_TURN, CREEP_SHIFT = 0.4, 0.15
"""Largest turn [rad] and move [lengths] of a section in one step of a relaxation."""


@dataclass(frozen=True)
class NewtonResult:
    """Where an iteration ended.

    Attributes:
        nodes: States, shape (k, 18).
        error: Largest scaled residual.
        iterations: Jacobians that were formed.
        converged: The error is within the tolerance.
    """

    nodes: Array
    error: float
    iterations: int
    converged: bool


def newton(
    problem: ShootingProblem,
    nodes: Array,
    *,
    tolerance: float,
    target: Array | float = 0.0,
    limit: int = 60,
) -> NewtonResult:
    """Solve ``residual(nodes) = target``; steps are shortened until the residual falls.

    Args:
        problem: The equations.
        nodes: First guess, shape (k, 18).
        tolerance: Largest scaled residual at the end.
        target: Wanted residual, shape (12 k,).
        limit: Largest number of iterations.
    """
    error = 0.0
    for iteration in range(limit + 1):
        # a rod that can move without force has a singular Jacobian: a drag that falls with the
        # residual holds it, and leaves the convergence quadratic
        residual, band = problem.linearised(nodes, NEUTRAL_DRAG * min(error, 1.0))
        residual = residual - target
        size = float(np.linalg.norm(residual))
        error = float(np.abs(residual).max())
        if error <= tolerance or not np.isfinite(size) or iteration == limit:
            return NewtonResult(nodes, error, iteration, error <= tolerance)
        try:
            step = solve_band(band, residual)
        except np.linalg.LinAlgError:
            return NewtonResult(nodes, error, iteration, converged=False)
        if not np.isfinite(step).all():
            return NewtonResult(nodes, error, iteration, converged=False)
        each = np.abs(step.reshape(-1, 12))
        part = min(
            1.0,
            LARGEST_TURN / max(float(each[:, 3:6].max()), 1e-30),
            LARGEST_SHIFT / max(float(each[:, :3].max()), 1e-30),
        )
        while True:
            tried = problem.moved(nodes, part * step)
            with np.errstate(all="ignore"):
                found = float(np.linalg.norm(problem.residual(tried) - target))
            if found < (1.0 - 1e-4 * part) * size:
                nodes = tried
                break
            part *= 0.5
            if part < SMALLEST_PART:
                return NewtonResult(nodes, error, iteration, error <= max(tolerance, FLOOR))
    raise AssertionError("unreachable")


def homotopy(
    problem: ShootingProblem, nodes: Array, *, tolerance: float, budget: int = 150
) -> NewtonResult:
    """Lead the residual of a guess to zero: ``residual(nodes) = (1 - t) residual(guess)``.

    The guess solves it for t = 0; t grows as fast as Newton's method follows. In the terms of a
    rod: its ends and loads are moved from where the guess has them to where they belong.

    Args:
        problem: The equations.
        nodes: Guess, shape (k, 18).
        tolerance: Largest scaled residual at the end.
        budget: Largest number of iterations over all.
    """
    start = problem.residual(nodes)
    done, stride, spent = 0.0, 0.1, 0
    while spent < budget and stride > 1e-4 and np.isfinite(start).all():
        t = min(done + stride, 1.0)
        result = newton(
            problem,
            nodes,
            tolerance=tolerance if t == 1.0 else 1e-3 * tolerance**0.5,
            target=(1.0 - t) * start,
            limit=12,
        )
        spent += max(result.iterations, 1)
        if not result.converged:
            stride *= 0.4
            continue
        done, nodes = t, result.nodes
        if done == 1.0:
            return NewtonResult(nodes, result.error, spent, converged=True)
        stride *= 1.6 if result.iterations <= 4 else 1.0
    error = float(np.abs(problem.residual(nodes)).max())
    return NewtonResult(nodes, error, spent, converged=False)


def relax(
    problem: ShootingProblem, nodes: Array, *, tolerance: float, limit: int = 150
) -> NewtonResult:
    """Let the rod creep downhill in energy until it rests (pseudo-transient continuation).

    Implicit steps of ``drag dX/dt = forces`` on the cuts. The drag falls with the residual, so
    that the last steps are Newton's; while it is larger than the negative eigenvalues of the
    second variation, unstable equilibria repel.

    Args:
        problem: The equations.
        nodes: Where to let go, shape (k, 18).
        tolerance: Largest scaled residual at the end.
        limit: Largest number of iterations.
    """
    error = np.inf
    for iteration in range(limit):
        residual, band = problem.linearised(nodes, START_DRAG * min(1.0, error / CALM))
        error = float(np.abs(residual).max())
        if error <= tolerance or not np.isfinite(error):
            return NewtonResult(nodes, error, iteration, error <= tolerance)
        try:
            step = solve_band(band, residual)
        except np.linalg.LinAlgError:
            break
        if not np.isfinite(step).all():
            break
        each = np.abs(step.reshape(-1, 12))
        excess = max(
            float(each[:, 3:6].max()) / CREEP_TURN, float(each[:, :3].max()) / CREEP_SHIFT, 1.0
        )
        nodes = problem.moved(nodes, step / excess)
    return NewtonResult(nodes, error, limit, converged=False)
