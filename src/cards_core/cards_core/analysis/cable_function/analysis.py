"""What each muscle is for: its moment arms, the workspace it gives, the tensions it must have.

The question is that of [Lau2014]: which muscles make which part of a workspace possible?

The minimum and maximum tension of every muscle over all distributions of one load,

    min and max of f_i  with  -L' f = w,  lower <= f <= upper

are two linear programs a muscle, solved by the simplex method in ``native/tension_ranges.c``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.analysis.cable_function.result import (
    CableFunction,
    MomentArms,
    Necessity,
    TensionUse,
)
from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.base import Condition, ConditionError
from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.native_library import Rows, native_library, pointer
from cards_core.analysis.status import PointStatus
from cards_core.checks import finite_number
from cards_core.dynamics import Dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.dynamics.interface import DynamicsState, OperationalState
from cards_core.errors import ShapeError
from cards_core.typing import Array

TOLERANCE = 1e-9
"""Largest residual of a scaled row of -L'f = w, relative to the largest scaled load or tension,
that counts as none."""


def tension_ranges(
    jacobian: Array, load: Array, lower: Array, upper: Array, *, tolerance: float = TOLERANCE
) -> tuple[npt.NDArray[np.uint8], Array, Array]:
    """Return the range of every tension, for n poses.

    Any rank of L is allowed. Rows may also be motors, with negative lower limits.

    Args:
        jacobian: L, shape (n, m, nv).
        load: w, shape (n, nv), [Nm] or [N].
        lower: Minimum tensions, finite, shape (m,), [N].
        upper: Maximum tensions, may be infinite, shape (m,), [N].
        tolerance: See `TOLERANCE`.

    Returns:
        Statuses, shape (n,): FEASIBLE, INFEASIBLE (no distribution carries the load), NOT_FINITE,
        NOT_CONVERGED. Minimum and maximum tensions, shape (n, m), [N]; NaN without a distribution,
        infinite where nothing limits a tension.

    Raises:
        ShapeError: Shapes that do not fit, or limits that are no limits.
        CompilationError: There is no C compiler.
        MemoryError: There is no memory for the workspace.
    """
    finite_number(tolerance, "tolerance of tension ranges", at_least=0.0)
    if jacobian.ndim != 3:
        raise ShapeError(f"L has shape {jacobian.shape}, expected (n, m, nv)")
    n, m, nv = jacobian.shape
    lower, upper = (np.ascontiguousarray(x, dtype=float) for x in (lower, upper))
    for name, values, shape in (("load", load, (n, nv)), ("lower", lower, (m,)),
                                ("upper", upper, (m,))):  # fmt: skip
        if values.shape != shape:
            raise ShapeError(f"{name} has shape {values.shape}, expected {shape}")
    if not (np.isfinite(lower).all() and (lower <= upper).all()):
        raise ShapeError(f"limits {lower} to {upper}, expected finite lower ones below the upper")
    rows, loads = Rows(jacobian), Rows(np.asarray(load, dtype=float))
    status = np.empty(n, dtype=np.uint8)
    least, most = np.empty((n, m)), np.empty((n, m))
    library = native_library("tension ranges", "tension_ranges")
    good = library.cards_tension_ranges(
        ctypes.c_long(n),
        ctypes.c_int(nv),
        ctypes.c_int(m),
        *rows.arguments,
        *loads.arguments,
        pointer(lower),
        pointer(upper),
        ctypes.c_double(tolerance),
        *(pointer(values) for values in (status, least, most)),
    )
    if not good:
        raise MemoryError("no memory for the linear programs")
    return status, least, most


class WithoutMuscles:
    """Dynamics of a robot from which muscles were taken; see `cards_core.dynamics.Dynamics`.

    Muscles have no mass, so everything but l and L is that of the whole robot, and l and L lose
    rows.

    Args:
        dynamics: Of the whole robot.
        removed: Names of muscles.

    Raises:
        UnknownNameError: No muscle has this name.
    """

    def __init__(self, dynamics: Dynamics, removed: Iterable[str]) -> None:
        robot = dynamics.robot
        gone = {robot.muscle(name).name for name in removed}
        self._whole = dynamics
        self._kept = np.array(
            [i for i, m in enumerate(robot.muscles) if m.name not in gone], dtype=np.intp
        )
        self.robot = replace(robot, muscles=tuple(robot.muscles[i] for i in self._kept))
        self.tree = self.robot.tree

    def update(self, q: Array, qd: Array) -> DynamicsState:
        """See `Dynamics.update`."""
        state = self._whole.update(q, qd)
        return SimpleNamespace(
            mass_matrix=state.mass_matrix,
            coriolis=state.coriolis,
            gravity=state.gravity,
            muscle_lengths=state.muscle_lengths[self._kept],
            muscle_jacobian=state.muscle_jacobian[self._kept],
        )

    def batch(self, q: Array, qd: Array | None = None, threads: int = 1) -> BatchState:
        """See `Dynamics.batch`."""
        return self.part(self._whole.batch(q, qd, threads))

    @property
    def path_failures(self) -> int:
        """See `Dynamics.path_failures`; of the whole robot."""
        return self._whole.path_failures

    @property
    def lost_muscles(self) -> npt.NDArray[np.bool_]:
        """See `Dynamics.lost_muscles`."""
        return self._whole.lost_muscles[self._kept]

    def part(self, state: BatchState) -> BatchState:
        """Return what is left of states of the whole robot."""
        return BatchState(
            mass_matrix=state.mass_matrix,
            coriolis=state.coriolis,
            gravity=state.gravity,
            muscle_lengths=state.muscle_lengths[:, self._kept],
            muscle_jacobian=state.muscle_jacobian[:, self._kept],
        )

    def jacobian_gradient(self, q: Array) -> Array:
        """See `Dynamics.jacobian_gradient`."""
        gradient: Array = self._whole.jacobian_gradient(q)[self._kept]
        return gradient

    def operational(self, q: Array, qd: Array, frame: str | None = None) -> OperationalState:
        """See `Dynamics.operational`."""
        return self._whole.operational(q, qd, frame)

    def muscle_bias(self, q: Array, qd: Array) -> Array:
        """See `Dynamics.muscle_bias`."""
        bias: Array = self._whole.muscle_bias(q, qd)[self._kept]
        return bias

    def batch_link_poses(self, q: Array, threads: int = 1) -> Array:
        """Return the poses of many states; they do not depend on muscles."""
        return self._whole.batch_link_poses(q, threads)

    def link_poses(self, q: Array) -> Array:
        """See `Dynamics.link_poses`."""
        return self._whole.link_poses(q)


ARM_TOLERANCE = 1e-6
"""Moment arms up to this count as none, [m] for rotations, [1] for slides."""

TENSION_TOLERANCE = 1e-6
"""Tension above the lower limit that counts as none, relative to the largest tension limit."""

CHUNK = 512
"""Poses that are analysed at once."""

CONDITIONS: Mapping[str, Any] = {"static": None, "wrench_closure": None}
"""Conditions whose workspaces are compared unless others are asked for, with their options."""


def analyse_cable_function(
    dynamics: Dynamics,
    q: Array,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    conditions: Mapping[str, Any] | None = None,
    arm_tolerance: float = ARM_TOLERANCE,
    tension_tolerance: float = TENSION_TOLERANCE,
    progress: Callable[[int], None] | None = None,
) -> CableFunction:
    """Find what each muscle is for, over a set of poses.

    Args:
        dynamics: Of the robot.
        q: Poses, shape (n, nq). Rows that are not finite count for nothing.
        groups: Name to muscles that are removed together, besides every muscle alone.
        conditions: Name in `cards_core.analysis.conditions.registry.CONDITIONS` to options (an
            object, a mapping, or None for the defaults); default: `CONDITIONS`.
        arm_tolerance: See `ARM_TOLERANCE`.
        tension_tolerance: See `TENSION_TOLERANCE`.
        progress: Called with the number of poses that are done.

    Raises:
        ShapeError: q does not have nq columns.
        UnknownNameError: A muscle or condition that does not exist.
        ConditionError: A group without muscles or with a muscle's name, or a condition that the
            robot or its options do not allow.
        CardsError: A tolerance that is not finite and >= 0.
    """
    finite_number(arm_tolerance, "arm_tolerance [m]", at_least=0.0)
    finite_number(tension_tolerance, "tension_tolerance", at_least=0.0)
    q = np.asarray(q, dtype=float)
    tree = dynamics.tree
    if q.ndim != 2 or q.shape[1] != tree.nq:
        raise ShapeError(f"q has shape {q.shape}, expected (n, {tree.nq})")
    cut = _groups(dynamics, groups or {})
    robots: list[Dynamics] = [dynamics]
    robots += [WithoutMuscles(dynamics, names) for names in cut.values()]
    asked = CONDITIONS if conditions is None else conditions
    made: dict[str, list[Condition]] = {
        name: [make_condition(one, name, options) for one in robots]
        for name, options in asked.items()
    }
    statuses = {name: np.empty((len(q), len(robots)), dtype=np.uint8) for name in asked}
    arms = _Arms(len(dynamics.robot.muscles), tree.nv, arm_tolerance)
    tensions = _Tensions(dynamics, len(q), tension_tolerance)
    for start in range(0, len(q), CHUNK):
        rows = slice(start, min(start + CHUNK, len(q)))
        state = dynamics.batch(q[rows])
        arms.add(state)
        tensions.add(rows, state)
        for name, each in made.items():
            for k, condition in enumerate(each):
                statuses[name][rows, k] = condition.evaluate(q[rows])["status"]
        if progress is not None:
            progress(rows.stop)
    units = ["m"] * tree.nv
    for node in tree.nodes:
        if node.kind == "prismatic":
            units[node.v] = ""
    return CableFunction(
        robot=dynamics.robot.name,
        muscles=tuple(muscle.name for muscle in dynamics.robot.muscles),
        coordinates=tuple(tree.velocity_names),
        units=tuple(units),
        poses=len(q),
        groups=cut,
        arms=arms.result(),
        necessity={name: Necessity(found) for name, found in statuses.items()},
        tensions=tensions.result(),
    )


def _groups(dynamics: Dynamics, groups: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Every muscle alone, then the groups."""
    robot = dynamics.robot
    out: dict[str, tuple[str, ...]] = {m.name: (m.name,) for m in robot.muscles}
    for name, members in groups.items():
        if name in out:
            raise ConditionError(f"group '{name}' has the name of a muscle (expected: another)")
        chosen = tuple(dict.fromkeys(robot.muscle(member).name for member in members))
        if not chosen:
            raise ConditionError(f"group '{name}' has no muscles (expected: one or more)")
        out[name] = chosen
    return out


