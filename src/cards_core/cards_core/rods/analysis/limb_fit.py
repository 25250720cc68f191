"""The wrench at the base of one rod, fitted to points on its centre line.

Gauss-Newton with Levenberg's damping on ``(p_measured - p(s; w)) / sigma``. A rod shows some
components of w far better than others: the moment of torsion and, in a straight rod, the axial
force hardly change its centre line. What the plate's joint leaves free carries no force or moment
and is added as a measurement without noise; what still is not seen has a large variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.rods.analysis.limb_curve import LimbCurve, Limbs
from cards_core.rods.analysis.measurements import MeasurementError, ShapeMeasurement
from cards_core.rods.robots.robot import Limb, TipKind
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.shooting import scales
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

ITERATIONS = 40
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
        for _ in range(ITERATIONS):
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
    """Return ``-(J'J + damping diag(J'J))^-1 J'r`` without squaring the condition of J."""
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
