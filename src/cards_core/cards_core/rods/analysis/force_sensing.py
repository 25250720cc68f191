"""Estimates the wrench on the plate from measurements of the rods.

Flexible robots are force sensors. With w_i the wrench at the base of rod i, the tip wrench
(n_L, m_L) follows by integration, and the plate is in balance::

    F = sum n_L - m g        M = sum [m_L + (p_L - x) x n_L] - (R c) x m g

The plate's pose x, where it is not given, is the one that fits the rods' tips: least squares of
what the plate's joints do not leave free (`fitted_pose`)::

    e_p = R_J' (p_bar - p_J)      e_R = log(R_J' R_bar)

Three ways to the w_i, from the least assumptions to the best numbers:

* `from_bases`: they are measured, by a force sensor under each base;
* `from_limbs`: points on each rod are measured, and w_i is fitted to them, rod by rod. What the
  plate's joint does not transmit is known to be zero and counts as measured;
* `from_robot`: the only unknown is the wrench on the plate: joints and wrench decide the shape of
  the whole robot (the direct model), which is fitted to all points, measured base wrenches, or
  both, at once.

All give a covariance, from the noise that the measurements declare, by linear propagation with
exact derivatives, and chi^2 of the residuals: whether model and noise explain what was measured.
Joint coordinates are taken as exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2 as chi_squared
from scipy.stats import norm

from cards_core.checks import finite_number
from cards_core.rods.analysis.measurements import (
    BaseMeasurement,
    LimbCurve,
    Limbs,
    MeasurementError,
    ShapeMeasurement,
    check_bases,
    check_shapes,
)
from cards_core.rods.analysis.wrench_fit import fit_limb, fit_robot
from cards_core.rods.robots.initial_guess import InitialGuess, hermite_guess
from cards_core.rods.robots.limb_failure import yield_findings
from cards_core.rods.robots.robot import Limb, TipKind
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import Finding
from cards_core.rods.tracking.initial_search import find_equilibrium
from cards_core.rods.tracking.targets import moved
from cards_core.spatial import hat, rotation_log
from cards_core.typing import Array

POSE_ITERATIONS = 30
"""Most Gauss-Newton steps of the plate's pose; it takes about four."""

DIFFERENCE = 1e-6
"""Step of the differences of the joints' errors, [m] and [rad]; they err by its square."""


@dataclass(frozen=True, eq=False)
class Balance:
    """A plate in balance.

    Attributes:
        wrench: On the plate about its origin, world axes, shape (6,).
        by_wrench: Its derivative by the base wrenches, shape (6, n, 6).
        pose: Plate pose, shape (4, 4).
    """

    wrench: Array
    by_wrench: Array
    pose: Array


def plate_balance(
    solver: RodRobotSolver, limbs: Limbs, wrenches: Array, pose: Array | None
) -> Balance:
    """Return the external wrench for which the plate is in balance.

    Args:
        solver: Of the robot.
        limbs: Its rods at the joint coordinates.
        wrenches: n, m at their starts, shape (n, 6).
        pose: Plate pose, shape (4, 4); None: from the tips.

    Raises:
        MeasurementError: No plate fits the tips.
    """
    robot, slots = solver.robot, solver.slots
    curves = [limbs.curve(i, wrenches[i], np.empty(0)) for i in range(robot.n_limbs)]
    if pose is None:
        x, x_by_wrench = fitted_pose(solver, curves)
    else:
        x, x_by_wrench = np.asarray(pose, dtype=float), np.zeros((6, robot.n_limbs, 6))
    plate = robot.plate
    force = plate.mass * np.asarray(solver.gravity)
    arm = x[:3, :3] @ plate.com
    out = -np.concatenate([force, np.cross(arm, force)])
    slope = np.zeros((6, robot.n_limbs, 6))
    pull = np.zeros(3)
    for i, curve in enumerate(curves):
        n, m, lever = curve.tip[12:15], curve.tip[15:], curve.tip[:3] - x[:3, 3]
        out += np.concatenate([n, m + np.cross(lever, n)])
        dp, dn, dm = (curve.tip_by_wrench[k : k + 3] for k in (0, 6, 9))
        slope[:3, i] += dn
        slope[3:, i] += dm + hat(lever) @ dn - hat(n) @ dp
        pull += n
    # the plate moves with the tips: levers and the arm of its weight change
    slope[3:] += np.tensordot(hat(pull), x_by_wrench[:3], 1)
    slope[3:] -= np.tensordot(hat(force) @ hat(arm), x_by_wrench[3:], 1)
    keep = np.zeros(6)
    keep[slots] = 1.0
    return Balance(out * keep, slope * keep[:, None, None], x)


