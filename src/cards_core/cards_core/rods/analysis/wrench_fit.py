"""Wrenches fitted to measurements: at a rod's base (`fit_limb`), on the plate (`fit_robot`).

**One rod.** Gauss-Newton with Levenberg's damping on ``(p_measured - p(s; w)) / sigma``. A rod
shows some components of w far better than others: the moment of torsion and, in a straight rod,
the axial force hardly change its centre line. What the plate's joint leaves free carries no force
or moment and is added as a measurement without noise; what still is not seen has a large variance.

**The whole robot.** At given joints the wrench W on the plate decides the equilibrium, so it is
the only unknown (six numbers, three in the plane). With the limb equations linearised,
``A_i dw_i + D_i dx = 0``, and the stiffness K, a change of the wrench moves the plate and changes
the wrenches at the bases by::

    K dx = dW        dw_i = -A_i^-1 D_i dx

and points on the rods by the derivative of a rod by the wrench at its base.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from cards_core.rods.analysis.measurements import (
    LimbCurve,
    Limbs,
    MeasurementError,
    ShapeMeasurement,
)
from cards_core.rods.robots.robot import Limb, TipKind
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.shooting import scales
from cards_core.rods.tracking.initial_search import find_equilibrium
from cards_core.spatial import hat
from cards_core.typing import Array

EXACT = (1e-1, 1e-3, 1e-5)
"""Standard deviation of what is known to be zero, in units of EI/L^2 and EI/L, in turn: a fit that
begins with the last creeps along a curved valley."""

VAGUE = 1e3
"""Standard deviation, in the same units, that the wrench is granted before anything is measured:
what is not seen at all then has this instead of an infinite one."""

CONVERGED = 1e-5
"""Steps that change the residuals by less than this part of their noise are the last."""

LIMB_ITERATIONS = 40
"""Most steps of each turn of a fit; from a good start it takes about five."""


@dataclass(frozen=True, eq=False)
class LimbFit:
    """A fitted rod.

    Attributes:
        wrench: n, m at the start, world axes, shape (6,).
        covariance: Shape (6, 6).
        chi2: Of the points.
        dof: Measured numbers minus unknowns that they determine.
    """

    wrench: Array
    covariance: Array
    chi2: float
    dof: int


def fit_limb(
    solver: RodRobotSolver,
    limbs: Limbs,
    shape: ShapeMeasurement,
    start: Array,
    pose: Array | None = None,
) -> LimbFit:
    """Fit the wrench at the start of one rod.

    Args:
        solver: Of the robot.
        limbs: Its rods at the joint coordinates.
        shape: Points of the rod.
        start: Wrench to start from, shape (6,).
        pose: Plate pose, if known; a universal joint's axis on the plate follows from it.

    Raises:
        MeasurementError: No shape of the rod meets the points.
    """
    robot, slots = solver.robot, solver.slots
    limb, length = robot.limbs[shape.limb], float(limbs.lengths[shape.limb])
    unit = scales(limb.rod, length)[6:]
    known = shape.s is not None

    def rows(w: Array, near: Array | None, exact: float) -> tuple[Array, Array, Array, int]:
        """Return residuals, Jacobian, arc lengths, and how many rows are measured ones."""
        arcs = np.asarray(shape.s) if known else limbs.feet(shape.limb, w, shape.points, near)
        order = np.argsort(arcs)
        curve = limbs.curve(shape.limb, w, arcs[order])
        r, J = point_rows(curve, shape.points[order], shape.sigma, along=known)
        zero, slope = free_rows(limb, curve, unit, pose, planar=robot.planar)
        r = np.concatenate([r, zero / exact, w / unit / VAGUE])
        J = np.vstack([J * unit, slope * unit / exact, np.eye(6) / VAGUE])
        return r, J[:, slots], arcs, len(r) - 6

    w, arcs = np.array(start, dtype=float), None
    for exact in EXACT:
        damping, done = 1e-3, False
        r, J, arcs, measured = rows(w, arcs, exact)
        for _ in range(LIMB_ITERATIONS):
            step = np.zeros(6)
            step[slots] = damped_step(J, r, damping)
            done = bool(np.linalg.norm(J @ step[slots]) < CONVERGED)
            if done:
                break
            trial = rows(w + step * unit, arcs, exact)
            if np.isfinite(trial[0]).all() and trial[0] @ trial[0] <= r @ r * (1.0 + 1e-9) + 1e-9:
                w, (r, J, arcs, measured) = w + step * unit, trial
                damping = max(0.1 * damping, 1e-15)
            else:
                damping = max(10.0 * damping, 1e-8)
    if not done:
        raise MeasurementError(
            f"limb '{limb.name}': no shape of the rod meets its points (expected: points of this "
            "rod, in the world frame, at the joint coordinates given)"
        )
    covariance = np.zeros((6, 6))
    covariance[np.ix_(slots, slots)] = covariance_of(J)
    seen = r[:measured]
    return LimbFit(w, covariance * np.outer(unit, unit), float(seen @ seen), measured - len(slots))


def damped_step(J: Array, r: Array, damping: float) -> Array:
    """Return ``-(J'J + damping diag(J'J))^-1 J'r`` without squaring the condition of J.

    Args:
        J: Jacobian, shape (k, n).
        r: Residual, shape (k,).
        damping: Damping factor >= 0 [1].
    """
    diagonal = np.sqrt(damping * np.einsum("ij,ij->j", J, J))
    rows = np.vstack([J, np.diag(diagonal)])
    return np.asarray(
        np.linalg.lstsq(rows, -np.concatenate([r, np.zeros(len(diagonal))]), rcond=None)[0]
    )


def covariance_of(J: Array) -> Array:
    """Return ``(J'J)^-1``; the columns of J must be independent."""
    upper = np.linalg.inv(np.linalg.qr(J, mode="r"))
    return np.asarray(upper @ upper.T)


def point_rows(
    curve: LimbCurve, points: Array, sigma: float, *, along: bool
) -> tuple[Array, Array]:
    """Return ``(p(s) - p_measured) / sigma`` and its derivative by the wrench at the start.

    Args:
        curve: The rod at the points' arc lengths.
        points: Measured, shape (k, 3).
        sigma: Of each coordinate, [m].
        along: Whether the direction along the rod counts: it does where s is known.

    Returns:
        Shapes (3 k,) and (3 k, 6), or (2 k,) and (2 k, 6).
    """
    residual = (curve.points - points) / sigma
    slope = curve.by_wrench[:, :3] / sigma
    if along:
        return residual.reshape(-1), slope.reshape(-1, 6)
    across = curve.states[:, 3:12].reshape(-1, 3, 3)[:, :, :2]
    return (
        np.einsum("kia,ki->ka", across, residual).reshape(-1),
        np.einsum("kia,kij->kaj", across, slope).reshape(-1, 6),
    )


def free_rows(
    limb: Limb, curve: LimbCurve, unit: Array, pose: Array | None, *, planar: bool
) -> tuple[Array, Array]:
    """Return the loads that the plate's joint does not transmit, scaled, and their derivative.

    With the axis a that turns with the tip, ``a . n`` or ``a . (m + d x n)``, d from the joint's
    centre to the tip.

    Args:
        limb: The limb.
        curve: The rod, integrated to its tip.
        unit: Scales of force [N] and moment [Nm], shape (6,).
        pose: Plate pose, shape (4, 4), or None; then a universal joint's axis on the plate is left
            out.
        planar: Whether the robot moves in the plane.

    Returns:
        Shapes (k,), [1], and (k, 6), [1/N] and [1/(Nm)].
    """
    tip, slope = curve.tip, curve.tip_by_wrench
    n, m, turn = tip[12:15], tip[15:], tip[3:12].reshape(3, 3)
    bar = turn @ limb.tip.attach[:3, :3].T
    d = bar @ limb.tip.attach[:3, 3]
    phi, dn, dm = slope[3:6], slope[6:9], slope[9:]
    moment = m + np.cross(d, n)
    d_moment = dm + hat(d) @ dn + hat(n) @ hat(d) @ phi
    values, slopes = [], []
    for slot in np.flatnonzero(limb.tip.kind.free):
        if planar and slot != 5:
            continue
        axis, turns = bar[:, slot % 3], True
        if limb.tip.kind is TipKind.UNIVERSAL and slot == 3:
            if pose is None:
                continue
            axis, turns = (pose @ limb.tip.joint_pose)[:3, 0], False
        load, d_load = (n, dn) if slot < 3 else (moment, d_moment)
        change = axis @ d_load
        if turns:
            change = change + np.cross(axis, load) @ phi
        scale = unit[0] if slot < 3 else unit[3]
        values.append(float(axis @ load) / scale)
        slopes.append(change / scale)
    return np.array(values), np.array(slopes).reshape(-1, 6)


ROBOT_ITERATIONS = 60
"""Most steps; from rest it takes about five."""

UNSEEN = 1e-8
"""Directions of the wrench that change what is measured by less than this, relative to the best
seen, are not determined."""

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
    for _ in range(ROBOT_ITERATIONS):
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
