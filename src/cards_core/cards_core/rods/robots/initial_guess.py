"""First guess of a rod robot's state at a plate pose: every rod a cubic Hermite curve.

A slender rod without axial load is, for small deflections, a cubic in its arc length. With the
tangents t0, t1 at its ends, the way d between them and the length L::

    r'' (0) = (6 d / L - 4 t0 - 2 t1) / L         r''' = (6 (t0 + t1) - 12 d / L) / L^2
    m0 = EI t0 x r''(0)                           n0 = -EI r'''  (the part across t0)

and with t1 left free by the joint, ``t1 = (3 d / L - t0) / 2`` (no moment at the end). The joint
coordinate is chosen so that the curve has the rod's length: then no axial load is needed. What is
left over, a rod that is longer than its way whatever q is, bulges like a buckled column of Euler::

    amplitude a = (2 / pi) sqrt(L (L - |curve|)),   m0 += 2 pi^2 EI a / L^2 (t0 x bulge)

The straight rod, the guess of the literature, is a singular point; the bulge keeps away from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cards_core.rods.robots.robot import BaseKind, Limb, RodRobot, base_motion
from cards_core.typing import Array, Vector3

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)

_NODES, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS

SLACK = 0.01
"""Excess length, relative to the rod, from which on a rod counts as buckled."""

SEARCH_WINDOW = {BaseKind.PRISMATIC: 1.0, BaseKind.REVOLUTE: np.pi}
"""How far from the reference a joint coordinate is looked for: lengths of the rod, or [rad]."""


@dataclass(frozen=True, eq=False)
class InitialGuess:
    """A state from which a solver starts.

    Attributes:
        q: Joint coordinates, shape (n,).
        pose: Plate pose, shape (4, 4).
        base_wrenches: Force and moment at the rod starts in world axes, shape (n, 6).
        buckled: Limbs that are longer than their way and got a bulge.
    """

    q: Array
    pose: Array
    base_wrenches: Array
    buckled: tuple[int, ...] = ()


def hermite_guess(
    robot: RodRobot,
    pose: Array,
    q: Array | None = None,
    *,
    reference: Array | None = None,
    wrench: Array | None = None,
    bulge: Sequence[Vector3 | None] | None = None,
    slack: float = 0.0,
    base: Array | None = None,
    gravity: Vector3 | None = None,
) -> InitialGuess:
    """Guess the state at a plate pose.

    Args:
        robot: The robot.
        pose: Plate pose, shape (4, 4).
        q: Joint coordinates if they are given, shape (n,); else they are guessed too.
        reference: Joint coordinates to stay near to where several fit; default `home_q`.
        wrench: Load on the plate, shape (6,); its force is shared by the rods.
        bulge: Directions for buckled rods, one per limb, in place of the robot's own.
        slack: Extra length of extensible rods, relative.
        base: Pose of the robot in the world, shape (4, 4); default the identity.
        gravity: In the world, shape (3,); default the robot's.
    """
    if base is not None and not np.array_equal(base, np.eye(4)):
        turn = base[:3, :3]  # guess in the robot's own frame, then turn the wrenches
        world = robot.gravity if gravity is None else gravity
        guess = hermite_guess(
            robot.turned_loads(turn.T),
            np.asarray(np.linalg.solve(base, pose)),
            q,
            reference=reference,
            wrench=None if wrench is None else (np.reshape(wrench, (2, 3)) @ turn).ravel(),
            bulge=bulge,
            slack=slack,
            gravity=turn.T @ world,
        )
        turned = (guess.base_wrenches.reshape(-1, 2, 3) @ turn.T).reshape(-1, 6)
        return InitialGuess(guess.q, pose.copy(), turned, guess.buckled)
    gravity = robot.gravity if gravity is None else gravity
    n = robot.n_limbs
    reference = robot.home_q if reference is None else reference
    values = np.empty(n)
    wrenches = np.zeros((n, 6))
    buckled = []
    load = robot.plate.mass * gravity
    if wrench is not None:
        load = load + wrench[:3]
    for index, limb in enumerate(robot.limbs):
        end = _End(limb, pose)
        values[index] = (
            _joint(limb, end, float(reference[index]), slack) if q is None else q[index]
        )
        start = _start(limb, float(values[index]))
        length = _length(limb, float(values[index]))
        stiffness = float(np.mean(limb.rod.stiffness_bt[:2]))
        t0, d, t1 = end.ends(start, length)
        curvature = (6.0 * d / length - 4.0 * t0 - 2.0 * t1) / length
        change = (6.0 * (t0 + t1) - 12.0 * d / length) / length**2
        moment = stiffness * np.cross(t0, curvature)
        force = -stiffness * (change - t0 * (t0 @ change))
        excess = length - _curve_length(d, t0, t1, length)
        if excess > SLACK * length:
            buckled.append(index)
        wanted = limb.bulge if bulge is None else bulge[index]
        if excess > 1e-4 * length:
            side = _across(t0, wanted, start, robot.planar)
            amplitude = 2.0 / np.pi * np.sqrt(length * excess)
            moment += 2.0 * np.pi**2 * stiffness * amplitude / length**2 * np.cross(t0, side)
            force -= end.euler * stiffness / length**2 * t0
        own = limb.force_per_length(gravity) * length
        force += t0 * (t0 @ (load / n + own))
        wrenches[index] = np.concatenate([force, moment])
    return InitialGuess(values, pose.copy(), wrenches, tuple(buckled))


class _End:
    """Tip of a rod: where it has to arrive, and with which tangent."""

    def __init__(self, limb: Limb, pose: Array) -> None:
        joint = pose @ limb.tip.joint_pose
        tip = joint @ limb.tip.attach
        self.place, self.tangent = tip[:3, 3], tip[:3, 2]
        self.axis: Vector3 | None = None
        self.loose = bool(limb.tip.kind.free[3:5].all())
        if self.loose:  # the rod tip turns about the joint's centre
            self.centre = joint[:3, 3]
            self.lever = limb.tip.attach[:3, :3].T @ -limb.tip.attach[:3, 3]
        elif limb.tip.kind.free[5]:
            across = joint[:3, 2] - self.tangent * (self.tangent @ joint[:3, 2])
            if np.linalg.norm(across) > 0.5:  # a hinge across the rod: its bending is free
                self.axis = joint[:3, 2]
        self.euler = 20.19 if self.loose or self.axis is not None else 39.48

    def ends(self, start: Array, length: float) -> tuple[Array, Array, Array]:
        """Return t0, d, t1 of the curve from a rod start."""
        t0 = start[:3, 2]
        if self.loose:
            d = self.centre - start[:3, 3]
            t1 = _unit(1.5 * d / length - 0.5 * t0)
            d = d - t1 * self.lever[2]
            return t0, d, _unit(1.5 * d / length - 0.5 * t0)
        d = self.place - start[:3, 3]
        t1 = self.tangent
        if self.axis is not None:
            free = 1.5 * d / length - 0.5 * t0
            t1 = _unit(free - self.axis * (self.axis @ (free - t1)))
        return t0, d, t1


def _joint(limb: Limb, end: _End, reference: float, slack: float) -> float:
    """Return the joint coordinate at which the curve has the rod's length, near a reference."""
    kind, low, high = limb.base.kind, limb.base.lower, limb.base.upper
    if kind is BaseKind.FIXED:
        return 0.0
    if kind is BaseKind.EXTENSIBLE:
        start = _start(limb, 0.0)
        length = max(float(np.linalg.norm(end.place - start[:3, 3])), 1e-6)
        for _ in range(4):
            t0, d, t1 = end.ends(start, length)
            length = (1.0 + slack) * _curve_length(d, t0, t1, length)
        return float(np.clip(length / limb.rod.free_stretch, max(low, 1e-6), high))
    window = SEARCH_WINDOW[kind] * (limb.length if kind is BaseKind.PRISMATIC else 1.0)
    grid = np.linspace(max(low, reference - window), min(high, reference + window), 49)
    miss = np.array([_miss(limb, end, value) for value in grid])
    crossings = np.flatnonzero(np.sign(miss[:-1]) != np.sign(miss[1:]))
    if not crossings.size:
        return float(grid[np.argmin(np.abs(miss) + 1e-6 * np.abs(grid - reference))])
    roots = grid[crossings] - miss[crossings] * (grid[1] - grid[0]) / (
        miss[crossings + 1] - miss[crossings]
    )
    return float(roots[np.argmin(np.abs(roots - reference))])


