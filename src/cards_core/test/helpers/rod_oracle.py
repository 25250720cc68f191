"""A rod robot solved in the slowest and plainest way: an oracle for the fast solver.

Nothing of the package's solver is used, only the description of the robot. Every rod is integrated
by SciPy's DOP853 with error control, the full residual (6 rows per limb, 6 of the plate) goes to
SciPy's least squares with differences as Jacobian. Seconds per solve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

FREE = {
    "fixed": "000000",
    "revolute": "000001",
    "prismatic": "001000",
    "spherical": "000111",
    "universal": "000110",
    "cylindrical": "001001",
    "planar": "110001",
}


@dataclass
class OracleState:
    q: np.ndarray
    pose: np.ndarray
    base_wrenches: np.ndarray
    residual: float = np.nan


def transform(rotation=None, translation=(0.0, 0.0, 0.0)) -> np.ndarray:
    result = np.eye(4)
    result[:3, :3] = np.eye(3) if rotation is None else rotation
    result[:3, 3] = translation
    return result


def motion(kind: str, q: float) -> np.ndarray:
    if kind == "prismatic":
        return transform(translation=(0, 0, q))
    if kind == "revolute":
        return transform(Rotation.from_rotvec((0, 0, q)).as_matrix())
    return np.eye(4)


def integrate_rod(rod, length, pose, wrench, force, *, rtol=1e-11):
    """Pose and wrench (force, moment, world) at the end of a rod, from those at its start."""
    inverse_se = 1.0 / np.asarray(rod.stiffness_se, dtype=float)
    inverse_bt = 1.0 / np.asarray(rod.stiffness_bt, dtype=float)
    v0, u0 = np.asarray(rod.strain, dtype=float), np.asarray(rod.curvature, dtype=float)

    def rate(s, y):
        R = y[3:12].reshape(3, 3)
        n, m = y[12:15], y[15:18]
        p_s = R @ (v0 + inverse_se * (R.T @ n))
        u = u0 + inverse_bt * (R.T @ m)
        hat = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
        return length * np.concatenate([p_s, (R @ hat).ravel(), -force, -np.cross(p_s, n)])

    y0 = np.concatenate([pose[:3, 3], pose[:3, :3].ravel(), wrench])
    y = solve_ivp(rate, (0, 1), y0, method="DOP853", rtol=rtol, atol=rtol).y[:, -1]
    return transform(y[3:12].reshape(3, 3), y[:3]), y[12:18]


def rod_ends(robot, state):
    ends = []
    for limb, q, wrench in zip(robot.limbs, state.q, state.base_wrenches, strict=True):
        kind = str(limb.base.kind)
        start = limb.base.joint_pose @ motion(kind, q) @ limb.base.attach
        length = q if kind == "extensible" else limb.length
        weight = limb.rod.mass_per_length * np.asarray(robot.gravity)
        ends.append(integrate_rod(limb.rod, length, start, wrench, weight))
    return ends


def residual(robot, state, wrench=None) -> np.ndarray:
    """All 6 n + 6 rows, scaled as section 5.2 of the reference has it."""
    wrench = np.zeros(6) if wrench is None else np.asarray(wrench, dtype=float)
    plate, x = robot.plate, state.pose
    rows = []
    lever = x[:3, :3] @ plate.com
    weight = plate.mass * np.asarray(robot.gravity)
    force, moment = wrench[:3] + weight, wrench[3:] + np.cross(lever, weight)
    scales = []
    for limb, (tip, load) in zip(robot.limbs, rod_ends(robot, state), strict=True):
        stiffness, L = float(limb.rod.stiffness_bt[0]), limb.length
        bar = tip @ np.linalg.inv(limb.tip.attach)
        joint = x @ limb.tip.joint_pose
        R = joint[:3, :3]
        kinematic = np.concatenate(
            [
                R.T @ (bar[:3, 3] - joint[:3, 3]) / L,
                Rotation.from_matrix(R.T @ bar[:3, :3]).as_rotvec(),
            ]
        )
        static = np.concatenate(
            [
                R.T @ load[:3] * L**2 / stiffness,
                R.T @ (load[3:] + np.cross(tip[:3, 3] - bar[:3, 3], load[:3])) * L / stiffness,
            ]
        )
        free = np.array([c == "1" for c in FREE[str(limb.tip.kind)]])
        rows.append(np.where(free, static, kinematic))
        force = force - load[:3]
        moment = moment - load[3:] - np.cross(tip[:3, 3] - x[:3, 3], load[:3])
        scales.append((L**2 / stiffness, L / stiffness))
    rows.append(np.concatenate([force * scales[0][0], moment * scales[0][1]]))
    return np.concatenate(rows)


def solve(robot, start, given: str, wrench=None, tolerance=1e-9) -> OracleState:
    """Find q for a given pose (``given='pose'``) or the pose for given q (``'q'``).

    ``start`` is anything with q, pose and base_wrenches; its q or pose is what is given.
    """
    n = len(robot.limbs)
    scale = np.array([float(li.rod.stiffness_bt[0]) / li.length for li in robot.limbs])
    unit = np.concatenate([np.r_[[s / li.length] * 3, [s] * 3]
                           for s, li in zip(scale, robot.limbs, strict=True)])  # fmt: skip

    def unpack(y) -> OracleState:
        w = (y[: 6 * n] * unit).reshape(n, 6)
        if given == "pose":
            return OracleState(y[6 * n :], start.pose, w)
        pose = start.pose.copy()
        pose[:3, 3] += y[6 * n : 6 * n + 3]
        pose[:3, :3] = Rotation.from_rotvec(y[6 * n + 3 :]).as_matrix() @ pose[:3, :3]
        return OracleState(np.asarray(start.q, dtype=float), pose, w)

    rest = np.asarray(start.q, dtype=float) if given == "pose" else np.zeros(6)
    y0 = np.concatenate([np.asarray(start.base_wrenches).ravel() / unit, rest])
    found = least_squares(
        lambda y: residual(robot, unpack(y), wrench), y0, xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    state = unpack(found.x)
    state.residual = float(np.abs(found.fun).max())
    if state.residual > tolerance:
        raise AssertionError(f"the oracle found no equilibrium: residual {state.residual:.1e}")
    return state
