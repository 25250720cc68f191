"""Couplings that follow from the structure: between cables that pull at a common body.

In a spine of equal segments, with m cables at every joint [Mirletz2016]_ (section 6.3), couplings
at equal places share their weight and phase, and so do both directions of a coupling. With row
0, 1 or 2 for a source at the joint behind, at the same and ahead, and indices j <= k of the two
cables within their joints, that makes m(3m + 1)/2 pairs (w, phi): for rows 0 and 2 all j <= k,
for row 1 j < k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.control.cpg.oscillators import Couplings
from cards_core.errors import ParameterError, ShapeError
from cards_core.typing import Array

Place = tuple[int, int, int]
"""Row, j, k."""

PER_JOINT_MOST = 100
"""Muscles at a joint that readers of files take, at most: they have 15,050 places."""


def places(per_joint: int) -> list[Place]:
    """Return the places of couplings of m cables at every joint, m(3m + 1)/2 of them."""
    m = per_joint
    return [
        (row, j, k) for row in range(3) for j in range(m) for k in range(j, m) if row != 1 or j < k
    ]


def shared_body_couplings(
    bodies: Sequence[tuple[Any, Any]],
    per_joint: int,
    values: npt.ArrayLike,
    *,
    truncate: bool = False,
) -> Couplings:
    """Return couplings between all cables that share a body.

    Args:
        bodies: At the two ends of each cable; the cables of a joint follow each other, joint by
            joint, in the same order.
        per_joint: m.
        values: w and phi [rad] of every place of `places`, shape (m(3m + 1)/2, 2).
        truncate: Find the row from the difference of the indices over m, truncated towards zero,
            as NASA's toolkit does: cables of neighbouring joints then count as of the same one if
            their indices differ by less than m. Its learned parameters need that.

    Raises:
        ParameterError: The number of cables is no multiple of m.
        ShapeError: Not one pair of finite numbers per place.
    """
    m, n = per_joint, len(bodies)
    if m < 1 or n % m:
        raise ParameterError(
            f"{n} cables with {m} at every joint; expected a multiple of the cables at a joint"
        )
    found = np.asarray(values, dtype=float)
    index = {place: i for i, place in enumerate(places(m))}
    if found.shape != (len(index), 2) or not np.isfinite(found).all():
        raise ShapeError(
            f"{_size(found)} couplings; expected {len(index)} pairs of weight and phase for "
            f"{m} cables at every joint"
        )
    targets, sources, chosen = [], [], []
    for target, (a, b) in enumerate(bodies):
        for source, (c, d) in enumerate(bodies):
            if target == source or not {a, b} & {c, d}:
                continue
            row = int((target - source) / m) if truncate else target // m - source // m
            j, k = sorted((target % m, source % m))
            if abs(row) > 1:
                raise ParameterError(
                    f"cables {source} and {target} share a body across {abs(row)} joints; "
                    "expected only neighbouring joints to share one"
                )
            targets.append(target)
            sources.append(source)
            chosen.append(index[row + 1, j, k])
    pairs: Array = found[chosen] if chosen else np.zeros((0, 2))
    return Couplings(
        np.array(targets, dtype=np.int64),
        np.array(sources, dtype=np.int64),
        pairs[:, 0],
        pairs[:, 1],
    )


def _size(values: Array) -> str:
    return "x".join(str(n) for n in values.shape) or "no"
