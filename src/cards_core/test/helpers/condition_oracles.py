"""What the tests of conditions compare with: programs of HiGHS, convex hulls of SciPy."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def program(cost, **constraints):
    """The optimum of a linear program, or None if it has no solution."""
    result = linprog(cost, method="highs", options=TIGHT, **constraints)
    if result.status == 2:
        return None
    assert result.status == 0, result.message
    return result.fun


def closure_margin(jacobian):
    """Largest t with L'f = 0, f >= t, sum f = 1: positive iff there is wrench closure."""
    m, nv = jacobian.shape
    if np.linalg.matrix_rank(jacobian) < nv:
        return -np.inf
    best = program(
        np.r_[np.zeros(m), -1.0],
        A_ub=np.hstack([-np.eye(m), np.ones((m, 1))]),
        b_ub=np.zeros(m),
        A_eq=np.block([[jacobian.T, np.zeros((nv, 1))], [np.ones((1, m)), 0.0]]),
        b_eq=np.r_[np.zeros(nv), 1.0],
        bounds=[(None, None)] * (m + 1),
    )
    return -np.inf if best is None else -best


def tension_factor(jacobian):
    """Largest t with L'f = 0, t <= f <= 1."""
    m, nv = jacobian.shape
    best = program(
        np.r_[np.zeros(m), -1.0],
        A_ub=np.hstack([-np.eye(m), np.ones((m, 1))]),
        b_ub=np.zeros(m),
        A_eq=np.hstack([jacobian.T, np.zeros((nv, 1))]),
        b_eq=np.zeros(nv),
        bounds=[(0.0, 1.0)] * (m + 1),
    )
    return -best


def tension_slack(jacobian, lower, upper, wrench):
    """Largest s <= 1 such that -L'f = w with every f_i by s (or s times half its range) inside.

    Negative iff the limits have to be overstepped; L must have full rank.
    """
    m, nv = jacobian.shape
    half = np.where(np.isinf(upper), 1.0, 0.5 * (upper - lower))
    bounded = np.isfinite(upper)
    below = np.hstack([-np.eye(m), half[:, None]])
    above = np.hstack([np.eye(m), half[:, None]])[bounded]
    best = program(
        np.r_[np.zeros(m), -1.0],
        A_ub=np.vstack([below, above]),
        b_ub=np.r_[-lower, upper[bounded]],
        A_eq=np.hstack([-jacobian.T, np.zeros((nv, 1))]),
        b_eq=wrench,
        bounds=[(None, None)] * m + [(None, 1.0)],
    )
    return -best


def residual(jacobian, lower, upper, wrench):
    """Smallest largest entry of |-L'f - w| within the limits, at any rank of L."""
    m, nv = jacobian.shape
    one = np.ones((nv, 1))
    return program(
        np.r_[np.zeros(m), 1.0],
        A_ub=np.block([[-jacobian.T, -one], [jacobian.T, -one]]),
        b_ub=np.r_[wrench, -wrench],
        bounds=[
            *[(a, None if np.isinf(b) else b) for a, b in zip(lower, upper, strict=True)],
            (0.0, None),
        ],
    )


def hull_margin(jacobian, lower, upper, wrenches):
    """Smallest distance of the wrenches from the facets of the hull of all extreme tensions."""
    ends = [(a,) if a == b else (a, b) for a, b in zip(lower, upper, strict=True)]
    hull = ConvexHull(-np.array(list(itertools.product(*ends))) @ jacobian)
    normals, offsets = hull.equations[:, :-1], hull.equations[:, -1:]
    return float(-(normals @ np.transpose(wrenches) + offsets).max())


def corners(load, generators):
    """All vertices of load + {sum s_k generator_k, |s_k| <= 1}."""
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=len(generators))))
    return load + signs.reshape(len(signs), -1) @ generators.reshape(len(generators), -1)


def balanced_jacobians(rng, n, m, nv, low=-0.05):
    """Random L that have internal loads which are often, not always, positive."""
    jacobian = rng.normal(size=(n, m, nv))
    f = rng.uniform(low, 1.0, (n, m))
    f /= np.linalg.norm(f, axis=1, keepdims=True)
    return jacobian - f[:, :, None] * np.einsum("nm,nmv->nv", f, jacobian)[:, None, :]


def ipanema_poses(rng, n):
    """Poses within the frame of IPAnema 1, with small rotations: some have closure, some not."""
    where = rng.uniform([-1.8, -1.3, 0.1], [1.8, 1.3, 1.9], (n, 3))
    return np.hstack([where, 0.2 * rng.normal(size=(n, 3))])
