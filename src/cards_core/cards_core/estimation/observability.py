"""Which joint coordinates muscle lengths tell at a pose, and how well.

Lengths of one moment tell a small displacement dq by ``dl = L dq``. Directions in the null space
of L change no length: whatever has a part in one of them cannot be known from lengths at this
pose. For the others one set of lengths with independent noise sigma gives the covariance

    sigma^2 (L' L)^-1                                            [BarShalom2001]_

Coordinates have different units, so the rank is that of L with columns of unit length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cards_core.typing import Array

RANK_TOLERANCE = 1e-6
"""Singular value of L with unit columns, relative to the largest, that counts as none: no encoder
resolves a millionth of the motion."""

SHARE = 1e-3
"""Part of a coordinate in a direction that changes no length from which on it is named."""


@dataclass(frozen=True, eq=False, slots=True)
class Observability:
    """What lengths tell at one pose.

    Attributes:
        rank: Of L.
        unobservable: Names of the coordinates that have a part in a motion that changes no length.
        std: Standard deviation of every coordinate from one set of lengths, shape (nv,), [rad] or
            [m]; infinite for the unobservable ones.
        weakest: Motion that changes the lengths least, shape (nv,), of unit length.
        gain: Change of the lengths along it, |L weakest|, [m/rad] or [1].
    """

    rank: int
    unobservable: tuple[str, ...]
    std: Array
    weakest: Array
    gain: float

    def __bool__(self) -> bool:
        """Return True if every coordinate can be told."""
        return not self.unobservable


def observability(
    jacobian: Array, length_noise: float, names: tuple[str, ...] | list[str]
) -> Observability:
    """Return what lengths with the Jacobian L tell.

    Args:
        jacobian: L of the muscles that are measured, shape (k, nv).
        length_noise: Standard deviation of a length, [m].
        names: Of the coordinates, shape (nv,): `Tree.velocity_names`.
    """
    nv = jacobian.shape[1]
    if not nv:
        return Observability(0, (), np.zeros(0), np.zeros(0), math.inf)
    norms = np.linalg.norm(jacobian, axis=0)
    unit = jacobian / np.where(norms > 0.0, norms, 1.0)
    # full: with fewer muscles than coordinates the null space is not in the thin decomposition
    _, values, rows = np.linalg.svd(unit, full_matrices=True)
    values = np.concatenate([values, np.zeros(nv - len(values))])
    kept = values > RANK_TOLERANCE * max(float(values[0]), 1e-300)
    null = rows[~kept]
    hidden = np.linalg.norm(null, axis=0) > SHARE
    # (L'L)^-1 = N^-1 V s^-2 V' N^-1 for L = U s V' N
    scaled = rows[kept] / values[kept, None]
    std = length_noise * np.linalg.norm(scaled, axis=0) / np.where(norms > 0.0, norms, 1.0)
    std[hidden] = math.inf
    _, gains, motions = np.linalg.svd(jacobian, full_matrices=True)
    return Observability(
        rank=int(kept.sum()),
        unobservable=tuple(n for n, h in zip(names, hidden, strict=True) if h),
        std=std,
        weakest=motions[-1],
        gain=float(gains[-1]) if len(gains) == nv else 0.0,
    )