def _miss(limb: Limb, end: _End, q: float) -> float:
    """Length of the curve minus that of the rod."""
    length = _length(limb, q)
    t0, d, t1 = end.ends(_start(limb, q), length)
    return _curve_length(d, t0, t1, length) - length


def _start(limb: Limb, q: float) -> Array:
    """Pose of the rod's start, shape (4, 4)."""
    return np.asarray(limb.base.joint_pose @ base_motion(limb.base.kind, q) @ limb.base.attach)


def _length(limb: Limb, q: float) -> float:
    """Length of the centre-line of the free rod."""
    length = q if limb.base.kind is BaseKind.EXTENSIBLE else limb.length
    return length * limb.rod.free_stretch


def _curve_length(d: Array, t0: Array, t1: Array, length: float) -> float:
    """Length of the cubic from 0 to d with end derivatives ``length * t0``, ``length * t1``."""
    s = _NODES[:, None]
    rate = (
        6.0 * s * (1.0 - s) * d
        + length * (1.0 - s) * (1.0 - 3.0 * s) * t0
        + length * s * (3.0 * s - 2.0) * t1
    )
    return float(_WEIGHTS @ np.linalg.norm(rate, axis=1))


def _across(t0: Array, wanted: Vector3 | None, start: Array, planar: bool) -> Array:
    """Unit vector across t0, near the wanted direction; else the first axis of the section."""
    other = np.cross([0.0, 0.0, 1.0], t0) if planar else start[:3, 0]
    side = other if wanted is None else np.asarray(wanted, dtype=float)
    side = side - t0 * (t0 @ side)
    if planar:
        side = other * (other @ side)
    if np.linalg.norm(side) < 1e-6:
        side = other
    return _unit(side)


def _unit(v: Array) -> Array:
    return v / max(float(np.linalg.norm(v)), 1e-300)
