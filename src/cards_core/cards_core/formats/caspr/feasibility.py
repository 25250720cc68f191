"""Can the cables carry a trajectory? A linear programme at sampled times.

A pose or motion is feasible if tensions f with fmin <= f <= fmax exist such that::

    -L' f = G                        static: holding the pose
    -L' f = M qdd + C + G            dynamic: moving along a joint trajectory
    -L' f = M qdd + C + G,  J qdd + Jdot qd = ydd      operational: qdd is free within the task

Where an operational trajectory is at rest (yd = ydd = 0) nothing is free: the robot stands still,
so the static condition counts there as the dynamic one. Otherwise a robot whose base falls while
its hand stays would hold a point, for an instant.

L and f are those of the cables that take a command; what passive springs do is on the right-hand
side. Rows of joints that have a motor of their own are left out: CASPR puts no limit on their
torque.
For operational trajectories q follows from inverse kinematics that starts at the home position and
moves as little as possible, within the joint limits; other postures may be feasible where this one
is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from cards_core.dynamics.interface import Dynamics, DynamicsState
from cards_core.formats.caspr.operational_spaces import OperationalSpace
from cards_core.robot.actuators import Ligament
from cards_core.robot.motors import motors_of
from cards_core.trajectories.base import Reference
from cards_core.typing import Array

TOLERANCE = 1e-6
"""Largest accepted residual of the balance of forces, relative to the forces involved."""

REST_TOLERANCE = 1e-9
"""Speed and acceleration, relative to the largest of the trajectory, that count as rest."""

REACH_TOLERANCE = 1e-6
"""Largest accepted distance between the marker and the trajectory, [m]."""


@dataclass(frozen=True)
class Feasibility:
    """Result for one trajectory.

    Attributes:
        trajectory: Name.
        space: ``joint`` or ``operational``.
        samples: Number of sampled times, both ends included.
        static_fraction, dynamic_fraction: Feasible share of the samples, 0..1.
        first_static_failure, first_dynamic_failure: First infeasible time, [s], or None.
        outside_limits: First time at which a joint limit is violated, [s], or None.
        unreachable: First time at which the marker cannot follow, [s], or None.
        skipped: Why nothing was checked; empty otherwise.
    """

    trajectory: str
    space: str
    samples: int = 0
    static_fraction: float = math.nan
    dynamic_fraction: float = math.nan
    first_static_failure: float | None = None
    first_dynamic_failure: float | None = None
    outside_limits: float | None = None
    unreachable: float | None = None
    skipped: str = ""


@dataclass(frozen=True, eq=False)
class Actuation:
    """Force limits and the coordinates that depend on the cables alone.

    Attributes:
        lower: Minimum tensions of the commanded cables, shape (m,), [N].
        upper: Their maximum tensions, shape (m,), [N]; may be infinite.
        rows: Coordinates without a motor.
        passive: Index among the muscles and parameters of those that take no command.
    """

    lower: Array
    upper: Array
    rows: npt.NDArray[np.intp]
    passive: tuple[tuple[int, Ligament], ...] = ()

    def commanded(self, jacobian: Array) -> Array:
        """Return the rows of L that belong to commanded cables."""
        return np.delete(jacobian, [i for i, _ in self.passive], axis=0)

    def load(self, state: DynamicsState, load: Array) -> Array:
        """Return a load with what the passive muscles do added: ``load + L_p' f_p``.

        Their curve is linear from the rest length on, as `attach_cables` makes them.
        """
        out = np.array(load)
        for i, ligament in self.passive:
            strain = float(state.muscle_lengths[i]) / ligament.slack_length - 1.0
            out += state.muscle_jacobian[i] * ligament.stiffness * max(strain, 0.0)
        return out


def balance_residual(
    muscle_jacobian: Array,
    load: Array,
    actuation: Actuation,
    *,
    free: Array | None = None,
    equality: tuple[Array, Array] | None = None,
) -> float:
    """Return how far the load is from what the cables can carry; 0 if they can.

    Minimises t subject to ``|(-L' f - load - F x)_i| <= t s_i``, ``lower <= f <= upper`` and
    ``E x = e`` by linear programming (HiGHS), where s_i is the norm of column i of L.

    Args:
        muscle_jacobian: L, shape (m, n).
        load: Right-hand side, shape (n,), [Nm] or [N].
        actuation: Limits, and the rows i that count.
        free: F, shape (n, k); columns of unknowns x without limits.
        equality: E, shape (r, k), and e, shape (r,).

    Returns:
        t relative to the largest force involved; infinite if ``E x = e`` has no solution.
    """
    rows = actuation.rows
    if len(rows) == 0:
        return 0.0
    if not (np.isfinite(load).all() and np.isfinite(muscle_jacobian).all()):
        return math.inf
    jacobian = muscle_jacobian[:, rows]
    m, n = jacobian.shape
    columns = np.linalg.norm(jacobian, axis=0)
    # a coordinate that no cable moves has no scale of its own
    scale = np.where(columns > 1e-9 * max(columns.max(), 1e-12), columns, 1.0)
    target = load[rows] / scale
    magnitude = max(1.0, float(np.abs(target).max()), float(actuation.lower.max(initial=0.0)))
    x_matrix = np.zeros((n, 0)) if free is None else -free[rows] / scale[:, None] * magnitude
    k = x_matrix.shape[1]
    body = np.hstack([-jacobian.T / scale[:, None], x_matrix])
    slack = -magnitude * np.ones((n, 1))
    a_eq = b_eq = None
    if equality is not None:
        r = len(equality[1])
        a_eq = np.hstack([np.zeros((r, m)), equality[0], np.zeros((r, 1))])
        b_eq = equality[1] / magnitude
    result = linprog(
        np.concatenate([np.zeros(m + k), [1.0]]),
        A_ub=np.vstack([np.hstack([body, slack]), np.hstack([-body, slack])]),
        b_ub=np.concatenate([target, -target]),
        A_eq=a_eq,
        b_eq=b_eq,
        bounds=[
            *zip(actuation.lower, actuation.upper, strict=True),
            *[(None, None)] * k,
            (0.0, None),
        ],
        method="highs",
    )
    return float(result.fun) if result.status == 0 else math.inf


def actuation_of(dynamics: Dynamics) -> Actuation:
    """Return the actuation of a robot."""
    robot, tree = dynamics.robot, dynamics.tree
    passive = tuple(
        (i, m.actuator) for i, m in enumerate(robot.muscles) if isinstance(m.actuator, Ligament)
    )
    others = [i for i in range(len(robot.muscles)) if i not in dict(passive)]
    rows = np.setdiff1d(np.arange(tree.nv), motors_of(tree).rows)
    return Actuation(
        np.array([robot.muscles[i].tension_min for i in others]),
        np.array([robot.muscles[i].tension_max for i in others]),
        rows,
        passive,
    )


def check_trajectory(
    dynamics: Dynamics,
    reference: Reference,
    space: OperationalSpace | None = None,
    *,
    samples: int = 25,
) -> Feasibility:
    """Check a trajectory at equally spaced times, both ends included.

    Args:
        dynamics: Of the imported robot with its chosen cable set.
        reference: Joint trajectory in our order, or operational trajectory.
        space: Operational space of y, for operational trajectories.
        samples: Number of times, at least 2.
    """
    name, kind = reference.name, reference.space
    if kind == "operational" and (
        space is None or any(entry.kind != "position" for entry in space.entries)
    ):
        return Feasibility(name, kind, skipped="orientation of an operational space")
    times = np.linspace(0.0, reference.duration, max(samples, 2))
    actuation = actuation_of(dynamics)
    tree = dynamics.tree
    resting = _at_rest(reference, times)
    held, moved = np.zeros(len(times), dtype=bool), np.zeros(len(times), dtype=bool)
    outside: float | None = None
    unreachable: float | None = None
    q = tree.home.copy()
    for i, t in enumerate(times):
        y, yd, ydd = reference(float(t))
        if kind == "joint":
            q = y
            state = dynamics.update(q, yd)
            held[i] = _holds(state, actuation)
            moved[i] = _moves(state, actuation, ydd)
        else:
            assert space is not None
            q, error = _reach(dynamics, space, q, y)
            if error > REACH_TOLERANCE:
                unreachable = float(t) if unreachable is None else unreachable
                continue
            held[i], moved[i] = _follows(dynamics, space, q, (yd, ydd), actuation)
            if resting[i]:
                moved[i] = held[i]
        if outside is None and np.any((q < tree.lower - 1e-9) | (q > tree.upper + 1e-9)):
            outside = float(t)
    return Feasibility(
        name,
        kind,
        len(times),
        float(held.mean()),
        float(moved.mean()),
        _first(times, held),
        _first(times, moved),
        outside,
        unreachable,
    )


def _at_rest(reference: Reference, times: Array) -> npt.NDArray[np.bool_]:
    """Return at which times the reference stands still, shape (len(times),)."""
    rest = np.ones(len(times), dtype=bool)
    for order in (1, 2):
        rates = np.array([np.linalg.norm(reference(float(t))[order]) for t in times])
        rest &= rates <= REST_TOLERANCE * rates.max(initial=0.0)
    return rest


def _first(times: Array, good: npt.NDArray[np.bool_]) -> float | None:
    return None if good.all() else float(times[int(np.argmin(good))])


def _holds(state: DynamicsState, actuation: Actuation) -> bool:
    return _feasible(state, actuation, state.gravity)


def _moves(state: DynamicsState, actuation: Actuation, qdd: Array) -> bool:
    return _feasible(state, actuation, state.mass_matrix @ qdd + state.coriolis + state.gravity)


def _feasible(state: DynamicsState, actuation: Actuation, load: Array) -> bool:
    jacobian = actuation.commanded(state.muscle_jacobian)
    return balance_residual(jacobian, actuation.load(state, load), actuation) <= TOLERANCE


# Operational trajectories --------------------------------------------------------------------


def _task(
    dynamics: Dynamics, space: OperationalSpace, q: Array, qd: Array
) -> tuple[Array, Array, Array]:
    """Return y, its Jacobian and bias of a position space."""
    position: list[Array] = []
    jacobian: list[Array] = []
    bias: list[Array] = []
    for entry in space.entries:
        state = dynamics.operational(q, qd, entry.frame)
        rows = ["xyz".index(axis) for axis in entry.axes]
        position.append(np.array(state.position[rows]))
        jacobian.append(np.array(state.jacobian[rows]))
        bias.append(np.array(state.bias[rows]))
    return np.concatenate(position), np.vstack(jacobian), np.concatenate(bias)


def _reach(
    dynamics: Dynamics, space: OperationalSpace, start: Array, target: Array
) -> tuple[Array, float]:
    """Return q near ``start`` with y(q) = target within the limits, and the distance left.

    Levenberg-Marquardt with the active limits taken out of the Jacobian.
    """
    tree = dynamics.tree
    zero = np.zeros(tree.nv)
    q = np.clip(start, tree.lower, tree.upper)
    damping = 1e-4
    y, jacobian, _ = _task(dynamics, space, q, zero)
    error = float(np.linalg.norm(target - y))
    stalled = 0
    for _ in range(60):
        if error < 0.1 * REACH_TOLERANCE or stalled == 4:
            break
        gap = target - y
        step = jacobian.T @ np.linalg.solve(
            jacobian @ jacobian.T + damping * np.eye(len(gap)), gap
        )
        # coordinates at a limit that would leave it stay where they are
        stuck = ((q <= tree.lower) & (step < 0)) | ((q >= tree.upper) & (step > 0))
        if stuck.any():
            loose = np.where(stuck, 0.0, jacobian)
            step = loose.T @ np.linalg.solve(loose @ loose.T + damping * np.eye(len(gap)), gap)
        trial = np.clip(q + step, tree.lower, tree.upper)
        trial_y, trial_jacobian, _ = _task(dynamics, space, trial, zero)
        trial_error = float(np.linalg.norm(target - trial_y))
        stalled = stalled + 1 if trial_error > 0.999 * error else 0
        if trial_error < error:
            q, y, jacobian, error = trial, trial_y, trial_jacobian, trial_error
            damping = max(0.1 * damping, 1e-12)
        else:
            damping *= 30.0
    return q, error


def _follows(
    dynamics: Dynamics,
    space: OperationalSpace,
    q: Array,
    rates: tuple[Array, Array],
    actuation: Actuation,
) -> tuple[bool, bool]:
    """Return whether the pose can be held, and whether the task's yd, ydd can be made."""
    yd, ydd = rates
    _, jacobian, _ = _task(dynamics, space, q, np.zeros(dynamics.tree.nv))
    qd: Array = np.linalg.pinv(jacobian) @ yd
    _, jacobian, bias = _task(dynamics, space, q, qd)
    state = dynamics.update(q, qd)
    residual = balance_residual(
        actuation.commanded(state.muscle_jacobian),
        actuation.load(state, state.coriolis + state.gravity),
        actuation,
        free=state.mass_matrix,
        equality=(jacobian, ydd - bias),
    )
    return _holds(state, actuation), residual <= TOLERANCE


def summarize(results: Sequence[Feasibility]) -> str:
    """Return one line: how many of the trajectories are feasible throughout, in either sense."""
    checked = [item for item in results if not item.skipped]
    if not checked:
        return "no trajectory was checked"
    count = len(checked)
    static = sum(item.static_fraction == 1.0 for item in checked)
    dynamic = sum(item.dynamic_fraction == 1.0 for item in checked)
    return (
        f"trajectories feasible at every sample: static {static} of {count}, "
        f"dynamic {dynamic} of {count}"
    )
