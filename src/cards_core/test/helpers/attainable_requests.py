"""Which requests of a controller are attainable: linear programs of HiGHS, for the tests.

At a state the joint accelerations are ``P f + p``: the task's ``B f + d``, the limited joints'
``C f + e`` within [low, up]. Everything here is made of M, C, G, L, J and
the passive tensions of muscles.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog, lsq_linear

from cards_core.control.passive_tension import PassiveTension

LIMIT_RATE, LIMIT_MARGIN = 20.0, 0.01
"""Defaults of `CtcOperational`, stated once more."""


class State:
    """A robot at q, qd: what tensions within their limits do to a task and to limited joints.

    Args:
        dynamics: Of the robot.
        q, qd: The state.
        frame: Frame of the task; None: all joints are the task.
        rows: Rows of its Jacobian.
    """

    def __init__(self, dynamics, q, qd, frame=None, rows=()):
        state, tree, robot = dynamics.update(q, qd), dynamics.tree, dynamics.robot
        inverse = np.linalg.inv(state.mass_matrix)
        push = -inverse @ state.muscle_jacobian.T
        drift = -inverse @ (state.coriolis + state.gravity)
        if frame is None:
            jacobian, bias = np.eye(tree.nv), np.zeros(tree.nv)
        else:
            place = dynamics.operational(q, qd, frame)
            jacobian, bias = place.jacobian[list(rows)].copy(), place.bias[list(rows)].copy()
            self.position, self.rotation = place.position.copy(), place.rotation.copy()
            self.rates = jacobian @ qd
        self.B, self.d = jacobian @ push, jacobian @ drift + bias
        self.low_f = np.array([m.tension_min for m in robot.muscles])
        PassiveTension(robot).raise_to(self.low_f, state.muscle_lengths, 1.0)
        self.up_f = np.array([m.tension_max for m in robot.muscles])
        # HiGHS' tolerances are absolute: tensions in units of about their limits
        finite = self.up_f[self.up_f < 1e6]
        self.unit = float(np.median(finite)) if finite.size else 1e3
        self.reach = np.minimum(self.up_f, self.low_f + self.unit)
        self.q, self.qd = q, qd
        limited, bounds = self._limits(tree) if frame is not None else ([], [])
        self.C, self.e = push[limited], drift[limited]
        self.low, self.up = np.array(bounds).reshape(-1, 2).T

    def _limits(self, tree):
        """Velocity indices of the limited joints, and the bounds of their accelerations."""
        limited, bounds, q, qd = [], [], self.q, self.qd
        for node in tree.nodes:
            if (
                node.kind == "ball"
                or not np.isfinite([tree.lower[node.q], tree.upper[node.q]]).any()
            ):
                continue
            lower, upper = tree.lower[node.q], tree.upper[node.q]
            kept = min(LIMIT_MARGIN, 0.05 * (upper - lower))
            a, v = LIMIT_RATE, qd[node.v]
            low = -2 * a * v - a * a * (q[node.q] - (lower + kept))
            up = -2 * a * v + a * a * ((upper - kept) - q[node.q])
            limited.append(node.v)
            bounds.append((low, up))
        return limited, bounds

    def solve(self, cost, equal=None, right=None, *, limits=True, more=(), spare=0.0):
        """A linear program over tensions and more variables, the limits as inequalities."""
        extra = len(more)
        bounds = [*zip(self.low_f / self.unit, self.up_f / self.unit, strict=True), *more]
        rows = right_ub = None
        if limits and self.low.size:
            size = np.abs(self.C).sum(axis=1) * self.unit
            scaled = np.hstack([self.C * self.unit / size[:, None], np.zeros((len(size), extra))])
            top, bottom = (self.up + spare - self.e) / size, (self.low - spare - self.e) / size
            rows, right_ub = np.vstack([scaled, -scaled]), np.concatenate([top, -bottom])
            rows, right_ub = rows[np.isfinite(right_ub)], right_ub[np.isfinite(right_ub)]
        tolerance = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        found = linprog(cost, rows, right_ub, equal, right, bounds, "highs", options=tolerance)
        return found.x if found.status == 0 else None

    def inside(self):
        """Tensions far from their limits that keep the joints' limits; None if there are none."""
        m = self.low_f.size
        width = (self.reach - self.low_f) / self.unit
        size = np.abs(self.C).sum(axis=1) * self.unit
        rows = [np.hstack([-np.eye(m), width[:, None]]), np.hstack([np.eye(m), width[:, None]])]
        right = [-self.low_f / self.unit, self.reach / self.unit]
        for sign, bound in ((1.0, self.up), (-1.0, self.low)):
            there = np.isfinite(bound)
            scaled = sign * self.C[there] * self.unit / size[there, None]
            rows.append(np.hstack([scaled, np.ones((len(scaled), 1))]))
            right.append(sign * (bound - self.e)[there] / size[there])
        bounds = [(None, None)] * m + [(0.0, 0.4)]
        cost = np.append(np.zeros(m), -1.0)
        found = linprog(cost, np.vstack(rows), np.concatenate(right), None, None, bounds, "highs")
        good = found.status == 0 and found.x[-1] > 1e-7
        return found.x[:m] * self.unit if good else None

    def border(self, start, direction, limits=True):
        """How far from ``B start + d`` along a direction the attainable commands reach."""
        size = np.abs(self.B).sum(axis=1) * self.unit
        size[size <= 1e-9 * size.max()] = size.max()  # rows without authority
        equal = np.hstack([self.B * self.unit, -direction[:, None]]) / size[:, None]
        cost = np.append(np.zeros(start.size), -1.0)
        x = self.solve(cost, equal, self.B @ start / size, limits=limits, more=((0.0, None),))
        return np.inf if x is None else x[-1]

    def exceeded(self):
        """Least-squares excess of the limits, by SciPy: the accelerations z of limited joints."""
        factor = np.hstack([self.C * self.unit, -np.eye(self.low.size)])
        low = np.concatenate([self.low_f / self.unit, self.low])
        up = np.concatenate([self.up_f / self.unit, self.up])
        found = lsq_linear(factor, -self.e, (low, up), method="bvls", tol=1e-14)
        return self.C @ found.x[: self.low_f.size] * self.unit + self.e
