"""Inverse kinematics of a robot that is pulled: lengths, rates, accelerations of its muscles.

    l = l(q),   l' = L qd,   l'' = L qdd + dL/dt qd

For a pose there is nothing to solve; what has to be handled is a bad point among many. Source:
[Lau2016]_.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.analysis.status import PointStatus
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
            are right, but no joint goes there), NOT_FINITE (NaN in the row), PATH_NOT_FOUND.
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
    lost = ~np.isfinite(out).all(axis=(0, 2)) & ~bad
    status[lost] = PointStatus.PATH_NOT_FOUND
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
    """Return an array of shape (n, width); one row may come as a vector. Raises `ShapeError`."""
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
