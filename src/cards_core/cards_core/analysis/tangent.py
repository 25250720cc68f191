"""Motion in the tangent space of the coordinates, prepared for one tree: fast, with limits.

`Tree.integrate` walks over the nodes; an iteration that calls it thousands of times a second needs
the scalar coordinates in one array operation and only the balls one by one. Here are also the
rates that integrators need:

    ball      quat' = 1/2 quat * (0, w),        theta' = J_r(theta)^-1 w  for quat = q0 exp(theta)
    others    q' = qd

with w the angular velocity in node axes and J_r the right Jacobian of SO(3) [Sola2018]_:

    J_r^-1(theta) = E + 1/2 [theta]x + (1/a^2 - (1 + cos a)/(2 a sin a)) [theta]x^2,  a = |theta|
"""

from __future__ import annotations

import math

import numpy as np

from cards_core.robot.model import Tree
from cards_core.spatial import hat
from cards_core.typing import Array


class TangentSpace:
    """Tangent space of a tree's coordinates.

    Args:
        tree: The tree.

    Attributes:
        lower, upper: Limits of the velocities' coordinates, shape (nv,): those of the coordinate
            that the velocity belongs to; infinite for balls.
        limited: Whether there is any finite limit.
        balls: First index in q and in qd of every ball node.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        scalars = [node for node in tree.nodes if node.kind != "ball"]
        self.balls = [(node.q, node.v) for node in tree.nodes if node.kind == "ball"]
        self._q = np.array([node.q for node in scalars], dtype=np.intp)
        self._v = np.array([node.v for node in scalars], dtype=np.intp)
        self.lower = np.full(tree.nv, -math.inf)
        self.upper = np.full(tree.nv, math.inf)
        self.lower[self._v] = tree.lower[self._q]
        self.upper[self._v] = tree.upper[self._q]
        self.limited = bool(np.any(np.isfinite(self.lower)) or np.any(np.isfinite(self.upper)))

    def integrate(self, q: Array, v: Array) -> Array:
        """Return q moved along v; equal to `Tree.integrate`."""
        if not self.balls:
            return q + v
        out = np.array(q, dtype=float)
        out[self._q] += v[self._v]
        for i, j in self.balls:
            w, x, y, z = q[i : i + 4].tolist()
            a, b, c = v[j : j + 3].tolist()
            angle = math.sqrt(a * a + b * b + c * c)
            # sin(a/2)/a has the limit 1/2
            scale = 0.5 - angle * angle / 48.0 if angle < 1e-4 else math.sin(angle / 2) / angle
            u, a, b, c = math.cos(angle / 2), scale * a, scale * b, scale * c
            turned = (
                w * u - x * a - y * b - z * c,
                w * a + x * u + y * c - z * b,
                w * b - x * c + y * u + z * a,
                w * c + x * b - y * a + z * u,
            )
            norm = math.sqrt(sum(value * value for value in turned))
            out[i : i + 4] = [value / norm for value in turned]
        return out

    def position(self, q: Array) -> Array:
        """Return the coordinates in the layout of velocities, shape (nv,); zero for balls."""
        if not self.balls:
            return q
        out = np.zeros(self.tree.nv)
        out[self._v] = q[self._q]
        return out

    def clip(self, q: Array) -> Array:
        """Return q within the limits of its scalar coordinates."""
        out: Array = np.minimum(np.maximum(q, self.tree.lower), self.tree.upper)
        return out

    def inside(self, q: Array, tolerance: float = 0.0) -> bool:
        """Return True if every coordinate is within its limits, give or take ``tolerance``."""
        return bool(
            np.all(q >= self.tree.lower - tolerance) and np.all(q <= self.tree.upper + tolerance)
        )

    def unit(self, q: Array) -> Array:
        """Return q with quaternions of unit length."""
        if not self.balls:
            return q
        out = np.array(q, dtype=float)
        for i, _ in self.balls:
            out[i : i + 4] /= np.linalg.norm(out[i : i + 4])
        return out

    def coordinate_rate(self, q: Array, qd: Array) -> Array:
        """Return dq/dt, shape (nq,), of velocities qd, shape (nv,)."""
        if not self.balls:
            return qd
        out = np.empty(self.tree.nq)
        out[self._q] = qd[self._v]
        for i, j in self.balls:
            w, x, y, z = q[i : i + 4].tolist()
            a, b, c = qd[j : j + 3].tolist()
            out[i : i + 4] = [
                0.5 * (-x * a - y * b - z * c),
                0.5 * (w * a + y * c - z * b),
                0.5 * (w * b - x * c + z * a),
                0.5 * (w * c + x * b - y * a),
            ]
        return out

    def chart_rate(self, theta: Array, qd: Array) -> Array:
        """Return d theta/dt, shape (nv,), for ``q = integrate(q0, theta)`` moving with qd.

        Valid while no ball has turned by 2 pi from q0.
        """
        if not self.balls:
            return qd
        out = qd.copy()
        for _, j in self.balls:
            out[j : j + 3] = _right_jacobian_inverse(theta[j : j + 3]) @ qd[j : j + 3]
        return out


def _right_jacobian_inverse(theta: Array) -> Array:
    angle = float(np.linalg.norm(theta))
    cross = hat(theta)
    if angle < 1e-3:  # 1/12 + a^2/720: the next term is 1e-16
        factor = 1.0 / 12.0 + angle * angle / 720.0
    else:
        factor = 1.0 / angle**2 - (1.0 + math.cos(angle)) / (2.0 * angle * math.sin(angle))
    out: Array = np.eye(3) + 0.5 * cross + factor * (cross @ cross)
    return out


def unit_quaternions(tree: Tree, q: Array) -> Array:
    """Return coordinates whose quaternions have length 1; one that is zero becomes NaN.

    Args:
        tree: Kinematic tree.
        q: Coordinates, shape (n, nq); not changed.
    """
    starts = [node.q for node in tree.nodes if node.kind == "ball"]
    if not starts:
        return q
    q = q.copy()
    with np.errstate(invalid="ignore", divide="ignore"):
        for start in starts:
            block = q[:, start : start + 4]
            block /= np.linalg.norm(block, axis=1, keepdims=True)
    return q