class _Arms:
    """Statistics of moment arms over poses that come in pieces."""

    def __init__(self, muscles: int, velocities: int, tolerance: float) -> None:
        shape = (muscles, velocities)
        self._tolerance = tolerance
        self._poses = 0
        self._positive = np.zeros(shape, dtype=np.intp)
        self._negative = np.zeros(shape, dtype=np.intp)
        self._least, self._most = np.full(shape, np.inf), np.full(shape, -np.inf)
        self._sum = np.zeros(shape)

    def add(self, state: BatchState) -> None:
        """Count the poses that are finite."""
        finite = np.isfinite(state.gravity).all(axis=1)
        finite &= np.isfinite(state.muscle_jacobian).all(axis=(1, 2))
        arms = -state.muscle_jacobian[finite]
        self._poses += len(arms)
        self._positive += (arms > self._tolerance).sum(axis=0)
        self._negative += (arms < -self._tolerance).sum(axis=0)
        self._least = np.minimum(self._least, arms.min(axis=0, initial=np.inf))
        self._most = np.maximum(self._most, arms.max(axis=0, initial=-np.inf))
        self._sum += np.abs(arms).sum(axis=0)

    def result(self) -> MomentArms:
        """Return the statistics; NaN where there are no poses."""
        if not self._poses:
            nothing = np.full(self._sum.shape, np.nan)
            return MomentArms(0, self._positive, self._negative, nothing, nothing, nothing)
        mean = self._sum / self._poses
        return MomentArms(
            self._poses, self._positive, self._negative, self._least, self._most, mean
        )


