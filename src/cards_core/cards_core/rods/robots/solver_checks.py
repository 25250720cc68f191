"""What a rod robot and its settings must fulfil to be solved."""

from __future__ import annotations

import numpy as np

from cards_core.errors import RodError, UnknownNameError
from cards_core.rods.robots.robot import PLATE_COORDINATES, RodRobot, SolverSettings
from cards_core.typing import Array

MOST_SEGMENTS = 12
"""Segments that a rod is cut into at most."""


def controlled_indices(robot: RodRobot) -> Array:
    """Return the indices of the commanded plate coordinates, ascending.

    Raises:
        UnknownNameError: A coordinate that the robot does not have.
    """
    for name in robot.controlled:
        if name not in robot.coordinates:
            raise UnknownNameError("plate coordinate", name, robot.coordinates)
    return np.array(sorted({PLATE_COORDINATES.index(name) for name in robot.controlled}))


def check_robot(robot: RodRobot, settings: SolverSettings) -> None:
    """Refuse what cannot be solved.

    Raises:
        RodError: No limbs, more controlled coordinates than actuators, a setting out of range, or
            a planar robot with a joint across its plane.
        UnknownNameError: An unknown policy.
    """
    if not robot.limbs:
        raise RodError(f"robot '{robot.name}' has no limbs; expected one or more")
    if len(robot.controlled) > int(robot.actuated.sum()):
        raise RodError(
            f"robot '{robot.name}' has {int(robot.actuated.sum())} actuated limbs and "
            f"{len(robot.controlled)} controlled plate coordinates "
            f"({', '.join(robot.controlled)}); expected at most as many as limbs"
        )
    if settings.policy not in ("fresh", "chord"):
        raise UnknownNameError("solver policy", settings.policy, ("fresh", "chord"))
    if settings.steps < 1 or settings.max_iterations < 1 or not settings.tolerance > 0.0:
        raise RodError(
            f"solver of '{robot.name}': steps {settings.steps}, max_iterations "
            f"{settings.max_iterations}, tolerance {settings.tolerance}; expected all > 0"
        )
    if settings.segments is not None and not 1 <= settings.segments <= MOST_SEGMENTS:
        raise RodError(
            f"solver of '{robot.name}': {settings.segments} segments; "
            f"expected 1 to {MOST_SEGMENTS} or none (chosen by the load)"
        )
    if robot.planar:
        for limb in robot.limbs:
            if abs(abs(limb.tip.joint_pose[2, 2]) - 1.0) > 1e-9:
                raise RodError(
                    f"limb '{limb.name}' of planar robot '{robot.name}': the z axis of its plate "
                    "joint lies across the plane's normal; expected along it"
                )
