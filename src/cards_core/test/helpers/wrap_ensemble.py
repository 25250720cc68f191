"""Random arms whose muscle wraps on a side: cusps, flicker and L along motions.

An arm is a hinge with a muscle from the world over its surfaces, all with a side, to the link.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from geodesic_cases import geometry

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
        side = pose.inverse().apply(centre + 0.15 * _cone(rng, out, 0.7))
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
        rows = self.paths.solve(poses).reshape(len(self.arms), self.surfaces, 8).copy()
        points = np.concatenate([self.p[:, None], *self._pairs(rows), self.q[:, None]], axis=1)
        straight = np.linalg.norm(points[:, 1::2] - points[:, ::2], axis=2)
        last = (points[:, -1] - points[:, -2]) / straight[:, -1:]
        self.rows = rows
        return straight.sum(1) + rows[:, :, 6].sum(1), (last * rates).sum(1)

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
