"""What a solver is given: states to start from, commands, wrenches; how finely rods are cut."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from cards_core.errors import ShapeError, UnknownNameError
from cards_core.rods.robots.guess import Guess, hermite_guess
from cards_core.rods.robots.robot import RodRobot, rod_lengths
from cards_core.rods.robots.solver_checks import MOST_SEGMENTS
from cards_core.typing import Array

FRAMES = ("world", "plate")
"""Frames of an external wrench: dead in world axes, or following the plate."""

LONGEST_SEGMENT = 4.0
"""Slenderness ``L sqrt(|n| / EI)`` that a segment may have: errors grow by its exponential."""

MANY_SEGMENTS = 6.0
"""Slenderness from which on rods are cut into segments where the settings leave it open."""


FAR = 1e6
"""Numbers of a command beyond which nothing is guessed from it, [m], [N], [N m]."""

SHORT = 1e-3
"""Length of a rod, relative to the one it starts with, below which nothing is guessed either."""


class State(Protocol):
    """Anything to start from: a `Solution`, a `Guess`."""

    @property
    def q(self) -> Array:
        """Joint coordinates, (n,)."""

    @property
    def pose(self) -> Array:
        """Plate pose, (4, 4)."""

    @property
    def base_wrenches(self) -> Array:
        """n, m at the rod starts, (n, 6), world axes."""


def guessed(
    robot: RodRobot,
    q: Array | None,
    pose: Array,
    *,
    base: Array,
    gravity: Array,
    wrench: Array | None = None,
    frame: str = "world",
) -> Guess:
    """Return a Hermite guess at a plate pose; rods without load where none can be drawn.

    Args:
        robot: The robot.
        q: Joint coordinates if they are given, (n,).
        pose: Plate pose in the world, (4, 4).
        base: Pose of the robot in the world, (4, 4).
        gravity: In the world, (3,), [m/s^2].
        wrench: Load on the plate about its origin, (6,).
        frame: Of the wrench, ``world`` or ``plate``.

    Raises:
        ShapeError: Something is of the wrong shape or no numbers.
    """
    place = numbers(pose, "pose", (4, 4))
    joints = None if q is None else numbers(q, "q", (robot.n_limbs,))
    load = np.zeros(6) if wrench is None else numbers(wrench, "wrench", (6,))
    if is_follower(frame):
        load = np.concatenate([place[:3, :3] @ load[:3], place[:3, :3] @ load[3:]])
    given = np.concatenate([place.ravel(), load, np.zeros(0) if joints is None else joints])
    lengths = robot.lengths if joints is None else rod_lengths(robot, joints)
    if not (np.abs(given) < FAR).all() or not (lengths > SHORT * robot.lengths).all():
        return Guess(robot.home_q, base @ robot.home_pose, np.zeros((robot.n_limbs, 6)))
    return hermite_guess(robot, place, joints, wrench=load, base=base, gravity=gravity)


def segments_for(slenderness: float, now: int) -> int:
    """How many segments rods of this slenderness want, with `now` at present."""
    if not slenderness > (MANY_SEGMENTS if now == 1 else 0.8 * MANY_SEGMENTS):
        return 1
    wanted = min(math.ceil(min(slenderness, 1e6) / LONGEST_SEGMENT), MOST_SEGMENTS)
    return now if now == wanted + 1 else wanted


def numbers(values: Array, name: str, shape: tuple[int, ...]) -> Array:
    """Return floats of this shape. Raises `ShapeError`."""
    try:
        out = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise ShapeError(f"{name} is {values!r}; expected numbers, shape {shape}") from None
    if out.shape != shape:
        raise ShapeError(f"{name} has shape {out.shape}; expected {shape}")
    return out


def shape_text(values: Array | None, name: str) -> str:
    """Return the shape of an argument in words, nothing for None."""
    return "" if values is None else f"{name} has shape {np.asarray(values).shape}"


def is_follower(frame: str) -> bool:
    """Tell whether a wrench follows the plate. Raises `UnknownNameError` for other frames."""
    if frame not in FRAMES:
        raise UnknownNameError("frame of a wrench", frame, FRAMES)
    return frame == "plate"
