"""The questions of this package about plain matrices: arrays in, status and numbers out.

Everything is in one call of C for all points; see ``analysis/native``. L has shape (n, m, nv) and
may be a strided view whose inner axes are contiguous. A point that is bad in some way gets the
status that says so, and NaN.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cards_core.analysis.native_library import Rows, pointer, run
from cards_core.errors import ShapeError
from cards_core.typing import Array

Status: TypeAlias = npt.NDArray[np.uint8]
"""Values of `PointStatus`, one per point."""

RANK_TOLERANCE = 1e-10
"""Smallest over largest singular value, of L with its columns scaled to norm 1, at which L counts
as rank-deficient."""

DEPENDENT = 1e-10
"""Sine of the angle between a muscle and the span of others at which it counts as dependent."""

MAX_COORDINATES = 64
"""Most coordinates of `capacity`; many more than its number of facets ever allows."""


def _shape(jacobian: Array) -> tuple[int, int, int]:
    if jacobian.ndim != 3:
        raise ShapeError(f"L has shape {jacobian.shape}, expected (n, m, nv)")
    n, m, nv = jacobian.shape
    return n, m, nv


def _run(function: str, jacobian: Array, *arguments: object, outputs: Sequence[Array]) -> Status:
    """Call a function of C, which writes the outputs, and return the status of all points."""
    n, m, nv = _shape(jacobian)
    rows, status = Rows(jacobian), np.empty(n, np.uint8)
    results = [pointer(status), *map(pointer, outputs)]
    run(function, ctypes.c_long(n), nv, m, *rows.arguments, *arguments, *results)
    return status


def _many(values: Array, n: int, inner: tuple[int, ...], name: str) -> Rows:
    values = np.asarray(values, dtype=float)
    if values.shape[1:] != inner or len(values) not in (1, n):
        raise ShapeError(f"{name} has shape {values.shape}, expected {(n, *inner)}")
    return Rows(values)


def _vector(values: Array, size: int, name: str) -> Array:
    values = np.ascontiguousarray(values, dtype=float)
    if values.shape != (size,):
        raise ShapeError(f"{name} has shape {values.shape}, expected ({size},)")
    return values


def tension_factors(
    jacobian: Array,
    *,
    normalise: bool = False,
    threshold: float = 1e-10,
    rank_tolerance: float = RANK_TOLERANCE,
) -> tuple[Status, Array, Array]:
    """Enclose the tension factor: max of ``min f / max f`` over all f with L'f = 0.

    It is positive iff there is an f > 0 with L'f = 0; with rank L = nv that is wrench closure
    [Roberts1998]. The lower end is the ratio of a load f that was found, the upper end follows
    from a direction y by ``(sum of positive (L y)_i) / (sum of negative ones)`` [Pham2009].

    Args:
        jacobian: L, shape (n, m, nv).
        normalise: Scale every row of L to norm 1 first: the factor changes, its sign does not.
        threshold: Largest factor that counts as zero.
        rank_tolerance: See `RANK_TOLERANCE`.

    Returns:
        Status, minimum and maximum value, each of shape (n,). Statuses: FEASIBLE (least >
        threshold), INFEASIBLE, NOT_FINITE, TOO_FEW_MUSCLES (m <= nv), RANK_DEFICIENT,
        NOT_CONVERGED (the enclosure contains the threshold).
    """
    least, most = np.empty((2, len(jacobian)))
    tolerances = map(ctypes.c_double, (threshold, rank_tolerance))
    outputs = (least, most)
    status = _run("cards_closure", jacobian, int(normalise), *tolerances, outputs=outputs)
    return status, least, most


def singular_values(
    jacobian: Array, scale: Array, *, rank_tolerance: float = RANK_TOLERANCE
) -> tuple[Status, Array]:
    """Singular values of L, falling, by one-sided Jacobi rotations behind a pivoted QR.

    Args:
        jacobian: L, shape (n, m, nv).
        scale: Factor of each coordinate, shape (nv,).
        rank_tolerance: See `RANK_TOLERANCE`.

    Returns:
        Status, shape (n,), and singular values, shape (n, nv). Statuses: FEASIBLE, NOT_FINITE,
        TOO_FEW_MUSCLES (m < nv), RANK_DEFICIENT.
    """
    n, _, nv = _shape(jacobian)
    scale, sigma = _vector(scale, nv, "scale"), np.empty((n, nv))
    tolerance = ctypes.c_double(rank_tolerance)
    status = _run("cards_singular_values", jacobian, pointer(scale), tolerance, outputs=(sigma,))
    return status, sigma


def unilateral_factors(
    jacobian: Array, *, rank_tolerance: float = RANK_TOLERANCE
) -> tuple[Status, Array]:
    """Return rho = 1/sqrt(1 + |u|^2), u the shortest vector with L'u = 0 and u >= 1.

    With h the unit null vector whose smallest entry is largest, h_min = 1/|u|, so that
    ``rho = h_min / sqrt(1 + h_min^2)`` [Kurtz1994]; 0 without wrench closure.

    Args:
        jacobian: L, shape (n, m, nv).
        rank_tolerance: See `RANK_TOLERANCE`.

    Returns:
        Status and rho, shape (n,). Statuses: FEASIBLE, INFEASIBLE (rho = 0), NOT_FINITE,
        TOO_FEW_MUSCLES (m <= nv), RANK_DEFICIENT, NOT_CONVERGED.
    """
    rho, tolerance = np.empty(len(jacobian)), ctypes.c_double(rank_tolerance)
    return _run("cards_unilateral", jacobian, tolerance, outputs=(rho,)), rho


_NONE = np.zeros((1, 0, 0))


@dataclass(frozen=True, eq=False)
class RequiredWrenches:
    """R = load + hull of the vertices + {sum_k s_k generator_k, |s_k| <= 1}, for every point.

    Attributes:
        load: shape (n, nv) or (1, nv), [Nm] or [N].
        generators: shape (n, g, nv) or (1, g, nv).
        vertices: shape (n, v, nv) or (1, v, nv); none is the same as one that is zero.
    """

    load: Array
    generators: Array = field(default_factory=lambda: _NONE)
    vertices: Array = field(default_factory=lambda: _NONE)

    def arguments(self, n: int, nv: int) -> tuple[list[Rows], list[object]]:
        """Return what C takes: arrays that must be kept during the call, and the arguments.

        Raises:
            ShapeError: A shape does not fit.
        """
        g, v = self.generators.shape[1], self.vertices.shape[1]
        load = _many(self.load, n, (nv,), "load")
        generators = _many(self.generators if g else _NONE, n, (g, nv if g else 0), "generators")
        vertices = _many(self.vertices if v else _NONE, n, (v, nv if v else 0), "vertices")
        numbers = [*load.arguments, *generators.arguments, g, *vertices.arguments, v]
        return [load, generators, vertices], numbers


def capacity(
    jacobian: Array,
    lower: Array,
    upper: Array,
    required: RequiredWrenches,
    scale: Array,
    *,
    least: float = 0.0,
    tolerance: float = 1e-10,
    rank_tolerance: float = RANK_TOLERANCE,
) -> tuple[Status, Array]:
    """Margin of R within W = {-L'f, lower <= f <= upper}, by hyperplane shifting, exact.

    ``margin = min over the facet normals c of W, |c| = 1, of h_W(c) - h_R(c)`` [Bouchard2010]
    [Ruiz2015], measured in coordinates times `scale`. R is in W iff margin >= 0.

    Args:
        jacobian: L, shape (n, m, nv).
        lower: Minimum tensions, finite, shape (m,), [N].
        upper: Maximum tensions, may be infinite, shape (m,), [N].
        required: R.
        scale: Factor of each coordinate, shape (nv,).
        least: Margin from which a point is feasible.
        tolerance: Rounding that is granted to the comparison with `least`, relative to the
            largest wrench involved.
        rank_tolerance: See `RANK_TOLERANCE`.

    Returns:
        Status and margin, shape (n,); the margin is infinite where W is everything. Statuses:
        FEASIBLE, INFEASIBLE, NOT_FINITE, TOO_FEW_MUSCLES (fewer than nv whose limits differ),
        RANK_DEFICIENT (of those).

    Raises:
        ShapeError: A shape does not fit, or there are more than `MAX_COORDINATES`.
    """
    nv = _shape(jacobian)[2]
    if nv > MAX_COORDINATES:
        raise ShapeError(f"{nv} coordinates, expected at most {MAX_COORDINATES}")
    return _compare(
        "cards_capacity", jacobian, lower, upper, required,
        scale=scale, tolerances=(least, tolerance, rank_tolerance, DEPENDENT),
    )  # fmt: skip


def distances(
    jacobian: Array,
    lower: Array,
    upper: Array,
    required: RequiredWrenches,
    scale: Array,
    *,
    tolerance: float = 1e-9,
) -> tuple[Status, Array]:
    """Largest distance of the vertices of R from W = {-L'f, lower <= f <= upper}.

    Bounded least squares [Stark1995] for every vertex, ``min |S (-L'f - w)|``, at any rank of L.
    The generators make 2^g vertices of every vertex of the hull.

    Args:
        jacobian: L, shape (n, m, nv).
        lower: Minimum tensions, finite, shape (m,), [N].
        upper: Maximum tensions, may be infinite, shape (m,), [N].
        required: R.
        scale: Factor of each coordinate, shape (nv,).
        tolerance: Largest distance that counts as none, relative to the largest term of
            ``S (-L'f - w)``.

    Returns:
        Status and distance, shape (n,); 0 where feasible. Statuses: FEASIBLE, INFEASIBLE (a
        separating direction proves it), NOT_FINITE, NOT_CONVERGED.

    Raises:
        ShapeError: A shape does not fit.
    """
    return _compare(
        "cards_required", jacobian, lower, upper, required, scale=scale, tolerances=(tolerance,)
    )


def _compare(
    function: str,
    jacobian: Array,
    lower: Array,
    upper: Array,
    required: RequiredWrenches,
    *,
    scale: Array,
    tolerances: Sequence[float],
) -> tuple[Status, Array]:
    """Return status and a number per point of a function of C that compares R with W."""
    n, m, nv = _shape(jacobian)
    vectors = _vector(lower, m, "lower"), _vector(upper, m, "upper"), _vector(scale, nv, "scale")
    found = np.empty(n)
    low, up, factor = map(pointer, vectors)
    keep, wrenches = required.arguments(n, nv)
    numbers = map(ctypes.c_double, tolerances)
    status = _run(function, jacobian, low, up, *wrenches, factor, *numbers, outputs=(found,))
    del keep
    return status, found


def mark_indefinite(matrices: Array, status: Status) -> None:
    """Set the status of points whose matrix, shape (n, nv, nv), is not positive definite.

    To UNPHYSICAL_INERTIA, or NOT_FINITE where it has entries that are not finite.
    """
    n, nv, _ = matrices.shape
    rows = Rows(matrices)
    run("cards_positive_definite", ctypes.c_long(n), nv, *rows.arguments, pointer(status))
