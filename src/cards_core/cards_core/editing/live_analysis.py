"""What an editor shows while muscles change: lengths, moment arms, closure, tensions.

Poses are fixed until the robot is posed anew: *curves*, along each coordinate with the others
where they are, and random *samples* of the working range. Muscles that have not changed are not
computed again (`cards_core.editing.pose_set`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from cards_core.analysis.arm_jumps import may_jump
from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.base import ConditionError
from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.robot_check import singular_values_of, within_range
from cards_core.analysis.status import PointStatus
from cards_core.analysis.tension_distribution import make_tension_distribution
from cards_core.analysis.tension_distribution.base import TensionLimitError
from cards_core.analysis.workspace.points import Samples
from cards_core.checks import finite_number
from cards_core.dynamics import Dynamics, make_dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.editing.pose_set import MuscleRows, PoseSet
from cards_core.robot.elements import Muscle, Wrap
from cards_core.robot.model import Robot
from cards_core.typing import Array

CURVE_POINTS = 25
"""Poses along each coordinate."""

SAMPLES = 200
"""Random poses of the working range."""

SPAN = {True: math.pi, False: 0.5}
"""Ends of a curve on either side, where a coordinate that turns, or slides, has no limits, [rad]
and [m]."""

BALL_SPAN = 1.0
"""The same of a ball joint, about its axes, [rad]."""


@dataclass(frozen=True, eq=False)
class HeldLoad:
    """A mass that the robot holds.

    Attributes:
        frame: Frame or link at whose origin it hangs.
        mass: [kg].
    """

    frame: str
    mass: float


@dataclass(frozen=True, eq=False)
class LiveResult:
    """Analysis of m muscles and nv coordinates, c of them moved by muscles.

    Attributes:
        robot: What was analysed.
        lengths: Of the muscles at the present pose, shape (m,), [m].
        values: Of each coordinate along its curve, relative to the present pose for ball joints,
            shape (nv, k), [rad] or [m].
        arms: Moment arm r = -dl/dq of every muscle about every coordinate along the curve of that
            coordinate, shape (m, nv, k), [m] or [1].
        here: The same at the present pose, shape (m, nv).
        full_rank: c.
        rank: Lowest rank of L over the samples; -1 where a path is not found; None without
            muscles.
        singular_value: Smallest singular value of L over the samples, [m] or [1]; NaN likewise.
        closure: Share of the samples in wrench closure (force closure), 0 to 1; None if no
            coordinate is moved by muscles.
        static: Share of the samples at which tensions within their limits hold gravity; likewise.
        tensions: For the held load at the present pose, shape (m,), [N]; NaN of muscles that take
            no tension, and where there is no answer.
        tension_status: Whether these hold it.
        problem: What could not be computed, and which moment arms jump; empty otherwise.
    """

    robot: Robot
    lengths: Array
    values: Array
    arms: Array
    here: Array
    full_rank: int
    rank: int | None
    singular_value: float
    closure: float | None
    static: float | None
    tensions: Array
    tension_status: PointStatus
    problem: str = ""


class LiveAnalysis:
    """Analyses variants of one robot that differ in muscles and wrap surfaces alone.

    Args:
        robot: The robot.
        samples: Number of random poses.
        curve_points: Number of poses along each coordinate.

    Attributes:
        tree: Its coordinates.
        q: The present pose, shape (nq,).

    Raises:
        CompilationError: There is no C compiler, and the library is not in the cache.
    """

    def __init__(
        self, robot: Robot, *, samples: int = SAMPLES, curve_points: int = CURVE_POINTS
    ) -> None:
        bare = replace(robot, muscles=(), wrap_surfaces=())
        self.tree = bare.tree
        self._dynamics = make_dynamics(bare)
        self._curve_points = curve_points
        bound = within_range(self.tree, Samples(samples)).bind(self.tree)
        self._samples = PoseSet(self.tree, bound.q(bound.values(0, bound.count)))
        self._at_samples = self._dynamics.batch(self._samples.q)
        self._sampled: dict[int, tuple[Muscle, tuple[object, ...], MuscleRows]] = {}
        self.pose(self.tree.home)

    def pose(self, q: Array) -> None:
        """Go to a pose, shape (nq,). Raises `ShapeError`."""
        self.q = self.tree.check_q(q)
        self.values = self._curve_values()
        k = self._curve_points
        rows = [self.q]
        for column in range(self.tree.nv):
            for value in self.values[column]:
                rows.append(self._moved(column, float(value)))
        assert len(rows) == 1 + self.tree.nv * k
        self._poses = PoseSet(self.tree, np.array(rows))
        self._posed: dict[int, tuple[Muscle, tuple[object, ...], MuscleRows]] = {}
        self._here = self._dynamics.batch(self.q[None])

    def _curve_values(self) -> Array:
        tree = self.tree
        out = np.empty((tree.nv, self._curve_points))
        for node in tree.nodes:
            columns = slice(node.v, node.v + node.nv)
            if node.kind == "ball":
                out[columns] = np.linspace(-BALL_SPAN, BALL_SPAN, self._curve_points)
                continue
            low, high = float(tree.lower[node.q]), float(tree.upper[node.q])
            span, now = SPAN[node.kind == "revolute"], float(self.q[node.q])
            low, high = (
                (low if math.isfinite(low) else now - span),
                (high if math.isfinite(high) else now + span),
            )
            out[columns] = np.linspace(low, high, self._curve_points)
        return out

    def _moved(self, column: int, value: float) -> Array:
        for node in self.tree.nodes:
            if node.v <= column < node.v + node.nv:
                if node.kind == "ball":
                    step = np.zeros(self.tree.nv)
                    step[column] = value
                    return self.tree.integrate(self.q, step)
                out = self.q.copy()
                out[node.q] = value
                return out
        raise AssertionError("every velocity belongs to a node")

    # Poses of links and paths -----------------------------------------------------------------

    def link_poses(self) -> Array:
        """Return link-to-world matrices at the present pose, shape (n, 4, 4)."""
        return self._poses.link_poses(0)

    def drawn(self, robot: Robot) -> list[Array]:
        """Return the path of every muscle at the present pose, arcs sampled, shape (k, 3), [m].

        Raises:
            DescriptionError: A path that cannot be.
        """
        return [self._poses.drawn(robot, muscle, 0) for muscle in robot.muscles]

    # Analysis ---------------------------------------------------------------------------------

    def analyse(
        self, robot: Robot, load: HeldLoad | None = None, *, whole: bool = True
    ) -> LiveResult:
        """Analyse a variant.

        Args:
            robot: The robot with other muscles and surfaces.
            load: What it holds besides itself.
            whole: With the samples; without, rank, closure and static are not asked for.

        Raises:
            CardsError: The mass is not a number >= 0.
            UnknownNameError: There is no such frame.
            DescriptionError: A path that cannot be.
        """
        if load is not None:
            finite_number(load.mass, "the mass of the load", at_least=0.0)
        rows = self._rows(robot, self._poses, self._posed)
        m, nv, k = len(rows), self.tree.nv, self._curve_points
        jacobian = np.array([row.jacobian for row in rows]).reshape(m, 1 + nv * k, nv)
        curves = -jacobian[:, 1:].reshape(m, nv, k, nv)
        arms = np.array([curves[:, j, :, j] for j in range(nv)]).reshape(nv, m, k)
        lengths = np.array([row.lengths[0] for row in rows])
        tensions, status, problem = self._hold(robot, lengths, jacobian[:, 0], load)
        problem = "; ".join(filter(None, [problem, *self._jumps(robot, rows, -arms)]))
        prepared = _prepared(robot)
        full = len(Actuation(prepared, motors=False).coordinates)
        rank, value, closure, static = None, math.nan, None, None
        if whole and m and full:
            state = self._state(self._rows(robot, self._samples, self._sampled), self._at_samples)
            rank, value = self._rank(prepared, state)
            closure = self._share(robot, state, "wrench_closure")
            static = self._share(robot, state, "static")
        return LiveResult(
            robot, lengths, self.values, arms.transpose(1, 0, 2), -jacobian[:, 0],
            full, rank, value, closure, static, tensions, status, problem,
        )  # fmt: skip

    def _jumps(self, robot: Robot, rows: list[MuscleRows], rates: Array) -> list[str]:
        """Say along which curves a moment arm jumps; rates have shape (nv, m, k)."""
        out = []
        for j, name in enumerate(self.tree.velocity_names):
            here = slice(1 + j * self._curve_points, 1 + (j + 1) * self._curve_points)
            lengths = np.array([row.lengths[here] for row in rows]).reshape(-1, self._curve_points)
            step = float(self.values[j, 1] - self.values[j, 0])
            for k, i in np.argwhere(may_jump(step, lengths.T, rates[j].T)):
                if any(isinstance(item, Wrap) for item in robot.muscles[i].path):
                    text = f"the moment arm of {robot.muscles[i].name} about {name} jumps at"
                    out.append(f"{text} {self.values[j, k]:.3g}")
        return out

    def _rows(
        self,
        robot: Robot,
        poses: PoseSet,
        known: dict[int, tuple[Muscle, tuple[object, ...], MuscleRows]],
    ) -> list[MuscleRows]:
        """Return the rows of all muscles; only what has changed is computed."""
        surfaces = {surface.name: surface for surface in robot.wrap_surfaces}
        out, kept = [], {}
        for muscle in robot.muscles:
            # descriptions are never changed in place: the same object is the same path
            used: tuple[object, ...] = tuple(
                surfaces.get(item.surface) for item in muscle.path if isinstance(item, Wrap)
            )
            found = known.get(id(muscle))
            if found is None or found[1] != used:
                found = muscle, used, poses.rows(robot, muscle)
            kept[id(muscle)] = found
            out.append(found[2])
        known.clear()
        known.update(kept)
        return out

    @staticmethod
    def _state(rows: list[MuscleRows], bare: BatchState) -> BatchState:
        """Return the state of a robot with muscles, of one without them and their rows."""
        return replace(
            bare,
            muscle_lengths=np.array([row.lengths for row in rows]).T,
            muscle_jacobian=np.array([row.jacobian for row in rows]).transpose(1, 0, 2).copy(),
        )

    def _rank(self, prepared: Dynamics, state: BatchState) -> tuple[int, float]:
        jacobian = Actuation(prepared, motors=False).jacobian(state)
        there = np.isfinite(jacobian).all(axis=(1, 2))
        if not there.all():
            return -1, math.nan
        rank, value, _ = singular_values_of(jacobian)
        return int(rank.min()), float(value.min())

    def _share(self, robot: Robot, state: BatchState, name: str) -> float | None:
        """Return the share of the samples that meet a condition; None if it cannot be asked."""
        prepared = _prepared(robot, state)
        try:
            status = make_condition(prepared, name).evaluate(self._samples.q)["status"]
        except ConditionError:  # every joint has a motor
            return None
        return float(np.mean(status == PointStatus.FEASIBLE))

    def _hold(
        self, robot: Robot, lengths: Array, jacobian: Array, load: HeldLoad | None
    ) -> tuple[Array, PointStatus, str]:
        """Return tensions of least norm with ``-L'f = G - J'w`` within their limits."""
        tensions = np.full(len(lengths), np.nan)
        if not len(lengths):
            return tensions, PointStatus.NO_MUSCLES, ""
        state = replace(
            self._here, muscle_lengths=lengths[None], muscle_jacobian=jacobian[None].copy()
        )
        actuation = Actuation(_prepared(robot))
        needed = actuation.load(state)[0]
        if load is not None and load.mass > 0.0:
            weight = load.mass * robot.gravity
            arm = self._poses.point_jacobian(load.frame)[0]
            needed = needed - (weight @ arm)[actuation.coordinates]
        try:
            method = make_tension_distribution(
                "least_norm", actuation.lower, actuation.upper, len(needed)
            )
        except TensionLimitError as error:
            return tensions, PointStatus.NOT_CONVERGED, str(error)
        result = method.solve(-actuation.jacobian(state)[0].T, needed)
        chosen = [
            i for i, m in enumerate(robot.muscles) if "force" in m.actuator.accepted_commands
        ]
        tensions[chosen] = result.tensions[: len(chosen)]
        return tensions, result.status, ""


class _Prepared:
    """Dynamics of a robot whose state is known; conditions and actuation take no other calls."""

    def __init__(self, robot: Robot, state: BatchState | None) -> None:
        self.robot, self.tree = robot, robot.tree
        self._state = state

    def batch(self, q: Array, qd: Array | None = None, threads: int = 1) -> BatchState:
        """Return the state that is known, whatever is asked for: a copy, conditions write."""
        assert self._state is not None
        return BatchState(*(np.array(values) for values in vars(self._state).values()))


def _prepared(robot: Robot, state: BatchState | None = None) -> Dynamics:
    return cast(Dynamics, _Prepared(robot, state))
