"""Limits of a muscle that its board enforces by itself, and where their defaults come from.

Tension limits come from the model. The window of lengths is what the model's muscle can have
within the joint limits, and a margin: it keeps a motor from winding up a wire that came loose.
The others are of the motor unit, which the model does not know.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from cards_core.dynamics.interface import Dynamics
from cards_core.errors import CardsError
from cards_core.robot.elements import Muscle
from cards_core.robot.model import Robot
from cards_core.typing import Array

LENGTH_MARGIN = 0.02
"""Beyond the lengths that the model's joint limits allow, [m]."""

_SAMPLES = 4096
_CORNERS = 10  # coordinates up to which all corners of the joint limits are looked at
_SPAN = math.pi  # [rad] of a coordinate without limits


@dataclass(frozen=True)
class MuscleLimits:
    """Limits of one muscle, as in the message LIMITS.

    Attributes:
        tension_max: Largest tension that may be commanded, [N].
        tension_min: Least tension that may be commanded, [N].
        tension_safe: Tension of an armed or stopped robot: nothing drops, no wire jumps off, [N].
        length_min, length_max: Below the board does not pull, above it holds against, [m].
        rate_max: Fastest change of the length, [m/s].
        current_max: Largest current of the motor, [A].
        soft, hard: Housing temperatures where derating begins and where it reached zero, [C].
        slew: Fastest change of the tension, [N/s]. It guards against wrong commands, and must
            leave room for right ones: a computed-torque loop with kp 2000 /s^2 answers an error of
            1 mm with changes of some kN/s; a limit below that delays it until it diverges.
    """

    tension_max: float
    tension_min: float = 0.0
    tension_safe: float = 10.0
    length_min: float = 0.0
    length_max: float = 100.0
    rate_max: float = 1.0
    current_max: float = 15.0
    soft: float = 60.0
    hard: float = 80.0
    slew: float = 20_000.0


NAMES: tuple[str, ...] = tuple(item.name for item in fields(MuscleLimits))
"""Names of the limits, as in files."""

# what the fields of the message hold, and below zero nothing makes sense
_LARGEST: Mapping[str, float] = {
    "tension_max": 3276.0,
    "tension_min": 3276.0,
    "tension_safe": 3276.0,
    "length_min": 2000.0,
    "length_max": 2000.0,
    "rate_max": 3.2,
    "current_max": 32.0,
    "soft": 300.0,
    "hard": 300.0,
    "slew": 65000.0,
}


def default_limits(muscle: Muscle, window: tuple[float, float]) -> dict[str, float]:
    """Return the limits of a muscle for which nothing is said, by name.

    Args:
        muscle: A muscle of the model.
        window: Least and largest length, [m].
    """
    base = MuscleLimits(tension_max=muscle.tension_max)
    values = {name: float(getattr(base, name)) for name in NAMES}
    values["tension_min"] = muscle.tension_min
    values["tension_safe"] = max(base.tension_safe, muscle.tension_min)
    values["length_min"], values["length_max"] = window
    return values


def check_limits(values: Mapping[str, float]) -> MuscleLimits:
    """Return the limits.

    Raises:
        CardsError: They contradict each other, or are beyond what the protocol carries; the
            message names the limit and what would be right.
    """
    for name, largest in _LARGEST.items():
        if not 0.0 <= values[name] <= largest:
            raise CardsError(f"{name} is {values[name]:g}, expected 0 .. {largest:g}")
    ordered = (
        ("tension_min", "tension_safe"),
        ("tension_safe", "tension_max"),
        ("length_min", "length_max"),
        ("soft", "hard"),
    )
    for low, high in ordered:
        if values[low] > values[high]:
            raise CardsError(
                f"{low} is {values[low]:g}, expected at most {high}, which is {values[high]:g}"
            )
    for name in ("tension_max", "rate_max", "current_max", "slew"):
        if values[name] == 0.0:
            raise CardsError(f"{name} is 0, expected more")
    return MuscleLimits(**{name: float(values[name]) for name in NAMES})


def length_windows(dynamics: Dynamics, margin: float = LENGTH_MARGIN) -> Array:
    """Return the lengths that muscles have within the joint limits, shape (m, 2), [m].

    The extremes over all corners of the limits (up to ten coordinates) and 4096 random poses,
    widened by the margin.

    Args:
        dynamics: Dynamics of the robot.
        margin: [m]
    """
    tree = dynamics.tree
    rng = np.random.default_rng(0)
    poses = [tree.home, *(tree.random(rng, span=_SPAN) for _ in range(_SAMPLES))]
    limited = np.flatnonzero(np.isfinite(tree.lower) & np.isfinite(tree.upper))
    if len(limited) <= _CORNERS:
        ends = [(tree.lower[i], tree.upper[i]) for i in limited]
        for corner in itertools.product(*ends):
            pose = tree.random(rng, span=_SPAN)
            pose[limited] = corner
            poses.append(pose)
    lengths = dynamics.batch(np.array(poses)).muscle_lengths
    low = np.nanmin(lengths, axis=0) - margin
    return np.stack([np.maximum(low, 0.0), np.nanmax(lengths, axis=0) + margin], axis=1)


def limited_muscles(robot: Robot, limits: Mapping[str, MuscleLimits]) -> tuple[Muscle, ...]:
    """Return the muscles with the narrower of the model's and the boards' tension limits."""
    out = []
    for muscle in robot.muscles:
        limit = limits.get(muscle.name)
        if limit is not None:
            low = max(muscle.tension_min, limit.tension_min)
            high = min(muscle.tension_max, limit.tension_max)
            muscle = replace(muscle, tension_min=low, tension_max=high)  # noqa: PLW2901
        out.append(muscle)
    return tuple(out)