def fitted_pose(solver: RodRobotSolver, curves: list[LimbCurve]) -> tuple[Array, Array]:
    """Return the plate pose that fits the rods' tips, and its derivative, (6, n, 6).

    Raises:
        MeasurementError: The tips do not determine it, or are no tips of this robot's.
    """
    robot, slots = solver.robot, solver.slots
    tips = [_tip_pose(curve.tip) for curve in curves]
    pairs = list(zip(robot.limbs, tips, strict=True))

    def errors(x: Array) -> Array:
        return np.concatenate([joint_error(limb, x, tip, robot.planar) for limb, tip in pairs])

    x = solver.base @ robot.home_pose
    for _ in range(POSE_ITERATIONS):
        jacobian = _differences(lambda step, x=x: errors(moved(x, step)))[:, slots]
        if np.linalg.matrix_rank(jacobian) < len(slots):
            raise MeasurementError(
                "the rods' tips do not determine the plate's pose (expected: a pose that is given)"
            )
        step = np.zeros(6)
        step[slots] = -np.linalg.lstsq(jacobian, errors(x), rcond=None)[0]
        x = moved(x, step)
        if np.abs(step).max() < 1e-10:
            break
    else:
        raise MeasurementError("no pose of the plate fits the rods' tips (expected: small errors)")
    inverse = np.linalg.pinv(jacobian)
    out, row = np.zeros((6, robot.n_limbs, 6)), 0
    for i, ((limb, tip), curve) in enumerate(zip(pairs, curves, strict=True)):
        by_tip = _differences(
            lambda step, limb=limb, tip=tip: joint_error(limb, x, moved(tip, step), robot.planar)
        )
        rows = slice(row, row + len(by_tip))
        out[slots, i] = -inverse[:, rows] @ by_tip @ curve.tip_by_wrench[:6]
        row += len(by_tip)
    return x, out


def joint_error(limb: Limb, x: Array, tip: Array, planar: bool) -> Array:
    """Return the difference of a joint's two sides in the directions that it locks.

    Args:
        limb: The limb.
        x: Plate pose, shape (4, 4).
        tip: Pose of the rod's tip, shape (4, 4), same frame.
        planar: Whether the robot moves in the plane.

    Returns:
        Distances [m], then angles [rad], frame of the joint (planar robots: the world), one for
        each direction that is locked.
    """
    joint = x @ limb.tip.joint_pose
    bar = tip @ np.linalg.inv(limb.tip.attach)
    turn = joint[:3, :3].T @ bar[:3, :3]
    error = np.concatenate([joint[:3, :3].T @ (bar[:3, 3] - joint[:3, 3]), rotation_log(turn)])
    if limb.tip.kind is TipKind.UNIVERSAL:
        return np.append(error[:3], turn[0, 1])  # x of the plate's side . y of the rod's
    if planar:
        world = np.concatenate([joint[:3, :3] @ error[:3], joint[:3, :3] @ error[3:]])
        return world[[0, 1]] if limb.tip.kind.free[5] else world[[0, 1, 5]]
    return error[~limb.tip.kind.free]


def _tip_pose(state: Array) -> Array:
    pose = np.eye(4)
    pose[:3, 3], pose[:3, :3] = state[:3], state[3:12].reshape(3, 3)
    return pose


def _differences(function: object) -> Array:
    """Return the Jacobian of a function of a step [dp, dphi] at zero, by central differences."""
    assert callable(function)
    columns = []
    for k in range(6):
        step = np.zeros(6)
        step[k] = DIFFERENCE
        columns.append((function(step) - function(-step)) / (2.0 * DIFFERENCE))
    return np.array(columns).T


@dataclass(frozen=True, eq=False)
class WrenchEstimate:
    """An estimated wrench on the plate.

    Attributes:
        wrench: Force and moment about the plate's origin, world axes, shape (6,), [N], [N m].
        covariance: Of it, shape (6, 6).
        pose: Plate pose that belongs to it, shape (4, 4).
        base_wrenches: n, m at the rods' starts, shape (n, 6).
        chi2: Sum of squared residuals over their standard deviations.
        dof: Number of residuals minus number of unknowns; chi2 should be near it.
        observable: Number of directions of the wrench that the measurements determine.
        findings: YIELD for each rod whose material yields in the estimated state: the real rod
            then is softer than the model, and so is the estimate not to be trusted.
    """

    wrench: Array
    covariance: Array
    pose: Array
    base_wrenches: Array
    chi2: float
    dof: int
    observable: int
    findings: tuple[Finding, ...] = ()

    @property
    def sigma(self) -> Array:
        """Standard deviation of each component, shape (6,), [N], [N m]."""
        return np.sqrt(np.diag(self.covariance))

    def interval(self, confidence: float = 0.95) -> Array:
        """Return half the width of each component's confidence interval, shape (6,).

        Raises:
            CardsError: ``confidence`` is not between 0 and 1.
        """
        confidence = finite_number(confidence, "confidence", above=0.0, below=1.0)
        return np.asarray(self.sigma * norm.ppf(0.5 + 0.5 * confidence))

    @property
    def p_value(self) -> float:
        """Probability of a chi2 at least as large if model and noise are right; 1 without dof."""
        return float(chi_squared.sf(self.chi2, self.dof)) if self.dof > 0 else 1.0

    def error2(self, wrench: Array) -> float:
        """Return ``e' C^-1 e`` of a wrench that is known: chi^2 distributed, `observable` dof."""
        e = np.asarray(wrench) - self.wrench
        scale = np.where(self.sigma > 0.0, self.sigma, 1.0)
        values, vectors = np.linalg.eigh(self.covariance / np.outer(scale, scale))
        kept = values > 1e-12 * max(float(values.max()), 1e-300)
        along = vectors.T[kept] @ (e / scale)
        return float(np.sum(along**2 / values[kept]))


