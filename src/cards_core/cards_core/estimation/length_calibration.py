"""Calibration of incremental length sensors from poses that nobody knows.

An incremental encoder says how much a muscle got longer, not how long it is. At N poses that the
robot is held in, muscle k reads r_ik, and

    r_ik + o_k = l_k(q_i, a) + noise                 o_k: offset, the same at all poses

The offsets o, the poses q_1 .. q_N, and on request the positions a of via points are estimated
together, by least squares with what is known before:

    min  sum_ik (l_k(q_i, a) - r_ik - o_k)^2 / s^2  +  sum (q - joints)^2 / s_j^2
         + sum o^2 / s_o^2  +  sum (a - a_0)^2 / s_a^2

by Levenberg and Marquardt's method [More1978]_ on the tangent space of the poses. There are
N m readings for N nv + m unknowns: with redundancy, m > nv, known joints aside, they are enough
from some N on, if the moment arms change with the pose (`cards_core.estimation.offsets` has the
directions that no pose can tell). The covariance ``(J'J)^-1`` at the solution, the poses
eliminated, says how well each number is known; directions whose standard deviation is more than
half of what was assumed before are not told by the readings, and the parameters that have a part
in them are named.

Where several poses have the same lengths the first guess decides: begin near home.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain, cycle

import numpy as np

from cards_core.analysis.forward_kinematics import LengthSolver
from cards_core.analysis.tangent import TangentSpace
from cards_core.checks import check_choice, finite_number
from cards_core.dynamics import make_dynamics
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import ShapeError
from cards_core.estimation.initial_guess import EstimationError
from cards_core.robot.elements import WORLD, ViaPoint
from cards_core.robot.model import Robot
from cards_core.typing import Array

TOLD = 0.5
"""Standard deviation of a direction, relative to that before, above which it is not told."""

PART = 0.1
"""Part of a parameter in such a direction from which on it is named."""

MISFIT = 3.0
"""Misfit above which the readings are not those of this robot, or the poses found are others."""

NEAR = 5e-3
"""Residual of a first guess of a pose above which others are tried, [m]."""

TRIES = 20
"""Such others, at random within the limits."""

NEIGHBOURS = 3
"""Known poses at which a further one is looked for first, then `TRIES` times around all."""

SPREAD = 0.5
"""How far around, [rad] or [m]."""

GOOD = 2.0
"""Square of misfit and distance from a known pose at which no other solution is looked for."""

FIRST = 0.05
"""Standard deviation of the first pose while others are added, [rad] or [m]."""

APART = 0.05
"""Distance from which on two solutions are different ones, [rad] or [m]."""

ITERATIONS = 200
"""Most steps of the method."""

STEP_TOLERANCE = 1e-9
"""Change of every unknown [m], [rad] that ends it."""

COST_TOLERANCE = 1e-9
"""So does this one of the sum of squares, each over its variance, in an undamped step."""


@dataclass(frozen=True, eq=False)
class LengthCalibration:
    """What readings at unknown poses tell.

    Attributes:
        offsets: To be added to the readings, shape (m,), [m].
        offset_stds: Their standard deviations, [m].
        points: ``muscle/index`` of a via point to its position in its link, shape (3,), [m].
        point_stds: The same to standard deviations, shape (3,), [m].
        q: The poses, shape (N, nq).
        residuals: Readings plus offsets minus lengths of the model, shape (N, m), [m].
        rms: Root mean square of the residuals, [m].
        misfit: Root of the sum of squares over the degrees of freedom that are left: about 1 if
            the noise is what was assumed and the description is right.
        undetermined: Parameters that the readings do not tell, e.g. ``biceps`` or ``biceps/1/x``.
        converged: Whether the method came to its end.
        iterations: Steps of the method.
    """

    offsets: Array
    offset_stds: Array
    points: Mapping[str, Array]
    point_stds: Mapping[str, Array]
    q: Array
    residuals: Array
    rms: float
    misfit: float
    undetermined: tuple[str, ...]
    converged: bool
    iterations: int

    def __bool__(self) -> bool:
        """Return True if all was found, and the readings fit the robot."""
        return self.converged and not self.undetermined and self.misfit < MISFIT


def calibrate_lengths(
    robot: Robot,
    readings: Array,
    *,
    joints: Array | None = None,
    first: Array | None = None,
    points_of: Sequence[str] = (),
    length_noise: float = 2e-4,
    joint_noise: float = 2e-3,
    offset_std: float = 1.0,
    point_std: float = 5e-3,
) -> LengthCalibration:
    """Estimate offsets of length sensors, poses, and positions of via points.

    Args:
        robot: The robot; of the via points its description is the first guess.
        readings: Lengths up to an offset of each muscle, shape (N, m), [m].
        joints: Coordinates that are known from elsewhere, shape (N, nq); NaN where not. Without
            it none is.
        first: Guess of the first pose, shape (nq,); default home.
        points_of: Muscles whose via points are estimated, those that do not move left out: of
            those the description must be right.
        length_noise: Standard deviation of a reading, s, [m].
        joint_noise: Of ``joints``, s_j, [rad] or [m].
        offset_std: Of the offsets beforehand, s_o, [m].
        point_std: Of the via points beforehand, s_a, [m].

    Raises:
        ShapeError: Arrays that do not fit the robot or each other, or numbers that are not finite.
        UnknownNameError: No such muscle.
        EstimationError: Fewer muscles and known joints than coordinates, or points of a muscle
            that wraps.
    """
    return _Problem(
        robot,
        readings,
        joints,
        points_of,
        (length_noise, joint_noise, offset_std, point_std),
    ).solve(first)


class _Problem:
    """The least-squares problem; unknowns: moves of the poses, offsets, moves of the points."""

    def __init__(
        self,
        robot: Robot,
        readings: Array,
        joints: Array | None,
        points_of: Sequence[str],
        stds: tuple[float, float, float, float],
    ) -> None:
        tree = robot.tree
        self.robot, self.tree, self.space = robot, tree, TangentSpace(tree)
        self.names = [muscle.name for muscle in robot.muscles]
        m = len(self.names)
        self.readings = np.array(readings, dtype=float)
        if self.readings.ndim != 2 or self.readings.shape[1] != m or not len(self.readings):
            raise ShapeError(
                f"readings have shape {self.readings.shape}; expected (N, {m}), one for each of "
                f"{', '.join(self.names)}"
            )
        for row, k in np.argwhere(~np.isfinite(self.readings))[:1]:
            raise ShapeError(
                f"reading of '{self.names[k]}' in pose {row + 1} is {self.readings[row, k]}, not "
                "finite; leave such poses out"
            )
        self.count = len(self.readings)
        self.joints = (
            np.full((self.count, tree.nq), np.nan) if joints is None else np.array(joints)
        )
        if self.joints.shape != (self.count, tree.nq):
            raise ShapeError(
                f"joints have shape {self.joints.shape}; expected ({self.count}, {tree.nq})"
            )
        known = np.isfinite(self.joints)
        for node in tree.nodes:
            if node.kind == "ball" and known[:, node.q : node.q + 4].any():
                raise EstimationError(
                    f"joint '{node.name}' is a ball joint, whose sensor is not supported; "
                    "expected NaN for its four numbers"
                )
        fewest = int(known.sum(axis=1).min())
        if m + fewest < tree.nv:
            raise EstimationError(
                f"{m} muscles and {fewest} known joints do not determine a pose of {tree.nv} "
                "coordinates; expected at least as many"
            )
        names = ("length_noise", "joint_noise", "offset_std", "point_std")
        for name, value in zip(names, stds, strict=True):
            finite_number(value, name, above=0.0, error=ShapeError)
        self.noise, self.joint_noise, self.offset_std, self.point_std = stds
        self.points = _points(robot, points_of)
        self.dynamics: Dynamics = make_dynamics(robot)
        # where q is, in qd, of coordinates that are numbers
        self._velocity_of = {
            node.q + k: node.v + k
            for node in tree.nodes
            if node.kind != "ball"
            for k in range(node.nv)
        }
        self.first: Array | None = None
        self.most = ITERATIONS
        self.known = [(int(i), int(k), self._velocity_of[int(k)]) for i, k in np.argwhere(known)]

    def solve(self, first: Array | None) -> LengthCalibration:
        found = self._refined(*self._begin(first))
        if not found.misfit**2 < GOOD and (grown := self._grown(first)) is not None:
            found = min(found, grown, key=lambda one: one.misfit)
        return found

    def _refined(self, q: Array, offsets: Array) -> LengthCalibration:
        """Return the minimum next to a start."""
        points = np.array([self._position(k, j) for k, j in self.points]).reshape(-1, 3)
        start = points.copy()
        residual, jacobian = self._evaluate(q, offsets, points, start)
        cost, mu, iterations, converged = float(residual @ residual), 1e-6, 0, False
        while iterations < self.most and not converged:
            iterations += 1
            normal, gradient = jacobian.T @ jacobian, jacobian.T @ residual
            damped = normal + mu * np.diag(np.diagonal(normal) + 1e-12)
            step: Array = -np.linalg.lstsq(damped, gradient, rcond=None)[0].astype(float)
            trial = self._moved(q, offsets, points, step)
            found = self._evaluate(*trial, start)
            new_cost = float(found[0] @ found[0])
            if new_cost <= cost * (1.0 + 1e-12):
                converged = float(np.abs(step).max()) < STEP_TOLERANCE or (
                    mu < 1e-3 and cost - new_cost < COST_TOLERANCE
                )
                q, offsets, points = trial
                (residual, jacobian), cost, mu = found, new_cost, max(mu / 10.0, 1e-12)
            else:
                mu *= 10.0
                # no step is better any more: only rounding is left
                converged = mu > 1e8
        stds, undetermined = self._told(jacobian, points.size)
        residuals = -residual[: self.readings.size].reshape(self.readings.shape) * self.noise
        left = max(len(residual) - jacobian.shape[1], 1)
        keys = [f"{self.names[k]}/{j}" for k, j in self.points]
        m = len(self.names)
        return LengthCalibration(
            offsets=offsets,
            offset_stds=stds[:m],
            points=dict(zip(keys, points, strict=True)),
            point_stds=dict(zip(keys, stds[m:].reshape(-1, 3), strict=True)),
            q=q,
            residuals=residuals,
            rms=float(np.sqrt(np.mean(residuals**2))),
            misfit=float(np.sqrt(cost / left)),
            undetermined=undetermined,
            converged=converged,
            iterations=iterations,
        )

    def _begin(self, first: Array | None) -> tuple[Array, Array]:
        """Return the poses that follow from one another if the first guess is right."""
        q = self.tree.home if first is None else self.tree.check_q(first)
        seen = np.isfinite(self.joints[0])
        q = np.where(seen, self.joints[0], q)
        offsets = self._lengths(self.dynamics, q)[0] - self.readings[0]
        solver, poses, rng = LengthSolver(self.dynamics), [], np.random.default_rng(0)
        for reading, known in zip(self.readings, self.joints, strict=True):
            best = solver.solve(q, reading + offsets)
            for _ in range(TRIES):
                if best.residual < NEAR:
                    break
                other = solver.solve(self.tree.random(rng), reading + offsets)
                best = min(best, other, key=lambda solution: solution.residual)
            q = best.q
            poses.append(np.where(np.isfinite(known), known, q))
        return np.array(poses), offsets

    def _grown(self, first: Array | None) -> LengthCalibration | None:
        """Return what adding pose by pose finds, next the one with the nearest readings.

        All poses and offsets so far are estimated anew each time: a new pose then begins with
        offsets that are told better, next to one that is near. None if one does not fit.
        """

        def known(i: int, q: Array) -> Array:
            return np.where(np.isfinite(self.joints[i]), self.joints[i], q)

        q, offsets = self._begin(first)
        solver, rng = LengthSolver(self.dynamics), np.random.default_rng(0)
        apart = np.linalg.norm(self.readings[:, None] - self.readings, axis=2)
        rows, poses = [0], q[:1]
        while len(rows) < self.count:
            left = [i for i in range(self.count) if i not in rows]
            new = min(left, key=lambda i: apart[i, rows].min())
            reading = self.readings[new] + offsets
            near = np.argsort(apart[new, rows])
            moves = rng.normal(scale=SPREAD, size=(TRIES, self.tree.nv))
            around = (
                self.space.integrate(poses[k], v) for k, v in zip(cycle(near), moves, strict=False)
            )
            starts = map(self.space.clip, chain(poses[near[:NEIGHBOURS]], around))
            rows.append(new)
            part = self._part(rows, q[0])
            seen: list[Array] = []
            tried: list[tuple[float, LengthCalibration]] = []
            for begin in starts:
                one = known(new, solver.solve(known(new, begin), reading).q)
                if all(np.abs(self.tree.difference(one, p)).max() > APART for p in seen):
                    seen.append(one)
                    found = part._refined(np.vstack([poses, one]), offsets)
                    way = self.tree.difference(found.q[-1], found.q[near[0]])
                    tried.append((found.misfit**2 + float(way @ way), found))
                if tried[-1][0] < GOOD:
                    break
            _, best = min(tried, key=lambda pair: pair[0])
            if not best.misfit < MISFIT:
                return None
            poses, offsets = best.q, best.offsets
        back = np.argsort(rows)
        return self._refined(poses[back], offsets)

    def _part(self, rows: list[int], first: Array) -> _Problem:
        """Return the problem of some of the poses, the first one near where it was thought."""
        out = copy(self)
        out.first, out.most = first, ITERATIONS // 4
        out.readings, out.joints, out.count = self.readings[rows], self.joints[rows], len(rows)
        out.known = [(rows.index(i), k, v) for i, k, v in self.known if i in rows]
        return out

    def _position(self, muscle: int, index: int) -> Array:
        element = self.robot.muscles[muscle].path[index]
        assert isinstance(element, ViaPoint)
        return element.position

    def _moved(
        self, q: Array, offsets: Array, points: Array, step: Array
    ) -> tuple[Array, Array, Array]:
        n = self.count * self.tree.nv
        moves = step[:n].reshape(self.count, self.tree.nv)
        poses = np.array([self.space.integrate(a, b) for a, b in zip(q, moves, strict=True)])
        m = len(self.names)
        return poses, offsets + step[n : n + m], points + step[n + m :].reshape(-1, 3)

    def _lengths(self, dynamics: Dynamics, q: Array) -> tuple[Array, Array]:
        state = dynamics.update(q, np.zeros(self.tree.nv))
        return state.muscle_lengths.copy(), state.muscle_jacobian.copy()

    def _evaluate(
        self, q: Array, offsets: Array, points: Array, start: Array
    ) -> tuple[Array, Array]:
        """Return all residuals over their standard deviations, and their derivatives."""
        m, nv, count = len(self.names), self.tree.nv, self.count
        model = self.dynamics
        if self.points:  # of other points there is another model, built in every step
            model = make_dynamics(self._with_points(points), "numeric")
        unknowns = count * nv + m + points.size
        rows = np.zeros((count, m, unknowns))
        lengths = np.empty((count, m))
        diagonal = np.arange(m)
        for i in range(count):
            lengths[i], rows[i, :, i * nv : (i + 1) * nv] = self._lengths(model, q[i])
            rows[i, diagonal, count * nv + diagonal] = -1.0
            if self.points:
                poses = model.link_poses(q[i])
                for number, (muscle, index) in enumerate(self.points):
                    place = count * nv + m + 3 * number
                    slope = self._by_point(poses, points, muscle, index)
                    rows[i, muscle, place : place + 3] = slope
        residual = [(lengths - self.readings - offsets).ravel() / self.noise]
        blocks = [rows.reshape(count * m, unknowns) / self.noise]
        if self.first is not None:
            residual.append(self.tree.difference(q[0], self.first) / FIRST)
            blocks.append(np.eye(nv, unknowns) / FIRST)
        priors = np.zeros((len(self.known) + m + points.size, unknowns))
        values = np.zeros(len(priors))
        for row, (i, k, v) in enumerate(self.known):
            priors[row, i * nv + v] = 1.0 / self.joint_noise
            values[row] = (q[i, k] - self.joints[i, k]) / self.joint_noise
        at = len(self.known)
        priors[at : at + m, count * nv : count * nv + m] = np.eye(m) / self.offset_std
        values[at : at + m] = offsets / self.offset_std
        at += m
        priors[at:, count * nv + m :] = np.eye(points.size) / self.point_std
        values[at:] = (points - start).ravel() / self.point_std
        return np.concatenate([*residual, values]), np.concatenate([*blocks, priors])

    def _with_points(self, points: Array) -> Robot:
        muscles = [list(muscle.path) for muscle in self.robot.muscles]
        for (muscle, index), position in zip(self.points, points, strict=True):
            element = muscles[muscle][index]
            assert isinstance(element, ViaPoint)
            muscles[muscle][index] = replace(element, position=position)
        changed = tuple(
            replace(muscle, path=tuple(path))
            for muscle, path in zip(self.robot.muscles, muscles, strict=True)
        )
        return replace(self.robot, muscles=changed)

    def _by_point(self, poses: Array, points: Array, muscle: int, index: int) -> Array:
        """Return the derivative of a length by the position of one of its points, (3,)."""
        path = self.robot.muscles[muscle].path
        moved = {j: points[row] for row, (k, j) in enumerate(self.points) if k == muscle}
        links = {link.name: row for row, link in enumerate(self.robot.links)}

        def world(j: int) -> tuple[Array, Array]:
            element = path[j]
            assert isinstance(element, ViaPoint)
            position = moved.get(j, element.position)
            if element.link == WORLD:
                return np.asarray(position), np.eye(3)
            pose = poses[links[element.link]]
            return pose[:3, :3] @ position + pose[:3, 3], pose[:3, :3]

        here, rotation = world(index)
        slope = np.zeros(3)
        for j in (index - 1, index + 1):
            if 0 <= j < len(path):
                away = here - world(j)[0]
                slope += away / max(float(np.linalg.norm(away)), 1e-12)
        return np.asarray(rotation.T @ slope)

    def _told(self, jacobian: Array, points: int) -> tuple[Array, tuple[str, ...]]:
        """Return standard deviations of offsets and points, and what the readings do not tell."""
        m, n = len(self.names), self.count * self.tree.nv
        # the poses eliminated: what the readings tell of the rest, whatever the poses
        of_poses, rest = jacobian[:, :n], jacobian[:, n:]
        norms = np.linalg.norm(of_poses, axis=0)
        basis, values, _ = np.linalg.svd(
            of_poses / np.where(norms > 0.0, norms, 1.0), full_matrices=False
        )
        basis = basis[:, values > 1e-9 * values.max(initial=1.0)]
        told = rest - basis @ (basis.T @ rest)
        before = np.repeat([self.offset_std, self.point_std], [m, points])
        covariance = np.linalg.inv((told.T @ told) * np.outer(before, before))
        spread, directions = np.linalg.eigh(covariance)
        hidden = directions[:, spread > TOLD**2]
        names = self.names + [
            f"{self.names[k]}/{j}/{axis}" for k, j in self.points for axis in "xyz"
        ]
        parts = np.linalg.norm(hidden, axis=1) > PART
        stds = np.sqrt(np.diagonal(covariance)) * before
        return stds, tuple(n for n, part in zip(names, parts, strict=True) if part)


def _points(robot: Robot, muscles: Sequence[str]) -> list[tuple[int, int]]:
    """Return muscle and place in its path of the points to estimate."""
    names = [muscle.name for muscle in robot.muscles]
    still = {WORLD}
    for joint in robot.joints:  # parents come before children
        if joint.kind == "fixed" and joint.parent in still:
            still.add(joint.child)
    out: list[tuple[int, int]] = []
    for name in muscles:
        check_choice(name, "muscle", names)
        row = names.index(name)
        path = robot.muscles[row].path
        if not all(isinstance(element, ViaPoint) for element in path):
            raise EstimationError(
                f"muscle '{name}' wraps or has a pulley; expected one of via points alone"
            )
        out += [
            (row, j)
            for j, element in enumerate(path)
            if isinstance(element, ViaPoint) and element.link not in still
        ]
    return out
