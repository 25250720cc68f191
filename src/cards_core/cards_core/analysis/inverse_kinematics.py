"""Inverse kinematics of a robot with muscles: from its operational frame to muscle lengths.

    l = l(q),   l' = L qd,   l'' = L qdd + dL/dt qd                         [Lau2016]_

For a pose there is nothing to solve; what has to be handled is a bad point among many.

Joint motions whose operational frame follows a path are found from point to point,

    q <- q (+) J^+ (y - y(q)) until y is met,   qd = J^+ yd,   qdd = J^+ (ydd - dJ/dt qd)

with the pseudo-inverse of the position rows J of the frame: of all joint motions the smallest
[Siciliano2009]_. There are no joint limits; a point beyond them has that status.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.analysis.status import PointStatus
from cards_core.analysis.tangent import TangentSpace
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import ShapeError
from cards_core.robot.model import QUATERNION_TOLERANCE, Tree
from cards_core.typing import Array

LIMIT_TOLERANCE = 1e-9
"""How far beyond a joint limit a coordinate may be by rounding, [rad] or [m]."""


@dataclass(frozen=True, eq=False)
class MuscleMotion:
    """Motion of all muscles at n points.

    Attributes:
        status: shape (n,), uint8, values of `PointStatus`: FEASIBLE, OUTSIDE_LIMITS (the numbers
            are right, but a joint is beyond its limits), NOT_FINITE (NaN in the row),
            PATH_NOT_FOUND (NaN in the columns of the muscles that have none).
        lengths: l, shape (n, m), [m].
        rates: l', shape (n, m), [m/s].
        accelerations: l'', shape (n, m), [m/s^2].
    """

    status: npt.NDArray[np.uint8]
    lengths: Array
    rates: Array
    accelerations: Array


def inverse_kinematics(
    dynamics: Dynamics, q: Array, qd: Array | None = None, qdd: Array | None = None
) -> MuscleMotion:
    """Return the motion of the muscles at one point or many.

    Args:
        dynamics: Of the robot.
        q: Coordinates, shape (n, nq) or (nq,).
        qd: Velocities, shape (n, nv) or (nv,); zero without them.
        qdd: Accelerations, likewise.

    Raises:
        ShapeError: An array of the wrong shape. Bad numbers do not raise, they have a status.
    """
    tree = dynamics.tree
    points = rows_of(q, tree.nq, "q", tree.position_names)
    n = len(points)
    velocities = _optional(qd, n, tree, "qd")
    accelerations = _optional(qdd, n, tree, "qdd")
    rows = zip(points, velocities, accelerations, strict=True)
    status = np.array([point_problem(tree, *row) for row in rows], dtype=np.uint8)
    bad = status == PointStatus.NOT_FINITE
    # rows that are not finite stay so in the batch
    state = dynamics.batch(np.where(bad[:, None], np.nan, points))
    out = np.stack(
        [
            state.muscle_lengths,
            np.einsum("nij,nj->ni", state.muscle_jacobian, velocities),
            np.einsum("nij,nj->ni", state.muscle_jacobian, accelerations),
        ]
    )
    for i in np.flatnonzero(velocities.any(axis=1) & ~bad):
        out[2, i] += dynamics.muscle_bias(points[i], velocities[i])
    lost = ~np.isfinite(out).all(axis=0)
    status[lost.any(axis=1) & ~bad] = PointStatus.PATH_NOT_FOUND
    out[:, lost] = np.nan
    return MuscleMotion(status, out[0], out[1], out[2])


def point_problem(tree: Tree, q: Array, *others: Array) -> PointStatus:
    """Return what is wrong with a point before anything is computed: FEASIBLE if nothing is.

    Args:
        tree: Of the robot.
        q: Coordinates, shape (nq,).
        others: Further arrays that must be finite.

    Returns:
        NOT_FINITE (a NaN, an infinity, or a quaternion whose length is not 1), OUTSIDE_LIMITS or
        FEASIBLE.
    """
    if not np.isfinite(q).all() or not all(np.isfinite(other).all() for other in others):
        return PointStatus.NOT_FINITE
    for node in tree.nodes:
        if node.kind == "ball":
            length = float(np.linalg.norm(q[node.q : node.q + 4]))
            if abs(length - 1.0) > QUATERNION_TOLERANCE:
                return PointStatus.NOT_FINITE
    if (q < tree.lower - LIMIT_TOLERANCE).any() or (q > tree.upper + LIMIT_TOLERANCE).any():
        return PointStatus.OUTSIDE_LIMITS
    return PointStatus.FEASIBLE


def rows_of(values: Array, width: int, name: str, names: tuple[str, ...]) -> Array:
    """Return an array of shape (n, width); one row may come as a vector. Raises `ShapeError`.

    Args:
        values: One row, shape (width,), or rows, shape (n, width).
        width: Number of columns.
        name: What the values are, for messages.
        names: Name of every column, for messages.
    """
    array = np.atleast_2d(np.asarray(values, dtype=float))
    if array.ndim != 2 or array.shape[1] != width:
        raise ShapeError(
            f"{name} has shape {np.shape(values)}, expected (n, {width}) or ({width},): "
            f"{', '.join(names) or 'nothing'}"
        )
    return array


def _optional(values: Array | None, n: int, tree: Tree, name: str) -> Array:
    if values is None:
        return np.zeros((n, tree.nv))
    rows = rows_of(values, tree.nv, name, tree.velocity_names)
    if len(rows) != n:
        raise ShapeError(f"{name} has {len(rows)} rows, expected {n}, one for every q")
    return rows


POSITION_TOLERANCE = 1e-10
"""Distance from the path that counts as met, [m]."""

LONGEST_STEP = 0.3
"""Longest step of Newton's method, [rad] or [m]."""

