"""The wrench on the plate, fitted to all measurements of a robot at once.

At given joints the wrench W decides the equilibrium, so it is the only unknown (six numbers, three
in the plane). With the limb equations linearised, ``A_i dw_i + D_i dx = 0``, and the stiffness K,
a change of the wrench moves the plate and changes the wrenches at the bases by::

    K dx = dW        dw_i = -A_i^-1 D_i dx

and points on the rods by the derivative of a rod by the wrench at its base (`limb_curve`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from cards_core.rods.analysis.limb_curve import Limbs
from cards_core.rods.analysis.limb_fit import covariance_of, damped_step, point_rows
from cards_core.rods.analysis.measurements import MeasurementError, ShapeMeasurement
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.shooting import scales
from cards_core.rods.tracking.initial_search import find_equilibrium
from cards_core.typing import Array

ITERATIONS = 60
"""Most steps; from rest it takes about five."""

UNSEEN = 1e-8
"""Directions of the wrench that change what is measured by less than this, relative to the best
seen, are not determined."""

CONVERGED = 1e-5
"""Steps that change the residuals by less than this part of their noise are the last."""

TOLERANCE = 1e-11
"""Of the equilibria, scaled as in `SolverSettings`."""

_FINE: WeakKeyDictionary[RodRobotSolver, RodRobotSolver] = WeakKeyDictionary()

LOADS = 4
"""Fractions of a guessed wrench over which it is put on, so that no branch is left."""


@dataclass(frozen=True, eq=False)
class RobotFit:
    """A fitted robot; see `WrenchEstimate`."""

    wrench: Array
    covariance: Array
    solution: Solution
    chi2: float
    dof: int
    observable: int


def fit_robot(
    solver: RodRobotSolver,
    limbs: Limbs,
    q: Array,
    shapes: tuple[ShapeMeasurement, ...],
    *,
    bases: Array | None,
    covariances: Array | None,
    guess: Array | None,
) -> RobotFit:
    """Fit the wrench on the plate; arguments as of `force_sensing.from_robot`.

    Raises:
        MeasurementError: Too little was measured, or no equilibrium meets it.
    """
    slots, fine = solver.slots, _fine(solver)
    state = _at_rest(solver, fine, q, guess)
    W = np.zeros(6) if guess is None else np.array(guess, dtype=float)
    whiten = None if covariances is None else np.linalg.inv(np.linalg.cholesky(covariances))
    length = float(limbs.lengths.mean())
    unit = scales(solver.robot.limbs[0].rod, length)[6:]
    arcs: list[Array | None] = [None] * len(shapes)

    def rows(state: Solution) -> tuple[Array, Array]:
        by_plate = np.zeros((solver.robot.n_limbs, 6, 6))
        blocks = fine.linearise(state, wrench=state.external_wrench)
        small = -np.linalg.solve(blocks.A, blocks.D)
        compliance = np.linalg.inv(state.stiffness[np.ix_(slots, slots)])
        by_plate[:, slots[:, None], slots] = small @ compliance
        r, J = [], []
        for k, shape in enumerate(shapes):
            w = state.base_wrenches[shape.limb]
            if shape.s is None:
                arcs[k] = limbs.feet(shape.limb, w, shape.points, arcs[k])
            s = np.asarray(shape.s if shape.s is not None else arcs[k])
            order = np.argsort(s)
            curve = limbs.curve(shape.limb, w, s[order])
            known = shape.s is not None
            values, slope = point_rows(curve, shape.points[order], shape.sigma, along=known)
            r.append(values)
            J.append(slope @ by_plate[shape.limb])
        if bases is not None and whiten is not None:
            r.append(np.einsum("nij,nj->ni", whiten, state.base_wrenches - bases).ravel())
            J.append((whiten @ by_plate).reshape(-1, 6))
        if not r:
            raise MeasurementError("nothing was measured (expected: shapes or base wrenches)")
        return np.concatenate(r), np.vstack(J)[:, slots] * unit[slots]

    damping = 1e-6
    r, J = rows(state)
    for _ in range(ITERATIONS):
        step = np.zeros(6)
        step[slots] = damped_step(J, r, damping)
        if np.linalg.norm(J @ step[slots]) < CONVERGED:
            break
        trial = fine.dgm(q, wrench=W + step * unit, start=state)
        better = False
        if trial.converged and trial.min_eigenvalue > 0.0:
            kept = list(arcs)
            try_r, try_J = rows(trial)
            better = bool(try_r @ try_r <= r @ r * (1.0 + 1e-9) + 1e-9)
            if not better:
                arcs[:] = kept
        if better:
            W, state, r, J = W + step * unit, trial, try_r, try_J
            damping = max(0.1 * damping, 1e-15)
        else:
            damping = max(10.0 * damping, 1e-8)
    else:
        raise MeasurementError(
            "no equilibrium of the robot meets what was measured (expected: points in the world "
            "frame, at the joint coordinates given, on the branch that the robot has from home)"
        )
    values = np.linalg.svd(J, compute_uv=False)
    observable = int((values > UNSEEN * values[0]).sum()) if len(J) else 0
    if observable < len(slots):
        raise MeasurementError(
            f"what was measured determines {observable} of {len(slots)} components of the wrench "
            "(expected: more points, or points of more limbs)"
        )
    covariance = np.zeros((6, 6))
    covariance[np.ix_(slots, slots)] = covariance_of(J)
    return RobotFit(
        W, covariance * np.outer(unit, unit), state, float(r @ r), len(r) - len(slots), observable
    )


def _fine(solver: RodRobotSolver) -> RodRobotSolver:
    """Return the same solver with a tolerance small enough for smooth residuals."""
    if solver not in _FINE:
        settings = replace(solver.settings, tolerance=TOLERANCE)
        _FINE[solver] = RodRobotSolver(
            solver.robot, settings, base=solver.base, gravity=solver.gravity
        )
    return _FINE[solver]


def _at_rest(
    solver: RodRobotSolver, fine: RodRobotSolver, q: Array, guess: Array | None
) -> Solution:
    """Return the equilibrium at the joints with the guessed wrench."""
    zero = np.zeros(6)
    found = find_equilibrium(solver, q=q, wrench=zero)
    solution = found.solution
    if solution is None:
        raise MeasurementError(
            f"no equilibrium at these joint coordinates: {found.message or found.status.name} "
            "(expected: joints at which the robot holds its plate)"
        )
    load = zero if guess is None else np.asarray(guess, dtype=float)
    for k in range(1, LOADS + 1):
        solution = fine.dgm(q, wrench=load * (k / LOADS), start=solution)
        if not solution.converged:
            raise MeasurementError("no equilibrium under the guessed wrench (expected: another)")
    return solution
