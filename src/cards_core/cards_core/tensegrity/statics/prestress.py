"""Prestress: tensions in which a structure holds itself, and the rest lengths that make them.

All tensions of a shape without load are ``f = S a`` with the states of self-stress S. Wanted are
those with every cable taut:

    max_min      max s       subject to  f >= s,  mean(f) given          linear program
    least_norm   min |f|^2   subject to  f_min <= f <= f_max             quadratic program

A shape in which no f is positive throughout has no such prestress. The cables that are slack in
all of them are found by a linear program: the largest number of taut cables is

    max 1'u    subject to  0 <= u <= S a,  u <= 1

where u_i is 1 for every cable that can be taut and 0 for the others, because sums and positive
multiples of prestresses are prestresses. Linear programs are solved by HiGHS [Huangfu2018]_.

An elastic cable of stiffness k and length l has the tension f at the rest length ``L0 = l - f/k``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cards_core.checks import check_choice
from cards_core.errors import ShapeError
from cards_core.optimize.qp import QP_INFINITY, QpStatus
from cards_core.optimize.qp_backends import make_qp_solver
from cards_core.robot.actuators import Cable
from cards_core.robot.model import Robot
from cards_core.tensegrity.statics.equilibrium import (
    EquilibriumAnalysis,
    NoPrestressError,
    StaticsError,
)
from cards_core.typing import Array

METHODS = ("max_min", "least_norm")
"""What is looked for among the prestresses."""

TAUT = 1e-9
"""Tension relative to the mean that counts as none."""

NAMED = 12
"""Names in a message."""


@dataclass(frozen=True, eq=False)
class Prestress:
    """Tensions that balance each other.

    Attributes:
        tensions: f, shape (m,), [N], all > 0.
        coordinates: a in f = S a, shape (s,), [N].
        unbalanced: Largest force that is left, moments by the length scale, [N].
    """

    tensions: Array
    coordinates: Array
    unbalanced: float


def prestress(
    analysis: EquilibriumAnalysis,
    method: str = "max_min",
    *,
    mean: float | None = None,
    tension_min: float | Array = 1.0,
    tension_max: float | Array = np.inf,
) -> Prestress:
    """Return a prestress in which every cable is taut.

    Args:
        analysis: Of the shape.
        method: ``max_min``: the minimum tension is as large as it can be beside the mean;
            ``least_norm``: as little tension as the limits allow.
        mean: Of ``max_min``, mean tension, [N]; 1 N without it.
        tension_min: Of ``least_norm``, f_min of all or each, shape (m,), [N], > 0.
        tension_max: Of ``least_norm``, f_max likewise.

    Raises:
        NoPrestressError: There is no self-stress; there is none with all cables taut, with the
            names of the slack ones; or none within the limits.
        UnknownNameError: No such method.
        ShapeError: Limits or mean that make no sense.
    """
    check_choice(method, "prestress", METHODS)
    check_can_be_taut(analysis)
    if method == "max_min":
        return _max_min(analysis, 1.0 if mean is None else mean)
    if mean is not None:
        raise ShapeError("mean tension with least_norm (expected: with max_min only)")
    return _least_norm(analysis, *_limits(analysis, tension_min, tension_max))


def slack_cables(analysis: EquilibriumAnalysis) -> tuple[str, ...]:
    """Return the names of cables that are slack in every prestress without negative tensions."""
    m, s = analysis.self_stress.shape
    if not s:
        return analysis.cables
    bound = [(None, None)] * s + [(0.0, 1.0)] * m
    cost = np.concatenate([np.zeros(s), -np.ones(m)])
    rows = np.hstack([-analysis.self_stress, np.eye(m)])
    found = _linear_program(cost, rows, np.zeros(m), bound)
    # 1e-7 is what HiGHS allows; u is 0 or 1
    return tuple(n for n, u in zip(analysis.cables, found.x[s:], strict=True) if u < 0.5)


def check_can_be_taut(analysis: EquilibriumAnalysis) -> None:
    """Raise `NoPrestressError` if no prestress has all cables taut, naming slack ones."""
    m, s = analysis.self_stress.shape
    if not s:
        smallest = analysis.singular_values[-1] / analysis.singular_values[0]
        raise NoPrestressError(
            f"'{analysis.robot}' has no self-stress in this shape: the {m} columns of the "
            f"equilibrium matrix are independent, smallest singular value {smallest:.2g} of the "
            f"largest (expected: at most the tolerance {analysis.tolerance:g}; a shape found by "
            "find_equilibrium, or a larger tolerance for a shape with few digits)"
        )
    slack = slack_cables(analysis)
    if slack:
        listed = ", ".join(slack[:NAMED]) + (", ..." if len(slack) > NAMED else "")
        raise NoPrestressError(
            f"no prestress of '{analysis.robot}' has all cables taut: {len(slack)} of {m} are "
            f"slack in every one: {listed} (expected: a shape in which the cables balance each "
            "other)"
        )


def cable_stiffness(robot: Robot) -> Array:
    """Return k of every cable, shape (m,), [N/m]. Raises `StaticsError` for what has none."""
    out = []
    for muscle in robot.muscles:
        k = muscle.actuator.stiffness if isinstance(muscle.actuator, Cable) else None
        if k is None:
            raise StaticsError(
                f"muscle '{muscle.name}' of '{robot.name}' has no stiffness and rest length "
                "(expected: of type cable with a stiffness)"
            )
        out.append(k)
    return np.array(out)


def rest_lengths(robot: Robot, lengths: Array, tensions: Array) -> Array:
    """Return L0 = l - f/k, shape (m,), [m].

    Args:
        robot: Has the stiffness of the cables.
        lengths: l, shape (m,), [m].
        tensions: f, shape (m,), [N].

    Raises:
        StaticsError: A cable without stiffness, or a tension that no rest length gives.
    """
    stiffness = cable_stiffness(robot)
    found: Array = lengths - tensions / stiffness
    if (found <= 0.0).any():
        i = int(np.argmin(found))
        raise StaticsError(
            f"cable '{robot.muscles[i].name}': {tensions[i]:.6g} N need a rest length of "
            f"{found[i]:.6g} m (expected: > 0, tension below k l = "
            f"{stiffness[i] * lengths[i]:.6g} N)"
        )
    return found


def minimal_rest_lengths(
    analysis: EquilibriumAnalysis,
    robot: Robot,
    *,
    tension_min: float | Array = 1.0,
    tension_max: float | Array | None = None,
    rest_length_min: float | Array = 1e-3,
) -> tuple[Array, Array]:
    """Return the rest lengths of least sum that keep the shape with every cable taut.

        min 1'L0    subject to  L0 = l - S a/k >= L0_min,  f_min <= S a <= f_max

    Args:
        analysis: Of the shape.
        robot: Has the stiffness and the limits of tension.
        tension_min: f_min of all or each, shape (m,), [N], > 0.
        tension_max: f_max likewise; the robot's without it.
        rest_length_min: L0_min likewise, [m], > 0.

    Returns:
        L0, shape (m,), [m], and the tensions, shape (m,), [N].

    Raises:
        NoPrestressError: No prestress with all cables taut, or none within the limits.
        StaticsError: A cable without stiffness.
        ShapeError: Limits that make no sense.
    """
    check_can_be_taut(analysis)
    stiffness = cable_stiffness(robot)
    own = np.array([muscle.tension_max for muscle in robot.muscles])
    low, high = _limits(analysis, tension_min, own if tension_max is None else tension_max)
    shortest = np.broadcast_to(np.asarray(rest_length_min, dtype=float), low.shape)
    if not (shortest > 0.0).all():
        raise ShapeError("minimum rest lengths that are not positive (expected: > 0 m)")
    high = np.minimum(high, stiffness * (analysis.lengths - shortest))
    stress = analysis.self_stress
    found = _linear_program(
        -(stress.T @ (1.0 / stiffness)),
        np.vstack([-stress, stress]),
        np.concatenate([-low, high]),
        [(None, None)] * stress.shape[1],
    )
    if found.x is None:
        raise _limits_error(analysis, low, high)
    tensions = stress @ found.x
    return analysis.lengths - tensions / stiffness, tensions


def _max_min(analysis: EquilibriumAnalysis, mean: float) -> Prestress:
    if not (np.isfinite(mean) and mean > 0.0):
        raise ShapeError(f"mean tension {mean:g} N (expected: > 0)")
    stress = analysis.self_stress
    m, s = stress.shape
    rows = np.hstack([-stress, np.ones((m, 1))])
    total = np.append(stress.sum(axis=0), 0.0)
    cost = np.append(np.zeros(s), -1.0)
    found = _linear_program(
        cost, rows, np.zeros(m), [(None, None)] * (s + 1), equation=(total, float(m))
    )
    tensions = stress @ found.x[:s]
    if tensions.min() <= TAUT:  # of a mean of 1
        name = analysis.cables[int(np.argmin(tensions))]
        raise NoPrestressError(
            f"'{analysis.robot}': cable '{name}' can be taut only by {tensions.min():.2g} of the "
            f"mean tension (expected: > {TAUT:g})"
        )
    return _made(analysis, mean * found.x[:s])


def _least_norm(analysis: EquilibriumAnalysis, low: Array, high: Array) -> Prestress:
    stress = analysis.self_stress
    m, s = stress.shape
    size = float(low.max())
    qp = make_qp_solver("daqp", s, np.full(m, np.inf))
    qp.matrix[:] = stress  # orthonormal columns: |S a| = |a|
    qp.row_lower[:] = low / size
    qp.row_upper[:] = np.minimum(high / size, QP_INFINITY)
    found = qp.solve(recover=False)
    if found.status is not QpStatus.OPTIMAL:
        raise _limits_error(analysis, low, high)
    return _made(analysis, size * found.x)


def _made(analysis: EquilibriumAnalysis, coordinates: Array) -> Prestress:
    tensions = analysis.self_stress @ coordinates
    return Prestress(tensions, coordinates.copy(), analysis.unbalanced(tensions))


def _limits(
    analysis: EquilibriumAnalysis, tension_min: float | Array, tension_max: float | Array
) -> tuple[Array, Array]:
    m = len(analysis.cables)
    out = []
    for name, given in (("tension_min", tension_min), ("tension_max", tension_max)):
        values = np.asarray(given, dtype=float)
        if values.shape not in ((), (m,)) or np.isnan(values).any():
            raise ShapeError(f"{name} has shape {values.shape} or NaN (expected: one, or {m})")
        out.append(np.broadcast_to(values, (m,)).copy())
    low, high = out
    # without a minimum tension a cable would be taut by rounding only
    if not (np.isfinite(low).all() and (low > 0.0).all()):
        raise ShapeError("minimum tensions (expected: tension_min > 0 N and finite)")
    if (low > high).any():
        i = int(np.argmax(low - high))
        raise ShapeError(
            f"cable '{analysis.cables[i]}': f_min {low[i]:g} N is above f_max {high[i]:g} N"
        )
    return low, high


def _limits_error(analysis: EquilibriumAnalysis, low: Array, high: Array) -> NoPrestressError:
    """Name the cables that are beyond their limits where the sum of what is beyond is least."""
    stress = analysis.self_stress
    m, s = stress.shape
    rows = np.vstack([np.hstack([-stress, -np.eye(m)]), np.hstack([stress, -np.eye(m)])])
    limits = np.concatenate([-low, np.minimum(high, QP_INFINITY)])
    cost = np.concatenate([np.zeros(s), np.ones(m)])
    found = _linear_program(cost, rows, limits, [(None, None)] * s + [(0.0, None)] * m)
    best = stress @ found.x[:s]
    beyond = np.maximum(low - best, best - high)
    # the worst one in any case: HiGHS may find a violation that is as small as its tolerance
    named = np.flatnonzero(beyond >= min(1e-6 * float(low.max()), float(beyond.max())))
    names = [
        f"{analysis.cables[i]} ({best[i]:.4g} N, limits {low[i]:.4g} .. {high[i]:.4g})"
        for i in named
    ]
    return NoPrestressError(
        f"no prestress of '{analysis.robot}' is within the limits of tension; nearest, these are "
        f"not: {', '.join(names[:NAMED])} (expected: wider limits)"
    )


def _linear_program(
    cost: Array,
    rows: Array,
    limits: Array,
    bounds: Sequence[tuple[float | None, float | None]],
    *,
    equation: tuple[Array, float] | None = None,
) -> Any:
    """Minimise ``cost' x`` subject to ``rows x <= limits``, bounds, and one equation."""
    # half a second to import
    from scipy.optimize import linprog

    left = None if equation is None else equation[0][None, :]
    right = None if equation is None else np.array([equation[1]])
    return linprog(cost, rows, limits, left, right, bounds, method="highs")