MAX_ITERATIONS = 200
"""Newton steps per point; along a path two or three."""

SINGULAR = 1e-6
"""Singular values of J below this share of the largest are taken as zero."""


@dataclass(frozen=True, eq=False)
class JointMotion:
    """Motion at n points: status (n,), q (n, nq), qd and qdd (n, nv).

    Status: FEASIBLE, UNREACHABLE (the frame does not get to y; q is where it stopped),
    OUTSIDE_LIMITS, NOT_FINITE.
    """

    status: npt.NDArray[np.uint8]
    q: Array
    qd: Array
    qdd: Array


def follow(
    dynamics: Dynamics,
    y: Array,
    yd: Array,
    ydd: Array,
    *,
    frame: str | None = None,
    start: Array | None = None,
) -> JointMotion:
    """Return the joint motion for a path of a frame's origin.

    Args:
        dynamics: Of the robot.
        y: Positions in world axes, shape (n, 3), [m].
        yd: Velocities, shape (n, 3), [m/s].
        ydd: Accelerations, shape (n, 3), [m/s^2].
        frame: Its name; the operational frame without it.
        start: Where the search begins, shape (nq,); home without it.

    Raises:
        ShapeError: The arrays are not of one shape (n, 3).
        UnknownNameError: There is no such frame, or no operational frame.
    """
    path = [np.asarray(values, dtype=float) for values in (y, yd, ydd)]
    if any(values.shape != (len(path[0]), 3) for values in path):
        raise ShapeError(
            f"y, yd, ydd have shapes {[v.shape for v in path]}, expected three times (n, 3)"
        )
    tree, space = dynamics.tree, TangentSpace(dynamics.tree)
    still, n = np.zeros(tree.nv), len(path[0])
    status = np.zeros(n, dtype=np.uint8)
    q, qd, qdd = np.empty((n, tree.nq)), np.empty((n, tree.nv)), np.empty((n, tree.nv))
    at = np.array(tree.home if start is None else tree.check_q(start), dtype=float)
    for i in range(n):
        if not all(np.isfinite(values[i]).all() for values in path):
            status[i] = PointStatus.NOT_FINITE
            q[i], qd[i], qdd[i] = np.nan, np.nan, np.nan
            continue
        missing = np.inf
        for _ in range(MAX_ITERATIONS):
            state = dynamics.operational(at, still, frame)
            error = path[0][i] - state.position
            missing = float(np.linalg.norm(error))
            if missing <= POSITION_TOLERANCE:
                break
            step = np.linalg.pinv(state.jacobian[:3], rcond=SINGULAR) @ error
            longest = float(np.abs(step).max(initial=0.0))
            if longest < 1e-14:
                break
            at = space.integrate(at, step * min(1.0, LONGEST_STEP / longest))
        inverse = np.linalg.pinv(dynamics.operational(at, still, frame).jacobian[:3], SINGULAR)
        q[i], qd[i] = at, inverse @ path[1][i]
        bias = dynamics.operational(at, qd[i], frame).bias[:3]
        qdd[i] = inverse @ (path[2][i] - bias)
        status[i] = point_problem(tree, at)
        if missing > POSITION_TOLERANCE:
            status[i] = PointStatus.UNREACHABLE
    return JointMotion(status, q, qd, qdd)
