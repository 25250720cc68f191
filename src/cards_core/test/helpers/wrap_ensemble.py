"""Random arms whose muscle wraps on a side: cusps, jumps and L along motions.

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

from cards_core.paths.wrapping.chains import is_minimum
from cards_core.paths.wrapping.closed_forms import cylinder_contact
from cards_core.paths.wrapping.contact_guesses import (
    asks_for_longer_arc,
    contact_guesses,
    one_way,
    outside,
    passes_side,
    reference_ellipsoid,
)
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.paths.wrapping.path_newton import Placed, solve_path, start_towards
from cards_core.paths.wrapping.surfaces import CylinderSurface, EllipsoidSurface, TorusSurface
from cards_core.robot.elements import Cylinder, Link, Muscle, Torus, ViaPoint, Wrap, WrapSurface
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
        jumps: Number of steps in which l or L jumps.
        unnamed: Of those, in which the path before goes on to be a better one than that after, or
            the other way round: not because one of them ends or the other gets better.
    """

    poses: int
    touched: int
    lost: int
    cusps: int
    wrong: int
    jumps: int
    unnamed: int


def _surface(shape):
    match shape:
        case Torus():
            return TorusSurface(shape.radius, shape.tube_radius, closed=True)
        case Cylinder():
            return CylinderSurface(shape.radius, shape.length)
    return EllipsoidSurface(shape.radii)


