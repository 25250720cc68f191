"""The wrench that balances the plate, given the wrenches at the rods' bases.

The plate's pose x, where it is not given, is the one that fits the rods' tips: least squares of
what the plate's joints do not leave free (5.2 of the model: e_p and e_R in the joint's frame)::

    e_p = R_J' (p_bar - p_J)      e_R = log(R_J' R_bar)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.rods.analysis.limb_curve import LimbCurve, Limbs
from cards_core.rods.analysis.measurements import MeasurementError
from cards_core.rods.robots.robot import Limb, TipKind
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.tracking.targets import moved
from cards_core.spatial import hat, rotation_log
from cards_core.typing import Array

ITERATIONS = 30
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
    for _ in range(ITERATIONS):
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
    """Return the difference of a joint's two sides in the directions that it locks."""
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
