"""Force density method: the shape of a structure of nodes from the forces in its members.

The force density of a member is its force by its length, q = f/l [N/m], positive in tension. With
C, shape (members, nodes), -1 and 1 at the ends of each member, and ``D = C' diag(q) C``, nodes X,
shape (nodes, 3), are in equilibrium if [Schek1974]_

    D X = 0

A structure in space that stands by itself needs four independent null vectors of D: one is the
translation (1, ..., 1), three are coordinates, to within an affine map. Which densities give them
is found as [Zhang2006]_ do: the four smallest eigenvalues of D, and others below zero, are made
zero, the densities that fit this matrix best in the sense of least squares give the next D. So D
has no negative eigenvalue in the end, and what is found is a minimum of energy for any stiffness
of the members [Connelly1995]_, but for affine motions. Densities of a group, such as the verticals
of a prism, are equal. Of all affine images the one nearest to the given shape is taken.

A prism of n rods between two polygons of the same radius has a closed form [Connelly1995]_: the
upper polygon is turned against the lower one by ``pi/2 - pi/n`` from where the verticals are
upright, the densities are as horizontals : verticals : rods = 1 : 2 sin(pi/n) : -2 sin(pi/n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cards_core.errors import ShapeError
from cards_core.tensegrity.statics.equilibrium import NotConvergedError, StaticsError
from cards_core.typing import Array

Indices: TypeAlias = npt.NDArray[np.signedinteger[Any]]
"""Numbers of nodes, members or groups."""

NULL_VECTORS = 4
"""Of D, of a structure in space that stands by itself."""

TOLERANCE = 1e-12
"""Eigenvalue of D, relative to the largest, at which the search ends."""


@dataclass(frozen=True, eq=False)
class ForceDensityShape:
    """A shape in equilibrium.

    Attributes:
        nodes: X, shape (nodes, 3), [m].
        densities: q of every member, shape (members,), [N/m]; largest size as given.
        lengths: l, shape (members,), [m].
        forces: f = q l, shape (members,), [N].
        unbalanced: Largest force that is left at a node, [N].
        iterations: Of the search for densities.
    """

    nodes: Array
    densities: Array
    lengths: Array
    forces: Array
    unbalanced: float
    iterations: int


def force_density_shape(
    nodes: Array,
    members: Sequence[tuple[int, int]],
    densities: Array,
    groups: Sequence[int] | None = None,
    *,
    max_iterations: int = 2000,
) -> ForceDensityShape:
    """Return the shape in equilibrium nearest to a given one.

    Args:
        nodes: The given shape, shape (nodes, 3), [m].
        members: Numbers of the nodes of each, cables and rods.
        densities: First guess of q, shape (members,), [N/m]: > 0 of cables, < 0 of rods.
        groups: Number of the group of each member, whose densities are equal; each member for
            itself without it.
        max_iterations: Of the search for densities.

    Raises:
        NotConvergedError: No densities were found.
        StaticsError: A density whose sign changes, or a shape that is flat.
        ShapeError: Arrays of the wrong shape, or that are not finite.
    """
    places, guess = np.array(nodes, dtype=float), np.array(densities, dtype=float)
    ends = np.array(members, dtype=np.intp).reshape(-1, 2)
    n, m = len(places), len(ends)
    if places.shape != (n, 3) or n <= NULL_VECTORS or guess.shape != (m,) or not m:
        raise ShapeError(
            f"nodes of shape {places.shape} with {m} members and densities of shape "
            f"{guess.shape} (expected: (n, 3), n > {NULL_VECTORS}, and one density per member)"
        )
    if not (np.isfinite(places).all() and np.isfinite(guess).all() and guess.any()):
        raise ShapeError("nodes or densities that are not finite, or all densities zero")
    if ends.min() < 0 or ends.max() >= n or (ends[:, 0] == ends[:, 1]).any():
        raise ShapeError(f"members (expected: two different nodes of 0 .. {n - 1})")
    group = np.arange(m) if groups is None else np.unique(groups, return_inverse=True)[1]
    if len(group) != m:
        raise ShapeError(f"groups of {len(group)} members (expected: {m})")
    found, iterations = _densities(ends, n, guess, group, max_iterations)
    if (np.sign(found) != np.sign(guess)).any():
        i = int(np.flatnonzero(np.sign(found) != np.sign(guess))[0])
        raise StaticsError(
            f"member {i} ({ends[i, 0]}, {ends[i, 1]}) would need the force density "
            f"{found[i]:.4g} N/m for {guess[i]:.4g} N/m (expected: the same sign; other members)"
        )
    matrix = _density_matrix(ends, n, found)
    null = np.linalg.eigh(matrix)[1][:, :NULL_VECTORS]
    shape = null @ (null.T @ places)
    spread = np.linalg.svd(shape - shape.mean(axis=0), compute_uv=False)
    if spread[-1] < 1e-6 * spread[0]:
        raise StaticsError(
            "the shape in equilibrium is flat (expected: members that span a solid)"
        )
    lengths = np.linalg.norm(shape[ends[:, 1]] - shape[ends[:, 0]], axis=1)
    return ForceDensityShape(
        shape,
        found,
        lengths,
        found * lengths,
        float(np.linalg.norm(matrix @ shape, axis=1).max()),
        iterations,
    )


def _densities(
    ends: Indices, n: int, guess: Array, group: Indices, max_iterations: int
) -> tuple[Array, int]:
    """Return densities for which D has four null vectors, and the number of iterations."""
    m = len(ends)
    size = float(np.abs(guess).max())
    sums = np.zeros((n * n, int(group.max()) + 1))
    for k in range(m):
        a, b = ends[k]
        for row, column, sign in ((a, a, 1.0), (b, b, 1.0), (a, b, -1.0), (b, a, -1.0)):
            sums[row * n + column, group[k]] += sign
    counts = np.bincount(group)
    fit = np.linalg.pinv(sums)
    q = np.bincount(group, guess) / counts
    for iteration in range(max_iterations):
        values, vectors = np.linalg.eigh((sums @ q).reshape(n, n))
        worst = float(np.abs(values[:NULL_VECTORS]).max() / np.abs(values).max())
        if worst <= TOLERANCE:
            return np.asarray(q[group] * (size / np.abs(q).max())), iteration
        kept = np.maximum(values, 0.0)
        kept[:NULL_VECTORS] = 0.0
        q = fit @ ((vectors * kept) @ vectors.T).ravel()
        if not np.abs(q).max() > 1e-9 * size:
            break
        q *= size / np.abs(q).max()
    raise NotConvergedError(
        f"no force densities with an equilibrium in space after {iteration + 1} iterations: the "
        f"four smallest eigenvalues are up to {worst:.2g} of the largest (expected: "
        f"{TOLERANCE:g}; other first densities, other members)"
    )


def _density_matrix(ends: Indices, n: int, densities: Array) -> Array:
    incidence = np.zeros((len(ends), n))
    rows = np.arange(len(ends))
    incidence[rows, ends[:, 0]] = -1.0
    incidence[rows, ends[:, 1]] = 1.0
    return incidence.T @ (densities[:, None] * incidence)
