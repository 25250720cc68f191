"""One rod of a robot as a function of the wrench at its base, with derivatives.

Base joint and load are known, so the wrench w = (n, m) at the start decides the whole rod. The
derivative of a section's state (p, phi, n, m) by w is the product of the exact derivatives of the
pieces before it; it starts with ``d(p, phi)/dw = 0, d(n, m)/dw = I``.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass

import numpy as np

from cards_core.rods.native_library import rod_library
from cards_core.rods.robots.robot import rod_lengths, rod_starts
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.typing import Array

STEPS = 6
"""Steps of order 8 along a whole rod, at least."""


@dataclass(frozen=True, eq=False)
class LimbCurve:
    """Sections of a rod.

    Attributes:
        s: Arc lengths of the unstrained rod, shape (k,), [m].
        states: p, R by rows, n, m, world axes, shape (k, 18).
        by_wrench: Derivatives of (p, phi, n, m) by the wrench at the start, shape (k, 12, 6).
        tip: State of the tip, shape (18,).
        tip_by_wrench: Its derivative, shape (12, 6).
    """

    s: Array
    states: Array
    by_wrench: Array
    tip: Array
    tip_by_wrench: Array

    @property
    def points(self) -> Array:
        """Positions, shape (k, 3), [m]."""
        return self.states[:, :3]

    @property
    def tangents(self) -> Array:
        """Unit vectors along the sections' normals d3, shape (k, 3)."""
        return self.states[:, [5, 8, 11]]


class Limbs:
    """The rods of a robot at given joints.

    Args:
        solver: Of the robot; gives its place in the world and the gravity.
        q: Joint coordinates, shape (n,).
    """

    def __init__(self, solver: RodRobotSolver, q: Array) -> None:
        robot = solver.robot
        self.robot, self.q = robot, np.asarray(q, dtype=float)
        self.lengths = rod_lengths(robot, q)
        self.starts = solver.base @ rod_starts(robot, q)
        self._natives = [limb.rod.native(limb.rod.weight(solver.gravity)) for limb in robot.limbs]

    def curve(self, limb: int, wrench: Array, s: Array) -> LimbCurve:
        """Integrate a rod.

        Args:
            limb: Its index.
            wrench: n, m at the start, world axes, shape (6,).
            s: Rising arc lengths within the rod, shape (k,), [m].
        """
        length, start = float(self.lengths[limb]), self.starts[limb]
        state = np.concatenate([start[:3, 3], start[:3, :3].ravel(), wrench])
        derivative = np.vstack([np.zeros((6, 6)), np.eye(6)])
        states, by_wrench = np.empty((len(s) + 1, 18)), np.empty((len(s) + 1, 12, 6))
        matrix, here = np.empty((12, 12)), 0.0
        rod, transfer = ctypes.byref(self._natives[limb]), rod_library().rod_transfer
        for k, until in enumerate((*s, length)):
            step = float(until) - here
            if step > 0.0:
                transfer(
                    rod,
                    ctypes.c_double(step),
                    max(1, math.ceil(STEPS * step / length)),
                    ctypes.c_void_p(state.ctypes.data),
                    ctypes.c_void_p(matrix.ctypes.data),
                )
                derivative = matrix @ derivative
            states[k], by_wrench[k], here = state, derivative, float(until)
        return LimbCurve(np.asarray(s), states[:-1], by_wrench[:-1], states[-1], by_wrench[-1])

    def feet(self, limb: int, wrench: Array, points: Array, near: Array | None) -> Array:
        """Return the arc lengths at which a rod comes nearest to points, shape (k,), [m].

        Args:
            limb: Its index.
            wrench: At its start, shape (6,).
            points: Shape (k, 3).
            near: Arc lengths to start from, or None.
        """
        length = float(self.lengths[limb])
        if near is None:
            dense = self.curve(limb, wrench, np.linspace(0.0, length, 40))
            distance = np.linalg.norm(points[:, None] - dense.points, axis=2)
            near = dense.s[distance.argmin(axis=1)]
        for _ in range(2):
            order = np.argsort(near)
            curve = self.curve(limb, wrench, near[order])
            along = np.einsum("ki,ki->k", points[order] - curve.points, curve.tangents)
            moved = near.copy()
            moved[order] = np.clip(curve.s + along, 0.0, length)
            near = moved
        return near