class _Path:
    """The path over the surfaces that a row of `Ensemble` touches, solved at its own pose.

    Attributes:
        found: Whether it solves the equations of a path near the row.
        rank: How many surfaces it passes on the side asked for, and how many as a minimum.
        length: [m].
        longer: For all surfaces, whether an end is inside, and whether the side point asks for
            the long way round.
        blocked: For all surfaces, whether the path between its neighbours cannot be straight.
    """

    def __init__(self, arm, rows, q):
        touched = rows[:, 6] > 0.0
        placed = [
            Placed(_surface(shape), pose.rotation, pose.translation - arm.p)
            for shape, pose, _ in arm.wraps
        ]
        sides = [pose.inverse().apply(side) for _, pose, side in arm.wraps]
        q, before, starts = q - arm.p, np.zeros(3), []
        for on, row, at in zip(touched, rows, placed, strict=True):
            if on:
                start = start_towards(
                    at.surface, at.inward(row[:3] - arm.p), row[6], at.inward(before)
                )
                starts.append(start)
                before = row[3:6] - arm.p
        used = [at for at, on in zip(placed, touched, strict=True) if on]
        arcs, solved = solve_path(np.zeros(3), q, used, starts) if starts else ([], True)
        self.found = solved and all(
            arc.length > 0.0 and math.dist(arc.start, start.point) < 0.02 * at.surface.size
            for arc, start, at in zip(arcs, starts, used, strict=True)
        )
        points = [np.zeros(3), q]
        for at, arc in zip(used, arcs, strict=True):
            points[-1:-1] = at.outward(arc.start), at.outward(arc.end)
        self.length = sum(map(math.dist, points[::2], points[1::2])) + sum(a.length for a in arcs)
        self.rank, self.longer, self.blocked, k = [0, 0], [], [], 1
        for at, side, on in zip(placed, sides, touched, strict=True):
            ends = at.inward(points[k - 1]), at.inward(points[k + 2 if on else k])
            if on and not one_way(at.surface):
                arc = arcs[(k - 1) // 2]
                self.rank[0] += passes_side(at.surface, ends, (arc.start, arc.end), side)
                self.rank[1] += is_minimum(*ends, arc) and arc.angle < math.pi
            else:
                self.rank[0], self.rank[1] = self.rank[0] + 1, self.rank[1] + 1
            spherical = [reference_ellipsoid(at.surface).to_sphere(x) for x in (*ends, side)]
            spherical[:2] = map(outside, spherical[:2])
            if isinstance(at.surface, CylinderSurface):
                spherical = [x * [1.0, 1.0, 0.0] for x in spherical]
            self.blocked.append(bool(contact_guesses(at.surface, *ends, side)))
            inside = any(at.surface.height(x) < 0.0 for x in ends)
            self.longer.append((inside, asks_for_longer_arc(*spherical)))
            k += 2 * on

    def better_than(self, other):
        """Return whether this is the path to take at a pose that both are solutions of."""
        if not self.found or self.rank != other.rank:
            return self.found and self.rank > other.rank
        return self.length < other.length - 1e-7


def _unnamed(arms, i, low, high):
    """Return whether the jump between two poses a hair apart has no reason."""
    arm = arms.arms[i]
    (rows_low, q_low), (rows_high, q_high) = low, high
    before, after = _Path(arm, rows_low, q_low), _Path(arm, rows_high, q_high)
    if ((rows_low[:, 6] > 0.0) != (rows_high[:, 6] > 0.0)).any():
        # or the line gets free, or not, on the side that the path does not pass
        return before.longer == after.longer and before.blocked == after.blocked
    goes_on, came_from = _Path(arm, rows_low, q_high), _Path(arm, rows_high, q_low)
    return goes_on.better_than(after) or came_from.better_than(before)


def _count_unnamed(arms, jumps, angles):
    """Narrow all jumps, (step, arm), down to 1e-5 rad and count those without a reason."""
    count, left = 0, list(zip(*np.nonzero(jumps), strict=True))
    while left:
        now = {i: k for k, i in reversed(left)}  # one jump of each arm at a time
        left = [(k, i) for k, i in left if now[i] != k]
        index = np.array(list(now))
        low, high = np.zeros(len(arms.arms)), np.zeros(len(arms.arms))
        low[index], high[index] = angles[list(now.values())], angles[[k + 1 for k in now.values()]]
        (l_low, r_low), (l_high, r_high) = arms(low), arms(high)
        for _ in range(9):
            middle = 0.5 * (low + high)
            length, rate = arms(middle)
            off_low = np.abs(length - l_low - r_low * (middle - low)) + 0.01 * np.abs(rate - r_low)
            off_high = np.abs(l_high - length - r_high * (high - middle))
            off_high += 0.01 * np.abs(rate - r_high)
            up = off_low < off_high
            low, high = np.where(up, middle, low), np.where(up, high, middle)
            l_low, r_low = np.where(up, length, l_low), np.where(up, rate, r_low)
            l_high, r_high = np.where(up, l_high, length), np.where(up, r_high, rate)
        ends = []
        for at in (low, high):
            arms(at)
            ends.append((arms.rows.copy(), arms.q.copy(), arms.lost().copy()))
        for i in index:
            if not (ends[0][2][i] or ends[1][2][i]):
                count += _unnamed(arms, i, *((rows[i], q[i]) for rows, q, _ in ends))
    return count


def study(kind, count, seed=0, steps=STEPS):
    """Move arms through their swing and return what they did."""
    arms = Ensemble(kind, count, seed)
    angles = np.linspace(-SWING, SWING, steps + 1)
    step = angles[1] - angles[0]
    lengths, rates, slopes, lost, touched, cusps = [], [], [], [], 0, 0
    for k, angle in enumerate(angles):
        near = [arms(np.full(count, angle + d))[0] for d in (-DIFFERENCE, DIFFERENCE)]
        slopes.append((near[1] - near[0]) / (2 * DIFFERENCE))
        length, rate = arms(np.full(count, angle))
        lengths.append(length)
        rates.append(rate)
        lost.append(arms.lost())
        touched += int((arms.rows[:, :, 6] > 0.0).any(1).sum())
        if k % 4 == 0 and not arms.closed:
            cusps += int((arms.cusps() & ~lost[-1]).sum())
    lengths, rates, slopes, lost = map(np.array, (lengths, rates, slopes, lost))
    change = np.diff(lengths, axis=0) - 0.5 * step * (rates[1:] + rates[:-1])
    # lift-off has a corner of L: at most its change times a quarter of the step
    jumped = np.abs(change) > 1e-5 + 0.25 * step * np.abs(np.diff(rates, axis=0))
    jumped |= np.abs(np.diff(rates, axis=0)) > 0.02
    known = lost[1:] | lost[:-1]
    wrong = np.abs(slopes - rates) > 1e-6
    beside = np.zeros_like(lost)
    beside[1:] |= jumped
    beside[:-1] |= jumped
    return (
        arms,
        Study(
            lengths.size,
            touched,
            int(lost.sum()),
            cusps,
            int((wrong & ~lost & ~beside).sum()),
            int((jumped & ~known).sum()),
            0 if arms.closed else _count_unnamed(arms, jumped & ~known, angles),
        ),
    )


if __name__ == "__main__":
    for name in KINDS:
        print(name, study(name, int(sys.argv[1]) // 4)[1], flush=True)
