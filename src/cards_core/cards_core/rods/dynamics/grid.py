"""How finely the rods of a moving robot are cut and integrated, as the time step asks for it."""

from __future__ import annotations

import math

from cards_core.errors import RodError
from cards_core.rods.dynamics.rule import TimeRule
from cards_core.rods.robots.robot import RodRobot

GROWTH = 4.0
"""A disturbance may grow by exp(GROWTH) along one segment of the shooting."""

WAVE, WAVE_UNDAMPED = 1.6, 0.7
"""Longest step along a rod, in units of the shortest wave that the time step can show / 2 pi.
With longer ones the waves that are shown badly grow in time, the sooner the less alpha damps."""


def grid_of(
    robot: RodRobot, rule: TimeRule, alpha: float, steps: int | None, segments: int | None
) -> tuple[int, int]:
    """Return segments and steps per segment.

    Waves of bending that the time step can just show have the wave number
    ``k = (rA c0^2/EI)^(1/4)``; disturbances grow along the rod by ``exp(k L/sqrt 2)``.

    Args:
        robot: The robot.
        rule: Differences in place of the time derivatives.
        alpha: Of `bdf_alpha`.
        steps: Along each rod, where that is prescribed.
        segments: Of multiple shooting, where they are prescribed.

    Raises:
        RodError: Less than one step or segment is prescribed.
    """
    wave = WAVE if alpha > -0.35 else WAVE_UNDAMPED
    phase = 0.0
    for limb in robot.limbs:
        softness = limb.rod.mass_per_length / limb.rod.bending_stiffness
        phase = max(phase, limb.length * (softness * rule.c0**2) ** 0.25)
    if segments is None:
        segments = max(1, math.ceil(phase / math.sqrt(2.0) / GROWTH))
    if steps is None:
        steps = max(4, math.ceil(phase / wave))
    if segments < 1 or steps < 1:
        raise RodError(f"segments {segments}, steps {steps}; expected both >= 1")
    return segments, math.ceil(steps / segments)
