"""Random arms whose muscle wraps on a side: cusps, flicker and L along motions.

An arm is a hinge with a muscle from the world over its surfaces, all with a side, to the link.
``python wrap_ensemble.py 5000`` moves so many arms, a quarter of each kind, through 200 steps and
prints a row for each kind.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from geodesic_cases import geometry

from cards_core.paths.wrapping.closed_forms import cylinder_contact
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.elements import Link, Muscle, ViaPoint, Wrap, WrapSurface
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, axis_rotation

KINDS = ("ellipsoid", "torus", "cylinder", "chain")
STEPS = 200
SWING = 0.6
"""Largest angle of the hinge, [rad]."""
DIFFERENCE = 1e-6
"""Half the step of central differences, [rad]."""


@dataclass
class Arm:
    p: np.ndarray
    q: np.ndarray
    axis: np.ndarray
    pivot: np.ndarray
    wraps: list


def _cone(rng, direction, angle):
    """Unit vector within an angle of a direction."""
    while True:
        x = rng.normal(size=3)
        x /= np.linalg.norm(x)
        if x @ direction > math.cos(angle):
            return x


def _size(rng, kind):
    match kind:
        case "ellipsoid":
            return rng.uniform(0.04, 0.08, 3)
        case "torus":
            return rng.uniform(0.04, 0.06), rng.uniform(0.01, 0.025)
        case "cylinder":
            return rng.uniform(0.03, 0.07)


def random_arm(rng, kind):
    up, out = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    centres = [np.zeros(3)] if kind != "chain" else [0.11 * up, -0.11 * up]
    reach = 0.0 if kind != "chain" else 0.11
    kinds = [kind] if kind != "chain" else rng.choice(KINDS[:3], 2)
    wraps = []
    for centre, one in zip(centres, kinds, strict=True):
        pose = Pose.from_xyz_rpy(centre + rng.uniform(-0.01, 0.01, 3), rng.uniform(-1.0, 1.0, 3))
        # the axis of a cylinder lies across the path, as does that of a torus wrapped outside
        if one != "ellipsoid":
            lying = axis_rotation(np.array([1.0, 0.0, 0.0]), 0.5 * np.pi)
            tilt = rng.uniform(-0.5, 0.5, 3)
            pose = Pose.from_xyz_rpy(pose.translation, tilt) @ Pose(rotation=lying)
        side = centre + 0.15 * _cone(rng, out, 0.7)
        wraps.append((geometry(one, _size(rng, one)), pose, side))
    p = (reach + rng.uniform(0.1, 0.25)) * _cone(rng, up, 0.7)
    q = (reach + rng.uniform(0.1, 0.25)) * _cone(rng, -up, 0.7)
    return Arm(p, q, _cone(rng, up, np.pi), rng.uniform(-0.03, 0.03, 3), wraps)


class Ensemble:
    """Arms of one kind as one robot, each with a hinge of its own."""

    def __init__(self, kind, count, seed, backend="compiled"):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        self.arms = [random_arm(rng, kind) for _ in range(count)]
        surfaces, muscles = [], []
        for i, arm in enumerate(self.arms):
            path = [ViaPoint("world", arm.p)]
            for k, (shape, pose, side) in enumerate(arm.wraps):
                surfaces.append(WrapSurface(f"s{i}_{k}", "world", shape, pose))
                path.append(Wrap(f"s{i}_{k}", side=side))
            muscles.append(Muscle(f"m{i}", (*path, ViaPoint(f"l{i}", arm.q))))
        links = tuple(Link(f"l{i}") for i in range(count))
        robot = Robot("r", links, (), tuple(muscles), wrap_surfaces=tuple(surfaces))
        self.paths = GeodesicPaths(robot, backend)
        self.p = np.array([arm.p for arm in self.arms])
        self.surfaces = len(self.arms[0].wraps)
        self.closed = kind == "cylinder"

    def __call__(self, angles):
        """Return lengths and moment arms dl/dq at an angle per arm, shape (n,)."""
        poses = np.tile(np.eye(4), (len(self.arms), 1, 1))
        rates = np.empty((len(self.arms), 3))
        self.q = np.empty_like(self.p)
        for i, arm in enumerate(self.arms):
            turn = axis_rotation(arm.axis, float(angles[i]))
            poses[i, :3, :3] = turn
            poses[i, :3, 3] = arm.pivot - turn @ arm.pivot
            self.q[i] = turn @ (arm.q - arm.pivot) + arm.pivot
            rates[i] = np.cross(arm.axis, self.q[i] - arm.pivot)
        rows = self._closed() if self.closed else self.paths.solve(poses)
        rows = rows.reshape(len(self.arms), self.surfaces, 8).copy()
        points = np.concatenate([self.p[:, None], *self._pairs(rows), self.q[:, None]], axis=1)
        straight = np.linalg.norm(points[:, 1::2] - points[:, ::2], axis=2)
        last = (points[:, -1] - points[:, -2]) / straight[:, -1:]
        self.rows = rows
        return straight.sum(1) + rows[:, :, 6].sum(1), (last * rates).sum(1)

    def _closed(self):
        """Return the rows of cylinders, which have a closed form."""
        rows = np.zeros((len(self.arms), 8))
        for row, arm, q in zip(rows, self.arms, self.q, strict=True):
            ((shape, pose, side),) = arm.wraps
            inward = pose.inverse()
            ends = inward.apply(arm.p), inward.apply(q)
            found = cylinder_contact(*ends, shape.radius, shape.length, inward.apply(side))
            row[:3] = row[3:6] = 0.5 * (arm.p + q)
            if found.wrapped:
                row[:3], row[3:6] = pose.apply(found.start), pose.apply(found.end)
                row[6], row[7] = found.length, found.angle
        return rows

    def lost(self):
        """Return of which arms the last path is a guess, shape (n,)."""
        return np.zeros(len(self.arms), bool) if self.closed else self.paths.lost_muscles

    def _pairs(self, rows):
        return [rows[:, k, :6].reshape(-1, 2, 3) for k in range(self.surfaces)]

    def cusps(self):
        """Return whether the last path turns back where it meets a surface, shape (n,)."""
        arcs = np.array(self.paths.arc_points(9)).reshape(len(self.arms), self.surfaces, 9, 3)
        out, before = np.zeros(len(self.arms), bool), self.p
        for k in range(self.surfaces):
            after = arcs[:, k + 1, 0] if k + 1 < self.surfaces else self.q
            arc = arcs[:, k]
            into = ((arc[:, 1] - arc[:, 0]) * (arc[:, 0] - before)).sum(1)
            leave = ((arc[:, -1] - arc[:, -2]) * (after - arc[:, -1])).sum(1)
            out |= (self.rows[:, k, 6] > 1e-9) & ((into < 0.0) | (leave < 0.0))
            before = arc[:, -1]
        return out


@dataclass
class Study:
    """What the arms of one kind did; a pose that is flagged as not found counts as lost alone.

    Attributes:
        poses, touched, lost: Numbers of poses.
        cusps: Poses with a cusp.
        wrong: Poses, off jumps, at which L is not dl/dq to 1e-6.
        jumps: Numbers of steps in which l or L jumps, and of those in which no contact changes
            its way round or ends, none is lost and no end gets inside: without a named reason.
        flicker: Number of jumps of l by more than 0.1 mm that are undone within 20 steps.
        flickering: In how many arms.
    """

    poses: int
    touched: int
    lost: int
    cusps: int
    wrong: int
    jumps: int
    unnamed: int
    flicker: int
    flickering: int


def _sides(arms):
    """Direction from the straight line to the middle of each arc, or 0 if free, (n, k, 3)."""
    rows = arms.rows
    middle = 0.5 * (rows[:, :, :3] + rows[:, :, 3:6]) - arms.p[:, None]
    line = arms.q - arms.p
    line = (line / np.linalg.norm(line, axis=1, keepdims=True))[:, None]
    off = middle - (middle * line).sum(2, keepdims=True) * line
    off /= np.maximum(np.linalg.norm(off, axis=2, keepdims=True), 1e-12)
    return off * (rows[:, :, 6:7] > 0.0)


def study(kind, count, seed=0, steps=STEPS):
    """Move arms through their swing and return what they did."""
    arms = Ensemble(kind, count, seed)
    angles = np.linspace(-SWING, SWING, steps + 1)
    step = angles[1] - angles[0]
    lengths, rates, slopes, lost, sides, cusps = [], [], [], [], [], 0
    for k, angle in enumerate(angles):
        near = [arms(np.full(count, angle + d))[0] for d in (-DIFFERENCE, DIFFERENCE)]
        slopes.append((near[1] - near[0]) / (2 * DIFFERENCE))
        length, rate = arms(np.full(count, angle))
        lengths.append(length)
        rates.append(rate)
        lost.append(arms.lost())
        sides.append(_sides(arms))
        if k % 4 == 0 and not arms.closed:
            cusps += int((arms.cusps() & ~lost[-1]).sum())
    lengths, rates, slopes, lost = map(np.array, (lengths, rates, slopes, lost))
    sides = np.array(sides)
    change = np.diff(lengths, axis=0) - 0.5 * step * (rates[1:] + rates[:-1])
    # lift-off has a corner of L: at most its change times a quarter of the step
    jumped = np.abs(change) > 1e-5 + 0.25 * step * np.abs(np.diff(rates, axis=0))
    jumped |= np.abs(np.diff(rates, axis=0)) > 0.02
    known = lost[1:] | lost[:-1]
    turned = (sides[1:] * sides[:-1]).sum(3).min(2) < 0.5
    wrong = np.abs(slopes - rates) > 1e-6
    beside = np.zeros_like(lost)
    beside[1:] |= jumped
    beside[:-1] |= jumped
    return (
        arms,
        Study(
            lengths.size,
            int((sides != 0).any((2, 3)).sum()),
            int(lost.sum()),
            cusps,
            int((wrong & ~lost & ~beside).sum()),
            int((jumped & ~known).sum()),
            int((jumped & ~known & ~turned).sum()),
            *_flicker(np.where(jumped & ~known & (np.abs(change) > 1e-4), change, 0.0)),
        ),
    )


def _flicker(change):
    """Return how often a change is undone within 20 steps, and in how many arms."""
    found = np.zeros(change.shape, bool)
    for k in range(1, 21):
        pair = change[:-k] * change[k:] < 0.0
        found[:-k] |= pair & (np.abs(change[:-k] + change[k:]) < 0.5 * np.abs(change[:-k]))
    return int(found.sum()), int(found.any(0).sum())


if __name__ == "__main__":
    for name in KINDS:
        print(name, study(name, int(sys.argv[1]) // 4)[1], flush=True)
