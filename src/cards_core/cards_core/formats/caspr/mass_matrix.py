"""How much the mass matrix changes with the inertias."""

from __future__ import annotations

import dataclasses

import numpy as np

from cards_core.dynamics import make_dynamics
from cards_core.robot.model import Robot
from cards_core.typing import Array


def mass_matrix_change(
    original: Robot, changed: Robot, *, samples: int = 50, steps: int = 100, seed: int = 0
) -> float:
    """Return the largest relative difference of the mass matrices of two robots that is found.

    ``max |M'_ij - M_ij| / sqrt(M_ii M_jj)`` over all entries; the scaling makes rows in metres and
    in radians comparable. Looked at are random configurations within the joint limits, and then
    steps uphill from the worst of them, because M_ii may be small in a small region only. That is
    a lower end of the largest difference over all configurations, and mostly close to it.

    Args:
        original: The robot.
        changed: One with the same coordinates and other inertias.
        samples: Number of random configurations.
        steps: Number of configurations tried on the way uphill: a random direction each, longer
            after a success, shorter after a failure.
        seed: Seed of both.
    """
    # muscles do not count in M, and are most of the work
    bare = [
        dataclasses.replace(robot, muscles=(), wrap_surfaces=()) for robot in (original, changed)
    ]
    first, second = (make_dynamics(robot, "numeric") for robot in bare)
    tree = first.tree
    still = np.zeros(tree.nv)
    rng = np.random.default_rng(seed)

    def change(q: Array) -> float:
        before = np.array(first.update(q, still).mass_matrix)
        difference = np.array(second.update(q, still).mass_matrix) - before
        scale = np.sqrt(np.maximum(np.diag(before), np.finfo(float).tiny))
        return float(np.abs(difference / np.outer(scale, scale)).max(initial=0.0))

    tried = [tree.random(rng) for _ in range(samples)]
    found = [change(q) for q in tried]
    if not any(found):
        return 0.0
    worst = max(found)
    place = tried[found.index(worst)]
    length = 0.5
    for _ in range(steps):
        q = tree.integrate(place, length * rng.normal(size=tree.nv))
        q = np.clip(q, tree.lower, tree.upper)
        if (value := change(q)) > worst:
            place, worst, length = q, value, 2.0 * length
        else:
            length *= 0.85
    return worst
