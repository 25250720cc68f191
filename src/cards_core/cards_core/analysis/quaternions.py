"""Coordinates of many points made proper: quaternions of unit length."""

from __future__ import annotations

import numpy as np

from cards_core.robot.model import Tree
from cards_core.typing import Array


def unit_quaternions(tree: Tree, q: Array) -> Array:
    """Return coordinates whose quaternions have length 1; one that is zero becomes NaN.

    Args:
        tree: Kinematic tree.
        q: Coordinates, shape (n, nq); not changed.
    """
    starts = [node.q for node in tree.nodes if node.kind == "ball"]
    if not starts:
        return q
    q = q.copy()
    with np.errstate(invalid="ignore", divide="ignore"):
        for start in starts:
            block = q[:, start : start + 4]
            block /= np.linalg.norm(block, axis=1, keepdims=True)
    return q
