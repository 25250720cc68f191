"""Joint stiffness: how the muscles resist a displacement of the joints.

The muscles' joint force is tau(q) = -L(q)' f(l(q)), with the commands held. Displaced by dq,

    K = -d tau/dq = L' K_m L + sum_i f_i dL_i/dq  (+ dG/dq),    K_m = diag(df_i/dl_i)

The first part is what elastic muscles contribute, the second what the tensions themselves do: it
stiffens or softens, however stiff the cables. With gravity it is -d(tau - G)/dq. In [Lau2016]_ the
sign is the same. Entry [j, k] is the force against coordinate j for a displacement along tangent
direction k, [Nm/rad], [N/m] or mixed.

With ball joints dL/dq is not symmetric, because tangent directions do not commute: the
antisymmetric part is half the commutator times the joint force. It vanishes where the total joint
force does, as it must at an equilibrium of a potential, and what decides about stability is the
symmetric part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.linalg import lapack

from cards_core.analysis.inverse_kinematics import point_problem
from cards_core.analysis.muscle_stiffness import muscle_stiffness
from cards_core.analysis.status import PointStatus
from cards_core.checks import finite_number
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import ShapeError
from cards_core.typing import Array

PerMuscle: TypeAlias = float | Sequence[float | None] | Array
"""A number for all muscles, or one for each; None where there is none for a muscle."""

GRAVITY_STEP = 1e-5
"""Step of the central differences of G, [rad] or [m]."""

MARGINAL = 1e-9
"""Eigenvalue, relative to the largest, that counts as zero."""


@dataclass(frozen=True, eq=False)
class StiffnessResult:
    """Stiffness at one pose.

    Attributes:
        status: FEASIBLE, OUTSIDE_LIMITS (the numbers are right), NOT_FINITE, PATH_NOT_FOUND.
        matrix: K, shape (nv, nv).
        elastic: L' K_m L, shape (nv, nv).
        tension: sum_i f_i dL_i/dq, shape (nv, nv).
        gravity: dG/dq, shape (nv, nv); zero if it was not asked for.
        muscle_stiffness: df_i/dl_i, shape (m,), [N/m].
        eigenvalues: Of the symmetric part of K, ascending, shape (nv,). With rotations and
            displacements mixed only their signs mean something.
        frequencies: Undamped natural frequencies from K and M, ascending, shape (nv,), [Hz]; NaN
            for unstable modes, and if M is not positive definite.
        verdict: ``stable`` (K is positive definite), ``marginal`` or ``unstable``.
    """

    status: PointStatus
    matrix: Array
    elastic: Array
    tension: Array
    gravity: Array
    muscle_stiffness: Array
    eigenvalues: Array
    frequencies: Array
    verdict: str


def joint_stiffness(
    dynamics: Dynamics,
    q: Array,
    tensions: Array,
    *,
    stiffness: PerMuscle | None = None,
    axial_stiffness: PerMuscle | None = None,
    gravity: bool = False,
) -> StiffnessResult:
    """Return the joint stiffness of a pose at rest.

    Args:
        dynamics: Of the robot.
        q: Coordinates, shape (nq,).
        tensions: f, shape (m,), [N].
        stiffness: df/dl of all muscles or each, shape (m,), [N/m], instead of what their
            actuators say (`cards_core.analysis.muscle_stiffness`); None for a muscle: the
            actuator's.
        axial_stiffness: EA of all muscles or each, likewise, [N]: df/dl = EA/l.
        gravity: Add dG/dq.

    Raises:
        ShapeError: An array of the wrong shape, both kinds of stiffness, or one that is negative,
            NaN or infinite.
    """
    tree, robot = dynamics.tree, dynamics.robot
    m, nv = len(robot.muscles), tree.nv
    q, tensions = np.asarray(q, dtype=float), np.asarray(tensions, dtype=float)
    if q.shape != (tree.nq,) or tensions.shape != (m,):
        raise ShapeError(
            f"q and tensions have shapes {q.shape} and {tensions.shape}, expected ({tree.nq},) "
            f"and ({m},)"
        )
    if stiffness is not None and axial_stiffness is not None:
        raise ShapeError("both stiffness [N/m] and axial_stiffness [N] are given, expected one")
    status = point_problem(tree, q, tensions)
    if status is PointStatus.NOT_FINITE:
        return _nothing(status, nv, m)
    still = np.zeros(nv)
    before = dynamics.path_failures
    state = dynamics.update(q, still)
    if dynamics.path_failures != before:
        return _nothing(PointStatus.PATH_NOT_FOUND, nv, m)
    lengths, jacobian = state.muscle_lengths.copy(), state.muscle_jacobian.copy()
    mass_matrix = state.mass_matrix.copy()
    own = _stiffness_of_muscles(dynamics, lengths, tensions, stiffness, axial_stiffness)
    elastic = jacobian.T @ (own[:, None] * jacobian)
    active = np.einsum("i,ijk->jk", tensions, dynamics.jacobian_gradient(q))
    weight = gravity_gradient(dynamics, q) if gravity else np.zeros((nv, nv))
    matrix = elastic + active + weight
    symmetric = 0.5 * (matrix + matrix.T)
    eigenvalues = np.linalg.eigvalsh(symmetric)
    size = float(np.abs(eigenvalues).max(initial=0.0))
    smallest = float(eigenvalues.min(initial=np.inf))
    verdict = "stable" if smallest > MARGINAL * size else "marginal"
    if smallest < -MARGINAL * size:
        verdict = "unstable"
    return StiffnessResult(
        status,
        matrix,
        elastic,
        active,
        weight,
        own,
        eigenvalues,
        _frequencies(symmetric, mass_matrix),
        verdict,
    )


def gravity_gradient(dynamics: Dynamics, q: Array) -> Array:
    """Return dG/dq, shape (nv, nv), by central differences; [j, k] = dG_j along direction k."""
    nv = dynamics.tree.nv
    still = np.zeros(nv)
    out = np.zeros((nv, nv))
    for k, direction in enumerate(GRAVITY_STEP * np.eye(nv)):
        above = dynamics.update(dynamics.tree.integrate(q, direction), still).gravity.copy()
        below = dynamics.update(dynamics.tree.integrate(q, -direction), still).gravity
        out[:, k] = (above - below) / (2.0 * GRAVITY_STEP)
    return out


def _stiffness_of_muscles(
    dynamics: Dynamics,
    lengths: Array,
    tensions: Array,
    stiffness: PerMuscle | None,
    axial_stiffness: PerMuscle | None,
) -> Array:
    m = len(lengths)
    given: list[float | None] = [None] * m
    for values, unit, divisor in (
        (stiffness, "N/m", np.ones(m)),
        (axial_stiffness, "N", lengths),
    ):
        if values is None:
            continue
        each = list(values) if isinstance(values, Sequence | np.ndarray) else [values] * m
        if len(each) != m:
            raise ShapeError(
                f"muscle stiffness has {len(each)} values, expected one number >= 0 {unit}, or {m}"
            )
        what = f"muscle stiffness [{unit}]"
        given = [
            None
            if value is None
            else finite_number(value, what, at_least=0.0, error=ShapeError) / by
            for value, by in zip(each, divisor, strict=True)
        ]
    if None in given:
        own = muscle_stiffness(dynamics.robot, lengths, tensions)
        return np.array([o if g is None else g for g, o in zip(given, own, strict=True)])
    return np.array(given, dtype=float)


def _frequencies(stiffness: Array, mass_matrix: Array) -> Array:
    """Solve K v = (2 pi f)^2 M v."""
    nv = len(stiffness)
    if not nv:
        return np.zeros(0)
    squares, _, info = lapack.dsygv(stiffness, mass_matrix, jobz="N")
    if info != 0:
        return np.full(nv, np.nan)
    roots = np.sqrt(np.where(squares >= 0.0, squares, np.nan))
    return np.asarray(roots / (2.0 * np.pi))


def _nothing(status: PointStatus, nv: int, m: int) -> StiffnessResult:
    square = np.full((nv, nv), np.nan)
    row = np.full(nv, np.nan)
    return StiffnessResult(
        status, square, square, square, square, np.full(m, np.nan), row, row, "unknown"
    )
