"""Robots whose via points were moved at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cards_core.robot.elements import ViaPoint


def moved(robot, size, seed):
    """Return a robot whose via points are elsewhere, by up to ``size`` [m]."""
    rng = np.random.default_rng(seed)

    def elsewhere(item):
        if not isinstance(item, ViaPoint):
            return item
        away = rng.normal(size=3)
        away *= size * rng.uniform() ** (1.0 / 3.0) / np.linalg.norm(away)
        return replace(item, position=item.position + away)

    muscles = tuple(
        replace(muscle, path=tuple(elsewhere(item) for item in muscle.path))
        for muscle in robot.muscles
    )
    return replace(robot, muscles=muscles)