def from_bases(
    solver: RodRobotSolver, q: Array, bases: BaseMeasurement, *, pose: Array | None = None
) -> WrenchEstimate:
    """Estimate from measured base wrenches, by balance alone.

    Args:
        solver: Of the robot.
        q: Joint coordinates, shape (n,), [m] or [rad].
        bases: The measurement.
        pose: Plate pose, shape (4, 4), if it is known exactly; else it follows from the tips.

    Raises:
        MeasurementError: Measurements that cannot be used.
    """
    covariances = check_bases(solver.robot, bases)
    limbs = Limbs(solver, q)
    return _balanced(solver, limbs, bases.wrenches, covariances, pose=pose, chi2=0.0, dof=0)


def from_limbs(
    solver: RodRobotSolver,
    q: Array,
    shapes: tuple[ShapeMeasurement, ...],
    *,
    pose: Array | None = None,
) -> WrenchEstimate:
    """Estimate from the shapes of all rods, each fitted alone.

    Args:
        solver: Of the robot.
        q: Joint coordinates, shape (n,), [m] or [rad].
        shapes: One measurement per limb.
        pose: Plate pose, shape (4, 4), if it is known exactly; else it follows from the tips.

    Raises:
        MeasurementError: A limb without enough points, or points that no shape of it meets.
    """
    robot, limbs = solver.robot, Limbs(solver, q)
    check_shapes(robot, shapes, limbs.lengths)
    by_limb = {shape.limb: shape for shape in shapes}
    missing = [limb.name for i, limb in enumerate(robot.limbs) if i not in by_limb]
    if missing or len(by_limb) != len(shapes):
        raise MeasurementError(
            f"no points of {', '.join(missing) or 'different limbs'} (expected: one measurement "
            "of every limb; the method 'robot' works with some of them)"
        )
    found = find_equilibrium(solver, q=q).solution
    start = found or hermite_guess(robot, robot.home_pose, q)
    fits = [
        fit_limb(solver, limbs, by_limb[i], start.base_wrenches[i], pose)
        for i in range(robot.n_limbs)
    ]
    return _balanced(
        solver,
        limbs,
        np.array([fit.wrench for fit in fits]),
        np.array([fit.covariance for fit in fits]),
        pose=pose,
        chi2=sum(fit.chi2 for fit in fits),
        dof=sum(fit.dof for fit in fits),
    )


def from_robot(
    solver: RodRobotSolver,
    q: Array,
    shapes: tuple[ShapeMeasurement, ...] = (),
    bases: BaseMeasurement | None = None,
    *,
    guess: Array | None = None,
) -> WrenchEstimate:
    """Estimate from any measurements, with the model of the whole robot.

    Args:
        solver: Of the robot.
        q: Joint coordinates, shape (n,), [m] or [rad].
        shapes: Points on any of the rods.
        bases: Base wrenches, if measured.
        guess: Wrench to start from, shape (6,); default: none at all.

    Raises:
        MeasurementError: Too little was measured, or no equilibrium meets it.
    """
    limbs = Limbs(solver, q)
    check_shapes(solver.robot, shapes, limbs.lengths)
    covariances = None if bases is None else check_bases(solver.robot, bases)
    wrenches = None if bases is None else bases.wrenches
    fit = fit_robot(solver, limbs, q, shapes, bases=wrenches, covariances=covariances, guess=guess)
    return WrenchEstimate(
        fit.wrench,
        fit.covariance,
        fit.solution.pose.copy(),
        fit.solution.base_wrenches.copy(),
        fit.chi2,
        fit.dof,
        fit.observable,
        tuple(yield_findings(solver.robot, solver, fit.solution)),
    )


def _balanced(
    solver: RodRobotSolver,
    limbs: Limbs,
    wrenches: Array,
    covariances: Array,
    *,
    pose: Array | None,
    chi2: float,
    dof: int,
) -> WrenchEstimate:
    """Return the wrench that balances the plate, with its covariance."""
    balance = plate_balance(solver, limbs, wrenches, pose)
    covariance = np.einsum(
        "aib,ibc,dic->ad", balance.by_wrench, covariances, balance.by_wrench, optimize=True
    )
    state = solver.residual(InitialGuess(limbs.q, balance.pose, np.asarray(wrenches)))
    return WrenchEstimate(
        balance.wrench, covariance, balance.pose, np.asarray(wrenches), chi2, dof,
        len(solver.slots), tuple(yield_findings(solver.robot, solver, state)),
    )  # fmt: skip