class _Tensions:
    """Ranges of the tensions, pose by pose."""

    def __init__(self, dynamics: Dynamics, poses: int, tolerance: float) -> None:
        self._actuation = actuation = Actuation(dynamics)
        self._count = count = actuation.muscles
        self._muscles = tuple(
            m.name for m in dynamics.robot.muscles if "force" in m.actuator.accepted_commands
        )
        self._statuses = np.full(poses, PointStatus.NO_MUSCLES, dtype=np.uint8)
        self._least, self._most = np.full((2, poses, count), np.nan)
        limits = np.concatenate([actuation.lower[:count], actuation.upper[:count]])
        largest = np.max(limits[np.isfinite(limits)], initial=0.0)
        self._tolerance = tolerance * (float(largest) or 1.0)

    def add(self, rows: slice, state: BatchState) -> None:
        """Solve the programs of some poses."""
        if not self._count:
            return
        actuation = self._actuation
        status, least, most = tension_ranges(
            actuation.jacobian(state), actuation.load(state), actuation.lower, actuation.upper
        )
        self._statuses[rows] = status
        self._least[rows] = least[:, : self._count]
        self._most[rows] = most[:, : self._count]

    def result(self) -> TensionUse:
        """Return the ranges."""
        return TensionUse(
            muscles=self._muscles,
            statuses=self._statuses,
            lower=self._actuation.lower[: self._count],
            upper=self._actuation.upper[: self._count],
            least=self._least,
            most=self._most,
            tolerance=self._tolerance,
        )
