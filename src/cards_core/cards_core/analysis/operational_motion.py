"""Joint motions whose operational frame follows a path: for analyses of operational references.

    q <- q (+) J^+ (y - y(q)) until y is met,   qd = J^+ yd,   qdd = J^+ (ydd - dJ/dt qd)

from point to point, with the pseudo-inverse of the position rows J of the frame: of all joint
motions the smallest [Siciliano2009]_. No joint limits; a point beyond them has that status.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.analysis.inverse_kinematics import point_problem
from cards_core.analysis.status import PointStatus
from cards_core.analysis.tangent import TangentSpace
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import ShapeError
from cards_core.typing import Array

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
