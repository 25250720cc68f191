"""Vibration about an equilibrium, and whether it is one that stays.

With the tangent stiffness of the joints (`cards_core.analysis.stiffness`), the cables' own part
and that of the prestress, and the mass matrix M of the bodies,

    M v'' + K v = 0,    K = L' diag(k) L + sum_i f_i dL_i/dq (+ dG/dq),    K phi = w^2 M phi

Rigid motions of everything and motions that move no cable have no stiffness; the modes are those
of the rest, with phi' M phi = E and orthogonal to them by M. An eigenvalue w^2 < 0 grows as
exp(sqrt(-w^2) t): the equilibrium is unstable.

Frequencies are those without damping and with rest lengths held. A slack cable has no stiffness
here, so a mode is right for motions that do not make it taut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from cards_core.analysis.status import PointStatus
from cards_core.analysis.stiffness import StiffnessResult, joint_stiffness
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import ShapeError
from cards_core.robot.model import Tree
from cards_core.tensegrity.statics.equilibrium import StaticsError, analyse_equilibrium
from cards_core.typing import Array

BALANCED = 1e-6
"""Unbalanced force, relative to the largest tension, that an equilibrium may have."""

MARGINAL = 1e-9
"""Eigenvalue, relative to the largest, that counts as zero."""


@dataclass(frozen=True, eq=False)
class Modes:
    """Modes of an equilibrium; n of them, soft ones first.

    Attributes:
        stiffness: K with its parts.
        mass_matrix: M, shape (nv, nv).
        eigenvalues: w^2, ascending, shape (n,), [1/s^2].
        frequencies: w/(2 pi), shape (n,), [Hz]; NaN where w^2 < 0.
        growth_rates: sqrt(-w^2) where w^2 < 0, else zero, shape (n,), [1/s].
        shapes: phi, shape (nv, n): velocities, phi' M phi = E.
        left_out: Number of rigid motions and of motions that move no cable.
        verdict: ``stable``, ``marginal`` (modes without stiffness) or ``unstable``.
        unstable: Numbers of the modes with w^2 < 0, from 0.
        links: Of each mode, the link that has the largest share of its kinetic energy, with the
            share, 0 .. 1.
    """

    stiffness: StiffnessResult
    mass_matrix: Array
    eigenvalues: Array
    frequencies: Array
    growth_rates: Array
    shapes: Array
    left_out: tuple[int, int]
    verdict: str
    unstable: tuple[int, ...]
    links: tuple[tuple[str, float], ...]


def find_modes(
    dynamics: Dynamics,
    q: Array,
    tensions: Array,
    *,
    gravity: bool = False,
    balanced: float = BALANCED,
) -> Modes:
    """Return frequencies, shapes and stability of an equilibrium.

    Args:
        dynamics: Of the robot.
        q: The equilibrium, shape (nq,).
        tensions: f, shape (m,), [N], >= 0.
        gravity: With the weights.
        balanced: Unbalanced force that is accepted, relative to the largest tension.

    Raises:
        StaticsError: The tensions do not balance, or the mass matrix is singular.
        ShapeError: Arrays of the wrong shape, or that are not finite.
    """
    robot, tree = dynamics.robot, dynamics.tree
    analysis = analyse_equilibrium(dynamics, q)
    tensions = np.array(tensions, dtype=float)
    if tensions.shape != (len(robot.muscles),) or not (tensions >= 0.0).all():
        raise ShapeError(
            f"tensions of shape {tensions.shape} (expected: {len(robot.muscles)} numbers >= 0 N)"
        )
    if not np.isfinite(tensions).all():
        raise ShapeError("tensions that are not finite (expected: numbers >= 0 N)")
    state = dynamics.update(analysis.q, np.zeros(tree.nv))
    mass_matrix = state.mass_matrix.copy()
    force = analysis.matrix @ tensions - (state.gravity if gravity else 0.0)
    left = float(np.abs(force / analysis.scale).max())
    if left > balanced * max(float(tensions.max()), np.finfo(float).tiny):
        raise StaticsError(
            f"'{robot.name}' is not in equilibrium: unbalanced force {left:.3g} N, largest "
            f"tension {tensions.max():.6g} N (expected: a prestress of this shape, or the shape "
            "of find_equilibrium)"
        )
    stiffness = joint_stiffness(dynamics, analysis.q, tensions, gravity=gravity)
    if stiffness.status not in (PointStatus.FEASIBLE, PointStatus.OUTSIDE_LIMITS):
        raise StaticsError(f"'{robot.name}' has no stiffness here: {stiffness.status.name}")
    free = np.hstack([analysis.rigid_motions, analysis.idle_motions])
    basis = _momentum_free(free, mass_matrix, analysis.scale)
    matrix = 0.5 * (stiffness.matrix + stiffness.matrix.T)
    try:
        values, vectors = eigh(basis.T @ matrix @ basis, basis.T @ mass_matrix @ basis)
    except np.linalg.LinAlgError as error:
        raise StaticsError(
            f"'{robot.name}': its mass matrix is singular (expected: every body with mass and "
            "moments of inertia)"
        ) from error
    limit = MARGINAL * float(np.abs(values).max(initial=0.0))
    unstable = tuple(np.flatnonzero(values < -limit).tolist())
    verdict = "unstable" if unstable else "marginal" if (values <= limit).any() else "stable"
    shapes = basis @ vectors
    negative = values < 0.0
    return Modes(
        stiffness,
        mass_matrix,
        values,
        np.sqrt(np.where(negative, np.nan, values)) / (2.0 * np.pi),
        np.sqrt(np.where(negative, -values, 0.0)),
        shapes,
        (analysis.rigid_motions.shape[1], analysis.idle_motions.shape[1]),
        verdict,
        unstable,
        tuple(_largest(tree, mass_matrix, shape) for shape in shapes.T),
    )


def _momentum_free(free: Array, mass_matrix: Array, scale: Array) -> Array:
    """Return a basis of the velocities whose momentum along every column of `free` is zero."""
    nv, k = free.shape
    if not k:
        return np.eye(nv)
    rows = (mass_matrix @ free).T / scale
    _, values, vt = np.linalg.svd(rows)
    rank = int(np.sum(values > 1e-12 * values.max()))
    out: Array = vt[rank:].T / scale[:, None]
    return out


def _largest(tree: Tree, mass_matrix: Array, shape: Array) -> tuple[str, float]:
    """Return the link whose velocities have the largest share of phi' M phi."""
    energies = shape * (mass_matrix @ shape)
    shares: dict[str, float] = {}
    for joint in tree.robot.joints:
        top, index, share = tree.link_node[joint.parent][0], tree.link_node[joint.child][0], 0.0
        while index != top:
            node = tree.nodes[index]
            share += float(energies[node.v : node.v + node.nv].sum())
            index = node.parent
        shares[joint.child] = share
    name = max(shares, key=lambda key: shares[key])
    return name, shares[name] / sum(shares.values())
